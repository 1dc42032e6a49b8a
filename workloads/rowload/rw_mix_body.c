/* SPDX-License-Identifier: MIT */
/*
 * The work of `rowload mix`, compiled twice: see rw_mix.h. RW_MIX_FP says which of the two this is.
 *
 * The leaves differ in one constant only, so that a unit costs the same in each and yet the compiler cannot fold them
 * into one. Nothing here may end in a tail call, or frames would be missing from a correct stack: KEEP_FRAME sees to it.
 */
#include "rw_mix.h"

#if RW_MIX_FP
#define NAMED(name) rw_##name
#define MIX(name) rw_mix_##name
#define WORKING_REGISTER uint64_t x
#else
#define NAMED(name) rw_nofp_##name
#define MIX(name) rw_mix_nofp_##name
#define WORKING_REGISTER register uint64_t x __asm__("rbp")
#endif

#define KEEP_FRAME(value) __asm__ volatile("" : "+r"(value))

enum { ROUNDS = 64 }; /* per unit: about a tenth of a microsecond */

#define LEAF(letter, constant)                                                                                         \
    RW_CATEGORY uint64_t MIX(letter)(uint64_t units);                                                                  \
    uint64_t MIX(letter)(uint64_t units)                                                                               \
    {                                                                                                                  \
        WORKING_REGISTER = units | 1;                                                                                  \
        for (uint64_t left = units * ROUNDS; left; left--) {                                                           \
            x ^= x << 13;                                                                                              \
            x ^= x >> 7;                                                                                               \
            x ^= x << 17;                                                                                              \
            x += constant;                                                                                             \
            __asm__ volatile("" : "+r"(x));                                                                            \
        }                                                                                                              \
        return x;                                                                                                      \
    }

LEAF(a, 11)
LEAF(b, 23)
LEAF(c, 37)
LEAF(d, 41)
LEAF(e, 59)
LEAF(f, 61)
LEAF(g, 79)
LEAF(h, 83)

static uint64_t (*const leaves[RW_MIX_LETTERS])(uint64_t) = {MIX(a), MIX(b), MIX(c), MIX(d),
                                                             MIX(e), MIX(f), MIX(g), MIX(h)};

RW_CATEGORY uint64_t NAMED(rec_a)(const struct rw_mix_call *call, uint32_t left);
RW_CATEGORY uint64_t NAMED(rec_b)(const struct rw_mix_call *call, uint32_t left);
RW_CATEGORY uint64_t NAMED(depth)(const struct rw_mix_call *call, uint32_t left);

uint64_t NAMED(rec_a)(const struct rw_mix_call *call, uint32_t left)
{
    uint64_t result = left > 1 ? NAMED(rec_b)(call, left - 1) : leaves[call->letter](call->units);
    KEEP_FRAME(result);
    return result + 1;
}

uint64_t NAMED(rec_b)(const struct rw_mix_call *call, uint32_t left)
{
    uint64_t result = left > 1 ? NAMED(rec_a)(call, left - 1) : leaves[call->letter](call->units);
    KEEP_FRAME(result);
    return result + 2;
}

/* The mutual recursion, or the leaf at once. */
static uint64_t below_depth(const struct rw_mix_call *call)
{
    return call->rec ? NAMED(rec_a)(call, call->rec) : leaves[call->letter](call->units);
}

uint64_t NAMED(depth)(const struct rw_mix_call *call, uint32_t left)
{
    uint64_t result = left > 1 ? NAMED(depth)(call, left - 1) : below_depth(call);
    KEEP_FRAME(result);
    return result + 3;
}

uint64_t MIX(enter)(const struct rw_mix_call *call)
{
    uint64_t result = call->depth ? NAMED(depth)(call, call->depth) : below_depth(call);
    KEEP_FRAME(result);
    return result;
}
