/* SPDX-License-Identifier: MIT */
/* See unwind_tracee.h. */
#include "support/unwind_tracee.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct unwind_tracee *tracee_new(pid_t pid)
{
    struct unwind_tracee *t = calloc(1, sizeof *t);
    struct rp_err err = {0};

    elf_version(EV_CURRENT);
    if (!t)
        return NULL;
    t->pid = pid;
    t->stack_max = sizeof t->stack;
    t->space.pid = (uint32_t)pid;
    if (rp_images_init(&t->images, &err) || rp_unwinder_new(&t->images, &t->unwinder, &err) || rp_walk_init(&t->walk, &err) ||
        rp_walk_init(&t->other, &err)) {
        unwind_tracee_free(t);
        return NULL;
    }
    return t;
}

void unwind_tracee_free(struct unwind_tracee *t)
{
    if (!t)
        return;
    if (t->ours && !t->ended) {
        kill(t->pid, SIGKILL);
        waitpid(t->pid, NULL, __WALL);
    } else if (!t->ended) {
        ptrace(PTRACE_DETACH, t->pid, 0, 0);
    }
    rp_walk_release(&t->walk);
    rp_walk_release(&t->other);
    rp_unwinder_free(t->unwinder);
    rp_space_release(&t->space);
    rp_images_release(&t->images);
    free(t);
}

struct unwind_tracee *unwind_tracee_fork(void (*body)(void *), void *argument)
{
    struct unwind_tracee *t;
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        body(argument);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
        return NULL;
    t = tracee_new(pid);
    if (!t)
        return NULL;
    t->ours = true;
    unwind_tracee_remap(t);
    return t;
}

struct unwind_tracee *unwind_tracee_seize(pid_t pid)
{
    struct unwind_tracee *t;
    int status;

    if (ptrace(PTRACE_SEIZE, pid, 0, 0))
        return NULL;
    ptrace(PTRACE_INTERRUPT, pid, 0, 0);
    if (waitpid(pid, &status, __WALL) != pid)
        return NULL;
    t = tracee_new(pid);
    if (t)
        unwind_tracee_remap(t);
    return t;
}

void unwind_tracee_remap(struct unwind_tracee *t)
{
    struct rp_err err = {0};

    if (rp_space_read(&t->space, &t->images, &err))
        fprintf(stderr, "%s\n", err.text);
}

static size_t read_memory(pid_t pid, uint64_t address, void *to, size_t length)
{
    struct iovec local = {to, length}, remote = {(void *)(uintptr_t)address, length};
    ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);

    return got > 0 ? (size_t)got : 0;
}

static void copy_registers(const struct user_regs_struct *r, uint64_t *o)
{
    const uint64_t in[RP_NREGS] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
                                   r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip};

    memcpy(o, in, sizeof in);
}

bool unwind_tracee_snapshot(struct unwind_tracee *t)
{
    struct user_regs_struct regs;
    struct rp_err err = {0};
    struct rp_snapshot *s = &t->snapshot;

    if (t->ended || ptrace(PTRACE_GETREGS, t->pid, 0, &regs))
        return false;
    memset(s, 0, sizeof *s);
    s->has_user = true;
    copy_registers(&regs, s->regs);
    s->stack = t->stack;
    s->stack_bytes = (uint32_t)read_memory(t->pid, regs.rsp, t->stack, t->stack_max);
    s->stack_cut = s->stack_bytes == t->stack_max;
    memset(t->code, 0x90, sizeof t->code);
    read_memory(t->pid, regs.rip, t->code, sizeof t->code);
    if (rp_unwind(t->unwinder, &t->space, s, &t->walk, &err))
        return false;
    if (t->walk.end != RP_WALK_NO_MAPPING)
        return true;
    unwind_tracee_remap(t);
    return rp_unwind(t->unwinder, &t->space, s, &t->walk, &err) == RP_OK;
}

/* The opcode behind prefixes. */
static const uint8_t *opcode(const uint8_t *p)
{
    while (*p == 0x66 || *p == 0x2e || *p == 0x3e || *p == 0xf2 || *p == 0xf3 || (*p & 0xf0) == 0x40)
        p++;
    return p;
}

static void push(struct unwind_tracee *t, uint64_t slot, uint64_t pc, bool exact)
{
    if (t->nshadow == UNWIND_SHADOW_MAX)
        return;
    t->shadow[t->nshadow].slot = slot;
    t->shadow[t->nshadow].pc = pc;
    t->shadow[t->nshadow++].exact = exact;
}

/* Follows what the last instruction, whose bytes are `was`, did to the stack. */
static void follow(struct unwind_tracee *t, const uint8_t *was, uint64_t sp_before, uint64_t pc_before, bool signalled)
{
    const uint8_t *op = opcode(was);
    bool call = op[0] == 0xe8 || (op[0] == 0xff && (op[1] >> 3 & 7) == 2), ret = op[0] == 0xc3 || op[0] == 0xc2;
    uint64_t sp = t->snapshot.regs[RP_RSP], top = 0;
    uint32_t before = t->nshadow;

    if (t->snapshot.stack_bytes >= 8)
        memcpy(&top, t->stack, 8);
    if (signalled && sp < sp_before) { /* at the handler's first instruction: the kernel pushed context and return address */
        push(t, sp + 8, pc_before, true);
        push(t, sp, top, false);
        return;
    }
    while (t->nshadow && t->shadow[t->nshadow - 1].slot < sp)
        t->nshadow--;
    if (before - t->nshadow == 1)
        t->limbo = ret || t->shadow[t->nshadow].exact ? 0 : t->shadow[t->nshadow].pc;
    if (call && sp == sp_before - 8)
        push(t, sp, top, false);
    else if (t->limbo && sp <= sp_before - 8 && top == t->limbo) {
        push(t, sp, top, false);
        t->limbo = 0;
    }
}

bool unwind_tracee_step(struct unwind_tracee *t)
{
    uint8_t was[sizeof t->code];
    uint64_t sp = t->snapshot.regs[RP_RSP], pc = t->snapshot.regs[RP_RIP];
    bool signalled = t->signal != 0;
    int status;

    memcpy(was, t->code, sizeof was);
    if (ptrace(PTRACE_SINGLESTEP, t->pid, 0, t->signal) || waitpid(t->pid, &status, __WALL) != t->pid || !WIFSTOPPED(status)) {
        t->ended = true;
        return false;
    }
    t->delivered += signalled;
    t->signal = WSTOPSIG(status) == SIGTRAP ? 0 : (uint32_t)WSTOPSIG(status);
    if (!unwind_tracee_snapshot(t))
        return false;
    if (t->based)
        follow(t, was, sp, pc, signalled);
    return true;
}

bool unwind_tracee_run(struct unwind_tracee *t, unsigned us)
{
    struct timespec nap = {0, (long)us * 1000};
    int status;

    t->based = false;
    if (ptrace(PTRACE_CONT, t->pid, 0, t->signal))
        return false;
    nanosleep(&nap, NULL);
    if (ptrace(PTRACE_INTERRUPT, t->pid, 0, 0) || waitpid(t->pid, &status, __WALL) != t->pid || !WIFSTOPPED(status)) {
        t->ended = true;
        return false;
    }
    t->signal = status >> 16 || WSTOPSIG(status) == SIGTRAP ? 0 : (uint32_t)WSTOPSIG(status);
    return unwind_tracee_snapshot(t);
}

bool unwind_tracee_run_to_trap(struct unwind_tracee *t)
{
    int status;

    t->based = false;
    if (ptrace(PTRACE_CONT, t->pid, 0, 0) || waitpid(t->pid, &status, __WALL) != t->pid || !WIFSTOPPED(status)) {
        t->ended = true;
        return false;
    }
    unwind_tracee_remap(t);
    return WSTOPSIG(status) == SIGTRAP && unwind_tracee_snapshot(t);
}

bool unwind_tracee_base(struct unwind_tracee *t)
{
    struct rp_err err = {0};

    if (t->walk.end != RP_WALK_ROOT || rp_unwind_libdw(t->unwinder, &t->space, &t->snapshot, &t->other, &err) ||
        t->other.end != RP_WALK_ROOT || t->other.n != t->walk.n)
        return false;
    t->nshadow = 0;
    t->limbo = 0;
    for (uint32_t i = t->walk.n; i-- > 1;) {
        if (t->walk.frames[i].pc != t->other.frames[i].pc)
            return false;
        push(t, t->walk.frames[i - 1].cfa - 8, t->walk.frames[i].pc, t->walk.frames[i].exact);
    }
    t->based = true;
    return true;
}

bool unwind_tracee_is_true(const struct unwind_tracee *t, bool *untold)
{
    const struct rp_walk *w = &t->walk;

    *untold = !t->based || t->limbo || t->nshadow == UNWIND_SHADOW_MAX;
    if (w->n != t->nshadow + 1 || w->frames[0].pc != t->snapshot.regs[RP_RIP] || !w->frames[0].exact)
        return false;
    for (uint32_t i = 1; i < w->n; i++)
        if (w->frames[i].pc != t->shadow[t->nshadow - i].pc || w->frames[i].exact != t->shadow[t->nshadow - i].exact)
            return false;
    return true;
}

void unwind_tracee_print(const struct unwind_tracee *t)
{
    const struct rp_walk *w = &t->walk;

    fprintf(stderr, "walk of %u frames (%s), truth %u frames\n", w->n, w->end == RP_WALK_ROOT ? "complete" : rp_walk_end_text(w->end),
            t->nshadow + 1);
    for (uint32_t i = 0; i < 12 && (i < w->n || i <= t->nshadow); i++) {
        const struct rp_walk_frame *f = i < w->n ? &w->frames[i] : NULL;
        const char *path = f ? t->images.at.at[f->where.image]->path : "";

        fprintf(stderr, "  %2u %16lx cfa %lx %s+%lx%s | %lx\n", i, f ? f->pc : 0, f ? f->cfa : 0, path, f ? f->where.addr : 0,
                f && f->by_frame_pointer ? " by frame pointer" : "",
                i == 0 ? t->snapshot.regs[RP_RIP] : i <= t->nshadow ? t->shadow[t->nshadow - i].pc : 0);
    }
}
