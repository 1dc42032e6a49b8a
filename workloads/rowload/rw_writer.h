/* SPDX-License-Identifier: MIT */
/*
 * The writer beside the checks of `rowload verchk`: commits at a steady rate, in a thread or a process of its own.
 *
 * It commits at most once between two checks of any thread: a commit is followed by the next only when every thread has
 * begun and ended a check since. So each commit can be seen, on however busy a machine, and the number of changes seen has
 * to be the number of commits made.
 */
#ifndef RW_WRITER_H
#define RW_WRITER_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "rl_crew.h"

/* In memory shared with the writer. */
struct rw_writer_shared {
    _Atomic uint32_t up; /* has its connection */
    _Atomic uint32_t go;
    _Atomic uint32_t stop;
    _Atomic uint32_t failed;
    _Atomic uint64_t commits;
    char error[RL_ERROR_BYTES]; /* valid when failed */
    struct {
        _Alignas(64) _Atomic uint64_t done;
    } checks[RL_WORKERS_MAX];
};

struct rw_writer {
    const char *path;
    uint64_t commit_hz;
    size_t threads;            /* that check */
    _Atomic uint64_t *counter; /* moved on after each commit; seen by others in this process only */
    struct rw_writer_shared *shared;
    bool as_process; /* else a thread */
    pid_t pid;
    pthread_t thread;
    bool started;
};

/* Starts the writer and waits until it is connected. Before any connection or thread is made. False: `error` is filled. */
bool rw_writer_start(struct rw_writer *writer, char error[RL_ERROR_BYTES]);

/* Ends it after its current commit. False when it had failed: `error` is filled. Safe twice. */
bool rw_writer_stop(struct rw_writer *writer, char error[RL_ERROR_BYTES]);

/* Marks the end of a check of thread `index`. */
static inline void rw_writer_checked(struct rw_writer_shared *shared, size_t index)
{
    uint64_t done = atomic_load_explicit(&shared->checks[index].done, memory_order_relaxed);
    atomic_store_explicit(&shared->checks[index].done, done + 1, memory_order_release);
}

RW_CATEGORY bool rw_writer_commit(sqlite3_stmt *update);

#endif
