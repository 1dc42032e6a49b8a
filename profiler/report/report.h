/* SPDX-License-Identifier: MIT */
/* A view made into something to read. Gathering (what is shown) is apart from emitting (how): the same report goes out as text, JSON or CSV.
 *
 *     rp_report_make(view, &options, rp_emit_find("text"), &report, err);
 *     rp_report_write(&report, &out, err);
 *     rp_report_release(&report);
 *
 * Nothing here prints: text is appended to a buffer, which the command line writes. */
#ifndef RP_REPORT_REPORT_H
#define RP_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/calltree.h"
#include "analyze/view.h"
#include "analyze/view_waits.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/vec.h"

struct rp_emit_ops;

enum rp_tree_wish {
    RP_TREE_AUTO, /* the heaviest categories, each cut to what one looks at */
    RP_TREE_FULL, /* down to min_samples */
    RP_TREE_NONE,
};

#define RP_ALL_CATEGORIES UINT32_MAX

enum rp_report_clock {
    RP_REPORT_CPU,  /* shares of on-CPU samples */
    RP_REPORT_WALL, /* shares of the time that was not idle: running, preempted, waiting */
};

struct rp_report_options {
    enum rp_by by;
    enum rp_tree_wish tree;
    uint32_t category;    /* tree of this one only; RP_ALL_CATEGORIES: the heaviest */
    uint64_t min_samples; /* smaller tree nodes are not shown */
    bool callers, full_stacks;
    bool by_self;   /* trees ordered by self */
    bool total;     /* a column of totals */
    bool unclaimed; /* what no rule claims, instead of the report */
    enum rp_report_clock clock;
    bool no_waiting; /* leave waiting out */
    bool keep_idle;  /* idle waits stand among the waits */
    bool locks;      /* the locks below the tables */
    const char *function; /* the inclusive view of this one; NULL: none */
    bool verbose;   /* full signatures and command lines */
    bool color;
    size_t width;       /* columns to fit in; 0: no limit */
    const char *thread; /* the filter of the view, for the header; NULL: none */
    const char *file;   /* where the profile is kept, for advice that names it; NULL: nowhere */
};

/* Something the reader should know before believing the figures. */
struct rp_note {
    const char *id; /* stable, such as "lost"; listed in profiler/report/README.md */
    char *text;     /* sentences; owned */
};

enum rp_tree_kind {
    RP_TREE_OF_SAMPLES, /* of a category, or of all */
    RP_TREE_OF_WAITS,   /* of a category; weighed in ns */
    RP_TREE_OF_LOCK,    /* who waits for it; ns */
    RP_TREE_OF_HOLDERS, /* what they did; ns */
    RP_TREE_OF_CALLERS, /* of report.function */
    RP_TREE_OF_CALLEES,
};

struct rp_report_tree {
    enum rp_tree_kind kind;
    uint32_t category;    /* RP_ALL_CATEGORIES: of all samples */
    uint32_t lock;        /* position in report.locks.rows */
    uint64_t min_samples; /* what nodes were really cut at; ns where the tree is weighed in ns */
    bool cut;             /* not the whole tree was asked for */
    struct rp_calltree tree;
};

struct rp_report {
    const struct rp_view *view;
    const struct rp_profile *profile;
    const struct cat_rules *rules;
    const struct rp_emit_ops *format;
    struct rp_report_options options;
    struct rp_quality quality;
    struct rp_category_table categories;
    struct rp_group_table groups;    /* rows of options.by, when that is not the category */
    struct rp_group_table functions; /* when the format wants them */
    struct rp_drift_table drift;
    struct rp_nameless_table nameless;
    struct rp_unclaimed_table unclaimed;
    struct rp_waits *waits;          /* NULL: not measured, or not wanted */
    struct rp_thread_table threads;  /* with waits */
    struct rp_lock_table locks;      /* with waits, when wanted */
    struct rp_function_view function;
    RP_VEC(struct rp_report_tree) trees;
    RP_VEC(struct rp_note) notes;
    bool *sampled; /* per process of the profile: it has counts */
};

/* `report` is filled from zero; release it whatever the outcome. The view must outlive it. */
enum rp_status rp_report_make(const struct rp_view *view, const struct rp_report_options *options, const struct rp_emit_ops *format,
                              struct rp_report *report, struct rp_err *err);
enum rp_status rp_report_write(const struct rp_report *report, struct rp_buf *out, struct rp_err *err);
void rp_report_release(struct rp_report *report);

/* True when there is something to report: a sample, or a wait that is not dropped as idle. */
bool rp_report_has_any(const struct rp_report *report);

/* The sample count of `category` in the table; 0 when it has no row. */
const struct rp_category_row *rp_report_row(const struct rp_report *report, uint32_t category);

/* A process to be listed: one of those that a pid was (each execve makes another) only if it has samples, or none of them has and it is the last. */
bool rp_report_lists(const struct rp_report *report, uint32_t process);

/* How many of its pid are listed; 0 when `process` is not the last of them. */
uint32_t rp_report_programs(const struct rp_report *report, uint32_t process);

/* The target's short name: the base name of the program and its arguments, or the thread name of a kernel thread. */
void rp_report_command(const struct rp_report *report, const struct rp_profile_process *process, struct rp_buf *out);

#endif
