/* SPDX-License-Identifier: MIT */
/* Call trees: every stack is laid as a path into one trie, then small nodes are cut off and siblings are put in order.
 *
 * A node is (parent, function) and, where call sites are told apart, also (offset) or (file, line). Stacks may be thousands of frames deep, so nothing
 * here recurses; parents always stand before their children. */
#include "analyze/calltree.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/view_stack.h"
#include "analyze/wait_stacks.h"

#define NONE UINT32_MAX

struct build {
    const struct rp_view *view;
    const struct rp_calltree_options *options;
    struct rp_calltree *tree;
    struct rp_index index;
    struct rp_frames frames;
};

struct key {
    const struct rp_calltree *tree;
    const struct rp_calltree_node *node;
};

static bool same(const void *context, uint32_t position)
{
    const struct key *key = context;
    const struct rp_calltree_node *a = &key->tree->nodes.at[position], *b = key->node;

    return a->parent == b->parent && a->function == b->function && a->has_offset == b->has_offset && a->offset == b->offset &&
           a->file == b->file && a->line == b->line;
}

static enum rp_status enter(struct build *build, const struct rp_calltree_node *node, uint32_t *id, struct rp_err *err)
{
    struct key key = {build->tree, node};
    uint32_t hash = rp_hash_u64((uint64_t)node->parent << 32 | node->function);
    uint32_t *slot;
    struct rp_calltree_node *new;

    if (node->has_offset || node->file || node->line)
        hash = rp_hash_mix(hash, node->offset ^ ((uint64_t)node->file << 32 | node->line));
    slot = rp_index_find(&build->index, hash, same, &key);
    if (slot && *slot != RP_INDEX_EMPTY) {
        *id = *slot;
        return RP_OK;
    }
    new = slot ? rp_vec_add(&build->tree->nodes) : NULL;
    if (!new)
        return rp_fail_nomem(err);
    *new = *node;
    *id = (uint32_t)build->tree->nodes.n - 1;
    rp_index_set(&build->index, slot, hash, *id);
    return RP_OK;
}

/* Where in the frame's function the call stands: the offset of the return address, or file and line when the function is inlined there. */
static void tell_call_site(const struct rp_view *view, const struct rp_frame *frame, struct rp_calltree_node *node)
{
    const struct rp_profile *p = view->profile;
    const struct rp_location *l = &p->locations.at[frame->location];
    const struct rp_line *line = &p->lines.at[frame->line];
    const struct rp_function *f = &p->functions.at[line->function];
    bool holds_the_code = frame->line == l->first_line + l->nlines - 1;

    if (f->how == RP_NAME_MARK || f->how == RP_NAME_OFFSET)
        return;
    if (holds_the_code && f->start && l->addr >= f->start) {
        node->has_offset = true;
        node->offset = l->addr - f->start;
    } else {
        node->file = line->file;
        node->line = line->line;
    }
}

/* The part of a stack that becomes a path, and the frame whose call sites are told apart (n: none). */
struct range {
    size_t low, high, split;
};

/* False: the stack has no part in this tree. */
static bool choose_function(const struct build *build, struct range *range)
{
    size_t n = build->frames.at.n, at = n;

    while (at-- > 0)
        if (build->options->functions[build->frames.at.at[at].function]) {
            *range = build->options->callers ? (struct range){at, n - 1, at + 1} : (struct range){0, at, n};
            return true;
        }
    return false;
}

static bool choose_frames(const struct build *build, const struct rp_view_stack *stack, struct range *range)
{
    size_t n = build->frames.at.n, above = rp_view_above_claims(stack);

    *range = (struct range){0, n - 1, n};
    if (build->options->functions)
        return choose_function(build, range);
    if (build->options->category == UINT32_MAX || above > n)
        return true;
    /* The caller of the outermost claimed frame; where there is none, that frame itself, unless it is the leaf, which calls nothing. */
    if (above < n)
        range->split = above;
    else if (above > 1)
        range->split = above - 1;
    while (build->options->waits && range->split + 1 < n && rp_wait_is_below(build->view, build->frames.at.at[range->split].function))
        range->split++;
    if (!build->options->full_stacks)
        range->high = range->split < n ? range->split : n - 1;
    if (build->options->callers)
        range->split = n;
    return true;
}

/* The leafmost frame to show. */
static size_t leaf_of(const struct build *build, const struct range *range)
{
    const struct rp_profile *p = build->view->profile;
    size_t at = range->low;

    while (build->options->user_only && at < range->high && p->locations.at[build->frames.at.at[at].location].flags & RP_LOCATION_KERNEL)
        at++;
    return at;
}

static enum rp_status add_stack(struct build *build, const struct rp_view_stack *stack, uint64_t weight, struct rp_err *err)
{
    uint32_t parent = NONE, depth = 0;
    struct range range;
    size_t leaf;
    enum rp_status status = rp_frames_take(build->view, stack->node, &build->frames, err);

    if (!build->options->functions)
        build->tree->samples += weight;
    if (status || !build->frames.at.n || !choose_frames(build, stack, &range))
        return status;
    if (build->options->functions)
        build->tree->samples += weight;
    leaf = range.low ? 0 : leaf_of(build, &range);
    range.low += leaf;
    for (size_t i = range.low; i <= range.high; i++, depth++) {
        size_t at = build->options->callers ? i : range.high - (i - range.low);
        struct rp_calltree_node node = {
            .function = build->frames.at.at[at].function, .parent = parent, .first_child = NONE, .next_sibling = NONE, .depth = depth};

        if (at == range.split)
            tell_call_site(build->view, &build->frames.at.at[at], &node);
        status = enter(build, &node, &parent, err);
        if (status)
            return status;
        build->tree->nodes.at[parent].samples += weight;
        if (at == leaf)
            build->tree->nodes.at[parent].self += weight;
    }
    return RP_OK;
}

static bool is_wanted(const struct rp_calltree_options *options, const struct rp_view_stack *stack)
{
    return options->category == UINT32_MAX || stack->verdict.category == options->category;
}

/* ns of each wait stack, of one lock only when one is asked for; owned by the caller, NULL: no memory. */
static double *wait_weights(const struct rp_waits *waits, uint32_t lock)
{
    const struct rp_profile *p = waits->view->profile;
    double *weights = rp_calloc(waits->stacks->at.n + 1, sizeof *weights);

    for (size_t i = 0; weights && i < waits->stacks->norder; i++) {
        uint32_t line = waits->stacks->order[i], stack = waits->stacks->stack_of[line];

        if (lock ? p->waits.at[line].tag == lock && !waits->stacks->more.at[stack].idle
                 : waits->keep_idle || !waits->stacks->more.at[stack].idle)
            weights[stack] += waits->stacks->ns[line];
    }
    return weights;
}

static enum rp_status add_waits(struct build *build, struct rp_err *err)
{
    const struct rp_waits *waits = build->options->waits;
    double *weights = wait_weights(waits, build->options->lock);
    enum rp_status status = weights ? RP_OK : rp_fail_nomem(err);

    for (size_t i = 0; i < waits->stacks->at.n && status == RP_OK; i++)
        if (weights[i] > 0 && is_wanted(build->options, &waits->stacks->at.at[i]))
            status = add_stack(build, &waits->stacks->at.at[i], (uint64_t)(weights[i] + 0.5), err);
    rp_free(weights);
    return status;
}

static enum rp_status add_holders(struct build *build, struct rp_err *err)
{
    const struct rp_profile *p = build->view->profile;
    enum rp_status status = RP_OK;

    for (size_t i = 0; i < p->holders.n && status == RP_OK; i++) {
        const struct rp_holder *h = &p->holders.at[i];
        struct rp_view_stack stack = {.node = h->node};

        if (h->lock + 1 == build->options->lock && h->node && rp_view_passes_waiter(build->view, rp_profile_holder_waiter(p, i)))
            status = add_stack(build, &stack, h->ns, err);
    }
    return status;
}

static enum rp_status add_samples(struct build *build, struct rp_err *err)
{
    enum rp_status status = RP_OK;

    for (size_t i = 0; i < build->view->stacks.n && status == RP_OK; i++)
        if (is_wanted(build->options, &build->view->stacks.at[i]))
            status = add_stack(build, &build->view->stacks.at[i], build->view->stacks.at[i].samples, err);
    return status;
}

/* Keeps nodes of at least `min` samples. Parents have no fewer than their children, so no node loses its parent. */
static enum rp_status fold_small(struct rp_calltree *tree, uint64_t min, struct rp_err *err)
{
    uint32_t *moved = rp_calloc(tree->nodes.n + 1, sizeof *moved);
    size_t kept = 0;

    if (!moved)
        return rp_fail_nomem(err);
    for (size_t i = 0; i < tree->nodes.n; i++) {
        struct rp_calltree_node node = tree->nodes.at[i];

        if (node.samples < min)
            continue;
        if (node.parent != NONE)
            node.parent = moved[node.parent];
        moved[i] = (uint32_t)kept;
        tree->nodes.at[kept++] = node;
    }
    tree->nodes.n = kept;
    rp_free(moved);
    return RP_OK;
}

struct order {
    const struct rp_calltree *tree;
    const struct rp_profile *profile;
    bool by_self;
};

/* By parent, then largest first; names and call sites decide between equals, so that the order is the same in every run. */
static int before(const void *a, const void *b, void *context)
{
    const struct order *o = context;
    const struct rp_calltree_node *x = &o->tree->nodes.at[*(const uint32_t *)a], *y = &o->tree->nodes.at[*(const uint32_t *)b];
    uint64_t first[2] = {o->by_self ? x->self : x->samples, o->by_self ? y->self : y->samples};
    uint64_t second[2] = {o->by_self ? x->samples : x->self, o->by_self ? y->samples : y->self};
    int names;

    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    if (first[0] != first[1])
        return first[0] > first[1] ? -1 : 1;
    if (second[0] != second[1])
        return second[0] > second[1] ? -1 : 1;
    names = strcmp(rp_profile_text(o->profile, o->profile->functions.at[x->function].name),
                   rp_profile_text(o->profile, o->profile->functions.at[y->function].name));
    if (names)
        return names;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

static enum rp_status link_siblings(struct rp_calltree *tree, const struct rp_profile *profile, bool by_self, struct rp_err *err)
{
    struct order order = {tree, profile, by_self};
    uint32_t *ids = rp_calloc(tree->nodes.n + 1, sizeof *ids);

    if (!ids)
        return rp_fail_nomem(err);
    for (uint32_t i = 0; i < tree->nodes.n; i++)
        ids[i] = i;
    if (tree->nodes.n)
        qsort_r(ids, tree->nodes.n, sizeof *ids, before, &order);
    for (size_t i = 0; i < tree->nodes.n; i++) {
        uint32_t parent = tree->nodes.at[ids[i]].parent;

        if (i && tree->nodes.at[ids[i - 1]].parent == parent)
            tree->nodes.at[ids[i - 1]].next_sibling = ids[i];
        else if (parent == NONE)
            tree->first_top = ids[i];
        else
            tree->nodes.at[parent].first_child = ids[i];
    }
    rp_free(ids);
    return RP_OK;
}

enum rp_status rp_calltree_make(const struct rp_view *view, const struct rp_calltree_options *options, struct rp_calltree *tree, struct rp_err *err)
{
    struct build build = {.view = view, .options = options, .tree = tree};
    enum rp_status status;

    memset(tree, 0, sizeof *tree);
    tree->first_top = NONE;
    status = options->holders ? add_holders(&build, err) : options->waits ? add_waits(&build, err) : add_samples(&build, err);
    rp_index_release(&build.index);
    rp_frames_release(&build.frames);
    if (status == RP_OK)
        status = fold_small(tree, options->min_samples, err);
    if (status == RP_OK)
        status = link_siblings(tree, view->profile, options->order_by_self, err);
    if (status)
        rp_calltree_release(tree);
    return status;
}

void rp_calltree_release(struct rp_calltree *tree)
{
    rp_vec_release(&tree->nodes);
    memset(tree, 0, sizeof *tree);
    tree->first_top = NONE;
}
