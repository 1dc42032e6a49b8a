/* SPDX-License-Identifier: MIT */
/*
 * rowload write: a single writer, one transaction after the other, in a database file.
 *
 * What a transaction costs is mostly what the journal and the level of synchronization make of it: fsync, writes, file
 * locks, checkpoints. With readers beside it there are lock waits too, in rollback journals at least; SQLite's busy handler
 * is the workload's own, so that it knows how often and how long it waited. Inserts go round in a table of fixed size, or
 * the file would grow for as long as the hold lasts. The trap is TMPDIR: on a file system in memory an fsync costs nothing.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "rl_scratch.h"
#include "rl_sql.h"

enum { READERS_MAX = 64, ROWS_MAX = 10000000, BODY_BYTES = 100, BUSY_NAP_NS = 500000, READ_ROWS = 200, READ_FIGURES = 3 };

static const char *const op_choices[] = {"insert", "update", NULL};
static const char *const journal_choices[] = {"wal", "delete", "truncate", "persist", "memory", "off", NULL};
static const char *const synchronous_choices[] = {"off", "normal", "full", "extra", NULL};

/* How often, and how long, a connection found the database locked. */
struct busy {
    _Atomic uint64_t times;
    _Atomic uint64_t wait_ns;
    _Atomic uint32_t *over; /* set: give up */
};

struct reader {
    pthread_t thread;
    sqlite3 *db;
    sqlite3_stmt *stmt;
    struct busy busy;
    uint64_t random;
    _Atomic uint64_t reads;
    struct write_state *state;
};

struct write_state {
    uint32_t op;
    uint32_t journal;
    uint32_t synchronous;
    uint64_t rows_per_tx;
    uint64_t readers;
    uint64_t table_rows;

    struct rl_scratch scratch;
    sqlite3 *db;
    sqlite3_stmt *begin, *change, *commit;
    struct busy busy;
    struct reader each[READERS_MAX];
    size_t started;
    _Atomic uint32_t over;
    uint64_t row;         /* the next one, counted on for ever */
    uint64_t begin_reads[READ_FIGURES]; /* at READY */
    uint64_t begin_busy[2];
};

static const struct rl_option write_options[] = {
    {"op", RL_OPT_CHOICE, offsetof(struct write_state, op), 0, 0, op_choices, "what is done to a row (default insert)"},
    {"journal", RL_OPT_CHOICE, offsetof(struct write_state, journal), 0, 0, journal_choices, "journal_mode (default wal)"},
    {"synchronous", RL_OPT_CHOICE, offsetof(struct write_state, synchronous), 0, 0, synchronous_choices,
     "synchronous (default full)"},
    {"rows-per-tx", RL_OPT_COUNT, offsetof(struct write_state, rows_per_tx), 1, ROWS_MAX, NULL,
     "rows of a transaction (default 1)"},
    {"readers", RL_OPT_COUNT, offsetof(struct write_state, readers), 0, READERS_MAX, NULL,
     "threads that read meanwhile (default 0)"},
    {"rows", RL_OPT_COUNT, offsetof(struct write_state, table_rows), 1, ROWS_MAX, NULL,
     "rows in the table, now and later (default 10000)"},
    {NULL, RL_OPT_FLAG, 0, 0, 0, NULL, NULL},
};

static void write_defaults(struct rl_run *run)
{
    struct write_state *state = run->state;
    state->synchronous = 2;
    state->rows_per_tx = 1;
    state->table_rows = 10000;
}

RW_CATEGORY int rw_write_busy(void *context, int tries);
RW_CATEGORY bool rw_write_transaction(struct write_state *state, struct rl_run *run);
RW_CATEGORY bool rw_read_transaction(struct reader *reader);

/* SQLite found the database locked: sleeps a little and has it try again. */
int rw_write_busy(void *context, int tries)
{
    struct busy *busy = context;
    const struct timespec nap = {0, BUSY_NAP_NS};
    (void)tries;
    if (*busy->over)
        return 0;
    uint64_t before_ns = rl_monotonic_ns();
    (void)nanosleep(&nap, NULL);
    busy->times++;
    busy->wait_ns += rl_monotonic_ns() - before_ns;
    return 1;
}

/* What is written into row `number`, wherever it goes. */
static void body_make(uint64_t seed, uint64_t number, char body[BODY_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    uint64_t random = rl_random_at(seed, number);
    for (int i = 0; i < BODY_BYTES; i++)
        body[i] = digits[(random >> (4 * (i % 16))) & 15];
}

static bool step_done(sqlite3_stmt *stmt)
{
    int step = sqlite3_step(stmt);
    return sqlite3_reset(stmt) == SQLITE_OK && step == SQLITE_DONE;
}

bool rw_write_transaction(struct write_state *state, struct rl_run *run)
{
    char body[BODY_BYTES];
    if (!step_done(state->begin))
        return false;
    for (uint64_t i = 0; i < state->rows_per_tx; i++) {
        uint64_t number = state->row++;
        body_make(run->seed, number, body);
        (void)sqlite3_bind_int64(state->change, 1, (sqlite3_int64)(number % state->table_rows) + 1);
        (void)sqlite3_bind_text(state->change, 2, body, BODY_BYTES, SQLITE_STATIC);
        (void)sqlite3_bind_int64(state->change, 3, (sqlite3_int64)number);
        if (!step_done(state->change))
            return false;
        run->sum += rl_random_at(run->seed, number);
    }
    return step_done(state->commit);
}

bool rw_read_transaction(struct reader *reader)
{
    const struct write_state *state = reader->state;
    uint64_t first = rl_random_next(&reader->random) % state->table_rows;
    (void)sqlite3_bind_int64(reader->stmt, 1, (sqlite3_int64)first);
    (void)sqlite3_bind_int64(reader->stmt, 2, (sqlite3_int64)first + READ_ROWS);
    int step = sqlite3_step(reader->stmt);
    return sqlite3_reset(reader->stmt) == SQLITE_OK && step == SQLITE_ROW;
}

static void *reader_main(void *argument)
{
    struct reader *reader = argument;
    while (!reader->state->over) {
        if (rw_read_transaction(reader))
            reader->reads++;
    }
    return NULL;
}

static bool connection_open(struct write_state *state, sqlite3 **db, struct busy *busy, char error[RL_ERROR_BYTES])
{
    char sql[96];
    busy->over = &state->over;
    if (!rl_sql_open(state->scratch.file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, db, error))
        return false;
    (void)sqlite3_busy_handler(*db, rw_write_busy, busy);
    (void)snprintf(sql, sizeof sql, "PRAGMA journal_mode=%s; PRAGMA synchronous=%s", journal_choices[state->journal],
                   synchronous_choices[state->synchronous]);
    return rl_sql_do(*db, sql, error);
}

static bool table_fill(struct rl_run *run)
{
    struct write_state *state = run->state;
    char sql[240];
    (void)snprintf(sql, sizeof sql,
                   "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %" PRIu64 ")"
                   " INSERT INTO messages SELECT i, printf('%%0*d', %d, i), i FROM n", state->table_rows, BODY_BYTES);
    return rl_sql_do(state->db, "CREATE TABLE messages(id INTEGER PRIMARY KEY, body TEXT, n INTEGER)", run->error) &&
           rl_sql_do(state->db, "CREATE INDEX messages_n ON messages(n)", run->error) &&
           rl_sql_do(state->db, sql, run->error);
}

static bool readers_start(struct rl_run *run)
{
    struct write_state *state = run->state;
    sigset_t all, before;
    bool good = true;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    while (good && state->started < state->readers) {
        struct reader *reader = &state->each[state->started];
        reader->state = state;
        reader->random = run->seed + state->started;
        good = connection_open(state, &reader->db, &reader->busy, run->error) &&
               rl_sql_prepare(reader->db, "SELECT sum(length(body)) FROM messages WHERE id BETWEEN ? AND ?", &reader->stmt,
                              run->error);
        if (good && pthread_create(&reader->thread, NULL, reader_main, reader) != 0) {
            (void)snprintf(run->error, sizeof run->error, "Reader %zu could not be started.", state->started + 1);
            good = false;
        }
        if (!good) {
            (void)sqlite3_finalize(reader->stmt);
            (void)sqlite3_close(reader->db);
            break;
        }
        (void)pthread_setname_np(reader->thread, "rw-reader");
        state->started++;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return good;
}

static bool write_open(struct rl_run *run)
{
    struct write_state *state = run->state;
    static const char *const changes[] = {
        "INSERT OR REPLACE INTO messages(id, body, n) VALUES(?1, ?2, ?3)",
        "UPDATE messages SET body = ?2, n = ?3 WHERE id = ?1",
    };
    run->warm_calls = 20;
    if (!rl_scratch_make(run, &state->scratch) || !connection_open(state, &state->db, &state->busy, run->error) ||
        !table_fill(run) || !rl_sql_prepare(state->db, "BEGIN IMMEDIATE", &state->begin, run->error) ||
        !rl_sql_prepare(state->db, changes[state->op], &state->change, run->error) ||
        !rl_sql_prepare(state->db, "COMMIT", &state->commit, run->error))
        return false;
    return readers_start(run);
}

static bool write_batch(struct rl_run *run, uint64_t calls)
{
    struct write_state *state = run->state;
    for (uint64_t i = 0; i < calls; i++) {
        if (!rw_write_transaction(state, run))
            return rl_sql_failed(state->db, "write", run->error);
    }
    run->rows += calls * state->rows_per_tx;
    return true;
}

/* Of all readers: reads, times they found the database locked, nanoseconds they waited for it. */
static void readers_sum(const struct write_state *state, uint64_t figures[READ_FIGURES])
{
    figures[0] = figures[1] = figures[2] = 0;
    for (size_t i = 0; i < state->started; i++) {
        figures[0] += state->each[i].reads;
        figures[1] += state->each[i].busy.times;
        figures[2] += state->each[i].busy.wait_ns;
    }
}

static void write_ready(struct rl_run *run)
{
    struct write_state *state = run->state;
    state->row = 0;
    readers_sum(state, state->begin_reads);
    state->begin_busy[0] = state->busy.times;
    state->begin_busy[1] = state->busy.wait_ns;
}

static void write_describe(const struct rl_run *run, FILE *out)
{
    const struct write_state *state = run->state;
    (void)fprintf(out, " op=%s limit=0 journal=%s synchronous=%s rows_per_tx=%" PRIu64 " readers=%zu rows=%" PRIu64
                  " sqlite=%s", op_choices[state->op], journal_choices[state->journal],
                  synchronous_choices[state->synchronous], state->rows_per_tx, state->started, state->table_rows,
                  sqlite3_libversion());
}

/* What the writer waited for others' locks, and what the readers got done meanwhile. */
static void write_report(const struct rl_run *run, FILE *out)
{
    const struct write_state *state = run->state;
    uint64_t now[READ_FIGURES];
    readers_sum(state, now);
    (void)fprintf(out, "WRITER busy=%" PRIu64 " busy_secs=%.6f reads=%" PRIu64 " reader_busy=%" PRIu64
                  " reader_busy_secs=%.6f\n", (uint64_t)state->busy.times - state->begin_busy[0],
                  (double)(state->busy.wait_ns - state->begin_busy[1]) / 1e9, now[0] - state->begin_reads[0],
                  now[1] - state->begin_reads[1], (double)(now[2] - state->begin_reads[2]) / 1e9);
}

static void write_close(struct rl_run *run)
{
    struct write_state *state = run->state;
    state->over = 1;
    while (state->started) {
        struct reader *reader = &state->each[--state->started];
        (void)pthread_join(reader->thread, NULL);
        (void)sqlite3_finalize(reader->stmt);
        (void)sqlite3_close(reader->db);
    }
    (void)sqlite3_finalize(state->begin);
    (void)sqlite3_finalize(state->change);
    (void)sqlite3_finalize(state->commit);
    (void)sqlite3_close(state->db);
    rl_scratch_remove(&state->scratch);
}

extern const struct rl_workload wl_write;
const struct rl_workload wl_write = {
    .name = "write",
    .summary = "a single writer in a database file: journals, synchronization, and readers in its way",
    .options = write_options,
    .state_bytes = sizeof(struct write_state),
    .defaults = write_defaults,
    .open = write_open,
    .batch = write_batch,
    .ready = write_ready,
    .describe = write_describe,
    .report = write_report,
    .close = write_close,
};
