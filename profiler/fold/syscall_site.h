/* SPDX-License-Identifier: MIT */
/* Which system call a thread waits in, by the place in the code: registers of a stack taken at a switch do not hold the number, but the code before
 * the call mostly loads it as a constant (in syscall(2) it does not). Each place is read once. */
#ifndef RP_FOLD_SYSCALL_SITE_H
#define RP_FOLD_SYSCALL_SITE_H

#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/vec.h"
#include "target/image.h"
#include "unwind/unwind.h"

struct rp_syscall_site {
    uint64_t addr; /* ELF address after the instruction */
    uint32_t image;
    int32_t number; /* -1 unknown */
};

/* Zero-initialised is empty and ready. */
struct rp_syscall_sites {
    RP_VEC(struct rp_syscall_site) at;
    struct rp_index index;
};

/* The number at `addr` of `image`, -1 when it is unknown or no memory was left to keep it. */
int rp_syscall_sites_find(struct rp_syscall_sites *sites, struct rp_unwinder *unwinder, const struct rp_image *image, uint64_t addr);
void rp_syscall_sites_release(struct rp_syscall_sites *sites);

/* What the bytes that end with the call instruction say: the constant last loaded into eax; -1 when they end otherwise or load none. */
int rp_syscall_number(const uint8_t *code, size_t length);

#endif
