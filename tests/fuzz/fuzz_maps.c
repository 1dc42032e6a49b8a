/* SPDX-License-Identifier: MIT */
/* /proc/PID/maps holds paths that the target's owner chose. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "target/maps.h"
#include "target/space.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_cursor c = rp_cursor_of((const char *)data, size);
    struct rp_space space = {0};
    struct rp_maps_line line;
    struct rp_err err;

    while (rp_maps_next(&c, &line)) {
        struct rp_mapping m = {line.start, line.end, line.offset, (uint32_t)line.ino % 4};

        if (line.path_length && line.path + line.path_length > (const char *)data + size)
            abort();
        if (line.start >= line.end || rp_space_add(&space, &m, &err) != RP_OK)
            abort();
        if (rp_space_find(&space, line.start)->image != m.image)
            abort();
    }
    for (size_t i = 1; i < space.maps.n; i++) {
        if (space.maps.at[i - 1].end > space.maps.at[i].start)
            abort();
    }
    rp_space_release(&space);
    return 0;
}
