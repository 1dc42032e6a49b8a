/* SPDX-License-Identifier: MIT */
/* Shared by the image*.c files only: opening (image_open.c), reading headers (image_elf.c), rebuilding from memory (image_memory.c). */
#ifndef RP_TARGET_IMAGE_PRIVATE_H
#define RP_TARGET_IMAGE_PRIVATE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "target/image.h"
#include "target/process.h"

/* Longest build-id kept, and most program headers looked at. */
enum { RP_BUILD_ID_MAX = 32, RP_PHDRS_MAX = 1024, RP_NOTES_MAX = 1 << 16 };

/* The build-id among ELF notes (`align` 4 or 8); its length, 0 when there is none. Pure, bounds-checked. */
uint8_t rp_notes_build_id(const uint8_t *notes, size_t size, uint64_t align, uint8_t id[RP_BUILD_ID_MAX]);

/* Fills segments and build-id from image->elf, whose file or memory has `file_bytes`; sets kind OTHER when it is no x86-64 ELF. */
enum rp_status rp_image_read_headers(struct rp_image *image, uint64_t file_bytes, struct rp_err *err);

/* Opens a regular file for reading without side effects (no blocking on a FIFO, no waking of a device). -1 with errno. */
int rp_open_regular(const char *path);

/* Finds the file of `key` and opens it into image->fd; sets deleted and, when there is none to be had, problem. RP_OK in both cases. */
enum rp_status rp_image_open_file(struct rp_image *image, const struct rp_image_key *key, struct rp_err *err);

/* What target memory holds of an ELF file: its headers, checked against the mapping `key`. */
struct rp_memory_elf {
    struct rp_memory memory;
    uint64_t bias; /* address in memory = bias + ELF address */
    Elf64_Ehdr header;
    Elf64_Phdr *phdrs;
    size_t nphdrs;
    uint64_t low, high; /* ELF addresses [low, high) of all segments */
};

/* False: memory cannot be read, holds no ELF file there, or another file than the key's by now. Release frees phdrs. */
bool rp_memory_elf_find(struct rp_memory_elf *m, const struct rp_image_key *key);
void rp_memory_elf_release(struct rp_memory_elf *m);
uint8_t rp_memory_elf_build_id(const struct rp_memory_elf *m, uint8_t id[RP_BUILD_ID_MAX]);

/* Makes image->memory and image->elf from target memory: program headers, unwind tables, dynamic symbols. False: not possible. */
bool rp_image_from_memory(struct rp_image *image, const struct rp_image_key *key);

/* The vDSO of a process (or ours, which is the same, when its memory may not be read). False: not possible. */
bool rp_image_vdso_bytes(const struct rp_image_key *key, void **bytes, size_t *length);

#endif
