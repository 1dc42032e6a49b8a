/* SPDX-License-Identifier: MIT */
/* `rowprof bench --shape-check`: the saving of each configuration against its rows, and against what profiles say each category costs. */
#ifndef RP_CLI_BENCH_SHAPE_CHECK_H
#define RP_CLI_BENCH_SHAPE_CHECK_H

#include "base/arena.h"
#include "base/vec.h"
#include "cli/command.h"
#include "report/bench_report.h"

/* Zero-initialised is empty. */
struct rp_shape_check {
    struct rp_arena arena;
    RP_VEC(struct rp_bench_suspect) suspects;
    struct rp_bench_shape_note note; /* points into the others */
};

enum rp_status rp_shape_check(const struct rp_args *args, const struct rp_bench *bench, const struct rp_bench_verdicts *verdicts,
                              struct rp_shape_check *check, struct rp_err *err);
void rp_shape_check_release(struct rp_shape_check *check);

#endif
