/* SPDX-License-Identifier: MIT */
/* See perf_run.h. */
#include "support/perf_run.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"

#define DEADLINE_NS ((uint64_t)20 * 1000000000u)

static void note_tid(struct perf_seen *seen, uint32_t tid)
{
    for (uint64_t i = 0; i < seen->ntids; i++) {
        if (seen->tids[i] == tid)
            return;
    }
    if (seen->ntids < 256)
        seen->tids[seen->ntids++] = tid;
}

static void see_sample(struct perf_seen *seen, const struct rp_event *event)
{
    const struct rp_snapshot *sample = &event->u.sample;
    uint64_t sum = 0;

    seen->samples++;
    seen->kernel_samples += sample->nkernel > 0;
    seen->of_want_tid += event->tid == seen->want_tid;
    seen->foreign += event->pid != seen->pid;
    seen->weight_ns += sample->weight_ns;
    seen->cut += sample->stack_cut;
    seen->after_exit += event->tid == seen->ended;
    note_tid(seen, event->tid);
    if (!sample->has_user)
        return;
    for (uint32_t i = 0; i < sample->stack_bytes; i++) /* every byte must be readable */
        sum += sample->stack[i];
    /* In the fault that brings a page of the stack there is nothing to copy yet. */
    seen->bad_stack += (sample->stack_bytes ? !sum : !sample->nkernel) || sample->regs[RP_RSP] < 4096 || sample->regs[RP_RIP] < 4096;
}

enum rp_status perf_see(void *context, const struct rp_event *event, struct rp_err *err)
{
    struct perf_seen *seen = context;

    (void)err;
    seen->out_of_order += event->kind == RP_EVENT_SAMPLE && event->time_ns < seen->last_time;
    seen->before_start += event->time_ns < seen->start_time;
    if (event->kind == RP_EVENT_SAMPLE) {
        seen->last_time = event->time_ns;
        see_sample(seen, event);
    }
    seen->exits += event->kind == RP_EVENT_EXIT;
    if (event->kind == RP_EVENT_EXIT)
        seen->ended = event->tid;
    else if (event->kind == RP_EVENT_FORK && event->tid == seen->ended)
        seen->ended = 0;
    seen->forks += event->kind == RP_EVENT_FORK;
    if (event->kind == RP_EVENT_MMAP)
        seen->mmaps_at_start += event->u.mmap.start <= seen->mmap_start && seen->mmap_start < event->u.mmap.end;
    if (event->kind == RP_EVENT_COMM && event->u.comm.exec) {
        seen->execs++;
        snprintf(seen->exec_comm, sizeof seen->exec_comm, "%s", event->u.comm.comm);
    }
    return RP_OK;
}

struct perf_child perf_child_start(perf_child_body *body)
{
    struct perf_child c;
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

uint64_t perf_child_hear(const struct perf_child *c)
{
    uint64_t word = 0;

    assert_int_equal(read(c->from, &word, sizeof word), (ssize_t)sizeof word);
    return word;
}

void perf_child_say(int fd, uint64_t word)
{
    if (write(fd, &word, sizeof word) != (ssize_t)sizeof word)
        abort();
}

void perf_child_end(struct perf_child *c)
{
    kill(c->pid, SIGKILL);
    waitpid(c->pid, NULL, 0);
    close(c->from);
    close(c->to);
}

static volatile uint64_t spin_sink;

void perf_spin_for_ever(void)
{
    for (;;)
        spin_sink++;
}

struct rp_sampler *perf_start(uint32_t pid, const struct rp_sampler_options *more)
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

bool perf_wait_and_drain(struct rp_sampler *s, struct perf_seen *seen)
{
    struct rp_err err = {0};
    bool ended = false;

    assert_int_equal(s->ops->wait(s, 20, &ended, &err), RP_OK);
    assert_int_equal(s->ops->drain(s, false, perf_see, seen, &err), RP_OK);
    return ended;
}

void perf_finish(struct rp_sampler *s, struct perf_seen *seen, struct rp_sampler_stats *stats)
{
    struct rp_err err = {0};

    s->ops->stop(s);
    assert_int_equal(s->ops->drain(s, true, perf_see, seen, &err), RP_OK);
    s->ops->stats(s, stats);
    s->ops->free(s);
}

bool perf_late(uint64_t began)
{
    return rp_now_ns() - began > DEADLINE_NS;
}

static double cpu_now(const struct perf_run *r)
{
    struct timespec now;

    assert_int_equal(clock_gettime(r->clock, &now), 0);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

void perf_run_again(struct perf_run *r, const struct rp_sampler_options *more)
{
    uint32_t want_tid = r->seen.want_tid;

    r->seen = (struct perf_seen){.pid = (uint32_t)r->child.pid, .want_tid = want_tid, .start_time = rp_now_ns()};
    r->cpu_ns = -cpu_now(r);
    r->sampler = perf_start((uint32_t)r->child.pid, more);
}

void perf_run_begin(struct perf_run *r, perf_child_body *body, const struct rp_sampler_options *more)
{
    *r = (struct perf_run){.child = perf_child_start(body), .all_came = true};
    r->seen.want_tid = (uint32_t)perf_child_hear(&r->child);
    assert_int_equal(clock_getcpuclockid(r->child.pid, &r->clock), 0);
    perf_run_again(r, more);
}

void perf_run_until(struct perf_run *r, const uint64_t *figure, uint64_t least)
{
    uint64_t began = rp_now_ns();

    while (*figure < least && !perf_late(began))
        perf_wait_and_drain(r->sampler, &r->seen);
    r->all_came = r->all_came && *figure >= least;
}

void perf_run_stop(struct perf_run *r)
{
    r->cpu_ns += cpu_now(r);
    perf_finish(r->sampler, &r->seen, &r->stats);
}

void perf_run_end(struct perf_run *r)
{
    perf_run_stop(r);
    perf_child_end(&r->child);
    assert_true(r->all_came);
}

void perf_body_spin(int up, int down)
{
    (void)down;
    perf_child_say(up, (uint64_t)getpid());
    perf_spin_for_ever();
}

void *perf_thread_tells_and_spins(void *arg)
{
    perf_child_say(*(int *)arg, (uint64_t)syscall(SYS_gettid));
    perf_spin_for_ever();
    return NULL;
}

void perf_body_exec(int up, int down)
{
    uint64_t word;

    perf_child_say(up, 1);
    if (read(down, &word, sizeof word) == (ssize_t)sizeof word)
        execl("/usr/bin/sleep", "sleep", "100", (char *)NULL);
}
