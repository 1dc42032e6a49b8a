/* SPDX-License-Identifier: MIT */
/* One record of a perf_event ring turned into an event: a pure function over bytes. */
#ifndef RP_SAMPLE_PERF_RECORD_H
#define RP_SAMPLE_PERF_RECORD_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "sample/sampler.h"

/* What every event of ours asks for; PERF_SAMPLE_CALLCHAIN besides when the kernel is visible. sample_id_all is always set, so other records
 * end in TID, TIME, IDENTIFIER. */
#define RP_PERF_SAMPLE_TYPE                                                                                            \
    ((uint64_t)(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER))

/* ax … ip and r8 … r15 in the kernel's numbering of registers. */
#define RP_PERF_REGS_MASK ((uint64_t)0xff01ff)

enum rp_perf_kind {
    RP_PERF_EVENT,    /* `event` is filled */
    RP_PERF_LOST,     /* `lost` records are missing here */
    RP_PERF_THROTTLE, /* the kernel holds an event back */
    RP_PERF_IGNORED,  /* of no use to us */
    RP_PERF_DAMAGED,  /* sizes in it contradict each other */
};

struct rp_perf_record {
    enum rp_perf_kind kind;
    uint64_t id;       /* of the event as opened (inherited ones report their parent's) */
    uint32_t by_tid;   /* the thread that ran when it was written (the parent, for a fork) */
    uint64_t lost;
    struct rp_event event; /* pointers go into the record, or to `kernel` */
    uint64_t kernel[RP_KERNEL_FRAMES_MAX];
};

/* `bytes` holds the whole record, header included: [bytes, + size), as the header's own size says. `callchain`: samples carry one. The weight of a
 * sample is left 0. Fills `record` in every case; returns its kind. */
enum rp_perf_kind rp_perf_record_parse(const void *bytes, size_t size, bool callchain, struct rp_perf_record *record);

#endif
