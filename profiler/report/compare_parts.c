/* SPDX-License-Identifier: MIT */
/* See compare_parts.h. */
#include "report/compare_parts.h"

#include <math.h>
#include <string.h>

#include "report/style.h"

#include "report/figures.h"

const char *rp_compare_name(const struct rp_tally_keys *keys, uint32_t key)
{
    return rp_intern_text(&keys->text, keys->keys.at[key].name);
}

const char *rp_compare_module(const struct rp_tally_keys *keys, uint32_t key)
{
    return rp_intern_text(&keys->text, keys->keys.at[key].module);
}

void rp_compare_share(struct rp_buf *out, double share, bool below)
{
    if (below)
        rp_buf_puts(out, "-");
    else
        rp_figure_put_percent(out, share);
}

/* A cell of what `text` holds; releases that. */
static void take_cell(struct rp_grid *grid, struct rp_buf *text)
{
    rp_grid_cell(grid, "%s", rp_buf_text(text));
    grid->failed |= text->failed;
    rp_buf_release(text);
}

void rp_compare_share_cell(struct rp_grid *grid, double share, bool below)
{
    struct rp_buf text = {0};

    rp_compare_share(&text, share, below);
    take_cell(grid, &text);
}

void rp_compare_number_cell(struct rp_grid *grid, double value, bool sign)
{
    struct rp_buf text = {0};

    rp_compare_number(&text, value, sign);
    take_cell(grid, &text);
}

void rp_compare_cost(struct rp_buf *out, const struct rp_cost *cost, const char *unit)
{
    rp_compare_number(out, cost->ns, false);
    rp_buf_printf(out, " ns per %s", unit);
    if (cost->variance > 0) {
        rp_buf_puts(out, " " RP_PLUS_MINUS);
        rp_compare_number(out, 1.96 * sqrt(cost->variance), false);
    }
}

void rp_compare_line(const struct rp_compare_style *style, const char *begin, const struct rp_buf *line, size_t indent, struct rp_buf *out)
{
    rp_buf_puts(out, begin);
    if (style->form == RP_FORM_TEXT && style->width) {
        rp_text_wrap(out, rp_buf_text(line), strlen(begin), indent, style->width);
    } else {
        rp_buf_puts(out, rp_buf_text(line));
        rp_buf_putc(out, '\n');
    }
    out->failed |= line->failed;
}

void rp_compare_table(struct rp_grid *grid, const struct rp_compare_style *style, bool symbols, struct rp_buf *out)
{
    if (style->form == RP_FORM_MARKDOWN)
        rp_grid_markdown(grid, out);
    else
        rp_grid_text(grid, style->width, symbols, style->verbose, out);
    rp_grid_release(grid);
}
