/* SPDX-License-Identifier: MIT */
/* Reports of profiles that are written down here, so that every figure can be counted by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "report/emit.h"
#include "report/report.h"
#include "support/fake_view.h"

static const char rules[] = "categories:\n"
                            "  - {id: db, name: \"query work\", kind: cost, color: blue}\n"
                            "  - {id: lock, name: \"mutex\", kind: cost, color: red, payers: true}\n"
                            "  - {id: app, name: \"application\", kind: cost, color: \"#102030\"}\n"
                            "rules:\n"
                            "  - {id: db-exec, category: db, symbol: exec}\n"
                            "  - {id: lock-lock, category: lock, symbol: lock}\n"
                            "  - {id: app-get, category: app, symbol: get}\n";

/* 100 samples: db 60 (20 of them by inheritance), lock 30 (20 for db, 10 for app), app 5, uncategorized 5. */
static const char profile[] = ".process 1234 comm=app command=\"/opt/bin/app --serve\"\n"
                              ".run seconds=2 hz=50 source=cpu-clock\n"
                              "exec+0x10;get+0x40;main 40\n"
                              "helper;exec+0x20;get+0x40;main 20\n"
                              "lock;exec+0x30;get+0x40;main 20\n"
                              "lock;get+0x50;main 10\n"
                              "get+0x5;main 5\n"
                              "strange;main 5\n";

static void defaults(struct rp_report_options *o)
{
    *o = (struct rp_report_options){.category = RP_ALL_CATEGORIES, .min_samples = 5};
}

static void render(const struct rp_view *view, const struct rp_report_options *options, const char *format, struct rp_buf *out)
{
    struct rp_report report;
    struct rp_err err = {0};

    if (rp_report_make(view, options, rp_emit_find(format), &report, &err) || rp_report_write(&report, out, &err))
        fail_msg("%s", err.text);
    rp_report_release(&report);
}

static void holds(const struct rp_buf *text, const char *part)
{
    if (!strstr(rp_buf_text(text), part))
        fail_msg("not there: %s\nin:\n%s", part, rp_buf_text(text));
}

static void lacks(const struct rp_buf *text, const char *part)
{
    if (strstr(rp_buf_text(text), part))
        fail_msg("should not be there: %s\nin:\n%s", part, rp_buf_text(text));
}

static void text_of(const char *stacks, const char *yaml, const struct rp_report_options *options, const char *format, struct rp_buf *out)
{
    struct fake_view v;

    fake_view(&v, stacks, yaml, NULL);
    render(v.view, options, format, out);
    fake_view_release(&v);
}

static void table_counts_add_up(void **state)
{
    struct rp_report_options o;
    struct rp_buf b = {0};

    (void)state;
    defaults(&o);
    text_of(profile, rules, &o, "text", &b);
    holds(&b, "app --serve (pid 1234) \xc2\xb7 1 thread \xc2\xb7 2.0 s \xc2\xb7 cpu-clock 50 Hz\n");
    holds(&b, "100 on-CPU samples \xc2\xb7 0 lost \xc2\xb7 100 % complete stacks");
    holds(&b, "      60   60.0 %");
    holds(&b, "query work  (33 % by inheritance)\n");
    holds(&b, "      30   30.0 %");
    holds(&b, "paid for by query work 20.0 %, application 10.0 %\n");
    holds(&b, "       5    5.0 %");
    holds(&b, "5 claimed by no rule\n");
    lacks(&b, "\x1b");
    rp_buf_release(&b);
}

static void tree_is_drawn_with_offsets_and_guides(void **state)
{
    struct rp_report_options o;
    struct rp_buf b = {0};

    (void)state;
    defaults(&o);
    o.category = 0;
    text_of(profile, rules, &o, "text", &b);
    holds(&b, "Call tree of query work (60.0 %), at least 5 samples\n"
              "60 get + 64  (in app)\n"
              " | 60 exec  [40 self]\n"
              " | : 20 helper\n");
    rp_buf_clear(&b);
    o.full_stacks = true;
    text_of(profile, rules, &o, "text", &b);
    holds(&b, "60 main");
    holds(&b, " | 60 get");
    rp_buf_clear(&b);
    o.min_samples = 21;
    text_of(profile, rules, &o, "text", &b);
    lacks(&b, "helper");
    rp_buf_release(&b);
}

static void nothing_seen_has_a_bound(void **state)
{
    struct rp_report_options o;
    struct rp_buf b = {0};

    (void)state;
    defaults(&o);
    /* Wilson 95 %, 0 of 6001: 0.0639726934847 % (R, prop.test without correction); a bound is rounded up. */
    text_of("exec;main 6001\n", rules, &o, "text", &b);
    holds(&b, "       0 < 0.07 %          uncategorized\n");
    holds(&b, "6 001 on-CPU samples");
    rp_buf_release(&b);
}

/* A10: a function or category is in a sample once, however often it is on the stack. */
static void recursion_never_passes_all(void **state)
{
    struct rp_report_options o;
    struct rp_buf b = {0};

    (void)state;
    defaults(&o);
    o.total = true;
    text_of("exec;get;exec;get;exec;get;main 300\n", rules, &o, "text", &b);
    holds(&b, "100.0 %    0.6  100.0 %   query work");
    rp_buf_clear(&b);
    o.by = RP_BY_FUNCTION;
    text_of("exec;get;exec;get;exec;get;main 300\n", rules, &o, "csv", &b);
    holds(&b, "exec,app,300,1.000000,");
    holds(&b, "get,app,0,0.000000,");
    holds(&b, ",300\r\n");
    lacks(&b, "900");
    rp_buf_release(&b);
}

/* A15: lost samples are counted, put beside what was kept, and the remedy is named once it matters. */
static void losses_are_told(void **state)
{
    struct rp_report_options o;
    struct rp_buf b = {0};

    (void)state;
    defaults(&o);
    text_of(".run seconds=2 hz=997 lost=100 throttled=3\nexec;main 900\n", rules, &o, "text", &b);
    holds(&b, "100 lost (10.0 %)");
    holds(&b, "note: 100 samples were lost (10.0 %)");
    holds(&b, "--freq");
    holds(&b, "held sampling back 3 times");
    rp_buf_clear(&b);
    text_of(".run seconds=2 hz=997 lost=100 waits=1 switches=1000\nexec;main 900\n", rules, &o, "text", &b);
    holds(&b, "100 lost (5.0 %)");
    holds(&b, "note: 100 records were lost (5.0 %)");
    holds(&b, "not exact");
    rp_buf_clear(&b);
    text_of(".run seconds=2 hz=997 lost=1\nexec;main 900\n", rules, &o, "text", &b);
    holds(&b, "1 lost (0.1 %)");
    lacks(&b, "was lost");
    rp_buf_clear(&b);
    text_of(".run seconds=2 hz=997 lost=100\nexec;main 900\n", rules, &o, "json", &b);
    holds(&b, "\"lost\": 100");
    holds(&b, "{\"id\": \"lost\", \"text\": ");
    rp_buf_release(&b);
}

static void notes_name_the_remedy(void **state)
{
    struct rp_report_options o;
    struct rp_buf b = {0};

    (void)state;
    defaults(&o);
    text_of(".process 1234 comm=MainThread command=\"/usr/bin/node x.mjs\"\n"
            ".module libc.so.6 kind=elf remedy=libc6-dbg\n"
            ".run seconds=2 hz=997\n"
            "libc.so.6!?+0x9a1c0;exec;main 100\n"
            "exec;[jit]!?+0x1000;main 300\n"
            "memcpy;[truncated: no unwind row] 50\n",
            rules, &o, "text", &b);
    holds(&b, "note: 22.2 % of the samples are in code of libc.so.6 that has no names: installing libc6-dbg would\n      name it.");
    holds(&b, "66.7 % of the samples run through generated code");
    holds(&b, "--perf-basic-prof");
    holds(&b, "11.1 % of the stacks do not reach their root: 50 times [truncated: no unwind row].");
    rp_buf_release(&b);
}

/* The kernel's part that nobody saw has a size, since the CPU clock counts it: 2 s of CPU time, 100 samples at 100 Hz. */
static void hidden_kernel_time_has_a_size(void **state)
{
    struct rp_report_options o;
    struct rp_buf b = {0};

    (void)state;
    defaults(&o);
    text_of(".process 9 comm=x command=x\n.thread x/9 pid=9 wall=2 cpu=2\n.run seconds=2 hz=100 source=cpu-clock\nexec;main 100 thread=x/9 pid=9\n",
            rules, &o, "text", &b);
    holds(&b, "missing from the shares:\n      about 50 % of the 2.0 s of CPU time");
    rp_buf_clear(&b);
    text_of(".run seconds=2 hz=100 source=cpu-clock\n[kernel]!read;exec;main 100\n", rules, &o, "text", &b);
    lacks(&b, "not visible");
    rp_buf_release(&b);
}

static void only_so_many_samples_is_said(void **state)
{
    struct rp_report_options o;
    struct rp_buf b = {0};

    (void)state;
    defaults(&o);
    text_of("exec;main 1\n", rules, &o, "text", &b);
    holds(&b, "1 on-CPU sample ");
    holds(&b, "note: Only 1 sample: ");
    rp_buf_release(&b);
}

static void widths_are_kept(void **state)
{
    static const char *const stacks =
        "exec;a_function_with_a_long_name_number_one(int, std::vector<std::pair<int, int> >);another_function_with_a_long_name(char);main 300\n"
        "lock;std::map<std::basic_string<char>, std::vector<std::pair<int, int> >, std::less<int> >::find_something_in_it(int);main 300\n";
    struct rp_report_options o;

    (void)state;
    for (size_t width = 50; width < 200; width += 13) {
        struct rp_buf b = {0};

        defaults(&o);
        o.width = width;
        o.tree = RP_TREE_FULL;
        o.full_stacks = true;
        text_of(stacks, rules, &o, "text", &b);
        for (const char *text = rp_buf_text(&b); *text; text += strcspn(text, "\n") + 1) {
            size_t at = strcspn(text, "\n"), columns = 0;

            for (size_t bytes = 0; bytes < at; bytes++)
                columns += ((unsigned char)text[bytes] & 0xc0) != 0x80;
            if (columns > width)
                fail_msg("%zu columns in %zu: %.*s", columns, width, (int)at, text);
        }
        rp_buf_release(&b);
    }
}

static void colours_only_when_wanted(void **state)
{
    struct rp_report_options o;
    struct rp_buf b = {0};

    (void)state;
    defaults(&o);
    o.color = true;
    text_of(profile, rules, &o, "text", &b);
    holds(&b, "\x1b[38;5;69mquery work\x1b[0m");
    holds(&b, "\x1b[38;2;16;32;48mapplication\x1b[0m");
    rp_buf_clear(&b);
    text_of(profile, rules, &o, "json", &b);
    lacks(&b, "\x1b");
    rp_buf_release(&b);
}

/* A recursion of 3 000 frames stays a page wide, and its JSON is flat. */
static void deep_recursion_stays_readable(void **state)
{
    struct rp_report_options o;
    struct rp_buf stack = {0}, b = {0};
    size_t longest = 0, lines;

    (void)state;
    for (int i = 0; i < 3000; i++)
        rp_buf_puts(&stack, "get;");
    rp_buf_puts(&stack, "main 10\n");
    defaults(&o);
    o.tree = RP_TREE_FULL;
    text_of(rp_buf_text(&stack), rules, &o, "text", &b);
    for (const char *text = rp_buf_text(&b); *text; text += strcspn(text, "\n") + 1)
        longest = strcspn(text, "\n") > longest ? strcspn(text, "\n") : longest;
    assert_true(longest < 200);
    lacks(&b, "lines more");
    rp_buf_clear(&b);
    o.tree = RP_TREE_AUTO;
    text_of(rp_buf_text(&stack), rules, &o, "text", &b);
    lines = 0;
    for (const char *text = rp_buf_text(&b); *text; text += strcspn(text, "\n") + 1)
        lines++;
    assert_true(lines < 100);
    holds(&b, " lines more\n");
    rp_buf_clear(&b);
    text_of(rp_buf_text(&stack), rules, &o, "json", &b);
    holds(&b, "\"depth\": 2");
    rp_buf_release(&stack);
    rp_buf_release(&b);
}

static void hostile_names_break_nothing(void **state)
{
    static const char stacks[] = "a</script><b>&\"';exec;main 10\n"
                                 "x\\;y z;exec;main 10\n"
                                 "t\\tt;exec;main 10\n"
                                 "e\\x1b[31m;exec;main 10\n"
                                 "f\\xff;exec;main 10\n"
                                 "\xf0\x9f\x98\x80;exec;main 10\n";
    struct rp_report_options o;
    struct rp_buf b = {0};

    (void)state;
    defaults(&o);
    o.by = RP_BY_FUNCTION;
    text_of(stacks, rules, &o, "text", &b);
    holds(&b, "a</script><b>&\"'");
    holds(&b, "x;y z");
    holds(&b, "e\xef\xbf\xbd[31m");
    holds(&b, "f\xef\xbf\xbd");
    holds(&b, "\xf0\x9f\x98\x80");
    lacks(&b, "\x1b");
    lacks(&b, "\t");
    lacks(&b, "\xff");
    rp_buf_clear(&b);
    text_of(stacks, rules, &o, "csv", &b);
    holds(&b, "\"a</script><b>&\"\"'\",app,");
    rp_buf_clear(&b);
    text_of(stacks, rules, &o, "json", &b);
    holds(&b, "a</script><b>&\\\"'");
    holds(&b, "t\\u0009t");
    holds(&b, "e\\u001b[31m");
    holds(&b, "f\xef\xbf\xbd");
    rp_buf_release(&b);
}

/* What --uncategorized prints is a rule file, and its rules claim what was unclaimed. */
static void unclaimed_is_a_rule_file(void **state)
{
    static const char stacks[] = "strange;main 30\nns::odd(int, char);main 20\noperator*;main 10\n/slash/;main 10\nq'u\"o\\te;main 10\n"
                                 "libx.so.1!?+0x10;main 10\nlibx.so.1!?+0x20;main 10\nhelper;exec;main 40\nrare;main 1\n";
    struct rp_report_options o;
    struct rp_buf b = {0}, again = {0}, problems = {0};
    struct rp_err err = {0};
    struct fake_view v;

    (void)state;
    defaults(&o);
    o.unclaimed = true;
    fake_view(&v, stacks, rules, NULL);
    render(v.view, &o, "text", &b);
    fake_view_release(&v);
    holds(&b, "# No rule claims 101 of 141 samples (71.6 %).");
    holds(&b, "symbol: \"strange\"}");
    holds(&b, "#     20   14.2 %  code without names (in libx.so.1)");
    holds(&b, "module: \"libx.so.1\"}");
    holds(&b, "symbol: 'operator\\*'}");
    holds(&b, "now in query work through its caller");
    lacks(&b, "rare");
    rp_buf_puts(&again, rp_buf_text(&b));
    /* Under these rules only the rare one is left. */
    fake_view(&v, stacks, rp_buf_text(&again), NULL);
    o.unclaimed = false;
    rp_buf_clear(&b);
    render(v.view, &o, "csv", &b);
    holds(&b, "mine,my own work,cost,100,");
    fake_view_release(&v);
    assert_int_equal(err.status, 0);
    rp_buf_release(&b);
    rp_buf_release(&again);
    rp_buf_release(&problems);
}

/* Every allocation fails once; the report fails with it and leaks nothing (the sanitizers look). */
static void out_of_memory_is_survived(void **state)
{
    static const char *const formats[] = {"text", "json", "csv"};
    struct rp_report_options o;
    struct fake_view v;

    (void)state;
    defaults(&o);
    fake_view(&v, profile, rules, NULL);
    for (size_t f = 0; f < 3; f++) {
        for (uint64_t n = 1; n < 20000; n++) {
            struct rp_report report = {0};
            struct rp_buf out = {0};
            struct rp_err err = {0};
            enum rp_status status;

            rp_alloc_fail_at(n);
            status = rp_report_make(v.view, &o, rp_emit_find(formats[f]), &report, &err);
            if (!status)
                status = rp_report_write(&report, &out, &err);
            rp_alloc_fail_at(0);
            rp_report_release(&report);
            rp_buf_release(&out);
            if (!status)
                break;
            assert_int_equal(status, RP_NOMEM);
            assert_true(n < 19999);
        }
    }
    fake_view_release(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_counts_add_up),
        cmocka_unit_test(tree_is_drawn_with_offsets_and_guides),
        cmocka_unit_test(nothing_seen_has_a_bound),
        cmocka_unit_test(recursion_never_passes_all),
        cmocka_unit_test(losses_are_told),
        cmocka_unit_test(notes_name_the_remedy),
        cmocka_unit_test(hidden_kernel_time_has_a_size),
        cmocka_unit_test(only_so_many_samples_is_said),
        cmocka_unit_test(widths_are_kept),
        cmocka_unit_test(colours_only_when_wanted),
        cmocka_unit_test(deep_recursion_stays_readable),
        cmocka_unit_test(hostile_names_break_nothing),
        cmocka_unit_test(unclaimed_is_a_rule_file),
        cmocka_unit_test(out_of_memory_is_survived),
    };

    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
