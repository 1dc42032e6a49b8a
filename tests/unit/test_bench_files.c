/* SPDX-License-Identifier: MIT */
/* What a benchmark reads and runs: words, suites, CSV in every spacing, RATE lines, programs and their copies, the order of the arms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"
#include "bench/program.h"
#include "bench/race.h"
#include "bench/run.h"
#include "bench/runs_csv.h"
#include "support/temp_dir.h"

/* FIPS 180-4 examples, and their message of a million letters. */
static void test_sha256(void **state)
{
    static const struct {
        const char *text, *digest;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {NULL, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t digest[RP_SHA256_BYTES];
        char hex[RP_SHA256_HEX];
        struct rp_sha256 hash;

        rp_sha256_init(&hash);
        if (cases[i].text)
            rp_sha256_add(&hash, cases[i].text, strlen(cases[i].text));
        for (size_t k = 0; !cases[i].text && k < 1000000; k += 125)
            rp_sha256_add(&hash, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 125);
        rp_sha256_end(&hash, digest);
        rp_hex(digest, sizeof digest, hex);
        assert_string_equal(hex, cases[i].digest);
    }
}

/* Words joined by | ; "!" and the beginning of the sentence when it is refused. */
static void check_words(const char *text, const char *want)
{
    struct rp_arena arena = {0};
    struct rp_words words = {0};
    struct rp_buf got = {0};
    struct rp_err err;

    if (rp_words_split(&words, &arena, text, strlen(text), "--old", &err)) {
        rp_buf_printf(&got, "!%s", err.text);
        if (want[0] != '!' || strncmp(rp_buf_text(&got), want, strlen(want)) != 0)
            fail_msg("'%s' gives %s", text, rp_buf_text(&got));
    } else {
        for (size_t i = 0; i < words.at.n; i++)
            rp_buf_printf(&got, "%s%s", i ? "|" : "", words.at.at[i]);
        assert_string_equal(rp_buf_text(&got), want);
    }
    rp_buf_release(&got);
    rp_words_release(&words);
    rp_arena_release(&arena);
}

/* As dash splits them. */
static void test_words(void **state)
{
    (void)state;
    check_words("node read.mjs  --limit\t1\n", "node|read.mjs|--limit|1");
    check_words("a 'b c' \"d  e\" f'g'h", "a|b c|d  e|fgh");
    check_words("a '' \"\" b", "a|||b");
    check_words("a\\ b \\' \"x\\\"y\\z\" '\\'", "a b|'|x\"y\\z|\\");
    check_words("--columns * '$HOME' \"a;b\"", "--columns|*|$HOME|a;b");
    check_words("", "");
    check_words("   ", "");
    check_words("a | b", "!--old holds a '|'");
    check_words("a > b", "!--old holds a '>'");
    check_words("a $B", "!--old holds a '$'");
    check_words("a \"$B\"", "!--old holds a '$'");
    check_words("a 'b", "!--old lacks a closing '");
    check_words("a \"b", "!--old lacks a closing \"");
    check_words("a \\", "a|\\");
}

static const char suite_text[] = "# a comment\n"
                                 "\n"
                                 "args {here}/x.mjs '--seed' 1\r\n"
                                 "  config get SELECT a, :b FROM foo: --op get --at {here}\n"
                                 "config plain\n"
                                 "config colon:\n";

static void test_suite(void **state)
{
    struct rp_suite suite = {0};
    struct rp_err err;

    (void)state;
    assert_int_equal(rp_suite_parse(&suite, "s.suite", "/a b", suite_text, strlen(suite_text), &err), RP_OK);
    assert_int_equal(suite.args.at.n, 3);
    assert_string_equal(suite.args.at.at[0], "/a b/x.mjs");
    assert_int_equal(suite.configs.n, 3);
    assert_string_equal(suite.configs.at[0].name, "get SELECT a, :b FROM foo");
    assert_int_equal(suite.configs.at[0].words.at.n, 4);
    assert_string_equal(suite.configs.at[0].words.at.at[3], "/a b");
    assert_string_equal(suite.configs.at[1].name, "plain");
    assert_int_equal(suite.configs.at[1].words.at.n, 0);
    assert_string_equal(suite.configs.at[2].name, "colon");
    rp_suite_release(&suite);
}

static void test_suite_mistakes(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"config a: x\nconfig a: y\n", "s.suite:2: there are two configurations named 'a'"},
        {"\n\nconfigure\n", "s.suite:3: a line begins with"},
        {"config : x\n", "s.suite:1 takes `NAME: ARGUMENTS`"},
        {"config a: 'x\n", "s.suite:1 lacks a closing '"},
        {"config a: x | y\n", "s.suite:1 holds a '|'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rp_suite suite = {0};
        struct rp_err err;

        assert_int_equal(rp_suite_parse(&suite, "s.suite", ".", cases[i].text, strlen(cases[i].text), &err), RP_FORMAT);
        if (strncmp(err.text, cases[i].says, strlen(cases[i].says)) != 0)
            fail_msg("%s", err.text);
        rp_suite_release(&suite);
    }
}

/* The shipped suites: 20 configurations, 7 of get, as published; and each has rows that a name or a run tells. */
static void test_shipped_suites(void **state)
{
    struct rp_suite suite = {0};
    struct rp_err err;
    size_t get = 0, hundred = 0;

    (void)state;
    if (rp_suite_read(&suite, ROWPROF_SOURCE_DIR "/workloads/suites/node-sqlite-read.suite", &err))
        fail_msg("%s", err.text);
    assert_int_equal(suite.configs.n, 20);
    for (size_t i = 0; i < suite.configs.n; i++) {
        get += !strncmp(suite.configs.at[i].name, "get ", 4);
        hundred += strstr(suite.configs.at[i].name, "LIMIT 100") != NULL;
    }
    assert_int_equal(get, 7);
    assert_int_equal(hundred, 6);
    assert_int_equal(access(suite.args.at.at[0], R_OK), 0);
    rp_suite_release(&suite);
    assert_int_equal(rp_suite_read(&suite, ROWPROF_SOURCE_DIR "/workloads/suites/rowload.suite", &err), RP_OK);
    rp_suite_release(&suite);
}

static void parse(struct rp_bench *bench, const char *text)
{
    struct rp_err err;

    memset(bench, 0, sizeof *bench);
    if (rp_runs_parse(bench, "f.csv", text, strlen(text), &err))
        fail_msg("%s", err.text);
}

/* The same two runs as Node writes them, in both spacings. */
static void test_csv_of_node(void **state)
{
    static const char *const spacings[] = {
        "\"binary\", \"filename\", \"configuration\", \"rate\", \"time\"\n"
        "\"old\", \"sqlite/get.js\", \"statement='SELECT \"\"a\"\", b' n=100\", 1234.5, 0.25\n"
        "\"new\", \"sqlite/get.js\", \"statement='SELECT \"\"a\"\", b' n=100\", 2e3, 0.125\n",
        "\"binary\",\"filename\",\"configuration\",\"rate\",\"time\"\r\n"
        "\"old\",\"sqlite/get.js\",\"statement='SELECT \"\"a\"\", b' n=100\",1234.5,0.25\r\n"
        "\"new\",\"sqlite/get.js\",\"statement='SELECT \"\"a\"\", b' n=100\",2e3,0.125",
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rp_bench bench;

        parse(&bench, spacings[i]);
        assert_int_equal(bench.configs.n, 1);
        assert_string_equal(bench.configs.at[0].name, "sqlite/get.js statement='SELECT \"a\", b' n=100");
        assert_int_equal(bench.runs.n, 2);
        assert_int_equal(bench.runs.at[1].arm, RP_ARM_NEW);
        assert_true(bench.runs.at[0].rate[RP_RATE_WALL] == 1234.5);
        assert_true(bench.runs.at[1].rate[RP_RATE_WALL] == 2000);
        assert_true(bench.runs.at[1].wall_secs == 0.125);
        assert_true(isnan(bench.runs.at[0].rate[RP_RATE_THREAD]));
        assert_int_equal(rp_bench_pick_rate(&bench), RP_RATE_WALL);
        rp_bench_release(&bench);
    }
}

static void test_csv_round_trip(void **state)
{
    struct rp_bench bench = {0}, again;
    struct rp_bench_run run = {.round = 3, .arm = RP_ARM_AGAIN, .rate = {1e6, NAN, 9.5e5}, .calls = 1000, .rows = 100000, .wall_secs = 0.5,
                               .thread_secs = 0.475, .voluntary = 7, .involuntary = 8, .attempts = 4, .contended = true};
    struct rp_buf text = {0};
    struct rp_err err;

    (void)state;
    assert_int_equal(rp_bench_config(&bench, "a \"b\", c", 8, &run.config, &err), RP_OK);
    assert_int_equal(rp_bench_add(&bench, &run, &err), RP_OK);
    rp_runs_put_header(&text);
    rp_runs_put(&bench, &bench.runs.at[0], &text);
    parse(&again, rp_buf_text(&text));
    assert_string_equal(again.configs.at[0].name, "a \"b\", c");
    assert_true(again.configs.at[0].rows == 100);
    assert_int_equal(again.runs.at[0].round, 3);
    assert_int_equal(again.runs.at[0].arm, RP_ARM_AGAIN);
    assert_int_equal(again.runs.at[0].attempts, 4);
    assert_true(again.runs.at[0].contended);
    assert_int_equal(again.runs.at[0].involuntary, 8);
    assert_true(again.runs.at[0].rate[RP_RATE_THREAD] == 1e6);
    assert_true(isnan(again.runs.at[0].rate[RP_RATE_PROCESS]));
    assert_true(again.runs.at[0].thread_secs == 0.475);
    rp_buf_release(&text);
    rp_bench_release(&bench);
    rp_bench_release(&again);
}

static void test_csv_mistakes(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "f.csv:1: there is no column `binary`"},
        {"config,rate\na,1\n", "f.csv:1: there is no column `binary`"},
        {"binary,rate\nold,1\n", "f.csv:1: no column names the configuration"},
        {"binary,config\nold,a\n", "f.csv:1: there is no column with a rate"},
        {"binary,config,rate,rate\n", "f.csv:1: two columns are named 'rate'"},
        {"binary,config,rate\n", "f.csv holds no runs"},
        {"binary,config,rate\nold,a,1\nolder,a,1\n", "f.csv:3: binary is old, old2 or new, not 'older'"},
        {"binary,config,rate\nold,a\n", "f.csv:2: the line has fewer fields"},
        {"binary,config,rate\nold,a,1,2\n", "f.csv:2: the line has more fields"},
        {"binary,config,rate\nold,a,fast\n", "f.csv:2: rate takes a number, not 'fast'"},
        {"binary,config,rate\nold,a,0\n", "f.csv:2: rate takes a number, not '0'"},
        {"binary,config,rate\nold,a,nan\n", "f.csv:2: rate takes a number, not 'nan'"},
        {"binary,config,rate\nold,\"a,1\n", "f.csv:2: a quoted text holds a line end"},
        {"binary,config,rate\nold,\"a", "f.csv:2: a quote is never closed"},
        {"binary,config,rate\nold,\"a\"b,1\n", "f.csv:2: there is no comma behind 'a'"},
        {"binary,config,round,rate\nold,a,-1,5\n", "f.csv:2: round takes a number, not '-1'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rp_bench bench = {0};
        struct rp_err err;

        assert_int_equal(rp_runs_parse(&bench, "f.csv", cases[i].text, strlen(cases[i].text), &err), RP_FORMAT);
        if (strncmp(err.text, cases[i].says, strlen(cases[i].says)) != 0)
            fail_msg("%zu: %s", i, err.text);
        rp_bench_release(&bench);
    }
}

static void test_rate_lines(void **state)
{
    static const char line[] = "RATE calls=1000 rows=5000 secs=0.500000 rate=2000.0 cpu_secs=0.400000 nvcsw=3 nivcsw=4 span=run thread_cpu_secs=0.39 x";
    struct rp_rate_line rate;

    (void)state;
    assert_true(rp_rate_line_parse(line, strlen(line), &rate));
    assert_true(rate.calls == 1000 && rate.rows == 5000 && rate.secs == 0.5 && rate.cpu_secs == 0.4 && rate.thread_cpu_secs == 0.39);
    assert_true(rate.has_switches && rate.nvcsw == 3 && rate.nivcsw == 4);
    assert_true(rp_rate_line_parse("RATE calls=5 secs=1", 19, &rate));
    assert_false(rate.has_switches);
    assert_false(rp_rate_line_parse("RATE calls=5", 12, &rate));
    assert_false(rp_rate_line_parse("RATE secs=5", 11, &rate));
    assert_false(rp_rate_line_parse("RATES calls=5 secs=1", 20, &rate));
    assert_false(rp_rate_line_parse("RATE calls=-5 secs=1", 20, &rate));
    assert_false(rp_rate_line_parse("", 0, &rate));
}

/* Every arm begins, is second and is last equally often, and follows each other arm equally often. */
static void test_turns(void **state)
{
    unsigned at[RP_ARMS][RP_ARMS] = {{0}}, follows[RP_ARMS][RP_ARMS] = {{0}};

    (void)state;
    for (uint32_t round = 0; round < 6; round++) {
        unsigned seen = 0;

        for (uint32_t place = 0; place < RP_ARMS; place++) {
            enum rp_arm arm = rp_race_turn(round, 4, place);

            seen |= 1u << arm;
            at[arm][place]++;
            if (place)
                follows[rp_race_turn(round, 4, place - 1)][arm]++;
        }
        assert_int_equal(seen, 7);
    }
    for (size_t a = 0; a < RP_ARMS; a++) {
        for (size_t b = 0; b < RP_ARMS; b++) {
            assert_int_equal(at[a][b], 2);
            assert_int_equal(follows[a][b], a == b ? 0 : 2);
        }
    }
}

static void test_copies_have_paths_of_one_length(void **state)
{
    static const char *const names[] = {"node", "node", "node-with-patch"};
    struct rp_arena arena = {0};
    const char *paths[3];
    struct rp_err err;

    (void)state;
    assert_int_equal(rp_copy_paths("/d", names, 3, &arena, paths, &err), RP_OK);
    assert_string_equal(paths[2], "/d/c/node-with-patch");
    assert_int_equal(strlen(paths[0]), strlen(paths[2]));
    assert_int_equal(strlen(paths[0]), strlen(paths[1]));
    assert_string_not_equal(paths[0], paths[1]);
    rp_arena_release(&arena);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    chmod(path, 0755);
}

/* The trap of `make`: two paths, one file; a link; a copy. */
static void test_programs_that_are_one(void **state)
{
    const char *a = temp_dir_path("a"), *b = temp_dir_path("b"), *c = temp_dir_path("c"), *d = temp_dir_path("d");
    struct rp_program one, two, three, four;
    struct rp_arena arena = {0};
    struct rp_err err;

    (void)state;
    write_text(a, "#!/bin/sh\n");
    assert_int_equal(symlink("a", b), 0);
    write_text(d, "#!/bin/sh\necho\n");
    assert_int_equal(rp_program_find(a, &arena, &one, &err), RP_OK);
    assert_int_equal(rp_program_find(b, &arena, &two, &err), RP_OK);
    assert_int_equal(rp_program_copy(&one, c, false, &err), RP_OK);
    assert_int_equal(rp_program_copy(&one, c, false, &err), RP_OK);
    assert_int_equal(rp_program_find(c, &arena, &three, &err), RP_OK);
    assert_int_equal(rp_program_find(d, &arena, &four, &err), RP_OK);
    assert_string_equal(two.path, one.path);
    assert_string_equal(rp_program_same(&one, &two), "they are the same file");
    assert_string_equal(rp_program_same(&one, &three), "they have the same content");
    assert_null(rp_program_same(&one, &four));
    assert_int_equal(rp_program_copy(&four, c, false, &err), RP_EXISTS);
    assert_int_equal(rp_program_copy(&four, c, true, &err), RP_OK);
    assert_int_equal(access(c, X_OK), 0);
    assert_int_equal(rp_program_find("/nowhere/at/all", &arena, &one, &err), RP_NOTFOUND);
    assert_int_equal(rp_program_find("no-such-program-here", &arena, &one, &err), RP_NOTFOUND);
    assert_int_equal(rp_program_find(temp_dir, &arena, &one, &err), RP_FAILED);
    assert_int_equal(rp_program_find("sh", &arena, &one, &err), RP_OK);
    assert_true(one.build_id[0]);
    rp_arena_release(&arena);
}

/* Half a copy would be in the way of the next one. */
static void test_a_copy_that_fails_leaves_nothing(void **state)
{
    struct rlimit had, small;
    const char *to = temp_dir_path("copy");
    struct rp_arena arena = {0};
    struct rp_program program;
    struct rp_err err = {0};
    enum rp_status status;

    (void)state;
    assert_int_equal(rp_program_find("/bin/sh", &arena, &program, &err), RP_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &had), 0);
    small = (struct rlimit){.rlim_cur = 4096, .rlim_max = had.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    status = rp_program_copy(&program, to, false, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &had), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, RP_IO);
    assert_int_not_equal(access(to, F_OK), 0);
    program.sha256[0] ^= 1; /* another file, as it were, while it was copied */
    assert_int_equal(rp_program_copy(&program, to, false, &err), RP_FAILED);
    assert_int_not_equal(access(to, F_OK), 0);
    program.sha256[0] ^= 1;
    assert_int_equal(rp_program_copy(&program, to, false, &err), RP_OK);
    rp_arena_release(&arena);
}

/* What we ignore is not ignored by what we run. */
static void test_a_run_has_the_signals_of_any_program(void **state)
{
    static const char *const words[] = {"sh", "-c", "kill -XFSZ $$; echo RATE calls=1 secs=1", NULL};
    static const volatile sig_atomic_t stop;
    struct rp_run_spec spec = {.file = "/bin/sh", .timeout_secs = 60, .stop = &stop};
    struct rp_bench_run run = {0};
    struct rp_err err = {0};
    enum rp_status status;

    (void)state;
    memcpy(&spec.argv, &(const char *const *){words}, sizeof spec.argv);
    signal(SIGXFSZ, SIG_IGN);
    status = rp_run_once(&spec, &run, &err);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, RP_FAILED);
    assert_non_null(strstr(err.text, "signal 25"));
}

/* Every allocation fails once, in everything that is read. */
static void test_no_memory(void **state)
{
    static const char csv[] = "binary,config,rate\nold,\"a\",1\nnew,a,2\nold,b,3\n";
    enum rp_status csv_status = RP_NOMEM, suite_status = RP_NOMEM, find_status = RP_NOMEM;

    (void)state;
    for (uint64_t n = 1; csv_status || suite_status || find_status; n++) {
        struct rp_arena arena = {0};
        struct rp_bench bench = {0};
        struct rp_suite suite = {0};
        struct rp_program program;
        struct rp_err err;

        rp_alloc_fail_at(n);
        csv_status = rp_runs_parse(&bench, "f.csv", csv, strlen(csv), &err);
        rp_alloc_fail_at(n);
        suite_status = rp_suite_parse(&suite, "s", "/h", suite_text, strlen(suite_text), &err);
        rp_alloc_fail_at(n);
        find_status = rp_program_find("sh", &arena, &program, &err);
        rp_alloc_fail_at(0);
        assert_true(csv_status == RP_OK || csv_status == RP_NOMEM);
        assert_true(suite_status == RP_OK || suite_status == RP_NOMEM);
        assert_true(n < 10000);
        rp_bench_release(&bench);
        rp_suite_release(&suite);
        rp_arena_release(&arena);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_suite),
        cmocka_unit_test(test_suite_mistakes),
        cmocka_unit_test(test_shipped_suites),
        cmocka_unit_test(test_csv_of_node),
        cmocka_unit_test(test_csv_round_trip),
        cmocka_unit_test(test_csv_mistakes),
        cmocka_unit_test(test_rate_lines),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_copies_have_paths_of_one_length),
        cmocka_unit_test(test_programs_that_are_one),
        cmocka_unit_test(test_a_copy_that_fails_leaves_nothing),
        cmocka_unit_test(test_a_run_has_the_signals_of_any_program),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, temp_dir_make, temp_dir_remove);
}
