/* SPDX-License-Identifier: MIT */
/* Names for local functions of a stripped library that an exported stub does nothing but jump to.
 *
 * The case that matters: without debug symbols, glibc's pthread_mutex_unlock is `mov $1,%esi; jmp __pthread_mutex_unlock_usercnt`, ten bytes that are never
 * seen running; all its time is in the local function, a fifth of a Node profile. It is shown as `pthread_mutex_unlock [local]`. */
#ifndef RP_SYMBOLIZE_STUB_H
#define RP_SYMBOLIZE_STUB_H

#include "symbolize/elfsym.h"

struct rp_stub {
    uint64_t target; /* where the stub jumps to */
    uint32_t symbol; /* position in the symbol table */
    uint32_t unused;
};

/* Zero-initialised is empty. */
struct rp_stubs {
    RP_VEC(struct rp_stub) at; /* sorted by target */
};

/* Collects the stubs among `symbols`, reading code from `view`. Fails for want of memory only. */
enum rp_status rp_stubs_init(struct rp_stubs *stubs, const struct rp_symtab *symbols, const struct rp_elfview *view, struct rp_err *err);
void rp_stubs_release(struct rp_stubs *stubs);

/* The names of all stubs that jump to the function at `target`, in the order of symbol names. False when none does. */
bool rp_stubs_find(const struct rp_stubs *stubs, const struct rp_symtab *symbols, uint64_t target, struct rp_symbol_names *names);

#endif
