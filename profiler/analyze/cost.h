/* SPDX-License-Identifier: MIT */
/* What one call costs in a profile: CPU time of the view's threads in the recording / calls in the same time. Out of the RATE lines that the target
 * printed meanwhile, or of a number of calls per second that somebody measured. */
#ifndef RP_ANALYZE_COST_H
#define RP_ANALYZE_COST_H

#include <stdbool.h>
#include <stddef.h>

#include "analyze/tally.h"
#include "analyze/view.h"

struct rp_cost {
    bool known;
    double ns;       /* per call */
    double variance; /* of `ns`; 0 when it is not known: taken as exact */
    double rows;     /* per call; 0: not known */
    size_t lines;    /* RATE lines it comes from; 0: from calls per second */
};

/* `calls_per_second`, per second of wall time, and `rows` per call: 0 takes what the RATE lines say. */
struct rp_cost rp_cost_of(const struct rp_view *view, double calls_per_second, double rows);

/* Of several recordings of one thing taken together. Known only when all are. */
struct rp_cost rp_cost_pool(const struct rp_cost *costs, size_t n);

/* Running samples of a profile, and how many of them are of threads that are the first of their process. Both are added to what is there. */
void rp_main_thread_samples(const struct rp_profile *profile, uint64_t *of_main, uint64_t *all);

/* The target's word for `name` (READY line), NULL: none. */
const char *rp_fact_find(const struct rp_profile *profile, const char *name);

/* Share x cost of k of n samples, and its variance: T^2 p (1-p) deff / n + p^2 var(T). For the variance two samples are added on each side of p
 * (Agresti and Coull), or a row without samples would be known exactly. */
struct rp_part {
    double share, ns, variance;
};
struct rp_part rp_part_of(const struct rp_tally_row *row, uint64_t samples, const struct rp_cost *cost);

#endif
