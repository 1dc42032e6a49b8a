/* SPDX-License-Identifier: MIT */
/* Which code of one process lives at an address, as told by its JIT maps in the order they were written.
 *
 * Compilers free and reuse memory, so entries overlap: a later one wins over the bytes it covers, and an older wide one stays valid around it.
 *
 *   entries   1: [0x100, 0x200) a      2: [0x140, 0x160) b
 *   segments  [0x100,0x140) 1   [0x140,0x160) 2   [0x160,0x200) 1
 *
 * Names stay in the map files. An entry is 24 bytes and a segment 16, so two million lines are some 100 MB less than their text. */
#ifndef RP_SYMBOLIZE_JITCODE_H
#define RP_SYMBOLIZE_JITCODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/vec.h"

struct rp_jit_entry {
    uint64_t start;
    uint64_t name_at;          /* offset of the name in its file */
    uint32_t bytes;            /* of code, at least 1; 4 GiB and more count as UINT32_MAX */
    uint32_t name_length : 20; /* cut at RP_SYMBOL_MAX */
    uint32_t file : 12;        /* the owner's number of the file */
};

struct rp_jit_segment {
    uint64_t start;
    uint32_t bytes;
    uint32_t entry;
};

/* Segments made of the entries [first, past). Newer levels win over older ones; a level is merged with the one before it as soon as
 * it is more than half its size, so that adding costs log n per entry however small the portions. */
struct rp_jit_level {
    uint32_t first, past;
    RP_VEC(struct rp_jit_segment) segments; /* by start, disjoint */
};

enum { RP_JIT_LEVELS = 48 };

/* Zero-initialised is empty and ready. */
struct rp_jit_code {
    RP_VEC(struct rp_jit_entry) entries;
    struct rp_jit_level levels[RP_JIT_LEVELS]; /* oldest first */
    uint32_t nlevels;
};

/* Appends an entry, which becomes visible with the next settle. False: RP_JIT_ENTRIES_MAX is reached, or no memory. */
bool rp_jit_code_add(struct rp_jit_code *code, const struct rp_jit_entry *entry);

/* Takes up the entries added since the last call. */
enum rp_status rp_jit_code_settle(struct rp_jit_code *code, struct rp_err *err);

/* The number of the newest settled entry that covers `addr`, counted from 1; 0 none. */
uint32_t rp_jit_code_find(const struct rp_jit_code *code, uint64_t addr);

void rp_jit_code_release(struct rp_jit_code *code);

#endif
