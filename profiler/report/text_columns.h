/* SPDX-License-Identifier: MIT */
/* Tables of figures beside names, as the tables of waits, threads and locks are. */
#ifndef RP_REPORT_TEXT_COLUMNS_H
#define RP_REPORT_TEXT_COLUMNS_H

#include "report/report.h"

enum { RP_TEXT_NAME_GAP = 3 }; /* columns before a name */

/* Columns of numbers left of a name. Where the name would have too little room, those go that can best be missed. */
struct rp_text_column {
    const char *head;
    size_t columns;
    unsigned drop; /* the highest goes first; 0: never */
};

/* Sets `kept` of `n` columns so that a name has room for `name` columns; gives the column where it begins. */
size_t rp_text_keep_columns(const struct rp_report *report, const struct rp_text_column *all, size_t n, size_t name, bool *kept);
/* The line of heads, after an empty one. */
void rp_text_heads(const struct rp_report *report, const struct rp_text_column *all, size_t n, const bool *kept, const char *name, struct rp_buf *out);

/* Who pays: so many of them, in so many columns each, and none below this part of the row. */
enum { RP_TEXT_PAYERS_MAX = 4, RP_TEXT_PAYER_COLUMNS = 60 };
extern const double rp_text_payer_worth;

/* Dim lines from `column` on, wrapped to the width. */
void rp_text_dim(const struct rp_report *report, const char *text, size_t column, struct rp_buf *out);
/* What was appended since `from` is not broken at its blanks. */
void rp_text_tie(struct rp_buf *out, size_t from);
/* Rounded; 0 for what is below 0. */
uint64_t rp_text_whole(double n);

#endif
