/* SPDX-License-Identifier: MIT */
/* What only the comparing commands (diff, shapes) can be told. Part of struct rp_settings; zero is the default. */
#ifndef RP_CLI_COMPARE_SETTINGS_H
#define RP_CLI_COMPARE_SETTINGS_H

#include <stdbool.h>

#include "analyze/tally.h"
#include "base/vec.h"
#include "report/compare_report.h"

enum rp_compare_unit { RP_UNIT_ROWS, RP_UNIT_COLUMNS, RP_UNIT_VALUES };

struct rp_compare_settings {
    enum rp_tally_by by;
    bool by_given;
    RP_VEC(const char *) side_a, side_b; /* --a, --b */
    RP_VEC(double) rows, columns, calls_per_second;
    double fail_above; /* percent; used where fail_above_given */
    bool fail_above_given;
    enum rp_compare_unit unit;
    bool sort_by_row;
    enum rp_compare_form form;
};

void rp_compare_settings_release(struct rp_compare_settings *settings);

#endif
