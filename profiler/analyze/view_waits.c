/* SPDX-License-Identifier: MIT */
/* The tables of waiting: categories, idle groups, threads. The sums they are made of come from wait_stacks.c.
 *
 * The trap is the denominator. Seconds of waiting add up over threads, so they can exceed the time of the run; their share is of the wall time of all
 * threads that was not idle, which is what the shares on the wall clock are of, and never passes 100 %. */
#include "analyze/view_waits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/stats.h"
#include "analyze/wait_stacks.h"

bool rp_waits_measured(const struct rp_profile *profile)
{
    return profile->run.waits || profile->wait_totals.n;
}

bool rp_waits_exact(const struct rp_profile *profile)
{
    return profile->run.waits == 1 && !profile->run.lost;
}

/* ---- rows ---- */

static double clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* The wait that a part `q` of all are shorter than: its class by counting; in the class round the mean, which is exact, in proportion. */
static double quantile(const double *histogram, const double *histogram_ns, double n, double q, double max_ns)
{
    double target = q * n, below = 0;

    for (uint32_t c = 0; c < RP_WAIT_CLASSES; c++) {
        double low = (double)rp_wait_class_ns(c), high = (double)rp_wait_class_ns(c + 1), place;

        if (!(histogram[c] > 0))
            continue;
        if (below + histogram[c] < target * (1 - 1e-12)) {
            below += histogram[c];
            continue;
        }
        place = (target - below) / histogram[c] - 0.5;
        return clamp(clamp(histogram_ns[c] / histogram[c] + place * (high - low), low, high), 0, max_ns);
    }
    return max_ns;
}

static int heavier_payer(const void *a, const void *b)
{
    const struct rp_wait_payer *x = a, *y = b;

    if (x->seconds < y->seconds || x->seconds > y->seconds)
        return x->seconds < y->seconds ? 1 : -1;
    return x->category < y->category ? -1 : x->category > y->category;
}

static enum rp_status fill_payers(struct rp_wait_row *row, const double *payers, size_t ncategories, struct rp_err *err)
{
    for (size_t i = 0; i < ncategories; i++) {
        struct rp_wait_payer *new;

        if (!(payers[i] > 0))
            continue;
        new = rp_vec_add(&row->payers);
        if (!new)
            return rp_fail_nomem(err);
        *new = (struct rp_wait_payer){(uint32_t)i, payers[i]};
    }
    if (row->payers.n)
        qsort(row->payers.at, row->payers.n, sizeof *row->payers.at, heavier_payer);
    return RP_OK;
}

/* Seconds of each category by the one that would pay; `payers` is a square of categories. */
static enum rp_status add_payers(const struct rp_waits *w, double *payers, size_t ncategories, struct rp_err *err)
{
    const struct rp_view *view = w->view;
    struct rp_wait_walk walk = {0};
    enum rp_status status = RP_OK;

    for (size_t i = 0; i < w->stacks->at.n && status == RP_OK; i++) {
        const struct rp_view_stack *s = &w->stacks->at.at[i];
        const struct rp_wait_stack *more = &w->stacks->more.at[i];
        struct cat_context context = rp_wait_context(view, s->comm, more->never_ran, more->holds);
        uint32_t payer = 0, frame = 0;

        if (!cat_rules_category(view->rules, s->verdict.category)->shows_payers)
            continue;
        status = rp_wait_walk_take(view, s->node, more->syscall, &walk, err);
        if (status)
            break;
        cat_classify_payer_of(view->matcher, walk.symbols.at, walk.symbols.n, &context, &s->verdict, &payer, &frame);
        payers[s->verdict.category * ncategories + payer] += more->ns / 1e9;
    }
    rp_wait_walk_release(&walk);
    return status;
}

static int heavier_row(const void *a, const void *b)
{
    const struct rp_wait_row *x = a, *y = b;

    if ((x->category == RP_WAIT_UNSEEN) != (y->category == RP_WAIT_UNSEEN))
        return x->category == RP_WAIT_UNSEEN ? 1 : -1;
    if (x->seconds < y->seconds || x->seconds > y->seconds)
        return x->seconds < y->seconds ? 1 : -1;
    return x->category < y->category ? -1 : x->category > y->category;
}

static enum rp_status add_row(struct rp_waits *w, size_t category, size_t ncategories, const double *payers, struct rp_err *err)
{
    const double *sum = &w->stacks->sums[category * RP_WAIT_SUMS], *histogram = &w->stacks->histogram[category * RP_WAIT_CLASSES],
                 *histogram_ns = &w->stacks->histogram_ns[category * RP_WAIT_CLASSES];
    struct rp_wait_row *row = rp_vec_add(&w->rows);

    if (!row)
        return rp_fail_nomem(err);
    memset(row, 0, sizeof *row);
    row->category = category < ncategories ? (uint32_t)category : RP_WAIT_UNSEEN;
    row->waits = sum[RP_WAIT_N];
    row->seconds = sum[RP_WAIT_NS] / 1e9;
    row->half = rp_normal_quantile(0.975) * sqrt(sum[RP_WAIT_VARIANCE]) / 1e9;
    row->share = w->busy > 0 ? row->seconds / w->busy : 0;
    row->mean_s = row->waits > 0 ? row->seconds / row->waits : 0;
    row->p50_s = quantile(histogram, histogram_ns, row->waits, 0.50, sum[RP_WAIT_MAX]) / 1e9;
    row->p99_s = quantile(histogram, histogram_ns, row->waits, 0.99, sum[RP_WAIT_MAX]) / 1e9;
    row->max_s = sum[RP_WAIT_MAX] / 1e9;
    w->waits += row->waits;
    return category < ncategories ? fill_payers(row, payers + category * ncategories, ncategories, err) : RP_OK;
}

static enum rp_status fill_rows(struct rp_waits *w, struct rp_err *err)
{
    size_t n = cat_rules_ncategories(w->view->rules);
    double *payers = n <= 65536 ? rp_calloc(n * n, sizeof *payers) : NULL;
    enum rp_status status = payers ? add_payers(w, payers, n, err) : rp_fail_nomem(err);

    for (size_t i = 0; i <= n && status == RP_OK; i++) {
        bool idle = i < n && cat_rules_category(w->view->rules, (uint32_t)i)->kind == CAT_IDLE;

        if (w->stacks->sums[i * RP_WAIT_SUMS + RP_WAIT_NS] > 0 && (!idle || w->keep_idle))
            status = add_row(w, i, n, payers, err);
    }
    if (w->rows.n)
        qsort(w->rows.at, w->rows.n, sizeof *w->rows.at, heavier_row);
    rp_free(payers);
    return status;
}

/* ---- idle ---- */

void rp_thread_group_name(const char *comm, struct rp_buf *out)
{
    for (const char *at = comm; *at; at++) {
        bool digit = *at >= '0' && *at <= '9';

        /* "V8Worker" has a digit that numbers nothing: only digits that no letter follows do. */
        if (digit) {
            size_t n = strspn(at, "0123456789");

            if ((at[n] >= 'a' && at[n] <= 'z') || (at[n] >= 'A' && at[n] <= 'Z'))
                rp_buf_append(out, at, n);
            else
                rp_buf_putc(out, '*');
            at += n - 1;
        } else {
            rp_buf_putc(out, *at);
        }
    }
}

static enum rp_status idle_group(struct rp_waits *w, uint32_t comm, uint32_t rule, struct rp_idle_group **group, struct rp_err *err)
{
    struct rp_buf text = {0};

    rp_thread_group_name(rp_profile_text(w->view->profile, comm), &text);
    rp_buf_putc(&text, '\0');
    if (text.failed) {
        rp_buf_release(&text);
        return rp_fail_nomem(err);
    }
    for (size_t i = 0; i < w->idle.n; i++) {
        *group = &w->idle.at[i];
        if ((*group)->rule == rule && strcmp((*group)->name, text.data) == 0) {
            (*group)->comm = (*group)->comm == comm ? comm : UINT32_MAX;
            rp_buf_release(&text);
            return RP_OK;
        }
    }
    *group = rp_vec_add(&w->idle);
    if (!*group) {
        rp_buf_release(&text);
        return rp_fail_nomem(err);
    }
    **group = (struct rp_idle_group){.name = text.data, .comm = comm, .rule = rule};
    return RP_OK;
}

/* Numbers that all threads of a group share number nothing: "python3" stays what it is. */
static enum rp_status name_alike(struct rp_waits *w, struct rp_err *err)
{
    for (size_t i = 0; i < w->idle.n; i++) {
        struct rp_idle_group *group = &w->idle.at[i];
        struct rp_buf text = {0};

        if (group->comm == UINT32_MAX)
            continue;
        rp_buf_puts(&text, rp_profile_text(w->view->profile, group->comm));
        rp_buf_putc(&text, '\0');
        if (text.failed) {
            rp_buf_release(&text);
            return rp_fail_nomem(err);
        }
        rp_free(group->name);
        group->name = text.data;
    }
    return RP_OK;
}

static int heavier_group(const void *a, const void *b)
{
    const struct rp_idle_group *x = a, *y = b;
    int names;

    if (x->seconds < y->seconds || x->seconds > y->seconds)
        return x->seconds < y->seconds ? 1 : -1;
    names = strcmp(x->name, y->name);
    return names ? names : x->rule < y->rule ? -1 : 1;
}

/* Lines of one thread stand together in `order`, so a thread is counted once per group by remembering the last one. */
static enum rp_status fill_idle(struct rp_waits *w, struct rp_err *err)
{
    const struct rp_profile *p = w->view->profile;
    RP_VEC(uint32_t) last = {0}; /* per group: thread + 1 */
    enum rp_status status = RP_OK;

    for (size_t i = 0; i < w->stacks->norder && status == RP_OK; i++) {
        uint32_t line = w->stacks->order[i], stack = w->stacks->stack_of[line], thread = p->waits.at[line].thread;
        const struct rp_view_stack *s = &w->stacks->at.at[stack];
        struct rp_idle_group *group;
        size_t at;

        if (!w->stacks->more.at[stack].idle)
            continue;
        status = idle_group(w, s->comm, s->verdict.rule, &group, err);
        if (status)
            break;
        at = (size_t)(group - w->idle.at);
        while (last.n <= at && status == RP_OK) {
            uint32_t *new = rp_vec_add(&last);

            if (new)
                *new = 0;
            else
                status = rp_fail_nomem(err);
        }
        if (status)
            break;
        group->threads += last.at[at] != thread + 1;
        last.at[at] = thread + 1;
        group->waits += w->stacks->n[line];
        group->seconds += w->stacks->ns[line] / 1e9;
    }
    rp_vec_release(&last);
    if (status == RP_OK)
        status = name_alike(w, err);
    if (w->idle.n)
        qsort(w->idle.at, w->idle.n, sizeof *w->idle.at, heavier_group);
    return status;
}

/* ---- threads ---- */

/* What the switch records say of a thread, or, where there were none, the totals. */
static struct rp_thread_row divide(const struct rp_waits *w, uint32_t thread)
{
    const struct rp_profile_thread *t = &w->view->profile->threads.at[thread];
    double waited = t->waiting_ns ? (double)t->waiting_ns : w->stacks->waited_ns[thread], idle = w->stacks->idle_ns[thread];
    struct rp_thread_row row = {.thread = thread, .wall = (double)t->wall_ns / 1e9, .cpu = (double)t->cpu_ns / 1e9,
                                .preempted = (double)t->preempted_ns / 1e9};

    if (w->view->profile->run.waits && (double)t->wall_ns > (double)t->cpu_ns + (double)t->preempted_ns + waited)
        row.unknown = ((double)t->wall_ns - (double)t->cpu_ns - (double)t->preempted_ns - waited) / 1e9;
    idle = idle < waited ? idle : waited;
    row.idle = idle / 1e9;
    row.waiting = (waited - idle) / 1e9;
    if (t->run_delay_ns > t->preempted_ns)
        row.woken = (double)(t->run_delay_ns - t->preempted_ns) / 1e9;
    /* After which waits it was slow to get a CPU is not known, idle ones among them: at most all that was not idle. */
    if (row.woken > row.waiting)
        row.woken = row.waiting;
    return row;
}

/* Waiting that the thread's time holds and no wait of the totals: it belongs to the sum all the same. */
static void add_untold(struct rp_waits *w, uint32_t thread)
{
    double untold = (double)w->view->profile->threads.at[thread].waiting_ns - w->stacks->waited_ns[thread];

    if (untold > 0)
        w->stacks->sums[cat_rules_ncategories(w->view->rules) * RP_WAIT_SUMS + RP_WAIT_NS] += untold;
}

static void add_threads(struct rp_waits *w)
{
    for (uint32_t i = 0; i < w->view->profile->threads.n; i++) {
        struct rp_thread_row row;

        if (!w->view->passes[i])
            continue;
        row = divide(w, i);
        add_untold(w, i);
        w->wall += row.wall;
        w->cpu += row.cpu;
        w->preempted += row.preempted;
        w->waiting += row.waiting;
        w->unknown += row.unknown;
        w->idle_seconds += row.idle;
        w->idle_threads += row.idle > 0;
    }
    if (w->keep_idle)
        w->waiting += w->idle_seconds;
    /* Not wall - idle: where nothing was recorded of a thread's time, its wall says nothing. */
    w->busy = w->cpu + w->preempted + w->waiting;
}

static int heavier_thread(const void *a, const void *b)
{
    const struct rp_thread_row *x = a, *y = b;
    double p = x->cpu + x->preempted + x->waiting, q = y->cpu + y->preempted + y->waiting;

    if (p < q || p > q)
        return p < q ? 1 : -1;
    return x->thread < y->thread ? -1 : x->thread > y->thread;
}

enum rp_status rp_waits_threads(const struct rp_waits *w, struct rp_thread_table *table, struct rp_err *err)
{
    memset(table, 0, sizeof *table);
    for (uint32_t i = 0; i < w->view->profile->threads.n; i++) {
        struct rp_thread_row *row;

        if (!w->view->passes[i])
            continue;
        row = rp_vec_add(&table->rows);
        if (!row) {
            rp_thread_table_release(table);
            return rp_fail_nomem(err);
        }
        *row = divide(w, i);
    }
    if (table->rows.n)
        qsort(table->rows.at, table->rows.n, sizeof *table->rows.at, heavier_thread);
    return RP_OK;
}

void rp_thread_table_release(struct rp_thread_table *table)
{
    rp_vec_release(&table->rows);
}

/* ---- all of it ---- */

enum rp_status rp_waits_new(const struct rp_view *view, bool keep_idle, struct rp_waits **out, struct rp_err *err)
{
    struct rp_waits *w = rp_calloc(1, sizeof *w);
    enum rp_status status;

    *out = NULL;
    if (!w)
        return rp_fail_nomem(err);
    w->view = view;
    w->keep_idle = keep_idle;
    status = rp_wait_stacks_make(w, err);
    if (status == RP_OK) {
        add_threads(w);
        status = fill_rows(w, err);
    }
    if (status == RP_OK && !keep_idle)
        status = fill_idle(w, err);
    if (status)
        rp_waits_free(w);
    else
        *out = w;
    return status;
}

void rp_waits_free(struct rp_waits *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->rows.n; i++)
        rp_vec_release(&w->rows.at[i].payers);
    rp_vec_release(&w->rows);
    for (size_t i = 0; i < w->idle.n; i++)
        rp_free(w->idle.at[i].name);
    rp_vec_release(&w->idle);
    rp_wait_stacks_free(w->stacks);
    rp_free(w);
}
