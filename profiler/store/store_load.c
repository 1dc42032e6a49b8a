/* SPDX-License-Identifier: MIT */
/* Reads a profile file that may have been made by somebody else.
 *
 * What a hostile database could do, and what stands against it: put a view or a virtual table in a table's place (the text of each table must be ours,
 * views are off); loop through its own pages for ever (ids must rise, and steps are bounded by the size of the file); bring a journal or WAL that
 * is replayed (immutable: nothing beside the file is looked at, nothing is written); name things that are not there (every field is checked before it
 * is used); be a pipe or a device (only plain files are opened). */
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
#include "base/limits.h"
#include "store/schema.sql.h"
#include "store/store_table.h"

enum { STEPS_AT_ONCE = 100000, TEXT_MAX = 16 << 20, HEADER_BYTES = 100 };

struct load {
    sqlite3 *db;
    const char *path;
    struct rp_profile *profile;
    uint64_t steps, steps_max;
    uint32_t version;
    struct rp_err *err;
};

static enum rp_status not_a_profile(const char *path, const char *why, struct rp_err *err)
{
    return rp_fail(err, RP_FORMAT, "%s is not a rowprof profile: %s; profiles are made with `rowprof record -o FILE`", path, why);
}

static enum rp_status damaged(const struct load *load, const char *what)
{
    return rp_fail(load->err, RP_FORMAT, "the profile %s is damaged: %s; record it again", load->path, what);
}

static enum rp_status sqlite_failed(const struct load *load, int code)
{
    char text[256] = "";

    if ((code & 0xff) == SQLITE_NOMEM)
        return rp_fail_nomem(load->err);
    if ((code & 0xff) == SQLITE_INTERRUPT)
        return damaged(load, "its pages do not end");
    strncat(text, load->db ? sqlite3_errmsg(load->db) : sqlite3_errstr(code), sizeof text - 1);
    return damaged(load, text);
}

static uint32_t big_endian(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* What the first bytes of the file say, before SQLite sees it; see "The Database Header" of its file format. */
static enum rp_status check_header(const unsigned char *header, ssize_t got, const char *path, struct rp_err *err)
{
    static const char magic[16] = "SQLite format 3";
    uint32_t version;

    if (got == 0)
        return not_a_profile(path, "it is empty", err);
    if (got < HEADER_BYTES || memcmp(header, magic, sizeof magic) != 0)
        return not_a_profile(path, "it is no SQLite database", err);
    if (big_endian(header + 68) != RP_STORE_APPLICATION_ID)
        return not_a_profile(path, "it is a database of another program", err);
    version = big_endian(header + 60);
    if (version > RP_STORE_VERSION)
        return rp_fail(err, RP_FORMAT, "%s is a profile of version %u, newer than the version %d that this rowprof reads; use a newer rowprof", path,
                       version, RP_STORE_VERSION);
    if (!version)
        return not_a_profile(path, "its version is 0", err);
    return RP_OK;
}

static enum rp_status check_file(const char *path, uint64_t *size, uint32_t *version, struct rp_err *err)
{
    unsigned char header[HEADER_BYTES];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* not waiting for the other end of a pipe */
    ssize_t got;
    enum rp_status status = RP_OK;

    if (fd < 0)
        return rp_fail(err, RP_IO, "cannot open the profile %s: %s%s", path, strerror(errno),
                       errno == ENOENT ? "; profiles are made with `rowprof record -o FILE`" : "");
    if (fstat(fd, &st))
        status = rp_fail(err, RP_IO, "cannot read the profile %s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        status = not_a_profile(path, S_ISDIR(st.st_mode) ? "it is a directory" : "it is no plain file", err);
    else if ((uint64_t)st.st_size > RP_PROFILE_FILE_MAX)
        status = rp_fail(err, RP_LIMIT, "%s has %llu bytes, more than the %llu that rowprof reads of a profile", path, (unsigned long long)st.st_size,
                         (unsigned long long)RP_PROFILE_FILE_MAX);
    if (status == RP_OK) {
        *size = (uint64_t)st.st_size;
        got = rp_pread_full(fd, header, sizeof header, 0);
        status = got < 0 ? rp_fail(err, RP_IO, "cannot read the profile %s: %s", path, strerror(errno)) : check_header(header, got, path, err);
        *version = status ? 0 : big_endian(header + 60);
    }
    close(fd);
    return status;
}

/* A cell has at least six bytes, a row costs some twenty steps: only pages that are visited again and again exceed this. */
static int count_steps(void *context)
{
    struct load *load = context;

    load->steps += STEPS_AT_ONCE;
    return load->steps > load->steps_max;
}

static enum rp_status open_database(struct load *load)
{
    struct rp_buf uri = {0};
    int code;

    rp_buf_puts(&uri, *load->path == '/' ? "file:" : "file:./"); /* a plain ":memory:" would not be a file */
    for (const char *c = load->path; *c; c++)
        rp_buf_printf(&uri, "%%%02x", (unsigned char)*c);
    rp_buf_puts(&uri, "?immutable=1");
    if (uri.failed) {
        rp_buf_release(&uri);
        return rp_fail_nomem(load->err);
    }
    code = sqlite3_open_v2(rp_buf_text(&uri), &load->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
    rp_buf_release(&uri);
    if (code != SQLITE_OK)
        return sqlite_failed(load, code);
    sqlite3_limit(load->db, SQLITE_LIMIT_LENGTH, TEXT_MAX);
    sqlite3_limit(load->db, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_db_config(load->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(load->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(load->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(load->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_progress_handler(load->db, STEPS_AT_ONCE, count_steps, load);
    code = sqlite3_exec(load->db, "PRAGMA cell_size_check=ON", NULL, NULL, NULL);
    return code == SQLITE_OK ? RP_OK : sqlite_failed(load, code);
}

/* The table in the file was made by the very statement that this version makes it with. */
static enum rp_status check_schema(const struct load *load, const char *table, const char *schema, bool *missing)
{
    sqlite3_stmt *query = NULL;
    int code = sqlite3_prepare_v2(load->db, "SELECT sql FROM sqlite_schema WHERE type='table' AND name=?", -1, &query, NULL);
    enum rp_status status;

    if (code == SQLITE_OK)
        code = sqlite3_bind_text(query, 1, table, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = sqlite3_step(query);
    if (code == SQLITE_ROW) {
        const char *sql = (const char *)sqlite3_column_text(query, 0);

        status = sql && strcmp(sql, schema) == 0 ? RP_OK : damaged(load, "its tables are not those of its version");
    } else {
        *missing = code == SQLITE_DONE;
        status = *missing ? damaged(load, "a table is missing") : sqlite_failed(load, code);
    }
    sqlite3_finalize(query);
    return status;
}

static enum rp_status bad_row(const struct load *load, const char *table, uint64_t id, const char *column, const char *wrong)
{
    char text[256];

    snprintf(text, sizeof text, "row %llu of %s: %s%s%.100s", (unsigned long long)id, table, column, *column ? " " : "", wrong);
    return damaged(load, text);
}

/* How many of its fields the table has in this file. */
static size_t nfields(const struct load *load, const struct rp_store_table *t)
{
    size_t n = 0;

    if (load->version == 1 && t->schema_1)
        return t->nfields_1;
    while (t->fields[n].column)
        n++;
    return n;
}

/* Ids are positions; a rowid only has to rise, and `last` is the one before. */
static bool is_next(const struct rp_store_table *t, sqlite3_int64 id, size_t position, sqlite3_int64 last)
{
    return strcmp(t->key, "id") == 0 ? id >= 0 && (uint64_t)id == position : id > last || position == 0;
}

static enum rp_status take_row(const struct load *load, const struct rp_store_table *t, sqlite3_stmt *query, void *row)
{
    sqlite3_int64 id = sqlite3_column_int64(query, 0);
    size_t n = nfields(load, t);
    struct rp_err why = {0};
    enum rp_status status;

    memset(row, 0, t->row_size);
    for (size_t i = 0; i < n; i++) {
        const struct rp_store_field *f = &t->fields[i];
        int column = (int)i + 1;
        uint64_t value = 0;
        bool null = rp_store_field_null(f, &value) && sqlite3_column_type(query, column) == SQLITE_NULL;
        const char *wrong;

        if (!null)
            value = (uint64_t)sqlite3_column_int64(query, column);
        wrong = null || sqlite3_column_type(query, column) == SQLITE_INTEGER ? rp_store_field_wrong(f, load->profile, value)
                                                                                         : "is no whole number";

        if (wrong)
            return bad_row(load, t->name, (uint64_t)id, f->column, wrong);
        rp_store_field_set(f, row, value);
    }
    status = t->add(load->profile, row, &why);
    if (status == RP_FORMAT)
        return bad_row(load, t->name, (uint64_t)id, "", why.text);
    if (status)
        *load->err = why;
    return status;
}

static enum rp_status prepare_select(const struct load *load, const struct rp_store_table *t, sqlite3_stmt **query)
{
    struct rp_buf sql = {0};
    int code;

    rp_buf_printf(&sql, "SELECT %s", t->key);
    for (size_t i = 0; i < nfields(load, t); i++)
        rp_buf_printf(&sql, ",%s", t->fields[i].column);
    rp_buf_printf(&sql, " FROM %s ORDER BY %s", t->name, t->key);
    if (sql.failed) {
        rp_buf_release(&sql);
        return rp_fail_nomem(load->err);
    }
    code = sqlite3_prepare_v2(load->db, rp_buf_text(&sql), -1, query, NULL);
    rp_buf_release(&sql);
    return code == SQLITE_OK ? RP_OK : sqlite_failed(load, code);
}

/* The profile was initialised with its root: the file's row 0 must be the same and is not added. */
static bool is_root(const struct rp_store_table *t, sqlite3_stmt *query, size_t position)
{
    return position == 0 && strcmp(t->name, "nodes") == 0 && sqlite3_column_int64(query, 0) == 0 && sqlite3_column_int64(query, 1) == 0 &&
           sqlite3_column_type(query, 2) == SQLITE_NULL;
}

static enum rp_status load_table(const struct load *load, const struct rp_store_table *t)
{
    sqlite3_stmt *query = NULL;
    void *row = rp_calloc(1, t->row_size);
    sqlite3_int64 last = 0;
    size_t position = 0;
    int code = SQLITE_OK;
    bool missing = false;
    const char *schema = load->version == 1 && t->schema_1 ? t->schema_1 : t->schema;
    enum rp_status status = row ? check_schema(load, t->name, schema, &missing) : rp_fail_nomem(load->err);

    if (missing && t->optional) {
        rp_free(row);
        return RP_OK;
    }
    if (status == RP_OK)
        status = prepare_select(load, t, &query);
    while (status == RP_OK && (code = sqlite3_step(query)) == SQLITE_ROW) {
        sqlite3_int64 id = sqlite3_column_int64(query, 0);

        if (position >= UINT32_MAX - 1)
            status = damaged(load, "a table has too many rows");
        else if (!is_next(t, id, position, last))
            status = bad_row(load, t->name, position, "", "it is not in its place");
        else if (!is_root(t, query, position))
            status = take_row(load, t, query, row);
        last = id;
        position++;
    }
    if (status == RP_OK && code != SQLITE_DONE)
        status = sqlite_failed(load, code);
    if (status == RP_OK && t->count(load->profile) != position)
        status = damaged(load, "the run or the root of its stacks is missing");
    sqlite3_finalize(query);
    rp_free(row);
    return status;
}

static enum rp_status take_string(const struct load *load, sqlite3_stmt *query, size_t position)
{
    const char *text;
    uint32_t id = 0;
    enum rp_status status;

    if (sqlite3_column_int64(query, 0) != (sqlite3_int64)position)
        return bad_row(load, "strings", position, "", "it is not in its place");
    if (sqlite3_column_type(query, 1) != SQLITE_TEXT)
        return bad_row(load, "strings", position, "text", "is no text");
    text = (const char *)sqlite3_column_text(query, 1);
    if (!text)
        return rp_fail_nomem(load->err);
    status = rp_profile_string(load->profile, text, (size_t)sqlite3_column_bytes(query, 1), &id, load->err);
    return status || id == position ? status : bad_row(load, "strings", position, "", "it is there twice");
}

static enum rp_status load_strings(const struct load *load)
{
    sqlite3_stmt *query = NULL;
    size_t position = 0;
    int code = SQLITE_OK;
    bool missing = false;
    enum rp_status status = check_schema(load, "strings", RP_SCHEMA_STRINGS, &missing);

    if (status)
        return status;
    code = sqlite3_prepare_v2(load->db, "SELECT id,text FROM strings ORDER BY id", -1, &query, NULL);
    if (code != SQLITE_OK)
        return sqlite_failed(load, code);
    while (status == RP_OK && (code = sqlite3_step(query)) == SQLITE_ROW)
        status = take_string(load, query, position++);
    if (status == RP_OK && code != SQLITE_DONE)
        status = sqlite_failed(load, code);
    if (status == RP_OK && position == 0)
        status = damaged(load, "its strings are missing");
    sqlite3_finalize(query);
    return status;
}

/* No stack may be larger than one that can be recorded, or a small file would be an endless job at every look. */
static enum rp_status check_stacks(const struct load *load)
{
    const struct rp_profile *p = load->profile;
    struct {
        uint32_t frames, functions;
    } *size = rp_calloc(p->nodes.n, sizeof *size);
    enum rp_status status = size ? RP_OK : rp_fail_nomem(load->err);

    for (size_t i = 1; i < p->nodes.n && status == RP_OK; i++) {
        size[i].frames = size[p->nodes.at[i].parent].frames + 1;
        size[i].functions = size[p->nodes.at[i].parent].functions + p->locations.at[p->nodes.at[i].location].nlines;
        if (size[i].frames > RP_WALK_FRAMES_MAX + RP_KERNEL_FRAMES_MAX + 1 || size[i].functions > RP_STACK_FUNCTIONS_MAX)
            status = damaged(load, "a stack is deeper than can be recorded");
    }
    rp_free(size);
    return status;
}

enum rp_status rp_store_load(struct rp_profile *profile, const char *path, struct rp_err *err)
{
    struct load load = {.path = path, .profile = profile, .err = err};
    uint64_t size = 0;
    enum rp_status status;

    memset(profile, 0, sizeof *profile);
    status = check_file(path, &size, &load.version, err);
    if (status)
        return status;
    load.steps_max = 16 * size + 1000000;
    status = rp_profile_init(profile, err);
    if (status)
        return status;
    status = open_database(&load);
    if (status == RP_OK)
        status = load_strings(&load);
    for (const struct rp_store_table *t = rp_store_tables; status == RP_OK && t->name; t++)
        if (t->since <= load.version)
            status = load_table(&load, t);
    if (status == RP_OK)
        status = check_stacks(&load);
    sqlite3_close(load.db);
    if (status)
        rp_profile_release(profile);
    return status;
}
