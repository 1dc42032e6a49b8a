/* SPDX-License-Identifier: MIT */
/* What the new saved, in ns per call, against what configurations do: a saving that is paid per call is the same at 1 and at 100 rows, one paid per row
 * grows with them. A benchmark's win that does not have the shape of the cost it claims to have removed has another cause. */
#ifndef RP_ANALYZE_BENCH_SHAPE_H
#define RP_ANALYZE_BENCH_SHAPE_H

#include "analyze/bench.h"

/* Of one configuration that is `x` large (rows, columns). */
struct rp_saving {
    double x;
    double saved, error; /* ns per call: 1e9 / old rate - 1e9 / new rate, and its standard error */
};
/* False: rates or scatter are not known. */
bool rp_saving_of(const struct rp_bench_row *row, double x, struct rp_saving *saving);

/* saved = c + r x by least squares, weighted with 1 / error². NaN where it cannot be told: all at one x, fewer than two. */
struct rp_saving_fit {
    double c, c_error, r, r_error;
    double x2, df, p; /* lack of fit; df 0: two configurations fit always */
};
struct rp_saving_fit rp_saving_fit(const struct rp_saving *savings, size_t n);

/* Against a prediction c + r x that was not taken from these figures: x2 = sum ((saved - predicted) / error)², df = n, where error² has the saving's own and
 * that of the prediction, c_error² + (r_error x)², which errs on the side of fitting (errors of c and r partly cancel). */
struct rp_saving_prediction {
    double c, c_error, r, r_error;
};
struct rp_chi2 rp_saving_check(const struct rp_saving *savings, size_t n, const struct rp_saving_prediction *prediction);

/* Whether new saves, taken all together: the sum of the savings, each in units of its error, over sqrt(n) (Stouffer). NaN without any. */
double rp_saving_direction(const struct rp_saving *savings, size_t n);

/* Improvement at few rows against that at many: the difference of mean log ratios of two groups of rows, Welch over configurations. */
struct rp_t_test rp_saving_contrast(const struct rp_bench_verdicts *verdicts, const bool *many, const bool *few);

/* Rows per call of a configuration: as its runs said, else the number behind the last LIMIT in its name, else NaN. */
double rp_bench_rows(const struct rp_bench_config *config);

#endif
