/* SPDX-License-Identifier: MIT */
/* See image_look.h. */
#include "support/image_look.h"

#include <gelf.h>
#include <string.h>

struct rp_image *image_at(struct rp_images *images, struct rp_space *space, const char *path)
{
    struct rp_err err = {0};

    if (rp_space_read(space, images, &err) != RP_OK)
        return NULL;
    for (size_t i = 0; i < images->at.n; i++) {
        if (strcmp(images->at.at[i]->path, path) == 0)
            return images->at.at[i];
    }
    return NULL;
}

uint64_t count_dynsym(Elf *elf, const char *wanted, bool *found)
{
    Elf_Scn *section = NULL;

    while ((section = elf_nextscn(elf, section))) {
        GElf_Shdr header;
        Elf_Data *data;

        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNSYM || !(data = elf_getdata(section, NULL)))
            continue;
        for (size_t i = 0; i < header.sh_size / sizeof(Elf64_Sym); i++) {
            GElf_Sym symbol;
            const char *name = gelf_getsym(data, (int)i, &symbol) ? elf_strptr(elf, header.sh_link, symbol.st_name) : NULL;

            *found = *found || (name && strcmp(name, wanted) == 0);
        }
        return header.sh_size / sizeof(Elf64_Sym);
    }
    return 0;
}
