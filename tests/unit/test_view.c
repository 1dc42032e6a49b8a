/* SPDX-License-Identifier: MIT */
/* Views of profiles whose numbers can be counted by hand: categories, filters, quality, intervals and drift. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <math.h>

#include "support/chance.h"
#include "support/fake_view.h"
#include "support/view_mixed.h"

static uint64_t samples_of(const struct fake_view *v, const struct rp_category_table *table, const char *id)
{
    return fake_category_row(v, table, id)->samples;
}

static void test_categories_are_exclusive_and_complete(void **state)
{
    struct fake_view v;
    struct rp_category_table t;
    struct rp_err err = {0};
    uint64_t sum = 0;
    double shares = 0;

    (void)state;
    fake_view(&v, view_mixed, view_rules, NULL);
    assert_int_equal(rp_view_categories(v.view, &t, &err), RP_OK);
    assert_int_equal(t.samples, 117);
    assert_int_equal(samples_of(&v, &t, "work"), 55);
    assert_int_equal(samples_of(&v, &t, "lock"), 30);
    assert_int_equal(samples_of(&v, &t, "names"), 10);
    assert_int_equal(samples_of(&v, &t, "kern"), 6);
    assert_int_equal(samples_of(&v, &t, "uncategorized"), 16);
    assert_int_equal(t.uncategorized_truncated, 1);
    for (size_t i = 0; i < t.rows.n; i++) {
        sum += t.rows.at[i].samples;
        shares += t.rows.at[i].share;
        assert_true(t.rows.at[i].low <= t.rows.at[i].share && t.rows.at[i].share <= t.rows.at[i].high);
        if (i + 2 < t.rows.n)
            assert_true(t.rows.at[i].samples >= t.rows.at[i + 1].samples);
    }
    assert_int_equal(sum, t.samples);
    assert_true(fabs(shares - 1) < 1e-12);
    assert_string_equal(cat_rules_category(v.rules, t.rows.at[t.rows.n - 1].category)->id, "uncategorized");
    /* Totals: frames of the category anywhere, the kernel sample counts for its user caller too. */
    assert_int_equal(fake_category_row(&v, &t, "work")->total, 50 + 20 + 10 + 5 + 6);
    assert_int_equal(fake_category_row(&v, &t, "names")->total, 17);
    assert_int_equal(fake_category_row(&v, &t, "lock")->total, 30);
    assert_int_equal(fake_category_row(&v, &t, "work")->inherited, 5);
    assert_int_equal(fake_category_row(&v, &t, "names")->inherited, 0);
    rp_category_table_release(&t);
    fake_view_release(&v);
}

static void test_locks_are_paid_for(void **state)
{
    struct fake_view v;
    struct rp_category_table t;
    struct rp_err err = {0};
    const struct rp_category_row *lock;

    (void)state;
    fake_view(&v, view_mixed, view_rules, NULL);
    assert_int_equal(rp_view_categories(v.view, &t, &err), RP_OK);
    lock = fake_category_row(&v, &t, "lock");
    assert_int_equal(lock->payers.n, 3);
    assert_string_equal(cat_rules_category(v.rules, lock->payers.at[0].category)->id, "work");
    assert_int_equal(lock->payers.at[0].samples, 20);
    assert_string_equal(cat_rules_category(v.rules, lock->payers.at[1].category)->id, "names");
    assert_int_equal(lock->payers.at[1].samples, 7);
    assert_string_equal(cat_rules_category(v.rules, lock->payers.at[2].category)->id, "uncategorized");
    assert_int_equal(lock->payers.at[2].samples, 3);
    assert_string_equal(rp_profile_text(&v.profile, v.profile.functions.at[lock->payers.at[2].function].name), "main");
    assert_int_equal(lock->payers.at[0].function, UINT32_MAX);
    assert_int_equal(fake_category_row(&v, &t, "work")->payers.n, 0);
    rp_category_table_release(&t);
    fake_view_release(&v);
}

static void test_an_empty_view_has_uncategorized(void **state)
{
    struct fake_view v;
    struct rp_category_table t;
    struct rp_group_table g;
    struct rp_quality q;
    struct rp_drift_table d;
    struct rp_filter sleeper = {.thread = "sleeper"};
    struct rp_err err = {0};

    (void)state;
    fake_view(&v, view_mixed, view_rules, &sleeper);
    assert_int_equal(rp_view_categories(v.view, &t, &err), RP_OK);
    assert_int_equal(t.rows.n, 1);
    assert_int_equal(t.rows.at[0].samples, 0);
    assert_true(t.rows.at[0].low == 0 && t.rows.at[0].high == 1 && t.rows.at[0].share == 0);
    rp_category_table_release(&t);
    assert_int_equal(rp_view_groups(v.view, RP_BY_FUNCTION, &g, &err), RP_OK);
    assert_int_equal(g.rows.n, 0);
    rp_group_table_release(&g);
    assert_int_equal(rp_view_quality(v.view, &q, &err), RP_OK);
    assert_int_equal(q.samples, 0);
    assert_int_equal(q.idle_threads, 0); /* it ran for half a second */
    assert_true(q.idle_seconds == 0);
    assert_true(q.off_seconds == 1.5);
    assert_int_equal(rp_view_drift(v.view, &d, &err), RP_OK);
    assert_int_equal(d.rows.n, 0);
    fake_view_release(&v);
}

static void test_quality(void **state)
{
    struct fake_view v;
    struct rp_quality q;
    struct rp_err err = {0};

    (void)state;
    fake_view(&v, view_mixed, view_rules, NULL);
    assert_int_equal(rp_view_quality(v.view, &q, &err), RP_OK);
    assert_int_equal(q.samples, 117);
    assert_int_equal(q.lost, 3);
    assert_int_equal(q.throttled, 1);
    assert_int_equal(q.vanished, 2);
    assert_int_equal(q.truncated, 1);
    assert_int_equal(q.complete, 116);
    assert_int_equal(q.guessed, 5);
    assert_int_equal(q.unnamed, 11);
    assert_int_equal(q.jit_unnamed, 2);
    assert_int_equal(q.threads_seen, 2);
    assert_int_equal(q.idle_threads, 0);
    assert_true(q.idle_seconds == 0);
    assert_true(q.off_seconds == 1.75);
    fake_view_release(&v);
}

/* Many threads, few CPUs, no switch records: most have no sample, and only those that hardly ran nor wanted to are idle. */
static void test_a_thread_that_ran_is_not_idle(void **state)
{
    static const char crowd[] = ".run seconds=10 hz=100 waits=0\n"
                                ".thread seen/1 wall=10 cpu=0.1 delay=9.9\n"
                                ".thread unseen/2 wall=10 cpu=0.005 delay=9.9\n"
                                ".thread waiting-for-a-cpu/3 wall=10 cpu=0 delay=4\n"
                                ".thread asleep/4 wall=10 cpu=0\n"
                                ".thread woke-once/5 wall=10 cpu=0.002 delay=0.003\n"
                                "f;main 10 thread=seen/1\n";
    struct fake_view v;
    struct rp_quality q;
    struct rp_err err = {0};

    (void)state;
    fake_view(&v, crowd, view_rules, NULL);
    assert_int_equal(rp_view_quality(v.view, &q, &err), RP_OK);
    assert_int_equal(q.threads_seen, 1);
    assert_int_equal(q.idle_threads, 2);
    assert_true(fabs(q.idle_seconds - (10 + 9.998)) < 1e-9);
    assert_true(fabs(q.off_seconds - (0.095 + 6)) < 1e-9);
    fake_view_release(&v);
}

/* A thread goes on after an execve under its number: it is not idle for having no sample under the program before. Another thread's number is not its. */
static void test_a_thread_sampled_after_an_exec_is_not_idle(void **state)
{
    static const char execs[] = ".run seconds=10 hz=100 waits=0\n"
                                ".thread first/7 pid=7 wall=1 cpu=0\n"
                                ".thread gone/8 pid=7 wall=1 cpu=0\n"
                                ".thread stranger/7 pid=9 wall=1 cpu=0\n"
                                ".process 7 comm=second command=./second generation=1\n"
                                "f;main 10 pid=7 thread=second/7\n"
                                ".process 7 comm=third command=./third generation=2\n"
                                ".thread third/7 pid=7 wall=1 cpu=0\n";
    struct fake_view v;
    struct rp_quality q;
    struct rp_err err = {0};

    (void)state;
    fake_view(&v, execs, view_rules, NULL);
    assert_int_equal(rp_view_quality(v.view, &q, &err), RP_OK);
    assert_int_equal(q.threads_seen, 1);
    assert_int_equal(q.idle_threads, 2);
    fake_view_release(&v);
}

/* What launched the program is of no use to who asks for one of its threads. */
static void test_threads_before_an_exec_are_not_offered(void **state)
{
    static const char execs[] = ".thread launcher/7 pid=7 wall=1 cpu=0\n"
                                ".process 7 comm=app command=./app generation=1\n"
                                ".thread worker/8 pid=7 wall=1 cpu=1\n"
                                "f;main 10 pid=7 thread=app/7\n";
    struct rp_filter filter = {.thread = "nobody"}, before = {.thread = "launcher"};
    struct fake_view v;
    struct rp_view *view = NULL;
    struct rp_err err = {0};

    (void)state;
    fake_view(&v, execs, view_rules, NULL);
    assert_int_equal(rp_view_new(&v.profile, v.rules, &filter, &view, &err), RP_NOTFOUND);
    assert_string_equal(err.text, "no thread has the name or tid nobody; there are worker (8), app (7)");
    assert_int_equal(rp_view_new(&v.profile, v.rules, &before, &view, &err), RP_OK); /* but it is there */
    rp_view_free(view);
    fake_view_release(&v);
}

static void test_thread_filter(void **state)
{
    struct fake_view v;
    struct rp_quality q;
    struct rp_filter filter = {.thread = "worker"};
    struct rp_err err = {0};
    struct rp_view *none = NULL;

    (void)state;
    fake_view(&v, view_mixed, view_rules, &filter);
    assert_int_equal(rp_view_quality(v.view, &q, &err), RP_OK);
    assert_int_equal(q.samples, 5);
    assert_int_equal(q.threads_seen, 1);
    filter.thread = "1234";
    fake_view_again(&v, &filter);
    assert_int_equal(rp_view_quality(v.view, &q, &err), RP_OK);
    assert_int_equal(q.samples, 112);
    filter.thread = "Main";
    assert_int_equal(rp_view_new(&v.profile, v.rules, &filter, &none, &err), RP_NOTFOUND);
    assert_string_equal(err.text, "no thread has the name or tid Main; there are sleeper (77), main (1234), worker (99)");
    assert_null(none);
    fake_view_release(&v);
}

static void test_no_kernel_asks_the_user_frames(void **state)
{
    struct fake_view v;
    struct rp_category_table t;
    struct rp_group_table g;
    struct rp_filter filter = {.no_kernel = true};
    struct rp_err err = {0};

    (void)state;
    fake_view(&v, view_mixed, view_rules, &filter);
    assert_int_equal(rp_view_categories(v.view, &t, &err), RP_OK);
    assert_int_equal(t.samples, 117);
    assert_int_equal(samples_of(&v, &t, "work"), 61);
    rp_category_table_release(&t);
    assert_int_equal(rp_view_groups(v.view, RP_BY_MODULE, &g, &err), RP_OK);
    for (size_t i = 0; i < g.rows.n; i++)
        assert_string_not_equal(rp_profile_text(&v.profile, g.rows.at[i].key), "[kernel]");
    rp_group_table_release(&g);
    fake_view_release(&v);
}

static void test_aliases_and_decorations_are_tried(void **state)
{
    struct fake_view v;
    struct rp_category_table t;
    struct rp_err err = {0};

    (void)state;
    fake_view(&v,
              ".symbol __GI_foo alias=mutex_lock@@GLIBC_2.2.5\n"
              "__GI_foo;main 1\n"
              "libc.so.6!mutex_unlock [local];main 2\n"
              "mutex_lock@plt;main 4\n"
              "mutex_lock.constprop.0;main 8\n"
              "other;main 16\n",
              view_rules, NULL);
    assert_int_equal(rp_view_categories(v.view, &t, &err), RP_OK);
    assert_int_equal(samples_of(&v, &t, "lock"), 15);
    assert_int_equal(samples_of(&v, &t, "uncategorized"), 16);
    rp_category_table_release(&t);
    fake_view_release(&v);
}

static void test_blocked_counts_are_no_cpu_time(void **state)
{
    struct fake_view v;
    struct rp_category_table t;
    struct rp_err err = {0};

    (void)state;
    fake_view(&v, "step;main 3\nstep;main 900 state=blocked\n", view_rules, NULL);
    assert_int_equal(rp_view_categories(v.view, &t, &err), RP_OK);
    assert_int_equal(t.samples, 3);
    rp_category_table_release(&t);
    fake_view_release(&v);
}

static void test_a_view_changes_nothing(void **state)
{
    struct fake_view v;
    struct rp_profile copy;
    struct rp_buf why = {0};

    (void)state;
    fake_view(&v, view_mixed, view_rules, NULL);
    fake_profile(&copy, view_mixed);
    assert_true(fake_profile_same(&v.profile, &copy, &why));
    rp_profile_release(&copy);
    fake_view_release(&v);
}

/* The interval that is printed: 12 blocks of 10 samples, alternately 4 and 0 hits. By hand: p = .2, n p (1-p) = 19.2, sum = 12 x 4 = 48, G/(G-1) = 12/11,
 * t_{.975,11} = 2.20098516009; pairs would be six groups, too few. */
static void test_interval_takes_the_blocks_in(void **state)
{
    struct rp_buf text = {0};
    struct fake_view v;
    struct rp_category_table t;
    struct rp_err err = {0};
    const struct rp_category_row *row;
    double z = 1.95996398454, deff = pow(2.20098516009 / z, 2) * 12 / 11 * 48 / 19.2, n = 120 / deff, p = .2;

    (void)state;
    for (int b = 0; b < 12; b++)
        rp_buf_printf(&text, "step;main %d block=%d\nother;main %d block=%d\n", b % 2 ? 0 : 4, b, b % 2 ? 10 : 6, b);
    fake_view(&v, rp_buf_text(&text), view_rules, NULL);
    assert_int_equal(rp_view_categories(v.view, &t, &err), RP_OK);
    row = fake_category_row(&v, &t, "work");
    assert_int_equal(row->samples, 24);
    assert_true(fabs(row->deff - deff) < 1e-9 * deff);
    assert_true(fabs(row->low - (p + z * z / (2 * n) - z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))) / (1 + z * z / n)) < 1e-9);
    rp_category_table_release(&t);
    fake_view_release(&v);
    rp_buf_release(&text);
}

static uint64_t chance;

/* 100 blocks of 20 samples, the share of work going from `first` to `second` half way. */
static size_t drifts(double first, double second)
{
    struct rp_buf text = {0};
    struct fake_view v;
    struct rp_drift_table d;
    struct rp_err err = {0};
    size_t n;

    for (int b = 0; b < 100; b++) {
        int work = 0, names = 0;

        for (int i = 0; i < 20; i++) {
            double u = chance_uniform(&chance);

            work += u < (b < 50 ? first : second);
            names += u > 0.9;
        }
        rp_buf_printf(&text, "step;main %d block=%d\nname_a;main %d block=%d\nx;main %d block=%d\n", work, b, names, b, 20 - work - names, b);
    }
    fake_view(&v, rp_buf_text(&text), view_rules, NULL);
    assert_int_equal(rp_view_drift(v.view, &d, &err), RP_OK);
    for (size_t i = 0; i < d.rows.n; i++)
        assert_true(d.rows.at[i].p < 0.05);
    n = d.rows.n;
    rp_vec_release(&d.rows);
    fake_view_release(&v);
    rp_buf_release(&text);
    return n;
}

static void test_drift(void **state)
{
    unsigned wrong = 0;

    (void)state;
    chance = 42;
    assert_true(drifts(0.2, 0.4) >= 1);
    assert_true(drifts(0.4, 0.2) >= 1);
    for (int i = 0; i < 200; i++)
        wrong += drifts(0.3, 0.3) > 0;
    print_message("%u of 200 steady profiles are said to drift\n", wrong);
    assert_true(wrong <= 10); /* 5 % */
}

/* A profile as large as ten seconds of a real one. */
static void big_profile(struct rp_buf *text)
{
    chance = 1;
    for (int i = 0; i < 6000; i++) {
        rp_buf_printf(text, "leaf_%d;", i % 700);
        for (int d = 0; d < 34; d++)
            rp_buf_printf(text, "v8::internal::frame_%d_%u(v8::Isolate*, int);", d, (unsigned)(chance_uniform(&chance) * 60));
        rp_buf_printf(text, "main 2 block=%d\n", i % 500);
    }
}

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void test_looking_again_is_quick(void **state)
{
    struct rp_buf text = {0};
    struct fake_view v;
    struct rp_category_table t;
    struct rp_group_table g;
    struct rp_err err = {0};
    double start;

    (void)state;
    big_profile(&text);
    fake_view(&v, rp_buf_text(&text), NULL, NULL);
    start = cpu_seconds();
    fake_view_again(&v, NULL);
    print_message("%zu functions, %zu nodes: view %.1f ms, ", v.profile.functions.n, v.profile.nodes.n, 1e3 * (cpu_seconds() - start));
    start = cpu_seconds();
    assert_int_equal(rp_view_categories(v.view, &t, &err), RP_OK);
    print_message("categories %.1f ms, ", 1e3 * (cpu_seconds() - start));
    start = cpu_seconds();
    assert_int_equal(rp_view_groups(v.view, RP_BY_FUNCTION, &g, &err), RP_OK);
    print_message("functions %.1f ms\n", 1e3 * (cpu_seconds() - start));
    rp_category_table_release(&t);
    rp_group_table_release(&g);
    fake_view_release(&v);
    rp_buf_release(&text);
}

static enum rp_status all_tables(const struct rp_profile *p, const struct cat_rules *r, struct rp_err *err)
{
    struct rp_filter filter = {0};
    struct rp_view *view = NULL;
    struct rp_category_table categories = {0};
    struct rp_group_table groups = {0};
    struct rp_drift_table drift = {0};
    struct rp_unclaimed_table unclaimed = {0};
    struct rp_nameless_table nameless = {0};
    struct rp_quality quality;
    enum rp_status status = rp_view_new(p, r, &filter, &view, err);

    if (status == RP_OK)
        status = rp_view_quality(view, &quality, err);
    if (status == RP_OK)
        status = rp_view_categories(view, &categories, err);
    for (int by = RP_BY_CATEGORY; by <= RP_BY_THREAD && status == RP_OK; by++) {
        status = rp_view_groups(view, (enum rp_by)by, &groups, err);
        rp_group_table_release(&groups);
    }
    if (status == RP_OK)
        status = rp_view_drift(view, &drift, err);
    if (status == RP_OK)
        status = rp_view_unclaimed(view, &unclaimed, err);
    if (status == RP_OK)
        status = rp_view_nameless(view, &nameless, err);
    rp_vec_release(&drift.rows);
    rp_vec_release(&unclaimed.rows);
    rp_vec_release(&nameless.rows);
    rp_category_table_release(&categories);
    rp_view_free(view);
    return status;
}

static void test_every_allocation_may_fail(void **state)
{
    struct rp_buf text = {0};
    struct rp_profile p;
    struct cat_rules *r = fake_rules(view_rules);
    struct rp_err err = {0};
    enum rp_status status;
    uint64_t made;

    (void)state;
    rp_buf_puts(&text, view_mixed);
    for (int b = 0; b < 40; b++)
        rp_buf_printf(&text, "step;main %d block=%d\n", b < 20 ? 1 : 20, b);
    fake_profile(&p, rp_buf_text(&text));
    rp_alloc_fail_at(0);
    assert_int_equal(all_tables(&p, r, &err), RP_OK);
    made = rp_alloc_fail_at(0);
    assert_true(made > 50);
    for (uint64_t n = 1; n <= made; n++) {
        rp_alloc_fail_at(n);
        err = (struct rp_err){0};
        status = all_tables(&p, r, &err);
        assert_true(status == RP_NOMEM || status == RP_OK); /* the demangler falls back to the raw name */
        assert_int_equal(err.status, status);
    }
    rp_alloc_fail_at(0);
    cat_rules_free(r);
    rp_profile_release(&p);
    rp_buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_categories_are_exclusive_and_complete),
        cmocka_unit_test(test_locks_are_paid_for),
        cmocka_unit_test(test_an_empty_view_has_uncategorized),
        cmocka_unit_test(test_quality),
        cmocka_unit_test(test_a_thread_that_ran_is_not_idle),
        cmocka_unit_test(test_a_thread_sampled_after_an_exec_is_not_idle),
        cmocka_unit_test(test_threads_before_an_exec_are_not_offered),
        cmocka_unit_test(test_thread_filter),
        cmocka_unit_test(test_no_kernel_asks_the_user_frames),
        cmocka_unit_test(test_aliases_and_decorations_are_tried),
        cmocka_unit_test(test_blocked_counts_are_no_cpu_time),
        cmocka_unit_test(test_a_view_changes_nothing),
        cmocka_unit_test(test_interval_takes_the_blocks_in),
        cmocka_unit_test(test_drift),
        cmocka_unit_test(test_looking_again_is_quick),
        cmocka_unit_test(test_every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
