/* SPDX-License-Identifier: MIT */
/*
 * The costs of a row, one function each: see rw_rows.h.
 */
#include "rw_rows.h"

#include <string.h>

static uint64_t fnv1a(const char *text, size_t bytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

const struct rw_name *rw_intern_name(struct rw_names *names, const char *text)
{
    size_t bytes = strlen(text);
    if (bytes >= sizeof names->slots[0]->text)
        bytes = sizeof names->slots[0]->text - 1;
    uint64_t hash = fnv1a(text, bytes);
    size_t at = hash & (RW_NAMES_SLOTS - 1);
    while (names->slots[at]) {
        const struct rw_name *name = names->slots[at];
        if (name->hash == hash && name->bytes == bytes && memcmp(name->text, text, bytes) == 0)
            return name;
        at = (at + 1) & (RW_NAMES_SLOTS - 1);
    }
    struct rw_name *name = names->used < RW_NAMES_SLOTS - 1 ? calloc(1, sizeof *name) : NULL;
    if (!name)
        return NULL;
    name->hash = hash;
    name->bytes = (uint32_t)bytes;
    memcpy(name->text, text, bytes);
    names->slots[at] = name;
    names->used++;
    return name;
}

void rw_names_release(struct rw_names *names)
{
    for (size_t i = 0; i < RW_NAMES_SLOTS; i++)
        free(names->slots[i]);
    memset(names, 0, sizeof *names);
}

struct rw_value rw_value_integer(int64_t integer)
{
    struct rw_value value = {RW_INTEGER, 0, {.integer = integer}};
    return value;
}

struct rw_value rw_value_real(double real)
{
    struct rw_value value = {RW_REAL, 0, {.real = real}};
    return value;
}

struct rw_value rw_value_text(const unsigned char *text, size_t bytes)
{
    struct rw_value value = {RW_NULL, 0, {.integer = 0}};
    unsigned char *copy = malloc(bytes + 1);
    if (!copy)
        return value;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    value.kind = RW_TEXT;
    value.bytes = (uint32_t)bytes;
    value.as.data = copy;
    return value;
}

struct rw_value rw_blob_copy(const void *blob, size_t bytes)
{
    struct rw_value value = {RW_NULL, 0, {.integer = 0}};
    unsigned char *copy = malloc(bytes ? bytes : 1);
    if (!copy)
        return value;
    if (bytes)
        memcpy(copy, blob, bytes);
    value.kind = RW_BLOB;
    value.bytes = (uint32_t)bytes;
    value.as.data = copy;
    return value;
}

struct rw_object *rw_row_object_new(uint32_t keys)
{
    uint32_t slots = 4;
    while (slots < keys * 2)
        slots *= 2;
    struct rw_object *object = malloc(sizeof *object);
    if (!object)
        return NULL;
    object->slots = malloc(slots * sizeof *object->slots);
    if (!object->slots) {
        free(object);
        return NULL;
    }
    for (uint32_t i = 0; i < slots; i++)
        object->slots[i].key = NULL;
    object->mask = slots - 1;
    object->used = 0;
    return object;
}

void rw_row_object_set(struct rw_object *object, const struct rw_name *key, struct rw_value value)
{
    uint32_t at = (uint32_t)key->hash & object->mask;
    while (object->slots[at].key && object->slots[at].key != key)
        at = (at + 1) & object->mask;
    if (object->slots[at].key)
        rw_value_release(&object->slots[at].value);
    else
        object->used++;
    object->slots[at].key = key;
    object->slots[at].value = value;
}

void rw_row_object_free(struct rw_object *object)
{
    if (!object)
        return;
    for (uint32_t i = 0; i <= object->mask; i++) {
        if (object->slots[i].key)
            rw_value_release(&object->slots[i].value);
    }
    free(object->slots);
    free(object);
}
