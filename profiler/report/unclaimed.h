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

/* The patterns of one rule for several functions of a module, as they are written in a file: `symbol: "f"`, `symbol: ["f", "g"]`; of code without names
 * `module: "libf.so"`, which claims the others, too. */
void rp_unclaimed_rule(const struct rp_report *report, const uint32_t *functions, size_t n, struct rp_buf *out);

/* A rule file, ready to edit: rows as rules, figures as comments. */
void rp_unclaimed_text(const struct rp_report *report, struct rp_buf *out);

#endif
