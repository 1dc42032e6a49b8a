/* SPDX-License-Identifier: MIT */
/* The table of a benchmark as people read it. See bench_report.h.
 *
 * The trap is "no change": a benchmark cannot say that. What is not convicted keeps its interval beside it, and the smallest change that would have been
 * seen stands below. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/bench_report.h"
#include "report/style.h"
#include "report/utf8.h"

enum { COLUMNS = 9, CONFIG = 8 };

static const char *const heads[COLUMNS] = {"improvement", "95 %", "p", "Holm", "floor", "old", "new", "verdict", "config"};
/* Further columns with --verbose, in the order of cells. */
enum { MORE = 4, SUSPECTS_SHOWN = 5 };
static const char *const more_heads[MORE] = {"(*)", "(**)", "(***)", "detectable"};

/* Three digits: 26.7k, 1.73M, 975. */
static void put_rate(struct rp_buf *out, double rate)
{
    static const char suffixes[] = {0, 'k', 'M', 'G', 'T'};
    size_t i = 0;

    if (!isfinite(rate)) {
        rp_buf_putc(out, '-');
        return;
    }
    for (; rate >= 999.5 && i + 1 < sizeof suffixes; i++)
        rate /= 1000;
    rp_buf_printf(out, "%.*f", rate < 9.995 ? 2 : rate < 99.95 ? 1 : 0, rate);
    if (suffixes[i])
        rp_buf_putc(out, suffixes[i]);
}

static void put_percent(struct rp_buf *out, double fraction, int digits, bool sign)
{
    if (isnan(fraction))
        rp_buf_putc(out, '-');
    else
        rp_buf_printf(out, sign ? "%+.*f %%" : "%.*f %%", digits, 100 * fraction);
}

static void put_p(struct rp_buf *out, double p)
{
    if (isnan(p))
        rp_buf_putc(out, '-');
    else
        rp_buf_printf(out, p < 0.001 ? "%.2e" : "%.4f", p);
}

static void put_span(struct rp_buf *out, double low, double high)
{
    if (isnan(low))
        rp_buf_putc(out, '-');
    else
        rp_buf_printf(out, "%+.1f..%+.1f", 100 * (low - 1), 100 * (high - 1));
}

/* The cell of a column; out is empty. */
static void put_cell(const struct rp_bench_report *r, const struct rp_bench_row *row, size_t column, struct rp_buf *out)
{
    static const char *const stars[] = {"   ", "*  ", "** ", "***"};
    const char *name = r->bench->configs.at[row->config].name;

    switch (column) {
    case 0:
        put_percent(out, row->improvement, 2, true);
        rp_buf_printf(out, " %s", stars[row->stars]);
        break;
    case 1:
        put_span(out, row->log_ratio.low, row->log_ratio.high);
        break;
    case 2:
        put_p(out, row->welch.p);
        break;
    case 3:
        put_p(out, row->corrected);
        break;
    case 4:
        put_percent(out, row->floor, 2, false);
        break;
    case 5:
        put_rate(out, row->arm[RP_ARM_OLD].mean);
        break;
    case 6:
        put_rate(out, row->arm[RP_ARM_NEW].mean);
        break;
    case 7:
        rp_buf_puts(out, rp_bench_verdict_name(row->verdict));
        break;
    default:
        rp_text_clean(out, name, strlen(name));
        break;
    }
}

static void put_more(const struct rp_bench_row *row, size_t column, struct rp_buf *out)
{
    put_percent(out, column < RP_BENCH_RISKS ? row->accuracy[column] : row->detectable, 2, false);
}

static const char *head_of(const struct rp_bench_report *r, size_t column)
{
    return column == 3 && r->verdicts->options.fdr ? "FDR" : heads[column];
}

static size_t widest(const struct rp_bench_report *r, size_t column)
{
    size_t width = strlen(head_of(r, column));
    struct rp_buf cell = {0};

    for (size_t i = 0; i < r->verdicts->rows.n; i++) {
        rp_buf_clear(&cell);
        put_cell(r, &r->verdicts->rows.at[i], column, &cell);
        width = cell.length > width ? cell.length : width;
    }
    rp_buf_release(&cell);
    return width;
}

static void put_padded(struct rp_buf *out, const char *text, size_t width, bool left)
{
    int fill = (int)width - (int)strlen(text);

    rp_buf_fill(out, ' ', left ? 0 : fill);
    rp_buf_puts(out, text);
    rp_buf_fill(out, ' ', left ? fill : 0);
    rp_buf_puts(out, "  ");
}

static bool is_left(size_t column)
{
    return column >= CONFIG - 1;
}

static void put_row(const struct rp_bench_report *r, const struct rp_bench_row *row, const size_t *widths, struct rp_buf *out)
{
    bool convicted = row->verdict == RP_BENCH_FASTER || row->verdict == RP_BENCH_SLOWER;
    struct rp_buf cell = {0};

    if (convicted)
        rp_style_color(out, r->color, row->verdict == RP_BENCH_FASTER ? "green" : "red");
    for (size_t c = 0; c < CONFIG; c++) {
        rp_buf_clear(&cell);
        put_cell(r, row, c, &cell);
        put_padded(out, rp_buf_text(&cell), widths[c], is_left(c));
    }
    for (size_t c = 0; r->verbose && c < MORE; c++) {
        rp_buf_clear(&cell);
        put_more(row, c, &cell);
        put_padded(out, rp_buf_text(&cell), strlen(more_heads[MORE - 1]), false);
    }
    put_cell(r, row, CONFIG, out);
    if (convicted)
        rp_style_off(out, r->color);
    rp_buf_putc(out, '\n');
    out->failed |= cell.failed;
    rp_buf_release(&cell);
}

static void put_table(const struct rp_bench_report *r, struct rp_buf *out)
{
    size_t widths[COLUMNS];

    for (size_t c = 0; c < CONFIG; c++)
        widths[c] = widest(r, c);
    rp_style_on(out, r->color, RP_STYLE_BOLD);
    for (size_t c = 0; c < CONFIG; c++)
        put_padded(out, head_of(r, c), widths[c], is_left(c));
    for (size_t c = 0; r->verbose && c < MORE; c++)
        put_padded(out, more_heads[c], strlen(more_heads[MORE - 1]), false);
    rp_buf_puts(out, heads[CONFIG]);
    rp_style_off(out, r->color);
    rp_buf_putc(out, '\n');
    for (size_t i = 0; i < r->verdicts->rows.n; i++)
        put_row(r, &r->verdicts->rows.at[i], widths, out);
}

/* ---- below the table ---- */

static void put_convictions(const struct rp_bench_verdicts *v, const char *before, struct rp_buf *out)
{
    rp_buf_printf(out, "%sconvicted: %zu faster, %zu slower (%s p < %g, and further from old than old is from itself); suspected: %zu (so without the correction)\n",
                  before, v->faster, v->slower, v->options.fdr ? "Benjamini-Hochberg" : "Holm", v->options.alpha, v->suspected);
}

static void put_geomean(const struct rp_bench_verdicts *v, const char *before, struct rp_buf *out)
{
    if (isnan(v->geomean.ratio))
        return;
    rp_buf_printf(out, "%sgeomean: %+.2f %%", before, 100 * (v->geomean.ratio - 1));
    if (!isnan(v->geomean.low))
        rp_buf_printf(out, " (95 %%: %+.2f..%+.2f, over %zu rounds)", 100 * (v->geomean.low - 1), 100 * (v->geomean.high - 1), v->complete_rounds);
    rp_buf_putc(out, '\n');
}

static void put_floor(const struct rp_bench_verdicts *v, const char *before, struct rp_buf *out)
{
    if (isnan(v->floor_max)) {
        rp_buf_printf(out, "%snoise floor: not known, it takes two runs or more of old and of its copy (old2); without it nothing is convicted\n", before);
        return;
    }
    rp_buf_printf(out, "%snoise floor: %.2f %% at most, 90 %% of configs below %.2f %%\n", before, 100 * v->floor_max, 100 * v->floor_90);
    rp_buf_printf(out, "%sold against its copy: geomean %+.2f %%, significant: %zu of %zu, after correction: %zu\n", before,
                  100 * (v->again_geomean.ratio - 1), v->again_significant, v->again_judged, v->again_convicted);
}

/* Of a saving. */
static const char *less_or_more(double saved)
{
    return saved < 0 ? "more" : "less";
}

static void put_shape(const struct rp_bench_shape_note *s, const char *before, struct rp_buf *out)
{
    if (isnan(s->c)) {
        rp_buf_printf(out, "%sshape: not to be told; it takes configs of different known numbers of rows\n", before);
        return;
    }
    rp_buf_printf(out, "%sshape of the change: %.1f +- %.1f ns %s per call and %.2f +- %.2f ns %s per row over %zu configs", before, fabs(s->c),
                  1.96 * s->c_error, less_or_more(s->c), fabs(s->r), 1.96 * s->r_error, less_or_more(s->r), s->configs);
    if (s->df > 0)
        rp_buf_printf(out, "; lack of fit: chi-square %.1f, df %.0f, p %.3g", s->x2, s->df, s->p);
    rp_buf_putc(out, '\n');
    if (!isnan(s->contrast_p))
        rp_buf_printf(out, "%sat %g row%s %+.2f points more than at %g, p %.3g\n", before, s->few, s->few <= 1 ? "" : "s", 100 * s->contrast, s->many,
                      s->contrast_p);
    if (!(s->nothing_p < 0.05)) {
        rp_buf_printf(out, "%sthe change cannot be told from none (p %.3g), so it speaks for no category\n", before, s->nothing_p);
        return;
    }
    /* Nothing that is taken away makes a call dearer. */
    if (s->direction < -1.96) {
        rp_buf_printf(out, "%snew is slower, which no category explains by being gone; `rowprof diff` of profiles of both says what grew\n", before);
        return;
    }
    for (size_t i = 0; i < s->nsuspects && i < SUSPECTS_SHOWN; i++)
        rp_buf_printf(out, "%swithout %s it would be %.1f ns %s per call and %.2f %s per row: %s (chi-square %.1f, df %.0f, p %.3g)\n", before,
                      s->suspects[i].name, fabs(s->suspects[i].c), less_or_more(s->suspects[i].c), fabs(s->suspects[i].r),
                      less_or_more(s->suspects[i].r), s->suspects[i].p < 0.05 ? "does not fit" : "fits", s->suspects[i].x2, s->suspects[i].df,
                      s->suspects[i].p);
}

/* The footer and the note on the shape, one line of text each, without colours; for text and Markdown. */
static void put_summary(const struct rp_bench_report *r, const char *before, struct rp_buf *out)
{
    const struct rp_bench_verdicts *v = r->verdicts;

    rp_buf_printf(out, "%sconfigs: %zu  significant: %zu\n", before, v->rows.n, v->significant);
    put_convictions(v, before, out);
    put_geomean(v, before, out);
    put_floor(v, before, out);
    if (!isnan(v->detectable))
        rp_buf_printf(out, "%ssmallest detectable change: %.1f %% (median config, power 80 %%); to be convicted among %zu: %.1f %%\n", before,
                      100 * v->detectable, v->judged, 100 * v->convictable);
    rp_buf_printf(out, "%srates by %s; %zu runs%s%s, %zu contended (CPU time below %.0f %% of wall time), %zu repeated\n", before,
                  rp_rate_name(v->options.rate), v->runs, r->cpus ? " on CPU " : "", r->cpus ? r->cpus : "", v->contended, 100 * RP_CONTENDED,
                  v->repeated);
    if (r->verbose)
        rp_buf_printf(out, "%sexpected by chance alone among %zu: %.2f *, %.2f **, %.2f ***\n", before, v->judged, 0.05 * (double)v->judged,
                      0.01 * (double)v->judged, 0.001 * (double)v->judged);
    if (r->shape)
        put_shape(r->shape, before, out);
    if (r->cut_short)
        rp_buf_printf(out, "%sended early: %s\n", before, r->cut_short);
}

static void put_program(const char *what, const struct rp_bench_program *p, struct rp_buf *out)
{
    rp_buf_printf(out, "%s  sha256 %s  ", what, p->sha256);
    rp_text_clean(out, p->path, strlen(p->path));
    rp_buf_putc(out, '\n');
}

static void put_programs(const struct rp_bench_report *r, struct rp_buf *out)
{
    if (!r->programs_known)
        return;
    put_program("old", &r->old, out);
    if (r->noise)
        rp_buf_puts(out, "new  a copy of old: nothing should be convicted\n");
    else
        put_program("new", &r->new, out);
    rp_buf_putc(out, '\n');
}

static void emit_text(const struct rp_bench_report *r, struct rp_buf *out)
{
    put_programs(r, out);
    put_table(r, out);
    rp_buf_putc(out, '\n');
    put_summary(r, "", out);
}

static void emit_markdown(const struct rp_bench_report *r, struct rp_buf *out)
{
    struct rp_buf cell = {0};

    rp_buf_putc(out, '|');
    for (size_t c = 0; c < COLUMNS; c++)
        rp_buf_printf(out, " %s |", head_of(r, c));
    rp_buf_puts(out, "\n|");
    for (size_t c = 0; c < COLUMNS; c++)
        rp_buf_puts(out, is_left(c) ? " --- |" : " ---: |");
    rp_buf_putc(out, '\n');
    for (size_t i = 0; i < r->verdicts->rows.n; i++) {
        rp_buf_putc(out, '|');
        for (size_t c = 0; c < COLUMNS; c++) {
            rp_buf_clear(&cell);
            put_cell(r, &r->verdicts->rows.at[i], c, &cell);
            rp_buf_putc(out, ' ');
            rp_text_markdown(out, rp_buf_text(&cell));
            rp_buf_puts(out, " |");
        }
        rp_buf_putc(out, '\n');
    }
    out->failed |= cell.failed;
    rp_buf_release(&cell);
    rp_buf_putc(out, '\n');
    put_summary(r, "- ", out);
}

const struct rp_bench_format rp_bench_formats[] = {
    {"text", emit_text},
    {"json", rp_bench_emit_json},
    {"csv", rp_bench_emit_csv},
    {"markdown", emit_markdown},
    {0},
};

const struct rp_bench_format *rp_bench_format_find(const char *name)
{
    for (const struct rp_bench_format *f = rp_bench_formats; f->name; f++) {
        if (!strcmp(f->name, name))
            return f;
    }
    return NULL;
}
