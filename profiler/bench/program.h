/* SPDX-License-Identifier: MIT */
/* Which program is measured: found, told apart from another, copied out.
 *
 * The trap is `make`: the baseline is a path, the path is a link to what is built anew, and the new program is compared with itself. So what a command
 * names is followed to the file, the file is known by its content, and what runs is a copy that nobody builds over. */
#ifndef RP_BENCH_PROGRAM_H
#define RP_BENCH_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/sha256.h"
#include "base/status.h"
#include "bench/words.h"

enum { RP_BUILD_ID_TEXT = 65 };

struct rp_program {
    const char *path; /* links followed */
    uint64_t dev, ino;
    char sha256[RP_SHA256_HEX];
    char build_id[RP_BUILD_ID_TEXT]; /* "" when it has none */
};

/* Finds `word` as execvp would. RP_NOTFOUND, RP_PERM, RP_IO, RP_LIMIT (RP_BENCH_PROGRAM_MAX), RP_NOMEM. `path` lives in the arena. */
enum rp_status rp_program_find(const char *word, struct rp_arena *arena, struct rp_program *program, struct rp_err *err);

/* The SHA-256 of a file. */
enum rp_status rp_program_hash(const char *path, char sha256[RP_SHA256_HEX], struct rp_err *err);

/* Copies bytes and mode. A copy that is there already and the same is kept; another file is RP_EXISTS unless `force`. */
enum rp_status rp_program_copy(const struct rp_program *program, const char *to, bool force, struct rp_err *err);

/* Why two programs are one: "they are the same file", "... have the same content", "... the same build-id"; NULL: they are two. */
const char *rp_program_same(const struct rp_program *a, const struct rp_program *b);

/* Whether the words behind the program say the same, files (scripts) compared by content. */
bool rp_words_same(const struct rp_words *a, const struct rp_words *b);

/* Paths for copies of programs with these base names, DIR/x/NAME, all of one length: a longer path moves the stack, and a program is measurably faster or
 * slower for it. `paths` live in the arena. RP_NOMEM. */
enum rp_status rp_copy_paths(const char *dir, const char *const *names, size_t n, struct rp_arena *arena, const char **paths, struct rp_err *err);

#endif
