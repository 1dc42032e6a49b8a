/* SPDX-License-Identifier: MIT */
/* See rule_keys.h. The trap is in the columns: what is told points at the offending character in the source, not at the start of the value. */
#include "rule_keys.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"

enum { KEYS_MAX = 16 };

void cat_load_told(struct cat_load *l, const struct cat_node *node, size_t offset, const char *format, ...)
{
    bool is_kept = l->problems->n < RP_RULE_PROBLEMS_MAX; /* finding the column means reading the file up to there */
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cat_problem(l->problems, node->line, offset && is_kept ? cat_yaml_column(l->text, l->length, node, offset) : node->column, "%s", text);
}

const char *cat_load_kind(const struct cat_node *node)
{
    return node->kind == CAT_NODE_LIST ? "a list" : node->kind == CAT_NODE_MAP ? "a map" : "nothing";
}

bool cat_load_is_text(struct cat_load *l, const struct cat_node *node, const char *expected)
{
    if (node->kind == CAT_NODE_BAD)
        return false;
    if (node->kind == CAT_NODE_SCALAR && node->length)
        return true;
    if (node->kind == CAT_NODE_SCALAR && node->style != CAT_STYLE_PLAIN)
        cat_load_told(l, node, 0, "expected %s, found an empty string", expected);
    else
        cat_load_told(l, node, 0, "expected %s, found %s", expected, cat_load_kind(node));
    return false;
}

const char *cat_load_keep(struct cat_load *l, const struct cat_node *node)
{
    char *copy = rp_arena_strndup(&l->rules->arena, node->text, node->length);

    if (!copy)
        l->nomem = true;
    return copy ? copy : "";
}

/* ---- maps ---- */

static const struct cat_key *find_key(const struct cat_key_table *table, const char *name)
{
    for (size_t i = 0; i < table->n; i++)
        if (strcmp(table->keys[i].name, name) == 0)
            return &table->keys[i];
    return NULL;
}

static void tell_unknown_key(struct cat_load *l, const struct cat_node *key, const struct cat_key_table *table)
{
    const char *names[KEYS_MAX];
    const char *near;

    for (size_t i = 0; i < table->n; i++)
        names[i] = table->keys[i].name;
    near = cat_nearest(key->text, names, table->n);
    if (near) {
        cat_load_told(l, key, 0, "%s has no key `%.100s`; did you mean `%s`?", table->what, key->text, near);
    } else {
        char all[256] = "";
        size_t used = 0;

        for (size_t i = 0; i < table->n && used < sizeof all; i++)
            used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", names[i]);
        cat_load_told(l, key, 0, "%s has no key `%.100s`; its keys are %s", table->what, key->text, all);
    }
}

unsigned cat_load_map(struct cat_load *l, const struct cat_node *map, const struct cat_key_table *table, void *object)
{
    unsigned seen = 0;

    if (map->kind != CAT_NODE_MAP) {
        if (map->kind != CAT_NODE_BAD)
            cat_load_told(l, map, 0, "expected %s as a map of keys, found %s", table->what, map->kind == CAT_NODE_SCALAR && map->length ? "text" : cat_load_kind(map));
        return ~0u;
    }
    for (const struct cat_node *key = map->first; key; key = key->next->next) {
        const struct cat_key *known;
        unsigned bit;

        if (!cat_load_is_text(l, key, "a key"))
            continue;
        known = find_key(table, key->text);
        if (!known) {
            tell_unknown_key(l, key, table);
            continue;
        }
        bit = 1u << (known - table->keys);
        if (seen & bit)
            cat_load_told(l, key, 0, "the key `%s` stands twice in %s; merge them", known->name, table->what);
        else
            known->take(l, key->next, object);
        seen |= bit;
    }
    for (size_t i = 0; i < table->n; i++)
        if (table->keys[i].required && !(seen & 1u << i))
            cat_load_told(l, map, 0, "%s needs the key `%s`", table->what, table->keys[i].name);
    return seen;
}

void cat_load_list(struct cat_load *l, const struct cat_node *value, const char *expected, cat_take_fn *each, void *object)
{
    if (value->kind == CAT_NODE_LIST && !value->n)
        cat_load_told(l, value, 0, "expected %s, found an empty list", expected);
    if (value->kind != CAT_NODE_LIST) {
        each(l, value, object);
        return;
    }
    for (const struct cat_node *item = value->first; item; item = item->next)
        each(l, item, object);
}

/* ---- words ---- */

size_t cat_load_word(struct cat_load *l, const struct cat_node *value, const char *const *words, size_t n)
{
    char all[256] = "";
    size_t used = 0;
    const char *near;

    for (size_t i = 0; i < n && used < sizeof all; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", !i ? "" : i + 1 == n ? " or " : ", ", words[i]);
    if (!cat_load_is_text(l, value, all))
        return n;
    for (size_t i = 0; i < n; i++)
        if (strcmp(words[i], value->text) == 0)
            return i;
    near = cat_nearest(value->text, words, n);
    if (near)
        cat_load_told(l, value, 0, "expected %s, found `%.100s`; did you mean `%s`?", all, value->text, near);
    else
        cat_load_told(l, value, 0, "expected %s, found `%.100s`", all, value->text);
    return n;
}

const char *cat_load_id(struct cat_load *l, const struct cat_node *value)
{
    size_t good;

    if (!cat_load_is_text(l, value, "an id"))
        return NULL;
    good = strspn(value->text, "abcdefghijklmnopqrstuvwxyz0123456789._-");
    if (good != value->length) {
        cat_load_told(l, value, good, "an id is made of a-z, 0-9, `.`, `_` and `-`");
        return NULL;
    }
    return cat_load_keep(l, value);
}
