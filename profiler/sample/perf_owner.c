/* SPDX-License-Identifier: MIT */
/* See perf_owner.h. */
#include "sample/perf_owner.h"

#include "base/alloc.h"
#include "base/index.h"

static uint64_t key_of(uint32_t cpu, uint32_t tid)
{
    return (uint64_t)cpu << 32 | tid;
}

/* The slot of `key`, or the free one where it belongs. */
static struct rp_perf_owner *probe(const struct rp_perf_owners *owners, uint64_t key)
{
    uint32_t at = rp_hash_u64(key) & owners->mask;

    while (owners->slots[at].key && owners->slots[at].key != key)
        at = (at + 1) & owners->mask;
    return &owners->slots[at];
}

static bool resize(struct rp_perf_owners *owners)
{
    struct rp_perf_owners larger = *owners;
    uint32_t size = owners->slots ? (owners->mask + 1) * 2 : 256;

    larger.slots = rp_calloc(size, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    larger.mask = size - 1;
    for (uint32_t i = 0; owners->slots && i <= owners->mask; i++) {
        if (owners->slots[i].key)
            *probe(&larger, owners->slots[i].key) = owners->slots[i];
    }
    rp_free(owners->slots);
    *owners = larger;
    return true;
}

enum rp_perf_verdict rp_perf_owners_ask(struct rp_perf_owners *owners, uint32_t cpu, uint32_t tid, uint64_t id, uint64_t *other)
{
    struct rp_perf_owner *slot;

    if (!tid)
        return RP_PERF_TAKE;
    if ((!owners->slots || owners->n >= (owners->mask + 1) / 3 * 2) && !resize(owners))
        return RP_PERF_NOMEM;
    slot = probe(owners, key_of(cpu, tid));
    if (!slot->key) {
        slot->key = key_of(cpu, tid);
        owners->n++;
    }
    if (!slot->id || slot->id == RP_PERF_ENDED || (id >= owners->newest && slot->id < owners->newest))
        slot->id = id;
    *other = slot->id;
    return slot->id == id ? RP_PERF_TAKE : RP_PERF_TWICE;
}

void rp_perf_owners_set(struct rp_perf_owners *owners, uint32_t cpu, uint32_t tid, uint64_t id)
{
    struct rp_perf_owner *slot = owners->slots ? probe(owners, key_of(cpu, tid)) : NULL;

    if (slot && slot->key)
        slot->id = id;
}

void rp_perf_owners_forget(struct rp_perf_owners *owners, uint32_t ncpus, uint32_t tid)
{
    for (uint32_t cpu = 0; cpu < ncpus; cpu++)
        rp_perf_owners_set(owners, cpu, tid, 0);
}

void rp_perf_owners_end(struct rp_perf_owners *owners, uint32_t ncpus, uint32_t tid)
{
    for (uint32_t cpu = 0; cpu < ncpus; cpu++)
        rp_perf_owners_set(owners, cpu, tid, RP_PERF_ENDED);
}

bool rp_perf_owners_cover(const struct rp_perf_owners *owners, uint32_t cpu, uint32_t tid)
{
    const struct rp_perf_owner *slot = owners->slots ? probe(owners, key_of(cpu, tid)) : NULL;

    return slot && slot->key && slot->id != RP_PERF_ENDED;
}

void rp_perf_owners_forget_all(struct rp_perf_owners *owners)
{
    for (uint32_t i = 0; owners->slots && i <= owners->mask; i++)
        owners->slots[i].id = 0;
}

void rp_perf_owners_release(struct rp_perf_owners *owners)
{
    rp_free(owners->slots);
    *owners = (struct rp_perf_owners){0};
}

bool rp_perf_ids_add(struct rp_perf_ids *ids, uint64_t id)
{
    uint64_t *slot = rp_vec_add(&ids->at);

    if (slot)
        *slot = id;
    return slot != NULL;
}

bool rp_perf_ids_have(const struct rp_perf_ids *ids, uint64_t id)
{
    size_t low = 0, high = ids->at.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (ids->at.at[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ids->at.n && ids->at.at[low] == id;
}
