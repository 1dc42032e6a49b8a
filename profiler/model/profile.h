/* SPDX-License-Identifier: MIT */
/* A profile: interned stacks and counts. Everything after sampling reads this, and a saved file is this.
 *
 *   count ──> thread ──> process
 *     │ └───> block (a slice of time)
 *     └─────> node ──> parent node … ──> root (node 0)
 *               └───> location (image, address) ──> lines (inlined first) ──> function
 *
 * A node stands for the whole path from itself to the root, so a stack is its leaf's node id. Nodes are added root first. Raw stacks are kept,
 * categories are not: those are a view. Strings are ids of `strings`. Memory is bounded by distinct stacks x blocks, not by time.
 *
 * One thread at a time. Zero is not ready: rp_profile_init. */
#ifndef RP_MODEL_PROFILE_H
#define RP_MODEL_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "base/intern.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/vec.h"

/* A mapped file (or kernel, JIT, mark), see target/image.h; position = image id there. */
struct rp_profile_image {
    uint32_t kind;     /* enum rp_image_kind */
    uint32_t path;     /* string */
    uint32_t name;     /* string: what stands in `(in name)`: base name, [kernel], [jit], [vdso] */
    uint32_t build_id; /* string, hexadecimal; 0 none */
    uint64_t dev, ino;
    uint32_t note;     /* string: "replaced on disk", why it could not be read …; 0 none */
    uint32_t remedy;   /* string: what would name its unnamed code ("libc6-dbg"); 0 none */
};

enum {
    RP_LOCATION_CALLER = 1, /* addr is a return address: names are looked up at addr - 1 */
    RP_LOCATION_KERNEL = 2,
    RP_LOCATION_GUESS = 4,  /* reached by following a frame pointer */
    RP_LOCATION_MARK = 8,   /* no code: `addr` is the string id of its text, such as [truncated: …] */
};

struct rp_location {
    uint32_t image;
    uint32_t flags;
    uint64_t addr;       /* ELF address; absolute for kernel and JIT; string id for marks */
    uint32_t epoch;      /* JIT: which code lived there, 0 the first; else 0 */
    uint32_t first_line; /* into `lines` */
    uint32_t nlines;     /* 0: not symbolized yet; after that at least 1 */
};

/* One function of a location; inlined ones first, the one that holds the machine code last. */
struct rp_line {
    uint32_t function;
    uint32_t file; /* string; 0 unknown */
    uint32_t line; /* 0 unknown. Of an outer function: the line of the call */
};

enum rp_name_how {
    RP_NAME_SYMBOL,     /* ELF symbol */
    RP_NAME_INLINE,     /* DWARF, inlined */
    RP_NAME_PLT,        /* name@plt from the relocations */
    RP_NAME_JIT,        /* perf map or jitdump */
    RP_NAME_KERNEL,     /* kallsyms */
    RP_NAME_STUB_LOCAL, /* unnamed FDE range that an exported stub jumps into: `stub [local]` */
    RP_NAME_OFFSET,     /* nothing names it: module+0xoffset, or [jit]: counted as unnamed */
    RP_NAME_MARK,       /* a typed root frame */
};

struct rp_function {
    uint32_t name;   /* string: demangled, as shown */
    uint32_t raw;    /* string: as in the symbol table */
    uint32_t image;
    uint32_t module; /* string: what stands in `(in …)`: the image's name, or a kernel module */
    uint64_t start;  /* ELF address of its first byte; 0 for inlined, marks */
    uint32_t file;   /* string: source file that defines it; 0 unknown */
    uint32_t first_alias, naliases; /* into `aliases`: other raw names at the same address */
    enum rp_name_how how;
};

struct rp_node {
    uint32_t parent;   /* always a smaller id, so walks end */
    uint32_t location; /* RP_LOCATION_NONE for the root only */
};

#define RP_LOCATION_NONE UINT32_MAX

struct rp_profile_process {
    uint32_t pid;
    uint32_t generation;
    uint32_t command; /* string */
    uint32_t comm;    /* string */
};

struct rp_profile_thread {
    uint32_t process; /* position in `processes` */
    uint32_t tid;
    uint32_t comm;    /* string, the last one seen */
    uint64_t wall_ns; /* how long it was watched */
    uint64_t cpu_ns;  /* time on a CPU while watched: switch records when waits are measured, else schedstat */
    /* All on one clock, when waits are measured (run.waits): cpu + preempted + waiting = wall, idle waits included in waiting; less than
     * wall where lost records leave a part unknown. */
    uint64_t preempted_ns, preemptions; /* off the CPU while runnable, by the flag in the switch record */
    uint64_t waiting_ns, waits;         /* from voluntary switch-out to switch-in */
    uint64_t run_delay_ns;              /* schedstat: waiting for a CPU, whether preempted or just woken */
};

/* Waits are kept by duration class, so that ten long fsyncs beside 50 000 short futex waits keep their time when stacks are thinned:
 * class c holds durations of [2^(c/4), 2^((c+1)/4)) ns with the fraction taken linearly within the octave. */
#define RP_WAIT_CLASSES 160u
uint32_t rp_wait_class(uint64_t ns);
/* The lower bound of a class in ns; of RP_WAIT_CLASSES: the end. */
uint64_t rp_wait_class_ns(uint32_t wait_class);

/* Exact: every wait of a thread that a switch record told of, by class. */
struct rp_wait_total {
    uint32_t thread;
    uint32_t wait_class;
    uint64_t n, ns, max_ns;
};

/* Waits whose stack was seen. A category's time is the sum over classes of (stacked ns of the category / stacked ns of the class) x (exact ns
 * of the class), per thread; where a class has no stacked wait, threads of the same name speak for it (analyze/view_waits.h). */
struct rp_wait {
    uint32_t thread;
    uint32_t node;
    uint32_t tag;        /* lock: position in `locks` + 1; 0 none */
    uint16_t wait_class;
    int16_t syscall;     /* number; -1 unknown */
    uint64_t n, ns, max_ns;
};

/* A lock that was waited for. */
struct rp_lock {
    uint32_t process;    /* position in `processes` */
    uint64_t address;    /* of the futex word in the target */
    uint32_t image;      /* file of a static lock, with its ELF address; RP_IMAGE_ID_MARK on the heap or stack */
    uint64_t addr;
    uint32_t symbol;     /* string: its name when static; 0 unknown */
    uint32_t database;   /* string: which connection's mutex it is, e.g. file name of the db handle; 0 not SQLite's */
};

/* Who held a lock while somebody waited: counts of waits in which the lock was looked at and told, by the holder's thread and its stack. */
struct rp_holder {
    uint32_t lock;       /* position in `locks` */
    uint32_t thread;     /* the holder; UINT32_MAX: nobody held it any more, the one that waited had been woken */
    uint32_t node;       /* what it did: its blocked stack while it held it, or else its on-CPU sample in the wait that is nearest to the look; 0 unknown */
    uint8_t state;       /* enum rp_state of that stack */
    uint64_t n, ns;
};

/* Whose waits a line of holders counts: that of the same position. */
struct rp_holder_waiter {
    uint32_t thread;     /* UINT32_MAX unknown */
};

enum rp_state { RP_STATE_RUNNING, RP_STATE_BLOCKED };

/* One line of counts. The first five are the key. 32 bytes: there are as many as distinct stacks x blocks. */
struct rp_count {
    uint32_t thread;
    uint32_t node;
    uint32_t tag; /* statement, opcode, lock; 0 none */
    uint16_t block;
    uint8_t state; /* enum rp_state */
    uint8_t pad;
    uint64_t n;
    uint64_t weight_ns;
};

/* What the run was and what went wrong in it. */
struct rp_run {
    uint64_t started_unix_ns;
    uint64_t seconds_ns;   /* how long sampling lasted */
    uint32_t hz;
    uint32_t source;       /* string: "cpu-clock", "cycles" */
    uint32_t host;         /* string: kernel release and CPU model */
    uint32_t kernel_visible; /* 0/1 */
    uint32_t stack_bytes;
    uint32_t stack_grown;
    uint64_t lost, throttled, vanished;
    uint32_t threads_unsampled;
    uint32_t note;         /* string: the sampler's note */
    uint64_t map_lines, map_rejected; /* JIT map lines taken and refused */
    uint32_t waits;        /* 0: not measured; 1: exact, from switch records; 2: sampled through procfs only */
    uint32_t sampler;      /* string: "perf", "ptrace", "replay" */
    uint64_t switches;     /* switch records seen */
    uint64_t wait_stacks;  /* waits whose stack was seen */
    uint32_t cpus;         /* CPUs the targets were allowed to use */
};

/* What the target said of itself: a word name=value of its READY line. */
struct rp_fact {
    uint32_t name, value; /* strings */
};

/* What the target counted: a RATE line that covers a time inside the recording. */
struct rp_profile_rate {
    uint64_t end_ns;  /* since the start of sampling */
    uint64_t wall_ns; /* it covers */
    uint64_t calls, rows;
    uint64_t cpu_ns;  /* of the process in that time */
};

struct rp_profile {
    struct rp_intern strings;
    RP_VEC(struct rp_profile_image) images;
    RP_VEC(struct rp_location) locations;
    RP_VEC(struct rp_line) lines;
    RP_VEC(struct rp_function) functions;
    RP_VEC(uint32_t) aliases;
    RP_VEC(struct rp_node) nodes; /* [0] is the root, of no location */
    RP_VEC(struct rp_profile_process) processes;
    RP_VEC(struct rp_profile_thread) threads;
    RP_VEC(struct rp_count) counts;
    RP_VEC(struct rp_wait_total) wait_totals;
    RP_VEC(struct rp_wait) waits;
    RP_VEC(struct rp_lock) locks;
    RP_VEC(struct rp_holder) holders;
    RP_VEC(struct rp_holder_waiter) holder_waiters; /* beside holders; shorter (older files have none): not known of the rest */
    RP_VEC(struct rp_fact) facts;
    RP_VEC(struct rp_profile_rate) rates; /* oldest first */
    uint32_t nblocks;      /* used so far, at most RP_BLOCKS_MAX */
    uint64_t block_ns;     /* length of one block */
    struct rp_run run;
    struct rp_index location_index, function_index, node_index, count_index, wait_total_index, wait_index, lock_index, holder_index; /* private */
};

enum rp_status rp_profile_init(struct rp_profile *profile, struct rp_err *err);
void rp_profile_release(struct rp_profile *profile);

/* Interns; all fail with RP_NOMEM only. Ids are positions. */
enum rp_status rp_profile_string(struct rp_profile *p, const char *text, size_t length, uint32_t *id, struct rp_err *err);
enum rp_status rp_profile_location(struct rp_profile *p, uint32_t image, uint64_t addr, uint32_t flags, uint32_t epoch, uint32_t *id,
                                   struct rp_err *err);
/* A location without code. It is symbolized at once: a function of that name, RP_NAME_MARK, with no module. Image 0 must be the one of marks. */
enum rp_status rp_profile_mark(struct rp_profile *p, const char *text, uint32_t *location, struct rp_err *err);
enum rp_status rp_profile_node(struct rp_profile *p, uint32_t parent, uint32_t location, uint32_t *id, struct rp_err *err);
/* Functions are one per (image, start, name); the rest is as the first one said. `f->first_alias/naliases` must point at aliases already added. */
enum rp_status rp_profile_function(struct rp_profile *p, const struct rp_function *f, uint32_t *id, struct rp_err *err);

/* Adds `n` observations of `weight_ns` in all at `since_start_ns`. Blocks start at 10 ms; when RP_BLOCKS_MAX are used up, neighbours merge
 * and the length doubles. */
enum rp_status rp_profile_count(struct rp_profile *p, uint32_t thread, uint32_t node, uint32_t tag, enum rp_state state, uint64_t since_start_ns,
                                uint64_t n, uint64_t weight_ns, struct rp_err *err);

/* One wait of `ns`: always into the totals, and with its stack when one was seen (`node` not 0). */
enum rp_status rp_profile_wait(struct rp_profile *p, uint32_t thread, uint64_t ns, uint32_t node, uint32_t tag, int syscall, struct rp_err *err);
/* Interns a lock by (process, address); the rest is as the first one said. */
enum rp_status rp_profile_lock(struct rp_profile *p, const struct rp_lock *lock, uint32_t *position, struct rp_err *err);
/* A wait of `waiter` for a lock that `thread` held; UINT32_MAX: nobody did any more. */
enum rp_status rp_profile_holder(struct rp_profile *p, uint32_t lock, uint32_t waiter, uint32_t thread, uint32_t node, enum rp_state state, uint64_t ns,
                                 struct rp_err *err);
/* Whose waits the line of holders counts; UINT32_MAX: the profile does not tell. */
uint32_t rp_profile_holder_waiter(const struct rp_profile *p, size_t holder);

const char *rp_profile_text(const struct rp_profile *p, uint32_t string);

#endif
