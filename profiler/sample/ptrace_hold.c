/* SPDX-License-Identifier: MIT */
/* See ptrace_hold.h. The traps:
 *
 * - A thread that enters a system call between our look at it and the stop is thrown out of that call. Most calls are restarted by the kernel; a few
 *   (epoll_wait, semop, sigtimedwait …) return EINTR, which a program that expects no signals may take for an error. In the stop the call's
 *   result is a register, so it is exchanged for the kernel's own "restart unless a handler runs": the program never sees it.
 * - The first stop that comes need not be the one that was asked for: a signal may be on its way, which must be handed on when letting go, or the process is
 *   being stopped by job control, which it remains.
 * - Detaching works in a stop only.
 * - A thread that was asked inside execve goes on, still ours, as the first thread of its process: its own number is gone, and the stop comes under that. */
#include "sample/ptrace_hold.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "target/process.h"

enum { EVENT_STOP = 128 /* PTRACE_EVENT_STOP */, ERESTARTNOHAND = 514 };

/* Calls that return EINTR whenever they are interrupted, and have done nothing then. Not among them: close and connect, which must not be repeated. */
static const uint16_t restarted[] = {
    SYS_epoll_wait, SYS_epoll_pwait, 441 /* epoll_pwait2 */, SYS_semop,  SYS_semtimedop, SYS_rt_sigtimedwait, SYS_io_getevents,
    333 /* io_pgetevents */, 426 /* io_uring_enter */, SYS_read, SYS_pread64, SYS_recvfrom, SYS_recvmsg, SYS_accept, SYS_accept4, SYS_msgrcv,
};

bool rp_hold_ask(pid_t tid)
{
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
        return false;
    /* Fails only when the thread is dying, and then it is found GONE. */
    (void)ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
    return true;
}

enum rp_hold_state rp_hold_look(pid_t tid, struct rp_hold_stop *stop)
{
    int event;
    pid_t got;

    do
        got = waitpid(tid, &stop->status, __WALL | __WNOTHREAD | WNOHANG);
    while (got < 0 && errno == EINTR);
    if (got == 0)
        return RP_HOLD_NOT_YET;
    if (got != tid || !WIFSTOPPED(stop->status))
        return RP_HOLD_GONE;
    event = stop->status >> 16;
    stop->by_us = event != EVENT_STOP || WSTOPSIG(stop->status) == SIGTRAP;
    return RP_HOLD_STOPPED;
}

enum rp_hold_state rp_hold_follow(pid_t pid, uint32_t *tid, struct rp_hold_stop *stop)
{
    enum rp_hold_state state = rp_hold_look((pid_t)*tid, stop);

    if (state != RP_HOLD_GONE || (pid_t)*tid == pid)
        return state;
    state = rp_hold_look(pid, stop);
    if (state != RP_HOLD_GONE)
        *tid = (uint32_t)pid;
    return state;
}

static bool is_restarted(uint64_t call)
{
    for (size_t i = 0; i < sizeof restarted / sizeof *restarted; i++) {
        if (restarted[i] == call)
            return true;
    }
    return false;
}

static void heal_interrupted_call(pid_t tid, struct user_regs_struct *regs)
{
    struct iovec io = {regs, sizeof *regs};

    if ((int64_t)regs->orig_rax < 0 || (int64_t)regs->rax != -EINTR || !is_restarted(regs->orig_rax))
        return;
    regs->rax = (uint64_t)-(int64_t)ERESTARTNOHAND;
    (void)ptrace(PTRACE_SETREGSET, tid, (void *)(uintptr_t)NT_PRSTATUS, &io);
}

bool rp_hold_copy(pid_t pid, pid_t tid, uint8_t *stack, uint32_t room, struct rp_hold_copy *copy)
{
    struct rp_memory memory = rp_memory_of_process((uint32_t)pid);
    struct user_regs_struct r = {0};
    struct iovec io = {&r, sizeof r};
    ssize_t got;

    if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_PRSTATUS, &io) || io.iov_len < sizeof r)
        return false;
    heal_interrupted_call(tid, &r);
    got = memory.read(memory.context, r.rsp, stack, room);
    {
        const uint64_t in_order[RP_NREGS] = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
                                             r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip};

        memcpy(copy->regs, in_order, sizeof in_order);
    }
    copy->in_syscall = (int64_t)r.orig_rax >= 0;
    copy->stack_bytes = got > 0 ? (uint32_t)got : 0;
    return true;
}

void rp_hold_heal(pid_t tid)
{
    struct user_regs_struct r = {0};
    struct iovec io = {&r, sizeof r};

    if (!ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_PRSTATUS, &io) && io.iov_len >= sizeof r)
        heal_interrupted_call(tid, &r);
}

bool rp_hold_let_go(pid_t tid, const struct rp_hold_stop *stop)
{
    /* A signal on its way is delivered; a stop by job control stays one by itself. */
    int signal = stop->status >> 16 ? 0 : WSTOPSIG(stop->status);

    return ptrace(PTRACE_DETACH, tid, NULL, (void *)(uintptr_t)signal) == 0;
}
