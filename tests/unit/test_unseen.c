/* SPDX-License-Identifier: MIT */
/* CPU time that no sample accounts for: when it is told, and that the process's clock knows threads that have ended. */
#include <pthread.h>
#include <setjmp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "fold/unseen.h"

static const struct {
    const char *about;
    struct rp_unseen unseen;
    bool matters;
} cases[] = {
    {"a thread per request: 14 244 of them, none seen", {.cpu_ns = 890000000, .samples = 0, .threads = 14244, .hz = 1000}, true},
    {"half of it seen", {.cpu_ns = 1000000000, .samples = 500, .threads = 700, .hz = 1000}, true},
    {"a steady thread on a busy machine: late timers are no short threads", {.cpu_ns = 1000000000, .samples = 600, .threads = 1, .hz = 1000}, false},
    {"all of it seen", {.cpu_ns = 1000000000, .samples = 1000, .threads = 5000, .hz = 1000}, false},
    {"more seen than used: children", {.cpu_ns = 1000000000, .samples = 2000, .threads = 5000, .hz = 1000}, false},
    {"a twentieth missing", {.cpu_ns = 1000000000, .samples = 950, .threads = 5000, .hz = 1000}, false},
    {"next to nothing used", {.cpu_ns = 5000000, .samples = 0, .threads = 5000, .hz = 1000}, false},
    {"a higher rate sees them", {.cpu_ns = 100000000, .samples = 2000, .threads = 1000, .hz = 20000}, false},
    {"no rate", {.cpu_ns = 1000000000, .samples = 0, .threads = 5000, .hz = 0}, false},
};

static void test_when_it_matters(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print_message("%s\n", cases[i].about);
        assert_int_equal(rp_unseen_matters(&cases[i].unseen), cases[i].matters);
    }
}

static void test_words(void **state)
{
    char text[256], little[8];

    (void)state;
    rp_unseen_tell(&cases[0].unseen, text, sizeof text);
    assert_non_null(strstr(text, "0.89 s"));
    assert_non_null(strstr(text, "1.00 ms"));
    assert_non_null(strstr(text, "--freq"));
    assert_true(strlen(text) + 1 < sizeof text);
    rp_unseen_tell(&cases[0].unseen, little, sizeof little);
    assert_int_equal(strlen(little), sizeof little - 1);
}

static void *work(void *unused)
{
    volatile unsigned x = 0;

    for (unsigned i = 0; i < 30000000; i++)
        x = x + i;
    return unused;
}

/* Held against getrusage, which counts ended threads too. */
static void test_ended_threads_count(void **state)
{
    const uint32_t pids[1] = {(uint32_t)getpid()}, nobody[2] = {(uint32_t)getpid(), 0x7ffffff0};
    struct rusage before, after;
    uint64_t begin, end, used_us;
    pthread_t thread;

    (void)state;
    getrusage(RUSAGE_SELF, &before);
    assert_true(rp_unseen_cpu_time(pids, 1, &begin));
    assert_int_equal(pthread_create(&thread, NULL, work, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(rp_unseen_cpu_time(pids, 1, &end));
    getrusage(RUSAGE_SELF, &after);
    used_us = (uint64_t)(after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000 +
              (uint64_t)(after.ru_utime.tv_usec + after.ru_stime.tv_usec) - (uint64_t)(before.ru_utime.tv_usec + before.ru_stime.tv_usec);
    assert_true(used_us > 5000);
    assert_in_range((end - begin) / 1000, used_us * 8 / 10, used_us + 1000);
    assert_false(rp_unseen_cpu_time(nobody, 2, &end));
}

/* Held against wait4, which tells what the kernel accounted; ended and waited for, ended and not yet, and still there. */
static void test_children_count(void **state)
{
    const uint32_t me = (uint32_t)getpid();
    uint64_t begin = rp_unseen_children_time(me), lived, ended, waited, used_ns;
    struct rusage usage;
    int up[2];
    char word;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(up), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        while (clock() < CLOCKS_PER_SEC / 5)
            continue;
        (void)!write(up[1], "x", 1);
        pause();
    }
    assert_int_equal(read(up[0], &word, 1), 1);
    lived = rp_unseen_children_time(me) - begin;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
    ended = rp_unseen_children_time(me) - begin;
    assert_int_equal(wait4(pid, NULL, 0, &usage), pid);
    waited = rp_unseen_children_time(me) - begin;
    used_ns = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u + (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
    assert_in_range(lived, 190000000, used_ns);
    assert_in_range(ended, lived, used_ns + 20000000);
    assert_in_range(waited, used_ns - 20000000, used_ns + 20000000); /* two clock ticks */
    assert_true(rp_unseen_children_matter(waited, waited - 1));
    assert_false(rp_unseen_children_matter(waited, waited));
    assert_false(rp_unseen_children_matter(99999999, 0));
    close(up[0]);
    close(up[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_when_it_matters),
        cmocka_unit_test(test_children_count),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_ended_threads_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
