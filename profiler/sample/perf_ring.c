/* SPDX-License-Identifier: MIT */
/* See perf_ring.h.
 *
 *     base                    base + page
 *     [control page: head,tail][ data: 2^n pages, positions taken modulo their size ]
 *
 * The traps: head is written by another CPU, so it is read with acquire before the data, and tail is stored with release after the
 * data was used. A record may wrap. The owner is a dummy event on our own thread: were it a target's, poll would say "hung
 * up" for ever once that thread ended, and replacing events would take the buffer with it. */
#include "sample/perf_ring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/io.h"
#include "sample/perf_open.h"

enum { RECORD_MAX = 65536 };

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

int rp_perf_ring_open(struct rp_perf_ring *ring, int cpu)
{
    *ring = (struct rp_perf_ring){.cpu = cpu};
    ring->fd = rp_perf_open_owner(cpu);
    return ring->fd < 0 ? ring->fd : 0;
}

int rp_perf_ring_map(struct rp_perf_ring *ring, size_t pages)
{
    void *base;

    if (!ring->scratch)
        ring->scratch = rp_reallocarray(NULL, RECORD_MAX, 1);
    if (!ring->scratch)
        return -ENOMEM;
    base = mmap(NULL, (pages + 1) * page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
    if (base == MAP_FAILED)
        return -errno;
    ring->base = base;
    ring->data_bytes = pages * page_bytes();
    ring->head = ring->tail = 0;
    return 0;
}

void rp_perf_ring_unmap(struct rp_perf_ring *ring)
{
    if (ring->base)
        munmap(ring->base, ring->data_bytes + page_bytes());
    ring->base = NULL;
}

void rp_perf_ring_close(struct rp_perf_ring *ring)
{
    rp_perf_ring_unmap(ring);
    rp_close(&ring->fd);
    rp_free(ring->scratch);
    ring->scratch = NULL;
}

void rp_perf_ring_refresh(struct rp_perf_ring *ring)
{
    struct perf_event_mmap_page *control = ring->base;

    ring->head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
}

const void *rp_perf_ring_next(struct rp_perf_ring *ring, size_t *size, uint64_t *damaged)
{
    const uint8_t *data = (const uint8_t *)ring->base + page_bytes();
    size_t at = ring->tail & (ring->data_bytes - 1), first;
    struct perf_event_header header;

    if (ring->tail == ring->head)
        return NULL;
    /* Records are multiples of 8 bytes, so a header never wraps. */
    memcpy(&header, data + at, sizeof header);
    if (header.size < sizeof header || header.size % 8 || header.size > ring->head - ring->tail) {
        ++*damaged;
        rp_perf_ring_advance(ring, (size_t)(ring->head - ring->tail));
        return NULL;
    }
    *size = header.size;
    first = ring->data_bytes - at;
    if (first >= header.size)
        return data + at;
    memcpy(ring->scratch, data + at, first);
    memcpy(ring->scratch + first, data, header.size - first);
    return ring->scratch;
}

void rp_perf_ring_advance(struct rp_perf_ring *ring, size_t size)
{
    struct perf_event_mmap_page *control = ring->base;

    ring->tail += size;
    __atomic_store_n(&control->data_tail, ring->tail, __ATOMIC_RELEASE);
}
