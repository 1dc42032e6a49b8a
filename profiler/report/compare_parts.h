/* SPDX-License-Identifier: MIT */
/* Parts that both comparisons (emit_diff.c, emit_shapes.c) are written of. What rows hold, and in which order, is theirs. */
#ifndef RP_REPORT_COMPARE_PARTS_H
#define RP_REPORT_COMPARE_PARTS_H

#include "report/compare_report.h"
#include "report/grid.h"
#include "report/json_parts.h"

#define RP_DOT " \xc2\xb7 "
#define RP_PLUS_MINUS "\xc2\xb1"

/* Of a row's key. */
const char *rp_compare_name(const struct rp_tally_keys *keys, uint32_t key);
const char *rp_compare_module(const struct rp_tally_keys *keys, uint32_t key);

/* "39.4 %": a share that is not zero never reads 0.0 %. `below`, the cut-off of samples: "-", never 0, for it was not seen often enough. */
void rp_compare_share(struct rp_buf *out, double share, bool below);
void rp_compare_share_cell(struct rp_grid *grid, double share, bool below);
void rp_compare_number_cell(struct rp_grid *grid, double value, bool sign);

/* "1 160 ns per call ±12", the latter where it is known. */
void rp_compare_cost(struct rp_buf *out, const struct rp_cost *cost, const char *unit);

/* Appends `begin`, the line, and a newline. In text that has a width it is wrapped, later lines indented. */
void rp_compare_line(const struct rp_compare_style *style, const char *begin, const struct rp_buf *line, size_t indent, struct rp_buf *out);

/* The table as Markdown or text; `symbols` as in rp_grid_text. Releases it. */
void rp_compare_table(struct rp_grid *grid, const struct rp_compare_style *style, bool symbols, struct rp_buf *out);

#endif
