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

/* Tests only: the n-th allocation from now on fails (1 = the next); 0 switches it off. Returns how many allocations were
 * made since the last call. */
uint64_t rp_alloc_fail_at(uint64_t n);

#endif
