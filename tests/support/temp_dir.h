/* SPDX-License-Identifier: MIT */
/* A directory of the running test's own, open to other users (some tests give up root). One at a time: the trap is a setup that makes a second one
 * before the first was removed. */
#ifndef TESTS_TEMP_DIR_H
#define TESTS_TEMP_DIR_H

/* Its path, without a slash at the end. */
extern char temp_dir[64];

/* Setup and teardown for cmocka, of a test or of a group; `state` is not used. */
int temp_dir_make(void **state);
int temp_dir_remove(void **state);

/* The path of `name` in it; good until the sixteenth call after this one. */
const char *temp_dir_path(const char *name);

#endif
