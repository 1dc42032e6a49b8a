/* SPDX-License-Identifier: MIT */
/* `rowprof report --uncategorized`. The text is itself a rule file: written to a file, it is accepted by `rules check` as it is, and what one does
 * not want is deleted. The trap is names that mean something in a pattern or in YAML: `operator*`, a leading slash, quotes. */
#include "report/unclaimed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/utf8.h"
#include "symbolize/symbolize.h"

enum { ROWS_MAX = 200 };

/* Letters that may not be written become `?`, which stands for any one. */
static void put_pattern(struct rp_buf *out, const char *name)
{
    struct rp_cursor c = rp_cursor_str(name);
    uint32_t code_point;

    if (*name == '/') { /* would begin a regular expression */
        rp_buf_putc(out, '?');
        c.at++;
    }
    while (!rp_cursor_done(&c)) {
        const char *start = c.at;

        if (!rp_utf8_next(&c, &code_point) || rp_utf8_is_control(code_point)) {
            rp_buf_putc(out, '*');
            continue;
        }
        if (code_point == '*' || code_point == '?' || code_point == '\\')
            rp_buf_putc(out, '\\');
        rp_buf_append(out, start, (size_t)(c.at - start));
    }
}

const char *rp_unclaimed_pattern(const struct rp_report *report, uint32_t function, struct rp_buf *value)
{
    const struct rp_profile *p = report->profile;
    const struct rp_function *f = &p->functions.at[function];
    const char *raw = rp_profile_text(p, f->raw);
    struct rp_buf name = {0};

    if (f->how == RP_NAME_OFFSET) {
        put_pattern(value, rp_profile_text(p, f->module));
        return "module";
    }
    rp_demangle(*raw ? raw : rp_profile_text(p, f->name), true, &name);
    put_pattern(value, rp_buf_text(&name));
    value->failed |= name.failed;
    rp_buf_release(&name);
    return "symbol";
}

/* In single quotes YAML changes nothing but the quote itself. */
static void put_quoted(struct rp_buf *out, const char *text)
{
    if (!text[strcspn(text, "\\\"")]) {
        rp_buf_printf(out, "\"%s\"", text);
        return;
    }
    rp_buf_putc(out, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            rp_buf_putc(out, '\'');
        rp_buf_putc(out, *text);
    }
    rp_buf_putc(out, '\'');
}

void rp_unclaimed_rule(const struct rp_report *report, const uint32_t *functions, size_t n, struct rp_buf *out)
{
    struct rp_buf list = {0}, value = {0};
    const char *key = "symbol";
    size_t written = 0;

    for (size_t i = 0; i < n && !strcmp(key, "symbol"); i++) {
        rp_buf_clear(&value);
        key = rp_unclaimed_pattern(report, functions[i], &value);
        if (strcmp(key, "symbol") != 0) {
            rp_buf_clear(&list);
            written = 0;
        }
        rp_buf_puts(&list, written++ ? ", " : "");
        put_quoted(&list, rp_buf_text(&value));
    }
    rp_buf_printf(out, written > 1 ? "%s: [%s]" : "%s: %s", key, rp_buf_text(&list));
    out->failed |= list.failed | value.failed;
    rp_buf_release(&list);
    rp_buf_release(&value);
}

static void put_rule(const struct rp_report *r, const struct rp_unclaimed *row, size_t number, struct rp_buf *out)
{
    const struct rp_profile *p = r->profile;
    struct rp_buf value = {0};
    const char *key = rp_unclaimed_pattern(r, row->function, &value);

    rp_buf_printf(out, "  # %6" PRIu64 "  %5.1f %%  ", row->samples,
                  r->quality.samples ? 100 * (double)row->samples / (double)r->quality.samples : 0);
    if (p->functions.at[row->function].how == RP_NAME_OFFSET)
        rp_buf_puts(out, "code without names");
    else
        rp_text_symbol(out, rp_profile_text(p, p->functions.at[row->function].name), 0, r->options.verbose);
    rp_buf_puts(out, " (in ");
    rp_text_fit(out, rp_profile_text(p, p->functions.at[row->function].module), 0);
    rp_buf_puts(out, ")");
    if (row->inherited) {
        rp_buf_puts(out, ", now in ");
        rp_text_fit(out, cat_rules_category(r->rules, row->category)->name, 0);
        rp_buf_puts(out, " through its caller");
    }
    rp_buf_printf(out, "\n  %s- {id: mine-%zu, category: mine, %s: ", row->inherited ? "# " : "", number, key);
    put_quoted(out, rp_buf_text(&value));
    rp_buf_puts(out, "}\n");
    out->failed |= value.failed;
    rp_buf_release(&value);
}

/* Code without names is claimed by its module, so all of it is one row. */
static bool same_rule(const struct rp_report *r, const struct rp_unclaimed *a, const struct rp_unclaimed *b)
{
    const struct rp_function *f = &r->profile->functions.at[a->function], *g = &r->profile->functions.at[b->function];

    return a->inherited == b->inherited && f->how == RP_NAME_OFFSET && g->how == RP_NAME_OFFSET && f->module == g->module;
}

static bool has_rule_before(const struct rp_report *r, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (same_rule(r, &r->unclaimed.rows.at[i], &r->unclaimed.rows.at[at]))
            return true;
    }
    return false;
}

static int heaviest_first(const void *a, const void *b)
{
    const struct rp_unclaimed *x = a, *y = b;

    if (x->inherited != y->inherited)
        return x->inherited ? 1 : -1;
    if (x->samples != y->samples)
        return x->samples < y->samples ? 1 : -1;
    return x->function < y->function ? -1 : x->function > y->function;
}

/* The rows that are shown, with the samples each rule would claim. `*rules` counts those that stand uncommented. */
static enum rp_status merge(const struct rp_report *r, struct rp_unclaimed_table *shown, size_t *rules)
{
    for (size_t i = 0; i < r->unclaimed.rows.n && shown->rows.n < ROWS_MAX; i++) {
        struct rp_unclaimed row = r->unclaimed.rows.at[i], *added;

        if (has_rule_before(r, i))
            continue;
        for (size_t k = i + 1; k < r->unclaimed.rows.n; k++)
            row.samples += same_rule(r, &row, &r->unclaimed.rows.at[k]) ? r->unclaimed.rows.at[k].samples : 0;
        if (row.samples < r->options.min_samples)
            continue;
        added = rp_vec_add(&shown->rows);
        if (!added)
            return RP_NOMEM;
        *added = row;
        *rules += !row.inherited;
    }
    if (shown->rows.n)
        qsort(shown->rows.at, shown->rows.n, sizeof *shown->rows.at, heaviest_first);
    return RP_OK;
}

static void put_how_much(const struct rp_report *r, struct rp_buf *out)
{
    const struct rp_category_row *row = rp_report_row(r, cat_rules_uncategorized(r->rules));

    if (!row || !row->samples) {
        rp_buf_puts(out, "# Nothing is uncategorized: ");
        rp_buf_puts(out, r->categories.samples ? "a rule claims each of " : "there are ");
        rp_text_count(out, r->categories.samples);
        rp_buf_puts(out, r->categories.samples == 1 ? " sample" : " samples");
        return;
    }
    rp_buf_puts(out, "# No rule claims ");
    rp_text_count(out, row->samples);
    rp_buf_puts(out, " of ");
    rp_text_count(out, r->categories.samples);
    rp_buf_printf(out, " samples (%.1f %%)", 100 * row->share);
    if (r->categories.uncategorized_truncated) {
        rp_buf_puts(out, ", ");
        rp_text_count(out, r->categories.uncategorized_truncated);
        rp_buf_puts(out, " of them because their stack was cut");
    }
}

/* A category that no rule gives is a finding of `rules check`: where every rule is a comment, so is the category. */
static void put_head(const struct rp_report *r, bool any, bool any_rule, struct rp_buf *out)
{
    const char *comment = any_rule ? "" : "# ";

    put_how_much(r, out);
    if (!any) {
        rp_buf_puts(out, ".\n");
        if (r->unclaimed.rows.n)
            rp_buf_printf(out, "# No function of them has %" PRIu64 " samples (--min-samples).\n", r->options.min_samples);
        return;
    }
    rp_buf_puts(out, ". This is a rule file: keep the rules you want, name the category,\n"
                     "# and read the profile with it: rowprof report --rules mine.yaml ");
    rp_text_fit(out, r->options.file ? r->options.file : "FILE", 0);
    rp_buf_printf(out, "\n%scategories:\n%s  - {id: mine, name: \"my own work\", kind: cost, color: orange}\n%srules:\n", comment, comment, comment);
}

void rp_unclaimed_text(const struct rp_report *r, struct rp_buf *out)
{
    struct rp_unclaimed_table shown = {0};
    size_t rules = 0;

    if (merge(r, &shown, &rules))
        out->failed = true;
    put_head(r, shown.rows.n > 0, rules > 0, out);
    for (size_t i = 0; i < shown.rows.n; i++)
        put_rule(r, &shown.rows.at[i], i + 1, out);
    if (!rules)
        rp_buf_puts(out, "rules: []\n");
    rp_vec_release(&shown.rows);
}
