/* SPDX-License-Identifier: MIT */
/* Tests that know no distribution: sign flips, permutations, ranks; and Benjamini and Hochberg. See compare_stats.h.
 *
 * The trap is rounding: two arrangements with the same sum in exact arithmetic differ in the last bit, and a comparison without slack would count one of
 * them out. */
#include "analyze/compare_stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"

static double slack_of(const double *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += fabs(x[i]);
    return sum * 1e-12;
}

struct rp_permutation rp_sign_flip(const double *d, size_t n, uint64_t seed)
{
    struct rp_permutation r = {.p = NAN, .exact = n <= RP_SIGN_FLIP_EXACT_MAX};
    double observed = 0, slack = slack_of(d, n);

    for (size_t i = 0; i < n; i++)
        observed += d[i];
    if (!n)
        return r;
    r.total = r.exact ? (uint64_t)1 << n : RP_MONTE_CARLO;
    for (uint64_t k = 0; k < r.total; k++) {
        uint64_t bits = k;
        double sum = 0;

        for (size_t i = 0; i < n; i++, bits >>= 1) {
            if (!r.exact && i % 64 == 0)
                bits = rp_random_next(&seed);
            sum += bits & 1 ? -d[i] : d[i];
        }
        r.hits += fabs(sum) >= fabs(observed) - slack;
    }
    r.p = r.exact ? (double)r.hits / (double)r.total : (double)(r.hits + 1) / (double)(r.total + 1);
    return r;
}

/* C(n, k), or infinity-like large when beyond what is wanted. */
static double choose(size_t n, size_t k)
{
    double c = 1;

    for (size_t i = 1; i <= k && c < 1e18; i++)
        c = c * (double)(n - k + i) / (double)i;
    return floor(c + 0.5);
}

struct shares {
    const double *all;
    size_t n, first; /* values, of which the first many are new ones */
    double total, observed, slack;
};

/* Farther out, or as far: |mean of the chosen - mean of the rest|. */
static bool counts(const struct shares *s, double chosen)
{
    double difference = chosen / (double)s->first - (s->total - chosen) / (double)(s->n - s->first);

    return fabs(difference) >= fabs(s->observed) - s->slack;
}

/* `pick` is room for `first` positions: all combinations in order. */
static uint64_t count_all(const struct shares *s, size_t *pick)
{
    uint64_t hits = 0;

    for (size_t i = 0; i < s->first; i++)
        pick[i] = i;
    for (;;) {
        double sum = 0;
        size_t i = s->first;

        for (size_t k = 0; k < s->first; k++)
            sum += s->all[pick[k]];
        hits += counts(s, sum);
        while (i-- > 0 && pick[i] == s->n - s->first + i)
            continue;
        if (i == SIZE_MAX)
            return hits;
        pick[i]++;
        for (size_t k = i + 1; k < s->first; k++)
            pick[k] = pick[k - 1] + 1;
    }
}

static uint64_t count_drawn(const struct shares *s, double *values, uint64_t draws, uint64_t seed)
{
    uint64_t hits = 0;

    for (uint64_t draw = 0; draw < draws; draw++) {
        double sum = 0;

        for (size_t k = 0; k < s->first; k++) {
            size_t j = k + (size_t)(rp_random_next(&seed) % (s->n - k));
            double swap = values[k];

            values[k] = values[j];
            values[j] = swap;
            sum += values[k];
        }
        hits += counts(s, sum);
    }
    return hits;
}

enum rp_status rp_permute_means(const double *old, size_t n_old, const double *new, size_t n_new, uint64_t seed, struct rp_permutation *out,
                                struct rp_err *err)
{
    size_t n = n_old + n_new;
    double *all = rp_calloc(n + 1, sizeof *all), *values = rp_calloc(n + 1, sizeof *values);
    size_t *pick = rp_calloc(n_new + 1, sizeof *pick);
    struct shares s = {.all = all, .n = n, .first = n_new};
    double ways = choose(n, n_new), sum_new = 0;

    *out = (struct rp_permutation){.p = NAN, .exact = ways <= RP_PERMUTATIONS_EXACT_MAX};
    if (!all || !values || !pick)
        goto done;
    for (size_t i = 0; i < n; i++) {
        all[i] = values[i] = i < n_new ? new[i] : old[i - n_new];
        s.total += all[i];
        sum_new += i < n_new ? all[i] : 0;
    }
    if (!n_old || !n_new)
        goto done;
    s.observed = sum_new / (double)n_new - (s.total - sum_new) / (double)n_old;
    s.slack = slack_of(all, n);
    if (out->exact) {
        out->total = (uint64_t)ways;
        out->hits = count_all(&s, pick);
        out->p = (double)out->hits / ways;
    } else {
        out->total = RP_MONTE_CARLO;
        out->hits = count_drawn(&s, values, out->total, seed);
        out->p = (double)(out->hits + 1) / (double)(out->total + 1);
    }
done:
    rp_free(pick);
    rp_free(values);
    if (!all || !values || !pick) {
        rp_free(all);
        return rp_fail_nomem(err);
    }
    rp_free(all);
    return RP_OK;
}

/* ---- ranks ---- */

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* P(W <= w): w is whole, n x m at most 400. Rows of the table: how many ways give this W with i of the one and j of the other. */
static enum rp_status rank_tail(size_t n, size_t m, double w, double *p, struct rp_err *err)
{
    size_t most = n * m, width = most + 1;
    double *ways = rp_calloc((m + 1) * width, sizeof *ways), below = 0, all = choose(n + m, n);

    if (!ways)
        return rp_fail_nomem(err);
    /* After round i, ways[j] counts arrangements of i and j values: the largest is of the one (adds j) or of the other. */
    for (size_t j = 0; j <= m; j++)
        ways[j * width] = 1;
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++)
            for (size_t u = most + 1; u-- > 0;)
                ways[j * width + u] = ways[(j - 1) * width + u] + (u >= j ? ways[j * width + u - j] : 0);
    }
    for (size_t u = 0; u <= most && (double)u <= w; u++)
        below += ways[m * width + u];
    rp_free(ways);
    *p = below / all;
    return RP_OK;
}

/* The sum of t^3 - t over groups of equal values, which are sorted. */
static double tie_sum(const double *sorted, size_t n)
{
    double sum = 0;

    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && !(sorted[end] > sorted[i]); end++)
            continue;
        sum += pow((double)(end - i), 3) - (double)(end - i);
    }
    return sum;
}

static double rank_normal(double w, double n, double m, double ties)
{
    double z = w - n * m / 2, sigma = sqrt(n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1))));

    z -= z > 0 ? 0.5 : z < 0 ? -0.5 : 0;
    return sigma > 0 ? rp_normal_two_sided(z / sigma) : 1;
}

enum rp_status rp_mann_whitney(const double *old, size_t n_old, const double *new, size_t n_new, struct rp_mann_whitney *out, struct rp_err *err)
{
    size_t n = n_old + n_new;
    double *all = rp_calloc(n + 1, sizeof *all), ties, low = 0;
    enum rp_status status = RP_OK;

    *out = (struct rp_mann_whitney){.p = NAN};
    if (!all)
        return rp_fail_nomem(err);
    for (size_t i = 0; i < n_new; i++)
        for (size_t j = 0; j < n_old; j++)
            out->w += new[i] > old[j] ? 1 : new[i] < old[j] ? 0 : 0.5;
    for (size_t i = 0; i < n; i++)
        all[i] = i < n_new ? new[i] : old[i - n_new];
    qsort(all, n, sizeof *all, ascending);
    ties = tie_sum(all, n);
    rp_free(all);
    out->ties = ties > 0;
    out->exact = !out->ties && n_old <= RP_MANN_WHITNEY_EXACT_MAX && n_new <= RP_MANN_WHITNEY_EXACT_MAX;
    if (!n_old || !n_new)
        return RP_OK;
    if (!out->exact) {
        out->p = rank_normal(out->w, (double)n_new, (double)n_old, ties);
        return RP_OK;
    }
    /* The distribution is symmetric: twice the nearer tail. */
    status = rank_tail(n_new, n_old, fmin(out->w, (double)(n_new * n_old) - out->w), &low, err);
    out->p = fmin(1, 2 * low);
    return status;
}

enum rp_status rp_hodges_lehmann(const double *old, size_t n_old, const double *new, size_t n_new, double *out, struct rp_err *err)
{
    size_t n = n_old * n_new;
    double *all = rp_calloc(n + 1, sizeof *all);

    if (!all)
        return rp_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        all[i] = new[i / n_old] - old[i % n_old];
    qsort(all, n, sizeof *all, ascending);
    *out = !n ? NAN : n % 2 ? all[n / 2] : (all[n / 2 - 1] + all[n / 2]) / 2;
    rp_free(all);
    return RP_OK;
}

void rp_benjamini_hochberg(double *p, size_t n, uint32_t *order)
{
    double least = 1;

    for (size_t i = 0; i < n; i++) {
        size_t at = i;

        for (; at && p[order[at - 1]] > p[i]; at--)
            order[at] = order[at - 1];
        order[at] = (uint32_t)i;
    }
    for (size_t i = n; i-- > 0;) {
        double corrected = p[order[i]] * (double)n / (double)(i + 1);

        least = corrected < least ? corrected : least;
        p[order[i]] = least;
    }
}
