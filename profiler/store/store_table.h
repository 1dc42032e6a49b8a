/* SPDX-License-Identifier: MIT */
/* Inside of store/: which column of the file is which field in memory, for saving and loading alike. */
#ifndef RP_STORE_STORE_TABLE_H
#define RP_STORE_STORE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/profile.h"

/* What a field must be. The REF_ ones are ids of another table. */
enum rp_store_check {
    RP_STORE_ANY,    /* 64 bits, as they are */
    RP_STORE_MAX,    /* 0 … max */
    RP_STORE_STRING, /* ids */
    RP_STORE_IMAGE,
    RP_STORE_FUNCTION,
    RP_STORE_LOCATION_OR_NULL, /* NULL is RP_LOCATION_NONE */
    RP_STORE_NODE,
    RP_STORE_PROCESS,
    RP_STORE_THREAD,
    RP_STORE_THREAD_OR_NULL, /* NULL is UINT32_MAX */
    RP_STORE_LOCK,
    RP_STORE_SYSCALL_OR_NULL, /* a 16-bit number, NULL is -1 */
};

struct rp_store_field {
    const char *column;
    uint16_t offset; /* in the row's struct */
    uint8_t size;    /* 1, 2, 4 or 8 */
    uint8_t check;   /* enum rp_store_check */
    uint64_t max;
};

enum { RP_STORE_FIELDS_MAX = 25 };

/* One table. Rows of `row_size` bytes; the callbacks know where they live. */
struct rp_store_table {
    const char *name;
    const char *schema;
    const char *key; /* "id", or "rowid" for a table without ids */
    size_t row_size;
    struct rp_store_field fields[RP_STORE_FIELDS_MAX];
    size_t (*count)(const struct rp_profile *p);
    /* Copies row `i` out. */
    void (*get)(const struct rp_profile *p, size_t i, void *row);
    /* Adds a row that was checked field by field. RP_FORMAT, with what is wrong in `err`, for what spans fields. */
    enum rp_status (*add)(struct rp_profile *p, const void *row, struct rp_err *err);
    uint32_t since; /* first version that has it */
    /* How version 1 made it and how many of `fields` it had; NULL: as now. */
    const char *schema_1;
    uint8_t nfields_1;
    bool optional; /* a file without the table is one with an empty table */
};

/* All but `strings`, in the order of loading: ids are known before they are used, lines and aliases before those that point at them. Ends with a
 * name of NULL. */
extern const struct rp_store_table rp_store_tables[];

/* What is wrong with a value, given what of `p` is there already; NULL when nothing is. */
const char *rp_store_field_wrong(const struct rp_store_field *field, const struct rp_profile *p, uint64_t value);

/* What NULL in the file stands for; false: a field that is never NULL. */
bool rp_store_field_null(const struct rp_store_field *field, uint64_t *value);

/* The bits of a field of `row`, widened. */
uint64_t rp_store_field_get(const struct rp_store_field *field, const void *row);
void rp_store_field_set(const struct rp_store_field *field, void *row, uint64_t value);

#endif
