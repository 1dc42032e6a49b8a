/* SPDX-License-Identifier: MIT */
/* See dwarfline.h.
 *
 *   subprogram  [0x100, 0x200)                     scope 0
 *     inlined   [0x120, 0x180)  called at line 9   scope 1, parent 0
 *       inlined [0x130, 0x140)  called at line 4   scope 2, parent 1
 *
 * 0x134 is in scope 2: its own line comes from the line table, the line in scope 1's function is where 2 was called (4), in scope 0's 9.
 *
 * The traps: .debug_aranges may be missing (clang writes none), so the table of units is made from the units' own ranges; and entries can nest or
 * refer to each other without end in a damaged file, so depth and number are bounded. */
#include "symbolize/dwarfline.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "symbolize/radix.h"

enum { NONE = UINT32_MAX };

/* Begins with the sort key. */
struct unit_range {
    uint64_t start, end;
    uint32_t unit, unused;
};

/* A range of a scope. `outer`: the nearest row before that reaches beyond its start. */
struct row {
    uint64_t start, end;
    uint32_t scope, outer;
};

struct scope {
    Dwarf_Off die;
    uint32_t parent;
    uint32_t call_file, call_line;
    bool inlined;
};

struct unit {
    Dwarf_Off die;
    bool walked;
    RP_VEC(struct row) rows;
    RP_VEC(struct scope) scopes;
    uint32_t entries; /* walked so far */
};

/* Bytes of a section that libdw hands out strings from. */
struct bytes {
    const char *start, *end;
};

struct rp_dwarf {
    Dwarf *dwarf, *alternate;
    RP_VEC(struct bytes) inline_strings; /* sections of entries: strings in them may run off the end */
    RP_VEC(struct unit) units;
    RP_VEC(struct unit_range) ranges; /* by start */
};

static bool add_unit_ranges(struct rp_dwarf *d, Dwarf_Die *die, uint32_t unit)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t offset = 0;

    for (uint32_t n = 0; n < RP_DIE_MAX && (offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0; n++) {
        struct unit_range *r;

        if (start >= end || !start) /* functions that the linker dropped are left at 0 */
            continue;
        r = rp_vec_add(&d->ranges);
        if (!r)
            return false;
        *r = (struct unit_range){start, end, unit, 0};
    }
    return true;
}

static bool read_units(struct rp_dwarf *d)
{
    Dwarf_CU *cu = NULL;
    Dwarf_Die die;
    uint8_t type;

    while (dwarf_get_units(d->dwarf, cu, &cu, NULL, &type, &die, NULL) == 0) {
        struct unit *unit;

        if (type != DW_UT_compile || dwarf_tag(&die) != DW_TAG_compile_unit)
            continue;
        unit = rp_vec_add(&d->units);
        if (!unit)
            return false;
        *unit = (struct unit){.die = dwarf_dieoffset(&die)};
        if (!add_unit_ranges(d, &die, (uint32_t)d->units.n - 1))
            return false;
    }
    return rp_radix_sort(d->ranges.at, d->ranges.n, sizeof *d->ranges.at);
}

/* libdw does not see to it that the string tables end with a NUL, and takes the length of what it finds in them. False: they do not; or no memory (then
 * *status says so). To be asked after dwarf_begin_elf, which unpacks compressed sections. */
static bool strings_end(struct rp_dwarf *d, Elf *elf, enum rp_status *status, struct rp_err *err)
{
    Elf_Scn *section = NULL;
    size_t names;

    if (!elf || elf_getshdrstrndx(elf, &names))
        return true;
    while ((section = elf_nextscn(elf, section))) {
        GElf_Shdr header;
        const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        bool table = name && (strcmp(name, ".debug_str") == 0 || strcmp(name, ".debug_line_str") == 0 || strcmp(name, ".zdebug_str") == 0);
        bool entries = name && (strcmp(name, ".debug_info") == 0 || strcmp(name, ".debug_types") == 0 || strcmp(name, ".zdebug_info") == 0);
        Elf_Data *data = table || entries ? elf_getdata(section, NULL) : NULL;
        struct bytes *added;

        if (!data || !data->d_buf || !data->d_size)
            continue;
        if (table && ((const char *)data->d_buf)[data->d_size - 1])
            return false;
        if (!entries)
            continue;
        added = rp_vec_add(&d->inline_strings);
        if (!added) {
            *status = rp_fail_nomem(err);
            return false;
        }
        *added = (struct bytes){data->d_buf, (const char *)data->d_buf + data->d_size};
    }
    return true;
}

/* `text`, or NULL when it runs off the section it lies in. */
static const char *checked(const struct rp_dwarf *d, const char *text)
{
    for (size_t i = 0; text && i < d->inline_strings.n; i++) {
        const struct bytes *b = &d->inline_strings.at[i];

        if (text >= b->start && text < b->end)
            return memchr(text, '\0', (size_t)(b->end - text)) ? text : NULL;
    }
    return text;
}

enum rp_status rp_dwarf_new(Elf *elf, Elf *alternate, struct rp_dwarf **out, struct rp_err *err)
{
    Dwarf *dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
    enum rp_status status = RP_OK;
    struct rp_dwarf *d;

    *out = NULL;
    if (!dwarf)
        return RP_OK;
    d = rp_calloc(1, sizeof *d);
    if (!d) {
        dwarf_end(dwarf);
        return rp_fail_nomem(err);
    }
    d->dwarf = dwarf;
    d->alternate = alternate ? dwarf_begin_elf(alternate, DWARF_C_READ, NULL) : NULL;
    if ((alternate && !d->alternate) || !strings_end(d, elf, &status, err) || !strings_end(d, alternate, &status, err)) {
        rp_dwarf_free(d);
        return status;
    }
    if (d->alternate)
        dwarf_setalt(dwarf, d->alternate);
    if (!read_units(d)) {
        rp_dwarf_free(d);
        return rp_fail_nomem(err);
    }
    *out = d;
    return RP_OK;
}

void rp_dwarf_free(struct rp_dwarf *dwarf)
{
    if (!dwarf)
        return;
    for (size_t i = 0; i < dwarf->units.n; i++) {
        rp_vec_release(&dwarf->units.at[i].rows);
        rp_vec_release(&dwarf->units.at[i].scopes);
    }
    rp_vec_release(&dwarf->units);
    rp_vec_release(&dwarf->ranges);
    rp_vec_release(&dwarf->inline_strings);
    dwarf_end(dwarf->dwarf);
    if (dwarf->alternate)
        dwarf_end(dwarf->alternate);
    rp_free(dwarf);
}

static uint32_t number_of(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;

    if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) || value > UINT32_MAX)
        return 0;
    return (uint32_t)value;
}

/* Adds the scope with all its ranges; *scope is NONE when it has none. */
static bool add_scope(struct unit *unit, Dwarf_Die *die, uint32_t parent, bool inlined, uint32_t *scope)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t offset = 0;
    struct scope *added;
    size_t before = unit->rows.n;

    *scope = NONE;
    for (uint32_t n = 0; n < RP_DIE_MAX && (offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0; n++) {
        struct row *row;

        if (start >= end || !start)
            continue;
        row = rp_vec_add(&unit->rows);
        if (!row)
            return false;
        *row = (struct row){start, end, (uint32_t)unit->scopes.n, NONE};
    }
    if (unit->rows.n == before)
        return true;
    added = rp_vec_add(&unit->scopes);
    if (!added)
        return false;
    *added = (struct scope){dwarf_dieoffset(die), parent, inlined ? number_of(die, DW_AT_call_file) : 0,
                            inlined ? number_of(die, DW_AT_call_line) : 0, inlined};
    *scope = (uint32_t)unit->scopes.n - 1;
    return true;
}

/* Entries that may hold functions or inlined calls below them. */
static bool may_hold_code(int tag)
{
    static const int tags[] = {DW_TAG_lexical_block, DW_TAG_namespace, DW_TAG_structure_type, DW_TAG_class_type, DW_TAG_union_type,
                               DW_TAG_enumeration_type, DW_TAG_module, DW_TAG_try_block, DW_TAG_catch_block, DW_TAG_with_stmt};

    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (tags[i] == tag)
            return true;
    }
    return false;
}

/* Walks the children of `die`. False without memory. */
static bool walk(struct unit *unit, Dwarf_Die *die, uint32_t scope, unsigned depth)
{
    Dwarf_Die child;

    if (depth >= RP_DIE_DEPTH_MAX || dwarf_child(die, &child) != 0)
        return true;
    do {
        int tag = dwarf_tag(&child);
        uint32_t inner = scope;

        if (++unit->entries > RP_DIE_MAX)
            return true;
        if (tag == DW_TAG_subprogram || (tag == DW_TAG_inlined_subroutine && scope != NONE)) {
            if (!add_scope(unit, &child, tag == DW_TAG_subprogram ? NONE : scope, tag != DW_TAG_subprogram, &inner))
                return false;
            if (inner == NONE)
                continue; /* a declaration, or an abstract instance */
        } else if (!may_hold_code(tag)) {
            continue;
        }
        if (!walk(unit, &child, inner, depth + 1))
            return false;
    } while (dwarf_siblingof(&child, &child) == 0);
    return true;
}

/* Sorted by start; of two that start together the outer one, which was found first, stays first (the sort is stable). */
static bool finish_rows(struct unit *unit)
{
    uint32_t open = NONE;

    if (!rp_radix_sort(unit->rows.at, unit->rows.n, sizeof *unit->rows.at))
        return false;
    for (uint32_t i = 0; i < unit->rows.n; i++) {
        while (open != NONE && unit->rows.at[open].end <= unit->rows.at[i].start)
            open = unit->rows.at[open].outer;
        unit->rows.at[i].outer = open;
        open = i;
    }
    return true;
}

static struct unit *unit_at(struct rp_dwarf *d, uint64_t addr)
{
    size_t low = 0, high = d->ranges.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (d->ranges.at[middle].start <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low && addr < d->ranges.at[low - 1].end ? &d->units.at[d->ranges.at[low - 1].unit] : NULL;
}

/* The innermost row that holds `addr`, or NONE. */
static uint32_t row_at(const struct unit *unit, uint64_t addr)
{
    size_t low = 0, high = unit->rows.n;
    uint32_t i;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (unit->rows.at[middle].start <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    i = low ? (uint32_t)low - 1 : NONE;
    for (unsigned steps = 0; i != NONE && unit->rows.at[i].end <= addr; i = unit->rows.at[i].outer) {
        if (++steps > RP_DIE_DEPTH_MAX)
            return NONE;
    }
    return i;
}

static const char *linkage_name(const struct rp_dwarf *d, Dwarf_Die *die)
{
    Dwarf_Attribute attribute;

    if (!dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) && !dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
        return NULL;
    return checked(d, dwarf_formstring(&attribute));
}

/* The file that declares it. libdw's own function takes number 0 for "none", which in DWARF 5 is the unit's main file; and the number may belong to another
 * unit than the entry, that of its abstract origin. */
static const char *decl_file(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    Dwarf_Word number;
    Dwarf_Files *files;
    Dwarf_Die cu;
    size_t nfiles;

    if (!dwarf_attr_integrate(die, DW_AT_decl_file, &attribute) || dwarf_formudata(&attribute, &number) ||
        !dwarf_cu_die(attribute.cu, &cu, NULL, NULL, NULL, NULL, NULL, NULL) || dwarf_getsrcfiles(&cu, &files, &nfiles) || number >= nfiles)
        return NULL;
    return dwarf_filesrc(files, number, NULL, NULL);
}

/* A frame without place yet. */
static struct rp_dwarf_frame frame_of(struct rp_dwarf *d, const struct scope *scope)
{
    struct rp_dwarf_frame frame = {.inlined = scope->inlined};
    Dwarf_Die die;

    if (!dwarf_offdie(d->dwarf, scope->die, &die))
        return frame;
    frame.name = linkage_name(d, &die);
    if (!frame.name)
        frame.name = checked(d, dwarf_diename(&die));
    frame.decl_file = decl_file(&die);
    return frame;
}

/* The functions from scope to scope outwards; each one's place in the one around it is where it was called. */
static enum rp_status add_frames(struct rp_dwarf *d, struct unit *unit, Dwarf_Die *cu, uint64_t addr, uint32_t row,
                                 struct rp_dwarf_frames *frames, struct rp_err *err)
{
    Dwarf_Line *line = dwarf_getsrc_die(cu, addr);
    const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
    uint32_t scope = row != NONE ? unit->rows.at[row].scope : NONE;
    Dwarf_Files *files = NULL;
    size_t nfiles = 0;
    int number = 0;

    if (line && dwarf_lineno(line, &number))
        number = 0;
    for (unsigned depth = 0; scope != NONE && depth < RP_INLINE_DEPTH_MAX; depth++) {
        const struct scope *s = &unit->scopes.at[scope];
        struct rp_dwarf_frame *frame = rp_vec_add(&frames->at);

        if (!frame)
            return rp_fail_nomem(err);
        *frame = frame_of(d, s);
        frame->file = file;
        frame->line = (uint32_t)number;
        frame->start = unit->rows.at[row].start;
        if (!files && dwarf_getsrcfiles(cu, &files, &nfiles))
            files = NULL;
        file = files && s->call_file < nfiles ? dwarf_filesrc(files, s->call_file, NULL, NULL) : NULL;
        number = s->call_line > INT32_MAX ? 0 : (int)s->call_line;
        scope = s->parent;
    }
    if (!frames->at.n && line) {
        struct rp_dwarf_frame *frame = rp_vec_add(&frames->at);

        if (!frame)
            return rp_fail_nomem(err);
        *frame = (struct rp_dwarf_frame){.file = file, .line = (uint32_t)number};
    }
    return RP_OK;
}

enum rp_status rp_dwarf_find(struct rp_dwarf *dwarf, uint64_t addr, struct rp_dwarf_frames *frames, struct rp_err *err)
{
    struct unit *unit = unit_at(dwarf, addr);
    Dwarf_Die cu;

    rp_vec_clear(&frames->at);
    if (!unit || !dwarf_offdie(dwarf->dwarf, unit->die, &cu))
        return RP_OK;
    if (!unit->walked) {
        unit->walked = true;
        if (!walk(unit, &cu, NONE, 0) || !finish_rows(unit))
            return rp_fail_nomem(err);
    }
    return add_frames(dwarf, unit, &cu, addr, row_at(unit, addr), frames, err);
}
