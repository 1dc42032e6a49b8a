/* SPDX-License-Identifier: MIT */
/* A small ELF file around a given .eh_frame, in a memfd: whatever rows a test wants, true or hostile. File offset and address of its one segment
 * differ (field case A01). */
#ifndef RP_TESTS_UNWIND_ELF_H
#define RP_TESTS_UNWIND_ELF_H

#include <stdint.h>

#include "target/image.h"
#include "target/space.h"

/* Where things stand in the file's address space. */
#define UNWIND_ELF_BASE 0x40000u  /* address of the file's first byte */
#define UNWIND_ELF_CODE 0x50000u  /* code, UNWIND_ELF_CODE_BYTES of it */
#define UNWIND_ELF_FRAME 0x40800u /* .eh_frame */
#define UNWIND_ELF_CODE_BYTES 0x1000u

/* Makes the file and adds it to `images`. False: no memory or a frame that is too long (60 KB). */
bool unwind_elf_open(struct rp_images *images, const uint8_t *eh_frame, size_t frame_bytes, const uint8_t *code, size_t code_bytes,
                     uint32_t *id);

/* Maps the file's code at `at` in `space`. */
bool unwind_elf_map(struct rp_space *space, uint32_t id, uint64_t at);

/* One CIE (RA at CFA-8, CFA = rsp + 8) and one FDE over the code with `ops` as its instructions. Returns the bytes written to `to`,
 * which has room for 256 + nops. */
size_t unwind_elf_frame(uint8_t *to, const uint8_t *ops, size_t nops, bool signal);

#endif
