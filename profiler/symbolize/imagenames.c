/* SPDX-License-Identifier: MIT */
/* See imagenames.h. The trap: a debug file may hold only what the image lacks, or the image all of it. Full tables are looked for in the image, then in
 * the debug file, then in .gnu_debugdata; DWARF in the image, then in the debug file. */
#include "symbolize/imagenames.h"

#include <string.h>
#include <unistd.h>

#include "symbolize/debugfile.h"
#include "symbolize/debuginfod.h"

static bool has_dwarf(const struct rp_elfview *view)
{
    uint32_t section = rp_elfview_section(view, ".debug_info", 0);

    if (!section)
        section = rp_elfview_section(view, ".zdebug_info", 0);
    return section && view->sections[section].sh_type != SHT_NOBITS && view->sections[section].sh_size;
}

static bool has_symtab(const struct rp_elfview *view)
{
    for (uint32_t i = 1; i < view->nsections; i++) {
        if (view->sections[i].sh_type == SHT_SYMTAB && view->sections[i].sh_size > sizeof(Elf64_Sym))
            return true;
    }
    return false;
}

static void open_debug(struct rp_image_names *n, const struct rp_image *image, const struct rp_symbolizer_options *options,
                       struct rp_debuginfod *debuginfod, struct rp_symbolizer_stats *stats)
{
    struct rp_debug_query query = {&n->main, image->pid, image->path, options->debug_dir};
    struct rp_err unusable;

    n->debug_fd = rp_debugfile_open(&query);
    if (n->debug_fd < 0 && debuginfod) {
        uint8_t id[32], bytes = rp_elfview_build_id(&n->main, id);

        n->debug_fd = bytes ? rp_debuginfod_find(debuginfod, id, bytes) : -1;
    }
    if (n->debug_fd < 0)
        return;
    if (rp_elfview_init(&n->debug, n->debug_fd, NULL, 0, &unusable)) {
        close(n->debug_fd);
        n->debug_fd = -1;
        return;
    }
    stats->debug_files++;
}

static enum rp_status open_mini(struct rp_image_names *n, struct rp_err *err)
{
    struct rp_err unusable;
    size_t bytes;

    n->mini_bytes = rp_debugdata_unpack(&n->main, &bytes);
    if (!n->mini_bytes || rp_elfview_init(&n->mini, -1, n->mini_bytes, bytes, &unusable))
        return RP_OK;
    n->full_table = has_symtab(&n->mini);
    return rp_symtab_add(&n->symbols, &n->mini, SHT_SYMTAB, err);
}

static enum rp_status read_tables(struct rp_image_names *n, struct rp_err *err)
{
    enum rp_status status;

    n->full_table = has_symtab(&n->main);
    status = rp_symtab_add(&n->symbols, &n->main, SHT_SYMTAB, err);
    if (!status)
        status = rp_symtab_add(&n->symbols, &n->main, SHT_DYNSYM, err);
    if (!status && !n->full_table && n->debug_fd >= 0) {
        n->full_table = has_symtab(&n->debug);
        status = rp_symtab_add(&n->symbols, &n->debug, SHT_SYMTAB, err);
    }
    if (!status && !n->full_table)
        status = open_mini(n, err);
    if (!status)
        status = rp_symtab_finish(&n->symbols, err);
    return status ? status : rp_plt_init(&n->plt, &n->main, err);
}

enum rp_status rp_image_names_new(const struct rp_image *image, const struct rp_symbolizer_options *options, struct rp_debuginfod *debuginfod,
                                  struct rp_symbolizer_stats *stats, struct rp_image_names **out, struct rp_err *err)
{
    struct rp_image_names *n = rp_calloc(1, sizeof *n);
    enum rp_status status = RP_OK;
    struct rp_err unusable;

    if (!n)
        return rp_fail_nomem(err);
    n->debug_fd = n->alternate_fd = -1;
    if ((image->memory || image->fd >= 0) && !rp_elfview_init(&n->main, image->fd, image->memory, image->memory_bytes, &unusable)) {
        stats->files_parsed++;
        if (image->kind == RP_IMAGE_ELF && !(has_symtab(&n->main) && (has_dwarf(&n->main) || options->no_inlines)))
            open_debug(n, image, options, debuginfod, stats);
        status = read_tables(n, err);
        stats->symbols += n->symbols.symbols.n;
    }
    if (status) {
        rp_image_names_free(n);
        return status;
    }
    *out = n;
    return RP_OK;
}

void rp_image_names_free(struct rp_image_names *names)
{
    if (!names)
        return;
    rp_dwarf_free(names->dwarf);
    rp_plt_release(&names->plt);
    rp_stubs_release(&names->stubs);
    rp_symtab_release(&names->symbols);
    if (names->debug_elf)
        elf_end(names->debug_elf);
    if (names->alternate_elf)
        elf_end(names->alternate_elf);
    rp_elfview_release(&names->main);
    rp_elfview_release(&names->debug);
    rp_elfview_release(&names->mini);
    rp_free(names->mini_bytes);
    if (names->debug_fd >= 0)
        close(names->debug_fd);
    if (names->alternate_fd >= 0)
        close(names->alternate_fd);
    rp_free(names);
}

static enum rp_status open_dwarf(struct rp_image_names *n, const struct rp_image *image, const struct rp_symbolizer_options *options, struct rp_err *err)
{
    bool own = image->elf && has_dwarf(&n->main), named;
    struct rp_debug_query query = {own ? &n->main : &n->debug, image->pid, image->path, options->debug_dir};
    Elf *elf = own ? image->elf : NULL;

    if (!own && (n->debug_fd < 0 || !has_dwarf(&n->debug)))
        return RP_OK;
    elf_version(EV_CURRENT);
    n->alternate_fd = rp_debugfile_open_alternate(&query, &named);
    if (named && n->alternate_fd < 0)
        return RP_OK;
    if (named)
        n->alternate_elf = elf_begin(n->alternate_fd, ELF_C_READ, NULL);
    if (!own)
        elf = n->debug_elf = elf_begin(n->debug_fd, ELF_C_READ, NULL);
    if (!elf || (named && !n->alternate_elf))
        return RP_OK;
    return rp_dwarf_new(elf, n->alternate_elf, &n->dwarf, err);
}

enum rp_status rp_image_names_dwarf(struct rp_image_names *names, const struct rp_image *image, const struct rp_symbolizer_options *options,
                                    struct rp_dwarf **dwarf, struct rp_err *err)
{
    enum rp_status status = names->dwarf_tried ? RP_OK : open_dwarf(names, image, options, err);

    names->dwarf_tried = true;
    *dwarf = names->dwarf;
    return status;
}

static bool stub_for(const struct rp_image_names *names, uint64_t start)
{
    struct rp_symbol_names text = {0};
    bool found = rp_stubs_find(&names->stubs, &names->symbols, start, &text);

    rp_symbol_names_release(&text);
    return found;
}

enum rp_status rp_image_names_find(struct rp_image_names *names, const struct rp_image *image, struct rp_unwinder *unwinder, uint64_t addr,
                                   struct rp_code_name *found, struct rp_err *err)
{
    struct rp_symbol_hit at = {0};
    bool hit = rp_symtab_find(&names->symbols, addr, &at), range;
    struct rp_buf stub = {0};
    uint64_t start = addr, end;
    enum rp_status status;

    *found = (struct rp_code_name){RP_NAME_SYMBOL, at.start, at};
    if (hit && at.sized)
        return RP_OK;
    if (rp_plt_find(&names->plt, &names->symbols, addr, &start, &stub)) {
        *found = (struct rp_code_name){.how = RP_NAME_PLT, .start = start};
        rp_buf_release(&stub);
        return RP_OK;
    }
    rp_buf_release(&stub);
    range = unwinder && rp_unwinder_fde_range(unwinder, image->id, addr, &start, &end);
    if (hit && (!range || start <= at.start))
        return RP_OK; /* else an unwind range of its own begins after the symbol: another function */
    *found = (struct rp_code_name){.how = RP_NAME_OFFSET, .start = range ? start : addr};
    if (!range)
        return RP_OK;
    if (!names->stubs_ready) {
        status = rp_stubs_init(&names->stubs, &names->symbols, &names->main, err);
        if (status)
            return status;
        names->stubs_ready = true;
    }
    if (stub_for(names, start))
        found->how = RP_NAME_STUB_LOCAL;
    return RP_OK;
}

bool rp_image_names_read(const struct rp_image_names *names, const struct rp_code_name *found, struct rp_symbol_names *text)
{
    struct rp_buf stub = {0};
    uint64_t start;
    struct rp_symbol_name *name;
    bool ok = false;

    if (found->how == RP_NAME_SYMBOL)
        return rp_symtab_names(&names->symbols, &found->hit, text);
    if (found->how == RP_NAME_STUB_LOCAL)
        return rp_stubs_find(&names->stubs, &names->symbols, found->start, text);
    if (found->how == RP_NAME_PLT && rp_plt_find(&names->plt, &names->symbols, found->start, &start, &stub)) {
        name = rp_vec_add(&text->at);
        if (name) {
            *name = (struct rp_symbol_name){rp_strndup(rp_buf_text(&stub), stub.length), 0};
            ok = name->text != NULL;
            text->at.n = ok ? 1 : 0;
        }
    }
    rp_buf_release(&stub);
    return ok;
}
