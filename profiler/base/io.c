/* SPDX-License-Identifier: MIT */
/* See io.h. Reading in pieces rather than by fstat size: procfs files say 0. */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum rp_status rp_read_open(int fd, const char *path, size_t max, struct rp_buf *out, struct rp_err *err)
{
    size_t total = 0;

    for (;;) {
        char piece[16384];
        ssize_t got = read(fd, piece, sizeof piece);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return rp_fail(err, RP_IO, "cannot read %s: %s", path, strerror(errno));
        if (got == 0)
            return out->failed ? rp_fail_nomem(err) : RP_OK;
        total += (size_t)got;
        if (total > max)
            return rp_fail(err, RP_LIMIT, "%s is larger than the %zu bytes rowprof reads of such a file", path, max);
        rp_buf_append(out, piece, (size_t)got);
    }
}

enum rp_status rp_read_file_at(int dir, const char *path, size_t max, struct rp_buf *out, struct rp_err *err)
{
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    enum rp_status status;

    if (fd < 0)
        return rp_fail(err, errno == EACCES || errno == EPERM ? RP_PERM : RP_IO, "cannot open %s: %s", path, strerror(errno));
    status = rp_read_open(fd, path, max, out, err);
    close(fd);
    return status;
}

enum rp_status rp_read_file(const char *path, size_t max, struct rp_buf *out, struct rp_err *err)
{
    return rp_read_file_at(AT_FDCWD, path, max, out, err);
}

enum rp_status rp_read_named_file(const char *path, size_t max, struct rp_buf *out, struct rp_err *err)
{
    enum rp_status status = rp_read_file(path, max, out, err);

    return status == RP_PERM ? err->status = RP_IO : status;
}

ssize_t rp_pread_full(int fd, void *to, size_t length, uint64_t offset)
{
    size_t done = 0;

    while (done < length) {
        ssize_t got = pread(fd, (char *)to + done, length - done, (off_t)(offset + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

bool rp_write_full(int fd, const void *from, size_t length)
{
    const char *at = from;

    while (length) {
        ssize_t put = write(fd, at, length);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        at += put;
        length -= (size_t)put;
    }
    return true;
}

void rp_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

uint64_t rp_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
