/* SPDX-License-Identifier: MIT */
/* A list of blocks, the newest first; a request that is large for a block gets one of its own. */
#include "base/arena.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"

enum { BLOCK_BYTES = 64 * 1024, ALIGN = 16 };

struct rp_arena_block {
    struct rp_arena_block *next;
    size_t used;
    size_t size;
    size_t pad; /* keeps `data` aligned to 16 */
    unsigned char data[];
};

static struct rp_arena_block *add_block(struct rp_arena *arena, size_t size)
{
    size_t room = size > BLOCK_BYTES ? size : (size_t)BLOCK_BYTES;
    struct rp_arena_block *block = rp_calloc(1, sizeof *block + room);

    if (!block)
        return NULL;
    block->size = room;
    block->next = arena->blocks;
    arena->blocks = block;
    return block;
}

void *rp_arena_alloc(struct rp_arena *arena, size_t size)
{
    struct rp_arena_block *block = arena->blocks;
    void *at;

    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (!block || block->size - block->used < size) {
        block = add_block(arena, size);
        if (!block)
            return NULL;
    }
    at = block->data + block->used;
    block->used += size;
    arena->bytes += size;
    return at;
}

char *rp_arena_strndup(struct rp_arena *arena, const char *text, size_t length)
{
    char *copy = length == SIZE_MAX ? NULL : rp_arena_alloc(arena, length + 1);

    if (!copy)
        return NULL;
    if (length)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

void rp_arena_release(struct rp_arena *arena)
{
    while (arena->blocks) {
        struct rp_arena_block *next = arena->blocks->next;

        rp_free(arena->blocks);
        arena->blocks = next;
    }
    arena->bytes = 0;
}
