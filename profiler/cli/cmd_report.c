/* SPDX-License-Identifier: MIT */
/* `rowprof report FILE`: a kept profile, seen through the rules of today. */
#include "base/status.h"
#include "cli/command.h"
#include "cli/show.h"
#include "store/store.h"

enum rp_status rp_cmd_report(struct rp_args *args, struct rp_err *err)
{
    struct cat_rules *rules = NULL;
    struct rp_profile profile;
    enum rp_status status;

    if (args->operands.n != 1 || !*args->operands.at[0])
        return rp_fail(err, RP_USAGE, args->operands.n > 1 ? "`rowprof %s` shows one profile at a time" : "`rowprof %s` takes the path of a profile: rowprof report FILE",
                       args->command->name);
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
    rp_profile_release(&profile);
    cat_rules_free(rules);
    return status;
}
