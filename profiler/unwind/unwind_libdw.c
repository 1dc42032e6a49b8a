/* SPDX-License-Identifier: MIT */
/* The second engine: libdwfl unwinds the same snapshot with its own rules, its own evaluation and its own idea of frame pointers. It shares
 * nothing with walk.c but the mapping table, so where both reach the root they must agree.
 *
 * libdwfl wants a process: modules at addresses, threads, a memory reader. One such picture is kept as long as the same files lie at the same places.
 *
 * The trap: libdwfl ends its handles itself, so it gets descriptors and ELF handles of its own. */
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "unwind/cfi.h"

struct rp_dwfl {
    Dwfl *dwfl;
    Dwfl_Callbacks callbacks;
    uint32_t layout;
    const struct rp_snapshot *snapshot; /* of the walk at hand */
};

void rp_dwfl_free(struct rp_dwfl *d)
{
    if (!d)
        return;
    if (d->dwfl)
        dwfl_end(d->dwfl);
    rp_free(d);
}

/* What finding a file's ELF handle needs, handed through libdwfl's user data. */
static int find_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, char **file, Elf **elf)
{
    const struct rp_image *image = *userdata;

    (void)module, (void)name, (void)base, (void)file;
    if (image->memory) {
        *elf = elf_memory(image->memory, image->memory_bytes);
        return -1;
    }
    return image->fd >= 0 ? dup(image->fd) : -1;
}

static int no_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, const char *file, const char *link,
                        GElf_Word crc, char **debug)
{
    (void)module, (void)userdata, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)debug;
    return -1;
}

/* The address range of a whole image whose mapping `m` is known. False: not a file that has one. */
static bool image_range(const struct rp_image *image, const struct rp_mapping *m, uint64_t *start, uint64_t *end)
{
    uint64_t low = UINT64_MAX, high = 0, addr;

    if ((image->kind != RP_IMAGE_ELF && image->kind != RP_IMAGE_VDSO) || !image->elf ||
        !rp_image_offset_to_addr(image, m->offset, &addr))
        return false;
    for (uint32_t i = 0; i < image->nsegments; i++) {
        const struct rp_segment *s = &image->segments[i];

        low = s->vaddr < low ? s->vaddr : low;
        high = s->vaddr + s->memsz > high ? s->vaddr + s->memsz : high;
    }
    *start = (m->start - addr + low) & ~(uint64_t)4095;
    *end = (m->start - addr + high + 4095) & ~(uint64_t)4095;
    return low < high && *start < *end;
}

static bool report_modules(struct rp_dwfl *d, const struct rp_images *images, const struct rp_space *space)
{
    uint64_t reported = 0;

    for (size_t i = 0; i < space->maps.n; i++) {
        const struct rp_mapping *m = &space->maps.at[i];
        struct rp_image *image = images->at.at[m->image];
        uint64_t start, end;
        char name[32];
        void **userdata;
        Dwfl_Module *module;

        if (!image_range(image, m, &start, &end) || start < reported)
            continue;
        snprintf(name, sizeof name, "image-%u-%zu", image->id, i);
        module = dwfl_report_module(d->dwfl, name, start, end);
        if (!module)
            return false;
        dwfl_module_info(module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
        *userdata = image;
        reported = end;
    }
    return dwfl_report_end(d->dwfl, NULL, NULL) == 0;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
    (void)dwfl;
    if (*thread)
        return 0;
    *thread = arg;
    return 1;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread)
{
    (void)dwfl, (void)tid;
    *thread = arg;
    return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *result, void *arg)
{
    const struct rp_snapshot *snapshot = ((struct rp_dwfl *)arg)->snapshot;
    uint64_t into = addr - snapshot->regs[RP_RSP];

    (void)dwfl;
    if (addr < snapshot->regs[RP_RSP] || into >= snapshot->stack_bytes || snapshot->stack_bytes - into < sizeof *result)
        return false;
    memcpy(result, snapshot->stack + into, sizeof *result);
    return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
    const struct rp_snapshot *snapshot = ((struct rp_dwfl *)arg)->snapshot;
    Dwarf_Word regs[RP_NREGS];

    for (unsigned i = 0; i < RP_NREGS; i++)
        regs[i] = snapshot->regs[i];
    return dwfl_thread_state_registers(thread, 0, RP_NREGS, regs);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
    .next_thread = next_thread,
    .get_thread = get_thread,
    .memory_read = read_memory,
    .set_initial_registers = set_registers,
};

uint32_t rp_unwind_layout(const struct rp_images *images, const struct rp_space *space)
{
    uint32_t hash = rp_hash_u64((uint64_t)space->pid << 32 | space->generation);

    for (size_t i = 0; i < space->maps.n; i++) {
        const struct rp_mapping *m = &space->maps.at[i];

        if (images->at.at[m->image]->kind != RP_IMAGE_JIT)
            hash = rp_hash_mix(rp_hash_mix(rp_hash_mix(hash, m->start), m->end), m->offset ^ (uint64_t)m->image << 48);
    }
    return hash;
}

static enum rp_status picture(struct rp_unwinder *unwinder, const struct rp_space *space, struct rp_err *err)
{
    struct rp_dwfl *d = unwinder->dwfl;
    uint32_t layout = rp_unwind_layout(unwinder->images, space);

    if (d && d->layout == layout)
        return RP_OK;
    rp_dwfl_free(d);
    unwinder->dwfl = NULL;
    d = rp_calloc(1, sizeof *d);
    if (!d)
        return rp_fail_nomem(err);
    d->layout = layout;
    d->callbacks.find_elf = find_elf;
    d->callbacks.find_debuginfo = no_debuginfo;
    d->dwfl = dwfl_begin(&d->callbacks);
    if (!d->dwfl || !report_modules(d, unwinder->images, space) || !dwfl_attach_state(d->dwfl, NULL, 1, &thread_callbacks, d)) {
        rp_dwfl_free(d);
        return rp_fail(err, RP_FAILED, "libdw cannot build its picture of process %u: %s", space->pid, dwfl_errmsg(-1));
    }
    unwinder->dwfl = d;
    return RP_OK;
}

/* libdwfl ends without an error also where a register that it needs could not be read. The root is where the row has no return address. */
static bool row_is_root(Dwfl *dwfl, uint64_t pc)
{
    Dwfl_Module *module = dwfl_addrmodule(dwfl, pc);
    Dwarf_Addr bias;
    Dwarf_CFI *cfi = module ? dwfl_module_eh_cfi(module, &bias) : NULL;
    Dwarf_Frame *row = NULL;
    Dwarf_Op mem[3], *ops = NULL;
    size_t nops = 1;
    bool root;

    if (!cfi || dwarf_cfi_addrframe(cfi, pc - bias, &row))
        return false;
    root = !dwarf_frame_register(row, RP_RIP, mem, &ops, &nops) && nops == 0 && ops == mem;
    free(row);
    return root;
}

struct collect {
    struct rp_unwinder *unwinder;
    struct rp_space *space;
    struct rp_walk *walk;
    enum rp_walk_end end;
};

static int collect_frame(Dwfl_Frame *state, void *arg)
{
    struct collect *c = arg;
    struct rp_walk_frame *frame;
    Dwarf_Addr pc;
    bool exact;

    if (!dwfl_frame_pc(state, &pc, &exact)) {
        c->end = RP_WALK_BAD_ROW;
        return DWARF_CB_ABORT;
    }
    if (c->walk->n == RP_WALK_FRAMES_MAX) {
        c->end = RP_WALK_DEPTH;
        return DWARF_CB_ABORT;
    }
    frame = &c->walk->frames[c->walk->n];
    memset(frame, 0, sizeof *frame);
    frame->pc = pc;
    frame->exact = exact;
    if (!rp_space_resolve(c->space, c->unwinder->images, exact ? pc : pc - 1, &frame->where)) {
        c->end = RP_WALK_NO_MAPPING;
        return DWARF_CB_ABORT;
    }
    frame->where.addr += exact ? 0 : 1;
    c->walk->n++;
    return DWARF_CB_OK;
}

enum rp_status rp_unwind_libdw(struct rp_unwinder *unwinder, struct rp_space *space, const struct rp_snapshot *snapshot,
                               struct rp_walk *walk, struct rp_err *err)
{
    struct collect c = {unwinder, space, walk, RP_WALK_ENDS};
    enum rp_status st;
    int rc;

    walk->n = 0;
    walk->end = RP_WALK_NO_USER;
    if (!snapshot->has_user)
        return RP_OK;
    st = picture(unwinder, space, err);
    if (st)
        return st;
    unwinder->dwfl->snapshot = snapshot;
    rc = dwfl_getthread_frames(unwinder->dwfl->dwfl, 1, collect_frame, &c);
    if (c.end == RP_WALK_ENDS)
        c.end = rc == 0 && walk->n && row_is_root(unwinder->dwfl->dwfl, walk->frames[walk->n - 1].pc - 1) ? RP_WALK_ROOT : RP_WALK_NO_ROW;
    walk->end = c.end;
    unwinder->dwfl->snapshot = NULL;
    return RP_OK;
}
