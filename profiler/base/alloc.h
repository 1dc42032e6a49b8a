/* SPDX-License-Identifier: MIT */
/* The one door to the heap. Tests close it on the n-th call to see that every failure is survived, so nothing in
 * rowprof calls malloc itself (libraries we link do). */
#ifndef RP_BASE_ALLOC_H
#define RP_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed memory for `count` things of `size` bytes; NULL when there is none or the product overflows. */
void *rp_calloc(size_t count, size_t size);

/* realloc for `count` things of `size` bytes; on NULL the old block is untouched. Grown bytes are not zeroed. */
void *rp_reallocarray(void *old, size_t count, size_t size);

/* A copy of `length` bytes of `text` with a final NUL. */
char *rp_strndup(const char *text, size_t length);

/* `block` may be NULL. Everything above is freed with this. */
void rp_free(void *block);

/* Nothing, unless built with RP_ALWAYS_MOVES (the sanitizer preset): then what grows moves at every chance to grow, not once
 * in a while, so that a pointer kept over one is always found. Moves `*block`, of `bytes` bytes. Counts as no allocation. */
#ifdef RP_ALWAYS_MOVES
void rp_move(void **block, size_t bytes);
#else
static inline void rp_move(void **block, size_t bytes)
{
    (void)block;
    (void)bytes;
}
#endif

/* Tests only: the n-th allocation from now on fails (1 = the next); 0 switches it off. Returns how many allocations were
 * made since the last call. */
uint64_t rp_alloc_fail_at(uint64_t n);

#endif
