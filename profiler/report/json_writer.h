/* SPDX-License-Identifier: MIT */
/* Writes JSON as it goes: commas, indentation and escapes are the writer's business, the order of calls is the caller's. What comes out is always
 * valid UTF-8 and valid JSON as long as what was begun is ended.
 *
 *     struct rp_json w = {.out = &buf};
 *     rp_json_begin(&w, '{');
 *     rp_json_key(&w, "samples");
 *     rp_json_u64(&w, 42);
 *     rp_json_end(&w);
 */
#ifndef RP_REPORT_JSON_WRITER_H
#define RP_REPORT_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum { RP_JSON_DEPTH_MAX = 16 };

/* Zero but for `out` is ready. Deeper than RP_JSON_DEPTH_MAX marks `out` as failed. */
struct rp_json {
    struct rp_buf *out;
    unsigned depth;
    bool after_key;
    struct {
        char close;   /* the bracket that ends it */
        bool any;     /* something was written in it */
        bool inline_; /* all on one line */
    } level[RP_JSON_DEPTH_MAX];
};

/* `bracket` is '{' or '['. In the second form all that is inside stands on one line. */
void rp_json_begin(struct rp_json *w, char bracket);
void rp_json_begin_inline(struct rp_json *w, char bracket);
void rp_json_end(struct rp_json *w);

void rp_json_key(struct rp_json *w, const char *key);
/* Control characters are escaped; bytes that are no UTF-8 become U+FFFD. NULL writes null. */
void rp_json_string(struct rp_json *w, const char *text);
void rp_json_u64(struct rp_json *w, uint64_t value);
/* `digits` after the point; NaN and infinities, which JSON does not have, become null. */
void rp_json_double(struct rp_json *w, double value, int digits);
/* `digits` significant ones, with an exponent where it needs one: for probabilities. */
void rp_json_general(struct rp_json *w, double value, int digits);
void rp_json_bool(struct rp_json *w, bool value);
void rp_json_null(struct rp_json *w);

/* key and value in one. */
void rp_json_key_string(struct rp_json *w, const char *key, const char *text);
void rp_json_key_u64(struct rp_json *w, const char *key, uint64_t value);
void rp_json_key_general(struct rp_json *w, const char *key, double value, int digits);
void rp_json_key_double(struct rp_json *w, const char *key, double value, int digits);

#endif
