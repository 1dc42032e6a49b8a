/* SPDX-License-Identifier: MIT */
/*
 * The writer: see rw_writer.h. As a process it is forked before the parent has a connection, since neither connections nor
 * their locks may be carried across, and it dies with its parent.
 */
#include "rw_writer.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rl_sql.h"

enum { NAP_NS = 200000, SECOND_NS = 1000000000 };

static void nap(uint64_t ns)
{
    struct timespec left = {(time_t)(ns / SECOND_NS), (long)(ns % SECOND_NS)};
    (void)nanosleep(&left, NULL);
}

bool rw_writer_commit(sqlite3_stmt *update)
{
    return sqlite3_step(update) == SQLITE_DONE && sqlite3_reset(update) == SQLITE_OK;
}

/* Waits until every thread has done two more checks: the one that was under way, and one from its beginning. */
static void checks_await(struct rw_writer *writer, const uint64_t *before)
{
    struct rw_writer_shared *shared = writer->shared;
    for (size_t i = 0; i < writer->threads; i++) {
        while (!shared->stop && atomic_load_explicit(&shared->checks[i].done, memory_order_acquire) < before[i] + 2)
            nap(NAP_NS);
    }
}

static bool commits_make(struct rw_writer *writer, sqlite3_stmt *update)
{
    struct rw_writer_shared *shared = writer->shared;
    static uint64_t before[RL_WORKERS_MAX];
    uint64_t gap_ns = SECOND_NS / writer->commit_hz;
    uint64_t due_ns = rl_monotonic_ns() + gap_ns;
    while (!shared->stop) {
        uint64_t now_ns = rl_monotonic_ns();
        if (now_ns < due_ns) {
            nap(due_ns - now_ns < 10 * NAP_NS ? due_ns - now_ns : 10 * NAP_NS);
            continue;
        }
        due_ns = now_ns - due_ns > gap_ns ? now_ns + gap_ns : due_ns + gap_ns;
        if (!rw_writer_commit(update))
            return false;
        atomic_fetch_add(writer->counter, 1);
        shared->commits++;
        for (size_t i = 0; i < writer->threads; i++)
            before[i] = atomic_load_explicit(&shared->checks[i].done, memory_order_acquire);
        checks_await(writer, before);
    }
    return true;
}

/* The writer from its connection to its end. */
static void *writer_main(void *argument)
{
    struct rw_writer *writer = argument;
    struct rw_writer_shared *shared = writer->shared;
    sqlite3 *db = NULL;
    sqlite3_stmt *update = NULL;
    bool good = rl_sql_open(writer->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, &db, shared->error) &&
                rl_sql_do(db, "PRAGMA synchronous=NORMAL", shared->error) &&
                rl_sql_prepare(db, "UPDATE version_probe SET n = n + 1 WHERE id = 1", &update, shared->error);
    shared->up = 1;
    while (good && !shared->go && !shared->stop)
        nap(NAP_NS * 5);
    if (good && !commits_make(writer, update))
        good = rl_sql_failed(db, "commit", shared->error);
    shared->failed = !good;
    (void)sqlite3_finalize(update);
    (void)sqlite3_close(db);
    return NULL;
}

static bool process_start(struct rw_writer *writer)
{
    pid_t parent = getpid();
    writer->pid = fork();
    if (writer->pid == 0) {
        (void)signal(SIGINT, SIG_IGN);
        (void)signal(SIGTERM, SIG_IGN);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)prctl(PR_SET_NAME, "rw-writer");
        if (getppid() == parent)
            (void)writer_main(writer);
        _exit(0);
    }
    return writer->pid > 0;
}

static bool thread_start(struct rw_writer *writer)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    bool good = pthread_create(&writer->thread, NULL, writer_main, writer) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (good)
        (void)pthread_setname_np(writer->thread, "rw-writer");
    return good;
}

bool rw_writer_start(struct rw_writer *writer, char error[RL_ERROR_BYTES])
{
    (void)fflush(stdout);
    writer->started = writer->as_process ? process_start(writer) : thread_start(writer);
    if (!writer->started) {
        (void)snprintf(error, RL_ERROR_BYTES, "The writer could not be started.");
        return false;
    }
    while (!writer->shared->up) {
        if (writer->as_process && waitpid(writer->pid, NULL, WNOHANG) == writer->pid) {
            writer->started = false;
            (void)snprintf(error, RL_ERROR_BYTES, "The writer ended before its time.");
            return false;
        }
        nap(NAP_NS);
    }
    return true;
}

bool rw_writer_stop(struct rw_writer *writer, char error[RL_ERROR_BYTES])
{
    if (!writer->started)
        return true;
    writer->started = false;
    writer->shared->stop = 1;
    if (writer->as_process)
        (void)waitpid(writer->pid, NULL, 0);
    else
        (void)pthread_join(writer->thread, NULL);
    if (writer->shared->failed)
        (void)snprintf(error, RL_ERROR_BYTES, "%s", writer->shared->error);
    return !writer->shared->failed;
}
