/* SPDX-License-Identifier: MIT */
/*
 * What a workload is, and the protocol that runs it.
 *
 * A workload is one file that fills a struct rl_workload, and one line in rl_workloads.c. The protocol (rl_protocol.c)
 * does the rest alike for all: seed, warm up, say READY, hold until the time or the calls are over or a signal comes,
 * then print RATE and SUM. A workload never allocates its data and never opens a database after READY.
 */
#ifndef RL_RUN_H
#define RL_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "rl_options.h"

#if defined(__GNUC__) && !defined(__clang__)
#define RW_CATEGORY __attribute__((noipa, visibility("default")))
#else
#define RW_CATEGORY __attribute__((noinline, visibility("default")))
#endif

struct rl_workload;
struct rl_worker;

struct rl_run {
    const struct rl_workload *workload;
    void *state; /* the workload's own, `state_bytes` zeroed bytes */

    /* The common options. */
    uint64_t hold_ns; /* 0: until killed */
    uint64_t calls;   /* 0: not limited */
    uint64_t seed;
    bool progress;
    const char *counter_path;

    /* Set by the workload's open. */
    uint64_t warm_calls; /* at least so many before READY (and at least half a second) */
    uint64_t batch_ns;   /* CPU time between two looks at the clock; 0: the protocol's own choice */

    /* Set by the open of a workload with workers (rl_crew.h). */
    uint64_t processes;
    uint64_t threads; /* per process */
    bool pin;         /* process i to CPU i */
    bool unwarmed;    /* hold at once: the start is part of what is measured */

    /* Added to by the workload's batch. */
    uint64_t rows;
    uint64_t sum; /* a commutative checksum of the results, so that two variants can be proved to do equal work */

    char error[RL_ERROR_BYTES];
    bool misused; /* the error is one of the command line: exit 2 */
};

struct rl_workload {
    const char *name;
    const char *summary; /* one line, for `rowload help` */
    const struct rl_option *options;
    size_t state_bytes;

    /* Sets the defaults of the options before they are parsed. May be NULL. */
    void (*defaults)(struct rl_run *run);
    /* Checks the options together, seeds, opens. False: run->error holds the sentence; close is called all the same. */
    bool (*open)(struct rl_run *run);
    /* Does `calls` calls. False: run->error holds the sentence. NULL when there are workers. */
    bool (*batch)(struct rl_run *run, uint64_t calls);

    /* Workloads whose workers do the calls, each in a thread of its own; all three or none. False: worker->error holds the
     * sentence; worker_close is called all the same. settle is called when the last call is done, before any worker
     * closes; may be NULL. */
    bool (*worker_open)(struct rl_worker *worker);
    bool (*work)(struct rl_worker *worker, uint64_t calls);
    void (*settle)(struct rl_run *run);
    void (*worker_close)(struct rl_worker *worker);

    /* Called once between warm-up and READY, to forget what the warm-up counted. May be NULL. */
    void (*ready)(struct rl_run *run);
    /* Prints ` key=value` pairs for the READY line. */
    void (*describe)(const struct rl_run *run, FILE *out);
    /* Prints lines of the workload's own after each RATE line. May be NULL. */
    void (*report)(const struct rl_run *run, FILE *out);
    /* The same after the last one only, when workers have closed. May be NULL. */
    void (*finish)(const struct rl_run *run, FILE *out);
    void (*close)(struct rl_run *run);
};

/* Every workload, ended by NULL (rl_workloads.c). */
extern const struct rl_workload *const rl_workloads[];

/* Set by INT and TERM; looked at between batches. */
extern volatile sig_atomic_t rl_stop;

/* Runs an opened workload through the protocol. Returns the exit status. */
int rl_protocol_run(struct rl_run *run);

uint64_t rl_monotonic_ns(void);
uint64_t rl_process_cpu_ns(void);

/* Seeded random numbers (splitmix64): small, well spread, and the same everywhere. */
static inline uint64_t rl_random_next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The random number that belongs to call `number`, whoever does it and when. */
static inline uint64_t rl_random_at(uint64_t seed, uint64_t number)
{
    uint64_t state = (seed ^ number * UINT64_C(0xd1342543de82ef95)) + number;
    return rl_random_next(&state);
}

#endif
