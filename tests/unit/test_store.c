/* SPDX-License-Identifier: MIT */
/* Profile files: what is saved is loaded, what people ask with SQL is answered, and no file that somebody made up does more than fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "store/store.h"
#include "support/fake_view.h"

static const char text[] = ".run seconds=2.5 hz=997 lost=3 throttled=1 vanished=2 source=cpu-clock host=\"6.1, some CPU\" note=\"kernel not visible\" stack=16384\n"
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

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/rowprof-store-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static const char *in_dir(const char *name)
{
    static char path[16][256];
    static unsigned next;
    char *to = path[next++ % 16];

    snprintf(to, sizeof path[0], "%s/%s", dir, name);
    return to;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static int remove_dir(void **state)
{
    (void)state;
    return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void save(const char *content, const char *path)
{
    struct rp_profile p;
    struct rp_err err = {0};

    fake_profile(&p, content);
    if (rp_store_save(&p, path, true, &err))
        fail_msg("%s", err.text);
    rp_profile_release(&p);
}

static void assert_load_fails(const char *path, enum rp_status status, const char *part)
{
    struct rp_profile p;
    struct rp_err err = {0};

    assert_int_equal(rp_store_load(&p, path, &err), status);
    assert_int_equal(err.status, status);
    if (!strstr(err.text, part))
        fail_msg("\"%s\" does not say \"%s\"", err.text, part);
    assert_null(p.nodes.at); /* nothing is left behind */
}

static void test_what_is_saved_is_loaded(void **state)
{
    struct rp_profile p, q;
    struct rp_buf why = {0};
    struct rp_err err = {0};
    uint32_t id;

    (void)state;
    fake_profile(&p, text);
    p.run.started_unix_ns = 1700000000123456789u;
    p.run.kernel_visible = 1;
    p.run.threads_unsampled = 4;
    p.run.map_lines = 11;
    p.run.map_rejected = 12;
    p.run.stack_grown = 1;
    p.images.at[2].ino = UINT64_MAX;
    p.nblocks = 510;
    assert_int_equal(rp_store_save(&p, in_dir("a.rowprof"), false, &err), RP_OK);
    assert_int_equal(rp_store_load(&q, in_dir("a.rowprof"), &err), RP_OK);
    if (!fake_profile_same(&p, &q, &why))
        fail_msg("%s", rp_buf_text(&why));
    /* The loaded one is as alive as the other: its indexes know what is there. */
    assert_int_equal(rp_profile_node(&q, q.nodes.at[q.nodes.n - 1].parent, q.nodes.at[q.nodes.n - 1].location, &id, &err), RP_OK);
    assert_int_equal(id, q.nodes.n - 1);
    rp_profile_release(&q);
    rp_profile_release(&p);
}

/* So that equal means something: each kind of change is seen. */
static void test_comparison_sees_differences(void **state)
{
    struct rp_profile p, q;
    struct rp_buf why = {0};

    (void)state;
    fake_profile(&p, text);
    fake_profile(&q, text);
    assert_true(fake_profile_same(&p, &q, &why));
    q.counts.at[0].n++;
    assert_false(fake_profile_same(&p, &q, &why));
    q.counts.at[0].n--;
    q.lines.at[0].line++;
    assert_false(fake_profile_same(&p, &q, &why));
    rp_profile_release(&q);
    fake_profile(&q, "main 1\n");
    assert_false(fake_profile_same(&p, &q, &why));
    rp_profile_release(&q);
    rp_profile_release(&p);
    rp_buf_release(&why);
}

static void test_equal_profiles_make_equal_files(void **state)
{
    struct rp_buf a = {0}, b = {0};
    struct rp_err err = {0};

    (void)state;
    save(text, in_dir("one"));
    save(text, in_dir("two"));
    assert_int_equal(rp_read_file(in_dir("one"), 1 << 24, &a, &err), RP_OK);
    assert_int_equal(rp_read_file(in_dir("two"), 1 << 24, &b, &err), RP_OK);
    assert_int_equal(a.length, b.length);
    assert_memory_equal(a.data, b.data, a.length);
    rp_buf_release(&a);
    rp_buf_release(&b);
}

static sqlite3 *db;

static void open_db(const char *path)
{
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
}

static void sql(const char *statement)
{
    char *problem = NULL;

    if (sqlite3_exec(db, statement, NULL, NULL, &problem) != SQLITE_OK)
        fail_msg("%s: %s", statement, problem);
}

/* Rows as text, columns parted by |, rows by newlines. */
static void assert_answer(const char *query, const char *want)
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

static void test_people_can_ask_with_sql(void **state)
{
    (void)state;
    save(text, in_dir("sql"));
    open_db(in_dir("sql"));
    assert_answer("PRAGMA integrity_check", "ok\n");
    assert_answer("PRAGMA foreign_key_check", "");
    assert_answer("PRAGMA application_id", "1919907696\n"); /* "rowp" */
    assert_answer("PRAGMA user_version", "2\n");
    assert_answer("SELECT text, samples FROM stacks_text ORDER BY samples DESC LIMIT 3",
                  "malloc;columnName;Get(int, char const*);main|30\nrec;rec;main|7\na</script><b>&\"';x:y z\t\x1b\xff;main|6\n");
    assert_answer("SELECT * FROM samples_by_function LIMIT 2", "malloc|libc.so.6|30|30\nrec|app|7|7\n");
    assert_answer("SELECT self, total FROM samples_by_function WHERE name = 'main'", "0|54\n");
    assert_answer("SELECT sum(self) FROM samples_by_function", "55\n");
    assert_answer("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%STRICT'", "0\n");
    sqlite3_close(db);
}

/* The table by function, computed by SQLite in quite another way. */
static void test_sql_and_view_agree(void **state)
{
    struct fake_view v;
    struct rp_group_table g;
    struct rp_buf want = {0};
    struct rp_err err = {0};

    (void)state;
    fake_view(&v, text, "categories: []\n", NULL);
    assert_int_equal(rp_store_save(&v.profile, in_dir("agree"), true, &err), RP_OK);
    assert_int_equal(rp_view_groups(v.view, RP_BY_FUNCTION, &g, &err), RP_OK);
    assert_int_equal(g.rows.n, 13);
    open_db(in_dir("agree"));
    for (size_t i = 0; i < g.rows.n; i++) {
        const struct rp_function *f = &v.profile.functions.at[g.rows.at[i].key];
        struct rp_buf query = {0};

        rp_buf_printf(&query, "SELECT self, total FROM samples_by_function WHERE module = '%s' AND name = (SELECT text FROM strings WHERE id = %u)",
                      rp_profile_text(&v.profile, f->module), f->name);
        rp_buf_clear(&want);
        rp_buf_printf(&want, "%lu|%lu\n", (unsigned long)g.rows.at[i].self, (unsigned long)g.rows.at[i].total);
        assert_answer(rp_buf_text(&query), rp_buf_text(&want));
        rp_buf_release(&query);
    }
    assert_answer("SELECT count(*) FROM samples_by_function", "13\n");
    sqlite3_close(db);
    rp_group_table_release(&g);
    rp_buf_release(&want);
    fake_view_release(&v);
}

static void test_waits_locks_and_holders_come_back(void **state)
{
    struct rp_profile p, loaded;
    struct rp_lock lock = {.process = 0, .address = 0xffffffff00001000u, .image = 0};
    struct rp_err err = {0};
    struct rp_buf why = {0};
    uint32_t at = 9;

    (void)state;
    fake_profile(&p, "main 1\n");
    p.run.waits = 1;
    p.run.switches = 12;
    p.run.wait_stacks = 2;
    p.run.cpus = 4;
    p.threads.at[0].preempted_ns = 5;
    p.threads.at[0].run_delay_ns = 6;
    assert_int_equal(rp_profile_string(&p, "rooms.db", 8, &lock.database, &err), RP_OK);
    assert_int_equal(rp_profile_lock(&p, &lock, &at, &err), RP_OK);
    assert_int_equal(rp_profile_wait(&p, 0, 2000000, 1, at + 1, 202, &err), RP_OK);
    assert_int_equal(rp_profile_wait(&p, 0, 3000000, 1, 0, -1, &err), RP_OK);
    assert_int_equal(rp_profile_wait(&p, 0, 2000001, 0, 0, -1, &err), RP_OK);
    assert_int_equal(rp_profile_holder(&p, at, UINT32_MAX, 0, RP_STATE_BLOCKED, 2000000, &err), RP_OK);
    assert_int_equal(rp_profile_holder(&p, at, 0, 1, RP_STATE_RUNNING, 7, &err), RP_OK);
    assert_int_equal(rp_store_save(&p, in_dir("waits"), true, &err), RP_OK);
    assert_int_equal(rp_store_load(&loaded, in_dir("waits"), &err), RP_OK);
    if (!fake_profile_same(&p, &loaded, &why))
        fail_msg("%s", rp_buf_text(&why));
    open_db(in_dir("waits"));
    assert_answer("PRAGMA foreign_key_check", "");
    assert_answer("SELECT sum(n), sum(ns) FROM wait_totals", "3|7000001\n");
    assert_answer("SELECT ifnull(syscall, 'none'), n FROM waits ORDER BY rowid", "202|1\nnone|1\n");
    sqlite3_close(db);
    rp_profile_release(&p);
    rp_profile_release(&loaded);
}

/* One that the first released version wrote. */
static void test_files_of_version_1_are_read(void **state)
{
    struct rp_profile p;
    struct rp_err err = {0};

    (void)state;
    assert_int_equal(rp_store_load(&p, ROWPROF_SOURCE_DIR "/tests/fuzz/corpus/store/whole", &err), RP_OK);
    assert_int_equal(p.run.waits, 0);
    assert_int_equal(p.waits.n, 0);
    assert_true(p.counts.n > 0 && p.threads.n > 0);
    rp_profile_release(&p);
}

static void test_nothing_is_overwritten(void **state)
{
    struct rp_profile p;
    struct rp_err err = {0};
    struct stat st;
    struct rp_buf content = {0};

    (void)state;
    fake_profile(&p, "main 1\n");
    assert_int_equal(rp_store_save(&p, in_dir("once"), false, &err), RP_OK);
    assert_int_equal(rp_store_save(&p, in_dir("once"), false, &err), RP_EXISTS);
    assert_non_null(strstr(err.text, "--force"));
    assert_int_equal(rp_store_save(&p, in_dir("once"), true, &err), RP_OK);

    assert_int_equal(symlink("once", in_dir("link")), 0);
    assert_int_equal(rp_store_save(&p, in_dir("link"), true, &err), RP_IO);
    assert_non_null(strstr(err.text, "symbolic link"));
    assert_int_equal(lstat(in_dir("link"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(symlink("nowhere", in_dir("dangling")), 0);
    assert_int_equal(rp_store_save(&p, in_dir("dangling"), true, &err), RP_IO);

    assert_int_equal(rp_store_save(&p, dir, true, &err), RP_IO);
    assert_non_null(strstr(err.text, "is a directory"));
    assert_int_equal(rp_store_save(&p, "/dev/null", true, &err), RP_IO);
    assert_non_null(strstr(err.text, "device"));
    assert_int_equal(mkfifo(in_dir("pipe"), 0600), 0);
    assert_int_equal(rp_store_save(&p, in_dir("pipe"), true, &err), RP_IO);
    assert_int_equal(rp_store_save(&p, in_dir("no/such/place"), true, &err), RP_IO);
    assert_int_equal(rp_store_save(&p, "", true, &err), RP_IO);
    rp_profile_release(&p);
    rp_buf_release(&content);
}

static void test_names_that_sqlite_reads_otherwise(void **state)
{
    struct rp_profile p, q;
    struct rp_err err = {0};
    char *here = getcwd(NULL, 0), twice[256];
    static const char *const names[] = {":memory:", "file:x?mode=memory", "a b%20c#d?e", "\xff", "-v"};

    (void)state;
    fake_profile(&p, "main 1\n");
    assert_int_equal(chdir(dir), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(rp_store_save(&p, names[i], false, &err), RP_OK);
        assert_int_equal(access(names[i], F_OK), 0);
        assert_int_equal(rp_store_load(&q, names[i], &err), RP_OK);
        rp_profile_release(&q);
    }
    assert_int_equal(chdir(here), 0);
    snprintf(twice, sizeof twice, "/%s/-v", dir); /* "file://tmp" would name a host */
    assert_int_equal(rp_store_load(&q, twice, &err), RP_OK);
    rp_profile_release(&q);
    rp_profile_release(&p);
    free(here);
}

/* No half-written file stays: neither under the name nor beside it. */
static void test_a_failed_save_leaves_nothing(void **state)
{
    struct rp_profile p;
    struct rp_err err = {0};
    struct rp_buf ls = {0};

    (void)state;
    assert_int_equal(mkdir(in_dir("d"), 0700), 0);
    fake_profile(&p, "main 1\n");
    p.counts.at[0].thread = 7; /* is not there */
    assert_int_equal(rp_store_save(&p, in_dir("d/f"), false, &err), RP_FAILED);
    assert_non_null(strstr(err.text, "thread of row 0 of counts names a thread that is not there"));
    assert_int_equal(rmdir(in_dir("d")), 0); /* it is empty */
    rp_profile_release(&p);
    rp_buf_release(&ls);
}

static void write_bytes(const char *path, const void *bytes, size_t n)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);

    assert_true(fd >= 0);
    assert_true(rp_write_full(fd, bytes, n));
    close(fd);
}

static void test_files_that_are_no_profiles(void **state)
{
    struct rp_buf whole = {0};
    struct rp_err err = {0};
    char path[256];

    (void)state;
    snprintf(path, sizeof path, "%s", in_dir("bad"));
    assert_load_fails(in_dir("missing"), RP_IO, "cannot open the profile");
    assert_load_fails(dir, RP_FORMAT, "it is a directory");
    assert_load_fails("/dev/zero", RP_FORMAT, "no plain file");
    unlink(in_dir("pipe"));
    assert_int_equal(mkfifo(in_dir("pipe"), 0600), 0);
    assert_load_fails(in_dir("pipe"), RP_FORMAT, "no plain file");
    write_bytes(path, "", 0);
    assert_load_fails(path, RP_FORMAT, "it is empty");
    write_bytes(path, "SQLite format 3", 15);
    assert_load_fails(path, RP_FORMAT, "no SQLite database");
    write_bytes(path, text, sizeof text);
    assert_load_fails(path, RP_FORMAT, "no SQLite database");

    save(text, path);
    open_db(path);
    sql("PRAGMA user_version=3");
    sqlite3_close(db);
    assert_load_fails(path, RP_FORMAT, "version 3, newer than the version 2 that this rowprof reads; use a newer rowprof");
    open_db(path);
    sql("PRAGMA user_version=0");
    sqlite3_close(db);
    assert_load_fails(path, RP_FORMAT, "version is 0");
    open_db(path);
    sql("PRAGMA user_version=1");
    sqlite3_close(db);
    assert_load_fails(path, RP_FORMAT, "its tables are not those of its version");
    open_db(path);
    sql("PRAGMA user_version=2; PRAGMA application_id=5");
    sqlite3_close(db);
    assert_load_fails(path, RP_FORMAT, "another program");

    save(text, path);
    assert_int_equal(rp_read_file(path, 1 << 24, &whole, &err), RP_OK);
    for (size_t n = 100; n < whole.length; n += 1111) {
        write_bytes(path, whole.data, n);
        assert_load_fails(path, RP_FORMAT, "bad");
    }
    rp_buf_release(&whole);
}

static void test_damage_is_told(void **state)
{
    static const struct {
        const char *change, *says;
    } cases[] = {
        {"UPDATE counts SET thread = 99 WHERE rowid = 1", "row 1 of counts: thread names a thread that is not there"},
        {"UPDATE counts SET node = 1000", "node names a node"},
        {"UPDATE counts SET node = -1", "node names a node"},
        {"UPDATE counts SET block = 512", "block is larger"},
        {"UPDATE counts SET block = 505", "block 505 is not there"},
        {"UPDATE counts SET state = 2", "state is larger"},
        {"UPDATE counts SET n = 1 << 40", "n is larger"},
        {"INSERT INTO counts SELECT * FROM counts WHERE rowid = 1", "its key is there already"},
        {"UPDATE nodes SET parent = 3 WHERE id = 3", "row 3 of nodes: parent names a node that is not there yet"},
        {"UPDATE nodes SET parent = 4 WHERE id = 3", "is not there yet"},
        {"UPDATE nodes SET location = NULL WHERE id = 3", "only the root"},
        {"UPDATE nodes SET location = 0 WHERE id = 0", "damaged"},
        {"UPDATE nodes SET location = 1234 WHERE id = 1", "location that is not there"},
        {"DELETE FROM nodes WHERE id = 2", "row 2 of nodes: it is not in its place"},
        {"DELETE FROM nodes", "damaged"},
        {"INSERT INTO nodes SELECT 1 + max(id), (SELECT parent FROM nodes WHERE id = 2), (SELECT location FROM nodes WHERE id = 2) FROM nodes",
         "there already as row 2"},
        {"UPDATE locations SET nlines = 100", "its lines are not all there"},
        {"UPDATE locations SET first_line = 4294967295, nlines = 4096", "its lines are not all there"},
        {"UPDATE locations SET nlines = 5000", "nlines is larger"},
        {"UPDATE locations SET flags = 16", "flags is larger"},
        {"UPDATE locations SET image = 99", "image that is not there"},
        {"UPDATE locations SET addr = 99999, image = 0 WHERE flags & 8", "mark without a text"},
        {"UPDATE lines SET function = 4711", "function that is not there"},
        {"UPDATE functions SET naliases = 77", "its aliases are not all there"},
        {"UPDATE functions SET how = 8", "how is larger"},
        {"UPDATE functions SET name = -5", "string that is not there"},
        {"UPDATE aliases SET name = 123456", "string that is not there"},
        {"UPDATE images SET kind = 6", "kind is larger"},
        {"UPDATE threads SET process = 3", "process that is not there"},
        {"UPDATE threads SET tid = 1 << 33", "tid is larger"},
        {"UPDATE run SET block_ns = 0", "blocks have no length"},
        {"UPDATE run SET block_ns = 1 << 60", "block_ns is larger"},
        {"UPDATE run SET nblocks = 513", "nblocks is larger"},
        {"DELETE FROM run", "the run"},
        {"INSERT INTO run SELECT 1, started_unix_ns, seconds_ns, hz, source, host, kernel_visible, stack_bytes, stack_grown, lost, throttled, vanished,"
         "threads_unsampled, note, map_lines, map_rejected, nblocks, block_ns, waits, sampler, switches, wait_stacks, cpus FROM run",
         "the run"},
        {"UPDATE strings SET text = 'x' WHERE id = 0", "row 0 of strings"},
        {"UPDATE strings SET text = 'main' WHERE id IN (2, 3)", "there twice"},
        {"DELETE FROM strings", "strings are missing"},
        {"DROP TABLE aliases", "a table is missing"},
        {"DROP TABLE aliases; CREATE TABLE aliases(id INTEGER PRIMARY KEY, name INTEGER NOT NULL)", "its tables are not those"},
        {"DROP TABLE aliases; CREATE VIEW aliases(id, name) AS WITH RECURSIVE c(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM c) SELECT x, 0 FROM c",
         "a table is missing"},
        {"ALTER TABLE nodes ADD COLUMN more INTEGER AS (abs(parent)) VIRTUAL", "its tables are not those"},
        {"PRAGMA writable_schema=ON; UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'lines') WHERE name = 'counts'",
         "damaged"},
        {"PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE nodes(a' WHERE name = 'nodes'", "damaged"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        save(text, in_dir("damaged"));
        open_db(in_dir("damaged"));
        sql(cases[i].change);
        sqlite3_close(db);
        assert_load_fails(in_dir("damaged"), RP_FORMAT, cases[i].says);
    }
}

static void test_what_people_add_does_no_harm(void **state)
{
    struct rp_profile p;
    struct rp_err err = {0};

    (void)state;
    save(text, in_dir("more"));
    open_db(in_dir("more"));
    sql("CREATE TABLE mine(x); CREATE VIEW v AS SELECT 1; CREATE INDEX i ON nodes(parent); VACUUM; ANALYZE");
    sqlite3_close(db);
    assert_int_equal(rp_store_load(&p, in_dir("more"), &err), RP_OK);
    rp_profile_release(&p);
    /* Read-only, and nothing appears beside it, not even for a file in WAL mode. */
    open_db(in_dir("more"));
    sql("PRAGMA journal_mode=WAL; CREATE TABLE more(x)");
    sqlite3_close(db);
    assert_int_equal(chmod(in_dir("more"), 0400), 0);
    assert_int_equal(rp_store_load(&p, in_dir("more"), &err), RP_OK);
    rp_profile_release(&p);
    assert_int_not_equal(access(in_dir("more-wal"), F_OK), 0);
}

static void test_a_chain_of_nodes_has_an_end(void **state)
{
    (void)state;
    save("main 1\n", in_dir("deep"));
    open_db(in_dir("deep"));
    sql("WITH RECURSIVE c(x) AS (SELECT 2 UNION ALL SELECT x + 1 FROM c WHERE x < 9000) INSERT INTO nodes SELECT x, x - 1, 0 FROM c");
    sqlite3_close(db);
    assert_load_fails(in_dir("deep"), RP_FORMAT, "deeper than can be recorded");
    save("main 1\n", in_dir("wide"));
    open_db(in_dir("wide"));
    sql("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 4095) INSERT INTO lines SELECT x, 0, 0, 0 FROM c");
    sql("UPDATE locations SET nlines = 4096");
    sql("WITH RECURSIVE c(x) AS (SELECT 2 UNION ALL SELECT x + 1 FROM c WHERE x < 300) INSERT INTO nodes SELECT x, x - 1, 0 FROM c");
    sqlite3_close(db);
    assert_load_fails(in_dir("wide"), RP_FORMAT, "deeper than can be recorded");
}

/* One interior page whose children are all the same leaf, and levels of such: 2^60 rows in a few pages, were ids not checked. */
static void test_pages_in_a_circle(void **state)
{
    struct rp_buf whole = {0}, big = {0};
    struct rp_err err = {0};
    unsigned found = 0;

    (void)state;
    for (int i = 0; i < 3000; i++)
        rp_buf_printf(&big, "f%d;main 1\n", i);
    save(rp_buf_text(&big), in_dir("circle"));
    assert_int_equal(rp_read_file(in_dir("circle"), 1 << 24, &whole, &err), RP_OK);
    /* Interior table pages (type 5): let every child pointer be the page's first child, or the page itself. */
    for (size_t page = 1; page < whole.length / 4096; page++) {
        unsigned char *at = (unsigned char *)whole.data + page * 4096;
        unsigned cells = (unsigned)at[3] << 8 | at[4];

        if (at[0] != 5)
            continue;
        found++;
        for (unsigned c = 0; c < cells; c++) {
            unsigned offset = (unsigned)at[12 + 2 * c] << 8 | at[13 + 2 * c];
            uint32_t self = __builtin_bswap32((uint32_t)page + 1);

            memcpy(at + offset, c % 2 ? &self : (const void *)(at + ((unsigned)at[12] << 8 | at[13])), 4);
        }
    }
    assert_true(found >= 2);
    write_bytes(in_dir("circle"), whole.data, whole.length);
    assert_load_fails(in_dir("circle"), RP_FORMAT, "damaged");
    rp_buf_release(&whole);
    rp_buf_release(&big);
}

/* What ten seconds of Node come to, and more: measured are 1.2 nodes a sample, 1 500 addresses and 600 functions in 3 000 samples. Here are 9 000 samples
 * in as many lines of counts, with twice as many nodes. */
static void test_size_of_ten_seconds(void **state)
{
    struct rp_buf big = {0};
    struct rp_profile p;
    struct stat st;
    struct rp_err err = {0};
    uint64_t seed = 1;

    (void)state;
    for (int i = 0; i < 1800; i++)
        rp_buf_printf(&big, ".symbol v8::internal::function_%d(v8::internal::Isolate*,int) raw=_ZN2v88internal%d8functionEPNS0_7IsolateEi module=node\n", i, i);
    for (int i = 0; i < 9000; i++) {
        int depth = 2 + i % 6;

        for (int d = 0; d < depth; d++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            rp_buf_printf(&big, "node!v8::internal::function_%u(v8::internal::Isolate*,int);", (unsigned)((seed >> 33) % (d < 1 ? 1800u : 6u)));
        }
        for (int d = 0; d < 34 - depth; d++)
            rp_buf_printf(&big, "node!v8::internal::function_%d(v8::internal::Isolate*,int);", 200 + d);
        rp_buf_printf(&big, "main 1 block=%d\n", i / 18);
    }
    fake_profile(&p, rp_buf_text(&big));
    assert_int_equal(rp_store_save(&p, in_dir("size"), false, &err), RP_OK);
    assert_int_equal(stat(in_dir("size"), &st), 0);
    print_message("%zu functions, %zu nodes, %zu counts: %lld bytes\n", p.functions.n, p.nodes.n, p.counts.n, (long long)st.st_size);
    assert_true(p.nodes.n > 15000 && p.functions.n > 1500);
    assert_true(st.st_size < 1000000);
    rp_profile_release(&p);
    rp_buf_release(&big);
}

static void test_every_allocation_may_fail(void **state)
{
    struct rp_profile p, q;
    struct rp_err err = {0};
    uint64_t made;

    (void)state;
    fake_profile(&p, text);
    rp_alloc_fail_at(0);
    assert_int_equal(rp_store_save(&p, in_dir("alloc"), true, &err), RP_OK);
    made = rp_alloc_fail_at(0);
    for (uint64_t n = 1; n <= made; n++) {
        rp_alloc_fail_at(n);
        assert_int_equal(rp_store_save(&p, in_dir("alloc"), true, &err), RP_NOMEM);
    }
    rp_alloc_fail_at(0);
    assert_int_equal(rp_store_load(&q, in_dir("alloc"), &err), RP_OK);
    made = rp_alloc_fail_at(0);
    rp_profile_release(&q);
    for (uint64_t n = 1; n <= made; n++) {
        rp_alloc_fail_at(n);
        assert_int_equal(rp_store_load(&q, in_dir("alloc"), &err), RP_NOMEM);
    }
    rp_alloc_fail_at(0);
    rp_profile_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_saved_is_loaded),      cmocka_unit_test(test_comparison_sees_differences),
        cmocka_unit_test(test_equal_profiles_make_equal_files), cmocka_unit_test(test_people_can_ask_with_sql),
        cmocka_unit_test(test_sql_and_view_agree),
        cmocka_unit_test(test_waits_locks_and_holders_come_back), cmocka_unit_test(test_files_of_version_1_are_read),
        cmocka_unit_test(test_nothing_is_overwritten),       cmocka_unit_test(test_names_that_sqlite_reads_otherwise),
        cmocka_unit_test(test_a_failed_save_leaves_nothing), cmocka_unit_test(test_files_that_are_no_profiles),
        cmocka_unit_test(test_damage_is_told),               cmocka_unit_test(test_what_people_add_does_no_harm),
        cmocka_unit_test(test_a_chain_of_nodes_has_an_end),  cmocka_unit_test(test_pages_in_a_circle),
        cmocka_unit_test(test_size_of_ten_seconds),          cmocka_unit_test(test_every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
