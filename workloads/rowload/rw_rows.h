/* SPDX-License-Identifier: MIT */
/*
 * What a language binding builds from an SQLite row: interned names, values and dictionary objects.
 *
 * Each function here carries one cost, is external, never inlined and begins with rw_, so that a profile of this
 * program can be read off its symbols. All memory comes straight from malloc, because malloc is one of the costs.
 */
#ifndef RW_ROWS_H
#define RW_ROWS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "rl_run.h"

struct rw_name {
    uint64_t hash;
    uint32_t bytes;
    char text[64]; /* NUL-terminated; longer names are cut when interned */
};

enum { RW_NAMES_SLOTS = 256 }; /* power of two; a workload interns a handful */

struct rw_names {
    struct rw_name *slots[RW_NAMES_SLOTS];
    size_t used;
};

enum rw_kind { RW_NULL, RW_INTEGER, RW_REAL, RW_TEXT, RW_BLOB };

struct rw_value {
    enum rw_kind kind;
    uint32_t bytes; /* of text and blob */
    union {
        int64_t integer;
        double real;
        unsigned char *data; /* text and blob: owned */
    } as;
};

struct rw_slot {
    const struct rw_name *key; /* NULL: free */
    struct rw_value value;
};

/* A row as a dictionary: an open-addressed hash table of its own, as a dictionary-mode object is. */
struct rw_object {
    uint32_t mask;
    uint32_t used;
    struct rw_slot *slots;
};

/* The name for `text`: hashed, looked up, compared, and added on first sight. NULL when memory or the table is used up. */
RW_CATEGORY const struct rw_name *rw_intern_name(struct rw_names *names, const char *text);
void rw_names_release(struct rw_names *names);

RW_CATEGORY struct rw_value rw_value_integer(int64_t integer);
RW_CATEGORY struct rw_value rw_value_real(double real);
/* Copies. A failed allocation gives a value of kind RW_NULL. */
RW_CATEGORY struct rw_value rw_value_text(const unsigned char *text, size_t bytes);
RW_CATEGORY struct rw_value rw_blob_copy(const void *blob, size_t bytes);

/* An empty object with room for `keys` keys, or NULL. */
RW_CATEGORY struct rw_object *rw_row_object_new(uint32_t keys);
/* Takes the value. The object must have room. */
RW_CATEGORY void rw_row_object_set(struct rw_object *object, const struct rw_name *key, struct rw_value value);
/* Frees the object and the values in it. NULL is allowed. */
RW_CATEGORY void rw_row_object_free(struct rw_object *object);

static inline void rw_value_release(struct rw_value *value)
{
    if (value->kind == RW_TEXT || value->kind == RW_BLOB)
        free(value->as.data);
}

#endif
