/* SPDX-License-Identifier: MIT */
/* What all backends have in common. */
#include <stdio.h>
#include <string.h>

#include "sample/sampler.h"

struct rp_image_key rp_event_image_key(const struct rp_event *e)
{
    return (struct rp_image_key){
        .pid = e->pid,
        .start = e->u.mmap.start,
        .end = e->u.mmap.end,
        .offset = e->u.mmap.offset,
        .dev = e->u.mmap.dev,
        .ino = e->u.mmap.ino,
        .path = e->u.mmap.path,
        .offline = e->u.mmap.offline,
        .build_id = e->u.mmap.build_id,
        .build_id_bytes = e->u.mmap.build_id_bytes,
    };
}

void rp_sampler_note(struct rp_sampler_stats *stats, const char *format, ...)
{
    size_t used = strlen(stats->note);
    va_list args;

    if (used && used + 1 < sizeof stats->note)
        stats->note[used++] = ' ';
    va_start(args, format);
    vsnprintf(stats->note + used, sizeof stats->note - used, format, args);
    va_end(args);
}
