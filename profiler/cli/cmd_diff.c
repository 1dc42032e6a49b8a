/* SPDX-License-Identifier: MIT */
/* `rowprof diff A B`: two profiles, or two sets of them, against each other. The trap is the list: `A1,A2 B` has operands of different length, and
 * --a/--b may stand for one side while the operand is the other. */
#include <string.h>

#include "cli/command.h"
#include "cli/show.h"
#include "cli/sides.h"
#include "cli/terminal.h"
#include "report/compare_report.h"

static const double alpha = 0.05;

struct comparison {
    const struct rp_args *args;
    const struct rp_settings *settings;
    struct cat_rules *rules;
    struct rp_loads side[2];
    struct rp_diff diff;
    struct rp_diff_report report;
};

static enum rp_status check_usage(const struct rp_args *args, struct rp_err *err)
{
    const struct rp_settings *s = &args->settings;
    const struct rp_compare_settings *c = &s->compare;
    size_t sides = args->operands.n + (c->side_a.n > 0) + (c->side_b.n > 0) + (s->pids.n > 0);

    if (c->side_b.n && s->pids.n)
        return rp_fail(err, RP_USAGE, "--b and --pid both name side B; leave one of them out");
    if (sides != 2)
        return rp_fail(err, RP_USAGE,
                       sides < 2 ? "`rowprof diff` compares two profiles: rowprof diff A B, or rowprof diff A --pid PID"
                                 : "`rowprof diff` has two sides; several profiles of a side are A1,A2 or --a A1 --a A2");
    if ((c->calls_per_second.n && c->calls_per_second.n != 2) || (c->rows.n && c->rows.n != 2))
        return rp_fail(err, RP_USAGE, "%s takes two numbers here, one for each side", c->rows.n && c->rows.n != 2 ? "--rows" : "--calls-per-second");
    if (s->total && (c->by == RP_TALLY_THREAD || c->by == RP_TALLY_PATH))
        return rp_fail(err, RP_USAGE, "--total goes with --by category, function or module: a thread and a whole path call nothing");
    return RP_OK;
}

/* The files of a side: --a or --b, else the next operand; B may be recorded. */
static enum rp_status load_side(struct comparison *x, size_t side, size_t *operand, struct rp_err *err)
{
    const struct rp_settings *s = x->settings;
    size_t given = side ? s->compare.side_b.n : s->compare.side_a.n;
    enum rp_status status = RP_OK;

    if (!given && *operand < x->args->operands.n)
        return rp_loads_add(&x->side[side], x->args->operands.at[(*operand)++], s, x->rules, err);
    if (!given)
        return rp_loads_record(&x->side[side], s, x->rules, err);
    for (size_t i = 0; i < given && !status; i++)
        status = rp_loads_add(&x->side[side], (side ? s->compare.side_b.at : s->compare.side_a.at)[i], s, x->rules, err);
    return status;
}

static bool same_files(const struct comparison *x)
{
    if (x->side[0].n != x->side[1].n)
        return false;
    for (size_t i = 0; i < x->side[0].n; i++)
        if (!rp_same_file(x->side[0].at[i]->path, x->side[1].at[i]->path))
            return false;
    return true;
}

static enum rp_status compare(struct comparison *x, struct rp_err *err)
{
    const struct rp_compare_settings *c = &x->settings->compare;
    const struct rp_view *views[2][RP_SIDE_MAX];
    struct rp_diff_side sides[2];
    struct rp_diff_options options = {
        .by = c->by, .total = x->settings->total, .min_samples = x->settings->min_samples, .alpha = alpha, .same = same_files(x)};

    for (size_t s = 0; s < 2; s++) {
        if (x->side[s].n > RP_SIDE_MAX)
            return rp_fail(err, RP_LIMIT, "a side has more than %d profiles", RP_SIDE_MAX);
        for (size_t i = 0; i < x->side[s].n; i++)
            views[s][i] = x->side[s].at[i]->view;
        sides[s] = (struct rp_diff_side){views[s], x->side[s].n, c->calls_per_second.n ? c->calls_per_second.at[s] : 0,
                                         c->rows.n ? c->rows.at[s] : 0};
        x->report.names[s] = x->side[s].at[0]->path;
        x->report.first[s] = &x->side[s].at[0]->profile;
    }
    x->report.diff = &x->diff;
    x->report.rules = x->rules;
    x->report.one_thread = x->settings->thread != NULL;
    return rp_diff_make(sides, &options, &x->diff, err);
}

static enum rp_status print(const struct comparison *x, struct rp_err *err)
{
    struct rp_compare_style style = {
        x->settings->compare.form, rp_wants_width(x->settings), rp_wants_color(x->settings), x->settings->verbose};
    struct rp_buf out = {0};
    enum rp_status status;

    rp_diff_write(&x->report, &style, &out);
    status = rp_print(&out, err);
    rp_buf_release(&out);
    return status;
}

/* A build must not be failed for, or passed on, what nobody measured without being told so. */
static void warn_of_few(const struct rp_diff *d)
{
    size_t missing[2];

    if (d->by_runs || d->options.same)
        return;
    for (size_t s = 0; s < 2; s++)
        missing[s] = d->files[s] < RP_DIFF_RUNS_MIN ? RP_DIFF_RUNS_MIN - d->files[s] : 0;
    rp_message("--fail-above without a measure of how far runs of one program differ: that takes %d profiles a side, so %zu more of A and %zu more of B",
               RP_DIFF_RUNS_MIN, missing[0], missing[1]);
}

static enum rp_status judge(const struct comparison *x, struct rp_err *err)
{
    const struct rp_diff *d = &x->diff;
    const char *of = d->has_cost ? "of the cost of A" : "points";
    double percent, most = x->settings->compare.fail_above;
    uint32_t row;

    if (!x->settings->compare.fail_above_given)
        return RP_OK;
    warn_of_few(d);
    if (!rp_diff_worst(d, &percent, &row) || !(percent > most))
        return RP_OK;
    return rp_fail(err, RP_ABOVE, "%.200s grew by %.1f %% %s, more than the %g %% of --fail-above",
                   row == UINT32_MAX ? "the whole" : rp_intern_text(&d->keys.text, d->keys.keys.at[d->rows.at[row].key].name), percent, of, most);
}

enum rp_status rp_cmd_diff(struct rp_args *args, struct rp_err *err)
{
    struct comparison x = {.args = args, .settings = &args->settings};
    size_t operand = 0;
    enum rp_status status = check_usage(args, err);

    if (!status)
        status = rp_rules_open(x.settings, &x.rules, err);
    for (size_t s = 0; s < 2 && !status; s++)
        status = load_side(&x, s, &operand, err);
    if (!status)
        status = compare(&x, err);
    if (!status)
        status = rp_diff_notes(&x.report, err);
    if (!status)
        status = print(&x, err);
    if (!status)
        status = judge(&x, err);
    rp_compare_notes_release(&x.report.notes);
    rp_diff_release(&x.diff);
    for (size_t s = 0; s < 2; s++)
        rp_loads_release(&x.side[s]);
    cat_rules_free(x.rules);
    return status;
}
