/* SPDX-License-Identifier: MIT */
/* The rule language: which category pays for a stack. Knows nothing of processes, files or profiles: names in, verdicts out.
 *
 *     struct cat_rules *rules = NULL;
 *     cat_rules_new(&rules, err);
 *     cat_rules_add(rules, "mine.yaml", text, length, err);     // asked first
 *     cat_rules_add_shipped(rules, err);                         // the packs compiled into the program
 *     cat_matcher_new(rules, &m, err);
 *     id = cat_matcher_symbol(m, &symbol, …);                    // once per function
 *     cat_classify(m, ids, n, &context, &verdict);               // once per distinct stack
 *
 * The semantics (payer, through, first rule wins, context, kernel time, kinds) are those of rules/README.md. */
#ifndef CAT_CATEGORIZE_H
#define CAT_CATEGORIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"

enum cat_kind { CAT_COST, CAT_WAIT, CAT_IDLE };
enum cat_state { CAT_RUNNING, CAT_BLOCKED };
enum cat_claims { CAT_SUBTREE, CAT_SELF };

struct cat_category {
    const char *id, *name, *color;
    enum cat_kind kind;
    bool shows_payers; /* "paid for by" is printed: mutex, malloc (key `payers: true`) */
};

/* Where a rule was written. */
struct cat_rule_info {
    const char *id;
    const char *file; /* as given to cat_rules_add; shipped packs: "shipped/NAME.yaml" */
    uint32_t line, column;
    uint32_t category;
    bool through; /* an entry of a `through` list */
};

struct cat_rules;

enum rp_status cat_rules_new(struct cat_rules **out, struct rp_err *err);
void cat_rules_free(struct cat_rules *rules);

/* Parses one file. Bad input: RP_USAGE, and all errors of the file appended to `problems`, one a line as file:line:column: what was
 * expected; nothing of the file is added. Rules of earlier files are asked before those of later ones. A category may be used before it is
 * defined, across files: cat_rules_finish checks. */
enum rp_status cat_rules_add(struct cat_rules *rules, const char *file, const char *text, size_t length, struct rp_buf *problems,
                             struct rp_err *err);
/* The same from a path; a directory means all *.yaml in it by name. A file called like a shipped pack stands in for it: it is read by
 * cat_rules_add_shipped in that pack's place, or by cat_rules_finish when there is no such call. */
enum rp_status cat_rules_add_path(struct cat_rules *rules, const char *path, struct rp_buf *problems, struct rp_err *err);
enum rp_status cat_rules_add_shipped(struct cat_rules *rules, struct rp_buf *problems, struct rp_err *err);
/* After a file was refused: appends to `problems` the categories that rules name, those of refused files too, and no file defines, each once. They would
 * otherwise come to light when all else is right. */
enum rp_status cat_rules_tell_unknown(struct cat_rules *rules, struct rp_buf *problems, struct rp_err *err);
/* Cross-file checks: unknown categories, duplicate ids. Category `uncategorized` is always there, last. */
enum rp_status cat_rules_finish(struct cat_rules *rules, struct rp_buf *problems, struct rp_err *err);

size_t cat_rules_ncategories(const struct cat_rules *rules);
const struct cat_category *cat_rules_category(const struct cat_rules *rules, uint32_t category);
/* "cost", "wait" or "idle": as rule files and reports call it. */
const char *cat_kind_word(enum cat_kind kind);
/* Position of the category with this id or (case-sensitive) name; UINT32_MAX when there is none. */
uint32_t cat_rules_find_category(const struct cat_rules *rules, const char *id_or_name);
uint32_t cat_rules_uncategorized(const struct cat_rules *rules);
size_t cat_rules_nrules(const struct cat_rules *rules);
const struct cat_rule_info *cat_rules_rule(const struct cat_rules *rules, uint32_t rule);

/* A function as rules see it. Strings need to live only during the call. */
struct cat_symbol {
    const char *name;           /* demangled, full */
    const char *short_name;     /* without return type, parameters and suffixes */
    const char *raw;            /* as in the symbol table; may equal name */
    const char *const *aliases; /* short forms of other names at the same address */
    size_t naliases;
    const char *module;         /* base name of the file, "[kernel]", "[jit]" */
    const char *file;           /* source file or NULL */
    bool kernel;
    bool mark;                  /* a typed root frame: no rule matches it */
};

struct cat_matcher;

/* `rules` must be finished and outlive the matcher. */
enum rp_status cat_matcher_new(const struct cat_rules *rules, struct cat_matcher **out, struct rp_err *err);
void cat_matcher_free(struct cat_matcher *matcher);

/* Matches all patterns against the symbol once; the id stands for it in cat_classify. */
enum rp_status cat_matcher_symbol(struct cat_matcher *matcher, const struct cat_symbol *symbol, uint32_t *id, struct rp_err *err);

/* How often a regex was ended by the step limit so far: it counted as no match, and the user should be told. */
uint64_t cat_matcher_gave_up(const struct cat_matcher *matcher);

struct cat_context {
    const char *thread; /* thread name, "" when unknown */
    enum cat_state state;
    bool no_kernel;     /* kernel frames were cut away: ask the user frames */
    bool never_ran;     /* blocked only: this one wait lasted as long as the thread was watched */
    bool holds_lock;    /* blocked only: with a lock that others waited for, which is no idling: no idle rule holds */
};

#define CAT_NO_RULE UINT32_MAX

enum cat_why {
    CAT_WHY_RULE,      /* a rule claimed the payer */
    CAT_WHY_NO_RULE,   /* no frame was claimed */
    CAT_WHY_THROUGH,   /* only `through` frames up to the root */
    CAT_WHY_TRUNCATED, /* the stack was cut before a claimed frame came */
};

struct cat_verdict {
    uint32_t category;
    uint32_t rule;    /* CAT_NO_RULE: none */
    uint32_t payer;   /* frame index, leaf first; n when none */
    uint32_t outer;   /* the outermost frame claimed by any rule of this category: where its tree starts; n when none */
    bool inherited;   /* the payer is not the leaf (after through): unclaimed callees were taken along */
    enum cat_why why;
};

/* Leaf first, inlined frames included; `frames` are ids of cat_matcher_symbol. Allocates nothing, cannot fail. A matcher keeps scratch memory: one
 * thread at a time. */
void cat_classify(const struct cat_matcher *matcher, const uint32_t *frames, size_t n, const struct cat_context *context,
                  struct cat_verdict *verdict);

/* True when some rule of `category` claims this frame in this stack (for totals): no rule before it takes the whole frame. `claims: self` counts
 * wherever the frame stands; `claims: rest` only when it decides the stack. */
bool cat_claims(const struct cat_matcher *matcher, const uint32_t *frames, size_t n, size_t frame, const struct cat_context *context,
                uint32_t category);

/* The cost category that would pay if the frames claimed by `verdict->category` were `through`, kernel frames skipped: who mutex, malloc and waits are
 * paid for. n frames as above; gives the category (uncategorized when nobody) and the paying frame (n when none). */
void cat_classify_payer_of(const struct cat_matcher *matcher, const uint32_t *frames, size_t n, const struct cat_context *context,
                           const struct cat_verdict *verdict, uint32_t *category, uint32_t *frame);

/* All totals of a stack in one pass: sets has[c] for every category c that claims some frame (as cat_claims says) and for that of `verdict`. `has` holds
 * cat_rules_ncategories flags and is not cleared. */
void cat_totals(const struct cat_matcher *matcher, const uint32_t *frames, size_t n, const struct cat_context *context,
                const struct cat_verdict *verdict, bool *has);

/* Which rule wins, and for each frame which lose and why: the text of `rowprof rules explain`. Shipped rules that could not have claimed a frame anyway are
 * only counted, unless `all`. */
enum rp_status cat_explain(const struct cat_matcher *matcher, const struct cat_symbol *frames, size_t n, const struct cat_context *context,
                           bool all, struct rp_buf *out, struct rp_err *err);

/* A stack written as in *.cases files, without the `->`: "memcpy < app!draw @ src/json.c < [k]entry | state=blocked thread=pool". Names are
 * taken as short names. Zero-initialised is empty; RP_USAGE names the column. */
struct cat_stack {
    struct cat_symbol *frames;
    size_t n;
    struct cat_context context;
    struct rp_arena arena; /* holds all of the above */
};

enum rp_status cat_stack_parse(const char *text, size_t length, struct cat_stack *stack, struct rp_err *err);
void cat_stack_release(struct cat_stack *stack);

/* Lint for `rowprof rules check`, of finished rules: rules that earlier ones make unreachable, rules that can match nothing, categories without
 * a rule. One line each, as file:line:column: text; `findings` counts them. */
enum rp_status cat_lint(const struct cat_rules *rules, struct rp_buf *out, size_t *findings, struct rp_err *err);
/* The same against what a profile saw: rules and `through` entries that match none of the n symbols. */
enum rp_status cat_lint_symbols(const struct cat_rules *rules, const struct cat_symbol *symbols, size_t n, struct rp_buf *out, size_t *findings,
                                struct rp_err *err);

/* Runs a *.cases file (see rules/README.md): each failed case appended to `out`; counts passed and failed; `hit[rule]` set for rules that won a case
 * (array of cat_rules_nrules, may be NULL). */
enum rp_status cat_cases_run(const struct cat_rules *rules, const char *file, const char *text, size_t length, struct rp_buf *out, size_t *passed,
                             size_t *failed, bool *hit, struct rp_err *err);

#endif
