/* SPDX-License-Identifier: MIT */
/* Reads what snapshot_write.c wrote, or what someone says it did: files come in with bug reports, so nothing in them is believed. */
#include <string.h>
#include <sys/sysmacros.h>

#include "base/parse.h"
#include "sample/snapshot_file.h"
#include "sample/snapshot_record.h"

bool rp_snapshot_header_check(const uint8_t bytes[RP_SNAPSHOT_HEADER_BYTES])
{
    struct rp_snapshot_header header;

    _Static_assert(sizeof header == RP_SNAPSHOT_HEADER_BYTES, "size of the header");
    memcpy(&header, bytes, sizeof header);
    return memcmp(header.magic, RP_SNAPSHOT_MAGIC, sizeof header.magic) == 0 && header.version == RP_SNAPSHOT_VERSION && header.registers == RP_NREGS;
}

size_t rp_snapshot_record_bytes(const uint8_t head[8])
{
    uint32_t bytes;

    memcpy(&bytes, head, sizeof bytes);
    return bytes < sizeof(struct rp_record_head) || bytes > RP_SNAPSHOT_RECORD_MAX || bytes % 8 ? 0 : bytes;
}

/* `head`: the size of what comes before the registers. */
static bool parse_sample(const uint8_t *bytes, size_t size, size_t head, uint64_t *kernel, struct rp_snapshot *s)
{
    struct rp_record_sample record;
    const uint8_t *at = bytes + head;
    size_t need = head;

    if (size < head)
        return false;
    memcpy(&record, bytes, sizeof record);
    s->has_user = record.flags & RP_SAMPLE_HAS_USER;
    s->stack_cut = record.flags & RP_SAMPLE_CUT;
    s->sp_only = record.flags & RP_SAMPLE_SP_ONLY;
    s->weight_ns = record.weight_ns;
    if (record.nkernel > RP_KERNEL_FRAMES_MAX || record.stack_bytes > RP_STACK_COPY_MAX)
        return false;
    need += (s->has_user ? sizeof s->regs : 0) + record.nkernel * sizeof *kernel + record.stack_bytes;
    if (((need + 7) & ~(size_t)7) != size)
        return false;
    if (s->has_user) {
        memcpy(s->regs, at, sizeof s->regs);
        at += sizeof s->regs;
    }
    memcpy(kernel, at, record.nkernel * sizeof *kernel);
    at += record.nkernel * sizeof *kernel;
    s->kernel = record.nkernel ? kernel : NULL;
    s->nkernel = record.nkernel;
    s->stack = record.stack_bytes ? at : NULL;
    s->stack_bytes = record.stack_bytes;
    return true;
}

static bool parse_peek(const uint8_t *bytes, size_t size, uint64_t *kernel, struct rp_event *event)
{
    struct rp_record_peek record;

    event->kind = RP_EVENT_PEEK;
    if (!parse_sample(bytes, size, sizeof record, kernel, &event->u.peek.sample))
        return false;
    memcpy(&record, bytes, sizeof record);
    event->u.peek.at_switch = record.sample.flags & RP_SAMPLE_AT_SWITCH;
    event->u.peek.syscall = record.syscall < 0 || record.syscall > INT16_MAX ? -1 : (int)record.syscall;
    memcpy(event->u.peek.args, record.args, sizeof record.args);
    return true;
}

static bool parse_comm(const uint8_t *bytes, size_t size, struct rp_event *event)
{
    struct rp_record_comm record;

    if (size <= sizeof record)
        return false;
    memcpy(&record, bytes, sizeof record);
    if (record.length >= size - sizeof record || bytes[sizeof record + record.length])
        return false;
    event->kind = RP_EVENT_COMM;
    event->u.comm.comm = (const char *)bytes + sizeof record;
    event->u.comm.exec = record.exec != 0;
    return true;
}

/* FORK and SWITCH: two numbers behind the head. */
static bool parse_pair(const uint8_t *bytes, size_t size, uint32_t *first, uint32_t *second)
{
    if (size != sizeof(struct rp_record_fork))
        return false;
    memcpy(first, bytes + sizeof(struct rp_record_head), sizeof *first);
    memcpy(second, bytes + sizeof(struct rp_record_head) + sizeof *first, sizeof *second);
    return true;
}

bool rp_snapshot_record_parse(const uint8_t *bytes, size_t size, uint64_t kernel[RP_KERNEL_FRAMES_MAX], struct rp_event *event)
{
    struct rp_record_head head;
    uint32_t first, second;

    if (size < sizeof head || rp_snapshot_record_bytes(bytes) != size)
        return false;
    memcpy(&head, bytes, sizeof head);
    *event = (struct rp_event){.time_ns = head.time_ns, .pid = head.pid, .tid = head.tid};
    switch (head.kind) {
    case RP_RECORD_SAMPLE:
        event->kind = RP_EVENT_SAMPLE;
        return parse_sample(bytes, size, sizeof(struct rp_record_sample), kernel, &event->u.sample);
    case RP_RECORD_PEEK:
        return parse_peek(bytes, size, kernel, event);
    case RP_RECORD_COMM:
        return parse_comm(bytes, size, event);
    case RP_RECORD_FORK:
        event->kind = RP_EVENT_FORK;
        return parse_pair(bytes, size, &event->u.fork.parent_pid, &event->u.fork.parent_tid);
    case RP_RECORD_SWITCH:
        event->kind = RP_EVENT_SWITCH;
        if (!parse_pair(bytes, size, &first, &second))
            return false;
        event->u.sw.out = first != 0;
        event->u.sw.preempted = second != 0;
        return true;
    case RP_RECORD_EXIT:
        event->kind = RP_EVENT_EXIT;
        return true;
    default:
        return false;
    }
}

static bool take_word(struct rp_cursor *line, const char **word, size_t *length)
{
    rp_cursor_until(line, ' ', word, length);
    return *length && rp_cursor_take(line, " ");
}

/* Pairs of hexadecimal digits, or a dash for none. */
static bool take_build_id(struct rp_cursor *line, struct rp_snapshot_image *image)
{
    const char *word;
    size_t length;

    if (!take_word(line, &word, &length))
        return false;
    if (length == 1 && *word == '-')
        return true;
    if (length % 2 || length / 2 > sizeof image->build_id)
        return false;
    for (size_t i = 0; i < length; i += 2) {
        struct rp_cursor pair = rp_cursor_of(word + i, 2);
        uint64_t value;

        if (!rp_cursor_hex(&pair, &value) || !rp_cursor_done(&pair))
            return false;
        image->build_id[image->build_id_bytes++] = (uint8_t)value;
    }
    return true;
}

static bool parse_image(struct rp_cursor *line, struct rp_snapshot_image *image)
{
    uint64_t maj, min;
    const char *kind;
    size_t length;

    *image = (struct rp_snapshot_image){0};
    if (!rp_cursor_u64(line, &image->id) || !rp_cursor_take(line, " ") || !take_word(line, &kind, &length))
        return false;
    image->anonymous = length == 3 && memcmp(kind, "jit", 3) == 0;
    if (!rp_cursor_hex(line, &maj) || !rp_cursor_take(line, ":") || !rp_cursor_hex(line, &min) || !rp_cursor_take(line, " ") || maj > UINT32_MAX ||
        min > UINT32_MAX || !rp_cursor_u64(line, &image->ino) || !rp_cursor_take(line, " ") || !take_build_id(line, image) ||
        !take_word(line, &image->saved, &image->saved_length))
        return false;
    image->dev = makedev((unsigned)maj, (unsigned)min);
    if (memchr(image->saved, '/', image->saved_length)) /* a name in the directory, nothing outside it */
        return false;
    if (image->saved_length == 1 && *image->saved == '-')
        image->saved_length = 0;
    image->path = line->at;
    image->path_length = (size_t)(line->end - line->at);
    return !memchr(image->path, 0, image->path_length) && !memchr(image->saved, 0, image->saved_length);
}

static bool parse_map(struct rp_cursor *line, const struct rp_snapshot_maps *maps, struct rp_snapshot_map *map)
{
    uint64_t pid, image;

    if (!rp_cursor_u64(line, &map->time_ns) || !rp_cursor_take(line, " ") || !rp_cursor_u64(line, &pid) || !rp_cursor_take(line, " ") ||
        !rp_cursor_hex(line, &map->start) || !rp_cursor_take(line, "-") || !rp_cursor_hex(line, &map->end) || !rp_cursor_take(line, " ") ||
        !rp_cursor_hex(line, &map->offset) || !rp_cursor_take(line, " ") || !rp_cursor_u64(line, &image) || !rp_cursor_done(line))
        return false;
    if (pid > UINT32_MAX || map->start >= map->end)
        return false;
    map->pid = (uint32_t)pid;
    for (size_t i = maps->images.n; i-- > 0;) {
        if (maps->images.at[i].id == image) {
            map->image = (uint32_t)i;
            return true;
        }
    }
    return false;
}

/* RP_FORMAT without a text: the caller knows the line's number. */
static enum rp_status parse_line(struct rp_cursor *line, struct rp_snapshot_maps *maps, struct rp_err *err)
{
    if (rp_cursor_take(line, "image ")) {
        struct rp_snapshot_image image, *slot;

        if (!parse_image(line, &image))
            return RP_FORMAT;
        slot = rp_vec_add(&maps->images);
        if (!slot)
            return rp_fail_nomem(err);
        *slot = image;
        return RP_OK;
    }
    if (rp_cursor_take(line, "map ")) {
        struct rp_snapshot_map map, *slot;

        if (!parse_map(line, maps, &map))
            return RP_FORMAT;
        map.line = (uint32_t)maps->maps.n;
        slot = rp_vec_add(&maps->maps);
        if (!slot)
            return rp_fail_nomem(err);
        *slot = map;
        return RP_OK;
    }
    return RP_FORMAT;
}

enum rp_status rp_snapshot_maps_parse(const char *text, size_t length, struct rp_snapshot_maps *maps, struct rp_err *err)
{
    struct rp_cursor c = rp_cursor_of(text, length);
    const char *at;
    size_t bytes;
    unsigned number = 1;

    if (!rp_cursor_line(&c, &at, &bytes) || bytes != 18 || memcmp(at, "rowprof-snapshot 1", 18) != 0)
        return rp_fail(err, RP_FORMAT, "this is no snapshot of rowprof, or one of a later version: maps does not begin with \"rowprof-snapshot 1\"");
    while (rp_cursor_line(&c, &at, &bytes)) {
        struct rp_cursor line = rp_cursor_of(at, bytes);
        enum rp_status status;

        number++;
        status = parse_line(&line, maps, err);
        if (status == RP_FORMAT)
            return rp_fail(err, RP_FORMAT, "maps:%u: expected \"image ID KIND DEVICE INODE BUILDID SAVED PATH\" or \"map TIME PID START-END OFFSET ID\"",
                           number);
        if (status)
            return status;
    }
    return RP_OK;
}

void rp_snapshot_maps_release(struct rp_snapshot_maps *maps)
{
    rp_vec_release(&maps->images);
    rp_vec_release(&maps->maps);
}
