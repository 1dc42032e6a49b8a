/* SPDX-License-Identifier: MIT */
/* See bench_copies.h. */
#include "cli/bench_copies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

static enum rp_status find(struct rp_bench_copies *c, const char *text, const char *what, struct rp_words *words, struct rp_program *program,
                           struct rp_err *err)
{
    enum rp_status status = rp_words_split(words, &c->arena, text, strlen(text), what, err);

    if (!status && !words->at.n)
        status = rp_fail(err, RP_USAGE, "%s names no command", what);
    return status ? status : rp_program_find(words->at.at[0], &c->arena, program, err);
}

static enum rp_status refuse_itself(struct rp_bench_copies *c, struct rp_err *err)
{
    const char *same = rp_program_same(&c->old, &c->new);

    if (!same)
        return RP_OK;
    c->same_program = true;
    if (!rp_words_same(&c->commands[0], &c->commands[1]))
        return RP_OK;
    return rp_fail(err, RP_USAGE,
                   "--old and --new are one program, %s and %s: %s; copy the baseline away before the new one is built, or measure the noise with "
                   "--noise",
                   c->old.path, c->new.path, same);
}

/* Every folder on the way to the copies; those that are there already are good. */
static enum rp_status make_folder(const char *path, struct rp_err *err)
{
    if (mkdir(path, 0777) && errno != EEXIST)
        return rp_fail(err, RP_IO, "cannot make the folder %s: %s", path, strerror(errno));
    return RP_OK;
}

static enum rp_status make_place(struct rp_bench_copies *c, const struct rp_settings *s, const char **dir, struct rp_err *err)
{
    const char *tmp = getenv("TMPDIR");
    struct rp_buf path = {0};
    enum rp_status status = RP_OK;
    char *real;

    if (s->bench.snapshot) {
        status = make_folder(s->bench.snapshot, err);
        rp_buf_puts(&path, s->bench.snapshot);
    } else {
        rp_buf_printf(&path, "%s/rowprof-bench-XXXXXX", tmp && *tmp ? tmp : "/tmp");
        if (!path.failed && !mkdtemp(path.data))
            status = rp_fail(err, RP_IO, "cannot make the folder %s: %s; --snapshot DIR names another place", rp_buf_text(&path), strerror(errno));
    }
    if (!status && path.failed)
        status = rp_fail_nomem(err);
    real = status ? NULL : realpath(rp_buf_text(&path), NULL);
    *dir = real ? rp_arena_strndup(&c->arena, real, strlen(real)) : NULL;
    if (!status && !*dir)
        status = rp_fail(err, RP_IO, "cannot find out where %s is: %s", rp_buf_text(&path), strerror(errno));
    if (!status && !s->bench.snapshot)
        c->temporary = *dir;
    free(real);
    rp_buf_release(&path);
    return status;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* DIR/a/NAME -> DIR/a */
static enum rp_status make_parent(struct rp_bench_copies *c, const char *path, struct rp_err *err)
{
    const char *parent = rp_arena_strndup(&c->arena, path, (size_t)(strrchr(path, '/') - path));

    return parent ? make_folder(parent, err) : rp_fail_nomem(err);
}

static enum rp_status copy_all(struct rp_bench_copies *c, const struct rp_settings *s, struct rp_err *err)
{
    const struct rp_program *programs[RP_ARMS] = {&c->old, &c->old, c->noise ? &c->old : &c->new};
    const char *names[RP_ARMS], *paths[RP_ARMS], *dir;
    enum rp_status status = make_place(c, s, &dir, err);

    for (size_t i = 0; i < RP_ARMS; i++)
        names[i] = base_name(programs[i]->path);
    if (!status)
        status = rp_copy_paths(dir, names, RP_ARMS, &c->arena, paths, err);
    for (size_t i = 0; !status && i < RP_ARMS; i++) {
        c->arms[i].file = paths[i];
        status = make_parent(c, paths[i], err);
        if (!status)
            status = rp_program_copy(programs[i], paths[i], s->force, err);
    }
    return status;
}

/* The words of each arm: its command, with the path of its copy in front. */
static enum rp_status fill_words(struct rp_bench_copies *c, struct rp_err *err)
{
    enum rp_status status = RP_OK;

    for (size_t arm = 0; arm < RP_ARMS; arm++) {
        const struct rp_words *command = &c->commands[arm == RP_ARM_NEW && !c->noise ? 1 : 0];

        status = rp_words_add(&c->arms[arm].words, c->arms[arm].file, err);
        for (size_t i = 1; !status && i < command->at.n; i++)
            status = rp_words_add(&c->arms[arm].words, command->at.at[i], err);
        if (status)
            break;
    }
    return status;
}

enum rp_status rp_bench_copies_make(struct rp_bench_copies *c, const struct rp_settings *s, struct rp_err *err)
{
    const struct rp_bench_settings *b = &s->bench;
    enum rp_status status;

    c->noise = b->noise != NULL;
    c->in_place = b->in_place;
    status = find(c, c->noise ? b->noise : b->old, c->noise ? "--noise" : "--old", &c->commands[0], &c->old, err);
    if (!status && !c->noise)
        status = find(c, b->new, "--new", &c->commands[1], &c->new, err);
    if (!status && !c->noise)
        status = refuse_itself(c, err);
    if (status)
        return status;
    if (c->in_place) {
        for (size_t i = 0; i < RP_ARMS; i++)
            c->arms[i].file = i == RP_ARM_NEW && !c->noise ? c->new.path : c->old.path;
    } else {
        status = copy_all(c, s, err);
    }
    return status ? status : fill_words(c, err);
}

static enum rp_status still(const struct rp_program *program, struct rp_err *err)
{
    char now[RP_SHA256_HEX];

    if (rp_program_hash(program->path, now, err))
        return err->status;
    if (strcmp(now, program->sha256) != 0)
        return rp_fail(err, RP_FAILED, "%s was replaced while it was measured; without --in-place copies are run", program->path);
    return RP_OK;
}

enum rp_status rp_bench_copies_unchanged(const struct rp_bench_copies *c, struct rp_err *err)
{
    enum rp_status status = c->in_place ? still(&c->old, err) : RP_OK;

    return status || !c->in_place || c->noise ? status : still(&c->new, err);
}

void rp_bench_copies_release(struct rp_bench_copies *c)
{
    for (size_t i = 0; i < RP_ARMS; i++) {
        const char *file = c->arms[i].file, *slash = file ? strrchr(file, '/') : NULL;
        const char *parent = slash && c->temporary ? rp_arena_strndup(&c->arena, file, (size_t)(slash - file)) : NULL;

        if (parent) {
            (void)unlink(file);
            (void)rmdir(parent);
        }
        rp_words_release(&c->arms[i].words);
    }
    if (c->temporary)
        (void)rmdir(c->temporary);
    rp_words_release(&c->commands[0]);
    rp_words_release(&c->commands[1]);
    rp_arena_release(&c->arena);
}
