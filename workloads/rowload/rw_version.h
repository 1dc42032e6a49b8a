/* SPDX-License-Identifier: MIT */
/*
 * Seven ways to ask whether a database has changed since one last asked.
 *
 * Each is a function of its own (rw_check_*). Some keep one remembered version for all threads, under a mutex; the others
 * keep one per thread, and take the mutex only to note a change. The mutex is tried first, so that the program knows
 * itself how often, and how long, it waited.
 */
#ifndef RW_VERSION_H
#define RW_VERSION_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

#include "rl_run.h"
#include "rw_shm.h"

/* What one thread keeps. Aligned, so that threads do not share cache lines. */
struct rw_version_thread {
    _Alignas(128) sqlite3 *db; /* its own connection; borrowed from rw_version.kept when there can be only one */
    sqlite3_stmt *pragma;
    int64_t version;
    uint64_t counter;
    struct rw_shm shm;
    struct rw_shm_header last;

    /* Since READY. */
    uint64_t changes;
    uint64_t fallbacks; /* checks of the header that had to ask SQLite */
    uint64_t contended;
    uint64_t wait_ns;
};

/* What all threads share. */
struct rw_version {
    pthread_mutex_t lock;
    sqlite3 *kept; /* read-only, never asked: keeps the -shm file from being deleted */
    sqlite3 *db;   /* the one connection of the modes with a mutex */
    sqlite3_stmt *pragma;
    int64_t version;
    uint64_t seen; /* of the in-process counter */
    struct rw_shm shm;
    struct rw_shm_header last;
    uint64_t changes;    /* seen under the lock, since READY */
    uint64_t generation; /* of what is cached: moved on by every change noted */

    _Alignas(128) _Atomic uint64_t counter; /* commits of this process's own writer */
};

/* 1 changed, 0 not, -1 failed (the error is that of the connection). */
typedef int rw_check(struct rw_version *all, struct rw_version_thread *one);

struct rw_check_mode {
    const char *name;
    rw_check *check;
    bool shared; /* one remembered version for all threads */
    bool header; /* reads the -shm header */
};

/* In the order of enum rw_mode; ended by a NULL name. */
extern const struct rw_check_mode rw_check_modes[];
enum rw_mode {
    RW_REPREPARE,
    RW_PREPARED,
    RW_POOL,
    RW_HEADER,
    RW_HEADER_NOLOCK,
    RW_FCNTL,
    RW_COUNTER,
};

/* Takes the mutex, counting contention. */
RW_CATEGORY void rw_version_lock(struct rw_version *all, struct rw_version_thread *one);

RW_CATEGORY rw_check rw_check_reprepare;
RW_CATEGORY rw_check rw_check_prepared;
RW_CATEGORY rw_check rw_check_pool;
RW_CATEGORY rw_check rw_check_header;
RW_CATEGORY rw_check rw_check_header_nolock;
RW_CATEGORY rw_check rw_check_fcntl;
RW_CATEGORY rw_check rw_check_counter;

#endif
