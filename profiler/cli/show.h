/* SPDX-License-Identifier: MIT */
/* From a profile to the printed report: rules, category names, view, report. Shared by the commands that show one. */
#ifndef RP_CLI_SHOW_H
#define RP_CLI_SHOW_H

#include "base/status.h"
#include "cli/settings.h"

/* The rules of --rules and the shipped ones, finished. RP_USAGE: every problem has been told on stderr. Free with cat_rules_free. */
enum rp_status rp_rules_open(const struct rp_settings *settings, struct cat_rules **out, struct rp_err *err);

/* A category by id, name, or the beginning of either, in any case. RP_USAGE: none or several; says which there are. */
enum rp_status rp_category_find(const struct cat_rules *rules, const char *name, uint32_t *category, struct rp_err *err);

/* What can be refused before a recording begins: options that contradict, an unknown category. */
enum rp_status rp_show_check(const struct rp_settings *settings, const struct cat_rules *rules, struct rp_err *err);

/* Prints the report on stdout. `file`: where the profile is kept, or NULL. RP_NOTHING: it was printed, but there was neither a sample nor a wait that is not
 * idle. */
enum rp_status rp_show(const struct rp_settings *settings, const struct cat_rules *rules, const struct rp_profile *profile, const char *file,
                       struct rp_err *err);

/* The same judgement without printing anything: RP_NOTHING when a report of all threads would be empty. */
enum rp_status rp_show_any(const struct cat_rules *rules, const struct rp_profile *profile, const char *file, struct rp_err *err);

#endif
