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
    uint32_t *name; /* per thread: the number of its name */
    bool *kinds;    /* per name and category: threads of the name were seen in such a wait, of whatever duration */
};

/* Adds to a category; `category` = ncategories: to what was not seen. */
void rp_wait_scaling_add(struct rp_wait_scaling *s, size_t category, double n, double ns, uint64_t max_ns, uint32_t wait_class);

/* Adds to the variance of each category that threads of the name of `thread` are known to wait in, p (1 - p) `ns_squares` by its part p of n stacked waits of a class, of
 * which seen[k] were of category k. Half a wait is added on either side, so that none of a few is not taken for never: what one category may have too little
 * the others have too much. */
void rp_wait_scaling_doubt(struct rp_wait_scaling *s, uint32_t thread, const double *seen, double n, double ns_squares);

/* Scales the totals `totals[i]` (positions in the profile's) of which no stack was taken; `seen[i]`: how many were. */
enum rp_status rp_wait_scaling_unseen(struct rp_wait_scaling *s, const uint32_t *totals, size_t ntotals, const double *seen, struct rp_err *err);

#endif
