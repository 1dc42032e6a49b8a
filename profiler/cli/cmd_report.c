/* SPDX-License-Identifier: MIT */
/* `rowprof report FILE`: a kept profile, seen through the rules of today. */
#include "base/status.h"
#include "cli/command.h"
#include "cli/show.h"
#include "store/store.h"

static uint64_t running_samples(const struct rp_profile *profile)
{
    uint64_t n = 0;

    for (size_t i = 0; i < profile->counts.n; i++)
        n += profile->counts.at[i].state == RP_STATE_RUNNING ? profile->counts.at[i].n : 0;
    return n;
}

enum rp_status rp_cmd_report(struct rp_args *args, struct rp_err *err)
{
    struct cat_rules *rules = NULL;
    struct rp_profile profile;
    enum rp_status status;

    if (args->operands.n != 1)
        return rp_fail(
            err, RP_USAGE,
            args->operands.n ? "`rowprof report` shows one profile at a time" : "`rowprof report` takes the path of a profile: rowprof report FILE");
    status = rp_rules_open(&args->settings, &rules, err);
    if (!status)
        status = rp_show_check(&args->settings, rules, err);
    if (!status)
        status = rp_store_load(&profile, args->operands.at[0], err);
    if (status) {
        cat_rules_free(rules);
        return status;
    }
    status = rp_show(&args->settings, rules, &profile, args->operands.at[0], err);
    if (!status && !running_samples(&profile))
        status = rp_fail(err, RP_NOTHING, "%s holds no samples: no thread of the target ran on a CPU while it was recorded", args->operands.at[0]);
    rp_profile_release(&profile);
    cat_rules_free(rules);
    return status;
}
