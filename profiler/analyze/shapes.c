/* SPDX-License-Identifier: MIT */
/* See shapes.h. The trap is a row without samples in one shape: its variance must not be 0, or a line through it would be certain (rp_part_of sees to
 * that). */
#include "analyze/shapes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/compare_stats.h"

static const double label_confidence = 0.99;

const char *rp_shape_label_text(enum rp_shape_label label, const char *unit)
{
    static const char *const texts[] = {
        [RP_SHAPE_PER_CALL] = "per call", [RP_SHAPE_MIXED] = "mixed", [RP_SHAPE_SMALL] = "too small to say", [RP_SHAPE_BROKEN] = "model broken"};

    if (label == RP_SHAPE_PER_ROW)
        return !strcmp(unit, "column") ? "per column" : !strcmp(unit, "value") ? "per value" : "per row";
    return texts[label];
}

const char *rp_shape_label_id(enum rp_shape_label label)
{
    static const char *const ids[] = {[RP_SHAPE_PER_CALL] = "per-call",
                                      [RP_SHAPE_PER_ROW] = "per-row",
                                      [RP_SHAPE_MIXED] = "mixed",
                                      [RP_SHAPE_SMALL] = "too-small",
                                      [RP_SHAPE_BROKEN] = "broken"};

    return ids[label];
}

/* A value at some distance from 0, in units of its error; without an error every distance is large. */
static double distance(double value, double error)
{
    return error > 0 ? value / error : value > 0 ? INFINITY : value < 0 ? -INFINITY : 0;
}

static enum rp_shape_label label_of(const struct rp_shape_fit *fit)
{
    double z = rp_normal_quantile(0.5 + label_confidence / 2);
    double c = distance(fit->c, fit->c_error), r = distance(fit->r, fit->r_error);

    if (c < -z || r < -z || fit->misfit < 1 - label_confidence)
        return RP_SHAPE_BROKEN;
    if (c > z)
        return r > z ? RP_SHAPE_MIXED : RP_SHAPE_PER_CALL;
    return r > z ? RP_SHAPE_PER_ROW : RP_SHAPE_SMALL;
}

struct rp_shape_fit rp_shape_fit(const double *n, const struct rp_part *parts, size_t shapes)
{
    double w_sum = 0, wn = 0, wnn = 0, wy = 0, wny = 0, determinant, chi2 = 0;
    struct rp_shape_fit fit = {.misfit = NAN};
    bool exact = false;

    for (size_t i = 0; i < shapes; i++)
        exact |= !(parts[i].variance > 0);
    for (size_t i = 0; i < shapes; i++) {
        double w = exact ? 1 : 1 / parts[i].variance;

        w_sum += w;
        wn += w * n[i];
        wnn += w * n[i] * n[i];
        wy += w * parts[i].ns;
        wny += w * n[i] * parts[i].ns;
    }
    determinant = w_sum * wnn - wn * wn;
    fit.r = (w_sum * wny - wn * wy) / determinant;
    fit.c = (wnn * wy - wn * wny) / determinant;
    if (!exact) {
        fit.r_error = sqrt(w_sum / determinant);
        fit.c_error = sqrt(wnn / determinant);
        for (size_t i = 0; i < shapes; i++) {
            double off = parts[i].ns - fit.c - fit.r * n[i];

            chi2 += off * off / parts[i].variance;
        }
        if (shapes > 2)
            fit.misfit = rp_chi2_tail(chi2, (double)shapes - 2);
    }
    fit.label = label_of(&fit);
    return fit;
}

/* What is saved when the row's cost is gone: what the label says of it; what was measured where the model says nothing. */
static double saving(const struct rp_shapes_row *row, double n, size_t shape, double whole)
{
    double d;

    switch (row->fit.label) {
    case RP_SHAPE_PER_CALL:
        d = row->fit.c;
        break;
    case RP_SHAPE_PER_ROW:
        d = row->fit.r * n;
        break;
    case RP_SHAPE_MIXED:
        d = row->fit.c + row->fit.r * n;
        break;
    default:
        d = row->part[shape].ns;
    }
    return d > 0 && d < whole ? d / (whole - d) : d > 0 ? INFINITY : 0;
}

static enum rp_status add_row(struct rp_shapes *s, const struct rp_tally *tallies, uint32_t key, struct rp_err *err)
{
    struct rp_shapes_row *row = rp_vec_add(&s->rows);
    bool seen = false;

    if (!row)
        return rp_fail_nomem(err);
    memset(row, 0, sizeof *row);
    row->key = key;
    for (size_t i = 0; i < s->n; i++) {
        struct rp_tally_row counted = rp_tally_row(&tallies[i], key);

        row->samples[i] = counted.samples;
        row->part[i] = rp_part_of(&counted, s->samples[i], &s->cost[i]);
        row->most = fmax(row->most, row->part[i].share);
        seen |= counted.samples >= s->min_samples;
    }
    if (!seen) {
        s->rows.n--;
        return RP_OK;
    }
    row->fit = rp_shape_fit(s->at, row->part, s->n);
    for (size_t i = 0; i < s->n; i++)
        row->saves[i] = saving(row, s->at[i], i, s->cost[i].ns);
    return RP_OK;
}

static int by_call(const void *a, const void *b)
{
    const struct rp_shapes_row *x = a, *y = b;

    if (x->fit.c < y->fit.c || x->fit.c > y->fit.c)
        return x->fit.c < y->fit.c ? 1 : -1;
    return x->key < y->key ? -1 : x->key > y->key;
}

static int by_most(const void *a, const void *b)
{
    const struct rp_shapes_row *x = a, *y = b;

    if (x->most < y->most || x->most > y->most)
        return x->most < y->most ? 1 : -1;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* Ranks the rows by what they are at their heaviest, and orders them by what they cost per call. */
static void put_in_order(struct rp_shapes *s)
{
    if (!s->rows.n)
        return;
    qsort(s->rows.at, s->rows.n, sizeof *s->rows.at, by_most);
    for (size_t i = 0; i < s->rows.n; i++)
        s->rows.at[i].rank = i;
    qsort(s->rows.at, s->rows.n, sizeof *s->rows.at, by_call);
}

static int by_row(const void *a, const void *b)
{
    const struct rp_shapes_row *x = a, *y = b;

    if (x->fit.r < y->fit.r || x->fit.r > y->fit.r)
        return x->fit.r < y->fit.r ? 1 : -1;
    return x->key < y->key ? -1 : x->key > y->key;
}

void rp_shapes_sort_by_row(struct rp_shapes *shapes)
{
    if (shapes->rows.n)
        qsort(shapes->rows.at, shapes->rows.n, sizeof *shapes->rows.at, by_row);
}

enum rp_status rp_shapes_make(const struct rp_shape *shapes, size_t n, enum rp_tally_by by, uint64_t min_samples, struct rp_shapes *out,
                              struct rp_err *err)
{
    struct rp_tally tallies[RP_SHAPES_MAX] = {0};
    struct rp_part whole[RP_SHAPES_MAX];
    enum rp_status status = RP_OK;

    memset(out, 0, sizeof *out);
    out->min_samples = min_samples;
    for (size_t i = 0; i < n && status == RP_OK; i++) {
        status = rp_tally_make(shapes[i].view, by, false, &out->keys, &tallies[i], err);
        out->n = i + 1;
        out->at[i] = shapes[i].n;
        out->samples[i] = tallies[i].samples;
        out->cost[i] = rp_cost_of(shapes[i].view, shapes[i].calls_per_second, 0);
        whole[i] = (struct rp_part){1, out->cost[i].ns, out->cost[i].variance};
    }
    if (status == RP_OK)
        out->whole = rp_shape_fit(out->at, whole, n);
    for (uint32_t key = 0; key < out->keys.keys.n && status == RP_OK; key++)
        status = add_row(out, tallies, key, err);
    put_in_order(out);
    for (size_t i = 0; i < out->n; i++)
        rp_tally_release(&tallies[i]);
    return status;
}

void rp_shapes_release(struct rp_shapes *shapes)
{
    rp_tally_keys_release(&shapes->keys);
    rp_vec_release(&shapes->rows);
}
