/* SPDX-License-Identifier: MIT */
/*
 * The table of workloads. To add one: write wl_NAME.c, and add its two lines here.
 */
#include "rl_run.h"

extern const struct rl_workload wl_get;
extern const struct rl_workload wl_mix;

const struct rl_workload *const rl_workloads[] = {
    &wl_get,
    &wl_mix,
    NULL,
};
