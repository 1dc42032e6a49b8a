/* SPDX-License-Identifier: MIT */
/* Colours of a terminal, and lines that fit it. Without colour nothing but the text is written. */
#ifndef RP_REPORT_STYLE_H
#define RP_REPORT_STYLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum rp_style { RP_STYLE_BOLD, RP_STYLE_DIM, RP_STYLE_WARN };

void rp_style_on(struct rp_buf *out, bool color, enum rp_style style);
/* A rule file's colour: a name of rules/README.md or "#rrggbb"; an unknown one is no colour. */
void rp_style_color(struct rp_buf *out, bool color, const char *name);
void rp_style_off(struct rp_buf *out, bool color);

/* Appends `text` as lines broken at blanks so that none is wider than `width` (0: 100). The first begins at `column`, where the cursor stands; the
 * others are indented by `indent`. Ends with a newline. A word that is too wide stands alone. RP_TEXT_TIE is printed as a blank and not broken at;
 * nor is the blank before a percent sign. */
#define RP_TEXT_TIE '\x01'
void rp_text_wrap(struct rp_buf *out, const char *text, size_t column, size_t indent, size_t width);

/* Columns left behind `taken` others for a name, which is never left less than a dozen. `width` 0: 0, no limit. */
size_t rp_text_room(size_t width, size_t taken);

#endif
