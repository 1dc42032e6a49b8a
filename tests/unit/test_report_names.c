/* SPDX-License-Identifier: MIT */
/* Names from files that belong to the target: replaced where they may not be shown, shortened without cutting through a bracket, escaped per format.
 * What is expected stands here by hand; valid UTF-8 is decided by a decoder of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "report/json_writer.h"
#include "report/style.h"
#include "report/utf8.h"

static void is_clean(const char *from, const char *to)
{
    struct rp_buf b = {0};

    rp_text_clean(&b, from, strlen(from));
    assert_string_equal(rp_buf_text(&b), to);
    rp_buf_release(&b);
}

static void clean_replaces_what_may_not_be_shown(void **state)
{
    (void)state;
    is_clean("plain <b>&\"'", "plain <b>&\"'");
    is_clean("caf\xc3\xa9 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xf0\x9f\x98\x80");
    is_clean("a\tb\x1b[31mc\x7f", "a\xef\xbf\xbd"
                                  "b\xef\xbf\xbd[31mc\xef\xbf\xbd");
    is_clean("\xff\xc3", "\xef\xbf\xbd\xef\xbf\xbd");
    is_clean("\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"); /* overlong slash */
    is_clean("\xe0\x80\xaf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    is_clean("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* surrogate */
    is_clean("\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    is_clean("\xe2\x80\xae"
             "abc",
             "\xef\xbf\xbd"
             "abc"); /* right-to-left override */
    is_clean("\xc2\x9b"
             "31m",
             "\xef\xbf\xbd"
             "31m"); /* C1: CSI in one character */
}

static void columns_count_wide_and_combining(void **state)
{
    (void)state;
    assert_int_equal(rp_text_columns("abc", 3), 3);
    assert_int_equal(rp_text_columns("e\xcc\x81", 3), 1);
    assert_int_equal(rp_text_columns("\xe6\xbc\xa2", 3), 2);
    assert_int_equal(rp_text_columns("\xff\xff", 2), 2);
}

static void is_symbol(const char *name, size_t columns, const char *to)
{
    struct rp_buf b = {0};

    rp_text_symbol(&b, name, columns, false);
    assert_string_equal(rp_buf_text(&b), to);
    if (columns)
        assert_true(rp_text_columns(rp_buf_text(&b), b.length) <= columns);
    rp_buf_release(&b);
}

static void symbols_shorten_by_groups(void **state)
{
    (void)state;
    is_symbol("main", 0, "main");
    is_symbol("f()", 0, "f()");
    is_symbol("f(int, char const*)", 0, "f(...)");
    is_symbol("f(int) const", 0, "f(...) const");
    is_symbol("ns::(anonymous namespace)::f(int)", 0, "ns::(anonymous namespace)::f(...)");
    is_symbol("(anonymous namespace)::f", 0, "(anonymous namespace)::f");
    is_symbol("void exec<void (*)()>(int)", 0, "exec<void (*)()>(...)");
    is_symbol("void exec<void (*)(std::string)>(int)", 26, "exec<...>(...)");
    is_symbol("a::Handle<a::B> a::C<a::D>::Add<int>(int)", 0, "a::C<a::D>::Add<int>(...)");
    is_symbol("non-virtual thunk to A::f(int)", 0, "non-virtual thunk to A::f(...)");
    is_symbol("operator new(unsigned long)", 0, "operator new(...)");
    is_symbol("A::operator std::string() const", 0, "A::operator std::string() const");
    is_symbol("JS:*find /srv/app.mjs:1:2", 0, "JS:*find /srv/app.mjs:1:2");
    is_symbol("A::operator()(int) const", 0, "A::operator()(...) const");
    is_symbol("A::operator<(A const&)", 0, "A::operator<(...)");
    is_symbol("A::operator<< <int>(A const&)", 0, "A::operator<< <int>(...)");
    is_symbol("A::operator->()", 0, "A::operator->()");
    is_symbol("my_operator(int)", 0, "my_operator(...)");
    is_symbol("<a::S<3, fn(u8) -> i32> as a::T>::go", 20, "<...>::go");
    is_symbol("RegExp:((a|b", 0, "RegExp:((a|b");
    is_symbol("f(a;b)<c", 0, "f(a;b)<c");
    is_symbol("a<b(c>d)(int)", 0, "a<b(c>d)(int)");
}

static void symbols_keep_brackets_balanced_when_cut(void **state)
{
    static const char name[] =
        "std::map<std::basic_string<char>, std::vector<int> >::some_very_long_member_name_indeed(int) const::{lambda(int)#1}::operator()(int) const";

    (void)state;
    for (size_t columns = 3; columns < sizeof name + 2; columns++) {
        struct rp_buf b = {0};
        int angle = 0, round = 0;

        rp_text_symbol(&b, name, columns, true);
        assert_true(rp_text_columns(rp_buf_text(&b), b.length) <= columns);
        for (const char *at = rp_buf_text(&b); *at; at++) {
            angle += (*at == '<') - (*at == '>');
            round += (*at == '(') - (*at == ')');
        }
        assert_int_equal(angle, 0);
        if (columns >= 120)
            assert_int_equal(round, 0);
        rp_buf_release(&b);
    }
}

static void long_names_end_in_the_middle(void **state)
{
    char name[5001];
    struct rp_buf b = {0};

    (void)state;
    memset(name, 'x', sizeof name - 1);
    name[0] = 'A';
    name[4999] = 'Z';
    name[5000] = '\0';
    rp_text_symbol(&b, name, 40, false);
    assert_int_equal(rp_text_columns(rp_buf_text(&b), b.length), 40);
    assert_int_equal(rp_buf_text(&b)[0], 'A');
    assert_int_equal(rp_buf_text(&b)[b.length - 1], 'Z');
    assert_non_null(strstr(rp_buf_text(&b), "\xe2\x80\xa6"));
    rp_buf_release(&b);
}

/* Names that make every bracket search long must still be quick: the time limit of the test is the check. */
static void hostile_nesting_is_quick(void **state)
{
    static char name[60001];
    struct rp_buf b = {0};

    (void)state;
    for (size_t i = 0; i + 2 < sizeof name; i += 2)
        memcpy(name + i, "<(", 2);
    rp_text_symbol(&b, name, 80, false);
    rp_buf_clear(&b);
    for (size_t i = 0; i + 2 < sizeof name; i += 2)
        memcpy(name + i, "()", 2);
    rp_text_symbol(&b, name, 80, false);
    rp_buf_clear(&b);
    memset(name, '<', sizeof name - 1);
    rp_text_symbol(&b, name, 80, true);
    rp_buf_release(&b);
}

static void counts_are_grouped(void **state)
{
    static const struct {
        uint64_t n;
        const char *text;
    } cases[] = {{0, "0"}, {999, "999"}, {1000, "1 000"}, {9130, "9 130"}, {1234567, "1 234 567"}, {UINT64_MAX, "18 446 744 073 709 551 615"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rp_buf b = {0};

        rp_text_count(&b, cases[i].n);
        assert_string_equal(rp_buf_text(&b), cases[i].text);
        rp_buf_release(&b);
    }
}

static void wrapping_keeps_pieces_whole(void **state)
{
    struct rp_buf b = {0};

    (void)state;
    rp_text_wrap(&b, "note one two three", 0, 2, 9);
    assert_string_equal(rp_buf_text(&b), "note one\n  two\n  three\n");
    rp_buf_clear(&b);
    rp_text_wrap(&b, "about 20 % of\x01it is unbreakableword", 0, 1, 10);
    assert_string_equal(rp_buf_text(&b), "about 20 %\n of it is\n unbreakableword\n");
    rp_buf_release(&b);
}

static void json_is_json(void **state)
{
    struct rp_buf b = {0};
    struct rp_json w = {.out = &b};

    (void)state;
    rp_json_begin(&w, '{');
    rp_json_key_string(&w, "a\"b", "x\\y\n\x1b\xff\xf0\x9f\x98\x80</script>");
    rp_json_key(&w, "list");
    rp_json_begin_inline(&w, '[');
    rp_json_u64(&w, UINT64_MAX);
    rp_json_double(&w, 0.5, 3);
    rp_json_double(&w, 0.0 / (w.depth - 2.0), 3);
    rp_json_bool(&w, true);
    rp_json_string(&w, NULL);
    rp_json_end(&w);
    rp_json_key(&w, "empty");
    rp_json_begin(&w, '[');
    rp_json_end(&w);
    rp_json_end(&w);
    assert_string_equal(rp_buf_text(&b), "{\n  \"a\\\"b\": \"x\\\\y\\u000a\\u001b\xef\xbf\xbd\xf0\x9f\x98\x80</script>\",\n"
                                         "  \"list\": [18446744073709551615, 0.500, null, true, null],\n  \"empty\": []\n}\n");
    assert_false(b.failed);
    rp_buf_release(&b);
}

static void json_too_deep_is_a_failure(void **state)
{
    struct rp_buf b = {0};
    struct rp_json w = {.out = &b};

    (void)state;
    for (int i = 0; i <= RP_JSON_DEPTH_MAX; i++)
        rp_json_begin(&w, '[');
    assert_true(b.failed);
    rp_buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clean_replaces_what_may_not_be_shown),
        cmocka_unit_test(columns_count_wide_and_combining),
        cmocka_unit_test(symbols_shorten_by_groups),
        cmocka_unit_test(symbols_keep_brackets_balanced_when_cut),
        cmocka_unit_test(long_names_end_in_the_middle),
        cmocka_unit_test(hostile_nesting_is_quick),
        cmocka_unit_test(counts_are_grouped),
        cmocka_unit_test(wrapping_keeps_pieces_whole),
        cmocka_unit_test(json_is_json),
        cmocka_unit_test(json_too_deep_is_a_failure),
    };

    return cmocka_run_group_tests_name("report_names", tests, NULL, NULL);
}
