/* SPDX-License-Identifier: MIT */
/* The ptrace backend's parts: the queue against its own promises, holding against a child whose call must not be seen interrupted. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "sample/perf_cpus.h"
#include "sample/ptrace_edges.h"
#include "sample/ptrace_hold.h"
#include "sample/ptrace_queue.h"
#include "sample/ptrace_watch.h"

enum { RECORDS = 200000, QUEUE = 1 << 16, CHILDREN = 900, THREADS = 600 };

static size_t length_of(uint32_t i)
{
    return i * 2654435761u % 3000;
}

static void *write_records(void *context)
{
    struct rp_queue *q = context;

    for (uint32_t i = 0; i < RECORDS;) {
        struct rp_queue_record *record = rp_queue_reserve(q, 3000);

        if (!record || i % 7 == 3) { /* given up now and then */
            if (i % 7 == 3 && record)
                record = rp_queue_reserve(q, 3000);
            if (!record)
                continue;
        }
        record->event = (struct rp_event){.time_ns = i};
        memset(record->data, (int)(i & 0xff), length_of(i));
        rp_queue_commit(q, record, length_of(i));
        i++;
    }
    return NULL;
}

static void test_queue_loses_and_tears_nothing(void **state)
{
    struct rp_queue q = {0};
    pthread_t writer;
    uint32_t next = 0;

    (void)state;
    assert_true(rp_queue_init(&q, QUEUE));
    assert_null(rp_queue_next(&q));
    assert_int_equal(pthread_create(&writer, NULL, write_records, &q), 0);
    while (next < RECORDS) {
        struct rp_queue_record *record = rp_queue_next(&q);

        if (!record)
            continue;
        assert_int_equal(record->event.time_ns, next);
        assert_int_equal(record->extra, length_of(next));
        for (uint32_t k = 0; k < record->extra; k++)
            if (record->data[k] != (next & 0xff))
                fail_msg("record %u is torn at byte %u", next, k);
        next++;
        rp_queue_advance(&q, record);
    }
    pthread_join(writer, NULL);
    assert_null(rp_queue_next(&q));
    assert_int_equal(rp_queue_used(&q), 0);
    rp_queue_release(&q);
}

static void test_full_queue_refuses(void **state)
{
    struct rp_queue q = {0};
    unsigned n = 0;
    struct rp_queue_record *record;

    (void)state;
    assert_true(rp_queue_init(&q, QUEUE));
    for (; (record = rp_queue_reserve(&q, 1000)); n++)
        rp_queue_commit(&q, record, 1000);
    assert_in_range(n, 30, QUEUE / 1000);
    rp_queue_advance(&q, rp_queue_next(&q));
    rp_queue_advance(&q, rp_queue_next(&q));
    assert_non_null(rp_queue_reserve(&q, 1000));
    rp_queue_release(&q);
}

/* A child in a system call that the kernel would end with EINTR. */
static pid_t start_waiter(int ready)
{
    pid_t pid = fork();

    if (!pid) {
        struct epoll_event event;
        int fd = epoll_create1(0);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (write(ready, "r", 1) != 1)
            _exit(2);
        _exit(epoll_wait(fd, &event, 1, 1500) == 0 ? 0 : errno == EINTR ? 77 : 3);
    }
    return pid;
}

static enum rp_hold_state wait_for_stop(pid_t pid, struct rp_hold_stop *stop)
{
    enum rp_hold_state state;

    for (int i = 0; (state = rp_hold_look(pid, stop)) == RP_HOLD_NOT_YET && i < 20000; i++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    return state;
}

static void test_an_interrupted_call_goes_on(void **state)
{
    static uint8_t stack[4096];
    struct rp_hold_copy copy;
    struct rp_hold_stop stop;
    int ready[2], status;
    char byte;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(ready), 0);
    pid = start_waiter(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    nanosleep(&(struct timespec){0, 200000000}, NULL); /* it is in the call now, or will be: neither may be seen */
    if (!rp_hold_ask(pid)) {
        print_message("skipped: ptrace is refused here: %s\n", strerror(errno));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        skip();
    }
    assert_int_equal(wait_for_stop(pid, &stop), RP_HOLD_STOPPED);
    assert_true(stop.by_us);
    assert_true(rp_hold_copy(pid, pid, stack, sizeof stack, &copy));
    assert_true(copy.in_syscall);
    assert_in_range(copy.stack_bytes, 64, sizeof stack);
    assert_true(copy.regs[RP_RSP] > 4096 && copy.regs[RP_RIP] > 4096);
    assert_true(rp_hold_let_go(pid, &stop));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0); /* 77: it saw EINTR */
    close(ready[0]);
    close(ready[1]);
}

static void ignore(void *context, enum rp_watch_news news, uint32_t pid, uint32_t tid, uint32_t other, const char *comm)
{
    (void)pid, (void)tid, (void)other, (void)comm;
    *(unsigned *)context += news == RP_WATCH_THREAD;
}

static void *sit(void *mutex)
{
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
    return NULL;
}

static void test_a_sleeper_is_looked_at_once(void **state)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct rp_watch watch = {.files_max = 16, .period_ns = 4000000};
    struct rp_watch_process *p;
    struct rp_watch_thread *sleeper = NULL, *self;
    unsigned told = 0;
    pthread_t thread;

    (void)state;
    assert_true(rp_watch_add(&watch, (uint32_t)getpid(), 1));
    p = &watch.processes.at[0];
    assert_int_equal(p->threads.n, 1);
    pthread_mutex_lock(&mutex);
    assert_int_equal(pthread_create(&thread, NULL, sit, &mutex), 0);
    nanosleep(&(struct timespec){0, 300000000}, NULL);
    rp_watch_list(&watch, p, 1000000000, ignore, &told);
    assert_int_equal(told, 1);
    assert_int_equal(p->threads.n, 2);
    self = rp_watch_find(p, (uint32_t)getpid());
    sleeper = self == &p->threads.at[0] ? &p->threads.at[1] : &p->threads.at[0];
    assert_int_equal(rp_watch_look(&watch, p, self, 1000000001, ignore, &told), RP_WATCH_RUNS);
    assert_int_equal(rp_watch_look(&watch, p, sleeper, 1000000002, ignore, &told), RP_WATCH_BLOCKED);
    assert_int_equal(rp_watch_look(&watch, p, sleeper, 1000000003, ignore, &told), RP_WATCH_SAME);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    rp_watch_list(&watch, p, 3000000000, ignore, &told);
    assert_int_equal(p->threads.n, 1);
    rp_watch_release(&watch);
    assert_int_equal(watch.files, 0);
}

/* A reader that is too far behind loses edges, and knows how many. */
static void test_edges_without_room_are_counted(void **state)
{
    struct rp_queue q = {0};
    struct rp_edges edges = {.queue = &q};
    struct rp_watch_process p = {.pid = 7};
    struct rp_watch_thread t = {.tid = 8, .born = true};
    uint64_t now = 1000000000, taken = 0;
    struct rp_queue_record *record;

    (void)state;
    assert_true(rp_queue_init(&q, 1 << 12));
    for (int i = 0; i < 100; i++, now += 10000000) {
        t.times.cpu_ns += 5000000;
        rp_edges_look(&edges, &p, &t, i % 2 ? RP_WATCH_BLOCKED : RP_WATCH_RUNS, now);
    }
    for (; (record = rp_queue_next(&q)); taken++)
        rp_queue_advance(&q, record);
    assert_int_equal(taken, edges.switches);
    assert_true(edges.lost > 50);
    assert_true(edges.lost + edges.switches >= 100); /* each of the looks tells one edge at least */
    rp_edges_release(&edges);
    rp_queue_release(&q);
}

static void *pauses(void *context)
{
    pause();
    return context;
}

/* More children than fit a page of text, of a thread that is not among the first to be asked. */
static void *begets(void *context)
{
    pid_t parent = getpid();

    for (int i = 0; i < CHILDREN; i++) {
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent) /* it was killed before this was heard, and would never be heard of again */
                _exit(0);
            for (;;)
                pause();
        }
    }
    return pauses(context);
}

static void test_all_children_are_found(void **state)
{
    struct rp_watch watch = {.files_max = 16, .period_ns = 4000000};
    unsigned told = 0;
    size_t found = 0;
    uint64_t now = 1;
    pid_t parent;

    (void)state;
    if (rp_raise_limits() < CHILDREN + 100)
        skip(); /* each process that is watched takes a descriptor */
    parent = fork();
    if (!parent) {
        pthread_t thread;
        pthread_attr_t small;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pthread_attr_init(&small);
        pthread_attr_setstacksize(&small, 65536);
        for (int i = 0; i < THREADS; i++)
            pthread_create(&thread, &small, pauses, NULL);
        pthread_create(&thread, &small, begets, NULL);
        for (;;)
            pause();
    }
    for (int i = 0; i < 3000 && found < CHILDREN; i++) {
        usleep(10000);
        now += 200000000;
        if (!watch.processes.n && !rp_watch_add(&watch, (uint32_t)parent, now))
            continue;
        rp_watch_list(&watch, &watch.processes.at[0], now, ignore, &told);
        rp_watch_check(&watch, 0, true, now, ignore, &told);
        found = watch.processes.n - 1;
    }
    assert_int_equal(found, CHILDREN);
    rp_watch_release(&watch);
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queue_loses_and_tears_nothing),
        cmocka_unit_test(test_full_queue_refuses),
        cmocka_unit_test(test_an_interrupted_call_goes_on),
        cmocka_unit_test(test_a_sleeper_is_looked_at_once),
        cmocka_unit_test(test_edges_without_room_are_counted),
        cmocka_unit_test(test_all_children_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
