/* SPDX-License-Identifier: MIT */
/* A hash index over things that live in somebody's array: it stores 32-bit positions, the owner compares.
 *
 *     uint32_t *slot = rp_index_find(&index, hash, same, &key);   // NULL: no memory
 *     if (*slot == RP_INDEX_EMPTY) { …add to the array at n…; rp_index_set(&index, slot, hash, n); }
 *     else …the thing at array[*slot]…
 *
 * No deletion: what a profile has seen stays. Where a younger thing takes over an older one's key, `*slot` is simply given its position. */
#ifndef RP_BASE_INDEX_H
#define RP_BASE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RP_INDEX_EMPTY UINT32_MAX

/* Zero-initialised is empty and ready. */
struct rp_index {
    uint32_t *slots;  /* position in the owner's array, or RP_INDEX_EMPTY */
    uint32_t *hashes; /* beside each slot, so that growing needs no owner */
    uint32_t n, mask; /* mask = slots - 1, a power of two minus one */
};

/* True when the thing at `position` of the owner's array is the one looked for. */
typedef bool rp_index_same(const void *context, uint32_t position);

/* The slot of the thing, or the empty slot where it goes. NULL when there is no memory. */
uint32_t *rp_index_find(struct rp_index *index, uint32_t hash, rp_index_same *same, const void *context);

/* Fills the empty slot that the last `rp_index_find` returned. */
void rp_index_set(struct rp_index *index, uint32_t *slot, uint32_t hash, uint32_t position);

/* The position of the thing, RP_INDEX_EMPTY when it is not there. Never allocates. */
uint32_t rp_index_lookup(const struct rp_index *index, uint32_t hash, rp_index_same *same, const void *context);

void rp_index_release(struct rp_index *index);

/* Good mixing of a 64-bit key, and of bytes. */
uint32_t rp_hash_u64(uint64_t key);
uint32_t rp_hash_mix(uint32_t hash, uint64_t key);
uint32_t rp_hash_bytes(const void *bytes, size_t length);

#endif
