/* SPDX-License-Identifier: MIT */
/* The three programs that a benchmark runs: found, told apart, copied out. */
#ifndef RP_CLI_BENCH_COPIES_H
#define RP_CLI_BENCH_COPIES_H

#include "bench/program.h"
#include "bench/race.h"
#include "cli/settings.h"

/* Zero-initialised is empty. */
struct rp_bench_copies {
    struct rp_arena arena;
    struct rp_program old, new;
    struct rp_words commands[2];      /* old, new */
    struct rp_race_arm arms[RP_ARMS]; /* words are shared with nobody */
    bool noise, same_program, in_place;
    const char *temporary; /* the folder to remove at the end; NULL: none */
};

/* Splits and finds the commands, refuses a program against itself (RP_USAGE), copies. The first word of each command becomes its copy's path. */
enum rp_status rp_bench_copies_make(struct rp_bench_copies *copies, const struct rp_settings *settings, struct rp_err *err);

/* After the runs: with --in-place, whether the programs are still what they were. RP_FAILED. */
enum rp_status rp_bench_copies_unchanged(const struct rp_bench_copies *copies, struct rp_err *err);

/* Removes what is temporary. */
void rp_bench_copies_release(struct rp_bench_copies *copies);

#endif
