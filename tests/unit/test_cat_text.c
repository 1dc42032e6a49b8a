/* SPDX-License-Identifier: MIT */
/* What people write and read besides rules: stacks, cases, explanations, lint; and the folders rules come from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/io.h"
#include "categorize/categorize.h"

static struct cat_rules *rules_from(const char *text)
{
    struct cat_rules *rules = NULL;
    struct rp_buf problems = {0};
    struct rp_err err = {0};

    assert_int_equal(cat_rules_new(&rules, &err), RP_OK);
    if (cat_rules_add(rules, "mine.yaml", text, strlen(text), &problems, &err) || cat_rules_finish(rules, &problems, &err))
        fail_msg("%s", rp_buf_text(&problems));
    rp_buf_release(&problems);
    return rules;
}

/* ---- stacks ---- */

static void stacks_hold_every_kind_of_frame(void **state)
{
    static const char text[] = " v8::f<a < b> < lib-1.so.0!operator<<int> < operator!= <  [k]ext4!ext4_sync @ fs/ext4/fsync.c < [k] x < a!b!c < [truncated: y] | thread=\"a b\" "
                               "state=blocked no-kernel ";
    struct cat_stack s = {0};
    struct rp_err err = {0};

    (void)state;
    /* "a < b" has blanks round the mark, so it parts frames: 8 of them */
    assert_int_equal(cat_stack_parse(text, strlen(text), &s, &err), RP_OK);
    assert_int_equal(s.n, 8);
    assert_string_equal(s.frames[0].name, "v8::f<a");
    assert_string_equal(s.frames[1].name, "b>");
    assert_string_equal(s.frames[2].name, "operator<<int>");
    assert_string_equal(s.frames[2].module, "lib-1.so.0");
    assert_string_equal(s.frames[3].name, "operator!=");
    assert_string_equal(s.frames[3].module, "");
    assert_string_equal(s.frames[4].name, "ext4_sync");
    assert_string_equal(s.frames[4].module, "ext4");
    assert_string_equal(s.frames[4].file, "fs/ext4/fsync.c");
    assert_true(s.frames[4].kernel && !s.frames[3].kernel);
    assert_string_equal(s.frames[5].name, "x");
    assert_string_equal(s.frames[5].module, "[kernel]");
    assert_string_equal(s.frames[6].name, "b!c");
    assert_true(s.frames[7].mark);
    assert_string_equal(s.context.thread, "a b");
    assert_int_equal(s.context.state, CAT_BLOCKED);
    assert_true(s.context.no_kernel);
    cat_stack_release(&s);
}

static void bad_stacks_name_the_column(void **state)
{
    static const struct {
        const char *text, *told;
    } bad[] = {
        {"", "column 1: expected a function's name"},
        {"a <  < b", "column 5: expected a function's name"},
        {"a < lib.so!", "column 12: expected a function's name"},
        {"[k]", "column 4: expected a function's name"},
        {"a | speed=1", "column 5: expected state=…, thread=…, no-kernel, never-ran or holds-lock"},
        {"a | thread=x state=asleep", "column 14: expected state=running or state=blocked"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct cat_stack s = {0};
        struct rp_err err = {0};

        assert_int_equal(cat_stack_parse(bad[i].text, strlen(bad[i].text), &s, &err), RP_USAGE);
        assert_string_equal(err.text, bad[i].told);
        assert_int_equal(s.n, 0);
    }
}

/* ---- cases ---- */

static const char app_rules[] = "categories:\n"
                                "  - {id: app.json, name: \"JSON rendering\", kind: cost, color: orange}\n"
                                "  - {id: mem, name: memory, kind: cost, payers: true}\n"
                                "rules:\n"
                                "  - {id: app-json, category: app.json, symbol: \"json_*\", module: \"app*\", not_under: sqlite3_step}\n"
                                "  - {id: app-self, category: app.json, symbol: \"handle_*\", claims: self}\n"
                                "  - {id: mem, category: mem, symbol: [malloc, free], thread: \"w*\"}\n"
                                "through: [memcpy]\n";

static void cases_pass_fail_and_count(void **state)
{
    static const char text[] = "# a comment\n"
                               "\n"
                               "memcpy < app!json_escape < main -> app.json app-json  # fine\r\n"
                               "x < main -> uncategorized no-rule\n"
                               "x < main -> uncategorized through\n"
                               "app!json_x < main -> mem\n"
                               "app!json_x < main -> app.json mem\n"
                               "no arrow\n"
                               "a < < b -> mem\n"
                               "fn(i32) -> i32 -> nobody";
    struct cat_rules *rules = rules_from(app_rules);
    struct rp_buf out = {0};
    struct rp_err err = {0};
    size_t passed, failed;
    bool hit[4] = {false};

    (void)state;
    assert_int_equal(cat_rules_nrules(rules), 4);
    assert_int_equal(cat_cases_run(rules, "t.cases", text, strlen(text), &out, &passed, &failed, hit, &err), RP_OK);
    assert_string_equal(rp_buf_text(&out),
                        "t.cases:5: expected uncategorized through, got uncategorized: no rule claims a frame\n"
                        "t.cases:6: expected mem, got app.json by rule app-json at frame 0, json_x\n"
                        "t.cases:7: expected app.json mem, got app.json by rule app-json at frame 0, json_x\n"
                        "t.cases:8: expected STACK -> CATEGORY [RULE], found no ` -> `\n"
                        "t.cases:9: expected mem, got uncategorized: no rule claims a frame\n"
                        "t.cases:10: expected nobody, got uncategorized: no rule claims a frame\n");
    assert_int_equal(passed, 2);
    assert_int_equal(failed, 6);
    assert_true(hit[0] && !hit[1] && !hit[2] && hit[3]);
    rp_buf_release(&out);
    cat_rules_free(rules);
}

/* ---- explain ---- */

static void check_explained(const char *stack, const char *expected)
{
    struct cat_rules *rules = rules_from(app_rules);
    struct cat_matcher *matcher = NULL;
    struct cat_stack s = {0};
    struct rp_buf out = {0};
    struct rp_err err = {0};

    assert_int_equal(cat_matcher_new(rules, &matcher, &err), RP_OK);
    assert_int_equal(cat_stack_parse(stack, strlen(stack), &s, &err), RP_OK);
    assert_int_equal(cat_explain(matcher, s.frames, s.n, &s.context, false, &out, &err), RP_OK);
    assert_string_equal(rp_buf_text(&out), expected);
    rp_buf_release(&out);
    cat_stack_release(&s);
    cat_matcher_free(matcher);
    cat_rules_free(rules);
}

/* A verdict is no verdict when a rule had no time to look: told, and which regex it was. */
static void explain_tells_a_regex_that_gave_up(void **state)
{
    struct cat_rules *rules = rules_from("categories: [{id: a, name: A, kind: cost}]\nrules: [{id: r, category: a, symbol: '/^(a+)+$/'}]\n");
    struct cat_matcher *matcher = NULL;
    struct cat_stack s = {0};
    struct rp_buf out = {0};
    struct rp_err err = {0};
    static const char stack[] = "aaaaaaaaaaaaaaaaaaaaaaaa!x < main";

    (void)state;
    assert_int_equal(cat_matcher_new(rules, &matcher, &err), RP_OK);
    assert_int_equal(cat_stack_parse(stack, sizeof stack - 1, &s, &err), RP_OK);
    s.frames[0].name = s.frames[0].short_name = s.frames[0].raw = "aaaaaaaaaaaaaaaaaaaaaaaa!";
    assert_int_equal(cat_explain(matcher, s.frames, s.n, &s.context, false, &out, &err), RP_OK);
    assert_non_null(strstr(rp_buf_text(&out), "=> uncategorized: no rule claims a frame\n"
                                              "   but the regex /^(a+)+$/ was ended by the limit of 100000 steps, which counts as no match"));
    rp_buf_release(&out);
    cat_stack_release(&s);
    cat_matcher_free(matcher);
    cat_rules_free(rules);
}

static void explain_says_who_wins_and_why_not(void **state)
{
    (void)state;
    check_explained("memcpy < app!json_escape < handle_get < main", "=> app.json \"JSON rendering\": frame 1, json_escape\n"
                                                                  "  0  memcpy\n"
                                                                  "     passes  through memcpy  (mine.yaml:8:11): the question goes to the caller\n"
                                                                  "  1  json_escape (in app)\n"
                                                                  "     wins    app-json -> app.json  (mine.yaml:5:10)\n"
                                                                  "  2  handle_get\n"
                                                                  "     loses   app-self -> app.json  (mine.yaml:6:10): the payer was found before this frame\n"
                                                                  "  3  main\n"
                                                                  "     no rule knows this frame\n");
    check_explained("lib!json_x < app!json_y < handle_get < sqlite3_step < [truncated: z]",
                    "=> uncategorized: the stack was cut before a claimed frame came\n"
                    "  0  json_x (in lib)\n"
                    "     fails   app-json -> app.json  (mine.yaml:5:10): the module is lib, not app*\n"
                    "  1  json_y (in app)\n"
                    "     fails   app-json -> app.json  (mine.yaml:5:10): under one of sqlite3_step\n"
                    "  2  handle_get\n"
                    "     loses   app-self -> app.json  (mine.yaml:6:10): it claims itself only, and this frame is not the leaf\n"
                    "  3  sqlite3_step\n"
                    "     no rule knows this frame\n"
                    "  4  [truncated: z]\n"
                    "     the stack was cut here\n");
    check_explained("json_z", "=> uncategorized: no rule claims a frame\n"
                              "  0  json_z\n"
                              "     fails   app-json -> app.json  (mine.yaml:5:10): the module is unknown (write module!name), not app*\n");
    check_explained("malloc < x | thread=main", "=> uncategorized: no rule claims a frame\n"
                                                "  0  malloc\n"
                                                "     fails   mem -> mem  (mine.yaml:7:10): the thread is not w*\n"
                                                "  1  x\n"
                                                "     no rule knows this frame\n");
    check_explained("y < malloc < app!json_x | thread=worker",
                    "=> mem \"memory\": frame 1, malloc, which takes what no rule claims below it\n"
                    "   paid for by app.json: json_x\n"
                    "  0  y\n"
                    "     no rule knows this frame\n"
                    "  1  malloc\n"
                    "     wins    mem -> mem  (mine.yaml:7:10)\n"
                    "  2  json_x (in app)\n"
                    "     loses   app-json -> app.json  (mine.yaml:5:10): the payer was found before this frame\n");
    check_explained("[k]json_x < malloc | state=blocked", "=> uncategorized: no rule claims a frame\n"
                                                          "  0  json_x (in [kernel])\n"
                                                          "     fails   app-json -> app.json  (mine.yaml:5:10): the module is [kernel], not app*\n"
                                                          "  1  malloc\n"
                                                          "     fails   mem -> mem  (mine.yaml:7:10): its category sees running threads only\n");
}

/* Rules that were shipped are told where they could have decided, one's own always: with them one asks why not. */
static void explain_leaves_out_what_could_not_decide(void **state)
{
    static const char cats[] = "categories: [{id: c, name: C, kind: cost}, {id: w, name: W, kind: wait}]\n";
    static const char shipped[] = "rules:\n - {id: wait, category: w, symbol: f}\n - {id: before, category: c, symbol: f, under: h}\n - {id: f, category: c, symbol: f}\n"
                                  " - {id: f2, category: c, symbol: \"f*\"}\n - {id: f3, category: c, symbol: [\"f?\", f]}\n - {id: after, category: c, symbol: f, under: h}\n"
                                  " - {id: star, category: c, symbol: \"*\", under: k}\n - {id: g, category: c, symbol: g}\n"
                                  " - {id: past, category: c, symbol: g, under: h}\nthrough: [g]\n";
    static const char mine[] = "rules:\n - {id: my-wait, category: w, symbol: f}\n";
    static const char verdict[] = "=> c \"C\": frame 0, f\n";
    struct cat_stack s = {0};

    (void)state;
    for (int all = 0; all < 2; all++) {
        struct cat_rules *rules = NULL;
        struct cat_matcher *matcher = NULL;
        struct rp_buf out = {0}, problems = {0};
        struct rp_err err = {0};
        const char *text;

        assert_int_equal(cat_rules_new(&rules, &err), RP_OK);
        assert_int_equal(cat_rules_add(rules, "cats.yaml", cats, sizeof cats - 1, &problems, &err), RP_OK);
        assert_int_equal(cat_rules_add(rules, "mine.yaml", mine, sizeof mine - 1, &problems, &err), RP_OK);
        assert_int_equal(cat_rules_add(rules, "shipped/x.yaml", shipped, sizeof shipped - 1, &problems, &err), RP_OK);
        assert_int_equal(cat_rules_finish(rules, &problems, &err), RP_OK);
        assert_int_equal(cat_matcher_new(rules, &matcher, &err), RP_OK);
        assert_int_equal(cat_stack_parse("f < g", 5, &s, &err), RP_OK);
        assert_int_equal(cat_explain(matcher, s.frames, s.n, &s.context, all, &out, &err), RP_OK);
        text = rp_buf_text(&out);
        assert_int_equal(strncmp(text, verdict, sizeof verdict - 1), 0);
        if (!all)
            assert_string_equal(text + sizeof verdict - 1,
                                "  0  f\n"
                                "     wins    f -> c  (shipped/x.yaml:4:9)\n"
                                "     loses   f2 -> c  (shipped/x.yaml:5:9), f3 -> c  (shipped/x.yaml:6:9): a rule before it decided this frame\n"
                                "     fails   my-wait -> w  (mine.yaml:2:9): its category sees blocked threads only\n"
                                "     fails   before -> c  (shipped/x.yaml:3:9): not under h\n"
                                "  1  g\n"
                                "     loses   g -> c  (shipped/x.yaml:9:9): the payer was found before this frame\n"
                                "6 more could not have decided: for another state or context, or too late; -v tells them.\n");
        else
            assert_true(strstr(text, "wait -> w  (shipped/x.yaml:2:9)") && strstr(text, "after -> c") && strstr(text, "star -> c") && strstr(text, "past -> c") && strstr(text, "through g") &&
                        !strstr(text, "more could"));
        rp_buf_release(&out);
        rp_buf_release(&problems);
        cat_stack_release(&s);
        cat_matcher_free(matcher);
        cat_rules_free(rules);
    }
}

/* ---- lint ---- */

static void check_lint(const char *rules_text, const char *expected, size_t count)
{
    struct cat_rules *rules = rules_from(rules_text);
    struct rp_buf out = {0};
    struct rp_err err = {0};
    size_t findings = 99;

    assert_int_equal(cat_lint(rules, &out, &findings, &err), RP_OK);
    assert_string_equal(rp_buf_text(&out), expected);
    assert_int_equal(findings, count);
    rp_buf_release(&out);
    cat_rules_free(rules);
}

#define CC "categories: [{id: c, name: C, kind: cost}, {id: w, name: W, kind: wait}]\n"
#define W_USED " - {id: used, category: w, symbol: w}\n"

static void lint_finds_what_is_sure(void **state)
{
    (void)state;
    check_lint(CC "rules:\n - {id: a, category: c, symbol: [\"json_*\", x]}\n - {id: b, category: c, symbol: [json_num, \"json_a*\", x]}\n" W_USED,
               "mine.yaml:4:9: rule `b`: is never reached: all it matches is taken before by `a` (mine.yaml:3)\n", 1);
    check_lint(CC "rules:\n - {id: a, category: c, symbol: '/^json/'}\n - {id: b, category: c, symbol: x}\n - {id: d, category: c, symbol: [json_num, x]}\n" W_USED,
               "mine.yaml:5:9: rule `d`: is never reached: all it matches is taken before by `a` (mine.yaml:3), `b` (mine.yaml:4)\n", 1);
    check_lint(CC "rules:\n - {id: a, category: c, module: \"lib*\"}\n - {id: b, category: c, symbol: x, module: libc.so}\n" W_USED,
               "mine.yaml:4:9: rule `b`: is never reached: all it matches is taken before by `a` (mine.yaml:3)\n", 1);
    check_lint(CC "through: [\"mem*\"]\nrules:\n - {id: a, category: c, symbol: memcpy}\n" W_USED,
               "mine.yaml:4:9: rule `a`: is never reached: all it matches is taken before by `through mem*` (mine.yaml:2)\n", 1);
    /* Nothing is said where a stack may exist that the later rule gets. */
    check_lint(CC "rules:\n"
                  " - {id: a, category: c, symbol: \"j*\", under: u}\n - {id: b, category: c, symbol: jx}\n"
                  " - {id: d, category: c, symbol: \"k*\", claims: self}\n - {id: e, category: c, symbol: kx}\n"
                  " - {id: f, category: c, symbol: \"l*\", module: m}\n - {id: g, category: c, symbol: lx}\n"
                  " - {id: h, category: w, symbol: \"m*\"}\n - {id: i, category: c, symbol: mx}\n"
                  " - {id: j, category: c, symbol: \"n*\", space: kernel}\n - {id: k, category: c, symbol: nx}\n"
                  " - {id: l, category: c, symbol: \"o?\"}\n - {id: m, category: c, symbol: \"o*\"}\n"
                  " - {id: n, category: c, symbol: \"p*\", claims: rest}\n - {id: o, category: c, symbol: px}\n"
                  " - {id: p, category: c, symbol: [q, \"qq*\"]}\n - {id: r, category: c, symbol: \"q*\"}\n",
               "", 0);
    check_lint(CC "rules:\n - {id: a, category: c, symbol: [foo.cold, __GI_x, \"y@@V\", \"z@plt\", \"/ok.cold/\"]}\n" W_USED,
               "mine.yaml:3:9: rule `a`: `foo.cold` matches nothing: .cold is cut off names before; leave it out, or write a /regex/\n"
               "mine.yaml:3:9: rule `a`: `__GI_x` matches nothing: __GI_ is cut off names before; leave it out, or write a /regex/\n"
               "mine.yaml:3:9: rule `a`: `y@@V` matches nothing: the @version is cut off names before; leave it out, or write a /regex/\n"
               "mine.yaml:3:9: rule `a`: `z@plt` matches nothing: @plt is cut off names before; leave it out, or write a /regex/\n",
               4);
    check_lint(CC "rules:\n - {id: a, category: c, symbol: x, under: [u, v], not_under: [v, u]}\n",
               "mine.yaml:3:9: rule `a`: matches nothing: all of `under` stands in `not_under` too\n"
               "mine.yaml:1:49: category `w`: no rule gives it\n",
               2);
}

static void lint_against_a_profile(void **state)
{
    static const struct cat_symbol symbols[] = {{.short_name = "json_a", .module = "app"}, {.short_name = "memcpy", .module = "libc.so.6"}};
    struct cat_rules *rules = rules_from(app_rules);
    struct rp_buf out = {0};
    struct rp_err err = {0};
    size_t findings;

    (void)state;
    assert_int_equal(cat_lint_symbols(rules, symbols, 2, &out, &findings, &err), RP_OK);
    assert_string_equal(rp_buf_text(&out), "mine.yaml:6:10: rule `app-self`: matches no function of the profile\n"
                                           "mine.yaml:7:10: rule `mem`: matches no function of the profile\n");
    assert_int_equal(findings, 2);
    rp_buf_release(&out);
    cat_rules_free(rules);
}

/* ---- folders ---- */

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void a_folder_goes_by_order_then_name(void **state)
{
    static const char *const names[] = {"a.yaml", "b.yaml", "c.yaml", "notes.txt", ".hidden.yaml"};
    char dir[] = "/tmp/rowprof-rules-XXXXXX", path[256];
    struct cat_rules *rules = NULL;
    struct rp_buf problems = {0};
    struct rp_err err = {0};

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(cat_rules_new(&rules, &err), RP_OK);
    assert_int_equal(cat_rules_add_path(rules, dir, &problems, &err), RP_USAGE);
    write_file(dir, names[0], "rules: [{id: last, category: c, symbol: x}]\n");
    write_file(dir, names[1], "order: 499\nrules: [{id: second, category: c, symbol: x}]\n");
    write_file(dir, names[2], "order: 0\ncategories: [{id: c, name: C, kind: cost}]\nrules: [{id: first, category: c, symbol: x}]\n");
    write_file(dir, names[3], "not YAML: [");
    write_file(dir, names[4], "not YAML: [");
    if (cat_rules_add_path(rules, dir, &problems, &err) || cat_rules_finish(rules, &problems, &err))
        fail_msg("%s %s", rp_buf_text(&problems), err.text);
    assert_int_equal(cat_rules_nrules(rules), 3);
    assert_string_equal(cat_rules_rule(rules, 0)->id, "first");
    assert_string_equal(cat_rules_rule(rules, 1)->id, "second");
    assert_string_equal(cat_rules_rule(rules, 2)->id, "last");
    snprintf(path, sizeof path, "%s/a.yaml", dir);
    assert_string_equal(cat_rules_rule(rules, 2)->file, path);
    cat_rules_free(rules);

    assert_int_equal(cat_rules_new(&rules, &err), RP_OK);
    assert_int_equal(cat_rules_add_path(rules, "/nonexistent/rules.yaml", &problems, &err), RP_IO);
    assert_non_null(strstr(err.text, "/nonexistent/rules.yaml"));
    snprintf(path, sizeof path, "%s/notes.txt", dir);
    assert_int_equal(cat_rules_add_path(rules, path, &problems, &err), RP_USAGE);
    cat_rules_free(rules);
    for (size_t i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
    rp_buf_release(&problems);
}

static void mistakes_of_all_files_of_a_folder_are_told(void **state)
{
    char dir[] = "/tmp/rowprof-rules-XXXXXX", path[256];
    struct cat_rules *rules = NULL;
    struct rp_buf problems = {0};
    struct rp_err err = {0};

    (void)state;
    assert_non_null(mkdtemp(dir));
    write_file(dir, "a.yaml", "rulez: []\n");
    write_file(dir, "b.yaml", "throug: []\n");
    assert_int_equal(cat_rules_new(&rules, &err), RP_OK);
    assert_int_equal(cat_rules_add_path(rules, dir, &problems, &err), RP_USAGE);
    assert_non_null(strstr(rp_buf_text(&problems), "a.yaml:1:1: a rule file has no key `rulez`"));
    assert_non_null(strstr(rp_buf_text(&problems), "b.yaml:1:1: a rule file has no key `throug`"));
    assert_int_equal(cat_rules_nrules(rules), 0);
    cat_rules_free(rules);
    snprintf(path, sizeof path, "%s/a.yaml", dir);
    unlink(path);
    snprintf(path, sizeof path, "%s/b.yaml", dir);
    unlink(path);
    rmdir(dir);
    rp_buf_release(&problems);
}

/* ---- the README ---- */

/* The indented block behind the line that ends with `mark`. */
static void take_block(const char *text, const char *mark, struct rp_buf *out)
{
    const char *at = strstr(text, mark);

    assert_non_null(at);
    at = strstr(at, "\n\n    ");
    assert_non_null(at);
    at += 2;
    while (strncmp(at, "    ", 4) == 0) {
        const char *end = strchr(at, '\n');

        assert_non_null(end);
        rp_buf_append(out, at + 4, (size_t)(end - at) - 3);
        at = end + 1;
    }
    assert_true(out->length > 0);
}

/* `passes` cases, all of them, with the rules of `yaml` before the shipped ones. */
static void holds(const struct rp_buf *yaml, const struct rp_buf *cases, size_t passes)
{
    struct cat_rules *rules = NULL;
    struct rp_buf told = {0};
    struct rp_err err = {0};
    size_t passed, failed;

    assert_int_equal(cat_rules_new(&rules, &err), RP_OK);
    if (cat_rules_add(rules, "mine.yaml", rp_buf_text(yaml), yaml->length, &told, &err) || cat_rules_add_shipped(rules, &told, &err) ||
        cat_rules_finish(rules, &told, &err))
        fail_msg("%s%s", rp_buf_text(&told), err.text);
    assert_int_equal(cat_cases_run(rules, "README.md", rp_buf_text(cases), cases->length, &told, &passed, &failed, NULL, &err), RP_OK);
    if (failed)
        fail_msg("%s", rp_buf_text(&told));
    assert_int_equal(passed, passes);
    cat_rules_free(rules);
    rp_buf_release(&told);
}

static void the_readme_says_the_truth(void **state)
{
    static const char apart[] = "let a rule that asks for\nSQLite further rootward come first:";
    struct rp_buf readme = {0}, yaml = {0}, cases = {0}, syntax = {0}, apart_yaml = {0}, apart_cases = {0};
    struct rp_err err = {0};

    (void)state;
    assert_int_equal(rp_read_file(ROWPROF_SOURCE_DIR "/rules/README.md", 1 << 20, &readme, &err), RP_OK);
    take_block(rp_buf_text(&readme), "so write `mine.yaml`:", &yaml);
    take_block(rp_buf_text(&readme), "Keep a case beside it", &cases);
    holds(&yaml, &cases, 1);
    take_block(rp_buf_text(&readme), apart, &apart_yaml);
    take_block(rp_buf_text(&readme), "With these cases:", &apart_cases);
    holds(&apart_yaml, &apart_cases, 2);
    /* The syntax is shown with stacks of the shipped packs and of the example. */
    take_block(rp_buf_text(&readme), "## Cases", &syntax);
    holds(&yaml, &syntax, 6);
    rp_buf_release(&readme);
    rp_buf_release(&yaml);
    rp_buf_release(&cases);
    rp_buf_release(&syntax);
    rp_buf_release(&apart_yaml);
    rp_buf_release(&apart_cases);
}

/* ---- memory ---- */

static enum rp_status everything(struct rp_err *err)
{
    static const char stack[] = "y < memcpy < malloc < app!json_x | thread=worker";
    static const char cases[] = "memcpy < app!json_escape < main -> app.json app-json\n";
    struct cat_rules *rules = NULL;
    struct cat_matcher *matcher = NULL;
    struct cat_stack s = {0};
    struct rp_buf out = {0};
    size_t passed, failed;
    enum rp_status status = cat_rules_new(&rules, err);

    if (!status)
        status = cat_rules_add(rules, "mine.yaml", app_rules, strlen(app_rules), &out, err);
    if (!status)
        status = cat_rules_finish(rules, &out, err);
    if (!status)
        status = cat_matcher_new(rules, &matcher, err);
    if (!status)
        status = cat_stack_parse(stack, strlen(stack), &s, err);
    if (!status)
        status = cat_explain(matcher, s.frames, s.n, &s.context, true, &out, err);
    if (!status)
        status = cat_cases_run(rules, "t.cases", cases, strlen(cases), &out, &passed, &failed, NULL, err);
    if (!status)
        status = cat_lint(rules, &out, &failed, err);
    cat_stack_release(&s);
    cat_matcher_free(matcher);
    cat_rules_free(rules);
    rp_buf_release(&out);
    return status;
}

static void no_memory_is_survived_at_every_allocation(void **state)
{
    uint64_t n = 0, made, refused = 0;

    (void)state;
    do {
        struct rp_err err = {0};
        enum rp_status status;

        rp_alloc_fail_at(++n);
        status = everything(&err);
        made = rp_alloc_fail_at(0);
        assert_true(status == RP_NOMEM || status == RP_OK);
        refused += status == RP_NOMEM;
    } while (made >= n);
    /* The few that may fail quietly are stacks for the machine code of regexes. */
    assert_true(n > 60 && refused + 10 > n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_hold_every_kind_of_frame),
        cmocka_unit_test(bad_stacks_name_the_column),
        cmocka_unit_test(cases_pass_fail_and_count),
        cmocka_unit_test(explain_says_who_wins_and_why_not),
        cmocka_unit_test(explain_leaves_out_what_could_not_decide),
        cmocka_unit_test(explain_tells_a_regex_that_gave_up),
        cmocka_unit_test(lint_finds_what_is_sure),
        cmocka_unit_test(lint_against_a_profile),
        cmocka_unit_test(a_folder_goes_by_order_then_name),
        cmocka_unit_test(mistakes_of_all_files_of_a_folder_are_told),
        cmocka_unit_test(the_readme_says_the_truth),
        cmocka_unit_test(no_memory_is_survived_at_every_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
