/* SPDX-License-Identifier: MIT */
/* Tests that know a distribution: Student's, ratios, power. See compare_stats.h.
 *
 * The trap is a set without scatter (a counter, a clock that was read twice at once): 0/0 must not become a verdict. */
#include "analyze/compare_stats.h"

#include <math.h>

#include "base/alloc.h"

double rp_normal_two_sided(double z)
{
    return erfc(fabs(z) / sqrt(2));
}

struct rp_moments rp_moments_of(const double *x, size_t n)
{
    struct rp_moments m = {n, NAN, NAN};
    double sum = 0, square = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i];
    if (!n)
        return m;
    m.mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        square += (x[i] - m.mean) * (x[i] - m.mean);
    if (n > 1)
        m.variance = square / (double)(n - 1);
    return m;
}

static struct rp_t_test finish(double estimate, double square_error, double df)
{
    struct rp_t_test t = {.estimate = estimate, .error = sqrt(square_error), .df = df};

    if (square_error > 0) {
        t.t = estimate / t.error;
        t.p = rp_t_two_sided(t.t, df);
    } else if (isnan(square_error) || isnan(estimate)) {
        t.t = t.p = NAN;
    } else {
        t.t = estimate > 0 ? INFINITY : estimate < 0 ? -INFINITY : 0;
        t.p = estimate > 0 || estimate < 0 ? 0 : 1;
    }
    return t;
}

struct rp_t_test rp_welch(const struct rp_moments *old, const struct rp_moments *new)
{
    double a = new->variance / (double)new->n, b = old->variance / (double)old->n;
    double weight = a * a / (double)(new->n - 1) + b * b / (double)(old->n - 1);
    double df = weight > 0 ? (a + b) * (a + b) / weight : (double)(new->n + old->n) - 2;

    if (new->n < 2 || old->n < 2)
        return finish(new->mean - old->mean, NAN, NAN);
    return finish(new->mean - old->mean, a + b, df);
}

struct rp_t_test rp_t_mean(const double *x, size_t n)
{
    struct rp_moments m = rp_moments_of(x, n);

    return finish(m.mean, m.variance / (double)n, (double)n - 1);
}

struct rp_interval rp_t_interval(const struct rp_t_test *test, double confidence)
{
    double half = test->error * rp_t_quantile(0.5 + confidence / 2, test->df);
    struct rp_interval i = {test->estimate - half, test->estimate + half};

    return i;
}

double rp_accuracy(const struct rp_t_test *welch, double old_mean, double risk)
{
    return rp_t_quantile(1 - risk / 2, welch->df) * welch->error / old_mean;
}

/* Half of the interval of one mean. */
static double half_width(const struct rp_moments *m, double confidence)
{
    return rp_t_quantile(0.5 + confidence / 2, (double)m->n - 1) * sqrt(m->variance / (double)m->n);
}

struct rp_ratio rp_fieller(const struct rp_moments *old, const struct rp_moments *new, double confidence)
{
    double x = old->mean, y = new->mean;
    double hx = half_width(old, confidence), hy = half_width(new, confidence);
    double below = x * x - hx * hx, root = x * y * x * y - below * (y * y - hy * hy);
    struct rp_ratio r = {.ratio = y / x, .low = 0, .high = INFINITY, .p = NAN};

    if (old->n < 2 || new->n < 2) {
        r.low = r.high = NAN;
    } else if (below > 0 && root >= 0) {
        r.low = (x * y - sqrt(root)) / below;
        r.high = (x * y + sqrt(root)) / below;
    }
    return r;
}

enum rp_status rp_log_welch(const double *old, size_t n_old, const double *new, size_t n_new, double confidence, struct rp_ratio *out,
                            struct rp_err *err)
{
    double *logs = rp_calloc(n_old + n_new + 1, sizeof *logs);
    struct rp_moments a, b;
    struct rp_t_test test;
    struct rp_interval i;

    if (!logs)
        return rp_fail_nomem(err);
    for (size_t k = 0; k < n_old; k++)
        logs[k] = log(old[k]);
    for (size_t k = 0; k < n_new; k++)
        logs[n_old + k] = log(new[k]);
    a = rp_moments_of(logs, n_old);
    b = rp_moments_of(logs + n_old, n_new);
    rp_free(logs);
    test = rp_welch(&a, &b);
    i = rp_t_interval(&test, confidence);
    *out = (struct rp_ratio){exp(test.estimate), exp(i.low), exp(i.high), test.p};
    return RP_OK;
}

double rp_geomean(const double *ratios, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += log(ratios[i]);
    return n ? exp(sum / (double)n) : NAN;
}

enum rp_status rp_geomean_rounds(const double *log_ratios, size_t configs, size_t rounds, double confidence, struct rp_ratio *out,
                                 struct rp_err *err)
{
    double *g = rp_calloc(rounds + 1, sizeof *g);
    struct rp_t_test test;
    struct rp_interval i;

    if (!g)
        return rp_fail_nomem(err);
    for (size_t round = 0; round < rounds; round++) {
        for (size_t config = 0; config < configs; config++)
            g[round] += log_ratios[config * rounds + round];
        g[round] /= (double)configs;
    }
    test = rp_t_mean(g, rounds);
    rp_free(g);
    i = rp_t_interval(&test, confidence);
    *out = (struct rp_ratio){exp(test.estimate), exp(i.low), exp(i.high), test.p};
    return RP_OK;
}

double rp_detectable(const struct rp_moments *old, const struct rp_moments *new, double alpha, double power)
{
    struct rp_t_test test = rp_welch(old, new);

    return (rp_t_quantile(1 - alpha / 2, test.df) + rp_t_quantile(power, test.df)) * test.error / old->mean;
}

/* ---- power ---- */

/* P(T > t) of the noncentral t: the mean of Phi(ncp - t s) over s = sqrt(chi-square(df) / df), by Simpson's rule where s has weight. */
static double noncentral_tail(double t, double df, double ncp)
{
    enum { STEPS = 4000 };
    double reach = 12 / sqrt(2 * df), low = reach < 1 ? 1 - reach : 0, high = 1 + 12 / sqrt(df), step = (high - low) / STEPS, sum = 0;
    double front = log(2) + df / 2 * log(df / 2) - lgamma(df / 2);

    for (int i = 0; i <= STEPS; i++) {
        double s = low + i * step, weight = i == 0 || i == STEPS ? 1 : i % 2 ? 4 : 2;

        if (s > 0)
            sum += weight * exp(front + (df - 1) * log(s) - df * s * s / 2) * erfc((t * s - ncp) / sqrt(2)) / 2;
    }
    return sum * step / 3;
}

double rp_t_power(double n, double delta, double sd, double alpha)
{
    double df = 2 * (n - 1);

    return noncentral_tail(rp_t_quantile(1 - alpha / 2, df), df, sqrt(n / 2) * delta / sd);
}

double rp_t_power_n(double delta, double sd, double alpha, double power)
{
    double low = 2, high = 4;

    while (rp_t_power(high, delta, sd, alpha) < power && high < 1e9)
        high *= 2;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;

        if (rp_t_power(middle, delta, sd, alpha) < power)
            low = middle;
        else
            high = middle;
    }
    return high;
}

double rp_t_power_delta(double n, double sd, double alpha, double power)
{
    double low = 0, high = sd;

    while (rp_t_power(n, high, sd, alpha) < power && high < 1e9 * sd)
        high *= 2;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;

        if (rp_t_power(n, middle, sd, alpha) < power)
            low = middle;
        else
            high = middle;
    }
    return high;
}
