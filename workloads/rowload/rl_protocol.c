/* SPDX-License-Identifier: MIT */
/*
 * The protocol shared by all workloads: warm up, READY, hold, RATE, SUM. workloads/README.md is its specification.
 *
 * The trap is that the loop must not show in the profile. The clock is looked at once per batch, and the batch is sized
 * during warm-up to about 200 microseconds, so that two clock reads stay far below one part in a hundred.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rl_crew.h"
#include "rl_run.h"

enum {
    WARM_NS = 500000000,
    BATCH_NS = 200000,
    SECOND_NS = 1000000000,
    SLOT_NS = 20000000,
    SLOTS_MAX = 2000,
    WINDOWS = 10,
    DRIFT_PERCENT = 2,
};

volatile sig_atomic_t rl_stop;

/* What had been done at one instant. */
struct mark {
    uint64_t wall_ns;
    uint64_t cpu_ns;
    uint64_t calls;
    uint64_t rows;
    int64_t nvcsw;
    int64_t nivcsw;
};

/* Calls and CPU time of equal slices of the hold; when all are used, neighbours merge and slices double. */
struct slots {
    uint64_t slice_ns;
    size_t used;
    uint64_t calls[SLOTS_MAX];
    uint64_t cpu_ns[SLOTS_MAX];
};

struct hold {
    struct rl_run *run;
    uint64_t batch;
    uint64_t done;
    struct mark begin;
    struct mark second;
    struct mark slice;
    _Atomic uint64_t *counter; /* two words in a shared file: calls done, process CPU ns; NULL without --counter */
    struct slots slots;
};

static uint64_t clock_read_ns(clockid_t id)
{
    struct timespec now = {0, 0};
    (void)clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

uint64_t rl_monotonic_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC);
}

uint64_t rl_process_cpu_ns(void)
{
    return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static void stop_on_signal(int number)
{
    (void)number;
    rl_stop = 1;
}

static void signals_catch(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = stop_on_signal;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

/* The CPU time of whoever does the calls: the workers, or the process. */
static uint64_t work_cpu_ns(const struct hold *hold)
{
    struct rl_done done;
    if (!hold->run->workload->work)
        return rl_process_cpu_ns();
    rl_crew_totals(&done);
    return done.cpu_ns;
}

static struct mark mark_take(const struct hold *hold)
{
    if (hold->run->workload->work) {
        struct rl_done done;
        rl_crew_totals(&done);
        return (struct mark){rl_monotonic_ns(), done.cpu_ns, done.calls, done.rows, done.nvcsw, done.nivcsw};
    }
    struct rusage usage;
    struct mark mark = {rl_monotonic_ns(), rl_process_cpu_ns(), hold->done, hold->run->rows, 0, 0};
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        mark.nvcsw = usage.ru_nvcsw;
        mark.nivcsw = usage.ru_nivcsw;
    }
    return mark;
}

/* Opens the file whose first two words tell another process, at any instant, how far this one is. */
static bool counter_open(struct hold *hold)
{
    const char *path = hold->run->counter_path;
    if (!path)
        return true;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    void *words = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, 16) == 0)
        words = mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (words == MAP_FAILED)
        (void)snprintf(hold->run->error, sizeof hold->run->error, "The counter file %.120s cannot be mapped: %s.", path,
                       strerror(errno));
    else
        hold->counter = words;
    if (fd >= 0)
        (void)close(fd);
    return words != MAP_FAILED;
}

/* Folds what the workers have published into the run. */
static void crew_take(struct hold *hold)
{
    struct rl_done done;
    rl_crew_totals(&done);
    hold->done = done.calls;
    hold->run->rows = done.rows;
    hold->run->sum = done.sum;
}

static bool batch_do(struct hold *hold, uint64_t calls)
{
    if (!hold->run->workload->batch(hold->run, calls))
        return false;
    hold->done += calls;
    return true;
}

/* Warms up, and finds how many calls make a batch of the wanted CPU time. */
static bool batches_warm(struct hold *hold)
{
    uint64_t wanted_ns = hold->run->batch_ns ? hold->run->batch_ns : BATCH_NS;
    uint64_t start_ns = rl_monotonic_ns();
    hold->batch = 1;
    while (!rl_stop && (hold->done < hold->run->warm_calls || rl_monotonic_ns() - start_ns < WARM_NS)) {
        uint64_t before_ns = rl_process_cpu_ns();
        if (!batch_do(hold, hold->batch))
            return false;
        uint64_t spent_ns = rl_process_cpu_ns() - before_ns;
        if (spent_ns < wanted_ns / 2)
            hold->batch *= 2;
        else if (spent_ns > wanted_ns * 2 && hold->batch > 1)
            hold->batch /= 2;
    }
    return true;
}

static bool warm_up(struct hold *hold)
{
    struct rl_run *run = hold->run;
    if (!(run->workload->work ? rl_crew_start(run) && rl_crew_warm(run, WARM_NS) : batches_warm(hold)))
        return false;
    hold->done = 0;
    hold->run->rows = 0;
    hold->run->sum = 0;
    if (hold->run->workload->ready)
        hold->run->workload->ready(hold->run);
    return true;
}

static void ready_print(const struct hold *hold)
{
    (void)fprintf(stderr, "READY pid=%ld tid=%ld workload=%s", (long)getpid(), (long)syscall(SYS_gettid),
                  hold->run->workload->name);
    if (hold->run->workload->work) {
        (void)fprintf(stderr, " processes=%" PRIu64 " threads=%" PRIu64 " pids=", hold->run->processes, hold->run->threads);
        rl_crew_pids_print(stderr);
    }
    hold->run->workload->describe(hold->run, stderr);
    (void)fprintf(stderr, " seed=%" PRIu64 "\n", hold->run->seed);
    (void)fflush(stderr);
}

static void rate_print(const struct hold *hold, const struct mark *from, const struct mark *to, const char *span)
{
    double secs = (double)(to->wall_ns - from->wall_ns) / SECOND_NS;
    double cpu_secs = (double)(to->cpu_ns - from->cpu_ns) / SECOND_NS;
    double calls = (double)(to->calls - from->calls);
    (void)printf("RATE calls=%" PRIu64 " rows=%" PRIu64 " secs=%.6f rate=%.1f cpu_secs=%.6f cpu_rate=%.1f ns_per_call=%.1f"
                 " nvcsw=%" PRId64 " nivcsw=%" PRId64 " span=%s\n",
                 to->calls - from->calls, to->rows - from->rows, secs, secs > 0 ? calls / secs : 0.0, cpu_secs,
                 cpu_secs > 0 ? calls / cpu_secs : 0.0, calls > 0 ? cpu_secs * SECOND_NS / calls : 0.0,
                 to->nvcsw - from->nvcsw, to->nivcsw - from->nivcsw, span);
    if (hold->run->workload->report)
        hold->run->workload->report(hold->run, stdout);
    (void)fflush(stdout);
}

static void slots_add(struct slots *slots, uint64_t calls, uint64_t cpu_ns)
{
    if (slots->used == SLOTS_MAX) {
        for (size_t i = 0; i < SLOTS_MAX / 2; i++) {
            slots->calls[i] = slots->calls[2 * i] + slots->calls[2 * i + 1];
            slots->cpu_ns[i] = slots->cpu_ns[2 * i] + slots->cpu_ns[2 * i + 1];
        }
        slots->used = SLOTS_MAX / 2;
        slots->slice_ns *= 2;
    }
    slots->calls[slots->used] = calls;
    slots->cpu_ns[slots->used] = cpu_ns;
    slots->used++;
}

/* Calls per CPU second over slices [from, to). */
static double slots_rate(const struct slots *slots, size_t from, size_t to)
{
    uint64_t calls = 0;
    uint64_t cpu_ns = 0;
    for (size_t i = from; i < to; i++) {
        calls += slots->calls[i];
        cpu_ns += slots->cpu_ns[i];
    }
    return cpu_ns ? (double)calls * SECOND_NS / (double)cpu_ns : 0.0;
}

/* Says on stderr when the last three of ten windows ran at another speed than the first three. */
static void drift_warn(const struct slots *slots)
{
    size_t window = slots->used / WINDOWS;
    if (!window)
        return;
    double mean = slots_rate(slots, 0, window * WINDOWS);
    double first = slots_rate(slots, 0, window * 3);
    double last = slots_rate(slots, window * (WINDOWS - 3), window * WINDOWS);
    double off = mean > 0 ? 100.0 * (last - first) / mean : 0.0;
    if (off > DRIFT_PERCENT || off < -DRIFT_PERCENT)
        (void)fprintf(stderr, "rowload: not stationary: the last three of ten windows ran %+.1f %% against the first three.\n",
                      off);
}

/* What happens between two batches. True while the hold goes on. */
static bool between_batches(struct hold *hold)
{
    const struct rl_run *run = hold->run;
    uint64_t wall_ns = rl_monotonic_ns();
    uint64_t cpu_ns = work_cpu_ns(hold);
    if (hold->counter) {
        atomic_store_explicit(&hold->counter[1], cpu_ns, memory_order_relaxed);
        atomic_store_explicit(&hold->counter[0], hold->done, memory_order_release);
    }
    if (wall_ns - hold->slice.wall_ns >= hold->slots.slice_ns) {
        slots_add(&hold->slots, hold->done - hold->slice.calls, cpu_ns - hold->slice.cpu_ns);
        hold->slice.wall_ns = wall_ns;
        hold->slice.cpu_ns = cpu_ns;
        hold->slice.calls = hold->done;
    }
    if (run->progress && wall_ns - hold->second.wall_ns >= SECOND_NS) {
        struct mark now = mark_take(hold);
        rate_print(hold, &hold->second, &now, "second");
        hold->second = now;
    }
    return !rl_stop && !(run->hold_ns && wall_ns - hold->begin.wall_ns >= run->hold_ns);
}

static bool batches_hold(struct hold *hold)
{
    const struct rl_run *run = hold->run;
    while (between_batches(hold)) {
        uint64_t calls = hold->batch;
        if (run->calls && run->calls - hold->done < calls)
            calls = run->calls - hold->done;
        if (!calls)
            break;
        if (!batch_do(hold, calls))
            return false;
    }
    return true;
}

/* The workers hold; this thread only looks at what they publish. */
static bool crew_hold(struct hold *hold)
{
    rl_crew_hold(hold->run);
    while (between_batches(hold) && rl_crew_nap())
        crew_take(hold);
    if (!rl_crew_stop(hold->run))
        return false;
    crew_take(hold);
    return true;
}

static bool hold_on(struct hold *hold)
{
    hold->begin = mark_take(hold);
    hold->second = hold->begin;
    hold->slice = hold->begin;
    return hold->run->workload->work ? crew_hold(hold) : batches_hold(hold);
}

/* What each worker did: the ends of a hold, and how evenly the machine served them. */
static void workers_print(const struct rl_run *run)
{
    for (size_t i = 0; run->workload->work && i < run->processes * run->threads; i++) {
        struct rl_done done;
        rl_crew_worker_done(i, &done);
        double secs = (double)(done.end_ns - done.begin_ns) / SECOND_NS;
        (void)printf("WORKER index=%zu process=%zu tid=%" PRId64 " calls=%" PRIu64 " secs=%.6f rate=%.1f cpu_secs=%.6f"
                     " nvcsw=%" PRId64 " nivcsw=%" PRId64 "\n",
                     i, (size_t)(i / run->threads), done.tid, done.calls, secs, secs > 0 ? (double)done.calls / secs : 0.0,
                     (double)done.cpu_ns / SECOND_NS, done.nvcsw, done.nivcsw);
    }
}

int rl_protocol_run(struct rl_run *run)
{
    static struct hold hold; /* tens of kilobytes; one run per process */
    int status = 1;
    hold.run = run;
    hold.slots.slice_ns = SLOT_NS;
    signals_catch();
    if (!counter_open(&hold) || !warm_up(&hold))
        goto done;
    ready_print(&hold);
    if (!hold_on(&hold))
        goto done;
    struct mark end = mark_take(&hold);
    if (run->workload->settle)
        run->workload->settle(run);
    if (run->workload->work)
        rl_crew_close(run);
    rate_print(&hold, &hold.begin, &end, "run");
    workers_print(run);
    if (run->workload->finish)
        run->workload->finish(run, stdout);
    (void)printf("SUM %016" PRIx64 "\n", run->sum);
    drift_warn(&hold.slots);
    status = fflush(stdout) == 0 ? 0 : 1;
done:
    if (status && run->workload->settle)
        run->workload->settle(run);
    if (status && run->workload->work)
        rl_crew_close(run);
    if (hold.counter)
        (void)munmap((void *)hold.counter, 16);
    return status;
}
