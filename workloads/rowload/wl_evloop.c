/* SPDX-License-Identifier: MIT */
/*
 * rowload evloop: an event loop that hands queries to a thread pool and converts their results itself.
 *
 * The twin of a binding for an event-driven runtime. A statement runs one query at a time; the next one queued for it is
 * started when the result has been converted (--eager 0), or before (--eager 1), so that a pool thread computes while the
 * loop converts. One statement then takes max(J, Q) per query instead of J + Q. The trap is more statements than the
 * connection can serve: with --query real they share its mutex, and threads of the pool wait for each other.
 */
#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "rl_burn.h"
#include "rl_run.h"
#include "rl_sql.h"
#include "rw_pool.h"

enum { TABLE_ROWS = 2000, GROUPS = 500, QUEUED = 4, LATENCIES = 4096, TURN_NS = 50000000 };
enum eager { EAGER_LATE, EAGER_EARLY, EAGER_BOTH };

#define COST_NS_MAX UINT64_C(1000000000)

static const char *const eager_choices[] = {"0", "1", "both", NULL};
static const char *const query_choices[] = {"real", "spin", NULL};

/* A statement, and the job that it is while it runs. */
struct statement {
    struct rw_job job;
    sqlite3_stmt *stmt; /* NULL with --query spin */
    uint64_t queued;    /* queries that wait for their turn */
    bool busy;          /* in the pool, or its result not yet let go */
};

/* With --eager both: what was done the one way [0] and the other [1], in turns. */
struct turns {
    uint64_t begin_ns; /* of the current one */
    uint64_t begin_cpu_ns;
    uint64_t begin_queries;
    uint64_t wall_ns[2];
    uint64_t cpu_ns[2];
    uint64_t queries[2];
};

/* What has been since READY. */
struct evloop_count {
    uint64_t begin_ns;
    uint64_t begin_cpu_ns;
    uint64_t begin_loop_ns; /* CPU of the loop's thread */
    uint64_t queries;
    uint64_t idle_ns; /* the loop waited */
    uint64_t convert_ns;
    uint64_t under_way_ns; /* of it, with a query in the pool */
    uint64_t query_ns;
    uint64_t mutex_ns;
    uint32_t latencies[LATENCIES]; /* of the last queries: nanoseconds in the pool's queue, at most 4 s */
};

struct evloop_state {
    uint32_t eager;
    uint32_t query;
    uint64_t queries;
    uint64_t statements;
    uint64_t pool_threads;
    uint64_t convert_ns;
    uint64_t query_ns;

    sqlite3 *db;
    struct statement *all;
    struct rw_pool pool;
    struct rw_job *done; /* taken from the pool, to be converted */
    int epoll_fd;
    uint64_t convert_rounds;
    uint64_t query_rounds;
    bool early;       /* the way of now */
    struct turns turns;
    bool holding;     /* READY is said: run->calls bounds what is issued */
    bool draining;    /* nothing new is issued */
    uint64_t issued;
    uint64_t numbers; /* given to queries when they start */
    uint64_t running; /* statements that are busy */
    struct evloop_count count;
};

static const struct rl_option evloop_options[] = {
    {"eager", RL_OPT_CHOICE, offsetof(struct evloop_state, eager), 0, 0, eager_choices,
     "start a statement's next query before the result is converted, or both ways in turns of 50 ms (default 0)"},
    {"queries", RL_OPT_COUNT, offsetof(struct evloop_state, queries), 0, UINT64_MAX, NULL, "the same as --calls"},
    {"statements", RL_OPT_COUNT, offsetof(struct evloop_state, statements), 1, RW_POOL_JOBS_MAX, NULL,
     "statements of the connection, each with queries queued (default 1)"},
    {"pool", RL_OPT_COUNT, offsetof(struct evloop_state, pool_threads), 1, RW_POOL_THREADS_MAX, NULL,
     "threads of the pool (default 4)"},
    {"convert-ns", RL_OPT_COUNT, offsetof(struct evloop_state, convert_ns), 0, COST_NS_MAX, NULL,
     "what the loop spends on a result (default 270000)"},
    {"query", RL_OPT_CHOICE, offsetof(struct evloop_state, query), 0, 0, query_choices,
     "a SELECT of 500 groups of 2000 rows, or work of a set length (default real)"},
    {"query-ns", RL_OPT_COUNT, offsetof(struct evloop_state, query_ns), 1, COST_NS_MAX, NULL,
     "that length (default 350000)"},
    {NULL, RL_OPT_FLAG, 0, 0, 0, NULL, NULL},
};

static uint64_t loop_cpu_ns(void)
{
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static void evloop_defaults(struct rl_run *run)
{
    struct evloop_state *state = run->state;
    state->statements = 1;
    state->pool_threads = 4;
    state->convert_ns = 270000;
    state->query_ns = 350000;
    state->pool.event_fd = state->epoll_fd = -1;
}

static bool table_fill(struct rl_run *run)
{
    const struct evloop_state *state = run->state;
    char sql[240];
    (void)snprintf(sql, sizeof sql,
                   "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
                   " INSERT INTO events SELECT i, (i * 7919) %% %d, (i * 104729) %% 1000 FROM n", TABLE_ROWS, GROUPS);
    return rl_sql_do(state->db, "CREATE TABLE events(id INTEGER PRIMARY KEY, kind INTEGER, size INTEGER)", run->error) &&
           rl_sql_do(state->db, sql, run->error);
}

RW_CATEGORY uint64_t rw_query_real(struct evloop_state *state, struct statement *statement);
RW_CATEGORY uint64_t rw_query_spin(const struct evloop_state *state);
RW_CATEGORY uint64_t rw_convert(const struct evloop_state *state);

/* Fetches all groups under the connection's mutex, as node-sqlite3 does; whoever comes second waits. */
uint64_t rw_query_real(struct evloop_state *state, struct statement *statement)
{
    uint64_t sum = 0;
    sqlite3_mutex *mutex = sqlite3_db_mutex(state->db);
    statement->job.mutex_ns = 0;
    if (sqlite3_mutex_try(mutex) != SQLITE_OK) {
        uint64_t before_ns = rl_monotonic_ns();
        sqlite3_mutex_enter(mutex);
        statement->job.mutex_ns = rl_monotonic_ns() - before_ns;
    }
    (void)sqlite3_bind_int64(statement->stmt, 1, (sqlite3_int64)(statement->job.number % 1000));
    int step = sqlite3_step(statement->stmt);
    for (; step == SQLITE_ROW; step = sqlite3_step(statement->stmt)) {
        sum += (uint64_t)sqlite3_column_int64(statement->stmt, 0) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= (uint64_t)sqlite3_column_int64(statement->stmt, 1) + (uint64_t)sqlite3_column_int64(statement->stmt, 2);
    }
    statement->job.failed = step != SQLITE_DONE;
    (void)sqlite3_reset(statement->stmt);
    sqlite3_mutex_leave(mutex);
    return sum;
}

uint64_t rw_query_spin(const struct evloop_state *state)
{
    return rl_burn(state->query_rounds, 61);
}

/* What the loop does with a result: the twin of making it into objects and text. */
uint64_t rw_convert(const struct evloop_state *state)
{
    return rl_burn(state->convert_rounds, 73);
}

static void job_work(void *context, struct rw_job *job)
{
    struct evloop_state *state = context;
    if (state->query) {
        (void)rw_query_spin(state);
        job->sum = 0;
    } else {
        job->sum = rw_query_real(state, (struct statement *)job); /* its first member */
    }
}

static bool statements_prepare(struct rl_run *run)
{
    struct evloop_state *state = run->state;
    state->all = calloc(state->statements, sizeof *state->all);
    if (!state->all) {
        (void)snprintf(run->error, sizeof run->error, "The statements did not fit into memory.");
        return false;
    }
    if (state->query)
        return true;
    if (!rl_sql_open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_FULLMUTEX, &state->db,
                     run->error) ||
        !table_fill(run))
        return false;
    for (uint64_t i = 0; i < state->statements; i++) {
        if (!rl_sql_prepare(state->db, "SELECT kind, sum(size) + ?1, count(*) FROM events GROUP BY kind ORDER BY 2 DESC",
                            &state->all[i].stmt, run->error))
            return false;
    }
    return true;
}

/* Starts the statement's next query, if it is free and has one. */
static void statement_process(struct evloop_state *state, struct statement *statement)
{
    if (statement->busy || !statement->queued)
        return;
    statement->busy = true;
    statement->queued--;
    statement->job.number = state->numbers++;
    state->running++;
    rw_pool_put(&state->pool, &statement->job);
}

/* The program asks for one more query of this statement. */
static void query_issue(struct rl_run *run, struct statement *statement)
{
    struct evloop_state *state = run->state;
    if (state->draining || (state->holding && run->calls && state->issued >= run->calls))
        return;
    state->issued++;
    statement->queued++;
    statement_process(state, statement);
}

static void queries_issue(struct rl_run *run)
{
    struct evloop_state *state = run->state;
    for (uint64_t i = 0; i < state->statements * QUEUED; i++)
        query_issue(run, &state->all[i % state->statements]);
}

static bool evloop_open(struct rl_run *run)
{
    struct evloop_state *state = run->state;
    struct epoll_event event = {.events = EPOLLIN};
    if (state->queries)
        run->calls = state->queries;
    state->convert_rounds = rl_burn_rounds(state->convert_ns);
    state->query_rounds = rl_burn_rounds(state->query_ns);
    state->pool.work = job_work;
    state->pool.context = state;
    if (!statements_prepare(run) || !rw_pool_start(&state->pool, state->pool_threads, run->error))
        return false;
    state->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (state->epoll_fd < 0 || epoll_ctl(state->epoll_fd, EPOLL_CTL_ADD, state->pool.event_fd, &event) != 0) {
        (void)snprintf(run->error, sizeof run->error, "The loop's epoll could not be made: %s.", strerror(errno));
        return false;
    }
    run->warm_calls = 100;
    state->early = state->eager == EAGER_EARLY;
    queries_issue(run);
    return true;
}

/* Waits until a result is there. The only place where the loop is idle. */
static struct rw_job *loop_poll(struct evloop_state *state)
{
    uint64_t value = 0;
    struct epoll_event event;
    struct rw_job *done = NULL;
    while (!done) {
        uint64_t before_ns = rl_monotonic_ns();
        (void)epoll_wait(state->epoll_fd, &event, 1, -1);
        state->count.idle_ns += rl_monotonic_ns() - before_ns;
        (void)!read(state->pool.event_fd, &value, sizeof value);
        done = rw_pool_take_done(&state->pool);
    }
    return done;
}

/* Books the turn that has been, and changes over, when it is time or has to be. */
static void turn_end(struct evloop_state *state, bool now)
{
    struct turns *turns = &state->turns;
    uint64_t wall_ns = rl_monotonic_ns();
    if (state->eager != EAGER_BOTH || (!now && wall_ns - turns->begin_ns < TURN_NS))
        return;
    uint64_t cpu_ns = rl_process_cpu_ns();
    turns->wall_ns[state->early] += wall_ns - turns->begin_ns;
    turns->cpu_ns[state->early] += cpu_ns - turns->begin_cpu_ns;
    turns->queries[state->early] += state->count.queries - turns->begin_queries;
    turns->begin_ns = wall_ns;
    turns->begin_cpu_ns = cpu_ns;
    turns->begin_queries = state->count.queries;
    state->early = !state->early;
}

/* One result: the statement is let go before or after the conversion, and the program asks for another. */
static bool result_take(struct rl_run *run, struct statement *statement)
{
    struct evloop_state *state = run->state;
    struct evloop_count *count = &state->count;
    const struct rw_job job = statement->job;
    uint64_t latency_ns = job.started_ns - job.queued_ns;
    state->running--;
    const bool early = state->early;
    if (early) {
        statement->busy = false;
        statement_process(state, statement);
    }
    const bool under_way = state->running > 0;
    uint64_t before_ns = rl_monotonic_ns();
    (void)rw_convert(state);
    uint64_t spent_ns = rl_monotonic_ns() - before_ns;
    count->convert_ns += spent_ns;
    count->under_way_ns += under_way ? spent_ns : 0;
    query_issue(run, statement);
    if (!early) {
        statement->busy = false;
        statement_process(state, statement);
    }
    turn_end(state, false);
    count->latencies[count->queries++ % LATENCIES] = latency_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)latency_ns;
    count->mutex_ns += job.mutex_ns;
    count->query_ns += job.done_ns - job.started_ns - job.mutex_ns;
    run->sum += rl_random_at(run->seed, job.number) ^ job.sum;
    if (job.failed)
        (void)snprintf(run->error, sizeof run->error, "SQLite could not run the query.");
    return !job.failed;
}

static bool evloop_batch(struct rl_run *run, uint64_t calls)
{
    struct evloop_state *state = run->state;
    for (uint64_t i = 0; i < calls; i++) {
        if (!state->done)
            state->done = loop_poll(state);
        struct rw_job *job = state->done;
        state->done = job->next;
        if (!result_take(run, (struct statement *)job)) /* the job is its first member */
            return false;
    }
    run->rows += calls * (state->query ? 0 : GROUPS);
    return true;
}

/* Lets what is under way come in, and begins anew. */
static void evloop_ready(struct rl_run *run)
{
    struct evloop_state *state = run->state;
    state->draining = true;
    for (uint64_t i = 0; i < state->statements; i++) {
        state->issued -= state->all[i].queued;
        state->all[i].queued = 0;
    }
    while (state->running && evloop_batch(run, 1))
        continue;
    run->rows = run->sum = 0;
    memset(&state->count, 0, sizeof state->count);
    state->issued = state->numbers = 0;
    state->draining = false;
    state->holding = true;
    state->count.begin_ns = rl_monotonic_ns();
    state->count.begin_cpu_ns = rl_process_cpu_ns();
    state->count.begin_loop_ns = loop_cpu_ns();
    turn_end(state, true);
    for (int i = 0; i < 2; i++)
        state->turns.wall_ns[i] = state->turns.cpu_ns[i] = state->turns.queries[i] = 0;
    queries_issue(run);
}

static void evloop_describe(const struct rl_run *run, FILE *out)
{
    const struct evloop_state *state = run->state;
    (void)fprintf(out, " op=evloop limit=0 eager=%s statements=%" PRIu64 " pool=%zu convert_ns=%" PRIu64 " query=%s query_ns=%"
                  PRIu64 " sqlite=%s", eager_choices[state->eager], state->statements, state->pool.started,
                  state->convert_ns, query_choices[state->query], state->query_ns, sqlite3_libversion());
}

static int latency_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static uint32_t latency_median(const struct evloop_count *count)
{
    static uint32_t sorted[LATENCIES];
    size_t used = count->queries < LATENCIES ? (size_t)count->queries : LATENCIES;
    memcpy(sorted, count->latencies, used * sizeof sorted[0]);
    qsort(sorted, used, sizeof sorted[0], latency_compare);
    return used ? sorted[used / 2] : 0;
}

/* Since READY; all times are per query. */
static void evloop_report(const struct rl_run *run, FILE *out)
{
    const struct evloop_state *state = run->state;
    const struct evloop_count *count = &state->count;
    double wall_ns = (double)(rl_monotonic_ns() - count->begin_ns);
    double queries = count->queries ? (double)count->queries : 1.0;
    (void)fprintf(out, "LOOP queries=%" PRIu64 " elapsed_ns=%.0f elu=%.4f convert_ns=%.0f query_ns=%.0f queue_ns=%" PRIu32
                  " mutex_ns=%.0f under_way=%.4f cpu_per_wall=%.4f loop_cpu_per_wall=%.4f\n", count->queries, wall_ns / queries,
                  1.0 - (double)count->idle_ns / wall_ns, (double)count->convert_ns / queries,
                  (double)count->query_ns / queries, latency_median(count), (double)count->mutex_ns / queries,
                  count->convert_ns ? (double)count->under_way_ns / (double)count->convert_ns : 0.0,
                  (double)(rl_process_cpu_ns() - count->begin_cpu_ns) / wall_ns,
                  (double)(loop_cpu_ns() - count->begin_loop_ns) / wall_ns);
    const struct turns *turns = &state->turns;
    if (!turns->queries[0] || !turns->queries[1])
        return;
    (void)fprintf(out, "TURNS");
    for (int i = 0; i < 2; i++)
        (void)fprintf(out, " %s_elapsed_ns=%.0f %s_cpu_per_wall=%.4f", i ? "early" : "late",
                      (double)turns->wall_ns[i] / (double)turns->queries[i], i ? "early" : "late",
                      (double)turns->cpu_ns[i] / (double)turns->wall_ns[i]);
    (void)fprintf(out, "\n");
}

static void evloop_close(struct rl_run *run)
{
    struct evloop_state *state = run->state;
    rw_pool_stop(&state->pool);
    for (uint64_t i = 0; state->all && i < state->statements; i++)
        (void)sqlite3_finalize(state->all[i].stmt);
    (void)sqlite3_close(state->db);
    if (state->epoll_fd >= 0)
        (void)close(state->epoll_fd);
    free(state->all);
}

extern const struct rl_workload wl_evloop;
const struct rl_workload wl_evloop = {
    .name = "evloop",
    .summary = "an event loop that converts what a thread pool reads; --eager overlaps the two",
    .options = evloop_options,
    .state_bytes = sizeof(struct evloop_state),
    .defaults = evloop_defaults,
    .open = evloop_open,
    .batch = evloop_batch,
    .ready = evloop_ready,
    .describe = evloop_describe,
    .report = evloop_report,
    .close = evloop_close,
};
