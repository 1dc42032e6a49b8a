/* SPDX-License-Identifier: MIT */
/* The third engine: libunwind's own walker over the same snapshot, through its accessors for remote processes. It finds rows with its own code and evaluates them
 * with its own; from us it has the mapping table, the bytes of the mapped files, and the copy of the stack. So it is a second opinion on our walk, and one to
 * fall back on.
 *
 * libunwind asks for memory by address: the stack comes from the snapshot, all else from the file that is mapped there (unwind tables do not change at run time,
 * so the file is as good as the memory).
 *
 * The traps: libunwind ends without an error at what it takes for the end, so a root is one only where our rule for that address says so, too; and
 * where a file has no row it guesses by frame pointer. */
#include <gelf.h>
#include <libunwind.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/io.h"
#include "unwind/cfi.h"

/* Not in its header, but what it is made to be called with: the table of .eh_frame_hdr of a remote image is searched. */
extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t, unw_word_t, unw_dyn_info_t *, unw_proc_info_t *, int, void *);

struct rp_libunwind {
    unw_addr_space_t as;
    struct rp_unwinder *unwinder;
    struct rp_space *space;
    const struct rp_snapshot *snapshot;
    uint32_t layout; /* that its cache is of */
};

void rp_libunwind_free(struct rp_libunwind *u)
{
    if (!u)
        return;
    if (u->as)
        unw_destroy_addr_space(u->as);
    rp_free(u);
}

static const struct rp_image *image_at(struct rp_libunwind *u, uint64_t address, const struct rp_mapping **mapping)
{
    *mapping = rp_space_find(u->space, address);
    return *mapping && (*mapping)->image < u->unwinder->images->at.n ? u->unwinder->images->at.at[(*mapping)->image] : NULL;
}

/* The load segment of an image that holds an ELF address. */
static const struct rp_segment *segment_of(const struct rp_image *image, uint64_t addr)
{
    for (uint32_t i = 0; i < image->nsegments; i++) {
        if (addr >= image->segments[i].vaddr && addr - image->segments[i].vaddr < image->segments[i].filesz)
            return &image->segments[i];
    }
    return NULL;
}

/* Bytes of a file: from memory for the vDSO and for what was read out of a target. */
static bool read_image(const struct rp_image *image, uint64_t addr, void *to, size_t length)
{
    const struct rp_segment *s = segment_of(image, addr);
    uint64_t offset;

    if (!s || s->filesz - (addr - s->vaddr) < length)
        return false;
    offset = addr - s->vaddr + s->offset;
    if (image->memory) {
        if (offset > image->memory_bytes || image->memory_bytes - offset < length)
            return false;
        memcpy(to, (const char *)image->memory + offset, length);
        return true;
    }
    return image->fd >= 0 && rp_pread_full(image->fd, to, length, offset) == (ssize_t)length;
}

/* The address in the target of ELF address 0 of the image that is mapped at `m`. */
static bool bias_of(const struct rp_image *image, const struct rp_mapping *m, uint64_t *bias)
{
    uint64_t addr;

    if ((image->kind != RP_IMAGE_ELF && image->kind != RP_IMAGE_VDSO) || !rp_image_offset_to_addr(image, m->offset, &addr))
        return false;
    *bias = m->start - addr;
    return true;
}

/* The mapping table holds executable mappings only; tables lie in the same file nearby. */
static bool read_near(struct rp_libunwind *u, uint64_t address, void *to, size_t length)
{
    for (size_t i = 0; i < u->space->maps.n; i++) {
        const struct rp_mapping *m = &u->space->maps.at[i];
        const struct rp_image *image = u->unwinder->images->at.at[m->image];
        uint64_t bias;

        if (bias_of(image, m, &bias) && segment_of(image, address - bias) && read_image(image, address - bias, to, length))
            return true;
    }
    return false;
}

static int access_mem(unw_addr_space_t as, unw_word_t address, unw_word_t *value, int write, void *arg)
{
    struct rp_libunwind *u = arg;
    uint64_t low = u->snapshot->regs[RP_RSP], into = address - low;

    (void)as;
    if (write)
        return -UNW_EINVAL;
    if (address >= low && into < u->snapshot->stack_bytes && u->snapshot->stack_bytes - into >= sizeof *value) {
        memcpy(value, u->snapshot->stack + into, sizeof *value);
        return 0;
    }
    return read_near(u, address, value, sizeof *value) ? 0 : -UNW_EINVAL;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *value, int write, void *arg)
{
    /* UNW_X86_64_RAX … RIP are numbered as DWARF does. */
    const struct rp_libunwind *u = arg;

    (void)as;
    if (write || reg < 0 || reg >= RP_NREGS)
        return -UNW_EBADREG;
    *value = u->snapshot->regs[reg];
    return 0;
}

static int access_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *value, int write, void *arg)
{
    (void)as, (void)reg, (void)value, (void)write, (void)arg;
    return -UNW_EBADREG;
}

static bool find_table(const struct rp_image *image, uint64_t *start, uint64_t *bytes)
{
    size_t n = 0;
    GElf_Phdr ph;

    if (!image->elf || elf_getphdrnum(image->elf, &n))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (gelf_getphdr(image->elf, (int)i, &ph) && ph.p_type == PT_GNU_EH_FRAME) {
            *start = ph.p_vaddr;
            *bytes = ph.p_memsz;
            return true;
        }
    }
    return false;
}

/* .eh_frame_hdr: version, three encodings, the address of .eh_frame, the number of entries, and the table. Only the encodings that every linker
 * writes are taken. */
static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *info, int need_unwind_info, void *arg)
{
    enum { HEADER = 12, SDATA4_PCREL = 0x1b, UDATA4 = 0x03, SDATA4_DATAREL = 0x3b, ENTRY = 8 };
    struct rp_libunwind *u = arg;
    const struct rp_mapping *m;
    const struct rp_image *image = image_at(u, ip, &m);
    uint64_t bias, start, bytes;
    uint8_t header[HEADER];
    unw_dyn_info_t di = {0};
    uint32_t entries;

    if (!image || !bias_of(image, m, &bias) || !find_table(image, &start, &bytes) || bytes < HEADER || !read_image(image, start, header, sizeof header))
        return -UNW_ENOINFO;
    if (header[0] != 1 || header[1] != SDATA4_PCREL || header[2] != UDATA4 || header[3] != SDATA4_DATAREL)
        return -UNW_ENOINFO;
    memcpy(&entries, header + 8, sizeof entries);
    if (!entries || entries > (bytes - HEADER) / ENTRY)
        return -UNW_ENOINFO;
    di.format = UNW_INFO_FORMAT_REMOTE_TABLE;
    di.start_ip = m->start;
    di.end_ip = m->end;
    di.u.rti.segbase = bias + start;
    di.u.rti.table_data = bias + start + HEADER;
    di.u.rti.table_len = (unw_word_t)entries * ENTRY / sizeof(unw_word_t);
    return UNW_OBJ(dwarf_search_unwind_table)(as, ip, &di, info, need_unwind_info, arg);
}

static void put_unwind_info(unw_addr_space_t as, unw_proc_info_t *info, void *arg)
{
    (void)as, (void)info, (void)arg;
}

static int no_dyn_info(unw_addr_space_t as, unw_word_t *address, void *arg)
{
    (void)as, (void)address, (void)arg;
    return -UNW_ENOINFO;
}

static int no_resume(unw_addr_space_t as, unw_cursor_t *cursor, void *arg)
{
    (void)as, (void)cursor, (void)arg;
    return -UNW_EINVAL;
}

static int no_name(unw_addr_space_t as, unw_word_t address, char *name, size_t size, unw_word_t *offset, void *arg)
{
    (void)as, (void)address, (void)name, (void)size, (void)offset, (void)arg;
    return -UNW_ENOINFO;
}

static unw_accessors_t accessors = {
    .find_proc_info = find_proc_info,
    .put_unwind_info = put_unwind_info,
    .get_dyn_info_list_addr = no_dyn_info,
    .access_mem = access_mem,
    .access_reg = access_reg,
    .access_fpreg = access_fpreg,
    .resume = no_resume,
    .get_proc_name = no_name,
};

static enum rp_status prepare(struct rp_unwinder *unwinder, struct rp_space *space, const struct rp_snapshot *snapshot, struct rp_err *err)
{
    struct rp_libunwind *u = unwinder->libunwind;
    uint32_t layout = rp_unwind_layout(unwinder->images, space);

    if (!u) {
        u = unwinder->libunwind = rp_calloc(1, sizeof *u);
        if (!u)
            return rp_fail_nomem(err);
        u->unwinder = unwinder;
        u->as = unw_create_addr_space(&accessors, 0);
        if (!u->as)
            return rp_fail_nomem(err);
        (void)unw_set_caching_policy(u->as, UNW_CACHE_GLOBAL);
    }
    /* What libunwind remembers belongs to one picture of one process. */
    if (u->layout != layout)
        unw_flush_cache(u->as, 0, 0);
    u->layout = layout;
    u->space = space;
    u->snapshot = snapshot;
    return RP_OK;
}

static enum rp_walk_end add_frame(struct rp_libunwind *u, unw_cursor_t *cursor, bool exact, struct rp_walk *walk)
{
    struct rp_walk_frame *frame = &walk->frames[walk->n];
    unw_word_t pc = 0, sp = 0;

    if (walk->n == RP_WALK_FRAMES_MAX)
        return RP_WALK_DEPTH;
    if (unw_get_reg(cursor, UNW_REG_IP, &pc))
        return RP_WALK_BAD_ROW;
    if (!pc)
        return RP_WALK_ROOT;
    memset(frame, 0, sizeof *frame);
    if (!rp_space_resolve(u->space, u->unwinder->images, exact ? pc : pc - 1, &frame->where))
        return RP_WALK_NO_MAPPING;
    frame->where.addr += exact ? 0 : 1;
    frame->pc = pc;
    frame->exact = exact;
    walk->n++;
    if (walk->n > 1 && !unw_get_reg(cursor, UNW_REG_SP, &sp))
        walk->frames[walk->n - 2].cfa = sp;
    return RP_WALK_ENDS;
}

/* Whether the walk stands at a root by our own rule: libunwind calls everything the end that it cannot go on from. */
static enum rp_walk_end judge_end(struct rp_libunwind *u, const struct rp_walk *walk, int rc)
{
    const struct rp_walk_frame *last = walk->n ? &walk->frames[walk->n - 1] : NULL;
    const struct rp_rule *rule = last ? rp_cfi_rule(u->unwinder, last->where.image, last->where.addr - (last->exact ? 0 : 1)) : NULL;

    if (rule && rule->kind == RP_RULE_ROOT)
        return RP_WALK_ROOT;
    if (rc == -UNW_EINVAL && u->snapshot->stack_cut)
        return RP_WALK_STACK_SHORT;
    return RP_WALK_NO_ROW;
}

enum rp_status rp_unwind_libunwind(struct rp_unwinder *unwinder, struct rp_space *space, const struct rp_snapshot *snapshot, struct rp_walk *walk,
                                   struct rp_err *err)
{
    unw_cursor_t cursor;
    enum rp_walk_end end = RP_WALK_ENDS;
    enum rp_status status;
    bool exact = true;
    int rc;

    walk->n = 0;
    walk->end = RP_WALK_NO_USER;
    if (!snapshot->has_user)
        return RP_OK;
    status = prepare(unwinder, space, snapshot, err);
    if (status)
        return status;
    rc = unw_init_remote(&cursor, unwinder->libunwind->as, unwinder->libunwind);
    while (!rc && end == RP_WALK_ENDS) {
        end = add_frame(unwinder->libunwind, &cursor, exact, walk);
        if (end != RP_WALK_ENDS)
            break;
        exact = unw_is_signal_frame(&cursor) > 0;
        rc = unw_step(&cursor);
        if (rc <= 0)
            end = judge_end(unwinder->libunwind, walk, rc);
        else
            rc = 0;
    }
    walk->end = end == RP_WALK_ENDS ? RP_WALK_NO_ROW : end;
    return RP_OK;
}
