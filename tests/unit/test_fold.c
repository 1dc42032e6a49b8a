/* SPDX-License-Identifier: MIT */
/* fold/: events become counts. Events are made by hand, so every expected figure is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "support/fold_bench.h"

static const char *thread_name(const struct fold_bench *b, uint32_t thread)
{
    return rp_profile_text(&b->profile, b->profile.threads.at[thread].comm);
}

static void kernel_frames_are_interned_root_first_without_markers(void **state)
{
    struct fold_bench *b = *state;
    static const uint64_t chain[] = {0xffffffffffffff80u /* PERF_CONTEXT_KERNEL */, 0xffffffff81000010u, 0xffffffff81000200u, 0xffffffff81003000u};
    const struct rp_location *leaf, *caller;
    const struct rp_node *node;

    fold_bench_send(b, fold_bench_sample(10, 7, 7, chain, 4));
    fold_bench_send(b, fold_bench_sample(20, 7, 7, chain, 4));
    assert_int_equal(b->profile.counts.n, 1);
    assert_int_equal(b->profile.counts.at[0].n, 2);
    assert_int_equal(b->profile.counts.at[0].weight_ns, 2000);
    node = &b->profile.nodes.at[b->profile.counts.at[0].node];
    leaf = &b->profile.locations.at[node->location];
    caller = &b->profile.locations.at[b->profile.nodes.at[node->parent].location];
    assert_true(leaf->addr == chain[1]);
    assert_int_equal(leaf->flags, RP_LOCATION_KERNEL);
    assert_true(caller->addr == chain[2]);
    assert_int_equal(caller->flags, RP_LOCATION_KERNEL | RP_LOCATION_CALLER);
    assert_int_equal(b->profile.nodes.n, 4); /* the root and three frames */
}

static void a_pc_in_no_mapping_is_a_marked_root(void **state)
{
    struct fold_bench *b = *state;
    static const uint8_t stack[64];
    struct rp_event event = fold_bench_sample(10, 7, 7, NULL, 0);
    const struct rp_location *mark;

    event.u.sample.has_user = true;
    event.u.sample.regs[RP_RIP] = 0x1234;
    event.u.sample.regs[RP_RSP] = 0x7000;
    event.u.sample.stack = stack;
    event.u.sample.stack_bytes = sizeof stack;
    fold_bench_send(b, event);
    mark = &b->profile.locations.at[b->profile.nodes.at[b->profile.counts.at[0].node].location];
    assert_int_equal(mark->flags & RP_LOCATION_MARK, RP_LOCATION_MARK);
    assert_string_equal(rp_profile_text(&b->profile, (uint32_t)mark->addr), "[truncated: pc in no mapping]");
}

/* What was mapped when a recording began has no time; the blocks of a replay begin with the first event that has one. */
static void a_replay_begins_with_its_first_event(void **state)
{
    struct fold_bench *b = *state;
    static const uint64_t pc[] = {0xffffffff81000010u};
    struct rp_event map = {.kind = RP_EVENT_MMAP, .pid = 7, .tid = 7};

    map.u.mmap.start = 0x1000;
    map.u.mmap.end = 0x2000;
    map.u.mmap.path = "//anon";
    map.u.mmap.offline = true;
    fold_bench_send(b, map);
    fold_bench_send(b, fold_bench_sample(UINT64_C(9000000000000), 7, 7, pc, 1));
    fold_bench_send(b, fold_bench_sample(UINT64_C(9000000001000), 7, 7, pc, 1));
    assert_true(b->fold.start_ns == UINT64_C(9000000000000));
    assert_true(b->fold.last_event_ns == UINT64_C(9000000001000));
    assert_int_equal(b->profile.counts.n, 1);
    assert_int_equal(b->profile.counts.at[0].block, 0);
    assert_int_equal(b->profile.block_ns, 10000000);
}

static void exec_begins_another_generation(void **state)
{
    struct fold_bench *b = *state;
    static const uint64_t pc[] = {0xffffffff81000010u};

    fold_bench_send(b, fold_bench_sample(10, 7, 7, pc, 1));
    fold_bench_send(b, fold_bench_exec(20, 7, "second"));
    fold_bench_send(b, fold_bench_sample(30, 7, 7, pc, 1));
    assert_int_equal(b->profile.processes.n, 2);
    assert_int_equal(b->profile.processes.at[1].generation, 1);
    assert_int_equal(b->profile.processes.at[1].pid, 7);
    assert_int_equal(b->profile.threads.n, 2);
    assert_string_equal(thread_name(b, 1), "second");
    assert_int_equal(b->profile.counts.n, 2);
    assert_int_equal(rp_fold_finish(&b->fold, 100, &b->err), RP_OK);
    assert_int_equal(b->profile.threads.at[0].wall_ns, 10);
    assert_int_equal(b->profile.threads.at[1].wall_ns, 80);
}

static void a_new_thread_carries_its_creators_name_until_it_takes_one(void **state)
{
    struct fold_bench *b = *state;
    struct rp_event comm = {.kind = RP_EVENT_COMM, .time_ns = 10, .pid = 7, .tid = 7};
    struct rp_event fork = {.kind = RP_EVENT_FORK, .time_ns = 20, .pid = 7, .tid = 8};
    struct rp_event named = {.kind = RP_EVENT_COMM, .time_ns = 30, .pid = 7, .tid = 8};
    struct rp_event exit = {.kind = RP_EVENT_EXIT, .time_ns = 45, .pid = 7, .tid = 8};

    comm.u.comm.comm = "main";
    fork.u.fork.parent_pid = fork.u.fork.parent_tid = 7;
    named.u.comm.comm = "worker";
    fold_bench_send(b, comm);
    fold_bench_send(b, fork);
    assert_string_equal(thread_name(b, 1), "main");
    fold_bench_send(b, named);
    assert_string_equal(thread_name(b, 1), "worker");
    fold_bench_send(b, exit);
    assert_int_equal(rp_fold_finish(&b->fold, 100, &b->err), RP_OK);
    assert_int_equal(b->profile.threads.at[1].wall_ns, 25);
    assert_int_equal(b->profile.threads.at[0].wall_ns, 90);
}

static struct rp_event forked(uint64_t time_ns, uint32_t pid, uint32_t tid, uint32_t parent_pid)
{
    struct rp_event event = {.kind = RP_EVENT_FORK, .time_ns = time_ns, .pid = pid, .tid = tid};

    event.u.fork.parent_pid = event.u.fork.parent_tid = parent_pid;
    return event;
}

static struct rp_event ended(uint64_t time_ns, uint32_t pid, uint32_t tid)
{
    return (struct rp_event){.kind = RP_EVENT_EXIT, .time_ns = time_ns, .pid = pid, .tid = tid};
}

static const uint64_t a_pc[] = {0xffffffff81000010u};

static void a_thread_born_under_the_number_of_an_ended_one_is_another(void **state)
{
    struct fold_bench *b = *state;
    struct rp_event named = {.kind = RP_EVENT_COMM, .time_ns = 25, .pid = 7, .tid = 8};

    named.u.comm.comm = "first";
    fold_bench_send(b, fold_bench_sample(10, 7, 7, a_pc, 1));
    fold_bench_send(b, forked(20, 7, 8, 7));
    fold_bench_send(b, forked(20, 7, 8, 7)); /* told twice */
    fold_bench_send(b, named);
    fold_bench_send(b, ended(45, 7, 8));
    fold_bench_send(b, fold_bench_sample(46, 7, 8, a_pc, 1)); /* of its own end */
    fold_bench_send(b, forked(60, 7, 8, 7));
    fold_bench_send(b, fold_bench_sample(70, 7, 8, a_pc, 1));
    assert_int_equal(b->fold.live.n, 2);
    assert_int_equal(rp_fold_finish(&b->fold, 100, &b->err), RP_OK);
    assert_int_equal(b->profile.threads.n, 3);
    assert_string_equal(thread_name(b, 1), "first");
    assert_int_equal(b->profile.threads.at[1].wall_ns, 25);
    assert_int_equal(b->profile.threads.at[2].tid, 8);
    assert_string_equal(thread_name(b, 2), "replay");
    assert_int_equal(b->profile.threads.at[2].wall_ns, 40);
    assert_int_equal(b->profile.counts.n, 3); /* one each */
    assert_int_equal(b->profile.counts.at[2].thread, 2);
}

/* The record of its birth was lost. */
static void what_an_ended_thread_does_much_later_is_anothers(void **state)
{
    struct fold_bench *b = *state;

    fold_bench_send(b, fold_bench_sample(10, 7, 8, a_pc, 1));
    fold_bench_send(b, ended(45, 7, 8));
    fold_bench_send(b, fold_bench_sample(1000000000, 7, 8, a_pc, 1));
    assert_int_equal(rp_fold_finish(&b->fold, 1000000100, &b->err), RP_OK);
    assert_int_equal(b->profile.threads.n, 2);
    assert_int_equal(b->profile.threads.at[0].wall_ns, 35);
    assert_int_equal(b->profile.threads.at[1].wall_ns, 100);
}

static void a_process_born_under_the_number_of_an_ended_one_is_another(void **state)
{
    struct fold_bench *b = *state;

    fold_bench_send(b, fold_bench_sample(10, 7, 7, a_pc, 1));
    b->fold.replay = false;
    b->fold.children = true;
    fold_bench_send(b, forked(20, 9, 9, 7));
    fold_bench_send(b, forked(21, 9, 9, 7)); /* told twice */
    fold_bench_send(b, forked(22, 9, 10, 9));
    fold_bench_send(b, ended(30, 9, 9));
    fold_bench_send(b, forked(31, 9, 9, 7)); /* the other thread lives: the same process */
    fold_bench_send(b, ended(40, 9, 9));
    fold_bench_send(b, ended(40, 9, 10));
    assert_int_equal(b->profile.processes.n, 2);
    fold_bench_send(b, fold_bench_sample(41, 9, 9, a_pc, 1)); /* of its own end */
    fold_bench_send(b, forked(60, 9, 9, 7));
    fold_bench_send(b, fold_bench_sample(70, 9, 9, a_pc, 1));
    assert_int_equal(rp_fold_finish(&b->fold, 100, &b->err), RP_OK);
    assert_int_equal(b->profile.processes.n, 3);
    assert_int_equal(b->profile.processes.at[2].pid, 9);
    assert_int_equal(b->profile.processes.at[2].generation, 1);
    assert_int_equal(b->profile.threads.at[b->profile.threads.n - 1].process, 2);
    assert_int_equal(b->profile.threads.at[b->profile.threads.n - 1].wall_ns, 40);
    assert_int_equal(b->profile.counts.at[2].thread, b->profile.threads.n - 1);
}

static void a_stranger_under_the_number_of_an_ended_process_is_ignored(void **state)
{
    struct fold_bench *b = *state;

    fold_bench_send(b, fold_bench_sample(10, 7, 7, a_pc, 1));
    b->fold.replay = false;
    fold_bench_send(b, ended(20, 7, 7));
    assert_true(rp_fold_watches(&b->fold, 7));
    fold_bench_send(b, forked(30, 7, 7, 5));
    fold_bench_send(b, fold_bench_sample(40, 7, 7, a_pc, 1));
    assert_int_equal(b->fold.samples, 1);
    assert_false(rp_fold_watches(&b->fold, 7));
}

/* What is done at each turn is done for the living: their list holds them, whoever ended, in whatever order. */
static void only_the_living_are_gone_through(void **state)
{
    enum { N = 1000 };
    struct fold_bench *b = *state;
    struct rp_event exec = {.kind = RP_EVENT_COMM, .time_ns = 5000, .pid = 7, .tid = 7};
    bool there[N + 1] = {false};

    exec.u.comm.comm = "second";
    exec.u.comm.exec = true;
    for (uint32_t i = 0; i < N; i++)
        fold_bench_send(b, fold_bench_sample(10 + i, 7, 7 + i, a_pc, 1));
    fold_bench_send(b, fold_bench_sample(3000, 9000, 9000, a_pc, 1)); /* of another process */
    for (uint32_t i = 0; i < N; i++)
        if (i * 7 % 10 != 3)
            fold_bench_send(b, ended(4000, 7, 7 + i * 7 % N));
    assert_int_equal(b->fold.live.n, N / 10 + 1);
    for (size_t i = 0; i < b->fold.live.n; i++) {
        uint32_t thread = b->fold.live.at[i];

        assert_int_equal(b->fold.threads.at[thread].end_ns, 0);
        assert_int_equal(b->fold.threads.at[thread].live_at, i);
        assert_false(there[thread]);
        there[thread] = true;
    }
    fold_bench_send(b, exec);
    assert_int_equal(b->fold.live.n, 2); /* the one that goes on, and the other process's */
    assert_int_equal(rp_fold_finish(&b->fold, 6000, &b->err), RP_OK);
    assert_int_equal(b->profile.threads.n, N + 2);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(b->profile.threads.at[i].wall_ns, (there[i] ? 5000 : 4000) - (10 + i));
}

static void processes_not_watched_are_ignored(void **state)
{
    struct fold_bench *b = *state;
    static const uint64_t pc[] = {0xffffffff81000010u};

    fold_bench_send(b, fold_bench_sample(10, 7, 7, pc, 1));
    b->fold.replay = false;
    fold_bench_send(b, fold_bench_sample(20, 9, 9, pc, 1));
    assert_int_equal(b->fold.samples, 1);
    assert_int_equal(b->profile.processes.n, 1);
}

static void every_failing_allocation_is_survived(void **state)
{
    static const uint64_t chain[] = {0xffffffff81000010u, 0xffffffff81000200u};

    for (uint64_t n = 1; n < 60; n++) {
        struct fold_bench *b;
        struct rp_event event = fold_bench_sample(10, 7, 7, chain, 2);
        enum rp_status status;

        fold_bench_tear_down(state);
        fold_bench_set_up(state);
        b = *state;
        rp_alloc_fail_at(n);
        status = rp_fold_event(&b->fold, &event, &b->err);
        rp_alloc_fail_at(0);
        assert_true(status == RP_OK || status == RP_NOMEM);
        assert_int_equal(rp_fold_event(&b->fold, &event, &b->err), RP_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kernel_frames_are_interned_root_first_without_markers, fold_bench_set_up, fold_bench_tear_down),
        cmocka_unit_test_setup_teardown(a_pc_in_no_mapping_is_a_marked_root, fold_bench_set_up, fold_bench_tear_down),
        cmocka_unit_test_setup_teardown(a_replay_begins_with_its_first_event, fold_bench_set_up, fold_bench_tear_down),
        cmocka_unit_test_setup_teardown(exec_begins_another_generation, fold_bench_set_up, fold_bench_tear_down),
        cmocka_unit_test_setup_teardown(a_new_thread_carries_its_creators_name_until_it_takes_one, fold_bench_set_up, fold_bench_tear_down),
        cmocka_unit_test_setup_teardown(a_thread_born_under_the_number_of_an_ended_one_is_another, fold_bench_set_up, fold_bench_tear_down),
        cmocka_unit_test_setup_teardown(what_an_ended_thread_does_much_later_is_anothers, fold_bench_set_up, fold_bench_tear_down),
        cmocka_unit_test_setup_teardown(a_process_born_under_the_number_of_an_ended_one_is_another, fold_bench_set_up, fold_bench_tear_down),
        cmocka_unit_test_setup_teardown(a_stranger_under_the_number_of_an_ended_process_is_ignored, fold_bench_set_up, fold_bench_tear_down),
        cmocka_unit_test_setup_teardown(only_the_living_are_gone_through, fold_bench_set_up, fold_bench_tear_down),
        cmocka_unit_test_setup_teardown(processes_not_watched_are_ignored, fold_bench_set_up, fold_bench_tear_down),
        cmocka_unit_test_setup_teardown(every_failing_allocation_is_survived, fold_bench_set_up, fold_bench_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
