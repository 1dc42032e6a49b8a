/* SPDX-License-Identifier: MIT */
/*
 * rowload: programs that spend their time in a known way, to point a profiler at. `rowload help` lists them.
 *
 * Exit status: 0 ran, 1 failed, 2 bad usage. Results go to stdout, READY and messages to stderr.
 */
#include <stdlib.h>
#include <string.h>

#include "rl_run.h"

static const struct rl_option common_options[] = {
    {"secs", RL_OPT_SECONDS, offsetof(struct rl_run, hold_ns), 0, UINT64_C(864000000000000), NULL,
     "hold for so many seconds after READY; 0 or absent: until killed"},
    {"calls", RL_OPT_COUNT, offsetof(struct rl_run, calls), 0, UINT64_MAX, NULL, "end after so many calls"},
    {"seed", RL_OPT_COUNT, offsetof(struct rl_run, seed), 0, UINT64_MAX, NULL, "fixes everything random (default 1)"},
    {"progress", RL_OPT_FLAG, offsetof(struct rl_run, progress), 0, 0, NULL, "print a RATE line every second"},
    {"counter", RL_OPT_TEXT, offsetof(struct rl_run, counter_path), 0, 0, NULL,
     "keep calls done and CPU ns, two 64-bit words, in this file"},
    {NULL, RL_OPT_FLAG, 0, 0, 0, NULL, NULL},
};

static void options_print(const struct rl_option *options)
{
    for (; options->name; options++) {
        (void)printf("  --%-13s %s", options->name, options->help);
        for (size_t i = 0; options->choices && options->choices[i]; i++)
            (void)printf("%s%s", i ? ", " : ": ", options->choices[i]);
        (void)printf("\n");
    }
}

static int help_print(void)
{
    (void)printf("usage: rowload WORKLOAD [--option value]...\n\nOptions of every workload:\n");
    options_print(common_options);
    for (size_t i = 0; rl_workloads[i]; i++) {
        (void)printf("\n%s: %s\n", rl_workloads[i]->name, rl_workloads[i]->summary);
        options_print(rl_workloads[i]->options);
    }
    return 0;
}

static const struct rl_workload *workload_find(const char *name)
{
    for (size_t i = 0; rl_workloads[i]; i++) {
        if (strcmp(rl_workloads[i]->name, name) == 0)
            return rl_workloads[i];
    }
    return NULL;
}

static bool options_parse(struct rl_run *run, int count, char **args)
{
    int at = 2;
    while (at < count) {
        const char *word = args[at];
        int taken = rl_option_take(common_options, run, count, args, &at, run->error);
        if (taken == 0)
            taken = rl_option_take(run->workload->options, run->state, count, args, &at, run->error);
        if (taken == 0)
            (void)snprintf(run->error, sizeof run->error, "The workload %s has no option '%.60s'; see rowload help.",
                           run->workload->name, word);
        if (taken <= 0)
            return false;
    }
    return true;
}

int main(int count, char **args)
{
    static struct rl_run run;
    int status = 2;
    if (count < 2) {
        (void)fprintf(stderr, "rowload: A workload must be named; see rowload help.\n");
        return 2;
    }
    if (strcmp(args[1], "help") == 0 || strcmp(args[1], "--help") == 0 || strcmp(args[1], "-h") == 0)
        return help_print();
    run.workload = workload_find(args[1]);
    if (!run.workload) {
        (void)fprintf(stderr, "rowload: There is no workload '%.60s'; see rowload help.\n", args[1]);
        return 2;
    }
    run.seed = 1;
    run.state = calloc(1, run.workload->state_bytes);
    if (!run.state) {
        (void)fprintf(stderr, "rowload: The state of %s did not fit into memory.\n", run.workload->name);
        return 1;
    }
    if (run.workload->defaults)
        run.workload->defaults(&run);
    if (options_parse(&run, count, args)) {
        if (run.workload->open(&run))
            status = rl_protocol_run(&run);
        else
            status = run.misused ? 2 : 1;
        run.workload->close(&run);
    }
    if (status)
        (void)fprintf(stderr, "rowload: %s\n", run.error);
    free(run.state);
    return status;
}
