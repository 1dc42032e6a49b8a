/* SPDX-License-Identifier: MIT */
/* Turns libdw's rows into rules and remembers them.
 *
 *     front[hash]  ->  rules[]  <-  index (image, addr)
 *
 * The front table answers nearly all look-ups with one compare; it holds positions only, so a stale one is just a miss.
 *
 * The trap: reading .debug_frame makes libdw read every debug section of the file, so it is tried only where .eh_frame has no row and the
 * section exists. */
#include "unwind/cfi.h"

#include <dwarf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/insn.h"

const uint8_t rp_saved_dwarf[RP_SAVED_REGS] = {RP_RBX, RP_RBP, RP_R12, RP_R13, RP_R14, RP_R15};

static bool has_debug_frame(Elf *elf)
{
    Elf_Scn *scn = NULL;
    size_t strings;

    if (elf_getshdrstrndx(elf, &strings))
        return false;
    while ((scn = elf_nextscn(elf, scn))) {
        GElf_Shdr header;
        const char *name = gelf_getshdr(scn, &header) ? elf_strptr(elf, strings, header.sh_name) : NULL;

        if (name && header.sh_type != SHT_NOBITS && (!strcmp(name, ".debug_frame") || !strcmp(name, ".zdebug_frame")))
            return true;
    }
    return false;
}

/* The slot of an image, NULL when there is no memory. */
static struct rp_cfi_image *cfi_image(struct rp_unwinder *unwinder, uint32_t image)
{
    while (unwinder->cfi.n <= image) {
        struct rp_cfi_image *c = rp_vec_add(&unwinder->cfi);

        if (!c)
            return NULL;
        memset(c, 0, sizeof *c);
    }
    return &unwinder->cfi.at[image];
}

static Elf *image_elf(const struct rp_unwinder *unwinder, uint32_t image)
{
    const struct rp_image *im = image < unwinder->images->at.n ? unwinder->images->at.at[image] : NULL;

    if (!im || (im->kind != RP_IMAGE_ELF && im->kind != RP_IMAGE_VDSO))
        return NULL;
    return im->elf;
}

/* libdw's tables of an image; NULL when it has none. */
static Dwarf_CFI *cfi_eh(struct rp_unwinder *unwinder, uint32_t image)
{
    struct rp_cfi_image *c = cfi_image(unwinder, image);
    Elf *elf = image_elf(unwinder, image);

    if (!c)
        return NULL;
    if (!c->eh_tried) {
        c->eh_tried = true;
        c->eh = elf ? dwarf_getcfi_elf(elf) : NULL;
    }
    return c->eh;
}

static Dwarf_CFI *cfi_debug(struct rp_unwinder *unwinder, uint32_t image)
{
    struct rp_cfi_image *c = cfi_image(unwinder, image);
    Elf *elf = image_elf(unwinder, image);

    if (!c)
        return NULL;
    if (!c->debug_tried) {
        c->debug_tried = true;
        if (elf && has_debug_frame(elf))
            c->dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
        if (c->dwarf)
            c->debug = dwarf_getcfi(c->dwarf);
    }
    return c->debug;
}

static bool fits_i32(uint64_t v)
{
    return (int64_t)v >= INT32_MIN && (int64_t)v <= INT32_MAX;
}

/* breg rsp K; breg rip 0; lit 15; and; lit N; ge; lit 3; shl; plus: what linkers write for lazy PLT sections. */
static bool compile_plt(const Dwarf_Op *ops, size_t nops, struct rp_rule *rule)
{
    static const uint8_t tail[] = {DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus};

    if (nops != 9 || ops[0].atom != DW_OP_breg7 || !fits_i32(ops[0].number) || ops[1].atom != DW_OP_breg16 || ops[1].number != 0 ||
        ops[2].atom != DW_OP_lit15 || ops[3].atom != DW_OP_and || ops[4].atom < DW_OP_lit0 || ops[4].atom > DW_OP_lit31)
        return false;
    for (size_t i = 0; i < sizeof tail; i++)
        if (ops[5 + i].atom != tail[i])
            return false;
    rule->cfa_reg = RP_RSP;
    rule->cfa_offset = (int32_t)(int64_t)ops[0].number;
    rule->plt_limit = (uint8_t)(ops[4].atom - DW_OP_lit0);
    rule->flags |= RP_RULE_PLT;
    return true;
}

static bool compile_cfa(Dwarf_Frame *frame, struct rp_rule *rule)
{
    Dwarf_Op *ops;
    size_t nops;

    if (dwarf_frame_cfa(frame, &ops, &nops) || nops == 0)
        return false;
    if (nops == 1 && ops[0].atom == DW_OP_bregx && ops[0].number < RP_NREGS && fits_i32(ops[0].number2)) {
        rule->cfa_reg = (uint8_t)ops[0].number;
        rule->cfa_offset = (int32_t)(int64_t)ops[0].number2;
        return true;
    }
    if (nops == 1 && ops[0].atom >= DW_OP_breg0 && ops[0].atom < DW_OP_breg0 + RP_NREGS && fits_i32(ops[0].number)) {
        rule->cfa_reg = (uint8_t)(ops[0].atom - DW_OP_breg0);
        rule->cfa_offset = (int32_t)(int64_t)ops[0].number;
        return true;
    }
    return compile_plt(ops, nops, rule);
}

bool rp_cfi_is_silence(int reg)
{
    return reg == RP_RBX;
}

enum where { AT_CFA, SAME, LOST, ODD };

/* Where a register of the caller stands. */
static enum where compile_register(Dwarf_Frame *frame, int reg, int32_t *offset)
{
    Dwarf_Op mem[3], *ops;
    size_t nops;

    if (dwarf_frame_register(frame, reg, mem, &ops, &nops))
        return ODD;
    if (nops == 0)
        return ops && !rp_cfi_is_silence(reg) ? LOST : SAME;
    if (ops[0].atom != DW_OP_call_frame_cfa)
        return ODD;
    *offset = 0;
    if (nops == 1)
        return AT_CFA;
    if (nops == 2 && ops[1].atom == DW_OP_plus_uconst && fits_i32(ops[1].number)) {
        *offset = (int32_t)(int64_t)ops[1].number;
        return AT_CFA;
    }
    return ODD;
}

/* rsp is nearly always told by silence: the CFA itself. */
static bool rsp_is_cfa(Dwarf_Frame *frame)
{
    Dwarf_Op mem[3], *ops;
    size_t nops;

    if (dwarf_frame_register(frame, RP_RSP, mem, &ops, &nops))
        return false;
    return nops == 0 || (nops == 2 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_stack_value);
}

static void compile(Dwarf_Frame *frame, struct rp_rule *rule)
{
    Dwarf_Addr start, end;
    bool signal = false;
    int ra = dwarf_frame_info(frame, &start, &end, &signal);
    enum where at = ra == RP_RIP ? compile_register(frame, ra, &rule->ra_offset) : ODD;

    rule->kind = RP_RULE_SLOW;
    if (signal)
        rule->flags |= RP_RULE_SIGNAL;
    if (at == LOST) {
        rule->kind = RP_RULE_ROOT;
        return;
    }
    if (signal || at != AT_CFA || !rsp_is_cfa(frame) || !compile_cfa(frame, rule))
        return;
    for (uint8_t i = 0; i < RP_SAVED_REGS; i++) {
        at = compile_register(frame, rp_saved_dwarf[i], &rule->saved_offset[i]);
        if (at == ODD)
            return;
        if (at == AT_CFA)
            rule->at_cfa |= (uint8_t)(1u << i);
        else if (at == LOST)
            rule->lost |= (uint8_t)(1u << i);
    }
    rule->kind = RP_RULE_FAST;
}

static void read_code(struct rp_unwinder *unwinder, struct rp_rule *rule)
{
    enum { BEFORE = 8, AFTER = 24 };
    const struct rp_image *image = rule->image < unwinder->images->at.n ? unwinder->images->at.at[rule->image] : NULL;
    uint8_t code[BEFORE + AFTER];
    size_t n = 0, before = rule->addr + 1 >= BEFORE ? BEFORE : 0;

    if (image && (image->kind == RP_IMAGE_ELF || image->kind == RP_IMAGE_VDSO))
        n = rp_image_bytes_at(image, rule->addr + 1 - before, code, before + AFTER);
    rule->flags |= RP_RULE_CODE_READ;
    if (n < before || n == 0) {
        rule->flags |= RP_RULE_CODE_UNREADABLE;
        return;
    }
    if (rp_insn_ends_with_call(code, before))
        rule->flags |= RP_RULE_AFTER_CALL;
    if (before && rp_insn_is_sigreturn(code + before - 1, n - before + 1))
        rule->flags |= RP_RULE_SIGRETURN;
    if (before)
        rule->leaf = (uint8_t)rp_insn_frame_at(code + before - 1, n - before + 1);
    if (rp_insn_is_sigreturn(code + before, n - before))
        rule->flags |= RP_RULE_SIGRETURN_NEXT;
    if (rp_insn_is_last_return(code + before, n - before))
        rule->flags |= RP_RULE_LAST_RETURN;
}

unsigned rp_cfi_code_flags(struct rp_unwinder *unwinder, const struct rp_rule *rule)
{
    size_t at = (size_t)(rule - unwinder->rules.at);

    if (!(rule->flags & RP_RULE_CODE_READ))
        read_code(unwinder, &unwinder->rules.at[at]);
    return unwinder->rules.at[at].flags;
}

/* Asks libdw. False: no memory. */
static bool look_up(struct rp_unwinder *unwinder, struct rp_rule *rule)
{
    Dwarf_CFI *cfi;
    Dwarf_Frame *frame = NULL, **kept;

    if (!cfi_image(unwinder, rule->image))
        return false;
    cfi = cfi_eh(unwinder, rule->image);
    unwinder->stats.rows_looked_up++;
    if (!cfi || dwarf_cfi_addrframe(cfi, rule->addr, &frame)) {
        cfi = cfi_debug(unwinder, rule->image);
        if (!cfi || dwarf_cfi_addrframe(cfi, rule->addr, &frame)) {
            read_code(unwinder, rule);
            return true;
        }
    }
    compile(frame, rule);
    if (rule->kind != RP_RULE_SLOW) {
        free(frame);
        return true;
    }
    kept = rp_vec_add(&unwinder->slow);
    if (!kept) {
        free(frame);
        return false;
    }
    *kept = frame;
    rule->slow = (uint32_t)(unwinder->slow.n - 1);
    return true;
}

static void forget_rules(struct rp_unwinder *unwinder)
{
    for (size_t i = 0; i < unwinder->slow.n; i++)
        free(unwinder->slow.at[i]); /* made by libdw's malloc */
    rp_vec_clear(&unwinder->slow);
    rp_vec_clear(&unwinder->rules);
    rp_index_release(&unwinder->index);
}

struct rule_key {
    const struct rp_unwinder *unwinder;
    uint64_t addr;
    uint32_t image;
};

static bool same_rule(const void *context, uint32_t position)
{
    const struct rule_key *key = context;
    const struct rp_rule *rule = &key->unwinder->rules.at[position];

    return rule->addr == key->addr && rule->image == key->image;
}

static const struct rp_rule *rule_slowly(struct rp_unwinder *unwinder, uint32_t hash, uint32_t image, uint64_t addr)
{
    struct rule_key key = {unwinder, addr, image};
    struct rp_rule rule = {.addr = addr, .image = image}, *added;
    uint32_t *slot, at;

    if (unwinder->rules.n >= RP_UNWIND_RULES_MAX)
        forget_rules(unwinder);
    at = rp_index_lookup(&unwinder->index, hash, same_rule, &key);
    if (at == RP_INDEX_EMPTY) {
        if (!look_up(unwinder, &rule))
            return NULL;
        slot = rp_index_find(&unwinder->index, hash, same_rule, &key);
        added = slot ? rp_vec_add(&unwinder->rules) : NULL;
        if (!added)
            return NULL;
        *added = rule;
        at = (uint32_t)(unwinder->rules.n - 1);
        rp_index_set(&unwinder->index, slot, hash, at);
    }
    unwinder->front[hash % RP_RULE_FRONT] = at;
    return &unwinder->rules.at[at];
}

const struct rp_rule *rp_cfi_rule(struct rp_unwinder *unwinder, uint32_t image, uint64_t addr)
{
    uint32_t hash = rp_hash_u64(addr ^ (uint64_t)image << 48);
    uint32_t at = unwinder->front[hash % RP_RULE_FRONT];

    if (at < unwinder->rules.n) {
        const struct rp_rule *rule = &unwinder->rules.at[at];

        if (rule->addr == addr && rule->image == image)
            return rule;
    }
    return rule_slowly(unwinder, hash, image, addr);
}

void rp_cfi_release(struct rp_unwinder *unwinder)
{
    forget_rules(unwinder);
    rp_vec_release(&unwinder->slow);
    rp_vec_release(&unwinder->rules);
    for (size_t i = 0; i < unwinder->cfi.n; i++) {
        if (unwinder->cfi.at[i].eh)
            dwarf_cfi_end(unwinder->cfi.at[i].eh);
        if (unwinder->cfi.at[i].dwarf)
            dwarf_end(unwinder->cfi.at[i].dwarf);
    }
    rp_vec_release(&unwinder->cfi);
}
