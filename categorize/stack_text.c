/* SPDX-License-Identifier: MIT */
/* Stacks as people write them: leaf first, frames parted by " < ". The trap: C++ names hold `<`, `!`, `|` and `->` themselves, so the marks count only
 * with blanks round them, and a module only if it looks like a file name. */
#include <string.h>

#include "base/limits.h"
#include "categorize.h"

struct piece {
    const char *at;
    size_t length;
};

static struct piece trim(struct piece p)
{
    while (p.length && (p.at[0] == ' ' || p.at[0] == '\t')) {
        p.at++;
        p.length--;
    }
    while (p.length && (p.at[p.length - 1] == ' ' || p.at[p.length - 1] == '\t' || p.at[p.length - 1] == '\r'))
        p.length--;
    return p;
}

/* Bytes before the first `mark`; SIZE_MAX when there is none. */
static size_t find(struct piece p, const char *mark)
{
    const char *at = p.length ? memmem(p.at, p.length, mark, strlen(mark)) : NULL;

    return at ? (size_t)(at - p.at) : SIZE_MAX;
}

static bool starts(struct piece p, const char *with)
{
    return p.length >= strlen(with) && memcmp(p.at, with, strlen(with)) == 0;
}

static struct piece behind(struct piece p, size_t n)
{
    return (struct piece){p.at + n, p.length - n};
}

static const char *copy(struct cat_stack *stack, struct piece p, bool *nomem)
{
    char *text = rp_arena_strndup(&stack->arena, p.at, p.length);

    if (!text)
        *nomem = true;
    return text ? text : "";
}

/* Length of the `module` in module!name; 0 when there is none. */
static size_t module_length(struct piece p)
{
    size_t n = 0;

    while (n < p.length && (strchr("._+-[]", p.at[n]) || (p.at[n] >= '0' && p.at[n] <= '9') || (p.at[n] >= 'a' && p.at[n] <= 'z') ||
                            (p.at[n] >= 'A' && p.at[n] <= 'Z')))
        n++;
    return n < p.length && p.at[n] == '!' && n && !(n == 8 && starts(p, "operator")) ? n : 0;
}

static enum rp_status take_frame(struct cat_stack *stack, struct piece whole, struct piece p, struct rp_err *err)
{
    struct cat_symbol *symbol = &stack->frames[stack->n];
    bool nomem = false;
    size_t at;

    p = trim(p);
    *symbol = (struct cat_symbol){.module = ""};
    if (starts(p, "[k]")) {
        symbol->kernel = true;
        symbol->module = "[kernel]";
        p = trim(behind(p, 3));
    }
    symbol->mark = starts(p, "[truncated");
    at = find(p, " @ ");
    if (at != SIZE_MAX) {
        symbol->file = copy(stack, trim(behind(p, at + 3)), &nomem);
        p = trim((struct piece){p.at, at});
    }
    at = module_length(p);
    if (at) {
        symbol->module = copy(stack, (struct piece){p.at, at}, &nomem);
        p = behind(p, at + 1);
    }
    if (!p.length)
        return rp_fail(err, RP_USAGE, "column %zu: expected a function's name", (size_t)(p.at - whole.at) + 1);
    symbol->name = symbol->short_name = symbol->raw = copy(stack, p, &nomem);
    stack->n++;
    return nomem ? rp_fail_nomem(err) : RP_OK;
}

static enum rp_status take_frames(struct cat_stack *stack, struct piece whole, struct piece p, struct rp_err *err)
{
    size_t n = 1;

    for (size_t at = 0; at + 3 <= p.length; at++)
        n += memcmp(p.at + at, " < ", 3) == 0;
    if (n > RP_WALK_FRAMES_MAX)
        return rp_fail(err, RP_USAGE, "column 1: a stack has at most %u frames", RP_WALK_FRAMES_MAX);
    stack->frames = rp_arena_alloc(&stack->arena, n * sizeof *stack->frames);
    if (!stack->frames)
        return rp_fail_nomem(err);
    for (;;) {
        size_t cut = find(p, " < ");
        enum rp_status status = take_frame(stack, whole, (struct piece){p.at, cut == SIZE_MAX ? p.length : cut}, err);

        if (status || cut == SIZE_MAX)
            return status;
        p = behind(p, cut + 3);
    }
}

/* A word, or text in double quotes. */
static struct piece take_value(struct piece *p)
{
    struct piece value = *p;
    const char *quote;

    if (starts(*p, "\"") && (quote = memchr(p->at + 1, '"', p->length - 1))) {
        value = (struct piece){p->at + 1, (size_t)(quote - p->at) - 1};
        *p = behind(*p, value.length + 2);
        return value;
    }
    value.length = 0;
    while (value.length < p->length && p->at[value.length] != ' ' && p->at[value.length] != '\t')
        value.length++;
    *p = behind(*p, value.length);
    return value;
}

static bool is_word(struct piece p, const char *word)
{
    return p.length == strlen(word) && memcmp(p.at, word, p.length) == 0;
}

static enum rp_status take_context(struct cat_stack *stack, struct piece whole, struct piece p, struct rp_err *err)
{
    bool nomem = false;

    for (p = trim(p); p.length; p = trim(p)) {
        size_t column = (size_t)(p.at - whole.at) + 1;

        if (starts(p, "thread=")) {
            p = behind(p, 7);
            stack->context.thread = copy(stack, take_value(&p), &nomem);
        } else if (starts(p, "state=")) {
            struct piece value;

            p = behind(p, 6);
            value = take_value(&p);
            if (!is_word(value, "blocked") && !is_word(value, "running"))
                return rp_fail(err, RP_USAGE, "column %zu: expected state=running or state=blocked", column);
            stack->context.state = is_word(value, "blocked") ? CAT_BLOCKED : CAT_RUNNING;
        } else {
            struct piece word = take_value(&p);

            if (is_word(word, "no-kernel"))
                stack->context.no_kernel = true;
            else if (is_word(word, "never-ran"))
                stack->context.never_ran = true;
            else if (is_word(word, "holds-lock"))
                stack->context.holds_lock = true;
            else
                return rp_fail(err, RP_USAGE, "column %zu: expected state=…, thread=…, no-kernel, never-ran or holds-lock", column);
        }
    }
    return nomem ? rp_fail_nomem(err) : RP_OK;
}

enum rp_status cat_stack_parse(const char *text, size_t length, struct cat_stack *stack, struct rp_err *err)
{
    struct piece whole = {text, length}, frames = whole;
    enum rp_status status = RP_OK;
    size_t bar;

    *stack = (struct cat_stack){.context = {.thread = "", .state = CAT_RUNNING}};
    if (memchr(text, '\0', length))
        return rp_fail(err, RP_USAGE, "column 1: a stack holds no NUL characters");
    bar = find(whole, " | ");
    if (bar != SIZE_MAX) {
        frames.length = bar;
        status = take_context(stack, whole, behind(whole, bar + 3), err);
    }
    if (!status)
        status = take_frames(stack, whole, frames, err);
    if (status)
        cat_stack_release(stack);
    return status;
}

void cat_stack_release(struct cat_stack *stack)
{
    rp_arena_release(&stack->arena);
    *stack = (struct cat_stack){0};
}
