/* SPDX-License-Identifier: MIT */
/* Names from ELF tables. The truth is what was compiled or assembled, and nm and objdump are asked for addresses. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/parse.h"
#include "support/names_fixture.h"

/* Hand-written assembly without size, between two functions that have one. */
static void case_A16_symbol_without_size(void **state)
{
    const char *dir = names_dir();
    struct names_fixture f;
    uint32_t image;
    uint64_t hot, after;

    (void)state;
    names_write(dir, "zero.s",
                ".text\n.globl before\n.type before,@function\nbefore: ret\n.size before,.-before\n"
                ".globl zero_sized_hot\nzero_sized_hot: nop\n nop\n nop\n ret\n"
                ".globl after\n.type after,@function\nafter: nop\n ret\n.size after,.-after\n"
                " nop\n nop\n" /* outside every symbol */
                ".section .text.other,\"ax\"\n.globl last\nlast: nop\n nop\n ret\n");
    names_run(dir, "gcc -shared -nostdlib -o libzero.so zero.s");
    names_open(&f, NULL);
    image = names_image(&f, names_path(dir, "libzero.so"));
    hot = names_nm(dir, "libzero.so", "zero_sized_hot");
    after = names_nm(dir, "libzero.so", "after");
    assert_int_equal(after - hot, 4);
    assert_string_equal(names_shown(&f, image, hot - 1), "before");
    for (uint64_t at = hot; at < after; at++)
        assert_string_equal(names_shown(&f, image, at), "zero_sized_hot");
    assert_string_equal(names_shown(&f, image, after + 1), "after");
    assert_non_null(strstr(names_shown(&f, image, after + 2), "libzero.so+0x"));
    assert_string_equal(names_shown(&f, image, names_nm(dir, "libzero.so", "last") + 2), "last");
    names_close(&f);
}

/* A hidden function between two exports of a stripped library is not its neighbour's: one row, named by where its unwind range begins. */
static void case_A16_gap_between_exports(void **state)
{
    const char *dir = names_dir();
    struct names_fixture f;
    uint32_t image, location;
    uint64_t hidden;
    char wanted[64];

    (void)state;
    names_write(dir, "gap.c",
                "__attribute__((noinline)) int first(int x) { return x + 1; }\n"
                "__attribute__((noinline, visibility(\"hidden\"))) int hot(int x) { for (int i = 0; i < x; i++) __asm__ volatile(\"nop\"); return x; }\n"
                "__attribute__((noinline)) int last(int x) { return hot(x) + 2; }\n");
    names_run(dir, "gcc -O1 -fno-toplevel-reorder -fPIC -shared -o libgap.so gap.c && cp libgap.so full.so && strip libgap.so");
    hidden = names_nm(dir, "full.so", "hot");
    names_open(&f, NULL);
    image = names_image(&f, names_path(dir, "libgap.so"));
    snprintf(wanted, sizeof wanted, "libgap.so+0x%llx", (unsigned long long)hidden);
    assert_string_equal(names_shown(&f, image, hidden), wanted);
    assert_string_equal(names_shown(&f, image, hidden + 5), wanted);
    assert_string_equal(names_shown(&f, image, names_nm(dir, "full.so", "first")), "first");
    assert_string_equal(names_shown(&f, image, names_nm(dir, "full.so", "last") + 1), "last");
    location = names_at(&f, image, hidden + 6, 0, 0);
    assert_int_equal(names_function(&f, location, -1)->how, RP_NAME_OFFSET);
    names_close(&f);
}

/* A return address is looked up one byte before. */
static void case_A05_caller_is_not_the_next_function(void **state)
{
    const char *dir = names_dir();
    struct names_fixture f;
    uint32_t image, location;
    uint64_t innocent;

    (void)state;
    names_write(dir, "a.s",
                ".text\n.globl caller\n.type caller,@function\ncaller: call spin\n.size caller,.-caller\n"
                ".globl innocent\n.type innocent,@function\ninnocent: ret\n.size innocent,.-innocent\n"
                ".globl spin\n.hidden spin\n.type spin,@function\nspin: jmp spin\n.size spin,.-spin\n");
    names_run(dir, "gcc -shared -nostdlib -o liba.so a.s");
    innocent = names_nm(dir, "liba.so", "innocent");
    names_open(&f, NULL);
    image = names_image(&f, names_path(dir, "liba.so"));
    assert_string_equal(names_shown(&f, image, innocent), "innocent");
    location = names_at(&f, image, innocent, RP_LOCATION_CALLER, 0);
    assert_string_equal(rp_profile_text(&f.profile, names_function(&f, location, -1)->name), "caller");
    names_close(&f);
}

/* One order among aliases, whatever the linker did. */
static void case_A11_several_names_at_one_address(void **state)
{
    static const char *const orders[] = {".globl real_name\n.weak weak_name\n.globl __real_name\n", ".globl __real_name\n.weak weak_name\n.globl real_name\n"};
    const char *dir = names_dir();

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct names_fixture f;
        uint32_t image, location;
        char text[1024];

        snprintf(text, sizeof text,
                 ".text\n%s.set __GI_real_name, __real_name\n.type real_name,@function\n.type weak_name,@function\n.type __real_name,@function\n"
                 ".type __GI_real_name,@function\nlabel:\n%s nop\n ret\n.size real_name,2\n.size __real_name,2\n.size weak_name,2\n.size __GI_real_name,2\n",
                 orders[i], i ? "weak_name:\n__real_name:\nreal_name:\n" : "real_name:\n__real_name:\nweak_name:\n");
        names_write(dir, "alias.s", text);
        names_run(dir, "gcc -shared -nostdlib -o libalias%d.so alias.s", i);
        names_open(&f, NULL);
        image = names_image(&f, names_path(dir, i ? "libalias1.so" : "libalias0.so"));
        location = names_at(&f, image, names_nm(dir, i ? "libalias1.so" : "libalias0.so", "real_name") + 1, 0, 0);
        assert_string_equal(rp_profile_text(&f.profile, names_function(&f, location, -1)->name), "real_name");
        assert_true(names_has_alias(&f, names_function(&f, location, -1), "weak_name"));
        assert_true(names_has_alias(&f, names_function(&f, location, -1), "__real_name"));
        assert_true(names_has_alias(&f, names_function(&f, location, -1), "__GI_real_name"));
        assert_int_equal(names_function(&f, location, -1)->naliases, 4); /* and the bare label, last */
        names_close(&f);
    }
}

static const char nested[] = "int exported(int x) { return x; }\n"
                             "static __attribute__((noinline)) int inner_%s(int x) { __asm__ volatile(\"nop\"); return x + %d; }\n"
                             "int caller(int x) { return inner_%s(x) + 1; }\n";

/* Builds lib.so with a static function inner_NAME and keeps its full copy as full-NAME.so. */
static void build_lib(const char *dir, const char *name, const char *options)
{
    char text[1024];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, nested, name, (int)name[0], name);
#pragma GCC diagnostic pop
    names_write(dir, "lib.c", text);
    names_run(dir, "gcc -g -O1 -fPIC -shared %s -o full-%s.so lib.c && cp full-%s.so lib.so && strip lib.so", options, name, name);
}

static void assert_inner(const char *dir, const char *debug_dir, const char *name, const char *wanted)
{
    struct rp_symbolizer_options options = {.debug_dir = names_path(dir, debug_dir)};
    char symbol[64], full[64];
    struct names_fixture f;
    const char *shown;
    uint32_t image;

    snprintf(symbol, sizeof symbol, "inner_%s", name);
    snprintf(full, sizeof full, "full-%s.so", name);
    names_open(&f, &options);
    image = names_image(&f, names_path(dir, "lib.so"));
    shown = names_shown(&f, image, names_nm(dir, full, symbol) + 1);
    if (wanted)
        assert_string_equal(shown, wanted);
    else
        assert_non_null(strstr(shown, "lib.so+0x"));
    names_close(&f);
}

static void debug_file_by_build_id(void **state)
{
    const char *dir = names_dir();

    (void)state;
    build_lib(dir, "one", "-Wl,--build-id=0x0102030405060708");
    assert_inner(dir, "none", "one", NULL);
    names_run(dir, "mkdir -p dbg/.build-id/01 && objcopy --only-keep-debug full-one.so dbg/.build-id/01/02030405060708.debug");
    assert_inner(dir, "dbg", "one", "inner_one");
    /* the same place holding another build: refused */
    build_lib(dir, "two", "-Wl,--build-id=0x0102030405060799");
    names_run(dir, "mkdir -p bad/.build-id/01 && objcopy --only-keep-debug full-one.so bad/.build-id/01/02030405060799.debug");
    assert_inner(dir, "bad", "two", NULL);
}

static void debug_file_by_link(void **state)
{
    const char *dir = names_dir();

    (void)state;
    build_lib(dir, "one", "-Wl,--build-id=none");
    names_run(dir, "objcopy --only-keep-debug full-one.so lib.debug && objcopy --add-gnu-debuglink=lib.debug lib.so");
    assert_inner(dir, "none", "one", "inner_one");
    names_run(dir, "mkdir .debug && mv lib.debug .debug/");
    assert_inner(dir, "none", "one", "inner_one");
    names_run(dir, "mkdir -p dbg$PWD && mv .debug/lib.debug dbg$PWD/");
    assert_inner(dir, "dbg", "one", "inner_one");
    names_run(dir, "printf x >> dbg$PWD/lib.debug"); /* the checksum is no longer right */
    assert_inner(dir, "dbg", "one", NULL);
    names_run(dir, "cp lib.so linked.so"); /* another build's, which has its function at the same address */
    build_lib(dir, "two", "-Wl,--build-id=none");
    names_run(dir, "mv linked.so lib.so && objcopy --only-keep-debug full-two.so dbg$PWD/lib.debug");
    assert_inner(dir, "dbg", "one", NULL);
    names_run(dir, "objcopy --only-keep-debug full-one.so lib.debug && mkfifo fifo && mv fifo .debug/lib.debug");
    assert_inner(dir, "none", "one", "inner_one"); /* and nobody waits for the pipe */
}

static void debug_link_with_another_build_id_is_refused(void **state)
{
    const char *dir = names_dir();

    (void)state;
    build_lib(dir, "one", "-Wl,--build-id=0x0102030405060708");
    names_run(dir, "cp full-one.so keep.so");
    build_lib(dir, "two", "-Wl,--build-id=0x0102030405060799");
    names_run(dir, "objcopy --only-keep-debug keep.so lib.debug && objcopy --add-gnu-debuglink=lib.debug lib.so");
    assert_inner(dir, "none", "two", NULL);
}

/* From a server (a folder, which the library can read as one), and only when asked; a missing server is named in the image's note. */
static void debug_file_from_debuginfod(void **state)
{
    struct rp_symbolizer_options options = {.debug_dir = "/nonexistent"};
    const char *dir = names_dir(), *note;
    struct names_fixture f;
    char url[512];
    uint32_t image;
    uint64_t inner;

    (void)state;
    build_lib(dir, "one", "-Wl,--build-id=0x0102030405060708090a0b0c0d0e0f1011121314");
    inner = names_nm(dir, "full-one.so", "inner_one");
    names_run(dir, "mkdir -p srv/buildid/0102030405060708090a0b0c0d0e0f1011121314 cache && "
                   "objcopy --only-keep-debug full-one.so srv/buildid/0102030405060708090a0b0c0d0e0f1011121314/debuginfo");
    snprintf(url, sizeof url, "file://%s/srv/", dir);
    setenv("DEBUGINFOD_URLS", url, 1);
    setenv("DEBUGINFOD_CACHE_PATH", names_path(dir, "cache"), 1);
    names_open(&f, &options);
    image = names_image(&f, names_path(dir, "lib.so"));
    assert_non_null(strstr(names_shown(&f, image, inner + 1), "lib.so+0x")); /* not asked for */
    names_close(&f);
    options.debuginfod = true;
    names_open(&f, &options);
    image = names_image(&f, names_path(dir, "lib.so"));
    note = names_shown(&f, image, inner + 1);
    if (strcmp(note, "inner_one") != 0) /* without the library, the note says so */
        assert_non_null(strstr(rp_profile_text(&f.profile, f.profile.images.at[image].note), "libdebuginfod"));
    names_close(&f);
    unsetenv("DEBUGINFOD_URLS");
    names_open(&f, &options);
    image = names_image(&f, names_path(dir, "lib.so"));
    assert_non_null(strstr(names_shown(&f, image, inner + 1), "lib.so+0x"));
    assert_non_null(strstr(rp_profile_text(&f.profile, f.profile.images.at[image].note), "DEBUGINFOD_URLS"));
    names_close(&f);
}

static void mini_debug_data(void **state)
{
    const char *dir = names_dir();

    (void)state;
    build_lib(dir, "one", "");
    names_run(dir, "objcopy --strip-debug full-one.so mini && xz -k mini && objcopy --add-section .gnu_debugdata=mini.xz lib.so");
    assert_inner(dir, "none", "one", "inner_one");
    names_run(dir, "head -c 200 mini.xz > cut.xz && objcopy --update-section .gnu_debugdata=cut.xz lib.so");
    assert_inner(dir, "none", "one", NULL);
}

/* Each stub that objdump names, by our name for it. */
static void assert_stubs_as_objdump(const char *dir, const char *file, unsigned at_least)
{
    char list[32768];
    struct names_fixture f;
    struct rp_cursor c;
    const char *line;
    size_t length;
    uint32_t image;
    unsigned n = 0;

    snprintf(list, sizeof list, "%s",
             names_output(dir, "objdump -d %s | sed -n 's/^\\([0-9a-f]*\\) <\\(.*@plt\\)>:$/\\1 \\2/p'", file));
    names_open(&f, NULL);
    image = names_image(&f, names_path(dir, file));
    c = rp_cursor_str(list);
    while (rp_cursor_line(&c, &line, &length)) {
        struct rp_cursor l = rp_cursor_of(line, length);
        char wanted[256];
        uint64_t addr;

        assert_true(rp_cursor_hex(&l, &addr));
        rp_cursor_skip_blanks(&l);
        snprintf(wanted, sizeof wanted, "%.*s", (int)(l.end - l.at), l.at);
        assert_string_equal(names_shown(&f, image, addr), wanted);
        assert_string_equal(names_shown(&f, image, addr + 6), wanted);
        assert_int_equal(names_function(&f, names_at(&f, image, addr, 0, 0), -1)->how, RP_NAME_PLT);
        n++;
    }
    assert_true(n >= at_least);
    names_close(&f);
}

static void case_A19_calls_through_the_plt(void **state)
{
    const char *dir = names_dir();

    (void)state;
    names_write(dir, "p.c", "#include <unistd.h>\n#include <stdlib.h>\n#include <string.h>\n"
                            "int (*volatile pointer)(const char *) = atoi;\n"
                            "int main(int c, char **v) { return getpagesize() + getpid() + getuid() + abs(c) + (int)strlen(v[0]) + rand() + pointer(v[0]) + atoi(v[0]); }\n");
    names_run(dir, "gcc -O1 -fno-builtin -fcf-protection=none -Wl,-z,lazy -o lazy p.c");
    assert_stubs_as_objdump(dir, "lazy", 5);
    names_run(dir, "gcc -O1 -fno-builtin -fcf-protection=full -Wl,-z,lazy -Wl,-z,ibtplt -o ibt p.c");
    assert_stubs_as_objdump(dir, "ibt", 5);
    names_run(dir, "gcc -O1 -fno-builtin -fcf-protection=none -Wl,-z,now -fPIC -shared -o now.so p.c");
    assert_stubs_as_objdump(dir, "now.so", 4);
    if (names_try(dir, "clang -O1 -fno-builtin -fuse-ld=lld -Wl,-z,lazy -o lld p.c 2>/dev/null"))
        assert_stubs_as_objdump(dir, "lld", 4);
}

/* IRELATIVE slots belong to an indirect function of the file itself. */
static void case_A19_indirect_functions(void **state)
{
    const char *dir = names_dir();
    struct names_fixture f;
    uint32_t image;
    uint64_t stub = 0;
    struct rp_cursor c;

    (void)state;
    names_write(dir, "i.c", "static int impl(int x) { return x + 1; }\n"
                            "static int (*resolver(void))(int) { return impl; }\n"
                            "__attribute__((visibility(\"hidden\"), ifunc(\"resolver\"))) int chosen(int x);\n"
                            "int entry(int x) { return chosen(x) * 3; }\n");
    names_run(dir, "gcc -O1 -fcf-protection=none -fPIC -shared -o libi.so i.c");
    c = rp_cursor_str(names_output(dir, "objdump -d libi.so | sed -n 's/^\\([0-9a-f]*\\) <\\*ABS\\*.*@plt>:$/\\1/p'"));
    assert_true(rp_cursor_hex(&c, &stub));
    names_open(&f, NULL);
    image = names_image(&f, names_path(dir, "libi.so"));
    assert_string_equal(names_shown(&f, image, stub + 2), "chosen@plt");
    names_close(&f);
    names_run(dir, "strip libi.so");
    names_open(&f, NULL);
    image = names_image(&f, names_path(dir, "libi.so"));
    assert_non_null(strstr(names_shown(&f, image, stub + 2), "*ABS*+0x"));
    names_close(&f);
}

/* The shape of glibc's pthread_mutex_unlock: an exported stub sets a register and jumps into a local function. */
static void exported_stub_names_local_function(void **state)
{
    const char *dir = names_dir();
    struct names_fixture f;
    uint32_t image, location;
    uint64_t local;

    (void)state;
    names_write(dir, "s.s",
                ".text\n.type work,@function\nwork: .cfi_startproc\n nop\n nop\n nop\n ret\n .cfi_endproc\n.size work,.-work\n"
                ".type other,@function\nother: .cfi_startproc\n nop\n ret\n .cfi_endproc\n.size other,.-other\n"
                ".globl do_unlock\n.type do_unlock,@function\ndo_unlock: .cfi_startproc\n mov $1,%esi\n jmp work\n .cfi_endproc\n.size do_unlock,.-do_unlock\n"
                ".globl __do_unlock\n.set __do_unlock, do_unlock\n.type __do_unlock,@function\n"
                ".skip 500\n.globl far\n.type far,@function\nfar: xor %edx,%edx\n jmp away\n.size far,.-far\n" /* with a jump of the other size */
                ".skip 500\n.type away,@function\naway: .cfi_startproc\n nop\n ret\n .cfi_endproc\n.size away,.-away\n");
    names_run(dir, "gcc -shared -nostdlib -o libs.so s.s && cp libs.so full.so && strip libs.so");
    local = names_nm(dir, "full.so", "work");
    names_open(&f, NULL);
    image = names_image(&f, names_path(dir, "libs.so"));
    location = names_at(&f, image, local + 2, 0, 0);
    assert_string_equal(rp_profile_text(&f.profile, names_function(&f, location, -1)->name), "do_unlock [local]");
    assert_int_equal(names_function(&f, location, -1)->how, RP_NAME_STUB_LOCAL);
    assert_int_equal(names_function(&f, location, -1)->start, local);
    assert_true(names_has_alias(&f, names_function(&f, location, -1), "do_unlock"));
    assert_true(names_has_alias(&f, names_function(&f, location, -1), "__do_unlock"));
    assert_string_equal(names_shown(&f, image, names_nm(dir, "full.so", "away") + 1), "far [local]");
    assert_non_null(strstr(names_shown(&f, image, names_nm(dir, "full.so", "other")), "libs.so+0x"));
    names_close(&f);
}

/* The C library of this machine, as if its debug package were not installed. */
static void libc_without_debug_symbols(void **state)
{
    struct rp_symbolizer_options options = {.debug_dir = "/nonexistent"};
    const char *libc = "/lib/x86_64-linux-gnu/libc.so.6", *dir = names_dir();
    uint64_t unlock;
    int64_t target;
    struct names_fixture f;
    struct rp_cursor c;
    uint32_t image;

    (void)state;
    if (access(libc, R_OK))
        skip();
    c = rp_cursor_str(names_output(dir, "a=$(nm -D %s | awk '/ pthread_mutex_unlock@/ { print \"0x\" $1; exit }'); "
                                        "objdump -d --start-address=$a --stop-address=$((a + 10)) %s | awk 'NF > 3 && $(NF-2) == \"jmp\" { print $(NF-1) }'",
                                   libc, libc));
    if (!rp_cursor_hex(&c, &unlock))
        skip(); /* another libc, where it is no stub */
    target = (int64_t)unlock;
    names_open(&f, &options);
    image = names_image(&f, libc);
    assert_string_equal(names_shown(&f, image, (uint64_t)target + 16), "pthread_mutex_unlock [local]");
    assert_string_equal(rp_profile_text(&f.profile, f.profile.images.at[image].remedy), access("/var/lib/dpkg/info", R_OK) ? "" : "libc6-dbg");
    names_close(&f);
}

/* The eight wounds of the case, one by one, and what must still hold: no crash, and names fall back to module+offset or stay right. */
static void case_A24_malformed_files(void **state)
{
    static const struct {
        const char *what;
        long section_field; /* offset in every section header, or -1 */
        long header_field;
        uint64_t value;
        unsigned bytes;
    } wounds[] = {
        {"section offset", -1, 40, UINT64_MAX, 8},    {"section count", -1, 60, 65535, 2},         {"string index", -1, 62, 65534, 2},
        {"table size", 32, -1, (uint64_t)1 << 40, 8}, {"link", 40, -1, 65535, 4},                  {"entry size", 56, -1, 0, 8},
        {"offsets", 24, -1, UINT64_MAX - 8, 8},       {"name offset", 0, -1, (uint64_t)1 << 31, 4}, {"program headers", -1, 32, UINT64_MAX - 8, 8},
        {"segment count", -1, 56, 65534, 2},
    };
    const char *dir = names_dir();

    (void)state;
    names_write(dir, "m.c", "int hot(int x) { return x * 3; }\nint main(void) { return hot(2); }\n");
    names_run(dir, "gcc -g -O1 -o m m.c");
    for (size_t i = 0; i < sizeof wounds / sizeof *wounds; i++) {
        struct names_fixture f;
        uint64_t sections, at = 0x1100;
        uint16_t count;
        uint32_t image;
        FILE *file;

        names_run(dir, "cp m bad");
        file = fopen(names_path(dir, "bad"), "r+");
        assert_non_null(file);
        fseek(file, 40, SEEK_SET);
        assert_int_equal(fread(&sections, 8, 1, file), 1);
        fseek(file, 60, SEEK_SET);
        assert_int_equal(fread(&count, 2, 1, file), 1);
        for (uint16_t s = 0; wounds[i].section_field >= 0 && s < count; s++) {
            fseek(file, (long)sections + s * 64 + wounds[i].section_field, SEEK_SET);
            fwrite(&wounds[i].value, wounds[i].bytes, 1, file);
        }
        if (wounds[i].header_field >= 0) {
            fseek(file, wounds[i].header_field, SEEK_SET);
            fwrite(&wounds[i].value, wounds[i].bytes, 1, file);
        }
        fclose(file);
        names_open(&f, NULL);
        image = names_image(&f, names_path(dir, "bad"));
        for (; at < 0x1200; at += 7)
            assert_true(strlen(names_shown(&f, image, at)) > 0);
        names_close(&f);
    }
}

/* A file cut off while it is open gives no names, and no signal. */
static void case_A24_truncated_while_open(void **state)
{
    const char *dir = names_dir();
    struct names_fixture f;
    uint32_t image;

    (void)state;
    names_write(dir, "m.c", "int hot(int x) { return x * 3; }\nint main(void) { return hot(2); }\n");
    names_run(dir, "gcc -g -O1 -o m m.c");
    names_open(&f, NULL);
    image = names_image(&f, names_path(dir, "m"));
    names_run(dir, "truncate -s 4096 m");
    assert_non_null(strstr(names_shown(&f, image, 0x1139), "m+0x"));
    names_close(&f);
}

/* Each file parsed once, each address resolved once, however often it is asked. */
static void case_A23_once(void **state)
{
    const char *dir = names_dir();
    struct rp_symbolizer_stats stats;
    struct names_fixture f;
    uint32_t image, location;
    uint64_t first;

    (void)state;
    names_run(dir, "{ echo .text; for i in $(seq 0 99999); do echo \".globl f$i;.type f$i,@function;f$i: ret;.size f$i,1\"; done; } > many.s && "
                   "gcc -shared -nostdlib -o many.so many.s");
    first = names_nm(dir, "many.so", "f0");
    names_open(&f, NULL);
    image = names_image(&f, names_path(dir, "many.so"));
    for (int round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 100000; i += 997) {
            char wanted[16];

            assert_int_equal(rp_profile_location(&f.profile, image, first + i, 0, 0, &location, &f.err), RP_OK);
            assert_int_equal(rp_symbolize(f.symbolizer, &f.profile, &f.err), RP_OK);
            snprintf(wanted, sizeof wanted, "f%u", i);
            assert_string_equal(rp_profile_text(&f.profile, names_function(&f, location, -1)->name), wanted);
        }
    }
    rp_symbolizer_stats(f.symbolizer, &stats);
    assert_int_equal(stats.files_parsed, 1);
    assert_int_equal(stats.addresses_resolved, 101);
    assert_in_range(stats.symbols, 100000, 200100);
    names_close(&f);
}

/* Marks and files that are not ELF. */
static void marks_and_other_files(void **state)
{
    struct names_fixture f;
    uint32_t image, location;

    (void)state;
    names_open(&f, NULL);
    image = names_other_image(&f, RP_IMAGE_OTHER, "/app/System.Private.CoreLib.dll", 0);
    location = names_at(&f, image, 0x1234, RP_LOCATION_CALLER, 0);
    assert_string_equal(rp_profile_text(&f.profile, names_function(&f, location, 0)->name), "System.Private.CoreLib.dll+0x1234");
    assert_int_equal(names_function(&f, location, 0)->how, RP_NAME_OFFSET);
    assert_int_equal(rp_profile_mark(&f.profile, "[truncated: stack copy too short]", &location, &f.err), RP_OK);
    assert_int_equal(rp_symbolize(f.symbolizer, &f.profile, &f.err), RP_OK);
    assert_string_equal(rp_profile_text(&f.profile, names_function(&f, location, 0)->name), "[truncated: stack copy too short]");
    assert_int_equal(names_function(&f, location, 0)->how, RP_NAME_MARK);
    names_close(&f);
}

/* Every allocation fails once: an error or a good result, never a crash, and the next try works. */
static void every_allocation_may_fail(void **state)
{
    const char *dir = names_dir();
    uint64_t hot;
    bool done = false;

    (void)state;
    names_write(dir, "m.c", "static inline __attribute__((always_inline)) int in(int x) { __asm__ volatile(\"nop\"); return x; }\n"
                            "int hot(int x) { return in(x) * 3; }\nint main(void) { return hot(2); }\n");
    names_run(dir, "gcc -g -O1 -o m m.c");
    hot = names_nm(dir, "m", "hot");
    for (uint64_t n = 1; !done; n++) {
        struct names_fixture f;
        uint32_t image, location;
        enum rp_status status;

        names_open(&f, NULL);
        image = names_image(&f, names_path(dir, "m"));
        assert_int_equal(rp_profile_location(&f.profile, image, hot, 0, 0, &location, &f.err), RP_OK);
        rp_alloc_fail_at(n);
        status = rp_symbolize(f.symbolizer, &f.profile, &f.err);
        done = rp_alloc_fail_at(0) < n;
        if (status)
            assert_int_equal(status, RP_NOMEM);
        assert_int_equal(rp_symbolize(f.symbolizer, &f.profile, &f.err), RP_OK);
        assert_true(f.profile.locations.at[location].nlines > 0);
        names_close(&f);
        assert_true(n < 10000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_A16_symbol_without_size),
        cmocka_unit_test(case_A16_gap_between_exports),
        cmocka_unit_test(case_A05_caller_is_not_the_next_function),
        cmocka_unit_test(case_A11_several_names_at_one_address),
        cmocka_unit_test(debug_file_by_build_id),
        cmocka_unit_test(debug_file_by_link),
        cmocka_unit_test(debug_link_with_another_build_id_is_refused),
        cmocka_unit_test(debug_file_from_debuginfod),
        cmocka_unit_test(mini_debug_data),
        cmocka_unit_test(case_A19_calls_through_the_plt),
        cmocka_unit_test(case_A19_indirect_functions),
        cmocka_unit_test(exported_stub_names_local_function),
        cmocka_unit_test(libc_without_debug_symbols),
        cmocka_unit_test(case_A24_malformed_files),
        cmocka_unit_test(case_A24_truncated_while_open),
        cmocka_unit_test(case_A23_once),
        cmocka_unit_test(marks_and_other_files),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
