/* SPDX-License-Identifier: MIT */
/* `rowprof shapes A B [C ...]`: what of a call is paid per call and what per row. What cannot be known (rows, rates) is asked for by option. */
#include <math.h>
#include <string.h>

#include "base/parse.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/sides.h"
#include "cli/terminal.h"
#include "report/compare_report.h"

static const double columns_max = 1e6, same_rows = 1e-6;

struct taking_apart {
    const struct rp_settings *settings;
    struct cat_rules *rules;
    struct rp_loads loads;
    struct rp_shape shapes[RP_SHAPES_MAX];
    struct rp_shapes tables[RP_SHAPES_TABLES_MAX];
    struct rp_shapes_report report;
};

static enum rp_status check_count(const char *option, size_t given, size_t profiles, struct rp_err *err)
{
    if (!given || given == profiles)
        return RP_OK;
    return rp_fail(err, RP_USAGE, "%s has %zu number%s for %zu profiles; give one for each, in their order", option, given, given == 1 ? "" : "s",
                   profiles);
}

static enum rp_status load_all(struct taking_apart *x, const struct rp_args *args, struct rp_err *err)
{
    const struct rp_compare_settings *c = &x->settings->compare;
    enum rp_status status = RP_OK;

    for (size_t i = 0; i < args->operands.n && !status; i++)
        status = rp_loads_add(&x->loads, args->operands.at[i], x->settings, x->rules, err);
    if (status)
        return status;
    if (x->loads.n < 2)
        return rp_fail(err, RP_USAGE, "`rowprof shapes` takes two profiles or more of the same call: rowprof shapes A B");
    if (x->loads.n > RP_SHAPES_MAX)
        return rp_fail(err, RP_USAGE, "`rowprof shapes` takes at most %d profiles", RP_SHAPES_MAX);
    status = check_count("--rows", c->rows.n, x->loads.n, err);
    if (!status)
        status = check_count("--columns", c->columns.n, x->loads.n, err);
    return status ? status : check_count("--calls-per-second", c->calls_per_second.n, x->loads.n, err);
}

/* The READY line's word for it. A list such as * is no number: then it is asked for. */
static double columns_of(const struct rp_profile *profile)
{
    static const char *const words[] = {"columns", "cols"};
    double columns;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *value = rp_fact_find(profile, words[i]);

        if (value && rp_parse_double(value, 1, columns_max, &columns))
            return columns;
    }
    return 0;
}

/* What N is for profile `i`; 0: not known. */
static double size_of(const struct taking_apart *x, size_t i, double rows)
{
    const struct rp_compare_settings *c = &x->settings->compare;
    double columns = c->columns.n ? c->columns.at[i] : columns_of(&x->loads.at[i]->profile);

    return c->unit == RP_UNIT_ROWS ? rows : c->unit == RP_UNIT_COLUMNS ? columns : rows * columns;
}

static enum rp_status fill_shapes(struct taking_apart *x, struct rp_err *err)
{
    const struct rp_compare_settings *c = &x->settings->compare;
    double low = INFINITY, high = 0;

    for (size_t i = 0; i < x->loads.n; i++) {
        const struct rp_loaded *l = x->loads.at[i];
        double calls = c->calls_per_second.n ? c->calls_per_second.at[i] : 0;
        struct rp_cost cost = rp_cost_of(l->view, calls, c->rows.n ? c->rows.at[i] : 0);
        double n = size_of(x, i, cost.rows);

        if (!cost.known)
            return rp_fail(err, RP_USAGE,
                           "%.300s does not tell how many calls were made: record it with --ready and a workload that prints RATE lines (--progress), "
                           "or give --calls-per-second",
                           l->path);
        if (!(n > 0))
            return rp_fail(err, RP_USAGE, "%.300s does not tell how many %s; give %s", l->path,
                           c->unit != RP_UNIT_ROWS && cost.rows > 0 ? "columns a row has" : "rows a call returned",
                           c->unit != RP_UNIT_ROWS && cost.rows > 0 ? "--columns" : "--rows");
        x->shapes[i] = (struct rp_shape){l->view, n, calls};
        x->report.names[i] = l->path;
        x->report.profiles[i] = &l->profile;
        low = fmin(low, n);
        high = fmax(high, n);
    }
    if (!(high - low > same_rows * high))
        return rp_fail(err, RP_USAGE, "all profiles have %g %s: what is paid per call and what per %s cannot be told apart; record another shape", high,
                       c->unit == RP_UNIT_ROWS      ? "rows per call"
                       : c->unit == RP_UNIT_COLUMNS ? "columns"
                                                    : "values per call",
                       x->report.unit);
    return RP_OK;
}

static enum rp_status make_tables(struct taking_apart *x, struct rp_err *err)
{
    static const enum rp_tally_by both[] = {RP_TALLY_CATEGORY, RP_TALLY_FUNCTION};
    const struct rp_compare_settings *c = &x->settings->compare;
    enum rp_status status = RP_OK;

    for (size_t i = 0; i < 2 && !status; i++) {
        struct rp_shapes *to = &x->tables[x->report.tables];

        if (c->by_given && c->by != both[i])
            continue;
        x->report.by[x->report.tables] = both[i];
        x->report.shapes[x->report.tables++] = to;
        status = rp_shapes_make(x->shapes, x->loads.n, both[i], x->settings->min_samples, to, err);
        if (c->sort_by_row)
            rp_shapes_sort_by_row(to);
    }
    x->report.by_row = c->sort_by_row;
    x->report.one_thread = x->settings->thread != NULL;
    return status;
}

enum rp_status rp_cmd_shapes(struct rp_args *args, struct rp_err *err)
{
    static const char *const units[] = {[RP_UNIT_ROWS] = "row", [RP_UNIT_COLUMNS] = "column", [RP_UNIT_VALUES] = "value"};
    struct taking_apart x = {.settings = &args->settings, .report.unit = units[args->settings.compare.unit]};
    struct rp_compare_style style = {args->settings.compare.form, rp_wants_width(&args->settings), rp_wants_color(&args->settings),
                                     args->settings.verbose};
    struct rp_buf out = {0};
    enum rp_status status = rp_rules_open(x.settings, &x.rules, err);

    if (!status)
        status = load_all(&x, args, err);
    if (!status)
        status = fill_shapes(&x, err);
    if (!status)
        status = make_tables(&x, err);
    x.report.rules = x.rules;
    if (!status)
        status = rp_shapes_notes(&x.report, err);
    if (!status) {
        rp_shapes_write(&x.report, &style, &out);
        status = rp_print(&out, err);
    }
    rp_buf_release(&out);
    rp_compare_notes_release(&x.report.notes);
    for (size_t i = 0; i < RP_SHAPES_TABLES_MAX; i++)
        rp_shapes_release(&x.tables[i]);
    rp_loads_release(&x.loads);
    cat_rules_free(x.rules);
    return status;
}
