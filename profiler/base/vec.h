/* SPDX-License-Identifier: MIT */
/* Growable arrays of anything:
 *
 *     RP_VEC(struct rp_mapping) maps = {0};
 *     struct rp_mapping *m = rp_vec_add(&maps);      // NULL: no memory, or RP_VEC_MAX_BYTES reached
 *     for (size_t i = 0; i < maps.n; i++) use(&maps.at[i]);
 *     rp_vec_release(&maps);
 *
 * Adding moves the array: keep indices, not pointers. Zero-initialised is empty and ready. */
#ifndef RP_BASE_VEC_H
#define RP_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"

#define RP_VEC(type)                                                                                                   \
    struct {                                                                                                           \
        type *at;                                                                                                      \
        size_t n, cap;                                                                                                 \
    }

/* Room for `more` more elements. False: no memory, nothing changed. */
bool rp_vec_grow_(void **at, size_t n, size_t *cap, size_t more, size_t size);

/* Makes room for `more` more elements; false when there is no memory. */
#define rp_vec_reserve(v, more) rp_vec_grow_((void **)&(v)->at, (v)->n, &(v)->cap, (more), sizeof *(v)->at)

/* Adds one element and returns a pointer to it (not zeroed), or NULL. */
#define rp_vec_add(v) (rp_vec_reserve((v), 1) ? &(v)->at[(v)->n++] : NULL)

/* Empties it but keeps the memory. */
#define rp_vec_clear(v) ((void)((v)->n = 0))

#define rp_vec_release(v) (rp_free((v)->at), (v)->at = NULL, (v)->n = (v)->cap = 0, (void)0)

#endif
