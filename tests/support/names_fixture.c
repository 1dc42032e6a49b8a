/* SPDX-License-Identifier: MIT */
/* See names_fixture.h. */
#include "support/names_fixture.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/parse.h"

static char made[64][64];
static unsigned nmade;

void names_open(struct names_fixture *f, const struct rp_symbolizer_options *options)
{
    *f = (struct names_fixture){0};
    assert_int_equal(rp_images_init(&f->images, &f->err), RP_OK);
    assert_int_equal(rp_profile_init(&f->profile, &f->err), RP_OK);
    assert_int_equal(rp_unwinder_new(&f->images, &f->unwinder, &f->err), RP_OK);
    assert_int_equal(rp_symbolizer_new(&f->images, f->unwinder, options, &f->symbolizer, &f->err), RP_OK);
}

void names_close(struct names_fixture *f)
{
    rp_symbolizer_free(f->symbolizer);
    rp_unwinder_free(f->unwinder);
    rp_profile_release(&f->profile);
    rp_images_release(&f->images);
}

static void add_rows(struct names_fixture *f)
{
    while (f->profile.images.n < f->images.at.n) {
        const struct rp_image *image = f->images.at.at[f->profile.images.n];
        const char *path = image->path ? image->path : "", *slash = strrchr(path, '/');
        struct rp_profile_image row = {.kind = image->kind}, *added;

        path = slash ? slash + 1 : path;
        assert_int_equal(rp_profile_string(&f->profile, path, strlen(path), &row.name, &f->err), RP_OK);
        added = rp_vec_add(&f->profile.images);
        if (!added)
            fail_msg("no memory");
        else
            *added = row;
    }
}

uint32_t names_image(struct names_fixture *f, const char *path)
{
    uint32_t id;

    if (rp_images_open_path(&f->images, path, &id, &f->err))
        fail_msg("%s", f->err.text);
    add_rows(f);
    return id;
}

uint32_t names_other_image(struct names_fixture *f, enum rp_image_kind kind, const char *path, uint32_t pid)
{
    struct rp_image *image = rp_calloc(1, sizeof *image), **slot = rp_vec_add(&f->images.at);

    if (!image || !slot) {
        fail_msg("no memory");
        return 0;
    }
    *image = (struct rp_image){.id = (uint32_t)f->images.at.n - 1, .kind = kind, .pid = pid, .fd = -1};
    image->path = rp_strndup(path, strlen(path));
    assert_non_null(image->path);
    *slot = image;
    add_rows(f);
    return image->id;
}

uint32_t names_at(struct names_fixture *f, uint32_t image, uint64_t addr, uint32_t flags, uint32_t epoch)
{
    uint32_t location;

    assert_int_equal(rp_profile_location(&f->profile, image, addr, flags, epoch, &location, &f->err), RP_OK);
    if (rp_symbolize(f->symbolizer, &f->profile, &f->err))
        fail_msg("%s", f->err.text);
    assert_true(f->profile.locations.at[location].nlines > 0);
    return location;
}

const struct rp_line *names_line(const struct names_fixture *f, uint32_t location, int i)
{
    const struct rp_location *at = &f->profile.locations.at[location];
    uint32_t n = i < 0 ? at->nlines - 1 : (uint32_t)i;

    assert_true(n < at->nlines);
    return &f->profile.lines.at[at->first_line + n];
}

const struct rp_function *names_function(const struct names_fixture *f, uint32_t location, int i)
{
    return &f->profile.functions.at[names_line(f, location, i)->function];
}

const char *names_shown(struct names_fixture *f, uint32_t image, uint64_t addr)
{
    uint32_t location = names_at(f, image, addr, 0, 0);

    return rp_profile_text(&f->profile, names_function(f, location, -1)->name);
}

bool names_has_alias(const struct names_fixture *f, const struct rp_function *function, const char *raw)
{
    bool found = strcmp(rp_profile_text(&f->profile, function->raw), raw) == 0;

    for (uint32_t i = 0; i < function->naliases; i++)
        found = found || strcmp(rp_profile_text(&f->profile, f->profile.aliases.at[function->first_alias + i]), raw) == 0;
    return found;
}

static void remove_all(void)
{
    for (unsigned i = 0; i < nmade; i++) {
        char command[96];

        snprintf(command, sizeof command, "rm -rf '%s'", made[i]);
        if (system(command))
            fprintf(stderr, "%s stays behind\n", made[i]);
    }
}

const char *names_dir(void)
{
    if (!nmade)
        atexit(remove_all);
    assert_true(nmade < sizeof made / sizeof *made);
    snprintf(made[nmade], sizeof *made, "/tmp/rowprof-names-XXXXXX");
    assert_non_null(mkdtemp(made[nmade]));
    return made[nmade++];
}

const char *names_path(const char *dir, const char *name)
{
    static char paths[4][512];
    static unsigned at;
    char *path = paths[at++ % 4];

    snprintf(path, sizeof *paths, "%s/%s", dir, name);
    return path;
}

void names_write(const char *dir, const char *name, const char *text)
{
    FILE *file = fopen(names_path(dir, name), "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static bool run(const char *dir, const char *format, va_list args)
{
    struct rp_buf command = {0};
    int status;

    rp_buf_printf(&command, "cd '%s' && { ", dir);
    rp_buf_vprintf(&command, format, args);
    rp_buf_puts(&command, "\n}");
    status = system(rp_buf_text(&command));
    rp_buf_release(&command);
    return status == 0;
}

bool names_try(const char *dir, const char *format, ...)
{
    va_list args;
    bool good;

    va_start(args, format);
    good = run(dir, format, args);
    va_end(args);
    return good;
}

void names_run(const char *dir, const char *format, ...)
{
    va_list args;
    bool good;

    va_start(args, format);
    good = run(dir, format, args);
    va_end(args);
    if (!good)
        fail_msg("command failed: %s", format);
}

const char *names_output(const char *dir, const char *format, ...)
{
    static char text[1 << 16];
    struct rp_buf command = {0};
    va_list args;
    FILE *pipe;
    size_t got;

    rp_buf_printf(&command, "cd '%s' && ", dir);
    va_start(args, format);
    rp_buf_vprintf(&command, format, args);
    va_end(args);
    pipe = popen(rp_buf_text(&command), "r");
    assert_non_null(pipe);
    got = fread(text, 1, sizeof text - 1, pipe);
    text[got] = '\0';
    if (got && text[got - 1] == '\n')
        text[got - 1] = '\0';
    assert_int_equal(pclose(pipe), 0);
    rp_buf_release(&command);
    return text;
}

uint64_t names_nm(const char *dir, const char *file, const char *symbol)
{
    const char *text = names_output(dir, "nm '%s' | awk -v n='%s' '$3 == n { print $1; exit }'", file, symbol);
    struct rp_cursor c = rp_cursor_str(text);
    uint64_t addr = 0;

    if (!rp_cursor_hex(&c, &addr))
        fail_msg("nm finds no %s in %s", symbol, file);
    return addr;
}
