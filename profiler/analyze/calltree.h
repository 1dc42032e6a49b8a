/* SPDX-License-Identifier: MIT */
/* Call trees with counts, as macOS `sample` prints them.
 *
 * The tree of a category starts at the frame that calls its outermost claimed frame; there nodes split by call-site offset, below by function. With
 * `full_stacks` it goes from the root. Inverted (`callers`), leaves come first and their callers hang below. A tree without a category takes all samples
 * from the root. Waits make the same trees, weighed by their time. Recursion is shown as it is: each node counts a sample once. */
#ifndef RP_ANALYZE_CALLTREE_H
#define RP_ANALYZE_CALLTREE_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/view.h"
#include "analyze/view_waits.h"

struct rp_calltree_options {
    uint32_t category;    /* UINT32_MAX: all */
    uint64_t min_samples; /* smaller nodes are folded away; their samples are the difference to the parent */
    bool callers;         /* inverted */
    bool full_stacks;
    bool order_by_self;   /* children ordered by self instead of total */
    /* Instead of running samples, blocked stacks: `samples` of nodes, and `min_samples`, are nanoseconds then. */
    const struct rp_waits *waits;
    uint32_t lock;        /* with `waits`: only waits for this lock, position + 1; 0: all */
    bool user_only;       /* with `waits`: without the kernel frames in which every wait ends */
    bool holders;         /* with `lock`: what its holders did, from the root on, in place of those that waited */
    /* Per function of the profile (the view's ids): the tree begins at the outermost of them and goes to its callees, or with `callers` to its
     * callers; stacks without one are left out. NULL: the category's tree. */
    const bool *functions;
};

struct rp_calltree_node {
    uint32_t function;
    uint64_t samples;     /* with this path */
    uint64_t self;        /* of which the leaf is here */
    uint64_t offset;      /* call-site offset in the function, where `has_offset` */
    uint32_t file, line;  /* of an inlined caller, instead of an offset; 0 unknown */
    bool has_offset;
    uint32_t parent;      /* position; UINT32_MAX for top nodes */
    uint32_t first_child, next_sibling; /* UINT32_MAX: none; siblings largest first */
    uint32_t depth;
};

struct rp_calltree {
    RP_VEC(struct rp_calltree_node) nodes;
    uint32_t first_top;   /* UINT32_MAX: empty */
    uint64_t samples;     /* all samples the tree was made of, folded ones included */
};

enum rp_status rp_calltree_make(const struct rp_view *view, const struct rp_calltree_options *options, struct rp_calltree *tree, struct rp_err *err);
void rp_calltree_release(struct rp_calltree *tree);

#endif
