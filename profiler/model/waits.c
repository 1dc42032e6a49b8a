/* SPDX-License-Identifier: MIT */
/* The waiting side of a profile, see profile.h: waits by duration class, locks and their holders.
 *
 * The trap: a wait counts in the totals whether its stack was seen or not; the stacked ones are a part of them, never beside them. */
#include <string.h>

#include "model/profile.h"

enum { CLASSES_PER_OCTAVE = 4 };

_Static_assert(sizeof(struct rp_wait_total) == 32 && sizeof(struct rp_wait) == 40, "one per stack and duration class");
_Static_assert(RP_WAIT_CLASSES <= UINT16_MAX, "rp_wait.wait_class is 16 bits wide");

uint32_t rp_wait_class(uint64_t ns)
{
    uint32_t octave, part;

    if (ns < 2)
        return 0;
    if (ns >= UINT64_C(1) << (RP_WAIT_CLASSES / CLASSES_PER_OCTAVE))
        return RP_WAIT_CLASSES - 1;
    octave = 63 - (uint32_t)__builtin_clzll(ns);
    part = (uint32_t)(octave >= 2 ? ns >> (octave - 2) : ns << (2 - octave)) % CLASSES_PER_OCTAVE;
    return octave * CLASSES_PER_OCTAVE + part;
}

uint64_t rp_wait_class_ns(uint32_t wait_class)
{
    uint32_t octave = wait_class / CLASSES_PER_OCTAVE, part = wait_class % CLASSES_PER_OCTAVE;

    if (wait_class > RP_WAIT_CLASSES)
        return rp_wait_class_ns(RP_WAIT_CLASSES);
    if (!wait_class)
        return 0;
    /* Below four the octave has fewer whole numbers than parts: rounded up to the first number that is in the class or above. */
    return (((UINT64_C(4) + part) << octave) + 3) >> 2;
}

/* What the `same` functions below compare: the array and the thing looked for. */
struct looked_for {
    const struct rp_profile *profile;
    const void *key;
};

static void add_up(uint64_t *n, uint64_t *ns, uint64_t *max_ns, uint64_t added_ns)
{
    ++*n;
    *ns += added_ns;
    if (*max_ns < added_ns)
        *max_ns = added_ns;
}

static bool same_total(const void *context, uint32_t position)
{
    const struct looked_for *l = context;
    const struct rp_wait_total *a = &l->profile->wait_totals.at[position], *b = l->key;

    return a->thread == b->thread && a->wait_class == b->wait_class;
}

/* NULL: no memory. */
static struct rp_wait_total *find_total(struct rp_profile *p, const struct rp_wait_total *key)
{
    struct looked_for context = {p, key};
    uint32_t hash = rp_hash_u64((uint64_t)key->thread << 32 | key->wait_class);
    uint32_t *slot = rp_index_find(&p->wait_total_index, hash, same_total, &context);
    struct rp_wait_total *new;

    if (slot && *slot != RP_INDEX_EMPTY)
        return &p->wait_totals.at[*slot];
    new = slot ? rp_vec_add(&p->wait_totals) : NULL;
    if (!new)
        return NULL;
    *new = *key;
    rp_index_set(&p->wait_total_index, slot, hash, (uint32_t)p->wait_totals.n - 1);
    return new;
}

static bool same_wait(const void *context, uint32_t position)
{
    const struct looked_for *l = context;
    const struct rp_wait *a = &l->profile->waits.at[position], *b = l->key;

    return a->node == b->node && a->thread == b->thread && a->tag == b->tag && a->wait_class == b->wait_class && a->syscall == b->syscall;
}

static struct rp_wait *find_wait(struct rp_profile *p, const struct rp_wait *key)
{
    struct looked_for context = {p, key};
    uint32_t hash = rp_hash_mix(rp_hash_u64((uint64_t)key->thread << 32 | key->node),
                                (uint64_t)key->tag << 32 | (uint64_t)key->wait_class << 16 | (uint16_t)key->syscall);
    uint32_t *slot = rp_index_find(&p->wait_index, hash, same_wait, &context);
    struct rp_wait *new;

    if (slot && *slot != RP_INDEX_EMPTY)
        return &p->waits.at[*slot];
    new = slot ? rp_vec_add(&p->waits) : NULL;
    if (!new)
        return NULL;
    *new = *key;
    rp_index_set(&p->wait_index, slot, hash, (uint32_t)p->waits.n - 1);
    return new;
}

enum rp_status rp_profile_wait(struct rp_profile *p, uint32_t thread, uint64_t ns, uint32_t node, uint32_t tag, int syscall, struct rp_err *err)
{
    uint32_t wait_class = rp_wait_class(ns);
    struct rp_wait_total total_key = {.thread = thread, .wait_class = wait_class}, *total = find_total(p, &total_key);
    struct rp_wait wait_key = {.thread = thread, .node = node, .tag = tag, .wait_class = (uint16_t)wait_class}, *wait;

    if (!total)
        return rp_fail_nomem(err);
    if (node) {
        wait_key.syscall = syscall >= 0 && syscall <= INT16_MAX ? (int16_t)syscall : -1;
        wait = find_wait(p, &wait_key);
        if (!wait)
            return rp_fail_nomem(err);
        add_up(&wait->n, &wait->ns, &wait->max_ns, ns);
    }
    add_up(&total->n, &total->ns, &total->max_ns, ns);
    return RP_OK;
}

static bool same_lock(const void *context, uint32_t position)
{
    const struct looked_for *l = context;
    const struct rp_lock *a = &l->profile->locks.at[position], *b = l->key;

    return a->address == b->address && a->process == b->process;
}

enum rp_status rp_profile_lock(struct rp_profile *p, const struct rp_lock *lock, uint32_t *position, struct rp_err *err)
{
    struct looked_for context = {p, lock};
    uint32_t hash = rp_hash_mix(rp_hash_u64(lock->address), lock->process);
    uint32_t *slot = rp_index_find(&p->lock_index, hash, same_lock, &context);
    struct rp_lock *new;

    if (slot && *slot != RP_INDEX_EMPTY) {
        *position = *slot;
        return RP_OK;
    }
    new = slot ? rp_vec_add(&p->locks) : NULL;
    if (!new)
        return rp_fail_nomem(err);
    *new = *lock;
    *position = (uint32_t)p->locks.n - 1;
    rp_index_set(&p->lock_index, slot, hash, *position);
    return RP_OK;
}

struct holder_key {
    const struct rp_profile *profile;
    struct rp_holder holder;
    uint32_t waiter;
};

uint32_t rp_profile_holder_waiter(const struct rp_profile *p, size_t holder)
{
    return holder < p->holder_waiters.n ? p->holder_waiters.at[holder].thread : UINT32_MAX;
}

static bool same_holder(const void *context, uint32_t position)
{
    const struct holder_key *key = context;
    const struct rp_holder *a = &key->profile->holders.at[position], *b = &key->holder;

    return a->lock == b->lock && a->thread == b->thread && a->node == b->node && a->state == b->state &&
           rp_profile_holder_waiter(key->profile, position) == key->waiter;
}

enum rp_status rp_profile_holder(struct rp_profile *p, uint32_t lock, uint32_t waiter, uint32_t thread, uint32_t node, enum rp_state state, uint64_t ns,
                                 struct rp_err *err)
{
    struct holder_key context = {p, {.lock = lock, .thread = thread, .node = node, .state = (uint8_t)state}, waiter};
    struct rp_holder *to;
    uint32_t hash = rp_hash_mix(rp_hash_mix(rp_hash_u64((uint64_t)lock << 32 | thread), (uint64_t)node << 8 | (uint64_t)state), waiter);
    uint32_t *slot = rp_index_find(&p->holder_index, hash, same_holder, &context);

    if (!slot)
        return rp_fail_nomem(err);
    if (*slot == RP_INDEX_EMPTY) {
        if (!rp_vec_reserve(&p->holders, 1) || !rp_vec_reserve(&p->holder_waiters, 1))
            return rp_fail_nomem(err);
        to = &p->holders.at[p->holders.n++];
        *to = context.holder;
        p->holder_waiters.at[p->holder_waiters.n++].thread = waiter;
        rp_index_set(&p->holder_index, slot, hash, (uint32_t)p->holders.n - 1);
    } else {
        to = &p->holders.at[*slot];
    }
    to->n++;
    to->ns += ns;
    return RP_OK;
}
