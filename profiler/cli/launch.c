/* SPDX-License-Identifier: MIT */
/* See launch.h.
 *
 * The trap is the child that outlives us. With --ready its stderr is a pipe, and if we were the ones who read it, the child would die of SIGPIPE on
 * its first word after our end. So a relay of its own copies that pipe to our stderr for as long as anybody writes, and tells us the lines that we
 * listen for: READY, and RATE. It never waits for us. */
#include "cli/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/limits.h"
#include "base/parse.h"

enum { POLL_MS = 100, LINES_AT_ONCE = 1000, LAST_WORDS_MS = 2000, END_TRIES = 40, END_TRY_NS = 50000000 };

bool rp_ready_line(const char *line, size_t length, uint32_t *pid)
{
    struct rp_cursor c = rp_cursor_of(line, length);
    uint64_t n;

    if (length && line[length - 1] == '\r')
        c.end--;
    if (!rp_cursor_take(&c, "READY pid=") || !rp_cursor_u64(&c, &n) || n < 1 || n > INT32_MAX || (!rp_cursor_done(&c) && *c.at != ' '))
        return false;
    *pid = (uint32_t)n;
    return true;
}

/* One write each, shorter than PIPE_BUF: they never mix. A full pipe is nobody listening any more. */
static bool pass_on(int to, const char *line, size_t length)
{
    struct rp_said said = {.at_ns = rp_now_ns()};
    uint32_t pid;

    if (!rp_ready_line(line, length, &pid) && !(length > 5 && !memcmp(line, "RATE ", 5)))
        return true;
    memcpy(said.text, line, length < sizeof said.text ? length : sizeof said.text - 1);
    return write(to, &said, sizeof said) == sizeof said || errno == EAGAIN;
}

/* Copies `from` to stderr until its last writer is gone, and the lines we listen for to `to`. Runs in a process of its own. */
static void relay(int from, int to)
{
    char piece[4096], line[RP_SAID_MAX];
    size_t length = 0;
    ssize_t got;

    signal(SIGINT, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    /* Whoever reads our result must see its end when rowprof ends, not when the child does. */
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    close(STDIN_FILENO);
    (void)fcntl(to, F_SETFL, O_NONBLOCK);
    while ((got = read(from, piece, sizeof piece)) > 0 || (got < 0 && errno == EINTR)) {
        if (got < 0)
            continue;
        (void)rp_write_full(STDERR_FILENO, piece, (size_t)got);
        for (ssize_t i = 0; i < got && to >= 0; i++) {
            if (piece[i] != '\n') {
                if (length < sizeof line)
                    line[length++] = piece[i];
                continue;
            }
            if (!pass_on(to, line, length))
                rp_close(&to);
            length = 0;
        }
    }
    _exit(0);
}

/* Only what the child needs stays open across execve: the rest is close-on-exec. */
static void run_child(char **argv, int gate, int exec_error, int err_to)
{
    char go = 0;
    int failed;

    while (read(gate, &go, 1) < 0 && errno == EINTR)
        continue;
    /* The gate was closed without a word: rowprof gave up. */
    if (go != 'g')
        _exit(127);
    signal(SIGXFSZ, SIG_DFL); /* ignored by us alone */
    if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0 || (err_to >= 0 && (dup2(err_to, STDERR_FILENO) < 0 || dup2(err_to, STDOUT_FILENO) < 0))) {
        failed = errno;
    } else {
        execvp(argv[0], argv);
        failed = errno;
    }
    (void)rp_write_full(exec_error, &failed, sizeof failed);
    _exit(127);
}

/* The relay is a grandchild, so that it is nobody's zombie. */
static bool start_relay(int from, int to, const int *others, size_t n)
{
    pid_t between = fork();

    if (between < 0)
        return false;
    if (!between) {
        for (size_t i = 0; i < n; i++)
            close(others[i]);
        if (fork() == 0)
            relay(from, to);
        _exit(0);
    }
    return waitpid(between, NULL, 0) == between;
}

enum rp_status rp_launch_start(struct rp_launch *launch, char **argv, bool ready, struct rp_err *err)
{
    int gate[2] = {-1, -1}, error[2] = {-1, -1}, out[2] = {-1, -1}, told[2] = {-1, -1};
    enum rp_status status = RP_OK;

    *launch = (struct rp_launch){.gate = -1, .exec_error = -1, .ready = -1, .program = argv[0]};
    if (pipe2(gate, O_CLOEXEC) || pipe2(error, O_CLOEXEC) || (ready && (pipe2(out, O_CLOEXEC) || pipe2(told, O_CLOEXEC)))) {
        status = rp_fail(err, RP_FAILED, "cannot launch %s: no pipe: %s", argv[0], strerror(errno));
        goto done;
    }
    launch->pid = fork();
    if (launch->pid < 0) {
        launch->pid = 0;
        status = rp_fail(err, RP_FAILED, "cannot launch %s: fork: %s", argv[0], strerror(errno));
        goto done;
    }
    if (!launch->pid) {
        close(gate[1]);
        run_child(argv, gate[0], error[1], out[1]);
    }
    if (ready && !start_relay(out[0], told[1], (int[]){gate[1], error[0], error[1], out[1], told[0]}, 5)) {
        status = rp_fail(err, RP_FAILED, "cannot launch %s: fork: %s", argv[0], strerror(errno));
        goto done;
    }
    launch->gate = gate[1];
    launch->exec_error = error[0];
    launch->ready = told[0];
    gate[1] = error[0] = told[0] = -1;
done:
    for (size_t i = 0; i < 2; i++) {
        rp_close(&gate[i]);
        rp_close(&error[i]);
        rp_close(&out[i]);
        rp_close(&told[i]);
    }
    return status;
}

enum rp_status rp_launch_go(struct rp_launch *launch, struct rp_err *err)
{
    int failed = 0;
    ssize_t got;

    (void)rp_write_full(launch->gate, "g", 1);
    rp_close(&launch->gate);
    do {
        got = read(launch->exec_error, &failed, sizeof failed);
    } while (got < 0 && errno == EINTR);
    rp_close(&launch->exec_error);
    if (got != sizeof failed)
        return RP_OK;
    (void)waitpid(launch->pid, NULL, 0);
    launch->pid = 0;
    return rp_fail(err, failed == ENOENT ? RP_NOTFOUND : RP_FAILED, "cannot run %s: %s", launch->program,
                   failed == ENOENT ? "there is no such program in $PATH or at this place" : strerror(failed));
}

/* True when the child ended; `how` is the sentence's end. */
static bool child_ended(struct rp_launch *launch, char *how, size_t size)
{
    int status;

    if (waitpid(launch->pid, &status, WNOHANG) != launch->pid)
        return false;
    if (WIFSIGNALED(status))
        snprintf(how, size, "was ended by signal %d", WTERMSIG(status));
    else
        snprintf(how, size, "ended with status %d", WEXITSTATUS(status));
    launch->pid = 0;
    return true;
}

enum answer { SAID_READY, SAID_MORE, SILENT, NEVER };

/* Nothing before READY is kept: it was not yet steady. */
static enum answer listen_once(struct rp_launch *launch, int timeout_ms, uint32_t *pid)
{
    struct pollfd fd = {.fd = launch->ready, .events = POLLIN};
    struct rp_said said, *kept;
    bool ready;

    if (launch->ready < 0 || poll(&fd, 1, timeout_ms) != 1)
        return SILENT;
    if (!(fd.revents & POLLIN) || read(launch->ready, &said, sizeof said) != sizeof said)
        return NEVER;
    said.text[sizeof said.text - 1] = '\0';
    ready = rp_ready_line(said.text, strlen(said.text), pid);
    if ((ready || launch->said.n) && launch->said.n < RP_RATES_MAX) {
        kept = rp_vec_add(&launch->said);
        if (kept)
            *kept = said;
    }
    return ready ? SAID_READY : SAID_MORE;
}

/* NEVER: the relay ended, so nobody holds the child's standard error any more, and all that was said has been passed on. A child that says RATE again and
 * again does not keep us from stopping, nor from the timeout. */
static enum answer read_ready(struct rp_launch *launch, int timeout_ms, const volatile sig_atomic_t *stop, uint32_t *pid)
{
    uint64_t deadline = rp_now_ns() + (uint64_t)timeout_ms * 1000000u, now;
    enum answer answer = SILENT;

    while (!*stop && (now = rp_now_ns()) < deadline) {
        uint64_t left_ms = (deadline - now + 999999) / 1000000;

        answer = listen_once(launch, left_ms < POLL_MS ? (int)left_ms : POLL_MS, pid);
        if (answer == SAID_READY || answer == NEVER)
            return answer;
    }
    return SILENT;
}

void rp_launch_listen(struct rp_launch *launch)
{
    enum answer answer = SAID_MORE;
    uint32_t pid;

    for (int i = 0; i < LINES_AT_ONCE && (answer == SAID_READY || answer == SAID_MORE); i++)
        answer = listen_once(launch, 0, &pid);
}

static enum rp_status fail_ended(const struct rp_launch *launch, const char *how, struct rp_err *err)
{
    return rp_fail(err, RP_FAILED, "%s %s before it printed a line READY pid=N on its standard error; without --ready it is watched from its start",
                   launch->program, how);
}

static enum rp_status fail_stopped(const struct rp_launch *launch, struct rp_err *err)
{
    return rp_fail(err, RP_INTR, "interrupted before %s printed READY pid=N; nothing was recorded", launch->program);
}

/* The relay ended and the line has not come: the child ended, is about to, or closed its standard error. */
static enum rp_status fail_silent(struct rp_launch *launch, const volatile sig_atomic_t *stop, struct rp_err *err)
{
    char how[64];

    for (int i = 0; i < END_TRIES && !*stop; i++) {
        if (child_ended(launch, how, sizeof how))
            return fail_ended(launch, how, err);
        nanosleep(&(struct timespec){.tv_nsec = END_TRY_NS}, NULL);
    }
    if (*stop)
        return fail_stopped(launch, err);
    return rp_fail(err, RP_FAILED, "%s closed its standard error before it printed a line READY pid=N on it", launch->program);
}

enum rp_status rp_launch_wait_ready(struct rp_launch *launch, const volatile sig_atomic_t *stop, uint32_t *pid, struct rp_err *err)
{
    while (!*stop) {
        enum answer answer = read_ready(launch, POLL_MS, stop, pid);
        char how[64];

        if (answer == SAID_READY)
            return RP_OK;
        if (answer == NEVER)
            return fail_silent(launch, stop, err);
        if (!child_ended(launch, how, sizeof how))
            continue;
        /* Its last words may still be on their way through the relay. */
        answer = read_ready(launch, LAST_WORDS_MS, stop, pid);
        if (answer == SAID_READY)
            return rp_fail(err, RP_NOPROC, "%s %s right after it said READY", launch->program, how);
        return *stop ? fail_stopped(launch, err) : fail_ended(launch, how, err);
    }
    return fail_stopped(launch, err);
}

static bool gone_within(pid_t pid)
{
    for (int i = 0; i < END_TRIES; i++) {
        if (waitpid(pid, NULL, WNOHANG) != 0)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = END_TRY_NS}, NULL);
    }
    return false;
}

void rp_launch_finish(struct rp_launch *launch, bool end_child)
{
    bool never_let_go = launch->gate >= 0;

    rp_close(&launch->gate);
    rp_close(&launch->exec_error);
    rp_close(&launch->ready);
    rp_vec_release(&launch->said);
    /* Whoever traced it may have taken its end already: then the number can be another's, and nobody is to be killed. */
    if (launch->pid && (never_let_go || end_child) && waitpid(launch->pid, NULL, WNOHANG) == 0) {
        if (!never_let_go)
            kill(launch->pid, SIGTERM);
        if (!gone_within(launch->pid)) {
            kill(launch->pid, SIGKILL);
            (void)waitpid(launch->pid, NULL, 0);
        }
    }
    launch->pid = 0;
}
