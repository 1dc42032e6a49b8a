/* SPDX-License-Identifier: MIT */
/* Numbers that must only not be in step with anything: drawn periods, off-beat looks. */
#ifndef RP_BASE_RANDOM_H
#define RP_BASE_RANDOM_H

#include <stdint.h>

/* The next number out of `state`, which begins with anything but 0 (xorshift: every number but 0 comes once in 2^64 - 1). */
uint64_t rp_random_next(uint64_t *state);

#endif
