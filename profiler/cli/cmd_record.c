/* SPDX-License-Identifier: MIT */
/* `rowprof --pid`, `rowprof record` and `rowprof -- COMMAND`: one recording.
 *
 * The order is the point: whatever can be refused is refused before the target is touched (options, rules, the path to keep the profile), what was
 * recorded is kept before it is shown, and a failure to keep it does not stop it from being shown. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "cli/command.h"
#include "cli/keep.h"
#include "cli/launch.h"
#include "cli/said.h"
#include "cli/show.h"
#include "cli/terminal.h"
#include "cli/thread_check.h"
#include "fold/session.h"
#include "report/emit.h"

struct recording {
    const struct rp_settings *settings;
    struct rp_args *args;
    const volatile sig_atomic_t *stop;
    struct rp_launch launch;
    uint32_t launched; /* pid to watch in launch mode */
    struct rp_session *session;
    struct rp_profile profile;
    bool has_profile;
    struct rp_progress progress;
};

static enum rp_status check_usage(const struct rp_args *args, struct rp_err *err)
{
    const struct rp_settings *s = &args->settings;
    int targets = (s->pids.n > 0) + (args->launch != NULL) + (s->from_snapshots != NULL);

    if (args->launch && !args->launch[0])
        return rp_fail(err, RP_USAGE, "behind -- stands the command to launch, but there is none");
    if (!targets)
        return rp_fail(err, RP_USAGE, "nothing to watch: give a process with --pid PID, or a command behind --");
    if (targets > 1)
        return rp_fail(err, RP_USAGE, "--pid, --from-snapshots and a command behind -- exclude each other; give one of them");
    if ((s->ready || s->end_child) && !args->launch)
        return rp_fail(err, RP_USAGE, "%s speaks of a command that rowprof launches; put it behind --, or leave the option out",
                       s->ready ? "--ready" : "--end-child");
    if (s->save_snapshots && s->from_snapshots)
        return rp_fail(err, RP_USAGE, "--save-snapshots and --from-snapshots exclude each other");
    if (s->force && !s->output && !s->save_snapshots)
        return rp_fail(err, RP_USAGE, "--force overwrites the file of -o or the folder of --save-snapshots, but there is neither");
    return RP_OK;
}

static enum rp_status open_session(struct recording *r, struct rp_err *err)
{
    const struct rp_settings *s = r->settings;
    struct rp_session_options options = {
        .sampler = {.pids = r->args->launch ? &r->launched : s->pids.at,
                    .npids = r->args->launch ? 1 : s->pids.n,
                    .hz = s->hz,
                    .waits = !s->no_waiting,
                    .children = s->children,
                    .kernel = true, /* --no-kernel is a way to look at it: counts stay */
                    .enable_on_exec = r->args->launch && !s->ready},
        .sampler_wish = s->sampler,
        .engine = s->unwinder,
        .symbolizer = {.no_inlines = s->no_inlines, .debuginfod = s->debuginfod},
        .save_snapshots = s->save_snapshots,
        .force = s->force,
        .from_snapshots = s->from_snapshots,
    };
    enum rp_status status = rp_session_new(&options, &r->session, err);

    return status ? status : rp_session_start(r->session, err);
}

/* Launches the command and gets a session on it, in the order that each way of launching needs. */
static enum rp_status open_launched(struct recording *r, struct rp_err *err)
{
    enum rp_status status = rp_launch_start(&r->launch, r->args->launch, r->settings->ready, err);

    if (status)
        return status;
    if (r->settings->ready) {
        status = rp_launch_go(&r->launch, err);
        if (!status)
            status = rp_launch_wait_ready(&r->launch, r->stop, &r->launched, err);
        if (!status)
            status = rp_thread_check(r->settings, &r->launched, 1, err);
        return status ? status : open_session(r, err);
    }
    r->launched = (uint32_t)r->launch.pid;
    status = open_session(r, err);
    return status ? status : rp_launch_go(&r->launch, err);
}

static void tell_run(const struct recording *r)
{
    struct rp_session_stats stats;

    if (!r->settings->verbose || r->settings->quiet)
        return;
    rp_session_stats(r->session, &stats);
    rp_message("first sample after %.1f ms; %" PRIu64 " frames of %" PRIu64 " stacks unwound in %.1f ms, %" PRIu64 " rows looked up, %" PRIu64
               " evaluated the slow way, %" PRIu64 " frames by frame pointer",
               (double)stats.first_sample_ns / 1e6, stats.unwind.frames, stats.unwind.walks, (double)stats.unwind_ns / 1e6,
               stats.unwind.rows_looked_up, stats.unwind.rows_slow, stats.unwind.by_frame_pointer);
    rp_message("%" PRIu64 " files parsed, %" PRIu64 " addresses named in %.1f ms while sampling; %.1f ms from the end of sampling to the profile",
               stats.symbolizer.files_parsed, stats.symbolizer.addresses_resolved, (double)stats.symbolize_ns / 1e6, (double)stats.finish_ns / 1e6);
}

/* The wait that a user feels: from the deadline to the last line. */
static void tell_end(const struct recording *r)
{
    struct rp_session_stats stats;

    if (!r->settings->verbose || r->settings->quiet)
        return;
    rp_session_stats(r->session, &stats);
    rp_message("all done %.1f ms after the end of sampling", (double)(rp_now_ns() - stats.end_ns) / 1e6);
}

static void go_on(void *context, double seconds, uint64_t samples)
{
    struct recording *r = context;

    rp_launch_listen(&r->launch);
    rp_progress_update(&r->progress, seconds, samples);
}

static enum rp_status record(struct recording *r, struct rp_err *err)
{
    enum rp_status status = r->args->launch ? open_launched(r, err) : open_session(r, err);
    uint64_t start_ns = rp_now_ns(), end_ns;

    if (status)
        return status;
    rp_progress_init(&r->progress, r->settings);
    status = rp_session_run(r->session, (uint64_t)(r->settings->seconds * 1e9), r->stop, go_on, r, err);
    end_ns = rp_now_ns();
    rp_launch_listen(&r->launch);
    rp_progress_clear(&r->progress);
    if (!status)
        status = rp_session_finish(r->session, &r->profile, err);
    if (!status)
        status = rp_said_keep(r->launch.said.at, r->launch.said.n, start_ns, end_ns, &r->profile, err);
    r->has_profile = !status || status == RP_NOTHING;
    tell_run(r);
    return status;
}

/* A thread that was asked for and never seen costs no recording, either. */
static void show_all_threads(const struct recording *r, const struct cat_rules *rules, const char *file, struct rp_err *err)
{
    struct rp_settings all = *r->settings;
    struct rp_err other;

    all.thread = NULL;
    if (!rp_show(&all, rules, &r->profile, file, &other))
        snprintf(err->text + strlen(err->text), sizeof err->text - strlen(err->text), "; the report is of all threads");
}

/* A report says so; who only records would hear of it when it is too late. */
static void warn_of_loss(const struct recording *r)
{
    struct rp_session_stats stats;
    const struct rp_sampler_stats *s = &stats.sampler;

    rp_session_stats(r->session, &stats);
    if (!r->settings->quiet && s->lost * 99 > s->samples + s->switches + s->peeks) /* more than 1 % of all */
        rp_message("%" PRIu64 " records were lost and %" PRIu64 " kept: the machine was too busy for this --freq", s->lost,
                   s->samples + s->switches + s->peeks);
}

/* Keeps and shows what was recorded. The first failure is the outcome, the later steps are done all the same. */
static enum rp_status keep_and_show(const struct recording *r, const struct cat_rules *rules, struct rp_err *err)
{
    const struct rp_settings *s = r->settings;
    bool only_keep = s->output && !strcmp(r->args->command->name, "record");
    enum rp_status kept = s->output ? rp_keep_save(&r->profile, s->output, s->force, err) : RP_OK, shown;
    struct rp_err other;

    if (only_keep && !kept) {
        warn_of_loss(r);
        if (!s->quiet)
            rp_message("the profile is kept in %s; `rowprof report %s` shows it", s->output, s->output);
        return rp_show_any(rules, &r->profile, s->output, err);
    }
    shown = rp_show(s, rules, &r->profile, kept ? NULL : s->output, &other);
    if (shown == RP_NOTFOUND && s->thread)
        show_all_threads(r, rules, kept ? NULL : s->output, &other);
    if (!kept && shown)
        *err = other;
    else if (s->output && !kept && !s->quiet)
        rp_message("the profile is kept in %s", s->output);
    return kept ? kept : shown;
}

enum rp_status rp_cmd_record(struct rp_args *args, struct rp_err *err)
{
    struct recording r = {.settings = &args->settings, .args = args, .launch = {.gate = -1, .exec_error = -1, .ready = -1}};
    struct cat_rules *rules = NULL;
    struct rp_err nothing;
    enum rp_status status = check_usage(args, err), recorded;

    if (!status)
        status = rp_rules_open(&args->settings, &rules, err);
    if (!status)
        status = rp_show_check(&args->settings, rules, err);
    if (!status && args->settings.output)
        status = rp_keep_check(args->settings.output, args->settings.force, err);
    if (!status)
        status = rp_thread_check(&args->settings, args->settings.pids.at, args->settings.pids.n, err);
    if (status)
        goto done;
    r.stop = rp_stop_install();
    status = recorded = record(&r, err);
    if (r.has_profile) {
        nothing = *err;
        status = keep_and_show(&r, rules, err);
        tell_end(&r);
        /* No samples is no failure where there are waits: then showing says what there is. */
        if (!status && recorded && !(recorded == RP_NOTHING && r.profile.wait_totals.n)) {
            *err = nothing;
            status = recorded;
        }
    }
done:
    rp_session_free(r.session);
    rp_launch_finish(&r.launch, args->settings.end_child);
    if (r.has_profile)
        rp_profile_release(&r.profile);
    cat_rules_free(rules);
    return status;
}
