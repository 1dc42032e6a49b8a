/* SPDX-License-Identifier: MIT */
/* A run of the perf_event backend against a child of ours, and what it saw. Steps that do not work fail the running test; the trap is that a body runs
 * in the child, where nothing may be asserted. */
#ifndef TESTS_PERF_RUN_H
#define TESTS_PERF_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "sample/sampler.h"

/* What a run saw. */
struct perf_seen {
    uint64_t samples, kernel_samples, exits, forks, out_of_order, foreign, before_start;
    uint64_t last_time, start_time;
    uint64_t bad_stack, cut;
    uint32_t pid;
    uint32_t want_tid;
    uint64_t of_want_tid;
    uint64_t mmap_start, mmaps_at_start;
    uint64_t execs;
    char exec_comm[64];
    uint64_t after_exit; /* samples of the thread that was the last to end, after that */
    uint32_t ended;
    uint64_t tids[256];
    uint64_t ntids;
    uint64_t weight_ns;
};

/* A child process and two pipes: what it tells us, what we tell it. */
struct perf_child {
    pid_t pid;
    int from, to;
};

/* Runs in the child, with the ends of the pipes that it writes and reads; the child ends when it returns. */
typedef void perf_child_body(int to_parent, int from_parent);

struct perf_child perf_child_start(perf_child_body *body);

/* The next word the child tells; waits for it. */
uint64_t perf_child_hear(const struct perf_child *c);

/* Writes a word to the other side, in the child or the parent; aborts when it cannot. */
void perf_child_say(int fd, uint64_t word);

/* Kills the child and closes the pipes. */
void perf_child_end(struct perf_child *c);

/* Tells its pid and spins. */
void perf_body_spin(int up, int down);

/* Tells one word, waits for one, and becomes `sleep 100`. */
void perf_body_exec(int up, int down);

/* For pthread_create; `arg` is an int *: the pipe to which it writes its tid before it spins. */
void *perf_thread_tells_and_spins(void *arg);

void perf_spin_for_ever(void);

/* A sampler of `pid` that has started. `more` may be NULL; its pids are not used, hz 0 is 997. Skips the test where the user may not sample. */
struct rp_sampler *perf_start(uint32_t pid, const struct rp_sampler_options *more);

/* What drain() calls; `context` is a struct perf_seen. */
enum rp_status perf_see(void *context, const struct rp_event *event, struct rp_err *err);

/* True: the target has ended. */
bool perf_wait_and_drain(struct rp_sampler *s, struct perf_seen *seen);

/* Stops, drains what is left, and frees the sampler. */
void perf_finish(struct rp_sampler *s, struct perf_seen *seen, struct rp_sampler_stats *stats);

/* Whether what began then (rp_now_ns) has had its generous deadline. */
bool perf_late(uint64_t began);

/* Child, sampler and what it saw in one, for tests that need no more:
 *
 *     perf_run_begin(&r, perf_body_spin, NULL);
 *     perf_run_until(&r, &r.seen.samples, 200);
 *     perf_run_end(&r);                              and then the asserts
 */
struct perf_run {
    struct perf_child child;
    struct perf_seen seen; /* want_tid: the word that the child told first */
    struct rp_sampler *sampler;
    struct rp_sampler_stats stats;
    clockid_t clock;
    double cpu_ns; /* what the child ran, from before the sampler was made to the end */
    bool all_came;
};

/* Starts the child, hears one word, and starts a sampler with the options of perf_start(). */
void perf_run_begin(struct perf_run *r, perf_child_body *body, const struct rp_sampler_options *more);
/* For another sampler of the child whose run was stopped: begins anew. */
void perf_run_again(struct perf_run *r, const struct rp_sampler_options *more);
/* Drains until a figure of `seen` has reached `least`, or it is late, which fails the test at its end. */
void perf_run_until(struct perf_run *r, const uint64_t *figure, uint64_t least);
/* Ends the sampler; the child runs on. */
void perf_run_stop(struct perf_run *r);
/* Ends both, and fails the test if something did not come. */
void perf_run_end(struct perf_run *r);

#endif
