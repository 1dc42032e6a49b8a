/* SPDX-License-Identifier: MIT */
/* Open addressing with linear probing, at most two thirds full. */
#include "base/index.h"

#include <string.h>

#include "base/alloc.h"

static bool resize(struct rp_index *index, uint32_t size)
{
    uint32_t *slots = rp_reallocarray(NULL, size, sizeof *slots);
    uint32_t *hashes = rp_calloc(size, sizeof *hashes);

    if (!slots || !hashes) {
        rp_free(slots);
        rp_free(hashes);
        return false;
    }
    memset(slots, 0xff, size * sizeof *slots);
    for (uint32_t i = 0; index->slots && i <= index->mask; i++) {
        uint32_t at;

        if (index->slots[i] == RP_INDEX_EMPTY)
            continue;
        for (at = index->hashes[i] & (size - 1); slots[at] != RP_INDEX_EMPTY;)
            at = (at + 1) & (size - 1);
        slots[at] = index->slots[i];
        hashes[at] = index->hashes[i];
    }
    rp_free(index->slots);
    rp_free(index->hashes);
    index->slots = slots;
    index->hashes = hashes;
    index->mask = size - 1;
    return true;
}

static uint32_t probe(const struct rp_index *index, uint32_t hash, rp_index_same *same, const void *context)
{
    uint32_t at = hash & index->mask;

    while (index->slots[at] != RP_INDEX_EMPTY && !(index->hashes[at] == hash && same(context, index->slots[at])))
        at = (at + 1) & index->mask;
    return at;
}

uint32_t *rp_index_find(struct rp_index *index, uint32_t hash, rp_index_same *same, const void *context)
{
    if (!index->slots && !resize(index, 64))
        return NULL;
    if (index->n >= (index->mask + 1) / 3 * 2 && (index->mask >= UINT32_MAX / 4 || !resize(index, (index->mask + 1) * 2)))
        return NULL;
    rp_move((void **)&index->slots, ((size_t)index->mask + 1) * sizeof *index->slots);
    rp_move((void **)&index->hashes, ((size_t)index->mask + 1) * sizeof *index->hashes);
    return &index->slots[probe(index, hash, same, context)];
}

void rp_index_set(struct rp_index *index, uint32_t *slot, uint32_t hash, uint32_t position)
{
    *slot = position;
    index->hashes[slot - index->slots] = hash;
    index->n++;
}

uint32_t rp_index_lookup(const struct rp_index *index, uint32_t hash, rp_index_same *same, const void *context)
{
    return index->slots ? index->slots[probe(index, hash, same, context)] : RP_INDEX_EMPTY;
}

void rp_index_release(struct rp_index *index)
{
    rp_free(index->slots);
    rp_free(index->hashes);
    *index = (struct rp_index){0};
}

static uint64_t mix64(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

uint32_t rp_hash_u64(uint64_t key)
{
    return (uint32_t)mix64(key);
}

uint32_t rp_hash_mix(uint32_t hash, uint64_t key)
{
    return (uint32_t)mix64(key ^ ((uint64_t)hash << 32 | hash));
}

uint32_t rp_hash_bytes(const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    uint64_t sum = length * 0x9e3779b97f4a7c15u;
    uint64_t word;

    for (; length >= 8; at += 8, length -= 8) {
        memcpy(&word, at, 8);
        sum = mix64(sum ^ word);
    }
    word = 0;
    if (length)
        memcpy(&word, at, length);
    return (uint32_t)mix64(sum ^ word);
}
