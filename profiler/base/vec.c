/* SPDX-License-Identifier: MIT */
/* See vec.h. */
#include "base/vec.h"

#include <stdint.h>

#include "base/limits.h"

bool rp_vec_grow_(void **at, size_t n, size_t *cap, size_t more, size_t size)
{
    size_t need, bytes, room = *cap ? *cap : 8;
    void *grown;

    if (__builtin_add_overflow(n, more, &need))
        return false;
    if (need <= *cap) {
        rp_move(at, *cap * size);
        return true;
    }
    while (room < need)
        room = room > SIZE_MAX / 2 ? need : room * 2;
    if (__builtin_mul_overflow(room, size, &bytes) || bytes > RP_VEC_MAX_BYTES)
        return false;
    grown = rp_reallocarray(*at, room, size);
    if (!grown)
        return false;
    *at = grown;
    *cap = room;
    return true;
}
