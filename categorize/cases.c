/* SPDX-License-Identifier: MIT */
/* Runs stacks with expected categories: the tests of rule packs. Every line is one case; a line that cannot be read is a failed case. */
#include <string.h>

#include "base/parse.h"
#include "matcher.h"

struct runner {
    const struct cat_rules *rules;
    struct cat_matcher *matcher;
    const char *file;
    uint32_t line;
    struct rp_buf *out;
    bool *hit;
    RP_VEC(uint32_t) ids;
    struct cat_verdict verdict;
    const struct cat_stack *stack;
};

/* `text` without a comment and outer blanks. */
static void strip(const char **text, size_t *length)
{
    for (size_t i = 0; i < *length; i++)
        if ((*text)[i] == '#' && (!i || (*text)[i - 1] == ' ' || (*text)[i - 1] == '\t'))
            *length = i;
    while (*length && strchr(" \t\r", (*text)[*length - 1]))
        --*length;
    while (*length && strchr(" \t\r", **text)) {
        ++*text;
        --*length;
    }
}

static void failed(struct runner *r, const char *text)
{
    rp_buf_printf(r->out, "%s:%u: %s\n", r->file, r->line, text);
}

static void tell_verdict(const struct runner *r, struct rp_buf *out)
{
    static const char *const why[] = {"", "no rule claims a frame", "only `through` frames up to the root", "the stack was cut before a claimed frame"};
    const struct cat_verdict *v = &r->verdict;
    const char *id = cat_rules_category(r->rules, v->category)->id;

    if (v->rule == CAT_NO_RULE)
        rp_buf_printf(out, "%s: %s", id, why[v->why]);
    else
        rp_buf_printf(out, "%s by rule %s at frame %u, %s%s", id, cat_rules_rule(r->rules, v->rule)->id, v->payer,
                      r->stack->frames[v->payer].short_name, v->inherited ? ", inherited" : "");
}

/* `through` entries that passed the question on count as hit too. */
static void mark_hits(struct runner *r)
{
    if (!r->hit)
        return;
    if (r->verdict.rule != CAT_NO_RULE)
        r->hit[r->verdict.rule] = true;
    for (size_t i = 0; i < r->ids.n && i < r->verdict.payer; i++) {
        uint32_t entry = cat_through_entry(r->matcher, r->ids.at[i]);

        if (entry != CAT_NO_RULE)
            r->hit[entry] = true;
    }
}

static enum rp_status classify(struct runner *r, struct rp_err *err)
{
    rp_vec_clear(&r->ids);
    for (size_t i = 0; i < r->stack->n; i++) {
        uint32_t id;
        uint32_t *kept;
        enum rp_status status = cat_matcher_symbol(r->matcher, &r->stack->frames[i], &id, err);

        kept = status ? NULL : rp_vec_add(&r->ids);
        if (!kept)
            return status ? status : rp_fail_nomem(err);
        *kept = id;
    }
    cat_classify(r->matcher, r->ids.at, r->ids.n, &r->stack->context, &r->verdict);
    mark_hits(r);
    return RP_OK;
}

static bool same(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

/* Compares with `category [rule or reason]`; says what differs. */
static bool as_expected(struct runner *r, const char *expected, size_t length)
{
    static const char *const why[] = {"", "no-rule", "through", "truncated"};
    struct rp_cursor c = rp_cursor_of(expected, length);
    const char *category, *detail;
    size_t category_length, detail_length;
    struct rp_buf text = {0};
    bool good;

    rp_cursor_until(&c, ' ', &category, &category_length);
    detail = c.at;
    detail_length = (size_t)(c.end - c.at);
    strip(&detail, &detail_length);
    good = same(category, category_length, cat_rules_category(r->rules, r->verdict.category)->id);
    if (good && detail_length && r->verdict.rule != CAT_NO_RULE)
        good = same(detail, detail_length, cat_rules_rule(r->rules, r->verdict.rule)->id);
    else if (good && detail_length)
        good = same(detail, detail_length, why[r->verdict.why]);
    if (!good) {
        rp_buf_printf(&text, "expected %.*s, got ", (int)length, expected);
        tell_verdict(r, &text);
        failed(r, rp_buf_text(&text));
    }
    r->out->failed |= text.failed;
    rp_buf_release(&text);
    return good;
}

/* The last " -> " of the line: names of Rust functions hold it too. */
static const char *find_arrow(const char *text, size_t length)
{
    for (size_t i = length; i-- > 0;)
        if (length - i >= 4 && memcmp(text + i, " -> ", 4) == 0)
            return text + i;
    return NULL;
}

static enum rp_status run_case(struct runner *r, const char *text, size_t length, bool *good, struct rp_err *err)
{
    const char *arrow = find_arrow(text, length);
    struct cat_stack stack = {0};
    struct rp_err bad;
    const char *expected;
    size_t expected_length;
    enum rp_status status;

    *good = false;
    if (!arrow) {
        failed(r, "expected STACK -> CATEGORY [RULE], found no ` -> `");
        return RP_OK;
    }
    status = cat_stack_parse(text, (size_t)(arrow - text), &stack, &bad);
    if (status == RP_USAGE) {
        failed(r, bad.text);
        return RP_OK;
    }
    if (status) {
        *err = bad;
        return status;
    }
    r->stack = &stack;
    expected = arrow + 4;
    expected_length = length - (size_t)(expected - text);
    strip(&expected, &expected_length);
    status = classify(r, err);
    if (!status)
        *good = as_expected(r, expected, expected_length);
    cat_stack_release(&stack);
    return status;
}

enum rp_status cat_cases_run(const struct cat_rules *rules, const char *file, const char *text, size_t length, struct rp_buf *out, size_t *passed,
                             size_t *nfailed, bool *hit, struct rp_err *err)
{
    struct runner r = {.rules = rules, .file = file, .out = out, .hit = hit};
    struct rp_cursor c = rp_cursor_of(text, length);
    enum rp_status status;
    const char *line;
    size_t line_length;

    *passed = *nfailed = 0;
    status = cat_matcher_new(rules, &r.matcher, err);
    while (!status && rp_cursor_line(&c, &line, &line_length)) {
        bool good;

        r.line++;
        strip(&line, &line_length);
        if (!line_length)
            continue;
        status = run_case(&r, line, line_length, &good, err);
        *passed += !status && good;
        *nfailed += !status && !good;
    }
    if (!status && out->failed)
        status = rp_fail_nomem(err);
    cat_matcher_free(r.matcher);
    rp_vec_release(&r.ids);
    return status;
}
