/* SPDX-License-Identifier: MIT */
/* Locks as text: which were waited for, and who held them meanwhile. */
#ifndef RP_REPORT_TEXT_LOCKS_H
#define RP_REPORT_TEXT_LOCKS_H

#include "report/report.h"

void rp_text_locks(const struct rp_report *report, struct rp_buf *out);
/* What a lock is called; for trees, too. */
void rp_text_lock_name(const struct rp_report *report, uint32_t row, size_t room, struct rp_buf *out);
/* Whether so few of its holders are known that what is said of them must say so. */
bool rp_text_holders_few(const struct rp_lock_row *row);

#endif
