/* SPDX-License-Identifier: MIT */
/* What no rule claims, with the rule that would. */
#ifndef RP_REPORT_UNCLAIMED_H
#define RP_REPORT_UNCLAIMED_H

#include "report/report.h"

/* The pattern of a rule that claims a function: its key ("symbol", or "module" for code without names) and value, as the rule language reads it
 * (quoting not included). */
const char *rp_unclaimed_pattern(const struct rp_report *report, uint32_t function, struct rp_buf *value);
/* Such a rule needs `space: kernel`. */
bool rp_unclaimed_in_kernel(const struct rp_report *report, uint32_t function);

/* A rule file, ready to edit: rows as rules, figures as comments. */
void rp_unclaimed_text(const struct rp_report *report, struct rp_buf *out);

#endif
