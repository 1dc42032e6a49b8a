/* SPDX-License-Identifier: MIT */
/* What a launched command said of itself, as the profile keeps it: the words of its READY line, and the RATE lines that lie within the recording. */
#ifndef RP_CLI_SAID_H
#define RP_CLI_SAID_H

#include "base/status.h"
#include "cli/launch.h"
#include "model/profile.h"

/* Sampling lasted from `start_ns` to `end_ns` (rp_now_ns). Lines that are no more than words are passed over. RP_NOMEM only. */
enum rp_status rp_said_keep(const struct rp_said *said, size_t n, uint64_t start_ns, uint64_t end_ns, struct rp_profile *profile, struct rp_err *err);

/* Reads calls, rows, secs and cpu_secs out of a RATE line; `end_ns` is not set. False when calls, secs or cpu_secs is missing or not a number. */
bool rp_rate_parse(const char *line, struct rp_profile_rate *rate);

#endif
