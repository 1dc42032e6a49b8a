/* SPDX-License-Identifier: MIT */
/* See choose.h. The trap: a refusal comes when sampling starts, not before, because only opening the events tells. */
#include "fold/choose.h"

#include <stdio.h>
#include <string.h>

#include "target/permission.h"

static enum rp_status new_ptrace(const struct rp_sampler_options *options, const char *why, struct rp_sampler **sampler, struct rp_err *err)
{
    struct rp_sampler_options o = *options;

    o.hz = o.hz ? o.hz : (uint32_t)RP_HZ_PTRACE;
    return rp_sampler_ptrace_new(&o, why, sampler, err);
}

enum rp_status rp_choose_new(enum rp_sampler_wish wish, const struct rp_sampler_options *options, struct rp_sampler **sampler, struct rp_err *err)
{
    struct rp_sampler_options o = *options;

    if (wish == RP_SAMPLER_PTRACE)
        return new_ptrace(options, NULL, sampler, err);
    o.hz = o.hz ? o.hz : (uint32_t)RP_HZ_PERF;
    return rp_sampler_perf_new(&o, sampler, err);
}

/* The sentence up to its remedy: that rowprof found one itself needs no advice. */
static void reason_of(const struct rp_err *refusal, char *why, size_t size)
{
    const char *end = strchr(refusal->text, ';');
    int length = end ? (int)(end - refusal->text) : (int)strlen(refusal->text);

    snprintf(why, size, "%.*s, so running threads are stopped for a copy by ptrace instead; kernel frames are not seen, their time belongs to the function that called.",
             length, refusal->text);
}

static bool any_foreign(const struct rp_sampler_options *options)
{
    struct rp_permission_facts facts;

    for (size_t i = 0; i < options->npids; i++) {
        rp_permission_facts_read(options->pids[i], &facts);
        if (rp_permission_foreign(&facts))
            return true;
    }
    return false;
}

enum rp_status rp_choose_start(enum rp_sampler_wish wish, const struct rp_sampler_options *options, struct rp_sampler **sampler, struct rp_err *err)
{
    enum rp_status status = (*sampler)->ops->start(*sampler, err);
    struct rp_err refusal;
    char why[400];

    if (wish != RP_SAMPLER_AUTO || status != RP_PERM)
        return status;
    refusal = *err;
    (*sampler)->ops->free(*sampler);
    *sampler = NULL;
    reason_of(&refusal, why, sizeof why);
    status = new_ptrace(options, why, sampler, err);
    if (!status)
        status = (*sampler)->ops->start(*sampler, err);
    if (status == RP_PERM) {
        struct rp_err second = *err;

        if (any_foreign(options)) {
            *err = refusal;
            return RP_PERM;
        }
        return rp_fail(err, RP_PERM, "%.480s. The other way is closed, too: %.480s", refusal.text, second.text);
    }
    return status;
}
