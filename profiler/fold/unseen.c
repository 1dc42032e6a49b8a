/* SPDX-License-Identifier: MIT */
/* See unseen.h. The trap is the opposite error: on a busy machine timers come late and some samples are missing anyway, and a thread that was seen has
 * lost up to a period too. So a tenth of the time must be missing, and there must have been threads enough to hide it. */
#include "fold/unseen.h"

#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#include "target/process.h"

enum { PERIODS_LEAST = 20, PART_LEAST = 10, CHILDREN_NS_LEAST = 100000000 /* ten clock ticks */ };

bool rp_unseen_cpu_time(const uint32_t *pids, size_t n, uint64_t *ns)
{
    *ns = 0;
    for (size_t i = 0; i < n; i++) {
        struct timespec used;
        clockid_t clock;

        if (clock_getcpuclockid((pid_t)pids[i], &clock) || clock_gettime(clock, &used))
            return false;
        *ns += (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
    }
    return true;
}

uint64_t rp_unseen_children_time(uint32_t pid)
{
    uint64_t sum = rp_process_waited_children(pid), ns;
    struct rp_pids pids = {0};
    struct rp_err ignored;

    (void)rp_children_read(pid, &pids, &ignored);
    for (size_t i = 0; i < pids.at.n; i++) {
        sum += rp_process_waited_children(pids.at.at[i]);
        if (rp_unseen_cpu_time(&pids.at.at[i], 1, &ns))
            sum += ns;
    }
    rp_vec_release(&pids.at);
    return sum;
}

bool rp_unseen_children_matter(uint64_t children_ns, uint64_t own_ns)
{
    return children_ns >= CHILDREN_NS_LEAST && children_ns > own_ns;
}

bool rp_unseen_matters(const struct rp_unseen *u)
{
    uint64_t periods, missing;

    if (!u->hz)
        return false;
    periods = (uint64_t)((double)u->cpu_ns / 1e9 * u->hz);
    missing = periods > u->samples ? periods - u->samples : 0;
    return missing >= PERIODS_LEAST && missing >= periods / PART_LEAST && missing <= u->threads;
}

void rp_unseen_tell(const struct rp_unseen *u, char *text, size_t size)
{
    snprintf(text, size,
             "the target used %.2f s of CPU time, but samples account for only %.2f s: many of its threads ran for less than the %.2f ms between two "
             "samples; a higher --freq sees more of them",
             (double)u->cpu_ns / 1e9, (double)u->samples / u->hz, 1e3 / u->hz);
}
