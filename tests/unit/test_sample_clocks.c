/* SPDX-License-Identifier: MIT */
/* Threads that switch often are sampled by the clocks of whole CPUs: what comes out is the same, and of the target alone.
 *
 * Where whole CPUs may not be sampled the threads keep their own clocks and these tests are skipped. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "sample/perf_private.h"
#include "support/perf_run.h"

enum { TURN_SPINS = 100000, DEEP_BYTES = 48 << 10, SAMPLES = 400 };

static sem_t turns[2];
static volatile uint64_t sink;

static void take_turns(int mine)
{
    for (;;) {
        while (sem_wait(&turns[mine]))
            continue;
        for (int i = 0; i < TURN_SPINS; i++)
            sink++;
        sem_post(&turns[!mine]);
    }
}

static void *first_thread(void *arg)
{
    volatile char deep[DEEP_BYTES];

    (void)arg;
    for (size_t i = 0; i < sizeof deep; i++)
        deep[i] = 1;
    take_turns(0);
    return NULL;
}

static void *second_thread(void *arg)
{
    (void)arg;
    take_turns(1);
    return NULL;
}

/* Two threads in turn, thousands of times a second; when told to, a third one that spins. */
static void body_turns(int up, int down)
{
    pthread_t thread;
    uint64_t word;

    sem_init(&turns[0], 0, 1);
    sem_init(&turns[1], 0, 0);
    pthread_create(&thread, NULL, first_thread, NULL);
    pthread_create(&thread, NULL, second_thread, NULL);
    perf_child_say(up, 1);
    if (read(down, &word, sizeof word) == (ssize_t)sizeof word)
        pthread_create(&thread, NULL, perf_thread_tells_and_spins, &up);
    pause();
}

static void *short_thread(void *arg)
{
    for (int i = 0; i < TURN_SPINS; i++)
        sink++;
    return arg;
}

/* The same, and threads that live for some microseconds, one after the other. */
static void body_births(int up, int down)
{
    pthread_t thread;

    (void)down;
    sem_init(&turns[0], 0, 1);
    sem_init(&turns[1], 0, 0);
    pthread_create(&thread, NULL, first_thread, NULL);
    pthread_create(&thread, NULL, second_thread, NULL);
    perf_child_say(up, 1);
    for (;;) {
        if (!pthread_create(&thread, NULL, short_thread, NULL))
            pthread_join(thread, NULL);
    }
}

static double cpu_of(pid_t pid)
{
    struct timespec now;
    clockid_t clock;

    assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
    assert_int_equal(clock_gettime(clock, &now), 0);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* A run over a process whose threads switch often, beside another process that spins. */
struct run {
    struct perf_child target, other;
    struct perf_seen seen;
    struct rp_sampler *s;
    struct rp_perf_sampler *inside;
    uint64_t began;
};

/* Until the clocks of the CPUs sample; skips where they may not. */
static void begin(struct run *r, perf_child_body *body)
{
    *r = (struct run){.target = perf_child_start(body), .other = perf_child_start(perf_body_spin), .began = rp_now_ns()};
    r->seen.pid = (uint32_t)r->target.pid;
    perf_child_hear(&r->target);
    perf_child_hear(&r->other);
    r->s = perf_start(r->seen.pid, &(struct rp_sampler_options){.kernel = true, .waits = true});
    r->inside = (struct rp_perf_sampler *)r->s;
    while (!r->inside->clocks.events.at.n && !r->inside->clocks.refused && !perf_late(r->began))
        perf_wait_and_drain(r->s, &r->seen);
}

static bool is_refused(struct run *r, struct rp_sampler_stats *stats)
{
    if (!r->inside->clocks.refused)
        return false;
    perf_finish(r->s, &r->seen, stats);
    perf_child_end(&r->target);
    perf_child_end(&r->other);
    return true;
}

static void end(struct run *r, struct rp_sampler_stats *stats)
{
    perf_finish(r->s, &r->seen, stats);
    perf_child_end(&r->target);
    perf_child_end(&r->other);
    assert_true(stats->whole_cpus);
    assert_non_null(strstr(stats->note, "whole CPUs"));
    assert_int_equal(r->seen.foreign, 0);
    assert_int_equal(r->seen.out_of_order, 0);
    assert_int_equal(r->seen.bad_stack, 0);
    assert_int_equal(stats->damaged, 0);
}

/* Samples x period against the CPU time that the scheduler has accounted, and no sample of the process beside it. On a busy machine some are missing: the
 * kernel takes no interrupt within a switch, so that a sample due there is of whoever comes next. */
static void test_weight_equals_cpu_time(void **state)
{
    struct rp_sampler_stats stats;
    double cpu, weight;
    uint64_t samples;
    struct run r;

    (void)state;
    begin(&r, body_turns);
    if (is_refused(&r, &stats))
        skip();
    perf_wait_and_drain(r.s, &r.seen);
    cpu = cpu_of(r.target.pid);
    weight = (double)r.seen.weight_ns;
    samples = r.seen.samples;
    while (r.seen.samples < samples + SAMPLES && !perf_late(r.began))
        perf_wait_and_drain(r.s, &r.seen);
    cpu = cpu_of(r.target.pid) - cpu;
    weight = (double)r.seen.weight_ns - weight;
    end(&r, &stats);
    assert_true(r.seen.samples >= samples + SAMPLES);
    assert_true(weight > 0.6 * cpu && weight < 1.25 * cpu);
}

/* Births are told and sampled as before. */
static void test_threads_born_later(void **state)
{
    struct rp_sampler_stats stats;
    struct run r;

    (void)state;
    begin(&r, body_turns);
    if (is_refused(&r, &stats))
        skip();
    perf_wait_and_drain(r.s, &r.seen);
    r.seen.forks = 0;
    perf_child_say(r.target.to, 1);
    r.seen.want_tid = (uint32_t)perf_child_hear(&r.target);
    while (r.seen.of_want_tid < 50 && !perf_late(r.began))
        perf_wait_and_drain(r.s, &r.seen);
    end(&r, &stats);
    assert_true(r.seen.of_want_tid >= 50);
    assert_int_equal(r.seen.forks, 1);
}

/* The copy of the stack grows as the threads' own would. */
static void test_copy_grows(void **state)
{
    struct rp_sampler_stats stats;
    struct rp_err err = {0};
    uint64_t uncut = 0;
    struct run r;

    (void)state;
    begin(&r, body_turns);
    if (is_refused(&r, &stats))
        skip();
    while (uncut < 100 && !perf_late(r.began)) {
        uint64_t samples = r.seen.samples, cut = r.seen.cut;

        perf_wait_and_drain(r.s, &r.seen);
        assert_int_equal(r.s->ops->feedback(r.s, r.seen.samples - samples, r.seen.cut - cut, &err), RP_OK);
        if (r.inside->want.stack_bytes == RP_STACK_COPY_MAX)
            uncut += r.seen.samples - samples - (r.seen.cut - cut);
    }
    assert_true(r.inside->clocks.events.at.n > 0);
    end(&r, &stats);
    assert_true(uncut >= 100);
    assert_int_equal(stats.stack_bytes, RP_STACK_COPY_MAX);
    assert_true(r.seen.cut > 0);
}

/* A CPU's clock sees a thread in the kernel after its end was told, when it may have no number any more: that is nobody's. */
static void test_threads_that_ended_are_not_seen(void **state)
{
    struct rp_sampler_stats stats;
    struct run r;

    (void)state;
    begin(&r, body_births);
    if (is_refused(&r, &stats))
        skip();
    for (uint64_t samples = r.seen.samples; r.seen.samples < samples + 2 * SAMPLES && !perf_late(r.began);)
        perf_wait_and_drain(r.s, &r.seen);
    end(&r, &stats);
    assert_true(r.seen.exits > 100);
    assert_int_equal(r.seen.after_exit, 0);
    for (size_t i = 0; i < r.seen.ntids; i++)
        assert_int_not_equal(r.seen.tids[i], UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weight_equals_cpu_time),
        cmocka_unit_test(test_threads_born_later),
        cmocka_unit_test(test_copy_grows),
        cmocka_unit_test(test_threads_that_ended_are_not_seen),
    };

    return cmocka_run_group_tests_name("sample_clocks", tests, NULL, NULL);
}
