/* SPDX-License-Identifier: MIT */
/* Scaling waits whose stack was seen up to the exact totals; shared by wait_stacks.c and wait_unseen.c only. */
#ifndef RP_ANALYZE_WAIT_SCALING_H
#define RP_ANALYZE_WAIT_SCALING_H

#include "analyze/wait_stacks.h"

struct rp_wait_scaling {
    const struct rp_view *view;
    struct rp_waits *waits;
    struct rp_wait_stacks *stacks;
    size_t ncategories;
    double *seen; /* per category: stacked waits of the class in work */
};

/* Adds to a category; `category` = ncategories: to what was not seen. */
void rp_wait_scaling_add(struct rp_wait_scaling *s, size_t category, double n, double ns, uint64_t max_ns, uint32_t wait_class);

/* Of a share that k of n stacked waits had, by chance of drawing; half a wait is added on either side, so that none of a few is not taken for never. */
double rp_wait_scaling_variance(double k, double n);

/* Scales the totals `totals[i]` (positions in the profile's) that are not `seen[i]`. */
enum rp_status rp_wait_scaling_unseen(struct rp_wait_scaling *s, const uint32_t *totals, size_t ntotals, const bool *seen, struct rp_err *err);

#endif
