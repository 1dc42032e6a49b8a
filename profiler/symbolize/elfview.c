/* SPDX-License-Identifier: MIT */
/* See elfview.h. The trap: every number in the file belongs to the target's owner. Sums are checked for overflow, ranges against the file
 * size, counts against what the file can hold, before anything is allocated or read. */
#include "symbolize/elfview.h"

#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/io.h"
#include "base/limits.h"

static bool inside(uint64_t offset, uint64_t length, uint64_t bytes)
{
    uint64_t end;

    return !__builtin_add_overflow(offset, length, &end) && end <= bytes;
}

bool rp_elfview_read(const struct rp_elfview *view, uint64_t offset, void *to, size_t length)
{
    if (!inside(offset, length, view->bytes))
        return false;
    if (view->memory) {
        memcpy(to, view->memory + offset, length);
        return true;
    }
    return rp_pread_full(view->fd, to, length, offset) == (ssize_t)length;
}

/* An array of `count` records of `size` bytes at `offset`; NULL when the file does not hold it. */
static void *read_table(const struct rp_elfview *view, uint64_t offset, uint64_t count, size_t size)
{
    void *table;

    if (!count || count > RP_ELF_SECTIONS_MAX || !inside(offset, count * size, view->bytes))
        return NULL;
    table = rp_calloc((size_t)count, size);
    if (table && !rp_elfview_read(view, offset, table, (size_t)count * size)) {
        rp_free(table);
        return NULL;
    }
    return table;
}

static void read_sections(struct rp_elfview *view)
{
    const Elf64_Ehdr *h = &view->header;
    uint64_t count = h->e_shnum;
    Elf64_Shdr first;

    if (!h->e_shoff || h->e_shentsize != sizeof(Elf64_Shdr) || !rp_elfview_read(view, h->e_shoff, &first, sizeof first))
        return;
    if (!count)
        count = first.sh_size;
    view->sections = read_table(view, h->e_shoff, count, sizeof(Elf64_Shdr));
    view->nsections = view->sections ? (uint32_t)count : 0;
    for (uint32_t i = 0; i < view->nsections; i++) {
        Elf64_Shdr *s = &view->sections[i];

        /* A NOBITS section (all code of a debug file) has a size but no bytes: kept, since symbols refer to it. */
        if (s->sh_type != SHT_NOBITS && !inside(s->sh_offset, s->sh_size, view->bytes))
            s->sh_size = 0;
    }
}

static void read_section_names(struct rp_elfview *view)
{
    uint32_t index = view->header.e_shstrndx;
    size_t bytes;
    char *names;

    if (index == SHN_XINDEX && view->nsections)
        index = view->sections[0].sh_link;
    if (index >= view->nsections || view->sections[index].sh_type == SHT_NOBITS)
        return;
    bytes = (size_t)view->sections[index].sh_size;
    if (!bytes || bytes > RP_ELF_SECTION_NAMES_MAX)
        return;
    names = rp_calloc(bytes + 1, 1);
    if (!names)
        return;
    if (!rp_elfview_read(view, view->sections[index].sh_offset, names, bytes)) {
        rp_free(names);
        return;
    }
    view->section_names = names;
    view->section_names_bytes = bytes;
}

enum rp_status rp_elfview_init(struct rp_elfview *view, int fd, const void *memory, size_t bytes, struct rp_err *err)
{
    Elf64_Ehdr *h = &view->header;
    struct stat st;

    *view = (struct rp_elfview){.fd = fd, .memory = memory, .bytes = bytes};
    if (!memory) {
        if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < 0)
            return rp_fail(err, RP_FORMAT, "The file is not a regular file.");
        view->bytes = (uint64_t)st.st_size;
    }
    if (!rp_elfview_read(view, 0, h, sizeof *h) || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
        h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_machine != EM_X86_64) {
        view->bytes = 0;
        return rp_fail(err, RP_FORMAT, "The file is not a 64-bit ELF file for x86-64.");
    }
    read_sections(view);
    read_section_names(view);
    if (h->e_phentsize == sizeof(Elf64_Phdr) && h->e_phnum != PN_XNUM)
        view->segments = read_table(view, h->e_phoff, h->e_phnum, sizeof(Elf64_Phdr));
    view->nsegments = view->segments ? h->e_phnum : 0;
    return RP_OK;
}

void rp_elfview_release(struct rp_elfview *view)
{
    rp_free(view->sections);
    rp_free(view->segments);
    rp_free(view->section_names);
    *view = (struct rp_elfview){.fd = -1};
}

const char *rp_elfview_section_name(const struct rp_elfview *view, uint32_t section)
{
    uint32_t at = section < view->nsections ? view->sections[section].sh_name : UINT32_MAX;

    return at < view->section_names_bytes ? view->section_names + at : "";
}

uint32_t rp_elfview_section(const struct rp_elfview *view, const char *name, uint32_t after)
{
    for (uint32_t i = after + 1; i < view->nsections; i++) {
        if (strcmp(rp_elfview_section_name(view, i), name) == 0)
            return i;
    }
    return 0;
}

uint8_t *rp_elfview_contents(const struct rp_elfview *view, uint32_t section, size_t max, size_t *bytes)
{
    const Elf64_Shdr *s = section < view->nsections ? &view->sections[section] : NULL;
    uint8_t *data;

    if (!s || s->sh_type == SHT_NOBITS || (s->sh_flags & SHF_COMPRESSED) || !s->sh_size || s->sh_size > max)
        return NULL;
    data = rp_reallocarray(NULL, (size_t)s->sh_size, 1);
    if (data && !rp_elfview_read(view, s->sh_offset, data, (size_t)s->sh_size)) {
        rp_free(data);
        return NULL;
    }
    *bytes = (size_t)s->sh_size;
    return data;
}

bool rp_elfview_string(const struct rp_elfview *view, uint64_t offset, uint64_t bytes, uint64_t at, struct rp_buf *out)
{
    char piece[256];

    rp_buf_clear(out);
    while (at < bytes) {
        size_t want = bytes - at < sizeof piece ? (size_t)(bytes - at) : sizeof piece;
        const char *end;

        if (offset > UINT64_MAX - at || !rp_elfview_read(view, offset + at, piece, want))
            return false;
        end = memchr(piece, '\0', want);
        rp_buf_append(out, piece, end ? (size_t)(end - piece) : want);
        if (end)
            return out->length && !out->failed;
        if (out->length >= RP_SYMBOL_MAX) {
            rp_buf_puts(out, "…");
            return !out->failed;
        }
        at += want;
    }
    return false; /* not terminated inside the table */
}

bool rp_elfview_offset(const struct rp_elfview *view, uint64_t addr, uint64_t *offset)
{
    for (uint32_t i = 0; i < view->nsegments; i++) {
        const Elf64_Phdr *p = &view->segments[i];

        if (p->p_type == PT_LOAD && addr >= p->p_vaddr && addr - p->p_vaddr < p->p_filesz &&
            !__builtin_add_overflow(p->p_offset, addr - p->p_vaddr, offset))
            return true;
    }
    return false;
}

/* One block of notes: name size, descriptor size, type, then both padded to `align`. */
static uint8_t id_in_notes(const struct rp_elfview *view, uint64_t offset, uint64_t bytes, uint64_t align, uint8_t id[32])
{
    uint64_t at = 0;
    Elf64_Nhdr note;
    char name[4];

    align = align == 8 ? 8 : 4;
    if (!inside(offset, bytes, view->bytes))
        return 0;
    for (int n = 0; n < 64 && at + sizeof note <= bytes && rp_elfview_read(view, offset + at, &note, sizeof note); n++) {
        uint64_t desc = at + sizeof note + (note.n_namesz + align - 1) / align * align;

        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz && note.n_descsz <= 32 &&
            desc + note.n_descsz <= bytes && rp_elfview_read(view, offset + at + sizeof note, name, 4) &&
            memcmp(name, "GNU", 4) == 0 && rp_elfview_read(view, offset + desc, id, note.n_descsz))
            return (uint8_t)note.n_descsz;
        at = desc + (note.n_descsz + align - 1) / align * align;
    }
    return 0;
}

uint8_t rp_elfview_build_id(const struct rp_elfview *view, uint8_t id[32])
{
    uint8_t length;

    for (uint32_t i = 1; i < view->nsections; i++) {
        const Elf64_Shdr *s = &view->sections[i];

        if (s->sh_type == SHT_NOTE && (length = id_in_notes(view, s->sh_offset, s->sh_size, s->sh_addralign, id)))
            return length;
    }
    for (uint32_t i = 0; i < view->nsegments; i++) {
        const Elf64_Phdr *p = &view->segments[i];

        if (p->p_type == PT_NOTE && (length = id_in_notes(view, p->p_offset, p->p_filesz, p->p_align, id)))
            return length;
    }
    return 0;
}
