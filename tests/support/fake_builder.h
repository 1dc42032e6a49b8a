/* SPDX-License-Identifier: MIT */
/* Inside of the fake profile builder: what its stacks (fake_profile.c) and its directives (fake_directives.c) share. */
#ifndef TESTS_FAKE_BUILDER_H
#define TESTS_FAKE_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/profile.h"

enum { FAKE_FRAMES_MAX = 8192, FAKE_KEYS_MAX = 16 };

struct fake_text {
    const char *at;
    size_t n;
};

struct fake_key {
    struct fake_text name, value;
};

struct fake_builder {
    struct rp_profile *p;
    struct rp_err *err;
    unsigned line;
    struct fake_text frames[FAKE_FRAMES_MAX];
};

/* One frame, taken apart. */
struct fake_frame {
    bool inlined, has_offset, unnamed;
    struct fake_text module, name, file;
    uint64_t offset, line;
};

/* Fills the error with the line's number, `what` and `at`. */
enum rp_status fake_bad(const struct fake_builder *b, const char *what, struct fake_text at);

bool fake_is(struct fake_text t, const char *word);
bool fake_number(struct fake_text t, uint64_t *value);
/* "250ns", "10us", "2.5ms", "1s". */
bool fake_duration(struct fake_text t, uint64_t *ns);

/* Interns a text, its escapes resolved. */
enum rp_status fake_intern(struct fake_builder *b, struct fake_text t, uint32_t *id);

/* Found or made. */
enum rp_status fake_image_of(struct fake_builder *b, struct fake_text name, uint32_t *image);
enum rp_status fake_function_of(struct fake_builder *b, const struct fake_frame *f, uint32_t image, uint32_t *id);
/* The last generation of `pid`, made when there is none. */
enum rp_status fake_process_of(struct fake_builder *b, uint64_t pid, uint32_t *id);
enum rp_status fake_process_add(struct fake_builder *b, uint64_t pid, uint64_t generation, uint32_t *id);
enum rp_status fake_thread_of(struct fake_builder *b, struct fake_text name, uint64_t pid, uint32_t *id);

/* Takes `key=value` words from the end of `line`, which becomes what stands before them: last first. */
size_t fake_keys_of(struct fake_text *line, struct fake_key *keys);

/* The first `stop` that no backslash precedes; `t.n` when there is none. */
size_t fake_find(struct fake_text t, char stop);

/* A line that starts with a dot. */
enum rp_status fake_directive(struct fake_builder *b, struct fake_text line);

#endif
