/* SPDX-License-Identifier: MIT */
/* The perf_event backend where something is short: memory, room in the ring or in the copy of the stack, descriptors, rate, privilege. It makes do,
 * and says what is missing. The trap is the one of test_sample_perf.c: no test may depend on how many samples come in a given time.
 *
 * Where perf_event_open is refused altogether the live tests are skipped; the machines that build releases allow it. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/io.h"
#include "base/limits.h"
#include "sample/perf_private.h"
#include "support/perf_run.h"

/* Each allocation of starting and draining fails once: always an orderly error, and the target runs on. */
static void test_no_memory(void **state)
{
    struct perf_child c = perf_child_start(perf_body_spin);
    uint32_t pid = (uint32_t)c.pid;
    struct rp_sampler_options options = {.pids = &pid, .npids = 1, .hz = 5000};
    enum rp_status status = RP_OK;
    uint64_t n, calls = 1, refused = 0;

    (void)state;
    perf_child_hear(&c);
    for (n = 1; n <= calls; n++) {
        struct perf_seen seen = {.pid = pid};
        struct rp_sampler *s = NULL;
        struct rp_err err = {0};

        rp_alloc_fail_at(n);
        status = rp_sampler_perf_new(&options, &s, &err);
        if (!status)
            status = s->ops->start(s, &err);
        if (!status)
            usleep(20000);
        if (!status)
            status = s->ops->drain(s, true, perf_see, &seen, &err);
        calls = rp_alloc_fail_at(0);
        refused += status == RP_NOMEM;
        if (status == RP_NOMEM) /* it ended early: there may be more */
            calls = n + 1;
        if (s)
            s->ops->free(s);
        assert_true(status == RP_OK || status == RP_NOMEM || (status == RP_PERM && geteuid() != 0));
    }
    assert_true(refused > 5 || geteuid() != 0);
    assert_int_equal(kill(c.pid, 0), 0);
    perf_child_end(&c);
}

/* Two pages hold less than one record: all is lost, and counted. */
static void test_small_ring_counts_its_losses(void **state)
{
    struct perf_child c = perf_child_start(perf_body_spin);
    struct perf_seen seen = {.pid = (uint32_t)c.pid};
    struct rp_sampler_stats stats;
    struct rp_sampler *s;

    (void)state;
    perf_child_hear(&c);
    s = perf_start((uint32_t)c.pid, &(struct rp_sampler_options){.ring_pages = 2, .stack_bytes = 32768, .hz = 5000});
    for (int i = 0; i < 20; i++)
        usleep(50000);
    perf_finish(s, &seen, &stats);
    perf_child_end(&c);
    assert_int_equal(seen.samples, 0);
    assert_true(stats.lost > 20);
}

static void body_naps(int up, int down)
{
    (void)down;
    perf_child_say(up, 1);
    for (;;)
        usleep(100);
}

/* Copies at switches that find no room are counted while their events are open, not only when they are closed. */
static void test_closing_the_peeks_loses_nothing_more(void **state)
{
    struct perf_child c = perf_child_start(body_naps);
    struct perf_seen seen = {.pid = (uint32_t)c.pid};
    struct rp_sampler_stats before, after, last;
    struct rp_perf_sampler *s;
    struct rp_err err = {0};
    uint64_t of_peeks = 0;

    (void)state;
    perf_child_hear(&c);
    s = (struct rp_perf_sampler *)perf_start((uint32_t)c.pid, &(struct rp_sampler_options){.ring_pages = 2, .stack_bytes = 32768, .hz = 5000, .waits = true, .kernel = true});
    for (int i = 0; i < 20; i++)
        usleep(20000);
    assert_int_equal(s->base.ops->toggle(&s->base, false, &err), RP_OK);
    rp_perf_set_count_lost(s);
    s->base.ops->stats(&s->base, &before);
    for (size_t i = 0; i < s->peeks.events.at.n; i++)
        of_peeks += rp_perf_event_lost(s->peeks.events.at.at[i].fd, s->want.count_lost);
    rp_perf_peeks_close(s);
    rp_perf_set_count_lost(s);
    s->base.ops->stats(&s->base, &after);
    perf_finish(&s->base, &seen, &last);
    perf_child_end(&c);
    if (!of_peeks)
        skip(); /* no copies at switches here: the kernel is hidden, or does not count what is lost */
    assert_int_equal(after.lost, before.lost);
    assert_true(before.lost >= of_peeks);
}

/* The reader sleeps for half a second: the default ring holds what comes in meanwhile. */
static void test_default_ring_survives_a_sleeping_reader(void **state)
{
    struct perf_child c = perf_child_start(perf_body_spin);
    struct perf_seen seen = {.pid = (uint32_t)c.pid};
    struct rp_sampler_stats stats;
    struct rp_sampler *s;

    (void)state;
    if (geteuid() != 0)
        skip(); /* locked memory of ordinary users holds less */
    perf_child_hear(&c);
    s = perf_start((uint32_t)c.pid, NULL);
    usleep(450000);
    perf_finish(s, &seen, &stats);
    perf_child_end(&c);
    assert_true(seen.samples > 0);
    assert_int_equal(stats.lost, 0);
}

/* A frame larger than the first copy, so that every stack is cut. */
static __attribute__((noinline)) void deep(int up)
{
    volatile char room[40000];

    memset((void *)(uintptr_t)room, 1, sizeof room);
    perf_child_say(up, 1);
    for (;;)
        room[0]++;
}

static void body_deep(int up, int down)
{
    (void)down;
    deep(up);
}

static void test_copy_grows_when_stacks_are_cut(void **state)
{
    struct perf_child c = perf_child_start(body_deep);
    struct perf_seen seen = {.pid = (uint32_t)c.pid};
    struct rp_sampler_stats stats = {0};
    struct rp_err err = {0};
    uint64_t began = rp_now_ns(), uncut = 0;
    struct rp_sampler *s;

    (void)state;
    perf_child_hear(&c);
    s = perf_start((uint32_t)c.pid, NULL);
    while (uncut < 100 && !perf_late(began)) {
        uint64_t samples = seen.samples, cut = seen.cut;

        perf_wait_and_drain(s, &seen);
        uncut += seen.samples - samples - (seen.cut - cut);
        assert_int_equal(s->ops->feedback(s, seen.samples - samples, seen.cut - cut, &err), RP_OK);
    }
    perf_finish(s, &seen, &stats);
    perf_child_end(&c);
    assert_true(uncut >= 100);
    assert_in_range(stats.stack_grown, 1, 2);
    assert_int_equal(stats.stack_bytes, RP_STACK_COPY_MAX);
    assert_true(seen.cut > 0);
    assert_int_equal(seen.out_of_order, 0);
    assert_int_equal(seen.bad_stack, 0);
}

static void body_many_threads(int up, int down)
{
    pthread_t thread;
    int spinner_up = up;

    (void)down;
    for (int i = 0; i < 20; i++)
        pthread_create(&thread, NULL, (void *(*)(void *))(void (*)(void))pause, NULL);
    pthread_create(&thread, NULL, perf_thread_tells_and_spins, &spinner_up);
    pause();
}

/* With too few descriptors whole CPUs are sampled, and only the target's samples come out. */
static void test_more_threads_than_descriptors(void **state)
{
    struct perf_child c = perf_child_start(body_many_threads), other = perf_child_start(perf_body_spin);
    struct perf_seen seen = {.pid = (uint32_t)c.pid};
    struct rp_sampler_stats stats;
    uint64_t began = rp_now_ns();
    struct rp_sampler *s;

    (void)state;
    if (geteuid() != 0)
        skip();
    perf_child_hear(&other);
    seen.want_tid = (uint32_t)perf_child_hear(&c);
    s = perf_start((uint32_t)c.pid, &(struct rp_sampler_options){.max_events = (uint32_t)sysconf(_SC_NPROCESSORS_CONF) * 3});
    while (seen.of_want_tid < 50 && !perf_late(began))
        perf_wait_and_drain(s, &seen);
    perf_finish(s, &seen, &stats);
    perf_child_end(&c);
    perf_child_end(&other);
    assert_true(stats.system_wide);
    assert_true(seen.of_want_tid >= 50);
    assert_int_equal(seen.foreign, 0);
    assert_true(strlen(stats.note) > 0);
}

/* More samples than the kernel allows: fewer are taken, and the report can say so. */
static void test_rate_beyond_the_kernels(void **state)
{
    struct perf_child c = perf_child_start(perf_body_spin);
    struct perf_seen seen = {.pid = (uint32_t)c.pid};
    struct rp_buf text = {0};
    struct rp_sampler_stats stats;
    struct rp_err err = {0};
    struct rp_sampler *s;
    long most;

    (void)state;
    perf_child_hear(&c);
    assert_int_equal(rp_read_file("/proc/sys/kernel/perf_event_max_sample_rate", 64, &text, &err), RP_OK);
    most = atol(rp_buf_text(&text));
    rp_buf_release(&text);
    s = perf_start((uint32_t)c.pid, &(struct rp_sampler_options){.hz = 100000, .stack_bytes = 512});
    perf_finish(s, &seen, &stats);
    perf_child_end(&c);
    assert_true(stats.hz <= 100000 && stats.hz <= most);
    assert_int_equal(most < 100000, strstr(stats.note, "perf_event_max_sample_rate") != NULL);
}

/* Without privilege and descriptors the busiest threads are sampled, the rest counted. */
static int as_nobody_with_few_descriptors(void)
{
    struct perf_child c = perf_child_start(body_many_threads);
    struct perf_seen seen = {.pid = (uint32_t)c.pid};
    struct rp_sampler_options options = {.npids = 1, .hz = 997, .max_events = (uint32_t)sysconf(_SC_NPROCESSORS_CONF) * 3};
    uint32_t pid = (uint32_t)c.pid;
    struct rp_sampler_stats stats;
    uint64_t began = rp_now_ns();
    struct rp_sampler *s = NULL;
    struct rp_err err = {0};

    seen.want_tid = (uint32_t)perf_child_hear(&c);
    usleep(100000); /* it is the busiest by now */
    options.pids = &pid;
    if (rp_sampler_perf_new(&options, &s, &err) != RP_OK || s->ops->start(s, &err) != RP_OK)
        return 20;
    while (seen.of_want_tid < 20 && !perf_late(began))
        perf_wait_and_drain(s, &seen);
    perf_finish(s, &seen, &stats);
    perf_child_end(&c);
    if (stats.system_wide || stats.threads_unsampled != 22 - 3 || !strstr(stats.note, "ulimit -n"))
        return 21;
    return seen.of_want_tid >= 20 ? 0 : 22;
}

/* As an ordinary user: one's own process works without the kernel, another's is refused with the reason. Runs in a child that has given up root. */
static int as_nobody(void)
{
    struct perf_child c;
    struct perf_seen seen;
    struct rp_sampler_options options = {.npids = 1, .hz = 997, .kernel = true};
    struct rp_sampler_stats stats;
    struct rp_sampler *s = NULL;
    struct rp_err err = {0};
    uint64_t began = rp_now_ns();
    uint32_t pid = 1;

    if (setgid(65534) || setuid(65534))
        return 10;
    prctl(PR_SET_DUMPABLE, 1);
    options.pids = &pid;
    if (rp_sampler_perf_new(&options, &s, &err) != RP_OK || s->ops->start(s, &err) != RP_PERM)
        return 11;
    if (!strstr(err.text, "perf_event_open") || !strstr(err.text, "uid 0") || !strstr(err.text, "uid 65534") || strstr(err.text, "sudo"))
        return 12;
    s->ops->free(s);
    c = perf_child_start(perf_body_spin);
    perf_child_hear(&c);
    seen = (struct perf_seen){.pid = (uint32_t)c.pid, .want_tid = (uint32_t)c.pid};
    pid = (uint32_t)c.pid;
    if (rp_sampler_perf_new(&options, &s, &err) != RP_OK)
        return 13;
    if (s->ops->start(s, &err) != RP_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 14;
    }
    while (seen.samples < 50 && !perf_late(began))
        perf_wait_and_drain(s, &seen);
    perf_finish(s, &seen, &stats);
    perf_child_end(&c);
    if (seen.samples < 50 || seen.kernel_samples || stats.kernel_visible || !strstr(stats.note, "perf_event_paranoid"))
        return 15;
    return seen.of_want_tid == seen.samples ? as_nobody_with_few_descriptors() : 16;
}

static void test_ordinary_user(void **state)
{
    struct rp_buf text = {0};
    struct rp_err err;
    int status, paranoid;
    pid_t pid;

    (void)state;
    if (geteuid() != 0 || rp_read_file("/proc/sys/kernel/perf_event_paranoid", 64, &text, &err))
        skip();
    paranoid = rp_buf_text(&text)[0] == '2';
    rp_buf_release(&text);
    if (!paranoid)
        skip(); /* the expected words are those of level 2 */
    pid = fork();
    if (!pid)
        _exit(as_nobody());
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_small_ring_counts_its_losses),
        cmocka_unit_test(test_closing_the_peeks_loses_nothing_more),
        cmocka_unit_test(test_default_ring_survives_a_sleeping_reader),
        cmocka_unit_test(test_copy_grows_when_stacks_are_cut),
        cmocka_unit_test(test_more_threads_than_descriptors),
        cmocka_unit_test(test_rate_beyond_the_kernels),
        cmocka_unit_test(test_ordinary_user),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
