/* SPDX-License-Identifier: MIT */
/* Waiting against hand-counted profiles: sums, scaling by duration class, intervals, percentiles, idle groups, threads, locks, one function. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "analyze/calltree.h"
#include "analyze/view_waits.h"
#include "base/alloc.h"
#include "support/fake_waits.h"

static void test_rows_hold_what_was_written(void **state)
{
    struct fake_waits t;
    const struct rp_wait_row *row;

    (void)state;
    fake_waits(&t, fake_waits_app, false, NULL);
    row = fake_wait_row(&t, "wait.lock");
    fake_close_to(row->waits, 1500);
    fake_close_to(row->seconds, 3);
    fake_close_to(row->half, 0);
    fake_close_to(row->mean_s, 0.002);
    fake_close_to(row->max_s, 0.002);
    fake_close_to(row->share, 3.0 / (6 + 6 + 1 + 1 + 3 + 3));
    row = fake_wait_row(&t, "wait.sync");
    fake_close_to(row->seconds, 3);
    fake_close_to(row->waits, 30);
    fake_close_to(row->p99_s, 0.1);
    assert_int_equal(t.w->rows.n, 2);
    assert_false(t.w->thinned);
    fake_waits_release(&t);
}

/* cpu + preempted + waiting + idle = wall, for each thread and for all. */
static void test_the_parts_of_a_thread_sum_to_wall(void **state)
{
    struct fake_waits t;
    struct rp_thread_table table;
    struct rp_err err;

    (void)state;
    fake_waits(&t, fake_waits_app, false, NULL);
    assert_int_equal(rp_waits_threads(t.w, &table, &err), RP_OK);
    assert_int_equal(table.rows.n, 4);
    for (size_t i = 0; i < table.rows.n; i++) {
        const struct rp_thread_row *r = &table.rows.at[i];

        fake_close_to(r->cpu + r->preempted + r->waiting + r->idle, r->wall);
    }
    fake_close_to(table.rows.at[0].woken, 0.5); /* query-1: delay 1.5, preempted 1 */
    fake_close_to(table.rows.at[1].woken, 0);   /* preempted more than the delay: never negative */
    fake_close_to(t.w->cpu + t.w->preempted + t.w->waiting + t.w->idle_seconds, t.w->wall);
    fake_close_to(t.w->idle_seconds, 20);
    assert_int_equal(t.w->idle_threads, 2);
    rp_thread_table_release(&table);
    fake_waits_release(&t);
}

/* A thread that idles and is slow to get a CPU: how much of the delay was after waits that were not idle is not known, but it is a part of them. */
static void test_waiting_for_a_cpu_is_a_part_of_waiting(void **state)
{
    struct fake_waits t;
    struct rp_thread_table table;
    struct rp_err err;
    double woken = 0;

    (void)state;
    fake_waits(&t, ".run seconds=10 waits=1\n.thread pool-1/1 wall=10 cpu=1 waiting=9 delay=4\n.thread b/2 wall=10 cpu=1 waiting=9 delay=4\n" FAKE_POOL
                   " 8 wait=1s thread=pool-1/1\n" FAKE_LOCKED ";app!get 10 wait=100ms thread=pool-1/1\n" FAKE_LOCKED ";app!get 9 wait=1s thread=b/2\n",
               false, NULL);
    assert_int_equal(rp_waits_threads(t.w, &table, &err), RP_OK);
    assert_int_equal(table.rows.n, 2);
    for (size_t i = 0; i < table.rows.n; i++) {
        assert_true(table.rows.at[i].woken <= table.rows.at[i].waiting);
        woken += table.rows.at[i].woken;
    }
    fake_close_to(woken, 1 + 4);
    rp_thread_table_release(&table);
    fake_waits_release(&t);
}

/* What of a thread's watch is in none of its times: records were lost there. It is in no share. */
static void test_time_that_no_record_tells_of_is_unknown(void **state)
{
    static const char gap[] = ".run seconds=10 hz=100 waits=1 lost=5\n"
                              ".thread gap/1 wall=10 cpu=4 preempted=1 waiting=2\n"
                              ".thread whole/2 wall=10 cpu=4 preempted=1 waiting=5\n"
                              "f;main 10 thread=gap/1\n";
    struct fake_waits t;
    struct rp_thread_table table;
    struct rp_err err;

    (void)state;
    fake_waits(&t, gap, false, NULL);
    assert_int_equal(rp_waits_threads(t.w, &table, &err), RP_OK);
    assert_int_equal(table.rows.n, 2);
    fake_close_to(table.rows.at[0].unknown, 0); /* whole/2 is first: it did more */
    fake_close_to(table.rows.at[1].unknown, 3);
    fake_close_to(t.w->unknown, 3);
    fake_close_to(t.w->busy, 17);
    assert_false(rp_waits_exact(rp_view_profile(t.w->view)));
    rp_thread_table_release(&table);
    fake_waits_release(&t);
}

static void test_idle_is_grouped_by_name_and_rule(void **state)
{
    struct fake_waits t;

    (void)state;
    fake_waits(&t, fake_waits_app, false, NULL);
    assert_int_equal(t.w->idle.n, 1);
    assert_string_equal(t.w->idle.at[0].name, "libuv-worker");
    assert_string_equal(cat_rules_rule(t.v.rules, t.w->idle.at[0].rule)->id, "idle.libuv");
    assert_int_equal(t.w->idle.at[0].threads, 2);
    fake_close_to(t.w->idle.at[0].seconds, 20);
    fake_close_to(t.w->idle.at[0].waits, 11);
    fake_waits_release(&t);
    fake_waits(&t, fake_waits_app, true, NULL);
    assert_int_equal(t.w->idle.n, 0);
    fake_close_to(fake_wait_row(&t, "idle.pool")->seconds, 20);
    fake_close_to(t.w->busy, 40);
    fake_waits_release(&t);
}

static void test_a_group_of_one_name_keeps_its_number(void **state)
{
    static const char profile[] = ".process 7 comm=python3 command=python3\n"
                                  ".thread python3/7 pid=7 wall=10 waiting=10\n.thread python3/8 pid=7 wall=10 waiting=10\n"
                                  ".thread worker-1/9 pid=7 wall=5 waiting=5\n.thread worker-2/10 pid=7 wall=4 waiting=4\n"
                                  ".run seconds=10 hz=1000 waits=1\n"
                                  "libc.so.6!epoll_wait;app!uv__io_poll;app!main 1 wait=10s thread=python3/7 pid=7 syscall=232\n"
                                  "libc.so.6!epoll_wait;app!uv__io_poll;app!main 1 wait=10s thread=python3/8 pid=7 syscall=232\n"
                                  "libc.so.6!epoll_wait;app!uv__io_poll;app!main 1 wait=5s thread=worker-1/9 pid=7 syscall=232\n"
                                  "libc.so.6!epoll_wait;app!uv__io_poll;app!main 1 wait=4s thread=worker-2/10 pid=7 syscall=232\n";
    struct fake_waits t;

    (void)state;
    fake_waits(&t, profile, false, NULL);
    assert_int_equal(t.w->idle.n, 2);
    assert_string_equal(t.w->idle.at[0].name, "python3");
    assert_int_equal(t.w->idle.at[0].threads, 2);
    assert_string_equal(t.w->idle.at[1].name, "worker-*");
    assert_int_equal(t.w->idle.at[1].threads, 2);
    fake_waits_release(&t);
}

static void test_thread_names_lose_their_numbers(void **state)
{
    static const char *const names[][2] = {{"libuv-worker", "libuv-worker"}, {"worker-12", "worker-*"}, {"V8Worker", "V8Worker"},
                                           {"pool/3:17", "pool/*:*"},        {"7", "*"},                {"", ""}};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct rp_buf b = {0};

        rp_thread_group_name(names[i][0], &b);
        assert_string_equal(rp_buf_text(&b), names[i][1]);
        rp_buf_release(&b);
    }
}

/* Ten long syncs, all seen, beside 50 000 short lock waits of which one in a hundred was: neither loses its time. */
static void test_the_filter_restricts_waits(void **state)
{
    struct fake_waits t;
    struct rp_filter filter = {.thread = "query-1"};

    (void)state;
    fake_waits(&t, fake_waits_app, false, &filter);
    fake_close_to(fake_wait_row(&t, "wait.lock")->waits, 1000);
    fake_close_to(t.w->wall, 10);
    assert_int_equal(t.w->idle.n, 0);
    fake_waits_release(&t);
}

/* Case A06: the leaf's name decides nothing. */
static void test_idle_is_judged_by_place_and_state(void **state)
{
    struct fake_waits t;

    (void)state;
    fake_waits(&t,
               ".run seconds=2 waits=1\n.thread p-1/1 wall=2 waiting=2\n.thread q-1/2 wall=2 cpu=0.5 waiting=1.5\n.thread s/3 wall=2 waiting=2\n"
               "libc.so.6!pthread_cond_wait;app!pool_idle;app!pool_main 4 wait=500ms thread=p-1/1 syscall=202\n" FAKE_LOCKED
               ";app!query;app!main 50 wait=30ms thread=q-1/2 syscall=202\n"
               "libc.so.6!pthread_cond_wait;app!service;app!main 1 wait=2s thread=s/3 syscall=202\n",
               false, NULL);
    assert_int_equal(t.w->rows.n, 1);
    fake_close_to(fake_wait_row(&t, "wait.lock")->seconds, 1.5);
    assert_int_equal(t.w->idle.n, 2);
    assert_string_equal(cat_rules_rule(t.v.rules, t.w->idle.at[0].rule)->id, "idle.pool");
    assert_string_equal(cat_rules_rule(t.v.rules, t.w->idle.at[1].rule)->id, "idle.never-ran");
    fake_waits_release(&t);
}

/* Frames without names: the system call stands for them; kernel frames stand for themselves. */
static void test_a_system_call_tells_what_nameless_frames_do_not(void **state)
{
    struct fake_waits t;

    (void)state;
    fake_waits(&t,
               ".run seconds=2 waits=1\n.thread a/1 wall=10 cpu=1 waiting=9\n"
               "app!?+0x100;app!?+0x200 1 wait=1s thread=a/1 syscall=232\n"  /* epoll_wait */
               "app!?+0x100;app!?+0x200 1 wait=2s thread=a/1 syscall=75\n"   /* fdatasync */
               "app!?+0x100;app!?+0x200 1 wait=3s thread=a/1 syscall=202\n"  /* futex */
               "[kernel]!futex_wait;[kernel]!__x64_sys_futex;libc.so.6!pthread_mutex_lock;app!?+0x200 1 wait=1500ms thread=a/1 syscall=75\n"
               "app!?+0x300;app!?+0x200 1 wait=1500ms thread=a/1 syscall=9999\n",
               false, NULL);
    assert_int_equal(t.w->idle.n, 1);
    assert_string_equal(cat_rules_rule(t.v.rules, t.w->idle.at[0].rule)->id, "idle.call-loop");
    fake_close_to(fake_wait_row(&t, "wait.sync")->seconds, 2);
    fake_close_to(fake_wait_row(&t, "wait.other")->seconds, 4.5);
    fake_close_to(fake_wait_row(&t, "wait.lock")->seconds, 1.5);
    fake_waits_release(&t);
}

/* CPU time that waits of n threads take, each with a stack in one class and none in the next, which all the others speak for. */
static double seconds_of_threads(uint32_t n)
{
    struct fake_view v;
    struct rp_waits *w = NULL;
    struct rp_err err = {0};
    struct timespec begin, end;

    fake_view(&v, ".run seconds=2 waits=1\n.thread w/1 wall=2 waiting=2\n" FAKE_LOCKED ";app!get;app!main 1 wait=100ms thread=w/1\n", NULL, NULL);
    for (uint32_t i = 1; i < n; i++) {
        struct rp_profile_thread *row = rp_vec_add(&v.profile.threads);

        assert_non_null(row);
        *row = v.profile.threads.at[0];
        row->tid = 1 + i;
        assert_int_equal(rp_profile_wait(&v.profile, i, 100000000, v.profile.waits.at[0].node, 0, -1, &err), RP_OK);
        assert_int_equal(rp_profile_wait(&v.profile, i, 120000000, 0, 0, -1, &err), RP_OK);
    }
    fake_view_again(&v, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    assert_int_equal(rp_waits_new(v.view, true, &w, &err), RP_OK);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    assert_int_equal(w->rows.n, 2); /* what the threads' own times hold beyond these waits is the other */
    fake_close_to(w->rows.at[0].waits, 2.0 * n - 1);
    fake_close_to(w->rows.at[0].seconds, 0.1 * n + 0.12 * (n - 1));
    rp_waits_free(w);
    fake_view_release(&v);
    return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
}

/* Eight times as many take about eight times as long, where each against each would take sixty-four times. */
static void test_a_thousand_threads_of_one_name_take_no_square(void **state)
{
    double few = 1e9, many = 1e9;

    (void)state;
    for (int i = 0; i < 3; i++) {
        double a = seconds_of_threads(500), b = seconds_of_threads(4000);

        few = a < few ? a : few;
        many = b < many ? b : many;
    }
    if (many > 24 * few)
        fail_msg("%.6f s and %.6f s", few, many);
}

static void test_trees_of_waits_are_weighed_by_time(void **state)
{
    struct fake_waits t;
    struct rp_calltree_options options = {.category = UINT32_MAX, .lock = 1};

    (void)state;
    fake_waits(&t, fake_waits_app, false, NULL);
    options.category = cat_rules_find_category(t.v.rules, "wait.lock");
    fake_expect_tree(&t, options, "2000 cache_get\n 2000 pthread_mutex_lock\n  2000 __lll_lock_wait\n1000 cache_put\n 1000 pthread_mutex_lock\n  1000 __lll_lock_wait\n");
    options.category = UINT32_MAX;
    options.holders = true;
    options.min_samples = 500000000;
    fake_expect_tree(&t, options, "2400 main\n 1600 cache_put\n  1600 work\n 600 cache_get\n  600 work\n");
    fake_waits_release(&t);
}

static void test_one_function_counts_once_per_stack(void **state)
{
    struct fake_waits t;
    struct rp_function_view f;
    struct rp_err err = {0};

    (void)state;
    fake_waits(&t, ".run seconds=2 waits=1\n.thread a/1 wall=2 cpu=1 waiting=1\n"
                   "app!rec;app!rec;app!main 30 thread=a/1\napp!leaf;app!rec;app!main 50 thread=a/1\napp!other;app!main 20 thread=a/1\n" FAKE_LOCKED
                   ";app!rec;app!rec;app!main 10 wait=60ms thread=a/1\n" FAKE_LOCKED ";app!other;app!main 10 wait=40ms thread=a/1\n",
               false, NULL);
    assert_int_equal(rp_view_function(t.v.view, t.w, "rec", &f, &err), RP_OK);
    assert_int_equal(f.self, 30);
    assert_int_equal(f.total, 80);
    assert_true(f.total_low < 0.8 && 0.8 < f.total_high);
    fake_close_to(f.seconds, 0.6);
    fake_close_to(f.waits, 10);
    fake_close_to(f.share, 0.3);
    fake_expect_tree(&t, (struct rp_calltree_options){.category = UINT32_MAX, .functions = f.functions, .callers = true}, "600 rec\n 600 main\n");
    rp_function_view_release(&f);
    assert_int_equal(rp_view_function(t.v.view, NULL, "r*c", &f, &err), RP_OK);
    assert_int_equal(f.total, 80);
    rp_function_view_release(&f);
    assert_int_equal(rp_view_function(t.v.view, NULL, "ea", &f, &err), RP_NOTFOUND);
    assert_non_null(strstr(err.text, "leaf"));
    fake_waits_release(&t);
}

/* The invisible kernel, counted under a mark, is a row of its own and in the denominator. */
static void test_hidden_kernel_time_has_a_row(void **state)
{
    struct fake_waits t;
    struct rp_category_table table;
    struct rp_err err;

    (void)state;
    fake_waits(&t, ".run seconds=2 waits=1\n.thread a/1 wall=2 cpu=1 waiting=1\nlibsqlite3.so.0!sqlite3VdbeExec;app!main 600 thread=a/1\n"
                   "[kernel: not visible at this permission] 400 thread=a/1\n",
               false, NULL);
    assert_int_equal(rp_view_categories(t.v.view, &table, &err), RP_OK);
    fake_close_to(fake_category_row(&t.v, &table, "kernel.hidden")->share, 0.4);
    fake_close_to(fake_category_row(&t.v, &table, "sqlite.vdbe")->share, 0.6);
    rp_category_table_release(&table);
    fake_waits_release(&t);
}

/* Each allocation fails once: the error is told, nothing leaks (the sanitizers see to that), the next try works. */
static void test_want_of_memory_is_told(void **state)
{
    struct fake_waits t;
    uint64_t n = 0;
    enum rp_status status = RP_NOMEM;

    (void)state;
    fake_waits(&t, fake_waits_app, false, NULL);
    for (n = 1; status == RP_NOMEM && n < 10000; n++) {
        struct rp_waits *w = NULL;
        struct rp_lock_table locks = {0};
        struct rp_thread_table threads = {0};
        struct rp_function_view f = {0};
        struct rp_calltree tree = {0};
        struct rp_calltree_options options = {.category = UINT32_MAX, .lock = 1, .holders = true};
        struct rp_err err;

        rp_alloc_fail_at(n);
        status = rp_waits_new(t.v.view, false, &w, &err);
        if (!status)
            status = rp_waits_locks(w, &locks, &err);
        if (!status)
            status = rp_waits_threads(w, &threads, &err);
        if (!status)
            status = rp_view_function(t.v.view, w, "cache_get", &f, &err);
        if (!status)
            status = rp_calltree_make(t.v.view, &options, &tree, &err);
        options = (struct rp_calltree_options){.category = UINT32_MAX, .waits = w};
        rp_calltree_release(&tree);
        if (!status)
            status = rp_calltree_make(t.v.view, &options, &tree, &err);
        rp_alloc_fail_at(0);
        rp_calltree_release(&tree);
        rp_function_view_release(&f);
        rp_thread_table_release(&threads);
        rp_lock_table_release(&locks);
        rp_waits_free(w);
    }
    assert_int_equal(status, RP_OK);
    assert_true(n > 30);
    fake_waits_release(&t);
}

static void test_no_waits_is_no_error(void **state)
{
    struct fake_waits t;

    (void)state;
    fake_waits(&t, ".run seconds=2\napp!work;app!main 60\n", false, NULL);
    assert_int_equal(t.w->rows.n, 0);
    assert_false(rp_waits_measured(&t.v.profile));
    fake_close_to(t.w->waiting, 0);
    fake_waits_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_hold_what_was_written),
        cmocka_unit_test(test_the_parts_of_a_thread_sum_to_wall),
        cmocka_unit_test(test_waiting_for_a_cpu_is_a_part_of_waiting),
        cmocka_unit_test(test_time_that_no_record_tells_of_is_unknown),
        cmocka_unit_test(test_idle_is_grouped_by_name_and_rule),
        cmocka_unit_test(test_a_group_of_one_name_keeps_its_number),
        cmocka_unit_test(test_thread_names_lose_their_numbers),
        cmocka_unit_test(test_the_filter_restricts_waits),
        cmocka_unit_test(test_idle_is_judged_by_place_and_state),
        cmocka_unit_test(test_a_system_call_tells_what_nameless_frames_do_not),
        cmocka_unit_test(test_a_thousand_threads_of_one_name_take_no_square),
        cmocka_unit_test(test_trees_of_waits_are_weighed_by_time),
        cmocka_unit_test(test_one_function_counts_once_per_stack),
        cmocka_unit_test(test_hidden_kernel_time_has_a_row),
        cmocka_unit_test(test_want_of_memory_is_told),
        cmocka_unit_test(test_no_waits_is_no_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
