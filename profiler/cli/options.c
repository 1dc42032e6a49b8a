/* SPDX-License-Identifier: MIT */
/* The tables of options and their handlers, see options.h. A handler checks one value and says in one sentence what was expected; what depends on
 * several options is checked by the command. */
#include "cli/options.h"

#include <inttypes.h>
#include <string.h>

#include "base/parse.h"
#include "cli/option_setters.h"
#include "report/emit.h"

/* A week: longer is a mistyped number. 100 kHz: the kernel allows no more by default (perf_event_max_sample_rate). */
static const double seconds_max = 7 * 86400.0, seconds_min = 0.01;
enum { HZ_MAX = 100000, WIDTH_MIN = 60, WIDTH_MAX = 10000, PIDS_MAX = 1024, DEFAULT_MIN_SAMPLES = 5 };

void rp_settings_init(struct rp_settings *s)
{
    *s = (struct rp_settings){.seconds = 10, .min_samples = DEFAULT_MIN_SAMPLES, .format = &rp_emit_text};
    rp_bench_settings_init(&s->bench);
}

void rp_settings_release(struct rp_settings *s)
{
    rp_vec_release(&s->pids);
    rp_vec_release(&s->rules);
    rp_compare_settings_release(&s->compare);
    rp_bench_settings_release(&s->bench);
}

static enum rp_status add_pid(struct rp_settings *s, uint64_t pid, struct rp_err *err)
{
    uint32_t *added;

    for (size_t i = 0; i < s->pids.n; i++) {
        if (s->pids.at[i] == pid)
            return RP_OK;
    }
    if (s->pids.n == PIDS_MAX)
        return rp_fail(err, RP_USAGE, "--pid was given more than %d times", PIDS_MAX);
    added = rp_vec_add(&s->pids);
    if (!added)
        return rp_fail_nomem(err);
    *added = (uint32_t)pid;
    return RP_OK;
}

/* What pgrep prints without -d, where several processes fit. */
static bool has_blanks_between(const char *value)
{
    return value[strcspn(value, " \n")] && !value[strspn(value, "0123456789 \n")];
}

/* One number, or several parted by commas, as pgrep -d, gives them. A name is refused: it may fit another process. */
static enum rp_status set_pid(struct rp_settings *s, const char *value, struct rp_err *err)
{
    struct rp_cursor c = rp_cursor_str(value);
    enum rp_status status = RP_OK;
    uint64_t pid;

    if (has_blanks_between(value))
        return rp_fail(err, RP_USAGE, "--pid takes several process ids parted by commas, not by blanks or lines: --pid \"$(pgrep -d, -f 'node server.mjs')\"");
    do {
        if (!rp_cursor_u64(&c, &pid) || (!rp_cursor_done(&c) && *c.at != ',')) {
            if (value[strspn(value, "0123456789,-+.")])
                return rp_fail(
                    err, RP_USAGE,
                    "--pid takes a process id, not the name '%s'; look it up with `pgrep -f '%s'`, for example rowprof --pid \"$(pgrep -nf '%s')\"",
                    value, value, value);
            return rp_fail(err, RP_USAGE, "--pid takes a process id such as 1234, not '%s'", value);
        }
        if (pid < 1 || pid > INT32_MAX)
            return rp_fail(err, RP_USAGE, "--pid takes a process id from 1 to %d, not '%s'", INT32_MAX, value);
        status = add_pid(s, pid, err);
    } while (!status && rp_cursor_take(&c, ","));
    return status;
}

static enum rp_status set_seconds(struct rp_settings *s, const char *value, struct rp_err *err)
{
    if (!rp_parse_double(value, seconds_min, seconds_max, &s->seconds))
        return rp_fail(err, RP_USAGE, "--seconds takes a number of seconds from %g to %g such as 10 or 0.5, not '%s'", seconds_min, seconds_max,
                       value);
    return RP_OK;
}

static enum rp_status set_freq(struct rp_settings *s, const char *value, struct rp_err *err)
{
    uint64_t hz;

    if (!rp_parse_u64(value, 1, HZ_MAX, &hz))
        return rp_fail(err, RP_USAGE, "--freq takes samples per second, a whole number from 1 to %d, not '%s'; %d is the default", HZ_MAX, value,
                       RP_HZ_PERF);
    s->hz = (uint32_t)hz;
    return RP_OK;
}

static enum rp_status set_width(struct rp_settings *s, const char *value, struct rp_err *err)
{
    if (!rp_parse_u64(value, 0, WIDTH_MAX, &s->width) || (s->width && s->width < WIDTH_MIN))
        return rp_fail(err, RP_USAGE, "--width takes a number of columns from %d to %d, or 0 for no limit, not '%s'", WIDTH_MIN, WIDTH_MAX, value);
    s->width_given = true;
    return RP_OK;
}

static enum rp_status set_format(struct rp_settings *s, const char *value, struct rp_err *err)
{
    const struct rp_emit_ops *format = rp_emit_find(value);

    if (!format)
        return rp_fail(err, RP_USAGE, "--format takes text, json or csv, not '%s'", value);
    s->format = format;
    return RP_OK;
}

#define WORD(field, option, what) static RP_OPTION_WORD(set_##field, field, option, what)
#define SWITCH(name, field, to) static RP_OPTION_SWITCH(set_##name, field, to)

static RP_OPTION_LIST(set_rules, rules, "--rules", "the path of a rule file or of a folder of them")
static RP_OPTION_CHOICE(set_by, by, enum rp_by, "--by takes category, function, module, thread, process, wait, idle or lock", [RP_BY_CATEGORY] = "category",
                        [RP_BY_FUNCTION] = "function", [RP_BY_MODULE] = "module", [RP_BY_THREAD] = "thread", [RP_BY_PROCESS] = "process",
                        [RP_BY_WAIT] = "wait", [RP_BY_IDLE] = "idle", [RP_BY_LOCK] = "lock")
static RP_OPTION_CHOICE(set_clock, clock, enum rp_report_clock, "--clock takes cpu or wall", [RP_REPORT_CPU] = "cpu", [RP_REPORT_WALL] = "wall")
static RP_OPTION_CHOICE(set_sampler, sampler, enum rp_sampler_wish, "--sampler takes auto, perf or ptrace", [RP_SAMPLER_AUTO] = "auto",
                        [RP_SAMPLER_PERF] = "perf", [RP_SAMPLER_PTRACE] = "ptrace")
static RP_OPTION_CHOICE(set_unwinder, unwinder, enum rp_unwind_engine, "--unwinder takes auto, cfi, libdw or libunwind", [RP_UNWIND_AUTO] = "auto",
                        [RP_UNWIND_CFI] = "cfi", [RP_UNWIND_LIBDW] = "libdw", [RP_UNWIND_LIBUNWIND] = "libunwind")
WORD(output, "--output", "the path of the file to write")
WORD(save_snapshots, "--save-snapshots", "the path of a new folder")
WORD(from_snapshots, "--from-snapshots", "the path of a folder that --save-snapshots filled")
WORD(category, "--category", "the name or id of a category")
WORD(function, "--function", "the name of a function")
WORD(profile, "--profile", "the path of a profile")
SWITCH(ready, ready, true)
SWITCH(children, children, true)
SWITCH(end_child, end_child, true)
SWITCH(no_inlines, no_inlines, true)
SWITCH(debuginfod, debuginfod, true)
SWITCH(tree, tree, RP_TREE_FULL)
SWITCH(no_tree, tree, RP_TREE_NONE)
SWITCH(callers, callers, true)
SWITCH(full_stacks, full_stacks, true)
SWITCH(kernel, no_kernel, false)
SWITCH(uncategorized, uncategorized, true)
SWITCH(no_waiting, no_waiting, true)
SWITCH(idle, idle, true)
SWITCH(locks, locks, true)
SWITCH(blocked, blocked, true)
SWITCH(no_default_rules, no_default_rules, true)
SWITCH(quiet, quiet, true)
SWITCH(verbose, verbose, true)
SWITCH(help, help, true)
SWITCH(version, version, true)

static enum rp_status set_self(struct rp_settings *s, const char *value, struct rp_err *err)
{
    (void)value;
    (void)err;
    s->by_self = true;
    s->total = false;
    return RP_OK;
}

static const struct rp_option record_options[] = {
    {"pid", 'p', "PID", "watch this process; may be given several times, or as 12,34", set_pid},
    {"seconds", 'd', "S", "for how long, fractions too (default 10)", set_seconds},
    {"duration", 0, "S", "the same as --seconds", set_seconds},
    {"freq", 'F', "HZ", "samples per second and running thread (default 997, with ptrace 250)", set_freq},
    {"children", 0, NULL, "also watch the processes that it has forked and will fork, and theirs", set_children},
    {"sampler", 0, "WHICH", "auto (default): perf, and ptrace where perf_event is refused; perf; ptrace", set_sampler},
    {"unwinder", 0, "WHICH", "auto (default) and cfi: rowprof's own, fastest; libdw and libunwind for a second opinion", set_unwinder},
    {"no-inlines", 0, NULL, "names from symbol tables only: no inlined functions, no lines", set_no_inlines},
    {"debuginfod", 0, NULL, "ask the debuginfod servers of $DEBUGINFOD_URLS for missing names", set_debuginfod},
    {"save-snapshots", 0, "DIR", "also save what each stack was read from, to replay it", set_save_snapshots},
    {"from-snapshots", 0, "DIR", "replay saved snapshots instead of watching a process", set_from_snapshots},
    {0},
};

static const struct rp_option launch_options[] = {
    {"ready", 0, NULL, "wait for a line READY pid=N on the command's stderr, then watch process N", set_ready},
    {"end-child", 0, NULL, "end the command when the time is over; otherwise it runs on", set_end_child},
    {0},
};

static const struct rp_option keep_options[] = {
    {"output", 'o', "FILE", "keep the profile in this file, for `rowprof report`", set_output},
    {"force", 0, NULL, "overwrite the file, or the folder of --save-snapshots", rp_set_force},
    {0},
};

static const struct rp_option show_options[] = {
    {"by", 0, "WHAT", "one row per category (default), function, module, thread, process, wait, idle or lock", set_by},
    {"category", 0, "NAME", "show the whole call tree of this category; its name, id, or a part of one", set_category},
    {"function", 0, "NAME", "show one function with all below it: self and total share, callers, callees", set_function},
    {"clock", 0, "CLOCK", "shares of cpu time (default), or of wall time: running, preempted and waiting", set_clock},
    {"no-waiting", 0, NULL, "leave waiting out; when recording, do not measure it", set_no_waiting},
    {"idle", 0, NULL, "keep idle waits in the tables instead of dropping them", set_idle},
    {"locks", 0, NULL, "show the locks that were waited for, who waits and who held them", set_locks},
    {"thread", 't', "NAME|TID", "restrict every figure to the threads of this name, or to one", rp_set_thread},
    {"tree", 0, NULL, "show whole call trees, of every category", set_tree},
    {"no-tree", 0, NULL, "show no call trees", set_no_tree},
    {"min-samples", 0, "N", "hide parts of trees with fewer samples (default 5)", rp_set_min_samples},
    {"callers", 0, NULL, "turn trees round: where the time is spent first, its callers below", set_callers},
    {"full-stacks", 0, NULL, "trees from the root of the stacks instead of the category's callers", set_full_stacks},
    {"self", 0, NULL, "order by own time", set_self},
    {"total", 0, NULL, "order by time with callees, and show it as a column", rp_set_total},
    {"kernel", 0, NULL, "show kernel frames (default)", set_kernel},
    {"no-kernel", 0, NULL, "cut kernel frames off: their time belongs to the function that called the kernel", rp_set_no_kernel},
    {0},
};

static const struct rp_option report_options[] = {
    {"uncategorized", 0, NULL, "list what no rule claims, heaviest first, as a rule file that would", set_uncategorized},
    {0},
};

static const struct rp_option rules_options[] = {
    {"rules", 0, "FILE|DIR", "ask these rules before the shipped ones; may be given several times", set_rules},
    {"no-default-rules", 0, NULL, "leave the shipped rules out", set_no_default_rules},
    {0},
};

static const struct rp_option check_options[] = {
    {"profile", 0, "FILE", "also name the rules that claim nothing in this profile", set_profile},
    {"no-default-rules", 0, NULL, "check without the shipped rules beside them", set_no_default_rules},
    {0},
};

static const struct rp_option explain_options[] = {
    {"thread", 't', "NAME", "as if the thread had this name", rp_set_thread},
    {"blocked", 0, NULL, "as if the thread was waiting, not running", set_blocked},
    {"no-kernel", 0, NULL, "as if kernel frames were cut off", rp_set_no_kernel},
    {0},
};

static const struct rp_option output_options[] = {
    {"format", 0, "FORM", "text (default), json or csv", set_format},
    {"width", 0, "N", "fit lines into N columns, 60 or more, or 0 for no limit (default: the terminal's)", set_width},
    {"color", 0, "WHEN", "auto (default), always or never; NO_COLOR is heeded", rp_set_color},
    {0},
};

static const struct rp_option compare_watch_options[] = {
    {"pid", 'p', "PID", "the second profile is of this process, recorded now", set_pid},
    {"seconds", 'd', "S", "for how long, fractions too (default 10)", set_seconds},
    {"freq", 'F', "HZ", "samples per second and running thread (default 997)", set_freq},
    {0},
};

static const struct rp_option compare_output_options[] = {
    {"format", 0, "FORM", "text (default), json, csv or markdown", rp_compare_set_form},
    {"width", 0, "N", "fit lines into N columns, 60 or more, or 0 for no limit (default: the terminal's)", set_width},
    {"color", 0, "WHEN", "auto (default), always or never; NO_COLOR is heeded", rp_set_color},
    {0},
};

static const struct rp_option common_options[] = {
    {"quiet", 'q', NULL, "no progress, no messages but errors", set_quiet},
    {"verbose", 'v', NULL, "full signatures and command lines; how the run went", set_verbose},
    {"help", 'h', NULL, "show this help", set_help},
    {"version", 0, NULL, "show the version", set_version},
    {0},
};

const struct rp_option_group rp_options_record = {"Recording", record_options};
const struct rp_option_group rp_options_launch = {"Launching", launch_options};
const struct rp_option_group rp_options_keep = {"Keeping", keep_options};
const struct rp_option_group rp_options_show = {"What to show", show_options};
const struct rp_option_group rp_options_report = {"Rules to be written", report_options};
const struct rp_option_group rp_options_rules = {"Rules", rules_options};
const struct rp_option_group rp_options_check = {"Checking", check_options};
const struct rp_option_group rp_options_explain = {"Circumstances", explain_options};
const struct rp_option_group rp_options_output = {"How to show it", output_options};
const struct rp_option_group rp_options_compare_watch = {"Recording the second profile", compare_watch_options};
const struct rp_option_group rp_options_compare_output = {"How to show a comparison", compare_output_options};
const struct rp_option_group rp_options_common = {"Always", common_options};
