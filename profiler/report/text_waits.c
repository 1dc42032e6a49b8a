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
#include "report/utf8.h"

enum { PAYERS_MAX = 4, IDLE_MAX = 12, LOCKS_MAX = 10, HOLDERS_MAX = 3 };

static const double payer_worth = 0.03, unknown_worth = 0.001;

#define DOT " \xc2\xb7 "
#define PLUS_MINUS "\xc2\xb1"

static uint64_t whole(double n)
{
    return n > 0 ? (uint64_t)(n + 0.5) : 0;
}

static void put_head(const struct rp_report *r, const char *text, struct rp_buf *out)
{
    rp_buf_putc(out, '\n');
    rp_style_on(out, r->options.color, RP_STYLE_DIM);
    rp_buf_puts(out, text);
    rp_style_off(out, r->options.color);
    rp_buf_putc(out, '\n');
}

static void put_dim_wrapped(const struct rp_report *r, const char *text, size_t column, struct rp_buf *out)
{
    rp_buf_fill(out, ' ', (int)column);
    rp_style_on(out, r->options.color, RP_STYLE_DIM);
    rp_text_wrap(out, text, column, column, r->options.width);
    rp_style_off(out, r->options.color);
}

/* Its blanks do not break the line. */
static void put_tied(struct rp_buf *out, size_t from)
{
    for (size_t i = from; i < out->length; i++)
        out->data[i] = out->data[i] == ' ' ? RP_TEXT_TIE : out->data[i];
}

static const char *wait_name(const struct rp_report *r, uint32_t category)
{
    return category == RP_WAIT_UNSEEN ? "stack not seen" : cat_rules_category(r->rules, category)->name;
}

static void put_category(const struct rp_report *r, uint32_t category, size_t column, struct rp_buf *out)
{
    size_t room = r->options.width > column + 20 ? r->options.width - column : 0;

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

    rp_text_symbol(out, rp_profile_text(r->profile, f->name), room > tail + 10 ? room - tail : room, r->options.verbose);
    if (!tail)
        return;
    rp_style_on(out, r->options.color, RP_STYLE_DIM);
    rp_buf_puts(out, "  (in ");
    rp_text_fit(out, module, 0);
    rp_buf_putc(out, ')');
    rp_style_off(out, r->options.color);
}

/* ---- the header ---- */

/* After which waits a thread was slow to get a CPU is not known: at most all that was not idle. */
static double delayed(const struct rp_report *r)
{
    double sum = 0;

    for (size_t i = 0; i < r->threads.rows.n; i++)
        sum += r->threads.rows.at[i].woken < r->threads.rows.at[i].waiting ? r->threads.rows.at[i].woken : r->threads.rows.at[i].waiting;
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

    for (size_t i = 0; i < row->payers.n && i < PAYERS_MAX; i++) {
        const struct rp_wait_payer *payer = &row->payers.at[i];
        size_t from;

        if (payer->seconds < payer_worth * row->seconds || payer->category == cat_rules_uncategorized(r->rules))
            continue;
        rp_buf_puts(&b, b.length ? ", " : "for ");
        from = b.length;
        rp_text_fit(&b, cat_rules_category(r->rules, payer->category)->name, 60);
        rp_buf_putc(&b, ' ');
        rp_figure_put_duration(&b, payer->seconds);
        put_tied(&b, from);
    }
    if (b.length)
        put_dim_wrapped(r, rp_buf_text(&b), column, out);
    out->failed |= b.failed;
    rp_buf_release(&b);
}

void rp_text_waiting(const struct rp_report *r, struct rp_buf *out)
{
    const struct rp_waits *w = r->waits;
    bool estimated = false;
    size_t names;

    for (size_t i = 0; i < w->rows.n; i++)
        estimated |= w->rows.at[i].half > 0;
    names = estimated ? 66 : 58;
    if (!w->rows.n)
        return;
    put_head(r,
             estimated ? "  waiting   " PLUS_MINUS "95 %  of wall   waits    mean     p50     p99     max   waiting for"
                       : "  waiting  of wall   waits    mean     p50     p99     max   waiting for",
             out);
    for (size_t i = 0; i < w->rows.n; i++) {
        const struct rp_wait_row *row = &w->rows.at[i];
        char text[32];

        rp_figure_right_duration(out, row->seconds, 9);
        if (estimated && row->half > 0)
            rp_figure_right_duration(out, row->half, 8);
        else if (estimated)
            rp_buf_fill(out, ' ', 8);
        rp_figure_percent(text, sizeof text, row->share);
        rp_figure_right(out, text, 9);
        rp_figure_right_count(out, whole(row->waits), 8);
        rp_figure_right_duration(out, row->mean_s, 8);
        rp_figure_right_duration(out, row->p50_s, 8);
        rp_figure_right_duration(out, row->p99_s, 8);
        rp_figure_right_duration(out, row->max_s, 8);
        put_category(r, row->category, names + 3, out);
        rp_buf_putc(out, '\n');
        put_wait_payers(r, row, estimated ? 19 : 11, out);
    }
}

void rp_text_idle(const struct rp_report *r, struct rp_buf *out)
{
    const struct rp_waits *w = r->waits;
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
        rp_buf_puts(out, "  ");
        rp_text_count(out, g->threads);
        rp_buf_putc(out, ' ');
        rp_text_fit(out, g->name, 40);
        rp_buf_puts(out, DOT);
        rp_buf_printf(out, "%.1f s" DOT "rule %s\n", g->seconds, cat_rules_rule(r->rules, g->rule)->id);
    }
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
        rp_buf_puts(out, "   preempted (could run, another had the CPU)\n");
    }
}

/* ---- threads ---- */

void rp_text_threads(const struct rp_report *r, struct rp_buf *out)
{
    const struct rp_profile *p = r->profile;
    double run = (double)p->run.seconds_ns / 1e9;

    put_head(r, "      cpu  cores  preempted    waiting  of which waiting for a CPU       idle   thread", out);
    for (size_t i = 0; i < r->threads.rows.n; i++) {
        const struct rp_thread_row *row = &r->threads.rows.at[i];
        const struct rp_profile_thread *t = &p->threads.at[row->thread];
        double watched = row->wall > 0 ? row->wall : run;

        rp_figure_right_duration(out, row->cpu, 9);
        rp_buf_printf(out, "  %5.2f", watched > 0 ? row->cpu / watched : 0);
        rp_figure_right_duration(out, row->preempted, 11);
        rp_figure_right_duration(out, row->waiting, 11);
        rp_figure_right_duration(out, row->woken, 28);
        rp_figure_right_duration(out, row->idle, 11);
        rp_buf_puts(out, "   ");
        rp_text_fit(out, rp_profile_text(p, t->comm), 40);
        rp_buf_printf(out, " (%" PRIu32 ")", t->tid);
        if (p->processes.n > 1)
            rp_buf_printf(out, " of pid %" PRIu32, p->processes.at[t->process].pid);
        rp_buf_putc(out, '\n');
    }
}

/* ---- locks ---- */

void rp_text_lock_name(const struct rp_report *r, uint32_t row, size_t room, struct rp_buf *out)
{
    const struct rp_lock_row *l = &r->locks.rows.at[row];
    const struct rp_lock *lock = &r->profile->locks.at[l->lock];
    const char *image = lock->image ? rp_profile_text(r->profile, r->profile->images.at[lock->image].name) : "";

    if (lock->database) {
        rp_buf_puts(out, "SQLite mutex of ");
        rp_text_fit(out, rp_profile_text(r->profile, lock->database), room > 60 ? room - 40 : room);
    } else if (lock->symbol) {
        rp_text_symbol(out, rp_profile_text(r->profile, lock->symbol), room, r->options.verbose);
        if (*image) {
            rp_buf_puts(out, " (in ");
            rp_text_fit(out, image, 40);
            rp_buf_putc(out, ')');
        }
    } else if (*image) {
        rp_text_fit(out, image, 40);
        rp_buf_printf(out, "+0x%" PRIx64, lock->addr);
    } else {
        rp_buf_printf(out, "lock at 0x%" PRIx64, lock->address);
    }
    if (!lock->symbol && l->waiter != UINT32_MAX) {
        rp_buf_puts(out, ", taken by ");
        rp_text_symbol(out, rp_profile_text(r->profile, r->profile->functions.at[l->waiter].name), room > 50 ? room - 30 : room, false);
    }
}

static void put_part(const struct rp_report *r, const struct rp_lock_part *part, double of, struct rp_buf *out)
{
    const struct rp_profile *p = r->profile;
    size_t from = out->length;

    if (part->category != RP_WAIT_UNSEEN) {
        rp_buf_puts(out, part->blocked ? "blocked in " : "");
        rp_text_fit(out, cat_rules_category(r->rules, part->category)->name, 60);
    } else {
        rp_text_fit(out, rp_profile_text(p, p->threads.at[part->thread].comm), 40);
        rp_buf_printf(out, " (%" PRIu32 ")", p->threads.at[part->thread].tid);
    }
    rp_buf_printf(out, " %.0f %%", 100 * part->waits / of);
    put_tied(out, from);
}

/* "held by worker (12) 60 %, worker (13) 38 %": of the waits whose holder, or its doing, is known the largest parts. */
static void put_parts(const struct rp_report *r, const char *what, const struct rp_lock_part *parts, size_t n, double of, size_t column,
                      struct rp_buf *out)
{
    struct rp_buf b = {0};
    double told = 0;
    size_t shown = 0;

    for (size_t i = 0; i < n && shown < HOLDERS_MAX && of > 0; i++) {
        if ((parts[i].category == RP_WAIT_UNSEEN && parts[i].thread == UINT32_MAX) || parts[i].waits < payer_worth * of)
            continue;
        rp_buf_puts(&b, shown++ ? ", " : what);
        put_part(r, &parts[i], of, &b);
        told += parts[i].waits;
    }
    if (shown && of - told > payer_worth * of)
        rp_buf_printf(&b, ", other or unknown %.0f %%", 100 * (of - told) / of);
    if (b.length)
        put_dim_wrapped(r, rp_buf_text(&b), column, out);
    out->failed |= b.failed;
    rp_buf_release(&b);
}

void rp_text_locks(const struct rp_report *r, struct rp_buf *out)
{
    const struct rp_lock_table *t = &r->locks;
    size_t column = 56;
    bool of_all = false;

    if (!t->rows.n) {
        rp_buf_puts(out, "\nNo lock was waited for.\n");
        return;
    }
    put_head(r, "   waited  of wall      waits   longest  holder known   lock", out);
    for (uint32_t i = 0; i < t->rows.n && i < LOCKS_MAX; i++) {
        const struct rp_lock_row *row = &t->rows.at[i];
        char text[32];

        rp_figure_right_duration(out, row->seconds, 9);
        rp_figure_percent(text, sizeof text, row->share);
        rp_figure_right(out, text, 9);
        rp_figure_right_count(out, whole(row->waits), 11);
        rp_figure_right_duration(out, row->max_s, 10);
        rp_figure_percent(text, sizeof text, row->known);
        rp_figure_right(out, row->of_all ? "?" : text, 14);
        of_all |= row->of_all;
        rp_buf_puts(out, "   ");
        rp_text_lock_name(r, i, r->options.width > column + 30 ? r->options.width - column : 0, out);
        rp_buf_putc(out, '\n');
        put_parts(r, "held by ", row->holders.at, row->holders.n, row->parted, 14, out);
        put_parts(r, "doing ", row->doings.at, row->doings.n, row->parted, 14, out);
    }
    if (t->rows.n > LOCKS_MAX)
        rp_buf_printf(out, "  and %zu locks more\n", t->rows.n - LOCKS_MAX);
    if (of_all)
        rp_buf_puts(out, "  holders are those of all threads' waits: the file does not tell whose (record it anew)\n");
    if (t->unnamed > 0) {
        rp_buf_puts(out, "  ");
        rp_figure_put_duration(out, t->unnamed);
        rp_buf_puts(out, " of lock waits for locks that are not known\n");
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
    for (size_t i = 0; i < f->matched.n && i < LOCKS_MAX; i++) {
        rp_style_on(out, r->options.color, RP_STYLE_BOLD);
        rp_text_function_name(r, f->matched.at[i], r->options.width, out);
        rp_style_off(out, r->options.color);
        rp_buf_putc(out, '\n');
    }
    if (f->matched.n > LOCKS_MAX)
        rp_buf_printf(out, "and %zu functions more\n", f->matched.n - LOCKS_MAX);
    put_share(r, "self", f->self, f->self_low, f->self_high, out);
    put_share(r, "total", f->total, f->total_low, f->total_high, out);
    if (f->waits > 0) {
        rp_buf_puts(out, "  waits ");
        rp_figure_put_duration(out, f->seconds);
        rp_buf_puts(out, " in ");
        rp_text_count(out, whole(f->waits));
        rp_buf_puts(out, whole(f->waits) == 1 ? " wait" DOT : " waits" DOT);
        rp_figure_put_percent(out, f->share);
        rp_buf_puts(out, " of the time that was not idle\n");
    }
}
