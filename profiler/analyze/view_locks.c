/* SPDX-License-Identifier: MIT */
/* Locks that were waited for, and who held them.
 *
 * The trap: which lock a wait was for is known only of waits whose stack was seen, so counts and seconds are scaled as those of categories are; holders
 * are counts of stacked waits and are given as parts. They are known of those waits that were open when a look came, the longer ones, so they are never
 * scaled up to the others. */
#include <stdlib.h>
#include <string.h>

#include "analyze/wait_stacks.h"

/* What one line of waits adds to a function that waited for a lock. */
struct waiter {
    uint32_t lock, function;
    double ns;
};

struct lock_sums {
    size_t nlocks;
    double *n, *ns, *stacked;
    uint64_t *max_ns;
    uint32_t *waiter;      /* function that waits most */
    double *waiter_ns;
    RP_VEC(struct waiter) waiters;
    double unnamed;
};

static void sums_release(struct lock_sums *s)
{
    rp_free(s->n);
    rp_free(s->ns);
    rp_free(s->stacked);
    rp_free(s->max_ns);
    rp_free(s->waiter);
    rp_free(s->waiter_ns);
    rp_vec_release(&s->waiters);
}

static enum rp_status sums_init(struct lock_sums *s, size_t nlocks, struct rp_err *err)
{
    *s = (struct lock_sums){.nlocks = nlocks};
    s->n = rp_calloc(nlocks + 1, sizeof *s->n);
    s->ns = rp_calloc(nlocks + 1, sizeof *s->ns);
    s->stacked = rp_calloc(nlocks + 1, sizeof *s->stacked);
    s->max_ns = rp_calloc(nlocks + 1, sizeof *s->max_ns);
    s->waiter = rp_calloc(nlocks + 1, sizeof *s->waiter);
    s->waiter_ns = rp_calloc(nlocks + 1, sizeof *s->waiter_ns);
    if (!s->n || !s->ns || !s->stacked || !s->max_ns || !s->waiter || !s->waiter_ns)
        return rp_fail_nomem(err); /* the caller releases */
    memset(s->waiter, 0xff, nlocks * sizeof *s->waiter);
    return RP_OK;
}

/* Who called the outermost frame that waiting claims, beyond the C library and SQLite. */
static enum rp_status waiter_of(const struct rp_waits *w, uint32_t stack, struct rp_frames *frames, uint32_t *function, struct rp_err *err)
{
    const struct rp_view_stack *s = &w->stacks->at.at[stack];
    enum rp_status status = rp_frames_take(w->view, s->node, frames, err);
    size_t at = rp_view_above_claims(s);

    if (status)
        return status;
    while (at < frames->at.n && rp_wait_is_below(w->view, frames->at.at[at].function))
        at++;
    *function = at < frames->at.n ? frames->at.at[at].function : UINT32_MAX;
    return RP_OK;
}

static int by_lock_and_function(const void *a, const void *b)
{
    const struct waiter *x = a, *y = b;

    if (x->lock != y->lock)
        return x->lock < y->lock ? -1 : 1;
    return x->function < y->function ? -1 : x->function > y->function;
}

/* Its waits are spread over threads, classes and stacks: only their sum tells who waits most. */
static void choose_waiters(struct lock_sums *s)
{
    size_t end;

    if (s->waiters.n)
        qsort(s->waiters.at, s->waiters.n, sizeof *s->waiters.at, by_lock_and_function);
    for (size_t i = 0; i < s->waiters.n; i = end) {
        const struct waiter *first = &s->waiters.at[i];
        double ns = 0;

        for (end = i; end < s->waiters.n && by_lock_and_function(&s->waiters.at[end], first) == 0; end++)
            ns += s->waiters.at[end].ns;
        if (ns > s->waiter_ns[first->lock]) {
            s->waiter_ns[first->lock] = ns;
            s->waiter[first->lock] = first->function;
        }
    }
}

static enum rp_status add_waits(const struct rp_waits *w, struct lock_sums *s, struct rp_err *err)
{
    const struct rp_profile *p = w->view->profile;
    struct rp_frames frames = {0};
    uint32_t lock_category = cat_rules_find_category(w->view->rules, "wait.lock");
    uint32_t arena_category = cat_rules_find_category(w->view->rules, "wait.malloc");
    enum rp_status status = RP_OK;

    for (size_t i = 0; i < w->stacks->norder && status == RP_OK; i++) {
        uint32_t line = w->stacks->order[i], stack = w->stacks->stack_of[line], function;
        struct waiter *waiter;
        const struct rp_wait *wait = &p->waits.at[line];
        uint32_t category = w->stacks->at.at[stack].verdict.category;
        size_t lock = (size_t)wait->tag - 1;

        /* A condition's word is a futex as a mutex's is, but nobody holds it. */
        if (category != lock_category && category != arena_category)
            continue;
        if (!wait->tag || lock >= s->nlocks) {
            s->unnamed += w->stacks->ns[line] / 1e9;
            continue;
        }
        s->n[lock] += w->stacks->n[line];
        s->ns[lock] += w->stacks->ns[line];
        s->stacked[lock] += (double)wait->n;
        s->max_ns[lock] = wait->max_ns > s->max_ns[lock] ? wait->max_ns : s->max_ns[lock];
        status = waiter_of(w, stack, &frames, &function, err);
        if (status)
            break;
        waiter = rp_vec_add(&s->waiters);
        if (waiter)
            *waiter = (struct waiter){(uint32_t)lock, function, w->stacks->ns[line]};
        else
            status = rp_fail_nomem(err);
    }
    choose_waiters(s);
    rp_frames_release(&frames);
    return status;
}

/* What a holder's stack is, by the rules. */
static enum rp_status category_of(const struct rp_waits *w, const struct rp_holder *h, struct rp_wait_walk *walk, uint32_t *category,
                                  struct rp_err *err)
{
    const struct rp_view *view = w->view;
    uint32_t comm = h->thread < view->profile->threads.n ? view->profile->threads.at[h->thread].comm : 0;
    struct cat_context context = rp_wait_context(view, comm, false, true);
    struct cat_verdict verdict;
    enum rp_status status;

    *category = RP_WAIT_UNSEEN;
    if (!h->node)
        return RP_OK;
    context.state = h->state == RP_STATE_RUNNING ? CAT_RUNNING : CAT_BLOCKED;
    status = rp_wait_walk_take(view, h->node, -1, walk, err);
    if (status)
        return status;
    cat_classify(view->matcher, walk->symbols.at, walk->symbols.n, &context, &verdict);
    *category = verdict.category;
    return RP_OK;
}

/* Adds to the part of `list` that has the key of `part`. */
static enum rp_status add_part(struct rp_lock_row *row, bool doing, const struct rp_lock_part *part, struct rp_err *err)
{
    size_t n = doing ? row->doings.n : row->holders.n;
    struct rp_lock_part *at = doing ? row->doings.at : row->holders.at, *to = NULL;

    for (size_t i = 0; i < n && !to; i++)
        if (at[i].thread == part->thread && at[i].category == part->category && at[i].blocked == part->blocked)
            to = &at[i];
    if (to) {
        to->waits += part->waits;
        to->seconds += part->seconds;
        return RP_OK;
    }
    to = doing ? rp_vec_add(&row->doings) : rp_vec_add(&row->holders);
    if (!to)
        return rp_fail_nomem(err);
    *to = *part;
    return RP_OK;
}

static enum rp_status add_holder(struct rp_lock_row *row, const struct rp_holder *h, uint32_t category, struct rp_err *err)
{
    struct rp_lock_part holder = {.thread = h->thread, .category = RP_WAIT_UNSEEN, .waits = (double)h->n, .seconds = (double)h->ns / 1e9};
    struct rp_lock_part doing = holder;
    enum rp_status status = add_part(row, false, &holder, err);

    doing.thread = UINT32_MAX;
    doing.category = category;
    doing.blocked = h->node && h->state == RP_STATE_BLOCKED;
    return status ? status : add_part(row, true, &doing, err);
}

static int heavier_part(const void *a, const void *b)
{
    const struct rp_lock_part *x = a, *y = b;

    if (x->waits < y->waits || x->waits > y->waits)
        return x->waits < y->waits ? 1 : -1;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return x->category < y->category ? -1 : x->category > y->category;
}

static int heavier_lock(const void *a, const void *b)
{
    const struct rp_lock_row *x = a, *y = b;

    if (x->seconds < y->seconds || x->seconds > y->seconds)
        return x->seconds < y->seconds ? 1 : -1;
    return x->lock < y->lock ? -1 : x->lock > y->lock;
}

/* Holders of the locks that have a row; `row_of` is by lock, UINT32_MAX where there is none. */
static enum rp_status add_holders(const struct rp_waits *w, struct rp_lock_table *table, const uint32_t *row_of, struct rp_err *err)
{
    const struct rp_profile *p = w->view->profile;
    struct rp_wait_walk walk = {0};
    enum rp_status status = RP_OK;

    for (size_t i = 0; i < p->holders.n && status == RP_OK; i++) {
        const struct rp_holder *h = &p->holders.at[i];
        uint32_t category = RP_WAIT_UNSEEN, waiter = rp_profile_holder_waiter(p, i);
        struct rp_lock_row *row;

        if (h->lock >= p->locks.n || row_of[h->lock] == UINT32_MAX || !rp_view_passes_waiter(w->view, waiter))
            continue;
        row = &table->rows.at[row_of[h->lock]];
        if (waiter == UINT32_MAX && w->view->filtered)
            row->of_all = true;
        if (h->thread == UINT32_MAX) {
            row->free += (double)h->n;
            continue;
        }
        row->held += (double)h->n;
        status = category_of(w, h, &walk, &category, err);
        if (!status)
            status = add_holder(row, h, category, err);
    }
    rp_wait_walk_release(&walk);
    return status;
}

static enum rp_status fill(const struct rp_waits *w, const struct lock_sums *s, uint32_t *row_of, struct rp_lock_table *table, struct rp_err *err)
{
    enum rp_status status;

    for (uint32_t i = 0; i < s->nlocks; i++) {
        struct rp_lock_row *row;

        row_of[i] = UINT32_MAX;
        if (!(s->n[i] > 0))
            continue;
        row = rp_vec_add(&table->rows);
        if (!row)
            return rp_fail_nomem(err);
        memset(row, 0, sizeof *row);
        row->lock = i;
        row->waits = s->n[i];
        row->seconds = s->ns[i] / 1e9;
        row->share = w->busy > 0 ? row->seconds / w->busy : 0;
        row->max_s = (double)s->max_ns[i] / 1e9;
        row->waiter = s->waiter[i];
        row_of[i] = (uint32_t)table->rows.n - 1;
    }
    status = add_holders(w, table, row_of, err);
    for (size_t i = 0; i < table->rows.n; i++) {
        struct rp_lock_row *row = &table->rows.at[i];

        row->stacked = s->stacked[row->lock];
        row->parted = row->of_all ? row->held : row->stacked;
        row->known = row->of_all ? 0 : row->held < row->stacked ? row->held / row->stacked : 1;
        if (row->holders.n)
            qsort(row->holders.at, row->holders.n, sizeof *row->holders.at, heavier_part);
        if (row->doings.n)
            qsort(row->doings.at, row->doings.n, sizeof *row->doings.at, heavier_part);
    }
    if (table->rows.n)
        qsort(table->rows.at, table->rows.n, sizeof *table->rows.at, heavier_lock);
    return status;
}

enum rp_status rp_waits_locks(const struct rp_waits *w, struct rp_lock_table *table, struct rp_err *err)
{
    size_t nlocks = w->view->profile->locks.n;
    uint32_t *row_of = rp_calloc(nlocks + 1, sizeof *row_of);
    struct lock_sums s = {0};
    enum rp_status status = row_of ? sums_init(&s, nlocks, err) : rp_fail_nomem(err);

    memset(table, 0, sizeof *table);
    if (!status)
        status = add_waits(w, &s, err);
    if (!status)
        status = fill(w, &s, row_of, table, err);
    table->unnamed = s.unnamed;
    if (status)
        rp_lock_table_release(table);
    sums_release(&s);
    rp_free(row_of);
    return status;
}

void rp_lock_table_release(struct rp_lock_table *table)
{
    for (size_t i = 0; i < table->rows.n; i++) {
        rp_vec_release(&table->rows.at[i].holders);
        rp_vec_release(&table->rows.at[i].doings);
    }
    rp_vec_release(&table->rows);
}
