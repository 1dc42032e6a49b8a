/* SPDX-License-Identifier: MIT */
/*
 * rowload lockmix: threads that hold one lock for H nanoseconds and then stay out of it for O.
 *
 * The truth of a contention profile. The workload counts for itself: a lock that trylock did not get was contended, and the
 * time until it was got was waited. As long as the lock is not saturated it is used T*H / (H+O) of the time. The trap is
 * that threads which spin for lack of processors hold and stay out longer than asked: with --hold sleep and --out sleep the
 * figures hold on any machine, and what was really held is printed beside what was asked.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "rl_burn.h"
#include "rl_crew.h"

enum kind { KIND_MUTEX, KIND_SPIN, KIND_RW };
enum way { WAY_SLEEP, WAY_SPIN };

static const char *const kind_choices[] = {"mutex", "spin", "rw", NULL};
static const char *const way_choices[] = {"sleep", "spin", NULL};

#define TIME_NS_MAX UINT64_C(10000000000)

/* What one thread counted since READY. */
struct lock_count {
    _Alignas(128) uint64_t taken;
    uint64_t contended;
    uint64_t wait_ns;
    uint64_t held_ns;
    uint64_t out_ns;
};

struct lockmix_state {
    uint64_t threads;
    uint64_t hold_ns;
    uint64_t out_ns;
    uint32_t kind;
    uint32_t hold_way;
    uint32_t out_way;
    uint64_t hold_rounds;
    uint64_t out_rounds;

    pthread_mutex_t mutex;
    pthread_spinlock_t spin;
    pthread_rwlock_t rw;
    struct lock_count *counts;
    bool counting; /* READY is said; written while every worker waits at a gate */
    uint64_t kept; /* under the lock: results, so that no work can be left out */
};

static const struct rl_option lockmix_options[] = {
    {"threads", RL_OPT_COUNT, offsetof(struct lockmix_state, threads), 1, RL_WORKERS_MAX, NULL,
     "threads that want the lock (default 4)"},
    {"hold-ns", RL_OPT_COUNT, offsetof(struct lockmix_state, hold_ns), 0, TIME_NS_MAX, NULL,
     "for how long each holds it (default 1000000)"},
    {"out-ns", RL_OPT_COUNT, offsetof(struct lockmix_state, out_ns), 0, TIME_NS_MAX, NULL,
     "how long each stays out of it then (default 1000000)"},
    {"kind", RL_OPT_CHOICE, offsetof(struct lockmix_state, kind), 0, 0, kind_choices, "of lock (rw is taken for writing)"},
    {"hold", RL_OPT_CHOICE, offsetof(struct lockmix_state, hold_way), 0, 0, way_choices, "how it holds (default sleep)"},
    {"out", RL_OPT_CHOICE, offsetof(struct lockmix_state, out_way), 0, 0, way_choices, "how it stays out (default sleep)"},
    {NULL, RL_OPT_FLAG, 0, 0, 0, NULL, NULL},
};

static void lockmix_defaults(struct rl_run *run)
{
    struct lockmix_state *state = run->state;
    state->threads = 4;
    state->hold_ns = 1000000;
    state->out_ns = 1000000;
    (void)pthread_mutex_init(&state->mutex, NULL);
    (void)pthread_spin_init(&state->spin, PTHREAD_PROCESS_PRIVATE);
    (void)pthread_rwlock_init(&state->rw, NULL);
}

static bool lockmix_open(struct rl_run *run)
{
    struct lockmix_state *state = run->state;
    run->processes = 1;
    run->threads = state->threads;
    if (state->hold_ns + state->out_ns == 0) {
        (void)snprintf(run->error, sizeof run->error, "--hold-ns and --out-ns cannot both be 0.");
        run->misused = true;
        return false;
    }
    state->hold_rounds = state->hold_way == WAY_SPIN ? rl_burn_rounds(state->hold_ns) : 0;
    state->out_rounds = state->out_way == WAY_SPIN ? rl_burn_rounds(state->out_ns) : 0;
    state->counts = aligned_alloc(128, state->threads * sizeof *state->counts);
    if (!state->counts) {
        (void)snprintf(run->error, sizeof run->error, "The counters of the threads did not fit into memory.");
        return false;
    }
    for (uint64_t i = 0; i < state->threads; i++)
        state->counts[i] = (struct lock_count){0, 0, 0, 0, 0};
    return true;
}

static int lock_try(struct lockmix_state *state)
{
    if (state->kind == KIND_MUTEX)
        return pthread_mutex_trylock(&state->mutex);
    return state->kind == KIND_SPIN ? pthread_spin_trylock(&state->spin) : pthread_rwlock_trywrlock(&state->rw);
}

static void lock_release(struct lockmix_state *state)
{
    if (state->kind == KIND_MUTEX)
        (void)pthread_mutex_unlock(&state->mutex);
    else if (state->kind == KIND_SPIN)
        (void)pthread_spin_unlock(&state->spin);
    else
        (void)pthread_rwlock_unlock(&state->rw);
}

/* Sleeps to the end, signals or not. */
static void sleep_ns(uint64_t ns)
{
    struct timespec left = {(time_t)(ns / 1000000000U), (long)(ns % 1000000000U)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

RW_CATEGORY void rw_lock_wait(struct lockmix_state *state);
RW_CATEGORY uint64_t rw_lock_hold(const struct lockmix_state *state);
RW_CATEGORY uint64_t rw_lock_out(const struct lockmix_state *state);

/* Somebody else holds the lock. */
void rw_lock_wait(struct lockmix_state *state)
{
    if (state->kind == KIND_MUTEX)
        (void)pthread_mutex_lock(&state->mutex);
    else if (state->kind == KIND_SPIN)
        (void)pthread_spin_lock(&state->spin);
    else
        (void)pthread_rwlock_wrlock(&state->rw);
}

uint64_t rw_lock_hold(const struct lockmix_state *state)
{
    if (state->hold_way == WAY_SLEEP && state->hold_ns)
        sleep_ns(state->hold_ns);
    return rl_burn(state->hold_rounds, 31);
}

uint64_t rw_lock_out(const struct lockmix_state *state)
{
    if (state->out_way == WAY_SLEEP && state->out_ns)
        sleep_ns(state->out_ns);
    return rl_burn(state->out_rounds, 43);
}

/* One turn: take, hold, release, stay out. Held time is that between getting the lock and giving it back. */
static uint64_t turn_do(struct lockmix_state *state, struct lock_count *count)
{
    uint64_t before_ns = rl_monotonic_ns();
    uint64_t got_ns = before_ns;
    bool contended = lock_try(state) != 0;
    if (contended) {
        rw_lock_wait(state);
        got_ns = rl_monotonic_ns();
    }
    uint64_t result = rw_lock_hold(state);
    state->kept += result;
    uint64_t held_ns = rl_monotonic_ns();
    lock_release(state);
    result += rw_lock_out(state);
    if (state->counting) {
        count->taken++;
        count->contended += contended;
        count->wait_ns += got_ns - before_ns;
        count->held_ns += held_ns - got_ns;
        count->out_ns += rl_monotonic_ns() - held_ns;
    }
    return result;
}

static bool lockmix_worker_open(struct rl_worker *worker)
{
    (void)worker;
    return true;
}

static bool lockmix_work(struct rl_worker *worker, uint64_t calls)
{
    struct lockmix_state *state = worker->run->state;
    for (uint64_t i = 0; i < calls; i++) {
        (void)turn_do(state, &state->counts[worker->index]);
        worker->sum += rl_random_at(worker->run->seed, rl_worker_number(worker));
    }
    worker->rows += calls;
    return true;
}

static void lockmix_worker_close(struct rl_worker *worker)
{
    (void)worker;
}

static void lockmix_ready(struct rl_run *run)
{
    struct lockmix_state *state = run->state;
    state->counting = true;
}

static void lockmix_describe(const struct rl_run *run, FILE *out)
{
    const struct lockmix_state *state = run->state;
    (void)fprintf(out, " op=lockmix limit=0 kind=%s hold_ns=%" PRIu64 " out_ns=%" PRIu64 " hold=%s out=%s",
                  kind_choices[state->kind], state->hold_ns, state->out_ns, way_choices[state->hold_way],
                  way_choices[state->out_way]);
}

/* What was really held, stayed out and waited. `utilisation` is of the time that the workers held on. */
static void lockmix_finish(const struct rl_run *run, FILE *out)
{
    const struct lockmix_state *state = run->state;
    struct lock_count all = {0, 0, 0, 0, 0};
    uint64_t begin_ns = UINT64_MAX;
    uint64_t end_ns = 0;
    for (uint64_t i = 0; i < state->threads; i++) {
        struct rl_done done;
        const struct lock_count *count = &state->counts[i];
        rl_crew_worker_done(i, &done);
        begin_ns = done.begin_ns < begin_ns ? done.begin_ns : begin_ns;
        end_ns = done.end_ns > end_ns ? done.end_ns : end_ns;
        all.taken += count->taken;
        all.contended += count->contended;
        all.wait_ns += count->wait_ns;
        all.held_ns += count->held_ns;
        all.out_ns += count->out_ns;
    }
    double secs = end_ns > begin_ns ? (double)(end_ns - begin_ns) / 1e9 : 1.0;
    double taken = all.taken ? (double)all.taken : 1.0;
    (void)fprintf(out, "LOCK taken=%" PRIu64 " contended=%" PRIu64 " wait_secs=%.6f wait_per_sec=%.6f utilisation=%.5f"
                  " held_ns=%.0f out_ns=%.0f\n", all.taken, all.contended, (double)all.wait_ns / 1e9,
                  (double)all.wait_ns / 1e9 / secs, (double)all.held_ns / 1e9 / secs, (double)all.held_ns / taken,
                  (double)all.out_ns / taken);
}

static void lockmix_close(struct rl_run *run)
{
    struct lockmix_state *state = run->state;
    free(state->counts);
}

extern const struct rl_workload wl_lockmix;
const struct rl_workload wl_lockmix = {
    .name = "lockmix",
    .summary = "threads that hold one lock and stay out of it for known times: the truth of a contention profile",
    .options = lockmix_options,
    .state_bytes = sizeof(struct lockmix_state),
    .defaults = lockmix_defaults,
    .open = lockmix_open,
    .worker_open = lockmix_worker_open,
    .work = lockmix_work,
    .worker_close = lockmix_worker_close,
    .ready = lockmix_ready,
    .describe = lockmix_describe,
    .finish = lockmix_finish,
    .close = lockmix_close,
};
