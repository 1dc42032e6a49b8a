/* SPDX-License-Identifier: MIT */
/* Whose lock it is, asked of a live process: this one, with a mutex made by hand, so that it changes hands exactly when the test says so. The records are
 * made by hand too; only the look at the owner's stack, which is blocked in a read, is a real one. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "fold/fold.h"
#include "support/fold_bench.h"

/* As glibc's pthread_mutex_t begins. */
struct words {
    uint32_t lock, count, owner, users, kind;
};

static struct words mutex;
static int ends[2];
static uint32_t owner_tid;
static pthread_t owner_thread;

static void *blocked(void *context)
{
    char byte;

    __atomic_store_n(&owner_tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    (void)!read(ends[0], &byte, 1);
    return context;
}

struct looked {
    struct fold_bench *b;
    uint32_t waiter, owner; /* positions */
    uint64_t seen_ns;       /* when its stack was seen */
    uint32_t next_owner;    /* not 0: who has the lock once the stack was seen */
};

static struct rp_event event_of(enum rp_event_kind kind, uint32_t tid, uint64_t time_ns)
{
    return (struct rp_event){.kind = kind, .time_ns = time_ns, .pid = (uint32_t)getpid(), .tid = tid};
}

static void send_switch(struct fold_bench *b, uint32_t tid, uint64_t time_ns, bool out)
{
    struct rp_event event = event_of(RP_EVENT_SWITCH, tid, time_ns);

    event.u.sw.out = out;
    fold_bench_send(b, event);
}

/* It goes off the CPU with a stack that tells the lock. */
static void begin_wait(struct fold_bench *b)
{
    static const uint64_t kernel[] = {0xffffffff81000010u, 0xffffffff81000200u};
    struct rp_event peek = event_of(RP_EVENT_PEEK, (uint32_t)getpid(), rp_now_ns());

    peek.u.peek.sample.kernel = kernel;
    peek.u.peek.sample.nkernel = 2;
    peek.u.peek.at_switch = true;
    peek.u.peek.syscall = SYS_futex;
    peek.u.peek.args[0] = (uint64_t)(uintptr_t)&mutex;
    peek.u.peek.args[1] = 0x80; /* FUTEX_WAIT | FUTEX_PRIVATE_FLAG */
    fold_bench_send(b, peek);
    send_switch(b, (uint32_t)getpid(), peek.time_ns, true);
}

/* The owner is said to run, so that it is looked at as an owner only. */
static void set_up(struct fold_bench *b, struct looked *l)
{
    struct rp_process_info info;
    uint64_t begin_ns = rp_now_ns();

    b->fold.replay = false;
    assert_int_equal(rp_process_read((uint32_t)getpid(), &info, &b->err), RP_OK);
    assert_int_equal(rp_fold_add_process(&b->fold, &info, begin_ns, &b->err), RP_OK);
    l->b = b;
    send_switch(b, owner_tid, begin_ns, false);
    send_switch(b, (uint32_t)getpid(), begin_ns, false);
    for (uint32_t i = 0; i < b->profile.threads.n; i++)
        if (b->profile.threads.at[i].tid == owner_tid)
            l->owner = i;
        else if (b->profile.threads.at[i].tid == (uint32_t)getpid())
            l->waiter = i;
}

static enum rp_status see(void *context, const struct rp_event *event, struct rp_err *err)
{
    struct looked *l = context;
    enum rp_status status = rp_fold_event(&l->b->fold, event, err);

    assert_int_equal(event->tid, owner_tid);
    l->seen_ns = rp_now_ns();
    if (l->next_owner)
        __atomic_store_n(&mutex.owner, l->next_owner, __ATOMIC_RELEASE);
    return status;
}

/* A wait with one look in it; `ends_with_look`: it ends in the moment in which the owner's stack was seen. The holders that the profile has then. */
static size_t one_wait(struct looked *l, struct words words, bool ends_with_look)
{
    begin_wait(l->b);
    mutex = words;
    assert_int_equal(rp_fold_look(&l->b->fold, rp_now_ns(), see, l, &l->b->err), RP_OK);
    send_switch(l->b, (uint32_t)getpid(), ends_with_look ? l->seen_ns : rp_now_ns(), false);
    return l->b->profile.holders.n;
}

static struct words held_by(uint32_t tid)
{
    return (struct words){2, 0, tid, 1, 0};
}

static void test_a_blocked_owner_is_seen_with_its_stack(void **state)
{
    struct looked l = {0};
    const struct rp_holder *h;

    set_up(*state, &l);
    assert_int_equal(one_wait(&l, held_by(owner_tid), false), 1);
    h = &l.b->profile.holders.at[0];
    assert_int_equal(h->thread, l.owner);
    assert_int_equal(h->state, RP_STATE_BLOCKED);
    assert_true(h->node != 0);
    assert_int_equal(rp_profile_holder_waiter(&l.b->profile, 0), l.waiter);
}

/* What it does after it let go of the lock is not what it did with it. */
static void test_a_stack_seen_after_the_lock_changed_hands_is_dropped(void **state)
{
    struct looked l = {.next_owner = 1};
    const struct rp_holder *h;

    set_up(*state, &l);
    assert_int_equal(one_wait(&l, held_by(owner_tid), false), 1);
    h = &l.b->profile.holders.at[0];
    assert_true(l.seen_ns != 0);
    assert_int_equal(h->thread, l.owner); /* it was the owner when it was asked for */
    assert_int_equal(h->state, RP_STATE_RUNNING);
    assert_int_equal(h->node, 0);
}

static void test_a_stack_seen_after_the_wait_is_dropped(void **state)
{
    struct looked l = {0};
    const struct rp_holder *h;

    set_up(*state, &l);
    assert_int_equal(one_wait(&l, held_by(owner_tid), true), 1);
    h = &l.b->profile.holders.at[0];
    assert_int_equal(h->thread, l.owner);
    assert_int_equal(h->node, 0);
}

static void test_a_free_lock_is_held_by_nobody(void **state)
{
    struct looked l = {0};

    set_up(*state, &l);
    assert_int_equal(one_wait(&l, (struct words){0}, false), 1);
    assert_int_equal(l.b->profile.holders.at[0].thread, UINT32_MAX);
    assert_int_equal(l.b->profile.holders.at[0].node, 0);
}

/* Another kind of lock: what stands where a mutex has its owner is none, whatever number it is. */
static void test_words_of_no_mutex_tell_no_owner(void **state)
{
    struct words of_nobody = {2, 0, 0, 1, 0}, without_user = held_by(owner_tid), pointer = held_by(owner_tid);
    struct looked l = {0};

    without_user.users = 0;
    pointer.kind = 0x00abc400; /* the low half of an address */
    set_up(*state, &l);
    assert_int_equal(one_wait(&l, of_nobody, false), 0);
    assert_int_equal(one_wait(&l, without_user, false), 0);
    assert_int_equal(one_wait(&l, pointer, false), 0);
    assert_int_equal(one_wait(&l, held_by(owner_tid), false), 1);
}

/* ---- the sample of an owner that ran ---- */

static uint32_t ran(uint64_t before_ns, uint64_t after_ns, uint64_t own_wait_ns)
{
    struct rp_clock owner = {0};
    struct rp_done_wait done = {.out_ns = 1000, .in_ns = 5000, .look = {.tag = 1, .owner_ns = 3000}};

    if (before_ns)
        rp_clock_sample(&owner, before_ns, 7, 1);
    owner.lock_tag = own_wait_ns ? 1 : 0;
    owner.lock_in_ns = own_wait_ns;
    rp_clock_mark_owner(&owner, &done.look);
    if (after_ns)
        rp_clock_sample(&owner, after_ns, 8, 1);
    rp_clock_sample(&owner, 4900, 9, 1); /* the youngest of the wait: it may have let go of the lock long ago */
    return rp_clock_owner_ran(&owner, &done);
}

static void test_of_an_owner_that_ran_counts_the_sample_nearest_to_the_look(void **state)
{
    (void)state;
    assert_int_equal(ran(2900, 3300, 0), 7);
    assert_int_equal(ran(2000, 3300, 0), 8);
    assert_int_equal(ran(900, 3300, 0), 8);     /* before the wait */
    assert_int_equal(ran(2900, 3300, 2950), 8); /* it waited for the lock itself until 2950 */
    assert_int_equal(ran(2990, 3300, 2950), 7);
    assert_int_equal(ran(0, 5100, 0), 0);       /* after the wait */
}

static int open_all(void **state)
{
    struct timespec ms = {0, 1000000};

    if (pipe(ends) || pthread_create(&owner_thread, NULL, blocked, NULL))
        return -1;
    while (!__atomic_load_n(&owner_tid, __ATOMIC_ACQUIRE))
        nanosleep(&ms, NULL);
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    (void)state;
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    (void)!write(ends[1], "x", 1);
    pthread_join(owner_thread, NULL);
    return close(ends[0]) || close(ends[1]);
}

#define ON_BENCH(test) cmocka_unit_test_setup_teardown(test, fold_bench_set_up, fold_bench_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BENCH(test_a_blocked_owner_is_seen_with_its_stack),
        ON_BENCH(test_a_stack_seen_after_the_lock_changed_hands_is_dropped),
        ON_BENCH(test_a_stack_seen_after_the_wait_is_dropped),
        ON_BENCH(test_a_free_lock_is_held_by_nobody),
        ON_BENCH(test_words_of_no_mutex_tell_no_owner),
        cmocka_unit_test(test_of_an_owner_that_ran_counts_the_sample_nearest_to_the_look),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
