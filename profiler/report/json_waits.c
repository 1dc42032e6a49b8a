/* SPDX-License-Identifier: MIT */
/* See json_waits.h. Counts and seconds of a category may be estimates out of thinned stacks, so counts are no whole numbers here. */
#include "report/json_waits.h"

#include <inttypes.h>

#include "report/json_parts.h"
#include "report/text_locks.h"

enum { SHARE_DIGITS = RP_JSON_SHARE_DIGITS, SECONDS_DIGITS = RP_JSON_SECONDS_DIGITS, WAIT_DIGITS = 9, WAITS_DIGITS = RP_JSON_WAITS_DIGITS };

static const char *text(const struct rp_report *r, uint32_t string)
{
    return rp_profile_text(r->profile, string);
}

static void category_name(const struct rp_report *r, struct rp_json *w, uint32_t at)
{
    const struct cat_category *category = at == RP_WAIT_UNSEEN ? NULL : cat_rules_category(r->rules, at);

    rp_json_key_string(w, "id", category ? category->id : "wait.unseen");
    rp_json_key_string(w, "name", category ? category->name : "stack not seen");
    rp_json_key_string(w, "kind", cat_kind_word(category ? category->kind : CAT_WAIT));
}

static void waiting(const struct rp_report *r, struct rp_json *w)
{
    rp_json_key(w, "waiting");
    rp_json_begin(w, '[');
    for (size_t i = 0; i < r->waits->rows.n; i++) {
        const struct rp_wait_row *row = &r->waits->rows.at[i];

        rp_json_begin_inline(w, '{');
        category_name(r, w, row->category);
        rp_json_key_double(w, "waits", row->waits, WAITS_DIGITS);
        rp_json_key_double(w, "seconds", row->seconds, SECONDS_DIGITS);
        rp_json_key_double(w, "seconds_half", row->half, SECONDS_DIGITS);
        rp_json_key_double(w, "share_of_wall", row->share, SHARE_DIGITS);
        rp_json_key_double(w, "mean_s", row->mean_s, WAIT_DIGITS);
        rp_json_key_double(w, "p50_s", row->p50_s, WAIT_DIGITS);
        rp_json_key_double(w, "p99_s", row->p99_s, WAIT_DIGITS);
        rp_json_key_double(w, "max_s", row->max_s, WAIT_DIGITS);
        rp_json_key(w, "waited_by");
        rp_json_begin(w, '[');
        for (size_t k = 0; k < row->payers.n; k++) {
            rp_json_begin(w, '{');
            rp_json_key_category(w, "id", r, row->payers.at[k].category);
            rp_json_key_double(w, "seconds", row->payers.at[k].seconds, SECONDS_DIGITS);
            rp_json_end(w);
        }
        rp_json_end(w);
        rp_json_end(w);
    }
    rp_json_end(w);
}

static void lock_parts(const struct rp_report *r, struct rp_json *w, const char *key, const struct rp_lock_part *parts, size_t n)
{
    rp_json_key(w, key);
    rp_json_begin(w, '[');
    for (size_t i = 0; i < n; i++) {
        bool known = parts[i].category != RP_WAIT_UNSEEN || parts[i].thread != UINT32_MAX;

        rp_json_begin(w, '{');
        if (parts[i].category != RP_WAIT_UNSEEN) {
            rp_json_key_category(w, "category", r, parts[i].category);
            rp_json_key_string(w, "state", parts[i].blocked ? "blocked" : "running");
        } else if (known) {
            rp_json_key_u64(w, "tid", r->profile->threads.at[parts[i].thread].tid);
            rp_json_key_string(w, "name", text(r, r->profile->threads.at[parts[i].thread].comm));
        } else {
            rp_json_key(w, "category");
            rp_json_null(w);
        }
        rp_json_key_double(w, "waits", parts[i].waits, WAITS_DIGITS);
        rp_json_key_double(w, "seconds", parts[i].seconds, SECONDS_DIGITS);
        rp_json_end(w);
    }
    rp_json_end(w);
}

static void locks(const struct rp_report *r, struct rp_json *w)
{
    const struct rp_profile *p = r->profile;

    rp_json_key(w, "locks");
    rp_json_begin(w, '[');
    for (uint32_t i = 0; i < r->locks.rows.n; i++) {
        const struct rp_lock_row *row = &r->locks.rows.at[i];
        const struct rp_lock *lock = &p->locks.at[row->lock];
        struct rp_buf name = {0}, address = {0};

        rp_text_lock_name(r, i, 0, &name);
        rp_buf_printf(&address, "0x%" PRIx64, lock->address);
        rp_json_begin_inline(w, '{');
        rp_json_key_string(w, "name", rp_buf_text(&name));
        rp_json_key_string(w, "address", rp_buf_text(&address));
        rp_json_key_u64(w, "pid", p->processes.at[lock->process].pid);
        rp_json_key_string(w, "symbol", text(r, lock->symbol));
        rp_json_key_string(w, "module", lock->image ? text(r, p->images.at[lock->image].name) : "");
        rp_json_key_string(w, "database", text(r, lock->database));
        rp_json_key_double(w, "waits", row->waits, WAITS_DIGITS);
        rp_json_key_double(w, "seconds", row->seconds, SECONDS_DIGITS);
        rp_json_key_double(w, "share_of_wall", row->share, SHARE_DIGITS);
        rp_json_key_double(w, "max_s", row->max_s, WAIT_DIGITS);
        rp_json_key_double(w, "stacked", row->stacked, 0);
        rp_json_key_double(w, "nobody_held", row->free, 0);
        rp_json_key(w, "holder_known");
        if (row->of_all)
            rp_json_null(w);
        else
            rp_json_double(w, row->known, SHARE_DIGITS);
        rp_json_key(w, "holders_of_all");
        rp_json_bool(w, row->of_all);
        lock_parts(r, w, "holders", row->holders.at, row->holders.n);
        lock_parts(r, w, "holders_doing", row->doings.at, row->doings.n);
        rp_json_end(w);
        w->out->failed |= name.failed || address.failed;
        rp_buf_release(&name);
        rp_buf_release(&address);
    }
    rp_json_end(w);
}

/* How the wall time of all threads divides. */
static void times(const struct rp_report *r, struct rp_json *w)
{
    const struct rp_waits *s = r->waits;
    double run = (double)r->profile->run.seconds_ns / 1e9;

    rp_json_key(w, "time");
    rp_json_begin_inline(w, '{');
    rp_json_key_double(w, "wall_s", s->wall, SECONDS_DIGITS);
    rp_json_key_double(w, "cpu_s", s->cpu, SECONDS_DIGITS);
    rp_json_key_double(w, "preempted_s", s->preempted, SECONDS_DIGITS);
    rp_json_key_double(w, "waiting_s", s->waiting, SECONDS_DIGITS);
    rp_json_key_double(w, "idle_s", s->idle_seconds, SECONDS_DIGITS);
    rp_json_key_double(w, "unknown_s", s->unknown, SECONDS_DIGITS);
    rp_json_key_double(w, "cores_used", run > 0 ? s->cpu / run : 0, SHARE_DIGITS);
    rp_json_key_u64(w, "cpus_allowed", r->profile->run.cpus);
    rp_json_key_string(w, "waits", r->profile->run.waits == 2 ? "sampled" : "exact");
    rp_json_end(w);
}

void rp_json_waits(const struct rp_report *r, struct rp_json *w)
{
    if (!r->waits)
        return;
    times(r, w);
    waiting(r, w);
    locks(r, w);
}

/* `--clock wall`: shares of all time that was not idle. They sum up to 1. */
void rp_json_wall(const struct rp_report *r, struct rp_json *w)
{
    double on_cpu = r->waits && r->waits->busy > 0 ? r->waits->cpu / r->waits->busy : 0;

    if (!r->waits || r->options.clock != RP_REPORT_WALL)
        return;
    rp_json_key(w, "wall");
    rp_json_begin(w, '[');
    for (size_t i = 0; i < r->categories.rows.n; i++) {
        const struct rp_category_row *row = &r->categories.rows.at[i];

        rp_json_begin_inline(w, '{');
        category_name(r, w, row->category);
        rp_json_key_double(w, "seconds", row->share * r->waits->cpu, SECONDS_DIGITS);
        rp_json_interval(w, row->share * on_cpu, row->low * on_cpu, row->high * on_cpu);
        rp_json_end(w);
    }
    for (size_t i = 0; i < r->waits->rows.n; i++) {
        const struct rp_wait_row *row = &r->waits->rows.at[i];
        double half = r->waits->busy > 0 ? row->half / r->waits->busy : 0;

        rp_json_begin_inline(w, '{');
        category_name(r, w, row->category);
        rp_json_key_double(w, "seconds", row->seconds, SECONDS_DIGITS);
        rp_json_interval(w, row->share, row->share - half, row->share + half);
        rp_json_end(w);
    }
    rp_json_begin_inline(w, '{');
    rp_json_key_string(w, "id", "preempted");
    rp_json_key_string(w, "name", "preempted (could run, another had the CPU)");
    rp_json_key_string(w, "kind", "preempted");
    rp_json_key_double(w, "seconds", r->waits->preempted, SECONDS_DIGITS);
    rp_json_key_double(w, "share", r->waits->busy > 0 ? r->waits->preempted / r->waits->busy : 0, SHARE_DIGITS);
    rp_json_end(w);
    rp_json_end(w);
}
