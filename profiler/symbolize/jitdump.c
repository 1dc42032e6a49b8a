/* SPDX-License-Identifier: MIT */
/* jitdump files: binary records that a JIT writes beside or instead of a perf map.
 *
 *   header   magic version size machine pad pid time:8 flags:8
 *   record   id size time:8, then by id
 *   LOAD     pid tid vma:8 address:8 bytes:8 index:8 name\0 code…
 *   MOVE     pid tid vma:8 old:8 new:8 bytes:8 index:8
 *
 * The trap: the last record may be half written, and a record's size comes from the target: one that is too small would be read for ever. */
#include <string.h>

#include "base/io.h"
#include "base/limits.h"
#include "symbolize/jitmap.h"

#define JITDUMP_MAGIC 0x4a695444u

enum { RECORD_LOAD = 0, RECORD_MOVE = 1 };

enum { HEADER_BYTES = 40, PREFIX_BYTES = 16, LOAD_BYTES = PREFIX_BYTES + 40, MOVE_BYTES = PREFIX_BYTES + 48 };

struct wanted {
    const struct rp_jit *jit;
    uint64_t code_index;
    uint32_t file;
};

static bool same_index(const void *context, uint32_t position)
{
    const struct wanted *key = context;
    const struct rp_jit_loaded *loaded = &key->jit->loaded.at[position];

    return loaded->code_index == key->code_index && loaded->file == key->file;
}

static uint32_t hash_index(uint32_t file, uint64_t code_index)
{
    return rp_hash_mix(file, code_index);
}

/* Adds the entry and remembers it under its code index. False without memory. */
static bool add(struct rp_jit *jit, const struct rp_jit_entry *entry, uint64_t code_index)
{
    struct wanted key = {jit, code_index, entry->file};
    uint32_t hash = hash_index(entry->file, code_index), *slot;
    struct rp_jit_loaded *loaded;

    if (!rp_jit_code_add(&jit->code, entry)) {
        jit->rejected++;
        return jit->code.entries.n >= RP_JIT_ENTRIES_MAX;
    }
    jit->lines++;
    slot = rp_index_find(&jit->loaded_index, hash, same_index, &key);
    if (!slot)
        return false;
    if (*slot != RP_INDEX_EMPTY) {
        jit->loaded.at[*slot].entry = (uint32_t)jit->code.entries.n - 1;
        return true;
    }
    loaded = rp_vec_add(&jit->loaded);
    if (!loaded)
        return false;
    *loaded = (struct rp_jit_loaded){code_index, (uint32_t)jit->code.entries.n - 1, entry->file};
    rp_index_set(&jit->loaded_index, slot, hash, (uint32_t)jit->loaded.n - 1);
    return true;
}

static bool place(struct rp_jit_entry *entry, uint64_t start, uint64_t bytes)
{
    uint64_t end;

    if (!bytes || __builtin_add_overflow(start, bytes, &end))
        return false;
    entry->start = start;
    entry->bytes = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
    return true;
}

/* Length of the name at `at`, at most `room`; 0 when it does not end there. */
static uint32_t name_length(int fd, uint64_t at, uint64_t room)
{
    uint32_t length = 0;
    char piece[256];

    while (length < room && length < RP_SYMBOL_MAX) {
        size_t want = room - length < sizeof piece ? (size_t)(room - length) : sizeof piece;
        const char *end;

        if (rp_pread_full(fd, piece, want, at + length) != (ssize_t)want)
            return 0;
        end = memchr(piece, '\0', want);
        length += end ? (uint32_t)(end - piece) : (uint32_t)want;
        if (end)
            return length;
    }
    return length >= RP_SYMBOL_MAX ? RP_SYMBOL_MAX : 0;
}

static bool take_load(struct rp_jit *jit, uint32_t number, const uint8_t *record, uint64_t at, uint32_t size)
{
    struct rp_jit_entry entry = {.file = number & 0xfff, .name_at = at + LOAD_BYTES};
    uint64_t address, bytes, code_index;
    uint32_t length = size > LOAD_BYTES ? name_length(jit->files.at[number].fd, at + LOAD_BYTES, size - LOAD_BYTES) : 0;

    memcpy(&address, record + 32, 8);
    memcpy(&bytes, record + 40, 8);
    memcpy(&code_index, record + 48, 8);
    entry.name_length = length & 0xfffff;
    if (!length || !place(&entry, address, bytes)) {
        jit->rejected++;
        return true;
    }
    return add(jit, &entry, code_index);
}

static bool take_move(struct rp_jit *jit, uint32_t number, const uint8_t *record)
{
    uint64_t address, bytes, code_index;
    struct wanted key = {.jit = jit, .file = number & 0xfff};
    struct rp_jit_entry entry;
    uint32_t known;

    memcpy(&address, record + 40, 8);
    memcpy(&bytes, record + 48, 8);
    memcpy(&code_index, record + 56, 8);
    key.code_index = code_index;
    known = rp_index_lookup(&jit->loaded_index, hash_index(key.file, code_index), same_index, &key);
    if (known == RP_INDEX_EMPTY) {
        jit->rejected++;
        return true;
    }
    entry = jit->code.entries.at[jit->loaded.at[known].entry];
    if (!place(&entry, address, bytes)) {
        jit->rejected++;
        return true;
    }
    return add(jit, &entry, code_index);
}

static bool read_header(struct rp_jit_file *file, uint64_t file_bytes)
{
    uint8_t header[HEADER_BYTES];
    uint32_t magic, size;

    if (file_bytes < HEADER_BYTES || rp_pread_full(file->fd, header, sizeof header, 0) != HEADER_BYTES)
        return false;
    memcpy(&magic, header, 4);
    memcpy(&size, header + 8, 4);
    file->damaged = magic != JITDUMP_MAGIC || size < HEADER_BYTES;
    file->read_to = size;
    return !file->damaged;
}

enum rp_status rp_jitdump_read(struct rp_jit *jit, uint32_t number, uint64_t file_bytes, struct rp_err *err)
{
    struct rp_jit_file *file = &jit->files.at[number];
    uint8_t record[MOVE_BYTES];
    uint32_t id, size;

    file_bytes = file_bytes > RP_JITMAP_MAX_BYTES ? RP_JITMAP_MAX_BYTES : file_bytes;
    if (!file->read_to && !read_header(file, file_bytes)) {
        jit->rejected += file->damaged;
        file->read_to = file->damaged ? 0 : file->read_to;
        return RP_OK;
    }
    while (file->read_to < file_bytes && file_bytes - file->read_to >= PREFIX_BYTES) {
        size_t want = file_bytes - file->read_to < sizeof record ? (size_t)(file_bytes - file->read_to) : sizeof record;

        if (rp_pread_full(file->fd, record, want, file->read_to) != (ssize_t)want)
            break;
        memcpy(&id, record, 4);
        memcpy(&size, record + 4, 4);
        if (size < PREFIX_BYTES || (id == RECORD_LOAD && size <= LOAD_BYTES) || (id == RECORD_MOVE && size < MOVE_BYTES)) {
            file->damaged = true; /* there is no way to find the next record */
            jit->rejected++;
            break;
        }
        if (size > file_bytes - file->read_to)
            break; /* not all there yet */
        if ((id == RECORD_LOAD && !take_load(jit, number, record, file->read_to, size)) ||
            (id == RECORD_MOVE && !take_move(jit, number, record)))
            return rp_fail_nomem(err);
        file->read_to += size;
    }
    return RP_OK;
}
