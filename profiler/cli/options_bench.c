/* SPDX-License-Identifier: MIT */
/* The options of `rowprof bench`, see options.h. */
#include "base/parse.h"
#include "cli/option_setters.h"
#include "cli/options.h"
#include "report/bench_report.h"

enum { RUNS_MAX = 10000, REPEATS_MAX = 100, DEFAULT_RUNS = 10, DEFAULT_REPEATS = 3 };
static const double timeout_default = 300, timeout_max = 7 * 86400.0, alpha_min = 1e-6, alpha_max = 0.5;

void rp_bench_settings_init(struct rp_bench_settings *b)
{
    *b = (struct rp_bench_settings){.runs = DEFAULT_RUNS,
                                    .repeats = DEFAULT_REPEATS,
                                    .timeout = timeout_default,
                                    .alpha = 0.05,
                                    .rate = RP_RATE_AUTO,
                                    .format = rp_bench_formats};
}

void rp_bench_settings_release(struct rp_bench_settings *b)
{
    rp_vec_release(&b->configs);
    rp_vec_release(&b->suites);
}

#define WORD(field, option, what) static RP_OPTION_WORD(set_##field, bench.field, option, what)
#define SWITCH(name, field) static RP_OPTION_SWITCH(set_##name, field, true)

WORD(old, "--old", "a command, quoted as one word")
WORD(new, "--new", "a command, quoted as one word")
WORD(noise, "--noise", "a command, quoted as one word")
WORD(read, "--read", "the path of a CSV file of runs")
WORD(csv, "--csv", "the path of the CSV file to write")
WORD(filter, "--filter", "a part of the names of configurations")
WORD(exclude, "--exclude", "a part of the names of configurations")
WORD(snapshot, "--snapshot", "the path of a folder")
WORD(shape_check, "--shape-check", "the path of a profile, and further ones behind the options")
WORD(cpus, "--cpus", "CPUs such as 1 or 0-3,8")
SWITCH(fdr, bench.fdr)
SWITCH(in_place, bench.in_place)

static RP_OPTION_LIST(set_config, bench.configs, "--config", "a configuration such as 'small: --limit 1'")
static RP_OPTION_LIST(set_suite, bench.suites, "--suite", "the path of a suite")
static RP_OPTION_CHOICE(set_rate, bench.rate, enum rp_rate_kind, "--rate takes auto, thread, process or wall", [RP_RATE_THREAD] = "thread",
                        [RP_RATE_PROCESS] = "process", [RP_RATE_WALL] = "wall", [RP_RATE_AUTO] = "auto")

static enum rp_status set_runs(struct rp_settings *s, const char *value, struct rp_err *err)
{
    if (!rp_parse_u64(value, 1, RUNS_MAX, &s->bench.runs))
        return rp_fail(err, RP_USAGE, "--runs takes a whole number from 1 to %d, not '%s'; %d is the default", RUNS_MAX, value, DEFAULT_RUNS);
    return RP_OK;
}

static enum rp_status set_repeats(struct rp_settings *s, const char *value, struct rp_err *err)
{
    if (!rp_parse_u64(value, 0, REPEATS_MAX, &s->bench.repeats))
        return rp_fail(err, RP_USAGE, "--repeats takes a whole number from 0 to %d, not '%s'; %d is the default", REPEATS_MAX, value,
                       DEFAULT_REPEATS);
    return RP_OK;
}

static enum rp_status set_calls(struct rp_settings *s, const char *value, struct rp_err *err)
{
    if (!rp_parse_double(value, 1, 1e15, &s->bench.calls))
        return rp_fail(err, RP_USAGE, "--calls takes the number of calls that one run makes, from 1 on, not '%s'", value);
    return RP_OK;
}

static enum rp_status set_timeout(struct rp_settings *s, const char *value, struct rp_err *err)
{
    if (!rp_parse_double(value, 0.01, timeout_max, &s->bench.timeout))
        return rp_fail(err, RP_USAGE, "--timeout takes a number of seconds from 0.01 to %.0f, not '%s'; %.0f is the default", timeout_max, value,
                       timeout_default);
    return RP_OK;
}

static enum rp_status set_alpha(struct rp_settings *s, const char *value, struct rp_err *err)
{
    if (!rp_parse_double(value, alpha_min, alpha_max, &s->bench.alpha))
        return rp_fail(err, RP_USAGE, "--alpha takes a probability from %g to %g, not '%s'", alpha_min, alpha_max, value);
    return RP_OK;
}

static enum rp_status set_bench_format(struct rp_settings *s, const char *value, struct rp_err *err)
{
    const struct rp_bench_format *format = rp_bench_format_find(value);

    if (!format)
        return rp_fail(err, RP_USAGE, "--format takes text, json, csv or markdown, not '%s'", value);
    s->bench.format = format;
    return RP_OK;
}

static const struct rp_option race_options[] = {
    {"old", 0, "CMD", "the baseline: a command as one word, split as a shell would, but without one", set_old},
    {"new", 0, "CMD", "what is compared with it", set_new},
    {"noise", 0, "CMD", "instead of both: three copies of one program, to see that nothing is convicted", set_noise},
    {"config", 0, "CONFIG", "a configuration, as one word: 'NAME: ARGS', where ARGS stand behind the command; may be given several times", set_config},
    {"suite", 0, "FILE", "configurations from a file; may be given several times", set_suite},
    {"filter", 0, "TEXT", "only configurations whose names hold this, also of --read", set_filter},
    {"exclude", 0, "TEXT", "no configurations whose names hold this", set_exclude},
    {"runs", 'n', "N", "rounds: processes per arm and configuration (default 10)", set_runs},
    {"repeats", 0, "N", "how often a contended run is repeated (default 3)", set_repeats},
    {"cpus", 0, "LIST", "run everything on these CPUs, such as 1 or 0-3,8 (as taskset and compare.js's CPUSET do)", set_cpus},
    {"calls", 0, "N", "calls that one run makes, for commands that print no RATE line", set_calls},
    {"timeout", 0, "S", "end a run, and the benchmark, after so many seconds (default 300)", set_timeout},
    {"snapshot", 0, "DIR", "keep the copies of the programs here (default: a temporary folder)", set_snapshot},
    {"in-place", 0, NULL, "run the programs where they are, for those that copies cannot replace", set_in_place},
    {"csv", 0, "FILE", "keep every run, as it is made", set_csv},
    {"force", 0, NULL, "overwrite the file of --csv and copies in the folder of --snapshot", rp_set_force},
    {0},
};

static const struct rp_option verdict_options[] = {
    {"read", 0, "FILE", "judge the runs in a CSV file: of --csv, or of Node's compare.js", set_read},
    {"rate", 0, "WHAT", "per CPU second of the thread or the process, or per wall second: auto, thread, process, wall", set_rate},
    {"alpha", 0, "P", "convict below this probability (default 0.05)", set_alpha},
    {"fdr", 0, NULL, "correct with Benjamini-Hochberg instead of Holm", set_fdr},
    {"shape-check", 0, "FILE", "does the saving follow what profiles at two or more row counts predict? FILE and operands", set_shape_check},
    {0},
};

static const struct rp_option output_options[] = {
    {"format", 0, "FORM", "text (default), json, csv or markdown", set_bench_format},
    {"color", 0, "WHEN", "auto (default), always or never; NO_COLOR is heeded", rp_set_color},
    {0},
};

const struct rp_option_group rp_options_race = {"Measuring", race_options};
const struct rp_option_group rp_options_verdict = {"Judging", verdict_options};
const struct rp_option_group rp_options_bench_output = {"How to show it", output_options};
