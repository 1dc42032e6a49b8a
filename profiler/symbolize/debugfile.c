/* SPDX-License-Identifier: MIT */
/* See debugfile.h. The trap: paths lead elsewhere. A link name with a slash, a symbolic link out of a container, a pipe in place of a file, a debug
 * file left over from the build before: each is refused, and what is refused is as if it were not there. */
#include "symbolize/debugfile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <lzma.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/io.h"
#include "base/limits.h"

enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

static int open_beneath(uint32_t pid, const char *path)
{
    struct open_how how = {.flags = OPEN_FLAGS, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    char root[64];
    int dir, fd;

    snprintf(root, sizeof root, "/proc/%u/root", pid);
    dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -1;
    fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
    close(dir);
    return fd;
}

int rp_open_in_root(uint32_t pid, const char *path)
{
    int fd = pid ? open_beneath(pid, path) : open(path, OPEN_FLAGS);
    struct stat st;

    if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
        close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

static bool crc_matches(int fd, uint32_t wanted)
{
    uint64_t at = 0;
    uint8_t piece[65536];
    uLong crc = crc32(0, NULL, 0);
    ssize_t got;

    while ((got = rp_pread_full(fd, piece, sizeof piece, at)) > 0 && at < RP_DEBUGFILE_CRC_MAX) {
        crc = crc32(crc, piece, (uInt)got);
        at += (uint64_t)got;
    }
    return got == 0 && crc == wanted;
}

struct search {
    const struct rp_debug_query *query;
    uint8_t id[32], id_bytes; /* build-id of the image */
    bool crc_known;
    uint32_t crc;
};

/* Same build-id where both have one; else the checksum of the link; the image's own file is not its debug file. */
static bool belongs(const struct search *search, int fd)
{
    struct rp_elfview view;
    struct rp_err err;
    uint8_t id[32], bytes;
    struct stat mine, other;

    if (rp_elfview_init(&view, fd, NULL, 0, &err))
        return false;
    bytes = rp_elfview_build_id(&view, id);
    rp_elfview_release(&view);
    if (!search->query->view->memory && !fstat(search->query->view->fd, &mine) && !fstat(fd, &other) && mine.st_dev == other.st_dev &&
        mine.st_ino == other.st_ino)
        return false;
    if (bytes && search->id_bytes)
        return bytes == search->id_bytes && memcmp(id, search->id, bytes) == 0;
    return search->crc_known && crc_matches(fd, search->crc);
}

static int try_path(const struct search *search, const char *path)
{
    uint32_t pids[2] = {search->query->pid, 0};

    for (int i = pids[0] ? 0 : 1; i < 2; i++) {
        int fd = rp_open_in_root(pids[i], path);

        if (fd >= 0 && belongs(search, fd))
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return -1;
}

static int try_build_id(const struct search *search, const char *debug_dir)
{
    struct rp_buf path = {0};
    int fd;

    if (search->id_bytes < 2)
        return -1;
    rp_buf_printf(&path, "%s/.build-id/%02x/", debug_dir, search->id[0]);
    for (int i = 1; i < search->id_bytes; i++)
        rp_buf_printf(&path, "%02x", search->id[i]);
    rp_buf_puts(&path, ".debug");
    fd = path.failed ? -1 : try_path(search, rp_buf_text(&path));
    rp_buf_release(&path);
    return fd;
}

static int try_link_dirs(const struct search *search, const char *debug_dir, const char *name)
{
    const char *slash = search->query->path ? strrchr(search->query->path, '/') : NULL;
    int length = slash ? (int)(slash - search->query->path) : 0, fd = -1;
    struct rp_buf path = {0};

    for (int i = 0; slash && i < 3 && fd < 0; i++) {
        rp_buf_clear(&path);
        rp_buf_printf(&path, "%s%.*s/%s%s", i == 2 ? debug_dir : "", length, search->query->path, i == 1 ? ".debug/" : "", name);
        fd = path.failed ? -1 : try_path(search, rp_buf_text(&path));
    }
    rp_buf_release(&path);
    return fd;
}

/* .gnu_debuglink: a file name, NUL, padding to 4, CRC-32 of the whole debug file. */
static int try_debuglink(struct search *search, const char *debug_dir)
{
    const struct rp_elfview *view = search->query->view;
    size_t bytes, length, padded;
    uint8_t *link = rp_elfview_contents(view, rp_elfview_section(view, ".gnu_debuglink", 0), 4096, &bytes);
    int fd = -1;

    if (!link)
        return -1;
    length = strnlen((const char *)link, bytes);
    padded = (length / 4 + 1) * 4;
    if (length && padded + 4 <= bytes && !memchr(link, '/', length)) {
        memcpy(&search->crc, link + padded, 4);
        search->crc_known = true;
        fd = try_link_dirs(search, debug_dir, (const char *)link);
    }
    rp_free(link);
    return fd;
}

int rp_debugfile_open(const struct rp_debug_query *query)
{
    const char *debug_dir = query->debug_dir ? query->debug_dir : "/usr/lib/debug";
    struct search search = {.query = query};
    int fd;

    search.id_bytes = rp_elfview_build_id(query->view, search.id);
    fd = try_build_id(&search, debug_dir);
    return fd >= 0 ? fd : try_debuglink(&search, debug_dir);
}

int rp_debugfile_open_alternate(const struct rp_debug_query *query, bool *named)
{
    const char *debug_dir = query->debug_dir ? query->debug_dir : "/usr/lib/debug";
    struct search search = {.query = query};
    uint32_t section = rp_elfview_section(query->view, ".gnu_debugaltlink", 0);
    size_t bytes = 0, length;
    uint8_t *link = rp_elfview_contents(query->view, section, 4096, &bytes);
    int fd = -1;

    *named = section != 0;
    length = link ? strnlen((const char *)link, bytes) : 0;
    if (length && length < bytes && bytes - length - 1 <= sizeof search.id) { /* a path, NUL, a build-id */
        search.id_bytes = (uint8_t)(bytes - length - 1);
        memcpy(search.id, link + length + 1, search.id_bytes);
        fd = try_build_id(&search, debug_dir);
        if (fd < 0 && link[0] == '/')
            fd = try_path(&search, (const char *)link);
    }
    rp_free(link);
    return fd;
}

/* Decodes until the end, doubling the output; false on damage, the limit, or no memory. */
static bool unxz(lzma_stream *stream, uint8_t **out, size_t *bytes)
{
    size_t room = 0;
    lzma_ret got = LZMA_OK;

    while (got == LZMA_OK) {
        size_t more = room ? room : 65536;
        uint8_t *grown = room + more > RP_DEBUGDATA_MAX ? NULL : rp_reallocarray(*out, room + more, 1);

        if (!grown)
            return false;
        *out = grown;
        stream->next_out = grown + room;
        stream->avail_out = more;
        room += more;
        got = lzma_code(stream, LZMA_FINISH);
    }
    *bytes = (size_t)stream->total_out;
    return got == LZMA_STREAM_END;
}

uint8_t *rp_debugdata_unpack(const struct rp_elfview *view, size_t *bytes)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    size_t packed;
    uint8_t *from = rp_elfview_contents(view, rp_elfview_section(view, ".gnu_debugdata", 0), RP_DEBUGDATA_MAX, &packed), *out = NULL;

    if (!from)
        return NULL;
    stream.next_in = from;
    stream.avail_in = packed;
    if (lzma_stream_decoder(&stream, RP_DEBUGDATA_MAX, 0) != LZMA_OK || !unxz(&stream, &out, bytes)) {
        rp_free(out);
        out = NULL;
    }
    lzma_end(&stream);
    rp_free(from);
    return out;
}
