/* SPDX-License-Identifier: MIT */
/* Who slept with a lock that others waited for. Idle is waiting for work: whoever keeps others from working is not idle, whatever call it sleeps in.
 *
 *     rp_wait_sleepers_find(profile, &sleepers, err);   struct is zero before
 *     if (rp_wait_sleepers_hold(profile, &sleepers, comm, node)) …
 *     rp_vec_release(&sleepers.at);
 */
#ifndef RP_ANALYZE_WAIT_SLEEPERS_H
#define RP_ANALYZE_WAIT_SLEEPERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/vec.h"
#include "model/profile.h"

/* Threads of one name that were seen blocked with one stack while they held a lock. */
struct rp_wait_sleeper {
    uint32_t comm, node; /* without kernel frames */
    double waited_ns;    /* that others waited meanwhile, as far as holders are known scaled up to all waits for those locks */
    double slept_ns;     /* in all their waits with that stack */
};
struct rp_wait_sleepers {
    RP_VEC(struct rp_wait_sleeper) at; /* by name and node */
};

enum rp_status rp_wait_sleepers_find(const struct rp_profile *profile, struct rp_wait_sleepers *sleepers, struct rp_err *err);

/* Whether the waits of threads of that name with that stack were spent holding a lock: others waited for it at least half as long as they lasted. */
bool rp_wait_sleepers_hold(const struct rp_profile *profile, const struct rp_wait_sleepers *sleepers, uint32_t comm, uint32_t node);

#endif
