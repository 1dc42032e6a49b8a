/* SPDX-License-Identifier: MIT */
/* A real process under ptrace as a source of true snapshots, and its call stack by construction: every single step that is a call pushes, every
 * return address that falls below rsp is popped. What unwinding says must equal that, at every instruction.
 *
 *     struct unwind_tracee *t = unwind_tracee_fork(body, NULL);    // or unwind_tracee_seize(pid)
 *     while (unwind_tracee_step(t)) assert_true(unwind_tracee_is_true(t));
 *     unwind_tracee_free(t);
 *
 * The trap: code that pops its return address into a register and pushes it again has no stack truth in between; such steps are `untold`. */
#ifndef RP_TESTS_UNWIND_TRACEE_H
#define RP_TESTS_UNWIND_TRACEE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/unwind.h"

enum { UNWIND_SHADOW_MAX = 20000 };

struct unwind_tracee {
    pid_t pid;
    bool ours; /* forked: killed by free */
    bool ended;
    struct rp_images images;
    struct rp_space space;
    struct rp_unwinder *unwinder;
    struct rp_walk walk, other; /* by rp_unwind, by rp_unwind_libdw */
    struct rp_snapshot snapshot;
    uint8_t stack[RP_STACK_COPY_MAX];
    uint32_t stack_max; /* bytes copied; default all */
    uint8_t code[16];   /* at the pc of the snapshot */
    struct {
        uint64_t slot, pc; /* where the return address stands */
        bool exact;        /* an interrupted pc, not a return address */
    } shadow[UNWIND_SHADOW_MAX];
    uint32_t nshadow;
    bool based;      /* the shadow holds a whole stack */
    uint64_t limbo;  /* a return address that is in a register at the moment */
    uint32_t signal; /* to be delivered with the next step */
    uint64_t delivered;
};

/* A child that runs `body` from a stop on, or dies. NULL: ptrace is not permitted here. */
struct unwind_tracee *unwind_tracee_fork(void (*body)(void *), void *argument);
/* A process that runs already; stopped now. NULL when it cannot be. */
struct unwind_tracee *unwind_tracee_seize(pid_t pid);
void unwind_tracee_free(struct unwind_tracee *t);

/* Copies registers and stack and walks with our engine. */
bool unwind_tracee_snapshot(struct unwind_tracee *t);
/* One instruction, then a snapshot. False: the process has ended. */
bool unwind_tracee_step(struct unwind_tracee *t);
/* Lets it run for `us` microseconds, then a snapshot. */
bool unwind_tracee_run(struct unwind_tracee *t, unsigned us);
/* Forked only: lets it run up to its next `int3`, then a snapshot. False: it ended. */
bool unwind_tracee_run_to_trap(struct unwind_tracee *t);
/* Re-reads the mappings, as MMAP2 records would tell them. */
void unwind_tracee_remap(struct unwind_tracee *t);

/* Makes the walk at hand, which must be complete and equal libdw's, the base of the shadow. */
bool unwind_tracee_base(struct unwind_tracee *t);
/* Whether the walk equals the shadow. `*untold`: there is no truth for this step. */
bool unwind_tracee_is_true(const struct unwind_tracee *t, bool *untold);
/* Prints both, for a failing test. */
void unwind_tracee_print(const struct unwind_tracee *t);

#endif
