/* SPDX-License-Identifier: MIT */
/* base/: growth, interning, the hash index, numbers out of text, files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/intern.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/vec.h"

static void buf_grows_and_stays_terminated(void **state)
{
    struct rp_buf b = {0};

    (void)state;
    assert_string_equal(rp_buf_text(&b), "");
    for (int i = 0; i < 10000; i++)
        rp_buf_printf(&b, "%d,", i % 10);
    assert_int_equal(b.length, 20000);
    assert_int_equal(strlen(rp_buf_text(&b)), 20000);
    rp_buf_fill(&b, '-', 3);
    rp_buf_fill(&b, '-', -3);
    assert_string_equal(rp_buf_text(&b) + 20000, "---");
    rp_buf_release(&b);
}

static void buf_failure_is_sticky_and_harmless(void **state)
{
    struct rp_buf b = {0};

    (void)state;
    rp_buf_puts(&b, "kept");
    rp_alloc_fail_at(1);
    rp_buf_fill(&b, 'x', 100000);
    rp_alloc_fail_at(0);
    rp_buf_puts(&b, "not appended any more");
    assert_true(b.failed);
    assert_string_equal(rp_buf_text(&b), "kept");
    rp_buf_release(&b);
}

static void intern_gives_each_string_one_id(void **state)
{
    struct rp_intern t = {0};
    uint32_t ids[5000];

    (void)state;
    for (uint32_t i = 0; i < 5000; i++) {
        char text[32];
        int length = snprintf(text, sizeof text, "name-%u", i);

        ids[i] = rp_intern(&t, text, (size_t)length);
        assert_int_not_equal(ids[i], 0);
        if (i)
            assert_int_not_equal(ids[i], ids[i - 1]);
    }
    for (uint32_t i = 0; i < 5000; i++) {
        char text[32];

        snprintf(text, sizeof text, "name-%u", i);
        assert_int_equal(rp_intern_str(&t, text), ids[i]);
        assert_string_equal(rp_intern_text(&t, ids[i]), text);
    }
    assert_int_equal(rp_intern_str(&t, ""), 0);
    assert_int_not_equal(rp_intern(&t, "a\0b", 3), rp_intern_str(&t, "a"));
    assert_string_equal(rp_intern_text(&t, RP_NO_STRING), "");
    rp_intern_release(&t);
}

static void intern_survives_every_failing_allocation(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 12; n++) {
        struct rp_intern t = {0};

        rp_alloc_fail_at(n);
        for (int i = 0; i < 200; i++) {
            char text[32];

            snprintf(text, sizeof text, "%d", i);
            rp_intern_str(&t, text);
        }
        rp_alloc_fail_at(0);
        assert_string_equal(rp_intern_text(&t, rp_intern_str(&t, "199")), "199");
        rp_intern_release(&t);
    }
}

static void vec_refuses_sizes_that_overflow(void **state)
{
    RP_VEC(uint64_t) v = {0};

    (void)state;
    assert_false(rp_vec_reserve(&v, SIZE_MAX / 4));
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t *added = rp_vec_add(&v);

        assert_non_null(added);
        if (added)
            *added = i;
    }
    assert_int_equal(v.at[999], 999);
    assert_int_equal(v.n, 1000);
    rp_vec_release(&v);
}

static void arena_blocks_are_aligned_zeroed_and_still(void **state)
{
    struct rp_arena a = {0};
    char *first = rp_arena_strndup(&a, "first", 5);

    (void)state;
    for (size_t size = 1; size < 200000; size = size * 3 + 1) {
        unsigned char *at = rp_arena_alloc(&a, size);

        assert_int_equal((uintptr_t)at % 16, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(at[i], 0);
        memset(at, 0xff, size);
    }
    assert_string_equal(first, "first");
    assert_null(rp_arena_alloc(&a, SIZE_MAX));
    rp_arena_release(&a);
}

static void numbers_are_whole_or_refused(void **state)
{
    static const char *const bad[] = {"", " 1", "1 ", "-1", "+1", "0x10", "1e3", "18446744073709551616", "1.0", "x"};
    uint64_t v = 7;
    double d = 7;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(rp_parse_u64(bad[i], 0, UINT64_MAX, &v));
    assert_int_equal(v, 7);
    assert_true(rp_parse_u64("18446744073709551615", 0, UINT64_MAX, &v));
    assert_true(v == UINT64_MAX);
    assert_false(rp_parse_u64("11", 0, 10, &v));
    assert_true(rp_parse_double("0.5", 0, 10, &d) && d == 0.5);
    assert_true(rp_parse_double("1e3", 0, 1000, &d) && d == 1000);
    assert_false(rp_parse_double("nan", 0, 10, &d));
    assert_false(rp_parse_double("inf", 0, 10, &d));
    assert_false(rp_parse_double("0x1", 0, 10, &d));
    assert_false(rp_parse_double("1s", 0, 10, &d));
    assert_false(rp_parse_double("", 0, 10, &d));
    assert_false(rp_parse_double("1e999", 0, 1e300, &d));
}

static void cursor_takes_lines_of_every_ending(void **state)
{
    struct rp_cursor c = rp_cursor_str("one\r\n\ntwo\nlast");
    const char *want[] = {"one", "", "two", "last"};
    const char *line;
    size_t length;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        assert_true(rp_cursor_line(&c, &line, &length));
        assert_int_equal(length, strlen(want[i]));
        assert_memory_equal(line, want[i], length);
    }
    assert_false(rp_cursor_line(&c, &line, &length));
}

static void cursor_hex_stops_at_overflow(void **state)
{
    struct rp_cursor c = rp_cursor_str("ffffffffffffffff1 g");
    uint64_t v;

    (void)state;
    assert_false(rp_cursor_hex(&c, &v));
    c = rp_cursor_str("DEADbeef rest");
    assert_true(rp_cursor_hex(&c, &v));
    assert_int_equal(v, 0xdeadbeef);
    assert_int_equal(rp_cursor_skip_blanks(&c), 1);
    assert_true(rp_cursor_take(&c, "re"));
    assert_false(rp_cursor_take(&c, "stx"));
}

static bool same_number(const void *context, uint32_t position)
{
    const uint64_t *const *key = context;

    return key[0][position] == *key[1];
}

#ifdef RP_ALWAYS_MOVES
static bool same_anyhow(const void *context, uint32_t position)
{
    return context && position != RP_INDEX_EMPTY;
}

/* What a build with RP_ALWAYS_MOVES is for: whoever keeps a pointer over one of these reads freed memory. */
static void what_grows_moves_at_every_chance(void **state)
{
    RP_VEC(uint64_t) v = {0};
    struct rp_buf b = {0};
    struct rp_index index = {0};
    uint32_t *slot;
    uint64_t *first;
    const char *text;

    (void)state;
    *rp_vec_add(&v) = 1;
    first = v.at;
    *rp_vec_add(&v) = 2;
    assert_ptr_not_equal(v.at, first);
    assert_int_equal(v.at[0], 1);
    rp_buf_putc(&b, 'a');
    text = rp_buf_text(&b);
    rp_buf_putc(&b, 'b');
    assert_ptr_not_equal(rp_buf_text(&b), text);
    assert_string_equal(rp_buf_text(&b), "ab");
    slot = rp_index_find(&index, 1, same_anyhow, &index);
    rp_index_set(&index, slot, 1, 1);
    assert_ptr_not_equal(rp_index_find(&index, 1, same_anyhow, &index), slot);
    assert_int_equal(rp_index_lookup(&index, 1, same_anyhow, &index), 1);
    rp_vec_release(&v);
    rp_buf_release(&b);
    rp_index_release(&index);
}
#endif

static void index_finds_what_was_set_and_nothing_else(void **state)
{
    static uint64_t numbers[20000];
    struct rp_index index = {0};

    (void)state;
    for (uint32_t i = 0; i < 20000; i++) {
        const uint64_t *context[2] = {numbers, &numbers[i]};
        uint32_t hash, *slot;

        numbers[i] = (uint64_t)i * 4096;
        hash = rp_hash_u64(numbers[i]);
        slot = rp_index_find(&index, hash, same_number, context);
        assert_non_null(slot);
        assert_int_equal(*slot, RP_INDEX_EMPTY);
        rp_index_set(&index, slot, hash, i);
    }
    for (uint32_t i = 0; i < 20000; i++) {
        uint64_t key = (uint64_t)i * 4096, missing = key + 1;
        const uint64_t *found[2] = {numbers, &key}, *not_found[2] = {numbers, &missing};

        assert_int_equal(rp_index_lookup(&index, rp_hash_u64(key), same_number, found), i);
        assert_int_equal(rp_index_lookup(&index, rp_hash_u64(missing), same_number, not_found), RP_INDEX_EMPTY);
    }
    rp_index_release(&index);
}

static void procfs_files_are_read_whole_and_bounds_hold(void **state)
{
    struct rp_buf b = {0};
    struct rp_err err = {0};

    (void)state;
    assert_int_equal(rp_read_file("/proc/self/maps", 1 << 24, &b, &err), RP_OK);
    assert_non_null(strstr(rp_buf_text(&b), "[stack]"));
    assert_int_equal(rp_read_file("/proc/self/maps", 16, &b, &err), RP_LIMIT);
    assert_int_equal(rp_read_file("/does/not/exist", 16, &b, &err), RP_IO);
    assert_non_null(strstr(err.text, "/does/not/exist"));
    rp_buf_release(&b);
}

static void exit_statuses_are_the_documented_ones(void **state)
{
    (void)state;
    assert_int_equal(rp_status_exit(RP_OK), 0);
    assert_int_equal(rp_status_exit(RP_NOMEM), 1);
    assert_int_equal(rp_status_exit(RP_USAGE), 2);
    assert_int_equal(rp_status_exit(RP_PERM), 3);
    assert_int_equal(rp_status_exit(RP_NOPROC), 4);
    assert_int_equal(rp_status_exit(RP_NOTHING), 5);
    assert_int_equal(rp_status_exit(RP_ABOVE), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buf_grows_and_stays_terminated),
        cmocka_unit_test(buf_failure_is_sticky_and_harmless),
        cmocka_unit_test(intern_gives_each_string_one_id),
        cmocka_unit_test(intern_survives_every_failing_allocation),
        cmocka_unit_test(vec_refuses_sizes_that_overflow),
#ifdef RP_ALWAYS_MOVES
        cmocka_unit_test(what_grows_moves_at_every_chance),
#endif
        cmocka_unit_test(arena_blocks_are_aligned_zeroed_and_still),
        cmocka_unit_test(numbers_are_whole_or_refused),
        cmocka_unit_test(cursor_takes_lines_of_every_ending),
        cmocka_unit_test(cursor_hex_stops_at_overflow),
        cmocka_unit_test(index_finds_what_was_set_and_nothing_else),
        cmocka_unit_test(procfs_files_are_read_whole_and_bounds_hold),
        cmocka_unit_test(exit_statuses_are_the_documented_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
