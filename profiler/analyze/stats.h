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
/* Student's t: distribution function and quantile; df > 0 need not be whole. */
double rp_t_cdf(double t, double df);
double rp_t_quantile(double p, double df);

/* Wilson interval of k of n at `z`, with n/deff in place of n. n = 0 gives [0, 1]. */
struct rp_interval rp_wilson(double k, double n, double deff, double z);

/* Design effect of a category from its counts per block: samples `n[b]` of which `k[b]` are in the category. The maximum over groupings of
 * the blocks into G = B, B/2, … >= 8 groups, at least 1. `*rising` (may be NULL): it still rose at the coarsest grouping, so phases are longer than
 * the run can average. */
double rp_design_effect(const uint64_t *n, const uint64_t *k, size_t blocks, int *rising);

#endif
