/* SPDX-License-Identifier: MIT */
/* When the copy of the stack grows, counted by hand from the rule: more than one cut in a hundred and four at least, of the recent past. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"
#include "sample/stack_growth.h"

static void test_the_first_size_is_in_bounds(void **state)
{
    struct rp_stack_growth g;

    (void)state;
    assert_int_equal(rp_stack_growth_begin(&g, 0, 16384), 16384);
    assert_true(g.may);
    assert_int_equal(rp_stack_growth_begin(&g, 1, 16384), 512);
    assert_int_equal(rp_stack_growth_begin(&g, 1001, 16384), 1008);
    assert_int_equal(rp_stack_growth_begin(&g, 1 << 20, 16384), RP_STACK_COPY_MAX);
    assert_false(g.may);
    rp_stack_growth_count(&g, 100, 100);
    assert_int_equal(rp_stack_growth_next(&g, RP_STACK_COPY_MAX), 0);
}

static void test_it_doubles_and_then_takes_all(void **state)
{
    struct rp_stack_growth g;
    uint32_t now = rp_stack_growth_begin(&g, 0, 16384);

    (void)state;
    rp_stack_growth_count(&g, 30, 3);
    assert_int_equal(rp_stack_growth_next(&g, now), 0); /* three may be chance */
    rp_stack_growth_count(&g, 370, 1);
    assert_int_equal(rp_stack_growth_next(&g, now), 0); /* one in a hundred */
    rp_stack_growth_count(&g, 20, 1);
    assert_int_equal(rp_stack_growth_next(&g, now), 32768);
    g.grown++;
    rp_stack_growth_count(&g, 400, 4);
    assert_int_equal(rp_stack_growth_next(&g, 32768), 0);
    rp_stack_growth_count(&g, 0, 1);
    assert_int_equal(rp_stack_growth_next(&g, 32768), RP_STACK_COPY_MAX);
    g.grown++;
    rp_stack_growth_count(&g, 100, 100);
    assert_int_equal(rp_stack_growth_next(&g, RP_STACK_COPY_MAX), 0);
}

static void test_many_cuts_take_all_at_once(void **state)
{
    struct rp_stack_growth g;

    (void)state;
    rp_stack_growth_begin(&g, 0, 16384);
    rp_stack_growth_count(&g, 40, 5);
    assert_int_equal(rp_stack_growth_next(&g, 16384), RP_STACK_COPY_MAX);
}

/* Stacks that deepen after 100 000 short ones. */
static void test_only_the_recent_past_is_judged(void **state)
{
    struct rp_stack_growth g;

    (void)state;
    rp_stack_growth_begin(&g, 0, 16384);
    for (int i = 0; i < 100; i++) {
        rp_stack_growth_count(&g, 1000, 0);
        assert_int_equal(rp_stack_growth_next(&g, 16384), 0);
    }
    rp_stack_growth_count(&g, 200, 20);
    assert_int_not_equal(rp_stack_growth_next(&g, 16384), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_size_is_in_bounds),
        cmocka_unit_test(test_it_doubles_and_then_takes_all),
        cmocka_unit_test(test_many_cuts_take_all_at_once),
        cmocka_unit_test(test_only_the_recent_past_is_judged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
