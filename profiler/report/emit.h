/* SPDX-License-Identifier: MIT */
/* The seam between a gathered report and its forms: one file per format, all in one table. To add an output: write emit_NAME.c with the two
 * functions, put its struct into the table in report.c, describe it in README.md, and give it a golden test. */
#ifndef RP_REPORT_EMIT_H
#define RP_REPORT_EMIT_H

#include <stdbool.h>

#include "report/report.h"

struct rp_emit_ops {
    const char *name;      /* as --format takes it */
    const char *help;      /* what it is, for the list of formats */
    bool wants_functions;  /* report->functions is to be filled */
    bool wants_every_tree; /* trees of all categories, uncut */
    bool wants_locks;      /* report->locks is to be filled, asked for or not */
    bool has_trees;
    bool has_notes;

    /* Both append to `out`; running out of memory is out->failed. */
    void (*report)(const struct rp_report *report, struct rp_buf *out);
    void (*unclaimed)(const struct rp_report *report, struct rp_buf *out);
};

extern const struct rp_emit_ops rp_emit_text, rp_emit_json, rp_emit_csv;

/* NULL: no such format. */
const struct rp_emit_ops *rp_emit_find(const char *name);

#endif
