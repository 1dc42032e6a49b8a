/* SPDX-License-Identifier: MIT */
/* A read-only look at an ELF64 file that may be hostile, large, or only in memory: header, section headers and program headers are read and checked
 * once, everything else is read on demand.
 *
 * Why not libelf: it keeps every section it has touched in memory (16 MB for the symbols of one Node binary), and here a name is wanted
 * once in a hundred. What lies outside the file simply is not there: a section whose range is wrong has size 0. */
#ifndef RP_SYMBOLIZE_ELFVIEW_H
#define RP_SYMBOLIZE_ELFVIEW_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"

/* Zero-initialised is empty: no sections, nothing can be read. Neither fd nor memory is owned. */
struct rp_elfview {
    int fd;                /* read with pread, never mapped; unused when `memory` is set */
    const uint8_t *memory;
    uint64_t bytes;        /* size of the file */
    Elf64_Ehdr header;
    Elf64_Shdr *sections;
    uint32_t nsections;
    Elf64_Phdr *segments;
    uint32_t nsegments;
    char *section_names;   /* NUL-terminated copy of .shstrtab */
    size_t section_names_bytes;
};

/* Looks at the open file `fd` (memory NULL) or at `bytes` of memory. RP_FORMAT when it is no ELF64 file for x86-64. Damaged tables are
 * left out, which is no failure. */
enum rp_status rp_elfview_init(struct rp_elfview *view, int fd, const void *memory, size_t bytes, struct rp_err *err);
void rp_elfview_release(struct rp_elfview *view);

/* Exactly `length` bytes at file offset `offset`; false when they are not all there. */
bool rp_elfview_read(const struct rp_elfview *view, uint64_t offset, void *to, size_t length);

/* The first section of that name after index `after` (0: from the start); 0 when there is none. */
uint32_t rp_elfview_section(const struct rp_elfview *view, const char *name, uint32_t after);

/* The name of a section, "" when it has none that can be read. */
const char *rp_elfview_section_name(const struct rp_elfview *view, uint32_t section);

/* The whole of a section as new memory (rp_free); NULL when it is empty, above `max`, compressed, or there is no memory. */
uint8_t *rp_elfview_contents(const struct rp_elfview *view, uint32_t section, size_t max, size_t *bytes);

/* Replaces `out` by the string at `at` of the string table [offset, offset + bytes) of the file, cut at RP_SYMBOL_MAX with a mark. False when it
 * does not lie in the table or is empty. */
bool rp_elfview_string(const struct rp_elfview *view, uint64_t offset, uint64_t bytes, uint64_t at, struct rp_buf *out);

/* ELF address -> file offset through the loadable segments. */
bool rp_elfview_offset(const struct rp_elfview *view, uint64_t addr, uint64_t *offset);

/* GNU build-id into `id` (at most 32 bytes); its length, 0 when there is none. */
uint8_t rp_elfview_build_id(const struct rp_elfview *view, uint8_t id[32]);

#endif
