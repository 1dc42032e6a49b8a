/* SPDX-License-Identifier: MIT */
/*
 * The crew: see rl_crew.h.
 *
 * The traps: a forked worker process must not outlive this one (it asks to be killed with its parent) nor end at an
 * interrupt typed at the terminal, which goes to all of them, before it has published; and a worker that fails must open
 * every gate, or the others would wait for it for ever.
 */
#include "rl_crew.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NAP_NS = 10000000, BATCH_WALL_NS = 1000000, SECOND_NS = 1000000000 };

enum phase { PHASE_OPEN, PHASE_WARM, PHASE_HOLD, PHASE_CLOSE };

struct slot {
    _Alignas(128) _Atomic uint64_t calls;
    _Atomic uint64_t rows;
    _Atomic uint64_t sum;
    _Atomic uint64_t cpu_ns;
    _Atomic int64_t nvcsw;
    _Atomic int64_t nivcsw;
    uint64_t begin_ns;
    uint64_t end_ns;
    int64_t tid;
};

/* Shared by all processes of the run. */
struct shared {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t phase;    /* under lock: the gate that is open */
    uint32_t arrived;  /* under lock: workers waiting for the next one */
    _Atomic uint32_t ended; /* phases up to this one are over */
    _Atomic uint32_t failed;
    char error[RL_ERROR_BYTES]; /* under lock */
    uint64_t span[RL_PROCESSES_MAX][2];
    struct slot slots[RL_WORKERS_MAX];
};

static struct {
    struct shared *shared;
    size_t workers;
    pid_t pids[RL_PROCESSES_MAX];
    size_t processes; /* started, this one included */
    struct rl_worker local[RL_WORKERS_MAX];
    pthread_t threads[RL_WORKERS_MAX];
    size_t threads_started;
} crew;

static void crew_fail(const char *error)
{
    (void)pthread_mutex_lock(&crew.shared->lock);
    if (!crew.shared->failed)
        (void)snprintf(crew.shared->error, sizeof crew.shared->error, "%s", error);
    crew.shared->failed = 1;
    (void)pthread_cond_broadcast(&crew.shared->changed);
    (void)pthread_mutex_unlock(&crew.shared->lock);
}

/* Waits in front of a gate. False when somebody failed. */
static bool gate_await(uint32_t phase)
{
    struct shared *shared = crew.shared;
    (void)pthread_mutex_lock(&shared->lock);
    shared->arrived++;
    (void)pthread_cond_broadcast(&shared->changed);
    while (shared->phase < phase && !shared->failed)
        (void)pthread_cond_wait(&shared->changed, &shared->lock);
    (void)pthread_mutex_unlock(&shared->lock);
    return !shared->failed;
}

static void gate_open(uint32_t phase)
{
    (void)pthread_mutex_lock(&crew.shared->lock);
    crew.shared->arrived = 0;
    crew.shared->phase = phase;
    (void)pthread_cond_broadcast(&crew.shared->changed);
    (void)pthread_mutex_unlock(&crew.shared->lock);
}

/* What this thread has used so far, into its slot, less what it had used when its hold began. */
static void slot_publish(struct slot *slot, const struct rl_worker *worker, uint64_t calls, const struct rl_done *base)
{
    struct timespec cpu = {0, 0};
    struct rusage usage;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    memset(&usage, 0, sizeof usage);
    (void)getrusage(RUSAGE_THREAD, &usage);
    uint64_t cpu_ns = (uint64_t)cpu.tv_sec * SECOND_NS + (uint64_t)cpu.tv_nsec;
    atomic_store_explicit(&slot->rows, worker->rows, memory_order_relaxed);
    atomic_store_explicit(&slot->sum, worker->sum, memory_order_relaxed);
    atomic_store_explicit(&slot->cpu_ns, cpu_ns - base->cpu_ns, memory_order_relaxed);
    atomic_store_explicit(&slot->nvcsw, usage.ru_nvcsw - base->nvcsw, memory_order_relaxed);
    atomic_store_explicit(&slot->nivcsw, usage.ru_nivcsw - base->nivcsw, memory_order_relaxed);
    atomic_store_explicit(&slot->calls, calls, memory_order_release);
}

/* Works until the phase is over or the quota (if any) is done. Batches are sized to about a millisecond. */
static bool phase_work(struct rl_worker *worker, uint32_t phase, uint64_t quota, uint64_t *batch,
                       const struct rl_done *base)
{
    struct slot *slot = &crew.shared->slots[worker->index];
    uint64_t calls = 0;
    uint64_t before_ns = rl_monotonic_ns();
    while (crew.shared->ended < phase && !crew.shared->failed && calls < quota) {
        uint64_t now = quota - calls < *batch ? quota - calls : *batch;
        if (!worker->run->workload->work(worker, now))
            return false;
        calls += now;
        slot_publish(slot, worker, calls, base);
        uint64_t after_ns = rl_monotonic_ns();
        if (after_ns - before_ns < BATCH_WALL_NS / 2)
            *batch *= 2;
        else if (after_ns - before_ns > BATCH_WALL_NS * 4 && *batch > 1)
            *batch /= 2;
        before_ns = after_ns;
    }
    return true;
}

static uint64_t quota_of(const struct rl_worker *worker)
{
    uint64_t calls = worker->run->calls;
    return calls ? calls / crew.workers + (worker->index < calls % crew.workers) : UINT64_MAX;
}

/* From the first gate to the last. False: worker->error holds the sentence. */
static bool worker_phases(struct rl_worker *worker)
{
    static const struct rl_done nothing;
    struct slot *slot = &crew.shared->slots[worker->index];
    uint64_t batch = 1;
    worker->next = worker->index;
    if (!gate_await(PHASE_WARM))
        return true;
    if (!phase_work(worker, PHASE_WARM, UINT64_MAX, &batch, &nothing))
        return false;
    worker->next = worker->index;
    worker->rows = worker->sum = 0;
    slot_publish(slot, worker, 0, &nothing);
    struct rl_done base = {.cpu_ns = slot->cpu_ns, .nvcsw = slot->nvcsw, .nivcsw = slot->nivcsw};
    slot_publish(slot, worker, 0, &base);
    if (!gate_await(PHASE_HOLD))
        return true;
    slot->begin_ns = rl_monotonic_ns();
    bool good = phase_work(worker, PHASE_HOLD, quota_of(worker), &batch, &base);
    slot->end_ns = rl_monotonic_ns();
    if (good)
        (void)gate_await(PHASE_CLOSE);
    return good;
}

static void *worker_main(void *argument)
{
    struct rl_worker *worker = argument;
    const struct rl_workload *workload = worker->run->workload;
    char name[16];
    (void)snprintf(name, sizeof name, "rw-worker-%" PRIu32, worker->index);
    (void)pthread_setname_np(pthread_self(), name);
    crew.shared->slots[worker->index].tid = syscall(SYS_gettid);
    if (!workload->worker_open(worker) || !worker_phases(worker))
        crew_fail(worker->error);
    workload->worker_close(worker);
    return NULL;
}

/* Starts the workers of process `process`; signals go to the protocol's thread only. */
static void threads_start(struct rl_run *run, uint32_t process)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    crew.shared->span[process][0] = rl_monotonic_ns();
    for (uint32_t i = 0; i < run->threads; i++) {
        struct rl_worker *worker = &crew.local[i];
        worker->run = run;
        worker->process = process;
        worker->index = process * (uint32_t)run->threads + i;
        if (pthread_create(&crew.threads[i], NULL, worker_main, worker) != 0) {
            char error[RL_ERROR_BYTES];
            (void)snprintf(error, sizeof error, "Worker %" PRIu32 " could not be started: the system has no more threads.",
                           worker->index + 1);
            crew_fail(error);
            break;
        }
        crew.threads_started++;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void threads_join(uint32_t process)
{
    for (size_t i = 0; i < crew.threads_started; i++)
        (void)pthread_join(crew.threads[i], NULL);
    crew.threads_started = 0;
    crew.shared->span[process][1] = rl_monotonic_ns();
}

/* As the published programs do: process i on CPU i, before it has threads; best effort. */
static void process_pin(const struct rl_run *run, uint32_t process)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(process, &set);
    if (run->pin)
        (void)sched_setaffinity(0, sizeof set, &set);
}

static void process_main(struct rl_run *run, uint32_t process, pid_t parent)
{
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    process_pin(run, process);
    threads_start(run, process);
    threads_join(process);
    _exit(0);
}

static bool shared_make(struct rl_run *run)
{
    pthread_mutexattr_t lock;
    pthread_condattr_t cond;
    void *memory = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        (void)snprintf(run->error, sizeof run->error, "The memory that the workers share could not be had: %s.",
                       strerror(errno));
        return false;
    }
    crew.shared = memory;
    (void)pthread_mutexattr_init(&lock);
    (void)pthread_mutexattr_setpshared(&lock, PTHREAD_PROCESS_SHARED);
    (void)pthread_mutex_init(&crew.shared->lock, &lock);
    (void)pthread_condattr_init(&cond);
    (void)pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
    (void)pthread_condattr_setclock(&cond, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&crew.shared->changed, &cond);
    return true;
}

/* Notices a worker process that ended without having closed. */
static void processes_watch(void)
{
    for (size_t i = 1; i < crew.processes; i++) {
        int status = 0;
        if (crew.pids[i] > 0 && waitpid(crew.pids[i], &status, WNOHANG) == crew.pids[i]) {
            crew.pids[i] = 0;
            if (crew.shared->phase < PHASE_CLOSE)
                crew_fail("A worker process ended before its time.");
        }
    }
}

/* Sleeps up to 10 ms; true when all workers wait in front of the next gate. */
static bool arrived_await(void)
{
    struct timespec until = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += NAP_NS;
    if (until.tv_nsec >= SECOND_NS) {
        until.tv_nsec -= SECOND_NS;
        until.tv_sec++;
    }
    processes_watch();
    (void)pthread_mutex_lock(&crew.shared->lock);
    int waited = 0;
    while (crew.shared->arrived < crew.workers && !crew.shared->failed && waited == 0)
        waited = pthread_cond_timedwait(&crew.shared->changed, &crew.shared->lock, &until);
    bool all = crew.shared->arrived == crew.workers;
    (void)pthread_mutex_unlock(&crew.shared->lock);
    return all;
}

static bool crew_failed(struct rl_run *run)
{
    if (!crew.shared->failed)
        return false;
    (void)pthread_mutex_lock(&crew.shared->lock);
    (void)snprintf(run->error, sizeof run->error, "%s", crew.shared->error);
    (void)pthread_mutex_unlock(&crew.shared->lock);
    return true;
}

bool rl_crew_start(struct rl_run *run)
{
    crew.workers = run->processes * run->threads;
    if (crew.workers > RL_WORKERS_MAX || run->processes > RL_PROCESSES_MAX) {
        (void)snprintf(run->error, sizeof run->error, "At most %d processes and %d threads in all can work, not %" PRIu64
                       " x %" PRIu64 ".", RL_PROCESSES_MAX, RL_WORKERS_MAX, run->processes, run->threads);
        return false;
    }
    if (!shared_make(run))
        return false;
    crew.pids[0] = getpid();
    crew.processes = 1;
    (void)fflush(stdout);
    for (uint32_t i = 1; i < run->processes; i++) {
        pid_t pid = fork();
        if (pid == 0)
            process_main(run, i, crew.pids[0]);
        if (pid < 0) {
            crew_fail("A worker process could not be forked.");
            break;
        }
        crew.pids[crew.processes++] = pid;
    }
    process_pin(run, 0);
    if (!crew.shared->failed)
        threads_start(run, 0);
    while (!crew.shared->failed && !arrived_await())
        continue;
    return !crew_failed(run);
}

bool rl_crew_warm(struct rl_run *run, uint64_t warm_ns)
{
    struct rl_done done = {0};
    uint64_t start_ns = rl_monotonic_ns();
    if (run->unwarmed)
        crew.shared->ended = PHASE_WARM;
    gate_open(PHASE_WARM);
    while (!run->unwarmed && !rl_stop && !crew.shared->failed &&
           (done.calls < run->warm_calls || rl_monotonic_ns() - start_ns < warm_ns)) {
        (void)arrived_await();
        rl_crew_totals(&done);
    }
    crew.shared->ended = PHASE_WARM;
    while (!crew.shared->failed && !arrived_await())
        continue;
    return !crew_failed(run);
}

void rl_crew_hold(struct rl_run *run)
{
    (void)run;
    gate_open(PHASE_HOLD);
}

bool rl_crew_nap(void)
{
    return !arrived_await() && !crew.shared->failed;
}

bool rl_crew_stop(struct rl_run *run)
{
    crew.shared->ended = PHASE_HOLD;
    while (!crew.shared->failed && !arrived_await())
        continue;
    return !crew_failed(run);
}

void rl_crew_close(struct rl_run *run)
{
    (void)run;
    if (!crew.shared)
        return;
    crew.shared->ended = PHASE_CLOSE;
    gate_open(PHASE_CLOSE);
    threads_join(0);
    for (size_t i = 1; i < crew.processes; i++) {
        if (crew.pids[i] > 0)
            (void)waitpid(crew.pids[i], NULL, 0);
    }
}

void rl_crew_worker_done(size_t index, struct rl_done *done)
{
    const struct slot *slot = &crew.shared->slots[index];
    done->calls = atomic_load_explicit(&slot->calls, memory_order_acquire);
    done->rows = atomic_load_explicit(&slot->rows, memory_order_relaxed);
    done->sum = atomic_load_explicit(&slot->sum, memory_order_relaxed);
    done->cpu_ns = atomic_load_explicit(&slot->cpu_ns, memory_order_relaxed);
    done->nvcsw = atomic_load_explicit(&slot->nvcsw, memory_order_relaxed);
    done->nivcsw = atomic_load_explicit(&slot->nivcsw, memory_order_relaxed);
    done->begin_ns = slot->begin_ns;
    done->end_ns = slot->end_ns;
    done->tid = slot->tid;
}

void rl_crew_totals(struct rl_done *done)
{
    struct rl_done one;
    memset(done, 0, sizeof *done);
    for (size_t i = 0; i < crew.workers; i++) {
        rl_crew_worker_done(i, &one);
        done->calls += one.calls;
        done->rows += one.rows;
        done->sum += one.sum;
        done->cpu_ns += one.cpu_ns;
        done->nvcsw += one.nvcsw;
        done->nivcsw += one.nivcsw;
    }
}

void rl_crew_process_span(size_t index, uint64_t *begin_ns, uint64_t *end_ns)
{
    *begin_ns = crew.shared->span[index][0];
    *end_ns = crew.shared->span[index][1];
}

void rl_crew_pids_print(FILE *out)
{
    for (size_t i = 0; i < crew.processes; i++)
        (void)fprintf(out, "%s%ld", i ? "," : "", (long)crew.pids[i]);
}
