/* SPDX-License-Identifier: MIT */
/* Memory that lives as long as a profile and is freed at once. Blocks never move, so pointers stay good. */
#ifndef RP_BASE_ARENA_H
#define RP_BASE_ARENA_H

#include <stddef.h>

/* Zero-initialised is empty and ready. */
struct rp_arena {
    struct rp_arena_block *blocks;
    size_t bytes; /* handed out so far */
};

/* `size` zeroed bytes, aligned to 16; NULL when there is no memory. */
void *rp_arena_alloc(struct rp_arena *arena, size_t size);

/* A copy with a final NUL. NULL when there is no memory. */
char *rp_arena_strndup(struct rp_arena *arena, const char *text, size_t length);

/* Frees everything; the arena is empty and ready again. */
void rp_arena_release(struct rp_arena *arena);

#endif
