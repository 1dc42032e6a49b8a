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

enum { TURN_SPINS = 100000, DEEP_BYTES = 48 << 10, SAMPLES = 400, CROWD = 30, NO_CPU = 4000 };

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

/* Two threads in turn, thousands of times a second. */
static void begin_turns(int up)
{
    pthread_t thread;

    sem_init(&turns[0], 0, 1);
    sem_init(&turns[1], 0, 0);
    pthread_create(&thread, NULL, first_thread, NULL);
    pthread_create(&thread, NULL, second_thread, NULL);
    perf_child_say(up, 1);
}

/* Threads in turn; when told to, a third one that spins. */
static void body_turns(int up, int down)
{
    pthread_t thread;
    uint64_t word;

    begin_turns(up);
    if (read(down, &word, sizeof word) == (ssize_t)sizeof word)
        pthread_create(&thread, NULL, perf_thread_tells_and_spins, &up);
    pause();
}

static void *sleeping_thread(void *arg)
{
    pause();
    return arg;
}

/* The same, and when told to, threads that sleep. */
static void body_crowd(int up, int down)
{
    pthread_t thread;
    uint64_t word;

    begin_turns(up);
    if (read(down, &word, sizeof word) == (ssize_t)sizeof word) {
        for (int i = 0; i < CROWD; i++)
            pthread_create(&thread, NULL, sleeping_thread, NULL);
        perf_child_say(up, 1);
    }
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
    begin_turns(up);
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

/* Threads have their own clocks for some tenths of a second. */
static void start(struct run *r, perf_child_body *body)
{
    *r = (struct run){.target = perf_child_start(body), .other = perf_child_start(perf_body_spin), .began = rp_now_ns()};
    r->seen.pid = (uint32_t)r->target.pid;
    perf_child_hear(&r->target);
    perf_child_hear(&r->other);
    r->s = perf_start(r->seen.pid, &(struct rp_sampler_options){.kernel = true, .waits = true});
    r->inside = (struct rp_perf_sampler *)r->s;
}

/* Until the clocks of the CPUs sample, or may not. */
static void change(struct run *r)
{
    while (!r->inside->clocks.events.at.n && !r->inside->clocks.refused && !perf_late(r->began))
        perf_wait_and_drain(r->s, &r->seen);
}

static void skip_if_refused(struct run *r)
{
    struct rp_sampler_stats stats;

    if (!r->inside->clocks.refused)
        return;
    perf_finish(r->s, &r->seen, &stats);
    perf_child_end(&r->target);
    perf_child_end(&r->other);
    skip();
}

static void begin(struct run *r, perf_child_body *body)
{
    start(r, body);
    change(r);
    skip_if_refused(r);
}

static void more_samples(struct run *r, uint64_t n)
{
    n += r->seen.samples;
    while (r->seen.samples < n && !perf_late(r->began))
        perf_wait_and_drain(r->s, &r->seen);
    assert_true(r->seen.samples >= n);
}

static bool have_tid(const struct rp_perf_events *events, int tid)
{
    for (size_t i = 0; i < events->at.n; i++) {
        if (events->at.at[i].tid == tid)
            return true;
    }
    return false;
}

static void finish(struct run *r, struct rp_sampler_stats *stats)
{
    perf_finish(r->s, &r->seen, stats);
    perf_child_end(&r->target);
    perf_child_end(&r->other);
    assert_int_equal(r->seen.foreign, 0);
    assert_int_equal(r->seen.out_of_order, 0);
    assert_int_equal(r->seen.bad_stack, 0);
    assert_int_equal(stats->damaged, 0);
    assert_false(stats->system_wide);
}

static void end(struct run *r, struct rp_sampler_stats *stats)
{
    finish(r, stats);
    assert_true(stats->whole_cpus);
    assert_non_null(strstr(stats->note, "whole CPUs"));
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
    for (uint64_t samples = r.seen.samples; r.seen.samples < samples + 2 * SAMPLES && !perf_late(r.began);)
        perf_wait_and_drain(r.s, &r.seen);
    end(&r, &stats);
    assert_true(r.seen.exits > 100);
    assert_int_equal(r.seen.after_exit, 0);
    for (size_t i = 0; i < r.seen.ntids; i++)
        assert_int_not_equal(r.seen.tids[i], UINT32_MAX);
}

/* Descriptors that a change to clocks of CPUs needs beside those of `extra` events more. */
static uint32_t descriptors(const struct rp_perf_sampler *s, size_t extra)
{
    return (uint32_t)(s->events.at.n + s->peeks.events.at.n + s->rings.n + extra);
}

/* For a while there are the old events, the new ones, and the clocks: one descriptor too few for that, and all stays as it is. */
static void test_change_fits_the_descriptors(void **state)
{
    struct rp_sampler_stats stats;
    struct run r;

    (void)state;
    start(&r, body_turns);
    r.inside->options.max_events = descriptors(r.inside, r.inside->events.at.n) - 1;
    change(&r);
    assert_true(r.inside->clocks.refused);
    assert_false(r.inside->want.clockless);
    more_samples(&r, 50);
    finish(&r, &stats);
    assert_false(stats.whole_cpus);

    start(&r, body_turns);
    r.inside->options.max_events = descriptors(r.inside, r.inside->events.at.n);
    change(&r);
    skip_if_refused(&r);
    more_samples(&r, 50);
    assert_true(descriptors(r.inside, 0) <= r.inside->options.max_events);
    end(&r, &stats);
}

/* Threads born since do not fit: events are replaced for all of them or none, and never by ones that watch the whole machine. */
static void test_change_does_not_widen_the_watch(void **state)
{
    struct rp_sampler_stats stats;
    struct rp_err err = {0};
    size_t before;
    struct run r;

    (void)state;
    start(&r, body_crowd);
    before = r.inside->events.at.n;
    r.inside->options.max_events = descriptors(r.inside, before);
    perf_child_say(r.target.to, 1);
    perf_child_hear(&r.target);
    change(&r);
    assert_true(r.inside->clocks.refused);
    assert_int_equal(r.inside->events.at.n, before);
    assert_false(have_tid(&r.inside->events, -1));
    assert_int_equal(rp_perf_set_grow(r.inside, RP_STACK_COPY_MAX, &err), RP_OK);
    assert_int_equal(r.inside->events.at.n, before);
    assert_false(have_tid(&r.inside->events, -1));
    assert_false(r.inside->growth.may);
    more_samples(&r, 50);
    finish(&r, &stats);
    assert_false(stats.whole_cpus);
    assert_int_equal(stats.stack_grown, 0);
}

/* Larger copies at switches are opened beside the events of threads: one born since the change has its own by then. */
static void test_growth_lists_the_threads_anew(void **state)
{
    struct rp_sampler_stats stats;
    struct rp_err err = {0};
    struct run r;
    int born;

    (void)state;
    begin(&r, body_turns);
    perf_child_say(r.target.to, 1);
    born = (int)perf_child_hear(&r.target);
    assert_false(have_tid(&r.inside->events, born));
    assert_int_equal(rp_perf_set_grow(r.inside, RP_STACK_COPY_MAX, &err), RP_OK);
    assert_true(have_tid(&r.inside->events, born));
    assert_int_equal(r.inside->peeks.events.at.n > 0, have_tid(&r.inside->peeks.events, born));
    assert_true(r.inside->want.clockless && r.inside->clocks.events.at.n > 0);
    r.seen.want_tid = (uint32_t)born;
    while (r.seen.of_want_tid < 50 && !perf_late(r.began))
        perf_wait_and_drain(r.s, &r.seen);
    end(&r, &stats);
    assert_true(r.seen.of_want_tid >= 50);
    assert_int_equal(stats.stack_bytes, RP_STACK_COPY_MAX);
}

/* A clock that stands still is one whose CPU was off, however short; one that is not there, that of a CPU that was off when clocks were opened last. */
static void test_clocks_of_cpus_that_were_off_are_opened_anew(void **state)
{
    struct rp_sampler_stats stats;
    struct rp_perf_events *clocks;
    struct rp_cpu_list none = {0};
    struct rp_err err = {0};
    uint64_t first, second;
    struct run r;

    (void)state;
    begin(&r, body_turns);
    clocks = &r.inside->clocks.events;
    first = clocks->at.at[0].id;
    for (int i = 0; i < 2; i++)
        assert_int_equal(rp_perf_cpus_compare(r.inside, &r.inside->cpus, &err), RP_OK);
    assert_int_equal(clocks->at.at[0].id, first);
    assert_true(rp_perf_set_enable(clocks, false));
    for (int i = 0; i < 2; i++)
        assert_int_equal(rp_perf_cpus_compare(r.inside, &r.inside->cpus, &err), RP_OK);
    second = clocks->at.at[0].id;
    assert_true(second > first);
    more_samples(&r, 50);
    if (clocks->at.n > 1) {
        close(clocks->at.at[--clocks->at.n].fd);
        assert_int_equal(rp_perf_cpus_compare(r.inside, &none, &err), RP_OK); /* it is still off */
        assert_int_equal(clocks->at.at[0].id, second);
        assert_int_equal(rp_perf_cpus_compare(r.inside, &r.inside->cpus, &err), RP_OK);
        assert_int_equal(clocks->at.n, r.inside->rings.n);
    }
    end(&r, &stats);
    assert_non_null(strstr(stats.note, "switched off or on"));
}

/* There is no ring for it, so nothing of it can be had: that is said, once. */
static void test_a_cpu_that_came_later_is_told_of(void **state)
{
    struct rp_perf_sampler s = {0};
    int at_first[] = {0, 1}, now[] = {0, NO_CPU, NO_CPU + 1};
    struct rp_cpu_list online = {{.at = at_first, .n = 2}};
    struct rp_err err = {0};

    (void)state;
    s.cpus.at.at = at_first;
    s.cpus.at.n = 2;
    assert_int_equal(rp_perf_cpus_compare(&s, &online, &err), RP_OK);
    assert_string_equal(s.stats.note, "");
    online.at.at = now;
    online.at.n = 3;
    for (int i = 0; i < 2; i++)
        assert_int_equal(rp_perf_cpus_compare(&s, &online, &err), RP_OK);
    assert_string_equal(s.stats.note, "CPU 4000 was switched on in the meantime and is not watched: what ran there is missing.");
}

/* Samples of others are dropped, but only after they took room in the rings. */
static void test_clocks_are_given_back_where_others_fill_the_rings(void **state)
{
    struct rp_sampler_stats stats;
    struct run r;

    (void)state;
    begin(&r, body_turns);
    r.inside->clocks.foreign = 0;
    more_samples(&r, SAMPLES);
    assert_true(r.inside->clocks.foreign > 0); /* of the process that spins */
    assert_true(r.inside->clocks.events.at.n > 0);
    while (r.inside->clocks.events.at.n && !perf_late(r.began)) {
        r.inside->clocks.foreign += 100000;
        r.inside->lost_records++;
        perf_wait_and_drain(r.s, &r.seen);
    }
    assert_int_equal(r.inside->clocks.events.at.n, 0);
    assert_false(r.inside->want.clockless);
    more_samples(&r, SAMPLES);
    assert_int_equal(r.inside->clocks.events.at.n, 0); /* for good */
    finish(&r, &stats);
    assert_false(stats.whole_cpus);
    assert_non_null(strstr(stats.note, "filled the buffers"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weight_equals_cpu_time),
        cmocka_unit_test(test_threads_born_later),
        cmocka_unit_test(test_copy_grows),
        cmocka_unit_test(test_threads_that_ended_are_not_seen),
        cmocka_unit_test(test_change_fits_the_descriptors),
        cmocka_unit_test(test_change_does_not_widen_the_watch),
        cmocka_unit_test(test_growth_lists_the_threads_anew),
        cmocka_unit_test(test_clocks_of_cpus_that_were_off_are_opened_anew),
        cmocka_unit_test(test_a_cpu_that_came_later_is_told_of),
        cmocka_unit_test(test_clocks_are_given_back_where_others_fill_the_rings),
    };

    return cmocka_run_group_tests_name("sample_clocks", tests, NULL, NULL);
}
