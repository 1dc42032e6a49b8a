/* SPDX-License-Identifier: MIT */
/* Locks against hand-counted profiles: who waits, who held them, and what of it is the view's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/fake_waits.h"

static void test_locks_tell_waiters_and_holders(void **state)
{
    struct fake_waits t;
    struct rp_lock_table table;
    const struct rp_lock_row *row;
    struct rp_err err;

    (void)state;
    fake_waits(&t, fake_waits_app, false, NULL);
    assert_int_equal(rp_waits_locks(t.w, &table, &err), RP_OK);
    assert_int_equal(table.rows.n, 1);
    row = &table.rows.at[0];
    fake_close_to(row->waits, 1500);
    fake_close_to(row->seconds, 3);
    fake_close_to(row->max_s, 0.002);
    fake_close_to(row->known, 1200.0 / 1500);
    assert_string_equal(rp_profile_text(&t.v.profile, t.v.profile.functions.at[row->waiter].name), "cache_get");
    assert_int_equal(row->holders.n, 2);
    fake_close_to(row->holders.at[0].waits, 800);
    assert_int_equal(t.v.profile.threads.at[row->holders.at[0].thread].tid, 21);
    assert_int_equal(row->doings.n, 2); /* running, of no rule; blocked in fdatasync */
    fake_close_to(row->doings.at[1].waits, 100);
    assert_true(row->doings.at[1].blocked);
    assert_string_equal(cat_rules_category(t.v.rules, row->doings.at[1].category)->id, "wait.sync");
    rp_lock_table_release(&table);
    fake_waits_release(&t);
}

/* Waits are claimed by the frame of the system call, which is in no stack, by the leaf, and by the one above it. */
static const char by_call[] = "categories:\n  - {id: wait.lock, name: lock, kind: wait, payers: true}\n  - {id: wait.rest, name: rest, kind: wait}\n"
                              "  - {id: cost.get, name: get, kind: cost}\n  - {id: cost.main, name: main, kind: cost}\n"
                              "rules:\n  - {id: r.leaf, category: wait.lock, symbol: [lock_it, lock_slow]}\n"
                              "  - {id: r.call, category: wait.lock, space: kernel, symbol: \"__*_sys_futex\"}\n"
                              "  - {id: r.rest, category: wait.rest, claims: rest, symbol: \"*\"}\n"
                              "  - {id: r.get, category: cost.get, symbol: get}\n  - {id: r.main, category: cost.main, symbol: main}\n";

static void expect_waiter(const char *stack, const char *waiter, const char *payer, const char *tree_top)
{
    struct fake_waits t = {0};
    struct rp_buf text = {0};
    struct rp_lock_table table;
    struct rp_calltree tree;
    struct rp_err err = {0};
    const struct rp_wait_row *row;

    rp_buf_printf(&text, ".run seconds=2 waits=1\n.thread a/1 wall=2 cpu=1 waiting=1\n.lock 0x4050\n%s 10 wait=100ms thread=a/1 tag=1 syscall=202\n", stack);
    fake_view(&t.v, rp_buf_text(&text), by_call, NULL);
    assert_int_equal(rp_waits_new(t.v.view, false, &t.w, &err), RP_OK);
    row = fake_wait_row(&t, "wait.lock");
    assert_int_equal(row->payers.n, 1);
    assert_string_equal(cat_rules_category(t.v.rules, row->payers.at[0].category)->id, payer);
    assert_int_equal(rp_waits_locks(t.w, &table, &err), RP_OK);
    assert_int_equal(table.rows.n, 1);
    assert_string_equal(rp_profile_text(&t.v.profile, t.v.profile.functions.at[table.rows.at[0].waiter].name), waiter);
    assert_int_equal(rp_calltree_make(t.v.view, &(struct rp_calltree_options){.category = row->category, .waits = t.w}, &tree, &err), RP_OK);
    assert_string_equal(rp_profile_text(&t.v.profile, t.v.profile.functions.at[tree.nodes.at[tree.first_top].function].name), tree_top);
    rp_calltree_release(&tree);
    rp_lock_table_release(&table);
    rp_buf_release(&text);
    fake_waits_release(&t);
}

static void test_the_waiter_is_the_first_above_the_claim(void **state)
{
    (void)state;
    expect_waiter("get;main", "get", "cost.get", "get");                                  /* the call claims it */
    expect_waiter("lock_it;get;main", "get", "cost.get", "get");                          /* the leaf */
    expect_waiter("helper;lock_it;get;main", "get", "cost.get", "get");                   /* the next one */
    expect_waiter("lock_slow;lock_it;get;main", "get", "cost.get", "get");                /* both */
    expect_waiter("libc.so.6!?+0x100;get;main", "get", "cost.get", "get");                /* the call, and no name in the C library */
    expect_waiter("[kernel]!__x64_sys_futex;get;main", "get", "cost.get", "get");         /* the call as the kernel's own frame */
    expect_waiter("[kernel]!__x64_sys_futex;lock_it;get;main", "get", "cost.get", "get");
    expect_waiter("main", "main", "cost.main", "main");
}

/* Whose waits a holder is of is known: of a thread only its own count. */
static void test_holders_are_those_of_the_threads_of_the_view(void **state)
{
    static const char text[] = ".run seconds=2 waits=1\n.thread a/1 wall=2 cpu=1 waiting=1\n.thread b/2 wall=2 cpu=1 waiting=1\n.thread c/3 wall=2 cpu=2\n"
                               ".lock 0x4050\n" FAKE_LOCKED ";app!get;app!main 100 wait=1ms thread=a/1 tag=1\n" FAKE_LOCKED
                               ";app!get;app!main 400 wait=1ms thread=b/2 tag=1\n"
                               "app!work;app!main 60 wait=1ms thread=c/3 holds=1 waiter=a/1\napp!work;app!main 20 wait=1ms thread=b/2 holds=1 waiter=a/1\n"
                               "app!work;app!main 300 wait=1ms thread=c/3 holds=1 waiter=b/2\n";
    struct rp_filter filter = {.thread = "a"};
    struct rp_calltree_options options = {.category = UINT32_MAX, .lock = 1, .holders = true};
    struct rp_lock_table table;
    struct rp_err err;
    struct fake_waits t;

    (void)state;
    fake_waits(&t, text, false, NULL);
    assert_int_equal(rp_waits_locks(t.w, &table, &err), RP_OK);
    fake_close_to(table.rows.at[0].known, 380.0 / 500);
    fake_close_to(table.rows.at[0].holders.at[0].waits, 360);
    fake_close_to(table.rows.at[0].parted, 500);
    rp_lock_table_release(&table);
    fake_expect_tree(&t, options, "380 main\n 380 work\n");
    fake_waits_release(&t);
    fake_waits(&t, text, false, &filter);
    assert_int_equal(rp_waits_locks(t.w, &table, &err), RP_OK);
    fake_close_to(table.rows.at[0].known, 80.0 / 100);
    assert_false(table.rows.at[0].of_all);
    assert_int_equal(table.rows.at[0].holders.n, 2);
    fake_close_to(table.rows.at[0].holders.at[0].waits, 60);
    fake_close_to(table.rows.at[0].doings.at[0].waits, 80);
    rp_lock_table_release(&table);
    fake_expect_tree(&t, options, "80 main\n 80 work\n");
    fake_waits_release(&t);
}

/* An older file does not tell: then nothing is said of how many are known. */
static void test_holders_of_nobody_known_are_of_all_threads(void **state)
{
    struct rp_filter filter = {.thread = "query-2"};
    struct rp_lock_table table;
    struct rp_err err;
    struct fake_waits t;

    (void)state;
    fake_waits(&t, fake_waits_app, false, &filter);
    assert_int_equal(rp_waits_locks(t.w, &table, &err), RP_OK);
    assert_true(table.rows.at[0].of_all);
    fake_close_to(table.rows.at[0].waits, 500);
    fake_close_to(table.rows.at[0].known, 0);
    fake_close_to(table.rows.at[0].parted, 1200);
    fake_close_to(table.rows.at[0].holders.at[0].waits, 800);
    rp_lock_table_release(&table);
    fake_waits_release(&t);
    fake_waits(&t, fake_waits_app, false, NULL);
    assert_int_equal(rp_waits_locks(t.w, &table, &err), RP_OK);
    assert_false(table.rows.at[0].of_all);
    rp_lock_table_release(&table);
    fake_waits_release(&t);
}

/* 40 held, 60 looked at when nobody held it any more, 400 not looked at: only the 40 have parts. */
static void test_what_nobody_held_is_no_holder(void **state)
{
    static const char text[] = ".run seconds=2 waits=1\n.thread a/1 wall=2 cpu=1 waiting=1\n.thread c/3 wall=2 cpu=2\n.lock 0x4050\n" FAKE_LOCKED
                               ";app!get;app!main 500 wait=1ms thread=a/1 tag=1\napp!work;app!main 40 wait=1ms thread=c/3 holds=1 waiter=a/1\n"
                               "app!work 60 wait=1ms thread=c/3 free=1 waiter=a/1\n";
    struct rp_lock_table table;
    const struct rp_lock_row *row;
    struct rp_err err;
    struct fake_waits t;

    (void)state;
    fake_waits(&t, text, false, NULL);
    assert_int_equal(rp_waits_locks(t.w, &table, &err), RP_OK);
    row = &table.rows.at[0];
    fake_close_to(row->held, 40);
    fake_close_to(row->free, 60);
    fake_close_to(row->stacked, 500);
    fake_close_to(row->known, 0.08);
    assert_int_equal(row->holders.n, 1);
    assert_int_equal(row->doings.n, 1);
    fake_close_to(row->doings.at[0].waits, 40);
    rp_lock_table_release(&table);
    fake_waits_release(&t);
}

#define SLEEP "libc.so.6!clock_nanosleep;app!hold;app!main"

/* a and c sleep for 1 s each in the same place; b waits `waits` x 10 ms for the lock of which a was seen to be the holder half as often. Gives the idle seconds. */
static double idle_of_sleepers(unsigned waits, const char *state, double *lock_share)
{
    struct rp_buf text = {0};
    struct rp_lock_table table;
    struct rp_err err;
    struct fake_waits t;
    double idle;

    rp_buf_printf(&text,
                  ".run seconds=4 waits=1\n.thread a/1 wall=2 cpu=1 waiting=1\n.thread b/2 wall=4 cpu=1 waiting=%f\n.thread c/3 wall=1 waiting=1\n"
                  ".lock 0x4050\n[kernel]!hrtimer_nanosleep;" SLEEP " 100 wait=10ms thread=a/1 syscall=230\n[kernel]!hrtimer_nanosleep;" SLEEP
                  " 100 wait=10ms thread=c/3 syscall=230\n" FAKE_LOCKED ";app!get;app!main %u wait=10ms thread=b/2 tag=1\n" SLEEP
                  " %u wait=10ms thread=a/1 holds=1 waiter=b/2 %s\n",
                  waits * 0.01, waits, waits / 2, state);
    fake_waits(&t, rp_buf_text(&text), false, NULL);
    assert_int_equal(rp_waits_locks(t.w, &table, &err), RP_OK);
    idle = t.w->idle_seconds;
    *lock_share = table.rows.at[0].share;
    if (idle < 1.5)
        fake_close_to(fake_wait_row(&t, "wait.sleep")->seconds, 1);
    rp_lock_table_release(&table);
    fake_waits_release(&t);
    rp_buf_release(&text);
    return idle;
}

/* Who sleeps with a lock that others wait for waits for no work; and that c sleeps where a does, or a had the lock once, makes nobody busy. */
static void test_sleeping_with_a_lock_is_not_idle(void **state)
{
    double share;

    (void)state;
    fake_close_to(idle_of_sleepers(100, "state=blocked", &share), 1); /* that of c */
    fake_close_to(share, 1.0 / (1 + 1 + 1 + 1));                      /* a and b ran 1 s each */
    fake_close_to(idle_of_sleepers(60, "state=blocked", &share), 1);
    fake_close_to(idle_of_sleepers(40, "state=blocked", &share), 2);
    fake_close_to(share, 0.4 / (1 + 1 + 0.4));
    fake_close_to(idle_of_sleepers(100, "state=running", &share), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_locks_tell_waiters_and_holders),
        cmocka_unit_test(test_the_waiter_is_the_first_above_the_claim),
        cmocka_unit_test(test_holders_are_those_of_the_threads_of_the_view),
        cmocka_unit_test(test_holders_of_nobody_known_are_of_all_threads),
        cmocka_unit_test(test_what_nobody_held_is_no_holder),
        cmocka_unit_test(test_sleeping_with_a_lock_is_not_idle),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
