/* SPDX-License-Identifier: MIT */
/* A profile seen through rules and a filter: the category of every distinct stack, and the figures that reports print. Making a view never changes the
 * profile, so another rule file or thread is another view of the same file.
 *
 * A view is of running samples; blocked counts are in none of its figures. Functions of one name and module are one function here, whatever their
 * addresses (inlined copies have none): every function id that a view gives is the first of them. Tables without a release function of their own are released
 * with rp_vec_release(&table.rows). */
#ifndef RP_ANALYZE_VIEW_H
#define RP_ANALYZE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/vec.h"
#include "categorize/categorize.h"
#include "model/profile.h"

struct rp_filter {
    const char *thread; /* thread name or tid in decimal; NULL: all. Every figure is restricted to it */
    bool no_kernel;     /* kernel frames are cut away and the user frames asked; sample counts stay; a stack of nothing else keeps its frames */
};

/* What the quality line says. Counts of samples that pass the filter, unless named otherwise. */
struct rp_quality {
    uint64_t samples;   /* on-CPU samples */
    uint64_t lost, throttled, vanished; /* whole run */
    uint64_t complete;  /* stacks that ended at a root */
    uint64_t truncated; /* = samples - complete */
    uint64_t guessed;   /* stacks with a frame reached by a frame pointer */
    uint64_t unnamed;   /* samples whose leaf has no name (module+0xoffset or [jit]) */
    uint64_t jit_unnamed; /* samples with an unnamed [jit] frame anywhere */
    uint64_t gave_up;   /* names on which a regex of the rules was ended by its step limit: no match */
    uint32_t threads_seen; /* threads with samples */
    uint32_t idle_threads; /* threads watched without a sample that neither used nor wanted a CPU for a hundredth of the time */
    double idle_seconds;   /* of those: wall time less what they ran (schedstat) */
    double off_seconds;    /* of all the others: wall time less what they ran or were ready to run (schedstat, switch records) */
};

/* "Paid for": samples of a mutex or malloc category by the category that would pay without it. */
struct rp_payer {
    uint32_t category;
    uint64_t samples;
    uint32_t function; /* when nobody would pay (uncategorized): the caller, of those that no rule claims, with most of them; UINT32_MAX: none */
};

struct rp_category_row {
    uint32_t category;
    uint64_t samples;    /* self: exclusive */
    double share;        /* of all samples of the view */
    double low, high;    /* 95 % Wilson interval with n/deff */
    double deff;
    bool rising;         /* phases longer than the run can average */
    uint64_t total;      /* samples with any frame of the category, once each */
    uint64_t inherited;  /* samples that came by an unclaimed callee of a claimed frame */
    RP_VEC(struct rp_payer) payers; /* largest first; only where the category shows them */
};

struct rp_category_table {
    RP_VEC(struct rp_category_row) rows; /* largest first; uncategorized last; those with no self sample left out, but uncategorized always there */
    uint64_t samples;
    uint64_t uncategorized_through, uncategorized_truncated; /* sub-reasons of uncategorized */
};

/* Those from RP_BY_WAIT on are tables of analyze/view_waits.h, not of rp_view_groups. */
enum rp_by { RP_BY_CATEGORY, RP_BY_FUNCTION, RP_BY_MODULE, RP_BY_THREAD, RP_BY_PROCESS, RP_BY_WAIT, RP_BY_IDLE, RP_BY_LOCK };

/* A row of `--by function|module|thread`. */
struct rp_group_row {
    uint32_t key;        /* function id, string id of the module (of a mark: its text), or thread position */
    uint64_t self, total; /* total: once per sample however often the thing is on its stack */
    double share, low, high; /* of self */
};

struct rp_group_table {
    RP_VEC(struct rp_group_row) rows; /* largest self first, then total */
    uint64_t samples;
};

struct rp_view;

/* `profile` (symbolized) and `rules` (finished) must outlive the view. RP_NOTFOUND: the filter names no thread; the sentence lists those there are. */
enum rp_status rp_view_new(const struct rp_profile *profile, const struct cat_rules *rules, const struct rp_filter *filter, struct rp_view **out,
                           struct rp_err *err);
void rp_view_free(struct rp_view *view);

const struct rp_profile *rp_view_profile(const struct rp_view *view);
const struct cat_rules *rp_view_rules(const struct rp_view *view);

/* The part of the records that were lost. Where waiting is measured records are samples, switches and stacks of waits, and no count tells which were lost. */
double rp_lost_part(const struct rp_quality *quality, const struct rp_run *run);
enum rp_status rp_view_quality(const struct rp_view *view, struct rp_quality *quality, struct rp_err *err);
enum rp_status rp_view_categories(const struct rp_view *view, struct rp_category_table *table, struct rp_err *err);
void rp_category_table_release(struct rp_category_table *table);
enum rp_status rp_view_groups(const struct rp_view *view, enum rp_by by, struct rp_group_table *table, struct rp_err *err);
void rp_group_table_release(struct rp_group_table *table);

/* Steadiness: categories whose share differs between the first and the second half of the blocks by more than chance allows (Holm over categories,
 * deff of each half taken in). Runs of fewer than 16 blocks, and categories of which less than five samples would be expected in a half, are not judged. */
struct rp_drift {
    uint32_t category;
    double first, second, p; /* p: Holm-corrected */
};
struct rp_drift_table {
    RP_VEC(struct rp_drift) rows; /* only those that differ (p < 0.05), strongest first */
};
enum rp_status rp_view_drift(const struct rp_view *view, struct rp_drift_table *table, struct rp_err *err);

/* What no rule claims: `rowprof report --uncategorized`. First unclaimed leaves, heaviest first; then what came by inheritance, heaviest first. A
 * leaf is here the first frame that no `through` list passes on. Where the claimed frame lies in another module, the function by which its module is left
 * stands for all below: it is the one that a rule should name. */
struct rp_unclaimed {
    uint32_t function;
    uint64_t samples;
    bool inherited;      /* claimed only through a caller, whose category is `category` */
    bool foreign;        /* that caller lies in another module */
    uint32_t category;
};
struct rp_unclaimed_table {
    RP_VEC(struct rp_unclaimed) rows;
};
enum rp_status rp_view_unclaimed(const struct rp_view *view, struct rp_unclaimed_table *table, struct rp_err *err);

/* Names that a debug package would give: samples whose leaf is unnamed, by image. */
struct rp_nameless {
    uint32_t image;
    uint64_t samples;
};
struct rp_nameless_table {
    RP_VEC(struct rp_nameless) rows; /* heaviest first */
};
enum rp_status rp_view_nameless(const struct rp_view *view, struct rp_nameless_table *table, struct rp_err *err);

/* One function with all below it (`--function NAME`). */
struct rp_waits;
struct rp_function_view {
    RP_VEC(uint32_t) matched; /* the functions that the name fits, as the profile lists them */
    bool *functions;          /* the same per function of the profile */
    uint64_t samples, self, total; /* a sample counts once, however often one of them is on its stack */
    double self_low, self_high, total_low, total_high; /* 95 % intervals of the shares */
    double waits, seconds;    /* waiting (idling left out) with one of them on the stack */
    double share;             /* of the wall time that was not idle */
};

/* `name`: full, or without parameters; with * and ? a glob. `waits` may be NULL. RP_NOTFOUND: no function has it; the sentence names some that hold the
 * text. */
enum rp_status rp_view_function(const struct rp_view *view, const struct rp_waits *waits, const char *name, struct rp_function_view *out,
                                struct rp_err *err);
void rp_function_view_release(struct rp_function_view *function);

#endif
