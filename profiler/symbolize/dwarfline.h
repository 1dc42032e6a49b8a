/* SPDX-License-Identifier: MIT */
/* Inlined functions, source files and lines of one file's DWARF, through libdw.
 *
 * Asking libdw's own scope search at every address walks all of a unit's entries each time (perf needs 100 s for a Node profile). Here each unit that is
 * met is walked once, into a table of address ranges sorted by start, and an address is a binary search. */
#ifndef RP_SYMBOLIZE_DWARFLINE_H
#define RP_SYMBOLIZE_DWARFLINE_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/vec.h"

/* One function at an address. Strings belong to the rp_dwarf. */
struct rp_dwarf_frame {
    const char *name;      /* linkage name, else the plain name; NULL unknown */
    const char *file;      /* of the line; NULL unknown */
    const char *decl_file; /* that defines the function; NULL unknown */
    uint32_t line;         /* 0 unknown; of an outer function the line of the call */
    uint64_t start;        /* of the range that holds the address */
    bool inlined;
};

struct rp_dwarf_frames {
    RP_VEC(struct rp_dwarf_frame) at;
};

struct rp_dwarf;

/* `elf`, and `alternate` with what dwz moved out of it (NULL: nothing was), must outlive it and are not closed. *out is NULL (and the result RP_OK) when the
 * file has no usable DWARF. */
enum rp_status rp_dwarf_new(Elf *elf, Elf *alternate, struct rp_dwarf **out, struct rp_err *err);
void rp_dwarf_free(struct rp_dwarf *dwarf);

/* Replaces `frames` by the functions at ELF address `addr`, innermost first; the last one is not inlined unless its function is unknown. Empty when no
 * unit holds the address. Fails for want of memory only. */
enum rp_status rp_dwarf_find(struct rp_dwarf *dwarf, uint64_t addr, struct rp_dwarf_frames *frames, struct rp_err *err);

#endif
