/* SPDX-License-Identifier: MIT */
/*
 * Reading the WAL-index header: see rw_shm.h.
 *
 * The fast path is six loads and compares: a header that equals the last accepted one is unchanged, whatever the second copy
 * says, because a writer that is at it has not published its commit yet. Only a header that differs is read in full.
 */
#include "rw_shm.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAP_BYTES = 136, LOOK_EVERY = 16384, TRIES = 16 };

/* Maps the file that bears the name now, instead of what is mapped. */
static void file_map(struct rw_shm *shm)
{
    struct stat status;
    int fd = shm->fds_used < RW_SHM_FDS_MAX ? open(shm->path, O_RDONLY | O_CLOEXEC) : -1;
    void *words = MAP_FAILED;
    if (fd < 0)
        return;
    shm->fds[shm->fds_used++] = fd;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= MAP_BYTES)
        words = mmap(NULL, MAP_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    if (words == MAP_FAILED)
        return;
    shm->words = words;
    shm->device = status.st_dev;
    shm->inode = status.st_ino;
}

static void file_unmap(struct rw_shm *shm)
{
    if (shm->words)
        (void)munmap((void *)(uintptr_t)shm->words, MAP_BYTES);
    shm->words = NULL;
}

/* Follows the name: to another file, or to none. A file that was cut short would kill the reader, so its size counts too. */
static void file_follow(struct rw_shm *shm)
{
    struct stat status;
    bool there = stat(shm->path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= MAP_BYTES;
    if (there && shm->words && status.st_dev == shm->device && status.st_ino == shm->inode)
        return;
    file_unmap(shm);
    if (there) {
        file_map(shm);
        shm->remaps += shm->words != NULL;
    }
}

void rw_shm_open(struct rw_shm *shm, const char *path)
{
    memset(shm, 0, sizeof *shm);
    shm->path = path;
    file_map(shm);
}

bool rw_shm_whole(const struct rw_shm_header *header)
{
    uint32_t words[RW_SHM_HEADER_BYTES / 4];
    uint32_t s0 = 0;
    uint32_t s1 = 0;
    memcpy(words, header->words, sizeof words);
    for (size_t i = 0; i < 10; i += 2) {
        s0 += words[i] + s1;
        s1 += words[i + 1] + s0;
    }
    return (words[3] & 0xff) == 1 && words[10] == s0 && words[11] == s1;
}

static bool header_zero(const struct rw_shm_header *header)
{
    uint64_t all = 0;
    for (size_t i = 0; i < RW_SHM_WORDS; i++)
        all |= header->words[i];
    return !all;
}

/* Reads both copies. True when they are alike and whole; `header` holds the first copy in any case. */
static bool copies_read(const volatile uint64_t *words, struct rw_shm_header *header)
{
    uint64_t differ = 0;
    for (size_t i = 0; i < RW_SHM_WORDS; i++)
        header->words[i] = words[i];
    atomic_thread_fence(memory_order_acquire);
    for (size_t i = 0; i < RW_SHM_WORDS; i++)
        differ |= header->words[i] ^ words[RW_SHM_WORDS + i];
    return !differ && rw_shm_whole(header);
}

/* The header differs from the last one, or looked torn. It is read a few times over: a writer that is at it needs some
 * hundred nanoseconds, unless it is off the processor or dead in the middle; SQLite knows how to wait for that. */
static enum rw_shm_answer header_take(struct rw_shm *shm, struct rw_shm_header *last)
{
    struct rw_shm_header header;
    for (int i = 0; i < TRIES && shm->words; i++) {
        if (copies_read(shm->words, &header)) {
            bool same = memcmp(&header, last, sizeof header) == 0;
            *last = header;
            return same ? RW_SHM_SAME : RW_SHM_CHANGED;
        }
        if (header_zero(&header)) {
            file_follow(shm);
            if (i)
                break;
            continue;
        }
        shm->torn++;
    }
    return RW_SHM_LOST;
}

enum rw_shm_answer rw_shm_check(struct rw_shm *shm, struct rw_shm_header *last)
{
    if (++shm->checks % LOOK_EVERY == 0)
        file_follow(shm);
    const volatile uint64_t *words = shm->words;
    if (!words)
        return RW_SHM_LOST;
    uint64_t differ = 0;
    for (size_t i = 0; i < RW_SHM_WORDS; i++)
        differ |= words[i] ^ last->words[i];
    /* An accepted header has isInit set, in its second word: without it nothing has been accepted yet. */
    return differ || !last->words[1] ? header_take(shm, last) : RW_SHM_SAME;
}

void rw_shm_close(struct rw_shm *shm)
{
    file_unmap(shm);
    while (shm->fds_used)
        (void)close(shm->fds[--shm->fds_used]);
}
