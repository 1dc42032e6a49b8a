/* SPDX-License-Identifier: MIT */
/* A mistyped -t is told when recording begins, not when it is over. */
#ifndef RP_CLI_THREAD_CHECK_H
#define RP_CLI_THREAD_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "cli/settings.h"

/* Looks for the thread of -t in processes that run. RP_NOTFOUND for what no thread will have: an id that no thread has now, a name longer than the kernel
 * keeps. A name that no thread has yet is a message only. Processes that are gone are left to the sampler, whose sentence is better. */
enum rp_status rp_thread_check(const struct rp_settings *settings, const uint32_t *pids, size_t npids, struct rp_err *err);

#endif
