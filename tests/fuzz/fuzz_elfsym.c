/* SPDX-License-Identifier: MIT */
/* An ELF file of any bytes: headers, symbols, stubs, build-id and packed symbols are read without a step outside it, and lookups agree with a plain search
 * through the table. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "symbolize/debugfile.h"
#include "symbolize/elfsym.h"
#include "symbolize/plt.h"
#include "symbolize/stub.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A symbol with a size that holds the address, found the slow way. */
static bool held(const struct rp_symtab *table, uint64_t addr)
{
    for (size_t i = 0; i < table->symbols.n; i++) {
        const struct rp_symbol *s = &table->symbols.at[i];

        /* one that would wrap ends at the last address, which it does not hold */
        if (s->size && addr >= s->addr && addr - s->addr < s->size && !(addr == UINT64_MAX && s->addr > UINT64_MAX - s->size))
            return true;
    }
    return false;
}

static void look_up(const struct rp_symtab *table, const struct rp_plt *plt, uint64_t addr)
{
    struct rp_symbol_names names = {0};
    struct rp_symbol_hit hit;
    struct rp_buf name = {0};
    uint64_t start;
    bool found = rp_symtab_find(table, addr, &hit);

    if (held(table, addr) != (found && hit.sized) && table->symbols.n < 4096)
        abort();
    if (found && (hit.start > addr || !hit.n || hit.first + hit.n > table->symbols.n))
        abort();
    if (found && rp_symtab_names(table, &hit, &names) && !names.at.at[0].text[0])
        abort();
    rp_symbol_names_release(&names);
    rp_plt_find(plt, table, addr, &start, &name);
    rp_buf_release(&name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = rp_reallocarray(NULL, size ? size : 1, 1), id[32], *mini = NULL; /* of the exact size, so that a sanitizer sees the first byte beyond */
    struct rp_symtab table = {0};
    struct rp_stubs stubs = {0};
    struct rp_elfview view;
    struct rp_plt plt = {0};
    struct rp_err err;
    size_t bytes;

    if (!copy)
        return 0;
    memcpy(copy, data, size);
    if (!rp_elfview_init(&view, -1, copy, size, &err)) {
        if (rp_elfview_build_id(&view, id) > sizeof id)
            abort();
        mini = rp_debugdata_unpack(&view, &bytes);
        if (!rp_symtab_add(&table, &view, SHT_SYMTAB, &err) && !rp_symtab_add(&table, &view, SHT_DYNSYM, &err) &&
            !rp_symtab_finish(&table, &err) && !rp_plt_init(&plt, &view, &err) && !rp_stubs_init(&stubs, &table, &view, &err)) {
            for (size_t i = 0; i < table.symbols.n && i < 200; i++) {
                look_up(&table, &plt, table.symbols.at[i].addr);
                look_up(&table, &plt, table.symbols.at[i].addr + table.symbols.at[i].size);
                look_up(&table, &plt, table.symbols.at[i].addr - 1);
            }
            for (size_t i = 0; i < plt.stubs.n && i < 200; i++)
                look_up(&table, &plt, plt.stubs.at[i].addr + 3);
        }
        rp_stubs_release(&stubs);
        rp_plt_release(&plt);
        rp_symtab_release(&table);
        rp_elfview_release(&view);
    }
    rp_free(mini);
    rp_free(copy);
    return 0;
}
