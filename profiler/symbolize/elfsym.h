/* SPDX-License-Identifier: MIT */
/* The symbols of one image, from all the files that hold some, as one table sorted by address.
 *
 * Names stay in the files and are read when an address is asked for: a Node binary has 190 000 of them, and a profile meets a thousand. A table entry
 * is 24 bytes. Only functions are kept: FUNC, IFUNC, and NOTYPE in executable sections (hand-written assembly). */
#ifndef RP_SYMBOLIZE_ELFSYM_H
#define RP_SYMBOLIZE_ELFSYM_H

#include "base/vec.h"
#include "symbolize/elfview.h"

struct rp_symbol {
    uint64_t addr;
    uint32_t size;    /* 0: unknown; sizes of 4 GiB and more count as UINT32_MAX */
    uint32_t name;    /* offset in its source's string table */
    uint32_t outer;   /* the nearest symbol before this one that reaches beyond its start; UINT32_MAX none */
    uint16_t section; /* of its source, for the end of symbols without size */
    uint8_t source;
    uint8_t info;     /* st_info */
};

/* Where names of one symbol table are. */
struct rp_symbol_source {
    const struct rp_elfview *view;
    uint64_t strings, strings_bytes; /* file offset and size of the string table */
};

enum { RP_SYMBOL_SOURCES = 6 };

/* Zero-initialised is empty and ready. */
struct rp_symtab {
    struct rp_symbol_source sources[RP_SYMBOL_SOURCES];
    uint32_t nsources;
    RP_VEC(struct rp_symbol) symbols;
};

/* Adds all function symbols of the .symtab or .dynsym (`type` SHT_SYMTAB, SHT_DYNSYM) of `view`, which must outlive the table. For
 * SHT_DYNSYM without section headers the dynamic segment is used. A damaged table adds nothing. Fails for want of memory only. */
enum rp_status rp_symtab_add(struct rp_symtab *table, const struct rp_elfview *view, uint32_t type, struct rp_err *err);

/* Sorts; to be called once after the last add. */
enum rp_status rp_symtab_finish(struct rp_symtab *table, struct rp_err *err);

/* The symbols whose start is the start of the function that holds an address: [first, first + n) of `symbols`. */
struct rp_symbol_hit {
    uint64_t start;
    uint64_t end;      /* first address that is not the function's */
    uint32_t first, n;
    bool sized;        /* found by size; else a symbol without size that reaches to here */
};

/* The innermost symbol with a size that holds `addr`, else the symbol without size that reaches to it (up to the next symbol or the end of its
 * section). False: no symbol holds it. */
bool rp_symtab_find(const struct rp_symtab *table, uint64_t addr, struct rp_symbol_hit *hit);

/* The symbols that start exactly at `addr`. */
bool rp_symtab_at(const struct rp_symtab *table, uint64_t addr, struct rp_symbol_hit *hit);

/* The names at a hit in the order of preference: [0] is the one to show, the others are aliases. Order: function symbol with a size first, global
 * over weak over local, fewest leading underscores, shortest, alphabetical; a version suffix does not count. Two versions of one name are one. */
struct rp_symbol_names {
    RP_VEC(struct rp_symbol_name) at;
};
struct rp_symbol_name {
    char *text; /* as in the table, with version suffix */
    uint32_t rank;
};
/* False: no name can be read (or no memory). Release in any case. */
bool rp_symtab_names(const struct rp_symtab *table, const struct rp_symbol_hit *hit, struct rp_symbol_names *names);
void rp_symbol_names_release(struct rp_symbol_names *names);

void rp_symtab_release(struct rp_symtab *table);

#endif
