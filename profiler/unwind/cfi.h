/* SPDX-License-Identifier: MIT */
/* Call frame information as small rules, one per (image, ELF address), each asked of libdw once.
 *
 * Nearly every row says: CFA = register + offset, the return address and the saved registers stand at CFA + offset. That is a RP_RULE_FAST.
 * Everything else keeps libdw's frame and is evaluated operation by operation (RP_RULE_SLOW). That no row exists is remembered too, with what
 * the code bytes tell.
 *
 * The trap: rules are found by ELF address, so a key is what was looked up (pc - 1 for callers), and `rip` in an expression is not the key. */
#ifndef RP_UNWIND_CFI_H
#define RP_UNWIND_CFI_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "base/vec.h"
#include "unwind/unwind.h"

enum rp_rule_kind {
    RP_RULE_NONE, /* no row covers the address */
    RP_RULE_FAST,
    RP_RULE_SLOW,
    RP_RULE_ROOT, /* the row says that there is no return address */
};

enum rp_rule_flag {
    RP_RULE_PLT = 1,              /* CFA is 8 more once (rip & 15) has reached plt_limit */
    RP_RULE_SIGNAL = 2,           /* the caller was interrupted, it did not call */
    RP_RULE_CODE_READ = 4,        /* the flags below are known */
    RP_RULE_AFTER_CALL = 8,       /* addr + 1 follows a call instruction */
    RP_RULE_SIGRETURN = 16,       /* at addr stands the signal trampoline */
    RP_RULE_SIGRETURN_NEXT = 32,  /* at addr + 1 stands the signal trampoline */
    RP_RULE_LAST_RETURN = 64,     /* what follows addr + 1 ends the thread or the program */
    RP_RULE_CODE_UNREADABLE = 128 /* code bytes cannot be had (JIT) */
};

struct rp_rule {
    uint64_t addr;
    uint32_t image;
    uint8_t kind;
    uint8_t flags;
    uint8_t cfa_reg;
    uint8_t plt_limit;
    int32_t cfa_offset, ra_offset;
    int32_t saved_offset[RP_SAVED_REGS]; /* from the CFA, where bit i of `at_cfa` is set */
    uint8_t at_cfa;                      /* bit i: saved register i stands at CFA + saved_offset[i] */
    uint8_t leaf;                        /* enum rp_insn_frame of the instruction at addr, when the code flags are known */
    uint8_t lost;                        /* bit i: saved register i cannot be recovered; neither bit: unchanged */
    uint32_t slow;                       /* RP_RULE_SLOW: position in `slow` */
};

/* What libdw holds of one image, opened at the first look-up. */
struct rp_cfi_image {
    bool eh_tried, debug_tried;
    Dwarf_CFI *eh;
    Dwarf *dwarf; /* owns `debug` */
    Dwarf_CFI *debug;
};

struct rp_fdes; /* fde.c: function bounds of one image */
struct rp_libunwind; /* unwind_libunwind.c */
struct rp_dwfl; /* unwind_libdw.c: the other engine's view of one address space */

enum { RP_RULE_FRONT = 8192 };

struct rp_unwinder {
    const struct rp_images *images;
    RP_VEC(struct rp_cfi_image) cfi; /* by image id */
    RP_VEC(struct rp_rule) rules;
    struct rp_index index;
    uint32_t front[RP_RULE_FRONT]; /* hash -> position in rules, checked before use */
    RP_VEC(Dwarf_Frame *) slow;
    RP_VEC(struct rp_fdes *) fdes; /* by image id */
    struct rp_dwfl *dwfl;
    struct rp_libunwind *libunwind;
    enum rp_unwind_engine engine;
    struct rp_unwind_stats stats;
};

/* The DWARF numbers of the saved registers, in the order of enum rp_saved_reg. */
extern const uint8_t rp_saved_dwarf[RP_SAVED_REGS];

/* The rule of an address, with code flags when kind is NONE. NULL: no memory. Good until the next look-up. */
const struct rp_rule *rp_cfi_rule(struct rp_unwinder *unwinder, uint32_t image, uint64_t addr);

/* True for a register whose "undefined" by libdw means that the row says nothing of it, so it is unchanged. elfutils' defaults for x86-64 (0.188 and
 * others) name rax as preserved where the ABI has rbx; the lazy-binding code of glibc has its CFA in rbx, so it matters. */
bool rp_cfi_is_silence(int reg);

/* Makes sure that the code flags are known. `rule` must come from this unwinder's last look-up. */
unsigned rp_cfi_code_flags(struct rp_unwinder *unwinder, const struct rp_rule *rule);

/* Tells one picture of a process's files from another, so that the other engines know when theirs is out of date: by what lies where, since the same number of
 * mappings, and a space in the memory of an earlier one, may be something else. JIT code, which comes and goes, is none of it. */
uint32_t rp_unwind_layout(const struct rp_images *images, const struct rp_space *space);

void rp_cfi_release(struct rp_unwinder *unwinder);
void rp_fdes_free(struct rp_fdes *fdes);
void rp_libunwind_free(struct rp_libunwind *libunwind);
void rp_dwfl_free(struct rp_dwfl *dwfl);

#endif
