/* SPDX-License-Identifier: MIT */
/* Stacks of threads that go off the CPU, beside the sampling events and into the same rings.
 *
 * The traps: a copy at each of 100 000 switches per second would be gigabytes, so there is a budget for all threads together, kept by the period. (The kernel's
 * own frequency mode takes two switches in a row for 20 000 per second and then leaves most out.) A thread that waits for a lock and for a disk in turns would show
 * one of them only under an even period, so periods are drawn at random around the wanted one. Exact numbers and times come from switch records, never
 * from these. */
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/io.h"
#include "base/random.h"
#include "sample/perf_private.h"

enum {
    BUDGET = 1000,          /* stacks per second, all threads together: copying and unwinding them takes a few per cent of one CPU */
    WINDOW_NS = 100000000,
    JITTER_NS = 20000000,   /* how long a drawn period stays */
    JITTER_EVENTS = 64,     /* … for so many events; more in proportion: each costs a system call */
    PERIOD_FIRST = 16,      /* a flood from the first moment on would fill the rings; it takes half a second to come down */
    PERIOD_MAX = 1 << 20,
    FLOODS_MAX = 10,        /* one second */
};

/* The same thread and CPU as a sampling event. False: not to be had. */
static bool open_beside(struct rp_perf_sampler *s, const struct rp_perf_event *event)
{
    int ring = s->rings.at[event->ring].fd, fd = rp_perf_open_peek(&s->want, s->peeks.period, event->tid, s->rings.at[event->ring].cpu);
    struct rp_perf_event *slot;
    uint64_t id = fd < 0 ? 0 : rp_perf_event_id(fd);

    if (fd < 0)
        return false;
    slot = id && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring) == 0 && rp_perf_ids_add(&s->peeks.ids, id) ? rp_vec_add(&s->peeks.events.at) : NULL;
    if (!slot) {
        close(fd);
        return false;
    }
    *slot = (struct rp_perf_event){fd, event->tid, event->ring, id, 0};
    return true;
}

void rp_perf_peeks_open(struct rp_perf_sampler *s)
{
    size_t room = rp_perf_set_room(s);

    /* System-wide, the switches of every process of the machine would be copied. */
    if (!s->want.kernel || !s->want.switches || s->stats.system_wide || s->peeks.floods == FLOODS_MAX)
        return;
    if (!s->peeks.period) {
        s->peeks.period = PERIOD_FIRST;
        s->peeks.random = rp_now_ns() | 1;
    }
    for (size_t i = 0; i < s->events.at.n && s->events.at.n + s->peeks.events.at.n < room; i++)
        (void)open_beside(s, &s->events.at.at[i]); /* a thread may have ended */
    if (s->running)
        (void)rp_perf_set_enable(&s->peeks.events, true);
}

/* Evenly from [1, 2 period - 1]. */
static void draw_periods(struct rp_perf_peeks *peeks)
{
    for (size_t i = 0; i < peeks->events.at.n; i++)
        (void)rp_perf_set_peek_period(peeks->events.at.at[i].fd, 1 + rp_random_next(&peeks->random) % (2 * peeks->period - 1));
}

/* Threads that were born under a shorter period keep it. If they flood, they and all others are no longer copied at switches: procfs has the long waits. */
static bool is_flood(struct rp_perf_sampler *s, uint64_t rate)
{
    struct rp_perf_peeks *peeks = &s->peeks;

    peeks->floods = rate > 4 * BUDGET ? peeks->floods + 1 : 0;
    if (peeks->floods < FLOODS_MAX)
        return false;
    rp_perf_peeks_close(s);
    return true;
}

void rp_perf_peeks_adapt(struct rp_perf_sampler *s, uint64_t now_ns)
{
    struct rp_perf_peeks *peeks = &s->peeks;
    uint64_t passed = now_ns - peeks->window_ns, old = peeks->period, rate, slots = peeks->events.at.n / JITTER_EVENTS + 1;

    if (!peeks->events.at.n)
        return;
    if (passed >= WINDOW_NS) {
        rate = (s->stats.peeks - peeks->taken) * 1000000000u / passed;
        if (is_flood(s, rate))
            return;
        /* Up at once, down by half of the way: a burst must not be paid for long. */
        peeks->period = rate > BUDGET ? old * rate / BUDGET + 1 : (old + old * rate / BUDGET + 1) / 2;
        peeks->period = peeks->period < 1 ? 1 : peeks->period > PERIOD_MAX ? (uint64_t)PERIOD_MAX : peeks->period;
        peeks->window_ns = now_ns;
        peeks->taken = s->stats.peeks;
    }
    if (peeks->period != old || (peeks->period > 1 && now_ns - peeks->jitter_ns >= JITTER_NS * slots)) {
        draw_periods(peeks);
        peeks->jitter_ns = now_ns;
    }
}

void rp_perf_peeks_close(struct rp_perf_sampler *s)
{
    rp_perf_set_close(s, &s->peeks.events);
}
