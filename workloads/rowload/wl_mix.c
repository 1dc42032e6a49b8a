/* SPDX-License-Identifier: MIT */
/*
 * rowload mix: shares known by construction, the truth a profile is held against.
 *
 * The CPU time of each letter is measured where it is spent: the thread's CPU clock is read between two pieces of work
 * of some 300 microseconds, and the order of the pieces is shuffled and their lengths jittered by the seed, so that no
 * sampling rate can run in step with them. The trap is the clock itself, a system call of some hundred nanoseconds: a
 * piece is always at least a thousand times as long as a read was measured to be.
 */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "rw_mix.h"

enum { TICKETS_MAX = 1000, IDLE_MAX = 256, PIECE_NS = 300000, CLOCK_READS = 1000, DEPTH_MAX = 100000 };

static const char *const idle_choices[] = {"futex", "epoll", "sleep", "pipe", "none", NULL};
static const char *const fp_choices[] = {"0", "1", NULL};

enum idle { IDLE_FUTEX, IDLE_EPOLL, IDLE_SLEEP, IDLE_PIPE, IDLE_NONE };

struct letter_state {
    uint64_t tickets;
    uint64_t cpu_ns; /* since READY */
    uint64_t all_ns; /* since the start, with all_units: what a unit costs in this function */
    uint64_t all_units;
};

struct mix_state {
    const char *mix;
    uint64_t depth;
    uint64_t rec;
    uint64_t idle_threads;
    uint32_t idle;
    uint32_t fp;

    struct letter_state letters[RW_MIX_LETTERS];
    uint8_t order[TICKETS_MAX];
    size_t tickets;
    size_t next;
    uint64_t random;
    uint64_t last_ns;
    uint64_t piece_ns;
    double clock_ns;
    uint64_t result;

    pthread_t threads[IDLE_MAX];
    size_t started;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool over; /* under lock */
    int pipe_fds[2];
    int epoll_fd;
};

static const struct rl_option mix_options[] = {
    {"mix", RL_OPT_TEXT, offsetof(struct mix_state, mix), 0, 0, NULL,
     "letters a to h and their shares in percent (default a=50,b=30,c=20)"},
    {"depth", RL_OPT_COUNT, offsetof(struct mix_state, depth), 0, DEPTH_MAX, NULL, "frames of rw_depth above the work"},
    {"rec", RL_OPT_COUNT, offsetof(struct mix_state, rec), 0, DEPTH_MAX, NULL,
     "frames of rw_rec_a and rw_rec_b calling each other above the work"},
    {"fp", RL_OPT_CHOICE, offsetof(struct mix_state, fp), 0, 0, fp_choices, "with frame pointers (default 1)"},
    {"idle", RL_OPT_CHOICE, offsetof(struct mix_state, idle), 0, 0, idle_choices, "what the idle threads wait in"},
    {"idle-threads", RL_OPT_COUNT, offsetof(struct mix_state, idle_threads), 0, IDLE_MAX, NULL, "their number"},
    {NULL, RL_OPT_FLAG, 0, 0, 0, NULL, NULL},
};

static void mix_defaults(struct rl_run *run)
{
    struct mix_state *state = run->state;
    state->mix = "a=50,b=30,c=20";
    state->idle = IDLE_NONE;
    state->fp = 1;
    state->pipe_fds[0] = state->pipe_fds[1] = state->epoll_fd = -1;
    (void)pthread_mutex_init(&state->lock, NULL);
    (void)pthread_cond_init(&state->wake, NULL);
}

static uint64_t thread_cpu_ns(void)
{
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* One `a=50` of the list, into tenths of a percent. False when it is not of that form. */
static bool share_parse(struct mix_state *state, const char *word, size_t length)
{
    char number[16];
    uint64_t billionths = 0;
    if (length < 3 || length - 2 >= sizeof number || word[0] < 'a' || word[0] >= 'a' + RW_MIX_LETTERS || word[1] != '=')
        return false;
    memcpy(number, word + 2, length - 2);
    number[length - 2] = '\0';
    struct letter_state *letter = &state->letters[word[0] - 'a'];
    if (letter->tickets || !rl_parse_billionths(number, &billionths) || billionths % 100000000U)
        return false;
    letter->tickets = billionths / 100000000U;
    return letter->tickets && letter->tickets <= TICKETS_MAX;
}

/* Reads --mix into tickets: as few as keep the shares exact. */
static bool mix_parse(struct rl_run *run)
{
    struct mix_state *state = run->state;
    const char *word = state->mix;
    uint64_t sum = 0;
    uint64_t divisor = 0;
    bool good = true;
    while (good) {
        size_t length = strcspn(word, ",");
        good = share_parse(state, word, length);
        if (!word[length])
            break;
        word += length + 1;
    }
    for (size_t i = 0; i < RW_MIX_LETTERS; i++) {
        sum += state->letters[i].tickets;
        divisor = common_divisor(divisor, state->letters[i].tickets);
    }
    if (!good || sum != TICKETS_MAX) {
        (void)snprintf(run->error, sizeof run->error,
                       "--mix takes letters a to h with percentages that sum to 100, as a=50,b=30,c=20, not '%.60s'.",
                       state->mix);
        run->misused = true;
        return false;
    }
    for (size_t i = 0; i < RW_MIX_LETTERS; i++) {
        state->letters[i].tickets /= divisor;
        for (uint64_t j = 0; j < state->letters[i].tickets; j++)
            state->order[state->tickets++] = (uint8_t)i;
    }
    return true;
}

/* The idle threads. Each waits in the one way asked for; closing the pipe and setting `over` ends them all. */
static void *idle_thread(void *argument)
{
    struct mix_state *state = argument;
    struct epoll_event event;
    char byte = 0;
    switch (state->idle) {
    case IDLE_EPOLL:
        (void)epoll_wait(state->epoll_fd, &event, 1, -1);
        break;
    case IDLE_PIPE:
        (void)!read(state->pipe_fds[0], &byte, 1);
        break;
    case IDLE_SLEEP:
        for (bool over = false; !over;) {
            const struct timespec hour = {3600, 0};
            (void)nanosleep(&hour, NULL);
            (void)pthread_mutex_lock(&state->lock);
            over = state->over;
            (void)pthread_mutex_unlock(&state->lock);
        }
        break;
    default:
        (void)pthread_mutex_lock(&state->lock);
        while (!state->over)
            (void)pthread_cond_wait(&state->wake, &state->lock);
        (void)pthread_mutex_unlock(&state->lock);
        break;
    }
    return NULL;
}

static bool idle_start(struct rl_run *run)
{
    struct mix_state *state = run->state;
    if (state->idle == IDLE_NONE)
        return true;
    struct epoll_event event = {.events = EPOLLIN};
    state->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (pipe(state->pipe_fds) != 0 || state->epoll_fd < 0 ||
        epoll_ctl(state->epoll_fd, EPOLL_CTL_ADD, state->pipe_fds[0], &event) != 0) {
        (void)snprintf(run->error, sizeof run->error, "The pipe for the idle threads could not be made.");
        return false;
    }
    /* A signal must not wake an idle thread out of its wait, so only the main thread takes any. */
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    while (state->started < state->idle_threads &&
           pthread_create(&state->threads[state->started], NULL, idle_thread, state) == 0)
        state->started++;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (state->started < state->idle_threads)
        (void)snprintf(run->error, sizeof run->error, "Idle thread %zu could not be started.", state->started + 1);
    return state->started == state->idle_threads;
}

static bool mix_open(struct rl_run *run)
{
    struct mix_state *state = run->state;
    if (!mix_parse(run) || !idle_start(run))
        return false;
    state->random = run->seed;
    uint64_t before_ns = thread_cpu_ns();
    for (int i = 0; i < CLOCK_READS; i++)
        state->last_ns = thread_cpu_ns();
    state->clock_ns = (double)(state->last_ns - before_ns) / CLOCK_READS;
    state->piece_ns = (uint64_t)(state->clock_ns * 1000.0);
    if (state->piece_ns < PIECE_NS)
        state->piece_ns = PIECE_NS;
    run->batch_ns = state->piece_ns * 10;
    return true;
}

static void order_shuffle(struct mix_state *state)
{
    for (size_t i = state->tickets - 1; i > 0; i--) {
        size_t other = rl_random_next(&state->random) % (i + 1);
        uint8_t kept = state->order[i];
        state->order[i] = state->order[other];
        state->order[other] = kept;
    }
    state->next = 0;
}

/* How many units make a piece of the wanted length (jittered by half either way) in this letter's function. */
static uint64_t units_choose(struct mix_state *state, const struct letter_state *letter)
{
    double jitter = 0.5 + (double)(rl_random_next(&state->random) >> 11) / 9007199254740992.0;
    double unit_ns = letter->all_units ? (double)letter->all_ns / (double)letter->all_units : 1000.0;
    double units = jitter * (double)state->piece_ns / fmax(unit_ns, 1.0);
    return units < 1.0 ? 1 : (uint64_t)units;
}

static bool mix_batch(struct rl_run *run, uint64_t calls)
{
    struct mix_state *state = run->state;
    for (uint64_t i = 0; i < calls; i++) {
        if (state->next == 0 || state->next == state->tickets)
            order_shuffle(state);
        uint32_t which = state->order[state->next++];
        struct letter_state *letter = &state->letters[which];
        struct rw_mix_call call = {which, (uint32_t)state->depth, (uint32_t)state->rec, units_choose(state, letter)};
        state->result += state->fp ? rw_mix_enter(&call) : rw_mix_nofp_enter(&call);
        uint64_t now_ns = thread_cpu_ns();
        letter->cpu_ns += now_ns - state->last_ns;
        letter->all_ns += now_ns - state->last_ns;
        letter->all_units += call.units;
        state->last_ns = now_ns;
        run->sum += rl_random_next(&state->random) * (which + 1);
    }
    run->rows += calls;
    return true;
}

static void mix_ready(struct rl_run *run)
{
    struct mix_state *state = run->state;
    for (size_t i = 0; i < RW_MIX_LETTERS; i++)
        state->letters[i].cpu_ns = 0;
    state->random = run->seed;
    state->last_ns = thread_cpu_ns();
}

static void mix_describe(const struct rl_run *run, FILE *out)
{
    const struct mix_state *state = run->state;
    (void)fprintf(out, " op=mix limit=0 mix=%s depth=%" PRIu64 " rec=%" PRIu64 " fp=%s idle=%s idle_threads=%zu prefix=%s",
                  state->mix, state->depth, state->rec, fp_choices[state->fp], idle_choices[state->idle], state->started,
                  state->fp ? "rw_mix_" : "rw_mix_nofp_");
}

/* The split of CPU time since READY, and the part of it that went into reading the clock. */
static void mix_report(const struct rl_run *run, FILE *out)
{
    const struct mix_state *state = run->state;
    double all = 0.0;
    for (size_t i = 0; i < RW_MIX_LETTERS; i++)
        all += (double)state->letters[i].cpu_ns;
    (void)fprintf(out, "TRUTH");
    for (size_t i = 0; i < RW_MIX_LETTERS; i++) {
        if (state->letters[i].tickets)
            (void)fprintf(out, " %c=%.5f", (char)('a' + i), all > 0 ? (double)state->letters[i].cpu_ns / all : 0.0);
    }
    (void)fprintf(out, " cpu_secs=%.6f clock=%.5f\n", all / 1e9, state->clock_ns / (double)state->piece_ns);
}

static void mix_close(struct rl_run *run)
{
    struct mix_state *state = run->state;
    (void)pthread_mutex_lock(&state->lock);
    state->over = true;
    (void)pthread_cond_broadcast(&state->wake);
    (void)pthread_mutex_unlock(&state->lock);
    if (state->pipe_fds[1] >= 0)
        (void)close(state->pipe_fds[1]);
    for (size_t i = 0; i < state->started; i++) {
        if (state->idle == IDLE_SLEEP)
            (void)pthread_cancel(state->threads[i]);
        (void)pthread_join(state->threads[i], NULL);
    }
    if (state->pipe_fds[0] >= 0)
        (void)close(state->pipe_fds[0]);
    if (state->epoll_fd >= 0)
        (void)close(state->epoll_fd);
}

extern const struct rl_workload wl_mix;
const struct rl_workload wl_mix = {
    .name = "mix",
    .summary = "spends its time in rw_mix_a, rw_mix_b, ... in known shares, and prints the split it measured",
    .options = mix_options,
    .state_bytes = sizeof(struct mix_state),
    .defaults = mix_defaults,
    .open = mix_open,
    .batch = mix_batch,
    .ready = mix_ready,
    .describe = mix_describe,
    .report = mix_report,
    .close = mix_close,
};
