/* SPDX-License-Identifier: MIT */
/* Our stacks of real programs against libunwind's and libdw's of the same snapshots: a C program on the distribution's stripped libsqlite3, CPython with sqlite3.
 * Where libunwind reaches a root (a row without a return address) ours must be equal, and where both others do, all three; at most 1 in 1 000 may
 * differ.
 *
 * The trap: where a file has no row libunwind guesses by frame pointer and may skip a caller in silence. Programs without JIT have rows everywhere but in a
 * few instructions of assembly, so here that is within the one in a thousand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sample/sampler.h"
#include "unwind/unwind.h"

enum { WANTED = 1200, ROUNDS = 200, ROUND_MS = 100 };

struct tally {
    struct rp_images images;
    struct rp_space space;
    struct rp_unwinder *unwinder;
    struct rp_walk ours, theirs, third; /* third: libdw */
    unsigned samples, complete, unwind_root, equal, different, three, three_equal;
};

static void print_both(const struct tally *t)
{
    fprintf(stderr, "ours (end %d)%*slibunwind\n", (int)t->ours.end, 20, "");
    for (uint32_t i = 0; i < 12 && (i < t->ours.n || i < t->theirs.n); i++) {
        const struct rp_walk_frame *f = i < t->ours.n ? &t->ours.frames[i] : NULL;

        fprintf(stderr, "  %16lx %16lx %s+%lx%s\n", f ? f->pc : 0, i < t->theirs.n ? t->theirs.frames[i].pc : 0,
                f ? t->images.at.at[f->where.image]->path : "", f ? f->where.addr : 0, f && f->by_frame_pointer ? " by frame pointer" : "");
    }
}

static bool equal(const struct rp_walk *a, const struct rp_walk *b)
{
    for (uint32_t i = 0; i < a->n && i < b->n; i++)
        if (a->frames[i].pc != b->frames[i].pc)
            return false;
    return a->n == b->n;
}

static enum rp_status on_event(void *context, const struct rp_event *event, struct rp_err *err)
{
    struct tally *t = context;
    enum rp_status status;

    if (event->kind == RP_EVENT_MMAP) {
        const struct rp_image_key key = {event->pid,      event->u.mmap.start, event->u.mmap.end, event->u.mmap.offset,
                                         event->u.mmap.dev, event->u.mmap.ino,   event->u.mmap.path, false, NULL, 0};

        return rp_space_map(&t->space, &t->images, &key, err);
    }
    if (event->kind != RP_EVENT_SAMPLE || !event->u.sample.has_user)
        return RP_OK;
    status = rp_unwind(t->unwinder, &t->space, &event->u.sample, &t->ours, err);
    if (!status)
        status = rp_unwind_libunwind(t->unwinder, &t->space, &event->u.sample, &t->theirs, err);
    if (!status)
        status = rp_unwind_libdw(t->unwinder, &t->space, &event->u.sample, &t->third, err);
    if (status)
        return status;
    t->samples++;
    t->complete += t->ours.end == RP_WALK_ROOT;
    if (t->theirs.end != RP_WALK_ROOT)
        return RP_OK;
    t->unwind_root++;
    if (t->third.end == RP_WALK_ROOT) {
        t->three++;
        t->three_equal += equal(&t->ours, &t->theirs) && equal(&t->ours, &t->third);
    }
    if (t->ours.end == RP_WALK_ROOT && equal(&t->ours, &t->theirs))
        t->equal++;
    else if (t->different++ < 5)
        print_both(t);
    return RP_OK;
}

/* Starts `argv` and waits for READY on its stderr. */
static pid_t spawn(const char *const argv[], int *stderr_fd)
{
    int channel[2];
    char text[256] = "";
    size_t n = 0;
    pid_t pid;

    assert_int_equal(pipe(channel), 0);
    pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(null, 1);
        dup2(channel[1], 2);
        close(channel[0]);
        execv(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(channel[1]);
    while (n < sizeof text - 1 && !strstr(text, "READY")) {
        ssize_t got = read(channel[0], text + n, sizeof text - 1 - n);

        if (got <= 0)
            fail_msg("%s did not begin: %s", argv[0], text);
        n += (size_t)got;
    }
    *stderr_fd = channel[0]; /* stays open: the program would die of SIGPIPE */
    return pid;
}

/* False: sampling is not permitted here. */
static bool sample(struct tally *t, pid_t pid)
{
    uint32_t id = (uint32_t)pid;
    struct rp_sampler_options options = {.pids = &id, .npids = 1, .hz = 2003, .stack_bytes = 32768};
    struct rp_sampler *s = NULL;
    struct rp_err err = {0};
    enum rp_status status = rp_sampler_perf_new(&options, &s, &err);
    bool ended = false;

    if (status) {
        print_message("skipped: %s\n", err.text);
        return false;
    }
    memset(t, 0, sizeof *t);
    t->space.pid = id;
    assert_int_equal(rp_images_init(&t->images, &err), RP_OK);
    assert_int_equal(rp_unwinder_new(&t->images, &t->unwinder, &err), RP_OK);
    assert_int_equal(rp_walk_init(&t->ours, &err), RP_OK);
    assert_int_equal(rp_walk_init(&t->theirs, &err), RP_OK);
    assert_int_equal(rp_walk_init(&t->third, &err), RP_OK);
    assert_int_equal(rp_space_read(&t->space, &t->images, &err), RP_OK);
    assert_int_equal(s->ops->start(s, &err), RP_OK);
    for (unsigned round = 0; round < ROUNDS && t->samples < WANTED && !ended; round++) {
        assert_int_equal(s->ops->wait(s, ROUND_MS, &ended, &err), RP_OK);
        assert_int_equal(s->ops->drain(s, false, on_event, t, &err), RP_OK);
    }
    s->ops->stop(s);
    s->ops->free(s);
    return true;
}

static void tally_release(struct tally *t)
{
    rp_walk_release(&t->ours);
    rp_walk_release(&t->theirs);
    rp_walk_release(&t->third);
    rp_unwinder_free(t->unwinder);
    rp_space_release(&t->space);
    rp_images_release(&t->images);
}

static void hold_against_libunwind(const char *const argv[])
{
    struct tally t;
    int stderr_fd;
    pid_t pid = spawn(argv, &stderr_fd);
    bool sampled = sample(&t, pid);

    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(stderr_fd);
    if (!sampled)
        skip();
    print_message("%u samples: %u complete; libunwind reached the root of %u: %u equal, %u different; libdw, too, of %u: %u equal in all three\n",
                  t.samples, t.complete, t.unwind_root, t.equal, t.different, t.three, t.three_equal);
    assert_in_range(t.samples, 300, UINT32_MAX);
    assert_in_range(t.unwind_root, t.samples / 2, t.samples);
    assert_in_range(t.different, 0, t.unwind_root / 1000);
    assert_in_range(t.three - t.three_equal, 0, t.three / 1000);
    tally_release(&t);
}

static void test_c(void **state)
{
    const char *rowload = getenv("ROWLOAD");
    const char *const argv[] = {rowload, "get", "--op", "all", "--limit", "20", NULL};

    (void)state;
    if (!rowload || access(rowload, X_OK)) {
        print_message("skipped: ROWLOAD does not name the workload program\n");
        skip();
    }
    hold_against_libunwind(argv);
}

static void test_cpython(void **state)
{
    const char *const argv[] = {"/usr/bin/python3", "-c",
                          "import sqlite3, sys\n"
                          "db = sqlite3.connect(':memory:')\n"
                          "db.execute('create table t(a integer primary key, b text, c real)')\n"
                          "db.executemany('insert into t values(?,?,?)', [(i, 'n%d' % i, i * 1.5) for i in range(1000)])\n"
                          "def f(n):\n"
                          "    return f(n - 1) if n else sum(r[0] for r in db.execute('select a,b,c from t limit 20'))\n"
                          "for i in range(20000):\n"
                          "    if i == 2000: print('READY', file=sys.stderr, flush=True)\n"
                          "    f(5)\n"
                          "while True: f(5)\n",
                          NULL};

    (void)state;
    if (access(argv[0], X_OK)) {
        print_message("skipped: there is no /usr/bin/python3\n");
        skip();
    }
    hold_against_libunwind(argv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_c), cmocka_unit_test(test_cpython)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
