/* SPDX-License-Identifier: MIT */
/* One function's inclusive view: in which part of all samples, and of all waiting, is it on the stack?
 *
 * The trap is the name. People write it as the report shows it, without parameters, and several functions can bear it (overloads, copies in two files): they
 * are taken together, and a stack with two of them counts once. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/stats.h"
#include "analyze/wait_stacks.h"
#include "symbolize/symbolize.h"

enum { NEAR_MAX = 6 };

/* A function's name as the report shows it: without return type and parameters. */
static enum rp_status short_name(const struct rp_profile *p, const struct rp_function *f, struct rp_buf *out, struct rp_err *err)
{
    rp_buf_clear(out);
    if (f->how == RP_NAME_JIT || f->how == RP_NAME_OFFSET || f->how == RP_NAME_MARK)
        rp_buf_puts(out, rp_profile_text(p, f->name));
    else
        rp_demangle(rp_profile_text(p, f->raw ? f->raw : f->name), true, out);
    return out->failed ? rp_fail_nomem(err) : RP_OK;
}

static bool fits(const char *pattern, bool glob, const char *name)
{
    return glob ? fnmatch(pattern, name, FNM_NOESCAPE) == 0 : strcmp(pattern, name) == 0;
}

static enum rp_status find(const struct rp_view *view, const char *name, struct rp_function_view *out, struct rp_err *err)
{
    const struct rp_profile *p = view->profile;
    bool glob = strpbrk(name, "*?") != NULL;
    struct rp_buf text = {0};
    enum rp_status status = RP_OK;

    for (uint32_t i = 0; i < p->functions.n && status == RP_OK; i++) {
        const struct rp_function *f = &p->functions.at[i];
        uint32_t *new;

        if (view->same[i] != i)
            continue;
        status = short_name(p, f, &text, err);
        if (status || !(fits(name, glob, rp_profile_text(p, f->name)) || fits(name, glob, rp_buf_text(&text))))
            continue;
        new = rp_vec_add(&out->matched);
        if (!new) {
            status = rp_fail_nomem(err);
            break;
        }
        *new = i;
        out->functions[i] = true;
    }
    rp_buf_release(&text);
    return status;
}

/* Some names that hold the text, or any part of it that a report may have left out. */
static enum rp_status none_fits(const struct rp_view *view, const char *name, struct rp_err *err)
{
    const struct rp_profile *p = view->profile;
    struct rp_buf list = {0}, text = {0};
    enum rp_status status = RP_OK;
    size_t n = 0;

    for (uint32_t i = 0; i < p->functions.n && n < NEAR_MAX && list.length < RP_ERR_TEXT / 2 && status == RP_OK; i++) {
        if (view->same[i] != i || !*name || !strcasestr(rp_profile_text(p, p->functions.at[i].name), name))
            continue;
        status = short_name(p, &p->functions.at[i], &text, err);
        rp_buf_printf(&list, "%s%.80s", n++ ? ", " : "", rp_buf_text(&text));
    }
    if (!status)
        status = n ? rp_fail(err, RP_NOTFOUND, "no function has the name %.200s; these hold it: %s", name, rp_buf_text(&list))
                   : rp_fail(err, RP_NOTFOUND, "no function has the name %.200s; `--by function` lists those that were seen", name);
    rp_buf_release(&list);
    rp_buf_release(&text);
    return status;
}

enum { SELF = 1, TOTAL = 2 };

static unsigned look(const struct rp_function_view *f, const struct rp_frames *frames)
{
    unsigned seen = 0;

    for (size_t i = 0; i < frames->at.n; i++)
        if (f->functions[frames->at.at[i].function])
            seen |= i == 0 ? SELF | TOTAL : TOTAL;
    return seen;
}

static enum rp_status add_samples(const struct rp_view *view, struct rp_function_view *out, struct rp_err *err)
{
    uint64_t *self = rp_calloc(view->nblocks + 1, sizeof *self), *total = rp_calloc(view->nblocks + 1, sizeof *total);
    uint8_t *seen = rp_calloc(view->stacks.n + 1, sizeof *seen);
    struct rp_frames frames = {0};
    struct rp_design design;
    struct rp_interval a, b;
    double z = rp_normal_quantile(0.975);
    enum rp_status status = self && total && seen ? RP_OK : rp_fail_nomem(err);

    for (size_t i = 0; i < view->stacks.n && status == RP_OK; i++) {
        status = rp_frames_take(view, view->stacks.at[i].node, &frames, err);
        if (!status)
            seen[i] = (uint8_t)look(out, &frames);
    }
    for (size_t i = 0; i < view->profile->counts.n && status == RP_OK; i++) {
        const struct rp_count *c = &view->profile->counts.at[i];
        unsigned what = view->stack_of[i] == RP_NO_STACK ? 0 : seen[view->stack_of[i]];

        self[c->block] += what & SELF ? c->n : 0;
        total[c->block] += what & TOTAL ? c->n : 0;
        out->self += what & SELF ? c->n : 0;
        out->total += what & TOTAL ? c->n : 0;
    }
    if (!status) {
        out->samples = view->samples;
        rp_design_init(&design, view->nblocks);
        a = rp_wilson((double)out->self, (double)view->samples, rp_design_effect(&design, view->block_samples, self, NULL), z);
        b = rp_wilson((double)out->total, (double)view->samples, rp_design_effect(&design, view->block_samples, total, NULL), z);
        out->self_low = a.low;
        out->self_high = a.high;
        out->total_low = b.low;
        out->total_high = b.high;
    }
    rp_frames_release(&frames);
    rp_free(self);
    rp_free(total);
    rp_free(seen);
    return status;
}

static enum rp_status add_waits(const struct rp_waits *waits, struct rp_function_view *out, struct rp_err *err)
{
    struct rp_frames frames = {0};
    enum rp_status status = RP_OK;

    for (size_t i = 0; i < waits->stacks->at.n && status == RP_OK; i++) {
        const struct rp_wait_stack *more = &waits->stacks->more.at[i];

        if (more->idle && !waits->keep_idle)
            continue;
        status = rp_frames_take(waits->view, waits->stacks->at.at[i].node, &frames, err);
        if (status || !(look(out, &frames) & TOTAL))
            continue;
        out->waits += more->n;
        out->seconds += more->ns / 1e9;
    }
    out->share = waits->busy > 0 ? out->seconds / waits->busy : 0;
    rp_frames_release(&frames);
    return status;
}

enum rp_status rp_view_function(const struct rp_view *view, const struct rp_waits *waits, const char *name, struct rp_function_view *out,
                                struct rp_err *err)
{
    enum rp_status status;

    memset(out, 0, sizeof *out);
    out->functions = rp_calloc(view->profile->functions.n + 1, sizeof *out->functions);
    status = out->functions ? find(view, name, out, err) : rp_fail_nomem(err);
    if (!status && !out->matched.n)
        status = none_fits(view, name, err);
    if (!status)
        status = add_samples(view, out, err);
    if (!status && waits)
        status = add_waits(waits, out, err);
    if (status)
        rp_function_view_release(out);
    return status;
}

void rp_function_view_release(struct rp_function_view *function)
{
    rp_vec_release(&function->matched);
    rp_free(function->functions);
    memset(function, 0, sizeof *function);
}
