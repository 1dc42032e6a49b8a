/* SPDX-License-Identifier: MIT */
/* See session.h. One thread: it wakes about ten times a second, takes what the rings hold, and names what is new. */
#include "fold/session.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/alloc.h"
#include "base/io.h"
#include "fold/fold.h"
#include "fold/unseen.h"
#include "sample/snapshot_file.h"

/* Between two looks at the rings. Longer: fewer wake-ups of our own; shorter: a smaller backlog at the end. The first looks come
 * sooner: whether the stack copy is long enough shows in the first few stacks, and what is cut until then stays cut. */
enum { WAIT_MS = 100, FIRST_WAIT_MS = 10, FIRST_NS = 200000000 };

/* The same while open waits are looked at through procfs: those that last longer are all seen, shorter ones by chance in proportion to their length. Names
 * need not be looked up as often. */
enum { LOOK_MS = 7, LOOK_MS_SPREAD = 7 }; /* never in step with a target that waits every 10 ms */
#define TICK_NS UINT64_C(100000000)

enum { STOPPED_TOLD = 2 };

struct rp_session {
    struct rp_session_options options;
    struct rp_images images;
    struct rp_unwinder *unwinder;
    struct rp_symbolizer *symbolizer;
    struct rp_sampler *sampler;
    struct rp_snapshot_writer *writer; /* NULL: snapshots are not saved */
    struct rp_profile profile;
    struct rp_fold fold;
    struct rp_session_stats stats;
    uint64_t start_ns, end_ns;
    uint64_t tick_ns;  /* when names were last looked up */
    bool looks;        /* open waits are looked at through procfs */
    uint64_t started_unix_ns;
    uint64_t lost; /* records lost up to the last drain */
    uint32_t cpus;     /* that the first process may use */
    uint64_t cpu_begin_ns, children_begin_ns; /* CPU time of the targets, and of their children, when sampling began */
    bool has_cpu_begin;
    bool has_profile; /* `profile` and `fold` are initialised */
};

static enum rp_status open_sampler(struct rp_session *s, struct rp_err *err)
{
    struct rp_process_info info;
    enum rp_status status = RP_OK;

    if (s->options.from_snapshots)
        return rp_sampler_replay_new(s->options.from_snapshots, &s->sampler, err);
    if (!s->options.sampler.npids)
        return rp_fail(err, RP_USAGE, "no process to watch; give one with --pid PID");
    for (size_t i = 0; !status && i < s->options.sampler.npids; i++)
        status = rp_process_read(s->options.sampler.pids[i], &info, err);
    return status ? status : rp_choose_new(s->options.sampler_wish, &s->options.sampler, &s->sampler, err);
}

enum rp_status rp_session_new(const struct rp_session_options *options, struct rp_session **out, struct rp_err *err)
{
    struct rp_session *s = rp_calloc(1, sizeof *s);
    enum rp_status status;

    if (!s)
        return rp_fail_nomem(err);
    s->options = *options;
    status = rp_images_init(&s->images, err);
    if (!status)
        status = open_sampler(s, err);
    if (!status)
        status = rp_unwinder_new(&s->images, &s->unwinder, err);
    if (!status)
        rp_unwinder_use(s->unwinder, options->engine);
    if (!status)
        status = rp_symbolizer_new(&s->images, s->unwinder, &options->symbolizer, &s->symbolizer, err);
    if (!status)
        status = rp_profile_init(&s->profile, err);
    if (!status) {
        s->has_profile = true;
        status = rp_fold_init(&s->fold, &s->images, s->unwinder, s->symbolizer, &s->profile, err);
        s->fold.replay = options->from_snapshots != NULL;
    }
    if (!status && options->save_snapshots)
        status = rp_snapshot_writer_new(options->save_snapshots, options->force, &s->images, &s->writer, err);
    if (status) {
        rp_session_free(s);
        return status;
    }
    *out = s;
    return RP_OK;
}

/* What the sampler turned out to be able to tell. */
static void note_sampler(struct rp_session *s)
{
    struct rp_sampler_stats stats = {0};

    s->sampler->ops->stats(s->sampler, &stats);
    s->fold.waits = stats.waits != 0;
    s->fold.children = s->options.sampler.children;
    s->fold.unrecorded = stats.source == RP_SOURCE_PTRACE;
    s->looks = stats.waits == 1 && !s->options.from_snapshots;
    /* ptrace stops a thread on its way out of the kernel: that time has its samples. */
    if (s->options.sampler.kernel && !stats.kernel_visible && stats.source != RP_SOURCE_PTRACE && !s->options.from_snapshots && stats.hz)
        s->fold.hidden_period_ns = 1000000000u / stats.hz;
}

/* Children that are there already. Those born from now on come as events, perhaps of a child that is here, too. */
static enum rp_status add_descendants(struct rp_session *s, struct rp_err *err)
{
    struct rp_pids pids = {0};
    enum rp_status status = RP_OK;

    for (size_t i = 0; !status && i < s->options.sampler.npids; i++)
        status = rp_children_read(s->options.sampler.pids[i], &pids, err);
    for (size_t i = 0; !status && i < pids.at.n; i++) {
        struct rp_process_info info;
        struct rp_err gone;

        if (rp_fold_watches(&s->fold, pids.at.at[i]) || rp_process_read(pids.at.at[i], &info, &gone))
            continue;
        status = rp_fold_add_process(&s->fold, &info, s->start_ns, err);
        if (!status && s->writer)
            status = rp_snapshot_writer_space(s->writer, &s->fold.processes.at[s->fold.processes.n - 1].space, err);
        if (status == RP_NOPROC) /* ended meanwhile */
            status = RP_OK;
    }
    rp_vec_release(&pids.at);
    return status;
}

/* Alone, so that none of its children is watched. */
static bool watches_one(const struct rp_session *s)
{
    return !s->options.from_snapshots && !s->options.sampler.children && s->options.sampler.npids == 1;
}

enum rp_status rp_session_start(struct rp_session *s, struct rp_err *err)
{
    struct timespec now;
    enum rp_status status = s->options.from_snapshots ? s->sampler->ops->start(s->sampler, err)
                                                      : rp_choose_start(s->options.sampler_wish, &s->options.sampler, &s->sampler, err);

    s->has_cpu_begin = !s->options.from_snapshots && rp_unseen_cpu_time(s->options.sampler.pids, s->options.sampler.npids, &s->cpu_begin_ns);
    if (watches_one(s))
        s->children_begin_ns = rp_unseen_children_time(s->options.sampler.pids[0]);
    clock_gettime(CLOCK_REALTIME, &now);
    s->started_unix_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    s->start_ns = rp_now_ns();
    if (!status)
        note_sampler(s);
    /* Mappings are read after sampling began: what comes later is told by records, so nothing falls between. */
    for (size_t i = 0; !status && !s->options.from_snapshots && i < s->options.sampler.npids; i++) {
        struct rp_process_info info;

        status = rp_process_read(s->options.sampler.pids[i], &info, err);
        if (!status && !s->cpus)
            s->cpus = rp_process_cpus(info.pid);
        if (!status)
            status = rp_fold_add_process(&s->fold, &info, s->start_ns, err);
        if (!status && s->writer)
            status = rp_snapshot_writer_space(s->writer, &s->fold.processes.at[s->fold.processes.n - 1].space, err);
    }
    if (!status && s->options.sampler.children && !s->options.from_snapshots)
        status = add_descendants(s, err);
    return status;
}

static enum rp_status take(void *context, const struct rp_event *event, struct rp_err *err)
{
    struct rp_session *s = context;
    enum rp_status status = s->writer ? rp_snapshot_writer_event(s->writer, event, err) : RP_OK;

    return status ? status : rp_fold_event(&s->fold, event, err);
}

static enum rp_status look(struct rp_session *s, struct rp_err *err)
{
    return s->looks ? rp_fold_look(&s->fold, rp_now_ns(), take, s, err) : RP_OK;
}

static enum rp_status drain(struct rp_session *s, bool final, struct rp_err *err)
{
    uint64_t begin = rp_now_ns(), middle;
    enum rp_status status = rp_fold_read_jit(&s->fold, err);

    if (!status)
        status = s->sampler->ops->drain(s->sampler, final, take, s, err);
    s->sampler->ops->stats(s->sampler, &s->stats.sampler);
    if (!status && s->stats.sampler.lost > s->lost)
        status = rp_fold_refresh(&s->fold, err);
    s->lost = s->stats.sampler.lost;
    middle = rp_now_ns();
    s->stats.unwind_ns += middle - begin;
    /* Before the names: while those are read in, stacks that are too short would go on coming. */
    if (!status && !final && s->fold.walked) {
        status = s->sampler->ops->feedback(s->sampler, s->fold.walked, s->fold.cut, err);
        s->fold.walked = s->fold.cut = 0;
    }
    middle = rp_now_ns();
    if (!status && (final || !s->looks || middle >= s->tick_ns + TICK_NS || middle < s->start_ns + FIRST_NS)) {
        s->tick_ns = middle;
        status = rp_fold_tick(&s->fold, err);
        s->stats.symbolize_ns += rp_now_ns() - middle;
    }
    return status;
}

enum rp_status rp_session_run(struct rp_session *s, uint64_t duration_ns, const volatile sig_atomic_t *stop, rp_session_progress *progress,
                              void *context, struct rp_err *err)
{
    uint64_t deadline = s->start_ns + duration_ns;
    bool ended = false;
    enum rp_status status = RP_OK;

    while (!status && !ended && !*stop) {
        uint64_t now = rp_now_ns();
        uint64_t left_ms = now < deadline ? (deadline - now + 999999) / 1000000 : 0;
        int wait_ms = now - s->start_ns < FIRST_NS ? FIRST_WAIT_MS : s->looks ? LOOK_MS + (int)(now / 1000 % LOOK_MS_SPREAD) : WAIT_MS;

        if (!left_ms)
            break;
        status = s->sampler->ops->wait(s->sampler, left_ms < (uint64_t)wait_ms ? (int)left_ms : wait_ms, &ended, err);
        /* The last drain is finish's: sampling must have ended for it. */
        if (!status && !*stop && rp_now_ns() < deadline)
            status = drain(s, false, err);
        if (!status && !ended && !*stop)
            status = look(s, err);
        if (!status && progress)
            progress(context, (double)(rp_now_ns() - s->start_ns) / 1e9, s->fold.samples);
    }
    return status;
}

static enum rp_status describe_run(struct rp_session *s, struct rp_err *err)
{
    static const char *const sources[] = {"cpu-clock", "cycles", "replay", "ptrace"};
    struct rp_run *run = &s->profile.run;
    const struct rp_sampler_stats *sampler = &s->stats.sampler;
    struct utsname host;
    enum rp_status status;

    run->started_unix_ns = s->started_unix_ns;
    run->seconds_ns = s->end_ns - s->start_ns;
    run->hz = sampler->hz;
    run->kernel_visible = sampler->kernel_visible;
    run->stack_bytes = sampler->stack_bytes;
    run->stack_grown = sampler->stack_grown;
    run->lost = sampler->lost;
    run->throttled = sampler->throttled;
    run->vanished = sampler->vanished;
    run->threads_unsampled = sampler->threads_unsampled;
    run->waits = sampler->waits;
    run->switches = s->fold.edges;
    run->wait_stacks = s->fold.wait_stacks;
    run->cpus = s->cpus;
    run->map_lines = s->stats.symbolizer.map_lines;
    run->map_rejected = s->stats.symbolizer.map_rejected;
    status = rp_profile_string(&s->profile, sources[sampler->source], strlen(sources[sampler->source]), &run->source, err);
    if (!status)
        status = rp_profile_string(&s->profile, sampler->note, strlen(sampler->note), &run->note, err);
    if (!status)
        status = rp_profile_string(&s->profile, s->sampler->ops->name, strlen(s->sampler->ops->name), &run->sampler, err);
    if (!status && !uname(&host))
        status = rp_profile_string(&s->profile, host.release, strlen(host.release), &run->host, err);
    return status;
}

/* Adds to the sampler's note; writes the same to `text`, "" when there is nothing to tell. Where other notes say why samples are missing,
 * this one stays away. */
static void note_unseen(struct rp_session *s, bool has_cpu, uint64_t cpu_ns, char *text, size_t size)
{
    struct rp_sampler_stats *sampler = &s->stats.sampler;
    struct rp_unseen unseen = {.samples = s->fold.samples + sampler->lost, .threads = s->profile.threads.n, .hz = sampler->hz};

    *text = '\0';
    if (!has_cpu || cpu_ns < s->cpu_begin_ns || !sampler->kernel_visible || sampler->throttled || sampler->threads_unsampled)
        return;
    unseen.cpu_ns = cpu_ns - s->cpu_begin_ns;
    if (!rp_unseen_matters(&unseen))
        return;
    rp_unseen_tell(&unseen, text, size);
    rp_sampler_note(sampler, "T%s.", text + 1);
}

/* A shell, a launcher: what one wants to see runs below it. */
static void note_children(struct rp_session *s, bool has_cpu, uint64_t cpu_ns)
{
    uint64_t now = watches_one(s) ? rp_unseen_children_time(s->options.sampler.pids[0]) : 0;
    uint64_t ns = now > s->children_begin_ns ? now - s->children_begin_ns : 0;

    if (rp_unseen_children_matter(ns, has_cpu && cpu_ns > s->cpu_begin_ns ? cpu_ns - s->cpu_begin_ns : 0))
        rp_sampler_note(&s->stats.sampler, "Children of the process used %.1f s of CPU time, which are not in this profile; --children follows them.", (double)ns / 1e9);
}

/* What a stopped process seems to wait in is the call in which the signal met it. */
static void note_stopped(struct rp_session *s)
{
    size_t told = 0;

    for (size_t i = 0; i < s->fold.processes.n && told < STOPPED_TOLD; i++) {
        const struct rp_fold_process *p = &s->fold.processes.at[i];
        struct rp_thread_info now = {0};
        bool still = p->live && rp_thread_read(p->pid, p->pid, &now) && now.state == 'T';

        if (!p->stopped && !still)
            continue;
        told++;
        if (still)
            rp_sampler_note(&s->stats.sampler, "Process %u is stopped (by SIGSTOP or Ctrl-Z)%s and waits for nothing else; `kill -CONT %u` lets it go on.",
                            p->pid, p->stopped ? "" : ", since some time in the recording,", p->pid);
        else
            rp_sampler_note(&s->stats.sampler, "Process %u was stopped (by SIGSTOP or Ctrl-Z) when the recording began.", p->pid);
    }
}

enum rp_status rp_session_finish(struct rp_session *s, struct rp_profile *profile, struct rp_err *err)
{
    uint64_t begin = rp_now_ns(), cpu_ns = 0;
    char unseen[256];
    bool has_cpu;
    enum rp_status status;

    s->sampler->ops->stop(s->sampler);
    has_cpu = s->has_cpu_begin && rp_unseen_cpu_time(s->options.sampler.pids, s->options.sampler.npids, &cpu_ns);
    s->end_ns = s->stats.end_ns = rp_now_ns();
    status = drain(s, true, err);
    if (status)
        return status;
    if (s->writer)
        status = rp_snapshot_writer_finish(s->writer, err);
    if (s->options.from_snapshots) { /* the time is that of the recording, not of reading it */
        s->start_ns = s->fold.start_ns;
        s->end_ns = s->fold.last_event_ns > s->start_ns ? s->fold.last_event_ns : s->start_ns; /* looks through procfs alone end nothing */
    }
    s->fold.lossy = s->lost > 0;
    if (!status)
        status = rp_fold_finish(&s->fold, s->end_ns, err);
    if (!status)
        status = rp_fold_tick(&s->fold, err);
    s->sampler->ops->stats(s->sampler, &s->stats.sampler);
    rp_unwinder_stats(s->unwinder, &s->stats.unwind);
    rp_symbolizer_stats(s->symbolizer, &s->stats.symbolizer);
    if (s->fold.first_sample_ns > s->start_ns)
        s->stats.first_sample_ns = s->fold.first_sample_ns - s->start_ns;
    note_unseen(s, has_cpu, cpu_ns, unseen, sizeof unseen);
    note_children(s, has_cpu, cpu_ns);
    note_stopped(s);
    if (!status)
        status = describe_run(s, err);
    if (status)
        return status;
    *profile = s->profile;
    s->profile = (struct rp_profile){0};
    s->fold.profile = profile;
    s->stats.finish_ns = rp_now_ns() - begin;
    if (s->fold.samples)
        return RP_OK;
    if (*unseen)
        return rp_fail(err, RP_NOTHING, "no sample was taken: %s", unseen);
    return rp_fail(err, RP_NOTHING, "no thread of the target ran on a CPU in %.1f s: nothing to show; give it work, watch longer with --seconds, or follow its children with --children",
                   (double)(s->end_ns - s->start_ns) / 1e9);
}

struct rp_sampler *rp_session_sampler(struct rp_session *s)
{
    return s->sampler;
}

void rp_session_stats(const struct rp_session *s, struct rp_session_stats *stats)
{
    *stats = s->stats;
}

void rp_session_free(struct rp_session *s)
{
    if (!s)
        return;
    if (s->sampler)
        s->sampler->ops->free(s->sampler);
    rp_snapshot_writer_free(s->writer);
    if (s->has_profile) {
        rp_fold_release(&s->fold);
        rp_profile_release(&s->profile);
    }
    rp_symbolizer_free(s->symbolizer);
    rp_unwinder_free(s->unwinder);
    rp_images_release(&s->images);
    rp_free(s);
}
