/* SPDX-License-Identifier: MIT */
/* See alloc.h. The counter is atomic because the ptrace backend's thread allocates, too. */
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t fail_at;
static _Atomic uint64_t calls;

static bool refused(void)
{
    uint64_t call = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) + 1;

    return call == atomic_load_explicit(&fail_at, memory_order_relaxed);
}

void *rp_calloc(size_t count, size_t size)
{
    return refused() ? NULL : calloc(count, size);
}

void *rp_reallocarray(void *old, size_t count, size_t size)
{
    size_t bytes;

    if (refused() || __builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return realloc(old, bytes ? bytes : 1);
}

char *rp_strndup(const char *text, size_t length)
{
    char *copy = length == SIZE_MAX ? NULL : rp_reallocarray(NULL, length + 1, 1);

    if (!copy)
        return NULL;
    if (length)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

#ifdef RP_ALWAYS_MOVES
enum { MOVED_MAX = 4096 }; /* the same code fills the larger ones; moving those each time would tell more of the moving than of the program */

void rp_move(void **block, size_t bytes)
{
    void *moved = *block && bytes && bytes <= MOVED_MAX ? malloc(bytes) : NULL;

    if (!moved)
        return;
    memcpy(moved, *block, bytes);
    free(*block);
    *block = moved;
}
#endif

void rp_free(void *block)
{
    free(block);
}

uint64_t rp_alloc_fail_at(uint64_t n)
{
    uint64_t made = atomic_exchange_explicit(&calls, 0, memory_order_relaxed);

    atomic_store_explicit(&fail_at, n, memory_order_relaxed);
    return made;
}
