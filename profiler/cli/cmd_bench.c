/* SPDX-License-Identifier: MIT */
/* `rowprof bench`: two programs run in turn, or runs read from a file, and the verdicts on them.
 *
 * The trap is losing an hour of measuring to its last minute: every run is in the CSV file when the next one begins, and whatever was measured before an
 * interrupt or a failure is judged and shown. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "bench/race.h"
#include "bench/runs_csv.h"
#include "cli/bench_copies.h"
#include "cli/bench_shape_check.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "report/bench_report.h"
#include "sample/perf_cpus.h"
#include "target/process.h"

/* Everything a run of the command holds. */
struct job {
    const struct rp_settings *settings;
    struct rp_suite suite;
    struct rp_bench_copies copies;
    struct rp_bench bench;
    struct rp_bench_verdicts verdicts;
    struct rp_progress progress;
    int csv; /* -1: none */
};

static enum rp_status check_use(const struct rp_args *args, struct rp_err *err)
{
    const struct rp_bench_settings *b = &args->settings.bench;
    bool runs = b->old || b->new || b->noise;

    if (b->read && (runs || b->configs.n || b->suites.n || b->csv || b->snapshot || b->cpus))
        return rp_fail(err, RP_USAGE, "--read judges runs that were made already; it does not go with options that make some");
    if (b->noise && (b->old || b->new))
        return rp_fail(err, RP_USAGE, "--noise compares a program with itself; it does not go with --old and --new");
    if (!b->read && !b->noise && !(b->old && b->new))
        return rp_fail(err, RP_USAGE, "`rowprof bench` takes two commands: rowprof bench --old './before ARGS' --new './after ARGS'%s",
                       runs ? "; one of them is missing" : "");
    if (b->in_place && b->snapshot)
        return rp_fail(err, RP_USAGE, "--in-place copies nothing, so --snapshot has nothing to keep");
    if (args->operands.n && !b->shape_check)
        return rp_fail(err, RP_USAGE, "'%.80s' is no option; a command is one word: --old '%.80s'", args->operands.at[0], args->operands.at[0]);
    return RP_OK;
}

static bool is_wanted(const struct rp_bench_settings *b, const char *name)
{
    return (!b->filter || strstr(name, b->filter)) && !(b->exclude && strstr(name, b->exclude));
}

static enum rp_status none_left(struct rp_err *err)
{
    return rp_fail(err, RP_USAGE, "--filter and --exclude leave no configuration");
}

/* Runs of the configurations that are wanted. */
static enum rp_status read_runs(struct job *job, struct rp_err *err)
{
    const struct rp_bench_settings *b = &job->settings->bench;
    struct rp_bench all = {0};
    enum rp_status status = rp_runs_read(&all, b->read, err);

    for (size_t i = 0; !status && i < all.runs.n; i++) {
        struct rp_bench_run run = all.runs.at[i];
        const struct rp_bench_config *config = &all.configs.at[run.config];

        if (!is_wanted(b, config->name))
            continue;
        status = rp_bench_config(&job->bench, config->name, strlen(config->name), &run.config, err);
        if (!status)
            job->bench.configs.at[run.config].rows = config->rows;
        if (!status)
            status = rp_bench_add(&job->bench, &run, err);
    }
    if (!status && !job->bench.runs.n)
        status = none_left(err);
    rp_bench_release(&all);
    return status;
}

static enum rp_status drop_unwanted(struct job *job, struct rp_err *err)
{
    struct rp_suite *suite = &job->suite;
    size_t kept = 0;

    for (size_t i = 0; i < suite->configs.n; i++) {
        if (is_wanted(&job->settings->bench, suite->configs.at[i].name))
            suite->configs.at[kept++] = suite->configs.at[i];
        else
            rp_words_release(&suite->configs.at[i].words);
    }
    suite->configs.n = kept;
    return kept ? RP_OK : none_left(err);
}

static enum rp_status read_suite(struct job *job, struct rp_err *err)
{
    const struct rp_bench_settings *b = &job->settings->bench;
    enum rp_status status = RP_OK;

    for (size_t i = 0; !status && i < b->suites.n; i++)
        status = rp_suite_read(&job->suite, b->suites.at[i], err);
    for (size_t i = 0; !status && i < b->configs.n; i++)
        status = rp_suite_add(&job->suite, b->configs.at[i], strlen(b->configs.at[i]), "--config", err);
    if (!status && !job->suite.configs.n)
        status = rp_suite_add(&job->suite, "all", 3, "--config", err);
    return status ? status : drop_unwanted(job, err);
}

static enum rp_status open_csv(struct job *job, struct rp_err *err)
{
    const char *path = job->settings->bench.csv;
    struct rp_buf header = {0};
    enum rp_status status = RP_OK;

    if (!path)
        return RP_OK;
    job->csv = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (job->settings->force ? O_TRUNC : O_EXCL), 0666);
    if (job->csv < 0 && errno == EEXIST)
        return rp_fail(err, RP_EXISTS, "%s is there already; --force overwrites it", path);
    rp_runs_put_header(&header);
    if (header.failed)
        status = rp_fail_nomem(err);
    else if (job->csv < 0 || !rp_write_full(job->csv, rp_buf_text(&header), header.length))
        status = rp_fail(err, RP_IO, "cannot write %s: %s", path, strerror(errno));
    rp_buf_release(&header);
    return status;
}

static enum rp_status keep_run(void *context, const struct rp_bench *bench, const struct rp_bench_run *run, struct rp_err *err)
{
    struct job *job = context;
    struct rp_buf line = {0};
    enum rp_status status = RP_OK;

    if (job->csv < 0)
        return RP_OK;
    rp_runs_put(bench, run, &line);
    if (line.failed)
        status = rp_fail_nomem(err);
    else if (!rp_write_full(job->csv, rp_buf_text(&line), line.length))
        status = rp_fail(err, RP_IO, "cannot write %s: %s", job->settings->bench.csv, strerror(errno));
    rp_buf_release(&line);
    return status;
}

/* The time left, from the time that the runs so far took, repeats included. */
static void put_left(struct rp_buf *out, const struct rp_race_at *at)
{
    double left = at->done ? at->seconds / (double)at->done * (double)(at->total - at->done) : 0;

    if (!at->done)
        return;
    if (left < 90)
        rp_buf_printf(out, "  %.0f s left", left);
    else
        rp_buf_printf(out, "  %.0f min left", left / 60);
}

static void show_progress(void *context, const struct rp_race_at *at)
{
    struct job *job = context;
    struct rp_buf line = {0};

    if (!job->progress.on)
        return;
    rp_buf_printf(&line, "\r\x1b[Kround %u of %u  run %zu of %zu", at->round, at->rounds, at->done + 1, at->total);
    put_left(&line, at);
    rp_buf_printf(&line, "  %s", rp_arm_name(at->arm));
    if (at->attempt > 1)
        rp_buf_printf(&line, " (contended, attempt %u)", at->attempt);
    rp_buf_printf(&line, "  %.40s", at->config);
    job->progress.shown = rp_write_full(STDERR_FILENO, rp_buf_text(&line), line.length);
    rp_buf_release(&line);
}

/* Keeps us to the CPUs of --cpus, and with us what we start. */
static enum rp_status keep_to_cpus(const char *text, struct rp_err *err)
{
    struct rp_cpu_list list = {0};
    cpu_set_t set, kept;
    bool good = rp_cpu_list_parse(text, strlen(text), &list);

    CPU_ZERO(&set);
    CPU_ZERO(&kept);
    for (size_t i = 0; good && i < list.at.n; i++) {
        good = list.at.at[i] < CPU_SETSIZE;
        if (good)
            CPU_SET((size_t)list.at.at[i], &set);
    }
    rp_vec_release(&list.at);
    if (!good)
        return rp_fail(err, RP_USAGE, "--cpus takes a list of CPUs such as 1 or 0-3,8, not '%.80s'", text);
    /* The kernel takes those that it has and says nothing of the others. */
    if (sched_setaffinity(0, sizeof set, &set) != 0 || sched_getaffinity(0, sizeof kept, &kept) != 0 || !CPU_EQUAL(&set, &kept))
        return rp_fail(err, RP_USAGE, "--cpus %.80s: not all of these can be used here; `taskset -pc $$` prints those that can", text);
    return RP_OK;
}

static enum rp_status measure(struct job *job, struct rp_err *err)
{
    const struct rp_bench_settings *b = &job->settings->bench;
    struct rp_race race = {.suite = &job->suite,
                           .rounds = (uint32_t)b->runs,
                           .repeats = (uint32_t)b->repeats,
                           .calls = b->calls,
                           .timeout_secs = b->timeout,
                           .one_cpu = rp_process_cpus((uint32_t)getpid()) == 1,
                           .stop = rp_stop_install(),
                           .progress = show_progress,
                           .keep = keep_run,
                           .context = job};
    enum rp_status status;

    rp_progress_init(&job->progress, job->settings);
    for (size_t arm = 0; arm < RP_ARMS; arm++)
        race.arms[arm] = job->copies.arms[arm];
    status = rp_race_run(&race, &job->bench, err);
    rp_progress_clear(&job->progress);
    return status;
}

static void say_programs(const struct job *job)
{
    const struct rp_bench_copies *c = &job->copies;

    if (job->settings->quiet)
        return;
    rp_message("old %s  sha256 %s", c->old.path, c->old.sha256);
    if (!c->noise)
        rp_message("new %s  sha256 %s", c->new.path, c->new.sha256);
    if (job->settings->bench.snapshot)
        rp_message("copied to %s, %s and %s", c->arms[RP_ARM_OLD].file, c->arms[RP_ARM_AGAIN].file, c->arms[RP_ARM_NEW].file);
    if (c->same_program)
        rp_message("both commands run the same program; they differ in their arguments only");
}

static enum rp_status show(struct job *job, const struct rp_args *args, const char *cut_short, struct rp_err *err)
{
    const struct rp_bench_settings *b = &job->settings->bench;
    struct rp_bench_options options = {.rate = b->rate, .alpha = b->alpha, .fdr = b->fdr};
    const struct rp_program *old = &job->copies.old, *new = job->copies.noise ? old : &job->copies.new;
    struct rp_bench_report report = {.bench = &job->bench,
                                     .verdicts = &job->verdicts,
                                     .programs_known = !b->read,
                                     .noise = b->noise != NULL,
                                     .cpus = b->cpus,
                                     .cut_short = cut_short,
                                     .color = rp_wants_color(job->settings),
                                     .verbose = job->settings->verbose};
    struct rp_shape_check check = {0};
    struct rp_buf out = {0};
    enum rp_status status;

    if (options.rate == RP_RATE_AUTO)
        options.rate = rp_bench_pick_rate(&job->bench);
    status = rp_bench_judge(&job->bench, &options, &job->verdicts, err);
    if (!status && b->shape_check)
        status = rp_shape_check(args, &job->bench, &job->verdicts, &check, err);
    if (!status) {
        if (!b->read) {
            report.old = (struct rp_bench_program){old->path, old->sha256, old->build_id};
            report.new = (struct rp_bench_program){new->path, new->sha256, new->build_id};
        }
        report.shape = b->shape_check ? &check.note : NULL;
        b->format->emit(&report, &out);
        status = rp_print(&out, err);
    }
    rp_shape_check_release(&check);
    rp_buf_release(&out);
    return status;
}

static enum rp_status prepare(struct job *job, struct rp_err *err)
{
    const char *cpus = job->settings->bench.cpus;
    enum rp_status status = read_suite(job, err);

    if (!status && cpus)
        status = keep_to_cpus(cpus, err);
    if (!status)
        status = rp_bench_copies_make(&job->copies, job->settings, err);
    if (!status)
        status = open_csv(job, err);
    if (!status)
        say_programs(job);
    return status;
}

/* Measures; what ended it early is told with the result, and again at the end unless it was the user. */
static enum rp_status run_and_show(struct job *job, const struct rp_args *args, struct rp_err *err)
{
    struct rp_err early = {0}, other = {0};
    enum rp_status status = prepare(job, err);

    if (status)
        return status;
    status = measure(job, &early);
    if (!status)
        status = rp_bench_copies_unchanged(&job->copies, &early);
    if (status && !job->bench.runs.n) {
        *err = early;
        return status;
    }
    if (show(job, args, status ? early.text : NULL, &other)) {
        *err = other;
        return other.status;
    }
    if (!status || status == RP_INTR)
        return RP_OK;
    *err = early;
    return status;
}

enum rp_status rp_cmd_bench(struct rp_args *args, struct rp_err *err)
{
    struct job job = {.settings = &args->settings, .csv = -1};
    enum rp_status status = check_use(args, err);

    if (!status && args->settings.bench.read) {
        status = read_runs(&job, err);
        if (!status)
            status = show(&job, args, NULL, err);
    } else if (!status) {
        status = run_and_show(&job, args, err);
    }
    if (job.csv >= 0 && close(job.csv) && !status)
        status = rp_fail(err, RP_IO, "cannot write %s: %s", args->settings.bench.csv, strerror(errno));
    rp_bench_copies_release(&job.copies);
    rp_bench_verdicts_release(&job.verdicts);
    rp_bench_release(&job.bench);
    rp_suite_release(&job.suite);
    return status;
}
