/* SPDX-License-Identifier: MIT */
/* Both files of a saved snapshot: first byte 0: the text of maps; else records of samples.bin, one after the other. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sample/snapshot_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sum;

static void records(const uint8_t *data, size_t size)
{
    static uint64_t kernel[RP_KERNEL_FRAMES_MAX];
    struct rp_event event;

    while (size >= 8) {
        size_t bytes = rp_snapshot_record_bytes(data);
        uint8_t *copy;

        if (!bytes || bytes > size)
            return;
        copy = malloc(bytes);
        if (!copy)
            return;
        memcpy(copy, data, bytes);
        if (rp_snapshot_record_parse(copy, bytes, kernel, &event)) {
            if (event.kind == RP_EVENT_SAMPLE) {
                for (uint32_t i = 0; i < event.u.sample.stack_bytes; i++)
                    sum += event.u.sample.stack[i];
                for (uint32_t i = 0; i < event.u.sample.nkernel; i++)
                    sum += event.u.sample.kernel[i];
            }
            if (event.kind == RP_EVENT_PEEK) {
                for (uint32_t i = 0; i < event.u.peek.sample.stack_bytes; i++)
                    sum += event.u.peek.sample.stack[i];
                for (uint32_t i = 0; i < event.u.peek.sample.nkernel; i++)
                    sum += event.u.peek.sample.kernel[i];
                sum += event.u.peek.args[5];
            }
            if (event.kind == RP_EVENT_COMM)
                sum += strlen(event.u.comm.comm);
        }
        free(copy);
        data += bytes;
        size -= bytes;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_snapshot_maps maps = {0};
    struct rp_err err;

    if (!size)
        return 0;
    if (data[0]) {
        records(data + 1, size - 1);
        return 0;
    }
    if (rp_snapshot_maps_parse((const char *)data + 1, size - 1, &maps, &err) == RP_OK) {
        for (size_t i = 0; i < maps.maps.n; i++) {
            if (maps.maps.at[i].image >= maps.images.n || maps.maps.at[i].start >= maps.maps.at[i].end)
                abort();
        }
    }
    rp_snapshot_maps_release(&maps);
    return 0;
}
