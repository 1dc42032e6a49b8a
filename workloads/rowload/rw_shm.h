/* SPDX-License-Identifier: MIT */
/*
 * Has the database changed? Asked of the WAL-index header that SQLite maps from the -shm file, without a lock or a call.
 *
 *      offset   0  first copy of the header, 48 bytes: version, change counter, isInit (12), frames, salts,
 *                  checksum over bytes 0..39 (40)
 *              48  second copy
 *              96  checkpoint state, read marks, lock bytes
 *
 * All in the byte order of the host. A writer fills the second copy, then the first; a reader takes the first, then the
 * second. Copies that differ, an unset isInit or a wrong checksum are a torn or an unfinished header: never taken for one.
 *
 * The trap is in POSIX locks: closing ANY descriptor of the -shm file drops every lock that SQLite holds on it in this
 * process. So a descriptor is kept until the owner has closed all its connections, replaced files' included.
 */
#ifndef RW_SHM_H
#define RW_SHM_H

#include "rl_run.h"

enum { RW_SHM_HEADER_BYTES = 48, RW_SHM_WORDS = RW_SHM_HEADER_BYTES / 8, RW_SHM_FDS_MAX = 64 };

enum rw_shm_answer {
    RW_SHM_SAME,
    RW_SHM_CHANGED,
    RW_SHM_LOST, /* there is no header to read (now): ask SQLite */
};

struct rw_shm {
    const char *path; /* of the -shm file, borrowed */
    const volatile uint64_t *words; /* NULL: not mapped */
    uint64_t device;
    uint64_t inode;
    int fds[RW_SHM_FDS_MAX];
    size_t fds_used;

    uint64_t checks;
    uint64_t torn;   /* headers that were not whole, and not accepted */
    uint64_t remaps; /* times the file was mapped again */
};

/* The last header that was accepted. All zero at first: the first check says CHANGED. */
struct rw_shm_header {
    uint64_t words[RW_SHM_WORDS];
};

/* Maps the header of `path`; when that cannot be done now, checks say LOST and try again from time to time. */
void rw_shm_open(struct rw_shm *shm, const char *path);

/*
 * Compares the header with `last`, and takes it over when it is whole and differs. Every 16384 checks, and when the header
 * reads as zero, the file is looked at: another inode under its name is mapped instead.
 */
RW_CATEGORY enum rw_shm_answer rw_shm_check(struct rw_shm *shm, struct rw_shm_header *last);

/* True when the 48 bytes are initialized and their checksum is right. */
RW_CATEGORY bool rw_shm_whole(const struct rw_shm_header *header);

/* Only when this process has no SQLite connection to the database any more. Safe twice. */
void rw_shm_close(struct rw_shm *shm);

#endif
