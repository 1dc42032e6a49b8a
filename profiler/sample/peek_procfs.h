/* SPDX-License-Identifier: MIT */
/* A look at a blocked thread that it cannot notice: /proc/PID/task/TID/syscall tells the system call, its arguments, the stack pointer and the pc; the
 * stack is read as memory. Nothing is stopped, so no call is interrupted (PTRACE_INTERRUPT made 101 of 103 epoll_wait calls return EINTR). */
#ifndef RP_SAMPLE_PEEK_PROCFS_H
#define RP_SAMPLE_PEEK_PROCFS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "sample/sampler.h"

/* As much as a snapshot may hold. */
enum { RP_PEEK_STACK_BYTES = RP_STACK_COPY_MAX };

enum rp_peek_end {
    RP_PEEK_SEEN,
    RP_PEEK_RUNNING, /* it is not blocked, or was not all the time of the look */
    RP_PEEK_GONE,
    RP_PEEK_REFUSED, /* procfs or the memory may not be read */
};

/* Fills `event` with a PEEK of now (time, sample with sp_only, syscall, args); its stack is in `stack`, RP_PEEK_STACK_BYTES long. The thread was in the
 * same place before and after its stack was read. A thread stopped in a page fault or by a signal has syscall -1. */
enum rp_peek_end rp_peek_procfs(uint32_t pid, uint32_t tid, uint8_t *stack, struct rp_event *event);

/* The text of /proc/PID/task/TID/syscall: "running", "-1 SP PC", or "NR A0 A1 A2 A3 A4 A5 SP PC". False: running, or no such text. */
bool rp_peek_parse(const char *text, size_t length, int *syscall, uint64_t args[6], uint64_t *sp, uint64_t *pc);

#endif
