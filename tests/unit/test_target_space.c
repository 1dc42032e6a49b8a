/* SPDX-License-Identifier: MIT */
/* The mapping table against the plainest model there is: one entry per page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/maps.h"
#include "target/space.h"

enum { PAGES = 64, PAGE = 4096, ROUNDS = 20000 };

/* What a page shows: image (0: nothing) and the offset of its first byte. */
struct page {
    uint32_t image;
    uint64_t offset;
};

static void check_against_model(struct rp_space *space, const struct page *model)
{
    for (size_t i = 1; i < space->maps.n; i++)
        assert_true(space->maps.at[i - 1].end <= space->maps.at[i].start);
    for (uint64_t p = 0; p < PAGES; p++) {
        const struct rp_mapping *m = rp_space_find(space, p * PAGE + 17);

        if (!model[p].image) {
            assert_null(m);
            continue;
        }
        assert_non_null(m);
        assert_int_equal(m->image, model[p].image);
        assert_int_equal(p * PAGE - m->start + m->offset, model[p].offset);
    }
}

static void test_random_adds(void **state)
{
    struct rp_space space = {0};
    struct page model[PAGES] = {{0}};
    struct rp_err err = {0};
    unsigned seed = 7;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t first = (uint64_t)rand_r(&seed) % PAGES, n = 1 + (uint64_t)rand_r(&seed) % 6;
        struct rp_mapping m;

        n = first + n > PAGES ? PAGES - first : n;
        m = (struct rp_mapping){first * PAGE, (first + n) * PAGE, 0, 1 + (uint32_t)rand_r(&seed) % 3};
        m.offset = rand_r(&seed) % 2 ? m.start : (uint64_t)(rand_r(&seed) % 4) * PAGE;
        assert_int_equal(rp_space_add(&space, &m, &err), RP_OK);
        for (uint64_t p = first; p < first + n; p++)
            model[p] = (struct page){m.image, m.offset + (p - first) * PAGE};
        if (round % 50 == 0 || round < 200)
            check_against_model(&space, model);
    }
    rp_space_release(&space);
}

static void test_same_region_again_does_not_grow(void **state)
{
    struct rp_space space = {0};
    struct rp_err err = {0};

    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        struct rp_mapping m = {0x10000 + i % 8 * PAGE, 0x10000 + (i % 8 + 1) * PAGE, 0x10000 + i % 8 * PAGE, 5};

        assert_int_equal(rp_space_add(&space, &m, &err), RP_OK);
    }
    assert_int_equal(space.maps.n, 1);
    rp_space_release(&space);
}

static void test_empty_mapping_is_nothing(void **state)
{
    struct rp_space space = {0};
    struct rp_err err = {0};

    (void)state;
    assert_int_equal(rp_space_add(&space, &(struct rp_mapping){8, 8, 0, 1}, &err), RP_OK);
    assert_int_equal(space.maps.n, 0);
    assert_null(rp_space_find(&space, 8));
    rp_space_release(&space);
}

static void test_lines(void **state)
{
    static const char text[] = "55d0-55d8 r-xp 00002000 fe:01 247134                     /usr/bin/a b (deleted)\n"
                               "nonsense\n"
                               "7ff0-7ff8 rw-p 00000000 00:00 0 \n"
                               "7ffc-7ffa r-xp 00000000 00:00 0 \n"
                               "8000-9000 --xp 00000000 00:00 0                          [vdso]";
    struct rp_cursor c = rp_cursor_str(text);
    struct rp_maps_line line;

    (void)state;
    assert_true(rp_maps_next(&c, &line));
    assert_int_equal(line.start, 0x55d0);
    assert_int_equal(line.end, 0x55d8);
    assert_int_equal(line.offset, 0x2000);
    assert_int_equal(line.dev, makedev(0xfe, 1));
    assert_int_equal(line.ino, 247134);
    assert_true(line.exec && line.read);
    assert_int_equal(line.path_length, strlen("/usr/bin/a b (deleted)"));
    assert_memory_equal(line.path, "/usr/bin/a b (deleted)", line.path_length);
    assert_true(rp_maps_next(&c, &line));
    assert_int_equal(line.start, 0x7ff0);
    assert_int_equal(line.path_length, 0);
    assert_false(line.exec);
    assert_true(rp_maps_next(&c, &line));
    assert_memory_equal(line.path, "[vdso]", line.path_length);
    assert_true(line.exec && !line.read);
    assert_false(rp_maps_next(&c, &line));
}

/* Our own process: a function of ours, one of libc, the vDSO, and a page that we map ourselves. */
static void test_of_this_process(void **state)
{
    struct rp_images images;
    struct rp_space space = {.pid = (uint32_t)getpid()};
    struct rp_address where;
    struct rp_err err = {0};
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(page, MAP_FAILED);
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    assert_int_equal(rp_space_read(&space, &images, &err), RP_OK);
    assert_true(rp_space_resolve(&space, &images, (uint64_t)(uintptr_t)test_of_this_process, &where));
    assert_int_equal(images.at.at[where.image]->kind, RP_IMAGE_ELF);
    assert_non_null(strstr(images.at.at[where.image]->path, "test_target_space"));
    assert_false(images.at.at[where.image]->deleted);
    assert_true(rp_space_resolve(&space, &images, (uint64_t)(uintptr_t)page + 8, &where));
    assert_int_equal(images.at.at[where.image]->kind, RP_IMAGE_JIT);
    assert_int_equal(where.addr, (uint64_t)(uintptr_t)page + 8);
    assert_false(rp_space_resolve(&space, &images, 8, &where));
    munmap(page, PAGE);
    assert_int_equal(rp_space_read(&space, &images, &err), RP_OK);
    assert_false(rp_space_resolve(&space, &images, (uint64_t)(uintptr_t)page + 8, &where));
    rp_space_release(&space);
    rp_images_release(&images);
}

/* Each allocation fails once. */
static void test_no_memory(void **state)
{
    enum rp_status status = RP_OK;
    uint64_t n, calls = 1, refused = 0;

    (void)state;
    for (n = 1; n <= calls; n++) {
        struct rp_images images = {0};
        struct rp_space space = {.pid = (uint32_t)getpid()};
        struct rp_err err = {0};

        rp_alloc_fail_at(n);
        status = rp_images_init(&images, &err);
        if (!status)
            status = rp_space_read(&space, &images, &err);
        calls = rp_alloc_fail_at(0);
        refused += status == RP_NOMEM;
        if (status == RP_NOMEM) /* it ended early: there may be more */
            calls = n + 1;
        assert_true(status == RP_OK || status == RP_NOMEM);
        rp_space_release(&space);
        rp_images_release(&images);
    }
    assert_int_equal(status, RP_OK);
    assert_true(refused > 10);
}

static void test_process_is_gone(void **state)
{
    struct rp_images images;
    struct rp_space space = {.pid = 0x7ffffff0};
    struct rp_err err = {0};

    (void)state;
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    assert_int_equal(rp_space_read(&space, &images, &err), RP_NOPROC);
    rp_images_release(&images);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_adds),
        cmocka_unit_test(test_same_region_again_does_not_grow),
        cmocka_unit_test(test_empty_mapping_is_nothing),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_of_this_process),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_process_is_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
