/* SPDX-License-Identifier: MIT */
/* The report as one reads it: who was watched and how well, what it cost, where. Wide numbers are grouped (9 130), shares that are not zero never
 * read 0.0 %, and what was not seen reads `< x %`. The trees are in text_tree.c. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/stats.h"
#include "report/emit.h"
#include "report/figures.h"
#include "report/style.h"
#include "report/text_tree.h"
#include "report/text_columns.h"
#include "report/text_locks.h"
#include "report/text_waits.h"
#include "report/unclaimed.h"
#include "report/utf8.h"

enum { TARGETS_MAX = 6, CALLER_COLUMNS = 48, COMMAND_COLUMNS = 60, COMMAND_LEAST = 12 };

/* The part that came by inheritance is told from this share of a category on. */
static const double inherited_worth = 0.10;

#define DOT " \xc2\xb7 "
#define PLUS_MINUS "\xc2\xb1"

static uint64_t threads_of(const struct rp_profile *p, uint32_t process)
{
    uint64_t n = 0;

    for (size_t i = 0; i < p->threads.n; i++)
        n += p->threads.at[i].process == process;
    return n;
}

/* The command is cut so that the line it begins fits; where that would leave too little of it, the tail has a line of its own. A process that went through
 * several programs is told by its last one. */
static void put_target(const struct rp_report *r, uint32_t process, uint32_t programs, const struct rp_buf *tail, struct rp_buf *out)
{
    const struct rp_profile_process *p = &r->profile->processes.at[process];
    uint64_t threads = threads_of(r->profile, process);
    struct rp_buf command = {0}, rest = {0};
    size_t room = COMMAND_COLUMNS, width = r->options.width, taken, tail_columns = rp_text_columns(rp_buf_text(tail), tail->length);
    bool below;

    rp_report_command(r, p, &command);
    rp_buf_printf(&rest, " (pid %" PRIu32 ")", p->pid);
    if (programs > 1) {
        rp_buf_puts(&rest, ", last of ");
        rp_text_count(&rest, programs);
        rp_buf_puts(&rest, " programs");
    }
    rp_buf_puts(&rest, DOT);
    rp_text_count(&rest, threads);
    rp_buf_puts(&rest, threads == 1 ? " thread" : " threads");
    taken = rp_text_columns(rp_buf_text(&rest), rest.length);
    below = tail->length && width && (r->options.verbose ? rp_text_columns(rp_buf_text(&command), command.length) : COMMAND_LEAST) + taken + tail_columns > width;
    taken += below ? 0 : tail_columns;
    if (r->options.verbose)
        room = 0;
    else if (width && taken + room > width)
        room = rp_text_room(width, taken);
    rp_style_on(out, r->options.color, RP_STYLE_BOLD);
    rp_text_fit(out, rp_buf_text(&command), room);
    rp_style_off(out, r->options.color);
    rp_buf_puts(out, rp_buf_text(&rest));
    if (below) {
        rp_buf_puts(out, "\n  ");
        rp_text_wrap(out, rp_buf_text(tail) + strlen(DOT), 2, 2, width);
    } else {
        rp_buf_puts(out, rp_buf_text(tail));
        rp_buf_putc(out, '\n');
    }
    out->failed |= command.failed || rest.failed;
    rp_buf_release(&command);
    rp_buf_release(&rest);
}

/* A replay has no time of its own: neither duration nor rate are known. */
static void put_run(const struct rp_report *r, bool behind, struct rp_buf *run)
{
    const struct rp_profile *p = r->profile;
    const char *source = rp_profile_text(p, p->run.source);

    rp_buf_puts(run, behind ? DOT : "");
    if (!strcmp(source, "replay")) {
        rp_buf_puts(run, "replayed snapshots");
    } else {
        rp_buf_printf(run, "%.1f s" DOT, (double)p->run.seconds_ns / 1e9);
        rp_text_fit(run, source, 40);
        rp_buf_printf(run, " %" PRIu32 " Hz", p->run.hz);
    }
    if (r->options.thread) {
        rp_buf_puts(run, DOT "only thread ");
        rp_text_fit(run, r->options.thread, 40);
    }
}

static void put_header(const struct rp_report *r, struct rp_buf *out)
{
    const struct rp_profile *p = r->profile;
    const struct rp_buf none = {0};
    struct rp_buf run = {0};
    uint32_t n = 0, shown = 0, programs;

    for (uint32_t i = 0; i < p->processes.n; i++)
        n += rp_report_lists(r, i) && rp_report_programs(r, i);
    put_run(r, n == 1, &run);
    for (uint32_t i = 0; i < p->processes.n && shown < TARGETS_MAX; i++) {
        programs = rp_report_lists(r, i) ? rp_report_programs(r, i) : 0;
        if (!programs)
            continue;
        put_target(r, i, programs, n == 1 ? &run : &none, out);
        shown++;
    }
    if (n > shown)
        rp_buf_printf(out, "and %" PRIu32 " more process%s\n", n - shown, n - shown == 1 ? "" : "es");
    if (n != 1)
        rp_buf_printf(out, "%s\n", rp_buf_text(&run));
    out->failed |= run.failed;
    rp_buf_release(&run);
}

static void put_idle(const struct rp_quality *q, struct rp_buf *out)
{
    if (q->idle_threads) {
        rp_buf_puts(out, DOT);
        rp_text_count(out, q->idle_threads);
        rp_buf_printf(out, " idle thread%s dropped (%.1f s)", q->idle_threads == 1 ? "" : "s", q->idle_seconds);
    }
    if (q->off_seconds >= 0.05)
        rp_buf_printf(out, DOT "%.1f s off the CPU%s, not shown", q->off_seconds, q->idle_threads ? " in other threads" : "");
}

static void put_quality(const struct rp_report *r, struct rp_buf *out)
{
    const struct rp_quality *q = &r->quality;
    struct rp_buf b = {0};

    rp_text_count(&b, q->samples);
    rp_buf_puts(&b, q->samples == 1 ? " on-CPU sample" DOT : " on-CPU samples" DOT);
    rp_text_count(&b, q->lost);
    rp_buf_puts(&b, " lost");
    if (q->lost) {
        rp_buf_puts(&b, " (");
        rp_figure_put_percent(&b, rp_lost_part(q, &r->profile->run));
        rp_buf_puts(&b, ")");
    }
    if (q->samples) {
        /* Never rounded up to 100: one cut stack in 100 000 is not none. */
        double complete = 100 * (double)q->complete / (double)q->samples, most = q->complete == q->samples ? 100 : 99.99;

        rp_buf_printf(&b, DOT "%.*f %% complete stacks", complete == 100 ? 0 : complete > 99.94 ? 2 : 1, complete > most ? most : complete);
    }
    if (!r->waits)
        put_idle(q, &b);
    rp_text_wrap(out, rp_buf_text(&b), 0, 2, r->options.width);
    out->failed |= b.failed;
    rp_buf_release(&b);
}

/* Half the interval, in points; half of a narrow one gets a second digit. */
static void put_half(struct rp_buf *out, double low, double high, size_t columns)
{
    double half = 50 * (high - low);
    char text[32];

    snprintf(text, sizeof text, half < 0.095 ? "%.2f" : "%.1f", half);
    rp_figure_right(out, text, columns);
}

static size_t count_columns(uint64_t largest)
{
    struct rp_buf b = {0};
    size_t columns;

    rp_text_count(&b, largest);
    columns = b.length;
    rp_buf_release(&b);
    return columns < 8 ? 8 : columns;
}

/* The four figures that every table begins with; `samples` 0 has an upper bound instead of a share. */
static void put_figures(const struct rp_report *r, struct rp_buf *out, size_t columns, uint64_t samples, double share, double low, double high)
{
    double limit, unit;
    char text[40];

    rp_figure_right_count(out, samples, columns);
    if (samples) {
        rp_figure_percent(text, sizeof text, share);
        rp_figure_right(out, text, 9);
        put_half(out, low, high, 7);
        return;
    }
    /* A bound is rounded up. */
    limit = 100 * (r->categories.samples ? rp_wilson(0, (double)r->categories.samples, 1, 1.959963984540054).high : 1);
    unit = limit < 1 ? 100 : 10;
    snprintf(text, sizeof text, "< %.*f %%", limit < 1 ? 2 : 1, ceil(limit * unit) / unit);
    rp_figure_right(out, text, 9);
    rp_buf_fill(out, ' ', 7);
}

static void put_table_head(const struct rp_report *r, struct rp_buf *out, size_t columns, bool total, const char *what)
{
    rp_buf_putc(out, '\n');
    rp_style_on(out, r->options.color, RP_STYLE_DIM);
    rp_figure_right(out, "samples", columns);
    rp_buf_puts(out, "   share   " PLUS_MINUS "95 %");
    if (total)
        rp_buf_puts(out, "    total");
    rp_buf_printf(out, "   %s", what);
    rp_style_off(out, r->options.color);
    rp_buf_putc(out, '\n');
}

static void put_total(struct rp_buf *out, uint64_t total, uint64_t of)
{
    char text[32];

    rp_figure_percent(text, sizeof text, of ? (double)total / (double)of : 0);
    rp_figure_right(out, total ? text : "", 9);
}

/* One payer; its words stay on one line. */
static void put_payer(const struct rp_report *r, const char *name, uint64_t samples, size_t column, struct rp_buf *out)
{
    size_t from = out->length, room = rp_text_room(r->options.width, column + sizeof " 99.9 %," - 1);

    rp_text_fit(out, name, room && room < RP_TEXT_PAYER_COLUMNS ? room : RP_TEXT_PAYER_COLUMNS);
    rp_buf_putc(out, ' ');
    rp_figure_put_percent(out, (double)samples / (double)r->categories.samples);
    rp_text_tie(out, from);
}

/* "uncategorized" pays for nothing: it is callers that are meant. Too many words to stay on one line. */
static void put_no_payer(const struct rp_report *r, const struct rp_payer *payer, size_t column, struct rp_buf *out)
{
    size_t room = rp_text_room(r->options.width, column + sizeof "(most: )," - 1);

    rp_buf_puts(out, payer->function == UINT32_MAX ? "callers that are not " : "callers that no rule ");
    put_payer(r, payer->function == UINT32_MAX ? "known" : "claims", payer->samples, column, out);
    if (payer->function != UINT32_MAX) {
        rp_buf_puts(out, " (most: ");
        rp_text_symbol(out, rp_profile_text(r->profile, r->profile->functions.at[payer->function].name), room && room < CALLER_COLUMNS ? room : CALLER_COLUMNS, false);
        rp_buf_puts(out, ")");
    }
}

static void put_payers(const struct rp_report *r, const struct rp_category_row *row, size_t column, struct rp_buf *out)
{
    struct rp_buf b = {0};
    uint64_t told = 0;
    size_t i;

    for (i = 0; i < row->payers.n && i < RP_TEXT_PAYERS_MAX; i++) {
        const struct rp_payer *payer = &row->payers.at[i];

        if ((double)payer->samples < rp_text_payer_worth * (double)row->samples)
            break;
        rp_buf_puts(&b, i ? ", " : "paid for by ");
        if (payer->category == cat_rules_uncategorized(r->rules))
            put_no_payer(r, payer, column, &b);
        else
            put_payer(r, cat_rules_category(r->rules, payer->category)->name, payer->samples, column, &b);
        told += payer->samples;
    }
    if (i && told < row->samples) {
        rp_buf_puts(&b, ", ");
        put_payer(r, "others", row->samples - told, column, &b);
    }
    if (b.length)
        rp_text_dim(r, rp_buf_text(&b), column, out);
    out->failed |= b.failed;
    rp_buf_release(&b);
}

static void put_uncategorized_reasons(const struct rp_report *r, const struct rp_category_row *row, size_t column, struct rp_buf *out)
{
    const struct rp_category_table *t = &r->categories;
    uint64_t none = row->samples - t->uncategorized_through - t->uncategorized_truncated;
    struct rp_buf b = {0};

    if (!row->samples)
        return;
    if (none) {
        rp_text_count(&b, none);
        rp_buf_puts(&b, " claimed by no rule");
    }
    if (t->uncategorized_through) {
        rp_buf_puts(&b, b.length ? ", " : "");
        rp_text_count(&b, t->uncategorized_through);
        rp_buf_puts(&b, " only in functions that pass the question on");
    }
    if (t->uncategorized_truncated) {
        rp_buf_puts(&b, b.length ? ", " : "");
        rp_text_count(&b, t->uncategorized_truncated);
        rp_buf_puts(&b, " in stacks that were cut");
    }
    rp_text_dim(r, rp_buf_text(&b), column, out);
    out->failed |= b.failed;
    rp_buf_release(&b);
}

/* The name, and how much came by inheritance: on the same line, or below. */
static void put_category_name(const struct rp_report *r, const struct rp_category_row *row, size_t column, struct rp_buf *out)
{
    const struct cat_category *category = cat_rules_category(r->rules, row->category);
    size_t room = rp_text_room(r->options.width, column);
    bool below;
    char inherited[64] = "";

    if (row->samples && (double)row->inherited >= inherited_worth * (double)row->samples)
        snprintf(inherited, sizeof inherited, "(%.0f %% by inheritance)", 100 * (double)row->inherited / (double)row->samples);
    below = room && *inherited && rp_text_columns(category->name, strlen(category->name)) + 2 + strlen(inherited) > room;
    rp_style_color(out, r->options.color, category->color);
    rp_text_fit(out, category->name, room);
    rp_style_off(out, r->options.color);
    if (*inherited && !below) {
        rp_style_on(out, r->options.color, RP_STYLE_DIM);
        rp_buf_printf(out, "  %s", inherited);
        rp_style_off(out, r->options.color);
    }
    rp_buf_putc(out, '\n');
    if (below)
        rp_text_dim(r, inherited, column + 2, out);
}

static void put_categories(const struct rp_report *r, struct rp_buf *out)
{
    const struct rp_category_table *t = &r->categories;
    size_t columns = count_columns(t->samples), names = columns + 19 + (r->options.total ? 9 : 0);

    put_table_head(r, out, columns, r->options.total, "category");
    for (size_t i = 0; i < t->rows.n; i++) {
        const struct rp_category_row *row = &t->rows.at[i];

        put_figures(r, out, columns, row->samples, row->share, row->low, row->high);
        if (r->options.total)
            put_total(out, row->total, t->samples);
        rp_buf_puts(out, "   ");
        put_category_name(r, row, names, out);
        put_payers(r, row, names + 2, out);
        if (row->category == cat_rules_uncategorized(r->rules))
            put_uncategorized_reasons(r, row, names + 2, out);
    }
}

static void put_group_name(const struct rp_report *r, uint32_t key, size_t column, struct rp_buf *out)
{
    const struct rp_profile *p = r->profile;
    size_t room = rp_text_room(r->options.width, column);

    if (r->options.by == RP_BY_FUNCTION) {
        rp_text_function_name(r, key, room, out);
    } else if (r->options.by == RP_BY_THREAD) {
        rp_text_thread_name(r, key, column, out);
    } else if (r->options.by == RP_BY_PROCESS) {
        rp_text_fit(out, rp_profile_text(p, p->processes.at[key].command), room > 16 ? room - 16 : room);
        rp_buf_printf(out, " (pid %" PRIu32 ")", p->processes.at[key].pid);
    } else {
        rp_text_fit(out, rp_profile_text(p, key), room);
    }
}

/* The rows that are too small to list, as one, so that the column still sums up. */
static void put_group_rest(const struct rp_report *r, size_t from, size_t columns, struct rp_buf *out)
{
    const struct rp_group_table *t = &r->groups;
    int blanks = r->options.by == RP_BY_THREAD || r->options.by == RP_BY_PROCESS ? 19 : 28;
    char text[96];
    uint64_t rest = 0;
    size_t n = 0;

    for (size_t i = from; i < t->rows.n; i++) {
        rest += t->rows.at[i].self;
        n += t->rows.at[i].self > 0;
    }
    if (!rest)
        return;
    rp_figure_right_count(out, rest, columns);
    rp_buf_fill(out, ' ', blanks);
    rp_style_on(out, r->options.color, RP_STYLE_DIM);
    snprintf(text, sizeof text, "in %zu more with fewer than %" PRIu64 " samples (--min-samples)", n, r->options.min_samples);
    rp_text_wrap(out, text, columns + (size_t)blanks, columns + (size_t)blanks, r->options.width);
    rp_style_off(out, r->options.color);
}

static void put_groups(const struct rp_report *r, struct rp_buf *out)
{
    static const char *const heads[] = {[RP_BY_FUNCTION] = "function", [RP_BY_MODULE] = "module", [RP_BY_THREAD] = "thread",
                                        [RP_BY_PROCESS] = "process"};
    const struct rp_group_table *t = &r->groups;
    bool total = r->options.by < RP_BY_THREAD;
    size_t columns = count_columns(t->samples), names = columns + 19 + (total ? 9 : 0), i;

    put_table_head(r, out, columns, total, heads[r->options.by]);
    for (i = 0; i < t->rows.n; i++) {
        const struct rp_group_row *row = &t->rows.at[i];

        if ((r->options.total ? row->total : row->self) < r->options.min_samples)
            break;
        if (row->self) {
            put_figures(r, out, columns, row->self, row->share, row->low, row->high);
        } else { /* it was seen, only not at the leaf */
            rp_figure_right_count(out, 0, columns);
            rp_buf_fill(out, ' ', 16);
        }
        if (total)
            put_total(out, row->total, t->samples);
        rp_buf_puts(out, "   ");
        put_group_name(r, row->key, names, out);
        rp_buf_putc(out, '\n');
    }
    put_group_rest(r, i, columns, out);
}

static void put_notes(const struct rp_report *r, struct rp_buf *out)
{
    for (size_t i = 0; i < r->notes.n; i++) {
        if (!i)
            rp_buf_putc(out, '\n');
        rp_style_on(out, r->options.color, RP_STYLE_WARN);
        rp_buf_puts(out, "note:");
        rp_style_off(out, r->options.color);
        rp_buf_putc(out, ' ');
        rp_text_wrap(out, r->notes.at[i].text, 6, 6, r->options.width);
    }
}

/* Said in words where the tables would be empty. */
static void put_nothing(const struct rp_report *r, struct rp_buf *out)
{
    uint64_t idle = 0;
    struct rp_buf b = {0};

    for (size_t i = 0; r->waits && i < r->waits->idle.n; i++)
        idle += (uint64_t)(r->waits->idle.at[i].waits + 0.5);
    rp_buf_puts(&b, "0 samples kept of ");
    rp_text_count(&b, idle);
    rp_buf_puts(&b, ": no thread ran on a CPU, and all waiting was idling. --idle shows it.");
    if (idle) {
        rp_buf_putc(out, '\n');
        rp_text_wrap(out, rp_buf_text(&b), 0, 0, r->options.width);
    }
    out->failed |= b.failed;
    rp_buf_release(&b);
}

static void put_running(const struct rp_report *r, struct rp_buf *out)
{
    if (r->options.by == RP_BY_CATEGORY && r->options.clock == RP_REPORT_WALL && r->waits)
        rp_text_wall(r, out);
    else if (r->quality.samples && r->options.by == RP_BY_CATEGORY)
        put_categories(r, out);
    else if (r->quality.samples && r->options.by < RP_BY_WAIT)
        put_groups(r, out);
}

static void put_tables(const struct rp_report *r, struct rp_buf *out)
{
    enum rp_by by = r->options.by;

    put_running(r, out);
    if (!r->waits && (by >= RP_BY_WAIT || r->options.locks || r->options.clock == RP_REPORT_WALL)) {
        rp_buf_putc(out, '\n');
        rp_text_wrap(out, "Nothing is known of waiting: it was not measured when this was recorded (--no-waiting).", 0, 0, r->options.width);
    }
    if (r->waits && by == RP_BY_THREAD)
        rp_text_threads(r, out);
    if (r->waits && (by == RP_BY_CATEGORY || by == RP_BY_WAIT))
        rp_text_waiting(r, out);
    if (r->waits && (by == RP_BY_CATEGORY || by == RP_BY_WAIT || by == RP_BY_IDLE))
        rp_text_idle(r, out);
    if (r->waits && (r->options.locks || by == RP_BY_LOCK))
        rp_text_locks(r, out);
}

static void emit(const struct rp_report *r, struct rp_buf *out)
{
    bool cut = false;
    char text[128];

    put_header(r, out);
    put_quality(r, out);
    if (r->waits)
        rp_text_time(r, out);
    if (r->options.function)
        rp_text_function(r, out);
    else
        put_tables(r, out);
    if (!rp_report_has_any(r))
        put_nothing(r, out);
    for (size_t i = 0; i < r->trees.n; i++) {
        rp_text_tree(r, &r->trees.at[i], out);
        cut |= r->trees.at[i].kind == RP_TREE_OF_SAMPLES && r->trees.at[i].min_samples > r->options.min_samples;
    }
    if (cut) {
        rp_buf_putc(out, '\n');
        rp_style_on(out, r->options.color, RP_STYLE_DIM);
        snprintf(text, sizeof text, "--tree shows the trees whole, down to %" PRIu64 " samples; --category NAME shows one.", r->options.min_samples);
        rp_text_wrap(out, text, 0, 0, r->options.width);
        rp_style_off(out, r->options.color);
    }
    put_notes(r, out);
}

const struct rp_emit_ops rp_emit_text = {
    .name = "text",
    .help = "tables and trees to read",
    .has_trees = true,
    .has_notes = true,
    .report = emit,
    .unclaimed = rp_unclaimed_text,
};
