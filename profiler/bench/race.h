/* SPDX-License-Identifier: MIT */
/* All runs of a benchmark, in an order that treats the arms alike: within a round each configuration is run by every arm before the next one's turn, so
 * that neighbours in time are compared; who begins rotates with round and configuration, and every other time round the order is turned about. A run that
 * was contended (CPU time below RP_CONTENDED of wall time) is repeated, and the least contended attempt counts. */
#ifndef RP_BENCH_RACE_H
#define RP_BENCH_RACE_H

#include <signal.h>

#include "analyze/bench.h"
#include "bench/suite.h"

struct rp_race_arm {
    const char *file;      /* what is executed */
    struct rp_words words; /* the command, its first word as the program shall see it */
};

/* Where the race stands, before each run. */
struct rp_race_at {
    size_t done, total; /* runs; repeats are not foreseen */
    uint32_t round, rounds;
    const char *config;
    enum rp_arm arm;
    uint32_t attempt;    /* from 1 on */
    double seconds;      /* since the first run began */
};

struct rp_race {
    struct rp_race_arm arms[RP_ARMS];
    const struct rp_suite *suite; /* at least one configuration */
    uint32_t rounds, repeats;
    double calls, timeout_secs;
    bool one_cpu; /* runs inherit our CPUs, and that is one */
    const volatile sig_atomic_t *stop;
    void (*progress)(void *context, const struct rp_race_at *at);
    /* A run that counts, already in the bench; a failure ends the race. */
    enum rp_status (*keep)(void *context, const struct rp_bench *bench, const struct rp_bench_run *run, struct rp_err *err);
    void *context;
};

/* The arm whose turn is `place` (0 … RP_ARMS - 1) in this round of this configuration. */
enum rp_arm rp_race_turn(uint32_t round, uint32_t config, uint32_t place);

/* Runs it all into `bench` (empty). What was measured before a failure stays in it. RP_INTR: *stop; RP_FAILED names configuration and arm. */
enum rp_status rp_race_run(const struct rp_race *race, struct rp_bench *bench, struct rp_err *err);

#endif
