/* SPDX-License-Identifier: MIT */
/* Turns a backend's events into counts of a profile: the only place that knows both. Keeps the mapping table of each (process, exec
 * generation) true, walks stacks, and interns them root first.
 *
 * The trap: events must come oldest first, or a sample meets mappings of the future. */
#ifndef RP_FOLD_FOLD_H
#define RP_FOLD_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "fold/syscall_site.h"
#include "fold/thread_clock.h"
#include "model/profile.h"
#include "sample/sampler.h"
#include "symbolize/symbolize.h"
#include "target/image.h"
#include "target/process.h"
#include "target/space.h"
#include "unwind/unwind.h"

/* One watched process in one exec generation. Another process with the same number is a later generation, too. */
struct rp_fold_process {
    struct rp_space space;
    uint32_t pid, ns_pid;
    uint32_t profile_process; /* position in the profile */
    bool has_jit;             /* anonymous executable code was met: read its maps */
    bool live;                /* procfs may be asked: false in replay and after its end */
    bool replaced;            /* ended, and its number is another process's now */
    bool stopped;             /* by a signal (SIGSTOP, Ctrl-Z), when its watch began */
    uint32_t nthreads, nlive; /* threads met, and those of them that have not ended */
    uint64_t maps_read_ns;    /* when /proc/PID/maps was last read, against reading it for every stray pc */
};

/* One thread of one generation; position = thread in the profile. Threads that had one number one after the other have each their own. */
struct rp_fold_thread {
    uint32_t process; /* position in `processes` */
    uint32_t tid;
    uint32_t ns_tid;           /* in its own pid namespace; 0: not asked yet */
    uint64_t begin_ns, end_ns; /* watched from, to (0: still) */
    uint64_t cpu_begin_ns;     /* schedstat at begin */
    uint64_t delay_begin_ns;
    uint32_t live_at;          /* position in `live`, until it ends */
    uint64_t sleeps_begin;     /* rp_thread_sleeps when the watch began, of a thread that was ready then; UINT64_MAX: it was not. Without switch records only */
};

/* Beside each lock of the profile. */
struct rp_lock_tries {
    bool mutex;  /* waited for in the way of a mutex: its word has an owner beside it */
    uint32_t n;  /* how often its connection was looked for */
};

struct rp_fold {
    struct rp_images *images;
    struct rp_unwinder *unwinder;
    struct rp_symbolizer *symbolizer;
    struct rp_profile *profile;
    struct rp_walk walk;
    RP_VEC(struct rp_fold_process) processes;
    RP_VEC(struct rp_fold_thread) threads;
    RP_VEC(struct rp_clock) clocks; /* of each thread */
    RP_VEC(uint32_t) live;          /* threads that have not ended: what is done again and again is done for them only */
    struct rp_syscall_sites sites;
    RP_VEC(struct rp_lock_tries) lock_tries;
    RP_VEC(uint8_t) sqlite_images;  /* per image: whether SQLite is in it (locks.c) */
    uint8_t *peek_stack;            /* of one look through procfs */
    uint32_t next_look;             /* place in `live` at which the next round of looks begins */
    bool waits;                     /* times come from switch records */
    uint64_t edges, wait_stacks;    /* switches taken, waits whose stack was seen */
    uint64_t hidden_period_ns;      /* not 0: the kernel is invisible; what a thread ran beyond its samples is counted as that, one per period */
    uint32_t hidden_node;           /* the stack of such counts; 0 until needed */
    struct rp_index thread_index;  /* of (process, tid): the youngest */
    struct rp_index process_index; /* of pid: the youngest */
    uint32_t marks[RP_WALK_ENDS]; /* locations of the typed root frames, UINT32_MAX until needed */
    bool children;                /* a process that a watched one forks is watched, too */
    bool unrecorded;              /* no event tells of new mappings: they are read from procfs now and then */
    bool lossy;                   /* records were lost, switches perhaps among them */
    bool replay;                  /* every process that events name is taken; nothing is asked of procfs */
    uint64_t start_ns;            /* time 0 of the blocks; 0 until known */
    uint64_t first_sample_ns;
    uint64_t last_event_ns;       /* the end of a replay */
    uint64_t samples;
    uint64_t walked, cut;         /* since the last take, for the sampler's feedback */
};

/* The four parts must outlive the fold. */
enum rp_status rp_fold_init(struct rp_fold *fold, struct rp_images *images, struct rp_unwinder *unwinder, struct rp_symbolizer *symbolizer,
                            struct rp_profile *profile, struct rp_err *err);
void rp_fold_release(struct rp_fold *fold);

/* Adds a live process with its threads and mappings as they are now; `start_ns` is the beginning of its watch. */
enum rp_status rp_fold_add_process(struct rp_fold *fold, const struct rp_process_info *info, uint64_t start_ns, struct rp_err *err);

/* Whether the process of this number is watched. */
bool rp_fold_watches(struct rp_fold *fold, uint32_t pid);

/* Takes one event (an rp_event_sink; the context is the fold). Processes that were not added are ignored, except in replay. */
enum rp_status rp_fold_event(void *fold, const struct rp_event *event, struct rp_err *err);

/* Reads the mappings of all live processes again: to be called when records were lost, which may have told of new ones. */
enum rp_status rp_fold_refresh(struct rp_fold *fold, struct rp_err *err);

/* Reads what the JIT maps gained. Before events are taken: code that moved to a reused address while they waited in the rings is theirs. */
enum rp_status rp_fold_read_jit(struct rp_fold *fold, struct rp_err *err);

/* A block's end: JIT maps are read and what is new gets its name. */
enum rp_status rp_fold_tick(struct rp_fold *fold, struct rp_err *err);

/* Looks through procfs at threads that have been waiting for a while and whose stack is not known, at most once per wait, and at who holds the lock
 * that they wait for. What is seen goes to `sink` as events (which must pass them on to rp_fold_event). Bounded: what is left comes next time. */
enum rp_status rp_fold_look(struct rp_fold *fold, uint64_t now_ns, rp_event_sink *sink, void *context, struct rp_err *err);

/* The end of the watch: closes the threads' times. */
enum rp_status rp_fold_finish(struct rp_fold *fold, uint64_t end_ns, struct rp_err *err);

#endif
