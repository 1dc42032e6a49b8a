/* SPDX-License-Identifier: MIT */
/* The semantics of the rule language, point by point as rules/README.md numbers them. Stacks are written as in *.cases files; what that form cannot say
 * (aliases, raw names, payers, totals) is asked directly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "categorize/categorize.h"

enum { FRAMES_MAX = 64 };

static struct cat_rules *rules_of(const char *const *files, size_t n)
{
    struct cat_rules *rules = NULL;
    struct rp_buf problems = {0};
    struct rp_err err = {0};

    assert_int_equal(cat_rules_new(&rules, &err), RP_OK);
    for (size_t i = 0; i < n; i++) {
        char name[32];

        snprintf(name, sizeof name, "%zu.yaml", i);
        if (cat_rules_add(rules, name, files[i], strlen(files[i]), &problems, &err))
            fail_msg("%s", rp_buf_text(&problems));
    }
    if (cat_rules_finish(rules, &problems, &err))
        fail_msg("%s", rp_buf_text(&problems));
    rp_buf_release(&problems);
    return rules;
}

static struct cat_rules *rules_one(const char *file)
{
    return rules_of(&file, 1);
}

#define CATEGORIES                                                                                                             \
    "categories: [{id: a, name: A, kind: cost}, {id: b, name: B, kind: cost}, {id: c, name: C, kind: cost}, "                   \
    "{id: m, name: M, kind: cost, payers: true}, {id: w, name: W, kind: wait}, {id: i, name: I, kind: idle}, "                  \
    "{id: k, name: K, kind: cost}, {id: ko, name: KO, kind: cost}]\n"

/* Runs cases; any that fails, and a count other than expected, fails the test. */
static void run(const struct cat_rules *rules, const char *cases)
{
    struct rp_buf out = {0};
    struct rp_err err = {0};
    size_t passed, failed;

    assert_int_equal(cat_cases_run(rules, "t.cases", cases, strlen(cases), &out, &passed, &failed, NULL, &err), RP_OK);
    if (failed)
        fail_msg("%s", rp_buf_text(&out));
    assert_true(passed > 0);
    rp_buf_release(&out);
}

static void run_one(const char *file, const char *cases)
{
    struct cat_rules *rules = rules_one(file);

    run(rules, cases);
    cat_rules_free(rules);
}

static void point_1_the_payer(void **state)
{
    (void)state;
    run_one(CATEGORIES "rules:\n"
                       " - {id: ra, category: a, symbol: fa}\n"
                       " - {id: rb, category: b, symbol: fb}\n"
                       " - {id: rs, category: c, symbol: main_loop, claims: self}\n"
                       "through: [memcpy]\n",
            "fa < fb < main -> a ra\n"
            "fb < fa < main -> b rb\n"
            "unknown < fa < fb -> a ra\n"
            "unknown < main -> uncategorized no-rule\n"
            "main_loop < main -> c rs\n"
            "memcpy < main_loop < main -> c rs\n"
            "memcpy < memcpy < main_loop -> c rs\n"
            "unknown < main_loop < main -> uncategorized no-rule\n"
            "unknown < main_loop < fb -> b rb\n"
            "memcpy < unknown < main_loop -> uncategorized no-rule\n"
            "unknown < memcpy < main_loop -> uncategorized no-rule\n"
            "fa < main_loop -> a ra\n");
}

static void point_2_through(void **state)
{
    (void)state;
    run_one(CATEGORIES "rules:\n - {id: ra, category: a, symbol: fa}\n"
                       "through: [memcpy, \"str*\", {symbol: alloc, module: libv8.so}, {module: thin.so}]\n",
            "memcpy < fa -> a\n"
            "memcpy < strlen < thin.so!what < libv8.so!alloc < fa -> a\n"
            "memcpy < strlen -> uncategorized through\n"
            "memcpy < strlen < [truncated: stack copy too short] -> uncategorized truncated\n"
            "memcpy < unknown < [truncated] -> uncategorized truncated\n"
            "memcpy < unknown -> uncategorized no-rule\n"
            "fa < [truncated: x] -> a\n"
            "other.so!alloc < main -> uncategorized no-rule\n");
}

static void point_3_the_first_rule_wins(void **state)
{
    static const char *const files[] = {
        CATEGORIES "rules:\n - {id: r1, category: a, symbol: \"x_*\", under: top}\n - {id: r2, category: b, symbol: x_1}\n",
        "through: [mem]\nrules:\n - {id: r3, category: c, symbol: \"x*\"}\n - {id: r4, category: c, symbol: mem}\n",
        "rules:\n - {id: r5, category: a, symbol: \"*\"}\nthrough: [x_9, never]\n",
    };
    struct cat_rules *rules = rules_of(files, 3);

    (void)state;
    run(rules, "x_1 < top -> a r1\n"
               "x_1 < main -> b r2\n"
               "x_2 < other -> c r3\n"
               "mem < x_1 -> b r2\n" /* its `through` stands before r4 */
               "x_9 < x_1 -> c r3\n" /* a rule of an earlier file before a `through` of a later one */
               "never < x_1 -> a r5\n");
    cat_rules_free(rules);
}

static uint32_t rule_for(const struct cat_rules *rules, const struct cat_symbol *symbol)
{
    struct cat_matcher *matcher = NULL;
    struct cat_context context = {.thread = "", .state = CAT_RUNNING};
    struct cat_verdict verdict;
    struct rp_err err = {0};
    uint32_t id;

    assert_int_equal(cat_matcher_new(rules, &matcher, &err), RP_OK);
    assert_int_equal(cat_matcher_symbol(matcher, symbol, &id, &err), RP_OK);
    cat_classify(matcher, &id, 1, &context, &verdict);
    cat_matcher_free(matcher);
    return verdict.rule;
}

static void point_4_names(void **state)
{
    static const char *const aliases[] = {"__memcpy_sse", "memcpy@plt"};
    struct cat_rules *rules = rules_one(CATEGORIES "rules:\n"
                                                   " - {id: exact, category: a, symbol: \"ns::f<int>\"}\n"
                                                   " - {id: glob, category: a, symbol: \"ns::g<*>\"}\n"
                                                   " - {id: full, category: a, symbol: '/^void ns::h\\(int\\)$/'}\n"
                                                   " - {id: raw, category: a, symbol: '/^_ZN2ns1jEv$/'}\n"
                                                   " - {id: plain, category: a, symbol: [memcpy, 'op\\*', 'a?b', '[local]x', \"\\\\?\"]}\n"
                                                   " - {id: star, category: b, symbol: [\"*mid*dle*\", \"q*?z\"]}\n"
                                                   " - {id: two, category: b, symbol: \"**??\", module: two}\n"
                                                   " - {id: three, category: b, symbol: \"*??xy\", module: three}\n");
    struct cat_symbol s = {.name = "void ns::f<int>(int)", .short_name = "ns::f<int>", .raw = "_ZN2ns1fIiEEvi", .module = "m"};

    (void)state;
    assert_int_equal(rule_for(rules, &s), 0);
    s.short_name = "ns::g<a, b<c> >";
    assert_int_equal(rule_for(rules, &s), 1);
    s.short_name = "ns::g";
    assert_int_equal(rule_for(rules, &s), CAT_NO_RULE);
    s = (struct cat_symbol){.name = "void ns::h(int)", .short_name = "ns::h", .raw = "_ZN2ns1hEi", .module = "m"};
    assert_int_equal(rule_for(rules, &s), 2);
    s = (struct cat_symbol){.name = "ns::j()", .short_name = "ns::j", .raw = "_ZN2ns1jEv", .module = "m"};
    assert_int_equal(rule_for(rules, &s), 3);
    s = (struct cat_symbol){.name = "memmove", .short_name = "memmove", .raw = "memmove", .aliases = aliases, .naliases = 2, .module = "m"};
    assert_int_equal(rule_for(rules, &s), 4);
    s.mark = true;
    assert_int_equal(rule_for(rules, &s), CAT_NO_RULE);
    run(rules, "memcpy@plt -> a plain\n"
               "memcpy [local] -> a plain\n"
               "memcpy@pl -> uncategorized\n"
               "@plt -> uncategorized\n"
               "op* -> a plain\n"
               "opx -> uncategorized\n"
               "ab -> uncategorized\n"
               "a\xc3\xa4"
               "b -> a plain\n"
               "[local]x -> a plain\n"
               "? -> a plain\n"
               "middle -> b\n"
               "xmidxmiddxdlex -> b\n"
               "qaz -> b\n"
               "q\xc3\xa4\xc3\xa4z -> b\n"
               "qz -> uncategorized\n"
               "two!\xe2\x82\xac -> uncategorized\n" /* one character of three bytes */
               "three!\xe2\x82\xacxy -> uncategorized\n"
               "two!\xc3\xa4\xc3\xa4 -> b\n");
    cat_rules_free(rules);
}

static void point_5_context(void **state)
{
    (void)state;
    run_one(CATEGORIES "rules:\n"
                       " - {id: call, category: a, symbol: f, caller: [\"c_*\", {module: lib.so, symbol: \"d*\"}]}\n"
                       " - {id: under, category: b, symbol: f, under: [u1, {file: json.c}], not_under: [n1, n2]}\n"
                       " - {id: thread, category: c, symbol: f, thread: [\"pool-*\", '/^V8/']}\n"
                       " - {id: file, category: c, symbol: \"*\", file: [\"src/*.c\", /abs/x.h]}\n"
                       "through: [t]\n",
            "f < c_1 -> a call\n"
            "f < t < t < c_1 -> a call\n"
            "f < x < c_1 -> uncategorized\n"
            "f < t -> uncategorized\n"
            "f < lib.so!d1 -> a\n"
            "f < so!d1 -> uncategorized\n"
            "f < x < u1 -> b under\n"
            "f < x < y @ /home/me/src/json.c -> b under\n"
            "f < x < y @ /home/me/lib/notjson.c -> uncategorized\n"
            "f < x < u1 < n2 -> uncategorized\n"
            "u1 < f -> uncategorized\n"
            "n1 < f < u1 -> b under\n"
            "f < main | thread=pool-3 -> c thread\n"
            "f < main | thread=\"V8 Worker\" -> c thread\n"
            "f < main | thread=apool-3 -> uncategorized\n"
            "g @ /home/src/deep/er.c -> c file\n"
            "g @ src/a.c -> c file\n"
            "g @ mysrc/a.c -> uncategorized\n"
            "g @ /abs/x.h -> c file\n"
            "f < t < [truncated: x] -> uncategorized\n");
}

static void point_6_kernel(void **state)
{
    (void)state;
    run_one(CATEGORIES "rules:\n"
                       " - {id: fault, category: k, symbol: do_fault, space: kernel}\n"
                       " - {id: write, category: k, symbol: vfs_write, space: kernel, under: wal_write}\n"
                       " - {id: other, category: ko, symbol: \"*\", space: kernel, claims: rest}\n"
                       " - {id: user, category: a, symbol: [malloc, do_fault, vfs_write]}\n"
                       " - {id: self, category: b, symbol: entry, claims: self}\n",
            "[k]clear_page < [k]do_fault < malloc -> k fault\n"
            "[k]vfs_write < write < wal_write -> k write\n"
            "[k]vfs_write < write < main -> ko other\n"
            "[k]x < malloc -> ko other\n"
            "[k]x < [truncated: y] -> ko other\n"
            "do_fault < main -> a user\n"
            "[k]clear_page < [k]do_fault < malloc | no-kernel -> a user\n"
            "[k]x < entry | no-kernel -> b self\n"
            "[k]x < y | no-kernel -> uncategorized no-rule\n"
            "malloc < [k]do_fault -> a user\n");
}

static void point_7_kinds(void **state)
{
    (void)state;
    run_one(CATEGORIES "rules:\n"
                       " - {id: cost, category: a, symbol: [lock, cond_wait]}\n"
                       " - {id: wait, category: w, symbol: [lock, cond_wait]}\n"
                       " - {id: kwait, category: w, symbol: futex_lock_pi, space: kernel}\n"
                       " - {id: idle, category: i, symbol: cond_wait, under: pool}\n"
                       " - {id: loop, category: i, symbol: epoll_wait, claims: self}\n"
                       " - {id: any, category: w, symbol: \"*\", claims: rest}\n"
                       "through: [futex_common]\n",
            "lock < main -> a cost\n"
            "lock < main | state=running -> a cost\n"
            "lock < main | state=blocked -> w wait\n"
            "[k]futex < lock < main | state=blocked -> w wait\n"
            "[k]futex_lock_pi < x | state=blocked -> w kwait\n"
            "futex_common < cond_wait < pool | state=blocked -> i idle\n"
            "cond_wait < query | state=blocked -> w wait\n"
            "lock < cond_wait < pool | state=blocked -> i idle\n" /* idle over the whole stack before any wait */
            "[k]ep_poll < epoll_wait < main | state=blocked -> i loop\n"
            "x < epoll_wait < main | state=blocked -> w any\n"
            "epoll_wait < main -> uncategorized no-rule\n"
            "read < main | state=blocked -> w any\n");
    /* A lock that malloc takes is malloc. */
    run_one(CATEGORIES "rules:\n - {id: mutex, category: m, symbol: \"__lll_lock_*\", not_under: [malloc, free]}\n"
                       " - {id: malloc, category: a, symbol: [malloc, free]}\n",
            "__lll_lock_wait < pthread_mutex_lock < main -> m mutex\n"
            "__lll_lock_wait_private < malloc < main -> a malloc\n"
            "__lll_lock_wait_private < _int_free < free < main -> a malloc\n");
}

struct stack {
    struct cat_matcher *matcher;
    struct cat_stack text;
    uint32_t ids[FRAMES_MAX];
    struct cat_verdict verdict;
};

static void stack_open(struct stack *s, const struct cat_rules *rules, const char *text)
{
    struct rp_err err = {0};

    assert_int_equal(cat_matcher_new(rules, &s->matcher, &err), RP_OK);
    assert_int_equal(cat_stack_parse(text, strlen(text), &s->text, &err), RP_OK);
    assert_true(s->text.n <= FRAMES_MAX);
    for (size_t i = 0; i < s->text.n; i++)
        assert_int_equal(cat_matcher_symbol(s->matcher, &s->text.frames[i], &s->ids[i], &err), RP_OK);
    cat_classify(s->matcher, s->ids, s->text.n, &s->text.context, &s->verdict);
}

static void stack_close(struct stack *s)
{
    cat_stack_release(&s->text);
    cat_matcher_free(s->matcher);
}

static void check_payer(const struct cat_rules *rules, const char *text, const char *category, uint32_t frame)
{
    struct stack s;
    uint32_t by, at;

    stack_open(&s, rules, text);
    cat_classify_payer_of(s.matcher, s.ids, s.text.n, &s.text.context, &s.verdict, &by, &at);
    assert_string_equal(cat_rules_category(rules, by)->id, category);
    assert_int_equal(at, frame);
    stack_close(&s);
}

/* Letters of the categories with a total in this stack; also holds cat_claims against cat_totals. */
static void check_totals(const struct cat_rules *rules, const char *text, const char *expected)
{
    struct stack s;
    bool has[16] = {false};
    char got[64] = "";

    stack_open(&s, rules, text);
    cat_totals(s.matcher, s.ids, s.text.n, &s.text.context, &s.verdict, has);
    for (uint32_t c = 0; c < cat_rules_ncategories(rules); c++) {
        bool any = c == s.verdict.category;

        for (size_t f = 0; f < s.text.n; f++)
            any |= cat_claims(s.matcher, s.ids, s.text.n, f, &s.text.context, c);
        assert_int_equal(any, has[c]);
        if (has[c])
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s ", cat_rules_category(rules, c)->id);
    }
    assert_string_equal(got, expected);
    stack_close(&s);
}

static void point_8_totals_and_payers(void **state)
{
    struct cat_rules *rules = rules_one(CATEGORIES "rules:\n"
                                                   " - {id: mutex, category: m, symbol: [lock, sqlite_mutex]}\n"
                                                   " - {id: lockwait, category: w, symbol: lock}\n"
                                                   " - {id: fault, category: k, symbol: do_fault, space: kernel}\n"
                                                   " - {id: krest, category: ko, symbol: \"*\", space: kernel, claims: rest}\n"
                                                   " - {id: api, category: a, symbol: \"sqlite3_*\"}\n"
                                                   " - {id: binding, category: b, symbol: \"node_*\", claims: self}\n"
                                                   " - {id: nodejs, category: c, symbol: node_get}\n"
                                                   "through: [thin]\n");

    (void)state;
    check_payer(rules, "lock < sqlite_mutex < sqlite3_column_name < node_get", "a", 2);
    check_payer(rules, "lock_slow < lock < thin < node_x < main", "b", 3); /* what the mutex took along is not in the way of `self` */
    check_payer(rules, "lock < unknown < node_x < main", "uncategorized", 4);
    check_payer(rules, "lock < unknown < node_get < main", "c", 2);
    check_payer(rules, "lock < main", "uncategorized", 2);
    check_payer(rules, "[k]futex < lock < sqlite3_step | state=blocked", "a", 2);
    check_payer(rules, "[k]x < [k]do_fault < [k]entry < lock < sqlite3_step", "m", 3);
    check_payer(rules, "main", "uncategorized", 1);
    check_totals(rules, "lock < sqlite3_step < sqlite3_exec < node_get < main", "a b c m ");
    check_totals(rules, "unknown < node_x", "b uncategorized ");
    check_totals(rules, "[k]x < [k]do_fault < lock < sqlite3_step", "a m k ");
    check_totals(rules, "[k]x < [k]y < lock < sqlite3_step", "a m ko ");
    check_totals(rules, "[k]x < lock < sqlite3_step | no-kernel", "a m ");
    check_totals(rules, "[k]x < lock < sqlite3_step | state=blocked", "w ");
    cat_rules_free(rules);
}

static void check_outer(const struct cat_rules *rules, const char *text, uint32_t payer, uint32_t outer, bool inherited)
{
    struct stack s;

    stack_open(&s, rules, text);
    assert_int_equal(s.verdict.payer, payer);
    assert_int_equal(s.verdict.outer, outer);
    assert_int_equal(s.verdict.inherited, inherited);
    stack_close(&s);
}

static void point_9_where_a_tree_starts(void **state)
{
    struct cat_rules *rules = rules_one(CATEGORIES "rules:\n - {id: ra, category: a, symbol: \"a*\"}\n"
                                                   " - {id: rs, category: b, symbol: \"b*\", claims: self}\n"
                                                   " - {id: rk, category: ko, symbol: \"*\", space: kernel, claims: rest}\n"
                                                   "through: [t]\n");

    (void)state;
    check_outer(rules, "a1 < x < a2 < main", 0, 2, false);
    check_outer(rules, "x < a1 < main", 1, 1, true);
    check_outer(rules, "t < a1 < main", 1, 1, false);
    check_outer(rules, "t < x < a1 < a2 < b1", 2, 3, true);
    check_outer(rules, "b1 < x < b2 < main", 0, 2, false);
    check_outer(rules, "[k]x < [k]y < main < a1", 0, 1, false);
    check_outer(rules, "x < y", 2, 2, false);
    cat_rules_free(rules);
}

static void no_stack_is_too_deep(void **state)
{
    struct cat_rules *rules = rules_one(CATEGORIES "rules:\n"
                                                   " - {id: r1, category: a, symbol: f, caller: last}\n"
                                                   " - {id: r2, category: b, symbol: \"*\", under: [never, nowhere]}\n"
                                                   " - {id: r3, category: c, symbol: bottom, not_under: [f, g]}\n"
                                                   "through: [f]\n");
    struct cat_matcher *matcher = NULL;
    struct cat_symbol f = {.short_name = "f", .module = ""}, bottom = {.short_name = "bottom", .module = ""};
    static uint32_t ids[RP_WALK_FRAMES_MAX];
    struct cat_context context = {.thread = "", .state = CAT_RUNNING};
    struct cat_verdict verdict;
    struct rp_err err = {0};
    uint32_t f_id, bottom_id;

    (void)state;
    assert_int_equal(cat_matcher_new(rules, &matcher, &err), RP_OK);
    assert_int_equal(cat_matcher_symbol(matcher, &f, &f_id, &err), RP_OK);
    assert_int_equal(cat_matcher_symbol(matcher, &bottom, &bottom_id, &err), RP_OK);
    for (size_t i = 0; i < RP_WALK_FRAMES_MAX; i++)
        ids[i] = f_id;
    ids[RP_WALK_FRAMES_MAX - 1] = bottom_id;
    for (int again = 0; again < 100; again++)
        cat_classify(matcher, ids, RP_WALK_FRAMES_MAX, &context, &verdict);
    assert_int_equal(verdict.payer, RP_WALK_FRAMES_MAX - 1);
    assert_false(verdict.inherited);
    cat_classify(matcher, ids, 0, &context, &verdict);
    assert_int_equal(verdict.why, CAT_WHY_NO_RULE);
    cat_matcher_free(matcher);
    cat_rules_free(rules);
}

static void a_hostile_regex_gives_up(void **state)
{
    struct cat_rules *rules = rules_one(CATEGORIES "rules: [{id: r, category: a, symbol: '/^(a+)+$/'}]\n");
    struct cat_matcher *matcher = NULL;
    char name[32];
    struct cat_symbol s = {.short_name = name, .module = ""};
    struct rp_err err = {0};
    uint32_t id;

    (void)state;
    /* 2^20 ways to fail: more steps than we allow, fewer than PCRE2 would on its own. */
    memset(name, 'a', 20);
    memcpy(name + 20, "!", 2);
    assert_int_equal(cat_matcher_new(rules, &matcher, &err), RP_OK);
    assert_int_equal(cat_matcher_symbol(matcher, &s, &id, &err), RP_OK);
    assert_int_equal(cat_matcher_gave_up(matcher), 1);
    cat_matcher_free(matcher);
    cat_rules_free(rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(point_1_the_payer),
        cmocka_unit_test(point_2_through),
        cmocka_unit_test(point_3_the_first_rule_wins),
        cmocka_unit_test(point_4_names),
        cmocka_unit_test(point_5_context),
        cmocka_unit_test(point_6_kernel),
        cmocka_unit_test(point_7_kinds),
        cmocka_unit_test(point_8_totals_and_payers),
        cmocka_unit_test(point_9_where_a_tree_starts),
        cmocka_unit_test(no_stack_is_too_deep),
        cmocka_unit_test(a_hostile_regex_gives_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
