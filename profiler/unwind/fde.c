/* SPDX-License-Identifier: MIT */
/* Function bounds from unwind tables: in a stripped file the only truth about where a local function begins and ends. All entries of a file
 * are read once, at the first question, into a sorted list.
 *
 * The trap: libdw finds rows, not bounds, and two rows that touch may be of one function or of two. So entries are decoded here, from bytes that
 * the target's owner controls. */
#include <dwarf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "unwind/cfi.h"
#include "unwind/insn.h"

/* What dwarf.h does not name. */
enum { EH_FORMAT = 0x0f, EH_BASE = 0x70, EH_PCREL = 0x10, EH_INDIRECT = 0x80, EH_OMIT = 0xff };

struct bound {
    uint64_t start, end;
};

struct rp_fdes {
    RP_VEC(struct bound) at;
};

/* The bytes of one table and where they stand. */
struct table {
    uint8_t *bytes;
    uint64_t addr;
    size_t size;
    bool eh; /* .eh_frame, else .debug_frame */
};

void rp_fdes_free(struct rp_fdes *fdes)
{
    if (!fdes)
        return;
    rp_vec_release(&fdes->at);
    rp_free(fdes);
}

/* Reads one encoded number; 0 bytes when the format is none of those that linkers write. */
static size_t read_encoded(const uint8_t *p, size_t left, unsigned format, uint64_t *value)
{
    static const uint8_t sizes[16] = {[0x0] = 8, [0x2] = 2, [0x3] = 4, [0x4] = 8, [0xa] = 2, [0xb] = 4, [0xc] = 8};
    size_t size = sizes[format & EH_FORMAT];
    uint64_t v = 0;

    if (!size || left < size)
        return 0;
    memcpy(&v, p, size);
    if (format & 8 && size < 8 && v >> (size * 8 - 1) & 1)
        v |= ~(uint64_t)0 << (size * 8);
    *value = v;
    return size;
}

/* The encoding of addresses that a CIE prescribes for its FDEs. */
static uint8_t cie_encoding(const Dwarf_CIE *cie)
{
    const char *a = cie->augmentation;
    const uint8_t *p = cie->augmentation_data;
    size_t left = cie->augmentation_data_size;

    if (!a || a[0] != 'z' || !p)
        return DW_EH_PE_absptr;
    for (a++; *a && left; a++) {
        uint64_t ignored;
        size_t n;

        switch (*a) {
        case 'R': return *p;
        case 'L': p++, left--; break;
        case 'P':
            n = read_encoded(p + 1, left - 1, *p, &ignored);
            if (!n)
                return EH_OMIT;
            p += 1 + n, left -= 1 + n;
            break;
        case 'S':
        case 'B': break;
        default: return EH_OMIT;
        }
    }
    return DW_EH_PE_absptr;
}

static bool decode_fde(const struct table *t, const Dwarf_FDE *fde, uint8_t encoding, struct bound *bound)
{
    const uint8_t *p = fde->start;
    uint64_t start, length;
    size_t n, left = (size_t)(fde->end - fde->start);

    if (encoding == EH_OMIT || encoding & EH_INDIRECT || ((encoding & EH_BASE) != 0 && (encoding & EH_BASE) != EH_PCREL))
        return false;
    n = read_encoded(p, left, encoding, &start);
    if (!n)
        return false;
    if ((encoding & EH_BASE) == EH_PCREL)
        start += t->addr + (uint64_t)(p - t->bytes);
    if (!read_encoded(p + n, left - n, encoding & EH_FORMAT & ~8u, &length) || length == 0 || start + length < start)
        return false;
    *bound = (struct bound){start, start + length};
    return true;
}

/* False: no memory. Entries that are damaged are left out. */
static bool read_table(struct rp_fdes *fdes, const unsigned char *ident, const struct table *t)
{
    Elf_Data data = {.d_buf = t->bytes, .d_type = ELF_T_BYTE, .d_version = EV_CURRENT, .d_size = t->size, .d_align = 1};
    Dwarf_Off offset = 0, next, cie_offset = (Dwarf_Off)-1;
    uint8_t encoding = EH_OMIT;

    for (;; offset = next) {
        Dwarf_CFI_Entry entry, cie;
        Dwarf_Off ignored;
        struct bound bound, *added;
        int rc;

        next = offset;
        rc = dwarf_next_cfi(ident, &data, t->eh, offset, &next, &entry);
        if (rc > 0 || next <= offset)
            return true;
        if (rc < 0 || dwarf_cfi_cie_p(&entry))
            continue;
        if (entry.fde.CIE_pointer != cie_offset) {
            cie_offset = entry.fde.CIE_pointer;
            encoding = EH_OMIT;
            if (!dwarf_next_cfi(ident, &data, t->eh, cie_offset, &ignored, &cie) && dwarf_cfi_cie_p(&cie))
                encoding = t->eh ? cie_encoding(&cie.cie) : (uint8_t)DW_EH_PE_absptr;
        }
        if (!decode_fde(t, &entry.fde, encoding, &bound))
            continue;
        added = rp_vec_add(&fdes->at);
        if (!added)
            return false;
        *added = bound;
    }
}

/* Finds a table by its section. */
static bool section_of(Elf *elf, const char *wanted, GElf_Shdr *header)
{
    Elf_Scn *scn = NULL;
    size_t strings;

    if (elf_getshdrstrndx(elf, &strings))
        return false;
    while ((scn = elf_nextscn(elf, scn))) {
        const char *name = gelf_getshdr(scn, header) ? elf_strptr(elf, strings, header->sh_name) : NULL;

        if (name && !strcmp(name, wanted))
            return header->sh_type != SHT_NOBITS && !(header->sh_flags & SHF_COMPRESSED);
    }
    return false;
}

/* Finds .eh_frame through the program header, as the loader does: its end is not told, the segment's end bounds it. */
static bool eh_frame_by_segment(const struct rp_image *image, uint64_t *addr, uint64_t *size)
{
    size_t n;
    GElf_Phdr ph;
    uint8_t head[8];
    int32_t distance;

    if (elf_getphdrnum(image->elf, &n))
        return false;
    for (size_t i = 0; i < n && i < INT32_MAX; i++) {
        if (!gelf_getphdr(image->elf, (int)i, &ph) || ph.p_type != PT_GNU_EH_FRAME)
            continue;
        if (rp_image_bytes_at(image, ph.p_vaddr, head, sizeof head) != sizeof head || head[0] != 1 ||
            head[1] != (EH_PCREL | DW_EH_PE_sdata4))
            return false;
        memcpy(&distance, head + 4, sizeof distance);
        *addr = ph.p_vaddr + 4 + (uint64_t)(int64_t)distance;
        for (uint32_t s = 0; s < image->nsegments; s++) {
            const struct rp_segment *seg = &image->segments[s];

            if (*addr >= seg->vaddr && *addr - seg->vaddr < seg->filesz) {
                *size = seg->filesz - (*addr - seg->vaddr);
                return true;
            }
        }
        return false;
    }
    return false;
}

/* False: no memory. A table that is missing or unreadable has no bytes. */
static bool load_table(const struct rp_image *image, bool eh, struct table *t)
{
    GElf_Shdr header;
    uint64_t size = 0;
    bool by_section = section_of(image->elf, eh ? ".eh_frame" : ".debug_frame", &header);

    memset(t, 0, sizeof *t);
    t->eh = eh;
    if (by_section) {
        t->addr = header.sh_addr;
        size = header.sh_size;
    } else if (!eh || !eh_frame_by_segment(image, &t->addr, &size)) {
        return true;
    }
    if (size == 0 || size > RP_FILE_MAX)
        return true;
    t->bytes = rp_calloc((size_t)size, 1);
    if (!t->bytes)
        return false;
    t->size = by_section ? rp_image_bytes(image, header.sh_offset, t->bytes, (size_t)size)
                         : rp_image_bytes_at(image, t->addr, t->bytes, (size_t)size);
    return true;
}

static int by_start(const void *a, const void *b)
{
    const struct bound *x = a, *y = b;

    return x->start != y->start ? (x->start < y->start ? -1 : 1) : (x->end > y->end) - (x->end < y->end);
}

/* NULL: no memory. */
static struct rp_fdes *read_fdes(const struct rp_image *image)
{
    struct rp_fdes *fdes = rp_calloc(1, sizeof *fdes);
    const char *ident = image->elf ? elf_getident(image->elf, NULL) : NULL;
    bool ok = fdes != NULL;

    for (int eh = 1; ok && ident && eh >= 0; eh--) {
        struct table t;

        ok = load_table(image, eh, &t) && (!t.size || read_table(fdes, (const unsigned char *)ident, &t));
        rp_free(t.bytes);
    }
    if (!ok) {
        rp_fdes_free(fdes);
        return NULL;
    }
    if (fdes->at.n)
        qsort(fdes->at.at, fdes->at.n, sizeof *fdes->at.at, by_start);
    return fdes;
}

static struct rp_fdes *fdes_of(struct rp_unwinder *unwinder, uint32_t image)
{
    if (image >= unwinder->images->at.n)
        return NULL;
    while (unwinder->fdes.n <= image) {
        struct rp_fdes **slot = rp_vec_add(&unwinder->fdes);

        if (!slot)
            return NULL;
        *slot = NULL;
    }
    if (!unwinder->fdes.at[image])
        unwinder->fdes.at[image] = read_fdes(unwinder->images->at.at[image]);
    return unwinder->fdes.at[image];
}

bool rp_unwinder_fde_range(struct rp_unwinder *unwinder, uint32_t image, uint64_t addr, uint64_t *start, uint64_t *end)
{
    const struct rp_fdes *fdes = fdes_of(unwinder, image);
    size_t low = 0, high = fdes ? fdes->at.n : 0;

    while (low < high) { /* the first that starts above addr */
        size_t mid = low + (high - low) / 2;

        if (fdes->at.at[mid].start <= addr)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == 0 || fdes->at.at[low - 1].end <= addr)
        return false;
    *start = fdes->at.at[low - 1].start;
    *end = fdes->at.at[low - 1].end;
    return true;
}
