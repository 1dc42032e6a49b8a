/* SPDX-License-Identifier: MIT */
/* What is paid per call and what per row: a table ordered by cost per call (or per row), and a picture of the two ends. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/compare_parts.h"
#include "report/style.h"
#include "report/utf8.h"

enum { SCHEMA = 1, PICTURE_ROWS = 12, BAR_COLUMNS = 40, NAME_COLUMNS = 40 };

static const double bar_least = 0.004;

static bool is_below(const struct rp_shapes *s, const struct rp_shapes_row *row, size_t shape)
{
    return row->samples[shape] < s->min_samples;
}

/* "10 %", "0.1 %": two digits of what removing it would win. */
static void saves_cell(struct rp_grid *g, double part)
{
    double p = 100 * part;

    if (!isfinite(p))
        rp_grid_cell(g, "all");
    else
        rp_grid_cell(g, p >= 9.95 ? "%.0f %%" : p >= 0.0995 ? "%.1f %%" : p > 0 ? "%.1g %%" : "%.0f %%", p);
}

static void fit_cells(struct rp_grid *g, const struct rp_shape_fit *fit, const char *unit)
{
    rp_compare_number_cell(g, fit->c, false);
    rp_compare_number_cell(g, fit->c_error > 0 ? 1.96 * fit->c_error : NAN, false);
    rp_compare_number_cell(g, fit->r, false);
    rp_compare_number_cell(g, fit->r_error > 0 ? 1.96 * fit->r_error : NAN, false);
    rp_grid_cell(g, "%s", rp_shape_label_text(fit->label, unit));
}

/* What is left out is small at every shape, and the line says how small. */
static void put_left_out(const struct rp_shapes *s, struct rp_buf *out)
{
    size_t n = s->rows.n - RP_SHAPES_ROWS_SHOWN;

    for (size_t i = 0; i < s->rows.n; i++) {
        if (s->rows.at[i].rank != RP_SHAPES_ROWS_SHOWN)
            continue;
        rp_buf_printf(out, "%zu more row%s ", n, n == 1 ? " has" : "s have");
        rp_compare_share(out, s->rows.at[i].most, false);
        rp_buf_printf(out, " or less at every shape; -v shows %s.\n", n == 1 ? "it" : "them");
    }
}

/* Titles that hold an N are made here, and must outlive the grid. */
struct titles {
    char share[RP_SHAPES_MAX][32], saves[RP_SHAPES_MAX][32], per[32];
};

static void table_columns(const struct rp_shapes_report *r, size_t t, struct titles *titles, struct rp_grid *g)
{
    const struct rp_shapes *s = r->shapes[t];

    snprintf(titles->per, sizeof titles->per, "ns per %s", r->unit);
    rp_grid_column(g, "ns per call", true);
    rp_grid_column(g, RP_PLUS_MINUS "95 %", true);
    rp_grid_may_drop(g, 1);
    rp_grid_column(g, titles->per, true);
    rp_grid_column(g, RP_PLUS_MINUS "95 %", true);
    rp_grid_may_drop(g, 1);
    rp_grid_column(g, "paid", false);
    for (size_t i = 0; i < s->n; i++) {
        snprintf(titles->share[i], sizeof titles->share[i], "at %g", s->at[i]);
        rp_grid_column(g, titles->share[i], true);
        rp_grid_may_drop(g, 3); /* the picture below has the ends of them */
    }
    for (size_t i = 0; i < s->n; i++) {
        snprintf(titles->saves[i], sizeof titles->saves[i], "gone: at %g", s->at[i]);
        rp_grid_column(g, titles->saves[i], true);
        rp_grid_may_drop(g, 2);
    }
    rp_grid_column(g, r->by[t] == RP_TALLY_CATEGORY ? "category" : "function", false);
}

static void put_table(const struct rp_shapes_report *r, size_t t, const struct rp_compare_style *style, struct rp_buf *out)
{
    const struct rp_shapes *s = r->shapes[t];
    struct titles titles;
    struct rp_grid g = {0};

    table_columns(r, t, &titles, &g);
    for (size_t i = 0; i < s->rows.n; i++) {
        const struct rp_shapes_row *row = &s->rows.at[i];

        if (row->rank >= RP_SHAPES_ROWS_SHOWN && !style->verbose)
            continue;
        fit_cells(&g, &row->fit, r->unit);
        for (size_t k = 0; k < s->n; k++)
            rp_compare_share_cell(&g, row->part[k].share, is_below(s, row, k));
        for (size_t k = 0; k < s->n; k++)
            saves_cell(&g, row->saves[k]);
        rp_grid_name(&g, rp_compare_name(&s->keys, row->key));
    }
    rp_compare_table(&g, style, r->by[t] == RP_TALLY_FUNCTION, out);
    if (s->rows.n > RP_SHAPES_ROWS_SHOWN && !style->verbose)
        put_left_out(s, out);
}

static void put_header(const struct rp_shapes_report *r, const struct rp_compare_style *style, struct rp_buf *all)
{
    const struct rp_shapes *s = r->shapes[0];
    struct rp_buf line = {0}, *out = &line;
    char begin[64];

    for (size_t i = 0; i < s->n; i++) {
        snprintf(begin, sizeof begin, "%g %s%s  ", s->at[i], r->unit, s->at[i] > 1 || s->at[i] < 1 ? "s" : "");
        rp_text_fit(out, r->names[i], 60);
        rp_buf_puts(out, RP_DOT);
        rp_text_count(out, s->samples[i]);
        rp_buf_puts(out, " samples" RP_DOT);
        rp_compare_cost(out, &s->cost[i], "call");
        rp_compare_line(style, begin, &line, 2, all);
        rp_buf_clear(&line);
    }
    rp_buf_puts(out, "A call of N ");
    rp_buf_printf(out, "%ss costs ", r->unit);
    rp_compare_number(out, s->whole.c, false);
    rp_buf_puts(out, s->whole.r < 0 ? " - N x " : " + N x ");
    rp_compare_number(out, fabs(s->whole.r), false);
    rp_buf_puts(out, " ns");
    if (s->whole.misfit >= 0)
        rp_buf_printf(out, " (lack of fit: p %.3g)", s->whole.misfit);
    rp_compare_line(style, "", &line, 2, all);
    rp_buf_putc(all, '\n');
    rp_buf_release(&line);
}

/* A bar in eighths of a column. */
static void put_bar(struct rp_buf *out, double share, double most)
{
    static const char *const parts[] = {"",
                                        "\xe2\x96\x8f",
                                        "\xe2\x96\x8e",
                                        "\xe2\x96\x8d",
                                        "\xe2\x96\x8c",
                                        "\xe2\x96\x8b",
                                        "\xe2\x96\x8a",
                                        "\xe2\x96\x89"};
    long eighths = most > 0 ? lround(share / most * BAR_COLUMNS * 8) : 0;

    if (!eighths && share > bar_least)
        eighths = 1;
    for (long i = 0; i < eighths / 8; i++)
        rp_buf_puts(out, "\xe2\x96\x88");
    rp_buf_puts(out, parts[eighths % 8]);
    rp_buf_fill(out, ' ', (int)(BAR_COLUMNS - (eighths + 7) / 8) + 1);
}

static size_t end_of(const struct rp_shapes *s, bool largest)
{
    size_t best = 0;

    for (size_t i = 1; i < s->n; i++)
        if (largest ? s->at[i] > s->at[best] : s->at[i] < s->at[best])
            best = i;
    return best;
}

/* The two ends of the range, the heaviest categories of either. */
static void put_picture(const struct rp_shapes_report *r, const struct rp_compare_style *style, struct rp_buf *out)
{
    const struct rp_shapes *s = r->shapes[0];
    size_t ends[2] = {end_of(s, false), end_of(s, true)};
    double most = 0;

    for (size_t i = 0; i < s->rows.n; i++)
        for (size_t e = 0; e < 2; e++)
            most = fmax(most, s->rows.at[i].part[ends[e]].share);
    rp_buf_printf(out, "\nShares at %g and at %g %ss\n", s->at[ends[0]], s->at[ends[1]], r->unit);
    for (size_t i = 0; i < s->rows.n; i++) {
        const struct rp_shapes_row *row = &s->rows.at[i];

        if (row->rank >= PICTURE_ROWS || (row->part[ends[0]].share < 0.01 && row->part[ends[1]].share < 0.01))
            continue;
        rp_buf_puts(out, "  ");
        rp_style_on(out, style->color, RP_STYLE_BOLD);
        rp_text_fit(out, rp_compare_name(&s->keys, row->key), NAME_COLUMNS);
        rp_style_off(out, style->color);
        rp_buf_putc(out, '\n');
        for (size_t e = 0; e < 2; e++) {
            rp_buf_printf(out, "  %8g ", s->at[ends[e]]);
            put_bar(out, row->part[ends[e]].share, most);
            rp_compare_share(out, row->part[ends[e]].share, is_below(s, row, ends[e]));
            rp_buf_putc(out, '\n');
        }
    }
}

static void put_all(const struct rp_shapes_report *r, const struct rp_compare_style *style, struct rp_buf *out)
{
    struct rp_buf line = {0};

    put_header(r, style, out);
    for (size_t t = 0; t < r->tables; t++) {
        rp_buf_puts(out, t ? "\n" : "");
        put_table(r, t, style, out);
    }
    rp_buf_putc(out, '\n');
    rp_buf_puts(&line, "gone: what a call would gain in speed without the row. Labels are by 99 % intervals.");
    rp_compare_line(style, "", &line, 0, out);
    rp_buf_release(&line);
    if (style->form == RP_FORM_TEXT)
        put_picture(r, style, out);
    rp_compare_notes_text(&r->notes, style, out);
}

/* ---- for programs ---- */

static void csv(const struct rp_shapes_report *r, struct rp_buf *out)
{
    static const char *const head[] = {"by", "name", "module", "label", "per_call_ns", "per_call_error", "per_row_ns", "per_row_error", "misfit_p"};
    const struct rp_shapes *first = r->shapes[0];
    struct titles samples, shares;
    struct rp_grid g = {0};

    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        rp_grid_column(&g, head[i], false);
    for (size_t i = 0; i < first->n; i++) {
        snprintf(samples.share[i], sizeof samples.share[i], "samples_%g", first->at[i]);
        snprintf(shares.share[i], sizeof shares.share[i], "share_%g", first->at[i]);
        snprintf(shares.saves[i], sizeof shares.saves[i], "saves_%g", first->at[i]);
        rp_grid_column(&g, samples.share[i], false);
        rp_grid_column(&g, shares.share[i], false);
        rp_grid_column(&g, shares.saves[i], false);
    }
    for (size_t t = 0; t < r->tables; t++) {
        const struct rp_shapes *s = r->shapes[t];

        for (size_t i = 0; i < s->rows.n; i++) {
            const struct rp_shapes_row *row = &s->rows.at[i];

            rp_grid_cell(&g, "%s", r->by[t] == RP_TALLY_CATEGORY ? "category" : "function");
            rp_grid_name(&g, rp_compare_name(&s->keys, row->key));
            rp_grid_name(&g, rp_compare_module(&s->keys, row->key));
            rp_grid_cell(&g, "%s", rp_shape_label_id(row->fit.label));
            rp_grid_cell(&g, "%.4f", row->fit.c);
            rp_grid_cell(&g, "%.4f", row->fit.c_error);
            rp_grid_cell(&g, "%.6f", row->fit.r);
            rp_grid_cell(&g, "%.6f", row->fit.r_error);
            rp_grid_cell(&g, isnan(row->fit.misfit) ? "" : "%.6g", row->fit.misfit);
            for (size_t k = 0; k < s->n; k++) {
                rp_grid_cell(&g, "%" PRIu64, row->samples[k]);
                rp_grid_cell(&g, is_below(s, row, k) ? "" : "%.6f", row->part[k].share);
                rp_grid_cell(&g, "%.6f", row->saves[k]);
            }
        }
    }
    rp_grid_csv(&g, out);
    rp_grid_release(&g);
}

static void json_fit(struct rp_json *w, const struct rp_shape_fit *fit)
{
    rp_json_key_double(w, "per_call_ns", fit->c, 4);
    rp_json_key_double(w, "per_call_error", fit->c_error > 0 ? fit->c_error : NAN, 4);
    rp_json_key_double(w, "per_row_ns", fit->r, 6);
    rp_json_key_double(w, "per_row_error", fit->r_error > 0 ? fit->r_error : NAN, 6);
    rp_json_key_general(w, "misfit_p", fit->misfit, 9);
    rp_json_key_string(w, "label", rp_shape_label_id(fit->label));
}

static void json_row(const struct rp_shapes_report *r, size_t t, const struct rp_shapes_row *row, struct rp_json *w)
{
    const struct rp_shapes *s = r->shapes[t];

    rp_json_begin(w, '{');
    if (r->by[t] == RP_TALLY_CATEGORY)
        rp_json_key_string(w, "id", cat_rules_category(r->rules, s->keys.keys.at[row->key].id)->id);
    rp_json_key_string(w, "name", rp_compare_name(&s->keys, row->key));
    if (r->by[t] == RP_TALLY_FUNCTION)
        rp_json_key_string(w, "module", rp_compare_module(&s->keys, row->key));
    json_fit(w, &row->fit);
    rp_json_key(w, "at");
    rp_json_begin(w, '[');
    for (size_t k = 0; k < s->n; k++) {
        bool below = is_below(s, row, k);

        rp_json_begin_inline(w, '{');
        rp_json_key_u64(w, "samples", row->samples[k]);
        rp_json_key_double(w, "share", below ? NAN : row->part[k].share, 6);
        rp_json_key_double(w, "ns", below ? NAN : row->part[k].ns, 4);
        rp_json_key_double(w, "saves", row->saves[k], 6);
        rp_json_end(w);
    }
    rp_json_end(w);
    rp_json_end(w);
}

static void json(const struct rp_shapes_report *r, struct rp_buf *out)
{
    struct rp_json w = {.out = out};
    const struct rp_shapes *first = r->shapes[0];

    rp_json_begin(&w, '{');
    rp_json_key_u64(&w, "schema", SCHEMA);
    rp_json_key_string(&w, "per", r->unit);
    rp_json_key(&w, "shapes");
    rp_json_begin(&w, '[');
    for (size_t i = 0; i < first->n; i++) {
        rp_json_begin_inline(&w, '{');
        rp_json_key_string(&w, "file", r->names[i]);
        rp_json_key_double(&w, "n", first->at[i], 6);
        rp_json_key_u64(&w, "samples", first->samples[i]);
        rp_json_key_double(&w, "ns", first->cost[i].ns, 4);
        rp_json_key_double(&w, "ns_error", first->cost[i].variance > 0 ? sqrt(first->cost[i].variance) : NAN, 6);
        rp_json_end(&w);
    }
    rp_json_end(&w);
    rp_json_key(&w, "whole");
    rp_json_begin_inline(&w, '{');
    json_fit(&w, &first->whole);
    rp_json_end(&w);
    for (size_t t = 0; t < r->tables; t++) {
        rp_json_key(&w, r->by[t] == RP_TALLY_CATEGORY ? "categories" : "functions");
        rp_json_begin(&w, '[');
        for (size_t i = 0; i < r->shapes[t]->rows.n; i++)
            json_row(r, t, &r->shapes[t]->rows.at[i], &w);
        rp_json_end(&w);
    }
    rp_json_notes(&w, r->notes.notes.at, r->notes.notes.n);
    rp_json_end(&w);
    rp_buf_putc(out, '\n');
}

void rp_shapes_write(const struct rp_shapes_report *report, const struct rp_compare_style *style, struct rp_buf *out)
{
    if (style->form == RP_FORM_JSON)
        json(report, out);
    else if (style->form == RP_FORM_CSV)
        csv(report, out);
    else
        put_all(report, style, out);
}
