/* SPDX-License-Identifier: MIT */
/* See pattern.h. The trap: rule files come from anywhere and names from any program, so neither may make matching slow. Regexes run with a
 * step limit, globs backtrack to their last `*` only. */
#include "pattern.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/limits.h"

enum { JIT_STACK_START = 32 * 1024, JIT_STACK_MAX = 512 * 1024, HEAP_KIB_MAX = 4096 };

static void *regex_alloc(size_t size, void *unused)
{
    (void)unused;
    return rp_reallocarray(NULL, size, 1);
}

static void regex_free(void *block, void *unused)
{
    (void)unused;
    rp_free(block);
}

enum rp_status cat_regex_tools_init(struct cat_regex_tools *tools, struct rp_err *err)
{
    tools->general = pcre2_general_context_create(regex_alloc, regex_free, NULL);
    tools->compile = tools->general ? pcre2_compile_context_create(tools->general) : NULL;
    if (!tools->compile) {
        cat_regex_tools_release(tools);
        return rp_fail_nomem(err);
    }
    pcre2_set_parens_nest_limit(tools->compile, 50);
    return RP_OK;
}

void cat_regex_tools_release(struct cat_regex_tools *tools)
{
    pcre2_compile_context_free(tools->compile);
    pcre2_general_context_free(tools->general);
    *tools = (struct cat_regex_tools){0};
}

enum rp_status cat_regex_run_init(struct cat_regex_run *run, const struct cat_regex_tools *tools, struct rp_err *err)
{
    *run = (struct cat_regex_run){.data = pcre2_match_data_create(1, tools->general), .context = pcre2_match_context_create(tools->general)};
    if (!run->data || !run->context) {
        cat_regex_run_release(run);
        return rp_fail_nomem(err);
    }
    pcre2_set_match_limit(run->context, RP_RULE_MATCH_STEPS_MAX);
    pcre2_set_heap_limit(run->context, HEAP_KIB_MAX);
    /* Without a stack of its own (no JIT on this machine, no memory) matching still works, on 32 KiB of ours. */
    run->stack = pcre2_jit_stack_create(JIT_STACK_START, JIT_STACK_MAX, tools->general);
    if (run->stack)
        pcre2_jit_stack_assign(run->context, NULL, run->stack);
    return RP_OK;
}

void cat_regex_run_release(struct cat_regex_run *run)
{
    pcre2_jit_stack_free(run->stack);
    pcre2_match_context_free(run->context);
    pcre2_match_data_free(run->data);
    *run = (struct cat_regex_run){0};
}

static enum rp_status fault_at(struct cat_pattern_fault *fault, size_t offset, const char *text, struct rp_err *err)
{
    snprintf(fault->text, sizeof fault->text, "%s", text);
    fault->offset = offset;
    return rp_fail(err, RP_USAGE, "%s", text);
}

static enum rp_status compile_regex(const struct cat_regex_tools *tools, struct cat_pattern *pattern, struct cat_pattern_fault *fault,
                                    struct rp_err *err)
{
    int code = 0;
    size_t at = 0;
    char text[200], sentence[256];

    pattern->code = pcre2_compile((PCRE2_SPTR)pattern->body, pattern->body_length,
                                  PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C, &code, &at,
                                  tools->compile);
    if (!pattern->code && code == PCRE2_ERROR_HEAP_FAILED)
        return rp_fail_nomem(err);
    if (!pattern->code) {
        if (pcre2_get_error_message(code, (PCRE2_UCHAR *)text, sizeof text) < 0)
            snprintf(text, sizeof text, "error %d", code);
        snprintf(sentence, sizeof sentence, "this is no regular expression: %s", text);
        return fault_at(fault, at + 1, sentence, err);
    }
    pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE); /* where it fails, pcre2_match interprets */
    return RP_OK;
}

/* Removes the backslashes of \* \? \\ and marks the wildcards; says whether there were any. */
static bool compile_glob(const char *text, size_t length, char *body, uint32_t *body_length)
{
    bool wild = false;
    uint32_t n = 0;

    for (size_t i = 0; i < length; i++) {
        char c = text[i];

        if (c == '\\' && i + 1 < length && strchr("*?\\", text[i + 1])) {
            body[n++] = text[++i];
        } else if (c == '*') {
            wild = true;
            if (!n || body[n - 1] != CAT_GLOB_ANY)
                body[n++] = CAT_GLOB_ANY;
        } else if (c == '?') {
            wild = true;
            body[n++] = CAT_GLOB_ONE;
        } else {
            body[n++] = c;
        }
    }
    body[n] = '\0';
    *body_length = n;
    return wild;
}

enum rp_status cat_pattern_compile(const struct cat_regex_tools *tools, struct rp_arena *arena, enum cat_field field, const char *text,
                                   size_t length, struct cat_pattern *pattern, struct cat_pattern_fault *fault, struct rp_err *err)
{
    char *copy, *body;

    *pattern = (struct cat_pattern){.field = field};
    if (!length)
        return fault_at(fault, 0, "expected a pattern, found an empty string", err);
    if (length > RP_RULE_PATTERN_MAX)
        return fault_at(fault, 0, "a pattern has at most 1024 bytes", err);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return fault_at(fault, i, "a pattern holds no control characters", err);
    copy = rp_arena_strndup(arena, text, length);
    body = rp_arena_alloc(arena, length + 1);
    if (!copy || !body)
        return rp_fail_nomem(err);
    pattern->text = copy;
    pattern->text_length = (uint32_t)length;
    pattern->body = body;
    if (text[0] == '/' && (field != CAT_FILE || (length > 1 && text[length - 1] == '/'))) {
        if (length < 2 || text[length - 1] != '/')
            return fault_at(fault, length - 1, "this regular expression lacks its closing /", err);
        if (length == 2)
            return fault_at(fault, 1, "this regular expression is empty and would match everything", err);
        memcpy(body, text + 1, length - 2);
        pattern->body_length = (uint32_t)length - 2;
        pattern->kind = CAT_PATTERN_REGEX;
        return compile_regex(tools, pattern, fault, err);
    }
    pattern->kind = compile_glob(text, length, body, &pattern->body_length) ? CAT_PATTERN_GLOB : CAT_PATTERN_EXACT;
    return RP_OK;
}

void cat_pattern_release(struct cat_pattern *pattern)
{
    pcre2_code_free(pattern->code);
    pattern->code = NULL;
}

/* Bytes of the character at the start of `at`: `?` takes a whole UTF-8 character. */
static size_t char_bytes(const char *at, size_t left)
{
    size_t n = 1;

    while (n < left && n < 4 && ((unsigned char)at[0] & 0xc0) == 0xc0 && ((unsigned char)at[n] & 0xc0) == 0x80)
        n++;
    return n;
}

/* Where a `*` whose rest begins at `body` may end: the next place that has the rest's first character; SIZE_MAX when there is none. */
static size_t star_end(const char *body, const char *subject, size_t from, size_t length)
{
    const char *at;

    if (*body == CAT_GLOB_ONE)
        return from;
    at = memchr(subject + from, *body, length - from);
    return at ? (size_t)(at - subject) : SIZE_MAX;
}

bool cat_glob_match(const char *body, size_t body_length, const char *subject, size_t length)
{
    size_t b = 0, s = 0, star = SIZE_MAX, star_s = 0;

    /* Most names fail at their last character. */
    if (body_length && (unsigned char)body[body_length - 1] > CAT_GLOB_ONE && (!length || body[body_length - 1] != subject[length - 1]))
        return false;
    while (s < length) {
        if (b < body_length && body[b] == CAT_GLOB_ANY) {
            star = ++b;
            if (b == body_length)
                return true;
            star_s = s = star_end(body + star, subject, s, length);
            if (s == SIZE_MAX)
                return false;
        } else if (b < body_length && body[b] == CAT_GLOB_ONE) {
            b++;
            s += char_bytes(subject + s, length - s);
        } else if (b < body_length && body[b] == subject[s]) {
            b++;
            s++;
        } else if (star != SIZE_MAX) {
            star_s += char_bytes(subject + star_s, length - star_s);
            star_s = s = star_end(body + star, subject, star_s, length);
            if (s == SIZE_MAX)
                return false;
            b = star;
        } else {
            return false;
        }
    }
    while (b < body_length && body[b] == CAT_GLOB_ANY)
        b++;
    return b == body_length;
}

static bool regex_match(const struct cat_pattern *pattern, struct cat_regex_run *run, const char *subject, size_t length)
{
    int found = pcre2_match(pattern->code, (PCRE2_SPTR)subject, length, 0, 0, run->data, run->context);

    if (found < 0 && found != PCRE2_ERROR_NOMATCH && !run->gave_up++)
        run->gave_up_at = pattern;
    return found >= 0;
}

static bool whole_match(const struct cat_pattern *pattern, struct cat_regex_run *run, const char *subject, size_t length)
{
    if (pattern->kind == CAT_PATTERN_REGEX)
        return regex_match(pattern, run, subject, length);
    if (pattern->kind == CAT_PATTERN_GLOB)
        return cat_glob_match(pattern->body, pattern->body_length, subject, length);
    return length == pattern->body_length && memcmp(pattern->body, subject, length) == 0;
}

bool cat_pattern_match(const struct cat_pattern *pattern, struct cat_regex_run *run, const char *subject, size_t length)
{
    if (whole_match(pattern, run, subject, length))
        return true;
    if (pattern->field != CAT_FILE || pattern->kind == CAT_PATTERN_REGEX)
        return false;
    for (size_t i = 0; i < length; i++)
        if (subject[i] == '/' && whole_match(pattern, run, subject + i + 1, length - i - 1))
            return true;
    return false;
}
