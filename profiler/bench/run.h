/* SPDX-License-Identifier: MIT */
/* One sample: a fresh process, run to its end. */
#ifndef RP_BENCH_RUN_H
#define RP_BENCH_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "analyze/bench.h"
#include "base/buf.h"
#include "base/rate_line.h"

struct rp_run_spec {
    const char *file;  /* what is executed, a path */
    char *const *argv; /* ends with NULL */
    double calls;      /* how many calls it makes, when it prints no RATE line; 0: it must */
    double timeout_secs;
    bool one_cpu;      /* all its threads share one CPU */
    const volatile sig_atomic_t *stop;
};

/* Runs it and fills rates, times and switches of `run`, and `contended`. The last RATE line of its stdout counts; without one the figures are those of the
 * whole process. Its stdin is empty; the end of what it says on stderr is in the sentence when it fails. RP_FAILED: it could not be started, ended badly,
 * said nothing usable, or took longer than the timeout. RP_INTR: *stop. It never outlives this call. */
enum rp_status rp_run_once(const struct rp_run_spec *spec, struct rp_bench_run *run, struct rp_err *err);

/* CPU time over wall time of the calls counted: the larger, the less disturbed; 0 when not known. It is the thread's that works, but on one CPU the process's:
 * there its own other threads stop the first one, which is no disturbance. */
double rp_run_undisturbed(const struct rp_bench_run *run, bool one_cpu);

#endif
