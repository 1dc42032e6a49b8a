/* SPDX-License-Identifier: MIT */
/* Chance for simulations: seeded, so that a test that passed once passes always. */
#ifndef TESTS_CHANCE_H
#define TESTS_CHANCE_H

#include "base/random.h"

/* [0, 1) */
static inline double chance_uniform(uint64_t *chance)
{
    return (double)(rp_random_next(chance) >> 11) / 9007199254740992.0;
}

#endif
