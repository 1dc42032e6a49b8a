/* SPDX-License-Identifier: MIT */
/* The buffer that the kernel fills and we empty, one per CPU. */
#ifndef RP_SAMPLE_PERF_RING_H
#define RP_SAMPLE_PERF_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_perf_ring {
    int cpu;
    int fd;           /* the event that owns the buffer; -1: none */
    void *base;       /* control page, then data; NULL: not mapped */
    size_t data_bytes; /* a power of two */
    uint64_t head, tail;
    uint8_t *scratch; /* a record that wraps is put together here */
};

/* Opens the owner (an event that counts nothing, on our own thread, so it never ends with a target). 0 or -errno. */
int rp_perf_ring_open(struct rp_perf_ring *ring, int cpu);

/* Maps `pages` data pages (a power of two). 0 or -errno (EPERM: the limit on locked memory). */
int rp_perf_ring_map(struct rp_perf_ring *ring, size_t pages);
void rp_perf_ring_unmap(struct rp_perf_ring *ring);
void rp_perf_ring_close(struct rp_perf_ring *ring);

/* Looks how far the kernel has come. */
void rp_perf_ring_refresh(struct rp_perf_ring *ring);

/* The next record up to the last refresh, NULL when there is none. Good until rp_perf_ring_advance. A damaged buffer is skipped as a whole and counted
 * into *damaged. */
const void *rp_perf_ring_next(struct rp_perf_ring *ring, size_t *size, uint64_t *damaged);
/* Gives the record's room back to the kernel. */
void rp_perf_ring_advance(struct rp_perf_ring *ring, size_t size);

#endif
