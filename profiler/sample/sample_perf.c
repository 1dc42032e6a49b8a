/* SPDX-License-Identifier: MIT */
/* The perf_event backend: rings in, ordered events out.
 *
 * Every CPU writes its own ring in its own order; here they are merged by time. The traps: a record's time is taken before it becomes visible, so
 * records younger than a short settling time are left for the next drain, or a late one would come out of order. Events point into the ring, so its
 * room is given back only after the callback. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/io.h"
#include "sample/perf_private.h"

enum {
    STACK_BYTES = 32768, /* 16 KiB hold a Node program that never returns to its event loop; libuv alone takes 13 KiB below a callback. Costs ring
                          * space only: the kernel copies no more than there is */
    SETTLE_NS = 2000000,
    HZ_MAX = 100000,
};

static struct rp_perf_sampler *of(struct rp_sampler *base)
{
    return (struct rp_perf_sampler *)base;
}

static enum rp_status perf_start(struct rp_sampler *base, struct rp_err *err)
{
    struct rp_perf_sampler *s = of(base);
    enum rp_status status = rp_perf_set_open(s, err);

    if (status)
        return status;
    s->running = true;
    s->stats.waits = s->want.switches;
    s->peeks.window_ns = s->clocks.window_ns = s->cpus_ns = rp_now_ns();
    if (!s->options.enable_on_exec && (!rp_perf_set_enable(&s->events, true) || !rp_perf_set_enable(&s->peeks.events, true)))
        return rp_fail(err, RP_FAILED, "an event could not be switched on (%s); try again", strerror(errno));
    return RP_OK;
}

struct target_key {
    const struct rp_perf_sampler *s;
    uint32_t pid;
};

static bool same_target(const void *context, uint32_t position)
{
    const struct target_key *key = context;

    return key->s->targets.at[position].pid == key->pid;
}

bool rp_perf_is_target(const struct rp_perf_sampler *s, uint32_t pid)
{
    struct target_key key = {s, pid};

    return rp_index_lookup(&s->target_index, rp_hash_u64(pid), same_target, &key) != RP_INDEX_EMPTY;
}

static void watch_end(struct rp_perf_target *t, uint32_t pid)
{
    *t = (struct rp_perf_target){.pid = pid, .pidfd = (int)syscall(SYS_pidfd_open, pid, 0)};
    t->ended = t->pidfd < 0 && errno == ESRCH;
}

enum rp_status rp_perf_target_add(struct rp_perf_sampler *s, uint32_t pid, struct rp_err *err)
{
    struct target_key key = {s, pid};
    uint32_t hash = rp_hash_u64(pid), *slot = rp_index_find(&s->target_index, hash, same_target, &key);
    struct rp_perf_target *t;

    if (!slot)
        return rp_fail_nomem(err);
    if (*slot != RP_INDEX_EMPTY) {
        if (s->targets.at[*slot].ended)
            watch_end(&s->targets.at[*slot], pid);
        return RP_OK;
    }
    if (s->targets.n >= RP_PROCESSES_MAX) {
        s->stats.vanished++;
        return RP_OK;
    }
    t = rp_vec_add(&s->targets);
    if (!t)
        return rp_fail_nomem(err);
    watch_end(t, pid);
    rp_index_set(&s->target_index, slot, hash, (uint32_t)s->targets.n - 1);
    return RP_OK;
}

/* Parses up to the next record that is an event; what only counts is counted on the way. */
static void load(struct rp_perf_sampler *s, uint32_t r)
{
    struct rp_perf_ring *ring = &s->rings.at[r];
    struct rp_perf_pending *next = &s->pending[r];
    const void *bytes;

    while (!next->there && (bytes = rp_perf_ring_next(ring, &next->size, &s->stats.damaged))) {
        switch (rp_perf_record_parse(bytes, next->size, s->want.kernel, &next->record)) {
        case RP_PERF_EVENT:
            next->there = true;
            continue;
        case RP_PERF_LOST:
            s->lost_records += next->record.lost;
            rp_perf_owners_forget_all(&s->owners);
            rp_perf_owners_forget_all(&s->peeks.owners);
            break;
        case RP_PERF_THROTTLE:
            s->stats.throttled++;
            break;
        case RP_PERF_DAMAGED:
            s->stats.damaged++;
            break;
        case RP_PERF_IGNORED:
            break;
        }
        rp_perf_ring_advance(ring, next->size);
    }
}

/* Whether this record is the one that counts, or a second sight of the same moment. */
static enum rp_perf_verdict judge(struct rp_perf_sampler *s, uint32_t r, const struct rp_perf_record *record)
{
    uint64_t other = 0, stays;
    enum rp_perf_verdict verdict = rp_perf_owners_ask(&s->owners, r, record->by_tid, record->id, &other);

    if (verdict == RP_PERF_TWICE && record->id >= s->owners.newest && other >= s->owners.newest) {
        stays = rp_perf_set_drop_own(s, record->by_tid, record->id, other);
        if (stays)
            rp_perf_owners_set(&s->owners, r, record->by_tid, stays);
    }
    return verdict;
}

static bool is_by_clock(const struct rp_perf_sampler *s, const struct rp_perf_record *record)
{
    return record->event.kind == RP_EVENT_SAMPLE && rp_perf_ids_have(&s->clocks.ids, record->id);
}

/* One clock a CPU: nothing is seen twice, but more than is ours. */
static enum rp_perf_verdict judge_clock(const struct rp_perf_sampler *s, uint32_t r, const struct rp_perf_record *record)
{
    return rp_perf_owners_cover(&s->owners, r, record->by_tid) ? RP_PERF_TAKE : RP_PERF_TWICE;
}

/* A stack of a thread going off the CPU comes as a sample of another event. */
static enum rp_perf_verdict judge_peek(struct rp_perf_sampler *s, uint32_t r, const struct rp_perf_record *record)
{
    uint64_t other;

    return rp_perf_owners_ask(&s->peeks.owners, r, record->by_tid, record->id, &other);
}

/* In place: the sample is the first member of both. */
static void make_peek(struct rp_event *event)
{
    struct rp_snapshot sample = event->u.sample;
    static const uint8_t args[6] = {RP_RDI, RP_RSI, RP_RDX, RP_R10, RP_R8, RP_R9};

    event->kind = RP_EVENT_PEEK;
    event->u.peek.sample = sample;
    event->u.peek.syscall = -1;
    event->u.peek.at_switch = true;
    for (size_t i = 0; i < sizeof args; i++)
        event->u.peek.args[i] = sample.regs[args[i]];
}

static void forget_if_another(struct rp_perf_sampler *s, uint32_t r, const struct rp_perf_record *record)
{
    const struct rp_event *event = &record->event;
    bool exec = event->kind == RP_EVENT_COMM && event->u.comm.exec;
    uint64_t other;

    if (event->kind == RP_EVENT_EXIT) {
        rp_perf_owners_end(&s->owners, (uint32_t)s->rings.n, event->tid);
        rp_perf_owners_end(&s->peeks.owners, (uint32_t)s->rings.n, event->tid);
    } else if (event->kind == RP_EVENT_FORK || exec) {
        rp_perf_owners_forget(&s->owners, (uint32_t)s->rings.n, event->tid);
        rp_perf_owners_forget(&s->peeks.owners, (uint32_t)s->rings.n, event->tid);
    }
    if (exec) /* it runs on, perhaps for long before another record tells of it */
        (void)rp_perf_owners_ask(&s->owners, r, event->tid, record->id, &other);
}

/* Of a process, not of a thread. */
static bool is_birth(const struct rp_event *event)
{
    return event->kind == RP_EVENT_FORK && event->u.fork.parent_pid != event->pid;
}

static enum rp_status deliver(struct rp_perf_sampler *s, uint32_t r, rp_event_sink *sink, void *context, struct rp_err *err)
{
    struct rp_perf_record *record = &s->pending[r].record;

    bool peek = record->event.kind == RP_EVENT_SAMPLE && rp_perf_ids_have(&s->peeks.ids, record->id);

    if (s->options.children && is_birth(&record->event) && rp_perf_is_target(s, record->event.u.fork.parent_pid) &&
        rp_perf_target_add(s, record->event.pid, err))
        return err->status;
    if (!rp_perf_is_target(s, record->event.pid)) {
        s->clocks.foreign += is_by_clock(s, record);
        return RP_OK;
    }
    switch (is_by_clock(s, record) ? judge_clock(s, r, record) : peek ? judge_peek(s, r, record) : judge(s, r, record)) {
    case RP_PERF_NOMEM:
        return rp_fail_nomem(err);
    case RP_PERF_TWICE:
        return RP_OK;
    case RP_PERF_TAKE:
        break;
    }
    forget_if_another(s, r, record);
    s->stats.switches += record->event.kind == RP_EVENT_SWITCH;
    if (peek) {
        make_peek(&record->event);
        s->stats.peeks++;
    } else if (record->event.kind == RP_EVENT_SAMPLE) {
        record->event.u.sample.weight_ns = rp_perf_period_ns(s->want.hz);
        s->stats.samples++;
    }
    return sink(context, &record->event, err);
}

/* The ring whose next record is oldest and older than `before`. */
static bool oldest(const struct rp_perf_sampler *s, uint64_t before, uint32_t *ring)
{
    bool found = false;

    for (uint32_t r = 0; r < s->rings.n; r++) {
        if (s->pending[r].there && s->pending[r].record.event.time_ns < before) {
            before = s->pending[r].record.event.time_ns;
            *ring = r;
            found = true;
        }
    }
    return found;
}

static enum rp_status perf_drain(struct rp_sampler *base, bool final, rp_event_sink *sink, void *context, struct rp_err *err)
{
    struct rp_perf_sampler *s = of(base);
    uint64_t before = final ? UINT64_MAX : rp_now_ns() - SETTLE_NS;
    enum rp_status status = RP_OK;
    uint32_t r = 0;

    for (uint32_t i = 0; i < s->rings.n; i++)
        rp_perf_ring_refresh(&s->rings.at[i]);
    for (uint32_t i = 0; i < s->rings.n; i++)
        load(s, i);
    while (!status && oldest(s, before, &r)) {
        status = deliver(s, r, sink, context, err);
        s->pending[r].there = false;
        rp_perf_ring_advance(&s->rings.at[r], s->pending[r].size);
        load(s, r);
    }
    if (s->running && !s->off && !status)
        status = rp_perf_clocks_adapt(s, rp_now_ns(), err);
    if (s->running && !s->off && !status)
        status = rp_perf_cpus_check(s, rp_now_ns(), err);
    if (s->running)
        rp_perf_peeks_adapt(s, rp_now_ns());
    return status;
}

/* Without pidfds a pid is asked for; a zombie answers like the living, so the end is seen late at worst. */
static bool all_ended(struct rp_perf_sampler *s)
{
    bool all = true;

    for (size_t i = 0; i < s->targets.n; i++) {
        struct rp_perf_target *t = &s->targets.at[i];

        if (!t->ended && t->pidfd < 0 && kill((pid_t)t->pid, 0) != 0 && errno == ESRCH)
            t->ended = true;
        all = all && t->ended;
    }
    return all;
}

static void end_target(struct rp_perf_target *t)
{
    t->ended = true;
    rp_close(&t->pidfd); /* children come and go by the thousand */
}

static enum rp_status perf_wait(struct rp_sampler *base, int timeout_ms, bool *ended, struct rp_err *err)
{
    struct rp_perf_sampler *s = of(base);
    size_t n = 0;
    int ready;

    *ended = all_ended(s);
    if (*ended)
        return RP_OK;
    rp_vec_clear(&s->polls);
    if (!rp_vec_reserve(&s->polls, s->rings.n + s->targets.n))
        return rp_fail_nomem(err);
    for (size_t i = 0; i < s->rings.n; i++)
        s->polls.at[n++] = (struct pollfd){s->rings.at[i].fd, POLLIN, 0};
    for (size_t i = 0; i < s->targets.n; i++)
        s->polls.at[n++] = (struct pollfd){s->targets.at[i].ended ? -1 : s->targets.at[i].pidfd, POLLIN, 0};
    ready = poll(s->polls.at, n, timeout_ms);
    if (ready < 0 && errno != EINTR)
        return rp_fail(err, RP_FAILED, "waiting for samples failed: %s; try again", strerror(errno));
    for (size_t i = 0; ready > 0 && i < s->targets.n; i++) {
        if (s->polls.at[s->rings.n + i].revents & (POLLIN | POLLHUP))
            end_target(&s->targets.at[i]);
    }
    *ended = all_ended(s);
    return RP_OK;
}

static void perf_stop(struct rp_sampler *base)
{
    struct rp_perf_sampler *s = of(base);

    if (!s->running)
        return;
    (void)rp_perf_set_enable(&s->clocks.events, false);
    (void)rp_perf_set_enable(&s->peeks.events, false);
    (void)rp_perf_set_enable(&s->events, false);
    rp_perf_set_count_lost(s);
    s->running = false;
}

static enum rp_status perf_toggle(struct rp_sampler *base, bool on, struct rp_err *err)
{
    struct rp_perf_sampler *s = of(base);

    s->off = !on;
    if (!rp_perf_set_enable(&s->events, on) || !rp_perf_set_enable(&s->peeks.events, on) || !rp_perf_set_enable(&s->clocks.events, on))
        return rp_fail(err, RP_FAILED, "an event could not be switched %s (%s); try again", on ? "on" : "off", strerror(errno));
    return RP_OK;
}

static enum rp_status perf_feedback(struct rp_sampler *base, uint64_t walked, uint64_t cut, struct rp_err *err)
{
    struct rp_perf_sampler *s = of(base);
    uint32_t larger;

    rp_stack_growth_count(&s->growth, walked, cut);
    larger = s->running ? rp_stack_growth_next(&s->growth, s->want.stack_bytes) : 0;
    return larger ? rp_perf_set_grow(s, larger, err) : RP_OK;
}

static void perf_stats(const struct rp_sampler *base, struct rp_sampler_stats *stats)
{
    const struct rp_perf_sampler *s = (const struct rp_perf_sampler *)base;
    uint64_t counted = s->lost_closed + s->lost_open;

    *stats = s->stats;
    stats->stack_grown = s->growth.grown;
    /* Two counts of the same thing: records come with the next write only, the events' own count is not there on old kernels. */
    stats->lost = counted > s->lost_records ? counted : s->lost_records;
}

static void perf_free(struct rp_sampler *base)
{
    struct rp_perf_sampler *s = of(base);

    if (!s)
        return;
    rp_perf_peeks_close(s);
    rp_vec_release(&s->peeks.ids.at);
    rp_perf_set_close(s, &s->clocks.events);
    rp_vec_release(&s->clocks.ids.at);
    rp_perf_owners_release(&s->peeks.owners);
    rp_perf_set_close(s, &s->events);
    for (size_t i = 0; i < s->rings.n; i++)
        rp_perf_ring_close(&s->rings.at[i]);
    rp_vec_release(&s->rings);
    rp_vec_release(&s->cpus.at);
    for (size_t i = 0; i < s->targets.n; i++)
        rp_close(&s->targets.at[i].pidfd);
    rp_vec_release(&s->targets);
    rp_index_release(&s->target_index);
    rp_perf_owners_release(&s->owners);
    rp_free(s->pending);
    rp_vec_release(&s->polls);
    rp_free(s);
}

static const struct rp_sampler_ops perf_ops = {
    .name = "perf_event",
    .start = perf_start,
    .drain = perf_drain,
    .wait = perf_wait,
    .stop = perf_stop,
    .toggle = perf_toggle,
    .feedback = perf_feedback,
    .stats = perf_stats,
    .free = perf_free,
};

static void set_want(struct rp_perf_sampler *s)
{
    s->want = (struct rp_perf_want){
        .source = s->options.cycles_wanted ? RP_SOURCE_CYCLES : RP_SOURCE_CPU_CLOCK,
        .hz = s->options.hz,
        .stack_bytes = rp_stack_growth_begin(&s->growth, s->options.stack_bytes, STACK_BYTES),
        .kernel = s->options.kernel,
        .inherit = true,
        .inherit_thread = !s->options.children,
        .count_lost = true,
        .enable_on_exec = s->options.enable_on_exec,
        .switches = s->options.waits,
    };
}

enum rp_status rp_sampler_perf_new(const struct rp_sampler_options *options, struct rp_sampler **out, struct rp_err *err)
{
    struct rp_perf_sampler *s;
    enum rp_status status = RP_OK;
    bool any = false;

    if (!options->npids || !options->hz || options->hz > HZ_MAX)
        return rp_fail(err, RP_USAGE, "a sampling rate of %u per second on %zu processes is not possible; give a pid and 1 to %d", options->hz, options->npids, HZ_MAX);
    s = rp_calloc(1, sizeof *s);
    if (!s)
        return rp_fail_nomem(err);
    s->base.ops = &perf_ops;
    s->options = *options;
    s->options.pids = NULL;
    set_want(s);
    for (size_t i = 0; i < options->npids && !status; i++) {
        status = rp_perf_target_add(s, options->pids[i], err);
        any = any || (!status && !s->targets.at[i].ended);
    }
    if (!status && !any)
        status = rp_fail(err, RP_NOPROC, "there is no process %u; `pidof NAME` or `pgrep -f WORD` finds pids", options->pids[0]);
    if (status) {
        perf_free(&s->base);
        return status;
    }
    *out = &s->base;
    return RP_OK;
}
