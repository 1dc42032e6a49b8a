/* SPDX-License-Identifier: MIT */
/* Starting the command behind `--`. Its stdout goes to our stderr, so that the result stays clean.
 *
 *     rp_launch_start(&launch, argv, ready, err);      // the child waits before its execve
 *     …open a session on launch.pid with enable_on_exec…
 *     rp_launch_go(&launch, err);                      // execve; RP_NOTFOUND when there is no such program
 *
 * With `ready` the order is: start, go, rp_launch_wait_ready (gives the pid that the line names), then the session. */
#ifndef RP_CLI_LAUNCH_H
#define RP_CLI_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"
#include "base/vec.h"

enum { RP_SAID_MAX = 500 };

/* A line of the command that began with READY or RATE, and when it came. */
struct rp_said {
    uint64_t at_ns;
    char text[RP_SAID_MAX]; /* NUL-terminated, its end cut off */
};

struct rp_launch {
    pid_t pid;      /* of the child; 0: none */
    int gate;       /* closed or written to let the child go; -1: gone already */
    int exec_error; /* the child's errno comes through here when execve fails */
    int ready;      /* lines READY and RATE come through here from the relay; -1: not asked for */
    RP_VEC(struct rp_said) said; /* with `ready`: the first READY line and what came after it, as far as it was listened to */
    const char *program;
};

enum rp_status rp_launch_start(struct rp_launch *launch, char **argv, bool ready, struct rp_err *err);
enum rp_status rp_launch_go(struct rp_launch *launch, struct rp_err *err);

/* Waits for the line, the child's end (RP_FAILED: says how it ended) or *stop (RP_INTR). */
enum rp_status rp_launch_wait_ready(struct rp_launch *launch, const volatile sig_atomic_t *stop, uint32_t *pid, struct rp_err *err);

/* Takes what the command has said since the last call; never waits. Without `ready` there is nothing to hear. */
void rp_launch_listen(struct rp_launch *launch);

/* Ends a child that was never let go. One that runs is left running unless `end_child`: then it gets TERM, and KILL when that does not help within
 * two seconds. */
void rp_launch_finish(struct rp_launch *launch, bool end_child);

/* Reads `READY pid=N` out of a line; false when it is none. */
bool rp_ready_line(const char *line, size_t length, uint32_t *pid);

#endif
