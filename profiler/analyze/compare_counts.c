/* SPDX-License-Identifier: MIT */
/* Tests of counts: two proportions, Fisher's exact, a table of two rows. See compare_stats.h.
 *
 * The trap is that samples come in phases, so n of them are worth n/deff: every test here is of that many. */
#include "analyze/compare_stats.h"

#include <math.h>

enum { EXPECTED_MIN = 5, STEPS = 10000 };

/* Q(a, x) by its series for P where x is small, by Lentz's continued fraction where P would be 1 - tail. */
static double gamma_upper(double a, double x)
{
    double front = exp(-x + a * log(x) - lgamma(a)), sum = 1 / a, term = sum, b = x + 1 - a, c = 1e300, d = 1 / b, f = d;

    if (x < a + 1) {
        for (int i = 1; i < STEPS && term > sum * 1e-17; i++)
            sum += term *= x / (a + i);
        return 1 - front * sum;
    }
    for (int i = 1; i < STEPS; i++) {
        double an = -i * (i - a), step;

        b += 2;
        d = 1 / (an * d + b);
        c = b + an / c;
        step = c * d;
        f *= step;
        if (fabs(step - 1) < 1e-15)
            break;
    }
    return front * f;
}

double rp_chi2_tail(double x, double df)
{
    if (isnan(x) || !(df > 0))
        return NAN;
    return x > 0 ? gamma_upper(df / 2, x / 2) : 1;
}

/* log of the probability of `a` in the corner, but for a term that all tables of these margins share. */
static double log_weight(double a, double row, double column, double n)
{
    return -lgamma(a + 1) - lgamma(row - a + 1) - lgamma(column - a + 1) - lgamma(n - row - column + a + 1);
}

double rp_fisher(double a, double b, double c, double d)
{
    double row = a + b, column = a + c, n = a + b + c + d;
    double low = fmax(0, row + column - n), high = fmin(row, column), observed = log_weight(a, row, column, n);
    double mode = floor((row + 1) * (column + 1) / (n + 2)), top = log_weight(fmin(fmax(mode, low), high), row, column, n);
    double all = 0, out = 0;

    for (double x = low; x <= high; x++) {
        double log_x = log_weight(x, row, column, n);

        all += exp(log_x - top);
        out += log_x <= observed + 1e-7 ? exp(log_x - observed) : 0;
    }
    return fmin(1, out * exp(observed - top) / all);
}

struct rp_interval rp_newcombe(const struct rp_proportion *old, const struct rp_proportion *new, double z)
{
    struct rp_interval a = rp_wilson(old->k, old->n, old->deff, z), b = rp_wilson(new->k, new->n, new->deff, z), i = {-1, 1};
    double p = old->n > 0 ? old->k / old->n : 0, q = new->n > 0 ? new->k / new->n : 0;

    if (!(old->n > 0) || !(new->n > 0))
        return i;
    i.low = q - p - sqrt((q - b.low) * (q - b.low) + (a.high - p) * (a.high - p));
    i.high = q - p + sqrt((b.high - q) * (b.high - q) + (p - a.low) * (p - a.low));
    return i;
}

struct rp_proportion_test rp_proportions(const struct rp_proportion *old, const struct rp_proportion *new)
{
    struct rp_interval i = rp_newcombe(old, new, rp_normal_quantile(0.975));
    double n_old = old->n / fmax(1, old->deff), n_new = new->n / fmax(1, new->deff);
    double p = (old->k + new->k) / (old->n + new->n), error = sqrt(p * (1 - p) * (1 / n_old + 1 / n_new));
    double least = fmin(n_old, n_new);
    struct rp_proportion_test t = {.low = i.low, .high = i.high, .p = 1};

    if (!(old->n > 0) || !(new->n > 0))
        return t;
    t.difference = new->k / new->n - old->k / old->n;
    if (!(error > 0))
        return t;
    t.z = t.difference / error;
    t.fisher = least * p < EXPECTED_MIN || least * (1 - p) < EXPECTED_MIN;
    if (t.fisher) {
        double a = round(old->k / fmax(1, old->deff)), b = round(new->k / fmax(1, new->deff));

        t.p = rp_fisher(a, fmax(0, round(n_old) - a), b, fmax(0, round(n_new) - b));
    } else {
        t.p = rp_normal_two_sided(t.z);
    }
    return t;
}
