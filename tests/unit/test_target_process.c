/* SPDX-License-Identifier: MIT */
/* Processes of every kind, made here, and what procfs says of them. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/process.h"

static void *thread_waits(void *arg)
{
    uint64_t tid = (uint64_t)syscall(SYS_gettid);

    if (write(*(int *)arg, &tid, sizeof tid) != (ssize_t)sizeof tid)
        abort();
    for (;;)
        pause();
    return NULL;
}

/* A child with a name that would fool a careless parser and one more thread; `main_leaves`: its main thread exits. */
static pid_t child_with_thread(uint32_t *tid, bool main_leaves)
{
    int pipes[2];
    uint64_t word = 0;
    pid_t pid;

    assert_int_equal(pipe(pipes), 0);
    pid = fork();
    if (!pid) {
        pthread_t thread;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "a) R (b) 1 2");
        pthread_create(&thread, NULL, thread_waits, &pipes[1]);
        if (main_leaves)
            pthread_exit(NULL);
        pause();
        _exit(0);
    }
    assert_int_equal(read(pipes[0], &word, sizeof word), (ssize_t)sizeof word);
    close(pipes[0]);
    close(pipes[1]);
    *tid = (uint32_t)word;
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void test_name_with_parentheses(void **state)
{
    struct rp_process_info info;
    struct rp_err err = {0};
    uint32_t tid;
    pid_t pid = child_with_thread(&tid, false);

    (void)state;
    assert_int_equal(rp_process_read((uint32_t)pid, &info, &err), RP_OK);
    assert_string_equal(info.comm, "a) R (b) 1 2");
    assert_int_equal(info.uid, getuid());
    assert_int_equal(info.ns_pid, pid);
    assert_false(info.is_32bit);
    assert_false(info.is_kernel);
    assert_non_null(strchr("SR", info.state));
    assert_true(info.start_ticks > 0);
    assert_non_null(strstr(info.command, "test_target_process"));
    end(pid);
}

static void test_threads(void **state)
{
    struct rp_thread_infos threads = {0};
    struct rp_thread_info one;
    struct rp_err err = {0};
    uint32_t tid;
    pid_t pid = child_with_thread(&tid, false);

    (void)state;
    assert_int_equal(rp_threads_read((uint32_t)pid, &threads, &err), RP_OK);
    assert_int_equal(threads.at.n, 2);
    assert_int_equal(threads.at.at[0].tid, pid);
    assert_int_equal(threads.at.at[1].tid, tid);
    assert_true(rp_thread_read((uint32_t)pid, tid, &one));
    assert_string_equal(one.comm, "a) R (b) 1 2");
    assert_true(one.cpu_ns > 0 && one.cpu_ns < 1000000000u);
    end(pid);
    assert_false(rp_thread_read((uint32_t)pid, tid, &one));
    assert_int_equal(rp_threads_read((uint32_t)pid, &threads, &err), RP_NOPROC);
    rp_threads_release(&threads);
}

static void test_thread_id_names_its_process(void **state)
{
    struct rp_process_info info;
    struct rp_err err = {0};
    uint32_t tid;
    pid_t pid = child_with_thread(&tid, false);
    char word[32];

    (void)state;
    assert_int_equal(rp_process_read(tid, &info, &err), RP_NOPROC);
    snprintf(word, sizeof word, "--pid %d", pid);
    assert_non_null(strstr(err.text, word));
    end(pid);
}

static void test_main_thread_that_left(void **state)
{
    struct rp_process_info info;
    struct rp_err err = {0};
    uint32_t tid;
    pid_t pid = child_with_thread(&tid, true);

    (void)state;
    for (int i = 0; i < 500 && rp_process_read((uint32_t)pid, &info, &err) == RP_OK && info.state != 'Z'; i++)
        usleep(10000);
    assert_int_equal(rp_process_read((uint32_t)pid, &info, &err), RP_OK);
    assert_int_equal(info.state, 'Z');
    end(pid);
}

static void test_zombie(void **state)
{
    struct rp_process_info info;
    struct rp_err err = {0};
    siginfo_t ignored;
    pid_t pid = fork();

    (void)state;
    if (!pid)
        _exit(0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &ignored, WEXITED | WNOWAIT), 0);
    assert_int_equal(rp_process_read((uint32_t)pid, &info, &err), RP_NOPROC);
    assert_non_null(strstr(err.text, "zombie"));
    waitpid(pid, NULL, 0);
}

static void test_nobody_there(void **state)
{
    static const uint32_t pids[] = {0, 0x7ffffff0, 0x80000000u, 0xffffffffu};
    struct rp_process_info info;
    struct rp_err err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof pids / sizeof *pids; i++)
        assert_int_equal(rp_process_read(pids[i], &info, &err), RP_NOPROC);
}

static void test_kernel_thread(void **state)
{
    struct rp_process_info info;
    struct rp_err err = {0};

    (void)state;
    if (rp_process_read(2, &info, &err) != RP_OK || strcmp(info.comm, "kthreadd") != 0)
        skip(); /* another pid namespace */
    assert_true(info.is_kernel);
    assert_string_equal(info.command, "kthreadd");
}

/* A 32-bit program need not run to be told: the file behind exe decides. Made from its smallest loadable form: mov eax,29 (pause); int 0x80. */
static void test_32bit(void **state)
{
    static const uint8_t program[] = {
        0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 3, 0, 1, 0, 0, 0, 0x54, 0x80, 4, 8, 0x34, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x34, 0, 0x20, 0, 1, 0,
        0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 4, 8, 0, 0x80, 4, 8, 0x5d, 0, 0, 0, 0x5d, 0, 0, 0, 5, 0, 0, 0, 0, 0x10, 0, 0,
        0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7};
    struct rp_process_info info;
    struct rp_err err = {0};
    int fd = memfd_create("p32", MFD_CLOEXEC), status = 0;
    char *const arguments[] = {(char *)(uintptr_t)"p32", NULL};
    enum rp_status result = RP_OK;
    pid_t pid;

    (void)state;
    assert_int_equal(write(fd, program, sizeof program), (ssize_t)sizeof program);
    pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fexecve(fd, arguments, environ);
        _exit(42);
    }
    for (int i = 0; i < 500; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            break;
        result = rp_process_read((uint32_t)pid, &info, &err);
        if (result)
            break;
        usleep(10000);
    }
    if (!result && WIFEXITED(status) && WEXITSTATUS(status) == 42)
        skip(); /* a kernel without 32-bit programs */
    assert_int_equal(result, RP_NOPROC);
    assert_non_null(strstr(err.text, "32-bit"));
    end(pid);
    close(fd);
}

static void test_memory(void **state)
{
    struct rp_memory memory = rp_memory_of_process((uint32_t)getpid());
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), copy[16384];

    (void)state;
    memset(two, 7, page);
    munmap(two + page, page);
    assert_int_equal(memory.read(memory.context, (uint64_t)(uintptr_t)two, copy, page), (ssize_t)page);
    assert_int_equal(copy[page - 1], 7);
    /* The second half is not there: what precedes it is read. */
    assert_int_equal(memory.read(memory.context, (uint64_t)(uintptr_t)two + 100, copy, page), (ssize_t)page - 100);
    assert_int_equal(memory.read(memory.context, (uint64_t)(uintptr_t)two + page, copy, 8), -1);
    assert_int_equal(memory.read(memory.context, 8, copy, 8), -1);
    munmap(two, page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_name_with_parentheses), cmocka_unit_test(test_threads),       cmocka_unit_test(test_thread_id_names_its_process),
        cmocka_unit_test(test_main_thread_that_left), cmocka_unit_test(test_zombie),        cmocka_unit_test(test_nobody_there),
        cmocka_unit_test(test_kernel_thread),         cmocka_unit_test(test_32bit),         cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
