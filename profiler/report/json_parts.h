/* SPDX-License-Identifier: MIT */
/* Parts that the reports for programs have in common, so that the same key means the same in each. Keys are in README.md. */
#ifndef RP_REPORT_JSON_PARTS_H
#define RP_REPORT_JSON_PARTS_H

#include "report/json_writer.h"
#include "report/report.h"

/* Digits after the point; numbers of waits may be estimates, so they have one. */
enum { RP_JSON_SHARE_DIGITS = 6, RP_JSON_SECONDS_DIGITS = 6, RP_JSON_WAITS_DIGITS = 1 };

/* `key` with the id of the category. */
void rp_json_key_category(struct rp_json *w, const char *key, const struct rp_report *report, uint32_t category);

/* The keys "share", "low" and "high" of an object that is begun. */
void rp_json_interval(struct rp_json *w, double share, double low, double high);

/* The key "notes". */
void rp_json_notes(struct rp_json *w, const struct rp_note *notes, size_t n);

#endif
