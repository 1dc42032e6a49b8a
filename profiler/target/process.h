/* SPDX-License-Identifier: MIT */
/* What a process is, as procfs tells it, and the reading of its memory. */
#ifndef RP_TARGET_PROCESS_H
#define RP_TARGET_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"
#include "base/vec.h"

struct rp_process_info {
    uint32_t pid;
    char comm[64];
    char command[256];  /* command line, blanks between arguments, control characters replaced; comm for kernel threads */
    uint32_t uid;
    uint32_t ns_pid;    /* its pid in its own pid namespace (names its perf map) */
    bool is_32bit;
    bool is_kernel;     /* a kernel thread: no user memory */
    char state;         /* as in stat: R S D T t Z X */
    uint64_t start_ticks; /* field 22 of stat: tells a reused pid */
};

/* RP_NOPROC: no such process (or a zombie), a thread id instead of a pid (names the pid), or 32-bit. RP_PERM is not raised here. */
enum rp_status rp_process_read(uint32_t pid, struct rp_process_info *info, struct rp_err *err);

/* CPU time of its children that have ended and were waited for, in nanoseconds, rounded down to clock ticks; 0 when it is gone. */
uint64_t rp_process_waited_children(uint32_t pid);

/* How many CPUs its affinity allows; 0 when that cannot be told. */
uint32_t rp_process_cpus(uint32_t pid);

/* The children of a process and theirs, by way of every thread; without the process itself. Those that come or go meanwhile are there or not. */
struct rp_pids {
    RP_VEC(uint32_t) at;
};
enum rp_status rp_children_read(uint32_t pid, struct rp_pids *pids, struct rp_err *err);

/* Adds the children that one thread begat; `tasks` is the open folder /proc/PID/task. A thread that is gone has none. RP_NOMEM only. */
enum rp_status rp_thread_children_read(int tasks, uint32_t tid, struct rp_pids *pids, struct rp_err *err);

struct rp_thread_info {
    uint32_t tid;
    char comm[64];
    char state;
    uint64_t cpu_ns;       /* schedstat: time on a CPU */
    uint64_t run_delay_ns; /* schedstat: time waiting for one */
};

/* All threads of a process, by tid. Threads that vanish while reading are left out. RP_NOPROC when the process is gone. */
struct rp_thread_infos {
    RP_VEC(struct rp_thread_info) at;
};
enum rp_status rp_threads_read(uint32_t pid, struct rp_thread_infos *threads, struct rp_err *err);
/* One thread; false when it is gone. */
bool rp_thread_read(uint32_t pid, uint32_t tid, struct rp_thread_info *info);
/* Its thread id in its own pid namespace; 0 when it is gone. */
uint32_t rp_thread_ns_tid(uint32_t pid, uint32_t tid);
/* How often it went off a CPU of its own accord, so far; UINT64_MAX when it is gone. */
uint64_t rp_thread_sleeps(uint32_t pid, uint32_t tid);
void rp_threads_release(struct rp_thread_infos *threads);

/* The seam through which unwinding and statement finding read target memory: process_vm_readv live, saved pages in replay. Returns the bytes
 * read from the start of the range (short when the rest is not readable), -1 when none. */
struct rp_memory {
    ssize_t (*read)(void *context, uint64_t address, void *to, size_t length);
    void *context;
};

/* process_vm_readv on `pid`; the memory needs no release. */
struct rp_memory rp_memory_of_process(uint32_t pid);

/* Reads `each` bytes at each of `n` addresses, one after the other into `to`; got[i]: those of the i-th are there, whole. In as few system calls as there are
 * addresses that cannot be read, and one for each thousand; after a hundred of the former it gives up. */
void rp_process_read_each(uint32_t pid, const uint64_t *addresses, size_t n, size_t each, void *to, bool *got);

#endif
