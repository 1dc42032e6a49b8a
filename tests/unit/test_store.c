/* SPDX-License-Identifier: MIT */
/* Profile files: what is saved is loaded, what people ask with SQL is answered, and nothing of theirs is overwritten. What others made of such files is
 * the matter of test_store_damage.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "store/store.h"
#include "support/fake_view.h"
#include "support/store_db.h"
#include "support/temp_dir.h"

static void test_what_is_saved_is_loaded(void **state)
{
    struct rp_profile p, q;
    struct rp_buf why = {0};
    struct rp_err err = {0};
    uint32_t id;

    (void)state;
    fake_profile(&p, store_text);
    p.run.started_unix_ns = 1700000000123456789u;
    p.run.kernel_visible = 1;
    p.run.threads_unsampled = 4;
    p.run.map_lines = 11;
    p.run.map_rejected = 12;
    p.run.stack_grown = 1;
    p.images.at[2].ino = UINT64_MAX;
    p.nblocks = 510;
    assert_int_equal(rp_store_save(&p, temp_dir_path("a.rowprof"), false, &err), RP_OK);
    assert_int_equal(rp_store_load(&q, temp_dir_path("a.rowprof"), &err), RP_OK);
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
    fake_profile(&p, store_text);
    fake_profile(&q, store_text);
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
    store_fake(store_text, temp_dir_path("one"));
    store_fake(store_text, temp_dir_path("two"));
    assert_int_equal(rp_read_file(temp_dir_path("one"), 1 << 24, &a, &err), RP_OK);
    assert_int_equal(rp_read_file(temp_dir_path("two"), 1 << 24, &b, &err), RP_OK);
    assert_int_equal(a.length, b.length);
    assert_memory_equal(a.data, b.data, a.length);
    rp_buf_release(&a);
    rp_buf_release(&b);
}

static void test_people_can_ask_with_sql(void **state)
{
    (void)state;
    store_fake(store_text, temp_dir_path("sql"));
    store_db_open(temp_dir_path("sql"));
    store_db_answers("PRAGMA integrity_check", "ok\n");
    store_db_answers("PRAGMA foreign_key_check", "");
    store_db_answers("PRAGMA application_id", "1919907696\n"); /* "rowp" */
    store_db_answers("PRAGMA user_version", "2\n");
    store_db_answers("SELECT text, samples FROM stacks_text ORDER BY samples DESC LIMIT 3",
                  "malloc;columnName;Get(int, char const*);main|30\nrec;rec;main|7\na</script><b>&\"';x:y z\t\x1b\xff;main|6\n");
    store_db_answers("SELECT * FROM samples_by_function LIMIT 2", "malloc|libc.so.6|30|30\nrec|app|7|7\n");
    store_db_answers("SELECT self, total FROM samples_by_function WHERE name = 'main'", "0|54\n");
    store_db_answers("SELECT sum(self) FROM samples_by_function", "55\n");
    store_db_answers("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%STRICT'", "0\n");
    store_db_close();
}

/* The table by function, computed by SQLite in quite another way. */
static void test_sql_and_view_agree(void **state)
{
    struct fake_view v;
    struct rp_group_table g;
    struct rp_buf want = {0};
    struct rp_err err = {0};

    (void)state;
    fake_view(&v, store_text, "categories: []\n", NULL);
    assert_int_equal(rp_store_save(&v.profile, temp_dir_path("agree"), true, &err), RP_OK);
    assert_int_equal(rp_view_groups(v.view, RP_BY_FUNCTION, &g, &err), RP_OK);
    assert_int_equal(g.rows.n, 13);
    store_db_open(temp_dir_path("agree"));
    for (size_t i = 0; i < g.rows.n; i++) {
        const struct rp_function *f = &v.profile.functions.at[g.rows.at[i].key];
        struct rp_buf query = {0};

        rp_buf_printf(&query, "SELECT self, total FROM samples_by_function WHERE module = '%s' AND name = (SELECT text FROM strings WHERE id = %u)",
                      rp_profile_text(&v.profile, f->module), f->name);
        rp_buf_clear(&want);
        rp_buf_printf(&want, "%lu|%lu\n", (unsigned long)g.rows.at[i].self, (unsigned long)g.rows.at[i].total);
        store_db_answers(rp_buf_text(&query), rp_buf_text(&want));
        rp_buf_release(&query);
    }
    store_db_answers("SELECT count(*) FROM samples_by_function", "13\n");
    store_db_close();
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
    assert_int_equal(rp_profile_holder(&p, at, UINT32_MAX, UINT32_MAX, 0, RP_STATE_BLOCKED, 2000000, &err), RP_OK);
    assert_int_equal(rp_profile_holder(&p, at, 0, 0, 1, RP_STATE_RUNNING, 7, &err), RP_OK);
    assert_int_equal(rp_store_save(&p, temp_dir_path("waits"), true, &err), RP_OK);
    assert_int_equal(rp_store_load(&loaded, temp_dir_path("waits"), &err), RP_OK);
    if (!fake_profile_same(&p, &loaded, &why))
        fail_msg("%s", rp_buf_text(&why));
    store_db_open(temp_dir_path("waits"));
    store_db_answers("PRAGMA foreign_key_check", "");
    store_db_answers("SELECT sum(n), sum(ns) FROM wait_totals", "3|7000001\n");
    store_db_answers("SELECT ifnull(syscall, 'none'), n FROM waits ORDER BY rowid", "202|1\nnone|1\n");
    store_db_answers("SELECT ifnull(w.thread, 'none'), h.n FROM holders h JOIN holder_waiters w ON w.id = h.rowid ORDER BY w.id", "none|1\n0|1\n");
    rp_profile_release(&loaded);
    store_db_change("DROP TABLE holder_waiters"); /* as files of this version were at first */
    store_db_close();
    assert_int_equal(rp_store_load(&loaded, temp_dir_path("waits"), &err), RP_OK);
    assert_int_equal(loaded.holders.n, 2);
    assert_true(rp_profile_holder_waiter(&loaded, 1) == UINT32_MAX);
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
    assert_int_equal(rp_store_save(&p, temp_dir_path("once"), false, &err), RP_OK);
    assert_int_equal(rp_store_save(&p, temp_dir_path("once"), false, &err), RP_EXISTS);
    assert_non_null(strstr(err.text, "--force"));
    assert_int_equal(rp_store_save(&p, temp_dir_path("once"), true, &err), RP_OK);

    assert_int_equal(symlink("once", temp_dir_path("link")), 0);
    assert_int_equal(rp_store_save(&p, temp_dir_path("link"), true, &err), RP_IO);
    assert_non_null(strstr(err.text, "symbolic link"));
    assert_int_equal(lstat(temp_dir_path("link"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(symlink("nowhere", temp_dir_path("dangling")), 0);
    assert_int_equal(rp_store_save(&p, temp_dir_path("dangling"), true, &err), RP_IO);

    assert_int_equal(rp_store_save(&p, temp_dir, true, &err), RP_IO);
    assert_non_null(strstr(err.text, "is a directory"));
    assert_int_equal(rp_store_save(&p, "/dev/null", true, &err), RP_IO);
    assert_non_null(strstr(err.text, "device"));
    assert_int_equal(mkfifo(temp_dir_path("pipe"), 0600), 0);
    assert_int_equal(rp_store_save(&p, temp_dir_path("pipe"), true, &err), RP_IO);
    assert_int_equal(rp_store_save(&p, temp_dir_path("no/such/place"), true, &err), RP_IO);
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
    assert_int_equal(chdir(temp_dir), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(rp_store_save(&p, names[i], false, &err), RP_OK);
        assert_int_equal(access(names[i], F_OK), 0);
        assert_int_equal(rp_store_load(&q, names[i], &err), RP_OK);
        rp_profile_release(&q);
    }
    assert_int_equal(chdir(here), 0);
    snprintf(twice, sizeof twice, "/%s/-v", temp_dir); /* "file://tmp" would name a host */
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
    assert_int_equal(mkdir(temp_dir_path("d"), 0700), 0);
    fake_profile(&p, "main 1\n");
    p.counts.at[0].thread = 7; /* is not there */
    assert_int_equal(rp_store_save(&p, temp_dir_path("d/f"), false, &err), RP_FAILED);
    assert_non_null(strstr(err.text, "thread of row 0 of counts names a thread that is not there"));
    assert_int_equal(rmdir(temp_dir_path("d")), 0); /* it is empty */
    rp_profile_release(&p);
    rp_buf_release(&ls);
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
    assert_int_equal(rp_store_save(&p, temp_dir_path("size"), false, &err), RP_OK);
    assert_int_equal(stat(temp_dir_path("size"), &st), 0);
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
    fake_profile(&p, store_text);
    rp_alloc_fail_at(0);
    assert_int_equal(rp_store_save(&p, temp_dir_path("alloc"), true, &err), RP_OK);
    made = rp_alloc_fail_at(0);
    for (uint64_t n = 1; n <= made; n++) {
        rp_alloc_fail_at(n);
        assert_int_equal(rp_store_save(&p, temp_dir_path("alloc"), true, &err), RP_NOMEM);
    }
    rp_alloc_fail_at(0);
    assert_int_equal(rp_store_load(&q, temp_dir_path("alloc"), &err), RP_OK);
    made = rp_alloc_fail_at(0);
    rp_profile_release(&q);
    for (uint64_t n = 1; n <= made; n++) {
        rp_alloc_fail_at(n);
        assert_int_equal(rp_store_load(&q, temp_dir_path("alloc"), &err), RP_NOMEM);
    }
    rp_alloc_fail_at(0);
    rp_profile_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_saved_is_loaded),
        cmocka_unit_test(test_comparison_sees_differences),
        cmocka_unit_test(test_equal_profiles_make_equal_files),
        cmocka_unit_test(test_people_can_ask_with_sql),
        cmocka_unit_test(test_sql_and_view_agree),
        cmocka_unit_test(test_waits_locks_and_holders_come_back),
        cmocka_unit_test(test_files_of_version_1_are_read),
        cmocka_unit_test(test_nothing_is_overwritten),
        cmocka_unit_test(test_names_that_sqlite_reads_otherwise),
        cmocka_unit_test(test_a_failed_save_leaves_nothing),
        cmocka_unit_test(test_size_of_ten_seconds),
        cmocka_unit_test(test_every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, temp_dir_make, temp_dir_remove);
}
