/* SPDX-License-Identifier: MIT */
/* See diff.h. The family that Holm corrects over is chosen by samples of both sides together, before any difference is looked at: choosing by difference
 * would make the smallest p-values anew out of noise. */
#include "analyze/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/compare_stats.h"
#include "base/alloc.h"

/* One side made ready: a tally and a cost per profile, and all of them together. */
struct side {
    const struct rp_diff_side *given;
    struct rp_tally tallies[RP_SIDE_MAX];
    struct rp_cost costs[RP_SIDE_MAX];
    size_t n; /* tallies made */
};

struct work {
    struct side side[2];
    struct rp_diff *diff;
    double z;
    struct rp_err *err;
};

static double main_thread_part(const struct rp_diff_side *side)
{
    uint64_t of_main = 0, all = 0;

    for (size_t i = 0; i < side->n; i++)
        rp_main_thread_samples(rp_view_profile(side->views[i]), &of_main, &all);
    return all ? (double)of_main / (double)all : NAN;
}

static enum rp_status make_side(struct work *w, size_t s)
{
    const struct rp_diff_side *given = w->side[s].given;
    struct rp_diff *d = w->diff;
    enum rp_status status = RP_OK;

    for (size_t i = 0; i < given->n && status == RP_OK; i++) {
        status = rp_tally_make(given->views[i], d->options.by, d->options.total, &d->keys, &w->side[s].tallies[i], w->err);
        if (status)
            break;
        w->side[s].n++;
        d->samples[s] += w->side[s].tallies[i].samples;
        w->side[s].costs[i] = rp_cost_of(given->views[i], given->calls_per_second, given->rows);
        if (given->rows > 0) {
            w->side[s].costs[i].ns /= given->rows;
            w->side[s].costs[i].variance /= given->rows * given->rows;
        }
    }
    d->files[s] = given->n;
    d->cost[s] = rp_cost_pool(w->side[s].costs, w->side[s].n);
    d->main_thread[s] = main_thread_part(given);
    return status;
}

/* All profiles of a side added up. What has to be assumed of runs is a design effect: it multiplies the variance p (1 - p) / n to (p (1 - p) row_scatter)²
 * per run. So is their scatter about the common share, as far as it exceeds that. */
static struct rp_tally_row add_up(const struct side *s, double row_scatter, uint32_t key)
{
    struct rp_tally_row sum = {0, 1, false};
    double weighted = 0, n = 0, p, scatter = 0;

    for (size_t i = 0; i < s->n; i++) {
        struct rp_tally_row row = rp_tally_row(&s->tallies[i], key);

        sum.samples += row.samples;
        sum.rising |= row.rising;
        weighted += row.deff * (double)s->tallies[i].samples;
        n += (double)s->tallies[i].samples;
    }
    if (!(n > 0))
        return sum;
    p = (double)sum.samples / n;
    sum.deff = fmax(1, weighted / n);
    sum.deff += row_scatter * row_scatter * p * (1 - p) * n / (double)s->n;
    if (s->n < 2 || !(p > 0) || !(p < 1))
        return sum;
    for (size_t i = 0; i < s->n; i++) {
        double off = (double)rp_tally_row(&s->tallies[i], key).samples - p * (double)s->tallies[i].samples;

        scatter += off * off;
    }
    sum.deff = fmax(sum.deff, scatter / (n * p * (1 - p)) * (double)s->n / (double)(s->n - 1));
    return sum;
}

static struct rp_change by_moments(const struct rp_moments m[2])
{
    struct rp_t_test t = rp_welch(&m[0], &m[1]);
    struct rp_interval i = rp_t_interval(&t, 0.95);

    if (!(t.error > 0))
        i = (struct rp_interval){t.estimate, t.estimate};
    return (struct rp_change){t.estimate, i.low, i.high, t.p, NAN, RP_VERDICT_NONE};
}

static void fill_by_runs(struct work *w, struct rp_diff_row *row)
{
    double shares[RP_SIDE_MAX], ns[RP_SIDE_MAX];
    struct rp_moments of_shares[2], of_ns[2];

    for (size_t s = 0; s < 2; s++) {
        for (size_t i = 0; i < w->side[s].n; i++) {
            struct rp_tally_row one = rp_tally_row(&w->side[s].tallies[i], row->key);

            shares[i] = w->side[s].tallies[i].samples ? (double)one.samples / (double)w->side[s].tallies[i].samples : 0;
            ns[i] = shares[i] * w->side[s].costs[i].ns;
        }
        of_shares[s] = rp_moments_of(shares, w->side[s].n);
        of_ns[s] = rp_moments_of(ns, w->side[s].n);
        row->side[s].share = of_shares[s].mean;
        row->side[s].ns = of_ns[s].mean;
    }
    row->share = by_moments(of_shares);
    if (w->diff->has_cost)
        row->ns = by_moments(of_ns);
}

static struct rp_change normal_change(double a, double b, double variance, double z)
{
    double error = sqrt(variance), p = error > 0 ? rp_normal_two_sided((b - a) / error) : 1;

    return (struct rp_change){b - a, b - a - z * error, b - a + z * error, p, NAN, RP_VERDICT_NONE};
}

/* The variance of a cost that is the mean of a side's runs, of which `within` is what one sees inside of them. The runs' own scatter counts as far as it
 * exceeds what has to be assumed: of two or three it is mostly luck. */
static double between_runs(const struct work *w, const double *ns, size_t n, double within)
{
    struct rp_moments m = rp_moments_of(ns, n);
    double assumed = w->diff->run_scatter * m.mean;

    return fmax(within + assumed * assumed / (double)n, n > 1 ? m.variance / (double)n : 0);
}

static double cost_variance(const struct work *w, size_t s, uint32_t key, double within)
{
    const struct side *side = &w->side[s];
    double ns[RP_SIDE_MAX];

    for (size_t i = 0; i < side->n; i++)
        ns[i] = side->tallies[i].samples ? (double)rp_tally_row(&side->tallies[i], key).samples / (double)side->tallies[i].samples * side->costs[i].ns : 0;
    return between_runs(w, ns, side->n, within);
}

static void fill_by_samples(struct work *w, struct rp_diff_row *row, const struct rp_tally_row sum[2])
{
    const struct rp_diff *d = w->diff;
    struct rp_proportion p[2];
    struct rp_proportion_test test;
    struct rp_part part[2];

    for (size_t s = 0; s < 2; s++) {
        p[s] = (struct rp_proportion){(double)sum[s].samples, (double)d->samples[s], sum[s].deff};
        part[s] = rp_part_of(&sum[s], d->samples[s], &d->cost[s]);
        row->side[s].share = part[s].share;
        row->side[s].ns = part[s].ns;
    }
    test = rp_proportions(&p[0], &p[1]);
    row->share = (struct rp_change){test.difference, test.low, test.high, test.p, NAN, RP_VERDICT_NONE};
    if (d->has_cost)
        row->ns = normal_change(part[0].ns, part[1].ns,
                                cost_variance(w, 0, row->key, part[0].variance) + cost_variance(w, 1, row->key, part[1].variance), w->z);
}

/* A thing against itself differs by nothing, and for certain. */
static void make_certain(struct rp_change *c)
{
    c->low = c->high = c->difference = 0;
    c->p = 1;
}

static enum rp_status add_row(struct work *w, uint32_t key)
{
    struct rp_diff *d = w->diff;
    struct rp_tally_row sum[2] = {add_up(&w->side[0], d->row_scatter, key), add_up(&w->side[1], d->row_scatter, key)};
    struct rp_diff_row *row;

    if (!sum[0].samples && !sum[1].samples)
        return RP_OK;
    row = rp_vec_add(&d->rows);
    if (!row)
        return rp_fail_nomem(w->err);
    memset(row, 0, sizeof *row);
    row->key = key;
    for (size_t s = 0; s < 2; s++) {
        row->side[s].samples = sum[s].samples;
        row->side[s].below = sum[s].samples < d->options.min_samples;
    }
    if (d->by_runs)
        fill_by_runs(w, row);
    else
        fill_by_samples(w, row, sum);
    if (d->options.same) {
        make_certain(&row->share);
        make_certain(&row->ns);
    }
    return RP_OK;
}

static bool in_family(const struct rp_diff_row *row)
{
    return row->side[0].samples + row->side[1].samples >= RP_DIFF_FAMILY_MIN;
}

static struct rp_change *change_of(struct rp_diff_row *row, bool ns)
{
    return ns ? &row->ns : &row->share;
}

static void judge(struct rp_change *c, double holm, double alpha)
{
    c->holm = holm;
    c->verdict = !(holm < alpha) ? RP_VERDICT_NOISE : c->difference > 0 ? RP_VERDICT_GREW : RP_VERDICT_FELL;
}

/* Holm over the family; `p` and `order` are room for all rows. */
static void correct(struct rp_diff *d, bool ns, double *p, uint32_t *order)
{
    size_t n = 0;

    for (size_t i = 0; i < d->rows.n; i++)
        if (in_family(&d->rows.at[i]))
            p[n++] = fmin(1, change_of(&d->rows.at[i], ns)->p);
    d->family = n;
    rp_holm(p, n, order);
    n = 0;
    for (size_t i = 0; i < d->rows.n; i++)
        if (in_family(&d->rows.at[i]))
            judge(change_of(&d->rows.at[i], ns), p[n++], d->options.alpha);
}

/* What the share's move alone would make of the cost is that part of what a call cost before. An interval that holds that, too, is too wide to tell. */
static bool cost_stands(const struct rp_diff *d, const struct rp_diff_row *row)
{
    double with_share = row->share.difference * d->cost[0].ns;

    return d->has_cost && row->share.verdict > RP_VERDICT_NOISE && row->ns.low <= 0 && row->ns.high >= 0 &&
           (with_share < row->ns.low || with_share > row->ns.high);
}

static enum rp_status judge_rows(struct work *w)
{
    struct rp_diff *d = w->diff;
    double *p = rp_calloc(d->rows.n + 1, sizeof *p);
    uint32_t *order = rp_calloc(d->rows.n + 1, sizeof *order);
    enum rp_status status = p && order ? RP_OK : rp_fail_nomem(w->err);

    if (status == RP_OK) {
        correct(d, false, p, order);
        if (d->has_cost)
            correct(d, true, p, order);
        for (size_t i = 0; i < d->rows.n; i++)
            d->rows.at[i].cost_stands = cost_stands(d, &d->rows.at[i]);
    }
    rp_free(p);
    rp_free(order);
    return status;
}

static int larger_change(const void *a, const void *b)
{
    const struct rp_diff_row *x = a, *y = b;
    double dx = fabs(x->share.difference), dy = fabs(y->share.difference);
    double mx = fmax(x->side[0].share, x->side[1].share), my = fmax(y->side[0].share, y->side[1].share);

    if (dx < dy || dx > dy)
        return dx < dy ? 1 : -1;
    if (mx < my || mx > my)
        return mx < my ? 1 : -1;
    return x->key < y->key ? -1 : x->key > y->key;
}

static void leave_out(struct rp_diff *d)
{
    size_t kept = 0;

    for (size_t i = 0; i < d->rows.n; i++) {
        struct rp_diff_row row = d->rows.at[i];

        if (!row.side[0].below || !row.side[1].below) {
            d->rows.at[kept++] = row;
            continue;
        }
        d->left_out++;
        d->left_out_samples[0] += row.side[0].samples;
        d->left_out_samples[1] += row.side[1].samples;
    }
    d->rows.n = kept;
    if (kept)
        qsort(d->rows.at, kept, sizeof *d->rows.at, larger_change);
}

static void compare_costs(struct work *w)
{
    struct rp_diff *d = w->diff;
    struct rp_moments m[2];
    double ns[RP_SIDE_MAX], variance = 0;

    if (!d->has_cost)
        return;
    for (size_t s = 0; s < 2; s++) {
        for (size_t i = 0; i < w->side[s].n; i++)
            ns[i] = w->side[s].costs[i].ns;
        m[s] = rp_moments_of(ns, w->side[s].n);
        variance += between_runs(w, ns, w->side[s].n, d->cost[s].variance);
    }
    if (d->by_runs)
        d->whole = by_moments(m);
    else
        d->whole = normal_change(d->cost[0].ns, d->cost[1].ns, variance, w->z);
    if (d->options.same)
        make_certain(&d->whole);
    d->whole.verdict = RP_VERDICT_NONE;
    if (d->options.same || (d->by_runs && d->whole.high > d->whole.low) || (d->cost[0].variance > 0 && d->cost[1].variance > 0))
        judge(&d->whole, d->whole.p, d->options.alpha);
}

static void assume_scatter(struct rp_diff *d)
{
    bool fine = d->options.by == RP_TALLY_FUNCTION || d->options.by == RP_TALLY_PATH;

    if (d->by_runs || d->options.same)
        return;
    d->run_scatter = d->has_cost ? RP_DIFF_RUN_SCATTER : 0;
    d->row_scatter = fine ? RP_DIFF_FINE_ROW_SCATTER : RP_DIFF_ROW_SCATTER;
}

enum rp_status rp_diff_make(const struct rp_diff_side side[2], const struct rp_diff_options *options, struct rp_diff *diff, struct rp_err *err)
{
    struct work *w = rp_calloc(1, sizeof *w);
    enum rp_status status = RP_OK;

    memset(diff, 0, sizeof *diff);
    if (!w)
        return rp_fail_nomem(err);
    diff->options = *options;
    diff->by_runs = side[0].n >= RP_DIFF_RUNS_MIN && side[1].n >= RP_DIFF_RUNS_MIN;
    diff->per_row = side[0].rows > 0 && side[1].rows > 0;
    w->diff = diff;
    w->err = err;
    w->z = rp_normal_quantile(0.975);
    for (size_t s = 0; s < 2 && status == RP_OK; s++) {
        w->side[s].given = &side[s];
        status = make_side(w, s);
    }
    diff->has_cost = diff->cost[0].known && diff->cost[1].known;
    assume_scatter(diff);
    for (uint32_t key = 0; key < diff->keys.keys.n && status == RP_OK; key++)
        status = add_row(w, key);
    if (status == RP_OK)
        status = judge_rows(w);
    if (status == RP_OK) {
        compare_costs(w);
        leave_out(diff);
    }
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < w->side[s].n; i++)
            rp_tally_release(&w->side[s].tallies[i]);
    rp_free(w);
    return status;
}

void rp_diff_release(struct rp_diff *diff)
{
    rp_tally_keys_release(&diff->keys);
    rp_vec_release(&diff->rows);
}

bool rp_diff_worst(const struct rp_diff *diff, double *percent, uint32_t *row)
{
    bool any = false;

    *percent = 0;
    *row = UINT32_MAX;
    if (diff->has_cost && diff->whole.verdict == RP_VERDICT_GREW) {
        *percent = 100 * diff->whole.difference / diff->cost[0].ns;
        any = true;
    }
    for (size_t i = 0; i < diff->rows.n; i++) {
        const struct rp_change *c = diff->has_cost ? &diff->rows.at[i].ns : &diff->rows.at[i].share;
        double p = 100 * c->difference / (diff->has_cost ? diff->cost[0].ns : 1);

        if (c->verdict != RP_VERDICT_GREW || (any && p <= *percent))
            continue;
        any = true;
        *percent = p;
        *row = (uint32_t)i;
    }
    return any;
}

void rp_diff_builds(const struct rp_profile *a, const struct rp_profile *b, rp_build_visit *visit, void *context)
{
    for (size_t i = 0; i < a->images.n; i++) {
        const struct rp_profile_image *x = &a->images.at[i];
        bool same = false, other = false;

        for (size_t k = 0; k < b->images.n && x->build_id; k++) {
            const struct rp_profile_image *y = &b->images.at[k];

            if (!y->build_id || strcmp(rp_profile_text(a, x->name), rp_profile_text(b, y->name)) != 0)
                continue;
            if (strcmp(rp_profile_text(a, x->build_id), rp_profile_text(b, y->build_id)) == 0)
                same = true;
            else
                other = true;
        }
        if (other && !same)
            visit(context, rp_profile_text(a, x->name));
    }
}
