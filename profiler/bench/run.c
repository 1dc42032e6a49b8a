/* SPDX-License-Identifier: MIT */
/* See run.h. The child has a process group of its own, so that Ctrl-C reaches us alone, and so that all it started can be ended with it; it dies with us.
 *
 * The trap is waiting for the end of its output: a grandchild that keeps the pipe open would be waited for too. So the child's end counts, told by a
 * pidfd, and what is in the pipes then is read out. */
#include "bench/run.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/limits.h"
#include "base/parse.h"

enum { POLL_MS = 100, PROBLEM_BYTES = 160, LAST_READS = 64 /* more than the largest pipe holds */ };

/* A pipe and the end of what came through it. */
struct stream {
    int fd, child; /* our end, the child's */
    char text[RP_BENCH_OUTPUT_MAX];
    size_t length;
};

struct process {
    pid_t pid;
    int pidfd;
    struct stream *out, *err;
    int status;
    struct rusage usage;
    double secs;
};

/* Keeps the last half of what would be too much. False: the end. */
static bool read_some(struct stream *s)
{
    ssize_t got;

    if (s->length == sizeof s->text) {
        s->length = sizeof s->text / 2;
        memmove(s->text, s->text + sizeof s->text - s->length, s->length);
    }
    got = read(s->fd, s->text + s->length, sizeof s->text - s->length);
    if (got > 0)
        s->length += (size_t)got;
    return got > 0 || (got < 0 && errno == EINTR);
}

static _Noreturn void run_child(const struct rp_run_spec *spec, int out, int err, int failed)
{
    int nothing = open("/dev/null", O_RDONLY), problem;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL); /* ignored by us alone */
    if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0)
        execv(spec->file, spec->argv);
    problem = errno;
    (void)rp_write_full(failed, &problem, sizeof problem);
    _exit(127); /* the child, not the program */
}

static enum rp_status open_streams(struct process *p, struct rp_err *err)
{
    struct stream *streams[] = {p->out, p->err};

    for (size_t i = 0; i < 2; i++) {
        int ends[2];

        if (pipe2(ends, O_CLOEXEC))
            return rp_fail(err, RP_FAILED, "no pipe for a run: %s", strerror(errno));
        streams[i]->fd = ends[0];
        streams[i]->child = ends[1];
        (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    }
    return RP_OK;
}

static enum rp_status start(struct process *p, const struct rp_run_spec *spec, struct rp_err *err)
{
    enum rp_status status = open_streams(p, err);
    int gate[2] = {-1, -1}, problem = 0;
    ssize_t got;

    if (!status && pipe2(gate, O_CLOEXEC))
        status = rp_fail(err, RP_FAILED, "no pipe for a run: %s", strerror(errno));
    if (!status)
        p->pid = fork();
    if (!status && p->pid < 0) {
        p->pid = 0;
        status = rp_fail(err, RP_FAILED, "cannot start %s: fork: %s", spec->file, strerror(errno));
    }
    if (!status && !p->pid)
        run_child(spec, p->out->child, p->err->child, gate[1]);
    rp_close(&p->out->child);
    rp_close(&p->err->child);
    rp_close(&gate[1]);
    if (!status) {
        (void)setpgid(p->pid, p->pid);
        p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
        if (p->pidfd >= 0)
            (void)fcntl(p->pidfd, F_SETFD, FD_CLOEXEC);
        do {
            got = read(gate[0], &problem, sizeof problem);
        } while (got < 0 && errno == EINTR);
        if (got == sizeof problem)
            status = rp_fail(err, RP_FAILED, "cannot run %s: %s", spec->file, strerror(problem));
    }
    rp_close(&gate[0]);
    return status;
}

static bool has_ended(struct process *p)
{
    pid_t got = wait4(p->pid, &p->status, WNOHANG, &p->usage);

    if (got == p->pid)
        p->pid = 0;
    return !p->pid;
}

/* What is in the pipe when the child has ended; no more, for what it left behind may go on writing for ever. */
static void read_out(struct stream *s)
{
    for (int i = 0; i < LAST_READS && s->fd >= 0 && read_some(s); i++)
        continue;
}

/* Until the child ends. A stream that ended is polled no more: poll passes over -1. */
static enum rp_status watch(struct process *p, const struct rp_run_spec *spec, uint64_t begin_ns, struct rp_err *err)
{
    while (!has_ended(p)) {
        struct pollfd fds[] = {{.fd = p->pidfd, .events = POLLIN}, {.fd = p->out->fd, .events = POLLIN}, {.fd = p->err->fd, .events = POLLIN}};

        if (*spec->stop)
            return rp_fail(err, RP_INTR, "interrupted");
        if ((double)(rp_now_ns() - begin_ns) / 1e9 > spec->timeout_secs)
            return rp_fail(err, RP_FAILED, "it ran longer than %g s and was ended; --timeout allows more", spec->timeout_secs);
        if (poll(fds, 3, p->pidfd < 0 ? 1 : POLL_MS) < 0)
            continue;
        if (fds[1].revents && !read_some(p->out))
            rp_close(&p->out->fd);
        if (fds[2].revents && !read_some(p->err))
            rp_close(&p->err->fd);
    }
    p->secs = (double)(rp_now_ns() - begin_ns) / 1e9;
    read_out(p->out);
    read_out(p->err);
    return RP_OK;
}

/* The last line that is not empty, cut and without control characters. */
static void last_words(const struct stream *s, char *out, size_t size)
{
    size_t end = s->length, begin, n = 0;

    while (end && (unsigned char)s->text[end - 1] <= ' ')
        end--;
    for (begin = end; begin && s->text[begin - 1] != '\n'; begin--)
        continue;
    for (; begin < end && n + 1 < size; begin++)
        out[n++] = (unsigned char)s->text[begin] < ' ' || s->text[begin] == 127 ? '?' : s->text[begin];
    out[n] = '\0';
}

static enum rp_status check_end(const struct process *p, struct rp_err *err)
{
    char words[PROBLEM_BYTES];
    const char *said;

    if (WIFEXITED(p->status) && !WEXITSTATUS(p->status))
        return RP_OK;
    last_words(p->err, words, sizeof words);
    said = *words ? ": " : "";
    if (WIFSIGNALED(p->status))
        return rp_fail(err, RP_FAILED, "it was ended by signal %d%s%s", WTERMSIG(p->status), said, words);
    return rp_fail(err, RP_FAILED, "it ended with status %d%s%s", WEXITSTATUS(p->status), said, words);
}

static double seconds_of(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static bool find_rate(const struct stream *out, struct rp_rate_line *rate)
{
    struct rp_cursor c = rp_cursor_of(out->text, out->length);
    struct rp_rate_line one;
    bool found = false;
    const char *line;
    size_t length;

    while (rp_cursor_line(&c, &line, &length)) {
        if (rp_rate_line_parse(line, length, &one)) {
            *rate = one;
            found = true;
        }
    }
    return found;
}

static double rate_of(double calls, double secs)
{
    return calls > 0 && secs > 0 ? calls / secs : NAN;
}

double rp_run_undisturbed(const struct rp_bench_run *run, bool one_cpu)
{
    double cpu = run->thread_secs > 0 && !one_cpu ? run->thread_secs : run->process_secs;

    return run->wall_secs > 0 ? cpu / run->wall_secs : 0;
}

static void fill(struct rp_bench_run *run, const struct rp_rate_line *rate, bool one_cpu)
{
    double undisturbed;

    run->calls = rate->calls;
    run->rows = rate->rows;
    run->wall_secs = rate->secs;
    run->process_secs = rate->cpu_secs;
    run->thread_secs = rate->thread_cpu_secs;
    run->rate[RP_RATE_WALL] = rate_of(rate->calls, rate->secs);
    run->rate[RP_RATE_PROCESS] = rate_of(rate->calls, rate->cpu_secs);
    run->rate[RP_RATE_THREAD] = rate_of(rate->calls, rate->thread_cpu_secs);
    run->voluntary = rate->nvcsw;
    run->involuntary = rate->nivcsw;
    undisturbed = rp_run_undisturbed(run, one_cpu);
    run->contended = undisturbed > 0 && undisturbed < RP_CONTENDED;
}

static enum rp_status conclude(const struct process *p, const struct rp_run_spec *spec, struct rp_bench_run *run, struct rp_err *err)
{
    double cpu = seconds_of(&p->usage.ru_utime) + seconds_of(&p->usage.ru_stime);
    struct rp_rate_line rate = {0};

    if (check_end(p, err))
        return err->status;
    if (!find_rate(p->out, &rate)) {
        if (!(spec->calls > 0))
            return rp_fail(err, RP_FAILED, "it printed no line RATE calls=N secs=S on its standard output; --calls N says how many calls it makes");
        rate = (struct rp_rate_line){.calls = spec->calls, .secs = p->secs, .cpu_secs = cpu};
    }
    if (!rate.has_switches) {
        rate.nvcsw = (uint64_t)p->usage.ru_nvcsw;
        rate.nivcsw = (uint64_t)p->usage.ru_nivcsw;
    }
    fill(run, &rate, spec->one_cpu);
    run->whole_wall_secs = p->secs;
    run->whole_cpu_secs = cpu;
    return RP_OK;
}

/* Whatever it left behind goes, too. */
static void finish(struct process *p, pid_t group)
{
    if (group > 0)
        (void)kill(-group, SIGKILL);
    while (p->pid > 0 && waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    rp_close(&p->pidfd);
    rp_close(&p->out->fd);
    rp_close(&p->err->fd);
}

enum rp_status rp_run_once(const struct rp_run_spec *spec, struct rp_bench_run *run, struct rp_err *err)
{
    struct stream *streams = rp_calloc(2, sizeof *streams);
    struct process p = {.pidfd = -1};
    uint64_t begin_ns = rp_now_ns();
    enum rp_status status;
    pid_t group;

    if (!streams)
        return rp_fail_nomem(err);
    p.out = &streams[0];
    p.err = &streams[1];
    p.out->fd = p.out->child = p.err->fd = p.err->child = -1;
    status = start(&p, spec, err);
    group = p.pid;
    if (!status)
        status = watch(&p, spec, begin_ns, err);
    if (!status)
        status = conclude(&p, spec, run, err);
    finish(&p, group);
    rp_free(streams);
    return status;
}
