/* SPDX-License-Identifier: MIT */
/* Two sides, each of one profile or several, set against each other row by row. Formulas: profiler/README.md, "Numbers".
 *
 * A share can fall only because another rose. So where it is known what a call costs on both sides, each row also has its nanoseconds per call and a
 * test of those. From RP_DIFF_RUNS_MIN profiles a side the run is the unit (Welch); below, the samples are (two proportions with their design effects),
 * several profiles of a side being added up.
 *
 * The trap is one file a side: what samples and RATE lines scatter by within a run says nothing of how far two runs of one program lie apart, which is
 * several times as far (addresses, caches, clock rates, neighbours). What is not measured is taken from
 * the constants below. */
#ifndef RP_ANALYZE_DIFF_H
#define RP_ANALYZE_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/cost.h"
#include "analyze/tally.h"
#include "analyze/view.h"

enum { RP_DIFF_RUNS_MIN = 4, RP_DIFF_FAMILY_MIN = 25, RP_SIDE_MAX = 64 };

/* Standard deviations between runs of one program on a busy machine. Of the cost of a call, as a part of it: CPU time per call in 20 benchmarks of three
 * programs, 12 runs of each, root mean square (tests/fixtures/bench). Of what a row has of it, as a part of that (times 1 - p, as all shares are one):
 * eight runs of `rowload get`, beyond the scatter of their samples. A function may lie well or badly in the caches of one run, which evens out over a category. */
#define RP_DIFF_RUN_SCATTER 0.04
#define RP_DIFF_ROW_SCATTER 0.05
#define RP_DIFF_FINE_ROW_SCATTER 0.15

struct rp_diff_side {
    const struct rp_view *const *views;
    size_t n;                /* 1 … RP_SIDE_MAX */
    double calls_per_second; /* 0: from RATE lines */
    double rows;             /* per call: costs are per row then; 0: per call */
};

struct rp_diff_options {
    enum rp_tally_by by;
    bool total;           /* samples anywhere on the stack instead of the leaf's or payer's */
    uint64_t min_samples; /* a row with fewer is below the cut-off of its side */
    double alpha;
    bool same;            /* both sides are the same files: no difference can be chance */
};

enum rp_verdict { RP_VERDICT_NONE, RP_VERDICT_NOISE, RP_VERDICT_GREW, RP_VERDICT_FELL };

/* B - A. */
struct rp_change {
    double difference, low, high; /* 95 % */
    double p, holm;               /* holm is NaN when not tested */
    enum rp_verdict verdict;      /* NONE: not tested */
};

struct rp_diff_cell {
    uint64_t samples;
    double share, ns;
    bool below; /* fewer samples than the cut-off: prints as `-` */
};

struct rp_diff_row {
    uint32_t key;
    struct rp_diff_cell side[2];
    struct rp_change share;
    struct rp_change ns;  /* only where both costs are known */
    bool cost_stands;     /* the share is convicted; the interval of the cost's change holds 0, and not what the share's move alone would have made of it */
};

struct rp_diff {
    struct rp_diff_options options;
    struct rp_tally_keys keys;
    RP_VEC(struct rp_diff_row) rows; /* largest difference of shares first; rows below the cut-off on both sides are left out … */
    size_t left_out;                 /* … and counted here, with their samples */
    uint64_t left_out_samples[2];
    uint64_t samples[2];
    size_t files[2], family;
    struct rp_cost cost[2];
    bool has_cost, per_row, by_runs;
    double run_scatter, row_scatter; /* of a call's cost, of a row's part of it: assumed, and in the intervals, for want of profiles; 0: it was not */
    struct rp_change whole;          /* of the cost; not tested when a variance is not known */
    double main_thread[2];           /* its part of all samples; NaN: none */
};

/* RP_NOMEM only. Release it whatever the outcome. */
enum rp_status rp_diff_make(const struct rp_diff_side side[2], const struct rp_diff_options *options, struct rp_diff *diff, struct rp_err *err);
void rp_diff_release(struct rp_diff *diff);

/* The largest growth that is convicted, in percent of side A's whole: of the cost where it is known, else of the share (points). `row` is UINT32_MAX for
 * the whole. False: nothing grew by more than chance. */
bool rp_diff_worst(const struct rp_diff *diff, double *percent, uint32_t *row);

/* Images of one name that both profiles have code of and whose build-ids differ: calls `visit` for each. RP_NOMEM only. */
typedef void rp_build_visit(void *context, const char *name);
void rp_diff_builds(const struct rp_profile *a, const struct rp_profile *b, rp_build_visit *visit, void *context);

#endif
