/* SPDX-License-Identifier: MIT */
/* libyaml's events as a tree. The traps: an unquoted `*name` is an alias to YAML, sometimes even a syntax error, where a person meant a
 * glob; and libyaml's marks count characters from 0 while escapes make a scalar's text shorter than its source. */
#include "yaml_tree.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/limits.h"

enum { DEPTH_MAX = 8 };

struct builder {
    yaml_parser_t parser;
    struct rp_arena *arena;
    struct cat_problems *problems;
    struct cat_node *open[DEPTH_MAX];
    struct cat_node *root;
    uint32_t depth, nodes, documents;
    bool stop;
};

void cat_problem(struct cat_problems *problems, uint32_t line, uint32_t column, const char *format, ...)
{
    struct cat_problem *added;
    va_list args;

    if (problems->n++ >= RP_RULE_PROBLEMS_MAX)
        return;
    added = rp_vec_add(&problems->all);
    if (!added) {
        problems->text.failed = true;
        return;
    }
    *added = (struct cat_problem){problems->file, line, column, problems->text.length, 0};
    va_start(args, format);
    rp_buf_vprintf(&problems->text, format, args);
    va_end(args);
    added->length = problems->text.length - added->at;
}

/* By place within a file, as found between files. */
static int by_place(const void *a, const void *b)
{
    const struct cat_problem *x = a, *y = b;

    if (strcmp(x->file, y->file) == 0 && x->line != y->line)
        return x->line < y->line ? -1 : 1;
    if (strcmp(x->file, y->file) == 0 && x->column != y->column)
        return x->column < y->column ? -1 : 1;
    return strcmp(x->file, y->file) ? strcmp(x->file, y->file) : x->at < y->at ? -1 : x->at > y->at;
}

bool cat_problems_end(struct cat_problems *problems, struct rp_buf *out)
{
    bool good = !problems->text.failed;

    if (problems->all.n)
        qsort(problems->all.at, problems->all.n, sizeof *problems->all.at, by_place);
    for (size_t i = 0; i < problems->all.n && good; i++) {
        const struct cat_problem *p = &problems->all.at[i];

        rp_buf_printf(out, "%s:%u:%u: ", p->file, p->line, p->column);
        rp_buf_append(out, rp_buf_text(&problems->text) + p->at, p->length);
        rp_buf_putc(out, '\n');
    }
    if (problems->n > RP_RULE_PROBLEMS_MAX)
        rp_buf_printf(out, "%s: and %u more\n", problems->file, problems->n - RP_RULE_PROBLEMS_MAX);
    rp_vec_release(&problems->all);
    rp_buf_release(&problems->text);
    return good && !out->failed;
}

static uint32_t from_zero(size_t n)
{
    return n >= UINT32_MAX ? UINT32_MAX : (uint32_t)n + 1;
}

static void problem_at(struct builder *b, yaml_mark_t mark, const char *text)
{
    cat_problem(b->problems, from_zero(mark.line), from_zero(mark.column), "%s", text);
}

/* Hangs a node under the open one; NULL when there is no memory. */
static struct cat_node *add(struct builder *b, enum cat_node_kind kind, yaml_mark_t mark)
{
    struct cat_node *node = rp_arena_alloc(b->arena, sizeof *node);
    struct cat_node *parent = b->depth ? b->open[b->depth - 1] : NULL;

    if (!node)
        return NULL;
    node->kind = kind;
    node->line = from_zero(mark.line);
    node->column = from_zero(mark.column);
    if (!parent) {
        b->root = node;
    } else {
        if (parent->last)
            parent->last->next = node;
        else
            parent->first = node;
        parent->last = node;
        parent->n++;
    }
    if (++b->nodes == RP_RULE_NODES_MAX) {
        problem_at(b, mark, "the file has more than 200000 values; split it");
        b->stop = true;
    }
    return node;
}

static void refuse_properties(struct builder *b, const yaml_char_t *anchor, const yaml_char_t *tag, yaml_mark_t mark)
{
    if (anchor)
        cat_problem(b->problems, from_zero(mark.line), from_zero(mark.column),
                    "expected a plain value, found the YAML anchor &%s; quote the text if it begins with &", (const char *)anchor);
    if (tag)
        cat_problem(b->problems, from_zero(mark.line), from_zero(mark.column),
                    "expected a plain value, found the YAML tag %s; quote the text if it begins with !", (const char *)tag);
}

static enum cat_node_style style_of(const yaml_event_t *event)
{
    switch (event->data.scalar.style) {
    case YAML_SINGLE_QUOTED_SCALAR_STYLE:
        return CAT_STYLE_SINGLE;
    case YAML_DOUBLE_QUOTED_SCALAR_STYLE:
        return CAT_STYLE_DOUBLE;
    case YAML_LITERAL_SCALAR_STYLE:
    case YAML_FOLDED_SCALAR_STYLE:
        return CAT_STYLE_BLOCK;
    default:
        /* A plain scalar of several lines maps to its start, as block scalars do. */
        return event->start_mark.line == event->end_mark.line ? CAT_STYLE_PLAIN : CAT_STYLE_BLOCK;
    }
}

static bool add_scalar(struct builder *b, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    struct cat_node *node = add(b, CAT_NODE_SCALAR, event->start_mark);

    refuse_properties(b, event->data.scalar.anchor, event->data.scalar.tag, event->start_mark);
    if (!node)
        return false;
    node->style = style_of(event);
    if ((node->style == CAT_STYLE_SINGLE || node->style == CAT_STYLE_DOUBLE) && event->start_mark.line != event->end_mark.line)
        node->style = CAT_STYLE_BLOCK;
    if (memchr(text, '\0', length)) {
        problem_at(b, event->start_mark, "expected text, found a NUL character in it");
        node->kind = CAT_NODE_BAD;
        length = 0;
    }
    node->text = rp_arena_strndup(b->arena, text, length);
    node->length = (uint32_t)length;
    return node->text != NULL;
}

static bool open_node(struct builder *b, enum cat_node_kind kind, const yaml_event_t *event)
{
    struct cat_node *node = add(b, kind, event->start_mark);

    if (!node)
        return false;
    if (kind == CAT_NODE_LIST) {
        refuse_properties(b, event->data.sequence_start.anchor, event->data.sequence_start.tag, event->start_mark);
        node->flow = event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
    } else {
        refuse_properties(b, event->data.mapping_start.anchor, event->data.mapping_start.tag, event->start_mark);
    }
    if (b->depth == DEPTH_MAX) {
        problem_at(b, event->start_mark, "lists and maps are nested more deeply here than any key allows");
        b->stop = true;
        return true;
    }
    b->open[b->depth++] = node;
    return true;
}

/* False: no memory. */
static bool take(struct builder *b, const yaml_event_t *event)
{
    struct cat_node *node;

    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (++b->documents == 2) {
            problem_at(b, event->start_mark, "expected the end of the file, found a second YAML document (---)");
            b->stop = true;
        }
        return true;
    case YAML_STREAM_END_EVENT:
        b->stop = true;
        return true;
    case YAML_ALIAS_EVENT:
        cat_problem(b->problems, from_zero(event->start_mark.line), from_zero(event->start_mark.column),
                    "an unquoted *%s is a YAML alias; quote it: \"*%s\"", (const char *)event->data.alias.anchor,
                    (const char *)event->data.alias.anchor);
        node = add(b, CAT_NODE_BAD, event->start_mark);
        if (node)
            node->text = "";
        return node != NULL;
    case YAML_SCALAR_EVENT:
        return add_scalar(b, event);
    case YAML_SEQUENCE_START_EVENT:
        return open_node(b, CAT_NODE_LIST, event);
    case YAML_MAPPING_START_EVENT:
        return open_node(b, CAT_NODE_MAP, event);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        b->depth--;
        return true;
    default:
        return true;
    }
}

/* Where byte `offset` of the text stands: the reader's errors carry no mark. */
static void locate(const char *text, size_t length, size_t offset, uint32_t *line, uint32_t *column)
{
    *line = *column = 1;
    for (size_t i = 0; i < offset && i < length; i++) {
        if (text[i] == '\n') {
            ++*line;
            *column = 1;
        } else if (((unsigned char)text[i] & 0xc0) != 0x80) {
            ++*column;
        }
    }
}

static void tell_syntax_error(struct builder *b, const char *text, size_t length)
{
    const yaml_parser_t *p = &b->parser;
    uint32_t line, column;

    if (p->error == YAML_READER_ERROR) {
        locate(text, length, p->problem_offset, &line, &column);
        cat_problem(b->problems, line, column, "expected UTF-8 text, found: %s", p->problem);
    } else if (p->context && strstr(p->context, "alias")) {
        problem_at(b, p->context_mark, "an unquoted * begins a YAML alias; quote it, as in \"*name\"");
    } else if (p->context && strstr(p->context, "anchor")) {
        problem_at(b, p->context_mark, "an unquoted & begins a YAML anchor; quote the text");
    } else {
        cat_problem(b->problems, from_zero(p->problem_mark.line), from_zero(p->problem_mark.column), "this is not YAML: %s%s%s",
                    p->context ? p->context : "", p->context ? ", " : "", p->problem ? p->problem : "syntax error");
    }
}

enum rp_status cat_yaml_parse(const char *text, size_t length, struct rp_arena *arena, struct cat_problems *problems, struct cat_node **root,
                              struct rp_err *err)
{
    struct builder b = {.arena = arena, .problems = problems};
    enum rp_status status = RP_OK;
    bool syntax_error = false;

    *root = NULL;
    if (!yaml_parser_initialize(&b.parser))
        return rp_fail_nomem(err);
    yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b.parser, (const unsigned char *)text, length);
    while (!b.stop) {
        yaml_event_t event;

        if (!yaml_parser_parse(&b.parser, &event)) {
            if (b.parser.error == YAML_MEMORY_ERROR) {
                status = rp_fail_nomem(err);
                goto done;
            }
            tell_syntax_error(&b, text, length);
            syntax_error = true;
            break;
        }
        if (!take(&b, &event))
            status = rp_fail_nomem(err);
        yaml_event_delete(&event);
        if (status)
            goto done;
    }
    if (!syntax_error && b.depth == 0)
        *root = b.root;
done:
    yaml_parser_delete(&b.parser);
    return status;
}

/* Bytes of source that make one character of the text, and of that text. */
static void source_step(const char *at, const char *end, enum cat_node_style style, size_t *source, size_t *made)
{
    *source = *made = 1;
    if (style == CAT_STYLE_SINGLE && at[0] == '\'' && at + 1 < end && at[1] == '\'') {
        *source = 2;
        return;
    }
    if (style == CAT_STYLE_DOUBLE && at[0] == '\\' && at + 1 < end) {
        *source = at[1] == 'x' ? 4 : at[1] == 'u' ? 6 : at[1] == 'U' ? 10 : 2;
        return;
    }
    while (at + *source < end && ((unsigned char)at[*source] & 0xc0) == 0x80)
        ++*source;
    *made = *source;
}

uint32_t cat_yaml_column(const char *text, size_t length, const struct cat_node *scalar, size_t offset)
{
    const char *at = text, *end = text + length;
    uint32_t column = scalar->column;

    if (scalar->style == CAT_STYLE_BLOCK || scalar->kind != CAT_NODE_SCALAR)
        return column;
    for (uint32_t line = 1; line < scalar->line && at < end; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));

        at = newline ? newline + 1 : end;
    }
    for (uint32_t i = 1; i < scalar->column && at < end; i++) {
        at++;
        while (at < end && ((unsigned char)*at & 0xc0) == 0x80)
            at++;
    }
    if (scalar->style != CAT_STYLE_PLAIN && at < end) {
        at++; /* the quote */
        column++;
    }
    for (size_t made_all = 0; made_all < offset && at < end;) {
        size_t source, made;

        source_step(at, end, scalar->style, &source, &made);
        made_all += made;
        column += scalar->style == CAT_STYLE_DOUBLE && at[0] == '\\' ? (uint32_t)source : source == 2 && made == 1 ? 2 : 1;
        at += source;
    }
    return column;
}
