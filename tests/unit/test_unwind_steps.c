/* SPDX-License-Identifier: MIT */
/* Unwinding at every single instruction of real code, against the stack that calls and returns made (support/unwind_tracee.h). Field cases A04 (junk in
 * rbp), A05 (a call ends its function), A17 (code without a row in the middle), A19 (PLT stubs, here made lazy by hand), A21 (depth, big frames), signals,
 * threads, vDSO.
 *
 * The trap: a test that is happy with "main is somewhere" misses a skipped caller. Here every frame of every step must be right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/unwind_tracee.h"

/* Values that the compiler cannot see through. */
static volatile unsigned sink;

/* Here the parent takes over. */
__attribute__((noinline)) static void begin(void)
{
    __asm__ volatile("int3" ::: "memory");
}

static struct unwind_tracee *scene(void (*body)(void *), void *argument)
{
    struct unwind_tracee *t = unwind_tracee_fork(body, argument);

    assert_non_null(t);
    assert_true(unwind_tracee_run_to_trap(t));
    assert_true(unwind_tracee_base(t));
    return t;
}

/* Steps through at most `steps` instructions; all told truths must hold. Returns how many were compared. */
static unsigned all_true(struct unwind_tracee *t, unsigned steps)
{
    unsigned compared = 0;

    for (unsigned i = 0; i < steps && unwind_tracee_step(t); i++) {
        bool untold, right = unwind_tracee_is_true(t, &untold);

        if (untold)
            continue;
        compared++;
        if (!right) {
            unwind_tracee_print(t);
            fail_msg("step %u differs from the truth", i);
        }
        assert_int_equal(t->walk.end, RP_WALK_ROOT);
    }
    return compared;
}

static int compare_ints(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void libc_body(void *unused)
{
    int numbers[24];
    char text[200];
    struct timespec now;
    unsigned length = 0;

    (void)unused;
    begin();
    for (int i = 0; i < 24; i++)
        numbers[i] = (i * 7919) % 101;
    qsort(numbers, 24, sizeof numbers[0], compare_ints);
    length = (unsigned)snprintf(text, sizeof text, "%d %s %.3f", numbers[3], "word", (double)numbers[4] / 3);
    free(strdup(text));
    clock_gettime(CLOCK_MONOTONIC, &now);
    memmove(text + 1, text, length);
    sink = length + (unsigned)strtoul("123", NULL, 10);
}

static void test_libc(void **state)
{
    struct unwind_tracee *t = scene(libc_body, NULL);
    struct rp_unwind_stats stats;

    (void)state;
    assert_true(all_true(t, 20000) > 3000);
    rp_unwinder_stats(t->unwinder, &stats);
    assert_int_equal(stats.rows_slow, 0); /* the rows of PLT sections are expressions, but known ones */
    unwind_tracee_free(t);
}

static void sqlite_body(void *unused)
{
    sqlite3 *db;
    sqlite3_stmt *s;

    (void)unused;
    sqlite3_open(":memory:", &db);
    sqlite3_exec(db, "create table t(a,b);insert into t values(1,'x'),(2,'y'),(3,'z')", NULL, NULL, NULL);
    begin();
    sqlite3_prepare_v2(db, "select b,sum(a) from t where b like '%y%' group by b", -1, &s, NULL);
    while (sqlite3_step(s) == SQLITE_ROW)
        sink += (unsigned)sqlite3_column_int(s, 1);
    sqlite3_finalize(s);
}

/* The stripped libsqlite3 of the distribution: rows only. */
static void test_sqlite(void **state)
{
    struct unwind_tracee *t = scene(sqlite_body, NULL);
    struct rp_unwind_stats stats;

    (void)state;
    assert_true(all_true(t, 15000) >= 15000);
    rp_unwinder_stats(t->unwinder, &stats);
    assert_true(stats.rows_looked_up < stats.frames / 8); /* each address once */
    assert_int_equal(stats.by_frame_pointer, 0);
    unwind_tracee_free(t);
}

/* A04: rbp is junk in a loop. Behind the pop the row still says "at CFA - 16", as gcc leaves it: below rsp, so not in the copy. */
void rp_test_junk_leaf(unsigned n);
__asm__(".text\n.globl rp_test_junk_leaf\n.type rp_test_junk_leaf,@function\nrp_test_junk_leaf:\n\t.cfi_startproc\n\tpush %rbp\n\t"
        ".cfi_def_cfa_offset 16\n\t.cfi_offset rbp,-16\n\tmov $0x5eadbeef,%rbp\n1:\tdec %edi\n\tjnz 1b\n\tpop %rbp\n\t"
        ".cfi_def_cfa_offset 8\n\tret\n\t.cfi_endproc\n.size rp_test_junk_leaf,.-rp_test_junk_leaf\n");

__attribute__((noinline, noclone)) static void junk_middle(unsigned n)
{
    rp_test_junk_leaf(n);
    sink++;
}

static void junk_body(void *unused)
{
    (void)unused;
    begin();
    junk_middle(40);
    junk_middle(3);
}

/* A05: the call is the last instruction of its function. */
__attribute__((noinline, noclone, noreturn)) static void never_returns(void)
{
    for (unsigned i = 0; i < 100; i++)
        sink += i;
    _exit(0);
}

void rp_test_call_ends(void (*function)(void));
void rp_test_innocent(void);
__asm__(".text\n.globl rp_test_call_ends\n.type rp_test_call_ends,@function\nrp_test_call_ends:\n\t.cfi_startproc\n\tsub $24,%rsp\n\t"
        ".cfi_adjust_cfa_offset 24\n\tcall *%rdi\n\t.cfi_endproc\n.size rp_test_call_ends,.-rp_test_call_ends\n"
        ".globl rp_test_innocent\n.type rp_test_innocent,@function\nrp_test_innocent:\n\t.cfi_startproc\n\t.cfi_def_cfa_offset 8000\n\t"
        "ret\n\t.cfi_endproc\n.size rp_test_innocent,.-rp_test_innocent\n");

static void noreturn_body(void *unused)
{
    (void)unused;
    begin();
    rp_test_call_ends(never_returns);
}

/* A17: a page without any row that keeps a frame pointer, and one that does not. */
static void jit_body(void *bytes)
{
    /* push rbp; mov rbp,rsp; push rdi; sub rsp,8; call rdi; add rsp,8; pop rdi; pop rbp; ret */
    static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x57, 0x48, 0x83, 0xec, 0x08, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0x5f, 0x5d, 0xc3};
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void (*call)(void (*)(void));

    (void)bytes;
    memcpy(page, code, sizeof code);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    memcpy(&call, &page, sizeof call);
    begin();
    call((void (*)(void))(uintptr_t)tzset);
}

/* The trampolines of nested calls and the code of other cases, all by the same law. */
static void test_shapes(void **state)
{
    static const struct {
        const char *name;
        void (*body)(void *);
    } shapes[] = {{"A04 junk in rbp", junk_body}, {"A05 call at the end", noreturn_body}, {"A17 no row in the middle", jit_body}};

    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct unwind_tracee *t = scene(shapes[i].body, NULL);
        unsigned compared = all_true(t, 4000);

        if (compared < 40)
            fail_msg("%s: only %u steps", shapes[i].name, compared);
        unwind_tracee_free(t);
    }
}

static void on_signal(int number)
{
    sink += (unsigned)number + (unsigned)getpid();
}

static void signal_body(void *unused)
{
    (void)unused;
    signal(SIGUSR1, on_signal);
    begin();
    for (unsigned i = 0; i < 3; i++)
        raise(SIGUSR1);
    junk_middle(4);
}

/* The frame behind the trampoline is exact: the walk says so at each step in handler and trampoline. */
static void test_signals(void **state)
{
    struct unwind_tracee *t = scene(signal_body, NULL);
    struct rp_unwind_stats stats;

    (void)state;
    assert_true(all_true(t, 4000) > 200);
    rp_unwinder_stats(t->unwinder, &stats);
    assert_int_equal(t->delivered, 3);
    assert_true(stats.rows_slow > 10); /* the trampoline's row is all expressions */
    unwind_tracee_free(t);
}

__attribute__((noinline, noclone)) static unsigned recurse(unsigned n)
{
    if (n == 0) {
        begin();
        return 1;
    }
    return recurse(n - 1) + n + sink;
}

static void deep_body(void *depth)
{
    sink = recurse(*(unsigned *)depth);
}

__attribute__((noinline, noclone, optimize("no-optimize-sibling-calls"))) static unsigned big_frames(unsigned n)
{
    volatile char big[100000];

    big[n] = (char)n;
    if (n == 0)
        begin();
    return n ? big_frames(n - 1) + (unsigned)big[n] : 0;
}

static void big_body(void *depth)
{
    sink = big_frames(*(unsigned *)depth);
}

/* A21: 300 deep is whole; 5 000 deep and big frames say that the copy was too short, with all frames that it held. */
static void test_depth(void **state)
{
    static const struct {
        void (*body)(void *);
        unsigned depth;
        enum rp_walk_end end;
        uint32_t least, most;
    } cases[] = {{deep_body, 300, RP_WALK_ROOT, 305, 400},
                 {deep_body, 5000, RP_WALK_STACK_SHORT, 1000, 4099},
                 {big_body, 2, RP_WALK_STACK_SHORT, 2, 3}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned depth = cases[i].depth;
        struct unwind_tracee *t = unwind_tracee_fork(cases[i].body, &depth);

        assert_non_null(t);
        assert_true(unwind_tracee_run_to_trap(t));
        assert_int_equal(t->walk.end, cases[i].end);
        assert_in_range(t->walk.n, cases[i].least, cases[i].most);
        t->stack_max = 64; /* a short copy keeps the leaf and says so */
        assert_true(unwind_tracee_snapshot(t));
        assert_int_equal(t->walk.end, RP_WALK_STACK_SHORT);
        assert_in_range(t->walk.n, 1, 5);
        unwind_tracee_free(t);
    }
}

static void on_other_stack(int number)
{
    sink = (unsigned)number;
    begin();
}

static void other_stack_body(void *unused)
{
    struct sigaction action = {.sa_handler = on_other_stack, .sa_flags = SA_ONSTACK};
    char *memory = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t stack = {.ss_sp = memory, .ss_size = 65536};

    (void)unused;
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}

/* A handler on a stack of its own: handler, trampoline and the interrupted frame are known, the rest is not in the copy and that is said. */
static void test_other_stack(void **state)
{
    struct unwind_tracee *t = unwind_tracee_fork(other_stack_body, NULL);
    uint32_t interrupted = 0;

    (void)state;
    assert_non_null(t);
    assert_false(unwind_tracee_run_to_trap(t)); /* stops for SIGUSR1, which goes on with the step */
    assert_false(t->ended);
    t->signal = SIGUSR1;
    for (unsigned i = 0; i < 200 && t->walk.n < 2; i++)
        assert_true(unwind_tracee_step(t));
    for (unsigned i = 0; i < 200 && (t->walk.end == RP_WALK_ROOT || !interrupted) && unwind_tracee_step(t); i++)
        for (uint32_t f = 1; f < t->walk.n; f++)
            if (t->walk.frames[f].exact)
                interrupted = f;
    assert_in_range(interrupted, 2, 3);
    assert_int_equal(t->walk.n, interrupted + 1);
    assert_int_equal(t->walk.end, RP_WALK_STACK_SHORT);
    unwind_tracee_free(t);
}

static void *spin(void *channel)
{
    pid_t tid = gettid();

    if (write(*(int *)channel, &tid, sizeof tid) != sizeof tid)
        _exit(1);
    for (;;)
        sink += (unsigned)strtoul("17", NULL, 10);
    return NULL;
}

/* A thread's root is the row of clone, which has no return address. */
static void test_thread(void **state)
{
    int channel[2];
    pid_t child, tid = 0;
    struct unwind_tracee *t;

    (void)state;
    assert_int_equal(pipe(channel), 0);
    child = fork();
    if (child == 0) {
        pthread_t thread;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pthread_create(&thread, NULL, spin, &channel[1]);
        for (;;)
            pause();
    }
    assert_int_equal(read(channel[0], &tid, sizeof tid), sizeof tid);
    t = unwind_tracee_seize(tid);
    assert_non_null(t);
    assert_true(unwind_tracee_snapshot(t));
    for (unsigned i = 0; i < 500 && !unwind_tracee_base(t); i++) /* libdw does not see through every epilogue */
        assert_true(unwind_tracee_step(t));
    assert_true(t->based);
    assert_in_range(t->walk.n, 3, 9);
    assert_true(all_true(t, 2000) > 1900);
    unwind_tracee_free(t); /* first: a process is not over before the tracer has let its dead threads go */
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(channel[0]);
    close(channel[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_libc),    cmocka_unit_test(test_sqlite), cmocka_unit_test(test_shapes),
                                       cmocka_unit_test(test_signals), cmocka_unit_test(test_depth), cmocka_unit_test(test_other_stack), cmocka_unit_test(test_thread)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
