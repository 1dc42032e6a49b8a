/* SPDX-License-Identifier: MIT */
/* See text_waits.h.
 *
 * The trap is false precision: totals come from switch records and are exact, how they split over stacks may be estimated. Where it is, there is a column of
 * intervals; where nothing was thinned out, there is none. */
#include "report/text_waits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/figures.h"
#include "report/style.h"
#include "report/text_columns.h"
#include "report/utf8.h"

enum { IDLE_MAX = 12, FUNCTIONS_MAX = 10 };

/* In columns: what a name has at least before columns of numbers are dropped, a symbol before its module is. */
enum { NAME_ROOM = 30, THREAD_ROOM = 20, SYMBOL_LEAST = 16 };

static const double unknown_worth = 0.001;

#define DOT " \xc2\xb7 "
#define PLUS_MINUS "\xc2\xb1"

static void put_head(const struct rp_report *r, const char *text, struct rp_buf *out)
{
    rp_buf_putc(out, '\n');
    rp_style_on(out, r->options.color, RP_STYLE_DIM);
    rp_buf_puts(out, text);
    rp_style_off(out, r->options.color);
    rp_buf_putc(out, '\n');
}

static const char *wait_name(const struct rp_report *r, uint32_t category)
{
    return category == RP_WAIT_UNSEEN ? "stack not seen" : cat_rules_category(r->rules, category)->name;
}

static void put_category(const struct rp_report *r, uint32_t category, size_t column, struct rp_buf *out)
{
    size_t room = rp_text_room(r->options.width, column);

    rp_buf_puts(out, "   ");
    if (category != RP_WAIT_UNSEEN)
        rp_style_color(out, r->options.color, cat_rules_category(r->rules, category)->color);
    rp_text_fit(out, wait_name(r, category), room);
    rp_style_off(out, r->options.color);
}

void rp_text_function_name(const struct rp_report *r, uint32_t function, size_t room, struct rp_buf *out)
{
    const struct rp_function *f = &r->profile->functions.at[function];
    const char *module = rp_profile_text(r->profile, f->module);
    size_t tail = f->how == RP_NAME_OFFSET || f->how == RP_NAME_MARK ? 0 : rp_text_columns(module, strlen(module)) + sizeof "  (in )" - 1;

    if (room && tail + SYMBOL_LEAST > room)
        tail = 0;
    rp_text_symbol(out, rp_profile_text(r->profile, f->name), room - (room ? tail : 0), r->options.verbose);
    if (!tail)
        return;
    rp_style_on(out, r->options.color, RP_STYLE_DIM);
    rp_buf_puts(out, "  (in ");
    rp_text_fit(out, module, 0);
    rp_buf_putc(out, ')');
    rp_style_off(out, r->options.color);
}

void rp_text_thread_name(const struct rp_report *r, uint32_t thread, size_t column, struct rp_buf *out)
{
    const struct rp_profile *p = r->profile;
    const struct rp_profile_thread *t = &p->threads.at[thread];
    char tail[48];
    int length = snprintf(tail, sizeof tail, " (%" PRIu32 ")", t->tid);

    if (p->processes.n > 1)
        snprintf(tail + length, sizeof tail - (size_t)length, " of pid %" PRIu32, p->processes.at[t->process].pid);
    rp_text_fit(out, rp_profile_text(p, t->comm), rp_text_room(r->options.width, column + strlen(tail)));
    rp_buf_puts(out, tail);
}

/* ---- the header ---- */

static double delayed(const struct rp_report *r)
{
    double sum = 0;

    for (size_t i = 0; i < r->threads.rows.n; i++)
        sum += r->threads.rows.at[i].woken;
    return sum;
}

void rp_text_time(const struct rp_report *r, struct rp_buf *out)
{
    const struct rp_waits *w = r->waits;
    double run = (double)r->profile->run.seconds_ns / 1e9, woken = delayed(r);
    struct rp_buf b = {0};

    if (run > 0 && w->cpu > 0) {
        rp_buf_printf(&b, "%.2f", w->cpu / run);
        if (r->profile->run.cpus)
            rp_buf_printf(&b, " of %" PRIu32 " CPU%s used", r->profile->run.cpus, r->profile->run.cpus == 1 ? "" : "s");
        else
            rp_buf_puts(&b, " CPUs used");
        rp_buf_puts(&b, DOT);
    }
    rp_figure_put_duration(&b, w->cpu);
    rp_buf_puts(&b, " on CPU" DOT);
    if (w->preempted > 0) {
        rp_figure_put_duration(&b, w->preempted);
        rp_buf_puts(&b, " preempted" DOT);
    }
    rp_figure_put_duration(&b, w->waiting);
    rp_buf_puts(&b, " waiting");
    if (woken >= 0.01 * w->waiting && woken >= 0.001) {
        rp_buf_puts(&b, " (of which up to ");
        rp_figure_put_duration(&b, woken);
        rp_buf_puts(&b, " for a CPU)");
    }
    if (w->idle_seconds > 0 && !w->keep_idle) {
        rp_buf_puts(&b, DOT);
        rp_figure_put_duration(&b, w->idle_seconds);
        rp_buf_printf(&b, " idle in %" PRIu32 " thread%s, dropped", w->idle_threads, w->idle_threads == 1 ? "" : "s");
    }
    if (w->unknown > 0 && w->unknown >= unknown_worth * w->wall) {
        rp_buf_puts(&b, DOT);
        rp_figure_put_duration(&b, w->unknown);
        rp_buf_puts(&b, " unknown (switch records are missing)");
    }
    rp_text_wrap(out, rp_buf_text(&b), 0, 2, r->options.width);
    out->failed |= b.failed;
    rp_buf_release(&b);
}

/* ---- waiting ---- */

static void put_wait_payers(const struct rp_report *r, const struct rp_wait_row *row, size_t column, struct rp_buf *out)
{
    struct rp_buf b = {0};

    for (size_t i = 0; i < row->payers.n && i < RP_TEXT_PAYERS_MAX; i++) {
        const struct rp_wait_payer *payer = &row->payers.at[i];
        size_t from, room;

        if (payer->seconds < rp_text_payer_worth * row->seconds || payer->category == cat_rules_uncategorized(r->rules))
            continue;
        rp_buf_puts(&b, b.length ? ", " : "for ");
        from = b.length;
        room = rp_text_room(r->options.width, column + sizeof "for  999 ms," - 1);
        rp_text_fit(&b, cat_rules_category(r->rules, payer->category)->name, room && room < RP_TEXT_PAYER_COLUMNS ? room : RP_TEXT_PAYER_COLUMNS);
        rp_buf_putc(&b, ' ');
        rp_figure_put_duration(&b, payer->seconds);
        rp_text_tie(&b, from);
    }
    if (b.length)
        rp_text_dim(r, rp_buf_text(&b), column, out);
    out->failed |= b.failed;
    rp_buf_release(&b);
}

enum wait_column { WAIT_SECONDS, WAIT_HALF, WAIT_SHARE, WAIT_N, WAIT_MEAN, WAIT_P50, WAIT_P99, WAIT_MAX, WAIT_COLUMNS };

static void put_wait_cell(const struct rp_wait_row *row, enum wait_column which, size_t columns, struct rp_buf *out)
{
    const double durations[WAIT_COLUMNS] = {[WAIT_SECONDS] = row->seconds, [WAIT_HALF] = row->half,   [WAIT_MEAN] = row->mean_s,
                                            [WAIT_P50] = row->p50_s,       [WAIT_P99] = row->p99_s, [WAIT_MAX] = row->max_s};
    char text[32];

    if (which == WAIT_SHARE) {
        rp_figure_percent(text, sizeof text, row->share);
        rp_figure_right(out, text, columns);
    } else if (which == WAIT_N) {
        rp_figure_right_count(out, rp_text_whole(row->waits), columns);
    } else if (which == WAIT_HALF && !(row->half > 0)) {
        rp_buf_fill(out, ' ', (int)columns);
    } else {
        rp_figure_right_duration(out, durations[which], columns);
    }
}

void rp_text_waiting(const struct rp_report *r, struct rp_buf *out)
{
    static const struct rp_text_column all[WAIT_COLUMNS] = {[WAIT_SECONDS] = {"waiting", 9, 0}, [WAIT_HALF] = {PLUS_MINUS "95 %", 8, 0}, [WAIT_SHARE] = {"of wall", 9, 0},
                                                    [WAIT_N] = {"waits", 8, 0},         [WAIT_MEAN] = {"mean", 8, 2},            [WAIT_P50] = {"p50", 8, 4},
                                                    [WAIT_P99] = {"p99", 8, 3},         [WAIT_MAX] = {"max", 8, 1}};
    const struct rp_waits *w = r->waits;
    struct rp_text_column columns[WAIT_COLUMNS];
    bool kept[WAIT_COLUMNS], estimated = false;
    size_t names;

    for (size_t i = 0; i < w->rows.n; i++)
        estimated |= w->rows.at[i].half > 0;
    if (!w->rows.n)
        return;
    memcpy(columns, all, sizeof columns);
    columns[WAIT_HALF].columns = estimated ? columns[WAIT_HALF].columns : 0;
    names = rp_text_keep_columns(r, columns, WAIT_COLUMNS, NAME_ROOM, kept);
    kept[WAIT_HALF] = estimated;
    rp_text_heads(r, columns, WAIT_COLUMNS, kept, "waiting for", out);
    for (size_t i = 0; i < w->rows.n; i++) {
        const struct rp_wait_row *row = &w->rows.at[i];

        for (enum wait_column c = 0; c < WAIT_COLUMNS; c++)
            if (kept[c])
                put_wait_cell(row, c, columns[c].columns, out);
        put_category(r, row->category, names, out);
        rp_buf_putc(out, '\n');
        put_wait_payers(r, row, estimated ? 19 : 11, out);
    }
}

void rp_text_idle(const struct rp_report *r, struct rp_buf *out)
{
    const struct rp_waits *w = r->waits;
    struct rp_buf line = {0};
    double rest = 0;

    if (!w->idle.n)
        return;
    put_head(r, "dropped as idle (--idle keeps it)", out);
    for (size_t i = 0; i < w->idle.n; i++) {
        const struct rp_idle_group *g = &w->idle.at[i];

        if (i >= IDLE_MAX) {
            rest += g->seconds;
            continue;
        }
        rp_buf_clear(&line);
        rp_text_count(&line, g->threads);
        rp_buf_putc(&line, ' ');
        rp_text_fit(&line, g->name, 40);
        rp_buf_printf(&line, DOT "%.1f s" DOT "rule %s", g->seconds, cat_rules_rule(r->rules, g->rule)->id);
        rp_buf_puts(out, "  ");
        rp_text_wrap(out, rp_buf_text(&line), 2, 4, r->options.width);
    }
    out->failed |= line.failed;
    rp_buf_release(&line);
    if (w->idle.n > IDLE_MAX)
        rp_buf_printf(out, "  and %zu groups more" DOT "%.1f s\n", w->idle.n - IDLE_MAX, rest);
}

/* ---- the wall clock ---- */

static void put_wall_row(const struct rp_report *r, double share, double half, double seconds, struct rp_buf *out)
{
    char text[32];

    rp_figure_right_duration(out, seconds, 9);
    rp_figure_percent(text, sizeof text, share);
    rp_figure_right(out, text, 9);
    snprintf(text, sizeof text, half < 0.00095 ? "%.2f" : "%.1f", 100 * half);
    rp_figure_right(out, half > 0 ? text : "", 8);
    (void)r;
}

/* The next row of either kind, heaviest first: costs are in the order of their samples, waits in that of their seconds. */
void rp_text_wall(const struct rp_report *r, struct rp_buf *out)
{
    const struct rp_waits *w = r->waits;
    double on_cpu = w->busy > 0 ? w->cpu / w->busy : 0;
    size_t c = 0, k = 0;

    put_head(r, "  seconds    share   " PLUS_MINUS "95 %   category, on the wall clock", out);
    while (c < r->categories.rows.n || k < w->rows.n) {
        const struct rp_category_row *cost = c < r->categories.rows.n ? &r->categories.rows.at[c] : NULL;
        const struct rp_wait_row *wait = k < w->rows.n ? &w->rows.at[k] : NULL;

        if (cost && (!wait || cost->share * w->cpu >= wait->seconds || (c + 1 == r->categories.rows.n && k == w->rows.n))) {
            c++;
            if (!cost->samples)
                continue;
            put_wall_row(r, cost->share * on_cpu, (cost->high - cost->low) / 2 * on_cpu, cost->share * w->cpu, out);
            put_category(r, cost->category, 29, out);
        } else if (wait) {
            k++;
            put_wall_row(r, wait->share, w->busy > 0 ? wait->half / w->busy : 0, wait->seconds, out);
            put_category(r, wait->category, 29, out);
        }
        rp_buf_putc(out, '\n');
    }
    if (w->preempted > 0) {
        put_wall_row(r, w->preempted / w->busy, 0, w->preempted, out);
        rp_buf_puts(out, "   ");
        rp_text_wrap(out, "preempted (could run, another had the CPU)", 29, 31, r->options.width);
    }
}

/* ---- threads ---- */

void rp_text_threads(const struct rp_report *r, struct rp_buf *out)
{
    static const struct rp_text_column wide[] = {{"cpu", 9, 0}, {"cores", 7, 2}, {"preempted", 11, 1}, {"waiting", 11, 0}, {"of which waiting for a CPU", 28, 3}, {"idle", 11, 0}};
    enum { N = sizeof wide / sizeof *wide };
    const struct rp_profile *p = r->profile;
    double run = (double)p->run.seconds_ns / 1e9;
    bool kept[N];
    size_t names = rp_text_keep_columns(r, wide, N, THREAD_ROOM, kept);

    rp_text_heads(r, wide, N, kept, "thread", out);
    for (size_t i = 0; i < r->threads.rows.n; i++) {
        const struct rp_thread_row *row = &r->threads.rows.at[i];
        double watched = row->wall > 0 ? row->wall : run;
        const double durations[N] = {row->cpu, 0, row->preempted, row->waiting, row->woken, row->idle};

        for (size_t c = 0; c < N; c++) {
            if (kept[c] && c == 1)
                rp_buf_printf(out, "  %5.2f", watched > 0 ? row->cpu / watched : 0);
            else if (kept[c])
                rp_figure_right_duration(out, durations[c], wide[c].columns);
        }
        rp_buf_fill(out, ' ', RP_TEXT_NAME_GAP);
        rp_text_thread_name(r, row->thread, names, out);
        rp_buf_putc(out, '\n');
    }
}

/* ---- one function ---- */

static void put_share(const struct rp_report *r, const char *what, uint64_t samples, double low, double high, struct rp_buf *out)
{
    double share = r->function.samples ? (double)samples / (double)r->function.samples : 0;

    rp_buf_printf(out, "  %-6s", what);
    if (samples) {
        rp_figure_put_percent(out, share);
        rp_buf_printf(out, " " PLUS_MINUS "%.1f", 50 * (high - low));
    } else {
        rp_buf_puts(out, "< ");
        rp_figure_put_percent(out, high);
    }
    rp_buf_puts(out, DOT);
    rp_text_count(out, samples);
    rp_buf_puts(out, " of ");
    rp_text_count(out, r->function.samples);
    rp_buf_puts(out, " samples\n");
}

void rp_text_function(const struct rp_report *r, struct rp_buf *out)
{
    const struct rp_function_view *f = &r->function;

    rp_buf_putc(out, '\n');
    for (size_t i = 0; i < f->matched.n && i < FUNCTIONS_MAX; i++) {
        rp_style_on(out, r->options.color, RP_STYLE_BOLD);
        rp_text_function_name(r, f->matched.at[i], r->options.width, out);
        rp_style_off(out, r->options.color);
        rp_buf_putc(out, '\n');
    }
    if (f->matched.n > FUNCTIONS_MAX)
        rp_buf_printf(out, "and %zu functions more\n", f->matched.n - FUNCTIONS_MAX);
    put_share(r, "self", f->self, f->self_low, f->self_high, out);
    put_share(r, "total", f->total, f->total_low, f->total_high, out);
    if (f->waits > 0) {
        struct rp_buf b = {0};

        rp_buf_puts(&b, "waits ");
        rp_figure_put_duration(&b, f->seconds);
        rp_buf_puts(&b, " in ");
        rp_text_count(&b, rp_text_whole(f->waits));
        rp_buf_puts(&b, rp_text_whole(f->waits) == 1 ? " wait" DOT : " waits" DOT);
        rp_figure_put_percent(&b, f->share);
        rp_buf_puts(&b, " of the time that was not idle");
        rp_buf_puts(out, "  ");
        rp_text_wrap(out, rp_buf_text(&b), 2, 8, r->options.width);
        out->failed |= b.failed;
        rp_buf_release(&b);
    }
}
