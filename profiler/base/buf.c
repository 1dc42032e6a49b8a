/* SPDX-License-Identifier: MIT */
/* See buf.h. */
#include "base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

static bool make_room(struct rp_buf *buf, size_t more)
{
    size_t need, room = buf->capacity ? buf->capacity : 64;
    char *grown;

    if (buf->failed || __builtin_add_overflow(buf->length, more, &need) || need == SIZE_MAX) {
        buf->failed = true;
        return false;
    }
    need++; /* the final NUL */
    if (need <= buf->capacity) {
        rp_move((void **)&buf->data, buf->capacity);
        return true;
    }
    while (room < need)
        room = room > SIZE_MAX / 2 ? need : room * 2;
    grown = rp_reallocarray(buf->data, room, 1);
    if (!grown) {
        buf->failed = true;
        return false;
    }
    buf->data = grown;
    buf->capacity = room;
    return true;
}

void rp_buf_append(struct rp_buf *buf, const void *bytes, size_t length)
{
    if (!length || !make_room(buf, length))
        return;
    memcpy(buf->data + buf->length, bytes, length);
    buf->length += length;
    buf->data[buf->length] = '\0';
}

void rp_buf_puts(struct rp_buf *buf, const char *text)
{
    rp_buf_append(buf, text, strlen(text));
}

void rp_buf_putc(struct rp_buf *buf, char c)
{
    rp_buf_append(buf, &c, 1);
}

void rp_buf_vprintf(struct rp_buf *buf, const char *format, va_list args)
{
    va_list again;
    int length;

    va_copy(again, args);
    length = vsnprintf(NULL, 0, format, args);
    if (length > 0 && make_room(buf, (size_t)length)) {
        vsnprintf(buf->data + buf->length, (size_t)length + 1, format, again);
        buf->length += (size_t)length;
    }
    va_end(again);
}

void rp_buf_printf(struct rp_buf *buf, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    rp_buf_vprintf(buf, format, args);
    va_end(args);
}

void rp_buf_fill(struct rp_buf *buf, char c, int count)
{
    if (count <= 0 || !make_room(buf, (size_t)count))
        return;
    memset(buf->data + buf->length, c, (size_t)count);
    buf->length += (size_t)count;
    buf->data[buf->length] = '\0';
}

const char *rp_buf_text(const struct rp_buf *buf)
{
    return buf->length ? buf->data : "";
}

void rp_buf_clear(struct rp_buf *buf)
{
    buf->length = 0;
    buf->failed = false;
}

void rp_buf_release(struct rp_buf *buf)
{
    rp_free(buf->data);
    *buf = (struct rp_buf){0};
}
