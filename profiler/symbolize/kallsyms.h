/* SPDX-License-Identifier: MIT */
/* Names of kernel functions, from /proc/kallsyms: a table of some 120 000 lines that is read only when a kernel address is to be named. */
#ifndef RP_SYMBOLIZE_KALLSYMS_H
#define RP_SYMBOLIZE_KALLSYMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "base/vec.h"

struct rp_kallsym {
    uint64_t addr;
    uint32_t name;   /* offset in `text`; only for code, data symbols just bound the code before them */
    uint8_t code;
    uint8_t global;
    uint16_t module; /* position in `modules`; 0 the kernel itself */
};

/* Zero-initialised is empty and ready. */
struct rp_kallsyms {
    RP_VEC(struct rp_kallsym) symbols; /* sorted by address */
    RP_VEC(uint32_t) modules;          /* offset in `text` of "[ext4]" */
    struct rp_buf text;
    bool hidden;                       /* the kernel shows no addresses at this permission (kptr_restrict) */
};

/* Reads `path` (NULL: /proc/kallsyms). A file that cannot be read or shows zeros only gives an empty, hidden table. Fails for want of
 * memory only. */
enum rp_status rp_kallsyms_read(struct rp_kallsyms *k, const char *path, struct rp_err *err);

/* The function that holds `addr`: up to the next symbol. `module` is "[kernel]" or "[ext4]". Pointers good until release. False: none does. */
bool rp_kallsyms_find(const struct rp_kallsyms *k, uint64_t addr, uint64_t *start, const char **name, const char **module);

void rp_kallsyms_release(struct rp_kallsyms *k);

#endif
