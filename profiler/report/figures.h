/* SPDX-License-Identifier: MIT */
/* Figures as text: shares, counts, durations. A share that is not zero never reads 0.0 %, wide numbers are grouped, durations have three digits. */
#ifndef RP_REPORT_FIGURES_H
#define RP_REPORT_FIGURES_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* "20.4 %", or "0.03 %" where one digit would claim zero. */
void rp_figure_percent(char *to, size_t size, double share);
void rp_figure_put_percent(struct rp_buf *out, double share);

/* "4.51 s", "138 µs", "1.20 ms", "0 s". */
void rp_figure_put_duration(struct rp_buf *out, double seconds);

/* Right-aligned in `columns`. What fills them has a blank before it all the same, but at the beginning of a line. */
void rp_figure_right(struct rp_buf *out, const char *text, size_t columns);
void rp_figure_right_count(struct rp_buf *out, uint64_t n, size_t columns);
void rp_figure_right_duration(struct rp_buf *out, double seconds, size_t columns);

#endif
