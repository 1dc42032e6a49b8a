/* SPDX-License-Identifier: MIT */
/* See bench_shape.h. */
#include "analyze/bench_shape.h"

#include <math.h>
#include <string.h>

#include "base/parse.h"

/* Relative variance of the mean. */
static double mean_variance(const struct rp_moments *m)
{
    return m->n > 1 ? m->variance / (m->mean * m->mean * (double)m->n) : NAN;
}

bool rp_saving_of(const struct rp_bench_row *row, double x, struct rp_saving *saving)
{
    const struct rp_moments *old = &row->arm[RP_ARM_OLD], *new = &row->arm[RP_ARM_NEW];
    double old_ns = 1e9 / old->mean, new_ns = 1e9 / new->mean;

    saving->x = x;
    saving->saved = old_ns - new_ns;
    saving->error = sqrt(old_ns * old_ns * mean_variance(old) + new_ns * new_ns * mean_variance(new));
    return isfinite(x) && isfinite(saving->saved) && isfinite(saving->error) && saving->error > 0;
}

struct rp_saving_fit rp_saving_fit(const struct rp_saving *savings, size_t n)
{
    struct rp_saving_fit fit = {NAN, NAN, NAN, NAN, NAN, 0, NAN};
    double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0, determinant;

    for (size_t i = 0; i < n; i++) {
        double weight = 1 / (savings[i].error * savings[i].error), x = savings[i].x, y = savings[i].saved;

        w += weight;
        wx += weight * x;
        wxx += weight * x * x;
        wy += weight * y;
        wxy += weight * x * y;
    }
    determinant = w * wxx - wx * wx;
    if (n < 2 || !(determinant > 1e-12 * w * wxx))
        return fit;
    fit.c = (wxx * wy - wx * wxy) / determinant;
    fit.r = (w * wxy - wx * wy) / determinant;
    fit.c_error = sqrt(wxx / determinant);
    fit.r_error = sqrt(w / determinant);
    fit.x2 = rp_saving_check(savings, n, &(struct rp_saving_prediction){fit.c, 0, fit.r, 0}).x2;
    fit.df = (double)n - 2;
    fit.p = n > 2 ? rp_chi2_tail(fit.x2, fit.df) : NAN;
    return fit;
}

struct rp_chi2 rp_saving_check(const struct rp_saving *savings, size_t n, const struct rp_saving_prediction *p)
{
    struct rp_chi2 check = {.df = (double)n, .p = NAN};

    for (size_t i = 0; i < n; i++) {
        double off = savings[i].saved - p->c - p->r * savings[i].x, at = p->r_error * savings[i].x;

        check.x2 += off * off / (savings[i].error * savings[i].error + p->c_error * p->c_error + at * at);
    }
    if (n)
        check.p = rp_chi2_tail(check.x2, check.df);
    return check;
}

double rp_saving_direction(const struct rp_saving *savings, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += savings[i].saved / savings[i].error;
    return n ? sum / sqrt((double)n) : NAN;
}

struct sums {
    double sum, squares;
    size_t n;
};

static struct rp_moments moments_of(const struct sums *s)
{
    double n = (double)s->n, mean = s->n ? s->sum / n : NAN;
    struct rp_moments m = {s->n, mean, s->n > 1 ? (s->squares - n * mean * mean) / (n - 1) : NAN};

    return m;
}

struct rp_t_test rp_saving_contrast(const struct rp_bench_verdicts *verdicts, const bool *many, const bool *few)
{
    struct sums groups[2] = {{0, 0, 0}, {0, 0, 0}};
    struct rp_moments old, new;

    for (size_t i = 0; i < verdicts->rows.n; i++) {
        double ratio = log(verdicts->rows.at[i].log_ratio.ratio);
        struct sums *group = many[i] ? &groups[0] : few[i] ? &groups[1] : NULL;

        if (!group || !isfinite(ratio))
            continue;
        group->sum += ratio;
        group->squares += ratio * ratio;
        group->n++;
    }
    old = moments_of(&groups[0]);
    new = moments_of(&groups[1]);
    return rp_welch(&old, &new);
}

double rp_bench_rows(const struct rp_bench_config *config)
{
    const char *last = NULL;
    struct rp_cursor c;
    uint64_t n;

    if (config->rows > 0)
        return config->rows;
    for (const char *at = config->name; (at = strstr(at, "LIMIT ")); at++)
        last = at;
    if (!last)
        return NAN;
    c = rp_cursor_str(last + strlen("LIMIT "));
    return rp_cursor_u64(&c, &n) ? (double)n : NAN;
}
