/* SPDX-License-Identifier: MIT */
/* Decoding and widths, see utf8.h. The widths are a short table and not wcwidth(), which answers -1 for half of Unicode in the C locale. */
#include "report/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct range {
    uint32_t first, last;
};

static const struct range combining[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a}, {0x064b, 0x065f}, {0x0e31, 0x0e31},   {0x0e34, 0x0e3a},
    {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0x1f3fb, 0x1f3ff}, {0xe0100, 0xe01ef},
};

static const struct range wide[] = {
    {0x1100, 0x115f}, {0x231a, 0x231b}, {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
    {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1faff}, {0x20000, 0x3fffd},
};

/* C0, DEL, C1; zero-width and direction marks; line and paragraph separators; the byte order mark. */
static const struct range controls[] = {
    {0x0000, 0x001f}, {0x007f, 0x009f}, {0x061c, 0x061c}, {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
};

#define IN(ranges, c) in_ranges(ranges, sizeof(ranges) / sizeof *(ranges), c)

static bool in_ranges(const struct range *ranges, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n && ranges[i].first <= c; i++) {
        if (c <= ranges[i].last)
            return true;
    }
    return false;
}

bool rp_utf8_next(struct rp_cursor *c, uint32_t *code_point)
{
    static const uint32_t smallest[] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)c->at;
    size_t left = (size_t)(c->end - c->at);
    unsigned more = at[0] < 0x80 ? 0 : at[0] >= 0xc2 && at[0] <= 0xdf ? 1 : (at[0] & 0xf0) == 0xe0 ? 2 : at[0] >= 0xf0 && at[0] <= 0xf4 ? 3 : 4;
    uint32_t value;

    c->at++;
    if (more == 4 || more >= left)
        return false;
    value = more ? at[0] & (0x3fu >> more) : at[0];
    for (unsigned i = 1; i <= more; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return false;
        value = value << 6 | (at[i] & 0x3fu);
    }
    if (value < smallest[more] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
        return false;
    c->at += more;
    *code_point = value;
    return true;
}

bool rp_utf8_is_control(uint32_t code_point)
{
    return IN(controls, code_point);
}

unsigned rp_utf8_columns(uint32_t code_point)
{
    if (code_point < 0x300)
        return 1;
    return IN(combining, code_point) ? 0 : IN(wide, code_point) ? 2 : 1;
}

size_t rp_text_columns(const char *text, size_t length)
{
    struct rp_cursor c = rp_cursor_of(text, length);
    size_t columns = 0;
    uint32_t code_point;

    while (!rp_cursor_done(&c))
        columns += rp_utf8_next(&c, &code_point) && !rp_utf8_is_control(code_point) ? rp_utf8_columns(code_point) : 1;
    return columns;
}

void rp_text_clean(struct rp_buf *out, const char *text, size_t length)
{
    struct rp_cursor c = rp_cursor_of(text, length);
    uint32_t code_point;

    while (!rp_cursor_done(&c)) {
        const char *start = c.at;

        if (rp_utf8_next(&c, &code_point) && !rp_utf8_is_control(code_point))
            rp_buf_append(out, start, (size_t)(c.at - start));
        else
            rp_buf_puts(out, RP_REPLACEMENT);
    }
}

void rp_text_csv(struct rp_buf *out, const char *text)
{
    bool quoted = text[strcspn(text, ",\"")] || *text == ' ';
    struct rp_buf clean = {0};

    rp_text_clean(&clean, text, strlen(text));
    rp_buf_puts(out, quoted ? "\"" : "");
    for (const char *c = rp_buf_text(&clean); *c; c++) {
        if (*c == '"')
            rp_buf_putc(out, '"');
        rp_buf_putc(out, *c);
    }
    rp_buf_puts(out, quoted ? "\"" : "");
    out->failed |= clean.failed;
    rp_buf_release(&clean);
}

void rp_text_markdown(struct rp_buf *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("|\\<>*_`[]", *text))
            rp_buf_putc(out, '\\');
        rp_buf_putc(out, *text);
    }
}

void rp_text_count(struct rp_buf *out, uint64_t n)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, n);

    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            rp_buf_putc(out, ' ');
        rp_buf_putc(out, digits[i]);
    }
}
