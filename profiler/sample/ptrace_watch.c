/* SPDX-License-Identifier: MIT */
/* See ptrace_watch.h. The traps: schedstat of a running thread lags by a scheduler tick, so a thread last seen running is always looked at in
 * full; a descriptor under /proc/PID/task/TID stays with its thread, so a reused thread id answers through a new one only; reading costs microseconds and
 * there may be thousands of threads. */
#include "sample/ptrace_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"

enum {
    SMALL = 64,                    /* threads that are all looked at every time */
    TURNS = 64,                    /* else those that have not run lately are looked at in so many turns */
    LIST_NS_SMALL = 0,
    LIST_NS_LARGE = 20000000,
    LIST_NS_PER_THREAD = 50000,    /* a listing costs about 1 us per thread: two percent of the time at most */
    LATELY_NS = 250000000,
    CHECK_NS = 100000000,
    STAT_TEXT = 1024,
    CHILDREN_THREADS_MAX = 512,    /* threads asked for their children at a time */
};

static void forget_files(struct rp_watch *watch, struct rp_watch_thread *t)
{
    if (t->schedstat >= 0 && close(t->schedstat) == 0)
        watch->files--;
    if (t->stat >= 0 && close(t->stat) == 0)
        watch->files--;
    t->schedstat = t->stat = -1;
}

/* The text of task/TID/NAME; 0 bytes when it is gone. */
static size_t read_task_file(const struct rp_watch_process *p, const struct rp_watch_thread *t, const char *name, int kept, char *text, size_t room)
{
    char path[48];
    ssize_t got;
    int fd = kept;

    if (fd < 0) {
        snprintf(path, sizeof path, "%u/%s", t->tid, name);
        fd = openat(dirfd(p->tasks), path, O_RDONLY | O_CLOEXEC);
    }
    if (fd < 0)
        return 0;
    got = pread(fd, text, room - 1, 0);
    if (kept < 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

static void keep_files(struct rp_watch *watch, const struct rp_watch_process *p, struct rp_watch_thread *t)
{
    char path[48];

    if (t->schedstat >= 0 || watch->files + 2 > watch->files_max)
        return;
    snprintf(path, sizeof path, "%u/schedstat", t->tid);
    t->schedstat = openat(dirfd(p->tasks), path, O_RDONLY | O_CLOEXEC);
    watch->files += t->schedstat >= 0;
    snprintf(path, sizeof path, "%u/stat", t->tid);
    t->stat = openat(dirfd(p->tasks), path, O_RDONLY | O_CLOEXEC);
    watch->files += t->stat >= 0;
}

bool rp_watch_schedstat(const struct rp_watch_process *p, const struct rp_watch_thread *t, struct rp_watch_times *times)
{
    char text[96];
    struct rp_cursor c;

    if (!p->tasks)
        return false;
    c = rp_cursor_of(text, read_task_file(p, t, "schedstat", t->schedstat, text, sizeof text));
    return rp_cursor_u64(&c, &times->cpu_ns) && rp_cursor_skip_blanks(&c) && rp_cursor_u64(&c, &times->delay_ns) && rp_cursor_skip_blanks(&c) &&
           rp_cursor_u64(&c, &times->switches_in);
}

/* Fields of a stat line as counted in proc(5). */
struct stat_fields {
    char state, comm[16];
    int cpu;
    uint64_t stack_start;
};

static bool parse_stat(const char *text, size_t length, struct stat_fields *out)
{
    enum { STATE = 3, STACK_START = 28, PROCESSOR = 39 };
    const char *open = memchr(text, '(', length), *close = memrchr(text, ')', length);
    struct rp_cursor c, word;
    uint64_t number;
    size_t n;

    *out = (struct stat_fields){0};
    if (!open || !close || close < open)
        return false;
    n = (size_t)(close - open - 1);
    memcpy(out->comm, open + 1, n < sizeof out->comm ? n : sizeof out->comm - 1);
    c = rp_cursor_of(close + 1, (size_t)(text + length - close - 1));
    for (int field = STATE; field <= PROCESSOR; field++) {
        rp_cursor_skip_blanks(&c);
        rp_cursor_until(&c, ' ', &word.at, &n);
        word.end = word.at + n;
        if (field == STATE && n == 1)
            out->state = *word.at;
        else if (field == STACK_START && rp_cursor_u64(&word, &number))
            out->stack_start = number;
        else if (field == PROCESSOR && rp_cursor_u64(&word, &number))
            out->cpu = (int)number;
    }
    return out->state != '\0';
}

enum rp_watch_sight rp_watch_look(struct rp_watch *watch, struct rp_watch_process *p, struct rp_watch_thread *t, uint64_t now_ns, rp_watch_tell *tell, void *context)
{
    char text[STAT_TEXT];
    struct stat_fields f;
    struct rp_watch_times times;

    if (!rp_watch_schedstat(p, t, &times)) {
        forget_files(watch, t); /* another thread may have its number the next time */
        return RP_WATCH_SAME;
    }
    if (t->state && t->state != 'R' && times.cpu_ns == t->times.cpu_ns && times.switches_in == t->times.switches_in)
        return RP_WATCH_SAME;
    t->times = times;
    if (!parse_stat(text, read_task_file(p, t, "stat", t->stat, text, sizeof text), &f))
        return RP_WATCH_SAME;
    keep_files(watch, p, t);
    if (t->state || f.state == 'R') /* a first look says nothing of the past */
        t->last_ran_ns = now_ns;
    t->state = f.state;
    t->cpu = f.cpu;
    if (memcmp(t->comm, f.comm, sizeof t->comm) != 0) {
        if (*t->comm)
            tell(context, RP_WATCH_NAME, p->pid, t->tid, 0, f.comm);
        memcpy(t->comm, f.comm, sizeof t->comm);
    }
    return f.state == 'R' ? RP_WATCH_RUNS : RP_WATCH_BLOCKED;
}

/* Lists of threads. */

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static bool read_listing(struct rp_watch *watch, struct rp_watch_process *p)
{
    struct dirent *entry;
    uint64_t tid;

    rp_vec_clear(&watch->listing);
    rewinddir(p->tasks);
    while ((entry = readdir(p->tasks))) {
        uint32_t *slot = rp_parse_u64(entry->d_name, 1, INT32_MAX, &tid) ? rp_vec_add(&watch->listing) : NULL;

        if (slot)
            *slot = (uint32_t)tid;
    }
    if (watch->listing.n > 1)
        qsort(watch->listing.at, watch->listing.n, sizeof *watch->listing.at, by_number);
    return watch->listing.n > 0;
}

/* Half a sample's worth at first, on average: a thread that ends early is neither always forgotten nor always counted. */
static uint64_t first_credit(uint32_t tid, uint64_t period_ns)
{
    uint64_t x = tid * UINT64_C(0x9e3779b97f4a7c15);

    return (x >> 40) * period_ns >> 24;
}

static struct rp_watch_thread *add_thread(const struct rp_watch *watch, struct rp_watch_process *p, uint32_t tid, size_t at)
{
    if (!rp_vec_reserve(&p->threads, 1))
        return NULL;
    memmove(&p->threads.at[at + 1], &p->threads.at[at], (p->threads.n - at) * sizeof *p->threads.at);
    p->threads.n++;
    p->threads.at[at] = (struct rp_watch_thread){.tid = tid, .schedstat = -1, .stat = -1, .credit_ns = first_credit(tid, watch->period_ns)};
    return &p->threads.at[at];
}

static size_t place_of(const struct rp_watch_process *p, uint32_t tid)
{
    size_t low = 0, high = p->threads.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (p->threads.at[middle].tid < tid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct rp_watch_thread *rp_watch_find(struct rp_watch_process *p, uint32_t tid)
{
    size_t at = place_of(p, tid);

    return at < p->threads.n && p->threads.at[at].tid == tid ? &p->threads.at[at] : NULL;
}

static void drop_unlisted(struct rp_watch *watch, struct rp_watch_process *p, rp_watch_tell *tell, void *context)
{
    size_t kept = 0;

    for (size_t i = 0; i < p->threads.n; i++) {
        struct rp_watch_thread *t = &p->threads.at[i];

        if (t->listed || t->asked) {
            p->threads.at[kept++] = *t;
            continue;
        }
        forget_files(watch, t);
        if (tell)
            tell(context, RP_WATCH_THREAD_GONE, p->pid, t->tid, 0, NULL);
    }
    p->threads.n = kept;
}

static void take_listing(struct rp_watch *watch, struct rp_watch_process *p, rp_watch_tell *tell, void *context)
{
    for (size_t i = 0; i < p->threads.n; i++)
        p->threads.at[i].listed = false;
    for (size_t i = 0; i < watch->listing.n; i++) {
        uint32_t tid = watch->listing.at[i];
        size_t at = place_of(p, tid);
        bool known = at < p->threads.n && p->threads.at[at].tid == tid;
        struct rp_watch_thread *t = known ? &p->threads.at[at] : add_thread(watch, p, tid, at);

        if (!t)
            return;
        t->listed = true;
        t->born = t->born || (!known && tell);
        if (!known && tell)
            tell(context, RP_WATCH_THREAD, p->pid, tid, 0, NULL);
    }
    drop_unlisted(watch, p, tell, context);
}

static uint64_t list_age_ns(const struct rp_watch_process *p)
{
    uint64_t age = p->threads.n * (uint64_t)LIST_NS_PER_THREAD;

    return p->threads.n <= SMALL ? (uint64_t)LIST_NS_SMALL : age > LIST_NS_LARGE ? age : (uint64_t)LIST_NS_LARGE;
}

void rp_watch_list(struct rp_watch *watch, struct rp_watch_process *p, uint64_t now_ns, rp_watch_tell *tell, void *context)
{
    if (!p->tasks || now_ns - p->listed_ns < list_age_ns(p))
        return;
    p->listed_ns = now_ns;
    if (read_listing(watch, p)) {
        take_listing(watch, p, tell, context);
        return;
    }
    take_listing(watch, p, tell, context);
    if (!p->threads.n) {
        closedir(p->tasks);
        p->tasks = NULL;
    }
}

bool rp_watch_is_due(const struct rp_watch_process *p, size_t i, uint64_t now_ns)
{
    const struct rp_watch_thread *t = &p->threads.at[i];

    return p->threads.n <= SMALL || t->state == 'R' || (t->last_ran_ns && now_ns - t->last_ran_ns < LATELY_NS) || i % TURNS == p->turn;
}

void rp_watch_next_turn(struct rp_watch_process *p)
{
    p->turn = (p->turn + 1) % TURNS;
}

/* Processes. */

bool rp_watch_has_run(struct rp_watch_process *p)
{
    /* The clock of another process's CPU time: see clock_getcpuclockid(3). */
    clockid_t clock = (clockid_t)(~p->pid << 3 | 2);
    struct timespec used;
    uint64_t ns;

    if (clock_gettime(clock, &used))
        return true;
    ns = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
    if (ns == p->clock_ns)
        return false;
    p->clock_ns = ns;
    return true;
}

static bool read_leader(const struct rp_watch_process *p, struct stat_fields *f)
{
    struct rp_watch_thread leader = {.tid = p->pid, .stat = -1};
    char text[STAT_TEXT];

    return p->tasks && parse_stat(text, read_task_file(p, &leader, "stat", -1, text, sizeof text), f);
}

/* Threads that are there already have used their time before the watch. */
static void account_for_the_past(struct rp_watch_process *p)
{
    for (size_t i = 0; i < p->threads.n; i++) {
        struct rp_watch_thread *t = &p->threads.at[i];
        struct rp_watch_times times;

        if (rp_watch_schedstat(p, t, &times))
            t->accounted_ns = times.cpu_ns;
    }
}

/* Its last thread has ended, but its parent has not noticed yet: the leader stays in the list of threads until then. */
static bool is_over(struct rp_watch *watch, struct rp_watch_process *p, const struct stat_fields *leader)
{
    return strchr("ZX", leader->state) && (!read_listing(watch, p) || watch->listing.n <= 1);
}

static void end_process(struct rp_watch *watch, struct rp_watch_process *p, rp_watch_tell *tell, void *context)
{
    for (size_t i = 0; i < p->threads.n; i++) {
        forget_files(watch, &p->threads.at[i]);
        tell(context, RP_WATCH_THREAD_GONE, p->pid, p->threads.at[i].tid, 0, NULL);
    }
    p->threads.n = 0;
    closedir(p->tasks);
    p->tasks = NULL;
}

/* The place of one that is gone, or a new one: a build forks by the thousand. */
static struct rp_watch_process *free_slot(struct rp_watch *watch)
{
    for (size_t i = 0; i < watch->processes.n; i++) {
        struct rp_watch_process *p = &watch->processes.at[i];

        if (p->tasks || p->threads.n)
            continue;
        rp_vec_release(&p->threads);
        return p;
    }
    return rp_vec_add(&watch->processes);
}

bool rp_watch_add(struct rp_watch *watch, uint32_t pid, uint64_t now_ns)
{
    struct rp_watch_process new = {.pid = pid, .listed_ns = now_ns}, *p;
    struct stat_fields f;
    char path[32];

    snprintf(path, sizeof path, "/proc/%u/task", pid);
    new.tasks = opendir(path);
    if (!new.tasks)
        return false;
    p = read_leader(&new, &f) && !is_over(watch, &new, &f) ? free_slot(watch) : NULL;
    if (!p) {
        closedir(new.tasks);
        return false;
    }
    *p = new;
    p->stack_start = f.stack_start;
    if (read_listing(watch, p))
        take_listing(watch, p, NULL, NULL);
    account_for_the_past(p);
    return true;
}

static struct rp_watch_process *find_process(struct rp_watch *watch, uint32_t pid)
{
    for (size_t i = 0; i < watch->processes.n; i++) {
        if (watch->processes.at[i].pid == pid && watch->processes.at[i].tasks)
            return &watch->processes.at[i];
    }
    return NULL;
}

/* `born`: during the watch, so all that its first thread ran is to be told. */
static void add_child(struct rp_watch *watch, uint32_t pid, uint32_t parent, bool born, uint64_t now_ns, rp_watch_tell *tell, void *context)
{
    struct rp_watch_process *p;
    struct rp_watch_thread *leader;

    if (find_process(watch, pid) || !rp_watch_add(watch, pid, now_ns))
        return;
    p = find_process(watch, pid);
    leader = p ? rp_watch_find(p, pid) : NULL;
    if (leader)
        p->born = leader->born = born;
    /* It may have been born before the watch of its parent was complete; whoever listens knows it then. */
    tell(context, RP_WATCH_PROCESS, pid, pid, parent, NULL);
}

/* So many threads at a time, and the next ones the next time: whose child was born in one that is not asked now is found a little later. */
static void add_children(struct rp_watch *watch, size_t process, bool born, uint64_t now_ns, rp_watch_tell *tell, void *context)
{
    struct rp_watch_process *p = &watch->processes.at[process];
    size_t n = p->threads.n < CHILDREN_THREADS_MAX ? p->threads.n : (size_t)CHILDREN_THREADS_MAX;
    uint32_t parent = p->pid;
    struct rp_err nomem;

    rp_vec_clear(&watch->children.at);
    for (size_t i = 0; i < n; i++) {
        const struct rp_watch_thread *t = &p->threads.at[p->children_turn++ % p->threads.n];

        (void)rp_thread_children_read(dirfd(p->tasks), t->tid, &watch->children, &nomem); /* they are asked again */
    }
    for (size_t i = 0; i < watch->children.at.n; i++) /* `p` is void after the first */
        add_child(watch, watch->children.at.at[i], parent, born, now_ns, tell, context);
}

void rp_watch_check(struct rp_watch *watch, size_t process, bool children, uint64_t now_ns, rp_watch_tell *tell, void *context)
{
    struct rp_watch_process *p = &watch->processes.at[process];
    struct stat_fields f = {0};
    bool born = p->born || p->checked_ns; /* children that the first look finds were there before */

    if (!p->tasks || (!p->waits_for_exec && now_ns - p->checked_ns < CHECK_NS))
        return;
    p->checked_ns = now_ns;
    if (read_leader(p, &f) && is_over(watch, p, &f)) {
        end_process(watch, p, tell, context);
        return;
    }
    if (f.stack_start && f.stack_start != p->stack_start) {
        if (p->stack_start)
            tell(context, RP_WATCH_EXEC, p->pid, p->pid, 0, f.comm);
        p->stack_start = f.stack_start;
        p->waits_for_exec = false;
    }
    if (children)
        add_children(watch, process, born, now_ns, tell, context);
}

void rp_watch_release(struct rp_watch *watch)
{
    for (size_t i = 0; i < watch->processes.n; i++) {
        struct rp_watch_process *p = &watch->processes.at[i];

        for (size_t k = 0; k < p->threads.n; k++)
            forget_files(watch, &p->threads.at[k]);
        rp_vec_release(&p->threads);
        if (p->tasks)
            closedir(p->tasks);
    }
    rp_vec_release(&watch->processes);
    rp_vec_release(&watch->listing);
    rp_vec_release(&watch->children.at);
}
