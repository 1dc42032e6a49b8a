/* SPDX-License-Identifier: MIT */
/* Profiles to be compared: loaded from files, or one recorded now, each with its view. */
#ifndef RP_CLI_SIDES_H
#define RP_CLI_SIDES_H

#include <stdbool.h>
#include <stddef.h>

#include "analyze/view.h"
#include "base/status.h"
#include "cli/settings.h"

enum { RP_PROFILES_MAX = 128 };

struct rp_loaded {
    char *path; /* owned */
    struct rp_profile profile;
    struct rp_view *view;
    bool has_profile;
};

/* Zero is ready. */
struct rp_loads {
    struct rp_loaded *at[RP_PROFILES_MAX]; /* profiles do not move: views point at them */
    size_t n;
};

/* RP_USAGE when a file is there already: one run is one observation. Loads one file, or each of a list parted by commas (a file whose name holds the comma comes first). RP_NOTHING: there is no sample in it. */
enum rp_status rp_loads_add(struct rp_loads *loads, const char *word, const struct rp_settings *settings, const struct cat_rules *rules,
                            struct rp_err *err);
/* Records the processes of settings->pids for settings->seconds. */
enum rp_status rp_loads_record(struct rp_loads *loads, const struct rp_settings *settings, const struct cat_rules *rules, struct rp_err *err);
void rp_loads_release(struct rp_loads *loads);

/* Both name one file. */
bool rp_same_file(const char *a, const char *b);

#endif
