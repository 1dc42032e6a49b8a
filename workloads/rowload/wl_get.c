/* SPDX-License-Identifier: MIT */
/*
 * rowload get: the C twin of a runtime's get() and all() over one prepared statement.
 *
 * One call resets the statement, steps it, and turns each row into a dictionary object the way a language binding does:
 * names interned, values copied, a hash table per row. What is paid once per call (names) vanishes when a hundred rows
 * come back, and what is paid per row (objects, values, the connection mutex per value) does not show when one does.
 * The switches take single costs out, so that a profile can be held against what the program gains without them.
 */
#include <inttypes.h>
#include <sqlite3.h>
#include <string.h>

#include "rw_rows.h"

enum { COLUMNS_MAX = 4, LIMIT_MAX = 1000000, LARGE_ROWS = 200, LARGE_BYTES = 8192, TURN_NS = 50000000 };

enum op { OP_GET, OP_ALL };
enum names { NAMES_PERCALL, NAMES_CACHED, NAMES_PERROW };
enum cols { COLS_1, COLS_2, COLS_3, COLS_4, COLS_STAR, COLS_8KB, COLS_CONST };

static const char *const op_choices[] = {"get", "all", NULL};
static const unsigned widths[] = {1, 2, 3, 4, 4, 1, 1};
static const char *const cols_choices[] = {"1", "2", "3", "4", "*", "8kb", "const", NULL};
static const char *const names_choices[] = {"percall", "cached", "perrow", NULL};
static const char *const mutex_choices[] = {"full", "none", NULL};
static const char *const objects_choices[] = {"dict", "none", NULL};
static const char *const blobs_choices[] = {"copy", "none", NULL};
static const char *const ablate_choices[] = {"none", "names", "objects", "blobs", NULL};

static const char *const select_lists[] = {
    "text_column",
    "text_column, integer_column",
    "text_column, integer_column, real_column",
    "text_column, integer_column, real_column, blob_column",
    "*",
    "text_8kb_column",
    "1",
};

/* With --ablate: what calls cost with the option as asked [0], and with the cost taken out [1]. */
struct ablation {
    uint64_t turn_ns; /* when the turn of the current variant began */
    uint64_t last_cpu_ns;
    uint32_t variant;
    uint64_t calls[2];
    uint64_t cpu_ns[2];
};

struct get_state {
    uint32_t op;
    uint32_t cols;
    uint32_t names;
    uint32_t mutex;   /* 0 full, 1 none */
    uint32_t objects; /* 0 dict, 1 none */
    uint32_t blobs;   /* 0 copy, 1 none */
    uint32_t ablate;
    uint64_t limit;
    uint64_t table_rows;

    struct ablation ablation;
    uint32_t kept; /* the option's value as asked */
    sqlite3 *db;
    sqlite3_stmt *stmt;
    struct rw_names interned;
    const struct rw_name *keys[COLUMNS_MAX];
    struct rw_object **rows; /* what one all() returns, `limit` of them at most */
    uint64_t rows_room;
    uint64_t sum;
};

static const struct rl_option get_options[] = {
    {"op", RL_OPT_CHOICE, offsetof(struct get_state, op), 0, 0, op_choices, "the first row, or every row"},
    {"limit", RL_OPT_COUNT, offsetof(struct get_state, limit), 1, LIMIT_MAX, NULL, "LIMIT of the statement (default 1)"},
    {"cols", RL_OPT_CHOICE, offsetof(struct get_state, cols), 0, 0, cols_choices, "columns selected"},
    {"names", RL_OPT_CHOICE, offsetof(struct get_state, names), 0, 0, names_choices, "when column names are interned"},
    {"mutex", RL_OPT_CHOICE, offsetof(struct get_state, mutex), 0, 0, mutex_choices, "the connection's mutex"},
    {"objects", RL_OPT_CHOICE, offsetof(struct get_state, objects), 0, 0, objects_choices, "a hash table per row"},
    {"blobs", RL_OPT_CHOICE, offsetof(struct get_state, blobs), 0, 0, blobs_choices, "blob columns"},
    {"ablate", RL_OPT_CHOICE, offsetof(struct get_state, ablate), 0, 0, ablate_choices,
     "take this cost out and put it back every 50 ms, and print both"},
    {"rows", RL_OPT_COUNT, offsetof(struct get_state, table_rows), 1, LIMIT_MAX, NULL,
     "rows in the table (default 10000)"},
    {NULL, RL_OPT_FLAG, 0, 0, 0, NULL, NULL},
};

static void get_defaults(struct rl_run *run)
{
    struct get_state *state = run->state;
    state->limit = 1;
    state->table_rows = 10000;
    state->cols = COLS_STAR;
}

static bool sql_failed(struct rl_run *run, const char *what)
{
    const struct get_state *state = run->state;
    (void)snprintf(run->error, sizeof run->error, "SQLite could not %s: %s.", what, sqlite3_errmsg(state->db));
    return false;
}

static bool sql_do(struct rl_run *run, const char *sql)
{
    const struct get_state *state = run->state;
    return sqlite3_exec(state->db, sql, NULL, NULL, NULL) == SQLITE_OK || sql_failed(run, sql);
}

/* 36 characters in the form of a random UUID. */
static void uuid_make(uint64_t *random, char text[37])
{
    uint64_t high = rl_random_next(random);
    uint64_t low = rl_random_next(random);
    (void)snprintf(text, 37, "%08" PRIx64 "-%04" PRIx64 "-4%03" PRIx64 "-%04" PRIx64 "-%012" PRIx64, high >> 32,
                   (high >> 16) & 0xffff, high & 0xfff, 0x8000 | (low >> 50), low & UINT64_C(0xffffffffffff));
}

static bool foo_seed(struct rl_run *run)
{
    struct get_state *state = run->state;
    sqlite3_stmt *insert = NULL;
    uint64_t random = run->seed;
    char text[37];
    if (!sql_do(run, "CREATE TABLE foo(text_column TEXT, integer_column INTEGER, real_column REAL, blob_column BLOB)"))
        return false;
    if (sqlite3_prepare_v2(state->db, "INSERT INTO foo VALUES(?, ?, ?, ?)", -1, &insert, NULL) != SQLITE_OK)
        return sql_failed(run, "prepare the insert");
    for (uint64_t i = 0; i < state->table_rows; i++) {
        uuid_make(&random, text);
        (void)sqlite3_bind_text(insert, 1, text, 36, SQLITE_STATIC);
        (void)sqlite3_bind_int64(insert, 2, (sqlite3_int64)(rl_random_next(&random) % 100));
        (void)sqlite3_bind_double(insert, 3, (double)(rl_random_next(&random) >> 11) / 9007199254740992.0);
        (void)sqlite3_bind_blob(insert, 4, "example blob data", 17, SQLITE_STATIC);
        if (sqlite3_step(insert) != SQLITE_DONE || sqlite3_reset(insert) != SQLITE_OK) {
            (void)sqlite3_finalize(insert);
            return sql_failed(run, "insert a row");
        }
    }
    return sqlite3_finalize(insert) == SQLITE_OK || sql_failed(run, "finish the insert");
}

static bool large_seed(struct rl_run *run)
{
    char sql[160];
    if (!sql_do(run, "CREATE TABLE foo_large(text_8kb_column TEXT)"))
        return false;
    (void)snprintf(sql, sizeof sql,
                   "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
                   " INSERT INTO foo_large SELECT replace(hex(zeroblob(%d)), '0', 'a') FROM n",
                   LARGE_ROWS, LARGE_BYTES / 2);
    return sql_do(run, sql);
}

static bool statement_prepare(struct rl_run *run)
{
    struct get_state *state = run->state;
    static const char *const froms[] = {" FROM foo LIMIT ", " FROM foo_large LIMIT "};
    char sql[160];
    if (state->cols == COLS_CONST)
        (void)snprintf(sql, sizeof sql, "SELECT 1");
    else
        (void)snprintf(sql, sizeof sql, "SELECT %s%s%" PRIu64, select_lists[state->cols],
                       froms[state->cols == COLS_8KB], state->limit);
    if (sqlite3_prepare_v3(state->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &state->stmt, NULL) != SQLITE_OK)
        return sql_failed(run, "prepare the select");
    return true;
}

static bool names_take(struct get_state *state, int columns)
{
    for (int i = 0; i < columns; i++) {
        state->keys[i] = rw_intern_name(&state->interned, sqlite3_column_name(state->stmt, i));
        if (!state->keys[i])
            return false;
    }
    return true;
}

/* The option that --ablate switches, and its value without the cost. NULL: none. */
static uint32_t *ablated_field(struct get_state *state, uint32_t *without)
{
    uint32_t *const fields[] = {NULL, &state->names, &state->objects, &state->blobs};
    *without = state->ablate == 1 ? NAMES_CACHED : 1;
    return fields[state->ablate];
}

static bool ablation_open(struct rl_run *run)
{
    struct get_state *state = run->state;
    const char *option = ablate_choices[state->ablate];
    uint32_t without = 0;
    const uint32_t *field = ablated_field(state, &without);
    if (!field)
        return true;
    state->kept = *field;
    run->misused = state->kept == without;
    if (run->misused)
        (void)snprintf(run->error, sizeof run->error, "--ablate %s takes out what --%s has left out already.", option,
                       option);
    return !run->misused;
}

static bool get_open(struct rl_run *run)
{
    struct get_state *state = run->state;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY;
    flags |= state->mutex ? SQLITE_OPEN_NOMUTEX : SQLITE_OPEN_FULLMUTEX;
    if (sqlite3_open_v2(":memory:", &state->db, flags, NULL) != SQLITE_OK)
        return sql_failed(run, "open a database in memory");
    if (!sql_do(run, "BEGIN") || !(state->cols == COLS_8KB ? large_seed(run) : foo_seed(run)) || !sql_do(run, "COMMIT"))
        return false;
    if (!statement_prepare(run))
        return false;
    state->rows_room = state->op == OP_ALL ? state->limit : 1;
    state->rows = calloc(state->rows_room, sizeof *state->rows);
    if (!state->rows || !names_take(state, sqlite3_column_count(state->stmt))) {
        (void)snprintf(run->error, sizeof run->error, "The rows of one call did not fit into memory.");
        return false;
    }
    run->warm_calls = state->limit <= 10 ? 20000 : 3000;
    return ablation_open(run);
}

/* Folds a value into the checksum: its size and both ends of its bytes, so that a copied 8 kB text costs no more. */
static uint64_t value_fold(const struct rw_value *value)
{
    uint64_t head = 0;
    uint64_t tail = 0;
    if (value->kind == RW_INTEGER || value->kind == RW_REAL) {
        memcpy(&head, &value->as, sizeof head);
    } else if (value->kind != RW_NULL && value->bytes >= sizeof head) {
        memcpy(&head, value->as.data, sizeof head);
        memcpy(&tail, value->as.data + value->bytes - sizeof tail, sizeof tail);
    }
    return (head ^ (tail << 1) ^ value->bytes) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)value->kind;
}

/* One value of the current row, fetched through SQLite's API as a binding does: type, bytes, pointer. */
RW_CATEGORY struct rw_value rw_binding_value(const struct get_state *state, int column);
RW_CATEGORY struct rw_object *rw_binding_row(struct get_state *state, int columns);
RW_CATEGORY uint64_t rw_binding_get(struct get_state *state);
RW_CATEGORY uint64_t rw_binding_all(struct get_state *state);

struct rw_value rw_binding_value(const struct get_state *state, int column)
{
    struct rw_value none = {RW_NULL, 0, {.integer = 0}};
    switch (sqlite3_column_type(state->stmt, column)) {
    case SQLITE_INTEGER:
        return rw_value_integer(sqlite3_column_int64(state->stmt, column));
    case SQLITE_FLOAT:
        return rw_value_real(sqlite3_column_double(state->stmt, column));
    case SQLITE_TEXT: {
        const unsigned char *text = sqlite3_column_text(state->stmt, column);
        return rw_value_text(text, (size_t)sqlite3_column_bytes(state->stmt, column));
    }
    case SQLITE_BLOB: {
        if (state->blobs)
            return none;
        const void *blob = sqlite3_column_blob(state->stmt, column);
        return rw_blob_copy(blob, (size_t)sqlite3_column_bytes(state->stmt, column));
    }
    default:
        return none;
    }
}

/* The current row as an object, or NULL with --objects none. */
struct rw_object *rw_binding_row(struct get_state *state, int columns)
{
    struct rw_object *object = state->objects ? NULL : rw_row_object_new((uint32_t)columns);
    for (int i = 0; i < columns; i++) {
        struct rw_value value = rw_binding_value(state, i);
        state->sum += value_fold(&value) ^ state->keys[i]->hash;
        if (object)
            rw_row_object_set(object, state->keys[i], value);
        else
            rw_value_release(&value);
    }
    return object;
}

/* Returns the rows read. The object lives until the call ends, as garbage of a runtime does a little longer. */
uint64_t rw_binding_get(struct get_state *state)
{
    uint64_t rows = 0;
    struct rw_object *object = NULL;
    (void)sqlite3_reset(state->stmt);
    (void)sqlite3_clear_bindings(state->stmt);
    if (sqlite3_step(state->stmt) == SQLITE_ROW) {
        int columns = sqlite3_column_count(state->stmt);
        if (state->names == NAMES_CACHED || names_take(state, columns))
            object = rw_binding_row(state, columns);
        rows = 1;
    }
    (void)sqlite3_reset(state->stmt);
    if (object)
        rw_row_object_free(object);
    return rows;
}

uint64_t rw_binding_all(struct get_state *state)
{
    uint64_t rows = 0;
    int columns = 0;
    (void)sqlite3_reset(state->stmt);
    (void)sqlite3_clear_bindings(state->stmt);
    while (rows < state->rows_room && sqlite3_step(state->stmt) == SQLITE_ROW) {
        if (!rows)
            columns = sqlite3_column_count(state->stmt);
        bool fresh = state->names == NAMES_PERROW || (state->names == NAMES_PERCALL && !rows);
        if (fresh && !names_take(state, columns))
            break;
        state->rows[rows++] = rw_binding_row(state, columns);
    }
    (void)sqlite3_reset(state->stmt);
    for (uint64_t i = 0; i < rows && !state->objects; i++)
        rw_row_object_free(state->rows[i]);
    return rows;
}

/* Books the batch that has just been done, and changes over when the variant's turn is up. */
static void ablation_turn(struct get_state *state, uint64_t calls)
{
    struct ablation *ablation = &state->ablation;
    uint32_t without = 0;
    uint32_t *field = ablated_field(state, &without);
    uint64_t cpu_ns = rl_process_cpu_ns();
    uint64_t now_ns = rl_monotonic_ns();
    ablation->calls[ablation->variant] += calls;
    ablation->cpu_ns[ablation->variant] += cpu_ns - ablation->last_cpu_ns;
    ablation->last_cpu_ns = cpu_ns;
    if (now_ns - ablation->turn_ns < TURN_NS)
        return;
    ablation->turn_ns = now_ns;
    ablation->variant = !ablation->variant;
    *field = ablation->variant ? without : state->kept;
}

static bool get_batch(struct rl_run *run, uint64_t calls)
{
    struct get_state *state = run->state;
    uint64_t (*call)(struct get_state *) = state->op == OP_ALL ? rw_binding_all : rw_binding_get;
    uint64_t rows = 0;
    state->sum = 0;
    for (uint64_t i = 0; i < calls; i++)
        rows += call(state);
    run->rows += rows;
    run->sum += state->sum;
    if (state->ablate)
        ablation_turn(state, calls);
    if (rows >= calls)
        return true;
    return sql_failed(run, "read a row");
}

static void get_ready(struct rl_run *run)
{
    struct get_state *state = run->state;
    struct ablation *ablation = &state->ablation;
    ablation->calls[0] = ablation->calls[1] = ablation->cpu_ns[0] = ablation->cpu_ns[1] = 0;
    ablation->last_cpu_ns = rl_process_cpu_ns();
}

/* What the cost is worth: the share of a call that goes with it. */
static void get_report(const struct rl_run *run, FILE *out)
{
    const struct get_state *state = run->state;
    const struct ablation *ablation = &state->ablation;
    if (!state->ablate || !ablation->calls[0] || !ablation->calls[1])
        return;
    double with_ns = (double)ablation->cpu_ns[0] / (double)ablation->calls[0];
    double without_ns = (double)ablation->cpu_ns[1] / (double)ablation->calls[1];
    (void)fprintf(out, "ABLATE option=%s with_ns=%.2f without_ns=%.2f share=%.5f\n", ablate_choices[state->ablate], with_ns,
                  without_ns, 1.0 - without_ns / with_ns);
}

static void get_describe(const struct rl_run *run, FILE *out)
{
    const struct get_state *state = run->state;
    (void)fprintf(out, " op=%s limit=%" PRIu64 " cols=%s columns=%u names=%s mutex=%s objects=%s blobs=%s rows=%" PRIu64
                  " sqlite=%s", op_choices[state->op], state->limit, cols_choices[state->cols], widths[state->cols],
                  names_choices[state->names], mutex_choices[state->mutex], objects_choices[state->objects],
                  blobs_choices[state->blobs], state->table_rows, sqlite3_libversion());
}

static void get_close(struct rl_run *run)
{
    struct get_state *state = run->state;
    (void)sqlite3_finalize(state->stmt);
    (void)sqlite3_close(state->db);
    rw_names_release(&state->interned);
    free(state->rows);
}

extern const struct rl_workload wl_get;
const struct rl_workload wl_get = {
    .name = "get",
    .summary = "reads rows the way a language binding's get() and all() do",
    .options = get_options,
    .state_bytes = sizeof(struct get_state),
    .defaults = get_defaults,
    .open = get_open,
    .batch = get_batch,
    .ready = get_ready,
    .describe = get_describe,
    .report = get_report,
    .close = get_close,
};
