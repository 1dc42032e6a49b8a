/* SPDX-License-Identifier: MIT */
/* See grid.h. Widths are columns of a terminal, not bytes: signs such as the arrows take three bytes and one column. */
#include "report/grid.h"

#include <stdint.h>
#include <string.h>

#include "report/utf8.h"

enum { LAST_LEAST = 20, GAP = 2 };

#define DROPPED SIZE_MAX

void rp_grid_column(struct rp_grid *grid, const char *title, bool right)
{
    if (grid->columns == RP_GRID_COLUMNS_MAX) {
        grid->failed = true;
        return;
    }
    grid->column[grid->columns].title = title;
    grid->column[grid->columns++].right = right;
}

void rp_grid_may_drop(struct rp_grid *grid, unsigned order)
{
    if (grid->columns)
        grid->column[grid->columns - 1].drop = order;
}

static bool begin_cell(struct rp_grid *grid)
{
    size_t *at = rp_vec_add(&grid->cells);

    if (at)
        *at = grid->text.length;
    else
        grid->failed = true;
    return at != NULL;
}

void rp_grid_cell(struct rp_grid *grid, const char *format, ...)
{
    va_list args;

    if (!begin_cell(grid))
        return;
    va_start(args, format);
    rp_buf_vprintf(&grid->text, format, args);
    va_end(args);
    rp_buf_putc(&grid->text, '\0');
}

void rp_grid_name(struct rp_grid *grid, const char *name)
{
    if (!begin_cell(grid))
        return;
    rp_text_clean(&grid->text, name, strlen(name));
    rp_buf_putc(&grid->text, '\0');
}

void rp_grid_release(struct rp_grid *grid)
{
    rp_vec_release(&grid->cells);
    rp_buf_release(&grid->text);
}

static bool usable(const struct rp_grid *grid, struct rp_buf *out)
{
    out->failed |= grid->failed || grid->text.failed;
    return !out->failed && grid->columns;
}

static const char *cell(const struct rp_grid *grid, size_t row, size_t column)
{
    return rp_buf_text(&grid->text) + grid->cells.at[row * grid->columns + column];
}

static size_t wide(const char *text)
{
    return rp_text_columns(text, strlen(text));
}

static void put(struct rp_buf *out, const char *text, size_t columns, bool right, bool last)
{
    size_t w = wide(text);
    int fill = w < columns ? (int)(columns - w) : 0;

    rp_buf_fill(out, ' ', right ? fill : 0);
    rp_buf_puts(out, text);
    rp_buf_fill(out, ' ', right || last ? 0 : fill);
}

/* As much of a path as there is room for, and at least its leaf. */
static void put_path(struct rp_buf *out, const char *text, size_t room)
{
    static const char mark[] = RP_GRID_PATH "\xe2\x80\xa6";
    struct rp_buf path = {0}, frame = {0}, name = {0};
    const char *end;

    for (bool first = true; text; first = false, text = end ? end + strlen(RP_GRID_PATH) : NULL) {
        end = strstr(text, RP_GRID_PATH);
        rp_buf_clear(&name);
        rp_buf_clear(&frame);
        rp_buf_append(&name, text, end ? (size_t)(end - text) : strlen(text));
        rp_buf_puts(&frame, first ? "" : RP_GRID_PATH);
        rp_text_symbol(&frame, rp_buf_text(&name), !first || !room ? 0 : end ? room - wide(mark) : room, false);
        if (!first && room && wide(rp_buf_text(&path)) + wide(rp_buf_text(&frame)) + (end ? wide(mark) : 0) > room) {
            rp_buf_puts(&path, mark);
            break;
        }
        rp_buf_puts(&path, rp_buf_text(&frame));
    }
    rp_buf_puts(out, rp_buf_text(&path));
    out->failed |= path.failed || frame.failed || name.failed;
    rp_buf_release(&path);
    rp_buf_release(&frame);
    rp_buf_release(&name);
}

static void put_last(struct rp_buf *out, const char *text, size_t room, bool symbols, bool verbose)
{
    if (symbols && !verbose && strstr(text, RP_GRID_PATH))
        put_path(out, text, room);
    else if (symbols)
        rp_text_symbol(out, text, verbose ? 0 : room, verbose);
    else if (room && !verbose)
        rp_text_fit(out, text, room);
    else
        rp_buf_puts(out, text);
}

/* Widths of all columns, DROPPED for some; gives what those before the last take. */
static size_t measure(const struct rp_grid *grid, size_t rows, size_t width, size_t *columns)
{
    size_t taken = 0;
    unsigned drop = 0;

    for (size_t c = 0; c < grid->columns; c++) {
        columns[c] = wide(grid->column[c].title);
        for (size_t r = 0; r < rows; r++)
            if (wide(cell(grid, r, c)) > columns[c])
                columns[c] = wide(cell(grid, r, c));
        taken += c + 1 < grid->columns ? columns[c] + GAP : 0;
        drop = grid->column[c].drop > drop ? grid->column[c].drop : drop;
    }
    for (; width && drop && taken + LAST_LEAST > width; drop--) {
        for (size_t c = 0; c < grid->columns; c++) {
            if (grid->column[c].drop == drop) {
                taken -= columns[c] + GAP;
                columns[c] = DROPPED;
            }
        }
    }
    return taken;
}

void rp_grid_text(const struct rp_grid *grid, size_t width, bool symbols, bool verbose, struct rp_buf *out)
{
    size_t columns[RP_GRID_COLUMNS_MAX], rows, taken, room;

    if (!usable(grid, out))
        return;
    rows = grid->cells.n / grid->columns;
    taken = measure(grid, rows, verbose ? 0 : width, columns);
    room = !width ? 0 : width > taken + LAST_LEAST ? width - taken : LAST_LEAST;
    for (size_t r = 0; r <= rows; r++) {
        const char *gap = "";

        for (size_t c = 0; c < grid->columns; c++) {
            bool last = c + 1 == grid->columns;
            const char *text = r ? cell(grid, r - 1, c) : grid->column[c].title;

            if (columns[c] == DROPPED)
                continue;
            rp_buf_puts(out, gap);
            gap = "  ";
            if (last && r && !grid->column[c].right)
                put_last(out, text, room, symbols, verbose);
            else
                put(out, text, columns[c], grid->column[c].right, last);
        }
        rp_buf_putc(out, '\n');
    }
}

void rp_grid_markdown(const struct rp_grid *grid, struct rp_buf *out)
{
    size_t rows;

    if (!usable(grid, out))
        return;
    rows = grid->cells.n / grid->columns;
    for (size_t r = 0; r <= rows + 1; r++) {
        rp_buf_putc(out, '|');
        for (size_t c = 0; c < grid->columns; c++) {
            if (r == 1) {
                rp_buf_puts(out, grid->column[c].right ? "---:|" : "---|");
                continue;
            }
            rp_buf_putc(out, ' ');
            rp_text_markdown(out, r ? cell(grid, r - 2, c) : grid->column[c].title);
            rp_buf_puts(out, " |");
        }
        rp_buf_putc(out, '\n');
    }
}

void rp_grid_csv(const struct rp_grid *grid, struct rp_buf *out)
{
    size_t rows;

    if (!usable(grid, out))
        return;
    rows = grid->cells.n / grid->columns;
    for (size_t r = 0; r <= rows; r++) {
        for (size_t c = 0; c < grid->columns; c++) {
            rp_buf_puts(out, c ? "," : "");
            rp_text_csv(out, r ? cell(grid, r - 1, c) : grid->column[c].title);
        }
        rp_buf_puts(out, "\r\n");
    }
}
