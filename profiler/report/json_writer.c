/* SPDX-License-Identifier: MIT */
/* See json_writer.h. Numbers are written in the C locale, which the program never leaves. */
#include "report/json_writer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/utf8.h"

static void new_line(struct rp_json *w)
{
    if (w->depth && w->level[w->depth - 1].inline_)
        return;
    rp_buf_putc(w->out, '\n');
    rp_buf_fill(w->out, ' ', (int)w->depth * 2);
}

/* What stands before a value or a key. */
static void before(struct rp_json *w)
{
    if (w->after_key) {
        w->after_key = false;
        return;
    }
    if (!w->depth)
        return;
    if (w->level[w->depth - 1].any)
        rp_buf_puts(w->out, w->level[w->depth - 1].inline_ ? ", " : ",");
    w->level[w->depth - 1].any = true;
    new_line(w);
}

static void begin(struct rp_json *w, char bracket, bool inline_)
{
    before(w);
    rp_buf_putc(w->out, bracket);
    if (w->depth == RP_JSON_DEPTH_MAX) {
        w->out->failed = true;
        return;
    }
    inline_ = inline_ || (w->depth && w->level[w->depth - 1].inline_);
    w->level[w->depth].close = bracket == '{' ? '}' : ']';
    w->level[w->depth].any = false;
    w->level[w->depth].inline_ = inline_;
    w->depth++;
}

void rp_json_begin(struct rp_json *w, char bracket)
{
    begin(w, bracket, false);
}

void rp_json_begin_inline(struct rp_json *w, char bracket)
{
    begin(w, bracket, true);
}

void rp_json_end(struct rp_json *w)
{
    bool any, inline_;

    if (!w->depth)
        return;
    any = w->level[w->depth - 1].any;
    inline_ = w->level[w->depth - 1].inline_;
    w->depth--;
    if (any && !inline_) {
        rp_buf_putc(w->out, '\n');
        rp_buf_fill(w->out, ' ', (int)w->depth * 2);
    }
    rp_buf_putc(w->out, w->level[w->depth].close);
    if (!w->depth)
        rp_buf_putc(w->out, '\n');
}

static void quoted(struct rp_buf *out, const char *text)
{
    struct rp_cursor c = rp_cursor_str(text);
    uint32_t code_point;

    rp_buf_putc(out, '"');
    while (!rp_cursor_done(&c)) {
        const char *start = c.at;

        if (!rp_utf8_next(&c, &code_point))
            rp_buf_puts(out, RP_REPLACEMENT);
        else if (code_point == '"' || code_point == '\\')
            rp_buf_printf(out, "\\%c", (int)code_point);
        else if (code_point < 0x20 || code_point == 0x7f || code_point == 0x2028 || code_point == 0x2029)
            rp_buf_printf(out, "\\u%04" PRIx32, code_point);
        else
            rp_buf_append(out, start, (size_t)(c.at - start));
    }
    rp_buf_putc(out, '"');
}

void rp_json_key(struct rp_json *w, const char *key)
{
    before(w);
    quoted(w->out, key);
    rp_buf_puts(w->out, ": ");
    w->after_key = true;
}

void rp_json_string(struct rp_json *w, const char *text)
{
    if (!text) {
        rp_json_null(w);
        return;
    }
    before(w);
    quoted(w->out, text);
}

void rp_json_u64(struct rp_json *w, uint64_t value)
{
    before(w);
    rp_buf_printf(w->out, "%" PRIu64, value);
}

void rp_json_double(struct rp_json *w, double value, int digits)
{
    before(w);
    if (isfinite(value))
        rp_buf_printf(w->out, "%.*f", digits, value);
    else
        rp_buf_puts(w->out, "null");
}

void rp_json_general(struct rp_json *w, double value, int digits)
{
    before(w);
    if (isfinite(value))
        rp_buf_printf(w->out, "%.*g", digits, value);
    else
        rp_buf_puts(w->out, "null");
}

void rp_json_bool(struct rp_json *w, bool value)
{
    before(w);
    rp_buf_puts(w->out, value ? "true" : "false");
}

void rp_json_null(struct rp_json *w)
{
    before(w);
    rp_buf_puts(w->out, "null");
}

void rp_json_key_string(struct rp_json *w, const char *key, const char *text)
{
    rp_json_key(w, key);
    rp_json_string(w, text);
}

void rp_json_key_u64(struct rp_json *w, const char *key, uint64_t value)
{
    rp_json_key(w, key);
    rp_json_u64(w, value);
}

void rp_json_key_double(struct rp_json *w, const char *key, double value, int digits)
{
    rp_json_key(w, key);
    rp_json_double(w, value, digits);
}

void rp_json_key_general(struct rp_json *w, const char *key, double value, int digits)
{
    rp_json_key(w, key);
    rp_json_general(w, value, digits);
}
