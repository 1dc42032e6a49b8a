/* SPDX-License-Identifier: MIT */
/* Numbers that are in step with nothing: drawn periods, off-beat looks, signs that are flipped. Not for secrets. */
#ifndef RP_BASE_RANDOM_H
#define RP_BASE_RANDOM_H

#include <stdint.h>

/* The next number out of `state`, which may begin with anything (splitmix64: every number comes once in 2^64). The same start gives the same numbers. */
uint64_t rp_random_next(uint64_t *state);

#endif
