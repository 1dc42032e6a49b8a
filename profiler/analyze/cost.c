/* SPDX-License-Identifier: MIT */
/* See cost.h. The trap is the denominator: a RATE line counts the CPU time of the whole process, the samples may be those of one thread. */
#include "analyze/cost.h"

#include <math.h>
#include <string.h>

#include "analyze/stats.h"
#include "analyze/view_stack.h"

enum { LINES_MIN = 3 };

const char *rp_fact_find(const struct rp_profile *profile, const char *name)
{
    for (size_t i = 0; i < profile->facts.n; i++)
        if (!strcmp(rp_profile_text(profile, profile->facts.at[i].name), name))
            return rp_profile_text(profile, profile->facts.at[i].value);
    return NULL;
}

/* CPU time of the threads that pass, or of all. */
static double cpu_ns(const struct rp_view *view, bool all)
{
    double sum = 0;

    for (size_t i = 0; i < view->profile->threads.n; i++)
        sum += all || view->passes[i] ? (double)view->profile->threads.at[i].cpu_ns : 0;
    return sum;
}

void rp_main_thread_samples(const struct rp_profile *p, uint64_t *of_main, uint64_t *all)
{
    for (size_t i = 0; i < p->counts.n; i++) {
        const struct rp_count *c = &p->counts.at[i];
        const struct rp_profile_thread *t = &p->threads.at[c->thread];

        if (c->state != RP_STATE_RUNNING)
            continue;
        *all += c->n;
        *of_main += t->tid == p->processes.at[t->process].pid ? c->n : 0;
    }
}

/* The view's part of the process's CPU time. */
static double part_of_process(const struct rp_view *view)
{
    double all = cpu_ns(view, true);
    uint64_t of_main = 0, samples = 0;

    rp_main_thread_samples(view->profile, &of_main, &samples);
    if (samples <= view->samples)
        return 1;
    return all > 0 ? cpu_ns(view, false) / all : (double)view->samples / (double)samples;
}

static struct rp_cost of_lines(const struct rp_view *view)
{
    const struct rp_profile *p = view->profile;
    double calls = 0, cpu = 0, rows = 0, square = 0, part = part_of_process(view);
    struct rp_cost c = {.lines = p->rates.n};

    for (size_t i = 0; i < p->rates.n; i++) {
        calls += (double)p->rates.at[i].calls;
        rows += (double)p->rates.at[i].rows;
        cpu += (double)p->rates.at[i].cpu_ns;
    }
    if (!(calls > 0) || !(cpu > 0))
        return c;
    c.known = true;
    c.ns = cpu / calls * part;
    c.rows = rows / calls;
    for (size_t i = 0; i < p->rates.n; i++) {
        double n = (double)p->rates.at[i].calls, off = (double)p->rates.at[i].cpu_ns - cpu / calls * n;

        square += off * off;
    }
    /* The variance of a ratio of sums, widened as Student's t is for so few lines. */
    if (p->rates.n >= LINES_MIN) {
        double lines = (double)p->rates.n, t = rp_t_quantile(0.975, lines - 1) / rp_normal_quantile(0.975);

        c.variance = square * lines / (lines - 1) / (calls * calls) * part * part * t * t;
    }
    return c;
}

struct rp_cost rp_cost_of(const struct rp_view *view, double calls_per_second, double rows)
{
    const struct rp_run *run = &view->profile->run;
    double cpu = cpu_ns(view, false);
    struct rp_cost c;

    if (calls_per_second > 0) {
        if (!(cpu > 0) && run->hz)
            cpu = (double)view->samples / run->hz * 1e9;
        c = (struct rp_cost){.known = cpu > 0 && run->seconds_ns, .rows = of_lines(view).rows};
        if (c.known)
            c.ns = cpu / ((double)run->seconds_ns / 1e9) / calls_per_second;
    } else {
        c = of_lines(view);
    }
    if (rows > 0)
        c.rows = rows;
    return c;
}

struct rp_cost rp_cost_pool(const struct rp_cost *costs, size_t n)
{
    struct rp_cost all = {.known = n > 0};
    bool exact = false;

    for (size_t i = 0; i < n; i++) {
        all.known &= costs[i].known;
        all.ns += costs[i].ns / (double)n;
        all.rows += costs[i].rows / (double)n;
        all.variance += costs[i].variance / ((double)n * (double)n);
        all.lines += costs[i].lines;
        exact |= !(costs[i].variance > 0);
    }
    if (exact)
        all.variance = 0;
    return all;
}

struct rp_part rp_part_of(const struct rp_tally_row *row, uint64_t samples, const struct rp_cost *cost)
{
    double n = (double)samples / fmax(1, row->deff), k = (double)row->samples / fmax(1, row->deff);
    double p = samples ? (double)row->samples / (double)samples : 0, smooth = (k + 2) / (n + 4);
    struct rp_part part = {p, p * cost->ns, cost->ns * cost->ns * smooth * (1 - smooth) / (n + 4) + p * p * cost->variance};

    return part;
}
