/* SPDX-License-Identifier: MIT */
/* What the rules leave open, by the function that a new rule should name. */
#include <stdlib.h>
#include <string.h>

#include "analyze/view.h"
#include "analyze/view_stack.h"

struct key {
    const struct rp_unclaimed_table *table;
    const struct rp_unclaimed *row;
};

static bool same(const void *context, uint32_t position)
{
    const struct key *key = context;
    const struct rp_unclaimed *a = &key->table->rows.at[position], *b = key->row;

    return a->function == b->function && a->inherited == b->inherited && a->foreign == b->foreign && a->category == b->category;
}

static enum rp_status add(struct rp_unclaimed_table *table, struct rp_index *index, const struct rp_unclaimed *row, struct rp_err *err)
{
    struct key key = {table, row};
    uint32_t hash = rp_hash_mix(rp_hash_u64((uint64_t)row->function << 32 | row->category), (uint32_t)row->inherited << 1 | row->foreign);
    uint32_t *slot = rp_index_find(index, hash, same, &key);
    struct rp_unclaimed *new;

    if (slot && *slot != RP_INDEX_EMPTY) {
        table->rows.at[*slot].samples += row->samples;
        return RP_OK;
    }
    new = slot ? rp_vec_add(&table->rows) : NULL;
    if (!new)
        return rp_fail_nomem(err);
    *new = *row;
    rp_index_set(index, slot, hash, (uint32_t)table->rows.n - 1);
    return RP_OK;
}

static int heavier(const void *a, const void *b)
{
    const struct rp_unclaimed *x = a, *y = b;

    if (x->inherited != y->inherited)
        return x->inherited ? 1 : -1;
    if (x->samples != y->samples)
        return x->samples < y->samples ? 1 : -1;
    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    if (x->category != y->category)
        return x->category < y->category ? -1 : 1;
    return x->foreign < y->foreign ? -1 : x->foreign > y->foreign;
}

static bool in_kernel(const struct rp_view *view, const struct rp_frame *frame)
{
    return view->profile->locations.at[frame->location].flags & RP_LOCATION_KERNEL;
}

/* From the claimed frame leafward, the first that lies in another module and that a rule could name; as many as there are: none. The kernel is no module that
 * a function strays into. */
static size_t foreign_frame(const struct rp_view *view, const struct rp_view_stack *stack, const struct rp_frames *frames)
{
    const struct rp_function *functions = view->profile->functions.at;
    size_t payer = (size_t)stack->verdict.payer - stack->shift;

    if (payer >= frames->at.n || in_kernel(view, &frames->at.at[payer]))
        return frames->at.n;
    for (size_t f = payer; f-- > 0;) {
        const struct rp_frame *frame = &frames->at.at[f];
        const struct rp_function *function = &functions[frame->function];

        if (!view->through[frame->function] && function->how != RP_NAME_MARK && !in_kernel(view, frame) &&
            function->module != functions[frames->at.at[payer].function].module)
            return f;
    }
    return frames->at.n;
}

enum rp_status rp_view_unclaimed(const struct rp_view *view, struct rp_unclaimed_table *table, struct rp_err *err)
{
    uint32_t uncategorized = cat_rules_uncategorized(view->rules);
    struct rp_frames frames = {0};
    struct rp_index index = {0};
    enum rp_status status = RP_OK;

    memset(table, 0, sizeof *table);
    for (size_t i = 0; i < view->stacks.n && status == RP_OK; i++) {
        const struct rp_view_stack *s = &view->stacks.at[i];
        struct rp_unclaimed row = {.samples = s->samples, .inherited = s->verdict.inherited, .category = s->verdict.category};
        size_t at;

        if (s->verdict.category != uncategorized && !s->verdict.inherited)
            continue;
        status = rp_frames_take(view, s->node, &frames, err);
        if (status || !frames.at.n)
            continue;
        at = row.inherited ? foreign_frame(view, s, &frames) : frames.at.n;
        row.foreign = at < frames.at.n;
        row.function = frames.at.at[row.foreign ? at : rp_view_asked_frame(view, &frames)].function;
        status = add(table, &index, &row, err);
    }
    if (status)
        rp_vec_release(&table->rows);
    else if (table->rows.n)
        qsort(table->rows.at, table->rows.n, sizeof *table->rows.at, heavier);
    rp_index_release(&index);
    rp_frames_release(&frames);
    return status;
}
