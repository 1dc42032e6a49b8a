/* SPDX-License-Identifier: MIT */
/* Where each thread's time went: switch records become waits, preemptions and time on a CPU, and a wait gets the stack that was seen in it.
 *
 *     in ──── on a CPU ──── out ──────── waiting ──────── in ── on a CPU ── out, preempted ── ready ── in …
 *                         ^ peek at_switch      ^ peek through procfs, while the wait is open
 *
 * Each moment of a thread's watch is in exactly one state, so cpu + preempted + waiting = wall by construction. Where the kernel could not write a record, a
 * switch-out follows a switch-out, an in an in, or a sample on a CPU a switch-out: what the thread did between the two is not known and goes into none of the
 * three, so that what is missing of wall is just that. (Two records lost in a row leave no such trace: a wait, a run and a wait are one long wait then. How long
 * the thread ran in all is known without records, rp_clock_settle_cpu.) A peek through procfs is younger than the switch records read so far: it is kept until the
 * wait that it fell into is known.
 *
 * The trap: what a thread did before its first record is told by that record first (out: it ran; in: it did not), and only whether it waited or was ready, as
 * most of 2 000 busy threads on two CPUs are, by procfs. */
#ifndef RP_FOLD_THREAD_CLOCK_H
#define RP_FOLD_THREAD_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "model/profile.h"

#define RP_NO_THREAD UINT32_MAX
/* As an owner: nobody held it. */
#define RP_NOBODY (UINT32_MAX - 1)

enum rp_clock_state {
    RP_CLOCK_UNKNOWN, /* no record yet */
    RP_CLOCK_RUNNING,
    RP_CLOCK_READY,   /* could run: preempted, or just born */
    RP_CLOCK_WAITING,
    RP_CLOCK_ENDED,
};

/* What was seen of a thread off the CPU. */
struct rp_look {
    uint64_t time_ns;  /* 0: nothing was seen */
    uint64_t out_ns;   /* when the wait began that it tells of; 0: it is that into which time_ns falls */
    uint32_t node;     /* its stack; 0 none */
    uint32_t tag;      /* lock + 1; 0 none */
    int32_t syscall;   /* -1 unknown */
    uint32_t owner;    /* thread that held the lock; RP_NOBODY; RP_NO_THREAD unknown */
    uint32_t owner_node; /* its stack when it was blocked itself; 0: it ran, or was not seen */
    uint32_t ran_node; /* of its youngest sample before owner_ns, at ran_ns */
    uint64_t owner_ns; /* when the owner was read */
    uint64_t owner_node_ns; /* when it still was the owner after its stack had been seen */
    uint64_t ran_ns;
};

/* The clock of one thread; zero-initialised and begun with rp_clock_begin. */
struct rp_clock {
    uint8_t state;          /* enum rp_clock_state */
    bool blocked_at_begin;  /* procfs saw it asleep when the watch began */
    bool ready_at_begin;    /* procfs saw it running or ready then: a first record `in` ends no wait */
    uint64_t since_ns;      /* when the state began */
    uint64_t asked_ns;      /* since_ns of the wait that procfs was asked about */
    struct rp_look at_switch; /* the stack with which it went, or is about to go, off the CPU */
    struct rp_look seen;      /* the youngest look from outside */
    uint64_t sample_ns;     /* youngest sample on a CPU */
    uint64_t after_ns;      /* since when `after` is looked for; 0: it is not */
    uint64_t lock_in_ns;    /* when its youngest wait for a known lock ended */
    uint32_t sample_node;
    uint32_t after_node;    /* of the first sample from after_ns on; 0: there was none yet */
    uint64_t after_sample_ns;
    uint32_t lock_tag;      /* that lock + 1 */
    uint32_t born;          /* preempted time before its first run is no preemption */
    uint64_t sampled_ns;    /* weight of all samples, those given to the invisible kernel included */
};

/* Times go into `row`; the wait that ends with the edge, if any, into `done` (done->out_ns 0: none). */
struct rp_done_wait {
    uint64_t out_ns, in_ns;
    struct rp_look look;
};

void rp_clock_begin(struct rp_clock *clock, uint64_t now_ns, enum rp_clock_state state);
void rp_clock_edge(struct rp_clock *clock, struct rp_profile_thread *row, uint64_t time_ns, bool out, bool preempted, struct rp_done_wait *done);
/* A sample on a CPU: before the first record it tells the state; while the thread is off the CPU it tells that the record between was lost. */
void rp_clock_sample(struct rp_clock *clock, uint64_t time_ns, uint32_t node, uint64_t weight_ns);
/* The end of the thread or of the watch. A thread without any record ran if `ran`, else it was ready or waited. */
void rp_clock_end(struct rp_clock *clock, struct rp_profile_thread *row, uint64_t time_ns, bool ran, struct rp_done_wait *done);

/* The thread is gone, and the record of its end was lost: its watch ended with the last that is known of it. Gives that time. */
uint64_t rp_clock_end_untold(struct rp_clock *clock, struct rp_profile_thread *row);

/* After losses, when all other times of `row` are settled: schedstat says that it ran `cpu_ns` of the `wall_ns`. What waits and preemptions leave is the most
 * that is taken. */
void rp_clock_settle_cpu(struct rp_profile_thread *row, uint64_t wall_ns, uint64_t cpu_ns);

/* Whether it waits since at least `least_ns` and procfs was not asked about this wait yet. */
bool rp_clock_wants_look(const struct rp_clock *clock, uint64_t now_ns, uint64_t least_ns);

/* The owner of a lock was read just now: what it ran before goes into the look, what it runs next is remembered. */
void rp_clock_mark_owner(struct rp_clock *owner, struct rp_look *look);

/* The stack of the owner's sample on a CPU that is nearest to the moment at which it was read and lies in the wait; 0: there is none. It may lie before
 * the owner took the lock or after it gave it up: only what it ran before its own wait for this lock ended is known to be none of it. */
uint32_t rp_clock_owner_ran(const struct rp_clock *owner, const struct rp_done_wait *done);

/* What is known of the wait that is open now; time_ns 0: nothing, or it does not wait. */
struct rp_look rp_clock_open_wait(const struct rp_clock *clock);

/* Time on a CPU up to `now_ns`. */
uint64_t rp_clock_cpu(const struct rp_clock *clock, const struct rp_profile_thread *row, uint64_t now_ns);

#endif
