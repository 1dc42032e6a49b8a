/* SPDX-License-Identifier: MIT */
/* The table of subcommands. */
#include "cli/command.h"

#include <string.h>

const struct rp_command rp_commands[] = {
    {
        .name = "",
        .usage = "--pid PID [options]\n       rowprof [options] -- COMMAND ...",
        .summary = "watch a process and show what it spends its time on; keep nothing",
        .groups = {&rp_options_record, &rp_options_launch, &rp_options_keep, &rp_options_show, &rp_options_rules, &rp_options_output,
                   &rp_options_common},
        .run = rp_cmd_record,
    },
    {
        .name = "record",
        .usage = "-o FILE --pid PID [options]\n       rowprof record -o FILE [options] -- COMMAND ...",
        .summary = "watch a process and keep the profile in a file",
        .details = "Without -o the report is shown, as with the bare rowprof.\n",
        .groups = {&rp_options_record, &rp_options_launch, &rp_options_keep, &rp_options_show, &rp_options_rules, &rp_options_output,
                   &rp_options_common},
        .run = rp_cmd_record,
    },
    {
        .name = "report",
        .usage = "FILE [options]",
        .summary = "show a kept profile, with other rules, threads or forms as often as wanted",
        .groups = {&rp_options_show, &rp_options_report, &rp_options_rules, &rp_options_output, &rp_options_common},
        .run = rp_cmd_report,
    },
    {
        .name = "locks",
        .usage = "FILE [options]\n       rowprof locks --pid PID [options]\n       rowprof locks [options] -- COMMAND ...",
        .summary = "show the locks that were waited for, who waits and who held them",
        .details = "Of a kept profile, or of a process watched now; the same as --by lock. With -o the profile is kept, too.\n",
        .groups = {&rp_options_record, &rp_options_launch, &rp_options_keep, &rp_options_show, &rp_options_rules, &rp_options_output,
                   &rp_options_common},
        .run = rp_cmd_locks,
    },
    {
        .name = "diff",
        .usage = "A B [options]\n       rowprof diff A --pid PID [options]",
        .summary = "set two profiles, or two sets of them, against each other, row by row",
        .details = "A and B are profiles, or several as A1,A2,A3; from four a side on the run is the unit.\n"
                   "Fewer do not tell how far runs of one program differ; some per cent are assumed.\n"
                   "\xe2\x96\xb2 grew, \xe2\x96\xbc fell, ~ inside noise, - fewer samples than --min-samples.\n"
                   "Exit status 6 when --fail-above was exceeded.\n",
        .groups = {&rp_options_diff, &rp_options_compare_watch, &rp_options_rules, &rp_options_compare_output, &rp_options_common},
        .run = rp_cmd_diff,
    },
    {
        .name = "shapes",
        .usage = "A B [C ...] [options]",
        .summary = "take the cost of a call apart into what is paid per call and what per row",
        .details = "A, B, ... are profiles of the same call that returns different numbers of rows.\n"
                   "Rows and calls come from the RATE lines kept with `record --ready`, or from options.\n",
        .groups = {&rp_options_shapes, &rp_options_rules, &rp_options_compare_output, &rp_options_common},
        .run = rp_cmd_shapes,
    },
    {
        .name = "rules check",
        .usage = "FILE|DIR ... [options]",
        .summary = "find errors in rule files, rules that can never win, and failing cases",
        .details = "Errors are told as file:line:column. A NAME.cases beside NAME.yaml is run too.\n"
                   "Exit status 2 after errors, 1 after other findings, 0 when there is nothing to say.\n",
        .groups = {&rp_options_check, &rp_options_common},
        .run = rp_cmd_rules_check,
    },
    {
        .name = "rules explain",
        .usage = "SYMBOL | \"LEAF < CALLER < ROOT\" [options]",
        .summary = "tell which rule wins for a function or a stack, which lose, and why",
        .details = "Frames are parted by < or ; and written as in *.cases: name, module!name,\n[k]name, with ` @ path` for the source file. -v also tells the rules that could\nnot have decided: for another state or context, or asked too late.\n",
        .groups = {&rp_options_explain, &rp_options_rules, &rp_options_common},
        .run = rp_cmd_rules_explain,
    },
    {
        .name = "bench",
        .usage = "--old CMD --new CMD [--config 'NAME: ARGS' ...] [--suite FILE] [options]\n"
                 "       rowprof bench --noise CMD [--config ...] [options]\n"
                 "       rowprof bench --read FILE.csv [options]",
        .summary = "compare two programs, against the noise that one of them makes by itself",
        .details = "Three copies are run in turn: old, old once more, and new. A configuration is\n"
                   "convicted when the difference is significant among all of them and larger than\n"
                   "that of old and its copy.\n",
        .groups = {&rp_options_race, &rp_options_verdict, &rp_options_shape_check, &rp_options_rules, &rp_options_bench_output,
                   &rp_options_common},
        .run = rp_cmd_bench,
    },
    {
        .name = "help",
        .usage = "[COMMAND | categories | exit-status]",
        .summary = "show help on a command, the categories, or what the exit status means",
        .groups = {&rp_options_common},
        .run = rp_cmd_help,
    },
    {0},
};

const struct rp_command *rp_command_find(const char *name)
{
    for (const struct rp_command *c = rp_commands; c->name; c++) {
        if (!strcmp(c->name, name))
            return c;
    }
    return NULL;
}

bool rp_command_records(const struct rp_command *command)
{
    return command->run == rp_cmd_record || command->run == rp_cmd_locks;
}

/* `rowprof explain` was meant for `rowprof rules explain`. */
static int command_distance(const char *word, const char *name)
{
    const char *second = strchr(name, ' ');
    int distance = rp_word_typed_distance(word, name), of_second = second ? rp_word_distance(word, second + 1) : distance;

    return of_second < distance ? of_second : distance;
}

const char *rp_command_near(const char *word)
{
    const char *best = NULL;
    int nearest = 3;

    for (const struct rp_command *c = rp_commands; c->name; c++) {
        int distance = *c->name ? command_distance(word, c->name) : nearest;

        if (distance < nearest) {
            nearest = distance;
            best = c->name;
        }
    }
    return best;
}
