/* SPDX-License-Identifier: MIT */
/* An ELF file put together from what a process has of it in memory, for files that cannot be opened any more.
 *
 *     memory of the process                      image->memory (zero where nothing is needed: the text is not copied)
 *     bias + vaddr: headers          ->          0:        ELF header, program headers
 *     bias + vaddr: .eh_frame_hdr …  ->          p_offset: the same bytes where the file has them
 *     bias + vaddr: .dynsym, .dynstr ->          p_offset
 *                                                end:      four section headers, so that readers of sections find .dynsym
 *
 * The traps: section headers are not in memory; the dynamic loader has relocated the addresses in .dynamic; a mapping at file offset 0 need
 * not start with the first segment (linkers let segments share a page), so a candidate for the ELF header counts only when its program headers explain
 * the executable mapping. Everything read is the target's to forge: all sizes have bounds. */
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <stdio.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/limits.h"
#include "target/image_private.h"
#include "target/maps.h"

enum { PAGE = 4096, VDSO_MAX = 1 << 20, SYMBOLS_MAX = 1 << 22 };
#define COPY_MAX ((uint64_t)256 << 20)  /* one table */
#define LAYOUT_MAX ((uint64_t)4 << 30)  /* the whole file: address space only, untouched pages cost nothing */

static bool read_exact(const struct rp_memory *memory, uint64_t address, void *to, size_t length)
{
    return memory->read(memory->context, address, to, length) == (ssize_t)length;
}

static uint64_t page_down(uint64_t x)
{
    return x & ~(uint64_t)(PAGE - 1);
}

/* Header and program headers at `base`. */
static bool read_headers(struct rp_memory_elf *m, uint64_t base)
{
    if (!read_exact(&m->memory, base, &m->header, sizeof m->header) || memcmp(m->header.e_ident, ELFMAG, SELFMAG) != 0 ||
        m->header.e_ident[EI_CLASS] != ELFCLASS64 || m->header.e_machine != EM_X86_64 || m->header.e_phentsize != sizeof(Elf64_Phdr) ||
        !m->header.e_phnum || m->header.e_phnum > RP_PHDRS_MAX || m->header.e_phoff > COPY_MAX)
        return false;
    m->nphdrs = m->header.e_phnum;
    m->phdrs = rp_calloc(m->nphdrs, sizeof *m->phdrs);
    return m->phdrs && read_exact(&m->memory, base + m->header.e_phoff, m->phdrs, m->nphdrs * sizeof *m->phdrs);
}

/* With file offset 0 at `base`: the bias, and whether some executable segment is then where the mapping says. */
static bool explains(struct rp_memory_elf *m, uint64_t base, const struct rp_image_key *key)
{
    bool have_bias = false, found = false;

    m->low = UINT64_MAX;
    m->high = 0;
    for (size_t i = 0; i < m->nphdrs; i++) {
        const Elf64_Phdr *p = &m->phdrs[i];
        uint64_t end;

        if (p->p_type != PT_LOAD || __builtin_add_overflow(p->p_vaddr, p->p_memsz, &end))
            continue;
        if (!have_bias && page_down(p->p_offset) == 0) {
            m->bias = base - (p->p_vaddr - p->p_offset);
            have_bias = true;
        }
        m->low = p->p_vaddr < m->low ? p->p_vaddr : m->low;
        m->high = end > m->high ? end : m->high;
        found = found || (have_bias && (p->p_flags & PF_X) && key->start >= page_down(m->bias + p->p_vaddr) && key->start < m->bias + end &&
                          key->start - m->bias - p->p_vaddr == key->offset - p->p_offset);
    }
    return found;
}

static bool try_base(struct rp_memory_elf *m, uint64_t base, const struct rp_image_key *key)
{
    if (read_headers(m, base) && explains(m, base, key))
        return true;
    rp_free(m->phdrs);
    m->phdrs = NULL;
    return false;
}

/* The line that holds `address`. What it says of device and inode is compared with other lines only: elsewhere (in MMAP2 records, by
 * stat) the same file may go by other numbers on layered file systems. */
static bool line_at(const struct rp_buf *text, uint64_t address, struct rp_maps_line *line)
{
    struct rp_cursor c = rp_cursor_of(rp_buf_text(text), text->length);

    while (rp_maps_next(&c, line)) {
        if (address >= line->start && address < line->end)
            return true;
    }
    return false;
}

/* The last part of a path without the kernel's mark. */
static size_t base_name(const char *path, size_t length, const char **name)
{
    static const char mark[] = " (deleted)";
    const size_t marked = sizeof mark - 1;
    const char *slash;

    if (length > marked && memcmp(path + length - marked, mark, marked) == 0)
        length -= marked;
    slash = length ? memrchr(path, '/', length) : NULL;
    *name = slash ? slash + 1 : path;
    return length - (size_t)(*name - path);
}

/* Whether the line is the mapping that the key speaks of, or one that came after it at the same address: programs that load and unload plugins get the
 * same address again and again, and its memory proves nothing about the file that was there before. On layered file systems the inodes may differ
 * for the same file, the last part of its path does not. */
static bool still_mapped(const struct rp_maps_line *line, const struct rp_image_key *key)
{
    const char *now, *then;
    size_t now_length = base_name(line->path, line->path_length, &now), then_length = base_name(key->path, strlen(key->path), &then);

    return line->ino == key->ino || (now_length && now_length == then_length && memcmp(now, then, now_length) == 0);
}

bool rp_memory_elf_find(struct rp_memory_elf *m, const struct rp_image_key *key)
{
    RP_VEC(uint64_t) bases = {0};
    struct rp_buf text = {0};
    struct rp_maps_line line, own;
    struct rp_cursor c;
    struct rp_err err;
    char path[64];
    bool found = false;

    *m = (struct rp_memory_elf){.memory = rp_memory_of_process(key->pid)};
    snprintf(path, sizeof path, "/proc/%u/maps", key->pid);
    if (!key->pid || rp_read_file(path, RP_FILE_MAX, &text, &err) || !line_at(&text, key->start, &own) || !still_mapped(&own, key))
        goto done;
    c = rp_cursor_of(rp_buf_text(&text), text.length);
    while (rp_maps_next(&c, &line) && line.start <= key->start) {
        uint64_t *slot = line.offset == 0 && line.read && line.ino == own.ino && line.dev == own.dev ? rp_vec_add(&bases) : NULL;

        if (slot)
            *slot = line.start;
    }
    for (size_t i = bases.n; i-- > 0 && !found;)
        found = try_base(m, bases.at[i], key);
done:
    rp_vec_release(&bases);
    rp_buf_release(&text);
    return found;
}

void rp_memory_elf_release(struct rp_memory_elf *m)
{
    rp_free(m->phdrs);
    m->phdrs = NULL;
}

uint8_t rp_memory_elf_build_id(const struct rp_memory_elf *m, uint8_t id[RP_BUILD_ID_MAX])
{
    uint8_t n = 0, *notes = rp_reallocarray(NULL, RP_NOTES_MAX, 1);

    for (size_t i = 0; notes && !n && i < m->nphdrs; i++) {
        const Elf64_Phdr *p = &m->phdrs[i];

        if (p->p_type == PT_NOTE && p->p_filesz <= RP_NOTES_MAX && read_exact(&m->memory, m->bias + p->p_vaddr, notes, (size_t)p->p_filesz))
            n = rp_notes_build_id(notes, (size_t)p->p_filesz, p->p_align, id);
    }
    rp_free(notes);
    return n;
}

/* The file under construction. */
struct layout {
    const struct rp_memory_elf *m;
    uint8_t *bytes;
    uint64_t size; /* without the section headers */
};

/* File offset of [vaddr, + length) if one segment's file bytes hold it. */
static bool file_offset(const struct rp_memory_elf *m, uint64_t vaddr, uint64_t length, uint64_t *offset, uint64_t *rest)
{
    for (size_t i = 0; i < m->nphdrs; i++) {
        const Elf64_Phdr *p = &m->phdrs[i];

        if (p->p_type == PT_LOAD && vaddr >= p->p_vaddr && vaddr - p->p_vaddr < p->p_filesz && length <= p->p_filesz - (vaddr - p->p_vaddr)) {
            *offset = p->p_offset + (vaddr - p->p_vaddr);
            *rest = p->p_filesz - (vaddr - p->p_vaddr);
            return true;
        }
    }
    return false;
}

/* Copies [vaddr, + length) of the target to where the file has it; `length` 0: up to the end of its segment. */
static bool copy_range(struct layout *f, uint64_t vaddr, uint64_t length)
{
    uint64_t offset, rest;

    if (!file_offset(f->m, vaddr, length, &offset, &rest))
        return false;
    length = length ? length : rest;
    if (length > COPY_MAX || offset > f->size || length > f->size - offset)
        return false;
    return read_exact(&f->m->memory, f->m->bias + vaddr, f->bytes + offset, (size_t)length);
}

/* .eh_frame_hdr, and .eh_frame wherever it points: both, then up to the end of the segment. */
static bool copy_unwind_tables(struct layout *f)
{
    for (size_t i = 0; i < f->m->nphdrs; i++) {
        const Elf64_Phdr *p = &f->m->phdrs[i];
        uint64_t offset, rest, eh_frame;
        int32_t distance;

        if (p->p_type != PT_GNU_EH_FRAME || p->p_filesz < 12 || !copy_range(f, p->p_vaddr, p->p_filesz) ||
            !file_offset(f->m, p->p_vaddr, 12, &offset, &rest))
            continue;
        memcpy(&distance, f->bytes + offset + 4, sizeof distance);
        eh_frame = p->p_vaddr + 4 + (uint64_t)(int64_t)distance;
        if (f->bytes[offset + 1] == 0x1b) /* pc-relative, four bytes with sign: what linkers write */
            return copy_range(f, eh_frame, 0);
    }
    return false;
}

/* What is wanted of .dynamic. */
struct dynamic {
    uint64_t symtab, strtab, strsz, hash, gnu_hash;
};

static void read_dynamic(const struct rp_memory_elf *m, struct dynamic *d)
{
    *d = (struct dynamic){0};
    for (size_t i = 0; i < m->nphdrs; i++) {
        const Elf64_Phdr *p = &m->phdrs[i];
        Elf64_Dyn entry;

        for (uint64_t at = 0; p->p_type == PT_DYNAMIC && at < p->p_memsz && at < PAGE * 4; at += sizeof entry) {
            uint64_t value;

            if (!read_exact(&m->memory, m->bias + p->p_vaddr + at, &entry, sizeof entry) || entry.d_tag == DT_NULL)
                break;
            value = entry.d_un.d_ptr;
            if (value - m->bias >= m->low && value - m->bias < m->high) /* relocated by the loader */
                value -= m->bias;
            switch (entry.d_tag) {
            case DT_SYMTAB: d->symtab = value; break;
            case DT_STRTAB: d->strtab = value; break;
            case DT_STRSZ: d->strsz = entry.d_un.d_val; break;
            case DT_HASH: d->hash = value; break;
            case DT_GNU_HASH: d->gnu_hash = value; break;
            default: break;
            }
        }
    }
}

/* Symbols by the GNU hash table: the end of the chain of the highest bucket. */
static uint64_t gnu_hash_count(const struct rp_memory_elf *m, uint64_t table)
{
    uint32_t head[4], last = 0, *buckets, entry = 0;
    uint64_t at = m->bias + table;
    size_t n;

    if (!read_exact(&m->memory, at, head, sizeof head) || !head[0] || head[0] > SYMBOLS_MAX || head[2] > SYMBOLS_MAX)
        return 0;
    n = head[0];
    buckets = rp_calloc(n, sizeof *buckets);
    at += sizeof head + (uint64_t)head[2] * 8;
    if (!buckets || !read_exact(&m->memory, at, buckets, n * sizeof *buckets)) {
        rp_free(buckets);
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        last = buckets[i] > last ? buckets[i] : last;
    rp_free(buckets);
    if (last < head[1] || last > SYMBOLS_MAX)
        return last < head[1] ? head[1] : 0;
    at += n * sizeof *buckets;
    for (; last < SYMBOLS_MAX; last++) {
        if (!read_exact(&m->memory, at + (uint64_t)(last - head[1]) * 4, &entry, sizeof entry) || (entry & 1))
            break;
    }
    return (uint64_t)last + 1;
}

static uint64_t symbol_count(const struct rp_memory_elf *m, const struct dynamic *d)
{
    uint32_t head[2];

    if (d->hash && read_exact(&m->memory, m->bias + d->hash, head, sizeof head) && head[1] <= SYMBOLS_MAX)
        return head[1];
    return d->gnu_hash ? gnu_hash_count(m, d->gnu_hash) : 0;
}

/* Section headers for the tables that were found, behind everything else. */
static void add_sections(struct layout *f, const struct dynamic *d, uint64_t nsymbols)
{
    static const char names[] = "\0.dynsym\0.dynstr\0.shstrtab";
    Elf64_Ehdr *header = (Elf64_Ehdr *)(void *)f->bytes;
    Elf64_Shdr sections[4] = {{0}};
    uint64_t at = f->size, symbols_at, strings_at, rest;

    header->e_shoff = header->e_shnum = header->e_shstrndx = 0;
    if (!nsymbols || !file_offset(f->m, d->symtab, nsymbols * sizeof(Elf64_Sym), &symbols_at, &rest) ||
        !file_offset(f->m, d->strtab, d->strsz, &strings_at, &rest))
        return;
    memcpy(f->bytes + at, names, sizeof names);
    sections[1] = (Elf64_Shdr){1, SHT_DYNSYM, SHF_ALLOC, d->symtab, symbols_at, nsymbols * sizeof(Elf64_Sym), 2, 1, 8, sizeof(Elf64_Sym)};
    sections[2] = (Elf64_Shdr){9, SHT_STRTAB, SHF_ALLOC, d->strtab, strings_at, d->strsz, 0, 0, 1, 0};
    sections[3] = (Elf64_Shdr){17, SHT_STRTAB, 0, 0, at, sizeof names, 0, 0, 1, 0};
    at += (sizeof names + 7) & ~(size_t)7;
    memcpy(f->bytes + at, sections, sizeof sections);
    header->e_shoff = at;
    header->e_shentsize = sizeof *sections;
    header->e_shnum = 4;
    header->e_shstrndx = 3;
}

/* Size of the file up to the end of its last segment; 0: not plausible. */
static uint64_t layout_size(const struct rp_memory_elf *m)
{
    uint64_t size = m->header.e_phoff + m->nphdrs * sizeof *m->phdrs;

    for (size_t i = 0; i < m->nphdrs; i++) {
        uint64_t end;

        if (m->phdrs[i].p_type != PT_LOAD)
            continue;
        if (__builtin_add_overflow(m->phdrs[i].p_offset, m->phdrs[i].p_filesz, &end) || end > LAYOUT_MAX)
            return 0;
        size = end > size ? end : size;
    }
    return (size + 7) & ~(uint64_t)7;
}

bool rp_image_from_memory(struct rp_image *image, const struct rp_image_key *key)
{
    enum { SECTIONS_ROOM = 512 };
    struct rp_memory_elf m = {0};
    struct layout f = {&m, NULL, 0};
    struct dynamic d;
    uint64_t nsymbols;
    bool good = false;

    if (!rp_memory_elf_find(&m, key))
        goto done;
    f.size = layout_size(&m);
    f.bytes = f.size ? rp_calloc(1, (size_t)f.size + SECTIONS_ROOM) : NULL;
    if (!f.bytes)
        goto done;
    memcpy(f.bytes, &m.header, sizeof m.header);
    memcpy(f.bytes + m.header.e_phoff, m.phdrs, m.nphdrs * sizeof *m.phdrs);
    for (size_t i = 0; i < m.nphdrs; i++) {
        if (m.phdrs[i].p_type == PT_NOTE && m.phdrs[i].p_filesz)
            (void)copy_range(&f, m.phdrs[i].p_vaddr, m.phdrs[i].p_filesz);
    }
    (void)copy_unwind_tables(&f);
    read_dynamic(&m, &d);
    nsymbols = d.symtab && d.strtab && d.strsz ? symbol_count(&m, &d) : 0;
    if (nsymbols && (!copy_range(&f, d.symtab, nsymbols * sizeof(Elf64_Sym)) || !copy_range(&f, d.strtab, d.strsz)))
        nsymbols = 0;
    add_sections(&f, &d, nsymbols);
    image->memory = f.bytes;
    image->memory_bytes = (size_t)f.size + SECTIONS_ROOM;
    image->elf = elf_memory(image->memory, image->memory_bytes);
    f.bytes = NULL;
    good = image->elf != NULL;
done:
    rp_free(f.bytes);
    rp_memory_elf_release(&m);
    return good;
}

bool rp_image_vdso_bytes(const struct rp_image_key *key, void **bytes, size_t *length)
{
    struct rp_memory memory = rp_memory_of_process(key->pid);
    uint64_t size = key->end - key->start, ours = getauxval(AT_SYSINFO_EHDR);

    if (!size || size > VDSO_MAX)
        return false;
    *bytes = rp_reallocarray(NULL, (size_t)size, 1);
    *length = (size_t)size;
    if (*bytes && read_exact(&memory, key->start, *bytes, *length))
        return true;
    memory = rp_memory_of_process((uint32_t)getpid()); /* one kernel, one vDSO; through the same door, so that a bad size is no crash */
    if (*bytes && ours && read_exact(&memory, ours, *bytes, *length))
        return true;
    rp_free(*bytes);
    *bytes = NULL;
    return false;
}
