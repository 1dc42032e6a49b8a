/* SPDX-License-Identifier: MIT */
/* The stack machine of expr.h. libdw has decoded the bytes to operations; jumps are told by byte offsets in them. */
#include "unwind/expr.h"

#include <dwarf.h>
#include <string.h>

enum { EXPR_DEPTH = 64, EXPR_STEPS = 1000 };

struct machine {
    const struct rp_expr_env *env;
    uint64_t stack[EXPR_DEPTH];
    size_t n;
};

enum rp_expr_end rp_expr_read(const struct rp_expr_env *env, uint64_t address, uint64_t *value)
{
    if (address < env->low)
        return RP_EXPR_BAD;
    if (address >= env->high || env->high - address < sizeof *value)
        return RP_EXPR_SHORT;
    memcpy(value, env->stack + (address - env->low), sizeof *value);
    return RP_EXPR_VALUE;
}

static bool push(struct machine *m, uint64_t value)
{
    if (m->n == EXPR_DEPTH)
        return false;
    m->stack[m->n++] = value;
    return true;
}

static bool reg_value(const struct machine *m, uint64_t reg, uint64_t *value)
{
    if (reg >= RP_NREGS || !(m->env->valid >> reg & 1))
        return false;
    *value = m->env->regs[reg];
    return true;
}

static bool push_reg(struct machine *m, uint64_t reg, uint64_t offset)
{
    uint64_t value;

    return reg_value(m, reg, &value) && push(m, value + offset);
}

/* Two operands -> one. False: not such an operation, or it cannot be done. */
static bool binary(uint8_t atom, uint64_t a, uint64_t b, uint64_t *out)
{
    int64_t sa = (int64_t)a, sb = (int64_t)b;

    switch (atom) {
    case DW_OP_and: *out = a & b; return true;
    case DW_OP_or: *out = a | b; return true;
    case DW_OP_xor: *out = a ^ b; return true;
    case DW_OP_plus: *out = a + b; return true;
    case DW_OP_minus: *out = a - b; return true;
    case DW_OP_mul: *out = a * b; return true;
    case DW_OP_div: *out = sb == 0 || (sa == INT64_MIN && sb == -1) ? 0 : (uint64_t)(sa / sb); return sb != 0;
    case DW_OP_mod: *out = b ? a % b : 0; return b != 0;
    case DW_OP_shl: *out = b < 64 ? a << b : 0; return true;
    case DW_OP_shr: *out = b < 64 ? a >> b : 0; return true;
    case DW_OP_shra: *out = (uint64_t)(sa >> (b < 63 ? b : 63)); return true;
    case DW_OP_eq: *out = sa == sb; return true;
    case DW_OP_ne: *out = sa != sb; return true;
    case DW_OP_lt: *out = sa < sb; return true;
    case DW_OP_le: *out = sa <= sb; return true;
    case DW_OP_gt: *out = sa > sb; return true;
    case DW_OP_ge: *out = sa >= sb; return true;
    default: return false;
    }
}

/* One operand -> one. */
static bool unary(uint8_t atom, uint64_t extra, uint64_t a, uint64_t *out)
{
    switch (atom) {
    case DW_OP_abs: *out = (int64_t)a < 0 ? 0 - a : a; return true;
    case DW_OP_neg: *out = 0 - a; return true;
    case DW_OP_not: *out = ~a; return true;
    case DW_OP_plus_uconst: *out = a + extra; return true;
    default: return false;
    }
}

/* dup, drop, over, pick, swap, rot. */
static bool shuffle(struct machine *m, const Dwarf_Op *op)
{
    uint64_t *top = m->stack + m->n;
    uint64_t pick = op->atom == DW_OP_dup ? 0 : op->atom == DW_OP_over ? 1 : op->number, t;

    switch (op->atom) {
    case DW_OP_dup:
    case DW_OP_over:
    case DW_OP_pick: return pick < m->n && push(m, top[-1 - (ptrdiff_t)pick]);
    case DW_OP_drop:
        if (!m->n)
            return false;
        m->n--;
        return true;
    case DW_OP_swap:
        if (m->n < 2)
            return false;
        t = top[-1], top[-1] = top[-2], top[-2] = t;
        return true;
    case DW_OP_rot:
        if (m->n < 3)
            return false;
        t = top[-1], top[-1] = top[-2], top[-2] = top[-3], top[-3] = t;
        return true;
    default: return false;
    }
}

static enum rp_expr_end deref(struct machine *m, const Dwarf_Op *op)
{
    uint64_t value, bytes = op->atom == DW_OP_deref ? 8 : op->number, address = m->n ? m->stack[m->n - 1] : 0;

    if (!m->n || bytes == 0 || bytes > 8 || address < m->env->low)
        return RP_EXPR_BAD;
    if (address >= m->env->high || m->env->high - address < bytes)
        return RP_EXPR_SHORT;
    value = 0;
    memcpy(&value, m->env->stack + (address - m->env->low), (size_t)bytes);
    m->stack[m->n - 1] = value;
    return RP_EXPR_VALUE;
}

/* Everything that neither reads memory nor jumps. */
static bool compute(struct machine *m, const Dwarf_Op *op)
{
    uint64_t out;

    if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
        return push(m, op->atom - (uint64_t)DW_OP_lit0);
    if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
        return push_reg(m, op->atom - (uint64_t)DW_OP_breg0, op->number);
    if (op->atom >= DW_OP_const1u && op->atom <= DW_OP_consts)
        return push(m, op->number);
    if (op->atom == DW_OP_bregx)
        return push_reg(m, op->number, op->number2);
    if (op->atom == DW_OP_call_frame_cfa)
        return m->env->has_cfa && push(m, m->env->cfa);
    if (op->atom == DW_OP_nop)
        return true;
    if (m->n >= 1 && unary(op->atom, op->number, m->stack[m->n - 1], &out)) {
        m->stack[m->n - 1] = out;
        return true;
    }
    if (m->n >= 2 && binary(op->atom, m->stack[m->n - 2], m->stack[m->n - 1], &out)) {
        m->stack[--m->n - 1] = out;
        return true;
    }
    return shuffle(m, op);
}

/* The operation that a jump leads to: nops is the end, above it nowhere. Operands of jumps count from behind their 3 bytes. */
static size_t jump_target(const Dwarf_Op *ops, size_t nops, size_t from)
{
    uint64_t offset = ops[from].offset + 3 + (uint64_t)(int64_t)(int16_t)ops[from].number;

    for (size_t i = 0; i < nops; i++)
        if (ops[i].offset == offset)
            return i;
    return offset > ops[nops - 1].offset && offset < ops[nops - 1].offset + 32 ? nops : nops + 1;
}

static enum rp_expr_end finish(struct machine *m, bool is_value, uint64_t *value)
{
    if (!m->n)
        return RP_EXPR_BAD;
    *value = m->stack[m->n - 1];
    return is_value ? RP_EXPR_VALUE : RP_EXPR_ADDRESS;
}

enum rp_expr_end rp_expr_eval(const struct rp_expr_env *env, const Dwarf_Op *ops, size_t nops, uint64_t *value)
{
    struct machine m = {.env = env};
    size_t at = 0;

    for (unsigned steps = 0; at < nops; steps++) {
        const Dwarf_Op *op = &ops[at];
        size_t next = at + 1;

        if (steps == EXPR_STEPS)
            return RP_EXPR_BAD;
        if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31)
            return reg_value(&m, op->atom - (uint64_t)DW_OP_reg0, value) ? RP_EXPR_VALUE : RP_EXPR_BAD;
        if (op->atom == DW_OP_regx)
            return reg_value(&m, op->number, value) ? RP_EXPR_VALUE : RP_EXPR_BAD;
        if (op->atom == DW_OP_stack_value)
            return finish(&m, true, value);
        if (op->atom == DW_OP_deref || op->atom == DW_OP_deref_size) {
            enum rp_expr_end end = deref(&m, op);

            if (end != RP_EXPR_VALUE)
                return end;
        } else if (op->atom == DW_OP_skip || op->atom == DW_OP_bra) {
            if (op->atom == DW_OP_bra && !m.n)
                return RP_EXPR_BAD;
            if (op->atom == DW_OP_skip || m.stack[--m.n])
                next = jump_target(ops, nops, at);
        } else if (!compute(&m, op)) {
            return RP_EXPR_BAD;
        }
        at = next;
    }
    return at == nops ? finish(&m, false, value) : RP_EXPR_BAD;
}
