/* SPDX-License-Identifier: MIT */
/* A DWARF expression over a snapshot: what rows that are not "register plus offset" need (signal trampolines, realigned stacks).
 *
 * The trap: an expression comes from a file of the target's owner. Steps and depth are bounded; a jump leads to an operation or nowhere. */
#ifndef RP_UNWIND_EXPR_H
#define RP_UNWIND_EXPR_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample/snapshot.h"

/* What an expression may see. */
struct rp_expr_env {
    const uint64_t *regs; /* RP_NREGS by DWARF number */
    uint32_t valid;       /* bit r: regs[r] is known */
    bool has_cfa;
    uint64_t cfa;
    uint64_t low, high;   /* the copied stack */
    const uint8_t *stack;
};

enum rp_expr_end {
    RP_EXPR_VALUE,   /* *value is the value itself */
    RP_EXPR_ADDRESS, /* *value is where in memory it stands */
    RP_EXPR_SHORT,   /* a read above the copied stack */
    RP_EXPR_BAD,     /* an unknown register, an unsupported or malformed operation, a read below the copy */
};

/* Reads 8 bytes of the copied stack: RP_EXPR_VALUE, SHORT or BAD. */
enum rp_expr_end rp_expr_read(const struct rp_expr_env *env, uint64_t address, uint64_t *value);

/* Evaluates `ops`. A register location gives the register's value as RP_EXPR_VALUE. */
enum rp_expr_end rp_expr_eval(const struct rp_expr_env *env, const Dwarf_Op *ops, size_t nops, uint64_t *value);

#endif
