/* SPDX-License-Identifier: MIT */
/* Inside of categorize/: what is known of each symbol before any stack is seen, so that classifying compares no strings. */
#ifndef CAT_MATCHER_H
#define CAT_MATCHER_H

#include "base/index.h"
#include "ruleset.h"

/* `pool[first .. first+nrules)` are the rules and `through` entries whose patterns match, in the order they are asked; the ncontexts behind them the
 * contexts this frame satisfies. */
struct cat_known_symbol {
    uint32_t first, nrules, ncontexts;
    bool kernel, mark, through;
    uint64_t categories; /* bit category % 64 of each rule: a quick no */
};

enum { CAT_THREAD_NAME_MAX = 64 };

/* Filled anew by each classification; a matcher serves one thread at a time. */
struct cat_scratch {
    uint64_t epoch;
    uint64_t *context_epoch; /* contexts: seen in the stack of this epoch … */
    uint32_t *context_last;  /* … outermost at this frame */
    uint32_t *context_first; /* … innermost at this one */
    char thread[CAT_THREAD_NAME_MAX];
    bool thread_known;
    uint8_t *thread_match; /* by rule: 0 not asked, 1 no, 2 yes */
    struct cat_regex_run run;
};

struct cat_matcher {
    const struct cat_rules *rules;
    uint32_t nrules, nentries, npatterns; /* entries: rules, then contexts */
    uint32_t *canon;                      /* pattern -> the first one that is the same */
    struct rp_index index;                /* canonical patterns by field, kind and body: exact ones are looked up here */
    uint32_t glob_first[258];             /* symbol globs by first byte; bucket 256 begins with a wildcard */
    uint32_t *globs;
    uint32_t *slow, nslow[3];             /* symbol regexes, module globs and regexes, file patterns: ends in `slow` */
    uint32_t *post_first, *post;          /* pattern -> entries that hang on it */
    uint64_t *hit;                        /* bit per pattern, for the symbol in work */
    uint32_t *matched, nmatched;
    uint32_t *gathered;
    RP_VEC(struct cat_known_symbol) symbols;
    RP_VEC(uint32_t) pool;
    struct cat_scratch *scratch;
};

/* The part of a name that exact patterns and globs see: without `@plt` and ` [local]`. */
size_t cat_plain_length(const char *name);

/* ---- classify.c, for explain.c, cases.c and match.c ---- */

struct cat_walk {
    const struct cat_matcher *matcher;
    const uint32_t *frames;
    size_t n;
    const struct cat_context *context;
    size_t caller_from, caller_to; /* frames [from, to) are `through`: the caller of each is `to` */
    bool contexts_ready;
};

enum cat_miss {
    CAT_MISS_NONE,
    CAT_MISS_KIND,
    CAT_MISS_THREAD,
    CAT_MISS_CALLER,
    CAT_MISS_UNDER,
    CAT_MISS_NOT_UNDER,
    CAT_MISS_NOT_OVER,
    CAT_MISS_NEVER_RAN,
    CAT_MISS_HOLDS_LOCK,
};

void cat_walk_init(struct cat_walk *walk, const struct cat_matcher *matcher, const uint32_t *frames, size_t n,
                   const struct cat_context *context);
/* Why the rule, whose patterns match the frame, does not hold there; its `claims` are not looked at. */
enum cat_miss cat_rule_misses(struct cat_walk *walk, uint32_t rule, size_t frame);
/* The next frame rootward that is no `through` function; n when there is none. */
size_t cat_next_caller(struct cat_walk *walk, size_t frame);
/* The `through` entry that passes this frame on when no rule before it claims; CAT_NO_RULE. */
uint32_t cat_through_entry(const struct cat_matcher *matcher, uint32_t symbol);
/* True for frames that are not asked at all: cut kernel frames, marks. */
bool cat_frame_skipped(const struct cat_walk *walk, size_t frame);
/* Only kernel frames are asked. */
bool cat_kernel_leaf(const struct cat_walk *walk);

#endif
