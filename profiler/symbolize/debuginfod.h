/* SPDX-License-Identifier: MIT */
/* Debug files from a debuginfod server, only when the user asked for it. The library is loaded then, so that rowprof does not depend on it. */
#ifndef RP_SYMBOLIZE_DEBUGINFOD_H
#define RP_SYMBOLIZE_DEBUGINFOD_H

#include <stdint.h>

#include "base/status.h"

struct rp_debuginfod;

/* RP_NOTFOUND with the reason when libdebuginfod cannot be loaded or no server is configured. */
enum rp_status rp_debuginfod_new(struct rp_debuginfod **out, struct rp_err *err);
void rp_debuginfod_free(struct rp_debuginfod *d);

/* An open descriptor of the debug file of that build, or -1. May take as long as the download. */
int rp_debuginfod_find(struct rp_debuginfod *d, const uint8_t *build_id, uint8_t bytes);

#endif
