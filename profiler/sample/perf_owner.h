/* SPDX-License-Identifier: MIT */
/* Which event speaks for a thread on a CPU.
 *
 * A thread that is born while events are being opened may be covered twice: it inherits its parent's event and is then found in the list of threads. The
 * same goes for the moment in which events are replaced. Each record carries the id of the event as opened, so the first id seen for a
 * (CPU, thread) is taken and records of another are dropped, unless it belongs to a later generation of events: ids only grow. By its id a record also
 * tells what kind of event wrote it (struct rp_perf_ids). */
#ifndef RP_SAMPLE_PERF_OWNER_H
#define RP_SAMPLE_PERF_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define RP_PERF_ENDED UINT64_MAX

struct rp_perf_owner {
    uint64_t key; /* cpu << 32 | tid; 0: free (tid 0 is the idle thread, never a target) */
    uint64_t id;  /* 0: to be chosen again; RP_PERF_ENDED: so, but by the next thread of that number */
};

struct rp_perf_owners {
    struct rp_perf_owner *slots; /* open addressing; size is mask + 1 */
    uint32_t mask, n;
    uint64_t newest; /* ids from here on belong to the present generation of events */
};

enum rp_perf_verdict { RP_PERF_TAKE, RP_PERF_TWICE, RP_PERF_NOMEM };

/* Whether a record of event `id` on (cpu, tid) counts. TWICE: another event speaks for the thread, whose id goes to *other. */
enum rp_perf_verdict rp_perf_owners_ask(struct rp_perf_owners *owners, uint32_t cpu, uint32_t tid, uint64_t id, uint64_t *other);

/* Makes `id` the one for (cpu, tid) if that is known at all. */
void rp_perf_owners_set(struct rp_perf_owners *owners, uint32_t cpu, uint32_t tid, uint64_t id);
/* The thread began or became another by exec: choose again. */
void rp_perf_owners_forget(struct rp_perf_owners *owners, uint32_t ncpus, uint32_t tid);
/* The thread has ended. */
void rp_perf_owners_end(struct rp_perf_owners *owners, uint32_t ncpus, uint32_t tid);
/* Whether (cpu, tid) is a thread of which events told, and not that it ended. Samples of a CPU's own clock are of whoever runs: of threads between their end
 * and the very last instruction in the kernel, and of strangers under a number that a target had. */
bool rp_perf_owners_cover(const struct rp_perf_owners *owners, uint32_t cpu, uint32_t tid);
/* Records are missing, so any thread may have been replaced by one of the same number. */
void rp_perf_owners_forget_all(struct rp_perf_owners *owners);
void rp_perf_owners_release(struct rp_perf_owners *owners);

/* Ids of events of one kind, rising; rp_vec_release(&ids.at) frees it. */
struct rp_perf_ids {
    RP_VEC(uint64_t) at;
};

/* `id` is larger than all before: events that are opened later have larger ones. False: no memory. */
bool rp_perf_ids_add(struct rp_perf_ids *ids, uint64_t id);
bool rp_perf_ids_have(const struct rp_perf_ids *ids, uint64_t id);

#endif
