/* SPDX-License-Identifier: MIT */
/* Clocks of whole CPUs in place of the threads' own.
 *
 * A thread's clock is a timer that stands still while the thread does: it is set anew at each switch, which costs some microseconds, more than the switch
 * itself in a virtual machine. A program with 5 000 switches per second loses a tenth of its speed so. The clock of a CPU runs on whoever is there. It
 * samples other processes too, whose samples are dropped here, so it is taken only where threads switch often and where the kernel lets us.
 *
 * Its price: no interrupt is taken within a switch, so a sample due there is of whoever comes next; of a program with 50 000 switches a second beside busy
 * others half of the samples were missing. CPU times are not touched, they come from switch records. And samples of others are copied with their stacks before
 * they can be dropped: where they fill the rings, so that records are lost, the threads get their own clocks again.
 *
 * The traps: in mid-run the threads keep events for side records, so that births, mappings and switches are told without a gap, and the old clocks stop
 * before the new ones begin, so that nothing is counted twice. And a CPU's clock also sees threads after their end was told, and strangers under a number
 * that a target had: only who is known from side records counts (rp_perf_owners_cover). */
#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "sample/perf_private.h"

enum {
    WINDOW_NS = 100000000,
    WINDOWS = 3,   /* in a row: a burst is not worth a change */
    OFTEN = 2000,  /* switch records per second, two for each switch: the clocks set anew would take about a hundredth of a CPU */
    CPUS_MAX = 64, /* beyond, the samples of others that are dropped would cost more than is won */
};

/* A CPU that is switched off needs none. */
static bool open_clock(struct rp_perf_sampler *s, uint32_t ring, struct rp_perf_events *clocks)
{
    int fd = rp_perf_open_clock(&s->want, s->rings.at[ring].cpu);
    uint64_t id = fd < 0 ? 0 : rp_perf_event_id(fd);
    struct rp_perf_event *slot;

    if (fd < 0)
        return fd == -ENODEV;
    slot = id && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, s->rings.at[ring].fd) == 0 && rp_perf_ids_add(&s->clocks.ids, id) ? rp_vec_add(&clocks->at) : NULL;
    if (!slot) {
        close(fd);
        return false;
    }
    *slot = (struct rp_perf_event){fd, -1, ring, id, 0};
    return true;
}

static bool open_clocks(struct rp_perf_sampler *s, struct rp_perf_events *clocks)
{
    bool good = s->rings.n <= CPUS_MAX;

    for (uint32_t r = 0; good && r < s->rings.n; r++)
        good = open_clock(s, r, clocks);
    if (!good)
        rp_perf_set_close(s, clocks);
    return clocks->at.n > 0;
}

bool rp_perf_clocks_reopen(struct rp_perf_sampler *s)
{
    struct rp_perf_events fresh = {0};

    if (!open_clocks(s, &fresh))
        return false;
    if (!rp_perf_set_enable(&fresh, true)) {
        rp_perf_set_close(s, &fresh);
        return false;
    }
    rp_perf_set_close(s, &s->clocks.events);
    s->clocks.events = fresh;
    return true;
}

static enum rp_status take_over(struct rp_perf_sampler *s, struct rp_err *err)
{
    struct rp_perf_events clocks = {0};
    struct rp_perf_want want = s->want;
    bool done = false;
    enum rp_status status = RP_OK;

    want.clockless = true;
    if (open_clocks(s, &clocks))
        status = rp_perf_set_replace(s, &want, &done, err);
    if (!done) {
        rp_perf_set_close(s, &clocks);
        s->clocks.refused = true;
        return status;
    }
    s->clocks.events = clocks;
    (void)rp_perf_set_enable(&s->clocks.events, true);
    s->stats.whole_cpus = true;
    rp_sampler_note(&s->stats, "Threads switch often, so whole CPUs are sampled, which slows them less, and samples of other processes are dropped; the moment"
                               " of a switch itself is sampled too rarely.");
    return RP_OK;
}

/* The other way round; it stays so. Off before the others are on: nothing is counted twice. */
static enum rp_status give_back(struct rp_perf_sampler *s, struct rp_err *err)
{
    struct rp_perf_want want = s->want;
    bool done = false;
    enum rp_status status;

    want.clockless = false;
    s->clocks.refused = true;
    (void)rp_perf_set_enable(&s->clocks.events, false);
    status = rp_perf_set_replace(s, &want, &done, err);
    if (!done) {
        (void)rp_perf_set_enable(&s->clocks.events, true);
        return status;
    }
    rp_perf_set_close(s, &s->clocks.events);
    s->stats.whole_cpus = false;
    rp_sampler_note(&s->stats, "Samples of other processes filled the buffers, so that was ended.");
    return RP_OK;
}

enum rp_status rp_perf_clocks_adapt(struct rp_perf_sampler *s, uint64_t now_ns, struct rp_err *err)
{
    struct rp_perf_clocks *c = &s->clocks;
    struct rp_perf_clocks_by by = {s->stats.switches, s->stats.samples, c->foreign, s->lost_records};
    uint64_t passed = now_ns - c->window_ns;
    bool on = c->events.at.n > 0, often, crowded;

    if (c->refused || s->stats.system_wide || !s->want.switches || passed < WINDOW_NS)
        return RP_OK;
    often = (by.switches - c->by.switches) * 1000000000u / passed >= OFTEN;
    crowded = by.lost > c->by.lost && by.foreign - c->by.foreign > by.samples - c->by.samples;
    c->window_ns = now_ns;
    c->by = by;
    c->often = (on ? crowded : often) ? c->often + 1 : 0;
    if (c->often < WINDOWS)
        return RP_OK;
    c->often = 0;
    return on ? give_back(s, err) : take_over(s, err);
}
