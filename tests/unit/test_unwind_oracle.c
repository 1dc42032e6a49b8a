/* SPDX-License-Identifier: MIT */
/* Our stacks of real programs against libdw's and libunwind's of the same snapshots, taken by perf_event: a C program on the distribution's stripped
 * libsqlite3, CPython with sqlite3, and (libdw alone) Node with node:sqlite.
 *
 * Where another reaches the root ours must be equal, and where both do, all three; at most 1 in 1 000 may differ. Not counted as different, since libdw is wrong
 * there by construction (test_unwind_steps.c and the same single steps over Node hold the truth): code without rows at the leaf whose frame is not
 * set up yet, or never will be. libdw follows rbp there, which is still the caller's, and so leaves the caller out: its stack is ours without our second
 * frame, which stands in code without a row or was reached from it. In single steps of Node that was up to 6 % of the steps, and ours was wrong in at most
 * 100 of 300 000: code that has pushed temporaries over the return address and keeps no frame loses the caller, too.
 *
 * The traps: libdwfl calls it the end without an error also where a register is missing (saved in the leaf's epilogue below rsp, so not in the
 * copy; or rbx, by elfutils' table of preserved registers). A root is only where its own row has no return address. And where a file has no row libunwind
 * guesses by frame pointer and may skip a caller in silence: programs without JIT have rows everywhere but in a few instructions of assembly, so
 * there that is within the one in a thousand. */
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

/* One of the other engines, and how often it agreed. */
struct rival {
    const char *name;
    enum rp_status (*walk_by)(struct rp_unwinder *, struct rp_space *, const struct rp_snapshot *, struct rp_walk *, struct rp_err *);
    struct rp_walk walk;
    unsigned root, equal, caller_left_out, different;
    bool agrees; /* on the sample at hand */
};

struct tally {
    struct rp_images images;
    struct rp_space space;
    struct rp_unwinder *unwinder;
    struct rp_walk ours;
    struct rival rivals[2];
    unsigned nrivals, samples, complete, cut, both_root, both_equal;
};

static void print_both(const struct tally *t, const struct rival *rival)
{
    const struct rp_walk *theirs = &rival->walk;

    fprintf(stderr, "ours (end %d)%*s%s\n", (int)t->ours.end, 20, "", rival->name);
    for (uint32_t i = 0; i < 12 && (i < t->ours.n || i < theirs->n); i++) {
        const struct rp_walk_frame *f = i < t->ours.n ? &t->ours.frames[i] : NULL;

        fprintf(stderr, "  %16lx %16lx %s+%lx%s\n", f ? f->pc : 0, i < theirs->n ? theirs->frames[i].pc : 0,
                f ? t->images.at.at[f->where.image]->path : "", f ? f->where.addr : 0, f && f->by_frame_pointer ? " by frame pointer" : "");
    }
}

/* Equal from frame `ours_from` of ours and `theirs_from` of theirs on. */
static bool equal_from(const struct rp_walk *ours, uint32_t ours_from, const struct rp_walk *theirs, uint32_t theirs_from)
{
    if (ours->n - ours_from != theirs->n - theirs_from)
        return false;
    for (uint32_t i = ours_from; i < ours->n; i++)
        if (ours->frames[i].pc != theirs->frames[i - ours_from + theirs_from].pc)
            return false;
    return true;
}

static void compare(struct tally *t, struct rival *rival, bool libdw)
{
    const struct rp_walk *ours = &t->ours;
    bool root = ours->end == RP_WALK_ROOT;

    rival->agrees = false;
    if (rival->walk.end != RP_WALK_ROOT)
        return;
    rival->root++;
    rival->agrees = root && equal_from(ours, 0, &rival->walk, 0);
    if (rival->agrees)
        rival->equal++;
    else if (libdw && root && ours->n > 2 && ours->frames[1].by_frame_pointer && equal_from(ours, 2, &rival->walk, 1))
        rival->caller_left_out++;
    else if (rival->different++ < 5)
        print_both(t, rival);
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
    for (unsigned i = 0; i < t->nrivals && !status; i++)
        status = t->rivals[i].walk_by(t->unwinder, &t->space, &event->u.sample, &t->rivals[i].walk, err);
    if (status)
        return status;
    t->samples++;
    t->complete += t->ours.end == RP_WALK_ROOT;
    t->cut += t->ours.end == RP_WALK_STACK_SHORT;
    if (t->ours.end != RP_WALK_ROOT && t->samples - t->complete < 6)
        print_both(t, &t->rivals[0]);
    for (unsigned i = 0; i < t->nrivals; i++)
        compare(t, &t->rivals[i], i == 0);
    if (t->nrivals == 2 && t->rivals[0].walk.end == RP_WALK_ROOT && t->rivals[1].walk.end == RP_WALK_ROOT) {
        t->both_root++;
        t->both_equal += t->rivals[0].agrees && t->rivals[1].agrees;
    }
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
static bool sample(struct tally *t, pid_t pid, bool has_jit)
{
    static const struct rival rivals[2] = {{.name = "libdw", .walk_by = rp_unwind_libdw}, {.name = "libunwind", .walk_by = rp_unwind_libunwind}};
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
    *t = (struct tally){.rivals = {rivals[0], rivals[1]}, .nrivals = has_jit ? 1 : 2};
    t->space.pid = id;
    assert_int_equal(rp_images_init(&t->images, &err), RP_OK);
    assert_int_equal(rp_unwinder_new(&t->images, &t->unwinder, &err), RP_OK);
    assert_int_equal(rp_walk_init(&t->ours, &err), RP_OK);
    for (unsigned i = 0; i < t->nrivals; i++)
        assert_int_equal(rp_walk_init(&t->rivals[i].walk, &err), RP_OK);
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
    for (unsigned i = 0; i < t->nrivals; i++)
        rp_walk_release(&t->rivals[i].walk);
    rp_unwinder_free(t->unwinder);
    rp_space_release(&t->space);
    rp_images_release(&t->images);
}

/* `incomplete_per_10k`: how many of 10 000 stacks may end without a root. */
static void hold_against_others(const char *const argv[], unsigned incomplete_per_10k, bool has_jit)
{
    struct tally t;
    int stderr_fd;
    pid_t pid = spawn(argv, &stderr_fd);
    bool sampled = sample(&t, pid, has_jit);
    const struct rival *libdw = &t.rivals[0];

    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(stderr_fd);
    if (!sampled)
        skip();
    print_message("%u samples: %u complete, %u cut\n", t.samples, t.complete, t.cut);
    assert_in_range(t.samples, 300, UINT32_MAX);
    assert_in_range(t.samples - t.complete, 0, t.samples * incomplete_per_10k / 10000);
    for (unsigned i = 0; i < t.nrivals; i++) {
        const struct rival *r = &t.rivals[i];

        print_message("%s reached the root of %u: %u equal, %u without our second frame, %u different\n", r->name, r->root, r->equal, r->caller_left_out,
                      r->different);
        assert_in_range(r->root, t.samples / 2, t.samples);
        assert_in_range(r->different, 0, r->root / 1000);
    }
    assert_in_range(libdw->caller_left_out, 0, has_jit ? libdw->root / 5 : 0);
    assert_in_range(t.both_root - t.both_equal, 0, t.both_root / 1000);
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
    hold_against_others(argv, 10, false);
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
    hold_against_others(argv, 100, false);
}

static void test_node(void **state)
{
    static const char node[] = ROWPROF_SOURCE_DIR "/.runtimes/node/node_modules/node24/bin/node";
    const char *const argv[] = {node, "-e",
                          "const { DatabaseSync } = require('node:sqlite');\n"
                          "const db = new DatabaseSync(':memory:');\n"
                          "db.exec('create table t(a integer primary key, b text, c real)');\n"
                          "const put = db.prepare('insert into t values(?,?,?)');\n"
                          "for (let i = 0; i < 1000; i++) put.run(i, 'n' + i, i * 1.5);\n"
                          "const one = db.prepare('select a,b,c from t where a=?'), all = db.prepare('select a,b,c from t limit 50');\n"
                          "let sum = 0;\n"
                          "function inner(i) { return one.get(i % 1000).a; }\n"
                          "function turn(i) { sum += inner(i); if (i % 20 == 0) sum += all.all().length; return sum; }\n"
                          "for (let i = 0; i < 60000; i++) turn(i);\n"
                          "process.stderr.write('READY\\n');\n"
                          "for (let i = 0; ; i++) turn(i);\n",
                          NULL};

    (void)state;
    if (access(node, X_OK)) {
        print_message("skipped: Node is not in .runtimes; scripts/runtimes fetches it\n");
        skip();
    }
    hold_against_others(argv, 100, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_c), cmocka_unit_test(test_cpython), cmocka_unit_test(test_node)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
