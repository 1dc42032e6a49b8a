/* SPDX-License-Identifier: MIT */
/* What stacks of some waits say of all: times scaled by class of duration, threads that speak for others, intervals, percentiles. Chance is seeded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analyze/view_waits.h"
#include "support/chance.h"
#include "support/fake_waits.h"

static void test_thinned_stacks_keep_their_time_by_class(void **state)
{
    struct fake_waits t;
    const struct rp_wait_row *lock, *sync;

    (void)state;
    fake_waits(&t,
               ".run seconds=10 waits=1\n.thread a/1 wall=10 cpu=4 waiting=6\n" FAKE_LOCKED ";app!get;app!main 400 wait=100us thread=a/1\n"
               "libc.so.6!recv;app!ask;app!main 100 wait=100us thread=a/1\n" FAKE_SYNC " 10 wait=100ms thread=a/1\n.waits a/1 n=49500 each=100us\n",
               false, NULL);
    lock = fake_wait_row(&t, "wait.lock");
    sync = fake_wait_row(&t, "wait.sync");
    fake_close_to(sync->seconds, 1);
    /* All of its class were seen; of the short ones none was, but not all of those were seen. */
    assert_true(fabs(sync->half - 1.96 * 5 * sqrt(0.5 / 501 * (1 - 0.5 / 501) / 501 * 0.99)) < 0.0001);
    fake_close_to(lock->seconds, 4);
    fake_close_to(lock->waits, 40000);
    fake_close_to(fake_wait_row(&t, "wait.pipe")->seconds, 1);
    /* 5 s split by 400 of 500: a binomial share. */
    assert_true(fabs(lock->half - 1.96 * 5 * sqrt(0.8 * 0.2 / 500)) < 0.01);
    assert_true(t.w->thinned);
    fake_close_to(t.w->waiting, 6);
    fake_waits_release(&t);
}

static void test_a_class_without_a_stack_is_told_apart(void **state)
{
    struct fake_waits t;

    (void)state;
    fake_waits(&t, ".run seconds=1 waits=1\n.thread a/1 wall=1 waiting=0.5\n.thread b/2 wall=1 waiting=0.1\n" FAKE_LOCKED
                   ";app!get 4 wait=100ms thread=a/1\n.waits a/1 n=100 each=1ms\n.waits b/2 n=1 each=100ms\n",
               false, NULL);
    fake_close_to(fake_wait_row(&t, "wait.lock")->seconds, 0.4);
    fake_close_to(fake_wait_row(&t, NULL)->seconds, 0.2);
    fake_close_to(fake_wait_row(&t, NULL)->waits, 101);
    fake_close_to(t.w->waiting, 0.6);
    assert_true(t.w->rows.at[t.w->rows.n - 1].category == RP_WAIT_UNSEEN);
    fake_waits_release(&t);
}

/* Threads of one name speak for each other, in the class or near it; others do not. */
static void test_threads_of_one_name_speak_for_each_other(void **state)
{
    struct fake_waits t;

    (void)state;
    fake_waits(&t, ".run seconds=1 waits=1\n.thread w/1 wall=2 cpu=1 waiting=1\n.thread w/2 wall=2 cpu=1.4 waiting=0.6\n.thread x/3 wall=2 cpu=1.9 waiting=0.1\n" FAKE_LOCKED
                   ";app!get 6 wait=100ms thread=w/1\n" FAKE_POOL " 4 wait=100ms thread=w/1\n.waits w/2 n=2 each=100ms\n.waits w/2 n=2 each=160ms\n"
                   ".waits w/2 n=1 each=80ms\n.waits x/3 n=1 each=100ms\n",
               false, NULL);
    fake_close_to(fake_wait_row(&t, "wait.lock")->seconds, 0.6 + 0.6 * (0.2 + 0.32 + 0.08));
    assert_true(fake_wait_row(&t, "wait.lock")->half > 0.05);
    fake_close_to(fake_wait_row(&t, NULL)->seconds, 0.1);
    fake_close_to(t.w->idle_seconds, 0.4 + 0.4 * 0.6);
    fake_close_to(t.w->cpu + t.w->preempted + t.w->waiting + t.w->idle_seconds, t.w->wall);
    fake_waits_release(&t);
}

/* The interval of a thinned split holds the truth in at least nine of ten draws. */
static void test_intervals_hold_the_truth(void **state)
{
    uint64_t seed = 42;
    unsigned held = 0, draws = 200;

    (void)state;
    for (unsigned d = 0; d < draws; d++) {
        struct fake_waits t;
        struct rp_buf text = {0};
        unsigned locks = 0, drawn = 0;

        for (unsigned i = 0; i < 2000; i++) { /* 700 of 2000 are lock waits; each is stacked with 1/20 */
            if (rp_random_next(&seed) % 20)
                continue;
            drawn++;
            locks += i < 700;
        }
        rp_buf_printf(&text, ".run seconds=1 waits=1\n.thread a/1 wall=2 waiting=2\n" FAKE_LOCKED ";app!get %u wait=1ms thread=a/1\n", locks);
        rp_buf_printf(&text, "libc.so.6!recv;app!ask %u wait=1ms thread=a/1\n.waits a/1 n=%u each=1ms\n", drawn - locks, 2000 - drawn);
        fake_waits(&t, rp_buf_text(&text), false, NULL);
        held += fabs(fake_wait_row(&t, "wait.lock")->seconds - 0.7) <= fake_wait_row(&t, "wait.lock")->half;
        fake_waits_release(&t);
        rp_buf_release(&text);
    }
    if (held < draws * 9 / 10)
        fail_msg("the truth was inside %u of %u times", held, draws);
}

/* One draw of a thread that waits for locks and, one in eight, for a peer, for a time of eight classes; each wait is stacked with 1/8, so that some classes
 * have no stack of the rare kind. A second thread of the name does the same and has no stack at all. False: one kind was not drawn once. */
static bool draw_two_kinds(uint64_t *seed, struct rp_buf *text, double truth[2])
{
    unsigned all[2] = {0};

    truth[0] = truth[1] = 0;
    rp_buf_puts(text, ".run seconds=1 waits=1\n.thread a/1 wall=9\n.thread a/2 wall=9\n");
    for (unsigned us = 1000; us < 256000; us *= 2) {
        unsigned n = 64000 / us < 16 ? 16 : 64000 / us, drawn[2] = {0};

        for (unsigned i = 0; i < 2 * n; i++) {
            bool rare = rp_random_next(seed) % 8 == 0;

            truth[rare] += us / 1e6;
            if (i < n)
                drawn[rare] += rp_random_next(seed) % 8 == 0;
        }
        all[0] += drawn[0];
        all[1] += drawn[1];
        if (drawn[0])
            rp_buf_printf(text, FAKE_LOCKED ";app!get %u wait=%uus thread=a/1\n", drawn[0], us);
        if (drawn[1])
            rp_buf_printf(text, "libc.so.6!recv;app!ask %u wait=%uus thread=a/1\n", drawn[1], us);
        rp_buf_printf(text, ".waits a/1 n=%u each=%uus\n.waits a/2 n=%u each=%uus\n", n - drawn[0] - drawn[1], us, n, us);
    }
    return all[0] && all[1];
}

/* Of two kinds of wait one has what the other has not: their intervals are of one width and hold the truth, also where a class has no stack of one of them. */
static void test_two_kinds_of_wait_are_equally_unsure(void **state)
{
    uint64_t seed = 1;
    unsigned held[2] = {0}, draws = 0;

    (void)state;
    for (unsigned d = 0; d < 400; d++) {
        struct fake_waits t;
        struct rp_buf text = {0};
        double truth[2];
        const struct rp_wait_row *rows[2];
        bool both = draw_two_kinds(&seed, &text, truth);

        fake_waits(&t, rp_buf_text(&text), false, NULL);
        if (both && t.w->rows.n == 2) { /* else there is a class without a stack within an octave */
            rows[0] = fake_wait_row(&t, "wait.lock");
            rows[1] = fake_wait_row(&t, "wait.pipe");
            fake_close_to(rows[0]->half, rows[1]->half);
            for (int k = 0; k < 2; k++)
                held[k] += fabs(rows[k]->seconds - truth[k]) <= rows[k]->half;
            draws++;
        }
        fake_waits_release(&t);
        rp_buf_release(&text);
    }
    assert_true(draws > 300);
    if (held[0] < draws * 9 / 10 || held[1] < draws * 9 / 10)
        fail_msg("the truth was inside %u and %u of %u times", held[0], held[1], draws);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Against sorting all durations. */
static void test_percentiles_are_those_of_the_durations(void **state)
{
    enum { N = 400 };
    static const double log_spreads[] = {0.1, 2, 6};
    uint64_t seed = 7;

    (void)state;
    for (size_t s = 0; s < sizeof log_spreads / sizeof *log_spreads; s++) {
        struct rp_buf text = {0};
        struct fake_waits t;
        double all[N], sum = 0;
        const struct rp_wait_row *row;

        rp_buf_puts(&text, ".run seconds=1 waits=1\n.thread a/1 wall=100 waiting=100\n");
        for (size_t i = 0; i < N; i++) {
            all[i] = floor(20000 * exp(log_spreads[s] * chance_uniform(&seed)));
            sum += all[i];
            rp_buf_printf(&text, FAKE_LOCKED ";app!get 1 wait=%.0fns thread=a/1\n", all[i]);
        }
        qsort(all, N, sizeof *all, by_size);
        fake_waits(&t, rp_buf_text(&text), false, NULL);
        row = fake_wait_row(&t, "wait.lock");
        fake_close_to(row->mean_s, sum / N / 1e9);
        fake_close_to(row->max_s, all[N - 1] / 1e9);
        assert_true(fabs(row->p50_s * 1e9 / all[N / 2] - 1) < 0.19);
        assert_true(fabs(row->p99_s * 1e9 / all[N * 99 / 100] - 1) < 0.19);
        assert_true(row->p50_s <= row->p99_s && row->p99_s <= row->max_s);
        fake_waits_release(&t);
        rp_buf_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thinned_stacks_keep_their_time_by_class),
        cmocka_unit_test(test_a_class_without_a_stack_is_told_apart),
        cmocka_unit_test(test_threads_of_one_name_speak_for_each_other),
        cmocka_unit_test(test_intervals_hold_the_truth),
        cmocka_unit_test(test_two_kinds_of_wait_are_equally_unsure),
        cmocka_unit_test(test_percentiles_are_those_of_the_durations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
