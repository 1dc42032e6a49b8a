/* SPDX-License-Identifier: MIT */
/* The perf_event backend against processes of our own, whose thread ids, mappings and behaviour are known. No test depends on how many samples
 * come in a given time: targets spin until the test has seen what it waits for, within a generous deadline.
 *
 * Where perf_event_open is refused altogether the live tests are skipped; the machines that build releases allow it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/io.h"
#include "base/limits.h"
#include "sample/perf_private.h"
#include "sample/sampler.h"

#define DEADLINE_NS ((uint64_t)20 * 1000000000u)

/* What a run saw. */
struct seen {
    uint64_t samples, kernel_samples, exits, forks, out_of_order, foreign, before_start;
    uint64_t last_time, start_time;
    uint64_t bad_stack, cut;
    uint32_t pid;
    uint32_t want_tid;
    uint64_t of_want_tid;
    uint64_t mmap_start, mmaps_at_start;
    uint64_t execs;
    char exec_comm[64];
    uint64_t tids[256];
    size_t ntids;
    uint64_t weight_ns;
};

static void note_tid(struct seen *seen, uint32_t tid)
{
    for (size_t i = 0; i < seen->ntids; i++) {
        if (seen->tids[i] == tid)
            return;
    }
    if (seen->ntids < 256)
        seen->tids[seen->ntids++] = tid;
}

static void see_sample(struct seen *seen, const struct rp_event *event)
{
    const struct rp_snapshot *sample = &event->u.sample;
    uint64_t sum = 0;

    seen->samples++;
    seen->kernel_samples += sample->nkernel > 0;
    seen->of_want_tid += event->tid == seen->want_tid;
    seen->foreign += event->pid != seen->pid;
    seen->weight_ns += sample->weight_ns;
    seen->cut += sample->stack_cut;
    note_tid(seen, event->tid);
    if (!sample->has_user)
        return;
    for (uint32_t i = 0; i < sample->stack_bytes; i++) /* every byte must be readable */
        sum += sample->stack[i];
    seen->bad_stack += !sample->stack_bytes || !sum || sample->regs[RP_RSP] < 4096 || sample->regs[RP_RIP] < 4096;
}

static enum rp_status see(void *context, const struct rp_event *event, struct rp_err *err)
{
    struct seen *seen = context;

    (void)err;
    seen->out_of_order += event->kind == RP_EVENT_SAMPLE && event->time_ns < seen->last_time;
    seen->before_start += event->time_ns < seen->start_time;
    if (event->kind == RP_EVENT_SAMPLE) {
        seen->last_time = event->time_ns;
        see_sample(seen, event);
    }
    seen->exits += event->kind == RP_EVENT_EXIT;
    seen->forks += event->kind == RP_EVENT_FORK;
    if (event->kind == RP_EVENT_MMAP)
        seen->mmaps_at_start += event->u.mmap.start <= seen->mmap_start && seen->mmap_start < event->u.mmap.end;
    if (event->kind == RP_EVENT_COMM && event->u.comm.exec) {
        seen->execs++;
        snprintf(seen->exec_comm, sizeof seen->exec_comm, "%s", event->u.comm.comm);
    }
    return RP_OK;
}

/* A child process and two pipes: what it tells us, what we tell it. */
struct child {
    pid_t pid;
    int from, to;
};

typedef void child_body(int to_parent, int from_parent);

static struct child start_child(child_body *body)
{
    struct child c;
    int up[2], down[2];

    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    assert_int_equal(pipe2(down, O_CLOEXEC), 0);
    c.pid = fork();
    assert_true(c.pid >= 0);
    if (!c.pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        body(up[1], down[0]);
        _exit(0);
    }
    close(up[1]);
    close(down[0]);
    c.from = up[0];
    c.to = down[1];
    return c;
}

static uint64_t hear(const struct child *c)
{
    uint64_t word = 0;

    assert_int_equal(read(c->from, &word, sizeof word), (ssize_t)sizeof word);
    return word;
}

static void say(int fd, uint64_t word)
{
    if (write(fd, &word, sizeof word) != (ssize_t)sizeof word)
        abort();
}

static void end_child(struct child *c)
{
    kill(c->pid, SIGKILL);
    waitpid(c->pid, NULL, 0);
    close(c->from);
    close(c->to);
}

static volatile uint64_t spin_sink;

static void spin_for_ever(void)
{
    for (;;)
        spin_sink++;
}

static struct rp_sampler *make(uint32_t pid, const struct rp_sampler_options *more)
{
    struct rp_sampler_options options = more ? *more : (struct rp_sampler_options){0};
    struct rp_sampler *s = NULL;
    struct rp_err err = {0};
    enum rp_status status;

    options.pids = &pid;
    options.npids = 1;
    options.hz = options.hz ? options.hz : 997;
    status = rp_sampler_perf_new(&options, &s, &err);
    if (status)
        print_message("%s\n", err.text);
    assert_int_equal(status, RP_OK);
    status = s->ops->start(s, &err);
    if (status == RP_PERM && geteuid() != 0) {
        s->ops->free(s);
        skip();
    }
    if (status)
        print_message("%s\n", err.text);
    assert_int_equal(status, RP_OK);
    return s;
}

static bool wait_and_drain(struct rp_sampler *s, struct seen *seen)
{
    struct rp_err err = {0};
    bool ended = false;

    assert_int_equal(s->ops->wait(s, 20, &ended, &err), RP_OK);
    assert_int_equal(s->ops->drain(s, false, see, seen, &err), RP_OK);
    return ended;
}

static void finish(struct rp_sampler *s, struct seen *seen, struct rp_sampler_stats *stats)
{
    struct rp_err err = {0};

    s->ops->stop(s);
    assert_int_equal(s->ops->drain(s, true, see, seen, &err), RP_OK);
    s->ops->stats(s, stats);
    s->ops->free(s);
}

static bool late(uint64_t began)
{
    return rp_now_ns() - began > DEADLINE_NS;
}

static void body_spin(int up, int down)
{
    (void)down;
    say(up, (uint64_t)getpid());
    spin_for_ever();
}

static void test_samples_of_a_spinning_process(void **state)
{
    struct child c = start_child(body_spin);
    struct seen seen = {.pid = (uint32_t)c.pid, .want_tid = (uint32_t)c.pid, .start_time = rp_now_ns()};
    struct rp_sampler_stats stats;
    struct rp_sampler *s;
    uint64_t began = rp_now_ns();

    (void)state;
    hear(&c);
    s = make((uint32_t)c.pid, &(struct rp_sampler_options){.kernel = true});
    while (seen.samples < 200 && !late(began))
        wait_and_drain(s, &seen);
    finish(s, &seen, &stats);
    end_child(&c);
    assert_true(seen.samples >= 200);
    assert_int_equal(seen.samples, stats.samples);
    assert_int_equal(seen.of_want_tid, seen.samples);
    assert_int_equal(seen.foreign, 0);
    assert_int_equal(seen.out_of_order, 0);
    assert_int_equal(seen.before_start, 0);
    assert_int_equal(seen.bad_stack, 0);
    assert_int_equal(seen.cut, 0);
    assert_int_equal(stats.lost, 0);
    assert_int_equal(stats.damaged, 0);
    assert_int_equal(stats.threads_unsampled, 0);
    assert_int_equal(seen.weight_ns, seen.samples * (1000000000u / 997));
}

/* Samples x period against the CPU time the scheduler has accounted: the rate is neither half nor double, however busy the machine is. */
static void test_weight_equals_cpu_time(void **state)
{
    struct child c = start_child(body_spin);
    struct seen seen = {.pid = (uint32_t)c.pid};
    struct rp_sampler_stats stats;
    struct rp_sampler *s;
    struct timespec before, after;
    uint64_t began = rp_now_ns();
    clockid_t clock;
    double cpu;

    (void)state;
    hear(&c);
    assert_int_equal(clock_getcpuclockid(c.pid, &clock), 0);
    s = make((uint32_t)c.pid, &(struct rp_sampler_options){.kernel = true});
    clock_gettime(clock, &before);
    while (seen.samples < 500 && !late(began))
        wait_and_drain(s, &seen);
    clock_gettime(clock, &after);
    finish(s, &seen, &stats);
    end_child(&c);
    cpu = (double)(after.tv_sec - before.tv_sec) * 1e9 + (double)(after.tv_nsec - before.tv_nsec);
    assert_true((double)seen.weight_ns > 0.7 * cpu);
    assert_true((double)seen.weight_ns < 1.2 * cpu);
}

/* A thread that is covered twice, as happens when it is born while events are opened: every moment still counts once, and the second events
 * are closed. */
static void test_covered_twice_counts_once(void **state)
{
    struct child c = start_child(body_spin);
    struct seen seen = {.pid = (uint32_t)c.pid};
    struct rp_sampler_stats stats;
    struct rp_perf_sampler *inside;
    struct rp_sampler *s;
    struct timespec before, after;
    uint64_t began = rp_now_ns();
    clockid_t clock;
    size_t events;
    double cpu;

    (void)state;
    hear(&c);
    assert_int_equal(clock_getcpuclockid(c.pid, &clock), 0);
    clock_gettime(clock, &before);
    s = make((uint32_t)c.pid, &(struct rp_sampler_options){.kernel = true});
    inside = (struct rp_perf_sampler *)s;
    events = inside->events.at.n;
    for (uint32_t r = 0; r < inside->rings.n; r++) {
        int fd = rp_perf_open_event(&inside->want, c.pid, inside->rings.at[r].cpu);
        struct rp_perf_event *slot = rp_vec_add(&inside->events.at);

        assert_true(fd >= 0);
        assert_non_null(slot);
        assert_int_equal(ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, inside->rings.at[r].fd), 0);
        assert_int_equal(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
        *slot = (struct rp_perf_event){fd, c.pid, r, rp_perf_event_id(fd)};
    }
    while (seen.samples < 500 && !late(began))
        wait_and_drain(s, &seen);
    clock_gettime(clock, &after);
    assert_true(inside->events.at.n < events + inside->rings.n);
    finish(s, &seen, &stats);
    end_child(&c);
    cpu = (double)(after.tv_sec - before.tv_sec) * 1e9 + (double)(after.tv_nsec - before.tv_nsec);
    assert_true(seen.samples >= 500);
    assert_true((double)seen.weight_ns < 1.2 * cpu);
}

/* Each allocation of starting and draining fails once: always an orderly error, and the target runs on. */
static void test_no_memory(void **state)
{
    struct child c = start_child(body_spin);
    uint32_t pid = (uint32_t)c.pid;
    struct rp_sampler_options options = {.pids = &pid, .npids = 1, .hz = 5000};
    enum rp_status status = RP_OK;
    uint64_t n, calls = 1, refused = 0;

    (void)state;
    hear(&c);
    for (n = 1; n <= calls; n++) {
        struct seen seen = {.pid = pid};
        struct rp_sampler *s = NULL;
        struct rp_err err = {0};

        rp_alloc_fail_at(n);
        status = rp_sampler_perf_new(&options, &s, &err);
        if (!status)
            status = s->ops->start(s, &err);
        if (!status)
            usleep(20000);
        if (!status)
            status = s->ops->drain(s, true, see, &seen, &err);
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
    end_child(&c);
}

static void *thread_tells_and_spins(void *arg)
{
    say(*(int *)arg, (uint64_t)syscall(SYS_gettid));
    spin_for_ever();
    return NULL;
}

static void body_old_and_new_thread(int up, int down)
{
    pthread_t thread;
    uint64_t word;

    pthread_create(&thread, NULL, thread_tells_and_spins, &up);
    if (read(down, &word, sizeof word) == (ssize_t)sizeof word)
        pthread_create(&thread, NULL, thread_tells_and_spins, &up);
    pause();
}

static void test_old_and_new_threads(void **state)
{
    struct child c = start_child(body_old_and_new_thread);
    struct seen seen = {.pid = (uint32_t)c.pid};
    struct rp_sampler_stats stats;
    uint64_t began = rp_now_ns(), old_seen;
    struct rp_sampler *s;

    (void)state;
    seen.want_tid = (uint32_t)hear(&c);
    assert_int_not_equal(seen.want_tid, c.pid);
    s = make((uint32_t)c.pid, NULL);
    while (seen.of_want_tid < 20 && !late(began))
        wait_and_drain(s, &seen);
    old_seen = seen.of_want_tid;
    say(c.to, 1);
    seen.want_tid = (uint32_t)hear(&c);
    seen.of_want_tid = 0;
    while (seen.of_want_tid < 20 && !late(began))
        wait_and_drain(s, &seen);
    finish(s, &seen, &stats);
    end_child(&c);
    assert_true(old_seen >= 20);
    assert_true(seen.of_want_tid >= 20);
    assert_true(seen.forks >= 1);
    assert_int_equal(seen.out_of_order, 0);
}

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
    say(up, 1);
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
    struct child c = start_child(body_churn);
    clockid_t clock;

    (void)state;
    hear(&c);
    assert_int_equal(clock_getcpuclockid(c.pid, &clock), 0);
    for (int run = 0; run < 10; run++) {
        struct seen seen = {.pid = (uint32_t)c.pid};
        struct rp_sampler_stats stats;
        struct timespec before, after;
        uint64_t began = rp_now_ns();
        struct rp_sampler *s;
        double cpu;

        clock_gettime(clock, &before);
        s = make((uint32_t)c.pid, &(struct rp_sampler_options){.kernel = true});
        while ((seen.samples < 100 || seen.ntids < 20) && !late(began))
            wait_and_drain(s, &seen);
        clock_gettime(clock, &after);
        finish(s, &seen, &stats);
        cpu = (double)(after.tv_sec - before.tv_sec) * 1e9 + (double)(after.tv_nsec - before.tv_nsec);
        assert_true(seen.ntids >= 20);
        assert_true(seen.exits > 0);
        assert_int_equal(stats.threads_unsampled, 0);
        assert_true((double)seen.weight_ns < 1.2 * cpu);
    }
    end_child(&c);
}

static void *thread_spins_on(void *arg)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)(uintptr_t)arg, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
    spin_for_ever();
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
    say(up, 1);
    pause();
}

/* Rings of several CPUs are merged: many samples in one drain, all in order. */
static void test_rings_are_merged_by_time(void **state)
{
    struct child c = start_child(body_all_cpus);
    struct seen seen = {.pid = (uint32_t)c.pid};
    struct rp_sampler_stats stats;
    struct rp_sampler *s;
    uint64_t began = rp_now_ns();

    (void)state;
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
        end_child(&c);
        skip();
    }
    hear(&c);
    s = make((uint32_t)c.pid, &(struct rp_sampler_options){.stack_bytes = 1024});
    while ((seen.samples < 300 || seen.ntids < 2) && !late(began)) {
        usleep(100000);
        wait_and_drain(s, &seen);
    }
    finish(s, &seen, &stats);
    end_child(&c);
    assert_true(seen.ntids >= 2);
    assert_int_equal(seen.out_of_order, 0);
}

static void body_exec(int up, int down)
{
    uint64_t word;

    say(up, 1);
    if (read(down, &word, sizeof word) == (ssize_t)sizeof word)
        execl("/usr/bin/sleep", "sleep", "100", (char *)NULL);
}

static void test_exec_is_told(void **state)
{
    struct child c = start_child(body_exec);
    struct seen seen = {.pid = (uint32_t)c.pid};
    struct rp_sampler_stats stats;
    uint64_t began = rp_now_ns();
    struct rp_sampler *s;

    (void)state;
    hear(&c);
    s = make((uint32_t)c.pid, NULL);
    say(c.to, 1);
    while (!seen.execs && !late(began))
        wait_and_drain(s, &seen);
    finish(s, &seen, &stats);
    end_child(&c);
    assert_int_equal(seen.execs, 1);
    assert_string_equal(seen.exec_comm, "sleep");
}

static void body_mmap(int up, int down)
{
    uint64_t word;
    void *page;

    say(up, 1);
    if (read(down, &word, sizeof word) != (ssize_t)sizeof word)
        return;
    page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    say(up, (uint64_t)(uintptr_t)page);
    pause();
}

static void test_mmap_is_told(void **state)
{
    struct child c = start_child(body_mmap);
    struct seen seen = {.pid = (uint32_t)c.pid};
    struct rp_sampler_stats stats;
    uint64_t began = rp_now_ns();
    struct rp_sampler *s;

    (void)state;
    hear(&c);
    s = make((uint32_t)c.pid, NULL);
    say(c.to, 1);
    seen.mmap_start = hear(&c);
    while (!seen.mmaps_at_start && !late(began))
        wait_and_drain(s, &seen);
    finish(s, &seen, &stats);
    end_child(&c);
    assert_int_equal(seen.mmaps_at_start, 1);
}

/* Two pages hold less than one record: all is lost, and counted. */
static void test_small_ring_counts_its_losses(void **state)
{
    struct child c = start_child(body_spin);
    struct seen seen = {.pid = (uint32_t)c.pid};
    struct rp_sampler_stats stats;
    struct rp_sampler *s;

    (void)state;
    hear(&c);
    s = make((uint32_t)c.pid, &(struct rp_sampler_options){.ring_pages = 2, .stack_bytes = 32768, .hz = 5000});
    for (int i = 0; i < 20; i++)
        usleep(50000);
    finish(s, &seen, &stats);
    end_child(&c);
    assert_int_equal(seen.samples, 0);
    assert_true(stats.lost > 20);
}

/* The reader sleeps for half a second: the default ring holds what comes in meanwhile. */
static void test_default_ring_survives_a_sleeping_reader(void **state)
{
    struct child c = start_child(body_spin);
    struct seen seen = {.pid = (uint32_t)c.pid};
    struct rp_sampler_stats stats;
    struct rp_sampler *s;

    (void)state;
    if (geteuid() != 0)
        skip(); /* locked memory of ordinary users holds less */
    hear(&c);
    s = make((uint32_t)c.pid, NULL);
    usleep(450000);
    finish(s, &seen, &stats);
    end_child(&c);
    assert_true(seen.samples > 0);
    assert_int_equal(stats.lost, 0);
}

static void test_end_of_target_is_told(void **state)
{
    struct child c = start_child(body_spin);
    struct seen seen = {.pid = (uint32_t)c.pid};
    struct rp_sampler_stats stats;
    uint64_t began = rp_now_ns();
    struct rp_sampler *s;
    bool ended = false;

    (void)state;
    hear(&c);
    s = make((uint32_t)c.pid, NULL);
    assert_false(wait_and_drain(s, &seen));
    kill(c.pid, SIGKILL);
    while (!ended && !late(began))
        ended = wait_and_drain(s, &seen);
    finish(s, &seen, &stats);
    end_child(&c);
    assert_true(ended);
    assert_true(seen.exits >= 1);
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
    struct child c = start_child(body_spin);
    uint32_t pid = (uint32_t)c.pid;
    struct rp_sampler_options options = {.pids = &pid, .npids = 1, .hz = 997};
    struct rp_sampler *s = NULL;
    struct rp_err err = {0};

    (void)state;
    hear(&c);
    assert_int_equal(rp_sampler_perf_new(&options, &s, &err), RP_OK);
    end_child(&c);
    assert_int_equal(s->ops->start(s, &err), RP_NOPROC);
    s->ops->free(s);
}

/* A frame larger than the first copy, so that every stack is cut. */
static __attribute__((noinline)) void deep(int up)
{
    volatile char room[40000];

    memset((void *)(uintptr_t)room, 1, sizeof room);
    say(up, 1);
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
    struct child c = start_child(body_deep);
    struct seen seen = {.pid = (uint32_t)c.pid};
    struct rp_sampler_stats stats = {0};
    struct rp_err err = {0};
    uint64_t began = rp_now_ns(), uncut = 0;
    struct rp_sampler *s;

    (void)state;
    hear(&c);
    s = make((uint32_t)c.pid, NULL);
    while (uncut < 100 && !late(began)) {
        uint64_t samples = seen.samples, cut = seen.cut;

        wait_and_drain(s, &seen);
        uncut += seen.samples - samples - (seen.cut - cut);
        assert_int_equal(s->ops->feedback(s, seen.samples - samples, seen.cut - cut, &err), RP_OK);
    }
    finish(s, &seen, &stats);
    end_child(&c);
    assert_true(uncut >= 100);
    assert_in_range(stats.stack_grown, 1, 2);
    assert_int_equal(stats.stack_bytes, RP_STACK_COPY_MAX);
    assert_true(seen.cut > 0);
    assert_int_equal(seen.out_of_order, 0);
    assert_int_equal(seen.bad_stack, 0);
}

static void test_toggle(void **state)
{
    struct child c = start_child(body_spin);
    struct seen seen = {.pid = (uint32_t)c.pid};
    struct rp_sampler_stats stats;
    struct rp_err err = {0};
    uint64_t began = rp_now_ns(), off, on;
    struct rp_sampler *s;

    (void)state;
    hear(&c);
    s = make((uint32_t)c.pid, NULL);
    while (seen.samples < 20 && !late(began))
        wait_and_drain(s, &seen);
    assert_int_equal(s->ops->toggle(s, false, &err), RP_OK);
    usleep(10000);
    assert_int_equal(s->ops->drain(s, false, see, &seen, &err), RP_OK);
    off = seen.samples;
    usleep(100000);
    wait_and_drain(s, &seen);
    on = seen.samples;
    assert_int_equal(s->ops->toggle(s, true, &err), RP_OK);
    while (seen.samples < on + 20 && !late(began))
        wait_and_drain(s, &seen);
    finish(s, &seen, &stats);
    end_child(&c);
    assert_int_equal(off, on);
    assert_true(seen.samples >= on + 20);
}

static void body_many_threads(int up, int down)
{
    pthread_t thread;
    int spinner_up = up;

    (void)down;
    for (int i = 0; i < 20; i++)
        pthread_create(&thread, NULL, (void *(*)(void *))(void (*)(void))pause, NULL);
    pthread_create(&thread, NULL, thread_tells_and_spins, &spinner_up);
    pause();
}

/* With too few descriptors whole CPUs are sampled, and only the target's samples come out. */
static void test_more_threads_than_descriptors(void **state)
{
    struct child c = start_child(body_many_threads), other = start_child(body_spin);
    struct seen seen = {.pid = (uint32_t)c.pid};
    struct rp_sampler_stats stats;
    uint64_t began = rp_now_ns();
    struct rp_sampler *s;

    (void)state;
    if (geteuid() != 0)
        skip();
    hear(&other);
    seen.want_tid = (uint32_t)hear(&c);
    s = make((uint32_t)c.pid, &(struct rp_sampler_options){.max_events = (uint32_t)sysconf(_SC_NPROCESSORS_CONF) * 3});
    while (seen.of_want_tid < 50 && !late(began))
        wait_and_drain(s, &seen);
    finish(s, &seen, &stats);
    end_child(&c);
    end_child(&other);
    assert_true(stats.system_wide);
    assert_true(seen.of_want_tid >= 50);
    assert_int_equal(seen.foreign, 0);
    assert_true(strlen(stats.note) > 0);
}

/* More samples than the kernel allows: fewer are taken, and the report can say so. */
static void test_rate_beyond_the_kernels(void **state)
{
    struct child c = start_child(body_spin);
    struct seen seen = {.pid = (uint32_t)c.pid};
    struct rp_buf text = {0};
    struct rp_sampler_stats stats;
    struct rp_err err = {0};
    struct rp_sampler *s;
    long most;

    (void)state;
    hear(&c);
    assert_int_equal(rp_read_file("/proc/sys/kernel/perf_event_max_sample_rate", 64, &text, &err), RP_OK);
    most = atol(rp_buf_text(&text));
    rp_buf_release(&text);
    s = make((uint32_t)c.pid, &(struct rp_sampler_options){.hz = 100000, .stack_bytes = 512});
    finish(s, &seen, &stats);
    end_child(&c);
    assert_true(stats.hz <= 100000 && stats.hz <= most);
    assert_int_equal(most < 100000, strstr(stats.note, "perf_event_max_sample_rate") != NULL);
}

static void test_enable_on_exec(void **state)
{
    struct child c = start_child(body_exec);
    struct seen seen = {.pid = (uint32_t)c.pid};
    struct rp_sampler_stats stats;
    uint64_t began = rp_now_ns();
    struct rp_sampler *s;

    (void)state;
    hear(&c);
    s = make((uint32_t)c.pid, &(struct rp_sampler_options){.enable_on_exec = true});
    say(c.to, 1);
    while (!seen.execs && !late(began))
        wait_and_drain(s, &seen);
    finish(s, &seen, &stats);
    end_child(&c);
    assert_int_equal(seen.execs, 1);
}

/* Without privilege and descriptors the busiest threads are sampled, the rest counted. */
static int as_nobody_with_few_descriptors(void)
{
    struct child c = start_child(body_many_threads);
    struct seen seen = {.pid = (uint32_t)c.pid};
    struct rp_sampler_options options = {.npids = 1, .hz = 997, .max_events = (uint32_t)sysconf(_SC_NPROCESSORS_CONF) * 3};
    uint32_t pid = (uint32_t)c.pid;
    struct rp_sampler_stats stats;
    uint64_t began = rp_now_ns();
    struct rp_sampler *s = NULL;
    struct rp_err err = {0};

    seen.want_tid = (uint32_t)hear(&c);
    usleep(100000); /* it is the busiest by now */
    options.pids = &pid;
    if (rp_sampler_perf_new(&options, &s, &err) != RP_OK || s->ops->start(s, &err) != RP_OK)
        return 20;
    while (seen.of_want_tid < 20 && !late(began))
        wait_and_drain(s, &seen);
    finish(s, &seen, &stats);
    end_child(&c);
    if (stats.system_wide || stats.threads_unsampled != 22 - 3 || !strstr(stats.note, "ulimit -n"))
        return 21;
    return seen.of_want_tid >= 20 ? 0 : 22;
}

/* As an ordinary user: one's own process works without the kernel, another's is refused with the reason. Runs in a child that has given up root. */
static int as_nobody(void)
{
    struct child c;
    struct seen seen;
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
    c = start_child(body_spin);
    hear(&c);
    seen = (struct seen){.pid = (uint32_t)c.pid, .want_tid = (uint32_t)c.pid};
    pid = (uint32_t)c.pid;
    if (rp_sampler_perf_new(&options, &s, &err) != RP_OK)
        return 13;
    if (s->ops->start(s, &err) != RP_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 14;
    }
    while (seen.samples < 50 && !late(began))
        wait_and_drain(s, &seen);
    finish(s, &seen, &stats);
    end_child(&c);
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
        cmocka_unit_test(test_samples_of_a_spinning_process),
        cmocka_unit_test(test_weight_equals_cpu_time),
        cmocka_unit_test(test_covered_twice_counts_once),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_old_and_new_threads),
        cmocka_unit_test(test_threads_that_come_and_go),
        cmocka_unit_test(test_rings_are_merged_by_time),
        cmocka_unit_test(test_exec_is_told),
        cmocka_unit_test(test_mmap_is_told),
        cmocka_unit_test(test_small_ring_counts_its_losses),
        cmocka_unit_test(test_default_ring_survives_a_sleeping_reader),
        cmocka_unit_test(test_end_of_target_is_told),
        cmocka_unit_test(test_no_such_process),
        cmocka_unit_test(test_target_that_ended_before_start),
        cmocka_unit_test(test_copy_grows_when_stacks_are_cut),
        cmocka_unit_test(test_toggle),
        cmocka_unit_test(test_more_threads_than_descriptors),
        cmocka_unit_test(test_rate_beyond_the_kernels),
        cmocka_unit_test(test_enable_on_exec),
        cmocka_unit_test(test_ordinary_user),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
