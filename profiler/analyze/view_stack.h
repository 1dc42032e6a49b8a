/* SPDX-License-Identifier: MIT */
/* Inside of a view, shared by the files of analyze/ only.
 *
 *   counts of the profile that pass the filter ──> stacks: distinct (node, thread name), with samples and verdict
 *
 * The frames of a stack are not kept: they are put together when asked for, out of arrays that hold what a line of the profile means to a view. */
#ifndef RP_ANALYZE_VIEW_STACK_H
#define RP_ANALYZE_VIEW_STACK_H

#include "analyze/view.h"

#include "base/index.h"

#define RP_NO_STACK UINT32_MAX

struct rp_view_stack {
    uint32_t node;
    uint32_t comm; /* string: thread rules may ask for it */
    uint64_t samples;
    struct cat_verdict verdict;
    uint32_t shift; /* frames that the verdict counts before those of rp_frames_take: 1 with one for the system call, which is in no stack */
};

/* What one line of a location is. */
struct rp_view_line {
    uint32_t function; /* the one that stands for all of its name and module */
    uint32_t symbol;   /* of the matcher */
};

struct rp_view {
    const struct rp_profile *profile;
    const struct cat_rules *rules;
    struct cat_matcher *matcher;
    bool no_kernel;
    bool *passes;                /* per thread: the filter */
    bool filtered;               /* some do not pass */
    uint32_t *same;              /* per function: the first with its name and module */
    bool *through;               /* per function: passes the question on */
    struct rp_view_line *lines;  /* per line of the profile */
    RP_VEC(struct rp_view_stack) stacks;
    struct rp_index stack_index;
    uint32_t *stack_of;          /* per count of the profile; RP_NO_STACK: filtered out, or no running sample */
    uint64_t samples;
    uint32_t nblocks;            /* the profile's, and empty ones at the end of the run */
    uint64_t *block_samples;     /* per block */
};

struct rp_frame {
    uint32_t location;
    uint32_t line; /* position in the profile's lines */
    uint32_t function;
};

/* The frames of one stack, leaf first, inlined ones included; kernel frames left out where the view cuts them. Zero is ready; reused. */
struct rp_frames {
    RP_VEC(struct rp_frame) at;
    RP_VEC(uint32_t) symbols; /* the same for the matcher */
};

enum rp_status rp_frames_take(const struct rp_view *view, uint32_t node, struct rp_frames *frames, struct rp_err *err);
void rp_frames_release(struct rp_frames *frames);

struct cat_context rp_view_context(const struct rp_view *view, const struct rp_view_stack *stack);

/* The first frame, from the leaf, that does not pass the question on; the leaf when there is none. `frames` is not empty. */
size_t rp_view_asked_frame(const struct rp_view *view, const struct rp_frames *frames);

/* Whether waits of `waiter` are the view's. One that is not known (UINT32_MAX) passes. */
bool rp_view_passes_waiter(const struct rp_view *view, uint32_t waiter);

/* The first frame that is above all that the verdict's category claims, counted as rp_frames_take gives them; as many as there are, or more: there is none. */
size_t rp_view_above_claims(const struct rp_view_stack *stack);

/* A location's text mark says that the stack was cut. */
bool rp_view_is_cut(const struct rp_profile *profile, uint32_t location);

#endif
