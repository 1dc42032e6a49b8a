/* SPDX-License-Identifier: MIT */
/* Runs as CSV: ours, and what Node's compare.js writes, with or without blanks behind its commas. Columns are found by their names, so order does not
 * matter and unknown ones are passed over:
 *
 *     binary                          old, old2 (or again), new
 *     config | filename configuration | kind statement        the name, its parts joined by a blank
 *     rate process_rate thread_rate (or cpurate)              calls per second of wall, process CPU and thread CPU time; one of them at least
 *     round                           without it, the n-th run of an arm is of round n
 *     calls (or n) rows wall_secs (or time) process_secs thread_secs whole_wall_secs whole_cpu_secs nvcsw nivcsw attempts contended
 */
#ifndef RP_BENCH_RUNS_CSV_H
#define RP_BENCH_RUNS_CSV_H

#include "analyze/bench.h"
#include "base/buf.h"

/* Appends to `bench` (whose configurations and runs must be none). RP_FORMAT and RP_LIMIT name path and line; RP_NOMEM. */
enum rp_status rp_runs_parse(struct rp_bench *bench, const char *path, const char *text, size_t length, struct rp_err *err);
/* The same of a file; RP_IO. */
enum rp_status rp_runs_read(struct rp_bench *bench, const char *path, struct rp_err *err);

void rp_runs_put_header(struct rp_buf *out);
void rp_runs_put(const struct rp_bench *bench, const struct rp_bench_run *run, struct rp_buf *out);

/* "old", "old2", "new". */
const char *rp_arm_name(enum rp_arm arm);

#endif
