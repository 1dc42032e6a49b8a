/* SPDX-License-Identifier: MIT */
/* Two sides, row by row. Text and Markdown are one table; CSV and JSON carry every figure. A row below the cut-off of a side prints `-` there, never 0:
 * it was not seen often enough to say how much it is. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/compare_parts.h"
#include "report/style.h"
#include "report/utf8.h"

enum { SCHEMA = 1, ROWS_SHOWN = 40 };

static const char *const signs[] = {
    [RP_VERDICT_NONE] = "", [RP_VERDICT_NOISE] = "~", [RP_VERDICT_GREW] = "\xe2\x96\xb2", [RP_VERDICT_FELL] = "\xe2\x96\xbc"};
static const char *const words[] = {
    [RP_VERDICT_NONE] = "untested", [RP_VERDICT_NOISE] = "noise", [RP_VERDICT_GREW] = "grew", [RP_VERDICT_FELL] = "fell"};
static const char *const kinds[] = {[RP_TALLY_CATEGORY] = "category",
                                    [RP_TALLY_FUNCTION] = "function",
                                    [RP_TALLY_MODULE] = "module",
                                    [RP_TALLY_THREAD] = "thread",
                                    [RP_TALLY_PATH] = "path"};

static const char *unit_of(const struct rp_diff *d)
{
    return d->per_row ? "row" : "call";
}

static void count_cell(struct rp_grid *g, const struct rp_diff_cell *cell)
{
    struct rp_buf b = {0};

    rp_text_count(&b, cell->samples);
    rp_grid_cell(g, "%s", cell->below ? "-" : rp_buf_text(&b));
    g->failed |= b.failed;
    rp_buf_release(&b);
}

static double half(const struct rp_change *c)
{
    return (c->high - c->low) / 2;
}

/* In narrow lines counts go first, then the module, then the shares, unless there is nothing else. */
static void table_columns(const struct rp_diff *d, struct rp_grid *g)
{
    static const struct {
        const char *title;
        bool right;
        unsigned drop;
    } shares[] = {{"A", true, 4},      {"B", true, 4},           {"share A", true, 2}, {"share B", true, 2}, {"points", true, 1}, {RP_PLUS_MINUS "95 %", true, 1},
                  {"", false, 1}},
      costs[] = {{"ns A", true, 0}, {"ns B", true, 0}, {"change", true, 0}, {RP_PLUS_MINUS "95 %", true, 0}, {"", false, 0}};

    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        rp_grid_column(g, shares[i].title, shares[i].right);
        rp_grid_may_drop(g, d->has_cost || shares[i].drop == 4 ? shares[i].drop : 0);
    }
    for (size_t i = 0; d->has_cost && i < sizeof costs / sizeof *costs; i++)
        rp_grid_column(g, costs[i].title, costs[i].right);
    if (d->options.by == RP_TALLY_FUNCTION) {
        rp_grid_column(g, "module", false);
        rp_grid_may_drop(g, 3);
    }
    rp_grid_column(g, kinds[d->options.by], false);
}

static void table_row(const struct rp_diff *d, const struct rp_diff_row *row, struct rp_grid *g)
{
    for (size_t s = 0; s < 2; s++)
        count_cell(g, &row->side[s]);
    for (size_t s = 0; s < 2; s++)
        rp_compare_share_cell(g, row->side[s].share, row->side[s].below);
    rp_grid_cell(g, "%+.1f", fabs(row->share.difference) < 0.0005 ? 0 : 100 * row->share.difference);
    rp_grid_cell(g, "%.1f", 100 * half(&row->share));
    rp_grid_cell(g, "%s", signs[row->share.verdict]);
    if (d->has_cost) {
        for (size_t s = 0; s < 2; s++)
            rp_compare_number_cell(g, row->side[s].below ? NAN : row->side[s].ns, false);
        rp_compare_number_cell(g, row->ns.difference, true);
        rp_compare_number_cell(g, half(&row->ns), false);
        rp_grid_cell(g, "%s", signs[row->ns.verdict]);
    }
    if (d->options.by == RP_TALLY_FUNCTION)
        rp_grid_name(g, rp_compare_module(&d->keys, row->key));
    rp_grid_name(g, rp_compare_name(&d->keys, row->key));
}

static void put_side(const struct rp_diff_report *r, size_t s, const struct rp_compare_style *style, struct rp_buf *all)
{
    const struct rp_diff *d = r->diff;
    struct rp_buf line = {0}, *out = &line;

    rp_text_fit(out, r->names[s], 60);
    if (d->files[s] > 1)
        rp_buf_printf(out, " and %zu more", d->files[s] - 1);
    rp_buf_puts(out, RP_DOT);
    rp_text_count(out, d->samples[s]);
    rp_buf_printf(out, " samples" RP_DOT "%.1f s %s %" PRIu32 " Hz", (double)r->first[s]->run.seconds_ns / 1e9,
                  rp_profile_text(r->first[s], r->first[s]->run.source), r->first[s]->run.hz);
    if (d->has_cost) {
        rp_buf_puts(out, RP_DOT);
        rp_compare_cost(out, &d->cost[s], unit_of(d));
        rp_buf_puts(out, !(d->cost[s].variance > 0) ? "" : d->files[s] > 1 ? " within the runs" : " within the run");
    }
    rp_compare_line(style, s ? "B  " : "A  ", &line, 3, all);
    rp_buf_release(&line);
}

static void put_whole(const struct rp_diff *d, struct rp_buf *out)
{
    if (!d->has_cost)
        return;
    rp_buf_printf(out, "The whole: ");
    rp_compare_number(out, d->whole.difference, true);
    rp_buf_printf(out, " ns per %s (%+.1f %%)", unit_of(d), 100 * d->whole.difference / d->cost[0].ns);
    if (d->whole.high > d->whole.low) {
        rp_buf_puts(out, ", " RP_PLUS_MINUS);
        rp_compare_number(out, half(&d->whole), false);
    }
    rp_buf_printf(out, "%s%s\n", d->whole.verdict ? "  " : "", signs[d->whole.verdict]);
}

static void put_left_out(const struct rp_diff *d, size_t shown, const struct rp_compare_style *style, struct rp_buf *out)
{
    struct rp_buf line = {0};

    if (shown < d->rows.n)
        rp_buf_printf(out, "%zu more row%s less in share; -v shows %s.\n", d->rows.n - shown, d->rows.n - shown == 1 ? " differs" : "s differ",
                      d->rows.n - shown == 1 ? "it" : "them");
    if (d->left_out) {
        rp_text_count(&line, d->left_out);
        rp_buf_printf(&line, " row%s fewer than %" PRIu64 " samples on both sides (", d->left_out == 1 ? " has" : "s have", d->options.min_samples);
        for (size_t s = 0; s < 2; s++)
            rp_buf_printf(&line, "%s%.1f %%", s ? " and " : "", d->samples[s] ? 100 * (double)d->left_out_samples[s] / (double)d->samples[s] : 0);
        rp_buf_printf(&line, " of all) and %s not shown.", d->left_out == 1 ? "is" : "are");
        rp_compare_line(style, "", &line, 0, out);
        rp_buf_clear(&line);
    }
    rp_buf_printf(&line, "%s grew, %s fell, %s inside noise: Holm over %zu row%s with %d samples or more on both sides together, at %g.",
                  signs[RP_VERDICT_GREW], signs[RP_VERDICT_FELL], signs[RP_VERDICT_NOISE], d->family, d->family == 1 ? "" : "s", RP_DIFF_FAMILY_MIN,
                  d->options.alpha);
    rp_compare_line(style, "", &line, 0, out);
    rp_buf_release(&line);
}

static void put_tables(const struct rp_diff_report *r, const struct rp_compare_style *style, struct rp_buf *out)
{
    const struct rp_diff *d = r->diff;
    struct rp_grid g = {0};
    bool cut = (d->options.by == RP_TALLY_FUNCTION || d->options.by == RP_TALLY_PATH) && !style->verbose;
    size_t shown = cut && d->rows.n > ROWS_SHOWN ? ROWS_SHOWN : d->rows.n;

    for (size_t s = 0; s < 2; s++) {
        rp_buf_puts(out, style->form == RP_FORM_MARKDOWN ? "- " : "");
        put_side(r, s, style, out);
    }
    rp_buf_puts(out, style->form == RP_FORM_MARKDOWN && d->has_cost ? "- " : "");
    put_whole(d, out);
    rp_buf_putc(out, '\n');
    table_columns(d, &g);
    for (size_t i = 0; i < shown; i++)
        table_row(d, &d->rows.at[i], &g);
    rp_compare_table(&g, style, d->options.by == RP_TALLY_FUNCTION || d->options.by == RP_TALLY_PATH, out);
    rp_buf_putc(out, '\n');
    put_left_out(d, shown, style, out);
    rp_compare_notes_text(&r->notes, style, out);
}

/* ---- for programs ---- */

static void csv(const struct rp_diff_report *r, struct rp_buf *out)
{
    static const char *const head[] = {"module",  "samples_a", "samples_b", "share_a",    "share_b",   "difference", "low",    "high",
                                       "p",       "holm",      "verdict",   "ns_a",       "ns_b",      "ns_change",  "ns_low", "ns_high",
                                       "ns_p",    "ns_holm",   "ns_verdict", "unit"};
    const struct rp_diff *d = r->diff;
    struct rp_grid g = {0};

    rp_grid_column(&g, kinds[d->options.by], false);
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        rp_grid_column(&g, head[i], false);
    for (size_t i = 0; i < d->rows.n; i++) {
        const struct rp_diff_row *row = &d->rows.at[i];

        rp_grid_name(&g, rp_compare_name(&d->keys, row->key));
        rp_grid_name(&g, rp_compare_module(&d->keys, row->key));
        for (size_t s = 0; s < 2; s++)
            rp_grid_cell(&g, "%" PRIu64, row->side[s].samples);
        for (size_t s = 0; s < 2; s++)
            rp_grid_cell(&g, row->side[s].below ? "" : "%.6f", row->side[s].share);
        for (size_t ns = 0; ns < 2; ns++) {
            const struct rp_change *c = ns ? &row->ns : &row->share;
            bool known = !ns || d->has_cost;

            for (size_t s = 0; ns && s < 2; s++)
                rp_grid_cell(&g, row->side[s].below || !known ? "" : "%.4f", row->side[s].ns);
            rp_grid_cell(&g, known ? "%.6f" : "", c->difference);
            rp_grid_cell(&g, known ? "%.6f" : "", c->low);
            rp_grid_cell(&g, known ? "%.6f" : "", c->high);
            rp_grid_cell(&g, known ? "%.6g" : "", c->p);
            rp_grid_cell(&g, c->verdict ? "%.6g" : "", c->holm);
            rp_grid_cell(&g, "%s", known ? words[c->verdict] : "");
        }
        rp_grid_cell(&g, "%s", d->by_runs ? "run" : "sample");
    }
    rp_grid_csv(&g, out);
    rp_grid_release(&g);
}

static void json_change(struct rp_json *w, const char *key, const struct rp_change *c, int digits)
{
    rp_json_key(w, key);
    rp_json_begin_inline(w, '{');
    rp_json_key_double(w, "difference", c->difference, digits);
    rp_json_key_double(w, "low", c->low, digits);
    rp_json_key_double(w, "high", c->high, digits);
    rp_json_key_general(w, "p", c->p, 9);
    rp_json_key_general(w, "holm", c->verdict ? c->holm : NAN, 9);
    rp_json_key_string(w, "verdict", words[c->verdict]);
    rp_json_end(w);
}

static void json_row(const struct rp_diff_report *r, const struct rp_diff_row *row, struct rp_json *w)
{
    const struct rp_diff *d = r->diff;

    rp_json_begin(w, '{');
    if (d->options.by == RP_TALLY_CATEGORY)
        rp_json_key_string(w, "id", cat_rules_category(r->rules, d->keys.keys.at[row->key].id)->id);
    rp_json_key_string(w, "name", rp_compare_name(&d->keys, row->key));
    if (d->options.by == RP_TALLY_FUNCTION)
        rp_json_key_string(w, "module", rp_compare_module(&d->keys, row->key));
    rp_json_key(w, "samples");
    rp_json_begin_inline(w, '[');
    for (size_t s = 0; s < 2; s++)
        rp_json_u64(w, row->side[s].samples);
    rp_json_end(w);
    rp_json_key(w, "share");
    rp_json_begin_inline(w, '[');
    for (size_t s = 0; s < 2; s++)
        rp_json_double(w, row->side[s].below ? NAN : row->side[s].share, 6);
    rp_json_end(w);
    json_change(w, "share_change", &row->share, 6);
    if (d->has_cost) {
        rp_json_key(w, "ns");
        rp_json_begin_inline(w, '[');
        for (size_t s = 0; s < 2; s++)
            rp_json_double(w, row->side[s].below ? NAN : row->side[s].ns, 4);
        rp_json_end(w);
        json_change(w, "ns_change", &row->ns, 4);
    }
    rp_json_end(w);
}

static void json_sides(const struct rp_diff_report *r, struct rp_json *w)
{
    const struct rp_diff *d = r->diff;

    rp_json_key(w, "sides");
    rp_json_begin(w, '[');
    for (size_t s = 0; s < 2; s++) {
        rp_json_begin_inline(w, '{');
        rp_json_key_string(w, "file", r->names[s]);
        rp_json_key_u64(w, "files", d->files[s]);
        rp_json_key_u64(w, "samples", d->samples[s]);
        rp_json_key_double(w, "main_thread", d->main_thread[s], 6);
        rp_json_key_double(w, "ns", d->cost[s].known ? d->cost[s].ns : NAN, 4);
        rp_json_key_double(w, "ns_error", d->cost[s].known && d->cost[s].variance > 0 ? sqrt(d->cost[s].variance) : NAN, 6);
        rp_json_key_double(w, "rows_per_call", d->cost[s].rows > 0 ? d->cost[s].rows : NAN, 6);
        rp_json_end(w);
    }
    rp_json_end(w);
}

static void json(const struct rp_diff_report *r, struct rp_buf *out)
{
    struct rp_json w = {.out = out};
    const struct rp_diff *d = r->diff;

    rp_json_begin(&w, '{');
    rp_json_key_u64(&w, "schema", SCHEMA);
    rp_json_key_string(&w, "by", kinds[d->options.by]);
    rp_json_key_string(&w, "samples_of", d->options.total ? "total" : "self");
    rp_json_key_string(&w, "unit", d->by_runs ? "run" : "sample");
    rp_json_key_string(&w, "ns_per", unit_of(d));
    rp_json_key_double(&w, "run_scatter", d->run_scatter > 0 ? d->run_scatter : NAN, 4);
    rp_json_key_double(&w, "row_scatter", d->row_scatter > 0 ? d->row_scatter : NAN, 4);
    json_sides(r, &w);
    if (d->has_cost)
        json_change(&w, "whole", &d->whole, 4);
    rp_json_key_u64(&w, "min_samples", d->options.min_samples);
    rp_json_key_u64(&w, "family", d->family);
    rp_json_key(&w, "rows");
    rp_json_begin(&w, '[');
    for (size_t i = 0; i < d->rows.n; i++)
        json_row(r, &d->rows.at[i], &w);
    rp_json_end(&w);
    rp_json_key(&w, "left_out");
    rp_json_begin_inline(&w, '{');
    rp_json_key_u64(&w, "rows", d->left_out);
    rp_json_key_u64(&w, "samples_a", d->left_out_samples[0]);
    rp_json_key_u64(&w, "samples_b", d->left_out_samples[1]);
    rp_json_end(&w);
    rp_json_notes(&w, r->notes.notes.at, r->notes.notes.n);
    rp_json_end(&w);
    rp_buf_putc(out, '\n');
}

void rp_diff_write(const struct rp_diff_report *report, const struct rp_compare_style *style, struct rp_buf *out)
{
    if (style->form == RP_FORM_JSON)
        json(report, out);
    else if (style->form == RP_FORM_CSV)
        csv(report, out);
    else
        put_tables(report, style, out);
}
