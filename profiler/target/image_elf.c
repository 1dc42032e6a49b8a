/* SPDX-License-Identifier: MIT */
/* Program headers and build-id of an image. The trap: all numbers in them are chosen by whoever owns the file, so each is held against the size
 * of the file before use, and sums are checked (a value near 2^64 wraps). Section headers are not looked at here: they may be damaged or gone. */
#include <gelf.h>
#include <string.h>

#include "base/alloc.h"
#include "target/image_private.h"

uint8_t rp_notes_build_id(const uint8_t *notes, size_t size, uint64_t align, uint8_t id[RP_BUILD_ID_MAX])
{
    size_t at = 0, mask = align == 8 ? 7 : 3;

    while (size - at >= sizeof(Elf64_Nhdr)) {
        size_t name_at, desc_at, end;
        Elf64_Nhdr note;

        memcpy(&note, notes + at, sizeof note);
        name_at = at + sizeof note;
        if (note.n_namesz > size - name_at)
            break;
        desc_at = (name_at + note.n_namesz + mask) & ~mask;
        if (desc_at > size || note.n_descsz > size - desc_at)
            break;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + name_at, "GNU", 4) == 0 && note.n_descsz &&
            note.n_descsz <= RP_BUILD_ID_MAX) {
            memcpy(id, notes + desc_at, note.n_descsz);
            return (uint8_t)note.n_descsz;
        }
        end = (desc_at + note.n_descsz + mask) & ~mask;
        if (end <= at || end > size)
            break;
        at = end;
    }
    return 0;
}

static void read_notes(struct rp_image *image, const GElf_Phdr *phdr, uint64_t file_bytes)
{
    size_t size = phdr->p_filesz > RP_NOTES_MAX ? RP_NOTES_MAX : (size_t)phdr->p_filesz;
    Elf_Data *data;

    if (image->build_id_bytes || !size || phdr->p_offset > file_bytes || size > file_bytes - phdr->p_offset)
        return;
    data = elf_getdata_rawchunk(image->elf, (int64_t)phdr->p_offset, size, ELF_T_BYTE);
    if (data && data->d_buf)
        image->build_id_bytes = rp_notes_build_id(data->d_buf, data->d_size, phdr->p_align, image->build_id);
}

/* False: nothing of it can be used. */
static bool take_segment(struct rp_segment *s, const GElf_Phdr *phdr, uint64_t file_bytes)
{
    uint64_t end;

    if (phdr->p_offset >= file_bytes || __builtin_add_overflow(phdr->p_vaddr, phdr->p_memsz, &end))
        return false;
    *s = (struct rp_segment){phdr->p_offset, phdr->p_filesz, phdr->p_vaddr, phdr->p_memsz, (phdr->p_flags & PF_X) != 0};
    if (s->filesz > file_bytes - s->offset)
        s->filesz = file_bytes - s->offset;
    return !__builtin_add_overflow(s->vaddr, s->filesz, &end);
}

static bool is_our_elf(Elf *elf)
{
    GElf_Ehdr header;

    return elf && elf_kind(elf) == ELF_K_ELF && gelf_getclass(elf) == ELFCLASS64 && gelf_getehdr(elf, &header) && header.e_machine == EM_X86_64;
}

enum rp_status rp_image_read_headers(struct rp_image *image, uint64_t file_bytes, struct rp_err *err)
{
    size_t n = 0;

    if (!is_our_elf(image->elf)) {
        if (image->elf)
            elf_end(image->elf);
        image->elf = NULL;
        image->kind = RP_IMAGE_OTHER;
        return RP_OK;
    }
    if (elf_getphdrnum(image->elf, &n) != 0)
        n = 0;
    n = n > RP_PHDRS_MAX ? RP_PHDRS_MAX : n;
    image->segments = rp_calloc(n ? n : 1, sizeof *image->segments);
    if (!image->segments)
        return rp_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr phdr;

        if (!gelf_getphdr(image->elf, (int)i, &phdr))
            break;
        if (phdr.p_type == PT_LOAD && take_segment(&image->segments[image->nsegments], &phdr, file_bytes))
            image->nsegments++;
        else if (phdr.p_type == PT_NOTE)
            read_notes(image, &phdr, file_bytes);
    }
    return RP_OK;
}

bool rp_image_offset_to_addr(const struct rp_image *image, uint64_t offset, uint64_t *addr)
{
    /* Executable segments first: a linker may let two segments share a page, and a pc is in the one with code. */
    for (int want_exec = 1; want_exec >= 0; want_exec--) {
        for (uint32_t i = 0; i < image->nsegments; i++) {
            const struct rp_segment *s = &image->segments[i];

            if (s->exec == want_exec && offset >= s->offset && offset - s->offset < s->filesz) {
                *addr = s->vaddr + (offset - s->offset);
                return true;
            }
        }
    }
    if (image->kind != RP_IMAGE_OTHER)
        return false;
    *addr = offset;
    return true;
}
