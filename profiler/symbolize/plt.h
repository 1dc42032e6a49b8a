/* SPDX-License-Identifier: MIT */
/* Names for the stubs through which calls into other libraries go: `name@plt`. They have no symbols; what a stub is for follows from the
 * slot it jumps through and the relocation that fills the slot. */
#ifndef RP_SYMBOLIZE_PLT_H
#define RP_SYMBOLIZE_PLT_H

#include "symbolize/elfsym.h"

struct rp_plt_stub {
    uint64_t addr;
    uint32_t size;
    uint32_t relocation; /* position in `relocations` */
};

struct rp_plt_relocation {
    uint64_t slot;
    uint64_t value; /* IRELATIVE: address of the resolver; else where the name is in the string table */
    uint32_t type;
    uint32_t unused;
};

/* Zero-initialised is empty. */
struct rp_plt {
    const struct rp_elfview *view;
    uint64_t strings, strings_bytes; /* of .dynsym */
    uint32_t lazy;                   /* the section .rela.plt; 0: none */
    RP_VEC(struct rp_plt_relocation) relocations; /* sorted by slot */
    RP_VEC(struct rp_plt_stub) stubs;             /* sorted by address */
};

/* Reads the relocations and decodes all stub sections of `view` (which must outlive the table). Fails for want of memory only. */
enum rp_status rp_plt_init(struct rp_plt *plt, const struct rp_elfview *view, struct rp_err *err);
void rp_plt_release(struct rp_plt *plt);

/* The stub that holds `addr`: its start, and its name (`name@plt`; `*ABS*+0x…@plt` for an indirect function that `symbols` cannot name) into
 * `name`. False when no stub does. */
bool rp_plt_find(const struct rp_plt *plt, const struct rp_symtab *symbols, uint64_t addr, uint64_t *start, struct rp_buf *name);

#endif
