/* SPDX-License-Identifier: MIT */
/* See text_columns.h. */
#include "report/text_columns.h"

#include "report/figures.h"
#include "report/style.h"
#include "report/utf8.h"

const double rp_text_payer_worth = 0.03;

size_t rp_text_keep_columns(const struct rp_report *r, const struct rp_text_column *all, size_t n, size_t name, bool *kept)
{
    size_t taken = RP_TEXT_NAME_GAP, gone = 0;

    for (size_t i = 0; i < n; i++) {
        kept[i] = true;
        taken += all[i].columns;
    }
    while (r->options.width && taken + name > r->options.width && gone < n) {
        size_t next = n;

        for (size_t i = 0; i < n; i++)
            if (kept[i] && all[i].drop && (next == n || all[i].drop > all[next].drop))
                next = i;
        if (next == n)
            break;
        kept[next] = false;
        taken -= all[next].columns;
        gone++;
    }
    return taken;
}

void rp_text_heads(const struct rp_report *r, const struct rp_text_column *all, size_t n, const bool *kept, const char *name, struct rp_buf *out)
{
    rp_buf_putc(out, '\n');
    rp_style_on(out, r->options.color, RP_STYLE_DIM);
    for (size_t i = 0; i < n; i++)
        if (kept[i])
            rp_figure_right(out, all[i].head, all[i].columns);
    rp_buf_fill(out, ' ', RP_TEXT_NAME_GAP);
    rp_buf_puts(out, name);
    rp_style_off(out, r->options.color);
    rp_buf_putc(out, '\n');
}

uint64_t rp_text_whole(double n)
{
    return n > 0 ? (uint64_t)(n + 0.5) : 0;
}

void rp_text_dim(const struct rp_report *r, const char *text, size_t column, struct rp_buf *out)
{
    rp_buf_fill(out, ' ', (int)column);
    rp_style_on(out, r->options.color, RP_STYLE_DIM);
    rp_text_wrap(out, text, column, column, r->options.width);
    rp_style_off(out, r->options.color);
}

void rp_text_tie(struct rp_buf *out, size_t from)
{
    for (size_t i = from; i < out->length; i++)
        out->data[i] = out->data[i] == ' ' ? RP_TEXT_TIE : out->data[i];
}
