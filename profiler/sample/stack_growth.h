/* SPDX-License-Identifier: MIT */
/* How much of a stack is copied, and when that grows: a rule for all samplers. A copy that is too short cuts stacks, one that is too long costs room in
 * the ring, so it begins small and grows where many stacks were cut. */
#ifndef RP_SAMPLE_STACK_GROWTH_H
#define RP_SAMPLE_STACK_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

/* Zero-initialised never grows. */
struct rp_stack_growth {
    uint64_t walked, cut; /* since it last grew, or since they were last forgotten */
    uint32_t grown;       /* how often it did */
    bool may;             /* it is not at its largest, and nothing else forbids it */
};

/* The size of the first copy, a multiple of 8 in the bounds: `wish` bytes, or `usual` when that is 0. Sets `growth` up. */
uint32_t rp_stack_growth_begin(struct rp_stack_growth *growth, uint32_t wish, uint32_t usual);

/* Counts stacks that were walked and those of them that were cut. */
void rp_stack_growth_count(struct rp_stack_growth *growth, uint64_t walked, uint64_t cut);

/* The size to go on with in place of `now`; 0: stay. What was counted is forgotten with the size. Whoever takes the new size adds to `grown`. */
uint32_t rp_stack_growth_next(struct rp_stack_growth *growth, uint32_t now);

#endif
