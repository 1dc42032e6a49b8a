/* SPDX-License-Identifier: MIT */
/* See bench_shape_check.h. */
#include "cli/bench_shape_check.h"

#include <math.h>

#include "analyze/bench_shape.h"

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

enum rp_status rp_shape_check(const struct rp_args *args, const struct rp_bench *bench, const struct rp_bench_verdicts *verdicts,
                              struct rp_shape_check *check, struct rp_err *err)
{
    struct rp_saving *savings = rp_calloc(verdicts->rows.n + 1, sizeof *savings);
    bool *groups = rp_calloc(2 * verdicts->rows.n + 1, sizeof *groups);
    struct rp_bench_shape_note *note = &check->note;
    enum rp_status status = RP_OK;

    (void)args;
    if (!savings || !groups) {
        status = rp_fail_nomem(err);
    } else {
        struct rp_saving_fit fit;

        note->configs = take_savings(bench, verdicts, savings, &note->few, &note->many);
        fit = rp_saving_fit(savings, note->configs);
        note->c = fit.c;
        note->c_error = fit.c_error;
        note->r = fit.r;
        note->r_error = fit.r_error;
        note->x2 = fit.x2;
        note->df = fit.df;
        note->p = fit.p;
        contrast(bench, verdicts, groups, note);
        note->suspects = check->suspects.at;
        note->nsuspects = check->suspects.n;
    }
    rp_free(savings);
    rp_free(groups);
    return status;
}

void rp_shape_check_release(struct rp_shape_check *check)
{
    rp_vec_release(&check->suspects);
    rp_arena_release(&check->arena);
}
