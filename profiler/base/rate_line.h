/* SPDX-License-Identifier: MIT */
/* A RATE line: what a workload counted, in words name=value (workloads/README.md, Protocol). */
#ifndef RP_BASE_RATE_LINE_H
#define RP_BASE_RATE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero where the line says nothing. */
struct rp_rate_line {
    double calls, rows, secs, cpu_secs, thread_cpu_secs;
    uint64_t nvcsw, nivcsw;
    bool has_switches;
};

/* False: not one, one with a known word that is no number from 0 to 1e15, or one without calls or without any time. Words it does not know are
 * passed over. */
bool rp_rate_line_parse(const char *line, size_t length, struct rp_rate_line *rate);

#endif
