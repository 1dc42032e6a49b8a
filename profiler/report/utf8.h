/* SPDX-License-Identifier: MIT */
/* Text of unknown origin made fit to print. Names come out of files that belong to the target, so they may hold anything: control characters that
 * drive a terminal, half a letter, a right-to-left override. What may not be shown is shown as U+FFFD, never dropped. */
#ifndef RP_REPORT_UTF8_H
#define RP_REPORT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/parse.h"

#define RP_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Takes one code point. False: one byte was taken that begins no valid UTF-8 (overlong forms, surrogates and beyond U+10FFFF included). The
 * cursor must not be at its end. */
bool rp_utf8_next(struct rp_cursor *c, uint32_t *code_point);

/* Control characters (C0, DEL, C1) and those that reorder or hide text. */
bool rp_utf8_is_control(uint32_t code_point);

/* Columns on a terminal: 0 for combining marks, 2 for wide letters and emoji, else 1. */
unsigned rp_utf8_columns(uint32_t code_point);

/* Columns of a whole text; a bad byte counts 1, as its replacement does. */
size_t rp_text_columns(const char *text, size_t length);

/* Appends `text` as valid UTF-8 without control characters. */
void rp_text_clean(struct rp_buf *out, const char *text, size_t length);

/* Appends a field of CSV (RFC 4180), clean, so without line ends; in quotes where commas, quotes or a leading space ask for them. */
void rp_text_csv(struct rp_buf *out, const char *text);

/* Appends a text that is clean already as a cell of Markdown: what would end or mark it up is escaped. */
void rp_text_markdown(struct rp_buf *out, const char *text);

/* Appends a function name, clean and at most `columns` wide (0: as long as it is). Without `parameters` they become `(...)` and a return type is
 * left out; when it does not fit, template arguments become `<...>`, and at last the middle is left out. Brackets that were balanced stay balanced. */
void rp_text_symbol(struct rp_buf *out, const char *name, size_t columns, bool parameters);

/* Appends any other text, clean, its middle left out to fit. */
void rp_text_fit(struct rp_buf *out, const char *text, size_t columns);

/* Appends 9 130 for 9130. */
void rp_text_count(struct rp_buf *out, uint64_t n);

#endif
