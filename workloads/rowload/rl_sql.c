/* SPDX-License-Identifier: MIT */
/*
 * SQLite with sentences: see rl_sql.h.
 */
#include "rl_sql.h"

enum { BUSY_MS = 30000 };

bool rl_sql_failed(sqlite3 *db, const char *what, char error[RL_ERROR_BYTES])
{
    (void)snprintf(error, RL_ERROR_BYTES, "SQLite could not %.100s: %s.", what, sqlite3_errmsg(db));
    return false;
}

bool rl_sql_open(const char *path, int flags, sqlite3 **db, char error[RL_ERROR_BYTES])
{
    if (sqlite3_open_v2(path, db, flags, NULL) != SQLITE_OK) {
        (void)snprintf(error, RL_ERROR_BYTES, "SQLite could not open %.120s: %s.", path, sqlite3_errmsg(*db));
        return false;
    }
    (void)sqlite3_busy_timeout(*db, BUSY_MS);
    return true;
}

bool rl_sql_do(sqlite3 *db, const char *sql, char error[RL_ERROR_BYTES])
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK || rl_sql_failed(db, sql, error);
}

bool rl_sql_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **stmt, char error[RL_ERROR_BYTES])
{
    return sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, stmt, NULL) == SQLITE_OK ||
           rl_sql_failed(db, sql, error);
}

bool rl_sql_text(sqlite3 *db, const char *sql, char *text, size_t size, char error[RL_ERROR_BYTES])
{
    sqlite3_stmt *stmt = NULL;
    text[0] = '\0';
    if (!rl_sql_prepare(db, sql, &stmt, error))
        return false;
    int step = sqlite3_step(stmt);
    if (step == SQLITE_ROW && sqlite3_column_text(stmt, 0))
        (void)snprintf(text, size, "%s", (const char *)sqlite3_column_text(stmt, 0));
    (void)sqlite3_finalize(stmt);
    return step == SQLITE_ROW || step == SQLITE_DONE || rl_sql_failed(db, sql, error);
}
