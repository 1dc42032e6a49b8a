/* SPDX-License-Identifier: MIT */
/* Everything a command line can say, with its defaults. Strings point into argv. */
#ifndef RP_CLI_SETTINGS_H
#define RP_CLI_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/bench.h"
#include "analyze/view.h"
#include "base/vec.h"
#include "cli/compare_settings.h"
#include "fold/choose.h"
#include "report/report.h"
#include "unwind/unwind.h"

struct rp_emit_ops;
struct rp_bench_format;

enum rp_color_wish { RP_COLOR_AUTO, RP_COLOR_ALWAYS, RP_COLOR_NEVER };

/* What `rowprof bench` is told. */
struct rp_bench_settings {
    const char *old, *new, *noise; /* commands */
    const char *read, *csv, *snapshot, *shape_check, *filter, *exclude, *cpus;
    RP_VEC(const char *) configs;
    RP_VEC(const char *) suites;
    uint64_t runs, repeats;
    double calls, timeout, alpha;
    enum rp_rate_kind rate;
    bool fdr, in_place;
    const struct rp_bench_format *format;
};

struct rp_settings {
    /* what to watch and how */
    RP_VEC(uint32_t) pids;
    double seconds;
    uint32_t hz; /* 0: the sampler's default */
    enum rp_sampler_wish sampler;
    enum rp_unwind_engine unwinder;
    bool ready, end_child, children;
    bool no_inlines, debuginfod;
    const char *save_snapshots, *from_snapshots;
    /* what to keep */
    const char *output;
    bool force;
    /* what to show */
    const char *thread, *category, *profile;
    enum rp_by by;
    enum rp_tree_wish tree;
    uint64_t min_samples;
    bool callers, by_self, total, full_stacks, no_kernel, uncategorized, blocked;
    struct rp_compare_settings compare;
    enum rp_report_clock clock;
    bool no_waiting, idle, locks;
    const char *function;
    /* rules */
    RP_VEC(const char *) rules;
    bool no_default_rules;
    struct rp_bench_settings bench;
    /* how to say it */
    const struct rp_emit_ops *format;
    enum rp_color_wish color;
    uint64_t width;
    bool width_given, quiet, verbose, help, version;
};

/* Zero and then the defaults. */
void rp_settings_init(struct rp_settings *settings);
void rp_settings_release(struct rp_settings *settings);

#endif
