/* SPDX-License-Identifier: MIT */
/*
 * rowload scan: the parallelism benchmark, processes x threads that each scan a table for one value.
 *
 * There is no index on the column that is asked for, so a query reads the whole table: what is measured is SQLite, whatever
 * language asks. Run as it stands the workload is the published benchmark: a number of queries per thread, with starting
 * and ending inside the time, and its report to the byte. With --steady (or --secs, --calls) it warms up and holds as the
 * other workloads do, and the start is outside READY. The trap is to compare the two: a short benchmark is mostly start.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rl_crew.h"
#include "rl_scratch.h"
#include "rl_sql.h"

enum { ROWS_MAX = 100000000, COLUMNS = 4 };

#define STEADY_NONE UINT64_MAX
#define STEADY_MAX UINT64_C(864000000000000)

static const char *const prepare_choices[] = {"once", "each", NULL};
static const char query_sql[] = "SELECT a, b, c, d FROM table1 WHERE x = ?";

struct scan_state {
    uint64_t processes;
    uint64_t threads;
    uint64_t queries;
    uint64_t rows;
    uint64_t x_range;
    uint64_t steady_ns;
    uint32_t prepare; /* 0 once, 1 each */
    bool pin;
    bool index;
    const char *db_path;

    struct rl_scratch scratch;
    const char *path;
    bool benchmark;
    uint64_t begin_ns;
};

/* What one worker has open. */
struct scan_worker {
    sqlite3 *db;
    sqlite3_stmt *stmt;
    uint64_t sum;
};

static const struct rl_option scan_options[] = {
    {"processes", RL_OPT_COUNT, offsetof(struct scan_state, processes), 1, RL_PROCESSES_MAX, NULL,
     "processes, the first of them this one (default 2)"},
    {"threads-per-proc", RL_OPT_COUNT, offsetof(struct scan_state, threads), 1, RL_WORKERS_MAX, NULL,
     "threads in each (default 16)"},
    {"threads", RL_OPT_COUNT, offsetof(struct scan_state, threads), 1, RL_WORKERS_MAX, NULL, "the same"},
    {"queries-per-thread", RL_OPT_COUNT, offsetof(struct scan_state, queries), 1, UINT32_MAX, NULL,
     "queries of each thread, start and end included in the time (default 50000)"},
    {"rows", RL_OPT_COUNT, offsetof(struct scan_state, rows), 1, ROWS_MAX, NULL, "rows in the table (default 2000)"},
    {"x-range", RL_OPT_COUNT, offsetof(struct scan_state, x_range), 1, UINT32_MAX, NULL,
     "x is random in [0, this) (default 1000)"},
    {"pin-cpus", RL_OPT_FLAG, offsetof(struct scan_state, pin), 0, 0, NULL, "process i on CPU i"},
    {"index", RL_OPT_FLAG, offsetof(struct scan_state, index), 0, 0, NULL, "an index on x, so that nothing is scanned"},
    {"prepare", RL_OPT_CHOICE, offsetof(struct scan_state, prepare), 0, 0, prepare_choices, "the query (default once)"},
    {"steady", RL_OPT_SECONDS, offsetof(struct scan_state, steady_ns), 0, STEADY_MAX, NULL,
     "warm up, then hold for so many seconds instead; 0: until killed"},
    {"db-path", RL_OPT_TEXT, offsetof(struct scan_state, db_path), 0, 0, NULL,
     "database file, overwritten and kept (default: a scratch file)"},
    {NULL, RL_OPT_FLAG, 0, 0, 0, NULL, NULL},
};

static void scan_defaults(struct rl_run *run)
{
    struct scan_state *state = run->state;
    state->processes = 2;
    state->threads = 16;
    state->queries = 50000;
    state->rows = 2000;
    state->x_range = 1000;
    state->steady_ns = STEADY_NONE;
}

static bool rows_insert(const struct rl_run *run, sqlite3 *db, char error[RL_ERROR_BYTES])
{
    const struct scan_state *state = run->state;
    sqlite3_stmt *insert = NULL;
    char text[24];
    bool good = rl_sql_prepare(db, "INSERT INTO table1 (x, a, b, c, d) VALUES (?1, ?2, ?2, ?2, ?2)", &insert, error);
    for (uint64_t i = 0; good && i < state->rows; i++) {
        (void)snprintf(text, sizeof text, "v%" PRIu64, i);
        (void)sqlite3_bind_int64(insert, 1, (sqlite3_int64)(rl_random_at(run->seed, i) % state->x_range));
        (void)sqlite3_bind_text(insert, 2, text, -1, SQLITE_STATIC);
        if (sqlite3_step(insert) != SQLITE_DONE || sqlite3_reset(insert) != SQLITE_OK)
            good = rl_sql_failed(db, "insert a row", error);
    }
    (void)sqlite3_finalize(insert);
    return good;
}

/* Makes the database anew. It is closed before anything forks: a connection must not be carried into another process. */
static bool table_create(struct rl_run *run)
{
    const struct scan_state *state = run->state;
    sqlite3 *db = NULL;
    if (unlink(state->path) != 0 && errno != ENOENT) {
        (void)snprintf(run->error, sizeof run->error, "%.150s could not be removed to make the database anew: %s.",
                       state->path, strerror(errno));
        return false;
    }
    bool good = rl_sql_open(state->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &db, run->error) &&
                rl_sql_do(db, "PRAGMA journal_mode=WAL", run->error) &&
                rl_sql_do(db, "CREATE TABLE table1(id INTEGER PRIMARY KEY, x INTEGER NOT NULL, a TEXT, b TEXT, c TEXT, d TEXT)",
                          run->error) &&
                rl_sql_do(db, "BEGIN", run->error) && rows_insert(run, db, run->error) &&
                (!state->index || rl_sql_do(db, "CREATE INDEX table1_x ON table1(x)", run->error)) &&
                rl_sql_do(db, "COMMIT", run->error);
    (void)sqlite3_close(db);
    return good;
}

static void header_print(const struct scan_state *state)
{
    (void)printf("Running benchmark with %" PRIu64 " processes \xc3\x97 %" PRIu64 " threads\n", state->processes,
                 state->threads);
    (void)printf("Total threads: %" PRIu64 "\n", state->processes * state->threads);
    if (state->benchmark) {
        (void)printf("Queries per thread: %" PRIu64 "\n", state->queries);
        (void)printf("Total queries: %" PRIu64 "\n", state->processes * state->threads * state->queries);
    }
    if (state->pin) {
        (void)printf("Attempting to pin processes to CPUs: [");
        for (uint64_t i = 0; i < state->processes; i++)
            (void)printf("%s%" PRIu64, i ? ", " : "", i);
        (void)printf("]\n");
    }
    (void)fflush(stdout);
}

static bool scan_open(struct rl_run *run)
{
    struct scan_state *state = run->state;
    run->processes = state->processes;
    run->threads = state->threads;
    run->pin = state->pin;
    if (state->processes * state->threads > RL_WORKERS_MAX) {
        (void)snprintf(run->error, sizeof run->error, "--processes times --threads-per-proc may be %d at most.",
                       RL_WORKERS_MAX);
        run->misused = true;
        return false;
    }
    if (state->steady_ns != STEADY_NONE)
        run->hold_ns = state->steady_ns;
    else if (!run->hold_ns && !run->calls)
        state->benchmark = true;
    if (state->benchmark) {
        run->calls = state->processes * state->threads * state->queries;
        run->unwarmed = true;
    }
    run->warm_calls = 3000;
    state->path = state->db_path;
    if (!state->path) {
        if (!rl_scratch_make(run, &state->scratch))
            return false;
        state->path = state->scratch.file;
    }
    (void)printf("Creating DB at %s with %" PRIu64 " rows (x in [0,%" PRIu64 "))\n", state->path, state->rows,
                 state->x_range);
    if (!table_create(run))
        return false;
    header_print(state);
    state->begin_ns = rl_monotonic_ns();
    return true;
}

static bool scan_worker_open(struct rl_worker *worker)
{
    const struct scan_state *state = worker->run->state;
    struct scan_worker *own = calloc(1, sizeof *own);
    worker->own = own;
    if (!own) {
        (void)snprintf(worker->error, sizeof worker->error, "The state of a worker did not fit into memory.");
        return false;
    }
    return rl_sql_open(state->path, SQLITE_OPEN_READWRITE, &own->db, worker->error) &&
           (state->prepare || rl_sql_prepare(own->db, query_sql, &own->stmt, worker->error));
}

RW_CATEGORY int64_t rw_scan_query(struct scan_worker *own, uint64_t x, bool each);

/* Runs the query and fetches all rows. Returns their number, or -1. */
int64_t rw_scan_query(struct scan_worker *own, uint64_t x, bool each)
{
    int64_t rows = 0;
    int step = SQLITE_ERROR;
    if (each && sqlite3_prepare_v2(own->db, query_sql, -1, &own->stmt, NULL) != SQLITE_OK)
        return -1;
    (void)sqlite3_bind_int64(own->stmt, 1, (sqlite3_int64)x);
    for (step = sqlite3_step(own->stmt); step == SQLITE_ROW; step = sqlite3_step(own->stmt)) {
        for (int i = 0; i < COLUMNS; i++) {
            uint64_t word = 0;
            const unsigned char *text = sqlite3_column_text(own->stmt, i);
            size_t bytes = (size_t)sqlite3_column_bytes(own->stmt, i);
            memcpy(&word, text, bytes < sizeof word ? bytes : sizeof word);
            own->sum += (word ^ (uint64_t)i) * UINT64_C(0x9e3779b97f4a7c15);
        }
        rows++;
    }
    (void)sqlite3_reset(own->stmt);
    if (each) {
        (void)sqlite3_finalize(own->stmt);
        own->stmt = NULL;
    }
    return step == SQLITE_DONE ? rows : -1;
}

static bool scan_work(struct rl_worker *worker, uint64_t calls)
{
    const struct scan_state *state = worker->run->state;
    struct scan_worker *own = worker->own;
    for (uint64_t i = 0; i < calls; i++) {
        uint64_t x = rl_random_at(worker->run->seed + 1, rl_worker_number(worker)) % state->x_range;
        own->sum = 0;
        int64_t rows = rw_scan_query(own, x, state->prepare);
        if (rows < 0)
            return rl_sql_failed(own->db, "run the query", worker->error);
        worker->rows += (uint64_t)rows;
        worker->sum += own->sum;
    }
    return true;
}

static void scan_worker_close(struct rl_worker *worker)
{
    struct scan_worker *own = worker->own;
    if (!own)
        return;
    (void)sqlite3_finalize(own->stmt);
    (void)sqlite3_close(own->db);
    free(own);
    worker->own = NULL;
}

static void scan_describe(const struct rl_run *run, FILE *out)
{
    const struct scan_state *state = run->state;
    (void)fprintf(out, " op=scan limit=0 rows=%" PRIu64 " x_range=%" PRIu64 " index=%d prepare=%s pin=%d steady=%d sqlite=%s",
                  state->rows, state->x_range, state->index, prepare_choices[state->prepare], state->pin,
                  !state->benchmark, sqlite3_libversion());
}

static void processes_print(const struct scan_state *state, FILE *out)
{
    (void)fprintf(out, "\n--- Per-process stats ---\n");
    for (uint64_t i = 0; i < state->processes; i++) {
        uint64_t begin_ns = 0;
        uint64_t end_ns = 0;
        uint64_t queries = 0;
        rl_crew_process_span(i, &begin_ns, &end_ns);
        for (uint64_t j = 0; j < state->threads; j++) {
            struct rl_done done;
            rl_crew_worker_done(i * state->threads + j, &done);
            queries += done.calls;
        }
        double secs = (double)(end_ns - begin_ns) / 1e9;
        (void)fprintf(out, "Process %" PRIu64 ":\n  Wall time: %.4f s\n  Queries:   %" PRIu64 "\n  QPS:       %.2f\n", i,
                      secs, queries, secs > 0 ? (double)queries / secs : 0.0);
    }
}

static int double_compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void threads_print(const struct scan_state *state, FILE *out)
{
    static double qps[RL_WORKERS_MAX];
    size_t count = (size_t)(state->processes * state->threads);
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        struct rl_done done;
        rl_crew_worker_done(i, &done);
        qps[i] = done.end_ns > done.begin_ns ? (double)done.calls * 1e9 / (double)(done.end_ns - done.begin_ns) : 0.0;
        sum += qps[i];
    }
    qsort(qps, count, sizeof qps[0], double_compare);
    (void)fprintf(out, "\n--- Per-thread QPS (over all processes) ---\nThreads total: %zu\n", count);
    (void)fprintf(out, "Min QPS:   %.2f\nMedian QPS:%.2f\nMean QPS:  %.2f\nMax QPS:   %.2f\n", qps[0],
                  (qps[(count - 1) / 2] + qps[count / 2]) / 2, sum / (double)count, qps[count - 1]);
}

/* The published report, when this was the benchmark. */
static void scan_finish(const struct rl_run *run, FILE *out)
{
    const struct scan_state *state = run->state;
    struct rl_done all;
    if (!state->benchmark)
        return;
    double secs = (double)(rl_monotonic_ns() - state->begin_ns) / 1e9;
    rl_crew_totals(&all);
    processes_print(state, out);
    threads_print(state, out);
    (void)fprintf(out, "\n--- Global stats ---\nTotal queries:      %" PRIu64 "\n", all.calls);
    (void)fprintf(out, "Global wall time:   %.4f s (includes process startup/teardown)\n", secs);
    (void)fprintf(out, "Global effective QPS: %.2f\n", (double)all.calls / secs);
}

static void scan_close(struct rl_run *run)
{
    struct scan_state *state = run->state;
    rl_scratch_remove(&state->scratch);
}

extern const struct rl_workload wl_scan;
const struct rl_workload wl_scan = {
    .name = "scan",
    .summary = "the parallelism benchmark: processes x threads that scan a table, and its published report",
    .options = scan_options,
    .state_bytes = sizeof(struct scan_state),
    .defaults = scan_defaults,
    .open = scan_open,
    .worker_open = scan_worker_open,
    .work = scan_work,
    .worker_close = scan_worker_close,
    .describe = scan_describe,
    .finish = scan_finish,
    .close = scan_close,
};
