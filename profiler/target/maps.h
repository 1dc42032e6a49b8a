/* SPDX-License-Identifier: MIT */
/* One line of /proc/PID/maps at a time, as a pure function over text. */
#ifndef RP_TARGET_MAPS_H
#define RP_TARGET_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"

struct rp_maps_line {
    uint64_t start, end, offset; /* [start, end), never empty */
    uint64_t dev, ino;           /* dev as made by makedev() */
    bool read, exec;
    const char *path;            /* into the text, not terminated; "" when there is none */
    size_t path_length;
};

/* Takes the next well-formed line; false at the end of the text. Lines that are none (the kernel writes no such) are skipped. */
bool rp_maps_next(struct rp_cursor *text, struct rp_maps_line *line);

#endif
