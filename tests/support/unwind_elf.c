/* SPDX-License-Identifier: MIT */
/* See unwind_elf.h. */
#include "support/unwind_elf.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FRAME_AT = 0x800, CODE_AT = 0x10000, NAMES_AT = 0x400, HEADERS_AT = 0x500, FILE_BYTES = CODE_AT + (int)UNWIND_ELF_CODE_BYTES };

static void put_headers(uint8_t *file, size_t frame_bytes)
{
    static const char names[] = "\0.eh_frame\0.text\0.shstrtab";
    Elf64_Ehdr head = {.e_type = ET_DYN,
                       .e_machine = EM_X86_64,
                       .e_version = EV_CURRENT,
                       .e_entry = UNWIND_ELF_CODE + 0xf00,
                       .e_phoff = sizeof head,
                       .e_shoff = HEADERS_AT,
                       .e_ehsize = sizeof head,
                       .e_phentsize = sizeof(Elf64_Phdr),
                       .e_phnum = 1,
                       .e_shentsize = sizeof(Elf64_Shdr),
                       .e_shnum = 4,
                       .e_shstrndx = 3};
    Elf64_Phdr load = {PT_LOAD, PF_R | PF_X, 0, UNWIND_ELF_BASE, UNWIND_ELF_BASE, FILE_BYTES, FILE_BYTES, 0x1000};
    Elf64_Shdr sections[4] = {
        {0},
        {1, SHT_PROGBITS, SHF_ALLOC, UNWIND_ELF_FRAME, FRAME_AT, frame_bytes, 0, 0, 8, 0},
        {11, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, UNWIND_ELF_CODE, CODE_AT, UNWIND_ELF_CODE_BYTES, 0, 0, 16, 0},
        {17, SHT_STRTAB, 0, 0, NAMES_AT, sizeof names, 0, 0, 1, 0},
    };

    memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_ident[EI_DATA] = ELFDATA2LSB;
    head.e_ident[EI_VERSION] = EV_CURRENT;
    memcpy(file, &head, sizeof head);
    memcpy(file + sizeof head, &load, sizeof load);
    memcpy(file + NAMES_AT, names, sizeof names);
    memcpy(file + HEADERS_AT, sections, sizeof sections);
}

bool unwind_elf_open(struct rp_images *images, const uint8_t *eh_frame, size_t frame_bytes, const uint8_t *code, size_t code_bytes,
                     uint32_t *id)
{
    uint8_t *file = calloc(1, FILE_BYTES);
    struct rp_err err = {0};
    char path[64];
    bool good = false;
    int fd = memfd_create("unwind_elf", MFD_CLOEXEC);

    if (file && fd >= 0 && frame_bytes <= CODE_AT - FRAME_AT && code_bytes <= UNWIND_ELF_CODE_BYTES) {
        put_headers(file, frame_bytes);
        memcpy(file + FRAME_AT, eh_frame, frame_bytes);
        memset(file + CODE_AT, 0x90, UNWIND_ELF_CODE_BYTES);
        if (code_bytes)
            memcpy(file + CODE_AT, code, code_bytes);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        good = write(fd, file, FILE_BYTES) == FILE_BYTES && rp_images_open_path(images, path, id, &err) == RP_OK;
    }
    if (fd >= 0)
        close(fd);
    free(file);
    return good;
}

bool unwind_elf_map(struct rp_space *space, uint32_t id, uint64_t at)
{
    struct rp_mapping m = {at, at + UNWIND_ELF_CODE_BYTES, CODE_AT, id};
    struct rp_err err = {0};

    return rp_space_add(space, &m, &err) == RP_OK;
}

/* Length, body, padding with DW_CFA_nop to 8 bytes. */
static size_t finish_entry(uint8_t *entry, size_t n)
{
    uint32_t length;

    while (n % 8)
        entry[n++] = 0;
    length = (uint32_t)n - 4;
    memcpy(entry, &length, 4);
    return n;
}

size_t unwind_elf_frame(uint8_t *to, const uint8_t *ops, size_t nops, bool signal)
{
    /* id 0, version 1, "zRS", code factor 1, data factor -8, RA column 16, one byte of augmentation: pcrel sdata4; def_cfa rsp+8, RA at -8 */
    static const uint8_t cie[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 'S', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1};
    static const uint8_t plain[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1};
    size_t n = signal ? sizeof cie : sizeof plain, at;
    uint32_t u;

    memcpy(to, signal ? cie : plain, n);
    at = finish_entry(to, n);
    u = (uint32_t)at + 4; /* back to the CIE */
    memcpy(to + at + 4, &u, 4);
    u = UNWIND_ELF_CODE - (UNWIND_ELF_FRAME + (uint32_t)at + 8);
    memcpy(to + at + 8, &u, 4);
    u = UNWIND_ELF_CODE_BYTES / 2; /* the second half has no row */
    memcpy(to + at + 12, &u, 4);
    to[at + 16] = 0;
    if (nops)
        memcpy(to + at + 17, ops, nops);
    at += finish_entry(to + at, 17 + nops);
    memset(to + at, 0, 4);
    return at + 4;
}
