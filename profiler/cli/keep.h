/* SPDX-License-Identifier: MIT */
/* Where a profile is kept. */
#ifndef RP_CLI_KEEP_H
#define RP_CLI_KEEP_H

#include <stdbool.h>

#include "base/status.h"
#include "model/profile.h"

/* Before the recording: can `path` be written at the end? RP_EXISTS, RP_IO, RP_PERM. */
enum rp_status rp_keep_check(const char *path, bool force, struct rp_err *err);

/* After it. When `path` fails all the same the profile goes beside it, or into the folder for temporary files; then the status is that of
 * `path`, and the sentence names the file where the profile is. */
enum rp_status rp_keep_save(const struct rp_profile *profile, const char *path, bool force, struct rp_err *err);

#endif
