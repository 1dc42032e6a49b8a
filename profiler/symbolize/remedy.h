/* SPDX-License-Identifier: MIT */
/* What to install so that unnamed code of a file gets names. */
#ifndef RP_SYMBOLIZE_REMEDY_H
#define RP_SYMBOLIZE_REMEDY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Looks up which Debian package the file at `path` belongs to (in the root of process `pid`; 0: here) and appends the package with its debug
 * symbols: "libc6-dbg", "libsqlite3-0-dbgsym (from the debug archive)". False when that is not known for sure; then nothing is appended. */
bool rp_remedy_find(uint32_t pid, const char *path, struct rp_buf *out);

#endif
