/* SPDX-License-Identifier: MIT */
/* Stacks of threads that go off the CPU, beside the sampling events and into the same rings.
 *
 * The trap: a copy at each of 100 000 switches per second would be gigabytes. Each event has a frequency, so the kernel lengthens the period of a thread that
 * switches often, children included (an ioctl does not reach those); where many threads together pass the budget, the frequency of all is lowered. Exact
 * numbers and times come from switch records, never from these. */
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/io.h"
#include "sample/perf_private.h"

enum {
    BUDGET = 800,       /* stacks per second, all threads together: what unwinding and copying of a few per cent of one CPU allows */
    THREAD_HZ_MAX = 200, /* of one thread on one CPU */
    THREAD_HZ_MIN = 4,
    WINDOW_NS = 250000000,
};

static bool add_id(struct rp_perf_peeks *peeks, uint64_t id)
{
    uint64_t *slot = rp_vec_add(&peeks->ids);

    if (slot)
        *slot = id;
    return slot != NULL;
}

/* The same thread and CPU as a sampling event. False: not to be had. */
static bool open_beside(struct rp_perf_sampler *s, const struct rp_perf_event *event)
{
    int ring = s->rings.at[event->ring].fd, fd = rp_perf_open_peek(&s->want, s->peeks.hz, event->tid, s->rings.at[event->ring].cpu);
    struct rp_perf_event *slot;
    uint64_t id = fd < 0 ? 0 : rp_perf_event_id(fd);

    if (fd < 0)
        return false;
    slot = id && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring) == 0 && add_id(&s->peeks, id) ? rp_vec_add(&s->peeks.events.at) : NULL;
    if (!slot) {
        close(fd);
        return false;
    }
    *slot = (struct rp_perf_event){fd, event->tid, event->ring, id};
    return true;
}

void rp_perf_peeks_open(struct rp_perf_sampler *s)
{
    size_t room = rp_perf_set_room(s), threads = s->rings.n ? s->events.at.n / s->rings.n : 0;

    if (!s->want.kernel || !s->want.switches || !threads)
        return;
    if (!s->peeks.hz) {
        size_t hz = BUDGET / threads;

        s->peeks.hz = hz > THREAD_HZ_MAX ? (uint32_t)THREAD_HZ_MAX : hz < THREAD_HZ_MIN ? (uint32_t)THREAD_HZ_MIN : (uint32_t)hz;
    }
    for (size_t i = 0; i < s->events.at.n && s->events.at.n + s->peeks.events.at.n < room; i++)
        (void)open_beside(s, &s->events.at.at[i]); /* a thread may have ended */
    if (s->running)
        (void)rp_perf_set_enable(&s->peeks.events, true);
}

bool rp_perf_peeks_own(const struct rp_perf_peeks *peeks, uint64_t id)
{
    size_t low = 0, high = peeks->ids.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (peeks->ids.at[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < peeks->ids.n && peeks->ids.at[low] == id;
}

void rp_perf_peeks_count(struct rp_perf_sampler *s, uint64_t time_ns)
{
    struct rp_perf_peeks *peeks = &s->peeks;
    uint64_t passed = time_ns - peeks->window_ns;

    s->stats.peeks++;
    if (time_ns < peeks->window_ns || ++peeks->taken == 1)
        return;
    if (passed < WINDOW_NS)
        return;
    if (peeks->taken * 1000000000u / passed > BUDGET * 5 / 4 && peeks->hz > THREAD_HZ_MIN) {
        peeks->hz = peeks->hz / 2 < THREAD_HZ_MIN ? (uint32_t)THREAD_HZ_MIN : peeks->hz / 2;
        for (size_t i = 0; i < peeks->events.at.n; i++)
            (void)rp_perf_set_peek_rate(peeks->events.at.at[i].fd, peeks->hz);
    }
    peeks->window_ns = time_ns;
    peeks->taken = 0;
}

void rp_perf_peeks_close(struct rp_perf_sampler *s)
{
    rp_perf_set_close(s, &s->peeks.events);
}
