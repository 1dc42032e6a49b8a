/* SPDX-License-Identifier: MIT */
/* See data_symbol.h. The trap: libelf checks that symbols lie in the file, not that sizes and string offsets make sense. */
#include "symbolize/data_symbol.h"

#include <gelf.h>
#include <string.h>

#include "base/alloc.h"
#include "base/io.h"
#include "symbolize/symbolize.h"

struct found {
    const char *name;
    uint64_t start, size;
};

/* The smallest object around `addr`. */
static void look_in(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, uint64_t addr, struct found *best)
{
    Elf_Data *data = elf_getdata(section, NULL);
    size_t n = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;

    for (size_t i = 0; i < n && i <= INT32_MAX; i++) {
        GElf_Sym symbol;
        const char *name;

        if (!gelf_getsym(data, (int)i, &symbol) || GELF_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx == SHN_UNDEF)
            continue;
        if (addr < symbol.st_value || addr - symbol.st_value >= symbol.st_size || (best->name && symbol.st_size >= best->size))
            continue;
        name = elf_strptr(elf, header->sh_link, symbol.st_name);
        if (name && *name)
            *best = (struct found){name, symbol.st_value, symbol.st_size};
    }
}

bool rp_data_symbol(const struct rp_image *image, uint64_t addr, struct rp_buf *name)
{
    struct found best = {0};
    Elf_Scn *section = NULL;

    while (image->elf && (section = elf_nextscn(image->elf, section))) {
        GElf_Shdr header;

        if (gelf_getshdr(section, &header) && (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM))
            look_in(image->elf, section, &header, addr, &best);
    }
    if (!best.name)
        return false;
    rp_demangle(best.name, true, name);
    if (addr != best.start)
        rp_buf_printf(name, "+0x%llx", (unsigned long long)(addr - best.start));
    return !name->failed;
}

/* In pieces that overlap, so that no text is cut in two. False: not there; `unread` tells when that is not sure. */
static bool section_holds(int fd, uint64_t offset, uint64_t size, const char *text, char *room, size_t room_bytes, bool *unread)
{
    size_t length = strlen(text);

    for (uint64_t done = 0; done + length <= size;) {
        size_t want = size - done < room_bytes ? (size_t)(size - done) : room_bytes;

        if (offset > INT64_MAX - size || rp_pread_full(fd, room, want, offset + done) != (ssize_t)want) {
            *unread = true;
            return false;
        }
        if (memmem(room, want, text, length))
            return true;
        done += want - length + 1;
    }
    return false;
}

bool rp_data_holds(const struct rp_image *image, const char *text)
{
    enum { ROOM = 1 << 18 };
    char *room = NULL;
    Elf_Scn *section = NULL;
    bool any = false, unread = false, found = false;

    if (image->kind != RP_IMAGE_ELF)
        return false;
    if (image->elf && image->fd >= 0)
        room = rp_calloc(ROOM, 1);
    while (room && !found && (section = elf_nextscn(image->elf, section))) {
        GElf_Shdr header;

        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_PROGBITS || (header.sh_flags & (SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR)) != SHF_ALLOC)
            continue;
        any = true;
        found = section_holds(image->fd, header.sh_offset, header.sh_size, text, room, ROOM, &unread);
    }
    rp_free(room);
    return found || unread || !any;
}
