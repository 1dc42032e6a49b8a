/* SPDX-License-Identifier: MIT */
/* See wait_sleepers.h.
 *
 * The trap is that one stack may sleep with a lock now and without one then, and that a pool of a hundred threads has one stack: seen once with a lock it
 * would make all of their idling busy. So time is held against time, all of it of waits whose stack was seen: those are drawn alike on both sides. */
#include "analyze/wait_sleepers.h"

#include <stdlib.h>

#include "base/alloc.h"

static const double held_part = 0.5;

/* What was seen of the waits for a lock, and the part of them in which it was looked at. */
struct lock_ns {
    double stacked, looked;
};

static int by_name_and_node(const void *a, const void *b)
{
    const struct rp_wait_sleeper *x = a, *y = b;

    if (x->comm != y->comm)
        return x->comm < y->comm ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static struct rp_wait_sleeper *find(const struct rp_profile *p, const struct rp_wait_sleepers *s, uint32_t comm, uint32_t node)
{
    struct rp_wait_sleeper key = {.comm = comm};

    /* A look from outside, as that at a holder is, shows no kernel frames; the stack of a switch has them. */
    while (node && p->locations.at[p->nodes.at[node].location].flags & RP_LOCATION_KERNEL)
        node = p->nodes.at[node].parent;
    key.node = node;
    return s->at.n ? bsearch(&key, s->at.at, s->at.n, sizeof key, by_name_and_node) : NULL;
}

static bool is_sleeper(const struct rp_profile *p, const struct rp_holder *h)
{
    return h->state == RP_STATE_BLOCKED && h->node && h->thread < p->threads.n && h->lock < p->locks.n;
}

static enum rp_status collect(const struct rp_profile *p, const struct lock_ns *locks, struct rp_wait_sleepers *s, struct rp_err *err)
{
    size_t kept = 0;

    for (size_t i = 0; i < p->holders.n; i++) {
        const struct rp_holder *h = &p->holders.at[i];
        struct rp_wait_sleeper *new = is_sleeper(p, h) ? rp_vec_add(&s->at) : NULL;

        if (!is_sleeper(p, h))
            continue;
        if (!new)
            return rp_fail_nomem(err);
        *new = (struct rp_wait_sleeper){.comm = p->threads.at[h->thread].comm, .node = h->node};
        if (locks[h->lock].looked > 0)
            new->waited_ns = (double)h->ns * locks[h->lock].stacked / locks[h->lock].looked;
    }
    if (s->at.n)
        qsort(s->at.at, s->at.n, sizeof *s->at.at, by_name_and_node);
    for (size_t i = 0; i < s->at.n; i++)
        if (kept && by_name_and_node(&s->at.at[kept - 1], &s->at.at[i]) == 0)
            s->at.at[kept - 1].waited_ns += s->at.at[i].waited_ns;
        else
            s->at.at[kept++] = s->at.at[i];
    s->at.n = kept;
    return RP_OK;
}

enum rp_status rp_wait_sleepers_find(const struct rp_profile *p, struct rp_wait_sleepers *s, struct rp_err *err)
{
    struct lock_ns *locks = rp_calloc(p->locks.n + 1, sizeof *locks);
    enum rp_status status = locks ? RP_OK : rp_fail_nomem(err);

    for (size_t i = 0; i < p->waits.n && !status; i++)
        if (p->waits.at[i].tag && p->waits.at[i].tag <= p->locks.n)
            locks[p->waits.at[i].tag - 1].stacked += (double)p->waits.at[i].ns;
    for (size_t i = 0; i < p->holders.n && !status; i++)
        if (p->holders.at[i].lock < p->locks.n)
            locks[p->holders.at[i].lock].looked += (double)p->holders.at[i].ns;
    if (!status)
        status = collect(p, locks, s, err);
    for (size_t i = 0; i < p->waits.n && s->at.n && !status; i++) {
        const struct rp_wait *w = &p->waits.at[i];
        struct rp_wait_sleeper *sleeper = find(p, s, p->threads.at[w->thread].comm, w->node);

        if (sleeper)
            sleeper->slept_ns += (double)w->ns;
    }
    rp_free(locks);
    return status;
}

bool rp_wait_sleepers_hold(const struct rp_profile *p, const struct rp_wait_sleepers *s, uint32_t comm, uint32_t node)
{
    const struct rp_wait_sleeper *sleeper = find(p, s, comm, node);

    return sleeper && sleeper->waited_ns >= held_part * sleeper->slept_ns;
}
