/* SPDX-License-Identifier: MIT */
/* Rows by function, module or thread.
 *
 * The trap is recursion: a stack adds its samples to a thing once, however often the thing is on it, so no total exceeds the samples. */
#include <stdlib.h>
#include <string.h>

#include "analyze/stats.h"
#include "analyze/view.h"
#include "analyze/view_stack.h"

#define NO_KEY UINT32_MAX

/* Sums per key; counts of one self key hang in a list, for the blocks. */
struct sums {
    size_t nkeys;
    uint64_t *self, *total;
    uint32_t *stamp;        /* the last stack (+ 1) that was added to this key's total */
    uint32_t *key_of_stack; /* self key */
    uint32_t *head, *next;  /* per key, per count */
};

static void sums_release(struct sums *s)
{
    rp_free(s->self);
    rp_free(s->total);
    rp_free(s->stamp);
    rp_free(s->key_of_stack);
    rp_free(s->head);
    rp_free(s->next);
}

static size_t count_keys(const struct rp_profile *p, enum rp_by by)
{
    if (by == RP_BY_PROCESS)
        return p->processes.n;
    return by == RP_BY_THREAD ? p->threads.n : by == RP_BY_MODULE ? p->strings.strings.n : p->functions.n;
}

static enum rp_status sums_init(struct sums *s, const struct rp_view *view, enum rp_by by, struct rp_err *err)
{
    size_t n = count_keys(view->profile, by), ncounts = view->profile->counts.n;

    memset(s, 0, sizeof *s);
    s->nkeys = n;
    s->self = rp_calloc(n + 1, sizeof *s->self);
    s->total = rp_calloc(n + 1, sizeof *s->total);
    s->stamp = rp_calloc(n + 1, sizeof *s->stamp);
    s->key_of_stack = rp_calloc(view->stacks.n + 1, sizeof *s->key_of_stack);
    s->head = rp_calloc(n + 1, sizeof *s->head);
    s->next = rp_calloc(ncounts + 1, sizeof *s->next);
    if (s->self && s->total && s->stamp && s->key_of_stack && s->head && s->next) {
        memset(s->head, 0xff, n * sizeof *s->head);
        return RP_OK;
    }
    sums_release(s);
    return rp_fail_nomem(err);
}

/* The key of a frame. A mark stands in no module, so its text stands for one: nothing disappears. */
static uint32_t key_of(const struct rp_view *view, const struct rp_frame *frame, enum rp_by by)
{
    const struct rp_function *f = &view->profile->functions.at[frame->function];

    if (by == RP_BY_MODULE)
        return f->how == RP_NAME_MARK ? f->name : f->module;
    return frame->function;
}

static enum rp_status add_stacks(struct sums *s, const struct rp_view *view, enum rp_by by, struct rp_err *err)
{
    struct rp_frames frames = {0};
    enum rp_status status = RP_OK;

    for (uint32_t i = 0; i < view->stacks.n && status == RP_OK && by != RP_BY_THREAD && by != RP_BY_PROCESS; i++) {
        const struct rp_view_stack *stack = &view->stacks.at[i];

        s->key_of_stack[i] = NO_KEY;
        status = rp_frames_take(view, stack->node, &frames, err);
        for (size_t f = 0; status == RP_OK && f < frames.at.n; f++) {
            uint32_t key = key_of(view, &frames.at.at[f], by);

            if (f == 0)
                s->key_of_stack[i] = key;
            if (key == NO_KEY || s->stamp[key] == i + 1)
                continue;
            s->stamp[key] = i + 1;
            s->total[key] += stack->samples;
        }
    }
    rp_frames_release(&frames);
    return status;
}

static void add_counts(struct sums *s, const struct rp_view *view, enum rp_by by)
{
    for (size_t i = view->profile->counts.n; i-- > 0;) {
        const struct rp_count *c = &view->profile->counts.at[i];
        uint32_t key;

        if (view->stack_of[i] == RP_NO_STACK)
            continue;
        key = by == RP_BY_THREAD    ? c->thread
              : by == RP_BY_PROCESS ? view->profile->threads.at[c->thread].process
                                    : s->key_of_stack[view->stack_of[i]];
        if (key == NO_KEY)
            continue;
        s->self[key] += c->n;
        if (by == RP_BY_THREAD || by == RP_BY_PROCESS)
            s->total[key] += c->n;
        s->next[i] = s->head[key];
        s->head[key] = (uint32_t)i;
    }
}

/* `k` is room for all blocks. */
static void fill_row(struct rp_group_row *row, const struct sums *s, const struct rp_view *view, const struct rp_design *design, uint64_t *k)
{
    struct rp_interval interval;
    double deff;

    memset(k, 0, view->nblocks * sizeof *k);
    for (uint32_t i = s->head[row->key]; i != NO_KEY; i = s->next[i])
        k[view->profile->counts.at[i].block] += view->profile->counts.at[i].n;
    deff = rp_design_effect(design, view->block_samples, k, NULL);
    interval = rp_wilson((double)row->self, (double)view->samples, deff, rp_normal_quantile(0.975));
    row->share = view->samples ? (double)row->self / (double)view->samples : 0;
    row->low = interval.low;
    row->high = interval.high;
}

static int heavier(const void *a, const void *b)
{
    const struct rp_group_row *x = a, *y = b;

    if (x->self != y->self)
        return x->self < y->self ? 1 : -1;
    if (x->total != y->total)
        return x->total < y->total ? 1 : -1;
    return x->key < y->key ? -1 : x->key > y->key;
}

static enum rp_status fill_table(struct rp_group_table *table, const struct sums *s, const struct rp_view *view, struct rp_err *err)
{
    uint64_t *k = rp_calloc(view->nblocks + 1, sizeof *k);
    struct rp_design design;
    enum rp_status status = k ? RP_OK : rp_fail_nomem(err);

    rp_design_init(&design, view->nblocks);
    for (uint32_t key = 0; key < s->nkeys && status == RP_OK; key++) {
        struct rp_group_row *row;

        if (!s->total[key])
            continue;
        row = rp_vec_add(&table->rows);
        if (!row) {
            status = rp_fail_nomem(err);
            break;
        }
        *row = (struct rp_group_row){.key = key, .self = s->self[key], .total = s->total[key]};
        fill_row(row, s, view, &design, k);
    }
    rp_free(k);
    return status;
}

/* Categories as groups: what the category table knows. */
static enum rp_status by_category(const struct rp_view *view, struct rp_group_table *table, struct rp_err *err)
{
    struct rp_category_table categories;
    enum rp_status status = rp_view_categories(view, &categories, err);

    if (status)
        return status;
    for (size_t i = 0; i < categories.rows.n && status == RP_OK; i++) {
        const struct rp_category_row *c = &categories.rows.at[i];
        struct rp_group_row *row = rp_vec_add(&table->rows);

        if (row)
            *row = (struct rp_group_row){c->category, c->samples, c->total, c->share, c->low, c->high};
        else
            status = rp_fail_nomem(err);
    }
    rp_category_table_release(&categories);
    return status;
}

enum rp_status rp_view_groups(const struct rp_view *view, enum rp_by by, struct rp_group_table *table, struct rp_err *err)
{
    struct sums s = {0};
    enum rp_status status;

    memset(table, 0, sizeof *table);
    table->samples = view->samples;
    if (by == RP_BY_CATEGORY) {
        status = by_category(view, table, err);
    } else {
        status = sums_init(&s, view, by, err);
        if (status)
            return status;
        status = add_stacks(&s, view, by, err);
        if (status == RP_OK) {
            add_counts(&s, view, by);
            status = fill_table(table, &s, view, err);
        }
        sums_release(&s);
        if (status == RP_OK && table->rows.n)
            qsort(table->rows.at, table->rows.n, sizeof *table->rows.at, heavier);
    }
    if (status)
        rp_group_table_release(table);
    return status;
}

void rp_group_table_release(struct rp_group_table *table)
{
    rp_vec_release(&table->rows);
}
