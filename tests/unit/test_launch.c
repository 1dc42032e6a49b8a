/* SPDX-License-Identifier: MIT */
/* A launched command that talks without end before it is ready: whoever interrupts must not wait for a pause. The trap is the child, which must end whatever
 * the test does, so it ends itself after ten seconds. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "cli/launch.h"

static volatile sig_atomic_t stop;

static void on_alarm(int number)
{
    (void)number;
    stop = 1;
}

/* Interrupted after a tenth of a second; gives what came of it, and how long it took. */
static enum rp_status wait_for_ready(const char *script, struct rp_err *err, double *seconds)
{
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)script, NULL};
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval soon = {.it_value = {.tv_usec = 100000}};
    int kept = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct rp_launch launch;
    enum rp_status status;
    uint64_t began;
    uint32_t pid;

    assert_true(kept >= 0 && null >= 0 && dup2(null, STDERR_FILENO) >= 0);
    stop = 0;
    sigaction(SIGALRM, &action, NULL);
    status = rp_launch_start(&launch, argv, true, err);
    if (!status)
        status = rp_launch_go(&launch, err);
    setitimer(ITIMER_REAL, &soon, NULL);
    began = rp_now_ns();
    if (!status)
        status = rp_launch_wait_ready(&launch, &stop, &pid, err);
    *seconds = (double)(rp_now_ns() - began) / 1e9;
    rp_launch_finish(&launch, true);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(null);
    return status;
}

static void test_an_interrupt_does_not_wait_for_a_pause(void **state)
{
    static const char *const scripts[] = {
        "exec timeout 10 sh -c 'while :; do echo RATE x; done' >&2", /* talks */
        "exec 2>/dev/null; exec sleep 10",                           /* has closed its standard error: waited for, to say how it ends */
        "exec sleep 10",
    };

    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        struct rp_err err = {0};
        double seconds;

        assert_int_equal(wait_for_ready(scripts[i], &err, &seconds), RP_INTR);
        assert_string_equal(err.text, "interrupted before /bin/sh printed READY pid=N; nothing was recorded");
        assert_true(seconds < 5); /* at once, on a machine that is busy with other things */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_interrupt_does_not_wait_for_a_pause),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
