/* SPDX-License-Identifier: MIT */
/* Inside of categorize/: what a rule file becomes. Rules, the entries of `through` lists and contexts share one shape of test, so that one index
 * (match.c) answers for all. */
#ifndef CAT_RULESET_H
#define CAT_RULESET_H

#include "base/arena.h"
#include "base/index.h"
#include "base/vec.h"
#include "categorize.h"
#include "pattern.h"
#include "yaml_tree.h"

struct cat_span {
    uint32_t first, n;
};

/* Patterns by field, spans of cat_rules.patterns: within a field any of them, and all fields that have some. */
struct cat_frame_test {
    struct cat_span field[CAT_FRAME_FIELDS];
};

enum cat_claims_how { CAT_CLAIMS_SUBTREE = CAT_SUBTREE, CAT_CLAIMS_SELF = CAT_SELF, CAT_CLAIMS_REST };

struct cat_rule {
    struct cat_rule_info info;
    struct cat_frame_test test;
    struct cat_span caller, under, not_under, not_over; /* spans of cat_rules.contexts: any of them */
    struct cat_span thread;                   /* span of cat_rules.patterns */
    enum cat_claims_how claims;
    enum cat_kind kind; /* its category's, after cat_rules_finish */
    bool kernel;
    bool has_state;
    bool never_ran; /* holds for waits that lasted the whole run only */
    enum cat_state state;
    const char *category_id;
    uint32_t category_line, category_column, state_line, state_column;
};

struct cat_category_def {
    struct cat_category category;
    const char *file;
    uint32_t line, column;
};

/* Ids that may be used once. Zero-initialised is empty. */
struct cat_id {
    const char *id, *file;
    uint32_t line;
};

struct cat_ids {
    struct rp_index index;
    RP_VEC(struct cat_id) all;
};

/* Adds the id; or gives who has it already. Good until the next call. */
const struct cat_id *cat_ids_add(struct cat_ids *ids, const char *id, const char *file, uint32_t line, bool *nomem);
void cat_ids_release(struct cat_ids *ids);

/* One file while it is read. */
struct cat_file {
    const char *name;
    uint32_t order;
    RP_VEC(struct cat_category_def) categories;
    RP_VEC(struct cat_rule) rules;
    struct cat_ids category_ids, rule_ids;
};

/* A file read and not yet parsed. */
struct cat_source {
    const char *name;
    const char *text;
    size_t length;
};

struct cat_rules {
    struct rp_arena arena;
    struct cat_regex_tools tools;
    RP_VEC(struct cat_category_def) categories;
    RP_VEC(struct cat_rule) rules;
    RP_VEC(struct cat_pattern) patterns;
    RP_VEC(struct cat_frame_test) contexts;
    RP_VEC(struct cat_category_def) refused_categories; /* of files that were refused: only to tell which categories their rules lack */
    RP_VEC(struct cat_rule) refused_rules;
    RP_VEC(struct cat_source) stand_ins; /* files that bear the name of a shipped pack: they are read in its place */
    bool finished;
};

/* Reads one file into `file`; patterns and contexts go to `rules` at once (the caller cuts them off again on failure). RP_USAGE when
 * `problems` grew. */
enum rp_status cat_file_read(struct cat_rules *rules, const char *name, const char *text, size_t length, struct cat_file *file,
                             struct cat_problems *problems, struct rp_err *err);
void cat_file_release(struct cat_file *file);

/* The word of `words` that `text` was probably meant to be; NULL when none is near. */
const char *cat_nearest(const char *text, const char *const *words, size_t n);

#endif
