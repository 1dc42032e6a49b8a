/* SPDX-License-Identifier: MIT */
/* Demangling and the short form that rules see. Expected texts are those of the mangling specifications and of c++filt, which is asked where it is there. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/parse.h"
#include "support/names_fixture.h"

static const struct {
    const char *raw, *full, *brief;
} names[] = {
    {"_ZN2v86String11NewFromUtf8EPNS_7IsolateEPKcNS_13NewStringTypeEi", "v8::String::NewFromUtf8(v8::Isolate*, char const*, v8::NewStringType, int)",
     "v8::String::NewFromUtf8"},
    /* a template in an anonymous namespace that takes a function pointer: cutting at the first bracket would leave `void exec<void` */
    {"_ZN12_GLOBAL__N_14execIPFvvEEEvT_", "void (anonymous namespace)::exec<void (*)()>(void (*)())", "(anonymous namespace)::exec<void (*)()>"},
    {"_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()"},
    {"_ZNK3FooclEi", "Foo::operator()(int) const", "Foo::operator()"},
    {"_ZltRK1AS1_", "operator<(A const&, A const&)", "operator<"},
    {"_ZlsRSoRK3Foo", "operator<<(std::ostream&, Foo const&)", "operator<<"},
    {"_Znwm", "operator new(unsigned long)", "operator new"},
    {"_ZN3FooD1Ev", "Foo::~Foo()", "Foo::~Foo"},
    {"_ZN3foo3barEv.constprop.0", "foo::bar() [clone .constprop.0]", "foo::bar"},
    {"_ZN3foo3barEv.isra.0.cold", "foo::bar() [clone .isra.0.cold]", "foo::bar"},
    {"_ZN3foo3barEv@plt", "foo::bar()@plt", "foo::bar"},
    /* Rust, by both manglings */
    {"_RNvXCs1_1aINtB2_1SKj3_FhElENtB2_1T2goB2_", "<a::S<3, fn(u8) -> i32> as a::T>::go", "<a::S<3, fn(u8) -> i32> as a::T>::go"},
    {"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt", "core::fmt::Write::write_fmt"},
    {"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
     "<Test + 'static as foo::Bar<Test>>::bar", "<Test + 'static as foo::Bar<Test>>::bar"},
    /* looks like it, but is C++: upper case is no hash */
    {"_ZN1a17h0123456789ABCDEFE", "a::h0123456789ABCDEF", "a::h0123456789ABCDEF"},
    {"_D4test3fooFiZv", "test.foo(int)", "test.foo"},
    /* C */
    {"pthread_mutex_lock@@GLIBC_2.2.5", "pthread_mutex_lock", "pthread_mutex_lock"},
    {"memcpy@GLIBC_2.2.5", "memcpy", "memcpy"},
    {"__GI___pthread_mutex_unlock_usercnt", "__GI___pthread_mutex_unlock_usercnt", "__pthread_mutex_unlock_usercnt"},
    {"_int_free.part.12.cold", "_int_free.part.12.cold", "_int_free"},
    {"unlink_chunk.constprop.0", "unlink_chunk.constprop.0", "unlink_chunk"},
    {"helper.llvm.1234567", "helper.llvm.1234567", "helper"},
    {"inner.0", "inner.0", "inner"},
    {"file.txt", "file.txt", "file.txt"},
    {"getpagesize@plt", "getpagesize@plt", "getpagesize"},
    {"*ABS*+0x9c940@plt", "*ABS*+0x9c940@plt", "*ABS*+0x9c940"},
    {"pthread_mutex_unlock [local]", "pthread_mutex_unlock [local]", "pthread_mutex_unlock"},
    /* what JITs write stays whole */
    {"JS:*f /app/@scope/x.js:1:2", "JS:*f /app/@scope/x.js:1:2", "JS:*f /app/@scope/x.js:1:2"},
    {"JS:~(anonymous) node:internal/main:1:2", "JS:~(anonymous) node:internal/main:1:2", "JS:~(anonymous) node:internal/main:1:2"},
    {"RegExp:a(b|c)", "RegExp:a(b|c)", "RegExp:a(b|c)"},
    {"ResponseCache:CurrentPrepared ()", "ResponseCache:CurrentPrepared ()", "ResponseCache:CurrentPrepared ()"},
    {"Builtin:ArrayPrototypePush", "Builtin:ArrayPrototypePush", "Builtin:ArrayPrototypePush"},
    /* signatures that come demangled */
    {"int ns::f<std::pair<int, (K)0> >(ns::X (*)(int)) const", "int ns::f<std::pair<int, (K)0> >(ns::X (*)(int)) const", "ns::f<std::pair<int, (K)0> >"},
    {"Foo::operator()", "Foo::operator()", "Foo::operator()"},
    {"(anonymous namespace)::f(int)", "(anonymous namespace)::f(int)", "(anonymous namespace)::f"},
    {"main::{lambda(int)#1}::operator()(int) const [clone .isra.0]", "main::{lambda(int)#1}::operator()(int) const [clone .isra.0]",
     "main::{lambda(int)#1}::operator()"},
    /* what no demangler takes */
    {"_Z", "_Z", "_Z"},
    {"_R", "_R", "_R"},
    {"_Zfoo", "_Zfoo", "_Zfoo"},
    {"_D", "_D", "_D"},
    {"_start", "_start", "_start"},
    {"@", "@", "@"},
    {"", "", ""},
};

static void table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct rp_buf full = {0}, brief = {0};

        rp_demangle(names[i].raw, false, &full);
        rp_demangle(names[i].raw, true, &brief);
        assert_string_equal(rp_buf_text(&full), names[i].full);
        assert_string_equal(rp_buf_text(&brief), names[i].brief);
        rp_buf_release(&full);
        rp_buf_release(&brief);
    }
}

static void appends(void **state)
{
    struct rp_buf out = {0};

    (void)state;
    rp_buf_puts(&out, "in ");
    rp_demangle("_ZN1a1bEv", true, &out);
    rp_buf_puts(&out, ", ");
    rp_demangle("_Zbroken", true, &out); /* a failed try leaves nothing behind */
    assert_string_equal(rp_buf_text(&out), "in a::b, _Zbroken");
    rp_buf_release(&out);
}

/* The case's name, 200 000 letters that each nest one level, and its shorter relatives. */
static void case_A25_names_that_recurse(void **state)
{
    static const size_t lengths[] = {900, 2500, 8000, 16000, 200000};

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char *raw = rp_calloc(lengths[i] + 16, 1);
        struct rp_buf full = {0}, brief = {0};

        assert_non_null(raw);
        memcpy(raw, "_Z1f", 4);
        memset(raw + 4, 'P', lengths[i]);
        raw[4 + lengths[i]] = 'i';
        rp_demangle(raw, false, &full);
        rp_demangle(raw, true, &brief);
        assert_true(full.length > 0 && full.length <= RP_SYMBOL_MAX + 3);
        assert_true(brief.length > 0 && brief.length <= RP_SYMBOL_MAX + 3);
        if (lengths[i] < 1000)
            assert_int_equal(full.length, lengths[i] + strlen("f(int)"));
        else
            assert_memory_equal(rp_buf_text(&full), raw, 100);
        if (lengths[i] <= 2500)
            assert_string_equal(rp_buf_text(&brief), "f");
        rp_buf_release(&full);
        rp_buf_release(&brief);
        rp_free(raw);
    }
}

/* Long is not deep: real template names of thousands of letters are demangled. */
static void long_names(void **state)
{
    struct rp_buf raw = {0}, full = {0}, wanted = {0};

    (void)state;
    rp_buf_puts(&raw, "_ZN");
    for (int i = 0; i < 40; i++) {
        rp_buf_puts(&raw, "100");
        rp_buf_fill(&raw, 'a', 100);
        rp_buf_fill(&wanted, 'a', 100);
        rp_buf_puts(&wanted, i < 39 ? "::" : "(int)");
    }
    rp_buf_puts(&raw, "Ei");
    rp_demangle(rp_buf_text(&raw), false, &full);
    assert_string_equal(rp_buf_text(&full), rp_buf_text(&wanted));
    rp_buf_release(&raw);
    rp_buf_release(&full);
    rp_buf_release(&wanted);
}

/* Substitutions that double the output with each level: 2^40 letters, if one let it. */
static void output_is_bounded(void **state)
{
    struct rp_buf raw = {0}, out = {0};

    (void)state;
    rp_buf_puts(&raw, "_Z1fSt4pairIiiES0_");
    for (int i = 0; i < 40; i++)
        rp_buf_printf(&raw, "St4pairIS%c_S%c_E", i < 10 ? '0' + i : 'A' + i - 10, i < 10 ? '0' + i : 'A' + i - 10);
    rp_demangle(rp_buf_text(&raw), false, &out);
    assert_true(out.length > 0 && out.length <= RP_SYMBOL_MAX + 3);
    rp_buf_release(&raw);
    rp_buf_release(&out);
}

/* All C++ names of a real library, against c++filt. */
static void as_cxxfilt(void **state)
{
    const char *dir = names_dir(), *library = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6";
    static char raw[1 << 16], wanted[1 << 16];
    struct rp_cursor r, w;
    const char *raw_line, *wanted_line;
    size_t raw_length, wanted_length;
    unsigned n = 0;

    (void)state;
    if (!names_try(dir, "test -e %s && c++filt --version >/dev/null", library))
        skip();
    names_run(dir, "nm -D --defined-only %s | awk '{ sub(/@.*/, \"\", $3); print $3 }' | grep '^_Z' | awk 'NR %% 11 == 0' | head -400 > names", library);
    snprintf(raw, sizeof raw, "%s", names_output(dir, "cat names"));
    snprintf(wanted, sizeof wanted, "%s", names_output(dir, "c++filt -i < names"));
    r = rp_cursor_str(raw);
    w = rp_cursor_str(wanted);
    while (rp_cursor_line(&r, &raw_line, &raw_length) && rp_cursor_line(&w, &wanted_line, &wanted_length) && !rp_cursor_done(&w)) {
        struct rp_buf name = {0}, full = {0}, text = {0};

        rp_buf_append(&name, raw_line, raw_length);
        rp_buf_append(&text, wanted_line, wanted_length);
        rp_demangle(rp_buf_text(&name), false, &full);
        assert_string_equal(rp_buf_text(&full), rp_buf_text(&text));
        rp_buf_release(&name);
        rp_buf_release(&full);
        rp_buf_release(&text);
        n++;
    }
    assert_true(n > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table),
        cmocka_unit_test(appends),
        cmocka_unit_test(case_A25_names_that_recurse),
        cmocka_unit_test(long_names),
        cmocka_unit_test(output_is_bounded),
        cmocka_unit_test(as_cxxfilt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
