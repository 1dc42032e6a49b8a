/* SPDX-License-Identifier: MIT */
/* The waiting side of a view: what blocked threads waited for, which of it was idling, how each thread's time divides, which locks were waited for and who
 * held them.
 *
 *     rp_waits_new(view, keep_idle, &waits, err);
 *     rp_waits_threads(waits, &threads, err);  rp_waits_locks(waits, &locks, err);
 *     rp_waits_free(waits);
 *
 * Totals per thread and duration class are exact; which stack they belong to is known of those waits whose stack was seen. So a stack's part is, summed over
 * thread and class, (its stacked ns / all stacked ns) x exact ns. Where every wait of a class was stacked this is exact, too; where only some were, the
 * split has an interval. For a class of a thread of which no stack was seen threads of its name speak, in
 * that class or the nearest within an octave, with an interval; where there are none it goes into a row of its own. All seconds of one thread add up:
 * cpu + preempted + waiting + idle + unknown = wall, on the clock of the switch records; unknown is what lost records would have told. */
#ifndef RP_ANALYZE_VIEW_WAITS_H
#define RP_ANALYZE_VIEW_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/view.h"

/* Stands for a category where no stack was seen. */
#define RP_WAIT_UNSEEN UINT32_MAX

/* "Waited for by": seconds of a wait category by the cost category that would pay for them. */
struct rp_wait_payer {
    uint32_t category;
    double seconds;
};

struct rp_wait_row {
    uint32_t category; /* RP_WAIT_UNSEEN: no stack seen */
    double waits;      /* scaled up to the exact totals */
    double seconds;
    double half;       /* half the 95 % interval of `seconds`; 0: exact */
    double share;      /* of the wall time that was not idle */
    double mean_s, p50_s, p99_s, max_s; /* percentiles: right to within a duration class (19 %) */
    RP_VEC(struct rp_wait_payer) payers; /* largest first */
};

/* What was dropped: threads of one name but for digits, by rule. */
struct rp_idle_group {
    char *name;       /* owned; "libuv-worker", "worker-*" where the threads' names differ by their numbers */
    uint32_t comm;    /* string: the name of its threads; UINT32_MAX when they have several */
    uint32_t rule;
    uint32_t threads;
    double waits, seconds;
};

/* How a thread's time divides. */
struct rp_thread_row {
    uint32_t thread;
    double wall, cpu, preempted, waiting, idle; /* seconds; waiting without idle */
    double unknown; /* rest of wall: switch records of it were lost */
    double woken; /* of `waiting` at most so much for a CPU after the wake-up: run delay without preemption */
};
struct rp_thread_table {
    RP_VEC(struct rp_thread_row) rows; /* most cpu + waiting first */
};

/* A part of the waits for a lock: those held by one thread, or those whose holder did one thing. */
struct rp_lock_part {
    uint32_t thread;   /* UINT32_MAX unknown */
    uint32_t category; /* of the holder's stack; RP_WAIT_UNSEEN: not seen */
    bool blocked;
    double waits, seconds;
};
struct rp_lock_row {
    uint32_t lock;     /* position in the profile's locks */
    double waits, seconds, share; /* share: as of a wait row */
    double max_s;
    double known;      /* part of its stacked waits with a known holder, 0..1; 0 with `of_all` */
    double held;       /* waits with a known holder */
    double free;       /* waits that nobody held it in any more when it was looked at: the waiter had been woken */
    bool of_all;       /* the view is of some threads, but an older file does not tell whose waits its holders are of: they are of all threads' */
    uint32_t waiter;   /* the function that waits most: nearest frame that no wait rule claims; UINT32_MAX none */
    double stacked;    /* waits for it whose stack was seen */
    double parted;     /* waits that the holders are of: `stacked`, with `of_all` `held` */
    RP_VEC(struct rp_lock_part) holders; /* by thread, most waits first; `category` unset */
    RP_VEC(struct rp_lock_part) doings;  /* by category and state; `thread` unset */
};
struct rp_lock_table {
    RP_VEC(struct rp_lock_row) rows; /* longest total first */
    double unnamed;    /* seconds of lock waits whose lock is not known */
};

struct rp_waits {
    const struct rp_view *view;
    bool keep_idle;
    RP_VEC(struct rp_wait_row) rows; /* most seconds first, the unseen last; idle categories only when kept */
    RP_VEC(struct rp_idle_group) idle; /* most seconds first; empty when kept */
    uint32_t idle_threads;             /* threads with idle time */
    double wall, cpu, preempted, waiting, idle_seconds; /* all threads of the view; waiting: not idle, unseen included */
    double unknown;                    /* of the same threads: time that lost switch records would have told of */
    double busy;                       /* cpu + preempted + waiting: what shares are of */
    double waits;                      /* not idle */
    bool thinned;                      /* not every wait was stacked */
    /* Per stack that waited, and per line of the profile's `waits`; for the files of analyze/. */
    struct rp_wait_stacks *stacks;
};

/* `keep_idle`: idle waits stand among the rows and count in `busy`. The view must outlive it. */
enum rp_status rp_waits_new(const struct rp_view *view, bool keep_idle, struct rp_waits **out, struct rp_err *err);
void rp_waits_free(struct rp_waits *waits);

/* False: times of running and waiting are not exact: waits are sampled, or records were lost, switches perhaps among them. */
bool rp_waits_exact(const struct rp_profile *profile);

/* True when the profile holds waits, or its threads say how their time divided. */
bool rp_waits_measured(const struct rp_profile *profile);

enum rp_status rp_waits_threads(const struct rp_waits *waits, struct rp_thread_table *table, struct rp_err *err);
void rp_thread_table_release(struct rp_thread_table *table);

enum rp_status rp_waits_locks(const struct rp_waits *waits, struct rp_lock_table *table, struct rp_err *err);
void rp_lock_table_release(struct rp_lock_table *table);

/* A thread's name without its digits: "worker-3" and "worker-12" are "worker-*", "libuv-worker" is itself. */
void rp_thread_group_name(const char *comm, struct rp_buf *out);

/* The name of a system call of x86-64; "" when it is none that one waits in. */
const char *rp_syscall_name(int number);

#endif
