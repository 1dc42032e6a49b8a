/* SPDX-License-Identifier: MIT */
/* See alloc.h. The counter is not atomic: rowprof allocates on one thread. */
#include "base/alloc.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static uint64_t fail_at;
static uint64_t calls;

static bool refused(void)
{
    calls++;
    return fail_at && calls == fail_at;
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

void rp_free(void *block)
{
    free(block);
}

uint64_t rp_alloc_fail_at(uint64_t n)
{
    uint64_t made = calls;

    fail_at = n;
    calls = 0;
    return made;
}
