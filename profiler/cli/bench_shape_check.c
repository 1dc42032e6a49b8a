/* SPDX-License-Identifier: MIT */
/* See bench_shape_check.h. Profiles of the old program at several row counts say what each category costs per call and per row; a category whose
 * removal explains what the new program saved, configuration by configuration, is a suspect that fits. */
#include "cli/bench_shape_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/bench_shape.h"
#include "analyze/shapes.h"
#include "cli/show.h"
#include "cli/sides.h"

enum { MIN_SAMPLES = 25 };

/* The savings of the configurations whose rows are known; returns how many. */
static size_t take_savings(const struct rp_bench *bench, const struct rp_bench_verdicts *v, struct rp_saving *savings, double *few, double *many)
{
    size_t n = 0;

    *few = INFINITY;
    *many = 0;
    for (size_t i = 0; i < v->rows.n; i++) {
        double rows = rp_bench_rows(&bench->configs.at[v->rows.at[i].config]);

        if (!rp_saving_of(&v->rows.at[i], rows, &savings[n]))
            continue;
        *few = fmin(*few, rows);
        *many = fmax(*many, rows);
        n++;
    }
    return n;
}

static void contrast(const struct rp_bench *bench, const struct rp_bench_verdicts *v, bool *groups, struct rp_bench_shape_note *note)
{
    bool *few = groups, *many = groups + v->rows.n;
    struct rp_t_test test;

    for (size_t i = 0; i < v->rows.n; i++) {
        double rows = rp_bench_rows(&bench->configs.at[v->rows.at[i].config]);

        few[i] = rows <= note->few;
        many[i] = rows >= note->many && note->many > note->few;
    }
    test = rp_saving_contrast(v, many, few);
    note->contrast = test.estimate;
    note->contrast_p = test.p;
}

/* What stands on the command line about the profiles, in the order of --shape-check and the operands. */
static enum rp_status fill_shapes(const struct rp_settings *s, const struct rp_loads *loads, struct rp_shape *shapes, struct rp_err *err)
{
    const struct rp_compare_settings *c = &s->compare;
    double low = INFINITY, high = 0;

    if ((c->rows.n && c->rows.n != loads->n) || (c->calls_per_second.n && c->calls_per_second.n != loads->n))
        return rp_fail(err, RP_USAGE, "--rows and --calls-per-second take one number for each of the %zu profiles of --shape-check", loads->n);
    for (size_t i = 0; i < loads->n; i++) {
        double calls = c->calls_per_second.n ? c->calls_per_second.at[i] : 0;
        struct rp_cost cost = rp_cost_of(loads->at[i]->view, calls, c->rows.n ? c->rows.at[i] : 0);

        if (!cost.known || !(cost.rows > 0))
            return rp_fail(err, RP_USAGE, "%.300s does not tell %s; give %s, one number for each profile", loads->at[i]->path,
                           cost.known ? "how many rows a call returned" : "how many calls were made", cost.known ? "--rows" : "--calls-per-second");
        shapes[i] = (struct rp_shape){loads->at[i]->view, cost.rows, calls};
        low = fmin(low, cost.rows);
        high = fmax(high, cost.rows);
    }
    if (!(high - low > 1e-6 * high))
        return rp_fail(err, RP_USAGE, "the profiles of --shape-check are all of %g rows per call; it takes one with few rows and one with many", high);
    return RP_OK;
}

static int by_misfit(const void *a, const void *b)
{
    const struct rp_bench_suspect *x = a, *y = b;

    return x->x2 < y->x2 ? -1 : x->x2 > y->x2;
}

static enum rp_status add_suspects(const struct rp_shapes *shapes, const struct rp_saving *savings, struct rp_shape_check *check, struct rp_err *err)
{
    for (size_t i = 0; i < shapes->rows.n; i++) {
        const struct rp_shape_fit *fit = &shapes->rows.at[i].fit;
        const char *name = rp_intern_text(&shapes->keys.text, shapes->keys.keys.at[shapes->rows.at[i].key].name);
        struct rp_saving_prediction prediction = {fit->c, fit->c_error, fit->r, fit->r_error};
        struct rp_chi2 misfit = rp_saving_check(savings, check->note.configs, &prediction);
        struct rp_bench_suspect *added;

        /* What is known to cost nothing, or not known at all, would fit any small saving. */
        if (fit->label == RP_SHAPE_SMALL || fit->label == RP_SHAPE_BROKEN)
            continue;
        added = rp_vec_add(&check->suspects);
        if (!added)
            return rp_fail_nomem(err);
        *added = (struct rp_bench_suspect){.name = rp_arena_strndup(&check->arena, name, strlen(name)),
                                           .c = fit->c,
                                           .r = fit->r,
                                           .x2 = misfit.x2,
                                           .df = misfit.df,
                                           .p = misfit.p};
        if (!added->name)
            return rp_fail_nomem(err);
    }
    if (check->suspects.n)
        qsort(check->suspects.at, check->suspects.n, sizeof *check->suspects.at, by_misfit);
    return RP_OK;
}

static enum rp_status ask_profiles(const struct rp_args *args, const struct rp_saving *savings, struct rp_shape_check *check, struct rp_err *err)
{
    const struct rp_settings *s = &args->settings;
    struct rp_shape shapes[RP_SHAPES_MAX];
    struct rp_loads loads = {0};
    struct rp_shapes made = {0};
    struct cat_rules *rules = NULL;
    enum rp_status status = rp_rules_open(s, &rules, err);

    if (!status)
        status = rp_loads_add(&loads, s->bench.shape_check, s, rules, err);
    for (size_t i = 0; !status && i < args->operands.n; i++)
        status = rp_loads_add(&loads, args->operands.at[i], s, rules, err);
    if (!status && (loads.n < 2 || loads.n > RP_SHAPES_MAX))
        status = rp_fail(err, RP_USAGE, "--shape-check takes two profiles of the old program or more, at different row counts: --shape-check A B");
    if (!status)
        status = fill_shapes(s, &loads, shapes, err);
    if (!status)
        status = rp_shapes_make(shapes, loads.n, RP_TALLY_CATEGORY, MIN_SAMPLES, &made, err);
    if (!status)
        status = add_suspects(&made, savings, check, err);
    rp_shapes_release(&made);
    rp_loads_release(&loads);
    cat_rules_free(rules);
    return status;
}

static void note_fit(const struct rp_saving_fit *fit, struct rp_bench_shape_note *note)
{
    note->c = fit->c;
    note->c_error = fit->c_error;
    note->r = fit->r;
    note->r_error = fit->r_error;
    note->x2 = fit->x2;
    note->df = fit->df;
    note->p = fit->p;
}

enum rp_status rp_shape_check(const struct rp_args *args, const struct rp_bench *bench, const struct rp_bench_verdicts *verdicts,
                              struct rp_shape_check *check, struct rp_err *err)
{
    struct rp_saving *savings = rp_calloc(verdicts->rows.n + 1, sizeof *savings);
    bool *groups = rp_calloc(2 * verdicts->rows.n + 1, sizeof *groups);
    struct rp_bench_shape_note *note = &check->note;
    enum rp_status status = RP_OK;
    struct rp_saving_fit fit;

    if (!savings || !groups) {
        status = rp_fail_nomem(err);
        goto done;
    }
    note->configs = take_savings(bench, verdicts, savings, &note->few, &note->many);
    fit = rp_saving_fit(savings, note->configs);
    note_fit(&fit, note);
    contrast(bench, verdicts, groups, note);
    note->nothing_p = rp_saving_check(savings, note->configs, &(struct rp_saving_prediction){0, 0, 0, 0}).p;
    note->direction = rp_saving_direction(savings, note->configs);
    status = ask_profiles(args, savings, check, err);
    note->suspects = check->suspects.at;
    note->nsuspects = check->suspects.n;
done:
    rp_free(savings);
    rp_free(groups);
    return status;
}

void rp_shape_check_release(struct rp_shape_check *check)
{
    rp_vec_release(&check->suspects);
    rp_arena_release(&check->arena);
}
