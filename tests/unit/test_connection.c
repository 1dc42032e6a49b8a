/* SPDX-License-Identifier: MIT */
/* Whose connection a mutex is: things laid out in our own memory as SQLite lays them out, found by what a waiting thread's registers and stack hold. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/alloc.h"
#include "fold/connection.h"
#include "symbolize/data_symbol.h"
#include "target/process.h"

enum { STACK = 600 };

/* A connection, its file, a statement of it, and a binding's objects. */
static struct world {
    char path[64], journal[80];
    uint64_t mutex[5];
    uint64_t db[100], adb[4], btree[4], shared[4], pager[64];
    uint64_t statement[40], object[16], job[16];
    uint64_t stack[STACK];
    struct rp_walk_frame frame;
} w;

static uint64_t address(const void *of)
{
    return (uint64_t)(uintptr_t)of;
}

static int set_up(void **state)
{
    (void)state;
    memset(&w, 0, sizeof w);
    snprintf(w.path, sizeof w.path, "/srv/app/rooms.db");
    snprintf(w.journal, sizeof w.journal, "%s-journal", w.path);
    w.db[3] = address(w.mutex);
    w.db[4] = address(w.adb);
    w.adb[1] = address(w.btree);
    w.btree[0] = address(w.db);
    w.btree[1] = address(w.shared);
    w.shared[0] = address(w.pager);
    w.pager[27] = address(w.path);
    w.pager[28] = address(w.journal);
    w.statement[0] = address(w.db);
    return 0;
}

static void expect(const char *want)
{
    struct rp_snapshot snapshot = {.has_user = true, .stack = (const uint8_t *)w.stack, .stack_bytes = sizeof w.stack};
    struct rp_walk walk = {.frames = &w.frame, .n = 1};
    struct rp_buf name = {0};
    struct rp_err err = {0};

    snapshot.regs[RP_RSP] = 0x7ffc00000000;
    assert_int_equal(rp_connection_find((uint32_t)getpid(), &walk, &snapshot, address(w.mutex), &name, &err), RP_OK);
    assert_string_equal(rp_buf_text(&name), want);
    rp_buf_release(&name);
}

static void test_a_register_or_the_stack_holds_it(void **state)
{
    char text[64];

    (void)state;
    expect("");
    w.stack[300] = address(w.db);
    expect(w.path);
    w.stack[300] = 0;
    w.frame.saved[RP_SAVED_R12] = address(w.db);
    expect(""); /* not known to be that register's value */
    w.frame.valid = 1 << RP_SAVED_R12;
    expect(w.path);
    w.pager[28] = 0;
    snprintf(text, sizeof text, "connection at 0x%llx", (unsigned long long)address(w.db));
    expect(text);
    w.adb[1] = 0; /* nothing is open */
    expect(text);
}

/* Who asks a statement for its connection's mutex before it calls SQLite needs the connection no more. */
static void test_a_statement_or_a_bindings_object_leads_to_it(void **state)
{
    (void)state;
    w.stack[11] = address(w.statement);
    expect(w.path);
    w.stack[11] = address(w.object);
    expect("");
    w.object[5] = address(w.statement);
    expect(w.path);
    w.object[5] = address(w.db);
    expect(w.path);
    w.object[5] = 0;
    w.object[15] = address(w.statement);
    expect(w.path);
    w.stack[11] = address(w.job);
    w.job[2] = address(w.object);
    expect(w.path);
}

static void test_what_only_looks_like_one_is_none(void **state)
{
    (void)state;
    w.stack[3] = address(w.db);
    w.btree[0] = address(w.statement);
    expect("");
    set_up(NULL);
    w.stack[3] = address(w.db) + 4;
    expect("");
    set_up(NULL);
    w.stack[3] = address(w.db);
    w.db[3]++;
    expect("");
}

/* Addresses that lead nowhere, before the one that does. */
static void test_what_cannot_be_read_is_passed_over(void **state)
{
    enum { PAGE = 4096, HOLES = 60 };
    uint8_t *hole = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_true(hole != MAP_FAILED);
    for (size_t i = 0; i < HOLES; i++)
        w.stack[i] = address(hole + i * 8);
    w.stack[HOLES] = address(w.object);
    w.object[0] = address(hole);
    w.object[1] = address(w.statement);
    expect(w.path);
    munmap(hole, PAGE);
}

static void test_reading_each(void **state)
{
    enum { N = 3000, PAGE = 4096 };
    static uint64_t words[N], addresses[N], to[N];
    static bool got[N];
    uint8_t *hole = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_true(hole != MAP_FAILED);
    for (size_t i = 0; i < N; i++) {
        words[i] = i * 1000003;
        addresses[i] = i % 100 == 7 ? address(hole) : address(&words[N - 1 - i]);
    }
    rp_process_read_each((uint32_t)getpid(), addresses, N, sizeof *to, to, got);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(got[i], i % 100 != 7);
        assert_true(!got[i] || to[i] == (N - 1 - i) * 1000003);
    }
    for (size_t i = 0; i < N; i++) /* it does not ask for ever */
        addresses[i] = i < 1000 ? address(hole) : address(words);
    rp_process_read_each((uint32_t)getpid(), addresses, N, sizeof *to, to, got);
    assert_false(got[N - 1]);
    rp_process_read_each((uint32_t)getpid(), addresses, 0, sizeof *to, to, got);
    munmap(hole, PAGE);
}

static bool file_holds(void *function, const char *text)
{
    struct rp_images images;
    struct rp_err err = {0};
    Dl_info info;
    uint32_t id;
    bool holds;

    assert_int_not_equal(dladdr(function, &info), 0);
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    assert_int_equal(rp_images_open_path(&images, info.dli_fname, &id, &err), RP_OK);
    holds = rp_data_holds(images.at.at[id], text);
    rp_images_release(&images);
    return holds;
}

static void test_which_file_has_sqlite_in_it(void **state)
{
    (void)state;
    assert_true(file_holds((void *)(uintptr_t)sqlite3_libversion, "sqlite_master"));
    assert_false(file_holds((void *)(uintptr_t)qsort, "sqlite_master"));
}

static void test_want_of_memory_is_told(void **state)
{
    struct rp_snapshot snapshot = {.has_user = true, .stack = (const uint8_t *)w.stack, .stack_bytes = sizeof w.stack};
    struct rp_walk walk = {.frames = &w.frame, .n = 1};
    enum rp_status status = RP_NOMEM;
    uint64_t n;

    (void)state;
    w.stack[5] = address(w.object);
    w.object[5] = address(w.statement);
    for (n = 1; status == RP_NOMEM && n < 100; n++) {
        struct rp_buf name = {0};
        struct rp_err err;

        rp_alloc_fail_at(n);
        status = rp_connection_find((uint32_t)getpid(), &walk, &snapshot, address(w.mutex), &name, &err);
        rp_alloc_fail_at(0);
        rp_buf_release(&name);
    }
    assert_int_equal(status, RP_OK);
    assert_true(n > 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_register_or_the_stack_holds_it, set_up),
        cmocka_unit_test_setup(test_a_statement_or_a_bindings_object_leads_to_it, set_up),
        cmocka_unit_test_setup(test_what_only_looks_like_one_is_none, set_up),
        cmocka_unit_test_setup(test_what_cannot_be_read_is_passed_over, set_up),
        cmocka_unit_test(test_reading_each),
        cmocka_unit_test(test_which_file_has_sqlite_in_it),
        cmocka_unit_test_setup(test_want_of_memory_is_told, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
