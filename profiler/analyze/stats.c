/* SPDX-License-Identifier: MIT */
/* See stats.h. The continued fraction of the incomplete beta function is evaluated by the modified Lentz method.
 *
 * The trap is the tails: a quantile is searched for in the lower tail, where the distribution function keeps its relative accuracy; 1 - F
 * would lose all digits of a small p. */
#include "analyze/stats.h"

#include <math.h>
#include <stdbool.h>

enum { FRACTION_STEPS = 10000, SEARCH_STEPS = 200, GROUPS_MIN = 8 };

static double normal_cdf(double x)
{
    return erfc(-x / sqrt(2)) / 2;
}

double rp_normal_quantile(double p)
{
    double tail = p < 0.5 ? p : 1 - p;
    double u, x;

    if (!(p > 0 && p < 1))
        return p <= 0 ? -INFINITY : p >= 1 ? INFINITY : NAN;
    /* The start is right to 0.003 (Abramowitz and Stegun 26.2.22); each Halley step triples the digits. */
    u = sqrt(-2 * log(tail));
    x = -(u - (2.30753 + 0.27061 * u) / (1 + u * (0.99229 + 0.04481 * u)));
    for (int i = 0; i < 4; i++) {
        double density = exp(-x * x / 2) / sqrt(2 * acos(-1.0));
        double step = density > 0 ? (normal_cdf(x) - tail) / density : 0;

        x -= step / (1 + x * step / 2);
    }
    return p < 0.5 ? x : -x;
}

static double not_zero(double x)
{
    return fabs(x) < 1e-300 ? 1e-300 : x;
}

/* The fraction of I_x(a, b), which converges fast for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double x, double a, double b)
{
    double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), f = d;

    for (int m = 1; m <= FRACTION_STEPS; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double step;

        d = 1 / not_zero(1 + even * d);
        c = not_zero(1 + even / c);
        f *= c * d;
        d = 1 / not_zero(1 + odd * d);
        c = not_zero(1 + odd / c);
        step = c * d;
        f *= step;
        if (fabs(step - 1) < 1e-15)
            break;
    }
    return f;
}

/* I_x(a, b) with both x and y = 1 - x given, so that neither is the rounded difference of the other. */
static double beta_of(double x, double y, double a, double b)
{
    double front;

    if (x <= 0 || y <= 0)
        return x <= 0 ? 0 : 1;
    front = exp(a * log(x) + b * log(y) + lgamma(a + b) - lgamma(a) - lgamma(b));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(x, a, b) / a : 1 - front * beta_fraction(y, b, a) / b;
}

double rp_beta_regularized(double x, double a, double b)
{
    return beta_of(x, 1 - x, a, b);
}

/* P(T > |t|). */
static double t_tail(double t, double df)
{
    double square = t * t;

    if (isinf(square))
        return 0;
    return beta_of(df / (df + square), square / (df + square), df / 2, 0.5) / 2;
}

double rp_t_two_sided(double t, double df)
{
    return isnan(t) || !(df > 0) ? NAN : 2 * t_tail(t, df);
}

static double t_density(double t, double df)
{
    return exp(lgamma((df + 1) / 2) - lgamma(df / 2) - log(df * acos(-1.0)) / 2 - (df + 1) / 2 * log1p(t * t / df));
}

double rp_t_quantile(double p, double df)
{
    double tail = p < 0.5 ? p : 1 - p;
    double low = 0, high = 1, t;

    if (!(p > 0 && p < 1) || !(df > 0))
        return p <= 0 ? -INFINITY : p >= 1 ? INFINITY : NAN;
    if (tail >= 0.5)
        return 0;
    while (t_tail(high, df) > tail && high < 1e300) {
        low = high;
        high *= 2;
    }
    /* Newton's step where it stays between the bounds, else the middle. */
    t = (low + high) / 2;
    for (int i = 0; i < SEARCH_STEPS; i++) {
        double excess = t_tail(t, df) - tail, next;

        if (excess > 0)
            low = t;
        else
            high = t;
        next = t + excess / t_density(t, df);
        if (!(next > low && next < high))
            next = low + (high - low) / 2;
        if (fabs(next - t) <= 1e-15 * next)
            break;
        t = next;
    }
    return p < 0.5 ? -t : t;
}

struct rp_interval rp_wilson(double k, double n, double deff, double z)
{
    double p = n > 0 ? k / n : 0, m = n / (deff > 1 ? deff : 1);
    double middle, half;
    struct rp_interval i = {0, 1};

    if (!(n > 0))
        return i;
    middle = (p + z * z / (2 * m)) / (1 + z * z / m);
    half = z * sqrt(p * (1 - p) / m + z * z / (4 * m * m)) / (1 + z * z / m);
    if (k > 0 && middle > half)
        i.low = middle - half;
    if (k < n && middle + half < 1)
        i.high = middle + half;
    return i;
}

/* G/(G-1) x sum (k - p n)^2 / (n p (1-p)) over G groups of neighbouring blocks, whose numbers of blocks differ by at most one. */
static double spread(const uint64_t *n, const uint64_t *k, size_t blocks, size_t groups, double total, double p)
{
    double sum = 0;

    for (size_t g = 0; g < groups; g++) {
        double n_g = 0, k_g = 0;

        for (size_t b = g * blocks / groups; b < (g + 1) * blocks / groups; b++) {
            n_g += (double)n[b];
            k_g += (double)k[b];
        }
        sum += (k_g - p * n_g) * (k_g - p * n_g);
    }
    return (double)groups / (double)(groups - 1) * sum / (total * p * (1 - p));
}

/* More than independent samples give in 999 of 1000 cases: the quantile of chi-square/df after Wilson and Hilferty. */
static bool beyond_chance(double value, double df)
{
    double a = 2 / (9 * df), root = 1 - a + 3.0902 * sqrt(a);

    return value > root * root * root;
}

void rp_design_init(struct rp_design *design, size_t blocks)
{
    double z = rp_normal_quantile(0.975);

    *design = (struct rp_design){.blocks = blocks};
    for (size_t groups = blocks; groups >= GROUPS_MIN && design->groupings < RP_GROUPINGS_MAX; groups /= 2) {
        double t = rp_t_quantile(0.975, (double)(groups - 1)) / z;

        design->groups[design->groupings] = groups;
        design->factor[design->groupings++] = t * t;
    }
}

double rp_design_effect(const struct rp_design *design, const uint64_t *n, const uint64_t *k, int *rising)
{
    double total = 0, hits = 0, p, most = 1, finest = 0, finer = 0, coarsest = 0;

    if (rising)
        *rising = 0;
    for (size_t b = 0; b < design->blocks; b++) {
        total += (double)n[b];
        hits += (double)k[b];
    }
    if (!(hits > 0) || !(hits < total))
        return 1;
    p = hits / total;
    for (size_t i = 0; i < design->groupings; i++) {
        finest = finer;
        finer = coarsest;
        coarsest = spread(n, k, design->blocks, design->groups[i], total, p);
        if (design->factor[i] * coarsest > most)
            most = design->factor[i] * coarsest;
    }
    /* Doubling the group doubles the effect while phases are longer than a group, and leaves it alone once they are shorter: half way between, over
     * two doublings, since a dozen groups know a variance only to a third. Without the test against chance a third of all steady categories would be
     * called unsteady. */
    if (rising && finest > 0 && coarsest > finer * sqrt(2) && coarsest > finest * 2 &&
        beyond_chance(coarsest, (double)(design->groups[design->groupings - 1] - 1)))
        *rising = 1;
    return most;
}

void rp_holm(double *p, size_t n, uint32_t *order)
{
    double least = 0;

    for (size_t i = 0; i < n; i++) {
        size_t at = i;

        for (; at && p[order[at - 1]] > p[i]; at--)
            order[at] = order[at - 1];
        order[at] = (uint32_t)i;
    }
    for (size_t i = 0; i < n; i++) {
        double corrected = p[order[i]] * (double)(n - i);

        least = corrected > least ? corrected : least;
        p[order[i]] = least < 1 ? least : 1;
    }
}
