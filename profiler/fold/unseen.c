/* SPDX-License-Identifier: MIT */
/* See unseen.h. The trap is the opposite error: on a busy machine timers come late and some samples are missing anyway, and a thread that was seen has
 * lost up to a period too. So a tenth of the time must be missing, and there must have been threads enough to hide it. */
#include "fold/unseen.h"

#include <stdio.h>
#include <sys/types.h>
#include <time.h>

enum { PERIODS_LEAST = 20, PART_LEAST = 10 };

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
