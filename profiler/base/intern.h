/* SPDX-License-Identifier: MIT */
/* Each distinct string once, as a 32-bit id: equality is integer comparison. Id 0 is the empty string. */
#ifndef RP_BASE_INTERN_H
#define RP_BASE_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/index.h"
#include "base/vec.h"

struct rp_interned {
    const char *text; /* NUL-terminated, in the arena; never moves */
    uint32_t length;
    uint32_t hash;
};

/* Zero-initialised is empty and ready. */
struct rp_intern {
    struct rp_arena arena;
    struct rp_index index;
    RP_VEC(struct rp_interned) strings; /* [0] is "" once anything was interned */
};

#define RP_NO_STRING UINT32_MAX

/* The id of `text`; RP_NO_STRING when there is no memory. */
uint32_t rp_intern(struct rp_intern *table, const char *text, size_t length);
uint32_t rp_intern_str(struct rp_intern *table, const char *text);

/* The text of an id that `rp_intern` returned, "" for 0 and for ids that are none. */
const char *rp_intern_text(const struct rp_intern *table, uint32_t id);

void rp_intern_release(struct rp_intern *table);

#endif
