/* SPDX-License-Identifier: MIT */
/* `rowprof locks`: the locks of a kept profile, or of a process watched now. Neither a report nor a recording of its own: the same with other rows. */
#include "cli/command.h"

enum rp_status rp_cmd_locks(struct rp_args *args, struct rp_err *err)
{
    const struct rp_settings *s = &args->settings;
    bool watches = s->pids.n || args->launch || s->from_snapshots;

    if (s->no_waiting)
        return rp_fail(err, RP_USAGE, "--no-waiting leaves out all that `rowprof locks` shows; leave it out");
    if (args->operands.n && watches)
        return rp_fail(err, RP_USAGE, "`rowprof locks` takes a kept profile or something to watch, not both");
    if (!args->operands.n && !watches)
        return rp_fail(err, RP_USAGE, "`rowprof locks` takes the path of a profile, or a process to watch: rowprof locks --pid PID");
    args->settings.by = RP_BY_LOCK;
    return args->operands.n ? rp_cmd_report(args, err) : rp_cmd_record(args, err);
}
