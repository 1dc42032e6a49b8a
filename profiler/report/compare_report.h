/* SPDX-License-Identifier: MIT */
/* Comparisons made into something to read: `rowprof diff` and `rowprof shapes`, as text, JSON, CSV or Markdown. Keys and columns: README.md. */
#ifndef RP_REPORT_COMPARE_REPORT_H
#define RP_REPORT_COMPARE_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "analyze/diff.h"
#include "analyze/shapes.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/vec.h"
#include "report/report.h"

enum rp_compare_form { RP_FORM_TEXT, RP_FORM_JSON, RP_FORM_CSV, RP_FORM_MARKDOWN };

struct rp_compare_style {
    enum rp_compare_form form;
    size_t width; /* columns to fit in; 0: no limit */
    bool color, verbose;
};

/* What the reader should know before believing the figures. */
struct rp_compare_notes {
    RP_VEC(struct rp_note) notes;
};
void rp_compare_notes_release(struct rp_compare_notes *notes);

struct rp_diff_report {
    const struct rp_diff *diff;
    const struct cat_rules *rules;
    const char *names[2]; /* what the sides are called: paths */
    const struct rp_profile *first[2]; /* the first profile of each side: run, clock, images */
    bool one_thread;                   /* the views are of some threads only */
    struct rp_compare_notes notes;
};

/* Fills the notes. RP_NOMEM only. */
enum rp_status rp_diff_notes(struct rp_diff_report *report, struct rp_err *err);
/* Appends to `out`; want of memory is out->failed. */
void rp_diff_write(const struct rp_diff_report *report, const struct rp_compare_style *style, struct rp_buf *out);

/* Without -v a table holds the rows whose rank is below that: the heaviest at any shape, or what is paid per row would be cut for costing nothing per call. */
enum { RP_SHAPES_TABLES_MAX = 2, RP_SHAPES_ROWS_SHOWN = 30 };

struct rp_shapes_report {
    size_t tables; /* same shapes, by category and by function */
    const struct rp_shapes *shapes[RP_SHAPES_TABLES_MAX];
    enum rp_tally_by by[RP_SHAPES_TABLES_MAX];
    const struct cat_rules *rules;
    const char *names[RP_SHAPES_MAX];
    const struct rp_profile *profiles[RP_SHAPES_MAX];
    bool one_thread;  /* the views are of some threads only */
    const char *unit; /* "row", "column" or "value" */
    bool by_row;      /* tables are ordered by cost per unit */
    struct rp_compare_notes notes;
};

enum rp_status rp_shapes_notes(struct rp_shapes_report *report, struct rp_err *err);
void rp_shapes_write(const struct rp_shapes_report *report, const struct rp_compare_style *style, struct rp_buf *out);

/* Shared by both. Adds a note; the format makes its text. */
enum rp_status rp_compare_note(struct rp_compare_notes *notes, struct rp_err *err, const char *id, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void rp_compare_notes_text(const struct rp_compare_notes *notes, const struct rp_compare_style *style, struct rp_buf *out);
/* 0.034, 3.42, 34.2, 342, 3 420: as much of a number as one reads; with a sign when `sign`. */
void rp_compare_number(struct rp_buf *out, double value, bool sign);

#endif
