/* SPDX-License-Identifier: MIT */
/* Random registers, random stacks, hostile rows: a walk ends with a reason, never with a crash.
 *
 *     byte 0      bit 0: the rest begins with an .eh_frame of `bytes 1-2` bytes; else a sound one is used
 *     then        17 registers, then the stack, 8 bytes each
 *
 * Words whose top byte is 0xc0 become addresses in the code, 0x5a addresses in the stack: else a fuzzer would never hit either. */
#include <stdlib.h>
#include <string.h>

#include "support/unwind_elf.h"
#include "unwind/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libelf and libdw (0.188) lose a few hundred bytes inside themselves where a file is damaged in certain ways; once per file, so harmless. A leak checker
 * must not take it for ours. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:libelf.so\nleak:libdw.so\n";
}

enum { STACK_AT = 0x7ff00000, STACK_WORDS = 4096, CODE_AT = 0x600000 };

static uint64_t word(const uint8_t *p)
{
    uint64_t w;

    memcpy(&w, p, sizeof w);
    if (w >> 56 == 0xc0)
        return CODE_AT + w % UNWIND_ELF_CODE_BYTES;
    if (w >> 56 == 0x5a)
        return STACK_AT + w % (STACK_WORDS * 8);
    return w;
}

/* Both engines over one snapshot. */
static void walk(struct rp_images *images, struct rp_space *space, const struct rp_snapshot *snapshot, uint32_t id)
{
    struct rp_unwinder *unwinder = NULL;
    struct rp_walk w = {0};
    struct rp_err err = {0};
    uint64_t start, end;

    if (!rp_unwinder_new(images, &unwinder, &err) && !rp_walk_init(&w, &err)) {
        if (rp_unwind(unwinder, space, snapshot, &w, &err) || w.n > RP_WALK_FRAMES_MAX || w.end >= RP_WALK_ENDS)
            abort();
        for (uint32_t i = 0; i < w.n; i++)
            if (w.frames[i].where.image >= images->at.n)
                abort();
        if (rp_unwinder_fde_range(unwinder, id, UNWIND_ELF_CODE + 8, &start, &end) &&
            (start > UNWIND_ELF_CODE + 8 || end <= UNWIND_ELF_CODE + 8))
            abort();
        (void)rp_unwind_libdw(unwinder, space, snapshot, &w, &err);
    }
    rp_walk_release(&w);
    rp_unwinder_free(unwinder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t ops[] = {0x41, 0x0e, 16, 0x86, 2}; /* one byte in: CFA rsp+16, rbp at CFA-16 */
    uint8_t sound[256 + sizeof ops];
    static uint64_t stack[STACK_WORDS];
    struct rp_images images = {0};
    struct rp_space space = {.pid = 1};
    struct rp_snapshot snapshot = {.has_user = true, .stack = (const uint8_t *)stack, .stack_cut = true};
    struct rp_err err = {0};
    const uint8_t *frame = sound;
    size_t nframe, words = 0;
    uint32_t id;

    if (size < 3)
        return 0;
    nframe = (size_t)(data[1] | data[2] << 8);
    if (data[0] & 1 && nframe <= size - 3 && nframe <= 60000)
        frame = data + 3, data += 3 + nframe, size -= 3 + nframe;
    else
        nframe = unwind_elf_frame(sound, ops, sizeof ops, false), data += 3, size -= 3;
    for (; size >= 8 && words < RP_NREGS + STACK_WORDS; data += 8, size -= 8, words++) {
        if (words < RP_NREGS)
            snapshot.regs[words] = word(data);
        else
            stack[words - RP_NREGS] = word(data);
    }
    snapshot.stack_bytes = words > RP_NREGS ? (uint32_t)(words - RP_NREGS) * 8 : 0;
    if (!rp_images_init(&images, &err) && unwind_elf_open(&images, frame, nframe, NULL, 0, &id) && unwind_elf_map(&space, id, CODE_AT))
        walk(&images, &space, &snapshot, id);
    rp_space_release(&space);
    rp_images_release(&images);
    return 0;
}
