/* SPDX-License-Identifier: MIT */
/*
 * The functions whose shares `rowload mix` knows.
 *
 * rw_mix_body.c is compiled twice from one source: with frame pointers (rw_mix_a) and without (rw_mix_nofp_a), where the
 * base register holds running data, so that a walk by frame pointers goes astray there and one by tables does not.
 */
#ifndef RW_MIX_H
#define RW_MIX_H

#include <stdint.h>

#include "rl_run.h"

enum { RW_MIX_LETTERS = 8 };

/* Where one piece of work is to be done: below `depth` frames of rw_depth and `rec` of rw_rec_a and rw_rec_b. */
struct rw_mix_call {
    uint32_t letter; /* 0 is a */
    uint32_t depth;
    uint32_t rec;
    uint64_t units;
};

/* Does the work; the result depends on it, so that it cannot be left out. */
RW_CATEGORY uint64_t rw_mix_enter(const struct rw_mix_call *call);
RW_CATEGORY uint64_t rw_mix_nofp_enter(const struct rw_mix_call *call);

#endif
