/* SPDX-License-Identifier: MIT */
/* A small YAML document as a tree in which every node knows where it was written. */
#ifndef CAT_YAML_TREE_H
#define CAT_YAML_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/vec.h"

struct cat_problem {
    const char *file;
    uint32_t line, column;
    size_t at, length; /* in cat_problems.text */
};

/* Mistakes, gathered as they are found and told in the order of the file. Zero-initialised but for `file` is empty; cat_problems_end releases. */
struct cat_problems {
    const char *file; /* of the next problem; must live until the end */
    uint32_t n;       /* those beyond RP_RULE_PROBLEMS_MAX are only counted */
    RP_VEC(struct cat_problem) all;
    struct rp_buf text;
};

void cat_problem(struct cat_problems *problems, uint32_t line, uint32_t column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Appends all to `out`, one a line as file:line:column: text (of one file in the order of the file), and releases. False: no memory. */
bool cat_problems_end(struct cat_problems *problems, struct rp_buf *out);

enum cat_node_kind { CAT_NODE_SCALAR, CAT_NODE_LIST, CAT_NODE_MAP, CAT_NODE_BAD /* told already: say nothing more of it */ };
enum cat_node_style { CAT_STYLE_PLAIN, CAT_STYLE_SINGLE, CAT_STYLE_DOUBLE, CAT_STYLE_BLOCK };

struct cat_node {
    enum cat_node_kind kind;
    enum cat_node_style style;
    bool flow;            /* a list written as [a, b] */
    uint32_t line, column; /* 1-based, in characters */
    const char *text;     /* scalar; without NULs, NUL-terminated */
    uint32_t length;
    uint32_t n;              /* children; a map has key, value, key, value … */
    struct cat_node *first, *last, *next;
};

/* Parses one document. `root` is NULL when there is none or a syntax error (told in `problems`). RP_NOMEM is the only failure. */
enum rp_status cat_yaml_parse(const char *text, size_t length, struct rp_arena *arena, struct cat_problems *problems, struct cat_node **root,
                              struct rp_err *err);

/* The column where byte `offset` of a scalar's text was written; for block scalars and those of several lines, that of their start. */
uint32_t cat_yaml_column(const char *text, size_t length, const struct cat_node *scalar, size_t offset);

#endif
