/* SPDX-License-Identifier: MIT */
/* What a profile can and cannot say: cut stacks, guesses, names that are missing, threads that slept. */
#include <stdlib.h>
#include <string.h>

#include "analyze/view.h"
#include "analyze/view_stack.h"

enum { GUESSED = 1, CUT = 2, JIT_UNNAMED = 4 };

static bool is_unnamed(const struct rp_profile *p, const struct rp_frame *frame)
{
    return p->functions.at[p->lines.at[frame->line].function].how == RP_NAME_OFFSET;
}

static unsigned look_at(const struct rp_view *view, const struct rp_frames *frames)
{
    const struct rp_profile *p = view->profile;
    unsigned seen = 0;

    for (size_t i = 0; i < frames->at.n; i++) {
        const struct rp_frame *f = &frames->at.at[i];

        if (p->locations.at[f->location].flags & RP_LOCATION_GUESS)
            seen |= GUESSED;
        if (rp_view_is_cut(p, f->location))
            seen |= CUT;
        if (is_unnamed(p, f) && strcmp(rp_profile_text(p, p->functions.at[f->function].name), "[jit]") == 0)
            seen |= JIT_UNNAMED;
    }
    return seen;
}

/* A thread by its numbers. */
struct numbers {
    uint32_t pid, tid, process;
};

static struct numbers numbers_of(const struct rp_profile *p, const struct rp_profile_thread *t)
{
    return (struct numbers){p->processes.at[t->process].pid, t->tid, t->process};
}

static int by_numbers(const void *a, const void *b)
{
    const struct numbers *x = a, *y = b;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    return x->process < y->process ? -1 : x->process > y->process;
}

static bool same_thread(const struct numbers *a, const struct numbers *b)
{
    return a->pid == b->pid && a->tid == b->tid;
}

/* The thread went on under another program (execve): its samples are those of the other generation. `sampled` is in order. */
static bool sampled_elsewhere(const struct numbers *sampled, size_t n, const struct numbers *thread)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (by_numbers(&sampled[middle], thread) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low > 0 && same_thread(&sampled[low - 1], thread))
        return true;
    while (low < n && sampled[low].process == thread->process && same_thread(&sampled[low], thread))
        low++;
    return low < n && same_thread(&sampled[low], thread);
}

/* Neither on a CPU nor ready for one. */
static uint64_t off_ns(const struct rp_profile_thread *t)
{
    uint64_t ready = t->run_delay_ns > t->preempted_ns ? t->run_delay_ns : t->preempted_ns, off = t->wall_ns > t->cpu_ns ? t->wall_ns - t->cpu_ns : 0;

    return off > ready ? off - ready : 0;
}

/* Samples come by chance: of 2 000 threads that share two CPUs most have none in a second, and yet none of them is idle. A pool's thread that woke once is. */
static bool was_busy(const struct rp_profile_thread *t)
{
    return off_ns(t) < t->wall_ns / 100 * 99;
}

static enum rp_status count_threads(const struct rp_view *view, struct rp_quality *quality, struct rp_err *err)
{
    const struct rp_profile *p = view->profile;
    bool *sampled = rp_calloc(p->threads.n + 1, sizeof *sampled);
    struct numbers *order = rp_calloc(p->threads.n + 1, sizeof *order);
    size_t n = 0;
    enum rp_status status = sampled && order ? RP_OK : rp_fail_nomem(err);

    if (status)
        goto done;
    for (size_t i = 0; i < p->counts.n; i++)
        if (view->stack_of[i] != RP_NO_STACK)
            sampled[p->counts.at[i].thread] = true;
    for (size_t i = 0; i < p->threads.n; i++)
        if (sampled[i])
            order[n++] = numbers_of(p, &p->threads.at[i]);
    qsort(order, n, sizeof *order, by_numbers);
    for (size_t i = 0; i < p->threads.n; i++) {
        const struct rp_profile_thread *t = &p->threads.at[i];
        struct numbers thread = numbers_of(p, t);

        if (!view->passes[i])
            continue;
        quality->threads_seen += sampled[i];
        if (!sampled[i] && !was_busy(t) && !sampled_elsewhere(order, n, &thread)) {
            quality->idle_threads++;
            quality->idle_seconds += t->wall_ns > t->cpu_ns ? (double)(t->wall_ns - t->cpu_ns) / 1e9 : 0;
        } else {
            quality->off_seconds += (double)off_ns(t) / 1e9;
        }
    }
done:
    rp_free(order);
    rp_free(sampled);
    return status;
}

double rp_lost_part(const struct rp_quality *quality, const struct rp_run *run)
{
    double kept = (double)quality->samples + (double)run->switches + (double)run->wait_stacks, lost = (double)quality->lost;

    return lost > 0 ? lost / (lost + kept) : 0;
}

enum rp_status rp_view_quality(const struct rp_view *view, struct rp_quality *quality, struct rp_err *err)
{
    const struct rp_profile *p = view->profile;
    struct rp_frames frames = {0};
    enum rp_status status;

    *quality = (struct rp_quality){.samples = view->samples, .lost = p->run.lost, .throttled = p->run.throttled, .vanished = p->run.vanished,
                                    .gave_up = cat_matcher_gave_up(view->matcher)};
    status = count_threads(view, quality, err);
    for (size_t i = 0; i < view->stacks.n && status == RP_OK; i++) {
        const struct rp_view_stack *s = &view->stacks.at[i];
        unsigned seen;

        status = rp_frames_take(view, s->node, &frames, err);
        if (status)
            break;
        seen = look_at(view, &frames);
        quality->truncated += seen & CUT ? s->samples : 0;
        quality->guessed += seen & GUESSED ? s->samples : 0;
        quality->jit_unnamed += seen & JIT_UNNAMED ? s->samples : 0;
        quality->unnamed += frames.at.n && is_unnamed(p, &frames.at.at[0]) ? s->samples : 0;
    }
    quality->complete = quality->samples - quality->truncated;
    rp_frames_release(&frames);
    return status;
}

static int heavier(const void *a, const void *b)
{
    const struct rp_nameless *x = a, *y = b;

    if (x->samples != y->samples)
        return x->samples < y->samples ? 1 : -1;
    return x->image < y->image ? -1 : x->image > y->image;
}

enum rp_status rp_view_nameless(const struct rp_view *view, struct rp_nameless_table *table, struct rp_err *err)
{
    const struct rp_profile *p = view->profile;
    uint64_t *samples = rp_calloc(p->images.n + 1, sizeof *samples);
    struct rp_frames frames = {0};
    enum rp_status status = samples ? RP_OK : rp_fail_nomem(err);

    memset(table, 0, sizeof *table);
    for (size_t i = 0; i < view->stacks.n && status == RP_OK; i++) {
        status = rp_frames_take(view, view->stacks.at[i].node, &frames, err);
        if (status == RP_OK && frames.at.n && is_unnamed(p, &frames.at.at[0]))
            samples[p->locations.at[frames.at.at[0].location].image] += view->stacks.at[i].samples;
    }
    for (uint32_t i = 0; i < p->images.n && status == RP_OK; i++) {
        struct rp_nameless *row = samples[i] ? rp_vec_add(&table->rows) : NULL;

        if (row)
            *row = (struct rp_nameless){i, samples[i]};
        else if (samples[i])
            status = rp_fail_nomem(err);
    }
    if (status)
        rp_vec_release(&table->rows);
    else if (table->rows.n)
        qsort(table->rows.at, table->rows.n, sizeof *table->rows.at, heavier);
    rp_frames_release(&frames);
    rp_free(samples);
    return status;
}
