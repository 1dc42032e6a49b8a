/* SPDX-License-Identifier: MIT */
/* See program.h. */
#include "bench/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/limits.h"
#include "base/parse.h"
#include "target/image.h"

enum { PIECE = 1 << 18 };

static bool can_run(const char *path)
{
    struct stat s;

    return !stat(path, &s) && S_ISREG(s.st_mode) && !access(path, X_OK);
}

/* The place of `word` in $PATH, appended to `out`. */
static bool search_path(const char *word, struct rp_buf *out)
{
    const char *path = getenv("PATH"), *piece;
    struct rp_cursor c = rp_cursor_str(path ? path : "/usr/local/bin:/usr/bin:/bin");
    size_t length;

    do {
        rp_cursor_until(&c, ':', &piece, &length);
        rp_buf_clear(out);
        if (length)
            rp_buf_append(out, piece, length);
        else
            rp_buf_putc(out, '.');
        rp_buf_printf(out, "/%s", word);
        if (!out->failed && can_run(rp_buf_text(out)))
            return true;
    } while (rp_cursor_take(&c, ":"));
    return false;
}

enum rp_status rp_program_hash(const char *path, char sha256[RP_SHA256_HEX], struct rp_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t *piece = rp_calloc(1, PIECE), digest[RP_SHA256_BYTES];
    enum rp_status status = RP_OK;
    struct rp_sha256 hash;
    ssize_t got = -1;

    if (!piece) {
        status = rp_fail_nomem(err);
        goto done;
    }
    rp_sha256_init(&hash);
    for (uint64_t at = 0; fd >= 0 && (got = rp_pread_full(fd, piece, PIECE, at)) > 0; at += (uint64_t)got) {
        if (at > RP_BENCH_PROGRAM_MAX) {
            status = rp_fail(err, RP_LIMIT, "%s is larger than %llu GB", path, (unsigned long long)(RP_BENCH_PROGRAM_MAX >> 30));
            goto done;
        }
        rp_sha256_add(&hash, piece, (size_t)got);
    }
    if (got < 0) {
        status = rp_fail(err, RP_IO, "cannot read %s: %s", path, strerror(errno));
        goto done;
    }
    rp_sha256_end(&hash, digest);
    rp_hex(digest, sizeof digest, sha256);
done:
    if (fd >= 0)
        close(fd);
    rp_free(piece);
    return status;
}

/* A program that is no ELF file, or a damaged one, has no build-id; that is no error. */
static enum rp_status read_build_id(struct rp_program *program, struct rp_err *err)
{
    struct rp_images images = {0};
    enum rp_status status = rp_images_init(&images, err);
    struct rp_err ignored;
    uint32_t id;

    if (!status && !rp_images_open_path(&images, program->path, &id, &ignored))
        rp_hex(images.at.at[id]->build_id, images.at.at[id]->build_id_bytes, program->build_id);
    rp_images_release(&images);
    return status;
}

enum rp_status rp_program_find(const char *word, struct rp_arena *arena, struct rp_program *program, struct rp_err *err)
{
    struct rp_buf found = {0};
    enum rp_status status = RP_OK;
    struct stat s;
    char *real;

    *program = (struct rp_program){0};
    if (strchr(word, '/'))
        rp_buf_puts(&found, word);
    else if (!search_path(word, &found))
        status = rp_fail(err, RP_NOTFOUND, "there is no program %s in $PATH", word);
    if (!status && found.failed)
        status = rp_fail_nomem(err);
    if (!status && stat(rp_buf_text(&found), &s))
        status = rp_fail(err, errno == ENOENT ? RP_NOTFOUND : RP_IO, "cannot run %s: %s", word, strerror(errno));
    if (!status && !can_run(rp_buf_text(&found)))
        status = rp_fail(err, RP_FAILED, "cannot run %s: it is no file, or not executable", word);
    real = status ? NULL : realpath(rp_buf_text(&found), NULL);
    if (!status && !real)
        status = rp_fail(err, RP_IO, "cannot find out which file %s is: %s", word, strerror(errno));
    if (real) {
        program->path = rp_arena_strndup(arena, real, strlen(real));
        program->dev = s.st_dev;
        program->ino = s.st_ino;
        if (!program->path)
            status = rp_fail_nomem(err);
    }
    free(real);
    rp_buf_release(&found);
    if (!status)
        status = rp_program_hash(program->path, program->sha256, err);
    return status ? status : read_build_id(program, err);
}

static enum rp_status copy_bytes(const char *from, const char *to, struct rp_err *err)
{
    int in = open(from, O_RDONLY | O_CLOEXEC), out = -1;
    uint8_t *piece = rp_calloc(1, PIECE);
    enum rp_status status = RP_OK;
    struct stat s;
    ssize_t got = 0;

    if (!piece) {
        status = rp_fail_nomem(err);
        goto done;
    }
    if (in < 0 || fstat(in, &s)) {
        status = rp_fail(err, RP_IO, "cannot read %s: %s", from, strerror(errno));
        goto done;
    }
    out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    for (uint64_t at = 0; out >= 0 && (got = rp_pread_full(in, piece, PIECE, at)) > 0; at += (uint64_t)got) {
        if (!rp_write_full(out, piece, (size_t)got))
            break;
    }
    if (out < 0 || got || fchmod(out, s.st_mode & 0777))
        status = rp_fail(err, RP_IO, "cannot copy %s to %s: %s; --snapshot DIR names another place for the copies", from, to, strerror(errno));
done:
    if (in >= 0)
        close(in);
    if (out >= 0 && close(out) && !status)
        status = rp_fail(err, RP_IO, "cannot write %s: %s", to, strerror(errno));
    if (out >= 0 && status)
        (void)unlink(to); /* half a copy would be in the way of the next one */
    rp_free(piece);
    return status;
}

enum rp_status rp_program_copy(const struct rp_program *program, const char *to, bool force, struct rp_err *err)
{
    char there[RP_SHA256_HEX], copied[RP_SHA256_HEX];
    struct rp_err ignored;
    enum rp_status status;
    struct stat s;

    if (!lstat(to, &s)) {
        if (S_ISREG(s.st_mode) && !rp_program_hash(to, there, &ignored) && !strcmp(there, program->sha256) && !access(to, X_OK))
            return RP_OK;
        if (!force)
            return rp_fail(err, RP_EXISTS, "%s is there already and is not %s; --force overwrites it, or --snapshot names another folder", to,
                           program->path);
        if (unlink(to))
            return rp_fail(err, RP_IO, "cannot replace %s: %s", to, strerror(errno));
    }
    status = copy_bytes(program->path, to, err);
    if (!status)
        status = rp_program_hash(to, copied, err);
    if (!status && strcmp(copied, program->sha256) != 0) {
        (void)unlink(to);
        status = rp_fail(err, RP_FAILED, "%s was being written while it was copied; benchmark when it is built", program->path);
    }
    return status;
}

const char *rp_program_same(const struct rp_program *a, const struct rp_program *b)
{
    if (a->dev == b->dev && a->ino == b->ino)
        return "they are the same file";
    if (!strcmp(a->sha256, b->sha256))
        return "they have the same content";
    if (a->build_id[0] && !strcmp(a->build_id, b->build_id))
        return "they have the same build-id";
    return NULL;
}

/* A word that names a file stands for what is in it. */
static bool same_word(const char *a, const char *b)
{
    char one[RP_SHA256_HEX], two[RP_SHA256_HEX];
    struct rp_err ignored;
    struct stat s, t;

    if (!strcmp(a, b))
        return true;
    if (stat(a, &s) || stat(b, &t) || !S_ISREG(s.st_mode) || !S_ISREG(t.st_mode))
        return false;
    if (s.st_dev == t.st_dev && s.st_ino == t.st_ino)
        return true;
    return s.st_size == t.st_size && !rp_program_hash(a, one, &ignored) && !rp_program_hash(b, two, &ignored) && !strcmp(one, two);
}

bool rp_words_same(const struct rp_words *a, const struct rp_words *b)
{
    bool same = a->at.n == b->at.n;

    for (size_t i = 1; same && i < a->at.n; i++)
        same = same_word(a->at.at[i], b->at.at[i]);
    return same;
}

enum rp_status rp_copy_paths(const char *dir, const char *const *names, size_t n, struct rp_arena *arena, const char **paths, struct rp_err *err)
{
    size_t longest = 0;

    for (size_t i = 0; i < n; i++)
        longest = strlen(names[i]) > longest ? strlen(names[i]) : longest;
    for (size_t i = 0; i < n; i++) {
        struct rp_buf path = {0};

        /* DIR/aaa/NAME: the folder's name is as much longer as the program's is shorter. */
        rp_buf_printf(&path, "%s/", dir);
        rp_buf_fill(&path, (char)('a' + (int)i), (int)(longest - strlen(names[i])) + 1);
        rp_buf_printf(&path, "/%s", names[i]);
        paths[i] = path.failed ? NULL : rp_arena_strndup(arena, rp_buf_text(&path), path.length);
        rp_buf_release(&path);
        if (!paths[i])
            return rp_fail_nomem(err);
    }
    return RP_OK;
}
