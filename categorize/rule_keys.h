/* SPDX-License-Identifier: MIT */
/* Inside of categorize/: reading maps, lists and words of a rule file, telling each mistake with its place. */
#ifndef CAT_RULE_KEYS_H
#define CAT_RULE_KEYS_H

#include "ruleset.h"

/* One file in the reading. */
struct cat_load {
    struct cat_rules *rules;
    struct cat_file *file;
    struct cat_problems *problems;
    const char *text;
    size_t length;
    bool nomem; /* sticky; asked once at the end */
};

/* Takes the value of a key, or an element of a list, into `object`. */
typedef void cat_take_fn(struct cat_load *l, const struct cat_node *value, void *object);

struct cat_key {
    const char *name;
    cat_take_fn *take;
    bool required;
};

struct cat_key_table {
    const char *what; /* "a rule" */
    const struct cat_key *keys;
    size_t n; /* at most 16 */
};

/* A problem at byte `offset` of the node's text. */
void cat_load_told(struct cat_load *l, const struct cat_node *node, size_t offset, const char *format, ...) __attribute__((format(printf, 4, 5)));
/* "a list", "a map", "nothing". */
const char *cat_load_kind(const struct cat_node *node);
/* True for a scalar with text; tells otherwise. */
bool cat_load_is_text(struct cat_load *l, const struct cat_node *node, const char *expected);
/* The text as long as the rules live, never NULL. */
const char *cat_load_keep(struct cat_load *l, const struct cat_node *node);
/* Gives each value to its key's taker, in the order of the file. Returns which keys of the table were there (bits; all when it is no map). */
unsigned cat_load_map(struct cat_load *l, const struct cat_node *map, const struct cat_key_table *table, void *object);
/* Calls `each` for the elements of a list, or for the value itself. */
void cat_load_list(struct cat_load *l, const struct cat_node *value, const char *expected, cat_take_fn *each, void *object);
/* The position of the value among `words`; n when it is none, which is told. */
size_t cat_load_word(struct cat_load *l, const struct cat_node *value, const char *const *words, size_t n);
/* An id, or NULL, which is told. */
const char *cat_load_id(struct cat_load *l, const struct cat_node *value);

#endif
