/* SPDX-License-Identifier: MIT */
/* The rows by function, module and thread, and those of what has no rule or no name, in profiles whose numbers can be counted by hand. The trap is a
 * function that stands several times in one stack: a sample counts once in each total. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/fake_view.h"
#include "support/view_mixed.h"

static const struct rp_group_row *group(const struct rp_group_table *t, uint32_t key)
{
    for (size_t i = 0; i < t->rows.n; i++)
        if (t->rows.at[i].key == key)
            return &t->rows.at[i];
    fail_msg("no row with key %u", key);
    return t->rows.at; /* never reached */
}

static uint32_t function_named(const struct rp_profile *p, const char *name)
{
    for (uint32_t i = 0; i < p->functions.n; i++)
        if (strcmp(rp_profile_text(p, p->functions.at[i].name), name) == 0)
            return i;
    fail_msg("no function %s", name);
    return 0;
}

static uint32_t string_of(struct rp_profile *p, const char *text)
{
    return rp_intern_str(&p->strings, text);
}

/* rec_a -> rec_b -> rec_a … to depth 40: a sample is in each total once. */
static void test_recursion_counts_once(void **state)
{
    struct rp_buf text = {0};
    struct fake_view v;
    struct rp_category_table t;
    struct rp_group_table g;
    struct rp_err err = {0};

    (void)state;
    for (int depth = 2; depth <= 40; depth += 2) {
        for (int i = 0; i < depth; i++)
            rp_buf_puts(&text, i % 2 ? "rec_a;" : "libr.so!rec_b;");
        rp_buf_printf(&text, "main 10 block=%d\n", depth);
    }
    rp_buf_puts(&text, "libr.so!rec_b;rec_a;main 1\nmutex_lock;libr.so!rec_b;rec_a;mutex_lock;rec_a;main 5\n");
    fake_view(&v, rp_buf_text(&text), view_rules, NULL);
    assert_int_equal(rp_view_categories(v.view, &t, &err), RP_OK);
    assert_int_equal(t.samples, 206);
    assert_int_equal(fake_category_row(&v, &t, "work")->total, 206);
    assert_int_equal(fake_category_row(&v, &t, "work")->samples, 201);
    assert_int_equal(fake_category_row(&v, &t, "lock")->total, 5);
    rp_category_table_release(&t);

    assert_int_equal(rp_view_groups(v.view, RP_BY_FUNCTION, &g, &err), RP_OK);
    assert_int_equal(group(&g, function_named(&v.profile, "rec_a"))->total, 206);
    assert_int_equal(group(&g, function_named(&v.profile, "rec_a"))->self, 0);
    assert_int_equal(group(&g, function_named(&v.profile, "rec_b"))->total, 206);
    assert_int_equal(group(&g, function_named(&v.profile, "rec_b"))->self, 201);
    assert_int_equal(group(&g, function_named(&v.profile, "mutex_lock"))->total, 5);
    rp_group_table_release(&g);

    assert_int_equal(rp_view_groups(v.view, RP_BY_MODULE, &g, &err), RP_OK);
    assert_int_equal(g.rows.n, 2);
    assert_int_equal(group(&g, string_of(&v.profile, "libr.so"))->total, 206);
    assert_int_equal(group(&g, string_of(&v.profile, "app"))->total, 206);
    assert_int_equal(group(&g, string_of(&v.profile, "app"))->self, 5);
    rp_group_table_release(&g);
    fake_view_release(&v);
    rp_buf_release(&text);
}

/* Stacks of nothing but a mark, or of nothing but what --no-kernel cuts, are still in every table. */
static void test_no_sample_disappears(void **state)
{
    static const enum rp_by all[] = {RP_BY_CATEGORY, RP_BY_FUNCTION, RP_BY_MODULE, RP_BY_THREAD};
    struct rp_filter filter = {.no_kernel = true};
    struct fake_view v;
    struct rp_group_table g;
    struct rp_err err = {0};

    (void)state;
    fake_view(&v, "[truncated: pc in no mapping] 3\n[kernel]!idle;[kernel]!kthread 4\n[kernel]!fault;step 2\n", view_rules, &filter);
    for (size_t by = 0; by < sizeof all / sizeof *all; by++) {
        uint64_t self = 0;

        assert_int_equal(rp_view_groups(v.view, all[by], &g, &err), RP_OK);
        for (size_t i = 0; i < g.rows.n; i++)
            self += g.rows.at[i].self;
        assert_int_equal(self, 9);
        rp_group_table_release(&g);
    }
    assert_int_equal(rp_view_groups(v.view, RP_BY_FUNCTION, &g, &err), RP_OK);
    assert_int_equal(group(&g, function_named(&v.profile, "idle"))->self, 4);
    assert_int_equal(group(&g, function_named(&v.profile, "step"))->self, 2);
    assert_int_equal(g.rows.n, 4); /* fault is cut */
    rp_group_table_release(&g);
    fake_view_release(&v);
}

static void test_groups_sum_up(void **state)
{
    static const enum rp_by all[] = {RP_BY_CATEGORY, RP_BY_FUNCTION, RP_BY_MODULE, RP_BY_THREAD};
    struct fake_view v;
    struct rp_group_table g;
    struct rp_err err = {0};

    (void)state;
    fake_view(&v, view_mixed, view_rules, NULL);
    for (size_t by = 0; by < sizeof all / sizeof *all; by++) {
        uint64_t self = 0;

        assert_int_equal(rp_view_groups(v.view, all[by], &g, &err), RP_OK);
        assert_int_equal(g.samples, 117);
        for (size_t i = 0; i < g.rows.n; i++) {
            self += g.rows.at[i].self;
            assert_true(g.rows.at[i].total >= g.rows.at[i].self && g.rows.at[i].total <= 117);
            assert_true(g.rows.at[i].low <= g.rows.at[i].share && g.rows.at[i].share <= g.rows.at[i].high);
            if (i && all[by] != RP_BY_CATEGORY)
                assert_true(g.rows.at[i - 1].self >= g.rows.at[i].self);
        }
        assert_int_equal(self, 117);
        rp_group_table_release(&g);
    }
    assert_int_equal(rp_view_groups(v.view, RP_BY_THREAD, &g, &err), RP_OK);
    assert_int_equal(g.rows.n, 2);
    assert_string_equal(rp_profile_text(&v.profile, v.profile.threads.at[g.rows.at[0].key].comm), "main");
    assert_int_equal(g.rows.at[0].self, 112);
    assert_int_equal(g.rows.at[1].self, 5);
    rp_group_table_release(&g);
    fake_view_release(&v);
}

/* A function and its inlined copies are one to the reader; one of the same name in another module is not. */
static void test_inlined_copies_are_the_same_function(void **state)
{
    struct fake_view v;
    struct rp_group_table g;
    struct rp_err err = {0};
    const struct rp_group_row *row;

    (void)state;
    fake_view(&v, "step;main 4\n^step;caller;main 3\n^step;step;main 2\nother.so!step;main 1\n", view_rules, NULL);
    assert_int_equal(rp_view_groups(v.view, RP_BY_FUNCTION, &g, &err), RP_OK);
    row = group(&g, function_named(&v.profile, "step"));
    assert_int_equal(row->self, 9);
    assert_int_equal(row->total, 9);
    assert_int_equal(g.rows.n, 4);
    rp_group_table_release(&g);
    fake_view_release(&v);
}

static void test_unclaimed(void **state)
{
    struct fake_view v;
    struct rp_unclaimed_table t;
    struct rp_err err = {0};

    (void)state;
    fake_view(&v, view_mixed, view_rules, NULL);
    assert_int_equal(rp_view_unclaimed(v.view, &t, &err), RP_OK);
    /* libc.so.6+0x9a1c0 9, main 4 (through memcpy), [jit] 2, [truncated] 1, then helper, inherited, 5 */
    assert_int_equal(t.rows.n, 5);
    assert_string_equal(rp_profile_text(&v.profile, v.profile.functions.at[t.rows.at[0].function].name), "libc.so.6+0x9a1c0");
    assert_int_equal(t.rows.at[0].samples, 9);
    assert_string_equal(rp_profile_text(&v.profile, v.profile.functions.at[t.rows.at[1].function].name), "main");
    assert_int_equal(t.rows.at[1].samples, 4);
    assert_false(t.rows.at[1].inherited);
    assert_string_equal(rp_profile_text(&v.profile, v.profile.functions.at[t.rows.at[4].function].name), "helper");
    assert_true(t.rows.at[4].inherited);
    assert_int_equal(t.rows.at[4].samples, 5);
    assert_string_equal(cat_rules_category(v.rules, t.rows.at[4].category)->id, "work");
    rp_vec_release(&t.rows);
    fake_view_release(&v);
}

static void test_nameless(void **state)
{
    struct fake_view v;
    struct rp_nameless_table t;
    struct rp_err err = {0};

    (void)state;
    fake_view(&v, view_mixed, view_rules, NULL);
    assert_int_equal(rp_view_nameless(v.view, &t, &err), RP_OK);
    assert_int_equal(t.rows.n, 2);
    assert_string_equal(rp_profile_text(&v.profile, v.profile.images.at[t.rows.at[0].image].name), "libc.so.6");
    assert_int_equal(t.rows.at[0].samples, 9);
    assert_int_equal(t.rows.at[1].samples, 2);
    rp_vec_release(&t.rows);
    fake_view_release(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recursion_counts_once),
        cmocka_unit_test(test_no_sample_disappears),
        cmocka_unit_test(test_groups_sum_up),
        cmocka_unit_test(test_inlined_copies_are_the_same_function),
        cmocka_unit_test(test_unclaimed),
        cmocka_unit_test(test_nameless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
