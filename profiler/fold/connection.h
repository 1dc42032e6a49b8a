/* SPDX-License-Identifier: MIT */
/* Which SQLite connection a mutex belongs to, found by where the thread stands that waits for it. */
#ifndef RP_FOLD_CONNECTION_H
#define RP_FOLD_CONNECTION_H

#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "sample/snapshot.h"
#include "unwind/unwind.h"

/* Appends to `name` the file of the connection of the live process `pid` whose mutex is at `mutex`, or "connection at 0x…" where it has none; nothing when no
 * such connection is found. `walk` is that of `snapshot`, a thread in a call that waits for the mutex. A dozen system calls at most, and as many more as
 * there are pointers that lead nowhere, up to a bound. */
enum rp_status rp_connection_find(uint32_t pid, const struct rp_walk *walk, const struct rp_snapshot *snapshot, uint64_t mutex, struct rp_buf *name,
                                  struct rp_err *err);

#endif
