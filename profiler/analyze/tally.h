/* SPDX-License-Identifier: MIT */
/* A view as rows that can be set against the rows of another profile: by category, function, module, thread name or call path.
 *
 * Rows of two profiles are the same thing when their names are: module and symbol, module and offset where there is no symbol, never an address, which
 * differs with every start. What has neither (kernel addresses without a name, JIT code without a map) is one row per module. */
#ifndef RP_ANALYZE_TALLY_H
#define RP_ANALYZE_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/view.h"
#include "base/intern.h"

enum rp_tally_by { RP_TALLY_CATEGORY, RP_TALLY_FUNCTION, RP_TALLY_MODULE, RP_TALLY_THREAD, RP_TALLY_PATH };

/* The names of rows, shared by all tallies that are to be compared. Zero is ready. */
struct rp_tally_key {
    uint32_t name;   /* string of `text`. Of a path: its functions, leaf first, parted by " < " */
    uint32_t module; /* string; 0 where names need none */
    uint32_t id;     /* of a category: its position in the rules; else UINT32_MAX */
};
struct rp_tally_keys {
    struct rp_intern text;
    struct rp_index index;
    RP_VEC(struct rp_tally_key) keys;
};
void rp_tally_keys_release(struct rp_tally_keys *keys);

struct rp_tally_row {
    uint64_t samples;
    double deff;
    bool rising; /* phases longer than the run can average */
};

/* `rows` is by key; a key that came later, or has no samples here, has no row or one of zeros. */
struct rp_tally {
    RP_VEC(struct rp_tally_row) rows;
    uint64_t samples;
};

/* Samples are those of the leaf (of the payer, by category); with `total` those of every row that is anywhere on the stack, once each. By thread and by
 * path there is no total but the samples. RP_NOMEM only. */
enum rp_status rp_tally_make(const struct rp_view *view, enum rp_tally_by by, bool total, struct rp_tally_keys *keys, struct rp_tally *tally,
                             struct rp_err *err);
void rp_tally_release(struct rp_tally *tally);

/* The row of a key; zeros when there is none. */
struct rp_tally_row rp_tally_row(const struct rp_tally *tally, uint32_t key);

#endif
