/* SPDX-License-Identifier: MIT */
/* See intern.h. */
#include "base/intern.h"

#include <string.h>

#include "base/limits.h"

struct looked_for {
    const struct rp_intern *table;
    const char *text;
    size_t length;
};

static bool same(const void *context, uint32_t position)
{
    const struct looked_for *key = context;
    const struct rp_interned *s = &key->table->strings.at[position];

    return s->length == key->length && memcmp(s->text, key->text, key->length) == 0;
}

static uint32_t add(struct rp_intern *table, uint32_t *slot, uint32_t hash, const char *text, size_t length)
{
    struct rp_interned *s;
    char *copy;

    if (length > UINT32_MAX - 1 || table->strings.n >= UINT32_MAX - 2)
        return RP_NO_STRING;
    copy = rp_arena_strndup(&table->arena, text, length);
    s = copy ? rp_vec_add(&table->strings) : NULL;
    if (!s)
        return RP_NO_STRING;
    *s = (struct rp_interned){copy, (uint32_t)length, hash};
    rp_index_set(&table->index, slot, hash, (uint32_t)table->strings.n - 1);
    return (uint32_t)table->strings.n - 1;
}

uint32_t rp_intern(struct rp_intern *table, const char *text, size_t length)
{
    struct looked_for key = {table, text, length};
    uint32_t hash = rp_hash_bytes(text, length);
    uint32_t *slot;

    if (!table->strings.n && length && rp_intern(table, "", 0) != 0)
        return RP_NO_STRING;
    slot = rp_index_find(&table->index, hash, same, &key);
    if (!slot)
        return RP_NO_STRING;
    return *slot != RP_INDEX_EMPTY ? *slot : add(table, slot, hash, text, length);
}

uint32_t rp_intern_str(struct rp_intern *table, const char *text)
{
    return rp_intern(table, text, strlen(text));
}

const char *rp_intern_text(const struct rp_intern *table, uint32_t id)
{
    return id < table->strings.n ? table->strings.at[id].text : "";
}

void rp_intern_release(struct rp_intern *table)
{
    rp_arena_release(&table->arena);
    rp_index_release(&table->index);
    rp_vec_release(&table->strings);
}
