/* SPDX-License-Identifier: MIT */
/* See style.h. 256-colour numbers that are readable on black and on white. */
#include "report/style.h"

#include <string.h>

#include "base/parse.h"
#include "report/utf8.h"

enum { NAME_LEAST = 12, DEFAULT_WIDTH = 100 };

static const char *const codes[] = {[RP_STYLE_BOLD] = "\x1b[1m", [RP_STYLE_DIM] = "\x1b[2m", [RP_STYLE_WARN] = "\x1b[33m"};

static const struct {
    const char *name;
    unsigned code;
} palette[] = {
    {"red", 167}, {"orange", 172}, {"yellow", 178}, {"green", 71},  {"aqua", 37},
    {"blue", 69}, {"purple", 134}, {"pink", 169},   {"brown", 137}, {"gray", 245},
};

void rp_style_on(struct rp_buf *out, bool color, enum rp_style style)
{
    if (color)
        rp_buf_puts(out, codes[style]);
}

void rp_style_color(struct rp_buf *out, bool color, const char *name)
{
    struct rp_cursor c;
    uint64_t rgb;

    if (!color || !name)
        return;
    c = rp_cursor_str(name);
    if (rp_cursor_take(&c, "#") && c.end - c.at == 6 && rp_cursor_hex(&c, &rgb) && rp_cursor_done(&c)) {
        rp_buf_printf(out, "\x1b[38;2;%u;%u;%um", (unsigned)(rgb >> 16), (unsigned)(rgb >> 8) & 255, (unsigned)rgb & 255);
        return;
    }
    for (size_t i = 0; i < sizeof palette / sizeof *palette; i++) {
        if (!strcmp(palette[i].name, name))
            rp_buf_printf(out, "\x1b[38;5;%um", palette[i].code);
    }
}

void rp_style_off(struct rp_buf *out, bool color)
{
    if (color)
        rp_buf_puts(out, "\x1b[0m");
}

/* Bytes of the next piece that is not broken. */
static size_t word_length(const char *text)
{
    size_t length = strcspn(text, " ");

    while (text[length] && text[length + 1] == '%')
        length += 1 + strcspn(text + length + 1, " ");
    return length;
}

static void put_word(struct rp_buf *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        rp_buf_putc(out, text[i] == RP_TEXT_TIE ? ' ' : text[i]);
}

void rp_text_wrap(struct rp_buf *out, const char *text, size_t column, size_t indent, size_t width)
{
    size_t at = column;

    width = width ? width : DEFAULT_WIDTH;
    while (*text) {
        size_t length = word_length(text), columns = rp_text_columns(text, length);

        if (at > indent && at + (at > column) + columns > width) {
            rp_buf_putc(out, '\n');
            rp_buf_fill(out, ' ', (int)indent);
            at = column = indent;
        }
        if (at > column) {
            rp_buf_putc(out, ' ');
            at++;
        }
        put_word(out, text, length);
        at += columns;
        text += length;
        text += strspn(text, " ");
    }
    rp_buf_putc(out, '\n');
}

size_t rp_text_room(size_t width, size_t taken)
{
    return !width ? 0 : width > taken + NAME_LEAST ? width - taken : NAME_LEAST;
}
