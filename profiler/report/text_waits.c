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

enum { PAYERS_MAX = 4, PAYER_COLUMNS = 60, IDLE_MAX = 12, LOCKS_MAX = 10, HOLDERS_MAX = 3 };

/* In columns: what stands before a name, what a name has at least before columns of numbers are dropped, a symbol before its module is. */
enum { NAME_GAP = 3, NAME_ROOM = 30, THREAD_ROOM = 20, LOCK_ROOM = 36, SYMBOL_LEAST = 16, PARTS_COLUMN = 14 };

static const double payer_worth = 0.03, unknown_worth = 0.001;

/* Below this part the known holders do not stand for the rest, which were shorter waits: then it is said why, and parts are of the known ones. */
static const double holders_few = 0.5;

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

/* Columns of numbers left of a name. Where the name would have too little room, those go that can best be missed. */
struct column {
    const char *head;
    size_t columns;
    unsigned drop; /* the highest goes first; 0: never */
};

/* Sets `kept`; gives the column where the name begins. */
static size_t keep_columns(const struct rp_report *r, const struct column *all, size_t n, size_t name, bool *kept)
{
    size_t taken = NAME_GAP, gone = 0;

    for (size_t i = 0; i < n; i++) {
        kept[i] = true;
        taken += all[i].columns;
    }
    while (r->options.width && taken + name > r->options.width && gone < n) {
        size_t next = n;

        for (size_t i = 0; i < n; i++)
            if (kept[i] && all[i].drop && (next == n || all[i].drop > all[next].drop))
                next = i;
        if (next == n)
            break;
        kept[next] = false;
        taken -= all[next].columns;
        gone++;
    }
    return taken;
}

static void put_heads(const struct rp_report *r, const struct column *all, size_t n, const bool *kept, const char *name, struct rp_buf *out)
{
    rp_buf_putc(out, '\n');
    rp_style_on(out, r->options.color, RP_STYLE_DIM);
    for (size_t i = 0; i < n; i++)
        if (kept[i])
            rp_figure_right(out, all[i].head, all[i].columns);
    rp_buf_fill(out, ' ', NAME_GAP);
    rp_buf_puts(out, name);
    rp_style_off(out, r->options.color);
    rp_buf_putc(out, '\n');
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

    for (size_t i = 0; i < row->payers.n && i < PAYERS_MAX; i++) {
        const struct rp_wait_payer *payer = &row->payers.at[i];
        size_t from, room;

        if (payer->seconds < payer_worth * row->seconds || payer->category == cat_rules_uncategorized(r->rules))
            continue;
        rp_buf_puts(&b, b.length ? ", " : "for ");
        from = b.length;
        room = rp_text_room(r->options.width, column + sizeof "for  999 ms," - 1);
        rp_text_fit(&b, cat_rules_category(r->rules, payer->category)->name, room && room < PAYER_COLUMNS ? room : PAYER_COLUMNS);
        rp_buf_putc(&b, ' ');
        rp_figure_put_duration(&b, payer->seconds);
        put_tied(&b, from);
    }
    if (b.length)
        put_dim_wrapped(r, rp_buf_text(&b), column, out);
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
        rp_figure_right_count(out, whole(row->waits), columns);
    } else if (which == WAIT_HALF && !(row->half > 0)) {
        rp_buf_fill(out, ' ', (int)columns);
    } else {
        rp_figure_right_duration(out, durations[which], columns);
    }
}

void rp_text_waiting(const struct rp_report *r, struct rp_buf *out)
{
    static const struct column all[WAIT_COLUMNS] = {[WAIT_SECONDS] = {"waiting", 9, 0}, [WAIT_HALF] = {PLUS_MINUS "95 %", 8, 0}, [WAIT_SHARE] = {"of wall", 8, 0},
                                                    [WAIT_N] = {"waits", 8, 0},         [WAIT_MEAN] = {"mean", 8, 2},            [WAIT_P50] = {"p50", 8, 4},
                                                    [WAIT_P99] = {"p99", 8, 3},         [WAIT_MAX] = {"max", 8, 1}};
    const struct rp_waits *w = r->waits;
    struct column columns[WAIT_COLUMNS];
    bool kept[WAIT_COLUMNS], estimated = false;
    size_t names;

    for (size_t i = 0; i < w->rows.n; i++)
        estimated |= w->rows.at[i].half > 0;
    if (!w->rows.n)
        return;
    memcpy(columns, all, sizeof columns);
    columns[WAIT_HALF].columns = estimated ? columns[WAIT_HALF].columns : 0;
    names = keep_columns(r, columns, WAIT_COLUMNS, NAME_ROOM, kept);
    kept[WAIT_HALF] = estimated;
    put_heads(r, columns, WAIT_COLUMNS, kept, "waiting for", out);
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
    static const struct column wide[] = {{"cpu", 9, 0}, {"cores", 7, 2}, {"preempted", 11, 1}, {"waiting", 11, 0}, {"of which waiting for a CPU", 28, 3}, {"idle", 11, 0}};
    enum { N = sizeof wide / sizeof *wide };
    const struct rp_profile *p = r->profile;
    double run = (double)p->run.seconds_ns / 1e9;
    bool kept[N];
    size_t names = keep_columns(r, wide, N, THREAD_ROOM, kept);

    put_heads(r, wide, N, kept, "thread", out);
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
        rp_buf_fill(out, ' ', NAME_GAP);
        rp_text_thread_name(r, row->thread, names, out);
        rp_buf_putc(out, '\n');
    }
}

/* ---- locks ---- */

static void put_lock_name(const struct rp_report *r, uint32_t row, size_t room, struct rp_buf *out)
{
    const struct rp_lock *lock = &r->profile->locks.at[r->locks.rows.at[row].lock];
    const char *image = lock->image ? rp_profile_text(r->profile, r->profile->images.at[lock->image].name) : "";

    if (lock->database) {
        rp_buf_puts(out, "SQLite mutex of ");
        rp_text_fit(out, rp_profile_text(r->profile, lock->database), room > 60 ? room - 16 : room);
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
}

/* Who asks for a lock that has no symbol of its own tells more of it than its address does. */
static void put_taker(const struct rp_report *r, uint32_t row, size_t room, struct rp_buf *out)
{
    const struct rp_lock_row *l = &r->locks.rows.at[row];

    if (!r->profile->locks.at[l->lock].symbol && l->waiter != UINT32_MAX) {
        rp_buf_puts(out, "taken by ");
        rp_text_symbol(out, rp_profile_text(r->profile, r->profile->functions.at[l->waiter].name), room > 50 ? room - 30 : room, false);
    }
}

/* True: who takes it does not fit beside it and is left out. */
static bool leaves_taker_out(const struct rp_report *r, uint32_t row, size_t room, struct rp_buf *out)
{
    struct rp_buf name = {0}, taker = {0};
    bool fits;

    put_lock_name(r, row, room, &name);
    put_taker(r, row, room, &taker);
    fits = !taker.length || !room || rp_text_columns(rp_buf_text(&name), name.length) + 2 + rp_text_columns(rp_buf_text(&taker), taker.length) <= room;
    rp_text_fit(out, rp_buf_text(&name), room);
    if (fits && taker.length)
        rp_buf_printf(out, ", %s", rp_buf_text(&taker));
    out->failed |= name.failed || taker.failed;
    rp_buf_release(&name);
    rp_buf_release(&taker);
    return !fits;
}

void rp_text_lock_name(const struct rp_report *r, uint32_t row, size_t room, struct rp_buf *out)
{
    (void)leaves_taker_out(r, row, room, out);
}

/* In a table who takes it has a line of its own where there is no room beside it. */
static void put_lock(const struct rp_report *r, uint32_t row, size_t room, struct rp_buf *out)
{
    struct rp_buf taker = {0};
    bool left_out = leaves_taker_out(r, row, room, out);

    rp_buf_putc(out, '\n');
    if (left_out) {
        put_taker(r, row, 0, &taker);
        put_dim_wrapped(r, rp_buf_text(&taker), PARTS_COLUMN, out);
    }
    out->failed |= taker.failed;
    rp_buf_release(&taker);
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
    double told = 0, known = 0;
    size_t shown = 0;

    for (size_t i = 0; i < n; i++)
        known += parts[i].category != RP_WAIT_UNSEEN || parts[i].thread != UINT32_MAX ? parts[i].waits : 0;
    for (size_t i = 0; i < n && shown < HOLDERS_MAX && of > 0; i++) {
        if ((parts[i].category == RP_WAIT_UNSEEN && parts[i].thread == UINT32_MAX) || parts[i].waits < payer_worth * of)
            continue;
        rp_buf_puts(&b, shown++ ? ", " : what);
        put_part(r, &parts[i], of, &b);
        told += parts[i].waits;
    }
    if (shown && of - told > payer_worth * of)
        rp_buf_printf(&b, ", other%s %.0f %%", known < of ? " or unknown" : "s", 100 * (of - told) / of);
    if (b.length)
        put_dim_wrapped(r, rp_buf_text(&b), column, out);
    out->failed |= b.failed;
    rp_buf_release(&b);
}

bool rp_text_holders_few(const struct rp_lock_row *row)
{
    return !row->of_all && row->known < holders_few;
}

/* Whether owners of locks were asked for at all: in a replay and with ptrace they are not. */
static bool holders_looked_at(const struct rp_report *r)
{
    return r->profile->run.waits == 1 && strcmp(rp_profile_text(r->profile, r->profile->run.source), "replay") != 0;
}

/* Of how many waits the holder is known, and why of no more. */
static void put_why_few(const struct rp_report *r, const struct rp_lock_row *row, size_t column, struct rp_buf *out)
{
    struct rp_buf b = {0};

    if (!holders_looked_at(r)) {
        put_dim_wrapped(r, "holders are not known: this sampler does not look for them", column, out);
        return;
    }
    rp_buf_puts(&b, "holder known in ");
    rp_text_count(&b, whole(row->held));
    rp_buf_puts(&b, " of ");
    rp_text_count(&b, whole(row->stacked));
    rp_buf_puts(&b, whole(row->stacked) == 1 ? " wait seen: " : " waits seen: ");
    if (row->free > 0) {
        rp_text_count(&b, whole(row->free));
        rp_buf_puts(&b, whole(row->free) == 1 ? " was" : " were");
        rp_buf_puts(&b, " looked at when nobody held it any more");
    }
    if (row->held + row->free < row->stacked) {
        rp_buf_puts(&b, row->free > 0 ? ", the rest" : "the rest");
        rp_buf_puts(&b, " had ended before a look (one about every 10 ms), or the lock tells no holder");
    }
    put_dim_wrapped(r, rp_buf_text(&b), column, out);
    out->failed |= b.failed;
    rp_buf_release(&b);
}

static void put_holders(const struct rp_report *r, const struct rp_lock_row *row, struct rp_buf *out)
{
    bool few = rp_text_holders_few(row);
    double of = few ? row->held : row->parted;
    char held_by[64] = "held by ", doing[64] = "doing ";

    if (few) {
        put_why_few(r, row, PARTS_COLUMN, out);
        snprintf(held_by, sizeof held_by, "of the %" PRIu64 " held by ", whole(of));
        snprintf(doing, sizeof doing, "of the %" PRIu64 " doing ", whole(of));
    }
    put_parts(r, held_by, row->holders.at, row->holders.n, of, PARTS_COLUMN, out);
    put_parts(r, doing, row->doings.at, row->doings.n, of, PARTS_COLUMN, out);
}

static void put_lock_row(const struct rp_lock_row *row, const struct column *columns, const bool *kept, struct rp_buf *out)
{
    char text[32];

    rp_figure_right_duration(out, row->seconds, columns[0].columns);
    rp_figure_percent(text, sizeof text, row->share);
    rp_figure_right(out, text, columns[1].columns);
    if (kept[2])
        rp_figure_right_count(out, whole(row->waits), columns[2].columns);
    if (kept[3])
        rp_figure_right_duration(out, row->max_s, columns[3].columns);
    rp_figure_percent(text, sizeof text, row->known);
    if (kept[4])
        rp_figure_right(out, row->of_all ? "?" : text, columns[4].columns);
    rp_buf_fill(out, ' ', NAME_GAP);
}

static void put_line(const struct rp_report *r, const char *text, struct rp_buf *out)
{
    rp_buf_puts(out, "  ");
    rp_text_wrap(out, text, 2, 2, r->options.width);
}

static void put_locks_rest(const struct rp_report *r, bool of_all, struct rp_buf *out)
{
    const struct rp_lock_table *t = &r->locks;
    struct rp_buf b = {0};

    if (t->rows.n > LOCKS_MAX)
        rp_buf_printf(out, "  and %zu locks more\n", t->rows.n - LOCKS_MAX);
    if (of_all)
        put_line(r, "holders are those of all threads' waits: the file does not tell whose (record it anew)", out);
    if (t->unnamed > 0) {
        rp_figure_put_duration(&b, t->unnamed);
        rp_buf_puts(&b, " of lock waits for locks that are not known");
        put_line(r, rp_buf_text(&b), out);
    }
    out->failed |= b.failed;
    rp_buf_release(&b);
}

void rp_text_locks(const struct rp_report *r, struct rp_buf *out)
{
    static const struct column columns[] = {{"waited", 9, 0}, {"of wall", 9, 0}, {"waits", 11, 1}, {"longest", 10, 2}, {"holder known", 14, 3}};
    enum { N = sizeof columns / sizeof *columns };
    const struct rp_lock_table *t = &r->locks;
    bool kept[N], of_all = false;
    size_t names = keep_columns(r, columns, N, LOCK_ROOM, kept);

    if (!t->rows.n) {
        rp_buf_puts(out, "\nNo lock was waited for.\n");
        return;
    }
    put_heads(r, columns, N, kept, "lock", out);
    for (uint32_t i = 0; i < t->rows.n && i < LOCKS_MAX; i++) {
        const struct rp_lock_row *row = &t->rows.at[i];

        of_all |= row->of_all;
        put_lock_row(row, columns, kept, out);
        put_lock(r, i, rp_text_room(r->options.width, names), out);
        put_holders(r, row, out);
    }
    put_locks_rest(r, of_all, out);
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
        struct rp_buf b = {0};

        rp_buf_puts(&b, "waits ");
        rp_figure_put_duration(&b, f->seconds);
        rp_buf_puts(&b, " in ");
        rp_text_count(&b, whole(f->waits));
        rp_buf_puts(&b, whole(f->waits) == 1 ? " wait" DOT : " waits" DOT);
        rp_figure_put_percent(&b, f->share);
        rp_buf_puts(&b, " of the time that was not idle");
        rp_buf_puts(out, "  ");
        rp_text_wrap(out, rp_buf_text(&b), 2, 8, r->options.width);
        out->failed |= b.failed;
        rp_buf_release(&b);
    }
}
