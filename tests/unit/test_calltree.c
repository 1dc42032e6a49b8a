/* SPDX-License-Identifier: MIT */
/* Trees of stacks that can be drawn by hand. A tree is compared as text: one line a node, indented by depth, `samples/self name + offset`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/calltree.h"
#include "support/fake_view.h"

static const char rules[] = "categories:\n"
                            "  - {id: names, name: Names, kind: cost}\n"
                            "  - {id: work, name: Work, kind: cost}\n"
                            "rules:\n"
                            "  - {id: r-names, category: names, symbol: \"name_*\"}\n"
                            "  - {id: r-work, category: work, symbol: [step, rec]}\n"
                            "through: [memcpy]\n";

/* Walks by the links, so that a wrong link is a wrong text. */
static void print_tree(const struct fake_view *v, const struct rp_calltree *t, struct rp_buf *out)
{
    uint32_t at = t->first_top;
    size_t seen = 0;

    rp_buf_clear(out);
    while (at != UINT32_MAX) {
        const struct rp_calltree_node *n = &t->nodes.at[at];

        assert_true(++seen <= t->nodes.n);
        rp_buf_fill(out, ' ', (int)n->depth);
        rp_buf_printf(out, "%lu/%lu %s", (unsigned long)n->samples, (unsigned long)n->self,
                      rp_profile_text(&v->profile, v->profile.functions.at[n->function].name));
        if (n->has_offset)
            rp_buf_printf(out, " + %lu", (unsigned long)n->offset);
        if (n->line)
            rp_buf_printf(out, " %s:%u", rp_profile_text(&v->profile, n->file), n->line);
        rp_buf_putc(out, '\n');
        if (n->first_child != UINT32_MAX) {
            at = n->first_child;
            continue;
        }
        while (at != UINT32_MAX && t->nodes.at[at].next_sibling == UINT32_MAX)
            at = t->nodes.at[at].parent;
        if (at != UINT32_MAX)
            at = t->nodes.at[at].next_sibling;
    }
    assert_int_equal(seen, t->nodes.n);
}

/* The first `stop` nodes' sum at the top, and every child's at its parent. */
static void check_sums(const struct rp_calltree *t, uint64_t tops)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < t->nodes.n; i++) {
        const struct rp_calltree_node *n = &t->nodes.at[i];
        uint64_t children = 0;

        for (uint32_t c = n->first_child; c != UINT32_MAX; c = t->nodes.at[c].next_sibling) {
            children += t->nodes.at[c].samples;
            assert_int_equal(t->nodes.at[c].parent, i);
            assert_int_equal(t->nodes.at[c].depth, n->depth + 1);
        }
        assert_true(children <= n->samples);
        sum += n->parent == UINT32_MAX ? n->samples : 0;
    }
    assert_int_equal(sum, tops);
}

static void expect(const struct fake_view *v, struct rp_calltree_options options, const char *category, const char *want)
{
    struct rp_calltree t;
    struct rp_buf got = {0};
    struct rp_err err = {0};

    options.category = category ? cat_rules_find_category(v->rules, category) : UINT32_MAX;
    assert_int_equal(rp_calltree_make(v->view, &options, &t, &err), RP_OK);
    print_tree(v, &t, &got);
    assert_string_equal(rp_buf_text(&got), want);
    if (options.min_samples <= 1)
        check_sums(&t, t.samples);
    rp_calltree_release(&t);
    rp_buf_release(&got);
}

static const char stacks[] = "name_a;name_get;Get+0x18c;main;_start 88\n"
                             "memcpy;name_get;Get+0x18c;main;_start 12\n"
                             "name_get;Get+0x174;main;_start 30\n"
                             "name_get;Get+0x18c;other;_start 7\n"
                             "memcpy;[truncated: no unwind row] 2\n"
                             "step;name_get;^Inl{q.cc:42};Get;main;_start 4\n"
                             "name_b;step;name_get;^Inl{q.cc:42};Get;main;_start 3\n"
                             "name_get;[truncated: no unwind row] 1\n"
                             "name_get 6\n";

static void test_category_tree_starts_at_the_caller(void **state)
{
    struct fake_view v;

    (void)state;
    fake_view(&v, stacks, rules, NULL);
    /* Call sites are told apart at the top only, from wherever they were called; offsets are those of the return addresses. */
    expect(&v, (struct rp_calltree_options){0}, "names",
           "107/0 Get + 396\n"
           " 107/7 name_get\n"
           "  88/88 name_a\n"
           "  12/12 memcpy\n"
           "30/0 Get + 372\n"
           " 30/30 name_get\n"
           "6/6 name_get\n"
           "3/0 Inl q.cc:42\n"
           " 3/0 name_get\n"
           "  3/0 step\n"
           "   3/3 name_b\n"
           "1/0 [truncated: no unwind row]\n"
           " 1/1 name_get\n");
    expect(&v, (struct rp_calltree_options){.min_samples = 12}, "names",
           "107/0 Get + 396\n"
           " 107/7 name_get\n"
           "  88/88 name_a\n"
           "  12/12 memcpy\n"
           "30/0 Get + 372\n"
           " 30/30 name_get\n");
    expect(&v, (struct rp_calltree_options){0}, "work", "4/0 name_get + 16\n 4/4 step\n");
    expect(&v, (struct rp_calltree_options){0}, "uncategorized", "2/0 [truncated: no unwind row]\n 2/2 memcpy\n");
    fake_view_release(&v);
}

static void test_full_stacks_and_whole_tree(void **state)
{
    struct fake_view v;

    (void)state;
    fake_view(&v, "name_a;Get+0x20;main;_start 3\nname_a;Get+0x30;main;_start 2\nstep;main;_start 9\n", rules, NULL);
    expect(&v, (struct rp_calltree_options){.full_stacks = true}, "names",
           "5/0 _start\n"
           " 5/0 main\n"
           "  3/0 Get + 32\n"
           "   3/3 name_a\n"
           "  2/0 Get + 48\n"
           "   2/2 name_a\n");
    expect(&v, (struct rp_calltree_options){0}, NULL,
           "14/0 _start\n"
           " 14/0 main\n"
           "  9/9 step\n"
           "  5/0 Get\n"
           "   5/5 name_a\n");
    fake_view_release(&v);
}

static void test_callers(void **state)
{
    struct fake_view v;

    (void)state;
    fake_view(&v, "name_a;Get+0x20;main 3\nname_a;Get+0x30;main 2\nname_a;Put;main 4\nstep;main 9\n", rules, NULL);
    expect(&v, (struct rp_calltree_options){.callers = true}, NULL,
           "9/9 name_a\n"
           " 5/0 Get\n"
           "  5/0 main\n"
           " 4/0 Put\n"
           "  4/0 main\n"
           "9/9 step\n"
           " 9/0 main\n");
    expect(&v, (struct rp_calltree_options){.callers = true}, "names",
           "9/9 name_a\n"
           " 5/0 Get\n"
           " 4/0 Put\n");
    fake_view_release(&v);
}

static void test_order_by_self(void **state)
{
    struct fake_view v;

    (void)state;
    fake_view(&v, "leaf;a;main 10\na;main 1\nb;main 5\nc;main 5\n", rules, NULL);
    expect(&v, (struct rp_calltree_options){0}, NULL, "21/0 main\n 11/1 a\n  10/10 leaf\n 5/5 b\n 5/5 c\n");
    expect(&v, (struct rp_calltree_options){.order_by_self = true}, NULL, "21/0 main\n 5/5 b\n 5/5 c\n 11/1 a\n  10/10 leaf\n");
    fake_view_release(&v);
}

/* A recursion stays a chain; each node counts a sample once. Deep ones cost no stack of ours. */
static void test_recursion(void **state)
{
    struct rp_buf text = {0};
    struct fake_view v;
    struct rp_calltree t;
    struct rp_calltree_options all = {.category = UINT32_MAX};
    struct rp_err err = {0};

    (void)state;
    fake_view(&v, "rec;rec;rec;main 4\nrec;rec;main 2\n", rules, NULL);
    expect(&v, (struct rp_calltree_options){0}, NULL, "6/0 main\n 6/0 rec\n  6/2 rec\n   4/4 rec\n");
    fake_view_release(&v);
    for (int i = 0; i < 8000; i++)
        rp_buf_puts(&text, "rec;");
    rp_buf_puts(&text, "main 1\n");
    fake_view(&v, rp_buf_text(&text), rules, NULL);
    assert_int_equal(rp_calltree_make(v.view, &all, &t, &err), RP_OK);
    assert_int_equal(t.nodes.n, 8001);
    check_sums(&t, 1);
    rp_calltree_release(&t);
    fake_view_release(&v);
    rp_buf_release(&text);
}

static void test_empty(void **state)
{
    struct fake_view v;
    struct rp_calltree t;
    struct rp_calltree_options all = {.category = UINT32_MAX};
    struct rp_err err = {0};

    (void)state;
    fake_view(&v, ".thread main\n", rules, NULL);
    assert_int_equal(rp_calltree_make(v.view, &all, &t, &err), RP_OK);
    assert_int_equal(t.nodes.n, 0);
    assert_int_equal(t.first_top, UINT32_MAX);
    rp_calltree_release(&t);
    fake_view_release(&v);
}

static void test_every_allocation_may_fail(void **state)
{
    struct fake_view v;
    struct rp_calltree t;
    struct rp_calltree_options all = {.category = UINT32_MAX};
    struct rp_err err = {0};
    uint64_t made;

    (void)state;
    fake_view(&v, stacks, rules, NULL);
    rp_alloc_fail_at(0);
    assert_int_equal(rp_calltree_make(v.view, &all, &t, &err), RP_OK);
    rp_calltree_release(&t);
    made = rp_alloc_fail_at(0);
    for (uint64_t n = 1; n <= made; n++) {
        rp_alloc_fail_at(n);
        assert_int_equal(rp_calltree_make(v.view, &all, &t, &err), RP_NOMEM);
        assert_int_equal(t.first_top, UINT32_MAX);
    }
    rp_alloc_fail_at(0);
    fake_view_release(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_category_tree_starts_at_the_caller), cmocka_unit_test(test_full_stacks_and_whole_tree),
        cmocka_unit_test(test_callers),                            cmocka_unit_test(test_order_by_self),
        cmocka_unit_test(test_recursion),                          cmocka_unit_test(test_empty),
        cmocka_unit_test(test_every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
