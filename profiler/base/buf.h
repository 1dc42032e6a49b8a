/* SPDX-License-Identifier: MIT */
/* A string that grows. Failure is sticky: append without checking, ask `failed` once at the end.
 *
 *     struct rp_buf b = {0};
 *     rp_buf_printf(&b, "%u rows", n);
 *     if (b.failed) …
 *     use(rp_buf_text(&b));
 *     rp_buf_release(&b);
 */
#ifndef RP_BASE_BUF_H
#define RP_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Zero-initialised is empty and ready. `data` is NUL-terminated whenever length > 0; may hold NULs itself. */
struct rp_buf {
    char *data;
    size_t length, capacity;
    bool failed; /* an append found no memory; what was there before is intact */
};

void rp_buf_append(struct rp_buf *buf, const void *bytes, size_t length);
void rp_buf_puts(struct rp_buf *buf, const char *text);
void rp_buf_putc(struct rp_buf *buf, char c);
void rp_buf_printf(struct rp_buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void rp_buf_vprintf(struct rp_buf *buf, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
/* `count` times the byte `c`; a negative count is 0. */
void rp_buf_fill(struct rp_buf *buf, char c, int count);

/* The text, never NULL ("" when empty). Good until the next append. */
const char *rp_buf_text(const struct rp_buf *buf);

/* Keeps the memory, forgets content and failure. */
void rp_buf_clear(struct rp_buf *buf);
void rp_buf_release(struct rp_buf *buf);

#endif
