/* SPDX-License-Identifier: MIT */
/* The waiting side of the report for programs; keys in README.md. Nothing is written where waits were not measured. */
#ifndef RP_REPORT_JSON_WAITS_H
#define RP_REPORT_JSON_WAITS_H

#include "report/json_writer.h"
#include "report/report.h"

/* `time`, `waiting`, `locks`. */
void rp_json_waits(const struct rp_report *report, struct rp_json *w);
/* `wall`, with --clock wall. */
void rp_json_wall(const struct rp_report *report, struct rp_json *w);

#endif
