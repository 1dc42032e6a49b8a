/* SPDX-License-Identifier: MIT */
/*
 * rowload verchk: before each request, has the database changed since the cache was filled?
 *
 * Requests are checks and some work; the checks are made in one of seven ways (rw_version.h), while a writer commits
 * (rw_writer.h). What was seen is counted against what was committed, so that a way which is fast because it is wrong shows.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rl_burn.h"
#include "rl_crew.h"
#include "rl_scratch.h"
#include "rl_sql.h"
#include "rw_version.h"
#include "rw_writer.h"

enum { CHECKS_MAX = 1000, COMMIT_HZ_MAX = 100000, THREADS_MAX = 256 };

static const char *const mode_choices[] = {"reprepare", "prepared",      "pool",  "header",
                                           "header-nolock", "fcntl", "counter", NULL};
static const char *const writer_choices[] = {"process", "thread", NULL};
static const char *const journal_choices[] = {"wal", "delete", NULL};
static const char *const locking_choices[] = {"normal", "exclusive", NULL};

struct verchk_state {
    uint32_t mode;
    uint32_t writer_kind; /* 0 process, 1 thread */
    uint32_t journal;     /* 0 wal, 1 delete */
    uint32_t locking;     /* 0 normal, 1 exclusive */
    uint64_t threads;
    uint64_t checks;
    uint64_t work_ns;
    uint64_t commit_hz;
    const char *db_path;

    struct rl_scratch scratch;
    const char *path;
    char shm_path[RL_PATH_BYTES + 32];
    uint64_t work_rounds;
    struct rw_version *all;
    struct rw_version_thread *each;
    struct rw_writer writer;
    bool writer_good;
};

static const struct rl_option verchk_options[] = {
    {"mode", RL_OPT_CHOICE, offsetof(struct verchk_state, mode), 0, 0, mode_choices, "how to ask (default prepared)"},
    {"threads", RL_OPT_COUNT, offsetof(struct verchk_state, threads), 1, THREADS_MAX, NULL, "that serve (default 1)"},
    {"checks-per-request", RL_OPT_COUNT, offsetof(struct verchk_state, checks), 1, CHECKS_MAX, NULL, "(default 5)"},
    {"work-ns", RL_OPT_COUNT, offsetof(struct verchk_state, work_ns), 0, UINT64_C(1000000000), NULL,
     "other work of a request (default 0)"},
    {"commit-hz", RL_OPT_COUNT, offsetof(struct verchk_state, commit_hz), 0, COMMIT_HZ_MAX, NULL,
     "commits per second at most, one per check of each thread (default 10)"},
    {"writer", RL_OPT_CHOICE, offsetof(struct verchk_state, writer_kind), 0, 0, writer_choices,
     "who commits (default process)"},
    {"journal", RL_OPT_CHOICE, offsetof(struct verchk_state, journal), 0, 0, journal_choices,
     "journal; without a WAL there is no header (default wal)"},
    {"locking", RL_OPT_CHOICE, offsetof(struct verchk_state, locking), 0, 0, locking_choices,
     "exclusive keeps the header off the disk, and others out (default normal)"},
    {"db-path", RL_OPT_TEXT, offsetof(struct verchk_state, db_path), 0, 0, NULL,
     "an existing database that others commit to; needs --commit-hz 0 (default: a scratch file)"},
    {NULL, RL_OPT_FLAG, 0, 0, 0, NULL, NULL},
};

static void verchk_defaults(struct rl_run *run)
{
    struct verchk_state *state = run->state;
    state->mode = RW_PREPARED;
    state->threads = 1;
    state->checks = 5;
    state->commit_hz = 10;
}

static bool options_agree(struct rl_run *run)
{
    const struct verchk_state *state = run->state;
    const char *wrong = NULL;
    if (state->locking && (state->threads > 1 || state->commit_hz))
        wrong = "--locking exclusive lets in one connection: it takes --threads 1 and --commit-hz 0.";
    else if (state->db_path && state->commit_hz)
        wrong = "The database of --db-path is not written to: it takes --commit-hz 0.";
    if (wrong) {
        (void)snprintf(run->error, sizeof run->error, "%s", wrong);
        run->misused = true;
    }
    return !wrong;
}

/* Memory, the file's names and the database itself. */
static bool things_make(struct rl_run *run)
{
    struct verchk_state *state = run->state;
    state->all = aligned_alloc(128, sizeof *state->all);
    state->each = aligned_alloc(128, state->threads * sizeof *state->each);
    if (state->all)
        memset(state->all, 0, sizeof *state->all);
    if (state->each)
        memset(state->each, 0, state->threads * sizeof *state->each);
    void *shared = mmap(NULL, sizeof *state->writer.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared != MAP_FAILED)
        state->writer.shared = shared;
    if (!state->all || !state->each || !state->writer.shared) {
        (void)snprintf(run->error, sizeof run->error, "The state of the threads did not fit into memory.");
        return false;
    }
    (void)pthread_mutex_init(&state->all->lock, NULL);
    state->path = state->db_path;
    if (!state->path) {
        if (!rl_scratch_make(run, &state->scratch))
            return false;
        state->path = state->scratch.file;
    }
    int n = snprintf(state->shm_path, sizeof state->shm_path, "%s-shm", state->path);
    if (n < 0 || (size_t)n >= sizeof state->shm_path) {
        (void)snprintf(run->error, sizeof run->error, "The path of --db-path is too long.");
        return false;
    }
    return true;
}

static bool database_create(struct rl_run *run)
{
    const struct verchk_state *state = run->state;
    sqlite3 *db = NULL;
    char journal[64];
    (void)snprintf(journal, sizeof journal, "PRAGMA journal_mode=%s", journal_choices[state->journal]);
    bool good = rl_sql_open(state->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &db, run->error) &&
                rl_sql_do(db, journal, run->error) &&
                rl_sql_do(db, "CREATE TABLE version_probe(id INTEGER PRIMARY KEY, n INTEGER)", run->error) &&
                rl_sql_do(db, "INSERT INTO version_probe VALUES(1, 0)", run->error);
    (void)sqlite3_close(db);
    return good;
}

static bool connection_open(const struct verchk_state *state, sqlite3 **db, sqlite3_stmt **pragma,
                            char error[RL_ERROR_BYTES])
{
    return rl_sql_open(state->path, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, db, error) &&
           rl_sql_prepare(*db, "PRAGMA data_version", pragma, error);
}

/* The connection that keeps the -shm file there; with --locking exclusive it is the only one, and there is no such file. */
static bool kept_open(struct rl_run *run)
{
    const struct verchk_state *state = run->state;
    int flags = (state->locking ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX;
    return rl_sql_open(state->path, flags, &state->all->kept, run->error) &&
           (!state->locking || rl_sql_do(state->all->kept, "PRAGMA locking_mode=EXCLUSIVE", run->error)) &&
           rl_sql_do(state->all->kept, "SELECT count(*) FROM sqlite_master", run->error);
}

static bool verchk_open(struct rl_run *run)
{
    struct verchk_state *state = run->state;
    run->processes = 1;
    run->threads = state->threads;
    run->warm_calls = 20000;
    state->writer_good = true;
    if (!options_agree(run) || !things_make(run) || (!state->db_path && !database_create(run)))
        return false;
    state->work_rounds = rl_burn_rounds(state->work_ns);
    state->writer.path = state->path;
    state->writer.commit_hz = state->commit_hz;
    state->writer.threads = state->threads;
    state->writer.counter = &state->all->counter;
    state->writer.as_process = state->writer_kind == 0;
    if ((state->commit_hz && !rw_writer_start(&state->writer, run->error)) || !kept_open(run))
        return false;
    if ((state->mode == RW_REPREPARE || state->mode == RW_PREPARED) && !state->locking &&
        !connection_open(state, &state->all->db, &state->all->pragma, run->error))
        return false;
    if (state->locking) {
        state->all->db = state->all->kept;
        if (!rl_sql_prepare(state->all->kept, "PRAGMA data_version", &state->all->pragma, run->error))
            return false;
    }
    if (state->mode == RW_HEADER)
        rw_shm_open(&state->all->shm, state->shm_path);
    return true;
}

static bool verchk_worker_open(struct rl_worker *worker)
{
    const struct verchk_state *state = worker->run->state;
    struct rw_version_thread *one = &state->each[worker->index];
    if (state->locking) {
        one->db = state->all->kept;
        one->pragma = state->all->pragma;
    } else if (!connection_open(state, &one->db, &one->pragma, worker->error)) {
        return false;
    }
    if (state->mode == RW_HEADER_NOLOCK)
        rw_shm_open(&one->shm, state->shm_path);
    worker->own = one;
    return true;
}

RW_CATEGORY uint64_t rw_request_work(uint64_t rounds);

/* What a request does beside its checks. */
uint64_t rw_request_work(uint64_t rounds)
{
    return rl_burn(rounds, 53);
}

static bool check_failed(struct rl_worker *worker)
{
    const struct verchk_state *state = worker->run->state;
    const struct rw_version_thread *one = worker->own;
    return rl_sql_failed(rw_check_modes[state->mode].shared && state->all->db ? state->all->db : one->db,
                         "tell whether the database changed", worker->error);
}

static bool verchk_work(struct rl_worker *worker, uint64_t calls)
{
    const struct verchk_state *state = worker->run->state;
    rw_check *check = rw_check_modes[state->mode].check;
    for (uint64_t i = 0; i < calls; i++) {
        for (uint64_t j = 0; j < state->checks; j++) {
            if (check(state->all, worker->own) < 0)
                return check_failed(worker);
            rw_writer_checked(state->writer.shared, worker->index);
        }
        (void)rw_request_work(state->work_rounds);
        worker->sum += rl_random_at(worker->run->seed, rl_worker_number(worker));
    }
    worker->rows += calls;
    return true;
}

/* Workers wait at a gate: what they saw so far was the start. */
static void verchk_ready(struct rl_run *run)
{
    struct verchk_state *state = run->state;
    state->all->changes = state->all->generation = 0;
    for (uint64_t i = 0; i < state->threads; i++) {
        struct rw_version_thread *one = &state->each[i];
        one->changes = one->fallbacks = one->contended = one->wait_ns = 0;
        one->shm.torn = one->shm.remaps = 0;
    }
    state->all->shm.torn = state->all->shm.remaps = 0;
    state->writer.shared->go = 1;
}

/* Ends the writer, so that each worker's last check comes after the last commit. */
static void verchk_settle(struct rl_run *run)
{
    struct verchk_state *state = run->state;
    char error[RL_ERROR_BYTES] = "";
    if (!rw_writer_stop(&state->writer, error)) {
        state->writer_good = false;
        (void)fprintf(stderr, "rowload: The writer failed: %s\n", error);
    }
}

static void verchk_worker_close(struct rl_worker *worker)
{
    const struct verchk_state *state = worker->run->state;
    struct rw_version_thread *one = &state->each[worker->index];
    if (worker->own)
        (void)rw_check_modes[state->mode].check(state->all, one);
    if (!state->locking) {
        (void)sqlite3_finalize(one->pragma);
        (void)sqlite3_close(one->db);
    }
    one->db = NULL;
}

/* Which source the checks can read at READY. */
static const char *source_name(const struct verchk_state *state)
{
    if (!rw_check_modes[state->mode].header)
        return state->mode == RW_FCNTL ? "fcntl" : state->mode == RW_COUNTER ? "counter" : "pragma";
    return (state->mode == RW_HEADER ? state->all->shm.words : state->each[0].shm.words) ? "header" : "pragma";
}

static void verchk_describe(const struct rl_run *run, FILE *out)
{
    const struct verchk_state *state = run->state;
    (void)fprintf(out, " op=%s limit=0 source=%s checks_per_request=%" PRIu64 " work_ns=%" PRIu64 " commit_hz=%" PRIu64
                  " writer=%s journal=%s locking=%s sqlite=%s", mode_choices[state->mode], source_name(state),
                  state->checks, state->work_ns, state->commit_hz, writer_choices[state->writer_kind],
                  journal_choices[state->journal], locking_choices[state->locking], sqlite3_libversion());
}

/*
 * `changes` is what the thread that saw least has seen, `changes_most` what the one that saw most has: in the modes with one
 * version for all threads it is the same number.
 */
static void verchk_finish(const struct rl_run *run, FILE *out)
{
    const struct verchk_state *state = run->state;
    const struct rw_version *all = state->all;
    struct rl_done done;
    uint64_t low = UINT64_MAX;
    uint64_t high = 0;
    struct rw_version_thread sum;
    memset(&sum, 0, sizeof sum);
    for (uint64_t i = 0; i < state->threads; i++) {
        const struct rw_version_thread *one = &state->each[i];
        low = one->changes < low ? one->changes : low;
        high = one->changes > high ? one->changes : high;
        sum.fallbacks += one->fallbacks;
        sum.contended += one->contended;
        sum.wait_ns += one->wait_ns;
        sum.shm.torn += one->shm.torn;
        sum.shm.remaps += one->shm.remaps;
    }
    if (rw_check_modes[state->mode].shared) {
        low += all->changes;
        high += all->changes;
    }
    rl_crew_totals(&done);
    uint64_t checks = done.calls * state->checks;
    (void)fprintf(out, "CHECKS checks=%" PRIu64 " changes=%" PRIu64 " changes_most=%" PRIu64 " commits=%" PRIu64
                  " torn=%" PRIu64 " remaps=%" PRIu64 " fallbacks=%" PRIu64 " contended=%" PRIu64 " wait_secs=%.6f"
                  " generation=%" PRIu64 " cpu_ns_per_check=%.2f\n", checks, low, high,
                  (uint64_t)state->writer.shared->commits, all->shm.torn + sum.shm.torn, all->shm.remaps + sum.shm.remaps,
                  sum.fallbacks, sum.contended, (double)sum.wait_ns / 1e9, all->generation,
                  checks ? (double)done.cpu_ns / (double)checks : 0.0);
}

static void verchk_close(struct rl_run *run)
{
    struct verchk_state *state = run->state;
    char error[RL_ERROR_BYTES];
    if (state->writer.shared) {
        (void)rw_writer_stop(&state->writer, error);
        (void)munmap(state->writer.shared, sizeof *state->writer.shared);
    }
    if (state->all) {
        (void)sqlite3_finalize(state->all->pragma);
        if (!state->locking)
            (void)sqlite3_close(state->all->db);
        (void)sqlite3_close(state->all->kept);
        rw_shm_close(&state->all->shm);
    }
    for (uint64_t i = 0; state->all && state->each && i < state->threads; i++)
        rw_shm_close(&state->each[i].shm);
    free(state->all);
    free(state->each);
    rl_scratch_remove(&state->scratch);
}

extern const struct rl_workload wl_verchk;
const struct rl_workload wl_verchk = {
    .name = "verchk",
    .summary = "asks before each request whether the database changed, in one of seven ways, while a writer commits",
    .options = verchk_options,
    .state_bytes = sizeof(struct verchk_state),
    .defaults = verchk_defaults,
    .open = verchk_open,
    .worker_open = verchk_worker_open,
    .work = verchk_work,
    .settle = verchk_settle,
    .worker_close = verchk_worker_close,
    .ready = verchk_ready,
    .describe = verchk_describe,
    .finish = verchk_finish,
    .close = verchk_close,
};
