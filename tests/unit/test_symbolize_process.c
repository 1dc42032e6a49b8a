/* SPDX-License-Identifier: MIT */
/* Names of real processes: a program replaced while it runs, another mount namespace, the vDSO, and Node where it was fetched (scripts/runtimes). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/parse.h"
#include "support/names_fixture.h"
#include "symbolize/remedy.h"
#include "target/space.h"

/* Starts `command` (a shell line) in `dir` and waits until it has written the file "ready". */
static pid_t start(const char *dir, const char *command)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        if (chdir(dir) == 0)
            execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 1000 && access(names_path(dir, "ready"), F_OK); i++)
        usleep(10000);
    assert_int_equal(access(names_path(dir, "ready"), F_OK), 0);
    return pid;
}

static void stop(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* A program that says it is there and waits; `name` is its function at a fixed address. */
static void build(const char *dir, const char *program, const char *name)
{
    char text[512];

    snprintf(text, sizeof text,
             "#include <stdio.h>\n#include <unistd.h>\n__attribute__((noinline)) void %s(void) { for (;;) pause(); }\n"
             "int main(void) { fclose(fopen(\"ready\", \"w\")); %s(); }\n", name, name);
    names_write(dir, "p.c", text);
    names_run(dir, "gcc -O1 -no-pie -Wl,--build-id=none -o %s p.c", program);
}

/* The name of the function at ELF address `addr` of the program of process `pid`. */
static void assert_in_process(pid_t pid, const char *base, uint64_t addr, const char *wanted)
{
    struct rp_space space = {.pid = (uint32_t)pid};
    struct names_fixture f;
    uint32_t image = UINT32_MAX;

    names_open(&f, NULL);
    if (rp_space_read(&space, &f.images, &f.err))
        fail_msg("%s", f.err.text);
    for (size_t i = 0; i < f.images.at.n; i++) {
        const char *slash = f.images.at.at[i]->path ? strrchr(f.images.at.at[i]->path, '/') : NULL;

        if (slash && strcmp(slash + 1, base) == 0)
            image = (uint32_t)i;
    }
    assert_int_not_equal(image, UINT32_MAX);
    assert_string_equal(names_shown(&f, image, addr), wanted);
    rp_space_release(&space);
    names_close(&f);
}

static void case_A12_replaced_while_running(void **state)
{
    const char *dir = names_dir();
    uint64_t addr;
    pid_t pid;

    (void)state;
    build(dir, "old", "old_hot");
    build(dir, "new", "new_wrong_name");
    addr = names_nm(dir, "old", "old_hot");
    assert_int_equal(addr, names_nm(dir, "new", "new_wrong_name"));
    names_run(dir, "cp old prog");
    pid = start(dir, "exec ./prog");
    names_run(dir, "cp new prog.tmp && mv prog.tmp prog");
    assert_in_process(pid, "prog", addr + 1, "old_hot");
    names_run(dir, "rm prog");
    assert_in_process(pid, "prog", addr + 1, "old_hot");
    stop(pid);
}

static void case_A22_same_path_other_file(void **state)
{
    const char *dir = names_dir();
    uint64_t addr;
    pid_t pid;

    (void)state;
    build(dir, "old", "old_hot");
    build(dir, "prog", "new_wrong_name");
    addr = names_nm(dir, "old", "old_hot");
    if (!names_try(dir, "unshare -m mount --bind old prog 2>/dev/null"))
        skip(); /* needs privilege */
    pid = start(dir, "exec unshare -m sh -c 'mount --bind old prog && exec ./prog'");
    assert_in_process(pid, "prog", addr + 1, "old_hot");
    stop(pid);
}

/* The lists of packages are the container's: one that is a pipe is none, and is not waited for. */
static void case_A22_package_lists_in_the_root_of_the_process(void **state)
{
    const char *dir = names_dir();
    struct rp_buf remedy = {0};
    int ready[2];
    char byte;
    pid_t pid;

    (void)state;
    if (geteuid() != 0)
        skip(); /* needs privilege */
    names_run(dir, "mkdir -p var/lib/dpkg/info && cd var/lib/dpkg/info && mkfifo here.list pipe.list && echo /usr/lib/libhere.so >libhere:amd64.list");
    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!chroot(dir))
            (void)!write(ready[1], "r", 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    alarm(60);
    assert_false(rp_remedy_find((uint32_t)pid, "/usr/lib/here.so", &remedy));
    assert_true(rp_remedy_find((uint32_t)pid, "/usr/lib/libhere.so", &remedy));
    alarm(0);
    assert_string_equal(rp_buf_text(&remedy), "libhere-dbgsym (from the debug archive)");
    rp_buf_release(&remedy);
    stop(pid);
}

/* Debug files are looked for in the root of the process, then here. */
static void case_A22_debug_file_in_the_root_of_the_process(void **state)
{
    const char *dir = names_dir();
    uint64_t addr;
    pid_t pid;

    (void)state;
    names_write(dir, "p.c", "#include <stdio.h>\n#include <unistd.h>\nstatic __attribute__((noinline)) void inner_hot(void) { for (;;) pause(); }\n"
                            "int main(void) { fclose(fopen(\"ready\", \"w\")); inner_hot(); }\n");
    names_run(dir, "gcc -g -O1 -no-pie -static -Wl,--build-id=0xabcdef0123456789 -o full p.c");
    addr = names_nm(dir, "full", "inner_hot");
    names_run(dir, "mkdir -p root/usr/lib/debug/.build-id/ab && objcopy --only-keep-debug full root/usr/lib/debug/.build-id/ab/cdef0123456789.debug && "
                   "strip -o root/prog full");
    if (!names_try(dir, "chroot . /none 2>/dev/null; test $? = 127"))
        skip(); /* needs privilege */
    names_run(dir, "ln -s root/ready ready");
    pid = start(dir, "exec chroot root /prog");
    assert_in_process(pid, "prog", addr + 1, "inner_hot");
    stop(pid);
}

static void vdso(void **state)
{
    struct rp_space space = {.pid = (uint32_t)getpid()};
    struct names_fixture f;
    bool found = false;

    (void)state;
    names_open(&f, NULL);
    if (rp_space_read(&space, &f.images, &f.err))
        fail_msg("%s", f.err.text);
    for (uint32_t i = 0; i < f.images.at.n && !found; i++) {
        if (f.images.at.at[i]->kind != RP_IMAGE_VDSO)
            continue;
        for (uint64_t addr = 0; addr < 0x2000 && !found; addr += 16)
            found = strstr(names_shown(&f, i, addr), "clock_gettime") != NULL;
        assert_true(found);
    }
    rp_space_release(&space);
    names_close(&f);
    if (!found)
        skip(); /* a kernel without */
}

static uint64_t resident_kb(void)
{
    struct rp_buf text = {0};
    struct rp_err err;
    const char *at;
    struct rp_cursor c;
    uint64_t kb = 0;

    assert_int_equal(rp_read_file("/proc/self/status", 1 << 20, &text, &err), RP_OK);
    at = strstr(rp_buf_text(&text), "VmRSS:");
    assert_non_null(at);
    c = rp_cursor_str(at + 6);
    rp_cursor_skip_blanks(&c);
    assert_true(rp_cursor_u64(&c, &kb));
    rp_buf_release(&text);
    return kb;
}

/* Node: nm's name is among ours for every 500th function, and the table stays small. */
static void case_A23_node(void **state)
{
    const char *dir = names_dir();
    char node[4096], list[1 << 16];
    struct rp_symbolizer_stats stats;
    struct names_fixture f;
    struct rp_cursor c;
    const char *line;
    size_t length;
    uint32_t image;
    uint64_t before, after;
    unsigned n = 0;

    (void)state;
    snprintf(node, sizeof node, "%s", names_output("/", "'%s/scripts/runtimes' --print node24 2>/dev/null || true", ROWPROF_SOURCE_DIR));
    if (!*node)
        skip(); /* scripts/runtimes fetches it */
    snprintf(list, sizeof list, "%s", names_output(dir, "nm -S '%s' | awk 'NF == 4 && ($3 == \"t\" || $3 == \"T\") && ++n %% 500 == 0 { print $1, $4 }'", node));
    before = resident_kb();
    names_open(&f, NULL);
    image = names_image(&f, node);
    for (c = rp_cursor_str(list); rp_cursor_line(&c, &line, &length); n++) {
        struct rp_cursor l = rp_cursor_of(line, length);
        char symbol[4096];
        uint32_t location;
        uint64_t addr;

        if (!rp_cursor_hex(&l, &addr) || !rp_cursor_skip_blanks(&l))
            continue;
        snprintf(symbol, sizeof symbol, "%.*s", (int)(l.end - l.at), l.at);
        location = names_at(&f, image, addr, 0, 0);
        if (!names_has_alias(&f, names_function(&f, location, -1), symbol))
            fail_msg("%s is called %s", symbol, rp_profile_text(&f.profile, names_function(&f, location, -1)->raw));
    }
    assert_true(n > 100);
    after = resident_kb();
    rp_symbolizer_stats(f.symbolizer, &stats);
    assert_int_equal(stats.files_parsed, 1);
    assert_true(stats.symbols > 100000);
#ifndef __SANITIZE_ADDRESS__
    assert_in_range(after - before, 0, 32 * 1024); /* its own symbol and string tables are 15 MB, its debug entries 1 MB */
#else
    (void)before;
    (void)after;
#endif
    names_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_A12_replaced_while_running),
        cmocka_unit_test(case_A22_same_path_other_file),
        cmocka_unit_test(case_A22_package_lists_in_the_root_of_the_process),
        cmocka_unit_test(case_A22_debug_file_in_the_root_of_the_process),
        cmocka_unit_test(vdso),
        cmocka_unit_test(case_A23_node),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
