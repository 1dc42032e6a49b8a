/* SPDX-License-Identifier: MIT */
/* The perf_event backend against processes of our own, whose thread ids, mappings and behaviour are known. No test depends on how many samples
 * come in a given time: targets spin until the test has seen what it waits for, within a generous deadline.
 *
 * Where perf_event_open is refused altogether the live tests are skipped; the machines that build releases allow it. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "base/limits.h"
#include "sample/perf_private.h"
#include "support/perf_run.h"

static void test_samples_of_a_spinning_process(void **state)
{
    struct perf_run r;

    (void)state;
    perf_run_begin(&r, perf_body_spin, &(struct rp_sampler_options){.kernel = true});
    perf_run_until(&r, &r.seen.samples, 200);
    perf_run_end(&r);
    assert_int_equal(r.seen.samples, r.stats.samples);
    assert_int_equal(r.seen.of_want_tid, r.seen.samples);
    assert_int_equal(r.seen.foreign, 0);
    assert_int_equal(r.seen.out_of_order, 0);
    assert_int_equal(r.seen.before_start, 0);
    assert_int_equal(r.seen.bad_stack, 0);
    assert_int_equal(r.seen.cut, 0);
    assert_int_equal(r.stats.lost, 0);
    assert_int_equal(r.stats.damaged, 0);
    assert_int_equal(r.stats.threads_unsampled, 0);
    assert_int_equal(r.seen.weight_ns, r.seen.samples * (1000000000u / 997));
}

/* Samples x period against the CPU time the scheduler has accounted: the rate is neither half nor double, however busy the machine is. */
static void test_weight_equals_cpu_time(void **state)
{
    struct perf_run r;

    (void)state;
    perf_run_begin(&r, perf_body_spin, &(struct rp_sampler_options){.kernel = true});
    perf_run_until(&r, &r.seen.samples, 500);
    perf_run_end(&r);
    assert_true((double)r.seen.weight_ns > 0.7 * r.cpu_ns);
    assert_true((double)r.seen.weight_ns < 1.2 * r.cpu_ns);
}

/* A thread that is covered twice, as happens when it is born while events are opened: every moment still counts once, and the second events
 * are closed. */
static void test_covered_twice_counts_once(void **state)
{
    struct rp_perf_sampler *inside;
    struct perf_run r;
    size_t events;

    (void)state;
    perf_run_begin(&r, perf_body_spin, &(struct rp_sampler_options){.kernel = true});
    inside = (struct rp_perf_sampler *)r.sampler;
    events = inside->events.at.n;
    for (uint32_t i = 0; i < inside->rings.n; i++) {
        int fd = rp_perf_open_event(&inside->want, r.child.pid, inside->rings.at[i].cpu);
        struct rp_perf_event *slot = rp_vec_add(&inside->events.at);

        assert_true(fd >= 0);
        assert_non_null(slot);
        assert_int_equal(ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, inside->rings.at[i].fd), 0);
        assert_int_equal(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
        *slot = (struct rp_perf_event){fd, r.child.pid, i, rp_perf_event_id(fd), 0};
    }
    perf_run_until(&r, &r.seen.samples, 500);
    assert_true(inside->events.at.n < events + inside->rings.n);
    perf_run_end(&r);
    assert_true((double)r.seen.weight_ns < 1.2 * r.cpu_ns);
}

static void body_old_and_new_thread(int up, int down)
{
    pthread_t thread;
    uint64_t word;

    pthread_create(&thread, NULL, perf_thread_tells_and_spins, &up);
    if (read(down, &word, sizeof word) == (ssize_t)sizeof word)
        pthread_create(&thread, NULL, perf_thread_tells_and_spins, &up);
    pause();
}

static void test_old_and_new_threads(void **state)
{
    struct perf_run r;

    (void)state;
    perf_run_begin(&r, body_old_and_new_thread, NULL);
    assert_int_not_equal(r.seen.want_tid, r.child.pid);
    perf_run_until(&r, &r.seen.of_want_tid, 20);
    perf_child_say(r.child.to, 1);
    r.seen.want_tid = (uint32_t)perf_child_hear(&r.child);
    r.seen.of_want_tid = 0;
    perf_run_until(&r, &r.seen.of_want_tid, 20);
    perf_run_end(&r);
    assert_true(r.seen.forks >= 1);
    assert_int_equal(r.seen.out_of_order, 0);
}

static volatile uint64_t spin_sink;

static void *thread_short(void *arg)
{
    uint64_t end = rp_now_ns() + 3000000;

    (void)arg;
    while (rp_now_ns() < end)
        spin_sink++;
    return NULL;
}

/* For ever new threads, several at a time, so that attaching always races with some of them. */
static void body_churn(int up, int down)
{
    pthread_t threads[4];

    (void)down;
    perf_child_say(up, 1);
    for (;;) {
        for (int i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, thread_short, NULL);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
    }
}

/* Attaching to a process that makes threads all the time: no error, and no moment counted twice (weights stay below CPU time). */
static void test_threads_that_come_and_go(void **state)
{
    const struct rp_sampler_options kernel = {.kernel = true};
    struct perf_run r;

    (void)state;
    perf_run_begin(&r, body_churn, &kernel);
    for (int run = 0; run < 10; run++) {
        if (run)
            perf_run_again(&r, &kernel);
        perf_run_until(&r, &r.seen.samples, 100);
        perf_run_until(&r, &r.seen.ntids, 20);
        perf_run_stop(&r);
        assert_true(r.all_came);
        assert_true(r.seen.exits > 0);
        assert_int_equal(r.stats.threads_unsampled, 0);
        assert_true((double)r.seen.weight_ns < 1.2 * r.cpu_ns);
    }
    perf_child_end(&r.child);
}

static void *thread_spins_on(void *arg)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)(uintptr_t)arg, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
    perf_spin_for_ever();
    return NULL;
}

/* One thread per CPU, up to four. */
static void body_all_cpus(int up, int down)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t thread;

    (void)down;
    for (long i = 0; i < (n > 4 ? 4 : n); i++)
        pthread_create(&thread, NULL, thread_spins_on, (void *)(uintptr_t)i);
    perf_child_say(up, 1);
    pause();
}

/* Rings of several CPUs are merged: many samples in one drain, all in order. */
static void test_rings_are_merged_by_time(void **state)
{
    struct perf_run r;

    (void)state;
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        skip();
    perf_run_begin(&r, body_all_cpus, &(struct rp_sampler_options){.stack_bytes = 1024});
    for (uint64_t samples = 0; samples < 300; samples += 75) {
        usleep(100000); /* so that much is merged at once */
        perf_run_until(&r, &r.seen.samples, samples + 75);
    }
    perf_run_until(&r, &r.seen.ntids, 2);
    perf_run_end(&r);
    assert_int_equal(r.seen.out_of_order, 0);
}

static void tell_of_exec(const struct rp_sampler_options *more)
{
    struct perf_run r;

    perf_run_begin(&r, perf_body_exec, more);
    perf_child_say(r.child.to, 1);
    perf_run_until(&r, &r.seen.execs, 1);
    perf_run_end(&r);
    assert_int_equal(r.seen.execs, 1);
    assert_string_equal(r.seen.exec_comm, "sleep");
}

static void test_exec_is_told(void **state)
{
    (void)state;
    tell_of_exec(NULL);
}

static void test_enable_on_exec(void **state)
{
    (void)state;
    tell_of_exec(&(struct rp_sampler_options){.enable_on_exec = true});
}

static void body_mmap(int up, int down)
{
    uint64_t word;
    void *page;

    perf_child_say(up, 1);
    if (read(down, &word, sizeof word) != (ssize_t)sizeof word)
        return;
    page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    perf_child_say(up, (uint64_t)(uintptr_t)page);
    pause();
}

static void test_mmap_is_told(void **state)
{
    struct perf_run r;

    (void)state;
    perf_run_begin(&r, body_mmap, NULL);
    perf_child_say(r.child.to, 1);
    r.seen.mmap_start = perf_child_hear(&r.child);
    perf_run_until(&r, &r.seen.mmaps_at_start, 1);
    perf_run_end(&r);
    assert_int_equal(r.seen.mmaps_at_start, 1);
}

static void test_end_of_target_is_told(void **state)
{
    uint64_t began = rp_now_ns();
    struct perf_run r;
    bool ended = false;

    (void)state;
    perf_run_begin(&r, perf_body_spin, NULL);
    assert_false(perf_wait_and_drain(r.sampler, &r.seen));
    kill(r.child.pid, SIGKILL);
    while (!ended && !perf_late(began))
        ended = perf_wait_and_drain(r.sampler, &r.seen);
    perf_run_end(&r);
    assert_true(ended);
    assert_true(r.seen.exits >= 1);
}

static void test_no_such_process(void **state)
{
    uint32_t pid = 0x7ffffff0;
    struct rp_sampler_options options = {.pids = &pid, .npids = 1, .hz = 997};
    struct rp_sampler *s = NULL;
    struct rp_err err = {0};

    (void)state;
    assert_int_equal(rp_sampler_perf_new(&options, &s, &err), RP_NOPROC);
    assert_non_null(strstr(err.text, "2147483632"));
}

static void test_target_that_ended_before_start(void **state)
{
    struct perf_child c = perf_child_start(perf_body_spin);
    uint32_t pid = (uint32_t)c.pid;
    struct rp_sampler_options options = {.pids = &pid, .npids = 1, .hz = 997};
    struct rp_sampler *s = NULL;
    struct rp_err err = {0};

    (void)state;
    perf_child_hear(&c);
    assert_int_equal(rp_sampler_perf_new(&options, &s, &err), RP_OK);
    perf_child_end(&c);
    assert_int_equal(s->ops->start(s, &err), RP_NOPROC);
    s->ops->free(s);
}

static void test_toggle(void **state)
{
    struct rp_err err = {0};
    struct perf_run r;
    uint64_t off, on;

    (void)state;
    perf_run_begin(&r, perf_body_spin, NULL);
    perf_run_until(&r, &r.seen.samples, 20);
    assert_int_equal(r.sampler->ops->toggle(r.sampler, false, &err), RP_OK);
    usleep(10000);
    assert_int_equal(r.sampler->ops->drain(r.sampler, false, perf_see, &r.seen, &err), RP_OK);
    off = r.seen.samples;
    usleep(100000);
    perf_wait_and_drain(r.sampler, &r.seen);
    on = r.seen.samples;
    assert_int_equal(r.sampler->ops->toggle(r.sampler, true, &err), RP_OK);
    perf_run_until(&r, &r.seen.samples, on + 20);
    perf_run_end(&r);
    assert_int_equal(off, on);
}

/* Numbers of processes that cannot be: 5 000 000 is above the kernel's largest. */
static void test_targets_are_known_by_number(void **state)
{
    struct rp_perf_sampler s = {0};
    struct rp_err err = {0};
    uint32_t self = (uint32_t)getpid();

    (void)state;
    assert_int_equal(rp_perf_target_add(&s, self, &err), RP_OK);
    for (uint32_t i = 1; i <= RP_PROCESSES_MAX; i++)
        assert_int_equal(rp_perf_target_add(&s, 5000000 + 3 * i, &err), RP_OK);
    assert_int_equal(s.targets.n, RP_PROCESSES_MAX);
    assert_int_equal(s.stats.vanished, 1);
    for (uint32_t i = 1; i <= RP_PROCESSES_MAX; i++) {
        assert_int_equal(rp_perf_is_target(&s, 5000000 + 3 * i), i < RP_PROCESSES_MAX);
        assert_false(rp_perf_is_target(&s, 5000001 + 3 * i));
    }
    assert_int_equal(rp_perf_target_add(&s, self, &err), RP_OK);
    assert_int_equal(s.targets.n, RP_PROCESSES_MAX);
    assert_false(s.targets.at[0].ended);
    assert_true(s.targets.at[1].ended);
    /* Born again under the number of one that had ended. */
    if (s.targets.at[0].pidfd >= 0)
        close(s.targets.at[0].pidfd);
    s.targets.at[0] = (struct rp_perf_target){.pid = self, .pidfd = -1, .ended = true};
    assert_int_equal(rp_perf_target_add(&s, self, &err), RP_OK);
    assert_false(s.targets.at[0].ended);
    if (s.targets.at[0].pidfd >= 0)
        close(s.targets.at[0].pidfd);
    rp_vec_release(&s.targets);
    rp_index_release(&s.target_index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets_are_known_by_number),
        cmocka_unit_test(test_samples_of_a_spinning_process),
        cmocka_unit_test(test_weight_equals_cpu_time),
        cmocka_unit_test(test_covered_twice_counts_once),
        cmocka_unit_test(test_old_and_new_threads),
        cmocka_unit_test(test_threads_that_come_and_go),
        cmocka_unit_test(test_rings_are_merged_by_time),
        cmocka_unit_test(test_exec_is_told),
        cmocka_unit_test(test_mmap_is_told),
        cmocka_unit_test(test_end_of_target_is_told),
        cmocka_unit_test(test_no_such_process),
        cmocka_unit_test(test_target_that_ended_before_start),
        cmocka_unit_test(test_toggle),
        cmocka_unit_test(test_enable_on_exec),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
