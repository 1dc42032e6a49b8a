/* SPDX-License-Identifier: MIT */
/* Making long names fit (rp_text_symbol, rp_text_fit of utf8.h).
 *
 *     int* std::map<std::string, std::vector<int>>::find(std::string const&) const
 *     std::map<std::string, std::vector<int>>::find(...) const     return type and parameters
 *     std::map<...>::find(...) const                               template arguments
 *     std::ma…::find(...) const                                    the middle
 *
 * The trap is cutting through a bracket: a name such as `exec<void` reads as another function. So a whole group goes or stays, and names whose
 * brackets do not match (V8 prints regular expressions as names) have no groups at all. */
#include <string.h>

#include "report/utf8.h"

enum { NESTING_MAX = 64 };

static const char openers[] = "(<[{", closers[] = ")>]}";

static const char *const anonymous[] = {"(anonymous namespace)", "(anonymous class)", "(unnamed)", "<lambda", "{lambda"};

/* Bytes of `operator<<` and its like that stand at `text`; 0 when none does. Their signs are no brackets. */
static size_t operator_length(const char *text, const char *begin)
{
    static const char word[] = "operator";
    size_t length = sizeof word - 1;

    if (strncmp(text, word, length) != 0 ||
        (text > begin && (text[-1] == '_' || (text[-1] >= '0' && text[-1] <= '9') || ((text[-1] | 32) >= 'a' && (text[-1] | 32) <= 'z'))))
        return 0;
    if (!strncmp(text + length, "()", 2) || !strncmp(text + length, "[]", 2))
        return length + 2;
    return length + strspn(text + length, "<>=-+*/%&|^!~,");
}

/* The position after the bracket that closes the one at `text`; NULL when there is none. */
static const char *group_end(const char *text)
{
    const char *begin = text;
    char expected[NESTING_MAX];
    size_t depth = 0;

    while (*text) {
        size_t skip = operator_length(text, begin);
        const char *open = strchr(openers, *text);

        if (skip) {
            text += skip;
            continue;
        }
        if (open) {
            if (depth == NESTING_MAX)
                return NULL;
            expected[depth++] = closers[open - openers];
        } else if (strchr(closers, *text) && !(*text == '>' && text > begin && text[-1] == '-')) {
            if (!depth || expected[--depth] != *text)
                return NULL;
            if (!depth)
                return text + 1;
        }
        text++;
    }
    return NULL;
}

static bool is_anonymous(const char *text)
{
    for (size_t i = 0; i < sizeof anonymous / sizeof *anonymous; i++) {
        if (!strncmp(text, anonymous[i], strlen(anonymous[i])))
            return true;
    }
    return false;
}

/* The outermost parameter list of a C++ name: its last outer round group. NULL: none. */
static const char *parameters_of(const char *name)
{
    const char *found = NULL, *text = name;

    while (*text) {
        size_t skip = operator_length(text, name);
        const char *end = !skip && strchr(openers, *text) ? group_end(text) : NULL;

        if (!skip && strchr(openers, *text) && !end)
            return NULL;
        if (end && *text == '(' && text > name && !is_anonymous(text))
            found = text;
        text = skip ? text + skip : end ? end : text + 1;
    }
    return found;
}

/* Where the name proper begins in front of its parameters: behind the return type that templates carry. */
static const char *behind_return_type(const char *name, const char *parameters)
{
    const char *begin = name, *text = name;

    while (parameters && text < parameters) {
        const char *end = strchr(openers, *text) ? group_end(text) : NULL;

        if (operator_length(text, name))
            break;
        if (*text == ' ' && text + 1 < parameters)
            begin = text + 1;
        text = end ? end : text + 1;
    }
    return strstr(name, "thunk to ") ? name : begin;
}

/* Copies `name`, putting `(...)` for the group at `parameters` and, with `templates`, `<...>` for every outer angle group. */
static void collapse(struct rp_buf *out, const char *name, const char *parameters, bool templates)
{
    const char *text = name;

    while (*text) {
        size_t skip = operator_length(text, name);
        const char *end = !skip && (text == parameters || (templates && *text == '<')) ? group_end(text) : NULL;

        if (end && end - text > 2) {
            rp_buf_puts(out, *text == '(' ? "(...)" : "<...>");
            text = end;
            continue;
        }
        skip = skip ? skip : 1;
        rp_buf_append(out, text, skip);
        text += skip;
    }
}

/* Bytes of the smallest piece at `text` that may not be cut: a letter with its marks, or a collapsed group. */
static size_t piece_length(const char *text, const char *end)
{
    struct rp_cursor c = rp_cursor_of(text, (size_t)(end - text));
    uint32_t code_point;
    const char *after;

    if (!strncmp(text, "(...)", 5) || !strncmp(text, "<...>", 5))
        return 5;
    (void)rp_utf8_next(&c, &code_point);
    for (after = c.at; !rp_cursor_done(&c); after = c.at) {
        if (!rp_utf8_next(&c, &code_point) || rp_utf8_columns(code_point))
            break;
    }
    return (size_t)(after - text);
}

/* Appends `text` (clean) with its middle left out: a third of the room for the head, the rest for the tail, where the name proper stands. */
static void cut_middle(struct rp_buf *out, const char *text, size_t length, size_t columns)
{
    const char *end = text + length, *head = text, *tail = text;
    size_t total = rp_text_columns(text, length), used = 0, room = columns ? columns - 1 : 0, wide;

    while (head < end && used + (wide = rp_text_columns(head, piece_length(head, end))) <= room / 3) {
        used += wide;
        head += piece_length(head, end);
    }
    for (size_t left = total; tail < end && left > room - used; tail += piece_length(tail, end))
        left -= rp_text_columns(tail, piece_length(tail, end));
    rp_buf_append(out, text, (size_t)(head - text));
    rp_buf_puts(out, "\xe2\x80\xa6");
    rp_buf_append(out, tail, (size_t)(end - tail));
}

static void append_fit(struct rp_buf *out, const char *text, size_t length, size_t columns)
{
    if (!columns || rp_text_columns(text, length) <= columns)
        rp_buf_append(out, text, length);
    else
        cut_middle(out, text, length, columns);
}

void rp_text_fit(struct rp_buf *out, const char *text, size_t columns)
{
    struct rp_buf clean = {0};

    rp_text_clean(&clean, text, strlen(text));
    append_fit(out, rp_buf_text(&clean), clean.length, columns);
    out->failed |= clean.failed;
    rp_buf_release(&clean);
}

void rp_text_symbol(struct rp_buf *out, const char *name, size_t columns, bool parameters)
{
    struct rp_buf clean = {0}, shorter = {0};
    const char *list, *begin;

    rp_text_clean(&clean, name, strlen(name));
    list = parameters_of(rp_buf_text(&clean));
    begin = behind_return_type(rp_buf_text(&clean), list);
    if (parameters)
        rp_buf_append(&shorter, clean.data, clean.length);
    else
        collapse(&shorter, begin, list, false);
    if (columns && rp_text_columns(rp_buf_text(&shorter), shorter.length) > columns) {
        rp_buf_clear(&shorter);
        collapse(&shorter, begin, list, true);
    }
    append_fit(out, rp_buf_text(&shorter), shorter.length, columns);
    out->failed |= clean.failed || shorter.failed;
    rp_buf_release(&clean);
    rp_buf_release(&shorter);
}
