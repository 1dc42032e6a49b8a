/* SPDX-License-Identifier: MIT */
/* One pattern of a rule file: exact, glob or /regex/. */
#ifndef CAT_PATTERN_H
#define CAT_PATTERN_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

enum cat_pattern_kind { CAT_PATTERN_EXACT, CAT_PATTERN_GLOB, CAT_PATTERN_REGEX };
enum cat_field { CAT_SYMBOL, CAT_MODULE, CAT_FILE, CAT_FRAME_FIELDS, CAT_THREAD = CAT_FRAME_FIELDS };

/* In the body of a glob these stand for `*` and `?`; control characters are refused in patterns, so no name is shadowed. */
enum { CAT_GLOB_ANY = 1, CAT_GLOB_ONE = 2 };

struct cat_pattern {
    const char *text; /* as written */
    const char *body; /* exact: the name; glob: with CAT_GLOB_*; regex: what stands between the slashes */
    uint32_t text_length, body_length;
    enum cat_pattern_kind kind;
    enum cat_field field;
    pcre2_code *code; /* regex only; cat_pattern_release */
};

/* What compiling and matching need, with rowprof's allocator and bounds on time and memory. Zero-initialised is empty. */
struct cat_regex_tools {
    pcre2_general_context *general;
    pcre2_compile_context *compile;
};

struct cat_regex_run {
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    uint64_t gave_up; /* matches ended by the step limit: counted as no match */
    const struct cat_pattern *gave_up_at; /* the first of them */
};

enum rp_status cat_regex_tools_init(struct cat_regex_tools *tools, struct rp_err *err);
void cat_regex_tools_release(struct cat_regex_tools *tools);
enum rp_status cat_regex_run_init(struct cat_regex_run *run, const struct cat_regex_tools *tools, struct rp_err *err);
void cat_regex_run_release(struct cat_regex_run *run);

/* Why a pattern is refused. */
struct cat_pattern_fault {
    char text[256];
    size_t offset; /* bytes into the text */
};

/* Strings are copied into `arena`. RP_USAGE with `fault` for a bad pattern, RP_NOMEM. */
enum rp_status cat_pattern_compile(const struct cat_regex_tools *tools, struct rp_arena *arena, enum cat_field field, const char *text,
                                   size_t length, struct cat_pattern *pattern, struct cat_pattern_fault *fault, struct rp_err *err);
void cat_pattern_release(struct cat_pattern *pattern);

bool cat_pattern_match(const struct cat_pattern *pattern, struct cat_regex_run *run, const char *subject, size_t length);

/* Whole-name match of a glob body. */
bool cat_glob_match(const char *body, size_t body_length, const char *subject, size_t length);

#endif
