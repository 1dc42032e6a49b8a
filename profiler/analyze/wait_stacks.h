/* SPDX-License-Identifier: MIT */
/* Inside of the waiting side, shared by the files of analyze/ only. */
#ifndef RP_ANALYZE_WAIT_STACKS_H
#define RP_ANALYZE_WAIT_STACKS_H

#include "analyze/view_stack.h"
#include "analyze/view_waits.h"

/* A distinct stack that waited: what rules see of it beside its node. */
struct rp_wait_stack {
    int16_t syscall;
    bool never_ran; /* one wait as long as its thread was watched */
    bool holds;     /* a lock that others waited for */
    bool idle;
    double n, ns;   /* scaled to the exact totals */
};

struct rp_wait_stacks {
    RP_VEC(struct rp_view_stack) at;   /* as a view's; `samples` are scaled ns, `verdict` counts the frames of rp_wait_walk_take */
    RP_VEC(struct rp_wait_stack) more; /* the same positions */
    struct rp_index index;
    uint32_t *stack_of;  /* per line of the profile's waits; RP_NO_STACK: filtered out */
    double *n, *ns;      /* per line of the profile's waits, scaled */
    uint32_t *order;     /* lines of the profile's waits that pass the filter, by thread and class */
    size_t norder;
    double *idle_ns, *waited_ns; /* per thread: idle, and all that the totals hold */
    double *sums;        /* per category and one for what was not seen: [n, ns, variance of seconds, max ns] */
    double *histogram, *histogram_ns; /* per category and one: RP_WAIT_CLASSES counts, and their ns */
};

enum { RP_WAIT_N, RP_WAIT_NS, RP_WAIT_VARIANCE, RP_WAIT_MAX, RP_WAIT_SUMS };

/* A blocked stack as rules see it: its frames, and before them one for the system call where no kernel frame was seen. Zero is ready; reused. */
struct rp_wait_walk {
    struct rp_frames frames;
    RP_VEC(uint32_t) symbols;
    size_t shift; /* 1: with the frame of the system call */
    uint32_t *syscall_symbols; /* of the matcher, by number; 0 not asked yet */
};

enum rp_status rp_wait_walk_take(const struct rp_view *view, uint32_t node, int syscall, struct rp_wait_walk *walk, struct rp_err *err);
void rp_wait_walk_release(struct rp_wait_walk *walk);
struct cat_context rp_wait_context(const struct rp_view *view, uint32_t comm, bool never_ran, bool holds);

/* A function that only hands a wait on: of the C library, or SQLite. A wait begins at whoever called it: there one can act. */
bool rp_wait_is_below(const struct rp_view *view, uint32_t function);

/* Stacks and scaled lines; fills waits->stacks, which rp_waits_free releases. */
enum rp_status rp_wait_stacks_make(struct rp_waits *waits, struct rp_err *err);
void rp_wait_stacks_free(struct rp_wait_stacks *stacks);

#endif
