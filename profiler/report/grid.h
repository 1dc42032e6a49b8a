/* SPDX-License-Identifier: MIT */
/* A table of texts, filled cell by cell and written in one of three ways. What a cell holds is the business of whoever fills it. */
#ifndef RP_REPORT_GRID_H
#define RP_REPORT_GRID_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/vec.h"

enum { RP_GRID_COLUMNS_MAX = 64 };
#define RP_GRID_PATH " < "

/* Zero is ready; columns first, then cells, row by row. Want of memory is told by the `out` of the writer. */
struct rp_grid {
    size_t columns;
    struct {
        const char *title; /* static, or to outlive the grid */
        bool right;
        unsigned drop; /* 0: never; else where lines are too wide for the last column, those of the highest go first, together */
    } column[RP_GRID_COLUMNS_MAX];
    RP_VEC(size_t) cells; /* where each begins in `text` */
    struct rp_buf text;
    bool failed;
};

void rp_grid_column(struct rp_grid *grid, const char *title, bool right);
/* The column added last can be missed. */
void rp_grid_may_drop(struct rp_grid *grid, unsigned order);
void rp_grid_cell(struct rp_grid *grid, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A cell of a text of unknown origin, made fit to print. */
void rp_grid_name(struct rp_grid *grid, const char *name);
void rp_grid_release(struct rp_grid *grid);

/* Columns padded, two blanks between; those that may be dropped are where a line would not fit `width` (0: no limit), then the last one is cut. `symbols`: it holds function
 * names, or paths of them (leaf first, parted by RP_GRID_PATH), which are cut at the root. */
void rp_grid_text(const struct rp_grid *grid, size_t width, bool symbols, bool verbose, struct rp_buf *out);
void rp_grid_markdown(const struct rp_grid *grid, struct rp_buf *out);
/* RFC 4180, with a header row. */
void rp_grid_csv(const struct rp_grid *grid, struct rp_buf *out);

#endif
