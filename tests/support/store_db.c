/* SPDX-License-Identifier: MIT */
/* See store_db.h. */
#include "support/store_db.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/store.h"
#include "support/fake_profile.h"

const char store_text[] = ".run seconds=2.5 hz=997 lost=3 throttled=1 vanished=2 source=cpu-clock host=\"6.1, some CPU\" note=\"kernel not visible\" stack=16384\n"
                          ".process 1234 comm=node command=\"node a.js --x\"\n"
                          ".thread sleeper/77 wall=2 cpu=0.5\n"
                          ".fact limit=100 cols=*\n"
                          ".rate end=1.25 wall=1 cpu=0.98 calls=1000 rows=100000\n"
                          ".rate end=2.25 wall=1 cpu=0.97 calls=990 rows=99000\n"
                          ".module libc.so.6 path=/usr/lib/libc.so.6 build-id=abcdef remedy=libc6-dbg note=\"replaced on disk\"\n"
                          ".symbol malloc module=libc.so.6 raw=malloc@@GLIBC_2.2.5 alias=__libc_malloc alias=__GI___libc_malloc\n"
                          "libc.so.6!malloc;^columnName{stmt.cc:42};Get(int, char const*){stmt.cc:90};main 30 block=2\n"
                          "libc.so.6!?+0x9a1c0;main 2 thread=worker/99\n"
                          "[jit]!JS:*get a.js;main 4 guess=1 block=3\n"
                          "[kernel]!copy_page;libc.so.6!read;main 5 block=500\n"
                          "a</script><b>&\"';x\\;y z\\t\\x1b\\xff;main 6\n"
                          "rec;rec;main 7 block=3\n"
                          "memcpy;[truncated: no unwind row] 1\n"
                          "main 9 state=blocked tag=3 weight=1000000\n";

void store_fake(const char *content, const char *path)
{
    struct rp_profile p;
    struct rp_err err = {0};

    fake_profile(&p, content);
    if (rp_store_save(&p, path, true, &err))
        fail_msg("%s", err.text);
    rp_profile_release(&p);
}

static sqlite3 *db;

void store_db_open(const char *path)
{
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
}

void store_db_close(void)
{
    sqlite3_close(db);
}

void store_db_change(const char *statement)
{
    char *problem = NULL;

    if (sqlite3_exec(db, statement, NULL, NULL, &problem) != SQLITE_OK)
        fail_msg("%s: %s", statement, problem);
}

void store_db_answers(const char *query, const char *want)
{
    struct rp_buf got = {0};
    sqlite3_stmt *s = NULL;

    if (sqlite3_prepare_v2(db, query, -1, &s, NULL) != SQLITE_OK)
        fail_msg("%s: %s", query, sqlite3_errmsg(db));
    while (sqlite3_step(s) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(s); i++)
            rp_buf_printf(&got, "%s%s", i ? "|" : "", (const char *)sqlite3_column_text(s, i));
        rp_buf_putc(&got, '\n');
    }
    sqlite3_finalize(s);
    assert_string_equal(rp_buf_text(&got), want);
    rp_buf_release(&got);
}
