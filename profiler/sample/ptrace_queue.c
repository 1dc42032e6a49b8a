/* SPDX-License-Identifier: MIT */
/* See ptrace_queue.h. */
#include "sample/ptrace_queue.h"

#include <sys/mman.h>

enum { ALIGN = 16 };

static size_t record_bytes(size_t extra)
{
    return (sizeof(struct rp_queue_record) + extra + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

bool rp_queue_init(struct rp_queue *q, size_t size)
{
    void *ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (ring == MAP_FAILED)
        return false;
    q->ring = ring;
    q->size = size;
    return true;
}

void rp_queue_release(struct rp_queue *q)
{
    if (q->ring)
        munmap(q->ring, q->size);
    q->ring = NULL;
}

static struct rp_queue_record *at(const struct rp_queue *q, uint64_t position)
{
    return (struct rp_queue_record *)(void *)(q->ring + (position & (q->size - 1)));
}

struct rp_queue_record *rp_queue_reserve(struct rp_queue *q, size_t room)
{
    uint64_t head = atomic_load_explicit(&q->head, memory_order_relaxed), tail = atomic_load_explicit(&q->tail, memory_order_acquire);
    size_t need = record_bytes(room), to_end = q->size - (size_t)(head & (q->size - 1)), skipped = to_end < need ? to_end : 0;

    if (q->size - (size_t)(head - tail) < need + skipped)
        return NULL;
    if (skipped) {
        at(q, head)->bytes = 0;
        atomic_store_explicit(&q->head, head + skipped, memory_order_release);
        head += skipped;
    }
    return at(q, head);
}

void rp_queue_commit(struct rp_queue *q, struct rp_queue_record *record, size_t extra)
{
    record->extra = (uint32_t)extra;
    record->bytes = (uint32_t)record_bytes(extra);
    atomic_fetch_add_explicit(&q->head, record->bytes, memory_order_release);
}

struct rp_queue_record *rp_queue_next(struct rp_queue *q)
{
    for (;;) {
        uint64_t tail = atomic_load_explicit(&q->tail, memory_order_relaxed);
        struct rp_queue_record *record = at(q, tail);

        if (atomic_load_explicit(&q->head, memory_order_acquire) == tail)
            return NULL;
        if (record->bytes)
            return record;
        atomic_store_explicit(&q->tail, tail + q->size - (size_t)(tail & (q->size - 1)), memory_order_release);
    }
}

void rp_queue_advance(struct rp_queue *q, const struct rp_queue_record *record)
{
    atomic_fetch_add_explicit(&q->tail, record->bytes, memory_order_release);
}

size_t rp_queue_used(struct rp_queue *q)
{
    return (size_t)(atomic_load_explicit(&q->head, memory_order_relaxed) - atomic_load_explicit(&q->tail, memory_order_relaxed));
}
