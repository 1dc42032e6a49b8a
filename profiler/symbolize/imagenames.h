/* SPDX-License-Identifier: MIT */
/* Everything that can name code of one ELF image: its own tables, its debug file, its packed mini debug data; each opened when first needed and kept. */
#ifndef RP_SYMBOLIZE_IMAGENAMES_H
#define RP_SYMBOLIZE_IMAGENAMES_H

#include "symbolize/dwarfline.h"
#include "symbolize/elfsym.h"
#include "symbolize/plt.h"
#include "symbolize/stub.h"
#include "symbolize/symbolize.h"

struct rp_image_names {
    struct rp_elfview main, debug, mini;
    uint8_t *mini_bytes;     /* what `mini` reads */
    int debug_fd;            /* -1 none */
    int alternate_fd;        /* of dwz; -1 none */
    Elf *debug_elf, *alternate_elf;
    struct rp_symtab symbols;
    bool full_table;         /* symbols hold a .symtab, not just exports */
    struct rp_plt plt;
    struct rp_stubs stubs;
    bool stubs_ready;
    struct rp_dwarf *dwarf;
    bool dwarf_tried;
    bool remedy_tried;
};

/* What a call to debuginfod gave; see debuginfod.h. */
struct rp_debuginfod;

/* Opens and reads the tables of `image`. A file that cannot be read leaves them empty. Fails for want of memory only. The result does not move. */
enum rp_status rp_image_names_new(const struct rp_image *image, const struct rp_symbolizer_options *options, struct rp_debuginfod *debuginfod,
                                  struct rp_symbolizer_stats *stats, struct rp_image_names **out, struct rp_err *err);
void rp_image_names_free(struct rp_image_names *names);

/* The DWARF of the image or of its debug file; NULL when there is none. Opened at the first call. */
enum rp_status rp_image_names_dwarf(struct rp_image_names *names, const struct rp_image *image, const struct rp_symbolizer_options *options,
                                    struct rp_dwarf **dwarf, struct rp_err *err);

/* What names the code at an address. */
struct rp_code_name {
    enum rp_name_how how;         /* SYMBOL, PLT, STUB_LOCAL or OFFSET */
    uint64_t start;               /* first byte of the function; of its unwind range when nothing names it; else the address itself */
    struct rp_symbol_hit hit;     /* SYMBOL */
};

/* Finds it in the order: symbol with a size, PLT stub, symbol without size, local function behind an exported stub, nothing. `unwinder` may be NULL. Does
 * not read names. */
enum rp_status rp_image_names_find(struct rp_image_names *names, const struct rp_image *image, struct rp_unwinder *unwinder, uint64_t addr,
                                   struct rp_code_name *found, struct rp_err *err);

/* The names of what was found, best first; for a PLT stub one, `name@plt`. False: none can be read, or OFFSET. Release in any case. */
bool rp_image_names_read(const struct rp_image_names *names, const struct rp_code_name *found, struct rp_symbol_names *text);

#endif
