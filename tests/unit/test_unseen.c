/* SPDX-License-Identifier: MIT */
/* CPU time that no sample accounts for: when it is told, and that the process's clock knows threads that have ended. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_when_it_matters),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_ended_threads_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
