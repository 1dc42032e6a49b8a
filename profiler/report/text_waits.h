/* SPDX-License-Identifier: MIT */
/* The waiting side of the report as text: how the time divides, what was waited for, what was dropped as idle, threads, one function. */
#ifndef RP_REPORT_TEXT_WAITS_H
#define RP_REPORT_TEXT_WAITS_H

#include "report/report.h"

/* One line of the header: CPUs used, and how the wall time of all threads divides. */
void rp_text_time(const struct rp_report *report, struct rp_buf *out);
void rp_text_waiting(const struct rp_report *report, struct rp_buf *out);
void rp_text_idle(const struct rp_report *report, struct rp_buf *out);
void rp_text_threads(const struct rp_report *report, struct rp_buf *out);
void rp_text_function(const struct rp_report *report, struct rp_buf *out);
/* Shares on the wall clock, in place of the shares of samples. */
void rp_text_wall(const struct rp_report *report, struct rp_buf *out);

/* A thread with its id, and that of its process where there are several; it begins at `column`. */
void rp_text_thread_name(const struct rp_report *report, uint32_t thread, size_t column, struct rp_buf *out);
/* A function with its module, as long as there is room for that. */
void rp_text_function_name(const struct rp_report *report, uint32_t function, size_t room, struct rp_buf *out);

#endif
