/* SPDX-License-Identifier: MIT */
/*
 * The thread pool of `rowload evloop`, and the way back to its loop.
 *
 * A job is a statement whose turn has come; it stands in the pool at most once, so the queues never grow. A thread that has
 * done one puts it on the done list and wakes the loop through an eventfd, as libuv does. When a job was queued, started
 * and done, and how long it waited for the connection's mutex, is written into it.
 */
#ifndef RW_POOL_H
#define RW_POOL_H

#include <pthread.h>

#include "rl_run.h"

enum { RW_POOL_THREADS_MAX = 128, RW_POOL_JOBS_MAX = 1024 };

struct rw_job {
    struct rw_job *next; /* on the queue or the done list */
    uint64_t number;     /* of the query */
    uint64_t queued_ns;
    uint64_t started_ns;
    uint64_t done_ns;
    uint64_t mutex_ns; /* waited for the connection's mutex */
    uint64_t sum;      /* of the result */
    bool failed;
};

struct rw_pool {
    /* Does a job, in a thread of the pool. */
    void (*work)(void *context, struct rw_job *job);
    void *context;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct rw_job *first, *last; /* under lock */
    struct rw_job *done_first, *done_last;
    bool over;
    int event_fd; /* readable while something is done */
    pthread_t threads[RW_POOL_THREADS_MAX];
    size_t started;
};

/* `work` and `context` are set before. False: `error` is filled. rw_pool_stop is called in any case. */
bool rw_pool_start(struct rw_pool *pool, size_t threads, char error[RL_ERROR_BYTES]);

void rw_pool_put(struct rw_pool *pool, struct rw_job *job);

/* Everything that is done, oldest first, linked by `next`; NULL when nothing is. */
struct rw_job *rw_pool_take_done(struct rw_pool *pool);

/* Ends the threads after their current jobs. Safe twice, and on a zeroed pool whose event_fd is -1. */
void rw_pool_stop(struct rw_pool *pool);

#endif
