/* SPDX-License-Identifier: MIT */
/*
 * The checks: see rw_version.h.
 *
 * The trap is in SQLITE_FCNTL_DATA_VERSION: it tells what this connection's pager last read, and so misses commits of others
 * until the connection reads for another reason. It is here because it looks right and is cheap.
 */
#include "rw_version.h"

const struct rw_check_mode rw_check_modes[] = {
    {"reprepare", rw_check_reprepare, true, false},
    {"prepared", rw_check_prepared, true, false},
    {"pool", rw_check_pool, false, false},
    {"header", rw_check_header, true, true},
    {"header-nolock", rw_check_header_nolock, false, true},
    {"fcntl", rw_check_fcntl, false, false},
    {"counter", rw_check_counter, true, false},
    {NULL, NULL, false, false},
};

static const char pragma_sql[] = "PRAGMA data_version";

void rw_version_lock(struct rw_version *all, struct rw_version_thread *one)
{
    if (pthread_mutex_trylock(&all->lock) == 0)
        return;
    uint64_t before_ns = rl_monotonic_ns();
    (void)pthread_mutex_lock(&all->lock);
    one->contended++;
    one->wait_ns += rl_monotonic_ns() - before_ns;
}

static void version_unlock(struct rw_version *all)
{
    (void)pthread_mutex_unlock(&all->lock);
}

/* Reads the version through `pragma` and compares it with *last. */
static int pragma_check(sqlite3_stmt *pragma, int64_t *last)
{
    int answer = -1;
    if (sqlite3_step(pragma) == SQLITE_ROW) {
        int64_t version = sqlite3_column_int64(pragma, 0);
        answer = version != *last;
        *last = version;
    }
    return sqlite3_reset(pragma) == SQLITE_OK ? answer : -1;
}

/* Under the lock: a change was seen. */
static int change_count(struct rw_version *all, int answer)
{
    if (answer > 0) {
        all->changes++;
        all->generation++;
    }
    return answer;
}

/* Without it: a change was seen by this thread. What is cached is out of date for all. */
static int change_note(struct rw_version *all, struct rw_version_thread *one, int answer)
{
    if (answer > 0) {
        one->changes++;
        rw_version_lock(all, one);
        all->generation++;
        version_unlock(all);
    }
    return answer;
}

int rw_check_reprepare(struct rw_version *all, struct rw_version_thread *one)
{
    sqlite3_stmt *pragma = NULL;
    int answer = -1;
    rw_version_lock(all, one);
    if (sqlite3_prepare_v2(all->db, pragma_sql, -1, &pragma, NULL) == SQLITE_OK)
        answer = change_count(all, pragma_check(pragma, &all->version));
    (void)sqlite3_finalize(pragma);
    version_unlock(all);
    return answer;
}

int rw_check_prepared(struct rw_version *all, struct rw_version_thread *one)
{
    rw_version_lock(all, one);
    int answer = change_count(all, pragma_check(all->pragma, &all->version));
    version_unlock(all);
    return answer;
}

int rw_check_pool(struct rw_version *all, struct rw_version_thread *one)
{
    return change_note(all, one, pragma_check(one->pragma, &one->version));
}

/* The connection of a thread is asked when there is no header, even under the lock: it is then the thread's only one. */
int rw_check_header(struct rw_version *all, struct rw_version_thread *one)
{
    rw_version_lock(all, one);
    enum rw_shm_answer answer = rw_shm_check(&all->shm, &all->last);
    if (answer != RW_SHM_LOST)
        (void)change_count(all, answer == RW_SHM_CHANGED);
    version_unlock(all);
    if (answer != RW_SHM_LOST)
        return answer == RW_SHM_CHANGED;
    one->fallbacks++;
    return rw_check_pool(all, one);
}

int rw_check_header_nolock(struct rw_version *all, struct rw_version_thread *one)
{
    enum rw_shm_answer answer = rw_shm_check(&one->shm, &one->last);
    if (answer != RW_SHM_LOST)
        return change_note(all, one, answer == RW_SHM_CHANGED);
    one->fallbacks++;
    return rw_check_pool(all, one);
}

int rw_check_fcntl(struct rw_version *all, struct rw_version_thread *one)
{
    unsigned version = 0;
    if (sqlite3_file_control(one->db, "main", SQLITE_FCNTL_DATA_VERSION, &version) != SQLITE_OK)
        return -1;
    int answer = one->version != (int64_t)version;
    one->version = version;
    return change_note(all, one, answer);
}

int rw_check_counter(struct rw_version *all, struct rw_version_thread *one)
{
    rw_version_lock(all, one);
    uint64_t counter = atomic_load_explicit(&all->counter, memory_order_acquire);
    int answer = change_count(all, counter != all->seen);
    all->seen = counter;
    version_unlock(all);
    return answer;
}
