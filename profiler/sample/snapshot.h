/* SPDX-License-Identifier: MIT */
/* All that an unwinder may know of a stopped moment: registers, a copy of the stack from the stack pointer up, kernel frames. Never a
 * pid: so every unwinding bug is a saved file. */
#ifndef RP_SAMPLE_SNAPSHOT_H
#define RP_SAMPLE_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* DWARF numbers of the x86-64 registers (System V ABI, figure 3.36). */
enum rp_reg {
    RP_RAX, RP_RDX, RP_RCX, RP_RBX, RP_RSI, RP_RDI, RP_RBP, RP_RSP,
    RP_R8, RP_R9, RP_R10, RP_R11, RP_R12, RP_R13, RP_R14, RP_R15,
    RP_RIP, /* the return address column */
    RP_NREGS
};

struct rp_snapshot {
    bool has_user;             /* false: a kernel thread, or nothing of user state was recorded */
    uint64_t regs[RP_NREGS];   /* by DWARF number */
    const uint8_t *stack;      /* bytes [regs[RP_RSP], + stack_bytes) */
    uint32_t stack_bytes;      /* what the kernel really copied */
    bool stack_cut;            /* the copy ended because its maximum was reached, not because the stack did */
    const uint64_t *kernel;    /* kernel program counters, leaf first; NULL when none */
    uint32_t nkernel;
    uint64_t weight_ns;        /* time this sample stands for (sampling period) */
    bool sp_only;              /* a blocked thread seen from outside: of the registers only RIP and RSP are known */
};

#endif
