/* SPDX-License-Identifier: MIT */
/* JIT maps: dialects, overlaps, growth. The oracle for overlaps is an array with one cell per byte. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/limits.h"
#include "support/names_fixture.h"
#include "symbolize/jitmap.h"

static struct rp_err err;

/* A JIT with one map that holds `text`. */
static struct rp_jit *jit_of_text(const char *dir, const char *text, size_t length)
{
    struct rp_jit *jit = rp_calloc(1, sizeof *jit);
    int fd = open(names_path(dir, "map"), O_RDWR | O_CREAT | O_TRUNC, 0600);

    assert_non_null(jit);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, length), length);
    assert_int_equal(rp_jit_add_file(jit, fd, RP_JIT_PERF_MAP, &err), RP_OK);
    assert_int_equal(rp_jit_read_file(jit, 0, &err), RP_OK);
    return jit;
}

static void jit_free(struct rp_jit *jit)
{
    rp_jit_release(jit);
    rp_free(jit);
}

static void append(const char *dir, const char *text)
{
    FILE *file = fopen(names_path(dir, "map"), "a");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void assert_name(const struct rp_jit *jit, uint64_t addr, const char *wanted)
{
    struct rp_buf name = {0};
    uint64_t start;
    bool found = rp_jit_name(jit, addr, 0, &start, &name);

    if (wanted)
        assert_string_equal(rp_buf_text(&name), wanted);
    else
        assert_false(found);
    rp_buf_release(&name);
}

static void case_A20_dialects(void **state)
{
    static const char text[] = "1000 10 plain\n"
                               "0x2000 0x10 prefixed\n"
                               "3000  10  two blanks\n"
                               "4000\t10\ttab\n"
                               "5000 10 crlf\r\n"
                               "00006000 0010 Foo::bar(int, char) const [clone .x]\n"
                               "0XABCD0 0X1F upper\n"
                               " 7000 10 leading\n"
                               "\n"
                               "8000 0 size zero\n"
                               "fffffffffffffff0 20 wraps\n"
                               "9000 10 \n"
                               "9000\n"
                               "nonsense\n"
                               "1ffffffffffffffff 1 too big\n"
                               "a000 10 cut last lin";
    const char *dir = names_dir();
    struct rp_jit *jit;

    (void)state;
    jit = jit_of_text(dir, text, sizeof text - 1);
    assert_name(jit, 0x1000, "plain");
    assert_name(jit, 0x100f, "plain");
    assert_name(jit, 0x1010, NULL);
    assert_name(jit, 0x0fff, NULL);
    assert_name(jit, 0x2008, "prefixed");
    assert_name(jit, 0x3008, "two blanks");
    assert_name(jit, 0x4008, "tab");
    assert_name(jit, 0x5008, "crlf");
    assert_name(jit, 0x6008, "Foo::bar(int, char) const [clone .x]");
    assert_name(jit, 0xabcd8, "upper");
    assert_name(jit, 0x7008, "leading");
    assert_name(jit, 0x8000, NULL);
    assert_name(jit, 0xfffffffffffffff8, NULL);
    assert_name(jit, 0x9000, NULL);
    assert_name(jit, 0xa008, "cut last lin");
    assert_int_equal(jit->lines, 9);
    assert_int_equal(jit->rejected, 6);
    append(dir, "e, now whole\nb000 10 next\nc000 1");
    assert_int_equal(rp_jit_read_file(jit, 0, &err), RP_OK);
    assert_name(jit, 0xa008, "cut last line, now whole");
    assert_name(jit, 0xb008, "next");
    assert_int_equal(jit->lines, 10);
    append(dir, "0 after a cut number\n");
    assert_int_equal(rp_jit_read_file(jit, 0, &err), RP_OK);
    assert_name(jit, 0xc00f, "after a cut number");
    assert_int_equal(jit->rejected, 6);
    jit_free(jit);
}

static void case_A20_long_lines(void **state)
{
    const char *dir = names_dir();
    struct rp_buf text = {0};
    struct rp_jit *jit;
    struct rp_buf name = {0};
    uint64_t start;

    (void)state;
    rp_buf_puts(&text, "1000 10 ");
    rp_buf_fill(&text, 'x', 1000000);
    rp_buf_puts(&text, "\n2000 10 short\n3000 10 ");
    rp_buf_fill(&text, 'y', 3000000);
    rp_buf_puts(&text, "\n4000 10 last\n");
    jit = jit_of_text(dir, rp_buf_text(&text), text.length);
    assert_true(rp_jit_name(jit, 0x1000, 0, &start, &name));
    assert_in_range(name.length, RP_SYMBOL_MAX, RP_SYMBOL_MAX + 3);
    assert_name(jit, 0x2000, "short");
    assert_name(jit, 0x3000, NULL);
    assert_name(jit, 0x4000, "last");
    assert_int_equal(jit->rejected, 1);
    assert_int_equal(jit->lines, 3);
    rp_buf_release(&text);
    rp_buf_release(&name);
    jit_free(jit);
}

static void case_A08_later_lines_win(void **state)
{
    static const char first[] = "1000 100 stale\n1000 100 fresh\n2000 1000 wide\n";
    const char *dir = names_dir();
    struct rp_jit *jit;
    uint32_t before;

    (void)state;
    jit = jit_of_text(dir, first, sizeof first - 1);
    assert_name(jit, 0x1080, "fresh");
    before = rp_jit_code_find(&jit->code, 0x2400);
    append(dir, "2400 100 narrow\n");
    assert_int_equal(rp_jit_read_file(jit, 0, &err), RP_OK);
    assert_name(jit, 0x23ff, "wide");
    assert_name(jit, 0x2400, "narrow");
    assert_name(jit, 0x24ff, "narrow");
    assert_name(jit, 0x2500, "wide");
    assert_int_not_equal(rp_jit_code_find(&jit->code, 0x2400), before);
    assert_int_equal(rp_jit_code_find(&jit->code, 0x2300), before);
    jit_free(jit);
}

/* Random entries in random portions, every byte compared after each portion. */
static void overlaps_against_one_cell_per_byte(void **state)
{
    enum { BYTES = 3000 };
    static uint32_t cells[BYTES];
    uint32_t seed = 12345;

    (void)state;
    for (int round = 0; round < 20; round++) {
        struct rp_jit_code code = {0};

        memset(cells, 0, sizeof cells);
        for (int i = 0; i < 400; i++) {
            struct rp_jit_entry e = {0};
            uint32_t length;

            seed = seed * 1664525 + 1013904223;
            length = 1 + (seed >> 16) % (seed & 64 ? 20 : 800);
            seed = seed * 1664525 + 1013904223;
            e.start = (seed >> 12) % (BYTES - length);
            e.bytes = length;
            assert_true(rp_jit_code_add(&code, &e));
            for (uint32_t b = 0; b < length; b++)
                cells[e.start + b] = (uint32_t)code.entries.n;
            if (seed % 7 == 0 || i == 399) {
                assert_int_equal(rp_jit_code_settle(&code, &err), RP_OK);
                for (uint32_t b = 0; b < BYTES; b++)
                    assert_int_equal(rp_jit_code_find(&code, b), cells[b]);
            }
        }
        rp_jit_code_release(&code);
    }
}

static void a_map_written_anew(void **state)
{
    static const char first[] = "1000 100 old_function\n2000 100 other\n";
    const char *dir = names_dir();
    struct rp_jit *jit;
    uint32_t old;
    uint64_t start;
    struct rp_buf name = {0};

    (void)state;
    jit = jit_of_text(dir, first, sizeof first - 1);
    old = rp_jit_code_find(&jit->code, 0x1000);
    names_write(dir, "map", "1000 100 new\n3000 10 more_than_before_and_longer_than_the_old_file\n"); /* truncated in place, and longer again */
    assert_int_equal(rp_jit_read_file(jit, 0, &err), RP_OK);
    assert_name(jit, 0x1000, "new");
    assert_name(jit, 0x3000, "more_than_before_and_longer_than_the_old_file");
    assert_name(jit, 0x2000, NULL); /* its name is gone, and no other is shown in its place */
    assert_false(rp_jit_name(jit, 0x1000, old, &start, &name));
    jit_free(jit);
}

/* Two million lines: all found, in a bounded number of bytes. */
static void case_A20_two_million_lines(void **state)
{
    const char *dir = names_dir();
    struct rp_jit *jit = rp_calloc(1, sizeof *jit);
    size_t bytes;
    int fd;

    (void)state;
    names_run(dir, "awk 'BEGIN { for (i = 0; i < 2000000; i++) printf \"%%x 40 LazyCompile:*function%%d /app/file.js:%%d:1\\n\", 1048576 + (i %% 1500000) * 64, i, i }' > map");
    fd = open(names_path(dir, "map"), O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(rp_jit_add_file(jit, fd, RP_JIT_PERF_MAP, &err), RP_OK);
    assert_int_equal(rp_jit_read_file(jit, 0, &err), RP_OK);
    assert_int_equal(jit->lines, 2000000);
    assert_name(jit, 1048576 + 5, "LazyCompile:*function1500000 /app/file.js:1500000:1");
    assert_name(jit, 1048576 + 1499999 * 64, "LazyCompile:*function1499999 /app/file.js:1499999:1");
    assert_name(jit, 1048576 + 700000 * 64 + 63, "LazyCompile:*function700000 /app/file.js:700000:1");
    bytes = jit->code.entries.cap * sizeof *jit->code.entries.at;
    for (uint32_t i = 0; i < jit->code.nlevels; i++)
        bytes += jit->code.levels[i].segments.cap * sizeof *jit->code.levels[i].segments.at;
    assert_in_range(bytes, 1, 100u << 20);
    jit_free(jit);
}

/* Through the symbolizer, by the place where a process of this pid namespace leaves its map. */
static void of_this_process(void **state)
{
    struct names_fixture f;
    char path[64];
    uint32_t image, location, epoch, pid = (uint32_t)getpid();
    struct rp_symbolizer_stats stats;
    FILE *file;

    (void)state;
    snprintf(path, sizeof path, "/tmp/perf-%u.map", pid);
    names_open(&f, NULL);
    image = names_other_image(&f, RP_IMAGE_JIT, "[jit]", pid);
    assert_int_equal(rp_symbolizer_epoch(f.symbolizer, pid, 0x1000), 0);
    location = names_at(&f, image, 0x9000, 0, 0);
    assert_string_equal(rp_profile_text(&f.profile, names_function(&f, location, 0)->name), "[jit]");
    assert_int_equal(names_function(&f, location, 0)->how, RP_NAME_OFFSET);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "9000 10 written late\n1000 100 JS:~f file.js:1:2\n1100 10 </script><b>&\"'\n1200 10 a;b\tc\x1b\xff\n");
    fflush(file);
    assert_int_equal(rp_symbolizer_read_jit(f.symbolizer, pid, pid, &f.err), RP_OK);
    assert_int_equal(rp_symbolize(f.symbolizer, &f.profile, &f.err), RP_OK);
    assert_string_equal(rp_profile_text(&f.profile, names_function(&f, location, 0)->name), "written late");
    epoch = rp_symbolizer_epoch(f.symbolizer, pid, 0x1010);
    location = names_at(&f, image, 0x1010, 0, epoch);
    assert_string_equal(rp_profile_text(&f.profile, names_function(&f, location, 0)->name), "JS:~f file.js:1:2");
    assert_int_equal(names_function(&f, location, 0)->how, RP_NAME_JIT);
    assert_int_equal(names_function(&f, location, 0)->start, 0x1000);
    assert_string_equal(names_shown(&f, image, 0x1108), "</script><b>&\"'");
    assert_string_equal(names_shown(&f, image, 0x1208), "a;b\tc\x1b\xff"); /* cleaning is the exporter's, per format */
    fprintf(file, "1000 100 JS:*g file.js:9:9\n");
    fclose(file);
    assert_int_equal(rp_symbolizer_read_jit(f.symbolizer, pid, pid, &f.err), RP_OK);
    assert_int_not_equal(rp_symbolizer_epoch(f.symbolizer, pid, 0x1010), epoch);
    location = names_at(&f, image, 0x1010, 0, rp_symbolizer_epoch(f.symbolizer, pid, 0x1010));
    assert_string_equal(rp_profile_text(&f.profile, names_function(&f, location, 0)->name), "JS:*g file.js:9:9");
    rp_symbolizer_stats(f.symbolizer, &stats);
    assert_int_equal(stats.map_lines, 5);
    assert_int_equal(stats.map_rejected, 0);
    unlink(path);
    names_close(&f);
}

/* The reason stands with the image, and names the file. */
static void assert_refused(const struct names_fixture *f, uint32_t image, const char *why)
{
    const char *note = rp_profile_text(&f->profile, f->profile.images.at[image].note);
    char path[64];

    snprintf(path, sizeof path, "/tmp/perf-%u.map is there, but ", (uint32_t)getpid());
    assert_memory_equal(note, path, strlen(path));
    assert_non_null(strstr(note, why));
}

static void a_map_left_by_an_earlier_process(void **state)
{
    struct names_fixture f;
    uint32_t pid = (uint32_t)getpid(), image;
    char path[64];

    (void)state;
    snprintf(path, sizeof path, "perf-%u.map", pid);
    names_write("/tmp", path, "1000 100 stale\n");
    names_run("/tmp", "touch -d '2001-01-01' %s", path);
    names_open(&f, NULL);
    image = names_other_image(&f, RP_IMAGE_JIT, "[jit]", pid);
    assert_int_equal(rp_symbolizer_read_jit(f.symbolizer, pid, pid, &f.err), RP_OK);
    assert_int_equal(rp_symbolizer_epoch(f.symbolizer, pid, 0x1010), 0);
    (void)names_at(&f, image, 0x1010, 0, 0);
    assert_refused(&f, image, "was last written before process");
    assert_int_equal(f.profile.images.at[image].remedy, 0);
    /* It is written anew: then it is of this process. */
    names_run("/tmp", "touch %s", path);
    assert_int_equal(rp_symbolizer_read_jit(f.symbolizer, pid, pid, &f.err), RP_OK);
    assert_int_equal(rp_symbolize(f.symbolizer, &f.profile, &f.err), RP_OK);
    assert_int_equal(f.profile.images.at[image].note, 0);
    assert_string_equal(names_shown(&f, image, 0x1010), "stale");
    names_close(&f);
    names_run("/tmp", "rm %s", path);
}

static void a_map_of_another_user(void **state)
{
    struct names_fixture f;
    uint32_t pid = (uint32_t)getpid(), image;
    char path[64], remedy[128];

    (void)state;
    if (geteuid() != 0)
        skip(); /* only root can give a file away */
    snprintf(path, sizeof path, "perf-%u.map", pid);
    names_write("/tmp", path, "1000 100 planted\n");
    names_run("/tmp", "chown 65534 %s", path);
    names_open(&f, NULL);
    image = names_other_image(&f, RP_IMAGE_JIT, "[jit]", pid);
    assert_int_equal(rp_symbolizer_read_jit(f.symbolizer, pid, pid, &f.err), RP_OK);
    assert_string_equal(names_shown(&f, image, 0x1010), "[jit]");
    assert_refused(&f, image, "belongs to user 65534 and process");
    snprintf(remedy, sizeof remedy, "if it is the map of this process, `chown 0 /tmp/perf-%u.map`", pid);
    assert_string_equal(rp_profile_text(&f.profile, f.profile.images.at[image].remedy), remedy);
    names_close(&f);
    names_run("/tmp", "rm %s", path);
}

/* Every allocation fails once while maps are read and asked. */
static void every_allocation_may_fail(void **state)
{
    static const char text[] = "1000 100 a\n1080 10 b\n2000 10 c";
    const char *dir = names_dir();
    bool done = false;

    (void)state;
    names_write(dir, "map", text);
    for (uint64_t n = 1; !done && n < 1000; n++) {
        struct rp_jit jit = {0};
        struct rp_buf name = {0};
        enum rp_status status;
        uint64_t start;

        rp_alloc_fail_at(n);
        status = rp_jit_add_file(&jit, open(names_path(dir, "map"), O_RDONLY), RP_JIT_PERF_MAP, &err);
        if (!status)
            status = rp_jit_read_file(&jit, 0, &err);
        if (!status)
            rp_jit_name(&jit, 0x1000, 0, &start, &name);
        done = rp_alloc_fail_at(0) < n;
        if (status)
            assert_int_equal(status, RP_NOMEM);
        rp_buf_release(&name);
        rp_jit_release(&jit);
    }
    assert_true(done);
}

static void put(struct rp_buf *out, uint64_t value, size_t bytes)
{
    rp_buf_append(out, &value, bytes);
}

static void put_load(struct rp_buf *out, uint64_t address, uint64_t bytes, uint64_t index, const char *name)
{
    put(out, 0, 4);
    put(out, 16 + 40 + strlen(name) + 1 + 4, 4);
    put(out, 1, 8); /* time */
    put(out, 7, 4);
    put(out, 8, 4);
    put(out, address, 8);
    put(out, address, 8);
    put(out, bytes, 8);
    put(out, index, 8);
    rp_buf_append(out, name, strlen(name) + 1);
    rp_buf_fill(out, '\xc3', 4);
}

static void put_move(struct rp_buf *out, uint64_t from, uint64_t to, uint64_t bytes, uint64_t index)
{
    put(out, 1, 4);
    put(out, 16 + 48, 4);
    put(out, 2, 8);
    put(out, 7, 4);
    put(out, 8, 4);
    put(out, from, 8);
    put(out, from, 8);
    put(out, to, 8);
    put(out, bytes, 8);
    put(out, index, 8);
}

static void put_header(struct rp_buf *out)
{
    put(out, 0x4a695444, 4);
    put(out, 1, 4);
    put(out, 40, 4);
    put(out, 62, 4);
    put(out, 0, 4);
    put(out, 7, 4);
    put(out, 0, 8);
    put(out, 0, 8);
}

/* Found by the page of it that the process maps, read as it grows. */
static void jitdump(void **state)
{
    const char *dir = names_dir();
    uint32_t pid = (uint32_t)getpid();
    struct rp_buf text = {0};
    struct rp_jit *jit = rp_calloc(1, sizeof *jit);
    int fd = open(names_path(dir, "jit-77.dump"), O_RDWR | O_CREAT, 0600);
    size_t half;
    void *page;

    (void)state;
    assert_true(fd >= 0);
    put_header(&text);
    put_load(&text, 0x1000, 0x100, 5, "first");
    put(&text, 2, 4); /* a record of another kind */
    put(&text, 24, 4);
    put(&text, 0, 8);
    put(&text, 0, 8);
    put_load(&text, 0x2000, 0x100, 6, "second");
    half = text.length + 30;
    put_move(&text, 0x1000, 0x3000, 0x100, 5);
    put_load(&text, 0x1000, 0x80, 7, "reused");
    put_move(&text, 0x1, 0x9000, 0x100, 99); /* never loaded */
    assert_int_equal(pwrite(fd, text.data, half, 0), half);
    page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    assert_true(page != MAP_FAILED);
    jit->pid = pid;
    jit->ns_pid = pid;
    assert_int_equal(rp_jit_read(jit, &err), RP_OK);
    assert_int_equal(jit->lines, 2);
    assert_name(jit, 0x1080, "first");
    assert_name(jit, 0x2080, "second");
    assert_int_equal(pwrite(fd, text.data + half, text.length - half, (off_t)half), text.length - half);
    assert_int_equal(rp_jit_read(jit, &err), RP_OK);
    assert_name(jit, 0x3080, "first");
    assert_name(jit, 0x1010, "reused");
    assert_name(jit, 0x1090, "first"); /* what was there and is not covered stays */
    assert_int_equal(jit->lines, 4);
    assert_int_equal(jit->rejected, 1);
    munmap(page, 4096);
    close(fd);
    rp_buf_release(&text);
    jit_free(jit);
}

static void damaged_jitdump(void **state)
{
    const char *dir = names_dir();
    struct rp_buf text = {0};
    struct rp_jit *jit;

    (void)state;
    put_header(&text);
    put_load(&text, 0x1000, 0x100, 5, "first");
    put(&text, 0, 4);
    put(&text, 0, 4); /* a record of no size would be read for ever */
    put(&text, 0, 8);
    jit = rp_calloc(1, sizeof *jit);
    names_write(dir, "d", "");
    {
        int fd = open(names_path(dir, "d"), O_RDWR);

        assert_int_equal(write(fd, text.data, text.length), text.length);
        assert_int_equal(rp_jit_add_file(jit, fd, RP_JIT_DUMP, &err), RP_OK);
    }
    assert_int_equal(rp_jit_read_file(jit, 0, &err), RP_OK);
    assert_int_equal(rp_jit_read_file(jit, 0, &err), RP_OK);
    assert_name(jit, 0x1000, "first");
    assert_int_equal(jit->rejected, 1);
    rp_buf_release(&text);
    jit_free(jit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_A20_dialects),
        cmocka_unit_test(case_A20_long_lines),
        cmocka_unit_test(case_A08_later_lines_win),
        cmocka_unit_test(overlaps_against_one_cell_per_byte),
        cmocka_unit_test(a_map_written_anew),
        cmocka_unit_test(case_A20_two_million_lines),
        cmocka_unit_test(of_this_process),
        cmocka_unit_test(a_map_left_by_an_earlier_process),
        cmocka_unit_test(a_map_of_another_user),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(jitdump),
        cmocka_unit_test(damaged_jitdump),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
