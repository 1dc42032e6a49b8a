/* SPDX-License-Identifier: MIT */
/* One call tree as text. */
#ifndef RP_REPORT_TEXT_TREE_H
#define RP_REPORT_TEXT_TREE_H

#include "report/report.h"

void rp_text_tree(const struct rp_report *report, const struct rp_report_tree *tree, struct rp_buf *out);

#endif
