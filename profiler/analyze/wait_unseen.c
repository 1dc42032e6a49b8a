/* SPDX-License-Identifier: MIT */
/* Waits of a duration of which no stack was taken of their thread: other threads of its name speak for them.
 *
 *     totals without a line ──> speakers: all lines of one (thread name, class) ──> categories, lines
 *
 * The trap is a pool of a thousand threads: each has totals, each has lines, and all are of one name. So totals with the same speakers are added up
 * first, and the lines are gone through once. */
#include <stdlib.h>
#include <string.h>

#include "analyze/wait_scaling.h"

enum { OCTAVE = 4 /* classes */ };

/* Lines of one thread name and class, one after the other in `lines`: who may speak for others of the name. */
struct speakers {
    size_t from, n;
    uint32_t comm, wait_class;
    double thinned_ns; /* of their own: in doubt for the same draws as what they speak for */
};

/* A class of a thread of which no stack was taken, and who speaks for it. */
struct unseen {
    uint32_t total, speakers;
};

struct unseen_work {
    struct rp_wait_scaling *s;
    uint32_t *lines; /* by name and class */
    size_t nlines;
    RP_VEC(struct speakers) speakers;
    RP_VEC(struct unseen) unseen;
    double *n, *ns; /* per category: what the speakers in work were seen waiting */
};

static int by_name_and_class(const void *a, const void *b, void *context)
{
    const struct rp_profile *p = context;
    const struct rp_wait *x = &p->waits.at[*(const uint32_t *)a], *y = &p->waits.at[*(const uint32_t *)b];
    uint32_t m = p->threads.at[x->thread].comm, n = p->threads.at[y->thread].comm;

    if (m != n)
        return m < n ? -1 : 1;
    if (x->wait_class != y->wait_class)
        return x->wait_class < y->wait_class ? -1 : 1;
    return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

static enum rp_status find_speakers(struct unseen_work *u, struct rp_err *err)
{
    const struct rp_profile *p = u->s->view->profile;

    for (size_t i = 0; i < u->nlines; i++) {
        const struct rp_wait *w = &p->waits.at[u->lines[i]];
        uint32_t comm = p->threads.at[w->thread].comm;
        struct speakers *last = u->speakers.n ? &u->speakers.at[u->speakers.n - 1] : NULL;

        if (last && last->comm == comm && last->wait_class == w->wait_class) {
            last->n++;
            continue;
        }
        last = rp_vec_add(&u->speakers);
        if (!last)
            return rp_fail_nomem(err);
        *last = (struct speakers){.from = i, .n = 1, .comm = comm, .wait_class = w->wait_class};
    }
    return RP_OK;
}

/* Those of a name and class; UINT32_MAX: there are none. */
static uint32_t speakers_of(const struct unseen_work *u, uint32_t comm, uint32_t wait_class)
{
    size_t low = 0, high = u->speakers.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct speakers *at = &u->speakers.at[middle];

        if (at->comm < comm || (at->comm == comm && at->wait_class < wait_class))
            low = middle + 1;
        else
            high = middle;
    }
    return low < u->speakers.n && u->speakers.at[low].comm == comm && u->speakers.at[low].wait_class == wait_class ? (uint32_t)low : UINT32_MAX;
}

/* A class of a thread of which no stack was taken: threads of its name speak for it, in the same class or else the nearest within an octave. They do the
 * same work, so that is an estimate with an interval; where there are none either, nothing is known. */
static enum rp_status choose_speakers(struct unseen_work *u, uint32_t total, struct rp_err *err)
{
    const struct rp_profile *p = u->s->view->profile;
    const struct rp_wait_total *t = &p->wait_totals.at[total];
    uint32_t comm = p->threads.at[t->thread].comm, speakers = UINT32_MAX;
    struct unseen *new;

    for (int away = 0; away <= 2 * OCTAVE && speakers == UINT32_MAX; away++) { /* 0, -1, 1, -2, 2 … */
        int wait_class = (int)t->wait_class + (away % 2 ? -(away + 1) / 2 : away / 2);

        speakers = wait_class < 0 ? UINT32_MAX : speakers_of(u, comm, (uint32_t)wait_class);
    }
    u->s->waits->thinned = true;
    if (speakers == UINT32_MAX) {
        rp_wait_scaling_add(u->s, u->s->ncategories, (double)t->n, (double)t->ns, t->max_ns, t->wait_class);
        return RP_OK;
    }
    new = rp_vec_add(&u->unseen);
    if (!new)
        return rp_fail_nomem(err);
    *new = (struct unseen){total, speakers};
    return RP_OK;
}

static int by_speakers_and_class(const void *a, const void *b, void *context)
{
    const struct rp_wait_total *totals = context;
    const struct unseen *x = a, *y = b;

    if (x->speakers != y->speakers)
        return x->speakers < y->speakers ? -1 : 1;
    if (totals[x->total].wait_class != totals[y->total].wait_class)
        return totals[x->total].wait_class < totals[y->total].wait_class ? -1 : 1;
    return x->total < y->total ? -1 : 1;
}

/* What all those totals hold together. Few waits of their own scatter round what the speakers' were, however many these are: ns² / n. */
struct spoken_for {
    double n, ns, scatter;
};

/* Gives each category its part of a run of totals of one class. */
static void give_categories(struct unseen_work *u, const struct spoken_for *run, const struct spoken_for *seen, uint32_t wait_class)
{
    for (size_t k = 0; k < u->s->ncategories; k++)
        if (u->n[k] > 0)
            rp_wait_scaling_add(u->s, k, run->n * u->n[k] / seen->n, seen->ns > 0 ? run->ns * u->ns[k] / seen->ns : 0, 0, wait_class);
}

/* Gives the speakers' lines their part of all that they speak for. */
static void give_lines(struct unseen_work *u, const struct speakers *speakers, const struct spoken_for *all, const struct spoken_for *seen)
{
    struct rp_wait_stacks *stacks = u->s->stacks;

    for (size_t i = 0; i < speakers->n; i++) {
        uint32_t line = u->lines[speakers->from + i];
        const struct rp_wait *w = &u->s->view->profile->waits.at[line];
        struct rp_wait_stack *more = &stacks->more.at[stacks->stack_of[line]];
        double part_n = all->n * (double)w->n / seen->n, part_ns = seen->ns > 0 ? all->ns * (double)w->ns / seen->ns : 0;

        stacks->n[line] += part_n;
        stacks->ns[line] += part_ns;
        more->n += part_n;
        more->ns += part_ns;
    }
}

/* What was seen of the speakers, in all and by category; gives the part of it that idled. */
static double sum_up(struct unseen_work *u, const struct speakers *speakers, struct spoken_for *seen)
{
    const struct rp_wait_stacks *stacks = u->s->stacks;
    double idle_ns = 0;

    *seen = (struct spoken_for){0};
    memset(u->n, 0, u->s->ncategories * sizeof *u->n);
    memset(u->ns, 0, u->s->ncategories * sizeof *u->ns);
    for (size_t i = 0; i < speakers->n; i++) {
        uint32_t line = u->lines[speakers->from + i], stack = stacks->stack_of[line], category = stacks->at.at[stack].verdict.category;
        const struct rp_wait *w = &u->s->view->profile->waits.at[line];

        seen->n += (double)w->n;
        seen->ns += (double)w->ns;
        u->n[category] += (double)w->n;
        u->ns[category] += (double)w->ns;
        idle_ns += stacks->more.at[stack].idle ? (double)w->ns : 0;
    }
    return seen->ns > 0 ? idle_ns / seen->ns : 0;
}

/* The totals unseen[from .. to) have the same speakers. One pass over the lines however many totals there are: a thousand threads of one name are a
 * thousand lines and a thousand totals. */
static void speak(struct unseen_work *u, size_t from, size_t to)
{
    const struct speakers *speakers = &u->speakers.at[u->unseen.at[from].speakers];
    struct spoken_for seen, all = {0}, run = {0};
    double idle = sum_up(u, speakers, &seen);

    if (!(seen.n > 0))
        return;
    for (size_t i = from; i < to; i++) {
        const struct rp_wait_total *total = &u->s->view->profile->wait_totals.at[u->unseen.at[i].total];
        bool last = i + 1 == to || u->s->view->profile->wait_totals.at[u->unseen.at[i + 1].total].wait_class != total->wait_class;

        run.n += (double)total->n;
        run.ns += (double)total->ns;
        all.n += (double)total->n;
        all.ns += (double)total->ns;
        all.scatter += total->n ? (double)total->ns * (double)total->ns / (double)total->n : 0;
        u->s->stacks->idle_ns[total->thread] += idle * (double)total->ns;
        if (last) {
            give_categories(u, &run, &seen, total->wait_class);
            run = (struct spoken_for){0};
        }
    }
    give_lines(u, speakers, &all, &seen);
    rp_wait_scaling_doubt(u->s, u->s->view->profile->wait_totals.at[u->unseen.at[from].total].thread, u->n, seen.n,
                          all.ns * (all.ns + 2 * speakers->thinned_ns) / (seen.n + 1) + all.scatter);
}

static void thin(struct unseen_work *u, uint32_t total, double seen)
{
    const struct rp_wait_total *t = &u->s->view->profile->wait_totals.at[total];
    uint32_t at = speakers_of(u, u->s->view->profile->threads.at[t->thread].comm, t->wait_class);

    if (at != UINT32_MAX && seen < (double)t->n)
        u->speakers.at[at].thinned_ns += (double)t->ns * (1 - seen / (double)t->n);
}

enum rp_status rp_wait_scaling_unseen(struct rp_wait_scaling *s, const uint32_t *totals, size_t ntotals, const double *seen, struct rp_err *err)
{
    const struct rp_profile *p = s->view->profile;
    struct unseen_work u = {.s = s, .nlines = s->stacks->norder};
    enum rp_status status;

    u.lines = rp_calloc(u.nlines + 1, sizeof *u.lines);
    u.n = rp_calloc(s->ncategories + 1, sizeof *u.n);
    u.ns = rp_calloc(s->ncategories + 1, sizeof *u.ns);
    status = u.lines && u.n && u.ns ? RP_OK : rp_fail_nomem(err);
    if (status)
        goto done;
    memcpy(u.lines, s->stacks->order, u.nlines * sizeof *u.lines);
    if (u.nlines)
        qsort_r(u.lines, u.nlines, sizeof *u.lines, by_name_and_class, (void *)(uintptr_t)p);
    status = find_speakers(&u, err);
    for (size_t i = 0; i < ntotals && status == RP_OK; i++)
        if (!(seen[i] > 0))
            status = choose_speakers(&u, totals[i], err);
        else
            thin(&u, totals[i], seen[i]);
    if (status)
        goto done;
    if (u.unseen.n)
        qsort_r(u.unseen.at, u.unseen.n, sizeof *u.unseen.at, by_speakers_and_class, p->wait_totals.at);
    for (size_t i = 0, end; i < u.unseen.n; i = end) {
        for (end = i; end < u.unseen.n && u.unseen.at[end].speakers == u.unseen.at[i].speakers; end++)
            ;
        speak(&u, i, end);
    }
done:
    rp_free(u.lines);
    rp_free(u.n);
    rp_free(u.ns);
    rp_vec_release(&u.speakers);
    rp_vec_release(&u.unseen);
    return status;
}
