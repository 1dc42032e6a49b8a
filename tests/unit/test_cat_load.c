/* SPDX-License-Identifier: MIT */
/* Rule files that are not right: each mistake with its exact place and words, all of a file at once; and no memory at every allocation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "categorize/categorize.h"

static enum rp_status load(const char *text, size_t length, struct rp_buf *problems, struct rp_err *err)
{
    struct cat_rules *rules = NULL;
    enum rp_status status = cat_rules_new(&rules, err);

    if (!status)
        status = cat_rules_add(rules, "f.yaml", text, length, problems, err);
    if (!status)
        status = cat_rules_finish(rules, problems, err);
    else if (rules)
        assert_true(cat_rules_nrules(rules) == 0 && cat_rules_ncategories(rules) == 0);
    cat_rules_free(rules);
    return status;
}

/* Prepended to rule tests, so that they start in line 2. */
#define CATEGORY "categories: [{id: c, name: C, kind: cost}, {id: w, name: W, kind: wait}, {id: i, name: I, kind: idle}]\n"

struct mistake {
    const char *text, *told;
};

static const struct mistake mistakes[] = {
    {"", "f.yaml:1:1: expected the keys order, categories, rules, through; the file is empty\n"},
    {"# only a comment\n", "f.yaml:1:1: expected the keys order, categories, rules, through; the file is empty\n"},
    {"hello", "f.yaml:1:1: expected a rule file as a map of keys, found text\n"},
    {"- a\n", "f.yaml:1:1: expected a rule file as a map of keys, found a list\n"},
    {"order: 5\n---\norder: 6\n", "f.yaml:2:1: expected the end of the file, found a second YAML document (---)\n"},
    {"order: 5\nrulez: []\n", "f.yaml:2:1: a rule file has no key `rulez`; did you mean `rules`?\n"},
    {"order: 5\nzzz: []\n", "f.yaml:2:1: a rule file has no key `zzz`; its keys are order, categories, rules, through\n"},
    {"order: 5\norder: 6\n", "f.yaml:2:1: the key `order` stands twice in a rule file; merge them\n"},
    {"order: 1000\n", "f.yaml:1:8: expected a number from 0 to 999, found `1000`\n"},
    {"order: -1\n", "f.yaml:1:8: expected a number from 0 to 999, found `-1`\n"},
    {"order:\n", "f.yaml:1:7: expected a number from 0 to 999, found nothing\n"},
    {"order: [1]\n", "f.yaml:1:8: expected a number from 0 to 999, found a list\n"},
    /* YAML itself */
    {"rules: [\n", "f.yaml:2:1: this is not YAML: while parsing a flow node, did not find expected node content\n"},
    {"order: \"5\n", "f.yaml:2:1: this is not YAML: while scanning a quoted scalar, found unexpected end of stream\n"},
    {"order: 5\n\tx: 1\n", "f.yaml:2:1: this is not YAML: while scanning a plain scalar, found a tab character that violates indentation\n"},
    {"order: 5\nx: \xff\n", "f.yaml:2:4: expected UTF-8 text, found: invalid leading UTF-8 octet\n"},
    {"order: &a 5\n", "f.yaml:1:8: expected a plain value, found the YAML anchor &a; quote the text if it begins with &\n"},
    {"order: !!int 5\n", "f.yaml:1:8: expected a plain value, found the YAML tag tag:yaml.org,2002:int; quote the text if it begins with !\n"},
    {"through: *name\n", "f.yaml:1:10: an unquoted *name is a YAML alias; quote it: \"*name\"\n"},
    {"through: *name*\n", "f.yaml:1:10: an unquoted * begins a YAML alias; quote it, as in \"*name\"\n"},
    {"through: *\n", "f.yaml:1:10: an unquoted * begins a YAML alias; quote it, as in \"*name\"\n"},
    {"through:\n  - a\n  - *::b\n", "f.yaml:3:5: an unquoted * begins a YAML alias; quote it, as in \"*name\"\n"},
    {"through: &\n", "f.yaml:1:10: an unquoted & begins a YAML anchor; quote the text\n"},
    {"through: [[[[[[[[[a]]]]]]]]]\n", "f.yaml:1:17: lists and maps are nested more deeply here than any key allows\n"},
    {"through: \"a\\0b\"\n", "f.yaml:1:10: expected text, found a NUL character in it\n"},
    /* categories */
    {"categories: x\n", "f.yaml:1:13: expected a list of categories, each beginning with `-`\n"},
    {"categories:\n - {}\n", "f.yaml:2:4: a category needs the key `id`\nf.yaml:2:4: a category needs the key `name`\nf.yaml:2:4: a category needs the key `kind`\n"},
    {"categories:\n - {id: App, name: A, kind: cost}\n", "f.yaml:2:9: an id is made of a-z, 0-9, `.`, `_` and `-`\n"},
    {"categories:\n - {id: app:x, name: A, kind: cost}\n", "f.yaml:2:12: an id is made of a-z, 0-9, `.`, `_` and `-`\n"},
    {"categories:\n - {id: uncategorized, name: A, kind: cost}\n", "f.yaml:2:9: the category `uncategorized` is built in; choose another id\n"},
    {"categories:\n - {id: a, name: uncategorized, kind: cost}\n", "f.yaml:2:18: the category `uncategorized` is built in; choose another name\n"},
    {"categories:\n - {id: a, name: \"\", kind: cost}\n", "f.yaml:2:18: expected a name, found an empty string\n"},
    {"categories:\n - {id: a, name: \"ab\\e[31m\", kind: cost}\n", "f.yaml:2:21: a name holds no control characters\n"},
    {"categories:\n - {id: a, name: A, kind: cots}\n", "f.yaml:2:27: expected cost, wait or idle, found `cots`; did you mean `cost`?\n"},
    {"categories:\n - {id: a, name: A, kind: banana}\n", "f.yaml:2:27: expected cost, wait or idle, found `banana`\n"},
    {"categories:\n - {id: a, name: A, kind: cost, color: mauve}\n",
     "f.yaml:2:40: expected red, orange, yellow, green, aqua, blue, purple, pink, brown or gray, found `mauve`\n"},
    {"categories:\n - {id: a, name: A, kind: cost, color: \"#12345\"}\n", "f.yaml:2:40: expected a color as \"#rrggbb\", found `#12345`\n"},
    {"categories:\n - {id: a, name: A, kind: cost, payers: yes}\n", "f.yaml:2:41: expected false or true, found `yes`\n"},
    {"categories:\n - {id: a, name: A, kind: cost, paiers: true}\n", "f.yaml:2:33: a category has no key `paiers`; did you mean `payers`?\n"},
    {"categories:\n - {id: a, name: A, kind: cost}\n - {id: a, name: B, kind: cost}\n", "f.yaml:3:9: the category id `a` is used already in line 2\n"},
    {"categories:\n - {id: a, name: A, kind: cost}\n - {id: b, name: A, kind: cost}\n",
     "f.yaml:3:9: the category name \"A\" is used already at f.yaml:2\n"},
    /* rules */
    {CATEGORY "rules: {id: a}\n", "f.yaml:2:8: expected a list of rules, each beginning with `-`\n"},
    {CATEGORY "rules:\n - a\n", "f.yaml:3:4: expected a rule as a map of keys, found text\n"},
    {CATEGORY "rules:\n - {id: r, category: c}\n", "f.yaml:3:4: a rule needs one of the keys symbol, module, file: which frames does it claim?\n"},
    {CATEGORY "rules:\n - {id: r, category: c, under: x}\n", "f.yaml:3:4: a rule needs one of the keys symbol, module, file: which frames does it claim?\n"},
    {CATEGORY "rules:\n - {symbol: x}\n", "f.yaml:3:4: a rule needs the key `id`\nf.yaml:3:4: a rule needs the key `category`\n"},
    {CATEGORY "rules:\n - {id: r, category: c, symbol: x}\n - {id: r, category: c, symbol: y}\n", "f.yaml:4:9: the rule id `r` is used already in line 3\n"},
    {CATEGORY "rules:\n - {id: r, category: d, symbol: x}\n", "f.yaml:3:22: no category has the id `d`; define it under `categories`\n"},
    {CATEGORY "rules:\n - {id: r, category: ww, symbol: x}\n", "f.yaml:3:22: no category has the id `ww`; define it under `categories`\n"},
    {"categories: [{id: mutex, name: M, kind: cost}]\nrules:\n - {id: r, category: mutxe, symbol: x}\n",
     "f.yaml:3:22: no category has the id `mutxe`; did you mean `mutex`?\n"},
    {"categories: [{id: c, name: Name, kind: cost}]\nrules:\n - {id: r, category: name, symbol: x}\n",
     "f.yaml:3:22: no category has the id `name`; define it under `categories`\n"},
    {CATEGORY "rules:\n - {id: r, category: uncategorized, symbol: x}\n",
     "f.yaml:3:22: no rule makes a stack uncategorized; leave the rule out, or use `not_under` in the rule that takes it\n"},
    {CATEGORY "rules:\n - {id: r, category: c, symbol: x, claims: tree}\n", "f.yaml:3:44: expected subtree, self or rest, found `tree`\n"},
    {CATEGORY "rules:\n - {id: r, category: c, symbol: x, space: kernal}\n", "f.yaml:3:43: expected user or kernel, found `kernal`; did you mean `kernel`?\n"},
    {CATEGORY "rules:\n - {id: r, category: c, symbol: x, state: blokced}\n",
     "f.yaml:3:43: expected running or blocked, found `blokced`; did you mean `blocked`?\n"},
    {CATEGORY "rules:\n - {id: r, category: c, symbol: x, state: blocked}\n",
     "f.yaml:3:43: `state: blocked` contradicts the category `c`: its kind is cost, which sees running threads only; leave `state` out\n"},
    {CATEGORY "rules:\n - {id: r, category: w, symbol: x, state: running}\n",
     "f.yaml:3:43: `state: running` contradicts the category `w`: its kind is wait, which sees blocked threads only; leave `state` out\n"},
    {CATEGORY "rules:\n - {id: r, category: i, symbol: x, state: running}\n",
     "f.yaml:3:43: `state: running` contradicts the category `i`: its kind is idle, which sees blocked threads only; leave `state` out\n"},
    {CATEGORY "rules:\n - {id: r, category: c, symbol: x, notunder: y}\n", "f.yaml:3:36: a rule has no key `notunder`; did you mean `not_under`?\n"},
    /* patterns: the column is that of the offending character */
    {CATEGORY "rules:\n - {id: r, category: c, symbol: []}\n", "f.yaml:3:33: expected patterns, found an empty list\n"},
    {CATEGORY "rules:\n - {id: r, category: c, symbol: {a: b}}\n", "f.yaml:3:33: expected a pattern (text), found a map\n"},
    {CATEGORY "rules:\n - {id: r, category: c, symbol: [x, [y]]}\n", "f.yaml:3:37: expected a pattern (text), found a list\n"},
    {CATEGORY "rules:\n - {id: r, category: c, symbol: \"\"}\n", "f.yaml:3:33: expected a pattern (text), found an empty string\n"},
    {CATEGORY "rules:\n - {id: r, category: c, symbol: \"/ab(c/\"}\n", "f.yaml:3:39: this is no regular expression: missing closing parenthesis\n"},
    {CATEGORY "rules:\n - {id: r, category: c, symbol: '/a[[:x:]]/'}\n", "f.yaml:3:39: this is no regular expression: unknown POSIX class name\n"},
    {CATEGORY "rules:\n - {id: r, category: c, symbol: \"/\\\\d*+?+(/\"}\n", NULL},
    {CATEGORY "rules:\n - id: r\n   category: c\n   symbol: /a**/\n",
     "f.yaml:5:15: this is no regular expression: quantifier does not follow a repeatable item\n"},
    {CATEGORY "rules:\n - {id: r, category: c, symbol: \"/abc\"}\n", "f.yaml:3:37: this regular expression lacks its closing /\n"},
    {CATEGORY "rules:\n - {id: r, category: c, symbol: \"//\"}\n", "f.yaml:3:35: this regular expression is empty and would match everything\n"},
    {CATEGORY "rules:\n - {id: r, category: c, symbol: \"a\\tb\"}\n", "f.yaml:3:35: a pattern holds no control characters\n"},
    {CATEGORY "rules:\n - {id: r, category: c, module: [kernel]}\n", "f.yaml:3:33: an unquoted [kernel] is a YAML list; quote it: \"[kernel]\"\n"},
    {CATEGORY "rules:\n - {id: r, category: c, symbol: x, under: {modul: y}}\n", "f.yaml:3:44: a context has no key `modul`; did you mean `module`?\n"},
    {CATEGORY "rules:\n - {id: r, category: c, symbol: x, under: {}}\n", "f.yaml:3:43: a context needs one of the keys symbol, module, file\n"},
    {CATEGORY "rules:\n - {id: r, category: c, symbol: x, caller: [[y]]}\n",
     "f.yaml:3:45: expected a pattern or a map of symbol, module, file, found a list\n"},
    {CATEGORY "rules:\n - {id: r, category: c, symbol: x, caller: [a, \"/(/\"]}\n",
     "f.yaml:3:51: this is no regular expression: missing closing parenthesis\n"},
    {CATEGORY "rules:\n - {id: r, category: c, symbol: x, thread: \"/[/\"}\n",
     "f.yaml:3:47: this is no regular expression: missing terminating ] for character class\n"},
    /* through */
    {"through: []\n", "f.yaml:1:10: expected functions, found an empty list\n"},
    {"through: [{space: kernel}]\n", "f.yaml:1:11: a `through` entry needs one of the keys symbol, module, file\n"},
    {"through: [{symbol: a, claims: self}]\n", "f.yaml:1:23: a `through` entry has no key `claims`; its keys are symbol, module, file, space\n"},
    {"through: [[a]]\n", "f.yaml:1:11: expected a pattern or a map of symbol, module, file, space, found a list\n"},
    /* several at once, in the order of the file */
    {CATEGORY "rules:\n - id: r\n   category: cc\n   symbol: [*x, \"/(/\"]\n   clams: self\n",
     "f.yaml:5:13: an unquoted *x is a YAML alias; quote it: \"*x\"\n"
     "f.yaml:5:20: this is no regular expression: missing closing parenthesis\n"
     "f.yaml:6:4: a rule has no key `clams`; did you mean `claims`?\n"},
};

static void each_mistake_has_place_and_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        struct rp_buf problems = {0};
        struct rp_err err = {0};
        enum rp_status status = load(mistakes[i].text, strlen(mistakes[i].text), &problems, &err);

        if (status != RP_USAGE)
            print_error("mistake %zu: %s\n", i, mistakes[i].text);
        assert_int_equal(status, RP_USAGE);
        if (mistakes[i].told)
            assert_string_equal(rp_buf_text(&problems), mistakes[i].told);
        assert_true(strlen(err.text) > 0);
        rp_buf_release(&problems);
    }
}

static void a_quoted_column_counts_characters(void **state)
{
    static const char text[] = CATEGORY "rules:\n - {id: r, category: c, symbol: [\"\xc3\xa4\xc3\xb6\", \"/\\\\d\xc3\xa4(/\"]}\n";
    struct rp_buf problems = {0};
    struct rp_err err = {0};

    (void)state;
    assert_int_equal(load(text, strlen(text), &problems, &err), RP_USAGE);
    /* column 34 "äö" is 4 wide, 40 the quote, 41 the slash, 42-43 the escaped backslash, 44 d, 45 ä, 46 (, 47 the end */
    assert_string_equal(rp_buf_text(&problems), "f.yaml:3:47: this is no regular expression: missing closing parenthesis\n");
    rp_buf_release(&problems);
}

/* Counting the mistakes that are not told takes no longer than reading them. */
static void too_much_is_told_not_swallowed(void **state)
{
    enum { MANY = RP_RULE_PROBLEMS_MAX + 149000 };
    struct rp_buf text = {0}, problems = {0};
    struct rp_err err = {0};
    const char *last;

    (void)state;
    for (unsigned i = 0; i < RP_RULE_PROBLEMS_MAX + 7; i++)
        rp_buf_printf(&text, "k%u: 1\n", i);
    assert_int_equal(load(rp_buf_text(&text), text.length, &problems, &err), RP_USAGE);
    last = strstr(rp_buf_text(&problems), "f.yaml: and 7 more\n");
    assert_non_null(last);
    assert_int_equal(strlen(last), strlen("f.yaml: and 7 more\n"));
    rp_buf_clear(&problems);
    rp_buf_clear(&text);
    rp_buf_puts(&text, CATEGORY "rules:\n - {id: r, category: c, symbol: [x");
    for (unsigned i = 0; i < MANY; i++)
        rp_buf_puts(&text, ",\n\"a\\tb\"");
    rp_buf_puts(&text, "]}\n");
    assert_int_equal(load(rp_buf_text(&text), text.length, &problems, &err), RP_USAGE);
    assert_non_null(strstr(rp_buf_text(&problems), "f.yaml:4:3: a pattern holds no control characters\n"));
    assert_non_null(strstr(rp_buf_text(&problems), "f.yaml: and 149000 more\n"));
    rp_buf_clear(&problems);
    rp_buf_fill(&text, '#', (int)RP_RULE_FILE_MAX);
    assert_int_equal(load(rp_buf_text(&text), text.length, &problems, &err), RP_USAGE);
    assert_non_null(strstr(rp_buf_text(&problems), "f.yaml:1:1: a rule file has at most 4194304 bytes"));
    rp_buf_release(&text);
    rp_buf_release(&problems);
}

static const char good[] = CATEGORY "order: 7\n"
                                    "rules:\n"
                                    "  - id: r1\n"
                                    "    category: c\n"
                                    "    symbol: [exact, \"glob*\", '/^re\\d+$/']\n"
                                    "    module: \"lib*\"\n"
                                    "    file: src/a.c\n"
                                    "    under: [a, {symbol: b, module: m}]\n"
                                    "    not_under: x\n"
                                    "    caller: {file: \"*.h\"}\n"
                                    "    thread: [\"pool-*\", '/^w/']\n"
                                    "    claims: self\n"
                                    "    space: user\n"
                                    "    state: running\n"
                                    "  - {id: r2, category: w, module: \"[kernel]\", space: kernel, claims: rest}\n"
                                    "through: [memcpy, {symbol: \"str*\", module: \"libc*\", space: user}]\n";

static void a_good_file_is_taken_whole(void **state)
{
    struct cat_rules *rules = NULL;
    struct rp_buf problems = {0};
    struct rp_err err = {0};

    (void)state;
    assert_int_equal(cat_rules_new(&rules, &err), RP_OK);
    assert_int_equal(cat_rules_add(rules, "g.yaml", good, strlen(good), &problems, &err), RP_OK);
    assert_int_equal(cat_rules_finish(rules, &problems, &err), RP_OK);
    assert_string_equal(rp_buf_text(&problems), "");
    assert_int_equal(cat_rules_ncategories(rules), 4);
    assert_int_equal(cat_rules_uncategorized(rules), 3);
    assert_string_equal(cat_rules_category(rules, 3)->id, "uncategorized");
    assert_int_equal(cat_rules_find_category(rules, "W"), 1);
    assert_int_equal(cat_rules_find_category(rules, "nobody"), UINT32_MAX);
    assert_int_equal(cat_rules_nrules(rules), 4);
    assert_string_equal(cat_rules_rule(rules, 0)->id, "r1");
    assert_string_equal(cat_rules_rule(rules, 0)->file, "g.yaml");
    assert_int_equal(cat_rules_rule(rules, 0)->line, 4);
    assert_int_equal(cat_rules_rule(rules, 0)->column, 9);
    assert_int_equal(cat_rules_rule(rules, 1)->category, 1);
    assert_true(cat_rules_rule(rules, 3)->through);
    assert_string_equal(cat_rules_rule(rules, 3)->id, "through str* libc*");
    assert_int_equal(cat_rules_add(rules, "late.yaml", good, strlen(good), &problems, &err), RP_FAILED);
    cat_rules_free(rules);
    rp_buf_release(&problems);
}

static void empty_lists_are_fine(void **state)
{
    static const char text[] = "categories: []\nrules: []\n";
    struct rp_buf problems = {0};
    struct rp_err err = {0};

    (void)state;
    assert_int_equal(load(text, strlen(text), &problems, &err), RP_OK);
    assert_int_equal(problems.length, 0);
}

static void ids_are_unique_across_files(void **state)
{
    static const char a[] = "categories: [{id: c, name: C, kind: cost}]\nrules: [{id: r, category: c, symbol: x}]\n";
    static const char b[] = "\ncategories: [{id: c, name: D, kind: cost}]\nrules:\n - {id: r, category: c, symbol: x}\n";
    struct cat_rules *rules = NULL;
    struct rp_buf problems = {0};
    struct rp_err err = {0};

    (void)state;
    assert_int_equal(cat_rules_new(&rules, &err), RP_OK);
    assert_int_equal(cat_rules_add(rules, "a.yaml", a, strlen(a), &problems, &err), RP_OK);
    assert_int_equal(cat_rules_add(rules, "b.yaml", b, strlen(b), &problems, &err), RP_OK);
    assert_int_equal(cat_rules_finish(rules, &problems, &err), RP_USAGE);
    assert_string_equal(rp_buf_text(&problems), "b.yaml:2:19: the category id `c` is used already at a.yaml:1\n"
                                                "b.yaml:4:9: the rule id `r` is used already at a.yaml:2\n");
    cat_rules_free(rules);
    rp_buf_release(&problems);
}

static void a_bad_file_leaves_nothing_behind(void **state)
{
    static const char bad[] = CATEGORY "rules: [{id: r, category: c, symbol: [\"/good/\", \"/(/\"], under: q}]\n";
    struct cat_rules *rules = NULL;
    struct rp_buf problems = {0};
    struct rp_err err = {0};

    (void)state;
    assert_int_equal(cat_rules_new(&rules, &err), RP_OK);
    assert_int_equal(cat_rules_add(rules, "bad.yaml", bad, strlen(bad), &problems, &err), RP_USAGE);
    assert_non_null(strstr(err.text, "bad.yaml has 1 mistake"));
    assert_int_equal(cat_rules_nrules(rules), 0);
    assert_int_equal(cat_rules_add(rules, "good.yaml", good, strlen(good), &problems, &err), RP_OK);
    assert_int_equal(cat_rules_finish(rules, &problems, &err), RP_OK);
    cat_rules_free(rules);
    rp_buf_release(&problems);
}

/* A refused file, one that is in order, and one that gives a category to both. */
static enum rp_status load_three(struct rp_buf *problems, struct rp_err *err)
{
    static const char bad[] = "categories: [{id: own, name: O, kind: cost}]\n"
                              "rules:\n - {id: a, category: nowhere, symbol: \"/(/\"}\n - {id: b, category: own, symbol: x}\n"
                              " - {id: c, category: nowhere, symbol: x}\n - {id: d, category: c, symbol: x}\n";
    static const char fine[] = "rules: [{id: e, category: owns, symbol: x}, {id: f, category: own, symbol: x}]\n";
    struct cat_rules *rules = NULL;
    enum rp_status status = cat_rules_new(&rules, err);

    if (!status)
        status = cat_rules_add(rules, "bad.yaml", bad, strlen(bad), problems, err);
    if (status == RP_USAGE)
        status = cat_rules_add(rules, "fine.yaml", fine, strlen(fine), problems, err);
    if (!status)
        status = cat_rules_add(rules, "categories.yaml", CATEGORY, strlen(CATEGORY), problems, err);
    if (!status)
        status = cat_rules_tell_unknown(rules, problems, err);
    if (!status)
        assert_int_equal(cat_rules_nrules(rules), 2);
    cat_rules_free(rules);
    return status;
}

static void unknown_categories_are_told_with_other_mistakes(void **state)
{
    struct rp_buf problems = {0};
    struct rp_err err = {0};
    uint64_t n = 0, made;
    const char *told;

    (void)state;
    assert_int_equal(load_three(&problems, &err), RP_OK);
    told = strstr(rp_buf_text(&problems), "no category");
    assert_non_null(told);
    assert_non_null(strstr(rp_buf_text(&problems), ": this is no regular expression"));
    while (told > rp_buf_text(&problems) && told[-1] != '\n')
        told--;
    assert_string_equal(told, "bad.yaml:3:22: no category has the id `nowhere`; define it under `categories`\n"
                              "fine.yaml:1:27: no category has the id `owns`; did you mean `own`?\n");
    rp_buf_release(&problems);
    do {
        enum rp_status status;

        rp_alloc_fail_at(++n);
        status = load_three(&problems, &err);
        made = rp_alloc_fail_at(0);
        assert_true(status == RP_NOMEM || status == RP_OK);
        rp_buf_release(&problems);
    } while (made >= n);
}

static void no_memory_is_survived_at_every_allocation(void **state)
{
    static const char bad[] = "categories: [{id: A}]\nrules: [{id: r, clams: c, symbol: \"/(/\"}]\n";
    const char *const texts[] = {good, bad};

    (void)state;
    for (size_t t = 0; t < 2; t++) {
        enum rp_status want = t ? RP_USAGE : RP_OK;
        uint64_t n = 0, made, refused = 0;

        do {
            struct rp_buf problems = {0};
            struct rp_err err = {0};
            enum rp_status status;

            rp_alloc_fail_at(++n);
            status = load(texts[t], strlen(texts[t]), &problems, &err);
            made = rp_alloc_fail_at(0);
            /* The machine code of a regex may be refused quietly: the regex is interpreted then. */
            assert_true(status == RP_NOMEM || status == want);
            refused += status == RP_NOMEM;
            rp_buf_release(&problems);
        } while (made >= n);
        assert_true(n > 15 && refused > n / 2);
    }
}

static void a_file_called_like_a_pack_stands_in_for_it(void **state)
{
    static const char text[] = "categories: [{id: better.binding, name: my binding, kind: cost}]\n"
                               "rules: [{id: better-binding, category: better.binding, symbol: only_mine}]\n";
    char dir[] = "/tmp/rowprof-rules-XXXXXX", path[64];
    struct cat_rules *rules = NULL;
    struct rp_buf problems = {0};
    struct rp_err err = {0};
    uint32_t category, rules_of_it = 0;
    FILE *file;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/better-sqlite3.yaml", dir);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(cat_rules_new(&rules, &err), RP_OK);
    assert_int_equal(cat_rules_add_path(rules, path, &problems, &err), RP_OK);
    assert_int_equal(cat_rules_add_shipped(rules, &problems, &err), RP_OK);
    assert_int_equal(cat_rules_finish(rules, &problems, &err), RP_OK);
    category = cat_rules_find_category(rules, "better.binding");
    assert_string_equal(cat_rules_category(rules, category)->name, "my binding");
    for (uint32_t i = 0; i < cat_rules_nrules(rules); i++)
        rules_of_it += cat_rules_rule(rules, i)->category == category;
    assert_int_equal(rules_of_it, 1); /* the pack has more */
    assert_string_not_equal(cat_rules_rule(rules, 0)->file, path); /* in its place, not in front */
    cat_rules_free(rules);
    rp_buf_release(&problems);
    unlink(path);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_called_like_a_pack_stands_in_for_it),
        cmocka_unit_test(each_mistake_has_place_and_words), cmocka_unit_test(a_quoted_column_counts_characters),
        cmocka_unit_test(too_much_is_told_not_swallowed),   cmocka_unit_test(a_good_file_is_taken_whole),
        cmocka_unit_test(empty_lists_are_fine),             cmocka_unit_test(ids_are_unique_across_files),      cmocka_unit_test(a_bad_file_leaves_nothing_behind),
        cmocka_unit_test(unknown_categories_are_told_with_other_mistakes),
        cmocka_unit_test(no_memory_is_survived_at_every_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
