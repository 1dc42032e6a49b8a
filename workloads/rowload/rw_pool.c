/* SPDX-License-Identifier: MIT */
/*
 * The pool: see rw_pool.h. Signals go to the loop's thread only, so that none of them ends a thread's wait.
 */
#include "rw_pool.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Puts a done job on its list. The loop is woken when the list was empty; otherwise it has yet to come for it. */
static void job_done(struct rw_pool *pool, struct rw_job *job)
{
    const uint64_t one = 1;
    (void)pthread_mutex_lock(&pool->lock);
    bool wake = !pool->done_first;
    job->next = NULL;
    if (wake)
        pool->done_first = job;
    else
        pool->done_last->next = job;
    pool->done_last = job;
    (void)pthread_mutex_unlock(&pool->lock);
    if (wake)
        (void)!write(pool->event_fd, &one, sizeof one);
}

static void *pool_thread(void *argument)
{
    struct rw_pool *pool = argument;
    for (;;) {
        (void)pthread_mutex_lock(&pool->lock);
        while (!pool->first && !pool->over)
            (void)pthread_cond_wait(&pool->wake, &pool->lock);
        struct rw_job *job = pool->over ? NULL : pool->first;
        if (job)
            pool->first = job->next;
        (void)pthread_mutex_unlock(&pool->lock);
        if (!job)
            return NULL;
        job->started_ns = rl_monotonic_ns();
        pool->work(pool->context, job);
        job->done_ns = rl_monotonic_ns();
        job_done(pool, job);
    }
}

bool rw_pool_start(struct rw_pool *pool, size_t threads, char error[RL_ERROR_BYTES])
{
    sigset_t all, before;
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->wake, NULL);
    pool->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (pool->event_fd < 0) {
        (void)snprintf(error, RL_ERROR_BYTES, "The event of the loop could not be made: %s.", strerror(errno));
        return false;
    }
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    while (pool->started < threads && pthread_create(&pool->threads[pool->started], NULL, pool_thread, pool) == 0) {
        (void)pthread_setname_np(pool->threads[pool->started], "rw-pool");
        pool->started++;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pool->started < threads)
        (void)snprintf(error, RL_ERROR_BYTES, "Pool thread %zu could not be started: the system has no more threads.",
                       pool->started + 1);
    return pool->started == threads;
}

void rw_pool_put(struct rw_pool *pool, struct rw_job *job)
{
    job->next = NULL;
    job->queued_ns = rl_monotonic_ns();
    (void)pthread_mutex_lock(&pool->lock);
    if (pool->first)
        pool->last->next = job;
    else
        pool->first = job;
    pool->last = job;
    (void)pthread_cond_signal(&pool->wake);
    (void)pthread_mutex_unlock(&pool->lock);
}

struct rw_job *rw_pool_take_done(struct rw_pool *pool)
{
    (void)pthread_mutex_lock(&pool->lock);
    struct rw_job *first = pool->done_first;
    pool->done_first = pool->done_last = NULL;
    (void)pthread_mutex_unlock(&pool->lock);
    return first;
}

void rw_pool_stop(struct rw_pool *pool)
{
    if (pool->event_fd < 0)
        return;
    (void)pthread_mutex_lock(&pool->lock);
    pool->over = true;
    (void)pthread_cond_broadcast(&pool->wake);
    (void)pthread_mutex_unlock(&pool->lock);
    while (pool->started)
        (void)pthread_join(pool->threads[--pool->started], NULL);
    (void)close(pool->event_fd);
    pool->event_fd = -1;
}
