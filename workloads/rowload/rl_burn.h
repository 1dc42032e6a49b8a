/* SPDX-License-Identifier: MIT */
/*
 * Work of a wanted length, without any clock in it.
 *
 * The loop is inlined into the function that carries the cost, so that the profile shows that function alone. A round waits
 * for the one before it and touches no memory, so its price depends on the processor's clock only. It is measured once,
 * against the thread's CPU clock: a busy machine makes it no dearer.
 */
#ifndef RL_BURN_H
#define RL_BURN_H

#include <stdint.h>

/* How many rounds take so many nanoseconds of CPU time. The first call measures, some 20 ms; not thread-safe then. */
uint64_t rl_burn_rounds(uint64_t ns);

/* The result depends on every round. `tag` keeps the compiler from folding equal functions into one. */
static inline uint64_t rl_burn(uint64_t rounds, uint64_t tag)
{
    uint64_t x = rounds | 1;
    for (; rounds; rounds--) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x += tag;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

#endif
