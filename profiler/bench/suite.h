/* SPDX-License-Identifier: MIT */
/* A suite: configurations in a file, so that a benchmark can be repeated. Described in workloads/README.md.
 *
 *     # what it is
 *     args {here}/../node/read.mjs --seed 1
 *     config get SELECT 1: --op get --columns const --calls 400000
 */
#ifndef RP_BENCH_SUITE_H
#define RP_BENCH_SUITE_H

#include "bench/words.h"

struct rp_suite_config {
    const char *name;
    struct rp_words words;
};

/* Zero-initialised is empty and ready. */
struct rp_suite {
    struct rp_arena arena;
    struct rp_words args; /* before the words of each configuration */
    RP_VEC(struct rp_suite_config) configs;
};

/* Appends what `path` says. RP_FORMAT and RP_LIMIT name path and line; RP_IO, RP_NOMEM. */
enum rp_status rp_suite_read(struct rp_suite *suite, const char *path, struct rp_err *err);
/* The same of a text; {here} is replaced by `here`. */
enum rp_status rp_suite_parse(struct rp_suite *suite, const char *path, const char *here, const char *text, size_t length, struct rp_err *err);
/* One configuration as --config gives it: `NAME: ARGS`, or NAME alone. RP_USAGE. */
enum rp_status rp_suite_add(struct rp_suite *suite, const char *text, size_t length, const char *what, struct rp_err *err);
void rp_suite_release(struct rp_suite *suite);

#endif
