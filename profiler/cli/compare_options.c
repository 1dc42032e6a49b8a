/* SPDX-License-Identifier: MIT */
/* The options of diff and shapes, see options.h. */
#include <string.h>

#include "base/parse.h"
#include "cli/option_setters.h"
#include "cli/options.h"

enum { NUMBERS_MAX = RP_SHAPES_MAX };

static const double number_max = 1e12, percent_max = 1e6;

void rp_compare_settings_release(struct rp_compare_settings *settings)
{
    rp_vec_release(&settings->side_a);
    rp_vec_release(&settings->side_b);
    rp_vec_release(&settings->rows);
    rp_vec_release(&settings->columns);
    rp_vec_release(&settings->calls_per_second);
}

RP_OPTION_CHOICE(rp_compare_set_form, compare.form, enum rp_compare_form, "--format takes text, json, csv or markdown", [RP_FORM_TEXT] = "text",
                 [RP_FORM_JSON] = "json", [RP_FORM_CSV] = "csv", [RP_FORM_MARKDOWN] = "markdown")
static RP_OPTION_CHOICE(set_row_kind, compare.by, enum rp_tally_by, "--by takes category, function, module, thread or path", [RP_TALLY_CATEGORY] = "category",
                        [RP_TALLY_FUNCTION] = "function", [RP_TALLY_MODULE] = "module", [RP_TALLY_THREAD] = "thread", [RP_TALLY_PATH] = "path")
static RP_OPTION_LIST(set_a, compare.side_a, "--a", "the path of a profile")
static RP_OPTION_LIST(set_b, compare.side_b, "--b", "the path of a profile")
static RP_OPTION_CHOICE(set_per, compare.unit, enum rp_compare_unit, "--per takes rows, columns or values", [RP_UNIT_ROWS] = "rows",
                        [RP_UNIT_COLUMNS] = "columns", [RP_UNIT_VALUES] = "values")
static RP_OPTION_CHOICE(set_sort, compare.sort_by_row, bool, "--sort takes call or row", "call", "row")

static enum rp_status set_diff_by(struct rp_settings *s, const char *value, struct rp_err *err)
{
    s->compare.by_given = true;
    return set_row_kind(s, value, err);
}

static enum rp_status set_shapes_by(struct rp_settings *s, const char *value, struct rp_err *err)
{
    if (strcmp(value, "category") != 0 && strcmp(value, "function") != 0)
        return rp_fail(err, RP_USAGE, "--by takes category or function, not '%s'", value);
    return set_diff_by(s, value, err);
}

/* One number above 0 per profile, parted by commas. Fills `to` from its beginning. */
static bool take_numbers(const char *value, double *to, size_t *n)
{
    struct rp_cursor c = rp_cursor_str(value);

    *n = 0;
    do {
        char text[64];
        const char *piece;
        size_t length;

        rp_cursor_until(&c, ',', &piece, &length);
        if (!length || length >= sizeof text || *n == NUMBERS_MAX)
            return false;
        memcpy(text, piece, length);
        text[length] = '\0';
        if (!rp_parse_double(text, 0, number_max, &to[*n]) || !(to[*n] > 0))
            return false;
        (*n)++;
    } while (rp_cursor_take(&c, ","));
    return rp_cursor_done(&c);
}

#define NUMBERS(field, option, example)                                                                                                              \
    static enum rp_status set_##field(struct rp_settings *s, const char *value, struct rp_err *err)                                                  \
    {                                                                                                                                                \
        double numbers[NUMBERS_MAX];                                                                                                                 \
        size_t n;                                                                                                                                    \
                                                                                                                                                     \
        if (!take_numbers(value, numbers, &n))                                                                                                       \
            return rp_fail(err, RP_USAGE, option " takes a number above 0 for each profile, such as " example ", not '%s'", value);                  \
        rp_vec_clear(&s->compare.field);                                                                                                             \
        if (!rp_vec_reserve(&s->compare.field, n))                                                                                                   \
            return rp_fail_nomem(err);                                                                                                               \
        memcpy(s->compare.field.at, numbers, n * sizeof *numbers);                                                                                   \
        s->compare.field.n = n;                                                                                                                      \
        return RP_OK;                                                                                                                                \
    }

NUMBERS(rows, "--rows", "1,100")
NUMBERS(columns, "--columns", "1,4")
NUMBERS(calls_per_second, "--calls-per-second", "850000,13000")

static enum rp_status set_fail_above(struct rp_settings *s, const char *value, struct rp_err *err)
{
    if (!rp_parse_double(value, 0, percent_max, &s->compare.fail_above))
        return rp_fail(err, RP_USAGE, "--fail-above takes a percentage such as 5, not '%s'", value);
    s->compare.fail_above_given = true;
    return RP_OK;
}

static const struct rp_option diff_options[] = {
    {"by", 0, "WHAT", "rows by category (default), function, module, thread or path", set_diff_by},
    {"total", 0, NULL, "samples with callees: of every row that is anywhere on the stack", rp_set_total},
    {"a", 0, "FILE", "a profile of side A; may be given several times", set_a},
    {"b", 0, "FILE", "a profile of side B; may be given several times", set_b},
    {"calls-per-second", 0, "A,B", "calls per second of wall time on each side, to tell ns per call; otherwise from RATE lines", set_calls_per_second},
    {"rows", 0, "A,B", "rows per call on each side: costs are then told per row", set_rows},
    {"fail-above", 0, "PCT", "exit with status 6 if anything grew beyond noise by more than PCT percent of all of A; best with four profiles a side", set_fail_above},
    {"thread", 't', "NAME|TID", "restrict every figure to the threads of this name, or to one", rp_set_thread},
    {"min-samples", 0, "N", "print - for a row with fewer samples on a side (default 5)", rp_set_min_samples},
    {"no-kernel", 0, NULL, "cut kernel frames off: their time belongs to the function that called the kernel", rp_set_no_kernel},
    {0},
};

static const struct rp_option shapes_options[] = {
    {"by", 0, "WHAT", "only the table by category, or by function (default: both)", set_shapes_by},
    {"per", 0, "WHAT", "what N counts: rows (default), columns, or values, which are rows x columns", set_per},
    {"rows", 0, "N,N", "rows per call of each profile; otherwise from RATE lines", set_rows},
    {"columns", 0, "N,N", "columns per row of each profile; otherwise from the READY line", set_columns},
    {"calls-per-second", 0, "R,R", "calls per second of wall time of each profile; otherwise from RATE lines", set_calls_per_second},
    {"sort", 0, "WHAT", "largest cost per call (default) or per row first: call or row", set_sort},
    {"thread", 't', "NAME|TID", "restrict every figure to the threads of this name, or to one", rp_set_thread},
    {"min-samples", 0, "N", "leave out what has fewer samples in every profile (default 5)", rp_set_min_samples},
    {"no-kernel", 0, NULL, "cut kernel frames off: their time belongs to the function that called the kernel", rp_set_no_kernel},
    {0},
};

static const struct rp_option shape_check_options[] = {
    {"rows", 0, "N,N", "rows per call of each profile; otherwise from RATE lines", set_rows},
    {"calls-per-second", 0, "R,R", "calls per second of wall time of each profile; otherwise from RATE lines", set_calls_per_second},
    {"thread", 't', "NAME|TID", "restrict every figure to the threads of this name, or to one", rp_set_thread},
    {0},
};

const struct rp_option_group rp_options_shape_check = {"Profiles of --shape-check", shape_check_options};
const struct rp_option_group rp_options_diff = {"Comparing", diff_options};
const struct rp_option_group rp_options_shapes = {"Taking apart", shapes_options};
