/* SPDX-License-Identifier: MIT */
/* The table as CSV (RFC 4180: CRLF, quotes doubled, a header row), for spreadsheets: the categories, or the rows of --by. Names are clean UTF-8, so
 * one row is one line whatever a symbol holds. */
#include <inttypes.h>

#include "report/emit.h"
#include "report/text_locks.h"
#include "report/unclaimed.h"
#include "report/utf8.h"

static void categories(const struct rp_report *r, struct rp_buf *out)
{
    rp_buf_puts(out, "id,name,kind,samples,share,low,high,total,inherited\r\n");
    for (size_t i = 0; i < r->categories.rows.n; i++) {
        const struct rp_category_row *row = &r->categories.rows.at[i];
        const struct cat_category *category = cat_rules_category(r->rules, row->category);

        rp_text_csv(out, category->id);
        rp_buf_putc(out, ',');
        rp_text_csv(out, category->name);
        rp_buf_printf(out, ",%s,%" PRIu64 ",%.6f,%.6f,%.6f,%" PRIu64 ",%" PRIu64 "\r\n", cat_kind_word(category->kind), row->samples, row->share,
                      row->low, row->high, row->total, row->inherited);
    }
}

static void put_key(const struct rp_report *r, uint32_t key, struct rp_buf *out)
{
    const struct rp_profile *p = r->profile;

    if (r->options.by == RP_BY_FUNCTION) {
        rp_text_csv(out, rp_profile_text(p, p->functions.at[key].name));
        rp_buf_putc(out, ',');
        rp_text_csv(out, rp_profile_text(p, p->functions.at[key].module));
    } else if (r->options.by == RP_BY_THREAD) {
        rp_buf_printf(out, "%" PRIu32 ",%" PRIu32 ",", p->processes.at[p->threads.at[key].process].pid, p->threads.at[key].tid);
        rp_text_csv(out, rp_profile_text(p, p->threads.at[key].comm));
    } else if (r->options.by == RP_BY_PROCESS) {
        rp_buf_printf(out, "%" PRIu32 ",", p->processes.at[key].pid);
        rp_text_csv(out, rp_profile_text(p, p->processes.at[key].command));
    } else {
        rp_text_csv(out, rp_profile_text(p, key));
    }
}

static void groups(const struct rp_report *r, struct rp_buf *out)
{
    static const char *const heads[] = {[RP_BY_FUNCTION] = "symbol,module", [RP_BY_MODULE] = "module", [RP_BY_THREAD] = "pid,tid,thread",
                                        [RP_BY_PROCESS] = "pid,process"};

    rp_buf_printf(out, "%s,self,share,low,high,total\r\n", heads[r->options.by]);
    for (size_t i = 0; i < r->groups.rows.n; i++) {
        const struct rp_group_row *row = &r->groups.rows.at[i];

        put_key(r, row->key, out);
        rp_buf_printf(out, ",%" PRIu64 ",%.6f,%.6f,%.6f,%" PRIu64 "\r\n", row->self, row->share, row->low, row->high, row->total);
    }
}

/* The last column of tables of times, the same in each row: there is no other place for what holds for all. */
static const char *exact(const struct rp_report *r)
{
    return rp_waits_exact(r->profile) ? "1" : "0";
}

/* Threads with how their time divides; a thread without a sample has a row, too. */
static void threads(const struct rp_report *r, struct rp_buf *out)
{
    rp_buf_puts(out, "pid,tid,thread,self,share,low,high,total,wall_s,cpu_s,preempted_s,waiting_s,waiting_for_cpu_s,idle_s,unknown_s,times_exact\r\n");
    for (size_t i = 0; i < r->threads.rows.n; i++) {
        const struct rp_thread_row *t = &r->threads.rows.at[i];
        struct rp_group_row none = {.key = t->thread}, row = none;

        for (size_t k = 0; k < r->groups.rows.n; k++)
            row = r->groups.rows.at[k].key == t->thread ? r->groups.rows.at[k] : row;
        put_key(r, t->thread, out);
        rp_buf_printf(out, ",%" PRIu64 ",%.6f,%.6f,%.6f,%" PRIu64 ",%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,%s\r\n", row.self, row.share, row.low,
                      row.high, row.total, t->wall, t->cpu, t->preempted, t->waiting, t->woken, t->idle, t->unknown, exact(r));
    }
}

static void waits(const struct rp_report *r, struct rp_buf *out)
{
    rp_buf_puts(out, "id,name,kind,waits,seconds,seconds_half,share_of_wall,mean_s,p50_s,p99_s,max_s,times_exact\r\n");
    for (size_t i = 0; r->waits && i < r->waits->rows.n; i++) {
        const struct rp_wait_row *row = &r->waits->rows.at[i];
        const struct cat_category *category = row->category == RP_WAIT_UNSEEN ? NULL : cat_rules_category(r->rules, row->category);

        rp_text_csv(out, category ? category->id : "wait.unseen");
        rp_buf_putc(out, ',');
        rp_text_csv(out, category ? category->name : "stack not seen");
        rp_buf_printf(out, ",%s,%.1f,%.6f,%.6f,%.6f,%.9f,%.9f,%.9f,%.9f,%s\r\n", cat_kind_word(category ? category->kind : CAT_WAIT), row->waits,
                      row->seconds, row->half, row->share, row->mean_s, row->p50_s, row->p99_s, row->max_s, exact(r));
    }
}

static void idle(const struct rp_report *r, struct rp_buf *out)
{
    rp_buf_puts(out, "name,rule,threads,waits,seconds,times_exact\r\n");
    for (size_t i = 0; r->waits && i < r->waits->idle.n; i++) {
        const struct rp_idle_group *g = &r->waits->idle.at[i];

        rp_text_csv(out, g->name);
        rp_buf_printf(out, ",%s,%" PRIu32 ",%.1f,%.6f,%s\r\n", cat_rules_rule(r->rules, g->rule)->id, g->threads, g->waits, g->seconds, exact(r));
    }
}

static void locks(const struct rp_report *r, struct rp_buf *out)
{
    rp_buf_puts(out, "name,pid,address,waits,seconds,share_of_wall,max_s,holder_known,times_exact\r\n");
    for (uint32_t i = 0; i < r->locks.rows.n; i++) {
        const struct rp_lock_row *row = &r->locks.rows.at[i];
        const struct rp_lock *lock = &r->profile->locks.at[row->lock];
        struct rp_buf name = {0};

        rp_text_lock_name(r, i, 0, &name);
        rp_text_csv(out, rp_buf_text(&name));
        rp_buf_printf(out, ",%" PRIu32 ",0x%" PRIx64 ",%.1f,%.6f,%.6f,%.9f,", r->profile->processes.at[lock->process].pid, lock->address, row->waits,
                      row->seconds, row->share, row->max_s);
        if (!row->of_all)
            rp_buf_printf(out, "%.6f", row->known);
        rp_buf_printf(out, ",%s\r\n", exact(r));
        out->failed |= name.failed;
        rp_buf_release(&name);
    }
}

static void emit(const struct rp_report *r, struct rp_buf *out)
{
    switch (r->options.by) {
    case RP_BY_CATEGORY:
        categories(r, out);
        break;
    case RP_BY_FUNCTION:
    case RP_BY_MODULE:
    case RP_BY_PROCESS:
        groups(r, out);
        break;
    case RP_BY_THREAD:
        if (r->waits)
            threads(r, out);
        else
            groups(r, out);
        break;
    case RP_BY_WAIT:
        waits(r, out);
        break;
    case RP_BY_IDLE:
        idle(r, out);
        break;
    case RP_BY_LOCK:
        locks(r, out);
        break;
    }
}

static void unclaimed(const struct rp_report *r, struct rp_buf *out)
{
    rp_buf_puts(out, "symbol,module,samples,inherited_from,key,pattern,space\r\n");
    for (size_t i = 0; i < r->unclaimed.rows.n; i++) {
        const struct rp_unclaimed *row = &r->unclaimed.rows.at[i];
        const struct rp_function *f = &r->profile->functions.at[row->function];
        struct rp_buf value = {0};
        const char *key = rp_unclaimed_pattern(r, row->function, &value);

        rp_text_csv(out, rp_profile_text(r->profile, f->name));
        rp_buf_putc(out, ',');
        rp_text_csv(out, rp_profile_text(r->profile, f->module));
        rp_buf_printf(out, ",%" PRIu64 ",%s,%s,", row->samples, row->inherited ? cat_rules_category(r->rules, row->category)->id : "", key);
        rp_text_csv(out, rp_buf_text(&value));
        rp_buf_puts(out, rp_unclaimed_in_kernel(r, row->function) ? ",kernel\r\n" : ",user\r\n");
        out->failed |= value.failed;
        rp_buf_release(&value);
    }
}

const struct rp_emit_ops rp_emit_csv = {
    .name = "csv",
    .help = "the table, for spreadsheets",
    .report = emit,
    .unclaimed = unclaimed,
};
