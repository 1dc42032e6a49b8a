/* SPDX-License-Identifier: MIT */
/* Which threads the watched processes have, and which of them run: found out through procfs alone, so that nobody who sleeps is touched.
 *
 * A thread whose schedstat says that it was not on a CPU since it was last seen blocked is still in that same wait. One that was is looked at
 * in full. With many threads those that have not run lately are looked at in turn. */
#ifndef RP_SAMPLE_PTRACE_WATCH_H
#define RP_SAMPLE_PTRACE_WATCH_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "target/process.h"

/* schedstat of a thread. */
struct rp_watch_times {
    uint64_t cpu_ns, delay_ns; /* on a CPU; ready, waiting for one */
    uint64_t switches_in;      /* times it was put on one */
};

struct rp_watch_thread {
    uint32_t tid;
    int schedstat, stat;   /* kept open while there is room, else -1 */
    struct rp_watch_times times; /* at the last look: stale by a scheduler tick while it runs */
    uint64_t last_ran_ns;  /* when a look last found that it had run */
    uint64_t accounted_ns; /* CPU time up to which samples were drawn */
    uint64_t credit_ns;    /* CPU time used that no sample stands for yet */
    char state;            /* R S D T …; 0: not looked at yet */
    int cpu;               /* it runs on, or ran on last */
    char comm[16];
    bool asked;            /* held, or about to be */
    /* What rp_edges_* keep of it. */
    bool born;             /* during the watch: nothing was told of it yet */
    bool waiting;          /* told to be off the CPU */
    bool peeked;           /* seen in the wait it is in, or refused */
    uint64_t since_ns;     /* of the wait, or of when its running was last settled */
    struct rp_watch_times since; /* at that moment */
    bool listed;
};

struct rp_watch_process {
    uint32_t pid;
    DIR *tasks;            /* NULL: gone */
    RP_VEC(struct rp_watch_thread) threads; /* by tid */
    size_t turn;           /* whose turn it is among those that have not run lately */
    size_t children_turn;  /* thread at which the next round of asking for children begins */
    uint64_t listed_ns, checked_ns, clock_ns;
    uint64_t stack_start;  /* tells one program from the next */
    bool waits_for_exec;   /* launched: not sampled before its execve */
    bool born;             /* during the watch */
};

struct rp_watch {
    RP_VEC(struct rp_watch_process) processes;
    uint32_t files, files_max; /* of threads kept open */
    uint64_t period_ns;        /* CPU time that one sample stands for */
    RP_VEC(uint32_t) listing;  /* scratch */
    struct rp_pids children;   /* scratch */
};

/* What became known, told as it is found. `other`: of a fork the parent's pid. */
enum rp_watch_news { RP_WATCH_THREAD, RP_WATCH_THREAD_GONE, RP_WATCH_NAME, RP_WATCH_EXEC, RP_WATCH_PROCESS };
typedef void rp_watch_tell(void *context, enum rp_watch_news news, uint32_t pid, uint32_t tid, uint32_t other, const char *comm);

/* Adds a process with its threads; nothing is told of those. False: gone (a zombie is), or no memory. */
bool rp_watch_add(struct rp_watch *watch, uint32_t pid, uint64_t now_ns);

/* Reads the list of threads again when it is due. Ends `p->tasks` when the process is gone. */
void rp_watch_list(struct rp_watch *watch, struct rp_watch_process *p, uint64_t now_ns, rp_watch_tell *tell, void *context);

/* Finds execve and, with `children`, new children of `p`, which are added (so pointers to processes are void); every tenth of a second. */
void rp_watch_check(struct rp_watch *watch, size_t process, bool children, uint64_t now_ns, rp_watch_tell *tell, void *context);

/* Whether the process used any CPU since the last call; true when that cannot be told. */
bool rp_watch_has_run(struct rp_watch_process *p);

enum rp_watch_sight {
    RP_WATCH_SAME,    /* blocked where it was, or gone */
    RP_WATCH_BLOCKED, /* it has run and is blocked again; or the first look at it */
    RP_WATCH_RUNS,    /* it is running or ready to run */
};

/* Looks at the thread. */
enum rp_watch_sight rp_watch_look(struct rp_watch *watch, struct rp_watch_process *p, struct rp_watch_thread *t, uint64_t now_ns, rp_watch_tell *tell, void *context);

/* Its schedstat now. False: gone. */
bool rp_watch_schedstat(const struct rp_watch_process *p, const struct rp_watch_thread *t, struct rp_watch_times *times);

/* With many threads: whether `t` (the i-th) is to be looked at this time. */
bool rp_watch_is_due(const struct rp_watch_process *p, size_t i, uint64_t now_ns);
/* Moves the turn on, after all were asked for. */
void rp_watch_next_turn(struct rp_watch_process *p);

/* The thread by id, or NULL. Good until the next listing. */
struct rp_watch_thread *rp_watch_find(struct rp_watch_process *p, uint32_t tid);

void rp_watch_release(struct rp_watch *watch);

#endif
