/* SPDX-License-Identifier: MIT */
/* Options as tables: what the parser reads, help prints, and tests/lint/docs.py holds against README.md. To add one: a row and its handler in
 * options.c (option_setters.h has the usual ones), a field in settings.h, a row in README.md. */
#ifndef RP_CLI_OPTIONS_H
#define RP_CLI_OPTIONS_H

#include <stddef.h>

#include "base/status.h"
#include "cli/settings.h"

struct rp_option {
    const char *name;     /* long form without its dashes */
    char letter;          /* short form; 0: none */
    const char *argument; /* how its value is called in help; NULL: a switch */
    const char *help;
    /* `value` is NULL for a switch. RP_USAGE with what was expected. */
    enum rp_status (*set)(struct rp_settings *settings, const char *value, struct rp_err *err);
};

/* Options that belong together, under one heading of the help. */
struct rp_option_group {
    const char *title;
    const struct rp_option *options; /* ends with a row without a name */
};

/* Handlers of compare_options.c for the tables of options.c. */
enum rp_status rp_compare_set_form(struct rp_settings *settings, const char *value, struct rp_err *err);

extern const struct rp_option_group rp_options_diff, rp_options_shapes, rp_options_compare_watch, rp_options_compare_output;
extern const struct rp_option_group rp_options_record, rp_options_launch, rp_options_keep, rp_options_show, rp_options_report, rp_options_rules,
    rp_options_check, rp_options_explain, rp_options_output, rp_options_common,
    rp_options_race, rp_options_verdict, rp_options_bench_output, rp_options_shape_check;

/* The defaults of bench, and what it holds (options_bench.c). */
void rp_bench_settings_init(struct rp_bench_settings *bench);
void rp_bench_settings_release(struct rp_bench_settings *bench);

#endif
