/* SPDX-License-Identifier: MIT */
/* Gives names to the locations of a profile, each distinct address once, each file parsed once, no outside process.
 *
 * May be called while sampling goes on: it takes up what is new since the last call, which keeps the wait at the end short and lets JIT
 * names be read while they are true. */
#ifndef RP_SYMBOLIZE_SYMBOLIZE_H
#define RP_SYMBOLIZE_SYMBOLIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "model/profile.h"
#include "target/image.h"
#include "unwind/unwind.h"

struct rp_symbolizer_options {
    bool no_inlines;         /* symbol tables only: no DWARF frames and lines */
    bool debuginfod;         /* ask debuginfod for missing debug files (only when the user said so) */
    const char *debug_dir;   /* NULL: /usr/lib/debug */
    const char *kallsyms;    /* NULL: /proc/kallsyms */
};

/* Counters for tests: each file is parsed once, each address resolved once. */
struct rp_symbolizer_stats {
    uint64_t files_parsed, symbols, debug_files, addresses_resolved, map_lines, map_rejected;
};

struct rp_symbolizer;

/* `images` and `unwinder` must outlive it. `unwinder` gives FDE ranges of stripped code; it may be NULL. */
enum rp_status rp_symbolizer_new(const struct rp_images *images, struct rp_unwinder *unwinder, const struct rp_symbolizer_options *options,
                                 struct rp_symbolizer **out, struct rp_err *err);
void rp_symbolizer_free(struct rp_symbolizer *symbolizer);

/* Names all locations of `profile` that have no lines yet. Per function: `name` is demangled with parameters (`[local]` after it for STUB_LOCAL), `raw` is as in the symbol
 * table (for STUB_LOCAL that of the stub), `aliases` are the other raw names at the same address. A nameless one becomes module+0xoffset (RP_NAME_OFFSET; one row per unwind
 * range where there are such), JIT code without map `[jit]`, which is looked up again when the map has grown. Images with unnamed code get a `remedy` where it
 * is known for sure; those of JIT code whose map was refused have the reason as their `note`, and a `remedy` of half a sentence or none. RP_NOMEM leaves the profile whole; the call may be repeated. */
enum rp_status rp_symbolize(struct rp_symbolizer *symbolizer, struct rp_profile *profile, struct rp_err *err);

/* Reads what JIT maps of process `pid` (map names use `ns_pid`) gained since the last call (/proc/PID/root/tmp/perf-NSPID.map, jitdump files that the process
 * has mapped). To be called at each block's end, before its samples are handed over and before rp_symbolize. Quick when nothing changed. A map that is not the target's or
 * ours, or that is older than the process, is left alone. */
enum rp_status rp_symbolizer_read_jit(struct rp_symbolizer *symbolizer, uint32_t pid, uint32_t ns_pid, struct rp_err *err);

/* Which code lives at a JIT address now: a number that changes when a later map entry covers it with another function. fold/ puts it
 * into the location. */
uint32_t rp_symbolizer_epoch(struct rp_symbolizer *symbolizer, uint32_t pid, uint64_t addr);

void rp_symbolizer_stats(const struct rp_symbolizer *symbolizer, struct rp_symbolizer_stats *stats);

/* The demangled form of a symbol, or the name itself: C++, Rust (legacy and v0, hash dropped), D; by prefix, with bounds on time and depth. Appends to
 * `out`. `short_form`: without return type, parameters, version and compiler suffixes, template arguments kept (what exact and glob rules see). */
struct rp_buf;
void rp_demangle(const char *raw, bool short_form, struct rp_buf *out);

#endif
