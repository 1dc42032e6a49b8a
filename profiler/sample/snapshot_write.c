/* SPDX-License-Identifier: MIT */
/* Saves events as they pass. The trap: what is saved must lead to the same images later, elsewhere: so each mapping names its image with build-id, and
 * images that exist in memory only (vDSO, files that could not be opened) are saved themselves. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/io.h"
#include "sample/snapshot_file.h"
#include "sample/snapshot_record.h"

enum { FLUSH_BYTES = 1 << 20 };

struct rp_snapshot_writer {
    struct rp_images *images;
    char *dir;
    int dir_fd, maps_fd, samples_fd;
    struct rp_buf maps, samples;
    RP_VEC(bool) written; /* per image: its line is in maps */
    bool vdso_saved;
    uint64_t last_time; /* of the events so far: a space that is read again counts from there */
};

static enum rp_status flush(struct rp_snapshot_writer *w, struct rp_buf *buf, int fd, struct rp_err *err)
{
    if (buf->failed)
        return rp_fail_nomem(err);
    if (!rp_write_full(fd, rp_buf_text(buf), buf->length))
        return rp_fail(err, RP_IO, "cannot write snapshots to %s: %s", w->dir, strerror(errno));
    rp_buf_clear(buf);
    return RP_OK;
}

static int create(struct rp_snapshot_writer *w, const char *name, bool force, struct rp_err *err)
{
    int fd = openat(w->dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (force ? O_TRUNC : O_EXCL), 0600);

    if (fd < 0 && errno == EEXIST)
        rp_fail(err, RP_EXISTS, "%s holds a snapshot already; name another directory, or give --force", w->dir);
    else if (fd < 0)
        rp_fail(err, RP_IO, "cannot create %s/%s: %s", w->dir, name, strerror(errno));
    return fd;
}

enum rp_status rp_snapshot_writer_new(const char *dir, bool force, struct rp_images *images, struct rp_snapshot_writer **out, struct rp_err *err)
{
    struct rp_snapshot_header header = {RP_SNAPSHOT_MAGIC, RP_SNAPSHOT_VERSION, RP_NREGS};
    struct rp_snapshot_writer *w = rp_calloc(1, sizeof *w);
    enum rp_status status = RP_OK;

    if (!w)
        return rp_fail_nomem(err);
    w->dir_fd = w->maps_fd = w->samples_fd = -1;
    w->images = images;
    w->dir = rp_strndup(dir, strlen(dir));
    if (!w->dir)
        status = rp_fail_nomem(err);
    else if ((mkdir(dir, 0700) != 0 && errno != EEXIST) || (w->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        status = rp_fail(err, RP_IO, "cannot make the directory %s: %s", dir, strerror(errno));
    if (!status && ((w->samples_fd = create(w, "samples.bin", force, err)) < 0 || (w->maps_fd = create(w, "maps", force, err)) < 0))
        status = err->status;
    rp_buf_append(&w->samples, &header, sizeof header);
    rp_buf_printf(&w->maps, "rowprof-snapshot %d\n", RP_SNAPSHOT_VERSION);
    if (status)
        rp_snapshot_writer_free(w);
    else
        *out = w;
    return status;
}

/* Saves an image that no file holds; gives the name under which it lies in the directory. */
static enum rp_status save_image(struct rp_snapshot_writer *w, const struct rp_image *image, char name[64], struct rp_err *err)
{
    enum rp_status status = RP_OK;
    int fd;

    if (image->kind == RP_IMAGE_VDSO && !w->vdso_saved)
        snprintf(name, 64, "[vdso]");
    else
        snprintf(name, 64, "image-%u", image->id);
    w->vdso_saved = w->vdso_saved || image->kind == RP_IMAGE_VDSO;
    fd = create(w, name, true, err);
    if (fd < 0)
        return err->status;
    if (!rp_write_full(fd, image->memory, image->memory_bytes))
        status = rp_fail(err, RP_IO, "cannot write %s/%s: %s", w->dir, name, strerror(errno));
    close(fd);
    return status;
}

static const char *kind_name(enum rp_image_kind kind)
{
    static const char *const names[] = {
        [RP_IMAGE_MARK] = "mark", [RP_IMAGE_KERNEL] = "kernel", [RP_IMAGE_ELF] = "elf",
        [RP_IMAGE_VDSO] = "vdso", [RP_IMAGE_JIT] = "jit",       [RP_IMAGE_OTHER] = "other",
    };

    return names[kind];
}

/* The line of an image, once. */
static enum rp_status write_image(struct rp_snapshot_writer *w, uint32_t id, struct rp_err *err)
{
    const struct rp_image *image = w->images->at.at[id];
    enum rp_status status;
    char saved[64] = "-";

    while (w->written.n <= id) {
        bool *slot = rp_vec_add(&w->written);

        if (!slot)
            return rp_fail_nomem(err);
        *slot = false;
    }
    if (w->written.at[id])
        return RP_OK;
    w->written.at[id] = true;
    status = image->memory ? save_image(w, image, saved, err) : RP_OK;
    if (status)
        return status;
    rp_buf_printf(&w->maps, "image %u %s %x:%x %llu ", id, kind_name(image->kind), major(image->dev), minor(image->dev), (unsigned long long)image->ino);
    for (uint8_t i = 0; i < image->build_id_bytes; i++)
        rp_buf_printf(&w->maps, "%02x", image->build_id[i]);
    rp_buf_printf(&w->maps, "%s %s ", image->build_id_bytes ? "" : "-", saved);
    for (const char *c = image->path; c && *c; c++)
        rp_buf_putc(&w->maps, *c == '\n' ? '?' : *c);
    rp_buf_putc(&w->maps, '\n');
    return RP_OK;
}

static enum rp_status write_map(struct rp_snapshot_writer *w, uint64_t time_ns, uint32_t pid, const struct rp_mapping *m, struct rp_err *err)
{
    enum rp_status status = write_image(w, m->image, err);

    if (status)
        return status;
    rp_buf_printf(&w->maps, "map %llu %u %llx-%llx %llx %u\n", (unsigned long long)time_ns, pid, (unsigned long long)m->start, (unsigned long long)m->end,
                  (unsigned long long)m->offset, m->image);
    return w->maps.length > FLUSH_BYTES ? flush(w, &w->maps, w->maps_fd, err) : RP_OK;
}

enum rp_status rp_snapshot_writer_space(struct rp_snapshot_writer *w, const struct rp_space *space, struct rp_err *err)
{
    enum rp_status status = RP_OK;

    for (size_t i = 0; i < space->maps.n && !status; i++)
        status = write_map(w, w->last_time, space->pid, &space->maps.at[i], err);
    return status;
}

static enum rp_status write_mmap_event(struct rp_snapshot_writer *w, const struct rp_event *e, struct rp_err *err)
{
    struct rp_image_key key = rp_event_image_key(e);
    struct rp_mapping m = {key.start, key.end, key.offset, 0};
    enum rp_status status = rp_images_get(w->images, &key, &m.image, err);

    return status ? status : write_map(w, e->time_ns, e->pid, &m, err);
}

static void put_padding(struct rp_buf *out, size_t length)
{
    rp_buf_fill(out, 0, (int)(-length & 7));
}

/* `peek`: what stands between the record of a sample and its registers. */
static void put_sample(struct rp_buf *out, struct rp_record_head head, const struct rp_snapshot *s, uint32_t flags, const void *peek, size_t peek_bytes)
{
    struct rp_record_sample record = {head, 0, s->stack ? s->stack_bytes : 0, s->nkernel, 0, s->weight_ns};
    size_t bytes = sizeof record + peek_bytes + (s->has_user ? sizeof s->regs : 0) + s->nkernel * sizeof *s->kernel + record.stack_bytes;

    record.flags = flags | (s->has_user ? RP_SAMPLE_HAS_USER : 0u) | (s->stack_cut ? RP_SAMPLE_CUT : 0u) | (s->sp_only ? RP_SAMPLE_SP_ONLY : 0u);
    record.head.bytes = (uint32_t)((bytes + 7) & ~(size_t)7);
    rp_buf_append(out, &record, sizeof record);
    rp_buf_append(out, peek, peek_bytes);
    if (s->has_user)
        rp_buf_append(out, s->regs, sizeof s->regs);
    rp_buf_append(out, s->kernel, s->nkernel * sizeof *s->kernel);
    rp_buf_append(out, s->stack, record.stack_bytes);
    put_padding(out, bytes);
}

static void put_peek(struct rp_buf *out, struct rp_record_head head, const struct rp_event *e)
{
    struct rp_record_peek record = {.syscall = e->u.peek.syscall};

    memcpy(record.args, e->u.peek.args, sizeof record.args);
    put_sample(out, head, &e->u.peek.sample, e->u.peek.at_switch ? RP_SAMPLE_AT_SWITCH : 0, &record.syscall, sizeof record - sizeof record.sample);
}

static void put_comm(struct rp_buf *out, struct rp_record_head head, const char *comm, bool exec)
{
    size_t length = strnlen(comm, 255), bytes = sizeof(struct rp_record_comm) + length + 1;
    struct rp_record_comm record = {head, exec, (uint32_t)length};

    record.head.bytes = (uint32_t)((bytes + 7) & ~(size_t)7);
    rp_buf_append(out, &record, sizeof record);
    rp_buf_append(out, comm, length);
    rp_buf_putc(out, '\0');
    put_padding(out, bytes);
}

enum rp_status rp_snapshot_writer_event(struct rp_snapshot_writer *w, const struct rp_event *e, struct rp_err *err)
{
    struct rp_record_head head = {0, 0, e->time_ns, e->pid, e->tid};

    w->last_time = e->time_ns > w->last_time ? e->time_ns : w->last_time;
    switch (e->kind) {
    case RP_EVENT_MMAP:
        return write_mmap_event(w, e, err);
    case RP_EVENT_SAMPLE:
        head.kind = RP_RECORD_SAMPLE;
        put_sample(&w->samples, head, &e->u.sample, 0, NULL, 0);
        break;
    case RP_EVENT_PEEK:
        head.kind = RP_RECORD_PEEK;
        put_peek(&w->samples, head, e);
        break;
    case RP_EVENT_COMM:
        head.kind = RP_RECORD_COMM;
        put_comm(&w->samples, head, e->u.comm.comm, e->u.comm.exec);
        break;
    case RP_EVENT_FORK: {
        struct rp_record_fork record = {head, e->u.fork.parent_pid, e->u.fork.parent_tid};

        record.head.kind = RP_RECORD_FORK;
        record.head.bytes = sizeof record;
        rp_buf_append(&w->samples, &record, sizeof record);
        break;
    }
    case RP_EVENT_SWITCH: {
        struct rp_record_switch record = {head, e->u.sw.out, e->u.sw.preempted};

        record.head.kind = RP_RECORD_SWITCH;
        record.head.bytes = sizeof record;
        rp_buf_append(&w->samples, &record, sizeof record);
        break;
    }
    case RP_EVENT_EXIT:
        head.kind = RP_RECORD_EXIT;
        head.bytes = sizeof head;
        rp_buf_append(&w->samples, &head, sizeof head);
        break;
    }
    return w->samples.length > FLUSH_BYTES || w->samples.failed ? flush(w, &w->samples, w->samples_fd, err) : RP_OK;
}

enum rp_status rp_snapshot_writer_finish(struct rp_snapshot_writer *w, struct rp_err *err)
{
    enum rp_status status = flush(w, &w->maps, w->maps_fd, err);

    return status ? status : flush(w, &w->samples, w->samples_fd, err);
}

void rp_snapshot_writer_free(struct rp_snapshot_writer *w)
{
    if (!w)
        return;
    for (int i = 0; i < 3; i++) {
        int fd = i == 0 ? w->dir_fd : i == 1 ? w->maps_fd : w->samples_fd;

        if (fd >= 0)
            close(fd);
    }
    rp_buf_release(&w->maps);
    rp_buf_release(&w->samples);
    rp_vec_release(&w->written);
    rp_free(w->dir);
    rp_free(w);
}
