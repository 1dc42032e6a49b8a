/* SPDX-License-Identifier: MIT */
/* The state of one walk between two frames, shared by the step through a row (walk.c) and the step without one (frames.c). */
#ifndef RP_UNWIND_STEP_H
#define RP_UNWIND_STEP_H

#include <string.h>

#include "unwind/cfi.h"
#include "unwind/expr.h"

/* "Go on", beside the reasons to end. */
#define RP_STEP_ON RP_WALK_ENDS

/* By DWARF number: what a call preserves. */
#define RP_STEP_SAVED                                                                                                  \
    (1u << RP_RBX | 1u << RP_RBP | 1u << RP_R12 | 1u << RP_R13 | 1u << RP_R14 | 1u << RP_R15)

struct rp_step {
    struct rp_unwinder *unwinder;
    struct rp_space *space;
    const uint8_t *stack;     /* bytes [low, high) */
    uint64_t low, high;
    uint64_t regs[RP_NREGS];  /* of the frame at hand: RP_RIP its pc, RP_RSP its stack pointer (the CFA of its callee) */
    uint32_t valid;           /* bit r: regs[r] is known */
    struct rp_address where;  /* of RP_RIP */
    bool exact;               /* the pc is no return address */
    bool by_frame_pointer;    /* how the frame at hand was reached */
    bool sp_only;             /* the walk began with rip and rsp alone */
    bool no_memory;
};

static inline enum rp_expr_end rp_step_read(const struct rp_step *s, uint64_t address, uint64_t *value)
{
    if (address < s->low)
        return RP_EXPR_BAD;
    if (address >= s->high || s->high - address < sizeof *value)
        return RP_EXPR_SHORT;
    memcpy(value, s->stack + (address - s->low), sizeof *value);
    return RP_EXPR_VALUE;
}

/* Goes over to the caller; of the registers that a call preserves only those in `keep` stay known. */
enum rp_walk_end rp_step_arrive(struct rp_step *s, uint64_t cfa, uint64_t ra, uint32_t keep);

/* The frame at hand has its CFA from rbp, which is not known: looks for the place where its prologue has put the caller's, and sets rbp. */
bool rp_step_find_rbp(struct rp_step *s);

/* The step where no row covers the pc. */
enum rp_walk_end rp_step_without_row(struct rp_step *s, const struct rp_rule *rule, struct rp_walk_frame *frame);

#endif
