/* SPDX-License-Identifier: MIT */
/* What the reader should know before believing the figures, and what to do about it. Only what is worth a line is noted. */
#ifndef RP_REPORT_NOTES_H
#define RP_REPORT_NOTES_H

#include "report/report.h"

/* Fills report->notes from the figures gathered before. RP_NOMEM only. */
enum rp_status rp_notes_gather(struct rp_report *report, struct rp_err *err);

#endif
