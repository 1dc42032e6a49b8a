/* SPDX-License-Identifier: MIT */
/* What the sampling thread hands to the reader: records in a ring of bytes, one writer, one reader, no lock.
 *
 *     writer: r = rp_queue_reserve(q, room); fill; rp_queue_commit(q, r);
 *     reader: while ((r = rp_queue_next(q))) { use; rp_queue_advance(q, r); }
 *
 * A record is never torn over the ring's end: what is left there is skipped. */
#ifndef RP_SAMPLE_PTRACE_QUEUE_H
#define RP_SAMPLE_PTRACE_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample/sampler.h"

struct rp_queue_record {
    uint32_t bytes; /* of the whole record, a multiple of 16; 0: nothing up to the ring's end */
    uint32_t extra; /* bytes used of `data` */
    struct rp_event event; /* pointers in it are set by the reader */
    uint8_t data[];        /* the stack of a sample, the name of a COMM */
};

struct rp_queue {
    uint8_t *ring;
    size_t size; /* a power of two */
    _Atomic uint64_t head, tail; /* bytes ever written, read */
};

/* Memory is used as it is first touched. False: there is none. */
bool rp_queue_init(struct rp_queue *q, size_t size);
void rp_queue_release(struct rp_queue *q);

/* Room for a record with `room` bytes of data; NULL when the reader is too far behind. Nothing else may be reserved before it is committed; to give it
 * up, do nothing. */
struct rp_queue_record *rp_queue_reserve(struct rp_queue *q, size_t room);
/* Hands it over; `extra` bytes of its data are used. */
void rp_queue_commit(struct rp_queue *q, struct rp_queue_record *record, size_t extra);

/* The oldest record, or NULL. */
struct rp_queue_record *rp_queue_next(struct rp_queue *q);
void rp_queue_advance(struct rp_queue *q, const struct rp_queue_record *record);

/* How much of the ring is in use. */
size_t rp_queue_used(struct rp_queue *q);

#endif
