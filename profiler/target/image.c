/* SPDX-License-Identifier: MIT */
/* The table of images: which mappings are the same file, and what kind of thing a mapping is. See image.h.
 *
 * The trap: not everything with an inode is a file worth opening. Anonymous shared memory, memfd and SysV segments have one, and runtimes put JIT
 * code there, whose addresses mean something as they are and whose offsets mean nothing. But programs are also run from a memfd: the ELF
 * magic decides. */
#include "target/image.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/io.h"
#include "target/image_private.h"

static void image_free(struct rp_image *image)
{
    if (!image)
        return;
    if (image->elf)
        elf_end(image->elf);
    if (image->fd >= 0)
        close(image->fd);
    rp_free(image->memory);
    rp_free(image->segments);
    rp_free(image->path);
    rp_free(image->problem);
    rp_free(image);
}

static struct rp_image *image_new(enum rp_image_kind kind, const char *path)
{
    struct rp_image *image = rp_calloc(1, sizeof *image);

    if (!image)
        return NULL;
    image->kind = kind;
    image->fd = -1;
    if (path) {
        image->path = rp_strndup(path, strlen(path));
        if (!image->path) {
            rp_free(image);
            return NULL;
        }
    }
    return image;
}

/* Takes `image`, also on failure. */
static enum rp_status table_add(struct rp_images *images, struct rp_image *image, uint32_t *id, struct rp_err *err)
{
    struct rp_image **slot = image && images->at.n < UINT32_MAX ? rp_vec_add(&images->at) : NULL;

    if (!slot) {
        image_free(image);
        return rp_fail_nomem(err);
    }
    *slot = image;
    image->id = *id = (uint32_t)images->at.n - 1;
    return RP_OK;
}

enum rp_status rp_images_init(struct rp_images *images, struct rp_err *err)
{
    uint32_t id;
    enum rp_status status;

    *images = (struct rp_images){0};
    if (elf_version(EV_CURRENT) == EV_NONE)
        return rp_fail(err, RP_FAILED, "libelf is too old for this build of rowprof; install elfutils 0.176 or newer");
    status = table_add(images, image_new(RP_IMAGE_MARK, ""), &id, err);
    if (!status)
        status = table_add(images, image_new(RP_IMAGE_KERNEL, "[kernel]"), &id, err);
    return status;
}

void rp_images_release(struct rp_images *images)
{
    for (size_t i = 0; i < images->at.n; i++)
        image_free(images->at.at[i]);
    rp_vec_release(&images->at);
}

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Memory without a file behind it, or with one that only the kernel knows. */
static bool is_anonymous(const struct rp_image_key *key)
{
    static const char *const prefixes[] = {"//anon", "[", "/dev/zero", "/SYSV", "anon_inode:", "/anon_hugepage", "//toolong", "//enomem"};

    if (!key->ino || key->path[0] != '/')
        return true;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (starts_with(key->path, prefixes[i]))
            return true;
    }
    return false;
}

static enum rp_status get_jit(struct rp_images *images, uint32_t pid, uint32_t *id, struct rp_err *err)
{
    struct rp_image *image;

    for (size_t i = images->at.n; i-- > 0;) {
        if (images->at.at[i]->kind == RP_IMAGE_JIT && images->at.at[i]->pid == pid) {
            *id = (uint32_t)i;
            return RP_OK;
        }
    }
    image = image_new(RP_IMAGE_JIT, "[jit]");
    if (image)
        image->pid = pid;
    return table_add(images, image, id, err);
}

/* All processes have the same one, but for those in another time namespace or of another personality: contents decide. */
static enum rp_status get_vdso(struct rp_images *images, const struct rp_image_key *key, uint32_t *id, struct rp_err *err)
{
    struct rp_image *image;
    enum rp_status status;
    void *bytes = NULL;
    size_t length = 0;

    if (!rp_image_vdso_bytes(key, &bytes, &length))
        bytes = NULL;
    for (size_t i = 0; i < images->at.n; i++) {
        image = images->at.at[i];
        if (image->kind == RP_IMAGE_VDSO && image->memory_bytes == length && (!bytes || (image->memory && memcmp(image->memory, bytes, length) == 0))) {
            rp_free(bytes);
            *id = (uint32_t)i;
            return RP_OK;
        }
    }
    image = image_new(RP_IMAGE_VDSO, "[vdso]");
    if (!image) {
        rp_free(bytes);
        return rp_fail_nomem(err);
    }
    image->pid = key->pid;
    image->memory = bytes;
    image->memory_bytes = length;
    image->elf = bytes ? elf_memory(bytes, length) : NULL;
    status = image->elf ? rp_image_read_headers(image, length, err) : RP_OK;
    image->kind = RP_IMAGE_VDSO;
    if (status) {
        image_free(image);
        return status;
    }
    return table_add(images, image, id, err);
}

static struct rp_image *find_file(const struct rp_images *images, uint64_t dev, uint64_t ino)
{
    for (size_t i = 0; i < images->at.n; i++) {
        struct rp_image *image = images->at.at[i];

        if (image->ino == ino && image->dev == dev && ino)
            return image;
    }
    return NULL;
}

/* Reads what the open file is. The descriptor stays open, which also keeps its inode number from being used again. */
static enum rp_status read_file(struct rp_image *image, struct rp_err *err)
{
    struct rp_buf text = {0};
    enum rp_status status;
    char magic[SELFMAG];
    struct stat st;

    if (fstat(image->fd, &st) != 0 || st.st_size < 0)
        return RP_OK;
    image->elf = elf_begin(image->fd, ELF_C_READ, NULL);
    status = rp_image_read_headers(image, (uint64_t)st.st_size, err);
    if (status || image->nsegments || rp_pread_full(image->fd, magic, sizeof magic, 0) != SELFMAG || memcmp(magic, ELFMAG, SELFMAG) != 0)
        return status;
    rp_buf_printf(&text, "%s is a damaged ELF file, or none for x86-64; names and unwind rows of it are missing", image->path);
    image->problem = text.failed ? NULL : rp_strndup(rp_buf_text(&text), text.length);
    rp_buf_release(&text);
    return image->problem ? RP_OK : rp_fail_nomem(err);
}

static bool is_memfd(const struct rp_image *image)
{
    return starts_with(image->path, "/memfd:") || starts_with(image->path, "/dev/shm/");
}

static enum rp_status open_mapping(struct rp_image *image, const struct rp_image_key *key, struct rp_err *err)
{
    enum rp_status status = rp_image_open_file(image, key, err);

    if (status)
        return status;
    image->dev = key->dev;
    image->ino = key->ino;
    if (image->fd >= 0)
        return read_file(image, err);
    if (rp_image_from_memory(image, key))
        return rp_image_read_headers(image, image->memory_bytes, err);
    image->kind = RP_IMAGE_OTHER;
    return RP_OK;
}

/* Whether the open file is what was saved: by build-id, or by inode when it has none. Saved images (no inode) are themselves. */
static bool is_as_saved(const struct rp_image *image, const struct rp_image_key *key)
{
    struct stat st;

    if (key->build_id_bytes)
        return image->build_id_bytes == key->build_id_bytes && memcmp(image->build_id, key->build_id, key->build_id_bytes) == 0;
    return !key->ino || (fstat(image->fd, &st) == 0 && st.st_ino == key->ino);
}

static enum rp_status open_saved(struct rp_image *image, const struct rp_image_key *key, struct rp_err *err)
{
    struct rp_buf text = {0};
    enum rp_status status = RP_OK;

    image->dev = key->dev;
    image->ino = key->ino;
    image->fd = rp_open_regular(image->path);
    if (image->fd >= 0)
        status = read_file(image, err);
    if (status || (image->fd >= 0 && is_as_saved(image, key)))
        return status;
    rp_free(image->problem);
    rp_buf_printf(&text, "%s is %s here; names and unwind rows of it are missing", image->path, image->fd < 0 ? "not" : "of another build");
    image->problem = text.failed ? NULL : rp_strndup(rp_buf_text(&text), text.length);
    rp_buf_release(&text);
    if (image->elf)
        elf_end(image->elf);
    image->elf = NULL;
    image->nsegments = 0;
    image->kind = RP_IMAGE_OTHER;
    image->build_id_bytes = key->build_id_bytes;
    if (key->build_id_bytes)
        memcpy(image->build_id, key->build_id, key->build_id_bytes);
    return image->problem ? RP_OK : rp_fail_nomem(err);
}

static enum rp_status get_offline(struct rp_images *images, const struct rp_image_key *key, uint32_t *id, struct rp_err *err)
{
    struct rp_image *image;
    enum rp_status status;

    if (starts_with(key->path, "//anon"))
        return get_jit(images, key->pid, id, err);
    for (size_t i = 0; i < images->at.n; i++) {
        image = images->at.at[i];
        if (image->ino == key->ino && image->dev == key->dev && strcmp(image->path, key->path) == 0) {
            *id = image->id;
            return RP_OK;
        }
    }
    image = image_new(RP_IMAGE_ELF, key->path);
    if (!image)
        return rp_fail_nomem(err);
    image->pid = key->pid;
    status = key->build_id_bytes <= RP_BUILD_ID_MAX ? open_saved(image, key, err) : RP_OK;
    if (status) {
        image_free(image);
        return status;
    }
    return table_add(images, image, id, err);
}

enum rp_status rp_images_get(struct rp_images *images, const struct rp_image_key *key, uint32_t *id, struct rp_err *err)
{
    struct rp_image *image;
    enum rp_status status;

    if (key->offline)
        return get_offline(images, key, id, err);
    if (strcmp(key->path, "[vdso]") == 0)
        return get_vdso(images, key, id, err);
    if (is_anonymous(key))
        return get_jit(images, key->pid, id, err);
    image = find_file(images, key->dev, key->ino);
    if (image) {
        *id = image->id;
        return RP_OK;
    }
    image = image_new(RP_IMAGE_ELF, NULL);
    if (!image)
        return rp_fail_nomem(err);
    image->pid = key->pid;
    status = open_mapping(image, key, err);
    if (status || (image->kind == RP_IMAGE_OTHER && is_memfd(image))) {
        image_free(image);
        return status ? status : get_jit(images, key->pid, id, err);
    }
    return table_add(images, image, id, err);
}

enum rp_status rp_images_open_path(struct rp_images *images, const char *path, uint32_t *id, struct rp_err *err)
{
    int fd = rp_open_regular(path);
    struct rp_image *image;
    enum rp_status status;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) != 0) {
        status = rp_fail(err, RP_IO, "cannot open %s: %s", path, errno == EINVAL ? "not a regular file" : strerror(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    image = find_file(images, st.st_dev, st.st_ino);
    if (image) {
        close(fd);
        *id = image->id;
        return RP_OK;
    }
    image = image_new(RP_IMAGE_ELF, path);
    if (!image) {
        close(fd);
        return rp_fail_nomem(err);
    }
    image->fd = fd;
    image->dev = st.st_dev;
    image->ino = st.st_ino;
    status = read_file(image, err);
    if (status) {
        image_free(image);
        return status;
    }
    return table_add(images, image, id, err);
}
