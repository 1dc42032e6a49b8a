/* SPDX-License-Identifier: MIT */
/* Whole files in, whole files out, and the clock. */
#ifndef RP_BASE_IO_H
#define RP_BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/status.h"

/* Appends the whole of `path` to `out`, procfs files included (whose size reads 0). RP_IO with errno's text, RP_PERM when it may not be opened, RP_LIMIT above
 * `max` bytes. */
enum rp_status rp_read_file(const char *path, size_t max, struct rp_buf *out, struct rp_err *err);

/* The same of a file that the user named: RP_IO too when it may not be opened, since RP_PERM, as an exit status, speaks of processes. */
enum rp_status rp_read_named_file(const char *path, size_t max, struct rp_buf *out, struct rp_err *err);

/* The same relative to a directory descriptor (AT_FDCWD for none). */
enum rp_status rp_read_file_at(int dir, const char *path, size_t max, struct rp_buf *out, struct rp_err *err);
/* The same of an open descriptor, which stays open, from where it stands; `path` is what a failure calls it. */
enum rp_status rp_read_open(int fd, const char *path, size_t max, struct rp_buf *out, struct rp_err *err);

/* pread until `length` bytes are there, the file ends or an error; returns the bytes read, -1 with errno. */
ssize_t rp_pread_full(int fd, void *to, size_t length, uint64_t offset);

/* write until all is out; false with errno. */
bool rp_write_full(int fd, const void *from, size_t length);

/* Closes it unless it is negative, which it is afterwards. */
void rp_close(int *fd);

/* CLOCK_MONOTONIC: the clock of samples, runs and deadlines. */
uint64_t rp_now_ns(void);

#endif
