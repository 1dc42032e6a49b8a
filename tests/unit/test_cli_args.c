/* SPDX-License-Identifier: MIT */
/* The command line: what people type, and the sentence they get when it is not understood. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/command.h"
#include "cli/launch.h"
#include "report/emit.h"

enum { WORDS_MAX = 16 };

/* Parses words parted by blanks; `~` stands for an empty word. */
static enum rp_status parse(const char *line, struct rp_args *args, char *copy, size_t size, struct rp_err *err)
{
    char *argv[WORDS_MAX + 2] = {(char *)(uintptr_t) "rowprof"};
    int argc = 1;

    assert_true(strlen(line) < size);
    memcpy(copy, line, strlen(line) + 1);
    for (char *at = copy; *at && argc <= WORDS_MAX;) {
        argv[argc++] = at;
        at += strcspn(at, " ");
        if (*at)
            *at++ = '\0';
        if (!strcmp(argv[argc - 1], "~"))
            argv[argc - 1][0] = '\0';
    }
    return rp_args_parse(argc, argv, args, err);
}

static void good(const char *line, struct rp_args *args, char *copy, size_t size)
{
    struct rp_err err = {0};

    if (parse(line, args, copy, size, &err))
        fail_msg("%s: %s", line, err.text);
}

static void bad(const char *line, const char *part)
{
    struct rp_err err = {0};
    struct rp_args args;
    char copy[512];

    assert_int_equal(parse(line, &args, copy, sizeof copy, &err), RP_USAGE);
    if (!strstr(err.text, part))
        fail_msg("'%s' gave: %s\nwhich does not hold: %s", line, err.text, part);
    rp_args_release(&args);
}

static void values_in_every_way(void **state)
{
    static const char *const lines[] = {
        "--pid 12 --seconds 0.5 -v -q", "--pid=12 --seconds=0.5 -vq", "-p 12 -d 0.5 -qv", "-p12 -d0.5 -qv", "-qvp12 --duration .5", "-qvd.5 -p 12"};
    char copy[512];

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct rp_args args;

        good(lines[i], &args, copy, sizeof copy);
        assert_string_equal(args.command->name, "");
        assert_int_equal(args.settings.pids.n, 1);
        assert_int_equal(args.settings.pids.at[0], 12);
        assert_true(args.settings.seconds == 0.5);
        assert_true(args.settings.quiet && args.settings.verbose);
        rp_args_release(&args);
    }
}

static void defaults_are_documented_ones(void **state)
{
    struct rp_args args;
    char copy[512];

    (void)state;
    good("-p 1", &args, copy, sizeof copy);
    assert_true(args.settings.seconds == 10);
    assert_int_equal(args.settings.hz, 0); /* the sampler's default */
    assert_int_equal(args.settings.min_samples, 5);
    assert_ptr_equal(args.settings.format, &rp_emit_text);
    assert_null(args.launch);
    rp_args_release(&args);
}

static void pids_repeat_and_join(void **state)
{
    struct rp_args args;
    char copy[512];

    (void)state;
    good("-p 3,4 --pid 5 -p 3", &args, copy, sizeof copy);
    assert_int_equal(args.settings.pids.n, 3);
    assert_int_equal(args.settings.pids.at[2], 5);
    rp_args_release(&args);
}

static void launching_ends_options(void **state)
{
    struct rp_args args;
    char copy[512];

    (void)state;
    good("--ready -d 2 -- node --pid x", &args, copy, sizeof copy);
    assert_true(args.settings.ready);
    assert_int_equal(args.settings.pids.n, 0);
    assert_string_equal(args.launch[0], "node");
    assert_string_equal(args.launch[1], "--pid");
    rp_args_release(&args);
    good("record -o f -- a", &args, copy, sizeof copy);
    assert_string_equal(args.command->name, "record");
    assert_string_equal(args.settings.output, "f");
    assert_string_equal(args.launch[0], "a");
    rp_args_release(&args);
}

static void commands_and_operands(void **state)
{
    struct rp_args args;
    char copy[512];

    (void)state;
    good("report f --by module --no-tree --rules a --rules=b --format csv", &args, copy, sizeof copy);
    assert_string_equal(args.command->name, "report");
    assert_string_equal(args.operands.at[0], "f");
    assert_int_equal(args.settings.by, RP_BY_MODULE);
    assert_int_equal(args.settings.tree, RP_TREE_NONE);
    assert_int_equal(args.settings.rules.n, 2);
    assert_ptr_equal(args.settings.format, &rp_emit_csv);
    rp_args_release(&args);
    good("report -- -odd-name", &args, copy, sizeof copy);
    assert_string_equal(args.operands.at[0], "-odd-name");
    rp_args_release(&args);
    good("rules check a b", &args, copy, sizeof copy);
    assert_string_equal(args.command->name, "rules check");
    assert_int_equal(args.operands.n, 2);
    rp_args_release(&args);
    good("--self --total -p 1", &args, copy, sizeof copy);
    assert_true(args.settings.total && !args.settings.by_self);
    rp_args_release(&args);
}

static void sentences_name_the_remedy(void **state)
{
    (void)state;
    bad("--pid node", "pgrep");
    bad("--pid 0", "from 1 to");
    bad("--pid -5", "process id");
    bad("--pid 99999999999", "from 1 to");
    bad("--pid 1,,2", "process id");
    bad("--pid", "--pid needs a value: --pid PID");
    bad("--pid --seconds 5", "--pid needs a value");
    bad("--seconds 0 -p 1", "from 0.01 to");
    bad("--seconds -1 -p 1", "not '-1'");
    bad("--seconds nan", "not 'nan'");
    bad("--seconds inf", "not 'inf'");
    bad("--seconds 1e99", "not '1e99'");
    bad("--seconds 10s", "not '10s'");
    bad("--seconds ~", "not ''");
    bad("--freq 0", "1 to 100000");
    bad("--freq 99999999999999999999", "1 to 100000");
    bad("-F 9.5", "whole number");
    bad("--min-samples 0", "from 1 on");
    bad("--by row", "category, function, module, thread, process, wait, idle or lock");
    bad("--format xml", "text, json or csv");
    bad("--color yes", "auto, always or never");
    bad("--width 59", "from 60 to");
    bad("--rules ~", "not an empty word");
    bad("--force=yes", "takes no value");
    bad("1234", "--pid 1234");
    bad("node", "pgrep");
    bad("rules", "check FILE");
    bad("rules chekc x", "chekc");
}

static void the_nearest_is_suggested(void **state)
{
    (void)state;
    bad("--secnds 5", "did you mean --seconds?");
    bad("--sec 5", "did you mean --seconds?");
    bad("--categroy x", "did you mean --category?");
    bad("--colour x", "did you mean --color?");
    bad("--secs 5", "did you mean --seconds?");
    bad("--frequency 5", "did you mean --freq?");
    bad("--dr 5", "`rowprof help` lists them");
    bad("-pid 5", "write --pid, not -pid");
    bad("record -seconds 5", "write --seconds, not -seconds");
    bad("rep f", "did you mean 'report'?");
    bad("benchmark", "did you mean 'bench'?");
    bad("explain memcpy", "did you mean 'rules explain'?");
    bad("--xyzzy", "`rowprof help` lists them");
    bad("-Z", "no option -Z");
    bad("reprot f", "did you mean 'report'?");
    bad("report --pid 5", "belongs to `rowprof");
    bad("-p 1 --uncategorized", "belongs to `rowprof report`");
}

static void distance_is_edits(void **state)
{
    (void)state;
    assert_int_equal(rp_word_distance("report", "report"), 0);
    assert_int_equal(rp_word_distance("reprot", "report"), 1);
    assert_int_equal(rp_word_distance("", "abc"), 3);
    assert_int_equal(rp_word_distance("kitten", "sitting"), 3);
    assert_int_equal(rp_word_typed_distance("secs", "seconds"), 1);
    assert_int_equal(rp_word_typed_distance("sec", "seconds"), 0);
    assert_int_equal(rp_word_typed_distance("se", "seconds"), 5);
    assert_int_equal(rp_word_typed_distance("tail", "total"), 3); /* its letters, but not in this order */
}

static void ready_lines(void **state)
{
    uint32_t pid = 0;

    (void)state;
    assert_true(rp_ready_line("READY pid=42", 12, &pid));
    assert_int_equal(pid, 42);
    assert_true(rp_ready_line("READY pid=7 tid=8\r", 18, &pid));
    assert_int_equal(pid, 7);
    assert_false(rp_ready_line("READY pid=42x", 13, &pid));
    assert_false(rp_ready_line("READY pid=0", 11, &pid));
    assert_false(rp_ready_line("READY pid=99999999999", 21, &pid));
    assert_false(rp_ready_line(" READY pid=1", 12, &pid));
    assert_false(rp_ready_line("", 0, &pid));
}

static void out_of_memory_is_survived(void **state)
{
    char copy[512];

    (void)state;
    for (uint64_t n = 1; n < 50; n++) {
        struct rp_err err = {0};
        struct rp_args args;
        enum rp_status status;

        rp_alloc_fail_at(n);
        status = parse("report f --rules a --rules b g", &args, copy, sizeof copy, &err);
        rp_alloc_fail_at(0);
        rp_args_release(&args);
        if (!status)
            return;
        assert_int_equal(status, RP_NOMEM);
    }
    fail_msg("never succeeds");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_in_every_way),      cmocka_unit_test(defaults_are_documented_ones),
        cmocka_unit_test(pids_repeat_and_join),     cmocka_unit_test(launching_ends_options),
        cmocka_unit_test(commands_and_operands),    cmocka_unit_test(sentences_name_the_remedy),
        cmocka_unit_test(the_nearest_is_suggested), cmocka_unit_test(out_of_memory_is_survived),
        cmocka_unit_test(distance_is_edits),        cmocka_unit_test(ready_lines),
    };

    return cmocka_run_group_tests_name("cli_args", tests, NULL, NULL);
}
