/* SPDX-License-Identifier: MIT */
/* What an image is: ELF, whole or damaged, the vdso, JIT code, or no file at all. Each is told for what it is, and nothing read from it is believed
 * beyond the end of the file. Which file is mapped is the matter of test_target_image_replaced.c. */
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/io.h"
#include "support/image_look.h"
#include "support/temp_dir.h"
#include "target/image.h"
#include "target/image_private.h"
#include "target/space.h"

static void test_vdso(void **state)
{
    struct rp_images images;
    struct rp_space space = {.pid = (uint32_t)getpid()};
    struct rp_err err = {0};
    struct rp_image *image;
    bool found = false;

    (void)state;
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    image = image_at(&images, &space, "[vdso]");
    assert_non_null(image);
    assert_int_equal(image->kind, RP_IMAGE_VDSO);
    assert_non_null(image->elf);
    assert_true(image->build_id_bytes > 0);
    assert_true(count_dynsym(image->elf, "__vdso_clock_gettime", &found) > 1);
    assert_true(found);
    rp_space_release(&space);
    rp_images_release(&images);
}

/* The memory of a process may not be had once, and be had of the next one. */
static void test_vdso_after_one_without_bytes(void **state)
{
    struct rp_images images;
    struct rp_space space = {.pid = (uint32_t)getpid()};
    struct rp_err err = {0};
    struct rp_image_key key = {.pid = (uint32_t)getpid(), .path = "[vdso]", .start = getauxval(AT_SYSINFO_EHDR)};
    uint32_t without = 0, with = 0;

    (void)state;
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    assert_non_null(image_at(&images, &space, "[vdso]"));
    key.end = rp_space_find(&space, key.start)->end;
    rp_space_release(&space);
    rp_images_release(&images);
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    rp_alloc_fail_at(1);
    assert_int_equal(rp_images_get(&images, &key, &without, &err), RP_OK);
    rp_alloc_fail_at(0);
    assert_null(images.at.at[without]->elf);
    assert_int_equal(rp_images_get(&images, &key, &with, &err), RP_OK);
    assert_non_null(images.at.at[with]->elf);
    rp_images_release(&images);
}

/* Case A01: two segments, one page of the file; and the sibling bug, a data segment whose memory (not file) would cover the offset. */
static void test_offsets_go_through_segments(void **state)
{
    struct rp_segment segments[] = {{0, 0x5c0, 0, 0x5c0, false}, {0x5c0, 0x100, 0x15c0, 0x100, true}, {0x6c0, 0x40, 0x26c0, 0x5000, false}, {0x700, 0x50, 0x9700, 0x50, true}};
    struct rp_image image = {.kind = RP_IMAGE_ELF, .segments = segments, .nsegments = 4};
    uint64_t addr = 0;

    (void)state;
    assert_true(rp_image_offset_to_addr(&image, 0x5c0, &addr));
    assert_int_equal(addr, 0x15c0);
    assert_true(rp_image_offset_to_addr(&image, 0x5bf, &addr));
    assert_int_equal(addr, 0x5bf);
    assert_true(rp_image_offset_to_addr(&image, 0x710, &addr));
    assert_int_equal(addr, 0x9710);
    assert_false(rp_image_offset_to_addr(&image, 0x750, &addr));
    image = (struct rp_image){.kind = RP_IMAGE_OTHER};
    assert_true(rp_image_offset_to_addr(&image, 0x1234, &addr));
    assert_int_equal(addr, 0x1234);
}

/* Case A01 in memory: both segments lie in the first page of the file, so both mappings show the ELF header, and only the lower one is its place. */
static void test_header_seen_twice(void **state)
{
    Elf64_Ehdr header = {.e_machine = EM_X86_64, .e_phoff = sizeof header, .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2};
    Elf64_Phdr phdrs[2] = {{.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = 0x5c0, .p_memsz = 0x5c0},
                           {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = 0x5c0, .p_vaddr = 0x15c0, .p_filesz = 0x100, .p_memsz = 0x100}};
    struct rp_image_key key = {.pid = (uint32_t)getpid()};
    struct rp_memory_elf found;
    uint8_t page[4096] = {0};
    char path[96];
    uint8_t *base;
    int fd;

    (void)state;
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    memcpy(page, &header, sizeof header);
    memcpy(page + sizeof header, phdrs, sizeof phdrs);
    snprintf(path, sizeof path, "%s/shared-page", temp_dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
    assert_true(rp_write_full(fd, page, sizeof page));
    base = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_equal(mmap(base, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0), base);
    assert_ptr_equal(mmap(base + 4096, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0), base + 4096);
    close(fd);
    key.start = (uint64_t)(uintptr_t)base + 4096;
    key.end = key.start + 4096;
    key.path = path;
    assert_true(rp_memory_elf_find(&found, &key));
    assert_int_equal(found.bias, (uint64_t)(uintptr_t)base);
    rp_memory_elf_release(&found);
    munmap(base, 8192);
}

/* Case A20: mapped code in a file that is not ELF; and a memfd, which holds JIT code unless it holds ELF. */
static void test_not_elf(void **state)
{
    struct rp_images images;
    struct rp_space space = {.pid = (uint32_t)getpid()};
    struct rp_err err = {0};
    struct rp_address where;
    struct rp_buf program = {0};
    uint8_t page[4096] = {'M', 'Z'};
    char path[96];
    void *dll, *jit, *elf;
    int fd;

    (void)state;
    snprintf(path, sizeof path, "%s/managed.dll", temp_dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
    assert_true(rp_write_full(fd, page, sizeof page));
    dll = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    close(fd);
    fd = memfd_create("doublemapper", MFD_CLOEXEC);
    assert_true(rp_write_full(fd, page, sizeof page));
    jit = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    close(fd);
    fd = memfd_create("library", MFD_CLOEXEC);
    assert_int_equal(rp_read_file("/usr/bin/sleep", SIZE_MAX / 2, &program, &err), RP_OK);
    assert_true(rp_write_full(fd, rp_buf_text(&program), program.length));
    rp_buf_release(&program);
    elf = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    close(fd);
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    assert_int_equal(rp_space_read(&space, &images, &err), RP_OK);
    assert_true(rp_space_resolve(&space, &images, (uint64_t)(uintptr_t)dll + 0x123, &where));
    assert_int_equal(images.at.at[where.image]->kind, RP_IMAGE_OTHER);
    assert_string_equal(images.at.at[where.image]->path, path);
    assert_int_equal(where.addr, 0x123);
    assert_true(rp_space_resolve(&space, &images, (uint64_t)(uintptr_t)jit + 0x123, &where));
    assert_int_equal(images.at.at[where.image]->kind, RP_IMAGE_JIT);
    assert_int_equal(where.addr, (uint64_t)(uintptr_t)jit + 0x123);
    assert_true(rp_space_resolve(&space, &images, (uint64_t)(uintptr_t)elf + 0x123, &where));
    if (geteuid() == 0) /* only map_files leads to a memfd */
        assert_int_equal(images.at.at[where.image]->kind, RP_IMAGE_ELF);
    rp_space_release(&space);
    rp_images_release(&images);
    munmap(dll, 4096);
    munmap(jit, 4096);
    munmap(elf, 4096);
}

/* Case A24: damage at known places, then at every byte of the headers. Whatever comes of it lies within the file. */
static void test_damaged_elf(void **state)
{
    struct rp_buf good = {0};
    struct rp_err err = {0};
    char path[96];

    (void)state;
    snprintf(path, sizeof path, "%s/damaged", temp_dir);
    assert_int_equal(rp_read_file("/usr/bin/sleep", SIZE_MAX / 2, &good, &err), RP_OK);
    for (size_t at = 4; at < 64 + 13 * 56; at++) {
        struct rp_images images;
        uint64_t addr;
        uint32_t id;
        int fd;

        good.data[at] = (char)~good.data[at];
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
        assert_true(rp_write_full(fd, good.data, good.length));
        close(fd);
        good.data[at] = (char)~good.data[at];
        assert_int_equal(rp_images_init(&images, &err), RP_OK);
        assert_int_equal(rp_images_open_path(&images, path, &id, &err), RP_OK);
        for (uint32_t i = 0; i < images.at.at[id]->nsegments; i++) {
            const struct rp_segment *s = &images.at.at[id]->segments[i];

            assert_true(s->offset < good.length && s->filesz <= good.length - s->offset);
            assert_true(s->vaddr + s->filesz >= s->vaddr);
        }
        assert_true(images.at.at[id]->nsegments || images.at.at[id]->problem);
        assert_true(images.at.at[id]->build_id_bytes <= sizeof images.at.at[id]->build_id);
        (void)rp_image_offset_to_addr(images.at.at[id], 0x3000, &addr);
        rp_images_release(&images);
    }
    rp_buf_release(&good);
}

static void test_paths_that_are_no_files(void **state)
{
    struct rp_images images;
    struct rp_err err = {0};
    char path[96];
    uint32_t id;

    (void)state;
    snprintf(path, sizeof path, "%s/fifo", temp_dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    assert_int_equal(rp_images_open_path(&images, path, &id, &err), RP_IO); /* and does not wait for a writer */
    assert_int_equal(rp_images_open_path(&images, "/dev/null", &id, &err), RP_IO);
    assert_int_equal(rp_images_open_path(&images, temp_dir, &id, &err), RP_IO);
    assert_int_equal(rp_images_open_path(&images, "/nowhere/at/all", &id, &err), RP_IO);
    assert_non_null(strstr(err.text, "/nowhere/at/all"));
    rp_images_release(&images);
}

static void test_one_file_is_one_image(void **state)
{
    struct rp_images images;
    struct rp_space one = {.pid = (uint32_t)getpid()}, two = {.pid = (uint32_t)getpid()};
    struct rp_err err = {0};
    size_t n;

    (void)state;
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    assert_int_equal(images.at.at[RP_IMAGE_ID_KERNEL]->kind, RP_IMAGE_KERNEL);
    assert_int_equal(images.at.at[RP_IMAGE_ID_MARK]->kind, RP_IMAGE_MARK);
    assert_int_equal(rp_space_read(&one, &images, &err), RP_OK);
    n = images.at.n;
    assert_int_equal(rp_space_read(&two, &images, &err), RP_OK);
    assert_int_equal(images.at.n, n);
    rp_space_release(&one);
    rp_space_release(&two);
    rp_images_release(&images);
}

static void test_build_id_in_notes(void **state)
{
    static const uint8_t two[] = {4, 0, 0, 0, 2, 0, 0, 0, 9, 0, 0, 0, 'G', 'N', 'U', 0, 1, 1, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 7, 8, 9, 0};
    uint8_t id[RP_BUILD_ID_MAX], huge[16] = {4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 3, 0, 0, 0, 'G', 'N', 'U', 0};

    (void)state;
    assert_int_equal(rp_notes_build_id(two, sizeof two, 4, id), 3);
    assert_int_equal(id[0] * 10000 + id[1] * 100 + id[2], 70809);
    for (size_t size = 0; size + 4 < sizeof two; size++)
        assert_int_equal(rp_notes_build_id(two, size, 4, id), 0);
    assert_int_equal(rp_notes_build_id(huge, sizeof huge, 4, id), 0);
    huge[0] = huge[1] = huge[2] = huge[3] = 0xff;
    assert_int_equal(rp_notes_build_id(huge, sizeof huge, 4, id), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vdso),
        cmocka_unit_test(test_vdso_after_one_without_bytes),
        cmocka_unit_test(test_offsets_go_through_segments),
        cmocka_unit_test_setup_teardown(test_header_seen_twice, temp_dir_make, temp_dir_remove),
        cmocka_unit_test_setup_teardown(test_not_elf, temp_dir_make, temp_dir_remove),
        cmocka_unit_test_setup_teardown(test_damaged_elf, temp_dir_make, temp_dir_remove),
        cmocka_unit_test_setup_teardown(test_paths_that_are_no_files, temp_dir_make, temp_dir_remove),
        cmocka_unit_test(test_one_file_is_one_image),
        cmocka_unit_test(test_build_id_in_notes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
