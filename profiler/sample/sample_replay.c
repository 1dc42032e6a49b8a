/* SPDX-License-Identifier: MIT */
/* The replay backend: saved snapshots come out of the same door as live ones. Mappings come before the first event that is as old as
 * they are; everything is there at once, so the first drain gives it all. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/io.h"
#include "sample/snapshot_file.h"

struct replay_sampler {
    struct rp_sampler base;
    char *dir;
    int fd;
    struct rp_buf maps_text;
    struct rp_snapshot_maps maps;
    size_t next_map;
    uint64_t position; /* in samples.bin */
    uint8_t *record;
    uint64_t *kernel;
    bool done;
    struct rp_sampler_stats stats;
};

static struct replay_sampler *of(struct rp_sampler *base)
{
    return (struct replay_sampler *)base;
}

static int map_by_time(const void *a, const void *b)
{
    const struct rp_snapshot_map *x = a, *y = b;

    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static enum rp_status replay_start(struct rp_sampler *base, struct rp_err *err)
{
    struct replay_sampler *s = of(base);
    uint8_t header[RP_SNAPSHOT_HEADER_BYTES];
    struct rp_buf path = {0};
    enum rp_status status;

    rp_buf_printf(&path, "%s/maps", s->dir);
    status = path.failed ? rp_fail_nomem(err) : rp_read_named_file(rp_buf_text(&path), RP_FILE_MAX, &s->maps_text, err);
    if (status == RP_IO) {
        struct rp_err why = *err;

        rp_fail(err, status, "%.300s holds no snapshots (%.300s); name a folder that --save-snapshots filled", s->dir, why.text);
    }
    if (!status)
        status = rp_snapshot_maps_parse(rp_buf_text(&s->maps_text), s->maps_text.length, &s->maps, err);
    if (status)
        goto done;
    if (s->maps.maps.n)
        qsort(s->maps.maps.at, s->maps.maps.n, sizeof *s->maps.maps.at, map_by_time);
    rp_buf_clear(&path);
    rp_buf_printf(&path, "%s/samples.bin", s->dir);
    s->fd = path.failed ? -1 : open(rp_buf_text(&path), O_RDONLY | O_CLOEXEC);
    if (s->fd < 0)
        status = rp_fail(err, RP_IO, "cannot open %s: %s", rp_buf_text(&path), strerror(errno));
    else if (rp_pread_full(s->fd, header, sizeof header, 0) != (ssize_t)sizeof header || !rp_snapshot_header_check(header))
        status = rp_fail(err, RP_FORMAT, "%s is no snapshot of rowprof, or one of a later version", rp_buf_text(&path));
    s->position = sizeof header;
done:
    rp_buf_release(&path);
    return status;
}

/* A path that ends with a NUL: what was saved in the directory itself, or the path as mapped. */
static void map_path(const struct replay_sampler *s, const struct rp_snapshot_image *image, struct rp_buf *path)
{
    rp_buf_clear(path);
    if (image->anonymous) {
        rp_buf_puts(path, "//anon");
        return;
    }
    if (image->saved_length) {
        rp_buf_printf(path, "%s/", s->dir);
        rp_buf_append(path, image->saved, image->saved_length);
        return;
    }
    rp_buf_append(path, image->path, image->path_length);
}

static enum rp_status emit_maps(struct replay_sampler *s, uint64_t up_to, rp_event_sink *sink, void *context, struct rp_err *err)
{
    enum rp_status status = RP_OK;
    struct rp_buf path = {0};

    for (; s->next_map < s->maps.maps.n && !status && s->maps.maps.at[s->next_map].time_ns <= up_to; s->next_map++) {
        const struct rp_snapshot_map *map = &s->maps.maps.at[s->next_map];
        const struct rp_snapshot_image *image = &s->maps.images.at[map->image];
        struct rp_event event = {.kind = RP_EVENT_MMAP, .time_ns = map->time_ns, .pid = map->pid, .tid = map->pid};

        map_path(s, image, &path);
        event.u.mmap.start = map->start;
        event.u.mmap.end = map->end;
        event.u.mmap.offset = map->offset;
        event.u.mmap.dev = image->dev;
        event.u.mmap.ino = image->ino;
        event.u.mmap.path = rp_buf_text(&path);
        event.u.mmap.offline = true;
        event.u.mmap.build_id = image->build_id;
        event.u.mmap.build_id_bytes = image->build_id_bytes;
        status = path.failed ? rp_fail_nomem(err) : sink(context, &event, err);
    }
    rp_buf_release(&path);
    return status;
}

/* The next event; RP_NOTFOUND at the end. */
static enum rp_status next_event(struct replay_sampler *s, struct rp_event *event, struct rp_err *err)
{
    ssize_t got = rp_pread_full(s->fd, s->record, 8, s->position);
    size_t size = got == 8 ? rp_snapshot_record_bytes(s->record) : 0;

    if (got == 0)
        return RP_NOTFOUND;
    if (size && rp_pread_full(s->fd, s->record, size, s->position) == (ssize_t)size && rp_snapshot_record_parse(s->record, size, s->kernel, event)) {
        s->position += size;
        return RP_OK;
    }
    return rp_fail(err, RP_FORMAT, "%s/samples.bin is damaged or cut at byte %llu", s->dir, (unsigned long long)s->position);
}

static enum rp_status replay_drain(struct rp_sampler *base, bool final, rp_event_sink *sink, void *context, struct rp_err *err)
{
    struct replay_sampler *s = of(base);
    enum rp_status status = RP_OK;
    struct rp_event event;

    (void)final;
    while (!s->done && !status) {
        status = next_event(s, &event, err);
        if (status == RP_NOTFOUND) {
            s->done = true;
            return emit_maps(s, UINT64_MAX, sink, context, err);
        }
        if (!status)
            status = emit_maps(s, event.time_ns, sink, context, err);
        if (!status && event.kind == RP_EVENT_SWITCH)
            s->stats.waits = 1;
        if (!status && event.kind == RP_EVENT_SAMPLE) {
            s->stats.samples++;
            s->stats.kernel_visible = s->stats.kernel_visible || event.u.sample.nkernel;
        }
        if (!status)
            status = sink(context, &event, err);
    }
    return status;
}

static enum rp_status replay_wait(struct rp_sampler *base, int timeout_ms, bool *ended, struct rp_err *err)
{
    (void)timeout_ms;
    (void)err;
    *ended = of(base)->done;
    return RP_OK;
}

static void replay_stop(struct rp_sampler *base)
{
    (void)base;
}

static enum rp_status replay_feedback(struct rp_sampler *base, uint64_t walked, uint64_t cut, struct rp_err *err)
{
    (void)base;
    (void)walked;
    (void)cut;
    (void)err;
    return RP_OK;
}

static void replay_stats(const struct rp_sampler *base, struct rp_sampler_stats *stats)
{
    *stats = ((const struct replay_sampler *)base)->stats;
}

static void replay_free(struct rp_sampler *base)
{
    struct replay_sampler *s = of(base);

    rp_close(&s->fd);
    rp_buf_release(&s->maps_text);
    rp_snapshot_maps_release(&s->maps);
    rp_free(s->record);
    rp_free(s->kernel);
    rp_free(s->dir);
    rp_free(s);
}

static const struct rp_sampler_ops replay_ops = {
    .name = "replay",
    .start = replay_start,
    .drain = replay_drain,
    .wait = replay_wait,
    .stop = replay_stop,
    .feedback = replay_feedback,
    .stats = replay_stats,
    .free = replay_free,
};

enum rp_status rp_sampler_replay_new(const char *dir, struct rp_sampler **out, struct rp_err *err)
{
    struct replay_sampler *s = rp_calloc(1, sizeof *s);

    if (!s)
        return rp_fail_nomem(err);
    s->base.ops = &replay_ops;
    s->fd = -1;
    s->stats.source = RP_SOURCE_REPLAY;
    s->dir = rp_strndup(dir, strlen(dir));
    s->record = rp_reallocarray(NULL, RP_SNAPSHOT_RECORD_MAX, 1);
    s->kernel = rp_calloc(RP_KERNEL_FRAMES_MAX, sizeof *s->kernel);
    if (!s->dir || !s->record || !s->kernel) {
        replay_free(&s->base);
        return rp_fail_nomem(err);
    }
    *out = &s->base;
    return RP_OK;
}
