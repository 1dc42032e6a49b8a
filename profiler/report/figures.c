/* SPDX-License-Identifier: MIT */
/* See figures.h. The trap is rounding over a border: 999.7 µs is 1.00 ms, not 1000 µs. */
#include "report/figures.h"

#include <stdio.h>
#include <string.h>

#include "report/utf8.h"

void rp_figure_percent(char *to, size_t size, double share)
{
    double p = 100 * share;

    snprintf(to, size, p > 0 && p < 0.0095 ? "%.1g %%" : p > 0 && p < 0.095 ? "%.2f %%" : "%.1f %%", p);
}

void rp_figure_put_percent(struct rp_buf *out, double share)
{
    char text[32];

    rp_figure_percent(text, sizeof text, share);
    rp_buf_puts(out, text);
}

static void duration(char *to, size_t size, double seconds)
{
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "\xc2\xb5s"}, {1e-9, "ns"}};
    size_t i = 0;
    double value;

    if (!(seconds > 0)) {
        snprintf(to, size, "0 s");
        return;
    }
    while (i + 1 < sizeof units / sizeof *units && seconds < 0.9995 * units[i].unit)
        i++;
    value = seconds / units[i].unit;
    snprintf(to, size, "%.*f %s", value < 9.995 && i < 3 ? 2 : value < 99.95 && i < 3 ? 1 : 0, value, units[i].name);
}

void rp_figure_put_duration(struct rp_buf *out, double seconds)
{
    char text[32];

    duration(text, sizeof text, seconds);
    rp_buf_puts(out, text);
}

void rp_figure_right(struct rp_buf *out, const char *text, size_t columns)
{
    size_t wide = rp_text_columns(text, strlen(text));
    bool behind = out->length && out->data[out->length - 1] != '\n';

    rp_buf_fill(out, ' ', wide < columns ? (int)(columns - wide) : behind);
    rp_buf_puts(out, text);
}

void rp_figure_right_count(struct rp_buf *out, uint64_t n, size_t columns)
{
    struct rp_buf b = {0};

    rp_text_count(&b, n);
    rp_figure_right(out, rp_buf_text(&b), columns);
    out->failed |= b.failed;
    rp_buf_release(&b);
}

void rp_figure_right_duration(struct rp_buf *out, double seconds, size_t columns)
{
    char text[32];

    duration(text, sizeof text, seconds);
    rp_figure_right(out, text, columns);
}
