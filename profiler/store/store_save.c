/* SPDX-License-Identifier: MIT */
/* Writes a profile file beside its place and moves it there, so that what stands under the name is always whole.
 *
 * The traps: a rename would replace a symbolic link by a file and a device by a file, so those are refused; between looking and moving somebody may make
 * the file, so without --force the move itself must not replace. No journal: until the move nobody knows the file; it is synced before. */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "store/schema.sql.h"
#include "store/store_table.h"

enum { NAME_TRIES = 100 };

static enum rp_status sqlite_failed(sqlite3 *db, int code, const char *path, struct rp_err *err)
{
    if ((code & 0xff) == SQLITE_NOMEM)
        return rp_fail_nomem(err);
    return rp_fail(err, RP_IO, "cannot write the profile %s: %s", path, db ? sqlite3_errmsg(db) : sqlite3_errstr(code));
}

/* A place that may be written: nothing there, or a plain file and leave to replace it. */
static enum rp_status check_place(const char *path, bool force, struct rp_err *err)
{
    struct stat st;

    if (lstat(path, &st)) {
        if (errno == ENOENT && *path)
            return RP_OK;
        return rp_fail(err, RP_IO, "cannot write the profile %s: %s", path, *path ? strerror(errno) : "it has no name");
    }
    if (S_ISDIR(st.st_mode))
        return rp_fail(err, RP_IO, "%s is a directory; name a file in it", path);
    if (S_ISLNK(st.st_mode))
        return rp_fail(err, RP_IO, "%s is a symbolic link, which saving would replace; name the file that it points to", path);
    if (!S_ISREG(st.st_mode))
        return rp_fail(err, RP_IO, "%s is a device, pipe or socket, not a place for a profile; name a file", path);
    if (!force)
        return rp_fail(err, RP_EXISTS, "%s is there already; use --force to replace it, or another name", path);
    return RP_OK;
}

/* Makes an empty file beside `path`, with the permissions a new file gets; its name goes to `name`. */
static enum rp_status make_beside(const char *path, struct rp_buf *name, struct rp_err *err)
{
    for (unsigned i = 0; i < NAME_TRIES; i++) {
        int fd;

        rp_buf_clear(name);
        /* SQLite takes "file:…" and ":memory:" for something else than a path. */
        rp_buf_printf(name, "%s%s.%ld-%u.part", *path == '/' ? "" : "./", path, (long)getpid(), i);
        if (name->failed)
            return rp_fail_nomem(err);
        fd = open(rp_buf_text(name), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd >= 0) {
            close(fd);
            return RP_OK;
        }
        if (errno != EEXIST)
            break;
    }
    rp_fail(err, RP_IO, "cannot write the profile %s: %s", path, strerror(errno));
    rp_buf_clear(name);
    return RP_IO;
}

static enum rp_status run(sqlite3 *db, const char *sql, const char *path, struct rp_err *err)
{
    int code = sqlite3_exec(db, sql, NULL, NULL, NULL);

    return code == SQLITE_OK ? RP_OK : sqlite_failed(db, code, path, err);
}

static enum rp_status make_schema(sqlite3 *db, const char *path, struct rp_err *err)
{
    char pragmas[160];
    enum rp_status status;

    snprintf(pragmas, sizeof pragmas,
             "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN; PRAGMA application_id=%d; PRAGMA user_version=%d;", RP_STORE_APPLICATION_ID,
             RP_STORE_VERSION);
    status = run(db, pragmas, path, err);
    if (status == RP_OK)
        status = run(db, RP_SCHEMA_STRINGS, path, err);
    for (const struct rp_store_table *t = rp_store_tables; status == RP_OK && t->name; t++)
        status = run(db, t->schema, path, err);
    return status ? status : run(db, RP_SCHEMA_VIEWS, path, err);
}

static enum rp_status prepare_insert(sqlite3 *db, const struct rp_store_table *t, sqlite3_stmt **insert, const char *path, struct rp_err *err)
{
    struct rp_buf sql = {0};
    int code;

    rp_buf_printf(&sql, "INSERT INTO %s(%s", t->name, t->key);
    for (const struct rp_store_field *f = t->fields; f->column; f++)
        rp_buf_printf(&sql, ",%s", f->column);
    rp_buf_puts(&sql, ") VALUES(?");
    for (const struct rp_store_field *f = t->fields; f->column; f++)
        rp_buf_puts(&sql, ",?");
    rp_buf_puts(&sql, ")");
    if (sql.failed) {
        rp_buf_release(&sql);
        return rp_fail_nomem(err);
    }
    code = sqlite3_prepare_v2(db, rp_buf_text(&sql), -1, insert, NULL);
    rp_buf_release(&sql);
    return code == SQLITE_OK ? RP_OK : sqlite_failed(db, code, path, err);
}

/* A file that could not be loaded again must not be written. */
static enum rp_status bind_row(sqlite3_stmt *insert, const struct rp_store_table *t, const struct rp_profile *p, size_t i, const void *row,
                               struct rp_err *err)
{
    int code = sqlite3_bind_int64(insert, 1, (sqlite3_int64)i), column = 2;

    for (const struct rp_store_field *f = t->fields; f->column && code == SQLITE_OK; f++, column++) {
        uint64_t value = rp_store_field_get(f, row), null;
        const char *wrong = rp_store_field_wrong(f, p, value);

        if (wrong)
            return rp_fail(err, RP_FAILED, "the profile cannot be saved: %s of row %zu of %s %s", f->column, i, t->name, wrong);
        if (rp_store_field_null(f, &null) && value == null)
            code = sqlite3_bind_null(insert, column);
        else
            code = sqlite3_bind_int64(insert, column, (sqlite3_int64)value);
    }
    return code == SQLITE_OK ? RP_OK : rp_fail_nomem(err);
}

static enum rp_status save_table(sqlite3 *db, const struct rp_store_table *t, const struct rp_profile *p, const char *path, struct rp_err *err)
{
    sqlite3_stmt *insert = NULL;
    void *row = rp_calloc(1, t->row_size);
    size_t n = t->count(p);
    enum rp_status status = row ? prepare_insert(db, t, &insert, path, err) : rp_fail_nomem(err);

    for (size_t i = 0; i < n && status == RP_OK; i++) {
        t->get(p, i, row);
        status = bind_row(insert, t, p, i, row, err);
        if (status == RP_OK && sqlite3_step(insert) != SQLITE_DONE)
            status = sqlite_failed(db, sqlite3_errcode(db), path, err);
        sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
    rp_free(row);
    return status;
}

static enum rp_status save_strings(sqlite3 *db, const struct rp_profile *p, const char *path, struct rp_err *err)
{
    sqlite3_stmt *insert = NULL;
    int code = sqlite3_prepare_v2(db, "INSERT INTO strings(id,text) VALUES(?,?)", -1, &insert, NULL);

    for (size_t i = 0; i < p->strings.strings.n && code == SQLITE_OK; i++) {
        const struct rp_interned *s = &p->strings.strings.at[i];

        sqlite3_bind_int64(insert, 1, (sqlite3_int64)i);
        code = sqlite3_bind_text(insert, 2, s->text, (int)s->length, SQLITE_STATIC);
        if (code == SQLITE_OK && sqlite3_step(insert) != SQLITE_DONE)
            code = sqlite3_errcode(db);
        sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
    return code == SQLITE_OK ? RP_OK : sqlite_failed(db, code, path, err);
}

static enum rp_status write_database(const struct rp_profile *p, const char *name, const char *path, struct rp_err *err)
{
    sqlite3 *db = NULL;
    int code = sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE, NULL);
    enum rp_status status = code == SQLITE_OK ? make_schema(db, path, err) : sqlite_failed(db, code, path, err);

    if (status == RP_OK)
        status = save_strings(db, p, path, err);
    for (const struct rp_store_table *t = rp_store_tables; status == RP_OK && t->name; t++)
        status = save_table(db, t, p, path, err);
    if (status == RP_OK)
        status = run(db, "COMMIT", path, err);
    code = sqlite3_close(db);
    if (status == RP_OK && code != SQLITE_OK)
        status = sqlite_failed(NULL, code, path, err);
    return status;
}

static enum rp_status sync_file(const char *name, const char *path, struct rp_err *err)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    enum rp_status status = RP_OK;

    /* EINVAL: a file system that cannot; it is as safe there as anything is. */
    if (fd < 0 || (fsync(fd) && errno != EINVAL))
        status = rp_fail(err, RP_IO, "cannot write the profile %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return status;
}

static enum rp_status move_there(const char *name, const char *path, bool force, struct rp_err *err)
{
    int failed = force ? rename(name, path) : renameat2(AT_FDCWD, name, AT_FDCWD, path, RENAME_NOREPLACE);

    if (failed && !force && (errno == EINVAL || errno == ENOSYS)) { /* a file system without NOREPLACE */
        failed = link(name, path);
        if (!failed)
            unlink(name);
    }
    if (!failed)
        return RP_OK;
    if (errno == EEXIST)
        return rp_fail(err, RP_EXISTS, "%s is there already; use --force to replace it, or another name", path);
    return rp_fail(err, RP_IO, "cannot write the profile %s: %s", path, strerror(errno));
}

enum rp_status rp_store_save(const struct rp_profile *profile, const char *path, bool force, struct rp_err *err)
{
    struct rp_buf name = {0};
    enum rp_status status = check_place(path, force, err);

    if (status == RP_OK)
        status = make_beside(path, &name, err);
    if (status == RP_OK)
        status = write_database(profile, rp_buf_text(&name), path, err);
    if (status == RP_OK)
        status = sync_file(rp_buf_text(&name), path, err);
    if (status == RP_OK)
        status = move_there(rp_buf_text(&name), path, force, err);
    if (status && name.length && !name.failed)
        unlink(rp_buf_text(&name));
    rp_buf_release(&name);
    return status;
}
