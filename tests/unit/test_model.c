/* SPDX-License-Identifier: MIT */
/* Interning, and blocks that merge without losing or doubling a count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/profile.h"

static const uint64_t ms = 1000000;

static void test_count_is_small(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct rp_count), 32);
}

static void test_each_thing_once(void **state)
{
    struct rp_profile p;
    struct rp_err err = {0};
    uint32_t a, b, c, leaf, again, other;

    (void)state;
    assert_int_equal(rp_profile_init(&p, &err), RP_OK);
    assert_int_equal(p.nodes.n, 1);
    assert_int_equal(rp_profile_location(&p, 2, 0x1000, 0, 0, &a, &err), RP_OK);
    assert_int_equal(rp_profile_location(&p, 2, 0x1000, 0, 0, &b, &err), RP_OK);
    assert_int_equal(a, b);
    assert_int_equal(rp_profile_location(&p, 2, 0x1000, RP_LOCATION_CALLER, 0, &b, &err), RP_OK);
    assert_int_not_equal(a, b);
    assert_int_equal(rp_profile_location(&p, 2, 0x1000, 0, 1, &c, &err), RP_OK);
    assert_int_not_equal(a, c);
    assert_int_equal(rp_profile_location(&p, 3, 0x1000, 0, 0, &c, &err), RP_OK);
    assert_int_not_equal(a, c);
    assert_int_equal(rp_profile_node(&p, 0, b, &other, &err), RP_OK);
    assert_int_equal(rp_profile_node(&p, other, a, &leaf, &err), RP_OK);
    assert_int_equal(rp_profile_node(&p, other, a, &again, &err), RP_OK);
    assert_int_equal(leaf, again);
    assert_true(p.nodes.at[leaf].parent < leaf);
    assert_int_equal(rp_profile_node(&p, 0, a, &other, &err), RP_OK);
    assert_int_not_equal(leaf, other);
    rp_profile_release(&p);
}

static void test_a_mark_is_one_location_and_one_function(void **state)
{
    struct rp_profile p;
    struct rp_err err = {0};
    uint32_t mark, again;

    (void)state;
    assert_int_equal(rp_profile_init(&p, &err), RP_OK);
    assert_int_equal(rp_profile_mark(&p, "[truncated: no unwind row]", &mark, &err), RP_OK);
    assert_int_equal(rp_profile_mark(&p, "[truncated: no unwind row]", &again, &err), RP_OK);
    assert_int_equal(mark, again);
    assert_int_equal(p.functions.n, 1);
    assert_int_equal(p.functions.at[0].how, RP_NAME_MARK);
    assert_string_equal(rp_profile_text(&p, p.functions.at[0].name), "[truncated: no unwind row]");
    rp_profile_release(&p);
}

static uint64_t sum(const struct rp_profile *p, uint32_t block, uint32_t node)
{
    uint64_t n = 0;

    for (size_t i = 0; i < p->counts.n; i++)
        if (p->counts.at[i].block == block && p->counts.at[i].node == node)
            n += p->counts.at[i].n;
    return n;
}

static void test_blocks_merge_when_used_up(void **state)
{
    struct rp_profile p;
    struct rp_err err = {0};

    (void)state;
    assert_int_equal(rp_profile_init(&p, &err), RP_OK);
    assert_int_equal(p.block_ns, 10 * ms);
    for (uint64_t i = 0; i < RP_BLOCKS_MAX; i++)
        assert_int_equal(rp_profile_count(&p, 0, 1 + i % 2, 0, RP_STATE_RUNNING, i * 10 * ms, 1, 5, &err), RP_OK);
    assert_int_equal(p.nblocks, RP_BLOCKS_MAX);
    assert_int_equal(p.counts.n, RP_BLOCKS_MAX);
    assert_int_equal(p.block_ns, 10 * ms);

    assert_int_equal(rp_profile_count(&p, 0, 1, 0, RP_STATE_RUNNING, RP_BLOCKS_MAX * 10 * ms, 1, 5, &err), RP_OK);
    assert_int_equal(p.block_ns, 20 * ms);
    assert_int_equal(p.nblocks, RP_BLOCKS_MAX / 2 + 1);
    for (uint32_t b = 0; b < RP_BLOCKS_MAX / 2; b++) {
        assert_int_equal(sum(&p, b, 1), 1);
        assert_int_equal(sum(&p, b, 2), 1);
    }

    /* Eight times as long at once: two more doublings after the first, and equal keys are one line. */
    assert_int_equal(rp_profile_count(&p, 0, 1, 0, RP_STATE_RUNNING, RP_BLOCKS_MAX * 70 * ms, 1, 5, &err), RP_OK);
    assert_int_equal(p.block_ns, 80 * ms);
    assert_int_equal(p.nblocks, RP_BLOCKS_MAX * 7 / 8 + 1);
    assert_int_equal(p.counts.n, 2 * RP_BLOCKS_MAX / 8 + 2);
    assert_int_equal(sum(&p, 0, 1), 4);
    assert_int_equal(sum(&p, 0, 2), 4);

    /* The index knows the joined lines: counting again makes no new one. */
    assert_int_equal(rp_profile_count(&p, 0, 2, 0, RP_STATE_RUNNING, 0, 3, 15, &err), RP_OK);
    assert_int_equal(p.counts.n, 2 * RP_BLOCKS_MAX / 8 + 2);
    assert_int_equal(sum(&p, 0, 2), 7);
    rp_profile_release(&p);
}

/* 2^64 nanoseconds are 584 years: the length doubles until they fit. */
static void test_any_time_fits(void **state)
{
    struct rp_profile p;
    struct rp_err err = {0};

    (void)state;
    assert_int_equal(rp_profile_init(&p, &err), RP_OK);
    assert_int_equal(rp_profile_count(&p, 0, 1, 0, RP_STATE_RUNNING, 7, 1, 1, &err), RP_OK);
    assert_int_equal(rp_profile_count(&p, 0, 1, 0, RP_STATE_RUNNING, UINT64_MAX, 1, 1, &err), RP_OK);
    assert_true(p.nblocks <= RP_BLOCKS_MAX);
    assert_true(UINT64_MAX / p.block_ns < RP_BLOCKS_MAX);
    assert_int_equal(p.counts.n, 2);
    rp_profile_release(&p);
}

static void test_memory_follows_distinct_stacks_not_time(void **state)
{
    struct rp_profile p;
    struct rp_err err = {0};
    uint64_t total = 0;

    (void)state;
    assert_int_equal(rp_profile_init(&p, &err), RP_OK);
    for (uint64_t t = 0; t < 3600; t++)
        for (uint32_t i = 0; i < 50; i++, total++)
            assert_int_equal(rp_profile_count(&p, 0, 1 + i % 10, 0, RP_STATE_RUNNING, (t * 1000 + i * 20) * ms, 1, ms, &err), RP_OK);
    assert_true(p.counts.n <= 10 * RP_BLOCKS_MAX);
    for (size_t i = 0; i < p.counts.n; i++) {
        total -= p.counts.at[i].n;
        assert_int_equal(p.counts.at[i].weight_ns, p.counts.at[i].n * ms);
    }
    assert_int_equal(total, 0);
    rp_profile_release(&p);
}

/* Everything the model can do, once, so that each of its allocations can be made to fail. */
static enum rp_status all_of_it(struct rp_profile *p, struct rp_err *err)
{
    uint32_t id = 0, node = 0, mark = 0;
    struct rp_function f = {0};
    enum rp_status status = rp_profile_init(p, err);

    if (status)
        return status;
    for (uint32_t i = 0; i < 3000 && status == RP_OK; i++) {
        char name[32];

        f.name = i;
        memset(name, 'a' + (int)(i % 26), sizeof name);
        memcpy(name, &i, sizeof i);
        status = rp_profile_string(p, name, sizeof name, &id, err);
        if (!status)
            status = rp_profile_location(p, 1, i, 0, 0, &id, err);
        if (!status)
            status = rp_profile_function(p, &f, &id, err);
        if (!status)
            status = rp_profile_node(p, node, i, &node, err);
        if (!status)
            status = rp_profile_count(p, 0, node, 0, RP_STATE_RUNNING, i * 10 * ms, 1, 1, err);
        if (!status && i % 100 == 0)
            status = rp_profile_mark(p, i % 200 ? "[truncated: a]" : "[truncated: b]", &mark, err);
    }
    return status;
}

static void test_every_allocation_may_fail(void **state)
{
    struct rp_profile p;
    struct rp_err err = {0};
    uint64_t made;

    (void)state;
    rp_alloc_fail_at(0);
    assert_int_equal(all_of_it(&p, &err), RP_OK);
    rp_profile_release(&p);
    made = rp_alloc_fail_at(0);
    assert_true(made > 20);
    for (uint64_t n = 1; n <= made; n++) {
        rp_alloc_fail_at(n);
        err = (struct rp_err){0};
        assert_int_equal(all_of_it(&p, &err), RP_NOMEM);
        assert_int_equal(err.status, RP_NOMEM);
        rp_alloc_fail_at(0);
        rp_profile_release(&p);
    }
}

static void test_wait_classes_are_a_quarter_octave_wide(void **state)
{
    (void)state;
    assert_int_equal(rp_wait_class(0), 0);
    assert_int_equal(rp_wait_class(1), 0);
    assert_int_equal(rp_wait_class(1024), 40);
    assert_int_equal(rp_wait_class(1279), 40);
    assert_int_equal(rp_wait_class(1280), 41);
    assert_int_equal(rp_wait_class(2047), 43);
    assert_int_equal(rp_wait_class(UINT64_MAX), RP_WAIT_CLASSES - 1);
    assert_true(rp_wait_class_ns(40) == 1024 && rp_wait_class_ns(41) == 1280);
    assert_true(rp_wait_class_ns(RP_WAIT_CLASSES) == UINT64_C(1) << 40);
    for (uint32_t c = 9; c < RP_WAIT_CLASSES; c++) {
        assert_int_equal(rp_wait_class(rp_wait_class_ns(c)), c);
        assert_int_equal(rp_wait_class(rp_wait_class_ns(c) - 1), c - 1);
    }
}

static void test_waits_count_in_totals_with_or_without_stack(void **state)
{
    struct rp_profile p;
    struct rp_err err = {0};
    struct rp_lock lock = {.process = 0, .address = 0x1000}, again = {.process = 0, .address = 0x1000, .symbol = 0}, other = {.process = 1, .address = 0x1000};
    uint32_t location, node = 0, a = 9, b = 9;

    (void)state;
    assert_int_equal(sizeof(struct rp_wait), 40);
    assert_int_equal(sizeof(struct rp_wait_total), 32);
    assert_int_equal(rp_profile_init(&p, &err), RP_OK);
    assert_int_equal(rp_profile_location(&p, 0, 1, 0, 0, &location, &err), RP_OK);
    assert_int_equal(rp_profile_node(&p, 0, location, &node, &err), RP_OK);
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(rp_profile_wait(&p, 3, 1100 + i, i % 2 ? node : 0, 0, 202, &err), RP_OK);
    assert_int_equal(rp_profile_wait(&p, 3, 5000, node, 0, 202, &err), RP_OK);
    assert_int_equal(rp_profile_wait(&p, 3, 5000, node, 1, 202, &err), RP_OK);
    assert_int_equal(rp_profile_wait(&p, 3, 5000, node, 1, 70000, &err), RP_OK);
    assert_int_equal(p.wait_totals.n, 2);
    assert_int_equal(p.wait_totals.at[0].n, 10);
    assert_int_equal(p.wait_totals.at[0].ns, 11045);
    assert_int_equal(p.wait_totals.at[0].max_ns, 1109);
    assert_int_equal(p.waits.n, 4);
    assert_int_equal(p.waits.at[0].n, 5);
    assert_int_equal(p.waits.at[0].ns, 1101 + 1103 + 1105 + 1107 + 1109);
    assert_int_equal(p.waits.at[3].syscall, -1);

    assert_int_equal(rp_profile_lock(&p, &lock, &a, &err), RP_OK);
    assert_int_equal(rp_profile_lock(&p, &again, &b, &err), RP_OK);
    assert_int_equal(a, b);
    assert_int_equal(rp_profile_lock(&p, &other, &b, &err), RP_OK);
    assert_int_equal(b, 1);
    assert_int_equal(rp_profile_holder(&p, a, 5, 4, node, RP_STATE_RUNNING, 10, &err), RP_OK);
    assert_int_equal(rp_profile_holder(&p, a, 5, 4, node, RP_STATE_RUNNING, 20, &err), RP_OK);
    assert_int_equal(rp_profile_holder(&p, a, 5, 4, node, RP_STATE_BLOCKED, 20, &err), RP_OK);
    assert_int_equal(rp_profile_holder(&p, a, 6, 4, node, RP_STATE_RUNNING, 40, &err), RP_OK);
    assert_int_equal(p.holders.n, 3);
    assert_int_equal(rp_profile_holder_waiter(&p, 1), 5);
    assert_int_equal(rp_profile_holder_waiter(&p, 2), 6);
    assert_true(rp_profile_holder_waiter(&p, 3) == UINT32_MAX);
    assert_int_equal(p.holders.at[0].n, 2);
    assert_int_equal(p.holders.at[0].ns, 30);
    rp_profile_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wait_classes_are_a_quarter_octave_wide),
        cmocka_unit_test(test_waits_count_in_totals_with_or_without_stack),
        cmocka_unit_test(test_count_is_small),
        cmocka_unit_test(test_each_thing_once),
        cmocka_unit_test(test_a_mark_is_one_location_and_one_function),
        cmocka_unit_test(test_blocks_merge_when_used_up),
        cmocka_unit_test(test_any_time_fits),
        cmocka_unit_test(test_memory_follows_distinct_stacks_not_time),
        cmocka_unit_test(test_every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
