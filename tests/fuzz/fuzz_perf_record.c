/* SPDX-License-Identifier: MIT */
/* Records of a perf ring. The first byte says whether samples carry a call chain; the rest is one record. The kernel writes these, but a layout that we
 * misread on some other kernel must end in RP_PERF_DAMAGED, never in a wild read. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sample/perf_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sum;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rp_perf_record record;
    uint8_t *copy;

    if (size < 9)
        return 0;
    copy = malloc(size - 1);
    if (!copy)
        return 0;
    memcpy(copy, data + 1, size - 1); /* its own block, so that a read behind it is seen */
    if (size - 1 <= UINT16_MAX && !(data[0] & 2)) { /* the right size, so that the fuzzer gets inside */
        uint16_t whole = (uint16_t)(size - 1);

        memcpy(copy + 6, &whole, sizeof whole);
    }
    if (rp_perf_record_parse(copy, size - 1, data[0] & 1, &record) == RP_PERF_EVENT) {
        const struct rp_snapshot *s = &record.event.u.sample;

        if (record.event.kind == RP_EVENT_SAMPLE) {
            for (uint32_t i = 0; i < s->stack_bytes; i++)
                sum += s->stack[i];
            for (uint32_t i = 0; i < s->nkernel; i++)
                sum += s->kernel[i];
        }
        if (record.event.kind == RP_EVENT_MMAP) {
            sum += strlen(record.event.u.mmap.path);
            if (record.event.u.mmap.end <= record.event.u.mmap.start)
                abort();
        }
        if (record.event.kind == RP_EVENT_COMM)
            sum += strlen(record.event.u.comm.comm);
    }
    free(copy);
    return 0;
}
