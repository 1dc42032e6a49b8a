/* SPDX-License-Identifier: MIT */
/*
 * The crew: the worker threads of workloads that measure how threads and processes run beside each other.
 *
 * A workload that sets `work` instead of `batch` is run by `processes` x `threads` workers. The first process is rowload
 * itself, so that a profiler pointed at the pid of READY sees its share of the work; the others are forked before any
 * thread exists. All workers open, warm up, hold and close together, gate by gate, and publish what they did into memory
 * shared by all processes, about once a millisecond. The protocol's own thread sleeps meanwhile: its CPU time and its
 * context switches are in no figure.
 *
 *      open -> gate -> warm up -> gate -> (READY) hold -> gate -> (settle) close
 *
 * Work is shared out by number, not by speed: worker i of W does the calls numbered i, i + W, i + 2W, ... so that the same
 * calls are done, and the same SUM comes out, however they are spread over processes and threads.
 */
#ifndef RL_CREW_H
#define RL_CREW_H

#include "rl_run.h"

enum { RL_WORKERS_MAX = 1024, RL_PROCESSES_MAX = 64 };

struct rl_worker {
    struct rl_run *run;
    uint32_t index; /* over all processes */
    uint32_t process;
    void *own; /* the workload's, from worker_open to worker_close */

    /* Moved on by work. */
    uint64_t next; /* the number of the next call */
    uint64_t rows;
    uint64_t sum;

    char error[RL_ERROR_BYTES];
};

/* What workers have done since READY; in all, or of one of them. */
struct rl_done {
    uint64_t calls;
    uint64_t rows;
    uint64_t sum;
    uint64_t cpu_ns;
    int64_t nvcsw;
    int64_t nivcsw;
    uint64_t begin_ns; /* of the hold, monotonic; of one worker only */
    uint64_t end_ns;
    int64_t tid;
};

/* The number of the next call. */
static inline uint64_t rl_worker_number(struct rl_worker *worker)
{
    uint64_t number = worker->next;
    worker->next += worker->run->processes * worker->run->threads;
    return number;
}

/*
 * Forks, starts every worker and waits until all have opened. False: run->error holds the sentence. rl_crew_close must be
 * called in any case.
 */
bool rl_crew_start(struct rl_run *run);

/* Lets the workers warm up, until so many calls are done and so much time is over, or a signal comes. */
bool rl_crew_warm(struct rl_run *run, uint64_t warm_ns);

/* Lets the workers hold, with run->calls shared out among them. */
void rl_crew_hold(struct rl_run *run);

/* Sleeps up to 10 ms. False when all workers have done their share, or one has failed. */
bool rl_crew_nap(void);

/* Ends the hold and waits until every worker has published its last figures. False: run->error holds the sentence. */
bool rl_crew_stop(struct rl_run *run);

/* Lets the workers close, and waits for all threads and processes to end. */
void rl_crew_close(struct rl_run *run);

void rl_crew_totals(struct rl_done *done);
void rl_crew_worker_done(size_t index, struct rl_done *done);

/* When process `index` had its first worker started and its last one ended, monotonic. After rl_crew_close. */
void rl_crew_process_span(size_t index, uint64_t *begin_ns, uint64_t *end_ns);

/* `1234,1235`: the processes, the first of them this one. */
void rl_crew_pids_print(FILE *out);

#endif
