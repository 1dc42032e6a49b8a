/* SPDX-License-Identifier: MIT */
/* See jitmap.h. The dialects of perf maps:
 *
 *   3ef414c0 398 JS:*f file.js:1:2      V8
 *   0x7f00  0x20\tFoo::bar(int)\r\n     OpenJDK and others: prefix, any blanks, CRLF
 *
 * The traps: the last line may be cut, since writers buffer, and it may stay cut for long or for ever, so it counts as it is and is replaced when
 * the rest comes; a file may be truncated and written anew by the next program in the same process; and /tmp is open to all, so a map that
 * belongs to a stranger is not read. */
#include "symbolize/jitmap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/limits.h"
#include "base/parse.h"
#include "symbolize/debugfile.h"
#include "target/maps.h"
#include "target/process.h"

enum {
    READ_AT_ONCE = 1 << 18,
    FILES_MAX = 4096 /* `file` of an entry has 12 bits */
};

#define LOOK_FOR_DUMPS_EVERY_NS 250000000u

/* Takes apart one line at file offset `at`. False: it is no entry. */
static bool parse_line(const char *line, size_t length, uint64_t at, struct rp_jit_entry *entry)
{
    struct rp_cursor c = rp_cursor_of(line, length);
    uint64_t start, bytes, end;
    size_t name_length;

    rp_cursor_skip_blanks(&c);
    (void)(rp_cursor_take(&c, "0x") || rp_cursor_take(&c, "0X"));
    if (!rp_cursor_hex(&c, &start) || !rp_cursor_skip_blanks(&c))
        return false;
    (void)(rp_cursor_take(&c, "0x") || rp_cursor_take(&c, "0X"));
    if (!rp_cursor_hex(&c, &bytes) || !rp_cursor_skip_blanks(&c))
        return false;
    name_length = (size_t)(c.end - c.at);
    if (!bytes || !name_length || __builtin_add_overflow(start, bytes, &end))
        return false;
    *entry = (struct rp_jit_entry){.start = start,
                                   .name_at = at + (uint64_t)(c.at - line),
                                   .bytes = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes,
                                   .name_length = name_length > RP_SYMBOL_MAX ? RP_SYMBOL_MAX : (uint32_t)name_length & 0xfffff};
    return true;
}

static bool is_blank(const char *line, size_t length)
{
    struct rp_cursor c = rp_cursor_of(line, length);

    rp_cursor_skip_blanks(&c);
    return rp_cursor_done(&c);
}

/* `complete`: the line ended; else it is the last one and may go on. */
static bool take_line(struct rp_jit *jit, uint32_t number, const char *line, size_t length, uint64_t at, bool complete)
{
    struct rp_jit_file *file = &jit->files.at[number];
    struct rp_jit_entry entry;

    if (length && line[length - 1] == '\r')
        length--;
    if (!parse_line(line, length, at, &entry)) {
        jit->rejected += complete && !is_blank(line, length);
        return true;
    }
    entry.file = number & 0xfff;
    if (file->open_entry) { /* seen before, shorter: start and size are the same */
        jit->code.entries.at[file->open_entry - 1].name_length = entry.name_length;
    } else {
        if (!rp_jit_code_add(&jit->code, &entry)) {
            jit->rejected++;
            return jit->code.entries.n >= RP_JIT_ENTRIES_MAX;
        }
        jit->lines++;
    }
    file->open_entry = complete ? 0 : (file->open_entry ? file->open_entry : (uint32_t)jit->code.entries.n);
    return true;
}

/* Takes all whole lines of `text`, which begins at file offset `at`; returns how many bytes they were, SIZE_MAX without memory. */
static size_t take_lines(struct rp_jit *jit, uint32_t number, const char *text, size_t bytes, uint64_t at)
{
    size_t done = 0;
    const char *end;

    while (done < bytes && (end = memchr(text + done, '\n', bytes - done))) {
        size_t length = (size_t)(end - text) - done;
        struct rp_jit_file *file = &jit->files.at[number];

        if (file->skipping || length > RP_JITMAP_LINE_MAX)
            jit->rejected++;
        else if (!take_line(jit, number, text + done, length, at + done, true))
            return SIZE_MAX;
        file->skipping = false;
        file->open_entry = 0;
        done += length + 1;
    }
    return done;
}

/* Reads on from read_to. What is left of the last line is read again the next time. */
static enum rp_status read_map(struct rp_jit *jit, uint32_t number, uint64_t file_bytes, struct rp_err *err)
{
    struct rp_jit_file *file = &jit->files.at[number];
    uint64_t at = file->read_to;
    struct rp_buf text = {0};
    enum rp_status status = RP_OK;

    file_bytes = file_bytes > RP_JITMAP_MAX_BYTES ? RP_JITMAP_MAX_BYTES : file_bytes;
    while (!status && at < file_bytes) {
        char *piece = rp_reallocarray(NULL, READ_AT_ONCE, 1);
        ssize_t got = piece ? rp_pread_full(file->fd, piece, file_bytes - at < READ_AT_ONCE ? (size_t)(file_bytes - at) : READ_AT_ONCE, at) : -1;
        size_t done;

        if (got > 0)
            rp_buf_append(&text, piece, (size_t)got);
        rp_free(piece);
        if (!piece || text.failed)
            status = rp_fail_nomem(err);
        if (status || got <= 0)
            break;
        at += (uint64_t)got;
        done = take_lines(jit, number, rp_buf_text(&text), text.length, file->read_to);
        if (done == SIZE_MAX) {
            status = rp_fail_nomem(err);
            break;
        }
        if (text.length - done > RP_JITMAP_LINE_MAX) { /* skip it piece by piece */
            file->skipping = true;
            done = text.length;
        }
        file->read_to += done;
        memmove(text.data, text.data + done, text.length - done);
        text.length -= done;
    }
    if (!status && text.length && !file->skipping) {
        rp_buf_putc(&text, '\0');
        if (text.failed || !take_line(jit, number, rp_buf_text(&text), text.length - 1, file->read_to, false))
            status = rp_fail_nomem(err);
    }
    rp_buf_release(&text);
    return status;
}

static void remember_tail(struct rp_jit_file *file)
{
    uint64_t n = file->read_to < sizeof file->tail ? file->read_to : sizeof file->tail;

    file->tail_bytes = rp_pread_full(file->fd, file->tail, (size_t)n, file->read_to - n) == (ssize_t)n ? (uint8_t)n : 0;
}

static bool written_anew(const struct rp_jit_file *file, uint64_t bytes)
{
    uint8_t tail[sizeof file->tail];

    if (bytes < file->read_to)
        return true;
    return file->tail_bytes && (rp_pread_full(file->fd, tail, file->tail_bytes, file->read_to - file->tail_bytes) != file->tail_bytes ||
                                memcmp(tail, file->tail, file->tail_bytes) != 0);
}

enum rp_status rp_jit_add_file(struct rp_jit *jit, int fd, enum rp_jit_file_kind kind, struct rp_err *err)
{
    struct rp_jit_file *file = jit->files.n < FILES_MAX ? rp_vec_add(&jit->files) : NULL;
    struct stat st;

    if (!file || fstat(fd, &st)) {
        close(fd);
        if (file)
            jit->files.n--;
        return file || jit->files.n >= FILES_MAX ? RP_OK : rp_fail_nomem(err);
    }
    *file = (struct rp_jit_file){.fd = fd, .kind = kind, .dev = st.st_dev, .ino = st.st_ino};
    return RP_OK;
}

enum rp_status rp_jit_read_file(struct rp_jit *jit, uint32_t number, struct rp_err *err)
{
    struct rp_jit_file *file = &jit->files.at[number];
    enum rp_status status;
    struct stat st;

    if (file->lost || file->damaged || fstat(file->fd, &st) || (uint64_t)st.st_size == file->read_to)
        return RP_OK;
    if (written_anew(file, (uint64_t)st.st_size)) {
        enum rp_jit_file_kind kind = file->kind;
        int fd = file->fd;

        file->lost = true;
        file->fd = -1;
        status = rp_jit_add_file(jit, fd, kind, err);
        return status || number + 1 >= jit->files.n ? status : rp_jit_read_file(jit, (uint32_t)jit->files.n - 1, err);
    }
    status = file->kind == RP_JIT_DUMP ? rp_jitdump_read(jit, number, (uint64_t)st.st_size, err)
                                       : read_map(jit, number, (uint64_t)st.st_size, err);
    remember_tail(&jit->files.at[number]);
    return status ? status : rp_jit_code_settle(&jit->code, err);
}

/* A map that was last written before the process began belongs to an earlier process of the same number. */
static bool is_left_over(uint32_t pid, const struct stat *file)
{
    struct rp_process_info info;
    struct rp_err err;
    struct timespec wall, boot;
    int64_t age_ns, started_ns, written_ns;

    if (rp_process_read(pid, &info, &err) || clock_gettime(CLOCK_REALTIME, &wall) || clock_gettime(CLOCK_BOOTTIME, &boot))
        return false;
    age_ns = boot.tv_sec * 1000000000ll + boot.tv_nsec - (int64_t)(info.start_ticks * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK)));
    started_ns = wall.tv_sec * 1000000000ll + wall.tv_nsec - age_ns;
    written_ns = file->st_mtim.tv_sec * 1000000000ll + file->st_mtim.tv_nsec;
    return written_ns < started_ns - 1000000000ll;
}

static void refuse_owner(struct rp_jit *jit, const char *path, uint32_t owner, uint32_t user)
{
    struct rp_jit_refusal *r = &jit->refused;

    snprintf(r->why, sizeof r->why, "%.120s is there, but belongs to user %u and process %u to user %u, so it was not believed", path, owner, jit->pid, user);
    snprintf(r->help, sizeof r->help, "if it is the map of this process, `chown %u %.100s`", user, path);
}

static void refuse_age(struct rp_jit *jit, const char *path)
{
    struct rp_jit_refusal *r = &jit->refused;

    snprintf(r->why, sizeof r->why, "%.120s is there, but was last written before process %u began: an earlier process of this number left it", path, jit->pid);
    r->help[0] = '\0';
}

/* There is something, unless even that is hidden. */
static void refuse_closed(struct rp_jit *jit, uint32_t root_pid, const char *path, int error)
{
    struct rp_jit_refusal *r = &jit->refused;
    char seen[256];
    struct stat st;

    if (root_pid)
        snprintf(seen, sizeof seen, "/proc/%u/root%.200s", root_pid, path);
    else
        snprintf(seen, sizeof seen, "%.200s", path);
    if ((error != EACCES && error != EPERM) || stat(seen, &st))
        return;
    snprintf(r->why, sizeof r->why, "%.120s is there, but may not be read (%s)", path, strerror(error));
    snprintf(r->help, sizeof r->help, "run rowprof as user %u, or as root", st.st_uid);
}

/* Opens `path` unless it is open already; a stranger's file and one from before the process are left alone. */
static enum rp_status open_new(struct rp_jit *jit, uint32_t root_pid, const char *path, enum rp_jit_file_kind kind, struct rp_err *err)
{
    int fd = rp_open_in_root(root_pid, path);
    struct stat st, owner;
    bool known = false, alive;
    char proc[64];

    if (fd < 0) {
        refuse_closed(jit, root_pid, path, errno);
        return RP_OK;
    }
    snprintf(proc, sizeof proc, "/proc/%u", jit->pid);
    alive = stat(proc, &owner) == 0;
    if (fstat(fd, &st))
        known = true;
    for (size_t i = 0; !known && i < jit->files.n; i++)
        known = jit->files.at[i].dev == st.st_dev && jit->files.at[i].ino == st.st_ino;
    if (!known && st.st_uid != geteuid() && (!alive || st.st_uid != owner.st_uid)) {
        if (alive)
            refuse_owner(jit, path, st.st_uid, owner.st_uid);
    } else if (!known && is_left_over(jit->pid, &st)) {
        refuse_age(jit, path);
    } else if (!known) {
        return rp_jit_add_file(jit, fd, kind, err);
    }
    close(fd);
    return RP_OK;
}

/* …/jit-<digits>.dump */
static bool is_dump_path(const char *path, size_t length)
{
    const char *name = length ? memrchr(path, '/', length) : NULL;
    size_t left = name ? length - (size_t)(name - path) : 0, digits = 0;

    if (left < 11 || memcmp(name, "/jit-", 5) != 0)
        return false;
    while (5 + digits < left && name[5 + digits] >= '0' && name[5 + digits] <= '9')
        digits++;
    return digits && left == 5 + digits + 5 && memcmp(name + 5 + digits, ".dump", 5) == 0;
}

/* jitdump files are found by the page of theirs that the process maps for that purpose. */
static enum rp_status look_for_dumps(struct rp_jit *jit, struct rp_err *err)
{
    struct rp_buf maps = {0};
    struct rp_err unread;
    enum rp_status status = RP_OK;
    struct rp_maps_line line;
    struct rp_cursor c;
    char path[64];

    snprintf(path, sizeof path, "/proc/%u/maps", jit->pid);
    if (rp_read_file(path, RP_FILE_MAX, &maps, &unread)) {
        rp_buf_release(&maps);
        return RP_OK; /* it has ended */
    }
    c = rp_cursor_of(rp_buf_text(&maps), maps.length);
    while (!status && rp_maps_next(&c, &line)) {
        struct rp_buf dump = {0};

        if (!is_dump_path(line.path, line.path_length))
            continue;
        rp_buf_append(&dump, line.path, line.path_length);
        status = dump.failed ? rp_fail_nomem(err) : open_new(jit, jit->pid, rp_buf_text(&dump), RP_JIT_DUMP, err);
        rp_buf_release(&dump);
    }
    rp_buf_release(&maps);
    return status;
}

enum rp_status rp_jit_read(struct rp_jit *jit, struct rp_err *err)
{
    uint64_t now = rp_now_ns();
    enum rp_status status;
    char path[64];

    snprintf(path, sizeof path, "/tmp/perf-%u.map", jit->ns_pid ? jit->ns_pid : jit->pid);
    status = open_new(jit, jit->pid, path, RP_JIT_PERF_MAP, err);
    if (!status && !jit->files.n) {
        snprintf(path, sizeof path, "/tmp/perf-%u.map", jit->pid);
        status = open_new(jit, 0, path, RP_JIT_PERF_MAP, err);
    }
    if (!status && (!jit->dumps_looked_for_ns || now - jit->dumps_looked_for_ns >= LOOK_FOR_DUMPS_EVERY_NS)) {
        jit->dumps_looked_for_ns = now;
        status = look_for_dumps(jit, err);
    }
    if (jit->files.n)
        jit->refused = (struct rp_jit_refusal){0};
    for (uint32_t i = 0; !status && i < jit->files.n; i++)
        status = rp_jit_read_file(jit, i, err);
    return status;
}

bool rp_jit_name(const struct rp_jit *jit, uint64_t addr, uint32_t epoch, uint64_t *start, struct rp_buf *name)
{
    uint32_t number = epoch ? epoch : rp_jit_code_find(&jit->code, addr);
    const struct rp_jit_entry *entry = number && number <= jit->code.entries.n ? &jit->code.entries.at[number - 1] : NULL;
    const struct rp_jit_file *file = entry && entry->file < jit->files.n ? &jit->files.at[entry->file] : NULL;
    char *text;
    bool ok;

    if (!file || file->lost)
        return false;
    text = rp_calloc((size_t)entry->name_length + 1, 1);
    ok = text && rp_pread_full(file->fd, text, entry->name_length, entry->name_at) == (ssize_t)entry->name_length;
    for (uint32_t i = 0; ok && i < entry->name_length; i++)
        text[i] = text[i] ? text[i] : '?';
    if (ok) {
        rp_buf_append(name, text, entry->name_length);
        *start = entry->start;
        if (entry->name_length == RP_SYMBOL_MAX)
            rp_buf_puts(name, "…");
    }
    rp_free(text);
    return ok && !name->failed;
}

enum rp_status rp_jit_explain(const struct rp_jit *jit, struct rp_profile *profile, struct rp_profile_image *row, struct rp_err *err)
{
    enum rp_status status = RP_OK;

    row->note = row->remedy = 0;
    if (jit && *jit->refused.why)
        status = rp_profile_string(profile, jit->refused.why, strlen(jit->refused.why), &row->note, err);
    if (!status && jit && *jit->refused.help)
        status = rp_profile_string(profile, jit->refused.help, strlen(jit->refused.help), &row->remedy, err);
    return status;
}

void rp_jit_release(struct rp_jit *jit)
{
    for (size_t i = 0; i < jit->files.n; i++) {
        if (jit->files.at[i].fd >= 0)
            close(jit->files.at[i].fd);
    }
    rp_vec_release(&jit->files);
    rp_vec_release(&jit->loaded);
    rp_index_release(&jit->loaded_index);
    rp_jit_code_release(&jit->code);
}
