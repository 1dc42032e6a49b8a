/* SPDX-License-Identifier: MIT */
/*
 * The table of workloads. To add one: write wl_NAME.c, and add its one line here.
 */
#include "rl_run.h"

/* clang-format off */
#define RL_WORKLOADS(X) \
    X(get)              \
    X(scan)             \
    X(write)            \
    X(verchk)           \
    X(evloop)           \
    X(lockmix)          \
    X(twoshape)         \
    X(mix)
/* clang-format on */

#define DECLARED(name) extern const struct rl_workload wl_##name;
#define LISTED(name) &wl_##name,

RL_WORKLOADS(DECLARED)

const struct rl_workload *const rl_workloads[] = {RL_WORKLOADS(LISTED) NULL};
