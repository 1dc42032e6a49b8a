/* SPDX-License-Identifier: MIT */
/* Interning by hash index over the arrays of the profile, see profile.h.
 *
 * The trap is merging blocks: afterwards lines of counts that differed only in their block have equal keys and must be joined, or a
 * key would be there twice and sums by block would still be right while the index finds only one of them. Merging works in place and
 * needs no memory, so that it cannot fail half way. */
#include "model/profile.h"

#include <limits.h>
#include <string.h>

enum { FIRST_BLOCK_NS = 10 * 1000 * 1000 };

_Static_assert(sizeof(struct rp_count) == 32, "there are as many counts as distinct stacks x blocks");
_Static_assert(RP_BLOCKS_MAX - 1 <= UINT16_MAX, "rp_count.block is 16 bits wide");

enum rp_status rp_profile_init(struct rp_profile *profile, struct rp_err *err)
{
    struct rp_node *root;

    memset(profile, 0, sizeof *profile);
    profile->block_ns = FIRST_BLOCK_NS;
    root = rp_vec_add(&profile->nodes);
    if (!root || rp_intern(&profile->strings, "", 0) != 0) {
        rp_profile_release(profile);
        return rp_fail_nomem(err);
    }
    *root = (struct rp_node){0, RP_LOCATION_NONE};
    return RP_OK;
}

void rp_profile_release(struct rp_profile *profile)
{
    rp_intern_release(&profile->strings);
    rp_vec_release(&profile->images);
    rp_vec_release(&profile->locations);
    rp_vec_release(&profile->lines);
    rp_vec_release(&profile->functions);
    rp_vec_release(&profile->aliases);
    rp_vec_release(&profile->nodes);
    rp_vec_release(&profile->processes);
    rp_vec_release(&profile->threads);
    rp_vec_release(&profile->counts);
    rp_vec_release(&profile->wait_totals);
    rp_vec_release(&profile->waits);
    rp_vec_release(&profile->locks);
    rp_vec_release(&profile->holders);
    rp_vec_release(&profile->holder_waiters);
    rp_vec_release(&profile->facts);
    rp_vec_release(&profile->rates);
    rp_index_release(&profile->location_index);
    rp_index_release(&profile->function_index);
    rp_index_release(&profile->node_index);
    rp_index_release(&profile->count_index);
    rp_index_release(&profile->wait_total_index);
    rp_index_release(&profile->wait_index);
    rp_index_release(&profile->lock_index);
    rp_index_release(&profile->holder_index);
    memset(profile, 0, sizeof *profile);
}

enum rp_status rp_profile_string(struct rp_profile *p, const char *text, size_t length, uint32_t *id, struct rp_err *err)
{
    uint32_t found = rp_intern(&p->strings, text, length);

    if (found == RP_NO_STRING)
        return rp_fail_nomem(err);
    *id = found;
    return RP_OK;
}

const char *rp_profile_text(const struct rp_profile *p, uint32_t string)
{
    return rp_intern_text(&p->strings, string);
}

/* What the `same` functions below compare: the array and the thing looked for. */
struct looked_for {
    const struct rp_profile *profile;
    const void *key;
};

static bool same_location(const void *context, uint32_t position)
{
    const struct looked_for *l = context;
    const struct rp_location *a = &l->profile->locations.at[position];
    const struct rp_location *b = l->key;

    return a->addr == b->addr && a->image == b->image && a->flags == b->flags && a->epoch == b->epoch;
}

enum rp_status rp_profile_location(struct rp_profile *p, uint32_t image, uint64_t addr, uint32_t flags, uint32_t epoch, uint32_t *id,
                                   struct rp_err *err)
{
    struct rp_location key = {.image = image, .flags = flags, .addr = addr, .epoch = epoch};
    struct looked_for context = {p, &key};
    uint32_t hash = rp_hash_mix(rp_hash_mix(rp_hash_u64(addr), image), (uint64_t)epoch << 8 | flags);
    uint32_t *slot = rp_index_find(&p->location_index, hash, same_location, &context);
    struct rp_location *new;

    if (slot && *slot != RP_INDEX_EMPTY) {
        *id = *slot;
        return RP_OK;
    }
    new = slot ? rp_vec_add(&p->locations) : NULL;
    if (!new)
        return rp_fail_nomem(err);
    *new = key;
    *id = (uint32_t)p->locations.n - 1;
    rp_index_set(&p->location_index, slot, hash, *id);
    return RP_OK;
}

enum rp_status rp_profile_mark(struct rp_profile *p, const char *text, uint32_t *location, struct rp_err *err)
{
    struct rp_function function = {.how = RP_NAME_MARK};
    struct rp_line *line;
    uint32_t name = 0, id = 0, at = 0;
    enum rp_status status = rp_profile_string(p, text, strlen(text), &name, err);

    if (status == RP_OK)
        status = rp_profile_location(p, 0, name, RP_LOCATION_MARK, 0, &id, err);
    if (status)
        return status;
    if (!p->locations.at[id].nlines) {
        function.name = function.raw = name;
        status = rp_profile_function(p, &function, &at, err);
        if (status)
            return status;
        line = rp_vec_add(&p->lines);
        if (!line)
            return rp_fail_nomem(err);
        *line = (struct rp_line){.function = at};
        p->locations.at[id].first_line = (uint32_t)p->lines.n - 1;
        p->locations.at[id].nlines = 1;
    }
    *location = id;
    return RP_OK;
}

static bool same_node(const void *context, uint32_t position)
{
    const struct looked_for *l = context;
    const struct rp_node *a = &l->profile->nodes.at[position];
    const struct rp_node *b = l->key;

    return a->parent == b->parent && a->location == b->location;
}

enum rp_status rp_profile_node(struct rp_profile *p, uint32_t parent, uint32_t location, uint32_t *id, struct rp_err *err)
{
    struct rp_node key = {parent, location};
    struct looked_for context = {p, &key};
    uint32_t hash = rp_hash_u64((uint64_t)parent << 32 | location);
    uint32_t *slot = rp_index_find(&p->node_index, hash, same_node, &context);
    struct rp_node *new;

    if (slot && *slot != RP_INDEX_EMPTY) {
        *id = *slot;
        return RP_OK;
    }
    new = slot ? rp_vec_add(&p->nodes) : NULL;
    if (!new)
        return rp_fail_nomem(err);
    *new = key;
    *id = (uint32_t)p->nodes.n - 1;
    rp_index_set(&p->node_index, slot, hash, *id);
    return RP_OK;
}

static bool same_function(const void *context, uint32_t position)
{
    const struct looked_for *l = context;
    const struct rp_function *a = &l->profile->functions.at[position];
    const struct rp_function *b = l->key;

    return a->name == b->name && a->start == b->start && a->image == b->image;
}

enum rp_status rp_profile_function(struct rp_profile *p, const struct rp_function *f, uint32_t *id, struct rp_err *err)
{
    struct looked_for context = {p, f};
    uint32_t hash = rp_hash_mix(rp_hash_u64((uint64_t)f->image << 32 | f->name), f->start);
    uint32_t *slot = rp_index_find(&p->function_index, hash, same_function, &context);
    struct rp_function *new;

    if (slot && *slot != RP_INDEX_EMPTY) {
        *id = *slot;
        return RP_OK;
    }
    new = slot ? rp_vec_add(&p->functions) : NULL;
    if (!new)
        return rp_fail_nomem(err);
    *new = *f;
    *id = (uint32_t)p->functions.n - 1;
    rp_index_set(&p->function_index, slot, hash, *id);
    return RP_OK;
}

static bool same_count(const void *context, uint32_t position)
{
    const struct looked_for *l = context;
    const struct rp_count *a = &l->profile->counts.at[position];
    const struct rp_count *b = l->key;

    return a->node == b->node && a->block == b->block && a->thread == b->thread && a->tag == b->tag && a->state == b->state;
}

/* Adds to the line of `key`'s key, or makes it. False: no memory. */
static bool add_count(struct rp_profile *p, const struct rp_count *key)
{
    struct looked_for context = {p, key};
    uint32_t hash = rp_hash_mix(rp_hash_u64((uint64_t)key->thread << 32 | key->node),
                                (uint64_t)key->tag << 32 | (uint64_t)key->block << 8 | key->state);
    uint32_t *slot = rp_index_find(&p->count_index, hash, same_count, &context);
    struct rp_count *to;

    if (!slot)
        return false;
    if (*slot != RP_INDEX_EMPTY) {
        to = &p->counts.at[*slot];
        to->n += key->n;
        to->weight_ns += key->weight_ns;
        return true;
    }
    to = rp_vec_add(&p->counts);
    if (!to)
        return false;
    *to = *key;
    rp_index_set(&p->count_index, slot, hash, (uint32_t)p->counts.n - 1);
    return true;
}

/* 2^shift neighbours become one. Refills array and index in their own memory: there can only be fewer lines than before. */
static void merge_blocks(struct rp_profile *p, unsigned shift)
{
    size_t old = p->counts.n;

    if (p->count_index.slots)
        memset(p->count_index.slots, 0xff, ((size_t)p->count_index.mask + 1) * sizeof *p->count_index.slots);
    p->count_index.n = 0;
    p->counts.n = 0;
    for (size_t i = 0; i < old; i++) {
        struct rp_count count = p->counts.at[i];

        count.block = (uint16_t)((uint64_t)count.block >> shift);
        (void)add_count(p, &count);
    }
    p->nblocks = p->nblocks ? (uint32_t)((uint64_t)(p->nblocks - 1) >> shift) + 1 : 0;
    p->block_ns <<= shift;
}

enum rp_status rp_profile_count(struct rp_profile *p, uint32_t thread, uint32_t node, uint32_t tag, enum rp_state state, uint64_t since_start_ns,
                                uint64_t n, uint64_t weight_ns, struct rp_err *err)
{
    uint64_t block = since_start_ns / p->block_ns;
    unsigned shift = 0;
    struct rp_count key;

    while (block >> shift >= RP_BLOCKS_MAX)
        shift++;
    if (shift)
        merge_blocks(p, shift);
    block >>= shift;
    key = (struct rp_count){
        .thread = thread, .node = node, .tag = tag, .block = (uint16_t)block, .state = (uint8_t)state, .n = n, .weight_ns = weight_ns};
    if (!add_count(p, &key))
        return rp_fail_nomem(err);
    if (p->nblocks <= block)
        p->nblocks = (uint32_t)block + 1;
    return RP_OK;
}
