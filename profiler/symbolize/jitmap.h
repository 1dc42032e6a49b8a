/* SPDX-License-Identifier: MIT */
/* What a process says about the code it makes at run time: perf maps (`/tmp/perf-PID.map`, one line per function) and jitdump files.
 *
 * Both are read as they grow, from where the last reading ended, and kept open, so that names survive the process and the file. Neither
 * carries times that can be compared with samples, so they are read while sampling goes on: an address means what the map said last. */
#ifndef RP_SYMBOLIZE_JITMAP_H
#define RP_SYMBOLIZE_JITMAP_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/index.h"
#include "model/profile.h"
#include "symbolize/jitcode.h"

enum rp_jit_file_kind { RP_JIT_PERF_MAP, RP_JIT_DUMP };

/* A map file; once its content was replaced, its names are `lost` and the new content is another file. */
struct rp_jit_file {
    int fd;
    enum rp_jit_file_kind kind;
    uint64_t dev, ino;
    uint64_t read_to;      /* what was taken ends here */
    uint8_t tail[32];      /* the last bytes before read_to, to notice that the file was written anew */
    uint8_t tail_bytes;
    bool lost, damaged;
    bool skipping;         /* in the middle of a line above RP_JITMAP_LINE_MAX */
    uint32_t open_entry;   /* entry made from a last line without newline, counted from 1; replaced when the line is complete */
};

/* A jitdump code index -> entry, for code that moves. */
struct rp_jit_loaded {
    uint64_t code_index;
    uint32_t entry, file;
};

/* A map that is there and was not read. */
struct rp_jit_refusal {
    char why[256];  /* half a sentence with the file's name; "" nothing was refused */
    char help[160]; /* what to do: half a sentence; "" the process must write another, as if there were none */
};

struct rp_jit {
    uint32_t pid, ns_pid;
    struct rp_jit_refusal refused; /* while no map was read at all */
    uint64_t dumps_looked_for_ns;
    RP_VEC(struct rp_jit_file) files;
    struct rp_jit_code code;
    RP_VEC(struct rp_jit_loaded) loaded;
    struct rp_index loaded_index;
    uint64_t lines, rejected; /* map lines and jitdump records taken and refused */
};

/* Zero-initialised but for pid and ns_pid is ready. Takes up what was written since the last call. Files that are not there or not
 * regular count as absent, and so do those that may not be opened, are not the process owner's (or ours), or are older than the process: those are told in
 * `refused`. Fails for want of memory only. */
enum rp_status rp_jit_read(struct rp_jit *jit, struct rp_err *err);

/* The same for one open file, whose descriptor is taken over (fuzzing, tests); `number` is its position in `files`. */
enum rp_status rp_jit_add_file(struct rp_jit *jit, int fd, enum rp_jit_file_kind kind, struct rp_err *err);
enum rp_status rp_jit_read_file(struct rp_jit *jit, uint32_t number, struct rp_err *err);

/* Name and start of the code at `addr`: of entry `epoch` (counted from 1), or of what covers it now for 0. False: no map covers it, or the name is gone. */
bool rp_jit_name(const struct rp_jit *jit, uint64_t addr, uint32_t epoch, uint64_t *start, struct rp_buf *name);

/* Note and remedy of the profile's row for its code: of a map that was refused, else none. It may be read after all, later. `jit` may be NULL. */
enum rp_status rp_jit_explain(const struct rp_jit *jit, struct rp_profile *profile, struct rp_profile_image *row, struct rp_err *err);

void rp_jit_release(struct rp_jit *jit);

/* Reads new records of a jitdump file (jitdump.c). */
enum rp_status rp_jitdump_read(struct rp_jit *jit, uint32_t number, uint64_t file_bytes, struct rp_err *err);

#endif
