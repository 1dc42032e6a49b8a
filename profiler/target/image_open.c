/* SPDX-License-Identifier: MIT */
/* Finds the very file that is mapped. The candidates, best first:
 *
 *     /proc/PID/map_files/START-END   the file itself, deleted or not, in any mount namespace; needs CAP_SYS_ADMIN or
 *                                     CAP_CHECKPOINT_RESTORE
 *     /proc/PID/exe                   the file itself, if it is the program
 *     /proc/PID/root/PATH, PATH       what has that name now: perhaps another file
 *
 * The trap: the device number in maps is that of the file system below, which on btrfs and overlayfs is not the st_dev that stat gives. So equal
 * inodes on unequal devices are no proof; then the build-id in the file must equal the build-id in target memory. An equal build-id is
 * the same build wherever it lies. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/io.h"
#include "target/image_private.h"

static const char deleted_suffix[] = " (deleted)";

int rp_open_regular(const char *path)
{
    int look = open(path, O_PATH | O_CLOEXEC), fd = -1;
    struct stat st;
    char link[64];

    if (look < 0)
        return -1;
    if (fstat(look, &st) == 0 && S_ISREG(st.st_mode)) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", look);
        fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 && errno == ENOENT) /* no /proc here */
            fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    } else {
        errno = EINVAL;
    }
    if (fd < 0) {
        int saved = errno;

        close(look);
        errno = saved;
        return -1;
    }
    close(look);
    return fd;
}

/* The build-id of an open file, through its program headers. */
static uint8_t file_build_id(int fd, uint8_t id[RP_BUILD_ID_MAX])
{
    struct rp_image scratch = {.fd = fd, .kind = RP_IMAGE_ELF};
    struct rp_err err;
    struct stat st;

    scratch.elf = fstat(fd, &st) == 0 ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
    if (scratch.elf && rp_image_read_headers(&scratch, (uint64_t)st.st_size, &err) == RP_OK)
        memcpy(id, scratch.build_id, RP_BUILD_ID_MAX);
    rp_free(scratch.segments);
    if (scratch.elf)
        elf_end(scratch.elf);
    return scratch.build_id_bytes;
}

static bool same_build(int fd, const struct rp_image_key *key)
{
    uint8_t in_file[RP_BUILD_ID_MAX] = {0}, in_memory[RP_BUILD_ID_MAX] = {0};
    uint8_t n = file_build_id(fd, in_file), m = 0;
    struct rp_memory_elf memory;

    if (n && rp_memory_elf_find(&memory, key)) {
        m = rp_memory_elf_build_id(&memory, in_memory);
        rp_memory_elf_release(&memory);
    }
    return n && n == m && memcmp(in_file, in_memory, n) == 0;
}

/* Opens `path` if it is the file of the mapping. `by_mapping`: the link leads to the mapped file itself, so its inode is proof enough. */
static int open_if_same(const char *path, const struct rp_image_key *key, bool by_mapping, bool *other_file)
{
    int fd = rp_open_regular(path);
    struct stat st;

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0) {
        if (st.st_ino == key->ino && (by_mapping || st.st_dev == key->dev))
            return fd;
        if (same_build(fd, key))
            return fd;
        *other_file = true;
    }
    close(fd);
    errno = ESTALE;
    return -1;
}

static bool names_file(const char *path, const struct stat *file)
{
    struct stat now;

    return stat(path, &now) == 0 && now.st_ino == file->st_ino && now.st_dev == file->st_dev;
}

/* Whether `path` names the open file, as the target sees it or as we do. 1 yes, 0 no, -1 we may not look. */
static int path_names(const struct rp_image_key *key, const char *path, const struct stat *file)
{
    struct rp_buf root = {0};
    struct stat now;
    int answer = -1;

    rp_buf_printf(&root, "/proc/%u/root", key->pid);
    if (!root.failed && stat(rp_buf_text(&root), &now) == 0) {
        rp_buf_puts(&root, path);
        answer = !root.failed && (names_file(rp_buf_text(&root), file) || names_file(path, file));
    }
    rp_buf_release(&root);
    return answer;
}

/* Sets `deleted`; without the right to look, the kernel's own mark decides. A file may also really be called "x (deleted)": then that is its
 * path. */
static enum rp_status judge_path(struct rp_image *image, const struct rp_image_key *key, bool marked, struct rp_err *err)
{
    struct stat file;
    char *literal;

    image->deleted = marked;
    if (fstat(image->fd, &file) != 0)
        return RP_OK;
    if (marked && path_names(key, key->path, &file) == 1) {
        literal = rp_strndup(key->path, strlen(key->path));
        if (!literal)
            return rp_fail_nomem(err);
        rp_free(image->path);
        image->path = literal;
        image->deleted = false;
        return RP_OK;
    }
    switch (path_names(key, image->path, &file)) {
    case 0:
        image->deleted = true;
        break;
    case 1:
        image->deleted = false;
        break;
    default:
        break;
    }
    return RP_OK;
}

static bool is_the_program(const char *exe, const char *path)
{
    char target[4096];
    ssize_t n = readlink(exe, target, sizeof target);

    return n > 0 && (size_t)n < sizeof target && path && strlen(path) == (size_t)n && memcmp(target, path, (size_t)n) == 0;
}

/* Tries the candidates in order; gives the descriptor, or -1 with why the best one failed. */
static int find_file(const struct rp_image *image, const struct rp_image_key *key, int *map_files_errno, bool *other_file)
{
    char link[96];
    struct rp_buf path = {0};
    int fd = -1;

    *map_files_errno = ENOENT;
    if (key->pid) {
        snprintf(link, sizeof link, "/proc/%u/map_files/%llx-%llx", key->pid, (unsigned long long)key->start, (unsigned long long)key->end);
        fd = open_if_same(link, key, true, other_file);
        *map_files_errno = fd < 0 ? errno : 0;
        if (fd < 0) {
            snprintf(link, sizeof link, "/proc/%u/exe", key->pid);
            fd = open_if_same(link, key, is_the_program(link, key->path), other_file);
        }
        *other_file = false; /* only what a path leads to now can be "replaced" */
    }
    for (int i = 0; fd < 0 && i < 4; i++) {
        rp_buf_clear(&path);
        if (i < 2 && !key->pid)
            continue;
        if (i < 2)
            rp_buf_printf(&path, "/proc/%u/root", key->pid);
        rp_buf_puts(&path, i % 2 ? key->path : image->path);
        if (!path.failed)
            fd = open_if_same(rp_buf_text(&path), key, false, other_file);
    }
    rp_buf_release(&path);
    return fd;
}

/* One sentence for the report on a file that cannot be had. */
static enum rp_status tell_problem(struct rp_image *image, const struct rp_image_key *key, int map_files_errno, bool other_file, struct rp_err *err)
{
    struct rp_buf text = {0};

    rp_buf_printf(&text, "%s, as process %u has it mapped, cannot be opened (", image->path, key->pid);
    rp_buf_puts(&text, other_file ? "another file has that name now" : "nothing has that name now");
    if (map_files_errno == EPERM || map_files_errno == EACCES)
        rp_buf_printf(&text, "; /proc/%u/map_files needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE", key->pid);
    rp_buf_puts(&text, ")");
    image->problem = text.failed ? NULL : rp_strndup(rp_buf_text(&text), text.length);
    rp_buf_release(&text);
    return image->problem ? RP_OK : rp_fail_nomem(err);
}

enum rp_status rp_image_open_file(struct rp_image *image, const struct rp_image_key *key, struct rp_err *err)
{
    size_t length = strlen(key->path), mark = sizeof deleted_suffix - 1;
    bool marked = length > mark && strcmp(key->path + length - mark, deleted_suffix) == 0;
    bool other_file = false;
    int map_files_errno;

    image->path = rp_strndup(key->path, marked ? length - mark : length);
    if (!image->path)
        return rp_fail_nomem(err);
    image->fd = find_file(image, key, &map_files_errno, &other_file);
    if (image->fd < 0) {
        image->deleted = marked || other_file;
        return tell_problem(image, key, map_files_errno, other_file, err);
    }
    return key->pid ? judge_path(image, key, marked, err) : RP_OK;
}
