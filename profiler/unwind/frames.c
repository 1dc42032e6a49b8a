/* SPDX-License-Identifier: MIT */
/* The step where no row describes the code: JIT output, V8's builtins inside the node binary, musl's assembly, programs built without tables.
 * By frame pointer, with checks; the signal trampoline and the ends of threads are known by their bytes.
 *
 *     [rbp]      saved rbp of the caller          CFA = rbp + 16
 *     [rbp + 8]  return address
 *
 * The trap: in the innermost frame rbp may still be the caller's (before the prologue, after the epilogue, in code that has none). Following it
 * then skips the caller in silence. What the next instruction says is believed first, then what stands at [rsp], then rbp. */
#include <gelf.h>

#include "unwind/insn.h"
#include "unwind/step.h"

/* How far above the copy a frame pointer may point and still be one: the default limit of stacks. */
#define FRAME_POINTER_REACH ((uint64_t)8 << 20)

/* A frame larger than this is not believed, an address above that is the kernel's. */
#define FRAME_BYTES ((uint64_t)1 << 20)
#define USER_END ((uint64_t)1 << 47)

/* _start is about 40 bytes in every libc. */
enum { ENTRY_BYTES = 64 };

enum plausible { NO, MAYBE, YES };

/* Does `ra` look like a return address? YES: executable, and after a call or in code that cannot be read. MAYBE: executable, without a row, not after
 * a call: runtimes push addresses of continuations. */
static enum plausible plausible_return(struct rp_step *s, uint64_t ra)
{
    struct rp_address at;
    const struct rp_rule *rule;
    unsigned flags;

    if (ra < 4096 || !rp_space_resolve(s->space, s->unwinder->images, ra - 1, &at))
        return NO;
    rule = rp_cfi_rule(s->unwinder, at.image, at.addr);
    if (!rule) {
        s->no_memory = true;
        return NO;
    }
    flags = rp_cfi_code_flags(s->unwinder, rule);
    if (flags & (RP_RULE_AFTER_CALL | RP_RULE_CODE_UNREADABLE))
        return YES;
    return rule->kind == RP_RULE_NONE || flags & RP_RULE_SIGNAL ? MAYBE : NO;
}

static enum rp_walk_end arrive(struct rp_step *s, struct rp_walk_frame *frame, uint64_t cfa, uint64_t ra)
{
    s->unwinder->stats.by_frame_pointer++;
    frame->cfa = cfa;
    s->by_frame_pointer = true;
    return rp_step_arrive(s, cfa, ra, 1u << RP_RBP);
}

/* rt_sigreturn's frame: rsp points to the ucontext. */
static enum rp_walk_end sigreturn_step(struct rp_step *s, struct rp_walk_frame *frame)
{
    enum { GREGS = 40 };
    static const uint8_t order[] = {RP_R8,  RP_R9,  RP_R10, RP_R11, RP_R12, RP_R13, RP_R14, RP_R15, RP_RDI,
                                    RP_RSI, RP_RBP, RP_RBX, RP_RDX, RP_RAX, RP_RCX, RP_RSP, RP_RIP};
    uint64_t regs[RP_NREGS], base = s->regs[RP_RSP] + GREGS;

    for (unsigned i = 0; i < sizeof order; i++)
        switch (rp_step_read(s, base + i * 8, &regs[order[i]])) {
        case RP_EXPR_VALUE: break;
        case RP_EXPR_SHORT: return RP_WALK_STACK_SHORT;
        default: return RP_WALK_BAD_CFA;
        }
    memcpy(s->regs, regs, sizeof s->regs);
    s->valid = (1u << RP_NREGS) - 1;
    s->exact = true;
    frame->cfa = regs[RP_RSP];
    return s->regs[RP_RSP] < s->low ? RP_WALK_BAD_CFA : RP_STEP_ON;
}

/* Is this the program's first code, or what ends a thread? By convention rbp is 0 there. */
static bool is_root(const struct rp_step *s, unsigned flags)
{
    const struct rp_image *image = s->unwinder->images->at.at[s->where.image];
    GElf_Ehdr header;

    if (!(s->valid >> RP_RBP & 1) || s->regs[RP_RBP] != 0)
        return false;
    if (!s->exact && flags & RP_RULE_LAST_RETURN)
        return true;
    return image->elf && gelf_getehdr(image->elf, &header) && s->where.addr >= header.e_entry &&
           s->where.addr - header.e_entry < ENTRY_BYTES;
}

/* The innermost frame while rbp is not this function's: true when it was so and the step is made.
 *
 * An address after a call may stand at [rsp] by chance, left over from an earlier call; judged over the same single steps of Node, believing it
 * was wrong less often than judging by the bytes of the prologue. */
static bool leaf_step(struct rp_step *s, enum rp_insn_frame state, struct rp_walk_frame *frame)
{
    uint64_t sp = s->regs[RP_RSP], first, second;

    if (rp_step_read(s, sp, &first) != RP_EXPR_VALUE)
        return false;
    if (rp_step_read(s, sp + 8, &second) != RP_EXPR_VALUE)
        second = 0;
    if (state == RP_INSN_RA_AT_SP && plausible_return(s, first) != NO) {
        (void)arrive(s, frame, sp + 8, first);
        return true;
    }
    if ((state == RP_INSN_RA_ABOVE_BP || first == s->regs[RP_RBP]) && plausible_return(s, second) != NO) {
        s->regs[RP_RBP] = first;
        (void)arrive(s, frame, sp + 16, second);
        return true;
    }
    if (state == RP_INSN_UNKNOWN && plausible_return(s, first) == YES) {
        (void)arrive(s, frame, sp + 8, first);
        return true;
    }
    return false;
}

/* Does the chain go on upwards in steps of a sane size? Then it is one, and what fails is the address beside it. */
static bool leads_on(uint64_t bp, uint64_t saved)
{
    return saved > bp && saved - bp < FRAME_BYTES && saved % 8 == 0;
}

static enum rp_walk_end chain_step(struct rp_step *s, struct rp_walk_frame *frame)
{
    uint64_t bp = s->regs[RP_RBP], saved, ra;

    if (!(s->valid >> RP_RBP & 1) || bp < s->regs[RP_RSP] || bp % 8)
        return RP_WALK_BAD_FP;
    if (rp_step_read(s, bp, &saved) != RP_EXPR_VALUE || rp_step_read(s, bp + 8, &ra) != RP_EXPR_VALUE)
        return bp < s->high + FRAME_POINTER_REACH ? RP_WALK_STACK_SHORT : RP_WALK_BAD_FP;
    if (ra == 0 && saved == 0) {
        frame->cfa = bp + 16;
        return RP_WALK_ROOT;
    }
    if (plausible_return(s, ra) == NO)
        return leads_on(bp, saved) && !rp_space_find(s->space, ra - 1) && ra < USER_END ? RP_WALK_NO_MAPPING : RP_WALK_BAD_FP;
    s->regs[RP_RBP] = saved;
    return arrive(s, frame, bp + 16, ra);
}

enum call { NOT_US, PERHAPS_US, US };

/* Does the call before `ra` lead to the function at hand, which begins at `start` of its image? One through a register or a stub may; one that leads to the
 * start of another function does not: it is left over from an earlier call. */
static enum call calls_us(struct rp_step *s, uint64_t ra, uint64_t start)
{
    const struct rp_images *images = s->unwinder->images;
    struct rp_address at, target;
    uint64_t first, end;
    uint8_t code[5];
    int32_t distance;

    if (!rp_space_resolve(s->space, images, ra - 1, &at) || rp_image_bytes_at(images->at.at[at.image], at.addr - 4, code, sizeof code) != sizeof code)
        return PERHAPS_US; /* JIT code cannot be read */
    if (code[0] != 0xe8)
        return PERHAPS_US;
    memcpy(&distance, code + 1, sizeof distance);
    if (!rp_space_resolve(s->space, images, ra + (uint64_t)(int64_t)distance, &target))
        return NOT_US;
    if (target.image == s->where.image && target.addr == start)
        return US;
    return rp_unwinder_fde_range(s->unwinder, target.image, target.addr, &first, &end) && first == target.addr ? NOT_US : PERHAPS_US;
}

/* Between rsp and the place are this frame's locals, which may hold leftovers of earlier calls of the same function: two places that would do are one too
 * many (recursion always has them), and the walk ends rather than skip or invent a caller. */
bool rp_step_find_rbp(struct rp_step *s)
{
    uint64_t start, end, saved, ra, best = 0;
    enum call best_call = NOT_US;
    bool twice = false;

    if (!rp_unwinder_fde_range(s->unwinder, s->where.image, s->where.addr - (s->exact ? 0 : 1), &start, &end))
        return false;
    for (uint64_t at = (s->regs[RP_RSP] + 7) & ~UINT64_C(7); rp_step_read(s, at, &saved) == RP_EXPR_VALUE && rp_step_read(s, at + 8, &ra) == RP_EXPR_VALUE; at += 8) {
        enum call call = ra < USER_END && plausible_return(s, ra) == YES ? calls_us(s, ra, start) : NOT_US;

        if (call == NOT_US || call < best_call)
            continue;
        twice = call == best_call;
        best = at;
        best_call = call;
        if (twice && call == US)
            return false;
    }
    if (!best || twice)
        return false;
    s->regs[RP_RBP] = best;
    s->valid |= 1u << RP_RBP;
    return true;
}

enum rp_walk_end rp_step_without_row(struct rp_step *s, const struct rp_rule *rule, struct rp_walk_frame *frame)
{
    const struct rp_image *image = s->unwinder->images->at.at[s->where.image];
    unsigned flags = rp_cfi_code_flags(s->unwinder, rule);
    enum rp_insn_frame leaf = rule->leaf; /* the rule is gone with the next look-up */
    enum rp_walk_end end;

    if (flags & (s->exact ? RP_RULE_SIGRETURN : RP_RULE_SIGRETURN_NEXT))
        return sigreturn_step(s, frame);
    if (is_root(s, flags))
        return RP_WALK_ROOT;
    if (s->exact && leaf_step(s, leaf, frame))
        return RP_STEP_ON;
    end = chain_step(s, frame);
    /* Code of a file without a table and without frame pointers: say that the row is missing, not that a register was odd. */
    return end == RP_WALK_BAD_FP && image->kind == RP_IMAGE_ELF ? RP_WALK_NO_ROW : end;
}
