/* SPDX-License-Identifier: MIT */
/* The category table, and whether the run was steady.
 *
 * The trap is counting twice: a stack adds its samples once to the total of a category, however many of its frames are claimed by it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/stats.h"
#include "analyze/view.h"
#include "analyze/view_stack.h"

enum { DRIFT_BLOCKS_MIN = 16, EXPECTED_MIN = 5 };

/* A function that no rule claims and that calls what a category claims. */
struct caller {
    uint32_t category, function;
    uint64_t samples;
};

/* Sums per category. `blocks` and `payers` are rows of one category each. */
struct sums {
    size_t ncategories, nblocks;
    uint64_t *self, *total, *inherited;
    uint64_t *blocks; /* [category * nblocks + block] */
    uint64_t *payers; /* [category * ncategories + payer] */
    bool *has;        /* of the stack at hand */
    uint64_t through, truncated;
    RP_VEC(struct caller) callers;
    struct rp_index caller_index;
};

static void sums_release(struct sums *s)
{
    rp_free(s->self);
    rp_free(s->total);
    rp_free(s->inherited);
    rp_free(s->blocks);
    rp_free(s->payers);
    rp_free(s->has);
    rp_vec_release(&s->callers);
    rp_index_release(&s->caller_index);
}

static enum rp_status sums_init(struct sums *s, const struct rp_view *view, struct rp_err *err)
{
    size_t n = cat_rules_ncategories(view->rules);

    memset(s, 0, sizeof *s);
    s->ncategories = n;
    s->nblocks = view->nblocks;
    s->self = rp_calloc(n, sizeof *s->self);
    s->total = rp_calloc(n, sizeof *s->total);
    s->inherited = rp_calloc(n, sizeof *s->inherited);
    s->blocks = rp_calloc(n * (s->nblocks + 1), sizeof *s->blocks);
    s->payers = n <= 65536 ? rp_calloc(n * n, sizeof *s->payers) : NULL;
    s->has = rp_calloc(n, sizeof *s->has);
    if (s->self && s->total && s->inherited && s->blocks && s->payers && s->has)
        return RP_OK;
    sums_release(s);
    return rp_fail_nomem(err);
}

static void add_self(struct sums *s, const struct rp_view *view)
{
    for (size_t i = 0; i < view->profile->counts.n; i++) {
        const struct rp_count *c = &view->profile->counts.at[i];
        uint32_t category;

        if (view->stack_of[i] == RP_NO_STACK)
            continue;
        category = view->stacks.at[view->stack_of[i]].verdict.category;
        s->self[category] += c->n;
        s->blocks[category * s->nblocks + c->block] += c->n;
    }
}

/* Every category that claims a frame of this stack gets its samples once. */
static void add_totals(struct sums *s, const struct rp_view *view, const struct rp_view_stack *stack, const struct rp_frames *frames,
                       const struct cat_context *context)
{
    memset(s->has, 0, s->ncategories * sizeof *s->has);
    cat_totals(view->matcher, frames->symbols.at, frames->symbols.n, context, &stack->verdict, s->has);
    for (size_t category = 0; category < s->ncategories; category++)
        s->total[category] += s->has[category] ? stack->samples : 0;
}

struct caller_key {
    const struct sums *sums;
    const struct caller *caller;
};

static bool same_caller(const void *context, uint32_t position)
{
    const struct caller_key *key = context;
    const struct caller *a = &key->sums->callers.at[position];

    return a->category == key->caller->category && a->function == key->caller->function;
}

/* Nobody would pay: who calls, of the user's frames that do not pass the question on and are not the category's own. */
static enum rp_status add_caller(struct sums *s, const struct rp_view *view, const struct rp_view_stack *stack, const struct rp_frames *frames,
                                 const struct cat_context *context, struct rp_err *err)
{
    const struct rp_profile *p = view->profile;
    struct caller caller = {.category = stack->verdict.category, .samples = stack->samples};
    struct caller_key key = {s, &caller};
    size_t f = (size_t)stack->verdict.payer + 1;
    uint32_t hash, *slot;
    struct caller *new;

    while (f < frames->at.n &&
           (view->through[frames->at.at[f].function] || p->locations.at[frames->at.at[f].location].flags & (RP_LOCATION_KERNEL | RP_LOCATION_MARK) ||
            cat_claims(view->matcher, frames->symbols.at, frames->symbols.n, f, context, caller.category)))
        f++;
    if (f >= frames->at.n)
        return RP_OK;
    caller.function = frames->at.at[f].function;
    hash = rp_hash_u64((uint64_t)caller.category << 32 | caller.function);
    slot = rp_index_find(&s->caller_index, hash, same_caller, &key);
    if (slot && *slot != RP_INDEX_EMPTY) {
        s->callers.at[*slot].samples += caller.samples;
        return RP_OK;
    }
    new = slot ? rp_vec_add(&s->callers) : NULL;
    if (!new)
        return rp_fail_nomem(err);
    *new = caller;
    rp_index_set(&s->caller_index, slot, hash, (uint32_t)s->callers.n - 1);
    return RP_OK;
}

static enum rp_status add_stacks(struct sums *s, const struct rp_view *view, struct rp_err *err)
{
    struct rp_frames frames = {0};
    enum rp_status status = RP_OK;

    for (size_t i = 0; i < view->stacks.n && status == RP_OK; i++) {
        const struct rp_view_stack *stack = &view->stacks.at[i];
        const struct cat_verdict *v = &stack->verdict;
        struct cat_context context = rp_view_context(view, stack);

        status = rp_frames_take(view, stack->node, &frames, err);
        if (status)
            break;
        add_totals(s, view, stack, &frames, &context);
        s->inherited[v->category] += v->inherited ? stack->samples : 0;
        s->through += v->why == CAT_WHY_THROUGH ? stack->samples : 0;
        s->truncated += v->why == CAT_WHY_TRUNCATED ? stack->samples : 0;
        if (cat_rules_category(view->rules, v->category)->shows_payers) {
            uint32_t payer = 0, frame = 0;

            cat_classify_payer_of(view->matcher, frames.symbols.at, frames.symbols.n, &context, v, &payer, &frame);
            s->payers[v->category * s->ncategories + payer] += stack->samples;
            if (payer == cat_rules_uncategorized(view->rules))
                status = add_caller(s, view, stack, &frames, &context, err);
        }
    }
    rp_frames_release(&frames);
    return status;
}

static int heavier_payer(const void *a, const void *b)
{
    const struct rp_payer *x = a, *y = b;

    if (x->samples != y->samples)
        return x->samples < y->samples ? 1 : -1;
    return x->category < y->category ? -1 : x->category > y->category;
}

static uint32_t heaviest_caller(const struct sums *s, uint32_t category)
{
    uint32_t function = UINT32_MAX;
    uint64_t most = 0;

    for (size_t i = 0; i < s->callers.n; i++) {
        const struct caller *c = &s->callers.at[i];

        if (c->category == category && (c->samples > most || (c->samples == most && c->function < function))) {
            most = c->samples;
            function = c->function;
        }
    }
    return function;
}

static enum rp_status fill_payers(struct rp_category_row *row, const struct sums *s, struct rp_err *err)
{
    for (uint32_t payer = 0; payer < s->ncategories; payer++) {
        uint64_t samples = s->payers[row->category * s->ncategories + payer];
        struct rp_payer *new;

        if (!samples)
            continue;
        new = rp_vec_add(&row->payers);
        if (!new)
            return rp_fail_nomem(err);
        *new = (struct rp_payer){payer, samples, payer + 1 == s->ncategories ? heaviest_caller(s, row->category) : UINT32_MAX};
    }
    if (row->payers.n)
        qsort(row->payers.at, row->payers.n, sizeof *row->payers.at, heavier_payer);
    return RP_OK;
}

static enum rp_status add_row(struct rp_category_table *table, const struct rp_view *view, const struct sums *s, uint32_t category,
                              const struct rp_design *design, struct rp_err *err)
{
    struct rp_category_row *row = rp_vec_add(&table->rows);
    struct rp_interval interval;
    int rising = 0;

    if (!row)
        return rp_fail_nomem(err);
    memset(row, 0, sizeof *row);
    row->category = category;
    row->samples = s->self[category];
    row->total = s->total[category];
    row->inherited = s->inherited[category];
    row->share = view->samples ? (double)row->samples / (double)view->samples : 0;
    row->deff = rp_design_effect(design, view->block_samples, &s->blocks[category * s->nblocks], &rising);
    row->rising = rising != 0;
    interval = rp_wilson((double)row->samples, (double)view->samples, row->deff, rp_normal_quantile(0.975));
    row->low = interval.low;
    row->high = interval.high;
    return fill_payers(row, s, err);
}

/* Uncategorized is the last category, and comes last whatever its size. */
static int heavier_row(const void *a, const void *b, void *last)
{
    const struct rp_category_row *x = a, *y = b;
    uint32_t uncategorized = *(const uint32_t *)last;

    if ((x->category == uncategorized) != (y->category == uncategorized))
        return x->category == uncategorized ? 1 : -1;
    if (x->samples != y->samples)
        return x->samples < y->samples ? 1 : -1;
    return x->category < y->category ? -1 : x->category > y->category;
}

enum rp_status rp_view_categories(const struct rp_view *view, struct rp_category_table *table, struct rp_err *err)
{
    uint32_t uncategorized = cat_rules_uncategorized(view->rules);
    struct rp_design design;
    struct sums s;
    enum rp_status status = sums_init(&s, view, err);

    memset(table, 0, sizeof *table);
    if (status)
        return status;
    rp_design_init(&design, view->nblocks);
    table->samples = view->samples;
    add_self(&s, view);
    status = add_stacks(&s, view, err);
    for (uint32_t i = 0; i < s.ncategories && status == RP_OK; i++)
        if (s.self[i] || i == uncategorized)
            status = add_row(table, view, &s, i, &design, err);
    table->uncategorized_through = s.through;
    table->uncategorized_truncated = s.truncated;
    if (status)
        rp_category_table_release(table);
    else
        qsort_r(table->rows.at, table->rows.n, sizeof *table->rows.at, heavier_row, &uncategorized);
    sums_release(&s);
    return status;
}

void rp_category_table_release(struct rp_category_table *table)
{
    for (size_t i = 0; i < table->rows.n; i++)
        rp_vec_release(&table->rows.at[i].payers);
    rp_vec_release(&table->rows);
}

/* ---- steadiness ---- */

struct half {
    const uint64_t *n, *k;
    double samples, hits, deff;
};

static struct half half_of(const uint64_t *n, const uint64_t *k, const struct rp_design *design)
{
    struct half h = {n, k, 0, 0, 1};

    for (size_t b = 0; b < design->blocks; b++) {
        h.samples += (double)n[b];
        h.hits += (double)k[b];
    }
    h.deff = rp_design_effect(design, n, k, NULL);
    return h;
}

/* False: too little for a judgement. */
static bool compare_halves(const struct half *a, const struct half *b, struct rp_drift *drift)
{
    double p = (a->hits + b->hits) / (a->samples + b->samples), least = a->samples < b->samples ? a->samples : b->samples, z;

    if (!(least > 0) || least * p < EXPECTED_MIN || least * (1 - p) < EXPECTED_MIN)
        return false;
    drift->first = a->hits / a->samples;
    drift->second = b->hits / b->samples;
    z = (drift->first - drift->second) / sqrt(p * (1 - p) * (a->deff / a->samples + b->deff / b->samples));
    drift->p = erfc(fabs(z) / sqrt(2));
    return true;
}

static int stronger(const void *a, const void *b)
{
    const struct rp_drift *x = a, *y = b;

    if (x->p < y->p || x->p > y->p)
        return x->p < y->p ? -1 : 1;
    return x->category < y->category ? -1 : x->category > y->category;
}

/* Replaces each p by Holm's and drops the rows that may be chance. */
static enum rp_status correct(struct rp_drift_table *table, struct rp_err *err)
{
    size_t n = table->rows.n, kept = 0;
    double *p = rp_calloc(n + 1, sizeof *p);
    uint32_t *order = rp_calloc(n + 1, sizeof *order);
    enum rp_status status = p && order ? RP_OK : rp_fail_nomem(err);

    if (status == RP_OK) {
        for (size_t i = 0; i < n; i++)
            p[i] = table->rows.at[i].p;
        rp_holm(p, n, order);
        for (size_t i = 0; i < n; i++) {
            table->rows.at[i].p = p[i];
            if (p[i] < 0.05)
                table->rows.at[kept++] = table->rows.at[i];
        }
        table->rows.n = kept;
        if (kept)
            qsort(table->rows.at, kept, sizeof *table->rows.at, stronger);
    }
    rp_free(p);
    rp_free(order);
    return status;
}

enum rp_status rp_view_drift(const struct rp_view *view, struct rp_drift_table *table, struct rp_err *err)
{
    size_t middle = view->nblocks / 2;
    struct rp_design first, second;
    struct sums s;
    enum rp_status status;

    memset(table, 0, sizeof *table);
    if (view->nblocks < DRIFT_BLOCKS_MIN)
        return RP_OK;
    status = sums_init(&s, view, err);
    if (status)
        return status;
    rp_design_init(&first, middle);
    rp_design_init(&second, view->nblocks - middle);
    add_self(&s, view);
    for (uint32_t i = 0; i < s.ncategories && status == RP_OK; i++) {
        const uint64_t *k = &s.blocks[i * s.nblocks];
        struct half a = half_of(view->block_samples, k, &first);
        struct half b = half_of(view->block_samples + middle, k + middle, &second);
        struct rp_drift drift = {.category = i}, *row;

        if (!compare_halves(&a, &b, &drift))
            continue;
        row = rp_vec_add(&table->rows);
        if (row)
            *row = drift;
        else
            status = rp_fail_nomem(err);
    }
    if (status == RP_OK)
        status = correct(table, err);
    if (status)
        rp_vec_release(&table->rows);
    sums_release(&s);
    return status;
}
