/* SPDX-License-Identifier: MIT */
/* Unwinding a blocked thread as seen from outside: of its registers only rip and rsp. Wherever a thread can block, behind a system call, the walk must be the
 * one that all registers give, or end earlier and say so. Frames that have their CFA from rbp (large or variable locals, code built without optimization)
 * are the hard part: their locals hold leftovers of earlier frames of the same functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <alloca.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/unwind_tracee.h"
#include "target/process.h"

static volatile unsigned sink;
static int null_fd;

__attribute__((noinline)) static void begin(void)
{
    __asm__ volatile("int3" ::: "memory");
}

__attribute__((noinline, noclone)) static void block(unsigned n)
{
    struct timespec none = {0, 1};

    sink += (unsigned)nanosleep(&none, NULL);
    sink += (unsigned)write(null_fd, &n, sizeof n);
    sink += (unsigned)getppid();
}

/* rbp is its frame pointer, since the size of its locals is not known. */
__attribute__((noinline, noclone)) static void variable_locals(unsigned n)
{
    volatile char *local = alloca(16 + n * 40);

    local[n] = (char)n;
    if (n)
        variable_locals(n - 1);
    else
        block(n);
    sink += (unsigned)local[n];
}

__attribute__((noinline, noclone, optimize("O0"))) static void not_optimized(unsigned n)
{
    unsigned leftovers[64]; /* not written: what earlier calls left stays in it */

    if (n == 0)
        block(n);
    else
        not_optimized(n - 1);
    sink += n + (unsigned)sizeof leftovers;
}

__attribute__((noinline, noclone, optimize("O0"))) static void middle_not_optimized(unsigned n)
{
    unsigned leftovers[64];

    block(n);
    sink += n + (unsigned)sizeof leftovers;
}

__attribute__((noinline, noclone, optimize("O0"))) static void top_not_optimized(unsigned n)
{
    middle_not_optimized(n + 1);
    sink += n;
}

/* The system calls of the first four turns have no recursion above them. */
enum { PLAIN_TURNS = 4, CALLS_PER_TURN = 3 };

static void (*volatile by_pointer)(unsigned) = variable_locals;

static void body(void *unused)
{
    (void)unused;
    null_fd = open("/dev/null", O_WRONLY);
    begin();
    for (unsigned n = 0; n < PLAIN_TURNS; n++)
        top_not_optimized(n);
    for (unsigned n = 0; n < 4; n++) {
        variable_locals(n);
        not_optimized(3 - n);
        by_pointer(2);
        block(n);
    }
}

static bool is_behind_a_call(const struct unwind_tracee *t)
{
    uint8_t code[2];
    struct rp_memory memory = rp_memory_of_process((uint32_t)t->pid);

    return memory.read(memory.context, t->snapshot.regs[RP_RIP] - 2, code, sizeof code) == 2 && code[0] == 0x0f && code[1] == 0x05;
}

/* Same frames as far as they go. */
static void assert_prefix(struct unwind_tracee *t, const struct rp_walk *part)
{
    if (part->n > t->walk.n)
        fail_msg("%u frames of %u", part->n, t->walk.n);
    for (uint32_t i = 0; i < part->n; i++)
        if (part->frames[i].pc != t->walk.frames[i].pc) {
            unwind_tracee_print(t);
            fail_msg("frame %u: %llx", i, (unsigned long long)part->frames[i].pc);
        }
    if (part->n < t->walk.n)
        assert_int_not_equal(part->end, RP_WALK_ROOT);
}

/* The walk from rip and rsp alone, by an unwinder that knows nothing yet: its table of rules grows, and moves, in the middle of a step. */
static void walk_from_outside(struct unwind_tracee *t, struct rp_walk *walk)
{
    struct rp_snapshot outside = t->snapshot;
    struct rp_unwinder *unwinder;
    struct rp_err err = {0};

    outside.sp_only = true;
    for (int r = 0; r < RP_NREGS; r++)
        if (r != RP_RIP && r != RP_RSP)
            outside.regs[r] = 0x4141414141414141u;
    assert_int_equal(rp_unwinder_new(&t->images, &unwinder, &err), RP_OK);
    assert_int_equal(rp_unwind(unwinder, &t->space, &outside, walk, &err), RP_OK);
    rp_unwinder_free(unwinder);
}

static void test_rip_and_rsp_are_enough_where_threads_block(void **state)
{
    struct unwind_tracee *t;
    struct rp_walk walk;
    struct rp_err err = {0};
    unsigned steps = 0, calls = 0, whole = 0;
#ifdef __SANITIZE_ADDRESS__
    const bool to_the_root = false; /* its code finds every CFA by rbp, which is what is not known here; distributions' code does not */
#else
    const bool to_the_root = true;
#endif

    (void)state;
    t = unwind_tracee_fork(body, NULL);
    assert_non_null(t);
    assert_true(unwind_tracee_run_to_trap(t));
    assert_int_equal(rp_walk_init(&walk, &err), RP_OK);
    for (; steps < 20000 && unwind_tracee_step(t); steps++) {
        if (t->walk.end != RP_WALK_ROOT || !is_behind_a_call(t))
            continue;
        walk_from_outside(t, &walk);
        assert_prefix(t, &walk);
        calls++;
        if (to_the_root && calls <= PLAIN_TURNS * CALLS_PER_TURN && (walk.n != t->walk.n || walk.end != RP_WALK_ROOT))
            fail_msg("call %u ends after %u frames of %u: %s", calls, walk.n, t->walk.n, rp_walk_end_text(walk.end));
        whole += walk.n == t->walk.n;
    }
    assert_true(steps > 1000);
    assert_true(calls > 20);
    assert_true(!to_the_root || whole > PLAIN_TURNS * CALLS_PER_TURN);
    rp_walk_release(&walk);
    unwind_tracee_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rip_and_rsp_are_enough_where_threads_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
