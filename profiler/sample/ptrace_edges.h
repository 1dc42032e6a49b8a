/* SPDX-License-Identifier: MIT */
/* What the looks at threads say of their waiting, as SWITCH and PEEK events. Where perf's switch records give every edge, this gives those that a look
 * finds: a wait shorter than the time between two looks is seen by chance only, and its beginning and end are as exact as that time. CPU time is exact, by
 * schedstat; so is the time that it was ready, told as preemption; the rest of the time between two looks at which it ran is one wait. */
#ifndef RP_SAMPLE_PTRACE_EDGES_H
#define RP_SAMPLE_PTRACE_EDGES_H

#include "sample/ptrace_queue.h"
#include "sample/ptrace_watch.h"

struct rp_edges {
    struct rp_queue *queue;
    uint8_t *stack; /* of one peek */
    size_t turn;    /* thread at which the next round of peeks begins */
    _Atomic uint64_t switches, peeks;
    _Atomic uint64_t lost; /* switches for which the queue had no room */
};

/* After each look at `t`. */
void rp_edges_look(struct rp_edges *edges, const struct rp_watch_process *p, struct rp_watch_thread *t, enum rp_watch_sight sight, uint64_t now_ns);

/* It was stopped while running, having used `times` by now. */
void rp_edges_running(struct rp_edges *edges, const struct rp_watch_process *p, struct rp_watch_thread *t, uint64_t now_ns, const struct rp_watch_times *times);

/* Looks through procfs at some of those that are blocked and were not seen in their wait. */
void rp_edges_peek(struct rp_edges *edges, struct rp_watch_process *p, uint64_t now_ns);

void rp_edges_release(struct rp_edges *edges);

#endif
