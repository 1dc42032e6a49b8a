/* SPDX-License-Identifier: MIT */
/* See space.h. The trap: a process with a JIT reports mappings by the thousand, mostly the same region with other rights; those
 * must not make the table grow, so equal neighbours are joined and known ones are left alone. */
#include "target/space.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/limits.h"
#include "target/maps.h"

/* Position of the first mapping that ends after `pc`. */
static size_t first_ending_after(const struct rp_space *space, uint64_t pc)
{
    size_t low = 0, high = space->maps.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (space->maps.at[middle].end <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whether bytes at `pc` would be the same thing seen through `a` and through `b`. */
static bool same_view(const struct rp_mapping *a, const struct rp_mapping *b)
{
    return a->image == b->image && a->offset - a->start == b->offset - b->start;
}

/* Leaves `before` mappings up to `at` alone, removes [at, at + gone), puts `nput` there instead. */
static bool splice(struct rp_space *space, size_t at, size_t gone, const struct rp_mapping *put, size_t nput)
{
    if (nput > gone && !rp_vec_reserve(&space->maps, nput - gone))
        return false;
    if (nput != gone)
        memmove(&space->maps.at[at + nput], &space->maps.at[at + gone], (space->maps.n - at - gone) * sizeof *put);
    memcpy(&space->maps.at[at], put, nput * sizeof *put);
    space->maps.n = space->maps.n - gone + nput;
    space->last = 0;
    return true;
}

enum rp_status rp_space_add(struct rp_space *space, const struct rp_mapping *mapping, struct rp_err *err)
{
    struct rp_mapping put[3], joined = *mapping;
    size_t at, end, n = 0;

    if (mapping->start >= mapping->end)
        return RP_OK;
    at = first_ending_after(space, mapping->start);
    if (at < space->maps.n && space->maps.at[at].start <= mapping->start && mapping->end <= space->maps.at[at].end &&
        same_view(&space->maps.at[at], mapping))
        return RP_OK;
    for (end = at; end < space->maps.n && space->maps.at[end].start < mapping->end;)
        end++;
    if (end > at && space->maps.at[at].start < mapping->start) {
        put[n] = space->maps.at[at];
        put[n++].end = mapping->start;
    } else if (at > 0 && space->maps.at[at - 1].end == mapping->start) {
        put[n++] = space->maps.at[--at];
    }
    if (n && same_view(&put[0], &joined)) {
        joined.start = put[0].start;
        joined.offset = put[0].offset;
        n = 0;
    }
    put[n++] = joined;
    if (end > at && space->maps.at[end - 1].end > mapping->end) {
        struct rp_mapping tail = space->maps.at[end - 1];

        tail.offset += mapping->end - tail.start;
        tail.start = mapping->end;
        if (same_view(&tail, &put[n - 1]))
            put[n - 1].end = tail.end;
        else
            put[n++] = tail;
    } else if (end < space->maps.n && space->maps.at[end].start == mapping->end && same_view(&space->maps.at[end], &joined)) {
        put[n - 1].end = space->maps.at[end++].end;
    }
    return splice(space, at, end - at, put, n) ? RP_OK : rp_fail_nomem(err);
}

const struct rp_mapping *rp_space_find(struct rp_space *space, uint64_t pc)
{
    size_t at = space->last;

    if (at < space->maps.n && pc >= space->maps.at[at].start && pc < space->maps.at[at].end)
        return &space->maps.at[at];
    at = first_ending_after(space, pc);
    if (at == space->maps.n || pc < space->maps.at[at].start)
        return NULL;
    space->last = (uint32_t)at;
    return &space->maps.at[at];
}

bool rp_space_resolve(struct rp_space *space, const struct rp_images *images, uint64_t pc, struct rp_address *where)
{
    const struct rp_mapping *mapping = rp_space_find(space, pc);
    const struct rp_image *image;

    if (!mapping || mapping->image >= images->at.n)
        return false;
    image = images->at.at[mapping->image];
    where->image = mapping->image;
    if (image->kind == RP_IMAGE_JIT || image->kind == RP_IMAGE_KERNEL) {
        where->addr = pc;
        return true;
    }
    return rp_image_offset_to_addr(image, pc - mapping->start + mapping->offset, &where->addr);
}

enum rp_status rp_space_map(struct rp_space *space, struct rp_images *images, const struct rp_image_key *key, struct rp_err *err)
{
    struct rp_mapping mapping = {key->start, key->end, key->offset, 0};
    enum rp_status status = rp_images_get(images, key, &mapping.image, err);

    if (status)
        return status;
    if (images->at.at[mapping.image]->kind == RP_IMAGE_JIT)
        mapping.offset = mapping.start; /* no file: its address is its offset, and neighbours join */
    return rp_space_add(space, &mapping, err);
}

static enum rp_status add_line(struct rp_space *space, struct rp_images *images, const struct rp_maps_line *line, struct rp_err *err)
{
    struct rp_image_key key = {
        .pid = space->pid, .start = line->start, .end = line->end, .offset = line->offset, .dev = line->dev, .ino = line->ino};
    char *path = rp_strndup(line->path, line->path_length);
    enum rp_status status;

    if (!path)
        return rp_fail_nomem(err);
    key.path = path;
    status = rp_space_map(space, images, &key, err);
    rp_free(path);
    return status;
}

/* A page that the kernel emulates: nothing ever runs there, and it would pass for JIT code. */
static bool is_vsyscall(const struct rp_maps_line *line)
{
    static const char name[] = "[vsyscall]";

    return line->path_length == sizeof name - 1 && memcmp(line->path, name, sizeof name - 1) == 0;
}

enum rp_status rp_space_read(struct rp_space *space, struct rp_images *images, struct rp_err *err)
{
    struct rp_buf text = {0};
    struct rp_maps_line line;
    struct rp_cursor c;
    enum rp_status status;
    char path[64];

    snprintf(path, sizeof path, "/proc/%u/maps", space->pid);
    status = rp_read_file(path, RP_FILE_MAX, &text, err);
    if (status == RP_IO && access(path, F_OK) != 0)
        status = rp_fail(err, RP_NOPROC, "process %u has ended; start it again and give its new pid", space->pid);
    else if (status == RP_PERM)
        rp_fail(err, RP_PERM,
                "the memory map of process %u (%s) may not be read: it belongs to another user or is marked as not dumpable; run rowprof as "
                "its user, or with CAP_SYS_PTRACE",
                space->pid, path);
    if (status)
        goto done;
    rp_vec_clear(&space->maps);
    space->last = 0;
    c = rp_cursor_of(rp_buf_text(&text), text.length);
    while (!status && rp_maps_next(&c, &line)) {
        if (line.exec && !is_vsyscall(&line))
            status = add_line(space, images, &line, err);
    }
done:
    rp_buf_release(&text);
    return status;
}

void rp_space_release(struct rp_space *space)
{
    rp_vec_release(&space->maps);
    *space = (struct rp_space){0};
}
