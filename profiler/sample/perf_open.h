/* SPDX-License-Identifier: MIT */
/* perf_event_open with the attributes rowprof uses, and what to leave out where the kernel or the user's rights lack it. */
#ifndef RP_SAMPLE_PERF_OPEN_H
#define RP_SAMPLE_PERF_OPEN_H

#include <stdbool.h>
#include <stdint.h>

#include "sample/sampler.h"

struct rp_perf_want {
    enum rp_clock_source source;
    uint32_t hz;
    uint32_t stack_bytes;   /* a multiple of 8, up to RP_STACK_COPY_MAX */
    bool kernel;            /* kernel samples and call chains */
    bool inherit;           /* threads born later */
    bool inherit_thread;    /* … but not processes (kernel 5.13) */
    bool count_lost;        /* PERF_FORMAT_LOST (kernel 6.0) */
    bool enable_on_exec;
    bool switches;          /* a record whenever a thread goes off or on the CPU */
    bool clockless;         /* side records only: clocks of whole CPUs take the samples */
};

/* Opens a disabled sampling event for thread `tid` (-1: every thread) on `cpu`. Descriptor or -errno. */
int rp_perf_open_event(const struct rp_perf_want *want, int tid, int cpu);

/* Opens a disabled event that samples whatever runs on `cpu`, and nothing else; not the idle thread. Descriptor or -errno. */
int rp_perf_open_clock(const struct rp_perf_want *want, int cpu);

/* Opens a disabled event that copies the stack of a thread going off the CPU, each `period`-th time. Needs the kernel's visibility. Descriptor or
 * -errno. */
int rp_perf_open_peek(const struct rp_perf_want *want, uint64_t period, int tid, int cpu);
/* Another period, for the event and for threads that are born from now on, not for those born before. */
bool rp_perf_set_peek_period(int fd, uint64_t period);

/* Opens one, leaving out what is refused one by one: the cycle counter, PERF_FORMAT_LOST, inherit_thread, the kernel. `want` is what worked; the
 * result of the last try is returned. */
int rp_perf_open_probe(struct rp_perf_want *want, int tid, int cpu);

/* A ring owner on our own thread. */
int rp_perf_open_owner(int cpu);

/* The id that records carry. 0: cannot be had. */
uint64_t rp_perf_event_id(int fd);
/* Lost records of an event opened with count_lost; 0 otherwise. */
uint64_t rp_perf_event_lost(int fd, bool count_lost);

/* How far an event has counted; of the CPU clock: nanoseconds for which it was on. */
uint64_t rp_perf_event_count(int fd);

/* Nanoseconds between samples. */
uint64_t rp_perf_period_ns(uint32_t hz);

#endif
