/* SPDX-License-Identifier: MIT */
/* Says which rule wins a stack, then of each frame which rules lose and why: what a person asks when a share looks wrong. Rules whose symbol pattern matches
 * but whose module, file or space does not are told too, since that is the mistake one makes; the matcher does not keep those, so they are looked for here,
 * the slow way.
 *
 * The trap is saying too much: dozens of shipped rules match every frame of a module and fail by context, or are for threads in another state. Of shipped
 * rules only those are told that were written with the frame's name in mind and could have claimed it; of one's own, all. The others are counted. */
#include <string.h>

#include "base/limits.h"
#include "matcher.h"

enum verb { WINS, PASSES, LOSES, FAILS, VERBS };

/* Rules of which the same is said. */
struct told {
    enum verb verb;
    struct rp_buf who, why;
};

struct explainer {
    const struct cat_rules *rules;
    struct cat_matcher *matcher;
    const struct cat_symbol *frames;
    struct cat_walk walk;
    struct cat_verdict verdict;
    RP_VEC(uint32_t) ids;
    struct rp_buf *out;
    struct rp_buf who, why;  /* of the rule in work */
    RP_VEC(struct told) told; /* of the frame in work */
    size_t hidden;           /* rules that are counted only */
    bool all;                /* none is hidden */
    bool inherited;          /* frames leafward were passed that no rule claims */
};

enum { TOLD_MAX = 4, THROUGH_BYTES = 40 };

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

static bool is_shipped(const struct cat_rule *rule)
{
    return strncmp(rule->info.file, "shipped/", 8) == 0;
}

/* Begins to speak of a rule: "id -> category  (file:line:column)". What follows goes to e->why. */
static void begin(struct explainer *e, uint32_t rule)
{
    const struct cat_rule_info *info = &e->rules->rules.at[rule].info;
    size_t length = strlen(info->id);

    rp_buf_clear(&e->who);
    rp_buf_clear(&e->why);
    if (!info->through)
        rp_buf_printf(&e->who, "%s -> %s", info->id, e->rules->categories.at[info->category].category.id);
    else
        rp_buf_printf(&e->who, "%.*s%s", length > THROUGH_BYTES ? THROUGH_BYTES : (int)length, info->id, length > THROUGH_BYTES ? "\xe2\x80\xa6" : "");
    rp_buf_printf(&e->who, "  (%s:%u:%u)", info->file, info->line, info->column);
}

/* Ends it; a rule of which the same is said already joins the other. */
static void end(struct explainer *e, enum verb verb)
{
    struct told *told = NULL;

    for (size_t i = 0; i < e->told.n && !told; i++)
        if (e->told.at[i].verb == verb && verb != WINS && !strcmp(rp_buf_text(&e->told.at[i].why), rp_buf_text(&e->why)))
            told = &e->told.at[i];
    if (!told) {
        told = rp_vec_add(&e->told);
        if (!told) {
            e->out->failed = true;
            return;
        }
        *told = (struct told){.verb = verb};
        rp_buf_puts(&told->why, rp_buf_text(&e->why));
    }
    rp_buf_printf(&told->who, "%s%s", told->who.length ? ", " : "", rp_buf_text(&e->who));
    e->out->failed |= e->who.failed || e->why.failed;
}

/* The winner first, then what passed, lost, failed. */
static void flush(struct explainer *e)
{
    static const char *const words[VERBS] = {[WINS] = "wins", [PASSES] = "passes", [LOSES] = "loses", [FAILS] = "fails"};

    for (enum verb verb = WINS; verb < VERBS; verb++)
        for (size_t i = 0; i < e->told.n; i++) {
            const struct told *t = &e->told.at[i];

            if (t->verb == verb)
                rp_buf_printf(e->out, "     %-8s%s%s%s\n", words[verb], rp_buf_text(&t->who), t->why.length ? ": " : "", rp_buf_text(&t->why));
        }
    for (size_t i = 0; i < e->told.n; i++) {
        e->out->failed |= e->told.at[i].who.failed || e->told.at[i].why.failed;
        rp_buf_release(&e->told.at[i].who);
        rp_buf_release(&e->told.at[i].why);
    }
    e->told.n = 0;
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

/* A pattern of the rule was written with this name in mind: a bare * was not, nor a regex, which is mostly wide, unless it is one's own and the module known. */
static bool knows_name(struct explainer *e, const struct cat_rule *rule, size_t frame)
{
    const struct cat_symbol *s = &e->frames[frame];
    struct cat_span span = rule->test.field[CAT_SYMBOL];
    const char *name = name_of(e, frame);
    bool regex = s->module && s->module[0] && (e->all || !is_shipped(rule));

    for (uint32_t i = 0; i < span.n; i++) {
        const struct cat_pattern *p = &e->rules->patterns.at[span.first + i];

        if (!is_star(p) && (regex || p->kind != CAT_PATTERN_REGEX) && cat_pattern_match(p, &e->matcher->scratch->run, name, cat_plain_length(name)))
            return true;
    }
    return false;
}

static bool sees_state(const struct explainer *e, const struct cat_rule *r)
{
    return r->info.through || (r->kind == CAT_COST) == (e->walk.context->state == CAT_RUNNING);
}

/* Whether it is worth a line that the rule did not hold at the frame. */
static bool is_worth_it(struct explainer *e, uint32_t rule, size_t frame, enum cat_miss miss)
{
    const struct cat_rule *r = &e->rules->rules.at[rule];
    bool too_late = frame > e->verdict.payer || (frame == e->verdict.payer && rule > e->verdict.rule && is_shipped(r));
    bool worth = e->all || (!too_late && (!is_shipped(r) || (miss != CAT_MISS_KIND && knows_name(e, r, frame))));

    e->hidden += !worth;
    return worth;
}

static void tell_miss(struct explainer *e, uint32_t rule, size_t frame, enum cat_miss miss)
{
    const struct cat_rule *r = &e->rules->rules.at[rule];
    size_t caller = cat_next_caller(&e->walk, frame);

    begin(e, rule);
    switch (miss) {
    case CAT_MISS_KIND:
        rp_buf_printf(&e->why, "its category sees %s threads only", r->kind == CAT_COST ? "running" : "blocked");
        break;
    case CAT_MISS_THREAD:
        rp_buf_puts(&e->why, "the thread is not ");
        tell_span(&e->why, e->rules, r->thread);
        break;
    case CAT_MISS_CALLER:
        rp_buf_printf(&e->why, "the caller is %s, not ", caller < e->walk.n ? name_of(e, caller) : "unknown");
        tell_contexts(&e->why, e->rules, r->caller);
        break;
    case CAT_MISS_UNDER:
        rp_buf_puts(&e->why, "not under ");
        tell_contexts(&e->why, e->rules, r->under);
        break;
    case CAT_MISS_NOT_UNDER:
        rp_buf_puts(&e->why, "under one of ");
        tell_contexts(&e->why, e->rules, r->not_under);
        break;
    case CAT_MISS_NOT_OVER:
        rp_buf_puts(&e->why, "it calls one of ");
        tell_contexts(&e->why, e->rules, r->not_over);
        break;
    case CAT_MISS_NEVER_RAN:
        rp_buf_puts(&e->why, "the wait did not last the whole run");
        break;
    case CAT_MISS_HOLDS_LOCK:
        rp_buf_puts(&e->why, "it holds a lock that others wait for, so it is not idle");
        break;
    case CAT_MISS_NONE:
        break;
    }
    end(e, FAILS);
}

/* Rules that know the name but not the place. */
static void tell_near_misses(struct explainer *e, size_t frame)
{
    const struct cat_symbol *s = &e->frames[frame];
    bool module = s->module && s->module[0];

    for (uint32_t i = 0; i < e->rules->rules.n; i++) {
        const struct cat_rule *r = &e->rules->rules.at[i];
        const struct cat_span *field = r->test.field;
        bool in_module, in_file;

        if (!knows_name(e, r, frame))
            continue;
        in_module = !field[CAT_MODULE].n || span_matches(e, field[CAT_MODULE], s->module, s->module ? strlen(s->module) : 0);
        in_file = !field[CAT_FILE].n || span_matches(e, field[CAT_FILE], s->file, s->file ? strlen(s->file) : 0);
        if ((in_module && in_file && r->kernel == s->kernel) || !is_worth_it(e, i, frame, sees_state(e, r) ? CAT_MISS_NONE : CAT_MISS_KIND))
            continue;
        begin(e, i);
        if (!in_module) {
            rp_buf_printf(&e->why, module ? "the module is %s, not " : "the module is unknown%s (write module!name), not ", module ? s->module : "");
            tell_span(&e->why, e->rules, field[CAT_MODULE]);
        } else if (!in_file) {
            rp_buf_printf(&e->why, "the source file is %s, not ", s->file ? s->file : "unknown");
            tell_span(&e->why, e->rules, field[CAT_FILE]);
        } else {
            rp_buf_printf(&e->why, "it sees %s frames only", r->kernel ? "kernel" : "user");
        }
        end(e, FAILS);
    }
}

/* Why a rule that holds at the frame does not decide the stack; `stopped`: one before it decided the frame. */
static const char *why_it_loses(const struct explainer *e, const struct cat_rule *r, size_t frame, bool stopped)
{
    return frame > e->verdict.payer                              ? "the payer was found before this frame"
           : stopped                                             ? "a rule before it decided this frame"
           : r->claims == CAT_CLAIMS_SELF && e->inherited        ? "it claims itself only, and this frame is not the leaf"
           : r->claims == CAT_CLAIMS_REST                        ? "it is asked only when nothing else is claimed"
           : e->verdict.payer < e->walk.n && r->kind == CAT_WAIT ? "an idle rule decided the stack"
                                                                 : "only kernel frames are asked, the leaf is one";
}

static void tell_rules(struct explainer *e, size_t frame)
{
    const struct cat_known_symbol *known = &e->matcher->symbols.at[e->ids.at[frame]];
    bool stopped = false, any = false, past = frame > e->verdict.payer;

    for (uint32_t i = 0; i < known->nrules; i++) {
        uint32_t rule = e->matcher->pool.at[known->first + i];
        const struct cat_rule *r = &e->rules->rules.at[rule];
        enum cat_miss miss = r->info.through ? CAT_MISS_NONE : cat_rule_misses(&e->walk, rule, frame);
        bool wins = rule == e->verdict.rule && frame == e->verdict.payer, passes = !wins && !miss && r->info.through && !stopped && !past;

        if (miss) {
            if (is_worth_it(e, rule, frame, miss))
                tell_miss(e, rule, frame, miss);
            continue;
        }
        any |= wins || r->info.through;
        if (past && r->info.through && !e->all) {
            e->hidden++;
        } else {
            begin(e, rule);
            rp_buf_puts(&e->why, wins ? "" : passes ? "the question goes to the caller" : why_it_loses(e, r, frame, stopped));
            end(e, wins ? WINS : passes ? PASSES : LOSES);
        }
        stopped |= wins || r->info.through;
    }
    if (!any)
        e->inherited = true;
}

static void tell_frame(struct explainer *e, size_t frame)
{
    const struct cat_symbol *s = &e->frames[frame];
    const struct cat_known_symbol *known = &e->matcher->symbols.at[e->ids.at[frame]];
    size_t before = e->hidden;

    rp_buf_printf(e->out, "%3zu  %s", frame, name_of(e, frame));
    if (s->module && s->module[0])
        rp_buf_printf(e->out, " (in %s)", s->module);
    if (s->file)
        rp_buf_printf(e->out, " %s", s->file);
    rp_buf_putc(e->out, '\n');
    tell_rules(e, frame);
    tell_near_misses(e, frame);
    if (!e->told.n && known->mark)
        rp_buf_puts(e->out, "     the stack was cut here\n");
    else if (!e->told.n && e->hidden == before)
        rp_buf_puts(e->out, "     no rule knows this frame\n");
    else if (!e->told.n)
        rp_buf_printf(e->out, "     no rule for %s threads knows this frame\n", e->walk.context->state == CAT_RUNNING ? "running" : "waiting");
    flush(e);
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
                           bool all, struct rp_buf *out, struct rp_err *err)
{
    struct explainer e = {.rules = matcher->rules, .frames = frames, .out = out, .all = all};
    enum rp_status status = cat_matcher_new(matcher->rules, &e.matcher, err);

    if (!status && !rp_vec_reserve(&e.ids, n))
        status = rp_fail_nomem(err);
    for (size_t i = 0; i < n && !status; i++)
        status = cat_matcher_symbol(e.matcher, &frames[i], &e.ids.at[e.ids.n++], err);
    if (status)
        goto done;
    cat_classify(e.matcher, e.ids.at, n, context, &e.verdict);
    cat_walk_init(&e.walk, e.matcher, e.ids.at, n, context);
    tell_verdict(&e);
    tell_given_up(&e);
    for (size_t i = 0; i < n; i++)
        tell_frame(&e, i);
    if (e.hidden)
        rp_buf_printf(out, "%zu more could not have decided: for another state or context, or too late; -v tells them.\n", e.hidden);
    if (out->failed)
        status = rp_fail_nomem(err);
done:
    cat_matcher_free(e.matcher);
    rp_vec_release(&e.ids);
    rp_vec_release(&e.told);
    rp_buf_release(&e.who);
    rp_buf_release(&e.why);
    return status;
}
