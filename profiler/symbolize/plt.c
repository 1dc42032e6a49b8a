/* SPDX-License-Identifier: MIT */
/* See plt.h.
 *
 *   .plt      ff 25 <slot>  68 <index>  e9 <plt0>             jmp *slot(%rip); push; jmp
 *   .plt.sec  f3 0f 1e fa  [f2] ff 25 <slot>  nop             endbr64; [bnd] jmp *slot(%rip)
 *   .plt      f3 0f 1e fa  68 <index>  [f2] e9 <plt0>         lazy half of .plt.sec: push; jmp
 *   .plt.got  ff 25 <slot>  66 90
 *
 * The trap: the n-th stub is not the n-th relocation (IRELATIVE ones and other linkers see to that), so each stub is decoded and its slot looked
 * up. Only the lazy half has no slot: there the pushed number is the position in .rela.plt. And sections of a hostile file may all be the same bytes,
 * a hundred thousand times, so maxima are of all of them together. */
#include "symbolize/plt.h"

#include <string.h>

#include "base/limits.h"
#include "symbolize/radix.h"

/* Where relocations find their symbols. */
struct dynsym {
    uint64_t offset, count;
};

static bool find_dynsym(struct rp_plt *plt, uint32_t section, struct dynsym *dynsym)
{
    const struct rp_elfview *view = plt->view;
    const Elf64_Shdr *s = section < view->nsections ? &view->sections[section] : NULL;

    *dynsym = (struct dynsym){0};
    if (!s || (s->sh_type != SHT_DYNSYM && s->sh_type != SHT_SYMTAB) || s->sh_entsize != sizeof(Elf64_Sym) || s->sh_link >= view->nsections)
        return false;
    plt->strings = view->sections[s->sh_link].sh_offset;
    plt->strings_bytes = view->sections[s->sh_link].sh_size;
    *dynsym = (struct dynsym){s->sh_offset, s->sh_size / sizeof(Elf64_Sym)};
    return true;
}

/* One relocation that fills a slot with the address of a function. */
static bool add_relocation(struct rp_plt *plt, const struct dynsym *dynsym, const Elf64_Rela *rela)
{
    uint64_t type = ELF64_R_TYPE(rela->r_info), symbol = ELF64_R_SYM(rela->r_info);
    struct rp_plt_relocation *r, add = {.slot = rela->r_offset, .type = (uint32_t)type};
    Elf64_Sym s;

    if (type == R_X86_64_IRELATIVE) {
        add.value = (uint64_t)rela->r_addend;
    } else if (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) {
        if (!symbol || symbol >= dynsym->count || !rp_elfview_read(plt->view, dynsym->offset + symbol * sizeof s, &s, sizeof s))
            return true;
        add.value = s.st_name;
    } else {
        return true;
    }
    r = rp_vec_add(&plt->relocations);
    if (!r)
        return false;
    *r = add;
    return true;
}

/* `room`: relocations that may still be read, of all sections. */
static bool read_relocations(struct rp_plt *plt, uint32_t section, uint64_t *room)
{
    const Elf64_Shdr *s = &plt->view->sections[section];
    struct dynsym dynsym;
    Elf64_Rela piece[256];

    if (s->sh_type != SHT_RELA || s->sh_entsize != sizeof *piece)
        return true;
    find_dynsym(plt, s->sh_link, &dynsym);
    for (uint64_t at = 0, count = s->sh_size / sizeof *piece; at < count && *room;) {
        uint64_t n = count - at < 256 ? count - at : 256;

        n = n < *room ? n : *room;
        if (!rp_elfview_read(plt->view, s->sh_offset + at * sizeof *piece, piece, (size_t)n * sizeof *piece))
            return true;
        for (uint64_t i = 0; i < n; i++) {
            if (!add_relocation(plt, &dynsym, &piece[i]))
                return false;
        }
        at += n;
        *room -= n;
    }
    return true;
}

static const struct rp_plt_relocation *relocation_at(const struct rp_plt *plt, uint64_t slot)
{
    size_t low = 0, high = plt->relocations.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (plt->relocations.at[middle].slot < slot)
            low = middle + 1;
        else
            high = middle;
    }
    return low < plt->relocations.n && plt->relocations.at[low].slot == slot ? &plt->relocations.at[low] : NULL;
}

/* The slot that the relocation at position `index` of .rela.plt fills. */
static bool slot_of_index(const struct rp_plt *plt, uint32_t index, uint64_t *slot)
{
    uint32_t section = plt->lazy;
    Elf64_Rela rela;

    if (!section || index >= plt->view->sections[section].sh_size / sizeof rela ||
        !rp_elfview_read(plt->view, plt->view->sections[section].sh_offset + (uint64_t)index * sizeof rela, &rela, sizeof rela))
        return false;
    *slot = rela.r_offset;
    return true;
}

static int32_t number_at(const uint8_t *at)
{
    int32_t value;

    memcpy(&value, at, 4);
    return value;
}

/* The slot that the stub in `code` (of `n` bytes at address `addr`) is for. */
static bool decode(const struct rp_plt *plt, const uint8_t *code, size_t n, uint64_t addr, uint64_t *slot)
{
    static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
    size_t at = n >= 4 && memcmp(code, endbr, 4) == 0 ? 4 : 0;

    if (at && at + 5 <= n && code[at] == 0x68)
        return slot_of_index(plt, (uint32_t)number_at(code + at + 1), slot);
    /* mold puts the index into r11 before the jump */
    if (at + 6 <= n && code[at] == 0x41 && code[at + 1] == 0xbb)
        at += 6;
    if (at < n && code[at] == 0xf2)
        at++;
    if (at + 6 > n || code[at] != 0xff || code[at + 1] != 0x25)
        return false;
    *slot = addr + at + 6 + (uint64_t)(int64_t)number_at(code + at + 2);
    return true;
}

/* `room`: bytes that may still be read, of all sections. */
static bool add_stubs(struct rp_plt *plt, uint32_t section, size_t *room)
{
    const Elf64_Shdr *s = &plt->view->sections[section];
    uint64_t step = s->sh_entsize == 8 || s->sh_entsize == 16 || s->sh_entsize == 32 ? s->sh_entsize : 16, slot;
    size_t bytes = 0;
    uint8_t *code = rp_elfview_contents(plt->view, section, *room, &bytes);
    bool ok = true;

    *room -= bytes;
    for (uint64_t at = 0; code && ok && at < bytes; at += step) {
        size_t n = bytes - at < step ? (size_t)(bytes - at) : (size_t)step;
        const struct rp_plt_relocation *r = decode(plt, code + at, n, s->sh_addr + at, &slot) ? relocation_at(plt, slot) : NULL;
        struct rp_plt_stub *stub = r ? rp_vec_add(&plt->stubs) : NULL;

        if (stub)
            *stub = (struct rp_plt_stub){s->sh_addr + at, (uint32_t)n, (uint32_t)(r - plt->relocations.at)};
        ok = !r || stub;
    }
    rp_free(code);
    return ok;
}

static bool is_stub_section(const struct rp_elfview *view, uint32_t section)
{
    const char *name = rp_elfview_section_name(view, section);

    return (view->sections[section].sh_flags & SHF_EXECINSTR) && (strncmp(name, ".plt", 4) == 0 || strncmp(name, ".iplt", 5) == 0);
}

enum rp_status rp_plt_init(struct rp_plt *plt, const struct rp_elfview *view, struct rp_err *err)
{
    bool ok = true, any = false;
    uint64_t relocations = RP_SYMBOLS_MAX;
    size_t bytes = RP_PLT_BYTES_MAX;

    *plt = (struct rp_plt){.view = view, .lazy = rp_elfview_section(view, ".rela.plt", 0)};
    for (uint32_t i = 1; i < view->nsections; i++)
        any = any || is_stub_section(view, i);
    for (uint32_t i = 1; any && ok && i < view->nsections; i++)
        ok = read_relocations(plt, i, &relocations);
    ok = ok && rp_radix_sort(plt->relocations.at, plt->relocations.n, sizeof *plt->relocations.at);
    for (uint32_t i = 1; any && ok && i < view->nsections; i++)
        ok = !is_stub_section(view, i) || add_stubs(plt, i, &bytes);
    ok = ok && rp_radix_sort(plt->stubs.at, plt->stubs.n, sizeof *plt->stubs.at);
    if (ok)
        return RP_OK;
    rp_plt_release(plt);
    return rp_fail_nomem(err);
}

void rp_plt_release(struct rp_plt *plt)
{
    rp_vec_release(&plt->relocations);
    rp_vec_release(&plt->stubs);
    *plt = (struct rp_plt){0};
}

static void name_indirect(const struct rp_symtab *symbols, uint64_t resolver, struct rp_buf *name)
{
    struct rp_symbol_names names = {0};
    struct rp_symbol_hit hit;

    rp_buf_clear(name);
    if (rp_symtab_at(symbols, resolver, &hit) && rp_symtab_names(symbols, &hit, &names))
        rp_buf_puts(name, names.at.at[0].text);
    else
        rp_buf_printf(name, "*ABS*+0x%llx", (unsigned long long)resolver);
    rp_symbol_names_release(&names);
}

bool rp_plt_find(const struct rp_plt *plt, const struct rp_symtab *symbols, uint64_t addr, uint64_t *start, struct rp_buf *name)
{
    const struct rp_plt_relocation *r;
    size_t low = 0, high = plt->stubs.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (plt->stubs.at[middle].addr <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || addr - plt->stubs.at[low - 1].addr >= plt->stubs.at[low - 1].size)
        return false;
    r = &plt->relocations.at[plt->stubs.at[low - 1].relocation];
    if (r->type == R_X86_64_IRELATIVE)
        name_indirect(symbols, r->value, name);
    else if (!rp_elfview_string(plt->view, plt->strings, plt->strings_bytes, r->value, name))
        return false;
    rp_buf_puts(name, "@plt");
    *start = plt->stubs.at[low - 1].addr;
    return !name->failed;
}
