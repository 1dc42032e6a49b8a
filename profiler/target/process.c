/* SPDX-License-Identifier: MIT */
/* See process.h. The traps: the name in stat is in parentheses and may hold blanks and parentheses itself, so the last ')' ends it;
 * /proc/TID exists (unlisted) for thread ids too, and would give a process its thread's figures; a main thread that has
 * left with pthread_exit is a zombie while its process lives on. */
#include "target/process.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/limits.h"
#include "base/parse.h"

enum { PROC_TEXT_MAX = 1 << 20, KERNEL_THREAD_FLAG = 0x00200000 /* PF_KTHREAD, field 9 of stat */ };

/* What is wanted of one stat line. */
struct stat_line {
    char comm[64];
    char state;
    uint64_t flags, threads, start_ticks, waited_ticks; /* waited: of children */
};

static void copy_clean(char *to, size_t room, const char *from, size_t length)
{
    size_t n = 0;

    for (; n < length && n + 1 < room; n++)
        to[n] = (unsigned char)from[n] < 0x20 || from[n] == 0x7f ? '?' : from[n];
    while (n < length && n && ((unsigned char)from[n] & 0xc0) == 0x80)
        n--; /* not through the middle of a UTF-8 character */
    to[n] = '\0';
}

/* Fields behind the name, counted as in proc(5): 3 is the state. Negative numbers stand among them: a word is skipped, not parsed. */
static bool parse_stat(const char *text, size_t length, struct stat_line *out)
{
    const char *open = memchr(text, '(', length), *close = memrchr(text, ')', length);
    struct rp_cursor c;

    if (!open || !close || close < open)
        return false;
    copy_clean(out->comm, sizeof out->comm, open + 1, (size_t)(close - open - 1));
    c = rp_cursor_of(close + 1, (size_t)(text + length - close - 1));
    for (int field = 3; field <= 22; field++) {
        struct rp_cursor word;
        uint64_t ticks;
        size_t n;

        rp_cursor_skip_blanks(&c);
        rp_cursor_until(&c, ' ', &word.at, &n);
        word.end = word.at + n;
        if (field == 3 && n == 1)
            out->state = *word.at;
        if ((field == 16 || field == 17) && rp_cursor_u64(&word, &ticks))
            out->waited_ticks += ticks;
        if ((field == 9 && !rp_cursor_u64(&word, &out->flags)) || (field == 20 && !rp_cursor_u64(&word, &out->threads)) ||
            (field == 22 && !rp_cursor_u64(&word, &out->start_ticks)))
            return false;
    }
    return out->state != '\0';
}

static bool read_small(const char *path, struct rp_buf *text)
{
    struct rp_err err;

    rp_buf_clear(text);
    return rp_read_file(path, PROC_TEXT_MAX, text, &err) == RP_OK;
}

static bool read_stat(const char *dir, struct rp_buf *text, struct stat_line *out)
{
    char path[64];

    *out = (struct stat_line){0};
    snprintf(path, sizeof path, "%s/stat", dir);
    return read_small(path, text) && parse_stat(rp_buf_text(text), text->length, out);
}

/* The numbers behind `key` in a status file; how many there were. */
static size_t status_numbers(const struct rp_buf *text, const char *key, uint64_t *numbers, size_t room)
{
    struct rp_cursor c = rp_cursor_of(rp_buf_text(text), text->length), line;
    size_t n = 0, length;

    while (rp_cursor_line(&c, &line.at, &length)) {
        line.end = line.at + length;
        if (!rp_cursor_take(&line, key))
            continue;
        while (n < room && rp_cursor_skip_blanks(&line) && rp_cursor_u64(&line, &numbers[n]))
            n++;
        break;
    }
    return n;
}

/* Class and machine of the program file. Unknown when it may not be opened: then 64-bit is assumed. */
static bool exe_is_32bit(uint32_t pid)
{
    unsigned char ident[EI_NIDENT];
    char path[64];
    bool is32 = false;
    int fd;

    snprintf(path, sizeof path, "/proc/%u/exe", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    if (rp_pread_full(fd, ident, sizeof ident, 0) == (ssize_t)sizeof ident)
        is32 = memcmp(ident, ELFMAG, SELFMAG) == 0 && ident[EI_CLASS] == ELFCLASS32;
    close(fd);
    return is32;
}

static void read_command(uint32_t pid, struct rp_buf *text, struct rp_process_info *info)
{
    char path[64];
    size_t length;

    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    if (!read_small(path, text) || !text->length) {
        snprintf(info->command, sizeof info->command, "%s", info->comm);
        return;
    }
    length = text->length;
    while (length && !text->data[length - 1])
        length--;
    for (size_t i = 0; i < length; i++) {
        if (!text->data[i])
            text->data[i] = ' ';
    }
    copy_clean(info->command, sizeof info->command, text->data, length);
}

/* Why /proc/PID/stat could not be read. What is there may also be unreadable for want of descriptors. */
static enum rp_status no_such_process(uint32_t pid, struct rp_err *err)
{
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);

    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        return rp_fail(err, RP_FAILED, "process %u cannot be looked at: the limit on open files is used up; raise it (ulimit -n)", pid);
    if (fd >= 0)
        close(fd);
    if (pid && pid <= INT32_MAX && kill((pid_t)pid, 0) != 0 && errno == EPERM)
        return rp_fail(err, RP_NOPROC,
                       "process %u runs but /proc does not show it to this user (mount option hidepid); run rowprof as its user", pid);
    return rp_fail(err, RP_NOPROC, "there is no process %u; `pidof NAME` or `pgrep -f WORD` finds pids", pid);
}

/* Whether any thread of a process with a zombie main thread still lives. */
static bool other_threads_live(uint32_t pid)
{
    struct rp_thread_infos list = {0};
    struct rp_err err;
    bool live = false;

    if (rp_threads_read(pid, &list, &err) == RP_OK) {
        for (size_t i = 0; i < list.at.n; i++)
            live = live || !strchr("ZX", list.at.at[i].state);
    }
    rp_threads_release(&list);
    return live;
}

static enum rp_status refuse_kinds(const struct rp_process_info *info, uint64_t tgid, struct rp_err *err)
{
    if (tgid && tgid != info->pid)
        return rp_fail(err, RP_NOPROC, "%u is a thread (%s) of process %llu; use --pid %llu --thread %u", info->pid, info->comm,
                       (unsigned long long)tgid, (unsigned long long)tgid, info->pid);
    if (strchr("ZX", info->state) && !other_threads_live(info->pid))
        return rp_fail(err, RP_NOPROC, "process %u (%s) has ended already and only waits for its parent to notice (zombie); there is nothing to profile",
                       info->pid, info->comm);
    if (info->is_32bit)
        return rp_fail(err, RP_NOPROC, "process %u (%s) is a 32-bit program; rowprof reads 64-bit x86 programs only", info->pid, info->comm);
    return RP_OK;
}

enum rp_status rp_process_read(uint32_t pid, struct rp_process_info *info, struct rp_err *err)
{
    struct rp_buf text = {0};
    struct stat_line stat;
    uint64_t numbers[32], tgid = 0;
    enum rp_status status;
    char dir[32], path[64];
    size_t n;

    *info = (struct rp_process_info){.pid = pid, .ns_pid = pid};
    snprintf(dir, sizeof dir, "/proc/%u", pid);
    if (!pid || pid > INT32_MAX || !read_stat(dir, &text, &stat)) {
        status = text.failed ? rp_fail_nomem(err) : no_such_process(pid, err);
        goto done;
    }
    memcpy(info->comm, stat.comm, sizeof info->comm);
    info->state = stat.state;
    info->start_ticks = stat.start_ticks;
    info->is_kernel = (stat.flags & KERNEL_THREAD_FLAG) != 0;
    snprintf(path, sizeof path, "%s/status", dir);
    if (read_small(path, &text)) {
        if (status_numbers(&text, "Tgid:", numbers, 1))
            tgid = numbers[0];
        if (status_numbers(&text, "Uid:", numbers, 1))
            info->uid = (uint32_t)numbers[0];
        n = status_numbers(&text, "NSpid:", numbers, sizeof numbers / sizeof *numbers);
        if (n)
            info->ns_pid = (uint32_t)numbers[n - 1];
    }
    info->is_32bit = !info->is_kernel && exe_is_32bit(pid);
    read_command(pid, &text, info);
    status = refuse_kinds(info, tgid, err);
done:
    rp_buf_release(&text);
    return status;
}

uint64_t rp_process_waited_children(uint32_t pid)
{
    struct rp_buf text = {0};
    struct stat_line stat;
    char dir[32];
    bool there;
    long hz = sysconf(_SC_CLK_TCK);

    snprintf(dir, sizeof dir, "/proc/%u", pid);
    there = read_stat(dir, &text, &stat);
    rp_buf_release(&text);
    return there && hz > 0 ? stat.waited_ticks * (1000000000u / (uint64_t)hz) : 0;
}

uint32_t rp_process_cpus(uint32_t pid)
{
    cpu_set_t cpus;

    return sched_getaffinity((pid_t)pid, sizeof cpus, &cpus) == 0 ? (uint32_t)CPU_COUNT(&cpus) : 0;
}

enum rp_status rp_thread_children_read(int tasks, uint32_t tid, struct rp_pids *pids, struct rp_err *err)
{
    struct rp_buf text = {0};
    enum rp_status status = RP_OK;
    struct rp_cursor c;
    struct rp_err gone;
    uint64_t child;
    char path[32];

    snprintf(path, sizeof path, "%u/children", tid);
    if (rp_read_file_at(tasks, path, PROC_TEXT_MAX, &text, &gone)) {
        rp_buf_release(&text);
        return gone.status == RP_NOMEM ? rp_fail_nomem(err) : RP_OK;
    }
    c = rp_cursor_of(rp_buf_text(&text), text.length);
    while (!status && rp_cursor_u64(&c, &child)) {
        uint32_t *slot = rp_vec_add(&pids->at);

        rp_cursor_skip_blanks(&c);
        if (slot)
            *slot = (uint32_t)child;
        else
            status = rp_fail_nomem(err);
    }
    rp_buf_release(&text);
    return status;
}

/* Adds the children of all threads of a process. */
static enum rp_status add_children(uint32_t pid, struct rp_pids *pids, struct rp_err *err)
{
    enum rp_status status = RP_OK;
    struct dirent *entry;
    char path[64];
    uint64_t tid;
    DIR *dir;

    snprintf(path, sizeof path, "/proc/%u/task", pid);
    dir = opendir(path);
    while (dir && !status && (entry = readdir(dir))) {
        if (rp_parse_u64(entry->d_name, 1, INT32_MAX, &tid))
            status = rp_thread_children_read(dirfd(dir), (uint32_t)tid, pids, err);
    }
    if (dir)
        closedir(dir);
    return status;
}

enum rp_status rp_children_read(uint32_t pid, struct rp_pids *pids, struct rp_err *err)
{
    size_t next = pids->at.n;
    enum rp_status status = add_children(pid, pids, err);

    /* A process has one parent, so nobody comes twice. */
    for (; !status && next < pids->at.n && pids->at.n < RP_PROCESSES_MAX; next++)
        status = add_children(pids->at.at[next], pids, err);
    return status;
}

static bool read_thread(uint32_t pid, uint32_t tid, struct rp_buf *text, struct rp_thread_info *info)
{
    struct stat_line stat;
    struct rp_cursor c;
    char dir[64], path[80];

    snprintf(dir, sizeof dir, "/proc/%u/task/%u", pid, tid);
    if (!read_stat(dir, text, &stat))
        return false;
    *info = (struct rp_thread_info){.tid = tid, .state = stat.state};
    memcpy(info->comm, stat.comm, sizeof info->comm);
    snprintf(path, sizeof path, "%s/schedstat", dir);
    if (read_small(path, text)) {
        c = rp_cursor_of(rp_buf_text(text), text->length);
        if (!rp_cursor_u64(&c, &info->cpu_ns) || !rp_cursor_skip_blanks(&c) || !rp_cursor_u64(&c, &info->run_delay_ns))
            info->cpu_ns = info->run_delay_ns = 0;
    }
    return true;
}

bool rp_thread_read(uint32_t pid, uint32_t tid, struct rp_thread_info *info)
{
    struct rp_buf text = {0};
    bool there = read_thread(pid, tid, &text, info);

    rp_buf_release(&text);
    return there;
}

static int by_tid(const void *a, const void *b)
{
    uint32_t x = ((const struct rp_thread_info *)a)->tid, y = ((const struct rp_thread_info *)b)->tid;

    return x < y ? -1 : x > y;
}

enum rp_status rp_threads_read(uint32_t pid, struct rp_thread_infos *threads, struct rp_err *err)
{
    enum rp_status status = RP_OK;
    struct rp_buf text = {0};
    struct dirent *entry;
    char path[64];
    DIR *dir;

    rp_vec_clear(&threads->at);
    snprintf(path, sizeof path, "/proc/%u/task", pid);
    dir = opendir(path);
    if (!dir)
        return no_such_process(pid, err);
    while (!status && (entry = readdir(dir))) {
        struct rp_thread_info info, *slot;
        uint64_t tid;

        if (!rp_parse_u64(entry->d_name, 1, INT32_MAX, &tid))
            continue;
        if (!read_thread(pid, (uint32_t)tid, &text, &info)) {
            status = text.failed ? rp_fail_nomem(err) : RP_OK; /* else it has ended meanwhile */
            continue;
        }
        slot = rp_vec_add(&threads->at);
        if (slot)
            *slot = info;
        else
            status = rp_fail_nomem(err);
    }
    if (!status && !threads->at.n) /* before the folder gives its descriptor back, which may be the one that was missing */
        status = no_such_process(pid, err);
    closedir(dir);
    rp_buf_release(&text);
    if (!status)
        qsort(threads->at.at, threads->at.n, sizeof *threads->at.at, by_tid);
    return status;
}

/* The last of the numbers behind `key` in the thread's status; `none` when there are none. */
static uint64_t thread_status(uint32_t pid, uint32_t tid, const char *key, uint64_t none)
{
    struct rp_buf text = {0};
    uint64_t numbers[32];
    size_t n = 0;
    char path[64];

    snprintf(path, sizeof path, "/proc/%u/task/%u/status", pid, tid);
    if (read_small(path, &text))
        n = status_numbers(&text, key, numbers, sizeof numbers / sizeof *numbers);
    rp_buf_release(&text);
    return n ? numbers[n - 1] : none;
}

uint32_t rp_thread_ns_tid(uint32_t pid, uint32_t tid)
{
    return (uint32_t)thread_status(pid, tid, "NSpid:", 0);
}

uint64_t rp_thread_sleeps(uint32_t pid, uint32_t tid)
{
    return thread_status(pid, tid, "voluntary_ctxt_switches:", UINT64_MAX);
}

void rp_threads_release(struct rp_thread_infos *threads)
{
    rp_vec_release(&threads->at);
}

/* A transfer ends in the middle of a piece only where the kernel feels like it, so a range that is not readable as a whole is read again in
 * pieces that end at page borders: what precedes the first unreadable page is then there. */
static ssize_t read_process(void *context, uint64_t address, void *to, size_t length)
{
    enum { PAGE = 4096, PIECES = 64 };
    pid_t pid = (pid_t)(uintptr_t)context;
    struct iovec local = {to, length}, remote[PIECES];
    size_t done = 0;
    ssize_t got;

    remote[0] = (struct iovec){(void *)(uintptr_t)address, length};
    got = process_vm_readv(pid, &local, 1, remote, 1, 0);
    if (got == (ssize_t)length || (got < 0 && errno != EFAULT))
        return got;
    while (done < length) {
        size_t asked = 0;
        unsigned long n = 0;

        for (; n < PIECES && done + asked < length; n++) {
            uint64_t at = address + done + asked;
            size_t piece = PAGE - (size_t)(at % PAGE);

            piece = piece > length - done - asked ? length - done - asked : piece;
            remote[n] = (struct iovec){(void *)(uintptr_t)at, piece};
            asked += piece;
        }
        local = (struct iovec){(char *)to + done, asked};
        got = process_vm_readv(pid, &local, 1, remote, n, 0);
        if (got <= 0)
            break;
        done += (size_t)got;
        if ((size_t)got < asked)
            break;
    }
    return done ? (ssize_t)done : -1;
}

struct rp_memory rp_memory_of_process(uint32_t pid)
{
    return (struct rp_memory){read_process, (void *)(uintptr_t)pid};
}

void rp_process_read_each(uint32_t pid, const uint64_t *addresses, size_t n, size_t each, void *to, bool *got)
{
    enum { PIECES = 1024 /* the kernel's own limit */, UNREADABLE_MAX = 100 };
    struct iovec remote[PIECES];
    size_t done = 0, unreadable = 0;

    if (n)
        memset(got, 0, n * sizeof *got);
    while (done < n && unreadable < UNREADABLE_MAX) {
        size_t asked = n - done < PIECES ? n - done : (size_t)PIECES, whole;
        struct iovec local = {(char *)to + done * each, asked * each};
        ssize_t bytes;

        for (size_t i = 0; i < asked; i++)
            remote[i] = (struct iovec){(void *)(uintptr_t)addresses[done + i], each};
        bytes = process_vm_readv((pid_t)pid, &local, 1, remote, asked, 0);
        if (bytes < 0 && errno != EFAULT)
            return;
        whole = bytes > 0 ? (size_t)bytes / each : 0;
        memset(got + done, true, whole * sizeof *got);
        done += whole;
        if (whole < asked) { /* it ends where one cannot be read */
            done++;
            unreadable++;
        }
    }
}
