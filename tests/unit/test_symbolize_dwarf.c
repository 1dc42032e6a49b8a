/* SPDX-License-Identifier: MIT */
/* Inlined frames, files and lines. The truth is the source below, and addr2line of binutils, which is another reader of DWARF. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/parse.h"
#include "support/names_fixture.h"

static const char source[] =
    "static inline __attribute__((always_inline)) int deepest(int x)\n" /* line 1 */
    "{\n"
    "    __asm__ volatile(\"mark: nop\");\n"                           /* 3 */
    "    return x * 3;\n"
    "}\n"
    "static inline __attribute__((always_inline)) int middle(int x)\n"
    "{\n"
    "    return deepest(x) + 1;\n"                                     /* 8 */
    "}\n"
    "int outer(int x)\n"
    "{\n"
    "    return middle(x) + 2;\n"                                      /* 12 */
    "}\n"
    "__attribute__((noinline, cold)) int plain(int x)\n"
    "{\n"
    "    __asm__ volatile(\"mark2: nop\");\n"                          /* 16 */
    "    return x;\n"
    "}\n";

static void assert_frame(const struct names_fixture *f, uint32_t location, int i, const char *name, uint32_t line, enum rp_name_how how)
{
    const struct rp_line *at = names_line(f, location, i);
    const struct rp_function *function = names_function(f, location, i);
    const char *file = rp_profile_text(&f->profile, at->file);

    assert_string_equal(rp_profile_text(&f->profile, function->name), name);
    assert_int_equal(at->line, line);
    assert_non_null(strstr(file, "inl.c"));
    assert_non_null(strstr(rp_profile_text(&f->profile, function->file), "inl.c"));
    assert_int_equal(function->how, how);
}

static void check_chain(const char *dir, const char *file)
{
    struct names_fixture f;
    uint32_t image, location;
    uint64_t mark = names_nm(dir, file, "mark");

    names_open(&f, NULL);
    image = names_image(&f, names_path(dir, file));
    location = names_at(&f, image, mark, 0, 0);
    assert_int_equal(f.profile.locations.at[location].nlines, 3);
    assert_frame(&f, location, 0, "deepest", 3, RP_NAME_INLINE);
    assert_frame(&f, location, 1, "middle", 8, RP_NAME_INLINE);
    assert_frame(&f, location, 2, "outer", 12, RP_NAME_SYMBOL);
    location = names_at(&f, image, names_nm(dir, file, "mark2"), 0, 0);
    assert_int_equal(f.profile.locations.at[location].nlines, 1);
    assert_frame(&f, location, 0, "plain", 16, RP_NAME_SYMBOL);
    names_close(&f);
}

static void inline_chain(void **state)
{
    static const char *const builds[] = {"gcc -g -O2", "gcc -gdwarf-4 -O2", "gcc -g -O2 -gz", "gcc -g -O2 -ffunction-sections",
                                         "clang -g -O2", "clang -gdwarf-4 -O2 -fuse-ld=lld"};
    const char *dir = names_dir();
    unsigned done = 0;
    char file[32];

    (void)state;
    names_write(dir, "inl.c", source);
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) {
        if (!names_try(dir, "%s -fPIC -shared -o lib%zu.so inl.c 2>/dev/null", builds[i], i))
            continue;
        snprintf(file, sizeof file, "lib%zu.so", i);
        check_chain(dir, file);
        done++;
    }
    assert_true(done >= 4);
}

static void inline_chain_from_the_debug_file(void **state)
{
    const char *dir = names_dir();

    (void)state;
    names_write(dir, "inl.c", source);
    names_run(dir, "gcc -g -O2 -fPIC -shared -o lib.so inl.c && objcopy --only-keep-debug lib.so lib.debug && "
                   "objcopy --strip-debug --add-gnu-debuglink=lib.debug lib.so");
    check_chain(dir, "lib.so");
}

/* A link to a shared file that cannot be had: symbols only, and nobody opens the path that the file names (a pipe would wait for ever). */
static void link_to_a_missing_alternate_file(void **state)
{
    const char *dir = names_dir();
    struct names_fixture f;
    uint32_t image, location;

    (void)state;
    names_write(dir, "inl.c", source);
    names_run(dir, "gcc -g -O2 -fPIC -shared -o lib.so inl.c && mkfifo pipe && { printf '%%s/pipe\\0' \"$PWD\"; printf 12345678901234567890; } > link && "
                   "objcopy --add-section .gnu_debugaltlink=link lib.so");
    names_open(&f, NULL);
    image = names_image(&f, names_path(dir, "lib.so"));
    location = names_at(&f, image, names_nm(dir, "lib.so", "mark"), 0, 0);
    assert_int_equal(f.profile.locations.at[location].nlines, 1);
    assert_string_equal(rp_profile_text(&f.profile, names_function(&f, location, 0)->name), "outer");
    names_close(&f);
}

static void no_inlines_when_told_so(void **state)
{
    struct rp_symbolizer_options options = {.no_inlines = true};
    const char *dir = names_dir();
    struct names_fixture f;
    uint32_t image, location;

    (void)state;
    names_write(dir, "inl.c", source);
    names_run(dir, "gcc -g -O2 -fPIC -shared -o lib.so inl.c");
    names_open(&f, &options);
    image = names_image(&f, names_path(dir, "lib.so"));
    location = names_at(&f, image, names_nm(dir, "lib.so", "mark"), 0, 0);
    assert_int_equal(f.profile.locations.at[location].nlines, 1);
    assert_string_equal(rp_profile_text(&f.profile, names_function(&f, location, 0)->name), "outer");
    assert_int_equal(names_line(&f, location, 0)->line, 0);
    names_close(&f);
}

/* C++: linkage names of inlined members, demangled. */
static void inlined_members(void **state)
{
    const char *dir = names_dir();
    struct names_fixture f;
    uint32_t image, location;

    (void)state;
    names_write(dir, "m.cc", "namespace db { template <class T> struct Row { T v;\n"
                             "__attribute__((always_inline)) T get(int n) const { asm volatile(\"mark: nop\"); return v + n; } }; }\n"
                             "long use(const db::Row<long> &r) { return r.get(2); }\n");
    if (!names_try(dir, "g++ -g -O2 -fPIC -shared -o libm.so m.cc"))
        skip();
    names_open(&f, NULL);
    image = names_image(&f, names_path(dir, "libm.so"));
    location = names_at(&f, image, names_nm(dir, "libm.so", "mark"), 0, 0);
    assert_string_equal(rp_profile_text(&f.profile, names_function(&f, location, 0)->name), "db::Row<long>::get(int) const");
    assert_string_equal(rp_profile_text(&f.profile, names_function(&f, location, -1)->name), "use(db::Row<long> const&)");
    names_close(&f);
}

/* Takes `file:line` pieces out of what addr2line printed: base name and line. */
static void place_of(const char *line, size_t length, char *to, size_t room)
{
    const char *slash = memrchr(line, '/', length);
    size_t n;

    if (slash) {
        length -= (size_t)(slash + 1 - line);
        line = slash + 1;
    }
    for (n = 0; n < length && line[n] != ' '; n++)
        ;
    snprintf(to, room, "%.*s", (int)n, line);
}

/* Every 37th address of a real program with much inlining (this test itself would do; the compiler's own optimiser makes the shapes). */
static void as_addr2line(void **state)
{
    const char *dir = names_dir();
    char expected[256], got[256];
    struct names_fixture f;
    struct rp_cursor c;
    const char *line;
    size_t length;
    uint32_t image, location;
    uint64_t start, size;
    unsigned checked = 0, inlined = 0;

    (void)state;
    names_run(dir, "cp '%s'/profiler/base/*.h . && cp '%s'/profiler/base/*.c . && mkdir base && cp *.h base/ && "
                   "gcc -g -O3 -D_GNU_SOURCE -I. -fPIC -shared -o libbase.so *.c", ROWPROF_SOURCE_DIR, ROWPROF_SOURCE_DIR);
    names_open(&f, NULL);
    image = names_image(&f, names_path(dir, "libbase.so"));
    c = rp_cursor_str(names_output(dir, "readelf -SW libbase.so | sed -n 's/.* \\.text *PROGBITS *\\([0-9a-f]*\\) [0-9a-f]* \\([0-9a-f]*\\) .*/\\1 \\2/p'"));
    assert_true(rp_cursor_hex(&c, &start));
    rp_cursor_skip_blanks(&c);
    assert_true(rp_cursor_hex(&c, &size));
    for (uint64_t addr = start + 512; addr < start + size; addr += 37) {
        int i = 0;

        location = names_at(&f, image, addr, 0, 0);
        if (!names_line(&f, location, 0)->line)
            continue; /* between functions, or line 0: addr2line and libdw differ in what to say */
        c = rp_cursor_str(names_output(dir, "addr2line -i -e libbase.so 0x%llx", (unsigned long long)addr));
        for (; rp_cursor_line(&c, &line, &length); i++) {
            place_of(line, length, expected, sizeof expected);
            snprintf(got, sizeof got, "%s", rp_profile_text(&f.profile, names_line(&f, location, i)->file));
            place_of(got, strlen(got), got, sizeof got);
            snprintf(got + strlen(got), sizeof got - strlen(got), ":%u", names_line(&f, location, i)->line);
            if (!strstr(expected, ":?"))
                assert_string_equal(got, expected);
        }
        assert_int_equal(i, f.profile.locations.at[location].nlines);
        inlined += i > 1;
        if (++checked == 150)
            break;
    }
    assert_true(checked > 50);
    assert_true(inlined > 5);
    names_close(&f);
}

/* Debug data overwritten with noise: names by symbol stay, nothing crashes or hangs. */
static void damaged_dwarf(void **state)
{
    static const char *const sections[] = {".debug_info", ".debug_abbrev", ".debug_line", ".debug_rnglists", ".debug_str"};
    const char *dir = names_dir();
    uint64_t mark;

    (void)state;
    names_write(dir, "inl.c", source);
    names_run(dir, "gcc -g -O2 -fPIC -shared -o lib.so inl.c && seq 1 5000 | md5sum > noise && for i in 1 2 3 4; do cat noise noise > n2; mv n2 noise; done");
    mark = names_nm(dir, "lib.so", "mark");
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        struct names_fixture f;
        uint32_t image, location;

        if (!names_try(dir, "objcopy --update-section %s=noise lib.so bad.so 2>/dev/null", sections[i]))
            continue;
        names_open(&f, NULL);
        image = names_image(&f, names_path(dir, "bad.so"));
        location = names_at(&f, image, mark, 0, 0);
        assert_string_equal(rp_profile_text(&f.profile, names_function(&f, location, -1)->name), "outer");
        names_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inline_chain),
        cmocka_unit_test(inline_chain_from_the_debug_file),
        cmocka_unit_test(link_to_a_missing_alternate_file),
        cmocka_unit_test(no_inlines_when_told_so),
        cmocka_unit_test(inlined_members),
        cmocka_unit_test(as_addr2line),
        cmocka_unit_test(damaged_dwarf),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
