/* SPDX-License-Identifier: MIT */
/* What scripts/bench watches where no workload will do. All say READY on stderr; those with a FILE run until killed and keep two 64-bit words in it: calls
 * done, CPU ns used by the process.
 *
 *     bench_target switches N FILE      two threads in turn, N times in a second of CPU time: a call is some work and a hand-over
 *     bench_target beside N FILE        one thread works, N wait
 *     bench_target gaps SECONDS TOP     reads the clock all the time; prints as JSON the gaps between two readings in ns, longest first: all in which it was
 *                                       stopped, which are those that count as a voluntary switch, and the TOP longest of the others
 *
 * The trap in `switches`: what a profiler does when a thread goes off a CPU is charged to whoever comes next. So both threads have one CPU, where the next
 * is always the other, and are SCHED_BATCH, since a thread that is woken would otherwise often run before its waker waits. */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/parse.h"

enum { THREADS_MAX = 1000, TOP_MAX = 100000, GAPS_MAX = 1000000, GAP_NS = 500, UPDATE_NS = 200000, STEPS = 6, SPIN = 1000000, CALIBRATE_NS = 20000000 };

struct gaps {
    uint64_t ns[GAPS_MAX];
    size_t n;
};

static volatile uint64_t *counter;
static uint64_t work = 1000; /* turns of spin() in a call; written while the other thread waits */
static sem_t turn[2], never;

static uint64_t cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void spin(uint64_t turns)
{
    for (volatile uint64_t i = 0; i < turns; i++)
        ;
}

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem))
        ;
}

static void *other(void *ignored)
{
    (void)ignored;
    for (;;) {
        wait_for(&turn[1]);
        spin(work);
        sem_post(&turn[0]);
    }
    return NULL;
}

static void *waiter(void *ignored)
{
    (void)ignored;
    wait_for(&never);
    return NULL;
}

static bool make_thread(void *(*run)(void *))
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, run, NULL)) {
        fprintf(stderr, "bench_target: no thread could be made\n");
        return false;
    }
    return true;
}

static void one_call(void)
{
    spin(work);
}

static void two_calls(void)
{
    spin(work);
    sem_post(&turn[1]);
    wait_for(&turn[0]);
}

/* Sets `work` so that a call takes so much CPU time, whatever else is in it. */
static void calibrate(void (*step)(void), int64_t calls, int64_t wanted_ns)
{
    for (int i = 0; i < STEPS; i++) {
        int64_t begin = (int64_t)cpu_ns(), rounds = 0, spun, used, more;

        spin(SPIN);
        spun = (int64_t)cpu_ns() - begin;
        begin = (int64_t)cpu_ns();
        do {
            step();
            rounds++;
            used = (int64_t)cpu_ns() - begin;
        } while (used < CALIBRATE_NS);
        more = (wanted_ns - used / (rounds * calls)) * SPIN / spun;
        work = (int64_t)work + more > 1 ? (uint64_t)((int64_t)work + more) : 1;
    }
}

static void go_on(void (*step)(void), int64_t calls, int64_t call_ns)
{
    int64_t batch = UPDATE_NS / (call_ns * calls), done = 0;

    fprintf(stderr, "READY pid=%ld\n", (long)getpid());
    for (;;) {
        for (int64_t i = 0; i <= batch; i++) {
            step();
            done += calls;
        }
        counter[0] = (uint64_t)done;
        counter[1] = cpu_ns();
    }
}

static bool open_counter(const char *path)
{
    FILE *file = fopen(path, "r+");
    void *at = file ? mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0) : MAP_FAILED;

    if (at == MAP_FAILED)
        fprintf(stderr, "bench_target: %s cannot be mapped; it must hold 16 bytes\n", path);
    else
        counter = at;
    if (file)
        fclose(file);
    return counter;
}

static bool take_one_cpu(void)
{
    struct sched_param param = {0};
    cpu_set_t allowed, one;
    int cpu = CPU_SETSIZE - 1;

    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return false;
    while (cpu > 0 && !CPU_ISSET((size_t)cpu, &allowed))
        cpu--;
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    return !sched_setaffinity(0, sizeof one, &one) && !sched_setscheduler(0, SCHED_BATCH, &param);
}

static int run_switches(uint64_t per_second, const char *path)
{
    int64_t call_ns = 1000000000 / (int64_t)per_second;

    if (!open_counter(path) || !take_one_cpu() || sem_init(&turn[0], 0, 0) || sem_init(&turn[1], 0, 0) || !make_thread(other))
        return 1;
    calibrate(two_calls, 2, call_ns);
    go_on(two_calls, 2, call_ns);
    return 0;
}

static int run_beside(uint64_t threads, const char *path)
{
    enum { CALL_NS = 10000 };

    if (!open_counter(path) || sem_init(&never, 0, 0))
        return 1;
    for (uint64_t i = 0; i < threads; i++)
        if (!make_thread(waiter))
            return 1;
    calibrate(one_call, 1, CALL_NS);
    go_on(one_call, 1, CALL_NS);
    return 0;
}

static int longer(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x < y) - (x > y);
}

static uint64_t waits(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return (uint64_t)usage.ru_nvcsw;
}

static void print_longest(const char *name, struct gaps *gaps, size_t top)
{
    qsort(gaps->ns, gaps->n, sizeof *gaps->ns, longer);
    printf("\"%s\":[", name);
    for (size_t i = 0; i < gaps->n && i < top; i++)
        printf(i ? ",%" PRIu64 : "%" PRIu64, gaps->ns[i]);
    printf("]");
}

static int run_gaps(double seconds, uint64_t top)
{
    static struct gaps stops, others;
    uint64_t last, now, end, waited;

    memset(&stops, 1, sizeof stops); /* no page fault among the gaps */
    memset(&others, 1, sizeof others);
    stops.n = others.n = 0;
    fprintf(stderr, "READY pid=%ld\n", (long)getpid());
    waited = waits();
    last = rp_now_ns();
    end = last + (uint64_t)(seconds * 1e9);
    while (last < end && stops.n < GAPS_MAX && others.n < GAPS_MAX) {
        now = rp_now_ns();
        if (now - last >= GAP_NS) {
            uint64_t waited_now = waits();
            struct gaps *gaps = waited_now > waited ? &stops : &others;

            gaps->ns[gaps->n++] = now - last;
            waited = waited_now;
            now = rp_now_ns();
        }
        last = now;
    }
    printf("{");
    print_longest("stops", &stops, GAPS_MAX);
    printf(",");
    print_longest("others", &others, top);
    printf("}\n");
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t number;
    double seconds;

    if (argc == 4 && !strcmp(argv[1], "switches") && rp_parse_u64(argv[2], 100, 200000, &number))
        return run_switches(number, argv[3]);
    if (argc == 4 && !strcmp(argv[1], "beside") && rp_parse_u64(argv[2], 0, THREADS_MAX, &number))
        return run_beside(number, argv[3]);
    if (argc == 4 && !strcmp(argv[1], "gaps") && rp_parse_double(argv[2], 0.1, 3600, &seconds) && rp_parse_u64(argv[3], 1, TOP_MAX, &number))
        return run_gaps(seconds, number);
    fprintf(stderr, "usage: bench_target switches N FILE | beside N FILE | gaps SECONDS TOP\n");
    return 2;
}
