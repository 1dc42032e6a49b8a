/* SPDX-License-Identifier: MIT */
/* Shared by sample_perf.c (events out) and those that say which events are open: perf_set.c, perf_clocks.c, perf_peeks.c, perf_hotplug.c. */
#ifndef RP_SAMPLE_PERF_PRIVATE_H
#define RP_SAMPLE_PERF_PRIVATE_H

#include <poll.h>

#include "base/index.h"
#include "base/vec.h"
#include "sample/perf_cpus.h"
#include "sample/perf_open.h"
#include "sample/perf_owner.h"
#include "sample/perf_record.h"
#include "sample/perf_ring.h"
#include "sample/sampler.h"
#include "sample/stack_growth.h"

/* One open event: a thread on a CPU, or a whole CPU (tid -1). */
struct rp_perf_event {
    int fd;
    int tid;
    uint32_t ring;
    uint64_t id;
    uint64_t count; /* when it was last looked whether it stands still; 0: not yet */
};

struct rp_perf_events {
    RP_VEC(struct rp_perf_event) at;
};

/* Events that copy stacks of threads going off the CPU, where that is allowed. */
struct rp_perf_peeks {
    struct rp_perf_events events;
    struct rp_perf_ids ids;     /* of all that were ever opened: their samples are no samples of running threads */
    struct rp_perf_owners owners;
    uint64_t period;            /* each so-many-th switch on the average; 0: not begun, all of them */
    uint64_t window_ns, taken;  /* since when, how many: for the rate of all threads together */
    uint64_t jitter_ns;         /* when periods were last drawn */
    uint64_t random;
    uint32_t floods;            /* windows in a row that a longer period did not help */
};

/* Clocks of whole CPUs, one each, in place of the threads' own where those switch often. */
struct rp_perf_clocks {
    struct rp_perf_events events; /* empty: the threads have their own */
    struct rp_perf_ids ids;       /* of all that were ever opened */
    bool refused;                 /* whatever samples now goes on to the end */
    uint64_t foreign;             /* samples of other processes, dropped */
    uint64_t window_ns;           /* since when, and what there was by then: */
    struct rp_perf_clocks_by {
        uint64_t switches, samples, foreign, lost;
    } by;
    uint32_t often;               /* windows in a row that speak for a change */
};

struct rp_perf_target {
    uint32_t pid;
    int pidfd; /* -1: the kernel has none; then the pid is asked for */
    bool ended;
};

/* The next record of a ring, parsed and waiting for its turn. */
struct rp_perf_pending {
    bool there;
    size_t size;
    struct rp_perf_record record;
};

struct rp_perf_sampler {
    struct rp_sampler base;
    struct rp_sampler_options options; /* pids: in `targets` */
    struct rp_perf_want want;
    RP_VEC(struct rp_perf_target) targets;
    struct rp_index target_index; /* of pid: each record asks */
    struct rp_cpu_list cpus; /* that were on at the beginning */
    RP_VEC(struct rp_perf_ring) rings;
    struct rp_perf_pending *pending; /* one per ring */
    RP_VEC(struct pollfd) polls;     /* rings, then targets */
    struct rp_perf_events events;
    struct rp_perf_owners owners;
    struct rp_perf_peeks peeks;
    struct rp_perf_clocks clocks;
    struct rp_sampler_stats stats;
    uint64_t lost_records; /* by LOST records */
    uint64_t lost_closed;  /* by PERF_FORMAT_LOST, of events that are closed */
    uint64_t lost_open;    /* the same of those still open, as of the last look */
    struct rp_stack_growth growth;
    bool running;
    bool off; /* by toggle */
    uint64_t cpus_ns;            /* when CPUs were last looked at */
    bool cpu_came, cpu_changed;  /* the note says so */
};

/* Adds a process to those whose records count, unless it is one already or there are too many. One that has ended lives again: its number is that of a new
 * process. */
enum rp_status rp_perf_target_add(struct rp_perf_sampler *s, uint32_t pid, struct rp_err *err);
bool rp_perf_is_target(const struct rp_perf_sampler *s, uint32_t pid);

/* Opens rings and events for all targets, disabled. */
enum rp_status rp_perf_set_open(struct rp_perf_sampler *s, struct rp_err *err);

/* Replaces all events by ones that copy `stack_bytes`. On failure the old ones go on; never an error but for want of memory. */
enum rp_status rp_perf_set_grow(struct rp_perf_sampler *s, uint32_t stack_bytes, struct rp_err *err);

/* Switches counting on or off; false when some event would not. */
bool rp_perf_set_enable(const struct rp_perf_events *events, bool on);

/* Thread `tid` is covered by events `a` and `b`; closes its own of the two. Gives the one that stays, 0 when neither is its own. */
uint64_t rp_perf_set_drop_own(struct rp_perf_sampler *s, uint32_t tid, uint64_t a, uint64_t b);

/* Asks all open events, peeks among them, for what they could not write. */
void rp_perf_set_count_lost(struct rp_perf_sampler *s);
void rp_perf_set_close(struct rp_perf_sampler *s, struct rp_perf_events *events);

/* Replaces all events by ones of `want`, for every thread there is now, switched on; closes the old ones. False: it did not fit, or was refused, and all is
 * as it was. */
enum rp_status rp_perf_set_replace(struct rp_perf_sampler *s, const struct rp_perf_want *want, bool *done, struct rp_err *err);

/* After each drain: where threads switch often, the clocks of whole CPUs take over; where other processes then fill the rings, the threads' own do again.
 * RP_NOMEM only. */
enum rp_status rp_perf_clocks_adapt(struct rp_perf_sampler *s, uint64_t now_ns, struct rp_err *err);
/* Opens them anew with the stack copy that is wanted now. False: the old ones go on. */
bool rp_perf_clocks_reopen(struct rp_perf_sampler *s);

/* Opens the peeks for all threads that have events. What does not fit the limits is left out. */
void rp_perf_peeks_open(struct rp_perf_sampler *s);
/* After each drain: fits the period to the rate, and draws each event's anew around it. */
void rp_perf_peeks_adapt(struct rp_perf_sampler *s, uint64_t now_ns);
void rp_perf_peeks_close(struct rp_perf_sampler *s);

/* After each drain, once a second: looks whether CPUs were switched off or on. RP_NOMEM only. */
enum rp_status rp_perf_cpus_check(struct rp_perf_sampler *s, uint64_t now_ns, struct rp_err *err);
/* The same with the list of those that are on. */
enum rp_status rp_perf_cpus_compare(struct rp_perf_sampler *s, const struct rp_cpu_list *online, struct rp_err *err);

/* How many events may be open at the same time. */
size_t rp_perf_set_room(const struct rp_perf_sampler *s);

#endif
