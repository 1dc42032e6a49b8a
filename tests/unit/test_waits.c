/* SPDX-License-Identifier: MIT */
/* Waiting made of switch records: events by hand, so every duration is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sample/peek_procfs.h"
#include "support/fold_bench.h"

/* ---- the clock of one thread ---- */

struct one {
    struct rp_clock clock;
    struct rp_profile_thread row;
    struct rp_done_wait done;
};

static void edge(struct one *o, uint64_t time_ns, bool out, bool preempted)
{
    rp_clock_edge(&o->clock, &o->row, time_ns, out, preempted, &o->done);
}

static void assert_times(const struct one *o, uint64_t cpu, uint64_t preempted, uint64_t waiting)
{
    assert_int_equal(o->row.cpu_ns, cpu);
    assert_int_equal(o->row.preempted_ns, preempted);
    assert_int_equal(o->row.waiting_ns, waiting);
}

static void test_every_moment_is_in_one_state(void **state)
{
    struct one o = {0};

    (void)state;
    rp_clock_begin(&o.clock, 1000, RP_CLOCK_UNKNOWN);
    edge(&o, 1100, true, false); /* so it ran until now */
    assert_int_equal(o.done.out_ns, 0);
    edge(&o, 1500, false, false);
    assert_int_equal(o.done.out_ns, 1100);
    assert_int_equal(o.done.in_ns, 1500);
    edge(&o, 1530, true, true);
    edge(&o, 1600, false, false);
    assert_int_equal(o.done.out_ns, 0); /* a preemption is no wait */
    rp_clock_end(&o.clock, &o.row, 2000, false, &o.done);
    assert_times(&o, 100 + 30 + 400, 70, 400);
    assert_int_equal(o.row.waits, 1);
    assert_int_equal(o.row.preemptions, 1);
}

static void test_the_first_record_tells_the_beginning(void **state)
{
    struct one slept = {0}, born = {0}, crowded = {0}, never = {0}, silent = {0}, busy = {0};

    (void)state;
    rp_clock_begin(&slept.clock, 1000, RP_CLOCK_UNKNOWN);
    edge(&slept, 5000, false, false);
    assert_int_equal(slept.done.out_ns, 1000);
    assert_int_equal(slept.done.in_ns, 5000);
    rp_clock_end(&slept.clock, &slept.row, 5500, false, &slept.done);
    assert_times(&slept, 500, 0, 4000);

    rp_clock_begin(&born.clock, 1000, RP_CLOCK_READY);
    edge(&born, 1300, false, false);
    rp_clock_end(&born.clock, &born.row, 1400, false, &born.done);
    assert_times(&born, 100, 300, 0);
    assert_int_equal(born.row.preemptions, 0);

    /* One of many that share a CPU: it was ready all the time. */
    rp_clock_begin(&crowded.clock, 1000, RP_CLOCK_UNKNOWN);
    crowded.clock.ready_at_begin = true;
    edge(&crowded, 5000, false, false);
    assert_int_equal(crowded.done.out_ns, 0);
    rp_clock_end(&crowded.clock, &crowded.row, 5500, false, &crowded.done);
    assert_times(&crowded, 500, 4000, 0);
    assert_int_equal(crowded.row.preemptions, 0);

    rp_clock_begin(&never.clock, 1000, RP_CLOCK_UNKNOWN);
    never.clock.ready_at_begin = true;
    rp_clock_end(&never.clock, &never.row, 9000, false, &never.done);
    assert_times(&never, 0, 8000, 0);

    rp_clock_begin(&silent.clock, 1000, RP_CLOCK_UNKNOWN);
    rp_clock_end(&silent.clock, &silent.row, 9000, false, &silent.done);
    assert_times(&silent, 0, 0, 8000);
    assert_int_equal(silent.done.in_ns, 9000);

    rp_clock_begin(&busy.clock, 1000, RP_CLOCK_UNKNOWN);
    rp_clock_end(&busy.clock, &busy.row, 9000, true, &busy.done);
    assert_times(&busy, 8000, 0, 0);
}

static void test_records_before_the_watch_and_lost_ones_lose_no_time(void **state)
{
    struct one o = {0};

    (void)state;
    rp_clock_begin(&o.clock, 1000, RP_CLOCK_UNKNOWN);
    edge(&o, 900, true, false);
    edge(&o, 950, false, false);
    assert_int_equal(o.done.in_ns - o.done.out_ns, 0);
    edge(&o, 1200, true, false);
    edge(&o, 1201, true, false); /* twice, or the records between were lost */
    edge(&o, 1700, false, false);
    edge(&o, 1700, false, false);
    rp_clock_end(&o.clock, &o.row, 2000, false, &o.done);
    assert_times(&o, 500, 0, 500);
    edge(&o, 2100, true, false);
    assert_times(&o, 500, 0, 500); /* nothing after the end */
}

/* Edges in microseconds, each with what it says; a gap is what the record that is missing would have told. */
struct lossy {
    const char *what;
    struct {
        uint64_t us;
        char kind; /* o out, p out while it could run, i in, s sample on a CPU; 0 the end of the watch */
    } at[8];
    uint64_t cpu, preempted, waiting, waits; /* of a watch that begins running at 0 */
};

static const struct lossy lossy[] = {
    {"nothing lost", {{100, 'o'}, {300, 'i'}, {400, 'p'}, {450, 'i'}, {1000, 0}}, 100 + 100 + 550, 50, 200, 1},
    {"an in: how long it waited and ran is not known", {{100, 'o'}, {700, 'o'}, {900, 'i'}, {1000, 0}}, 200, 0, 200, 1},
    {"an out", {{100, 'o'}, {300, 'i'}, {700, 'i'}, {1000, 0}}, 100 + 300, 0, 200, 1},
    {"an in, then it was preempted", {{100, 'o'}, {700, 'p'}, {900, 'i'}, {1000, 0}}, 200, 200, 0, 0},
    {"an in after a preemption", {{100, 'p'}, {700, 'o'}, {900, 'i'}, {1000, 0}}, 200, 0, 200, 1},
    {"an in, which a sample betrays", {{100, 'o'}, {600, 's'}, {700, 's'}, {800, 'o'}, {1000, 0}}, 100 + 200, 0, 200, 1},
    {"an in and an out, which a sample between betrays", {{100, 'o'}, {600, 's'}, {800, 'i'}, {1000, 0}}, 100 + 200, 0, 0, 0},
    {"an out and the end", {{100, 'o'}, {300, 'i'}, {500, 'i'}, {1000, 0}}, 100 + 500, 0, 200, 1},
    {"told twice is nothing lost", {{100, 'o'}, {102, 'o'}, {300, 'i'}, {301, 'i'}, {1000, 0}}, 100 + 700, 0, 200, 1},
    {"a sample of the moment of going", {{100, 'o'}, {101, 's'}, {300, 'i'}, {1000, 0}}, 100 + 700, 0, 200, 1},
};

static void test_time_in_which_a_record_is_missing_is_in_no_state(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lossy / sizeof *lossy; i++) {
        const struct lossy *l = &lossy[i];
        struct one o = {0};
        size_t k = 0;

        rp_clock_begin(&o.clock, 0, RP_CLOCK_RUNNING);
        for (; l->at[k].kind; k++) {
            if (l->at[k].kind == 's')
                rp_clock_sample(&o.clock, l->at[k].us * 1000, 1, 1000);
            else
                edge(&o, l->at[k].us * 1000, l->at[k].kind != 'i', l->at[k].kind == 'p');
        }
        rp_clock_end(&o.clock, &o.row, l->at[k].us * 1000, false, &o.done);
        if (o.row.cpu_ns != l->cpu * 1000 || o.row.preempted_ns != l->preempted * 1000 || o.row.waiting_ns != l->waiting * 1000 || o.row.waits != l->waits)
            fail_msg("%s: cpu %lu, preempted %lu, waiting %lu in %lu", l->what, (unsigned long)o.row.cpu_ns, (unsigned long)o.row.preempted_ns,
                     (unsigned long)o.row.waiting_ns, (unsigned long)o.row.waits);
    }
}

/* What was seen in the wait before the gap is not the stack of the one after it. */
static void test_a_look_is_not_carried_over_a_missing_record(void **state)
{
    struct one o = {0};

    (void)state;
    rp_clock_begin(&o.clock, 1000, RP_CLOCK_RUNNING);
    o.clock.at_switch = (struct rp_look){.time_ns = 1999, .node = 5, .owner = RP_NO_THREAD, .syscall = -1};
    edge(&o, 2000, true, false);
    edge(&o, 900000, true, false);
    edge(&o, 950000, false, false);
    assert_int_equal(o.done.out_ns, 900000);
    assert_int_equal(o.done.look.node, 0);
    edge(&o, 960000, true, false);
    o.clock.at_switch = (struct rp_look){.time_ns = 999999, .node = 6, .owner = RP_NO_THREAD, .syscall = -1};
    edge(&o, 1000000, true, false); /* its own look came before it */
    edge(&o, 1100000, false, false);
    assert_int_equal(o.done.look.node, 6);
}

/* schedstat knows how long a thread ran, whatever was lost. */
static void test_cpu_time_is_settled_without_records(void **state)
{
    struct rp_profile_thread row = {.cpu_ns = 300, .preempted_ns = 100, .waiting_ns = 200};

    (void)state;
    rp_clock_settle_cpu(&row, 1000, 650);
    assert_int_equal(row.cpu_ns, 650);
    rp_clock_settle_cpu(&row, 1000, 250); /* a run that two lost records made of two */
    assert_int_equal(row.cpu_ns, 250);
    rp_clock_settle_cpu(&row, 1000, 5000); /* read some time after the end of the watch */
    assert_int_equal(row.cpu_ns, 700);
    rp_clock_settle_cpu(&row, 250, 5000);
    assert_int_equal(row.cpu_ns, 0);
}

static struct rp_look seen(uint64_t time_ns, uint32_t node)
{
    return (struct rp_look){.time_ns = time_ns, .node = node, .owner = RP_NO_THREAD, .syscall = 202};
}

static void test_a_look_belongs_to_the_wait_it_fell_into(void **state)
{
    struct one o = {0};

    (void)state;
    rp_clock_begin(&o.clock, 1000, RP_CLOCK_RUNNING);
    /* The look is of 2500, though records are known up to 1500 only: it is of the second wait. */
    edge(&o, 1500, true, false);
    o.clock.seen = seen(2500, 7);
    edge(&o, 1800, false, false);
    assert_int_equal(o.done.look.node, 0);
    edge(&o, 2200, true, false);
    edge(&o, 3000, false, false);
    assert_int_equal(o.done.look.node, 7);
    edge(&o, 3100, true, false);
    edge(&o, 3200, false, false);
    assert_int_equal(o.done.look.node, 0); /* used once */
    /* One that tells of a wait by its beginning, and was made after its end, is of no wait. */
    edge(&o, 4000, true, false);
    o.clock.seen = seen(4600, 8);
    o.clock.seen.out_ns = 4000;
    edge(&o, 4500, false, false);
    assert_int_equal(o.done.look.node, 0);
    edge(&o, 4550, true, false);
    edge(&o, 4900, false, false);
    assert_int_equal(o.done.look.node, 0);
    edge(&o, 5000, true, false);
    o.clock.seen = seen(5100, 9);
    o.clock.seen.out_ns = 5000;
    edge(&o, 5200, false, false);
    assert_int_equal(o.done.look.node, 9);
    /* Its lock was asked for its owner when the wait was over: that is the owner of another moment. */
    edge(&o, 5500, true, false);
    o.clock.seen = seen(5600, 10);
    o.clock.seen.tag = 1;
    o.clock.seen.owner = 3;
    o.clock.seen.owner_ns = 5900;
    edge(&o, 5800, false, false);
    assert_int_equal(o.done.look.node, 10);
    assert_int_equal(o.done.look.tag, 1);
    assert_int_equal(o.done.look.owner, RP_NO_THREAD);
}

static void test_a_stack_at_the_switch_is_preferred_and_not_kept_over_a_preemption(void **state)
{
    struct one o = {0};

    (void)state;
    rp_clock_begin(&o.clock, 1000, RP_CLOCK_RUNNING);
    o.clock.at_switch = (struct rp_look){.time_ns = 1499, .node = 5, .owner = RP_NO_THREAD, .syscall = -1};
    edge(&o, 1500, true, false);
    o.clock.seen = seen(1600, 7);
    edge(&o, 1800, false, false);
    assert_int_equal(o.done.look.node, 5);
    assert_int_equal(o.done.look.syscall, 202); /* which only procfs knew */
    o.clock.at_switch = (struct rp_look){.time_ns = 1899, .node = 6, .owner = RP_NO_THREAD, .syscall = -1};
    edge(&o, 1900, true, true);
    edge(&o, 1950, false, false);
    edge(&o, 2000, true, false);
    edge(&o, 2100, false, false);
    assert_int_equal(o.done.look.node, 0);
}

static void test_a_wait_is_looked_at_once(void **state)
{
    struct one o = {0};

    (void)state;
    rp_clock_begin(&o.clock, 1000, RP_CLOCK_RUNNING);
    assert_false(rp_clock_wants_look(&o.clock, 9000, 1000));
    edge(&o, 2000, true, false);
    assert_false(rp_clock_wants_look(&o.clock, 2999, 1000));
    assert_true(rp_clock_wants_look(&o.clock, 3000, 1000));
    o.clock.asked_ns = o.clock.since_ns;
    assert_false(rp_clock_wants_look(&o.clock, 90000, 1000)); /* it has not run since */
    edge(&o, 90000, false, false);
    edge(&o, 91000, true, false);
    assert_true(rp_clock_wants_look(&o.clock, 99000, 1000));
}

/* ---- procfs ---- */

static void test_text_of_procfs(void **state)
{
    static const char futex[] = "202 0x7f0000001000 0x80 0x2 0x0 0x0 0x1 0x7ffc00000010 0x7f0000002000\n";
    static const char fault[] = "-1 0x7ffc00000010 0x401000\n";
    uint64_t args[6], sp, pc;
    int number;

    (void)state;
    assert_true(rp_peek_parse(futex, sizeof futex - 1, &number, args, &sp, &pc));
    assert_int_equal(number, 202);
    assert_int_equal(args[0], 0x7f0000001000);
    assert_int_equal(args[5], 1);
    assert_int_equal(sp, 0x7ffc00000010);
    assert_int_equal(pc, 0x7f0000002000);
    assert_true(rp_peek_parse(fault, sizeof fault - 1, &number, args, &sp, &pc));
    assert_int_equal(number, -1);
    assert_int_equal(pc, 0x401000);
    assert_false(rp_peek_parse("running\n", 8, &number, args, &sp, &pc));
    assert_false(rp_peek_parse("", 0, &number, args, &sp, &pc));
    assert_false(rp_peek_parse(futex, 40, &number, args, &sp, &pc));
    assert_false(rp_peek_parse("99999 0x0 0x0 0x0 0x0 0x0 0x0 0x1 0x2\n", 38, &number, args, &sp, &pc));
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static volatile uint32_t waiter_tid;

static void *wait_for_it(void *context)
{
    (void)context;
    waiter_tid = (uint32_t)syscall(SYS_gettid);
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
    return NULL;
}

static void test_a_thread_in_a_mutex_is_seen_with_its_stack(void **state)
{
    static uint8_t stack[RP_PEEK_STACK_BYTES];
    struct timespec ms = {0, 1000000};
    struct rp_event event;
    enum rp_peek_end end = RP_PEEK_RUNNING;
    pthread_t thread;

    (void)state;
    pthread_mutex_lock(&held);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_it, NULL), 0);
    for (int i = 0; i < 20000 && (end != RP_PEEK_SEEN || event.u.peek.syscall != SYS_futex); i++) {
        nanosleep(&ms, NULL);
        if (waiter_tid)
            end = rp_peek_procfs((uint32_t)getpid(), waiter_tid, stack, &event);
    }
    pthread_mutex_unlock(&held);
    pthread_join(thread, NULL);
    assert_int_equal(end, RP_PEEK_SEEN);
    assert_int_equal(event.u.peek.syscall, SYS_futex);
    assert_ptr_equal((void *)(uintptr_t)event.u.peek.args[0], &held);
    assert_true(event.u.peek.sample.sp_only && event.u.peek.sample.stack_bytes > 256);
    for (int i = 0; i < 20000 && end != RP_PEEK_GONE; i++) { /* joined, it may still be on its way out */
        nanosleep(&ms, NULL);
        end = rp_peek_procfs((uint32_t)getpid(), waiter_tid, stack, &event);
    }
    assert_int_equal(end, RP_PEEK_GONE);
    assert_int_equal(rp_peek_procfs((uint32_t)getpid(), (uint32_t)getpid(), stack, &event), RP_PEEK_RUNNING);
}

/* ---- which system call ---- */

static void test_numbers_out_of_code(void **state)
{
    static const uint8_t futex[] = {0x31, 0xd2, 0xb8, 0xca, 0, 0, 0, 0x0f, 0x05};
    static const uint8_t before[] = {0xb8, 0xca, 0, 0, 0, 0x4c, 0x89, 0xe7, 0x44, 0x89, 0xc6, 0x0f, 0x05};
    static const uint8_t reading[] = {0x90, 0x31, 0xc0, 0x0f, 0x05};
    static const uint8_t wide[] = {0x48, 0xc7, 0xc0, 0xe6, 0, 0, 0, 0x0f, 0x05};
    static const uint8_t no_call[] = {0xb8, 0xca, 0, 0, 0, 0x90, 0x90};
    static const uint8_t large[] = {0xb8, 0xca, 0x10, 0, 0, 0x0f, 0x05};

    (void)state;
    assert_int_equal(rp_syscall_number(futex, sizeof futex), 202);
    assert_int_equal(rp_syscall_number(before, sizeof before), 202);
    assert_int_equal(rp_syscall_number(reading, sizeof reading), 0);
    assert_int_equal(rp_syscall_number(wide, sizeof wide), 230);
    assert_int_equal(rp_syscall_number(no_call, sizeof no_call), -1);
    assert_int_equal(rp_syscall_number(large, sizeof large), -1);
    assert_int_equal(rp_syscall_number(futex + 7, 2), -1);
}

/* ---- through fold ---- */

static struct rp_event switched(uint64_t time_ns, uint32_t tid, bool out, bool preempted)
{
    struct rp_event event = {.kind = RP_EVENT_SWITCH, .time_ns = time_ns, .pid = 7, .tid = tid};

    event.u.sw.out = out;
    event.u.sw.preempted = preempted;
    return event;
}

static const uint64_t chain[] = {0xffffffff81000010u, 0xffffffff81000200u};

static struct rp_event peeked(uint64_t time_ns, uint32_t tid, bool at_switch, int number, uint64_t address)
{
    struct rp_event event = {.kind = RP_EVENT_PEEK, .time_ns = time_ns, .pid = 7, .tid = tid};

    event.u.peek.sample.kernel = chain;
    event.u.peek.sample.nkernel = 2;
    event.u.peek.at_switch = at_switch;
    event.u.peek.syscall = number;
    event.u.peek.args[0] = address;
    event.u.peek.args[1] = 0x80; /* FUTEX_WAIT | FUTEX_PRIVATE_FLAG */
    return event;
}

static void test_waits_reach_the_profile_with_stack_and_lock(void **state)
{
    struct fold_bench *b = *state;

    fold_bench_send(b, switched(1000, 7, false, false));
    fold_bench_send(b, peeked(1999, 7, true, 202, 0x500000));
    fold_bench_send(b, switched(2000, 7, true, false));
    fold_bench_send(b, switched(5000, 7, false, false));
    fold_bench_send(b, switched(6000, 7, true, false));
    fold_bench_send(b, switched(6500, 7, false, false));
    assert_int_equal(rp_fold_finish(&b->fold, 7000, &b->err), RP_OK);
    assert_int_equal(b->profile.waits.n, 1);
    assert_int_equal(b->profile.waits.at[0].ns, 3000);
    assert_int_equal(b->profile.waits.at[0].syscall, 202);
    assert_int_equal(b->profile.waits.at[0].tag, 1);
    assert_true(b->profile.locks.at[0].address == 0x500000);
    assert_int_equal(b->profile.threads.at[0].waits, 3); /* the first began with the watch and took no time */
    assert_int_equal(b->profile.threads.at[0].waiting_ns, 3500);
    assert_int_equal(b->profile.threads.at[0].cpu_ns, 1000 + 1000 + 500);
    assert_int_equal(b->profile.threads.at[0].wall_ns, 6000);
    assert_int_equal(b->fold.wait_stacks, 1);
}

static void test_open_waits_count_to_the_end_of_the_thread_or_the_watch(void **state)
{
    struct fold_bench *b = *state;
    struct rp_event gone = {.kind = RP_EVENT_EXIT, .time_ns = 4000, .pid = 7, .tid = 8};

    fold_bench_send(b, switched(1000, 7, true, false));
    fold_bench_send(b, switched(1000, 8, true, false));
    fold_bench_send(b, peeked(2000, 8, false, -1, 0));
    fold_bench_send(b, gone);
    fold_bench_send(b, gone);
    assert_int_equal(rp_fold_finish(&b->fold, 9000, &b->err), RP_OK);
    assert_int_equal(b->profile.threads.at[0].waiting_ns, 8000);
    assert_int_equal(b->profile.threads.at[1].waiting_ns, 3000);
    assert_int_equal(b->profile.threads.at[1].wall_ns, 3000);
    assert_int_equal(b->profile.waits.n, 1);
    assert_int_equal(b->profile.waits.at[0].ns, 3000);
    assert_int_equal(b->profile.waits.at[0].tag, 0);
}

static void test_what_the_invisible_kernel_took_is_counted(void **state)
{
    struct fold_bench *b = *state;
    uint64_t n = 0, weight = 0;

    b->fold.hidden_period_ns = 1000;
    fold_bench_send(b, switched(10000, 7, false, false));
    fold_bench_send(b, fold_bench_sample(11000, 7, 7, chain, 2));
    fold_bench_send(b, fold_bench_sample(15000, 7, 7, chain, 2));
    assert_int_equal(rp_fold_tick(&b->fold, &b->err), RP_OK); /* 5 000 ran, 2 000 sampled */
    fold_bench_send(b, switched(20500, 7, true, false));
    assert_int_equal(rp_fold_finish(&b->fold, 90000, &b->err), RP_OK);
    for (size_t i = 0; i < b->profile.counts.n; i++) {
        n += b->profile.counts.at[i].n;
        weight += b->profile.counts.at[i].weight_ns;
    }
    assert_int_equal(n, 10);
    assert_int_equal(weight, 10000);
    assert_int_equal(b->profile.threads.at[0].cpu_ns, 10500);
}

/* The thread is not there any more, and no record told of its end: what it did between the last that is known and the end of the watch it did not do. */
static void test_an_end_that_was_lost_is_no_endless_wait(void **state)
{
    struct fold_bench *b = *state;

    fold_bench_send(b, switched(1000, 7, true, false));
    fold_bench_send(b, switched(3000, 7, false, false));
    fold_bench_send(b, switched(4000, 7, true, false));
    fold_bench_send(b, switched(1000, 8, false, false));
    fold_bench_send(b, fold_bench_sample(3500, 7, 8, chain, 2));
    b->fold.lossy = true;
    b->fold.replay = false;
    assert_int_equal(rp_fold_finish(&b->fold, 9000, &b->err), RP_OK);
    assert_int_equal(b->profile.threads.at[0].wall_ns, 3000);
    assert_int_equal(b->profile.threads.at[0].waiting_ns, 2000);
    assert_int_equal(b->profile.threads.at[0].waits, 1);
    assert_int_equal(b->profile.threads.at[1].wall_ns, 2500);
    assert_int_equal(b->profile.threads.at[1].cpu_ns, 2500);
}

static void test_exec_ends_all_and_goes_on_running(void **state)
{
    struct fold_bench *b = *state;

    fold_bench_send(b, switched(1000, 7, false, false));
    fold_bench_send(b, switched(1000, 8, true, false));
    fold_bench_send(b, fold_bench_exec(3000, 7, "second"));
    fold_bench_send(b, switched(3500, 7, true, false));
    assert_int_equal(rp_fold_finish(&b->fold, 4000, &b->err), RP_OK);
    assert_int_equal(b->profile.threads.n, 3);
    assert_int_equal(b->profile.threads.at[0].cpu_ns, 2000);
    assert_int_equal(b->profile.threads.at[1].waiting_ns, 2000);
    assert_int_equal(b->profile.threads.at[2].cpu_ns, 500);
    assert_int_equal(b->profile.threads.at[2].waiting_ns, 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_moment_is_in_one_state),
        cmocka_unit_test(test_the_first_record_tells_the_beginning),
        cmocka_unit_test(test_records_before_the_watch_and_lost_ones_lose_no_time),
        cmocka_unit_test(test_a_look_belongs_to_the_wait_it_fell_into),
        cmocka_unit_test(test_a_stack_at_the_switch_is_preferred_and_not_kept_over_a_preemption),
        cmocka_unit_test(test_a_wait_is_looked_at_once),
        cmocka_unit_test(test_time_in_which_a_record_is_missing_is_in_no_state),
        cmocka_unit_test(test_a_look_is_not_carried_over_a_missing_record),
        cmocka_unit_test(test_cpu_time_is_settled_without_records),
        cmocka_unit_test(test_text_of_procfs),
        cmocka_unit_test(test_a_thread_in_a_mutex_is_seen_with_its_stack),
        cmocka_unit_test(test_numbers_out_of_code),
        cmocka_unit_test_setup_teardown(test_waits_reach_the_profile_with_stack_and_lock, fold_bench_set_up, fold_bench_tear_down),
        cmocka_unit_test_setup_teardown(test_open_waits_count_to_the_end_of_the_thread_or_the_watch, fold_bench_set_up, fold_bench_tear_down),
        cmocka_unit_test_setup_teardown(test_what_the_invisible_kernel_took_is_counted, fold_bench_set_up, fold_bench_tear_down),
        cmocka_unit_test_setup_teardown(test_an_end_that_was_lost_is_no_endless_wait, fold_bench_set_up, fold_bench_tear_down),
        cmocka_unit_test_setup_teardown(test_exec_ends_all_and_goes_on_running, fold_bench_set_up, fold_bench_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
