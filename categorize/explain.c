/* SPDX-License-Identifier: MIT */
/* Says of each frame which rule wins, which lose and why: what a person asks when a share looks wrong. Rules whose symbol pattern matches but whose module,
 * file or space does not are told too, since that is the mistake one makes; the matcher does not keep those, so they are looked for here, the slow way. */
#include <string.h>

#include "base/limits.h"
#include "matcher.h"

struct explainer {
    const struct cat_rules *rules;
    struct cat_matcher *matcher;
    const struct cat_symbol *frames;
    struct cat_walk walk;
    struct cat_verdict verdict;
    RP_VEC(uint32_t) ids;
    struct rp_buf *out;
    bool inherited; /* frames leafward were passed that no rule claims */
};

enum { TOLD_MAX = 4 };

/* The head of a list: shipped rules hold dozens of names. */
static void tell_span(struct rp_buf *out, const struct cat_rules *rules, struct cat_span span)
{
    for (uint32_t i = 0; i < span.n && i < TOLD_MAX; i++)
        rp_buf_printf(out, "%s%s", i ? ", " : "", rules->patterns.at[span.first + i].text);
    if (span.n > TOLD_MAX)
        rp_buf_printf(out, " and %u more", span.n - TOLD_MAX);
}

static void tell_contexts(struct rp_buf *out, const struct cat_rules *rules, struct cat_span span)
{
    static const char *const names[] = {"", "module ", "file "};

    for (uint32_t i = 0; i < span.n && i < TOLD_MAX; i++) {
        const struct cat_frame_test *test = &rules->contexts.at[span.first + i];
        bool more = false;

        rp_buf_puts(out, i ? ", " : "");
        for (size_t f = 0; f < CAT_FRAME_FIELDS; f++) {
            if (!test->field[f].n)
                continue;
            rp_buf_printf(out, "%s%s", more ? " in " : "", names[f]);
            tell_span(out, rules, test->field[f]);
            more = true;
        }
    }
    if (span.n > TOLD_MAX)
        rp_buf_printf(out, " and %u more", span.n - TOLD_MAX);
}

static const char *name_of(const struct explainer *e, size_t frame)
{
    const struct cat_symbol *s = &e->frames[frame];

    return s->short_name ? s->short_name : s->name ? s->name : "";
}

/* One line on one rule at one frame: "  wins   id -> category  (file:line:column)". */
static void begin(struct explainer *e, const char *verb, uint32_t rule)
{
    const struct cat_rule_info *info = &e->rules->rules.at[rule].info;

    rp_buf_printf(e->out, "     %-8s", verb);
    if (info->through)
        rp_buf_puts(e->out, info->id);
    else
        rp_buf_printf(e->out, "%s -> %s", info->id, e->rules->categories.at[info->category].category.id);
    rp_buf_printf(e->out, "  (%s:%u:%u)", info->file, info->line, info->column);
}

static void tell_miss(struct explainer *e, uint32_t rule, size_t frame, enum cat_miss miss)
{
    const struct cat_rule *r = &e->rules->rules.at[rule];
    size_t caller = cat_next_caller(&e->walk, frame);

    begin(e, "fails", rule);
    switch (miss) {
    case CAT_MISS_KIND:
        rp_buf_printf(e->out, ": its category sees %s threads only", r->kind == CAT_COST ? "running" : "blocked");
        break;
    case CAT_MISS_THREAD:
        rp_buf_puts(e->out, ": the thread is not ");
        tell_span(e->out, e->rules, r->thread);
        break;
    case CAT_MISS_CALLER:
        rp_buf_printf(e->out, ": the caller is %s, not ", caller < e->walk.n ? name_of(e, caller) : "unknown");
        tell_contexts(e->out, e->rules, r->caller);
        break;
    case CAT_MISS_UNDER:
        rp_buf_puts(e->out, ": not under ");
        tell_contexts(e->out, e->rules, r->under);
        break;
    case CAT_MISS_NOT_UNDER:
        rp_buf_puts(e->out, ": under one of ");
        tell_contexts(e->out, e->rules, r->not_under);
        break;
    case CAT_MISS_NOT_OVER:
        rp_buf_puts(e->out, ": it calls one of ");
        tell_contexts(e->out, e->rules, r->not_over);
        break;
    case CAT_MISS_NEVER_RAN:
        rp_buf_puts(e->out, ": the wait did not last the whole run");
        break;
    case CAT_MISS_HOLDS_LOCK:
        rp_buf_puts(e->out, ": it holds a lock that others wait for, so it is not idle");
        break;
    case CAT_MISS_NONE:
        break;
    }
    rp_buf_putc(e->out, '\n');
}

static bool is_star(const struct cat_pattern *p)
{
    return p->kind == CAT_PATTERN_GLOB && p->body_length == 1 && p->body[0] == CAT_GLOB_ANY;
}

static bool span_matches(struct explainer *e, struct cat_span span, const char *text, size_t length)
{
    for (uint32_t i = 0; text && i < span.n; i++)
        if (cat_pattern_match(&e->rules->patterns.at[span.first + i], &e->matcher->scratch->run, text, length))
            return true;
    return false;
}

/* A pattern of the rule was written with this name in mind: a bare * was not, nor, as long as the module is unknown, a regex, which is mostly wide. */
static bool knows_name(struct explainer *e, struct cat_span span, const struct cat_symbol *s, const char *name)
{
    bool module = s->module && s->module[0];

    for (uint32_t i = 0; i < span.n; i++) {
        const struct cat_pattern *p = &e->rules->patterns.at[span.first + i];

        if (!is_star(p) && (module || p->kind != CAT_PATTERN_REGEX) && cat_pattern_match(p, &e->matcher->scratch->run, name, cat_plain_length(name)))
            return true;
    }
    return false;
}

/* Rules that know the name but not the place. */
static void tell_near_misses(struct explainer *e, size_t frame)
{
    const struct cat_symbol *s = &e->frames[frame];
    const char *name = name_of(e, frame);

    for (uint32_t i = 0; i < e->rules->rules.n; i++) {
        const struct cat_rule *r = &e->rules->rules.at[i];
        const struct cat_span *field = r->test.field;

        if (!knows_name(e, field[CAT_SYMBOL], s, name))
            continue;
        if (field[CAT_MODULE].n && !span_matches(e, field[CAT_MODULE], s->module, s->module ? strlen(s->module) : 0)) {
            begin(e, "fails", i);
            rp_buf_printf(e->out, s->module && s->module[0] ? ": the module is %s, not " : ": the module is unknown%s (write module!name), not ",
                          s->module ? s->module : "");
            tell_span(e->out, e->rules, field[CAT_MODULE]);
            rp_buf_putc(e->out, '\n');
        } else if (field[CAT_FILE].n && !span_matches(e, field[CAT_FILE], s->file, s->file ? strlen(s->file) : 0)) {
            begin(e, "fails", i);
            rp_buf_printf(e->out, ": the source file is %s, not ", s->file ? s->file : "unknown");
            tell_span(e->out, e->rules, field[CAT_FILE]);
            rp_buf_putc(e->out, '\n');
        } else if (r->kernel != s->kernel) {
            begin(e, "fails", i);
            rp_buf_printf(e->out, ": it sees %s frames only\n", r->kernel ? "kernel" : "user");
        }
    }
}

static void tell_rules(struct explainer *e, size_t frame)
{
    const struct cat_known_symbol *known = &e->matcher->symbols.at[e->ids.at[frame]];
    bool stopped = false, any = false;

    for (uint32_t i = 0; i < known->nrules; i++) {
        uint32_t rule = e->matcher->pool.at[known->first + i];
        const struct cat_rule *r = &e->rules->rules.at[rule];
        enum cat_miss miss = r->info.through ? CAT_MISS_NONE : cat_rule_misses(&e->walk, rule, frame);

        if (rule == e->verdict.rule && frame == e->verdict.payer) {
            begin(e, "wins", rule);
            stopped = any = true;
            rp_buf_putc(e->out, '\n');
        } else if (miss) {
            tell_miss(e, rule, frame, miss);
        } else if (r->info.through) {
            begin(e, stopped ? "loses" : "passes", rule);
            rp_buf_puts(e->out, stopped ? ": a rule before it decided this frame\n" : ": the question goes to the caller\n");
            any = true;
            stopped = true;
        } else {
            begin(e, "loses", rule);
            rp_buf_puts(e->out, frame > e->verdict.payer                             ? ": the payer was found before this frame\n"
                                : stopped                                            ? ": a rule before it decided this frame\n"
                                : r->claims == CAT_CLAIMS_SELF && e->inherited       ? ": it claims itself only, and this frame is not the leaf\n"
                                : r->claims == CAT_CLAIMS_REST                       ? ": it is asked only when nothing else is claimed\n"
                                : e->verdict.payer < e->walk.n && r->kind == CAT_WAIT ? ": an idle rule decided the stack\n"
                                                                                     : ": only kernel frames are asked, the leaf is one\n");
        }
    }
    if (!any)
        e->inherited = true;
}

static void tell_frame(struct explainer *e, size_t frame)
{
    const struct cat_symbol *s = &e->frames[frame];
    const struct cat_known_symbol *known = &e->matcher->symbols.at[e->ids.at[frame]];
    size_t before;

    rp_buf_printf(e->out, "%3zu  %s", frame, name_of(e, frame));
    if (s->module && s->module[0])
        rp_buf_printf(e->out, " (in %s)", s->module);
    if (s->file)
        rp_buf_printf(e->out, " %s", s->file);
    rp_buf_putc(e->out, '\n');
    before = e->out->length;
    tell_rules(e, frame);
    tell_near_misses(e, frame);
    if (e->out->length == before)
        rp_buf_puts(e->out, known->mark ? "     the stack was cut here\n" : "     no rule knows this frame\n");
}

static void tell_verdict(struct explainer *e)
{
    static const char *const why[] = {"", "no rule claims a frame", "there are only `through` frames up to the root",
                                      "the stack was cut before a claimed frame came"};
    const struct cat_category *category = &e->rules->categories.at[e->verdict.category].category;

    if (e->verdict.rule == CAT_NO_RULE) {
        rp_buf_printf(e->out, "=> uncategorized: %s\n", why[e->verdict.why]);
        return;
    }
    rp_buf_printf(e->out, "=> %s \"%s\": frame %u, %s%s\n", category->id, category->name, e->verdict.payer, name_of(e, e->verdict.payer),
                  e->verdict.inherited ? ", which takes what no rule claims below it" : "");
    if (category->shows_payers) {
        uint32_t payer, frame;

        cat_classify_payer_of(e->matcher, e->ids.at, e->ids.n, e->walk.context, &e->verdict, &payer, &frame);
        rp_buf_printf(e->out, "   paid for by %s%s%s\n", e->rules->categories.at[payer].category.id, frame < e->ids.n ? ": " : "",
                      frame < e->ids.n ? name_of(e, frame) : "");
    }
}

/* A verdict that a regex had no time to take part in is to be read as such. */
static void tell_given_up(struct explainer *e)
{
    const struct cat_regex_run *run = &e->matcher->scratch->run;

    if (run->gave_up)
        rp_buf_printf(e->out, "   but the regex %s was ended by the limit of %u steps, which counts as no match; make it simpler (anchor it with ^, avoid nested repeats)\n",
                      run->gave_up_at->text, RP_RULE_MATCH_STEPS_MAX);
}

enum rp_status cat_explain(const struct cat_matcher *matcher, const struct cat_symbol *frames, size_t n, const struct cat_context *context,
                           struct rp_buf *out, struct rp_err *err)
{
    struct explainer e = {.rules = matcher->rules, .frames = frames, .out = out};
    enum rp_status status = cat_matcher_new(matcher->rules, &e.matcher, err);

    if (!status && !rp_vec_reserve(&e.ids, n))
        status = rp_fail_nomem(err);
    for (size_t i = 0; i < n && !status; i++)
        status = cat_matcher_symbol(e.matcher, &frames[i], &e.ids.at[e.ids.n++], err);
    if (status)
        goto done;
    cat_classify(e.matcher, e.ids.at, n, context, &e.verdict);
    cat_walk_init(&e.walk, e.matcher, e.ids.at, n, context);
    for (size_t i = 0; i < n; i++)
        tell_frame(&e, i);
    tell_verdict(&e);
    tell_given_up(&e);
    if (out->failed)
        status = rp_fail_nomem(err);
done:
    cat_matcher_free(e.matcher);
    rp_vec_release(&e.ids);
    return status;
}
