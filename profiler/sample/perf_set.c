/* SPDX-License-Identifier: MIT */
/* Which events are open: one per (thread, CPU), all of a CPU writing into one ring.
 *
 * The traps: threads come and go while they are listed, so the list is read again until it brings nothing new, and a refusal counts only when the
 * thread is still there; a thread that was born meanwhile may be covered twice (perf_owner.h sorts that out); the limits on open files and locked memory
 * are per process and per user, so what does not fit is tried smaller, then another way, and what is left out is counted. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "sample/perf_private.h"
#include "target/permission.h"
#include "target/process.h"

enum {
    FILES_RESERVED = 256,              /* images, debug files, our own */
    RING_BYTES = 16 << 20,             /* 500 ms of 32 KiB copies at 997 Hz */
    RING_BYTES_MIN = 64 << 10,
    RINGS_BYTES_MAX = 128 << 20,       /* all CPUs together */
    LIST_ROUNDS_MAX = 8,
    EXIT_CHECKS = 5,                   /* looks at a thread that was refused, 1 ms apart */
    RECORDS_PER_RING_MIN = 8,          /* below that, larger copies lose more than they win */
};

/* A thread that is to be opened. */
struct candidate {
    uint32_t pid, tid;
    uint64_t cpu_ns;
};

struct candidates {
    RP_VEC(struct candidate) at;
};

static int by_tid(const void *a, const void *b)
{
    uint32_t x = ((const struct candidate *)a)->tid, y = ((const struct candidate *)b)->tid;

    return x < y ? -1 : x > y;
}

static int busiest_first(const void *a, const void *b)
{
    uint64_t x = ((const struct candidate *)a)->cpu_ns, y = ((const struct candidate *)b)->cpu_ns;

    return x != y ? (x > y ? -1 : 1) : by_tid(a, b);
}

static enum rp_status add_descendants(struct rp_perf_sampler *s, struct rp_err *err)
{
    struct rp_pids pids = {0};
    enum rp_status status = RP_OK;

    for (size_t t = 0, n = s->targets.n; t < n && !status; t++)
        status = rp_children_read(s->targets.at[t].pid, &pids, err);
    for (size_t i = 0; i < pids.at.n && !status; i++)
        status = rp_perf_target_add(s, pids.at.at[i], err);
    rp_vec_release(&pids.at);
    return status;
}

/* All threads of all targets that are not in `known` (sorted by tid). A target that is gone has none. */
static enum rp_status list_new(struct rp_perf_sampler *s, const struct candidates *known, struct candidates *found, struct rp_err *err)
{
    struct rp_thread_infos threads = {0};
    enum rp_status status = s->options.children ? add_descendants(s, err) : RP_OK;

    for (size_t t = 0; t < s->targets.n && !status; t++) {
        uint32_t pid = s->targets.at[t].pid;

        status = rp_threads_read(pid, &threads, err);
        if (status == RP_NOPROC) {
            status = RP_OK;
            continue;
        }
        for (size_t i = 0; i < threads.at.n && !status; i++) {
            struct candidate c = {pid, threads.at.at[i].tid, threads.at.at[i].cpu_ns}, *slot;

            if (known->at.n && bsearch(&c, known->at.at, known->at.n, sizeof c, by_tid))
                continue;
            slot = rp_vec_add(&found->at);
            if (slot)
                *slot = c;
            else
                status = rp_fail_nomem(err);
        }
    }
    rp_threads_release(&threads);
    return status;
}

static bool is_live(const struct candidate *c)
{
    struct rp_thread_info info;

    return rp_thread_read(c->pid, c->tid, &info) && !strchr("ZX", info.state);
}

/* Whether a refused thread is (nearly) gone: a thread that is exiting has no memory any more and is refused for that. */
static bool is_going(const struct candidate *c, int result)
{
    int checks = result == -EPERM || result == -EACCES ? EXIT_CHECKS : 1;

    for (; checks > 0 && is_live(c); checks--) {
        if (checks > 1)
            usleep(1000);
    }
    return checks > 0;
}

static void close_events_of(struct rp_perf_sampler *s, struct rp_perf_events *events, size_t from)
{
    for (size_t i = from; i < events->at.n; i++) {
        s->lost_closed += rp_perf_event_lost(events->at.at[i].fd, s->want.count_lost);
        close(events->at.at[i].fd);
    }
    events->at.n = from;
}

void rp_perf_set_close(struct rp_perf_sampler *s, struct rp_perf_events *events)
{
    close_events_of(s, events, 0);
    rp_vec_release(&events->at);
}

/* One thread (or -1) on all CPUs. 0, or -errno with nothing of it left open. */
static int open_on_all_cpus(struct rp_perf_sampler *s, int tid, struct rp_perf_events *events)
{
    size_t from = events->at.n;
    int result = 0;

    if (!rp_vec_reserve(&events->at, s->rings.n))
        return -ENOMEM;
    for (uint32_t r = 0; r < s->rings.n && !result; r++) {
        int fd = rp_perf_open_event(&s->want, tid, s->rings.at[r].cpu);

        if (fd == -ENODEV) /* switched off since */
            continue;
        if (fd < 0) {
            result = fd;
        } else {
            events->at.at[events->at.n++] = (struct rp_perf_event){fd, tid, r, rp_perf_event_id(fd), 0};
            if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, s->rings.at[r].fd) != 0)
                result = -errno;
        }
    }
    if (result)
        close_events_of(s, events, from);
    return result;
}

/* What came of opening a list of threads. */
struct opening {
    uint32_t opened, unsampled, vanished;
    int refusal;         /* -errno of a thread that is still there */
    uint32_t refused_pid;
};

static void open_candidates(struct rp_perf_sampler *s, const struct candidates *list, size_t room, struct rp_perf_events *events, struct opening *o)
{
    for (size_t i = 0; i < list->at.n; i++) {
        const struct candidate *c = &list->at.at[i];
        int result = events->at.n + s->rings.n > room ? -EMFILE : open_on_all_cpus(s, (int)c->tid, events);

        if (!result) {
            o->opened++;
        } else if (result == -ESRCH || is_going(c, result)) {
            o->vanished++;
        } else {
            o->unsampled++;
            o->refusal = result;
            o->refused_pid = c->pid;
        }
    }
}

/* Per-CPU events over everything, filtered by process when read. False: not allowed. */
static bool open_system_wide(struct rp_perf_sampler *s, struct rp_perf_events *events)
{
    struct rp_perf_want saved = s->want;

    s->want.inherit = s->want.inherit_thread = false;
    if (!s->options.enable_on_exec && open_on_all_cpus(s, -1, events) == 0) {
        s->stats.system_wide = true;
        return true;
    }
    s->want = saved;
    return false;
}

size_t rp_perf_set_room(const struct rp_perf_sampler *s)
{
    uint64_t files = rp_raise_limits();
    uint64_t reserved = FILES_RESERVED + s->rings.n + s->targets.n;

    if (s->options.max_events)
        return s->options.max_events;
    if (files < reserved * 2)
        return (size_t)(files / 2);
    return files - reserved > INT32_MAX ? INT32_MAX : (size_t)(files - reserved);
}

static enum rp_status explain(uint32_t pid, int error, struct rp_err *err)
{
    struct rp_permission_facts facts;

    rp_permission_facts_read(pid, &facts);
    return rp_permission_explain(&facts, "perf_event_open", -error, err);
}

static enum rp_status remember(struct candidates *known, const struct candidates *more, struct rp_err *err)
{
    if (!rp_vec_reserve(&known->at, more->at.n))
        return rp_fail_nomem(err);
    if (more->at.n)
        memcpy(known->at.at + known->at.n, more->at.at, more->at.n * sizeof *more->at.at);
    known->at.n += more->at.n;
    qsort(known->at.at, known->at.n, sizeof *known->at.at, by_tid);
    return RP_OK;
}

/* Opens events for every thread there is, again until nobody new is found. */
static enum rp_status open_threads(struct rp_perf_sampler *s, size_t room, struct rp_perf_events *events, struct opening *o, struct rp_err *err)
{
    struct candidates known = {0}, found = {0};
    enum rp_status status = RP_OK;

    for (int round = 0; round < LIST_ROUNDS_MAX && !status; round++) {
        rp_vec_clear(&found.at);
        status = list_new(s, &known, &found, err);
        if (status || !found.at.n)
            break;
        if (round == 0 && found.at.n * s->rings.n > room && open_system_wide(s, events))
            break;
        qsort(found.at.at, found.at.n, sizeof *found.at.at, busiest_first);
        open_candidates(s, &found, room, events, o);
        status = remember(&known, &found, err);
    }
    rp_vec_release(&known.at);
    rp_vec_release(&found.at);
    return status;
}

static size_t power_of_two_at_most(size_t x)
{
    size_t power = 1;

    while (power <= x / 2)
        power *= 2;
    return power;
}

static int map_all(struct rp_perf_sampler *s, size_t pages)
{
    for (size_t i = 0; i < s->rings.n; i++) {
        int result = rp_perf_ring_map(&s->rings.at[i], pages);

        if (result) {
            while (i-- > 0)
                rp_perf_ring_unmap(&s->rings.at[i]);
            return result;
        }
    }
    return 0;
}

/* All rings get the same size: the wish, or half of it, and so on, until the limit on locked memory allows it. */
static enum rp_status map_rings(struct rp_perf_sampler *s, struct rp_err *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), wish = (size_t)RINGS_BYTES_MAX / s->rings.n, least = RING_BYTES_MIN / page, pages;
    int result;

    wish = wish > RING_BYTES ? (size_t)RING_BYTES : wish < RING_BYTES_MIN ? (size_t)RING_BYTES_MIN : wish;
    pages = power_of_two_at_most(s->options.ring_pages ? s->options.ring_pages : wish / page);
    for (wish = pages;; pages /= 2) {
        result = map_all(s, pages);
        if (!result)
            break;
        if ((result != -EPERM && result != -ENOMEM) || pages / 2 < least)
            return rp_fail(err, result == -EPERM ? RP_PERM : RP_NOMEM,
                           "mapping %zu KiB of sampling buffer per CPU was refused (%s): the limits are kernel.perf_event_mlock_kb and ulimit -l; "
                           "raise one of them, or end other profilers of this user",
                           pages * page / 1024, strerror(-result));
    }
    s->stats.ring_pages = (uint32_t)pages;
    if (pages < wish && pages * page < RING_BYTES / 8)
        rp_sampler_note(&s->stats, "The sampling buffer is %zu KiB per CPU instead of %zu (limits: kernel.perf_event_mlock_kb, ulimit -l), so samples are lost sooner.",
                     pages * page / 1024, wish * page / 1024);
    return RP_OK;
}

static enum rp_status open_rings(struct rp_perf_sampler *s, struct rp_err *err)
{
    for (size_t i = 0; i < s->cpus.at.n; i++) {
        struct rp_perf_ring ring, *slot;
        int result = rp_perf_ring_open(&ring, s->cpus.at.at[i]);

        if (result == -ENODEV)
            continue;
        if (result)
            return explain((uint32_t)getpid(), result, err);
        slot = rp_vec_add(&s->rings);
        if (!slot) {
            rp_perf_ring_close(&ring);
            return rp_fail_nomem(err);
        }
        *slot = ring;
    }
    s->pending = rp_calloc(s->rings.n ? s->rings.n : 1, sizeof *s->pending);
    if (!s->pending)
        return rp_fail_nomem(err);
    return s->rings.n ? map_rings(s, err) : rp_fail(err, RP_FAILED, "no CPU lets itself be sampled; look at /sys/devices/system/cpu/online");
}

/* Finds out what may be asked for, on the first thread that is there. */
static enum rp_status probe(struct rp_perf_sampler *s, int cpu, struct rp_err *err)
{
    struct candidates none = {0}, list = {0};
    enum rp_status status = list_new(s, &none, &list, err);
    int result = -ESRCH, refused = -ESRCH;
    uint32_t pid = s->targets.at[0].pid;

    for (size_t i = 0; i < list.at.n && !status; i++) {
        struct rp_perf_want want = s->want;

        pid = refused == -ESRCH ? list.at.at[i].pid : pid;
        result = rp_perf_open_probe(&want, (int)list.at.at[i].tid, cpu);
        if (result >= 0) {
            close(result);
            s->want = want;
            break;
        }
        refused = result == -ESRCH || !is_live(&list.at.at[i]) ? refused : result;
    }
    rp_vec_release(&list.at);
    return status || result >= 0 ? status : explain(pid, refused, err);
}

static void note_what_is_missing(struct rp_perf_sampler *s)
{
    struct rp_permission_facts facts;

    s->stats.source = s->want.source;
    s->stats.kernel_visible = s->want.kernel;
    s->stats.stack_bytes = s->want.stack_bytes;
    if (s->options.cycles_wanted && s->want.source == RP_SOURCE_CPU_CLOCK)
        rp_sampler_note(&s->stats, "There is no hardware cycle counter here; the CPU clock is sampled instead.");
    if (s->options.kernel && !s->want.kernel) {
        rp_permission_facts_read(s->targets.at[0].pid, &facts);
        rp_sampler_note(&s->stats, "Kernel time is not sampled: kernel.perf_event_paranoid is %d (1 or less would show it) and rowprof lacks CAP_PERFMON.", facts.paranoid);
    }
}

static void note_opening(struct rp_perf_sampler *s, const struct opening *o)
{
    s->stats.vanished += o->vanished;
    s->stats.threads_unsampled = o->unsampled;
    if (s->stats.system_wide)
        rp_sampler_note(&s->stats, "There are more threads than open files allow, so whole CPUs are sampled and other processes dropped.");
    else if (o->unsampled)
        rp_sampler_note(&s->stats, "%u threads are not sampled, the least busy ones (%s; raise ulimit -n).", o->unsampled, strerror(-o->refusal));
}

/* The kernel lowers its maximum by itself when sampling proved slow; asking for more ends in throttling, or in a refusal that looks like another. */
static void clamp_rate(struct rp_perf_sampler *s)
{
    uint64_t most = rp_max_sample_rate();

    if (s->want.hz > most) {
        rp_sampler_note(&s->stats, "The rate is %u per second instead of %u (kernel.perf_event_max_sample_rate).", (uint32_t)most, s->want.hz);
        s->want.hz = (uint32_t)most;
    }
    s->stats.hz = s->want.hz;
}

enum rp_status rp_perf_set_open(struct rp_perf_sampler *s, struct rp_err *err)
{
    struct opening o = {0};
    enum rp_status status = rp_cpu_list_read(&s->cpus, err);

    clamp_rate(s);
    if (!status)
        status = probe(s, s->cpus.at.at[0], err);
    if (!status)
        status = open_rings(s, err);
    if (!status)
        status = open_threads(s, rp_perf_set_room(s), &s->events, &o, err);
    if (!status && !s->events.at.n)
        status = explain(o.refusal ? o.refused_pid : s->targets.at[0].pid, o.refusal ? o.refusal : -ESRCH, err);
    if (!status) {
        note_what_is_missing(s);
        note_opening(s, &o);
        rp_perf_peeks_open(s);
    }
    return status;
}

static uint64_t lowest_id(const struct rp_perf_events *events)
{
    uint64_t lowest = UINT64_MAX;

    for (size_t i = 0; i < events->at.n; i++)
        lowest = events->at.at[i].id < lowest ? events->at.at[i].id : lowest;
    return lowest;
}

enum rp_status rp_perf_set_replace(struct rp_perf_sampler *s, const struct rp_perf_want *want, bool *done, struct rp_err *err)
{
    struct rp_perf_events fresh = {0};
    struct rp_perf_want saved = s->want;
    size_t room = rp_perf_set_room(s), open = s->events.at.n + s->peeks.events.at.n + s->rings.n; /* and as many clocks */
    bool was_wide = s->stats.system_wide;
    struct opening o = {0};
    enum rp_status status = RP_OK;

    *done = false;
    if (room < open + s->events.at.n)
        return RP_OK;
    s->want = *want;
    s->want.enable_on_exec = false;
    if (!was_wide)
        status = open_threads(s, room - open, &fresh, &o, err);
    else if (open_on_all_cpus(s, -1, &fresh) != 0)
        o.unsampled = 1;
    if (status || o.unsampled || s->stats.system_wide != was_wide || !fresh.at.n || !rp_perf_set_enable(&fresh, true)) {
        rp_perf_set_close(s, &fresh);
        s->stats.system_wide = was_wide;
        s->want = saved;
        return status;
    }
    s->owners.newest = lowest_id(&fresh);
    (void)rp_perf_set_enable(&s->events, false);
    rp_perf_set_close(s, &s->events);
    s->events = fresh;
    s->stats.vanished += o.vanished;
    *done = true;
    return RP_OK;
}

enum rp_status rp_perf_set_grow(struct rp_perf_sampler *s, uint32_t stack_bytes, struct rp_err *err)
{
    struct rp_perf_want want = s->want;
    bool fits = s->rings.at[0].data_bytes / stack_bytes >= RECORDS_PER_RING_MIN, files = rp_perf_set_room(s) >= s->events.at.n * 2, done;
    enum rp_status status = RP_OK;

    if (!fits || !files) {
        rp_sampler_note(&s->stats, "Stacks are cut at %u bytes, and a larger copy does not fit the limits (%s).", s->want.stack_bytes,
                     files ? "kernel.perf_event_mlock_kb, ulimit -l" : "ulimit -n");
        s->growth.may = false;
        return RP_OK;
    }
    rp_perf_peeks_close(s);
    want.stack_bytes = stack_bytes;
    /* Of the clocks' side, too: peeks are opened beside the events of threads, so those born meanwhile need their own. */
    status = rp_perf_set_replace(s, &want, &done, err);
    if (done && s->clocks.events.at.n)
        done = rp_perf_clocks_reopen(s);
    s->growth.may = s->growth.may && done;
    if (done) {
        s->stats.stack_bytes = stack_bytes;
        s->growth.grown++;
    }
    rp_perf_peeks_open(s);
    return status;
}

bool rp_perf_set_enable(const struct rp_perf_events *events, bool on)
{
    bool good = true;

    for (size_t i = 0; i < events->at.n; i++)
        good = ioctl(events->at.at[i].fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) == 0 && good;
    return good;
}

static struct rp_perf_event *find_event(const struct rp_perf_sampler *s, uint64_t id)
{
    for (size_t i = 0; i < s->events.at.n; i++) {
        if (s->events.at.at[i].id == id)
            return &s->events.at.at[i];
    }
    return NULL;
}

uint64_t rp_perf_set_drop_own(struct rp_perf_sampler *s, uint32_t tid, uint64_t a, uint64_t b)
{
    struct rp_perf_event *x = find_event(s, a), *y = find_event(s, b), *own;

    /* Records of an event that is closed already may still lie in the ring: they are no reason to close the other. */
    if (!x || !y)
        return 0;
    own = x->tid == (int)tid ? x : y->tid == (int)tid ? y : NULL;
    if (!own)
        return 0;
    s->lost_closed += rp_perf_event_lost(own->fd, s->want.count_lost);
    close(own->fd);
    *own = s->events.at.at[--s->events.at.n];
    return own == x ? b : a;
}

static uint64_t lost_by(const struct rp_perf_sampler *s, const struct rp_perf_events *events)
{
    uint64_t lost = 0;

    for (size_t i = 0; i < events->at.n; i++)
        lost += rp_perf_event_lost(events->at.at[i].fd, s->want.count_lost);
    return lost;
}

void rp_perf_set_count_lost(struct rp_perf_sampler *s)
{
    s->lost_open = lost_by(s, &s->events) + lost_by(s, &s->peeks.events) + lost_by(s, &s->clocks.events);
}
