/* SPDX-License-Identifier: MIT */
/* Which CPUs there are, how much the process may hold, and how fast the kernel lets itself be sampled. */
#ifndef RP_SAMPLE_PERF_CPUS_H
#define RP_SAMPLE_PERF_CPUS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/vec.h"

struct rp_cpu_list {
    RP_VEC(int) at;
};

/* A list such as 0-3,8 as in /sys/devices/system/cpu/online. False: not such a list, or no memory. */
bool rp_cpu_list_parse(const char *text, size_t length, struct rp_cpu_list *cpus);

/* The CPUs that are on. At least one. */
enum rp_status rp_cpu_list_read(struct rp_cpu_list *cpus, struct rp_err *err);

/* Raises the soft limits on open files and locked memory to the hard ones; gives how many files may be open. */
uint64_t rp_raise_limits(void);

/* kernel.perf_event_max_sample_rate; a very large number when it cannot be read. */
uint64_t rp_max_sample_rate(void);

#endif
