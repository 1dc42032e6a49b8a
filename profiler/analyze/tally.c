/* SPDX-License-Identifier: MIT */
/* See tally.h. Each distinct stack gives the rows it belongs to; each count then adds to those rows in its block of time. The cells are sorted by row, so
 * that a design effect needs the blocks of one row at a time and not those of all. */
#include "analyze/tally.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/stats.h"
#include "analyze/view_stack.h"
#include "base/alloc.h"

enum { NO_ID = UINT32_MAX };

struct cell {
    uint32_t key, block;
    uint64_t n;
};

/* What is being made. `keys_at[s]`, `nkeys[s]`: the rows of stack s in `list`. */
struct work {
    const struct rp_view *view;
    enum rp_tally_by by;
    bool total;
    struct rp_tally_keys *keys;
    struct rp_err *err;
    size_t *keys_at, *nkeys;
    uint32_t *key_of; /* per function, string, category or thread, as `by` wants; NO_ID: not asked for yet */
    bool *has;        /* per category */
    RP_VEC(uint32_t) list;
    RP_VEC(struct cell) cells;
    struct rp_buf path;
};

void rp_tally_keys_release(struct rp_tally_keys *keys)
{
    rp_intern_release(&keys->text);
    rp_index_release(&keys->index);
    rp_vec_release(&keys->keys);
}

void rp_tally_release(struct rp_tally *tally)
{
    rp_vec_release(&tally->rows);
}

struct rp_tally_row rp_tally_row(const struct rp_tally *tally, uint32_t key)
{
    struct rp_tally_row none = {0, 1, false};

    return key < tally->rows.n ? tally->rows.at[key] : none;
}

struct same_key {
    const struct rp_tally_keys *keys;
    struct rp_tally_key key;
};

static bool same_key(const void *context, uint32_t position)
{
    const struct same_key *k = context;
    const struct rp_tally_key *there = &k->keys->keys.at[position];

    return there->name == k->key.name && there->module == k->key.module && there->id == k->key.id;
}

static enum rp_status find_key(struct work *w, const char *name, const char *module, uint32_t id, uint32_t *out)
{
    struct rp_tally_keys *keys = w->keys;
    struct same_key same = {keys, {rp_intern_str(&keys->text, name), rp_intern_str(&keys->text, module), id}};
    uint32_t hash = rp_hash_mix(rp_hash_u64((uint64_t)same.key.name << 32 | same.key.module), id), *slot;
    struct rp_tally_key *added;

    if (same.key.name == RP_NO_STRING || same.key.module == RP_NO_STRING)
        return rp_fail_nomem(w->err);
    slot = rp_index_find(&keys->index, hash, same_key, &same);
    if (!slot)
        return rp_fail_nomem(w->err);
    if (*slot == RP_INDEX_EMPTY) {
        added = rp_vec_add(&keys->keys);
        if (!added)
            return rp_fail_nomem(w->err);
        *added = same.key;
        rp_index_set(&keys->index, slot, hash, (uint32_t)keys->keys.n - 1);
    }
    *out = *slot;
    return RP_OK;
}

/* Code without a name is named after its module and offset, which are the same in every process; kernel addresses are not. */
static const char *name_of(const struct rp_profile *p, const struct rp_function *f, bool kernel)
{
    return f->how == RP_NAME_OFFSET && kernel ? rp_profile_text(p, f->module) : rp_profile_text(p, f->name);
}

static enum rp_status function_key(struct work *w, const struct rp_frame *frame, uint32_t *key)
{
    const struct rp_profile *p = w->view->profile;
    const struct rp_function *f = &p->functions.at[frame->function];
    bool kernel = p->locations.at[frame->location].flags & RP_LOCATION_KERNEL;
    bool module = w->by == RP_TALLY_MODULE;
    uint32_t position = !module ? frame->function : f->how == RP_NAME_MARK ? f->name : f->module;
    enum rp_status status = RP_OK;

    if (w->key_of[position] != NO_ID) {
        *key = w->key_of[position];
        return RP_OK;
    }
    /* A mark stands in no module, so its text stands for one. */
    if (module)
        status = find_key(w, rp_profile_text(p, position), "", NO_ID, key);
    else
        status = find_key(w, name_of(p, f, kernel), rp_profile_text(p, f->module), NO_ID, key);
    if (status == RP_OK)
        w->key_of[position] = *key;
    return status;
}

static enum rp_status category_key(struct work *w, uint32_t category, uint32_t *key)
{
    return find_key(w, cat_rules_category(w->view->rules, category)->name, "", category, key);
}

static enum rp_status path_key(struct work *w, const struct rp_frames *frames, uint32_t *key)
{
    const struct rp_profile *p = w->view->profile;

    rp_buf_clear(&w->path);
    for (size_t i = 0; i < frames->at.n; i++) {
        const struct rp_function *f = &p->functions.at[frames->at.at[i].function];
        bool kernel = p->locations.at[frames->at.at[i].location].flags & RP_LOCATION_KERNEL;

        rp_buf_puts(&w->path, i ? " < " : "");
        rp_buf_puts(&w->path, name_of(p, f, kernel));
    }
    if (w->path.failed)
        return rp_fail_nomem(w->err);
    return find_key(w, rp_buf_text(&w->path), "", NO_ID, key);
}

/* Adds a row to those of the stack at hand, once. */
static enum rp_status add(struct work *w, size_t first, uint32_t key)
{
    uint32_t *added;

    for (size_t i = first; i < w->list.n; i++)
        if (w->list.at[i] == key)
            return RP_OK;
    added = rp_vec_add(&w->list);
    if (!added)
        return rp_fail_nomem(w->err);
    *added = key;
    return RP_OK;
}

static enum rp_status add_categories(struct work *w, const struct rp_view_stack *stack, const struct rp_frames *frames, size_t first)
{
    size_t n = cat_rules_ncategories(w->view->rules);
    struct cat_context context = rp_view_context(w->view, stack);
    enum rp_status status = RP_OK;
    uint32_t key = 0;

    memset(w->has, 0, n * sizeof *w->has);
    if (w->total)
        cat_totals(w->view->matcher, frames->symbols.at, frames->symbols.n, &context, &stack->verdict, w->has);
    w->has[stack->verdict.category] = true;
    for (uint32_t c = 0; c < n && status == RP_OK; c++) {
        if (!w->has[c])
            continue;
        status = category_key(w, c, &key);
        if (status == RP_OK)
            status = add(w, first, key);
    }
    return status;
}

static enum rp_status add_stack(struct work *w, size_t s, struct rp_frames *frames)
{
    const struct rp_view_stack *stack = &w->view->stacks.at[s];
    enum rp_status status = rp_frames_take(w->view, stack->node, frames, w->err);
    uint32_t key = 0;

    w->keys_at[s] = w->list.n;
    if (status)
        return status;
    if (w->by == RP_TALLY_CATEGORY) {
        status = add_categories(w, stack, frames, w->keys_at[s]);
    } else if (w->by == RP_TALLY_PATH) {
        status = path_key(w, frames, &key);
        if (status == RP_OK)
            status = add(w, w->keys_at[s], key);
    } else {
        for (size_t i = 0; i < frames->at.n && (i == 0 || w->total) && status == RP_OK; i++) {
            status = function_key(w, &frames->at.at[i], &key);
            if (status == RP_OK)
                status = add(w, w->keys_at[s], key);
        }
    }
    w->nkeys[s] = w->list.n - w->keys_at[s];
    return status;
}

static enum rp_status add_stacks(struct work *w)
{
    struct rp_frames frames = {0};
    enum rp_status status = RP_OK;

    for (size_t s = 0; s < w->view->stacks.n && status == RP_OK; s++)
        status = add_stack(w, s, &frames);
    rp_frames_release(&frames);
    return status;
}

static enum rp_status add_cell(struct work *w, uint32_t key, const struct rp_count *count)
{
    struct cell *cell = rp_vec_add(&w->cells);

    if (!cell)
        return rp_fail_nomem(w->err);
    *cell = (struct cell){key, count->block, count->n};
    return RP_OK;
}

static enum rp_status add_counts(struct work *w)
{
    const struct rp_profile *p = w->view->profile;
    enum rp_status status = RP_OK;

    for (size_t i = 0; i < p->counts.n && status == RP_OK; i++) {
        const struct rp_count *c = &p->counts.at[i];
        uint32_t stack = w->view->stack_of[i], key = 0;

        if (stack == RP_NO_STACK)
            continue;
        if (w->by == RP_TALLY_THREAD) {
            status = find_key(w, rp_profile_text(p, p->threads.at[c->thread].comm), "", NO_ID, &key);
            if (status == RP_OK)
                status = add_cell(w, key, c);
            continue;
        }
        for (size_t k = 0; k < w->nkeys[stack] && status == RP_OK; k++)
            status = add_cell(w, w->list.at[w->keys_at[stack] + k], c);
    }
    return status;
}

static int by_key(const void *a, const void *b)
{
    const struct cell *x = a, *y = b;

    return x->key < y->key ? -1 : x->key > y->key;
}

static enum rp_status fill(struct work *w, struct rp_tally *tally)
{
    uint64_t *k = rp_calloc(w->view->nblocks + 1, sizeof *k);
    size_t n = w->keys->keys.n;
    struct rp_design design;

    if (!k || !rp_vec_reserve(&tally->rows, n)) {
        rp_free(k);
        return rp_fail_nomem(w->err);
    }
    for (; tally->rows.n < n; tally->rows.n++)
        tally->rows.at[tally->rows.n] = (struct rp_tally_row){0, 1, false};
    rp_design_init(&design, w->view->nblocks);
    if (w->cells.n)
        qsort(w->cells.at, w->cells.n, sizeof *w->cells.at, by_key);
    for (size_t i = 0, end; i < w->cells.n; i = end) {
        struct rp_tally_row *row = &tally->rows.at[w->cells.at[i].key];
        int rising = 0;

        memset(k, 0, w->view->nblocks * sizeof *k);
        for (end = i; end < w->cells.n && w->cells.at[end].key == w->cells.at[i].key; end++) {
            k[w->cells.at[end].block] += w->cells.at[end].n;
            row->samples += w->cells.at[end].n;
        }
        row->deff = rp_design_effect(&design, w->view->block_samples, k, &rising);
        row->rising = rising != 0;
    }
    rp_free(k);
    return RP_OK;
}

enum rp_status rp_tally_make(const struct rp_view *view, enum rp_tally_by by, bool total, struct rp_tally_keys *keys, struct rp_tally *tally,
                             struct rp_err *err)
{
    const struct rp_profile *p = view->profile;
    struct work w = {.view = view, .by = by, .total = total, .keys = keys, .err = err};
    size_t most = p->functions.n > p->strings.strings.n ? p->functions.n : p->strings.strings.n;
    enum rp_status status;

    *tally = (struct rp_tally){.samples = view->samples};
    w.keys_at = rp_calloc(view->stacks.n + 1, sizeof *w.keys_at);
    w.nkeys = rp_calloc(view->stacks.n + 1, sizeof *w.nkeys);
    w.key_of = rp_calloc(most + 1, sizeof *w.key_of);
    w.has = rp_calloc(cat_rules_ncategories(view->rules) + 1, sizeof *w.has);
    status = w.keys_at && w.nkeys && w.key_of && w.has ? RP_OK : rp_fail_nomem(err);
    if (status == RP_OK) {
        memset(w.key_of, 0xff, (most + 1) * sizeof *w.key_of);
        status = by == RP_TALLY_THREAD ? RP_OK : add_stacks(&w);
    }
    if (status == RP_OK)
        status = add_counts(&w);
    if (status == RP_OK)
        status = fill(&w, tally);
    rp_free(w.keys_at);
    rp_free(w.nkeys);
    rp_free(w.key_of);
    rp_free(w.has);
    rp_vec_release(&w.list);
    rp_vec_release(&w.cells);
    rp_buf_release(&w.path);
    if (status)
        rp_tally_release(tally);
    return status;
}
