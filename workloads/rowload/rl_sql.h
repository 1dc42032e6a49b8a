/* SPDX-License-Identifier: MIT */
/*
 * Opening databases and running statements, with sentences for what goes wrong. `error` is the run's or the worker's.
 */
#ifndef RL_SQL_H
#define RL_SQL_H

#include <sqlite3.h>

#include "rl_run.h"

/* Fills the sentence "SQLite could not WHAT: ...". Always returns false. */
bool rl_sql_failed(sqlite3 *db, const char *what, char error[RL_ERROR_BYTES]);

/* Opens `path`; waits up to 30 s for locks. *db is to be closed in any case. */
bool rl_sql_open(const char *path, int flags, sqlite3 **db, char error[RL_ERROR_BYTES]);

bool rl_sql_do(sqlite3 *db, const char *sql, char error[RL_ERROR_BYTES]);

bool rl_sql_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **stmt, char error[RL_ERROR_BYTES]);

/* The text of the first value of the first row, at most size - 1 bytes; empty when there is none. */
bool rl_sql_text(sqlite3 *db, const char *sql, char *text, size_t size, char error[RL_ERROR_BYTES]);

#endif
