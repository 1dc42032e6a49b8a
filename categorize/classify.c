/* SPDX-License-Identifier: MIT */
/* Who pays for a stack. Works on what match.c found for each symbol; compares no strings but the thread's name.
 *
 * Stacks reach 8192 frames, so nothing here may look rootward once per frame: the outermost frame of each context is found in one pass, and only
 * when a rule asks; runs of `through` frames are remembered. */
#include "matcher.h"

#include <string.h>

enum answer { UNCLAIMED, THROUGH, CLAIMED };

struct question {
    enum cat_kind kind;
    bool rest;
    bool inherited; /* frames were passed that no rule claims: `self` does not hold any more */
};

static const struct cat_known_symbol *symbol_at(const struct cat_walk *walk, size_t frame)
{
    return &walk->matcher->symbols.at[walk->frames[frame]];
}

static const struct cat_rule *rule_of(const struct cat_walk *walk, uint32_t rule)
{
    return &walk->matcher->rules->rules.at[rule];
}

void cat_walk_init(struct cat_walk *walk, const struct cat_matcher *matcher, const uint32_t *frames, size_t n,
                   const struct cat_context *context)
{
    struct cat_scratch *s = matcher->scratch;
    const char *thread = context->thread ? context->thread : "";
    size_t length = strlen(thread);

    *walk = (struct cat_walk){.matcher = matcher, .frames = frames, .n = n, .context = context};
    if (s->thread_known && strcmp(s->thread, thread) == 0)
        return;
    memset(s->thread_match, 0, matcher->nrules);
    s->thread_known = length < sizeof s->thread;
    if (s->thread_known)
        memcpy(s->thread, thread, length + 1);
}

static bool thread_holds(struct cat_walk *walk, uint32_t rule)
{
    struct cat_scratch *s = walk->matcher->scratch;
    const char *thread = walk->context->thread ? walk->context->thread : "";
    struct cat_span span = rule_of(walk, rule)->thread;

    if (!span.n)
        return true;
    if (!s->thread_match[rule]) {
        s->thread_match[rule] = 1;
        for (uint32_t i = 0; i < span.n; i++)
            if (cat_pattern_match(&walk->matcher->rules->patterns.at[span.first + i], &s->run, thread, strlen(thread)))
                s->thread_match[rule] = 2;
    }
    return s->thread_match[rule] == 2;
}

static bool satisfies(const struct cat_walk *walk, size_t frame, struct cat_span contexts)
{
    const struct cat_known_symbol *known = symbol_at(walk, frame);
    const uint32_t *list = walk->matcher->pool.at + known->first + known->nrules;

    for (uint32_t i = 0; i < known->ncontexts; i++)
        if (list[i] >= contexts.first && list[i] - contexts.first < contexts.n)
            return true;
    return false;
}

static void find_contexts(struct cat_walk *walk)
{
    struct cat_scratch *s = walk->matcher->scratch;

    s->epoch++;
    for (size_t f = 0; f < walk->n; f++) {
        const struct cat_known_symbol *known = symbol_at(walk, f);
        const uint32_t *list = walk->matcher->pool.at + known->first + known->nrules;

        for (uint32_t i = 0; i < known->ncontexts; i++) {
            if (s->context_epoch[list[i]] != s->epoch)
                s->context_first[list[i]] = (uint32_t)f;
            s->context_epoch[list[i]] = s->epoch;
            s->context_last[list[i]] = (uint32_t)f;
        }
    }
    walk->contexts_ready = true;
}

static bool is_under(struct cat_walk *walk, size_t frame, struct cat_span contexts)
{
    const struct cat_scratch *s = walk->matcher->scratch;

    if (!walk->contexts_ready)
        find_contexts(walk);
    for (uint32_t c = contexts.first; c < contexts.first + contexts.n; c++)
        if (s->context_epoch[c] == s->epoch && s->context_last[c] > frame)
            return true;
    return false;
}

static bool is_over(struct cat_walk *walk, size_t frame, struct cat_span contexts)
{
    const struct cat_scratch *s = walk->matcher->scratch;

    if (!walk->contexts_ready)
        find_contexts(walk);
    for (uint32_t c = contexts.first; c < contexts.first + contexts.n; c++)
        if (s->context_epoch[c] == s->epoch && s->context_first[c] < frame)
            return true;
    return false;
}

size_t cat_next_caller(struct cat_walk *walk, size_t frame)
{
    size_t at = frame + 1;

    while (at < walk->n && symbol_at(walk, at)->through) {
        if (at >= walk->caller_from && at < walk->caller_to) {
            at = walk->caller_to;
            break;
        }
        at++;
    }
    walk->caller_from = frame + 1;
    walk->caller_to = at;
    return at;
}

enum cat_miss cat_rule_misses(struct cat_walk *walk, uint32_t rule, size_t frame)
{
    const struct cat_rule *r = rule_of(walk, rule);
    size_t caller;

    if ((r->kind == CAT_COST) != (walk->context->state == CAT_RUNNING))
        return CAT_MISS_KIND;
    if (r->never_ran && !walk->context->never_ran)
        return CAT_MISS_NEVER_RAN;
    if (r->kind == CAT_IDLE && walk->context->holds_lock)
        return CAT_MISS_HOLDS_LOCK;
    if (!thread_holds(walk, rule))
        return CAT_MISS_THREAD;
    if (r->caller.n) {
        caller = cat_next_caller(walk, frame);
        if (caller >= walk->n || !satisfies(walk, caller, r->caller))
            return CAT_MISS_CALLER;
    }
    if (r->under.n && !is_under(walk, frame, r->under))
        return CAT_MISS_UNDER;
    if (r->not_under.n && is_under(walk, frame, r->not_under))
        return CAT_MISS_NOT_UNDER;
    if (r->not_over.n && is_over(walk, frame, r->not_over))
        return CAT_MISS_NOT_OVER;
    return CAT_MISS_NONE;
}

bool cat_frame_skipped(const struct cat_walk *walk, size_t frame)
{
    const struct cat_known_symbol *known = symbol_at(walk, frame);

    return known->mark || (known->kernel && walk->context->no_kernel);
}

bool cat_kernel_leaf(const struct cat_walk *walk)
{
    return walk->n && symbol_at(walk, 0)->kernel && !walk->context->no_kernel && walk->context->state == CAT_RUNNING;
}

uint32_t cat_through_entry(const struct cat_matcher *matcher, uint32_t symbol)
{
    const struct cat_known_symbol *known = &matcher->symbols.at[symbol];

    for (uint32_t i = 0; known->through && i < known->nrules; i++)
        if (matcher->rules->rules.at[matcher->pool.at[known->first + i]].info.through)
            return matcher->pool.at[known->first + i];
    return CAT_NO_RULE;
}

static enum answer ask(struct cat_walk *walk, size_t frame, const struct question *q, uint32_t *winner)
{
    const struct cat_known_symbol *known = symbol_at(walk, frame);
    const uint32_t *list = walk->matcher->pool.at + known->first;

    for (uint32_t i = 0; i < known->nrules; i++) {
        const struct cat_rule *r = rule_of(walk, list[i]);

        if (r->info.through) {
            if (!q->rest)
                return THROUGH;
            continue;
        }
        if (r->kind != q->kind || (r->claims == CAT_CLAIMS_REST) != q->rest || (r->claims == CAT_CLAIMS_SELF && q->inherited))
            continue;
        if (cat_rule_misses(walk, list[i], frame) == CAT_MISS_NONE) {
            *winner = list[i];
            return CLAIMED;
        }
    }
    return UNCLAIMED;
}

/* One way from leaf to root. True when a frame was claimed; otherwise the verdict's `why`. */
static bool walk_once(struct cat_walk *walk, enum cat_kind kind, bool rest, struct cat_verdict *verdict)
{
    struct question q = {.kind = kind, .rest = rest};
    bool kernel_only = cat_kernel_leaf(walk), passed = false;

    for (size_t f = 0; f < walk->n; f++) {
        bool kernel = symbol_at(walk, f)->kernel;
        enum answer answer;

        if (kernel_only && !kernel)
            break;
        if (cat_frame_skipped(walk, f))
            continue;
        answer = ask(walk, f, &q, &verdict->rule);
        if (answer == CLAIMED) {
            verdict->payer = (uint32_t)f;
            verdict->inherited = q.inherited && !rest;
            verdict->why = CAT_WHY_RULE;
            return true;
        }
        /* A blocked thread always stands in the kernel; whether its kernel frames are seen is a matter of permission. */
        if (answer == THROUGH || (kernel && walk->context->state == CAT_BLOCKED))
            passed = true;
        else
            q.inherited = true;
    }
    verdict->why = !kernel_only && walk->n && symbol_at(walk, walk->n - 1)->mark ? CAT_WHY_TRUNCATED
                   : passed && !q.inherited                                      ? CAT_WHY_THROUGH
                                                                                 : CAT_WHY_NO_RULE;
    return false;
}

/* Whether a rule of the category holds at the frame and none before it takes the frame as a whole. */
static bool claims_at(struct cat_walk *walk, size_t frame, uint32_t category, bool rest)
{
    const struct cat_known_symbol *known = symbol_at(walk, frame);
    const uint32_t *list = walk->matcher->pool.at + known->first;
    enum cat_kind kind = walk->matcher->rules->categories.at[category].category.kind;
    bool taken = false;

    if (!(known->categories >> (category & 63) & 1) || cat_frame_skipped(walk, frame))
        return false;
    for (uint32_t i = 0; i < known->nrules; i++) {
        const struct cat_rule *r = rule_of(walk, list[i]);
        bool is_rest = r->claims == CAT_CLAIMS_REST;

        if (r->info.through) {
            taken = true;
            continue;
        }
        if (is_rest ? !rest : taken)
            continue;
        if (r->kind != kind || (r->info.category != category && (is_rest || r->claims == CAT_CLAIMS_SELF)))
            continue;
        if (cat_rule_misses(walk, list[i], frame) != CAT_MISS_NONE)
            continue;
        if (r->info.category == category)
            return true;
        taken = true;
    }
    return false;
}

static bool decided_by_rest(const struct cat_walk *walk, const struct cat_verdict *verdict)
{
    return verdict->rule != CAT_NO_RULE && rule_of(walk, verdict->rule)->claims == CAT_CLAIMS_REST;
}

static void decide(struct cat_walk *walk, struct cat_verdict *verdict)
{
    bool found, running = walk->context->state == CAT_RUNNING;
    enum cat_why why;

    *verdict = (struct cat_verdict){.rule = CAT_NO_RULE, .payer = (uint32_t)walk->n, .outer = (uint32_t)walk->n};
    if (running)
        found = walk_once(walk, CAT_COST, false, verdict);
    else
        found = walk_once(walk, CAT_IDLE, false, verdict) || walk_once(walk, CAT_WAIT, false, verdict);
    why = verdict->why;
    if (!found && running)
        found = walk_once(walk, CAT_COST, true, verdict);
    else if (!found)
        found = walk_once(walk, CAT_IDLE, true, verdict) || walk_once(walk, CAT_WAIT, true, verdict);
    if (!found)
        verdict->why = why;
    verdict->category = found ? rule_of(walk, verdict->rule)->info.category : cat_rules_uncategorized(walk->matcher->rules);
}

void cat_classify(const struct cat_matcher *matcher, const uint32_t *frames, size_t n, const struct cat_context *context,
                  struct cat_verdict *verdict)
{
    struct cat_walk walk;
    bool rest;

    cat_walk_init(&walk, matcher, frames, n, context);
    decide(&walk, verdict);
    if (verdict->rule == CAT_NO_RULE)
        return;
    rest = decided_by_rest(&walk, verdict);
    verdict->outer = verdict->payer;
    for (size_t f = n; f-- > verdict->payer;)
        if (claims_at(&walk, f, verdict->category, rest)) {
            verdict->outer = (uint32_t)f;
            break;
        }
}

bool cat_claims(const struct cat_matcher *matcher, const uint32_t *frames, size_t n, size_t frame, const struct cat_context *context,
                uint32_t category)
{
    struct cat_walk walk;
    struct cat_verdict verdict;

    cat_walk_init(&walk, matcher, frames, n, context);
    if (claims_at(&walk, frame, category, false))
        return true;
    if (!claims_at(&walk, frame, category, true))
        return false;
    decide(&walk, &verdict);
    return verdict.category == category && decided_by_rest(&walk, &verdict);
}

/* Marks the categories of one frame: as claims_at for all of them at once. */
static void mark_frame(struct cat_walk *walk, size_t frame, bool *has)
{
    const struct cat_known_symbol *known = symbol_at(walk, frame);
    const uint32_t *list = walk->matcher->pool.at + known->first;
    bool taken[3] = {false, false, false};

    for (uint32_t i = 0; i < known->nrules && !cat_frame_skipped(walk, frame); i++) {
        const struct cat_rule *r = rule_of(walk, list[i]);

        if (r->info.through)
            return;
        if (r->claims == CAT_CLAIMS_REST || taken[r->kind] || (has[r->info.category] && r->claims == CAT_CLAIMS_SELF) ||
            cat_rule_misses(walk, list[i], frame) != CAT_MISS_NONE)
            continue;
        has[r->info.category] = true;
        taken[r->kind] = r->claims == CAT_CLAIMS_SUBTREE;
    }
}

void cat_totals(const struct cat_matcher *matcher, const uint32_t *frames, size_t n, const struct cat_context *context,
                const struct cat_verdict *verdict, bool *has)
{
    struct cat_walk walk;

    cat_walk_init(&walk, matcher, frames, n, context);
    for (size_t f = 0; f < n; f++)
        mark_frame(&walk, f, has);
    has[verdict->category] = true;
}

/* From the payer on; true when another category claims a frame. */
static bool find_payer(struct cat_walk *own, struct cat_walk *cost, const struct cat_verdict *verdict, bool rest, uint32_t *category,
                       uint32_t *frame)
{
    struct question q = {.kind = CAT_COST, .rest = rest};

    for (size_t f = (size_t)verdict->payer + 1; f < own->n; f++) {
        enum answer answer;
        uint32_t rule = CAT_NO_RULE;

        if (symbol_at(own, f)->mark || symbol_at(own, f)->kernel || claims_at(own, f, verdict->category, decided_by_rest(own, verdict)))
            continue;
        answer = ask(cost, f, &q, &rule);
        if (answer == CLAIMED && rule_of(cost, rule)->info.category != verdict->category) {
            *category = rule_of(cost, rule)->info.category;
            *frame = (uint32_t)f;
            return true;
        }
        if (answer == UNCLAIMED)
            q.inherited = true;
    }
    return false;
}

void cat_classify_payer_of(const struct cat_matcher *matcher, const uint32_t *frames, size_t n, const struct cat_context *context,
                           const struct cat_verdict *verdict, uint32_t *category, uint32_t *frame)
{
    struct cat_context running = {.thread = context->thread, .state = CAT_RUNNING, .no_kernel = context->no_kernel};
    struct cat_walk own, cost;

    *category = cat_rules_uncategorized(matcher->rules);
    *frame = (uint32_t)n;
    if (verdict->rule == CAT_NO_RULE)
        return;
    cat_walk_init(&own, matcher, frames, n, context);
    cat_walk_init(&cost, matcher, frames, n, &running);
    if (!find_payer(&own, &cost, verdict, false, category, frame))
        find_payer(&own, &cost, verdict, true, category, frame);
}
