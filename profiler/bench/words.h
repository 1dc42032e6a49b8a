/* SPDX-License-Identifier: MIT */
/* A command as words, split as a shell would, without a shell: a shell between us and the program would be measured with it, and its start differs from
 * run to run. */
#ifndef RP_BENCH_WORDS_H
#define RP_BENCH_WORDS_H

#include "base/arena.h"
#include "base/status.h"
#include "base/vec.h"

/* Zero-initialised is empty and ready; texts live in an arena of the caller's. */
struct rp_words {
    RP_VEC(const char *) at;
};

/* Appends the words of `text`: parted by blanks, with '...', "..." and backslashes as in sh. What only a shell could do ($, `, |, &, ;, <, >, parentheses,
 * unquoted) is refused, RP_USAGE naming `what` ("--old"); patterns such as * are taken as they are. RP_LIMIT, RP_NOMEM. */
enum rp_status rp_words_split(struct rp_words *words, struct rp_arena *arena, const char *text, size_t length, const char *what,
                              struct rp_err *err);
enum rp_status rp_words_add(struct rp_words *words, const char *word, struct rp_err *err);
void rp_words_release(struct rp_words *words);

#endif
