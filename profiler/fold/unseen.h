/* SPDX-License-Identifier: MIT */
/* CPU time of the targets that no sample can account for. Each thread's first sample comes one whole period after its start, so threads that run
 * shorter are never seen: a server with a thread per request may look idle while it keeps a CPU busy. */
#ifndef RP_FOLD_UNSEEN_H
#define RP_FOLD_UNSEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CPU time of the processes in nanoseconds, threads that have ended included, children not. False: one of them is gone. */
bool rp_unseen_cpu_time(const uint32_t *pids, size_t n, uint64_t *ns);

/* CPU time of all that descend from the process, ended ones included, in nanoseconds. */
uint64_t rp_unseen_children_time(uint32_t pid);

/* Whether it is worth a word that children, which are not watched, used `children_ns` while the process used `own_ns`. */
bool rp_unseen_children_matter(uint64_t children_ns, uint64_t own_ns);

struct rp_unseen {
    uint64_t cpu_ns;     /* used while sampling went on */
    uint64_t samples;    /* taken or lost in that time */
    uint64_t threads;    /* there were in that time */
    uint32_t hz;
};

/* Whether so much is missing that the reader must be told, and short-lived threads explain it. */
bool rp_unseen_matters(const struct rp_unseen *u);

/* Writes a sentence without its capital and its full stop, so that it can stand in another one; cut at `size` with its NUL. */
void rp_unseen_tell(const struct rp_unseen *u, char *text, size_t size);

#endif
