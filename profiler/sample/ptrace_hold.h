/* SPDX-License-Identifier: MIT */
/* One thread held still for the time of one copy: asked to stop, looked for, copied, let go.
 *
 *     rp_hold_ask(tid)                    // traced from here on, and about to stop
 *     while (rp_hold_look(tid, &stop) == RP_HOLD_NOT_YET) …
 *     rp_hold_copy(pid, tid, …)           // only when RP_HOLD_STOPPED; or rp_hold_heal(tid)
 *     rp_hold_let_go(tid, &stop)          // runs on, no longer traced
 *
 * Between two samples nothing is traced: signals, stops, clones, exits and execve of the target meet nobody. All calls of one thread come from one
 * thread of ours; when that ends, however it ends, the kernel lets go of whatever it still holds. */
#ifndef RP_SAMPLE_PTRACE_HOLD_H
#define RP_SAMPLE_PTRACE_HOLD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sample/snapshot.h"

enum rp_hold_state { RP_HOLD_NOT_YET, RP_HOLD_STOPPED, RP_HOLD_GONE };

/* What rp_hold_look saw. */
struct rp_hold_stop {
    int status;      /* of waitpid */
    bool by_us;      /* the stop that was asked for, or a signal on its way: the thread ran. False: it was stopped by job control */
};

struct rp_hold_copy {
    uint64_t regs[RP_NREGS];
    bool in_syscall;      /* about to return from a system call */
    uint32_t stack_bytes; /* copied */
};

/* False with errno: ESRCH it is gone; EPERM not allowed, or traced by another, or exiting. */
bool rp_hold_ask(pid_t tid);

/* Does not wait. */
enum rp_hold_state rp_hold_look(pid_t tid, struct rp_hold_stop *stop);

/* The same for a thread that may meanwhile have gone on as the first one of its process: then `tid` becomes that. */
enum rp_hold_state rp_hold_follow(pid_t pid, uint32_t *tid, struct rp_hold_stop *stop);

/* Copies registers and up to `room` bytes of stack. False when they cannot be had (it was killed meanwhile). */
bool rp_hold_copy(pid_t pid, pid_t tid, uint8_t *stack, uint32_t room, struct rp_hold_copy *copy);

/* What rp_hold_copy does beside copying, for a stop that is not copied: an interrupted system call goes on as if nobody had watched. */
void rp_hold_heal(pid_t tid);

/* The only way out of a stop. True: let go. False: the thread was killed in its stop, and is to be looked for until it is GONE. */
bool rp_hold_let_go(pid_t tid, const struct rp_hold_stop *stop);

#endif
