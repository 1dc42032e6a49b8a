/* SPDX-License-Identifier: MIT */
/* See ptrace_edges.h. The trap: nobody tells when a thread woke. What it ran since the last look is known exactly, so it is taken to have woken just that long
 * ago; and a thread that waits for a CPU looks like one that has it. */
#include "sample/ptrace_edges.h"

#include <string.h>

#include "base/alloc.h"
#include "sample/peek_procfs.h"

enum {
    OFF_NS_MIN = 100000,  /* less is the error of measuring */
    WAIT_NS_MIN = 1000000, /* shorter waits are over before they are looked at */
    PEEKS_PER_LOOK = 4,    /* 30 us each */
    PEEK_KEPT_BYTES = 16384,
};

static void edge(struct rp_edges *edges, const struct rp_watch_process *p, const struct rp_watch_thread *t, uint64_t time_ns, bool out, bool preempted)
{
    struct rp_queue_record *record = rp_queue_reserve(edges->queue, 0);

    if (!record) {
        atomic_fetch_add_explicit(&edges->lost, 1, memory_order_relaxed);
        return;
    }
    record->event = (struct rp_event){.kind = RP_EVENT_SWITCH, .time_ns = time_ns, .pid = p->pid, .tid = t->tid};
    record->event.u.sw.out = out;
    record->event.u.sw.preempted = preempted;
    rp_queue_commit(edges->queue, record, 0);
    atomic_fetch_add_explicit(&edges->switches, 1, memory_order_relaxed);
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* What it did not run since its running was last settled: it was ready, or blocked unseen. */
static void settle(struct rp_edges *edges, const struct rp_watch_process *p, struct rp_watch_thread *t, uint64_t now_ns, const struct rp_watch_times *times)
{
    uint64_t off = less(less(now_ns, t->since_ns), less(times->cpu_ns, t->since.cpu_ns)), ready = less(times->delay_ns, t->since.delay_ns);

    ready = ready < off ? ready : off;
    if (off - ready > (uint64_t)OFF_NS_MIN) {
        edge(edges, p, t, now_ns - off, true, false);
        edge(edges, p, t, now_ns - ready, false, false);
    }
    if (ready > (uint64_t)OFF_NS_MIN) {
        edge(edges, p, t, now_ns - ready, true, true);
        edge(edges, p, t, now_ns, false, false);
    }
    t->since_ns = now_ns;
    t->since = *times;
}

static void begin_running(struct rp_edges *edges, const struct rp_watch_process *p, struct rp_watch_thread *t, uint64_t now_ns)
{
    uint64_t could = less(t->times.cpu_ns, t->since.cpu_ns) + less(t->times.delay_ns, t->since.delay_ns);
    uint64_t woke = could < less(now_ns, t->since_ns) ? now_ns - could : t->since_ns;

    edge(edges, p, t, woke, false, false);
    t->waiting = false;
    t->since_ns = woke;
}

void rp_edges_look(struct rp_edges *edges, const struct rp_watch_process *p, struct rp_watch_thread *t, enum rp_watch_sight sight, uint64_t now_ns)
{
    bool first = !t->since_ns;

    if (sight == RP_WATCH_SAME)
        return;
    if (first) {
        t->since_ns = now_ns;
        t->since = t->born ? (struct rp_watch_times){0} : t->times;
        t->waiting = sight == RP_WATCH_BLOCKED && !t->born; /* what is told of it first says what it did until then */
        if (t->born)
            edge(edges, p, t, now_ns, false, false);
        if (!t->born || sight == RP_WATCH_RUNS)
            return;
    }
    if (t->waiting)
        begin_running(edges, p, t, now_ns);
    if (sight == RP_WATCH_BLOCKED) {
        if (!first)
            settle(edges, p, t, now_ns, &t->times);
        edge(edges, p, t, now_ns, true, false);
        t->waiting = true;
        t->peeked = false;
        t->since_ns = now_ns;
        t->since = t->times;
    }
}

void rp_edges_running(struct rp_edges *edges, const struct rp_watch_process *p, struct rp_watch_thread *t, uint64_t now_ns,
                      const struct rp_watch_times *times)
{
    if (t->since_ns && !t->waiting)
        settle(edges, p, t, now_ns, times);
}

/* False: it is to be tried again. */
static bool peek(struct rp_edges *edges, const struct rp_watch_process *p, const struct rp_watch_thread *t)
{
    struct rp_queue_record *record;
    struct rp_event event;
    struct rp_snapshot *sample = &event.u.peek.sample;
    enum rp_peek_end end = rp_peek_procfs(p->pid, t->tid, edges->stack, &event);

    if (end != RP_PEEK_SEEN)
        return end != RP_PEEK_RUNNING;
    if (sample->stack_bytes > PEEK_KEPT_BYTES) {
        sample->stack_bytes = PEEK_KEPT_BYTES;
        sample->stack_cut = true;
    }
    record = rp_queue_reserve(edges->queue, sample->stack_bytes);
    if (!record)
        return false;
    record->event = event;
    memcpy(record->data, edges->stack, sample->stack_bytes);
    rp_queue_commit(edges->queue, record, sample->stack_bytes);
    atomic_fetch_add_explicit(&edges->peeks, 1, memory_order_relaxed);
    return true;
}

void rp_edges_peek(struct rp_edges *edges, struct rp_watch_process *p, uint64_t now_ns)
{
    size_t n = p->threads.n;

    if (!edges->stack)
        edges->stack = rp_calloc(RP_PEEK_STACK_BYTES, 1);
    if (!edges->stack || !n)
        return;
    for (size_t looked = 0, peeked = 0; looked < n && peeked < PEEKS_PER_LOOK; looked++) {
        struct rp_watch_thread *t = &p->threads.at[edges->turn++ % n];

        if (!t->waiting || t->peeked || t->asked || now_ns - t->since_ns < (uint64_t)WAIT_NS_MIN)
            continue;
        t->peeked = peek(edges, p, t);
        peeked++;
    }
}

void rp_edges_release(struct rp_edges *edges)
{
    rp_free(edges->stack);
    edges->stack = NULL;
}
