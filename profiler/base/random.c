/* SPDX-License-Identifier: MIT */
/* See random.h. */
#include "base/random.h"

uint64_t rp_random_next(uint64_t *state)
{
    uint64_t x = *state;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *state = x;
    return x;
}
