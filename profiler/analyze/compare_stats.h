/* SPDX-License-Identifier: MIT */
/* The statistics of comparisons: two sets of runs (a benchmark) and two counts out of samples (a profile). Formulas: profiler/README.md, "Numbers".
 *
 * Pure functions; only those that say so allocate. `old` comes before `new`, and differences are new - old. What too few values cannot say is NaN; two
 * sets without any scatter have p 1 when their means are equal and 0 when they are not. */
#ifndef RP_ANALYZE_COMPARE_STATS_H
#define RP_ANALYZE_COMPARE_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/stats.h"
#include "base/status.h"

/* ---- distributions ---- */

/* P(|Z| >= |z|), with full relative accuracy in the tail. */
double rp_normal_two_sided(double z);
/* P(chi-square >= x). */
double rp_chi2_tail(double x, double df);
struct rp_chi2 {
    double x2, df, p;
};

/* ---- two sets of runs ---- */

struct rp_moments {
    size_t n;
    double mean, variance; /* variance over n - 1; NaN below two values */
};
struct rp_moments rp_moments_of(const double *x, size_t n);

struct rp_t_test {
    double estimate; /* mean, or difference of means */
    double error;    /* its standard error */
    double t, df, p;
};
struct rp_t_test rp_welch(const struct rp_moments *old, const struct rp_moments *new);
/* A mean against 0: of paired logarithms it is the paired test, of one mean log ratio per round the geomean's. */
struct rp_t_test rp_t_mean(const double *x, size_t n);
/* Student's interval of the estimate at `confidence` (0.95). */
struct rp_interval rp_t_interval(const struct rp_t_test *test, double confidence);

/* Half of the interval of the improvement at 1 - `risk`, as a fraction of the old mean: what Node's compare.R prints as accuracy (risks .05, .01, .001). */
double rp_accuracy(const struct rp_t_test *welch, double old_mean, double risk);

struct rp_ratio {
    double ratio, low, high;
    double p; /* where the method has one; else NaN */
};
/* Ratio of means with Fieller's interval at `confidence`. Unbounded (0, infinity) when the old mean cannot be told from 0. */
struct rp_ratio rp_fieller(const struct rp_moments *old, const struct rp_moments *new, double confidence);
/* Welch on logarithms, exponentiated: ratio of geometric means. Values must be > 0; RP_NOMEM only. */
enum rp_status rp_log_welch(const double *old, size_t n_old, const double *new, size_t n_new, double confidence, struct rp_ratio *out,
                            struct rp_err *err);

double rp_geomean(const double *ratios, size_t n);
/* Geomean over configurations with its interval over rounds, which keeps what configurations of one round share: `log_ratios[config * rounds + round]`.
 * RP_NOMEM only. */
enum rp_status rp_geomean_rounds(const double *log_ratios, size_t configs, size_t rounds, double confidence, struct rp_ratio *out,
                                 struct rp_err *err);

/* The smallest relative change that these two scatters would convict with this power at `alpha`: (t_{1-alpha/2} + t_{power}) error / old mean. */
double rp_detectable(const struct rp_moments *old, const struct rp_moments *new, double alpha, double power);

/* Power of the two-sample t test (noncentral t, equal n and sd), and its solutions: as R's power.t.test. */
double rp_t_power(double n, double delta, double sd, double alpha);
double rp_t_power_n(double delta, double sd, double alpha, double power);
double rp_t_power_delta(double n, double sd, double alpha, double power);

/* ---- without a distribution ---- */

struct rp_permutation {
    double p;
    uint64_t hits, total; /* arrangements at least as far out, of how many; Monte Carlo: of how many drawn */
    bool exact;           /* else p = (hits + 1) / (total + 1) */
};

enum {
    RP_SIGN_FLIP_EXACT_MAX = 16,
    RP_PERMUTATIONS_EXACT_MAX = 1000000,
    RP_MONTE_CARLO = 100000,
    RP_MANN_WHITNEY_EXACT_MAX = 20, /* values a side */
};

/* Sign flips of paired differences: all 2^n up to n = 16, else RP_MONTE_CARLO drawn with `seed`. */
struct rp_permutation rp_sign_flip(const double *d, size_t n, uint64_t seed);

/* The difference of means over all ways to share the values out, when there are no more than RP_PERMUTATIONS_EXACT_MAX of them. RP_NOMEM only. */
enum rp_status rp_permute_means(const double *old, size_t n_old, const double *new, size_t n_new, uint64_t seed, struct rp_permutation *out,
                                struct rp_err *err);

struct rp_mann_whitney {
    double w; /* pairs in which new is larger; ties count half */
    double p;
    bool exact, ties;
};
/* Exact without ties and up to RP_MANN_WHITNEY_EXACT_MAX values a side, else normal with tie and continuity correction. RP_NOMEM only. */
enum rp_status rp_mann_whitney(const double *old, size_t n_old, const double *new, size_t n_new, struct rp_mann_whitney *out, struct rp_err *err);

/* Median of all differences new - old. RP_NOMEM only. */
enum rp_status rp_hodges_lehmann(const double *old, size_t n_old, const double *new, size_t n_new, double *out, struct rp_err *err);

/* ---- many tests ---- */

/* Benjamini and Hochberg: p[i] becomes the false discovery rate at which it falls; `order` is room for n positions. Holm's is rp_holm (stats.h). */
void rp_benjamini_hochberg(double *p, size_t n, uint32_t *order);

/* ---- counts ---- */

/* k of n; n/deff independent observations. */
struct rp_proportion {
    double k, n, deff;
};

struct rp_proportion_test {
    double difference; /* new - old */
    double low, high;  /* 95 %, Newcombe's out of the two Wilson intervals */
    double z, p;
    bool fisher;       /* p is Fisher's exact, of the counts divided by deff: less than five were expected in a cell */
};
struct rp_proportion_test rp_proportions(const struct rp_proportion *old, const struct rp_proportion *new);
/* Newcombe's interval of new - old at `z`. */
struct rp_interval rp_newcombe(const struct rp_proportion *old, const struct rp_proportion *new, double z);

/* Two-sided: of all tables with these margins those no more probable than (a b / c d). Whole counts. */
double rp_fisher(double a, double b, double c, double d);

/* A table of two rows; columns without any count are left out. `residuals` (columns, may be NULL): adjusted ones of the first row; those of the second
 * are their negatives. */
struct rp_chi2 rp_chi2_two_rows(const double *first, const double *second, size_t columns, double *residuals);

#endif
