/* SPDX-License-Identifier: MIT */
/* Numbers and words out of text, with bounds and without surprises: a cursor moves over [at, end), every taker says
 * whether it took something, and whole-string parsers insist on using the whole string. */
#ifndef RP_BASE_PARSE_H
#define RP_BASE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The unread rest of a text. Need not be NUL-terminated. */
struct rp_cursor {
    const char *at, *end;
};

struct rp_cursor rp_cursor_of(const char *text, size_t length);
struct rp_cursor rp_cursor_str(const char *text);

bool rp_cursor_done(const struct rp_cursor *c);
/* Takes `literal` if it stands next. */
bool rp_cursor_take(struct rp_cursor *c, const char *literal);
/* Skips blanks (space, tab); returns how many. */
size_t rp_cursor_skip_blanks(struct rp_cursor *c);
/* Takes an unsigned number without sign or prefix; false (cursor unmoved) when there is no digit or it overflows. */
bool rp_cursor_u64(struct rp_cursor *c, uint64_t *value);
/* The same in hexadecimal, either case; no 0x (take it yourself where allowed). */
bool rp_cursor_hex(struct rp_cursor *c, uint64_t *value);
/* Takes up to `stop` (not included) or the end; gives the piece. Empty is fine. */
void rp_cursor_until(struct rp_cursor *c, char stop, const char **piece, size_t *length);
/* Takes one line without its end (\n or \r\n); false at the end of the text. A last line without \n counts. */
bool rp_cursor_line(struct rp_cursor *c, const char **line, size_t *length);

/* Whole strings: false unless all of `text` is the number and it lies in [min, max]. */
bool rp_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *value);
/* A finite decimal number such as 10, 0.5 or 1e3, in the C locale. */
bool rp_parse_double(const char *text, double min, double max, double *value);

#endif
