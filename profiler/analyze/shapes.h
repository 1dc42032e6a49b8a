/* SPDX-License-Identifier: MIT */
/* The same call at different sizes N (rows, columns or values that it returns), taken apart: cost(N) = c + N r, for the whole and for every row of a
 * tally. Two shapes give c and r, three or more a fit by least squares and a test of whether a straight line fits at all. Formulas: profiler/README.md,
 * "Numbers". */
#ifndef RP_ANALYZE_SHAPES_H
#define RP_ANALYZE_SHAPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/cost.h"
#include "analyze/tally.h"
#include "analyze/view.h"

enum { RP_SHAPES_MAX = 16 };

/* By 99 % intervals of c and r. */
enum rp_shape_label {
    RP_SHAPE_PER_CALL, /* c differs from 0, r does not */
    RP_SHAPE_PER_ROW,  /* the reverse */
    RP_SHAPE_MIXED,    /* both do */
    RP_SHAPE_SMALL,    /* neither does */
    RP_SHAPE_BROKEN,   /* c or r is negative beyond its interval, or the points lie on no line: cost is not c + N r */
};

/* "per call", …; with `unit` ("row", "column", "value") in the place of row. Static texts. */
const char *rp_shape_label_text(enum rp_shape_label label, const char *unit);
/* "per-call", … for programs, whatever N counts. */
const char *rp_shape_label_id(enum rp_shape_label label);

struct rp_shape_fit {
    double c, r;         /* ns per call, ns per call and unit of N */
    double c_error, r_error; /* standard errors; 0: the costs were taken as exact */
    double misfit;       /* p of the lack of fit; NaN with two shapes */
    enum rp_shape_label label;
};

/* One point per shape: `parts[i].ns` with its variance at `n[i]`. At least two of `n` differ. */
struct rp_shape_fit rp_shape_fit(const double *n, const struct rp_part *parts, size_t shapes);

struct rp_shape {
    const struct rp_view *view;
    double n;                /* N */
    double calls_per_second; /* 0: from RATE lines */
};

struct rp_shapes_row {
    uint32_t key;
    uint64_t samples[RP_SHAPES_MAX];
    struct rp_part part[RP_SHAPES_MAX];
    struct rp_shape_fit fit;
    double most;                 /* largest share at any shape */
    size_t rank;                 /* of `most` among the rows, largest first, from 0 */
    double saves[RP_SHAPES_MAX]; /* speed-up without it at each shape, as a fraction: d / (T - d); d as the label says, or as measured */
};

struct rp_shapes {
    size_t n;
    double at[RP_SHAPES_MAX];
    struct rp_cost cost[RP_SHAPES_MAX];
    uint64_t samples[RP_SHAPES_MAX];
    struct rp_shape_fit whole;
    struct rp_tally_keys keys;
    RP_VEC(struct rp_shapes_row) rows; /* largest cost per call first */
    uint64_t min_samples;              /* rows with fewer in every shape are left out */
};

/* Costs must be known for every view (rp_cost_of(view, …).known) and two of N differ. RP_NOMEM only. Release it whatever the outcome. */
enum rp_status rp_shapes_make(const struct rp_shape *shapes, size_t n, enum rp_tally_by by, uint64_t min_samples, struct rp_shapes *out,
                              struct rp_err *err);
void rp_shapes_release(struct rp_shapes *shapes);

/* Reorders the rows: largest cost per unit of N first. */
void rp_shapes_sort_by_row(struct rp_shapes *shapes);

#endif
