/* SPDX-License-Identifier: MIT */
/* A profile file: an SQLite database (application_id, user_version, STRICT tables) that a person can query with SQL. Written in one transaction
 * beside its place and renamed, so a file is whole or not there. Raw stacks are stored, categories are not. The schema stands, with comments, in store/schema.sql.h
 * and in `sqlite3 FILE .schema`; a view `stacks_text` and a view `samples_by_function` make first questions easy. */
#ifndef RP_STORE_STORE_H
#define RP_STORE_STORE_H

#include <stdbool.h>

#include "base/status.h"
#include "model/profile.h"

/* "rowp" */
#define RP_STORE_APPLICATION_ID 0x726f7770
/* 2: waits, locks, holders. Files of version 1 are read. */
#define RP_STORE_VERSION 2

/* RP_EXISTS when `path` is there and `force` is not given; RP_IO. A symlink, directory or device at `path` is never replaced by a rename: said so. */
enum rp_status rp_store_save(const struct rp_profile *profile, const char *path, bool force, struct rp_err *err);

/* `profile` is initialised here. RP_IO; RP_FORMAT when it is no profile, damaged, or of a newer version (says which); every reference in the file
 * is checked, a hostile file gives an error and nothing else. */
enum rp_status rp_store_load(struct rp_profile *profile, const char *path, struct rp_err *err);

#endif
