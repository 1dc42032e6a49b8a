/* SPDX-License-Identifier: MIT */
/* The ptrace backend, for where perf_event_open is refused: a thread of ours that looks, so many times a second, who is running, stops those for
 * the time of a copy, and hands the copies to the reader through a queue. A thread of its own, because whoever is held must not wait for names
 * being read.
 *
 * What a sample stands for. A look finds threads that are ready to run, but perf would sample those on a CPU only, and our own waking puts one of them off.
 * So each thread has an account: the CPU time it used (schedstat, exact once it is stopped) is credited, a sample costs one period, and a copy for
 * which the credit does not suffice is thrown away. Counts are then in proportion to CPU time whatever the load. Which copies are taken: one of a thread that was on a CPU
 * from the look to the stop (its count of switches says so), or in user code; one that stands at a system call without that proof was
 * most likely waking up from it, and is taken only when credit has piled up.
 *
 * The traps: a stop takes microseconds to reach a running thread, and a system call made meanwhile ends in it, so short ones are seen too often (3 %
 * where 0.5 % are true, at 5 000 calls a second). And a thread in uninterruptible sleep stops when the kernel lets it, perhaps never. It is looked for on the way, not waited for. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/io.h"
#include "base/limits.h"
#include "base/random.h"
#include "sample/perf_cpus.h"
#include "sample/ptrace_edges.h"
#include "sample/ptrace_hold.h"
#include "sample/ptrace_queue.h"
#include "sample/ptrace_watch.h"
#include "sample/stack_growth.h"
#include "target/permission.h"

enum {
    HZ_MAX = 1000,
    STACK_BYTES = 16384,
    FILES_MAX = 256,          /* of threads, kept open */
    FILES_SHARE = 4,          /* … or this part of what may be open */
    SPIN_NS = 25000,          /* a thread on another CPU stops within this time, mostly */
    NAP_NS = 10000,           /* then we sleep: it may need our CPU */
    NAP_MAX_NS = 200000,
    SLICE_NS = 20000000,      /* how soon an end is noticed */
    LAST_WAIT_NS = 500000000, /* for threads that do not stop, at the end */
    JOIN_SECONDS = 2,
    CREDIT_MAX = 16,          /* periods */
    CREDIT_PILED = 4,
    NICE = -10,
};

/* A thread that was asked to stop. */
struct asked {
    uint32_t pid, tid;
    uint64_t switches_in; /* at the look */
    bool near;            /* it was on our CPU, so it cannot have gone on */
};

struct ptrace_sampler {
    struct rp_sampler base;
    struct rp_sampler_options options; /* pids: copied */
    uint32_t *pids;
    uint64_t period_ns;
    struct rp_queue queue;
    int wake; /* eventfd: something for the reader */
    pthread_t thread;
    bool started, stuck;
    atomic_bool stop, paused, ended;
    atomic_uint stack_bytes;
    _Atomic uint64_t samples, lost, vanished;
    struct rp_sampler_stats stats;
    struct rp_stack_growth growth;
    /* The sampling thread's own. */
    struct rp_watch watch;
    struct rp_edges edges;
    RP_VEC(struct asked) asked, candidates;
    uint64_t random;
};

static struct ptrace_sampler *of(struct rp_sampler *base)
{
    return (struct ptrace_sampler *)base;
}

/* ---- the sampling thread ---- */

static void wake_reader(struct ptrace_sampler *s)
{
    uint64_t one = 1;

    (void)!write(s->wake, &one, sizeof one);
}

/* rp_watch_tell: what is found out becomes an event. */
static void tell(void *context, enum rp_watch_news news, uint32_t pid, uint32_t tid, uint32_t other, const char *comm)
{
    struct ptrace_sampler *s = context;
    size_t length = comm ? strnlen(comm, 15) : 0;
    struct rp_queue_record *record = rp_queue_reserve(&s->queue, length + 1);
    struct rp_event *event;

    if (!record) {
        atomic_fetch_add(&s->lost, 1);
        return;
    }
    event = &record->event;
    *event = (struct rp_event){.time_ns = rp_now_ns(), .pid = pid, .tid = tid};
    switch (news) {
    case RP_WATCH_THREAD:
        event->kind = RP_EVENT_FORK;
        event->u.fork.parent_pid = event->u.fork.parent_tid = pid;
        break;
    case RP_WATCH_PROCESS:
        event->kind = RP_EVENT_FORK;
        event->u.fork.parent_pid = event->u.fork.parent_tid = other;
        break;
    case RP_WATCH_THREAD_GONE:
        event->kind = RP_EVENT_EXIT;
        break;
    case RP_WATCH_NAME:
    case RP_WATCH_EXEC:
        event->kind = RP_EVENT_COMM;
        event->u.comm.exec = news == RP_WATCH_EXEC;
        memcpy(record->data, comm, length);
        record->data[length] = '\0';
        break;
    }
    rp_queue_commit(&s->queue, record, length + 1);
}

static struct rp_watch_thread *find_thread(struct ptrace_sampler *s, const struct asked *a, struct rp_watch_process **process)
{
    for (size_t i = 0; i < s->watch.processes.n; i++) {
        *process = &s->watch.processes.at[i];
        if ((*process)->pid == a->pid && (*process)->tasks)
            return rp_watch_find(*process, a->tid);
    }
    return NULL;
}

/* Credits the CPU time up to the stop, and says whether this copy is to be a sample. */
static bool may_be_taken(struct ptrace_sampler *s, const struct asked *a, const struct rp_hold_copy *copy, bool have_times,
                         const struct rp_watch_times *times)
{
    struct rp_watch_process *p;
    struct rp_watch_thread *t = find_thread(s, a, &p);

    if (!t || !have_times)
        return true;
    if (times->cpu_ns > t->accounted_ns)
        t->credit_ns += times->cpu_ns - t->accounted_ns;
    t->accounted_ns = times->cpu_ns;
    if (t->credit_ns > CREDIT_MAX * s->period_ns)
        t->credit_ns = CREDIT_MAX * s->period_ns;
    if (t->credit_ns < s->period_ns || (copy->in_syscall && times->switches_in != a->switches_in && t->credit_ns < CREDIT_PILED * s->period_ns))
        return false;
    t->credit_ns -= s->period_ns;
    return true;
}

static void fill_sample(struct ptrace_sampler *s, struct rp_event *event, const struct asked *a, const struct rp_hold_copy *copy, uint32_t room)
{
    *event = (struct rp_event){.kind = RP_EVENT_SAMPLE, .time_ns = rp_now_ns(), .pid = a->pid, .tid = a->tid};
    event->u.sample.has_user = true;
    memcpy(event->u.sample.regs, copy->regs, sizeof copy->regs);
    event->u.sample.stack_bytes = copy->stack_bytes;
    event->u.sample.stack_cut = copy->stack_bytes == room;
    event->u.sample.weight_ns = s->period_ns;
}

/* Copies a thread that stands still, lets it go, and only then thinks about it. False: it is to be looked for again. */
static bool take_stopped(struct ptrace_sampler *s, const struct asked *a, const struct rp_hold_stop *stop)
{
    uint32_t room = atomic_load(&s->stack_bytes);
    struct rp_queue_record *record = stop->by_us && !atomic_load(&s->stop) ? rp_queue_reserve(&s->queue, room) : NULL;
    struct rp_watch_process *p = NULL;
    struct rp_watch_thread *t = find_thread(s, a, &p);
    struct rp_hold_copy copy;
    struct rp_watch_times times = {0};
    bool copied = record && rp_hold_copy((pid_t)a->pid, (pid_t)a->tid, record->data, room, &copy);
    bool have_times = copied && t && rp_watch_schedstat(p, t, &times), gone_on;

    if (!record && stop->by_us)
        rp_hold_heal((pid_t)a->tid);
    gone_on = rp_hold_let_go((pid_t)a->tid, stop);
    if (!record && stop->by_us && !atomic_load(&s->stop))
        atomic_fetch_add(&s->lost, 1);
    if (copied && may_be_taken(s, a, &copy, have_times, &times)) {
        fill_sample(s, &record->event, a, &copy, room);
        rp_queue_commit(&s->queue, record, copy.stack_bytes);
        atomic_fetch_add(&s->samples, 1);
    }
    if (have_times && s->options.waits) /* only now: a record that is reserved must be the next one that is committed */
        rp_edges_running(&s->edges, p, t, rp_now_ns(), &times);
    return gone_on;
}

/* Goes once through those who were asked. */
static void collect(struct ptrace_sampler *s)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->asked.n; i++) {
        struct asked a = s->asked.at[i];
        struct rp_watch_process *p;
        struct rp_watch_thread *t = find_thread(s, &a, &p);
        struct rp_hold_stop stop;
        enum rp_hold_state state = rp_hold_follow((pid_t)a.pid, &a.tid, &stop);

        if (t && t->tid != a.tid)
            t->asked = false;
        if (state == RP_HOLD_NOT_YET || (state == RP_HOLD_STOPPED && !take_stopped(s, &a, &stop))) {
            s->asked.at[kept++] = a;
            continue;
        }
        t = find_thread(s, &a, &p);
        if (t)
            t->asked = false;
    }
    s->asked.n = kept;
}

static void sleep_until(uint64_t until)
{
    struct timespec at = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};

    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

/* Until the next look: lets go of whoever has stopped, as soon as it has. */
static void serve(struct ptrace_sampler *s, uint64_t until, bool spin)
{
    uint64_t begin = rp_now_ns(), now = begin, nap = NAP_NS;

    for (;;) {
        collect(s);
        now = rp_now_ns();
        if (now >= until || (atomic_load(&s->stop) && !s->asked.n))
            return;
        if (!s->asked.n) {
            sleep_until(until - now > SLICE_NS ? now + SLICE_NS : until);
        } else if (!spin || now - begin > SPIN_NS) {
            sleep_until(now + nap);
            nap = nap * 2 < NAP_MAX_NS ? nap * 2 : (uint64_t)NAP_MAX_NS;
        }
    }
}

/* Whether a sample of it would be paid for. schedstat is exact while it waits for a CPU, and a scheduler tick late while it has one: then it is
 * stopped a little later. Threads that use little CPU are stopped that seldom. */
static bool has_credit(const struct ptrace_sampler *s, const struct rp_watch_thread *t)
{
    return t->credit_ns + (t->times.cpu_ns > t->accounted_ns ? t->times.cpu_ns - t->accounted_ns : 0) >= s->period_ns;
}

static bool runs(struct ptrace_sampler *s, struct rp_watch_process *p, struct rp_watch_thread *t, uint64_t now_ns)
{
    enum rp_watch_sight sight = rp_watch_look(&s->watch, p, t, now_ns, tell, s);

    if (s->options.waits)
        rp_edges_look(&s->edges, p, t, sight, now_ns);
    return sight == RP_WATCH_RUNS;
}

static void look_at_process(struct ptrace_sampler *s, struct rp_watch_process *p, uint64_t now_ns, int here)
{
    if (!p->tasks || p->waits_for_exec)
        return;
    if (s->options.waits)
        rp_edges_peek(&s->edges, p, now_ns);
    if (!rp_watch_has_run(p))
        return;
    for (size_t i = 0; i < p->threads.n; i++) {
        struct rp_watch_thread *t = &p->threads.at[i];
        struct asked *a;

        if (t->asked || !rp_watch_is_due(p, i, now_ns) || !runs(s, p, t, now_ns) || !has_credit(s, t))
            continue;
        a = rp_vec_add(&s->candidates);
        if (a)
            *a = (struct asked){p->pid, t->tid, t->times.switches_in, t->cpu == here};
    }
    rp_watch_next_turn(p);
}

/* Asks all of them at once, so that nobody is held while another is looked at. True: all are on other CPUs than we. */
static bool ask_candidates(struct ptrace_sampler *s)
{
    bool all_far = true;

    if (!rp_vec_reserve(&s->asked, s->candidates.n))
        return false;
    for (size_t i = 0; i < s->candidates.n; i++) {
        const struct asked *a = &s->candidates.at[i];
        struct rp_watch_process *p;
        struct rp_watch_thread *t = find_thread(s, a, &p);

        if (!t || !rp_hold_ask((pid_t)a->tid)) {
            atomic_fetch_add(&s->vanished, 1);
            continue;
        }
        t->asked = true;
        all_far = all_far && !a->near;
        s->asked.at[s->asked.n++] = *a;
    }
    return all_far;
}

/* One look at everything. */
static bool look_around(struct ptrace_sampler *s)
{
    uint64_t now = rp_now_ns();
    int here = sched_getcpu();
    bool any = false;

    rp_vec_clear(&s->candidates);
    for (size_t i = 0; i < s->watch.processes.n; i++) {
        rp_watch_check(&s->watch, i, s->options.children, now, tell, s);
        rp_watch_list(&s->watch, &s->watch.processes.at[i], now, tell, s);
        look_at_process(s, &s->watch.processes.at[i], now, here);
        any = any || s->watch.processes.at[i].tasks;
    }
    if (!any && !atomic_exchange(&s->ended, true))
        wake_reader(s);
    return ask_candidates(s);
}

/* Off the beat by up to a quarter of a period, against targets that keep time. */
static uint64_t jitter(struct ptrace_sampler *s)
{
    return rp_random_next(&s->random) % (s->period_ns / 4 + 1);
}

static void *sampling_thread(void *context)
{
    struct ptrace_sampler *s = context;
    uint64_t beat = rp_now_ns();

    (void)prctl(PR_SET_NAME, "rowprof-ptrace");
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    /* Whoever is held waits for us. Without the privilege it goes as it is. */
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE);
    while (!atomic_load(&s->stop)) {
        bool spin = !atomic_load(&s->paused) && look_around(s);
        uint64_t now = rp_now_ns();

        beat = beat + s->period_ns > now ? beat + s->period_ns : now + s->period_ns;
        serve(s, beat + jitter(s), spin);
        if (rp_queue_used(&s->queue) > s->queue.size / 2)
            wake_reader(s);
    }
    serve(s, rp_now_ns() + LAST_WAIT_NS, false);
    /* What has not stopped until now is let go by the kernel with the end of this thread. */
    return NULL;
}

/* ---- the reader's side ---- */

static enum rp_status check_permission(struct ptrace_sampler *s, struct rp_err *err)
{
    enum rp_status status = RP_OK;

    for (size_t i = 0; i < s->options.npids && !status; i++)
        status = rp_permission_check_ptrace(s->pids[i], err);
    return status;
}

static enum rp_status watch_targets(struct ptrace_sampler *s, struct rp_err *err)
{
    uint64_t now = rp_now_ns(), files = rp_raise_limits() / FILES_SHARE;

    s->watch.files_max = files < FILES_MAX ? (uint32_t)files : (uint32_t)FILES_MAX;
    for (size_t i = 0; i < s->options.npids; i++) {
        if (rp_watch_add(&s->watch, s->pids[i], now))
            s->watch.processes.at[s->watch.processes.n - 1].waits_for_exec = s->options.enable_on_exec;
    }
    if (!s->watch.processes.n)
        return rp_fail(err, RP_NOPROC, "process %u ended before sampling began; start it again and give its new pid", s->pids[0]);
    return RP_OK;
}

static enum rp_status ptrace_start(struct rp_sampler *base, struct rp_err *err)
{
    struct ptrace_sampler *s = of(base);
    enum rp_status status = check_permission(s, err);
    sigset_t all, before;
    int failed;

    if (!status)
        status = watch_targets(s, err);
    if (status)
        return status;
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->wake < 0 || !rp_queue_init(&s->queue, RP_PTRACE_QUEUE_BYTES))
        return rp_fail(err, RP_FAILED, "the queue for samples could not be made (%s); free some memory or raise ulimit -n", strerror(errno));
    sigfillset(&all); /* signals are the main thread's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&s->thread, NULL, sampling_thread, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return rp_fail(err, RP_FAILED, "the sampling thread could not be started (%s); raise ulimit -u", strerror(failed));
    s->started = true;
    return RP_OK;
}

static enum rp_status ptrace_drain(struct rp_sampler *base, bool final, rp_event_sink *sink, void *context, struct rp_err *err)
{
    struct ptrace_sampler *s = of(base);
    struct rp_queue_record *record;
    enum rp_status status = RP_OK;

    (void)final;
    while (!status && s->queue.ring && (record = rp_queue_next(&s->queue))) {
        struct rp_event *event = &record->event;

        if (event->kind == RP_EVENT_SAMPLE)
            event->u.sample.stack = record->data;
        else if (event->kind == RP_EVENT_PEEK)
            event->u.peek.sample.stack = record->data;
        else if (event->kind == RP_EVENT_COMM)
            event->u.comm.comm = (const char *)record->data;
        status = sink(context, event, err);
        rp_queue_advance(&s->queue, record);
    }
    return status;
}

static enum rp_status ptrace_wait(struct rp_sampler *base, int timeout_ms, bool *ended, struct rp_err *err)
{
    struct ptrace_sampler *s = of(base);
    struct pollfd wake = {s->wake, POLLIN, 0};
    uint64_t count;

    if (!atomic_load(&s->ended) && poll(&wake, 1, timeout_ms) < 0 && errno != EINTR)
        return rp_fail(err, RP_FAILED, "waiting for samples failed: %s; try again", strerror(errno));
    (void)!read(s->wake, &count, sizeof count);
    *ended = atomic_load(&s->ended);
    return RP_OK;
}

static void ptrace_stop(struct rp_sampler *base)
{
    struct ptrace_sampler *s = of(base);
    struct timespec until;

    if (!s->started)
        return;
    atomic_store(&s->stop, true);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += JOIN_SECONDS;
    /* It can hang only inside a system call on a target that hangs in the kernel. Then it is left behind, and what it uses with it. */
    s->stuck = pthread_timedjoin_np(s->thread, NULL, &until) != 0;
    s->started = false;
    if (s->stuck)
        rp_sampler_note(&s->stats, "A thread of the target hangs in the kernel and could not be let go of before the end of rowprof.");
}

static enum rp_status ptrace_toggle(struct rp_sampler *base, bool on, struct rp_err *err)
{
    (void)err;
    atomic_store(&of(base)->paused, !on);
    return RP_OK;
}

static enum rp_status ptrace_feedback(struct rp_sampler *base, uint64_t walked, uint64_t cut, struct rp_err *err)
{
    struct ptrace_sampler *s = of(base);
    uint32_t larger;

    (void)err;
    rp_stack_growth_count(&s->growth, walked, cut);
    larger = rp_stack_growth_next(&s->growth, atomic_load(&s->stack_bytes));
    if (larger) {
        atomic_store(&s->stack_bytes, larger);
        s->growth.grown++;
    }
    return RP_OK;
}

static void ptrace_stats(const struct rp_sampler *base, struct rp_sampler_stats *stats)
{
    const struct ptrace_sampler *s = (const struct ptrace_sampler *)base;

    *stats = s->stats;
    stats->stack_bytes = atomic_load(&s->stack_bytes);
    stats->samples = atomic_load(&s->samples);
    stats->stack_grown = s->growth.grown;
    stats->lost = atomic_load(&s->lost) + atomic_load(&s->edges.lost);
    stats->vanished = atomic_load(&s->vanished);
    stats->waits = s->options.waits ? 2 : 0;
    stats->switches = atomic_load(&s->edges.switches);
    stats->peeks = atomic_load(&s->edges.peeks);
}

static void ptrace_free(struct rp_sampler *base)
{
    struct ptrace_sampler *s = of(base);

    if (!s)
        return;
    ptrace_stop(base);
    if (s->stuck)
        return;
    rp_watch_release(&s->watch);
    rp_edges_release(&s->edges);
    rp_vec_release(&s->asked);
    rp_vec_release(&s->candidates);
    rp_queue_release(&s->queue);
    rp_close(&s->wake);
    rp_free(s->pids);
    rp_free(s);
}

static const struct rp_sampler_ops ptrace_ops = {
    .name = "ptrace",
    .start = ptrace_start,
    .drain = ptrace_drain,
    .wait = ptrace_wait,
    .stop = ptrace_stop,
    .toggle = ptrace_toggle,
    .feedback = ptrace_feedback,
    .stats = ptrace_stats,
    .free = ptrace_free,
};

static void set_up(struct ptrace_sampler *s)
{
    uint32_t hz = s->options.hz;

    atomic_store(&s->stack_bytes, rp_stack_growth_begin(&s->growth, s->options.stack_bytes, STACK_BYTES));
    if (hz > HZ_MAX) {
        rp_sampler_note(&s->stats, "The rate is %d per second instead of %u: stopping threads more often would slow the target.", HZ_MAX, hz);
        hz = HZ_MAX;
    }
    s->stats.source = RP_SOURCE_PTRACE;
    s->stats.hz = hz;
    s->period_ns = 1000000000u / hz;
    s->watch.period_ns = s->period_ns;
    s->random = rp_now_ns() | 1;
    s->wake = -1;
}

enum rp_status rp_sampler_ptrace_new(const struct rp_sampler_options *options, const char *why, struct rp_sampler **out, struct rp_err *err)
{
    struct ptrace_sampler *s;

    if (!options->npids || !options->hz)
        return rp_fail(err, RP_USAGE, "a sampling rate of %u per second on %zu processes is not possible; give a pid and 1 to %d", options->hz,
                       options->npids, HZ_MAX);
    s = rp_calloc(1, sizeof *s);
    if (!s)
        return rp_fail_nomem(err);
    s->base.ops = &ptrace_ops;
    s->options = *options;
    rp_sampler_note(&s->stats, "%s", why ? why : "Running threads were stopped for a copy by ptrace: kernel frames are not seen, their time belongs to the function that called.");
    set_up(s);
    s->pids = rp_calloc(options->npids, sizeof *s->pids);
    if (!s->pids) {
        ptrace_free(&s->base);
        return rp_fail_nomem(err);
    }
    s->edges.queue = &s->queue;
    memcpy(s->pids, options->pids, options->npids * sizeof *s->pids);
    s->options.pids = s->pids;
    *out = &s->base;
    return RP_OK;
}
