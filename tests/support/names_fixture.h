/* SPDX-License-Identifier: MIT */
/* A symbolizer with everything around it, and files built at test time: for tests whose truth is what was compiled. */
#ifndef TESTS_SUPPORT_NAMES_FIXTURE_H
#define TESTS_SUPPORT_NAMES_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/profile.h"
#include "symbolize/symbolize.h"
#include "target/image.h"
#include "unwind/unwind.h"

struct names_fixture {
    struct rp_images images;
    struct rp_profile profile;
    struct rp_unwinder *unwinder;
    struct rp_symbolizer *symbolizer;
    struct rp_err err;
};

/* Everything empty and ready. `options` may be NULL. All fail the test when they fail. */
void names_open(struct names_fixture *f, const struct rp_symbolizer_options *options);
void names_close(struct names_fixture *f);

/* Opens a file as an image. */
uint32_t names_image(struct names_fixture *f, const char *path);
/* Adds an image of another kind, owned by process `pid`. */
uint32_t names_other_image(struct names_fixture *f, enum rp_image_kind kind, const char *path, uint32_t pid);

/* Symbolizes one location and returns its number. */
uint32_t names_at(struct names_fixture *f, uint32_t image, uint64_t addr, uint32_t flags, uint32_t epoch);
/* Function, name and line `i` (0 innermost) of a location; the last one with -1. */
const struct rp_line *names_line(const struct names_fixture *f, uint32_t location, int i);
const struct rp_function *names_function(const struct names_fixture *f, uint32_t location, int i);
/* The name shown at an address, outermost function. Good until close. */
const char *names_shown(struct names_fixture *f, uint32_t image, uint64_t addr);
/* True when `raw` is the raw name or an alias of the function. */
bool names_has_alias(const struct names_fixture *f, const struct rp_function *function, const char *raw);

/* A new directory, removed with all it holds at exit. */
const char *names_dir(void);
void names_write(const char *dir, const char *name, const char *text);
/* Runs a shell command with the working directory `dir`; fails the test unless it succeeds. */
void names_run(const char *dir, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same; returns whether it succeeded. */
bool names_try(const char *dir, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What a command prints, without the last newline, in a buffer that lives until the next call. */
const char *names_output(const char *dir, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The address that nm gives for a symbol of a file. */
uint64_t names_nm(const char *dir, const char *file, const char *symbol);
/* `dir`/`name`, good until the fourth next call. */
const char *names_path(const char *dir, const char *name);

#endif
