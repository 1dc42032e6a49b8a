/* SPDX-License-Identifier: MIT */
/* No file that somebody made up, changed or damaged does more than fail, with a reason. The trap is SQL that is valid and still no profile: rows out of
 * place, chains without an end, pages in a circle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "store/store.h"
#include "support/fake_profile.h"
#include "support/store_db.h"
#include "support/temp_dir.h"

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
    snprintf(path, sizeof path, "%s", temp_dir_path("cut.rowprof"));
    assert_load_fails(temp_dir_path("missing"), RP_IO, "cannot open the profile");
    assert_load_fails(temp_dir, RP_FORMAT, "it is a directory");
    assert_load_fails("/dev/zero", RP_FORMAT, "no plain file");
    unlink(temp_dir_path("pipe"));
    assert_int_equal(mkfifo(temp_dir_path("pipe"), 0600), 0);
    assert_load_fails(temp_dir_path("pipe"), RP_FORMAT, "no plain file");
    write_bytes(path, "", 0);
    assert_load_fails(path, RP_FORMAT, "it is empty");
    write_bytes(path, "SQLite format 3", 15);
    assert_load_fails(path, RP_FORMAT, "no SQLite database");
    write_bytes(path, store_text, strlen(store_text) + 1);
    assert_load_fails(path, RP_FORMAT, "no SQLite database");

    store_fake(store_text, path);
    store_db_open(path);
    store_db_change("PRAGMA user_version=3");
    store_db_close();
    assert_load_fails(path, RP_FORMAT, "version 3, newer than the version 2 that this rowprof reads; use a newer rowprof");
    store_db_open(path);
    store_db_change("PRAGMA user_version=0");
    store_db_close();
    assert_load_fails(path, RP_FORMAT, "version is 0");
    store_db_open(path);
    store_db_change("PRAGMA user_version=1");
    store_db_close();
    assert_load_fails(path, RP_FORMAT, "its tables are not those of its version");
    store_db_open(path);
    store_db_change("PRAGMA user_version=2; PRAGMA application_id=5");
    store_db_close();
    assert_load_fails(path, RP_FORMAT, "another program");

    store_fake(store_text, path);
    assert_int_equal(rp_read_file(path, 1 << 24, &whole, &err), RP_OK);
    for (size_t n = 100; n < whole.length; n += 1111) {
        write_bytes(path, whole.data, n);
        assert_load_fails(path, RP_FORMAT, "cut.rowprof"); /* the sentence names the file; what is wrong depends on where it was cut */
    }
    rp_buf_release(&whole);
}

/* One change of a good file, and what is said of it. */
static const struct {
    const char *change, *says;
} damages[] = {
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

static void test_damage_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        store_fake(store_text, temp_dir_path("edited.rowprof"));
        store_db_open(temp_dir_path("edited.rowprof"));
        store_db_change(damages[i].change);
        store_db_close();
        assert_load_fails(temp_dir_path("edited.rowprof"), RP_FORMAT, damages[i].says);
    }
}

static void test_what_people_add_does_no_harm(void **state)
{
    struct rp_profile p;
    struct rp_err err = {0};

    (void)state;
    store_fake(store_text, temp_dir_path("more"));
    store_db_open(temp_dir_path("more"));
    store_db_change("CREATE TABLE mine(x); CREATE VIEW v AS SELECT 1; CREATE INDEX i ON nodes(parent); VACUUM; ANALYZE");
    store_db_close();
    assert_int_equal(rp_store_load(&p, temp_dir_path("more"), &err), RP_OK);
    rp_profile_release(&p);
    /* Read-only, and nothing appears beside it, not even for a file in WAL mode. */
    store_db_open(temp_dir_path("more"));
    store_db_change("PRAGMA journal_mode=WAL; CREATE TABLE more(x)");
    store_db_close();
    assert_int_equal(chmod(temp_dir_path("more"), 0400), 0);
    assert_int_equal(rp_store_load(&p, temp_dir_path("more"), &err), RP_OK);
    rp_profile_release(&p);
    assert_int_not_equal(access(temp_dir_path("more-wal"), F_OK), 0);
}

static void test_a_chain_of_nodes_has_an_end(void **state)
{
    (void)state;
    store_fake("main 1\n", temp_dir_path("deep"));
    store_db_open(temp_dir_path("deep"));
    store_db_change("WITH RECURSIVE c(x) AS (SELECT 2 UNION ALL SELECT x + 1 FROM c WHERE x < 9000) INSERT INTO nodes SELECT x, x - 1, 0 FROM c");
    store_db_close();
    assert_load_fails(temp_dir_path("deep"), RP_FORMAT, "deeper than can be recorded");
    store_fake("main 1\n", temp_dir_path("wide"));
    store_db_open(temp_dir_path("wide"));
    store_db_change("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 4095) INSERT INTO lines SELECT x, 0, 0, 0 FROM c");
    store_db_change("UPDATE locations SET nlines = 4096");
    store_db_change("WITH RECURSIVE c(x) AS (SELECT 2 UNION ALL SELECT x + 1 FROM c WHERE x < 300) INSERT INTO nodes SELECT x, x - 1, 0 FROM c");
    store_db_close();
    assert_load_fails(temp_dir_path("wide"), RP_FORMAT, "deeper than can be recorded");
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
    store_fake(rp_buf_text(&big), temp_dir_path("circle"));
    assert_int_equal(rp_read_file(temp_dir_path("circle"), 1 << 24, &whole, &err), RP_OK);
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
    write_bytes(temp_dir_path("circle"), whole.data, whole.length);
    assert_load_fails(temp_dir_path("circle"), RP_FORMAT, "damaged");
    rp_buf_release(&whole);
    rp_buf_release(&big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_that_are_no_profiles),
        cmocka_unit_test(test_damage_is_told),
        cmocka_unit_test(test_what_people_add_does_no_harm),
        cmocka_unit_test(test_a_chain_of_nodes_has_an_end),
        cmocka_unit_test(test_pages_in_a_circle),
    };

    return cmocka_run_group_tests(tests, temp_dir_make, temp_dir_remove);
}
