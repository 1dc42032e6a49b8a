/* SPDX-License-Identifier: MIT */
/* See maps.h. The trap: the path is whatever the target's owner called the file, blanks and brackets included; only a newline is
 * escaped (as \012). It is the rest of the line after the blanks behind the inode, and nothing in it may be looked into. */
#include "target/maps.h"

#include <string.h>
#include <sys/sysmacros.h>

static bool take_flags(struct rp_cursor *c, struct rp_maps_line *line)
{
    const char *flags;
    size_t length;

    rp_cursor_until(c, ' ', &flags, &length);
    if (length < 4)
        return false;
    line->read = flags[0] == 'r';
    line->exec = flags[2] == 'x';
    return true;
}

static bool take_device(struct rp_cursor *c, struct rp_maps_line *line)
{
    uint64_t major, minor;

    if (!rp_cursor_hex(c, &major) || !rp_cursor_take(c, ":") || !rp_cursor_hex(c, &minor) || major > UINT32_MAX || minor > UINT32_MAX)
        return false;
    line->dev = makedev((unsigned)major, (unsigned)minor);
    return true;
}

static bool parse_line(struct rp_cursor *c, struct rp_maps_line *line)
{
    if (!rp_cursor_hex(c, &line->start) || !rp_cursor_take(c, "-") || !rp_cursor_hex(c, &line->end) || line->start >= line->end)
        return false;
    if (!rp_cursor_take(c, " ") || !take_flags(c, line) || !rp_cursor_take(c, " "))
        return false;
    if (!rp_cursor_hex(c, &line->offset) || !rp_cursor_take(c, " ") || !take_device(c, line) || !rp_cursor_take(c, " "))
        return false;
    if (!rp_cursor_u64(c, &line->ino) || (!rp_cursor_done(c) && !rp_cursor_skip_blanks(c)))
        return false;
    line->path = c->at;
    line->path_length = (size_t)(c->end - c->at);
    return true;
}

bool rp_maps_next(struct rp_cursor *text, struct rp_maps_line *line)
{
    const char *at;
    size_t length;

    while (rp_cursor_line(text, &at, &length)) {
        struct rp_cursor c = rp_cursor_of(at, length);

        if (parse_line(&c, line))
            return true;
    }
    return false;
}
