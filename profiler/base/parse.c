/* SPDX-License-Identifier: MIT */
/* See parse.h. */
#include "base/parse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct rp_cursor rp_cursor_of(const char *text, size_t length)
{
    return (struct rp_cursor){text, text + length};
}

struct rp_cursor rp_cursor_str(const char *text)
{
    return rp_cursor_of(text, strlen(text));
}

bool rp_cursor_done(const struct rp_cursor *c)
{
    return c->at == c->end;
}

bool rp_cursor_take(struct rp_cursor *c, const char *literal)
{
    size_t length = strlen(literal);

    if ((size_t)(c->end - c->at) < length || memcmp(c->at, literal, length) != 0)
        return false;
    c->at += length;
    return true;
}

size_t rp_cursor_skip_blanks(struct rp_cursor *c)
{
    const char *start = c->at;

    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t'))
        c->at++;
    return (size_t)(c->at - start);
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 16;
}

static bool take_number(struct rp_cursor *c, unsigned base, uint64_t *value)
{
    const char *at = c->at;
    uint64_t sum = 0;

    for (; at < c->end && digit_of(*at) < (int)base; at++) {
        if (__builtin_mul_overflow(sum, (uint64_t)base, &sum) ||
            __builtin_add_overflow(sum, (uint64_t)digit_of(*at), &sum))
            return false;
    }
    if (at == c->at)
        return false;
    c->at = at;
    *value = sum;
    return true;
}

bool rp_cursor_u64(struct rp_cursor *c, uint64_t *value)
{
    return take_number(c, 10, value);
}

bool rp_cursor_hex(struct rp_cursor *c, uint64_t *value)
{
    return take_number(c, 16, value);
}

void rp_cursor_until(struct rp_cursor *c, char stop, const char **piece, size_t *length)
{
    const char *found = c->at == c->end ? NULL : memchr(c->at, stop, (size_t)(c->end - c->at));

    *piece = c->at;
    c->at = found ? found : c->end;
    *length = (size_t)(c->at - *piece);
}

bool rp_cursor_line(struct rp_cursor *c, const char **line, size_t *length)
{
    if (rp_cursor_done(c))
        return false;
    rp_cursor_until(c, '\n', line, length);
    if (c->at < c->end)
        c->at++;
    if (*length && (*line)[*length - 1] == '\r')
        (*length)--;
    return true;
}

bool rp_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
    struct rp_cursor c = rp_cursor_str(text);
    uint64_t v;

    if (!rp_cursor_u64(&c, &v) || !rp_cursor_done(&c) || v < min || v > max)
        return false;
    *value = v;
    return true;
}

/* strtod alone would take "inf", "nan", "0x1p3" and leading blanks. */
static bool looks_decimal(const char *text)
{
    return *text && text[strspn(text, "0123456789.eE+-")] == '\0' && strpbrk(text, "0123456789");
}

bool rp_parse_double(const char *text, double min, double max, double *value)
{
    char *end;
    double v;

    if (!looks_decimal(text))
        return false;
    errno = 0;
    v = strtod(text, &end);
    if (errno || *end || !isfinite(v) || v < min || v > max)
        return false;
    *value = v;
    return true;
}
