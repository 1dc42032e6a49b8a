/* SPDX-License-Identifier: MIT */
/* See elfsym.h.
 *
 * The traps: "nearest symbol below" charges every hidden function of a stripped library to the exported one before it, so sizes are respected;
 * hand-written assembly has size 0, so a strict range test loses it; and functions nest (a label with a size inside another function), so
 * the innermost is wanted: each entry knows the nearest earlier entry that reaches beyond its start, and a search follows those. */
#include "symbolize/elfsym.h"

#include <string.h>

#include "base/limits.h"
#include "symbolize/radix.h"

enum {
    READ_AT_ONCE = 2048,  /* symbols */
    NAMES_TRIED_MAX = 4 * RP_ALIASES_MAX,
    HASH_STEPS_MAX = 1000000,
    OUTER_STEPS_MAX = 4096 /* a hostile table can be built as stairs; real ones nest three deep */
};

static bool is_code_section(const struct rp_elfview *view, uint16_t section)
{
    if (section == SHN_UNDEF || (section >= SHN_LORESERVE && section != SHN_XINDEX))
        return false;
    return section < view->nsections && (view->sections[section].sh_flags & SHF_EXECINSTR);
}

static bool wanted(const struct rp_elfview *view, const Elf64_Sym *s)
{
    unsigned type = ELF64_ST_TYPE(s->st_info);

    if (s->st_shndx == SHN_UNDEF || !s->st_name)
        return false;
    if (type == STT_FUNC || type == STT_GNU_IFUNC)
        return s->st_shndx != SHN_COMMON;
    return type == STT_NOTYPE && is_code_section(view, s->st_shndx);
}

static bool add_one(struct rp_symtab *table, const struct rp_elfview *view, const Elf64_Sym *s)
{
    struct rp_symbol *symbol;

    if (!wanted(view, s) || table->symbols.n >= RP_SYMBOLS_MAX)
        return true;
    symbol = rp_vec_add(&table->symbols);
    if (!symbol)
        return false;
    *symbol = (struct rp_symbol){s->st_value, s->st_size > UINT32_MAX ? UINT32_MAX : (uint32_t)s->st_size, s->st_name, UINT32_MAX,
                                 s->st_shndx, (uint8_t)table->nsources, s->st_info};
    return true;
}

/* Where a symbol table lies in the file. */
struct place {
    uint64_t offset, count, strings, strings_bytes;
};

static enum rp_status add_all(struct rp_symtab *table, const struct rp_elfview *view, const struct place *place, struct rp_err *err)
{
    Elf64_Sym *piece = rp_reallocarray(NULL, READ_AT_ONCE, sizeof *piece);
    uint64_t at = 0;

    if (!piece)
        return rp_fail_nomem(err);
    while (at < place->count) {
        uint64_t n = place->count - at < READ_AT_ONCE ? place->count - at : READ_AT_ONCE;

        if (!rp_elfview_read(view, place->offset + at * sizeof *piece, piece, (size_t)n * sizeof *piece))
            break;
        for (uint64_t i = 0; i < n; i++) {
            if (!add_one(table, view, &piece[i])) {
                rp_free(piece);
                return rp_fail_nomem(err);
            }
        }
        at += n;
    }
    rp_free(piece);
    table->sources[table->nsources++] = (struct rp_symbol_source){view, place->strings, place->strings_bytes};
    return RP_OK;
}

static bool find_section(const struct rp_elfview *view, uint32_t type, struct place *place)
{
    for (uint32_t i = 1; i < view->nsections; i++) {
        const Elf64_Shdr *s = &view->sections[i], *strings;

        if (s->sh_type != type || s->sh_entsize != sizeof(Elf64_Sym) || s->sh_link >= view->nsections || (s->sh_flags & SHF_COMPRESSED))
            continue;
        strings = &view->sections[s->sh_link];
        if (strings->sh_type != SHT_STRTAB || (strings->sh_flags & SHF_COMPRESSED))
            continue;
        *place = (struct place){s->sh_offset, s->sh_size / sizeof(Elf64_Sym), strings->sh_offset, strings->sh_size};
        place->count = place->count > RP_SYMBOLS_MAX ? RP_SYMBOLS_MAX : place->count; /* a sparse file can claim any number */
        return place->count > 0;
    }
    return false;
}

/* The number of dynamic symbols is told by no tag, only by the hash tables: DT_HASH holds it, DT_GNU_HASH must be followed to the end of the chain of its
 * highest bucket. */
static uint64_t count_by_gnu_hash(const struct rp_elfview *view, uint64_t offset)
{
    uint32_t head[4], link, last = 0;
    uint64_t buckets, chains;

    if (!rp_elfview_read(view, offset, head, sizeof head) || head[0] > HASH_STEPS_MAX || head[2] > view->bytes / 8)
        return 0;
    buckets = offset + sizeof head + (uint64_t)head[2] * 8;
    chains = buckets + (uint64_t)head[0] * 4;
    for (uint32_t i = 0; i < head[0]; i++) {
        if (!rp_elfview_read(view, buckets + (uint64_t)i * 4, &link, 4))
            return 0;
        last = link > last ? link : last;
    }
    if (last < head[1])
        return head[1];
    do {
        if (!rp_elfview_read(view, chains + (uint64_t)(last - head[1]) * 4, &link, 4))
            return 0;
        last++;
    } while (!(link & 1) && last < HASH_STEPS_MAX);
    return last;
}

static bool find_dynamic(const struct rp_elfview *view, struct place *place)
{
    uint64_t tags[5] = {0}, hash, gnu_hash; /* symtab, strtab, strsz, hash, gnu hash */
    uint32_t words[2];
    Elf64_Dyn dyn;

    for (uint32_t i = 0; i < view->nsegments; i++) {
        const Elf64_Phdr *p = &view->segments[i];

        for (uint64_t at = 0; p->p_type == PT_DYNAMIC && at + sizeof dyn <= p->p_filesz && at < 65536; at += sizeof dyn) {
            if (!rp_elfview_read(view, p->p_offset + at, &dyn, sizeof dyn) || dyn.d_tag == DT_NULL)
                break;
            tags[0] = dyn.d_tag == DT_SYMTAB ? dyn.d_un.d_ptr : tags[0];
            tags[1] = dyn.d_tag == DT_STRTAB ? dyn.d_un.d_ptr : tags[1];
            tags[2] = dyn.d_tag == DT_STRSZ ? dyn.d_un.d_val : tags[2];
            tags[3] = dyn.d_tag == DT_HASH ? dyn.d_un.d_ptr : tags[3];
            tags[4] = dyn.d_tag == DT_GNU_HASH ? dyn.d_un.d_ptr : tags[4];
        }
    }
    if (!tags[0] || !rp_elfview_offset(view, tags[0], &place->offset) || !rp_elfview_offset(view, tags[1], &place->strings))
        return false;
    place->strings_bytes = tags[2];
    if (tags[3] && rp_elfview_offset(view, tags[3], &hash) && rp_elfview_read(view, hash, words, sizeof words))
        place->count = words[1];
    else if (tags[4] && rp_elfview_offset(view, tags[4], &gnu_hash))
        place->count = count_by_gnu_hash(view, gnu_hash);
    return place->count && place->count <= view->bytes / sizeof(Elf64_Sym);
}

enum rp_status rp_symtab_add(struct rp_symtab *table, const struct rp_elfview *view, uint32_t type, struct rp_err *err)
{
    struct place place = {0};

    if (table->nsources == RP_SYMBOL_SOURCES)
        return RP_OK;
    if (!find_section(view, type, &place) && (type != SHT_DYNSYM || !find_dynamic(view, &place)))
        return RP_OK;
    return add_all(table, view, &place, err);
}

static uint64_t end_of(const struct rp_symbol *s)
{
    return s->addr > UINT64_MAX - s->size ? UINT64_MAX : s->addr + s->size;
}

enum rp_status rp_symtab_finish(struct rp_symtab *table, struct rp_err *err)
{
    struct rp_symbol *at = table->symbols.at;
    uint32_t open = UINT32_MAX; /* the innermost symbol that may still reach further */

    if (!rp_radix_sort(at, table->symbols.n, sizeof *at))
        return rp_fail_nomem(err);
    for (uint32_t i = 0; i < table->symbols.n; i++) {
        while (open != UINT32_MAX && end_of(&at[open]) <= at[i].addr)
            open = at[open].outer;
        at[i].outer = open;
        if (at[i].size)
            open = i;
    }
    return RP_OK;
}

/* The first entry whose address is above `addr`. */
static uint32_t upper_bound(const struct rp_symtab *table, uint64_t addr)
{
    size_t low = 0, high = table->symbols.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (table->symbols.at[middle].addr <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint32_t)low;
}

/* By two searches, not by walking: a hostile table may put all its symbols at one address. */
static void group_of(const struct rp_symtab *table, uint32_t i, struct rp_symbol_hit *hit)
{
    uint64_t addr = table->symbols.at[i].addr;

    hit->start = addr;
    hit->first = addr ? upper_bound(table, addr - 1) : 0;
    hit->n = upper_bound(table, addr) - hit->first;
}

/* The end of what symbols without size at entries of `hit` reach: the next symbol or the end of the section. */
static bool unsized_end(const struct rp_symtab *table, const struct rp_symbol_hit *hit, uint64_t *end)
{
    bool any = false;

    *end = hit->first + hit->n < table->symbols.n ? table->symbols.at[hit->first + hit->n].addr : UINT64_MAX;
    for (uint32_t i = hit->first; i < hit->first + hit->n && i < hit->first + NAMES_TRIED_MAX; i++) {
        const struct rp_symbol *s = &table->symbols.at[i];
        const struct rp_elfview *view = table->sources[s->source].view;
        const Elf64_Shdr *section = s->section && s->section < view->nsections ? &view->sections[s->section] : NULL;

        if (s->size || !section || s->addr < section->sh_addr || s->addr - section->sh_addr >= section->sh_size)
            continue;
        any = true;
        if (*end > section->sh_addr + section->sh_size)
            *end = section->sh_addr + section->sh_size;
    }
    return any;
}

bool rp_symtab_find(const struct rp_symtab *table, uint64_t addr, struct rp_symbol_hit *hit)
{
    uint32_t last = upper_bound(table, addr), i = last;

    if (!last)
        return false;
    i = last - 1;
    for (int steps = 0; i != UINT32_MAX && steps < OUTER_STEPS_MAX; steps++, i = table->symbols.at[i].outer) {
        if (table->symbols.at[i].size && end_of(&table->symbols.at[i]) > addr) {
            group_of(table, i, hit);
            hit->end = end_of(&table->symbols.at[i]);
            hit->sized = true;
            return true;
        }
    }
    group_of(table, last - 1, hit);
    hit->sized = false;
    return unsized_end(table, hit, &hit->end) && addr < hit->end;
}

bool rp_symtab_at(const struct rp_symtab *table, uint64_t addr, struct rp_symbol_hit *hit)
{
    uint32_t last = upper_bound(table, addr);

    if (!last || table->symbols.at[last - 1].addr != addr)
        return false;
    group_of(table, last - 1, hit);
    hit->end = end_of(&table->symbols.at[last - 1]);
    hit->sized = hit->end > addr;
    return true;
}

static uint32_t rank_of(const struct rp_symbol *s)
{
    unsigned type = ELF64_ST_TYPE(s->info), bind = ELF64_ST_BIND(s->info);
    uint32_t rank = (type == STT_FUNC || type == STT_GNU_IFUNC) && s->size ? 0 : 3;

    return rank + (bind == STB_LOCAL ? 2 : bind == STB_WEAK ? 1 : 0);
}

/* Length of a name without its version. */
static size_t stem(const char *name)
{
    const char *at = *name ? strchr(name + 1, '@') : NULL;

    return at ? (size_t)(at - name) : strlen(name);
}

static int compare_names(const struct rp_symbol_name *a, const struct rp_symbol_name *b)
{
    size_t a_bars = strspn(a->text, "_"), b_bars = strspn(b->text, "_"), a_length = stem(a->text), b_length = stem(b->text);

    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a_bars != b_bars)
        return a_bars < b_bars ? -1 : 1;
    if (a_length != b_length)
        return a_length < b_length ? -1 : 1;
    return strcmp(a->text, b->text);
}

/* Puts a name in its place; a second one with the same stem is dropped, or takes the place of a worse one. */
static bool insert_name(struct rp_symbol_names *names, const char *text, uint32_t rank)
{
    struct rp_symbol_name name = {rp_strndup(text, strlen(text)), rank};
    size_t length = stem(text), at;

    if (!name.text)
        return false;
    for (size_t i = 0; i < names->at.n; i++) {
        if (stem(names->at.at[i].text) != length || memcmp(names->at.at[i].text, text, length) != 0)
            continue;
        if (compare_names(&names->at.at[i], &name) <= 0) {
            rp_free(name.text);
            return true;
        }
        rp_free(names->at.at[i].text);
        memmove(&names->at.at[i], &names->at.at[i + 1], (names->at.n - i - 1) * sizeof name);
        names->at.n--;
        break;
    }
    if (!rp_vec_reserve(&names->at, 1)) {
        rp_free(name.text);
        return false;
    }
    for (at = names->at.n++; at > 0 && compare_names(&name, &names->at.at[at - 1]) < 0; at--)
        names->at.at[at] = names->at.at[at - 1];
    names->at.at[at] = name;
    return true;
}

bool rp_symtab_names(const struct rp_symtab *table, const struct rp_symbol_hit *hit, struct rp_symbol_names *names)
{
    struct rp_buf text = {0};
    bool ok = true;

    for (uint32_t i = 0; ok && i < hit->n && i < NAMES_TRIED_MAX && names->at.n < RP_ALIASES_MAX; i++) {
        const struct rp_symbol *s = &table->symbols.at[hit->first + i];
        const struct rp_symbol_source *source = &table->sources[s->source];

        if (rp_elfview_string(source->view, source->strings, source->strings_bytes, s->name, &text))
            ok = insert_name(names, rp_buf_text(&text), rank_of(s));
        else
            ok = !text.failed;
    }
    rp_buf_release(&text);
    return ok && names->at.n;
}

void rp_symbol_names_release(struct rp_symbol_names *names)
{
    for (size_t i = 0; i < names->at.n; i++)
        rp_free(names->at.at[i].text);
    rp_vec_release(&names->at);
}

void rp_symtab_release(struct rp_symtab *table)
{
    rp_vec_release(&table->symbols);
    *table = (struct rp_symtab){0};
}
