/* SPDX-License-Identifier: MIT */
/* The statistics of shares. Formulas and where they come from: profiler/README.md, "Numbers". Pure functions, no errors. */
#ifndef RP_ANALYZE_STATS_H
#define RP_ANALYZE_STATS_H

#include <stddef.h>
#include <stdint.h>

struct rp_interval {
    double low, high;
};

/* Quantile of the normal distribution, 0 < p < 1. */
double rp_normal_quantile(double p);
/* Regularised incomplete beta I_x(a, b). */
double rp_beta_regularized(double x, double a, double b);
/* Holm's correction: p[i] becomes the p-value of a test among `n`; `order` is room for n positions. */
void rp_holm(double *p, size_t n, uint32_t *order);
/* Student's t: P(|T| >= |t|), with full relative accuracy in the tail, and the quantile; df > 0 need not be whole. */
double rp_t_two_sided(double t, double df);
double rp_t_quantile(double p, double df);

/* Wilson interval of k of n at `z`, with n/deff in place of n. n = 0 gives [0, 1]. */
struct rp_interval rp_wilson(double k, double n, double deff, double z);

enum { RP_GROUPINGS_MAX = 16 };

/* How `blocks` blocks are grouped: into G = B, B/2, … >= 8 groups, none when there are fewer than 8 blocks; and the factor of Student's t for each, which
 * is the slow part. One serves for all categories. */
struct rp_design {
    size_t blocks, groupings;
    size_t groups[RP_GROUPINGS_MAX];
    double factor[RP_GROUPINGS_MAX];
};
void rp_design_init(struct rp_design *design, size_t blocks);

/* Design effect of a category from its counts per block: samples `n[b]` of which `k[b]` are in the category. The maximum over the groupings, at
 * least 1; 1 when there are none. Where B/2 is not whole, groups differ by one block; blocks may differ in samples (the last is cut off by the end of the
 * run), and empty ones count. `*rising` (may be NULL): it still rose at the coarsest grouping, by more than chance, so phases are longer than the run can
 * average. */
double rp_design_effect(const struct rp_design *design, const uint64_t *n, const uint64_t *k, int *rising);

#endif
