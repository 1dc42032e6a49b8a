/* SPDX-License-Identifier: MIT */
/* Names of static data: a lock that lives in a file's .data or .bss. And whether a file's constants hold a text, which tells what was built into it. */
#ifndef RP_SYMBOLIZE_DATA_SYMBOL_H
#define RP_SYMBOLIZE_DATA_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "target/image.h"

/* Appends the demangled name of the object that holds ELF address `addr`, with "+0xoffset" when it is not at its start. False, with nothing appended:
 * no symbol holds it, or the file cannot be read. Reads the whole symbol table: for a few addresses only. */
bool rp_data_symbol(const struct rp_image *image, uint64_t addr, struct rp_buf *name);

/* Whether the constants of an ELF file hold `text` (1 to 64 bytes). True as well when they cannot be read: then it is not known. Reads them all. */
bool rp_data_holds(const struct rp_image *image, const char *text);

#endif
