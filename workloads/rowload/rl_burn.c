/* SPDX-License-Identifier: MIT */
/*
 * The price of a round: see rl_burn.h. Each of many short pieces is timed, and the median taken, so that a piece in which
 * an interrupt fell does not count.
 */
#include "rl_burn.h"

#include <stdlib.h>
#include <time.h>

#include "rl_run.h"

enum { PIECES = 41, PIECE_ROUNDS = 200000 };

static int double_compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static uint64_t thread_cpu_ns(void)
{
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* Not called rw_: it is no cost of a workload. */
static __attribute__((noinline)) uint64_t piece_do(uint64_t rounds)
{
    return rl_burn(rounds, 7);
}

uint64_t rl_burn_rounds(uint64_t ns)
{
    static double round_ns;
    static volatile uint64_t kept;
    double pieces[PIECES];
    if (!(round_ns > 0)) {
        kept = piece_do(PIECE_ROUNDS);
        for (int i = 0; i < PIECES; i++) {
            uint64_t before_ns = thread_cpu_ns();
            kept += piece_do(PIECE_ROUNDS);
            pieces[i] = (double)(thread_cpu_ns() - before_ns) / PIECE_ROUNDS;
        }
        qsort(pieces, PIECES, sizeof pieces[0], double_compare);
        round_ns = pieces[PIECES / 2] > 0 ? pieces[PIECES / 2] : 1.0;
    }
    return (uint64_t)((double)ns / round_ns + 0.5);
}
