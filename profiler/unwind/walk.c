/* SPDX-License-Identifier: MIT */
/* The walk: one snapshot in, frames and the reason for the end out. Rules come from cfi.c; where a file has none, frames.c goes by frame
 * pointer.
 *
 *     low = rsp of the leaf                                        high = low + copied bytes
 *      | locals | saved rbp | RA || locals | saved rbx | RA || …    |
 *                            CFA of the leaf            CFA of its caller
 *
 * The trap: a row may say that a register is saved where the leaf's epilogue has already popped it from: below rsp, not in the copy. Then the
 * register itself holds the value again. */
#include <string.h>

#include "base/alloc.h"
#include "unwind/cfi.h"
#include "unwind/step.h"

const char *rp_walk_end_text(enum rp_walk_end end)
{
    static const char *const texts[RP_WALK_ENDS] = {
#define RP_WALK_END_TEXT(name, text) [RP_WALK_##name] = (text),
        RP_WALK_END_TABLE(RP_WALK_END_TEXT)
#undef RP_WALK_END_TEXT
    };

    return (unsigned)end < RP_WALK_ENDS ? texts[end] : NULL;
}

enum rp_status rp_walk_init(struct rp_walk *walk, struct rp_err *err)
{
    walk->n = 0;
    walk->end = RP_WALK_NO_USER;
    walk->frames = rp_calloc(RP_WALK_FRAMES_MAX, sizeof *walk->frames);
    return walk->frames ? RP_OK : rp_fail_nomem(err);
}

void rp_walk_release(struct rp_walk *walk)
{
    rp_free(walk->frames);
    memset(walk, 0, sizeof *walk);
}

enum rp_status rp_unwinder_new(const struct rp_images *images, struct rp_unwinder **out, struct rp_err *err)
{
    struct rp_unwinder *unwinder = rp_calloc(1, sizeof *unwinder);

    if (!unwinder)
        return rp_fail_nomem(err);
    unwinder->images = images;
    *out = unwinder;
    return RP_OK;
}

void rp_unwinder_free(struct rp_unwinder *unwinder)
{
    if (!unwinder)
        return;
    rp_dwfl_free(unwinder->dwfl);
    rp_libunwind_free(unwinder->libunwind);
    for (size_t i = 0; i < unwinder->fdes.n; i++)
        rp_fdes_free(unwinder->fdes.at[i]);
    rp_vec_release(&unwinder->fdes);
    rp_cfi_release(unwinder);
    rp_free(unwinder);
}

void rp_unwinder_stats(const struct rp_unwinder *unwinder, struct rp_unwind_stats *stats)
{
    *stats = unwinder->stats;
}

enum rp_walk_end rp_step_arrive(struct rp_step *s, uint64_t cfa, uint64_t ra, uint32_t keep)
{
    s->regs[RP_RSP] = cfa;
    s->regs[RP_RIP] = ra;
    s->valid = (s->valid & keep & RP_STEP_SAVED) | 1u << RP_RSP | 1u << RP_RIP;
    s->exact = false;
    return ra ? RP_STEP_ON : RP_WALK_ROOT;
}

static enum rp_walk_end fast_step(struct rp_step *s, const struct rp_rule *rule, struct rp_walk_frame *frame)
{
    uint64_t cfa = s->regs[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa_offset, ra, value;
    uint32_t keep = RP_STEP_SAVED;
    struct rp_rule kept;

    if (!(s->valid >> rule->cfa_reg & 1)) {
        kept = *rule; /* the search looks up others */
        rule = &kept;
        if (!s->sp_only || rule->cfa_reg != RP_RBP || rule->cfa_offset != 16 || !rp_step_find_rbp(s))
            return RP_WALK_BAD_ROW;
        frame->by_frame_pointer = true;
        cfa = s->regs[RP_RBP] + 16;
    }
    if (rule->flags & RP_RULE_PLT)
        cfa += (s->regs[RP_RIP] & 15) >= rule->plt_limit ? 8 : 0;
    if (cfa <= s->regs[RP_RSP])
        return RP_WALK_BAD_CFA;
    switch (rp_step_read(s, cfa + (uint64_t)(int64_t)rule->ra_offset, &ra)) {
    case RP_EXPR_SHORT: return RP_WALK_STACK_SHORT;
    case RP_EXPR_VALUE: break;
    default: return RP_WALK_BAD_CFA;
    }
    frame->cfa = cfa;
    for (unsigned i = 0, left = rule->at_cfa; left; i++, left >>= 1) {
        uint64_t slot = cfa + (uint64_t)(int64_t)rule->saved_offset[i];

        if (!(left & 1))
            continue;
        if (rp_step_read(s, slot, &value) == RP_EXPR_VALUE) {
            s->regs[rp_saved_dwarf[i]] = value;
            s->valid |= 1u << rp_saved_dwarf[i];
        } else if (!(s->exact && slot < s->low)) {
            keep &= ~(1u << rp_saved_dwarf[i]);
        }
    }
    for (unsigned i = 0, left = rule->lost; left; i++, left >>= 1)
        if (left & 1)
            keep &= ~(1u << rp_saved_dwarf[i]);
    return rp_step_arrive(s, cfa, ra, keep);
}

/* The caller's register `reg` by libdw's row, `lost` when it cannot be known. */
static enum rp_expr_end slow_register(const struct rp_step *s, const struct rp_expr_env *env, Dwarf_Frame *row, unsigned reg, bool *lost,
                                      uint64_t *value)
{
    Dwarf_Op mem[3], *ops;
    size_t nops;
    enum rp_expr_end end;

    *lost = false;
    if (dwarf_frame_register(row, (int)reg, mem, &ops, &nops))
        return RP_EXPR_BAD;
    if (nops == 0) {
        *lost = (ops != NULL && !rp_cfi_is_silence((int)reg)) || !(env->valid >> reg & 1);
        *value = env->regs[reg];
        return RP_EXPR_VALUE;
    }
    end = rp_expr_eval(env, ops, nops, value);
    if (end != RP_EXPR_ADDRESS)
        return end;
    if (*value < env->low && s->exact && reg != RP_RIP && env->valid >> reg & 1) { /* popped already */
        *value = env->regs[reg];
        return RP_EXPR_VALUE;
    }
    return rp_expr_read(env, *value, value);
}

/* All registers: behind a signal frame the interrupted code may have its CFA in any of them. */
static void slow_registers(struct rp_step *s, const struct rp_expr_env *env, Dwarf_Frame *row, bool signal)
{
    uint64_t regs[RP_NREGS];
    uint32_t valid = 0;

    for (unsigned reg = 0; reg < RP_RIP; reg++) {
        bool lost;

        if (slow_register(s, env, row, reg, &lost, &regs[reg]) == RP_EXPR_VALUE && !lost)
            valid |= 1u << reg;
        else
            regs[reg] = 0;
    }
    if (!(valid >> RP_RSP & 1) || regs[RP_RSP] == s->regs[RP_RSP]) /* no rule for rsp */
        regs[RP_RSP] = env->cfa;
    memcpy(s->regs, regs, RP_RIP * sizeof regs[0]);
    s->valid = (signal ? valid : valid & RP_STEP_SAVED) | 1u << RP_RSP | 1u << RP_RIP;
}

static enum rp_walk_end end_of(enum rp_expr_end end)
{
    return end == RP_EXPR_SHORT ? RP_WALK_STACK_SHORT : RP_WALK_BAD_ROW;
}

static enum rp_walk_end slow_step(struct rp_step *s, const struct rp_rule *rule, struct rp_walk_frame *frame)
{
    struct rp_expr_env env = {s->regs, s->valid, false, 0, s->low, s->high, s->stack};
    Dwarf_Frame *row = s->unwinder->slow.at[rule->slow];
    bool signal = rule->flags & RP_RULE_SIGNAL, lost;
    uint64_t cfa, ra, sp = s->regs[RP_RSP];
    enum rp_expr_end end;
    Dwarf_Op *ops;
    size_t nops;
    int ra_reg;

    s->unwinder->stats.rows_slow++;
    if (dwarf_frame_cfa(row, &ops, &nops) || !nops)
        return RP_WALK_BAD_ROW;
    /* A CFA expression yields the value as what DWARF calls an address; a register operation makes no sense here. */
    end = rp_expr_eval(&env, ops, nops, &cfa);
    if (end != RP_EXPR_ADDRESS && end != RP_EXPR_VALUE)
        return end_of(end);
    if (!signal && (cfa < sp || (cfa == sp && !s->exact))) /* equal: a leaf that holds its return address in a register */
        return RP_WALK_BAD_CFA;
    env.has_cfa = true;
    env.cfa = cfa;
    ra_reg = dwarf_frame_info(row, NULL, NULL, NULL);
    if (ra_reg < 0 || ra_reg >= RP_NREGS)
        return RP_WALK_BAD_ROW;
    end = slow_register(s, &env, row, (unsigned)ra_reg, &lost, &ra);
    if (end != RP_EXPR_VALUE)
        return end_of(end);
    if (lost)
        return RP_WALK_ROOT;
    frame->cfa = cfa;
    slow_registers(s, &env, row, signal);
    s->regs[RP_RIP] = ra;
    s->exact = signal;
    if (!ra)
        return RP_WALK_ROOT;
    /* An alternative signal stack may lie above the stack it interrupted: then the rest is not in the copy. */
    return s->regs[RP_RSP] < s->low ? RP_WALK_BAD_CFA : RP_STEP_ON;
}

static enum rp_walk_end step(struct rp_step *s, const struct rp_rule *rule, struct rp_walk_frame *frame)
{
    s->by_frame_pointer = false;
    switch (rule->kind) {
    case RP_RULE_FAST: return fast_step(s, rule, frame);
    case RP_RULE_SLOW: return slow_step(s, rule, frame);
    case RP_RULE_ROOT: return RP_WALK_ROOT;
    default: return rp_step_without_row(s, rule, frame);
    }
}

static struct rp_walk_frame *add_frame(struct rp_walk *walk, const struct rp_step *s)
{
    struct rp_walk_frame *frame = &walk->frames[walk->n++];

    frame->pc = s->regs[RP_RIP];
    frame->cfa = 0;
    frame->valid = 0;
    for (unsigned i = 0; i < RP_SAVED_REGS; i++) {
        frame->saved[i] = s->regs[rp_saved_dwarf[i]];
        frame->valid |= (uint8_t)((s->valid >> rp_saved_dwarf[i] & 1) << i);
    }
    frame->where = s->where;
    frame->exact = s->exact;
    frame->by_frame_pointer = s->by_frame_pointer;
    return frame;
}

static void begin(struct rp_step *s, struct rp_unwinder *unwinder, struct rp_space *space, const struct rp_snapshot *snapshot)
{
    memset(s, 0, sizeof *s);
    s->unwinder = unwinder;
    s->space = space;
    memcpy(s->regs, snapshot->regs, sizeof s->regs);
    s->valid = snapshot->sp_only ? 1u << RP_RSP | 1u << RP_RIP : (1u << RP_NREGS) - 1;
    s->exact = true;
    s->sp_only = snapshot->sp_only;
    s->low = snapshot->regs[RP_RSP];
    s->stack = snapshot->stack;
    s->high = s->low + snapshot->stack_bytes;
    if (s->high < s->low || !s->stack)
        s->high = s->low;
}

enum rp_status rp_unwind(struct rp_unwinder *unwinder, struct rp_space *space, const struct rp_snapshot *snapshot,
                         struct rp_walk *walk, struct rp_err *err)
{
    struct rp_step s;
    enum rp_walk_end end = snapshot->has_user ? RP_STEP_ON : RP_WALK_NO_USER;

    walk->n = 0;
    unwinder->stats.walks++;
    begin(&s, unwinder, space, snapshot);
    while (end == RP_STEP_ON) {
        uint64_t caller = s.exact ? 0 : 1;
        const struct rp_rule *rule;

        if (walk->n == RP_WALK_FRAMES_MAX) {
            end = RP_WALK_DEPTH;
            break;
        }
        if (!rp_space_resolve(space, unwinder->images, s.regs[RP_RIP] - caller, &s.where)) {
            end = RP_WALK_NO_MAPPING;
            break;
        }
        rule = rp_cfi_rule(unwinder, s.where.image, s.where.addr);
        if (!rule)
            return rp_fail_nomem(err);
        s.where.addr += caller;
        end = step(&s, rule, add_frame(walk, &s));
    }
    if (s.no_memory)
        return rp_fail_nomem(err);
    walk->end = end;
    unwinder->stats.frames += walk->n;
    return RP_OK;
}

void rp_unwinder_use(struct rp_unwinder *unwinder, enum rp_unwind_engine engine)
{
    unwinder->engine = engine;
}

enum rp_status rp_unwind_by(struct rp_unwinder *unwinder, struct rp_space *space, const struct rp_snapshot *snapshot, struct rp_walk *walk,
                            struct rp_err *err)
{
    enum rp_status status;

    if (snapshot->sp_only || (unwinder->engine != RP_UNWIND_LIBDW && unwinder->engine != RP_UNWIND_LIBUNWIND))
        return rp_unwind(unwinder, space, snapshot, walk, err);
    if (unwinder->engine == RP_UNWIND_LIBDW)
        status = rp_unwind_libdw(unwinder, space, snapshot, walk, err);
    else
        status = rp_unwind_libunwind(unwinder, space, snapshot, walk, err);
    unwinder->stats.walks++;
    unwinder->stats.frames += walk->n;
    return status;
}
