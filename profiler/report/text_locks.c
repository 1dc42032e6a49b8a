/* SPDX-License-Identifier: MIT */
/* Locks as text. See text_locks.h.
 *
 * The trap is a part that reads as if it were all: of short waits the holder is seldom known, and then the known ones do not stand for the rest. */
#include "report/text_locks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/figures.h"
#include "report/style.h"
#include "report/text_columns.h"
#include "report/utf8.h"

enum { LOCKS_MAX = 10, HOLDERS_MAX = 3 };

/* In columns: what a lock's name has at least before columns of numbers are dropped, where the lines below it begin. */
enum { LOCK_ROOM = 36, PARTS_COLUMN = 14 };

/* Below this part the known holders do not stand for the rest, which were shorter waits: then it is said why, and parts are of the known ones. */
static const double holders_few = 0.5;

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
        rp_text_dim(r, rp_buf_text(&taker), PARTS_COLUMN, out);
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
    rp_text_tie(out, from);
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
        if ((parts[i].category == RP_WAIT_UNSEEN && parts[i].thread == UINT32_MAX) || parts[i].waits < rp_text_payer_worth * of)
            continue;
        rp_buf_puts(&b, shown++ ? ", " : what);
        put_part(r, &parts[i], of, &b);
        told += parts[i].waits;
    }
    if (shown && of - told > rp_text_payer_worth * of)
        rp_buf_printf(&b, ", other%s %.0f %%", known < of ? " or unknown" : "s", 100 * (of - told) / of);
    if (b.length)
        rp_text_dim(r, rp_buf_text(&b), column, out);
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
        rp_text_dim(r, "holders are not known: this sampler does not look for them", column, out);
        return;
    }
    rp_buf_puts(&b, "holder known in ");
    rp_text_count(&b, rp_text_whole(row->held));
    rp_buf_puts(&b, " of ");
    rp_text_count(&b, rp_text_whole(row->stacked));
    rp_buf_puts(&b, rp_text_whole(row->stacked) == 1 ? " wait seen: " : " waits seen: ");
    if (row->free > 0) {
        rp_text_count(&b, rp_text_whole(row->free));
        rp_buf_puts(&b, rp_text_whole(row->free) == 1 ? " was" : " were");
        rp_buf_puts(&b, " looked at when nobody held it any more");
    }
    if (row->held + row->free < row->stacked) {
        rp_buf_puts(&b, row->free > 0 ? ", the rest" : "the rest");
        rp_buf_puts(&b, " had ended before a look (one about every 10 ms), or the lock tells no holder");
    }
    rp_text_dim(r, rp_buf_text(&b), column, out);
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
        snprintf(held_by, sizeof held_by, "of the %" PRIu64 " held by ", rp_text_whole(of));
        snprintf(doing, sizeof doing, "of the %" PRIu64 " doing ", rp_text_whole(of));
    }
    put_parts(r, held_by, row->holders.at, row->holders.n, of, PARTS_COLUMN, out);
    put_parts(r, doing, row->doings.at, row->doings.n, of, PARTS_COLUMN, out);
}

static void put_lock_row(const struct rp_lock_row *row, const struct rp_text_column *columns, const bool *kept, struct rp_buf *out)
{
    char text[32];

    rp_figure_right_duration(out, row->seconds, columns[0].columns);
    rp_figure_percent(text, sizeof text, row->share);
    rp_figure_right(out, text, columns[1].columns);
    if (kept[2])
        rp_figure_right_count(out, rp_text_whole(row->waits), columns[2].columns);
    if (kept[3])
        rp_figure_right_duration(out, row->max_s, columns[3].columns);
    rp_figure_percent(text, sizeof text, row->known);
    if (kept[4])
        rp_figure_right(out, row->of_all ? "?" : text, columns[4].columns);
    rp_buf_fill(out, ' ', RP_TEXT_NAME_GAP);
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
    static const struct rp_text_column columns[] = {{"waited", 9, 0}, {"of wall", 9, 0}, {"waits", 11, 1}, {"longest", 10, 2}, {"holder known", 14, 3}};
    enum { N = sizeof columns / sizeof *columns };
    const struct rp_lock_table *t = &r->locks;
    bool kept[N], of_all = false;
    size_t names = rp_text_keep_columns(r, columns, N, LOCK_ROOM, kept);

    if (!t->rows.n) {
        rp_buf_puts(out, "\nNo lock was waited for.\n");
        return;
    }
    rp_text_heads(r, columns, N, kept, "lock", out);
    for (uint32_t i = 0; i < t->rows.n && i < LOCKS_MAX; i++) {
        const struct rp_lock_row *row = &t->rows.at[i];

        of_all |= row->of_all;
        put_lock_row(row, columns, kept, out);
        put_lock(r, i, rp_text_room(r->options.width, names), out);
        put_holders(r, row, out);
    }
    put_locks_rest(r, of_all, out);
}
