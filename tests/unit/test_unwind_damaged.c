/* SPDX-License-Identifier: MIT */
/* Field case A24: the file belongs to the target's owner, who may be hostile. A real library with extreme numbers put into its headers, its
 * .eh_frame_hdr and .eh_frame: walks over it end with a reason, bounds of functions are bounds, and sound code still unwinds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "unwind/unwind.h"

enum { FILES = 300, PCS = 24, HITS = 6, WORDS = 512 };
#define CODE_AT 0x10000000u
#define STACK_AT 0x7f0000000000u

/* libelf and libdw (0.188) lose a few hundred bytes inside themselves where a file is damaged in certain ways; once per file, so harmless. A leak checker
 * must not take it for ours. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:libelf.so\nleak:libdw.so\n";
}

/* Numbers that parsers trip over. */
static const uint64_t extremes[] = {0, 1, 7, 0xff, 0xffff, 65534, 0x7fffffff, 0x80000000, 0xffffffff, (uint64_t)1 << 40, UINT64_MAX - 7, UINT64_MAX};

static uint64_t next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* Where damage hurts: the ELF header, program headers, section headers, unwind tables. */
static size_t victim(const uint8_t *file, size_t size, uint64_t *seed)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)file;
    const Elf64_Phdr *ph = (const Elf64_Phdr *)(file + head->e_phoff);
    size_t eh = 0;

    for (unsigned i = 0; i < head->e_phnum; i++)
        if (ph[i].p_type == PT_GNU_EH_FRAME)
            eh = ph[i].p_offset;
    switch (next(seed) % 4) {
    case 0: return 16 + next(seed) % 48;
    case 1: return head->e_phoff + next(seed) % (head->e_phnum * sizeof *ph);
    case 2: return head->e_shoff + next(seed) % (head->e_shnum * sizeof(Elf64_Shdr));
    default: return eh + next(seed) % (size - eh > 8000 ? 8000 : size - eh);
    }
}

/* Copies the library with `hits` numbers overwritten. The damage is chosen on the sound file, so all of it lands somewhere that matters. */
static int damaged_file(const uint8_t *file, size_t size, unsigned hits, uint64_t seed)
{
    uint8_t *copy = malloc(size);
    int fd = memfd_create("damaged", MFD_CLOEXEC);

    assert_non_null(copy);
    memcpy(copy, file, size);
    for (unsigned i = 0; i < hits; i++) {
        size_t at = victim(file, size, &seed), width = (size_t)1 << next(&seed) % 4;
        uint64_t value = extremes[next(&seed) % (sizeof extremes / sizeof extremes[0])];

        if (at + width <= size)
            memcpy(copy + at, &value, width);
    }
    assert_int_equal(write(fd, copy, size), size);
    free(copy);
    return fd;
}

/* Walks with both engines from pcs all over the file. Returns how many walks got beyond the leaf. */
static unsigned walk_over(int fd, uint64_t code_offset, uint64_t code_bytes, uint64_t seed)
{
    struct rp_images images;
    struct rp_space space = {.pid = 9};
    struct rp_mapping m = {CODE_AT, CODE_AT + code_bytes, code_offset, 0};
    struct rp_unwinder *unwinder;
    struct rp_walk walk;
    struct rp_err err = {0};
    uint64_t stack[WORDS], start, end;
    struct rp_snapshot s = {.has_user = true, .stack = (const uint8_t *)stack, .stack_bytes = sizeof stack, .stack_cut = true};
    unsigned beyond = 0;
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    assert_int_equal(rp_unwinder_new(&images, &unwinder, &err), RP_OK);
    assert_int_equal(rp_walk_init(&walk, &err), RP_OK);
    if (rp_images_open_path(&images, path, &m.image, &err) == RP_OK) {
        assert_int_equal(rp_space_add(&space, &m, &err), RP_OK);
        for (unsigned i = 0; i < PCS; i++) {
            for (unsigned k = 0; k < WORDS; k++)
                stack[k] = k % 3 ? CODE_AT + next(&seed) % code_bytes : STACK_AT + next(&seed) % sizeof stack;
            for (unsigned r = 0; r < RP_NREGS; r++)
                s.regs[r] = STACK_AT + next(&seed) % sizeof stack;
            s.regs[RP_RSP] = STACK_AT;
            s.regs[RP_RIP] = CODE_AT + next(&seed) % code_bytes;
            assert_int_equal(rp_unwind(unwinder, &space, &s, &walk, &err), RP_OK);
            assert_true(walk.end < RP_WALK_ENDS && walk.n <= RP_WALK_FRAMES_MAX);
            beyond += walk.n > 1;
            (void)rp_unwind_libdw(unwinder, &space, &s, &walk, &err);
            if (rp_unwinder_fde_range(unwinder, m.image, code_offset + i * 64, &start, &end))
                assert_true(start <= code_offset + i * 64 && code_offset + i * 64 < end);
        }
    }
    rp_walk_release(&walk);
    rp_unwinder_free(unwinder);
    rp_space_release(&space);
    rp_images_release(&images);
    return beyond;
}

static void test_damaged(void **state)
{
    struct rp_buf file = {0};
    struct rp_err err = {0};
    const Elf64_Ehdr *head;
    const Elf64_Phdr *ph;
    uint64_t offset = 0, bytes = 0;
    unsigned sound, damaged = 0;
    Dl_info info;
    int fd;

    (void)state;
    assert_true(dladdr((void *)(uintptr_t)_cmocka_run_group_tests, &info));
    assert_int_equal(rp_read_file(info.dli_fname, (size_t)16 << 20, &file, &err), RP_OK);
    head = (const Elf64_Ehdr *)file.data;
    ph = (const Elf64_Phdr *)(file.data + head->e_phoff);
    for (unsigned i = 0; i < head->e_phnum; i++)
        if (ph[i].p_type == PT_LOAD && ph[i].p_flags & PF_X)
            offset = ph[i].p_offset, bytes = ph[i].p_filesz;
    assert_true(bytes > 4096);
    fd = damaged_file((const uint8_t *)file.data, file.length, 0, 1);
    sound = walk_over(fd, offset, bytes, 1);
    close(fd);
    assert_true(sound > PCS / 3);
    for (unsigned i = 1; i <= FILES; i++) {
        fd = damaged_file((const uint8_t *)file.data, file.length, HITS, i);
        damaged += walk_over(fd, offset, bytes, i);
        close(fd);
    }
    assert_true(damaged > 0); /* the damage is survived, not avoided by reading nothing */
    rp_buf_release(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_damaged)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
