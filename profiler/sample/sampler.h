/* SPDX-License-Identifier: MIT */
/* The seam between whatever observes a process and everything after it: a backend hands over events, oldest first.
 *
 * Backends: perf_event (sample_perf.c), replay of saved snapshots (sample_replay.c), ptrace (sample_ptrace.c). A backend
 * does no symbol lookup and no unwinding: it copies and lets go. */
#ifndef RP_SAMPLE_SAMPLER_H
#define RP_SAMPLE_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "sample/snapshot.h"
#include "target/image.h"

enum rp_event_kind {
    RP_EVENT_SAMPLE, /* a running thread was seen */
    RP_EVENT_SWITCH, /* a thread went off or on a CPU */
    RP_EVENT_PEEK,   /* a thread off the CPU was seen: its stack, and what it waits in */
    RP_EVENT_MMAP,   /* executable memory appeared */
    RP_EVENT_COMM,   /* a thread got a name; `exec` when by execve: all mappings are gone */
    RP_EVENT_FORK,   /* a thread or process began */
    RP_EVENT_EXIT,   /* a thread ended */
};

struct rp_event {
    enum rp_event_kind kind;
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    uint32_t pid, tid;
    union {
        struct rp_snapshot sample; /* pointers in it are good during the callback only */
        struct {
            struct rp_snapshot sample; /* of the moment of going off (perf) or of some moment of waiting (procfs: sp_only) */
            int syscall;               /* number; -1 unknown: registers of a switch sample do not hold it */
            uint64_t args[6];          /* of the system call: procfs, or rdi rsi rdx r10 r8 r9 of a switch sample */
            bool at_switch;            /* belongs to the switch-out of the same time; else to the wait that is open at `time_ns` */
        } peek;
        struct {
            bool out;       /* else: in */
            bool preempted; /* out while runnable */
        } sw;
        struct {
            uint64_t start, end, offset, dev, ino;
            const char *path;
            bool offline;            /* replay: the process is not there; the file is known by its build-id (see rp_image_key) */
            const uint8_t *build_id; /* replay only */
            uint8_t build_id_bytes;
        } mmap;
        struct {
            const char *comm;
            bool exec;
        } comm;
        struct {
            uint32_t parent_pid, parent_tid;
        } fork;
    } u;
};

/* What an MMAP event says about its file, for rp_space_map and rp_images_get. Points into the event. */
struct rp_image_key rp_event_image_key(const struct rp_event *event);

/* Takes one event; a failure ends the drain and is passed on. */
typedef enum rp_status rp_event_sink(void *context, const struct rp_event *event, struct rp_err *err);

enum rp_clock_source { RP_SOURCE_CPU_CLOCK, RP_SOURCE_CYCLES, RP_SOURCE_REPLAY, RP_SOURCE_PTRACE };

struct rp_sampler_options {
    const uint32_t *pids; /* processes to watch */
    size_t npids;
    uint32_t hz;            /* samples per second and running thread */
    uint32_t stack_bytes;   /* first size of the stack copy; 0: the backend's default */
    bool kernel;            /* wish for kernel frames; the backend tells what it got */
    uint32_t ring_pages;    /* data pages per CPU, a power of two; 0: the backend's default */
    bool waits;             /* hand over switches, and stacks of waits where allowed */
    bool children;          /* follow children, existing and future */
    bool cycles_wanted;     /* prefer the hardware cycle counter when there is one */
    bool enable_on_exec;    /* launch: start counting at the child's execve */
    uint32_t max_events;    /* most perf events open at a time; 0: as many as open files allow */
};

/* What a run went through, for the report's quality line. Counters only grow. */
struct rp_sampler_stats {
    enum rp_clock_source source;
    uint32_t hz;               /* rate in use: what was asked for, or the kernel's maximum */
    bool kernel_visible;       /* kernel frames were recorded */
    uint32_t stack_bytes;      /* present size of the stack copy */
    uint32_t stack_grown;      /* how often it grew */
    uint64_t samples;          /* handed over */
    uint64_t lost;             /* records that found no room: samples, switches, stacks of waits */
    uint64_t throttled;        /* throttle records */
    uint64_t vanished;         /* threads that ended between listing and opening */
    uint32_t threads_unsampled; /* threads left out for want of descriptors */
    bool system_wide;          /* per-CPU events filtered by process */
    bool whole_cpus;           /* samples come from clocks of whole CPUs, since threads switch often; `note` says so */
    uint32_t ring_pages;       /* data pages per CPU in use */
    uint32_t waits;            /* what it hands over of waiting, as rp_run.waits: 0 nothing; 1 every switch, so that fold/ looks at open waits through
                                * procfs itself; 2 what it saw: it makes SWITCH and PEEK events out of its own looks at blocked threads */
    uint64_t switches;         /* switch records handed over */
    uint64_t peeks;            /* stacks of threads going off the CPU handed over */
    uint64_t damaged;          /* records whose sizes contradict each other: 0 unless the kernel errs */
    char note[512];            /* what had to be done differently, one or more sentences; "" when nothing */
};

/* Adds a sentence to the note; what does not fit is cut. */
void rp_sampler_note(struct rp_sampler_stats *stats, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct rp_sampler;

struct rp_sampler_ops {
    const char *name;
    /* Begins sampling. Events are buffered from here on: read maps and thread names after it, so that nothing falls in between. */
    enum rp_status (*start)(struct rp_sampler *s, struct rp_err *err);
    /* Hands over everything that is complete up to now, oldest first. Does not wait. `final`: take the rest too (after stop). */
    enum rp_status (*drain)(struct rp_sampler *s, bool final, rp_event_sink *sink, void *context, struct rp_err *err);
    /* Waits until there is something worth draining, `timeout_ms` passed, every target ended (then *ended = true) or a signal came. */
    enum rp_status (*wait)(struct rp_sampler *s, int timeout_ms, bool *ended, struct rp_err *err);
    /* Ends sampling; the target runs on. drain(final) gives what is left. */
    void (*stop)(struct rp_sampler *s);
    /* Switches sampling off and on in mid-run, at the cost of one system call per event; side records (MMAP, COMM …) pause too. NULL: cannot. */
    enum rp_status (*toggle)(struct rp_sampler *s, bool on, struct rp_err *err);
    /* Tells the backend how many of the last stacks were cut, so that it may grow the copy. */
    enum rp_status (*feedback)(struct rp_sampler *s, uint64_t walked, uint64_t cut, struct rp_err *err);
    void (*stats)(const struct rp_sampler *s, struct rp_sampler_stats *stats);
    void (*free)(struct rp_sampler *s);
};

/* First member of every backend's struct. */
struct rp_sampler {
    const struct rp_sampler_ops *ops;
};

/* perf_event. RP_PERM with the failed call, errno, the setting, its value and the remedy; RP_NOPROC when all pids are gone. */
enum rp_status rp_sampler_perf_new(const struct rp_sampler_options *options, struct rp_sampler **out, struct rp_err *err);

/* ptrace, for where perf_event is refused: user space only. `why` begins the note (why it is this one), or NULL. Refusals come from its start. */
enum rp_status rp_sampler_ptrace_new(const struct rp_sampler_options *options, const char *why, struct rp_sampler **out, struct rp_err *err);

/* Snapshots saved by `record --save-snapshots DIR`. */
enum rp_status rp_sampler_replay_new(const char *dir, struct rp_sampler **out, struct rp_err *err);

#endif
