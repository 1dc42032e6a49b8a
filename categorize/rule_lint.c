/* SPDX-License-Identifier: MIT */
/* Finds rules that cannot do what their writer hoped. The trap: a finding must be sure, or people stop reading them, so one pattern covers another only when
 * that is provable: the same text, a name that matches, or a glob whose wildcards can take the other's. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "matcher.h"

struct linter {
    const struct cat_rules *rules;
    struct cat_regex_run run;
    struct rp_buf *out;
    size_t findings;
};

static void finding(struct linter *l, const struct cat_rule *rule, const char *text)
{
    rp_buf_printf(l->out, "%s:%u:%u: %s `%s`: %s\n", rule->info.file, rule->info.line, rule->info.column, rule->info.through ? "entry" : "rule",
                  rule->info.id, text);
    l->findings++;
}

/* Everything that `b` matches is matched by `a`, surely. */
static bool pattern_covers(struct linter *l, const struct cat_pattern *a, const struct cat_pattern *b)
{
    if (a->kind == b->kind && a->body_length == b->body_length && memcmp(a->body, b->body, a->body_length) == 0)
        return true;
    if (b->kind == CAT_PATTERN_EXACT)
        return cat_pattern_match(a, &l->run, b->body, b->body_length);
    /* The wildcards of b stand for themselves here, and only a wildcard of a can take them: `?` takes a `*` too, which would be wrong. */
    return a->kind == CAT_PATTERN_GLOB && b->kind == CAT_PATTERN_GLOB && !memchr(a->body, CAT_GLOB_ONE, a->body_length) &&
           cat_glob_match(a->body, a->body_length, b->body, b->body_length);
}

static bool any_covers(struct linter *l, struct cat_span a, const struct cat_pattern *b)
{
    for (uint32_t i = 0; i < a.n; i++)
        if (pattern_covers(l, &l->rules->patterns.at[a.first + i], b))
            return true;
    return false;
}

/* The field of rule a lets through all that b's does. */
static bool field_covers(struct linter *l, struct cat_span a, struct cat_span b)
{
    if (!a.n)
        return true;
    for (uint32_t i = 0; i < b.n; i++)
        if (!any_covers(l, a, &l->rules->patterns.at[b.first + i]))
            return false;
    return b.n > 0;
}

static bool same_patterns(const struct cat_rules *rules, struct cat_span a, struct cat_span b)
{
    if (a.n != b.n)
        return false;
    for (uint32_t i = 0; i < a.n; i++)
        if (strcmp(rules->patterns.at[a.first + i].text, rules->patterns.at[b.first + i].text) != 0)
            return false;
    return true;
}

static bool same_contexts(const struct cat_rules *rules, struct cat_span a, struct cat_span b)
{
    if (a.n != b.n)
        return false;
    for (uint32_t i = 0; i < a.n; i++)
        for (size_t f = 0; f < CAT_FRAME_FIELDS; f++)
            if (!same_patterns(rules, rules->contexts.at[a.first + i].field[f], rules->contexts.at[b.first + i].field[f]))
                return false;
    return true;
}

/* Rule a, asked before b, holds wherever b does, symbols aside. */
static bool conditions_cover(struct linter *l, const struct cat_rule *a, const struct cat_rule *b)
{
    const struct cat_rules *rules = l->rules;

    if ((a->never_ran && !b->never_ran) || (a->not_over.n && !same_contexts(rules, a->not_over, b->not_over)))
        return false;
    if (a->kernel != b->kernel || (!a->info.through && (b->info.through || a->kind != b->kind)))
        return false;
    if (a->info.through ? b->claims == CAT_CLAIMS_REST : a->claims != CAT_CLAIMS_SUBTREE && a->claims != b->claims)
        return false;
    return (!a->caller.n || same_contexts(rules, a->caller, b->caller)) && (!a->under.n || same_contexts(rules, a->under, b->under)) &&
           (!a->not_under.n || same_contexts(rules, a->not_under, b->not_under)) && (!a->thread.n || same_patterns(rules, a->thread, b->thread)) &&
           field_covers(l, a->test.field[CAT_MODULE], b->test.field[CAT_MODULE]) &&
           field_covers(l, a->test.field[CAT_FILE], b->test.field[CAT_FILE]);
}

/* The first rule before `at` that takes pattern `p` of it (NULL: that takes all it matches, when it has no symbols); CAT_NO_RULE. */
static uint32_t taker(struct linter *l, uint32_t at, const struct cat_pattern *p)
{
    for (uint32_t i = 0; i < at; i++) {
        const struct cat_rule *a = &l->rules->rules.at[i];

        if ((p ? !a->test.field[CAT_SYMBOL].n || any_covers(l, a->test.field[CAT_SYMBOL], p) : !a->test.field[CAT_SYMBOL].n) &&
            conditions_cover(l, a, &l->rules->rules.at[at]))
            return i;
    }
    return CAT_NO_RULE;
}

static void check_reachable(struct linter *l, uint32_t at)
{
    const struct cat_rule *rule = &l->rules->rules.at[at];
    struct cat_span symbols = rule->test.field[CAT_SYMBOL];
    uint32_t last = CAT_NO_RULE;
    struct rp_buf text = {0};

    if (!symbols.n)
        last = taker(l, at, NULL);
    for (uint32_t i = 0; i < symbols.n; i++) {
        uint32_t by = taker(l, at, &l->rules->patterns.at[symbols.first + i]);

        if (by == CAT_NO_RULE) {
            rp_buf_release(&text);
            return;
        }
        if (by != last && text.length < 400)
            rp_buf_printf(&text, "%s`%s` (%s:%u)", text.length ? ", " : "", l->rules->rules.at[by].info.id, l->rules->rules.at[by].info.file,
                          l->rules->rules.at[by].info.line);
        last = by;
    }
    if (last != CAT_NO_RULE) {
        struct rp_buf line = {0};

        if (!symbols.n)
            rp_buf_printf(&text, "`%s` (%s:%u)", l->rules->rules.at[last].info.id, l->rules->rules.at[last].info.file,
                          l->rules->rules.at[last].info.line);
        rp_buf_printf(&line, "is never reached: all it matches is taken before by %s", rp_buf_text(&text));
        finding(l, rule, rp_buf_text(&line));
        rp_buf_release(&line);
    }
    rp_buf_release(&text);
}

/* What exact names and globs never see, because it is cut off before. */
static const char *cut_off(const struct cat_pattern *p)
{
    static const char *const tails[] = {".constprop.", ".part.", ".isra.", ".cold", ".lto_priv."};

    if (p->field != CAT_SYMBOL || p->kind == CAT_PATTERN_REGEX)
        return NULL;
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++)
        if (strstr(p->text, tails[i]))
            return tails[i];
    if (strncmp(p->text, "__GI_", 5) == 0)
        return "__GI_";
    if (strstr(p->text, "@@") || strstr(p->text, "@GLIBC"))
        return "the @version";
    return p->text_length > 4 && strcmp(p->text + p->text_length - 4, "@plt") == 0 ? "@plt" : NULL;
}

static void check_names(struct linter *l, const struct cat_rule *rule)
{
    struct cat_span symbols = rule->test.field[CAT_SYMBOL];

    for (uint32_t i = 0; i < symbols.n; i++) {
        const struct cat_pattern *p = &l->rules->patterns.at[symbols.first + i];
        const char *cut = cut_off(p);
        struct rp_buf text = {0};

        if (!cut)
            continue;
        rp_buf_printf(&text, "`%s` matches nothing: %s is cut off names before; leave it out, or write a /regex/", p->text, cut);
        finding(l, rule, rp_buf_text(&text));
        rp_buf_release(&text);
    }
}

/* `under` and `not_under` that exclude each other. */
static void check_contexts(struct linter *l, const struct cat_rule *rule)
{
    for (uint32_t u = 0; u < rule->under.n; u++) {
        bool excluded = false;

        for (uint32_t x = 0; x < rule->not_under.n; x++)
            excluded |= same_contexts(l->rules, (struct cat_span){rule->under.first + u, 1}, (struct cat_span){rule->not_under.first + x, 1});
        if (!excluded)
            return;
    }
    if (rule->under.n && rule->not_under.n)
        finding(l, rule, "matches nothing: all of `under` stands in `not_under` too");
}

static enum rp_status check_categories(struct linter *l, struct rp_err *err)
{
    bool *used = rp_calloc(l->rules->categories.n, sizeof *used);

    if (!used)
        return rp_fail_nomem(err);
    for (size_t i = 0; i < l->rules->rules.n; i++)
        used[l->rules->rules.at[i].info.category] |= !l->rules->rules.at[i].info.through;
    for (size_t i = 0; i + 1 < l->rules->categories.n; i++) {
        const struct cat_category_def *def = &l->rules->categories.at[i];

        if (used[i])
            continue;
        rp_buf_printf(l->out, "%s:%u:%u: category `%s`: no rule gives it\n", def->file, def->line, def->column, def->category.id);
        l->findings++;
    }
    rp_free(used);
    return RP_OK;
}

enum rp_status cat_lint(const struct cat_rules *rules, struct rp_buf *out, size_t *findings, struct rp_err *err)
{
    struct linter l = {.rules = rules, .out = out};
    enum rp_status status = cat_regex_run_init(&l.run, &rules->tools, err);

    *findings = 0;
    if (status)
        return status;
    for (uint32_t i = 0; i < rules->rules.n; i++) {
        check_reachable(&l, i);
        check_names(&l, &rules->rules.at[i]);
        check_contexts(&l, &rules->rules.at[i]);
    }
    status = check_categories(&l, err);
    if (!status && out->failed)
        status = rp_fail_nomem(err);
    cat_regex_run_release(&l.run);
    *findings = l.findings;
    return status;
}

enum rp_status cat_lint_symbols(const struct cat_rules *rules, const struct cat_symbol *symbols, size_t n, struct rp_buf *out, size_t *findings,
                                struct rp_err *err)
{
    struct linter l = {.rules = rules, .out = out};
    struct cat_matcher *matcher = NULL;
    enum rp_status status = cat_matcher_new(rules, &matcher, err);
    bool *used = rp_calloc(rules->rules.n + 1, sizeof *used);

    *findings = 0;
    if (!status && !used)
        status = rp_fail_nomem(err);
    for (size_t i = 0; i < n && !status; i++) {
        uint32_t id;

        status = cat_matcher_symbol(matcher, &symbols[i], &id, err);
        for (uint32_t k = 0; !status && k < matcher->symbols.at[id].nrules; k++)
            used[matcher->pool.at[matcher->symbols.at[id].first + k]] = true;
    }
    for (size_t i = 0; i < rules->rules.n && !status; i++)
        if (!used[i])
            finding(&l, &rules->rules.at[i], "matches no function of the profile");
    if (!status && out->failed)
        status = rp_fail_nomem(err);
    *findings = l.findings;
    rp_free(used);
    cat_matcher_free(matcher);
    return status;
}
