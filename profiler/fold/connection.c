/* SPDX-License-Identifier: MIT */
/* See connection.h.
 *
 *     registers, stack ──> sqlite3 (a connection)          who enters the mutex inside SQLite still needs its connection
 *                            +24  mutex ──> sqlite3_mutex, which begins with its pthread_mutex_t
 *                            +32  aDb ───> Db[0] { zDbSName, pBt ──> Btree { db, pBt ──> BtShared { pPager … } } }
 *     registers, stack ──> Vdbe (a statement) { db … }     who asks for the mutex first (sqlite3_db_mutex) needs its statement only
 *     registers, stack ──> object { … ──> sqlite3 or Vdbe } a binding: its own object is what it needs, or a job that points to it
 *
 * The trap: none of these words says what it is. A connection counts only when its `mutex` is this very address and its first Btree points back at it: both
 * were never met by chance. So the search may follow every pointer, and it does so level by level, each level with a few vectored reads: one system call a
 * pointer would take longer than the wait. */
#include "fold/connection.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/index.h"
#include "base/vec.h"
#include "target/process.h"

enum {
    DB_MUTEX = 3, /* words of sqlite3 */
    DB_ADB = 4,
    DB_WORDS = 5,
    OBJECT_WORDS = 16, /* of a binding's object that are looked at */
    PAGER_WORDS = 48,  /* of Pager, among which is its file name */
    STACK_WORDS = 512,
    POINTERS_MAX = 4096, /* on one level */
    LEVELS = 4,
    PATH_BYTES = 512,
};

#define POINTER_MIN UINT64_C(65536)
#define POINTER_MAX (UINT64_C(1) << 47)

/* Distinct words that may be pointers to what is not on the stack, in the order in which they were met. */
struct pointers {
    RP_VEC(uint64_t) at;
    struct rp_index index;
};

struct search {
    uint32_t pid;
    uint64_t mutex;
    uint64_t stack, stack_end;
    struct rp_memory memory;
    struct pointers levels[LEVELS];
    RP_VEC(uint64_t) words; /* read of one level */
    RP_VEC(bool) got;
    uint64_t db, pager;     /* found; 0 not yet, no open file */
};

struct pointer_key {
    const struct pointers *pointers;
    uint64_t word;
};

static bool same_pointer(const void *context, uint32_t position)
{
    const struct pointer_key *key = context;

    return key->pointers->at.at[position] == key->word;
}

static enum rp_status add(const struct search *s, struct pointers *to, uint64_t word, struct rp_err *err)
{
    struct pointer_key key = {to, word};
    uint32_t hash = rp_hash_u64(word), *slot;

    if (word < POINTER_MIN || word >= POINTER_MAX || word % 8 || (word >= s->stack && word < s->stack_end) || to->at.n >= POINTERS_MAX)
        return RP_OK;
    slot = rp_index_find(&to->index, hash, same_pointer, &key);
    if (slot && *slot != RP_INDEX_EMPTY)
        return RP_OK;
    if (!slot || !rp_vec_reserve(&to->at, 1))
        return rp_fail_nomem(err);
    to->at.at[to->at.n++] = word;
    rp_index_set(&to->index, slot, hash, (uint32_t)to->at.n - 1);
    return RP_OK;
}

/* The callee-saved registers of all frames, then the stack. */
static enum rp_status add_first(struct search *s, const struct rp_walk *walk, const struct rp_snapshot *snapshot, struct rp_err *err)
{
    enum rp_status status = RP_OK;
    uint64_t word;

    for (uint32_t f = 0; f < walk->n && f < STACK_WORDS; f++)
        for (unsigned r = 0; r < RP_SAVED_REGS && !status; r++)
            if (walk->frames[f].valid >> r & 1)
                status = add(s, &s->levels[0], walk->frames[f].saved[r], err);
    for (size_t i = 0; i < STACK_WORDS && (i + 1) * sizeof word <= snapshot->stack_bytes && !status; i++) {
        memcpy(&word, snapshot->stack + i * sizeof word, sizeof word);
        status = add(s, &s->levels[0], word, err);
    }
    return status;
}

static bool read_words(const struct rp_memory *memory, uint64_t address, uint64_t *words, size_t n)
{
    if (address < POINTER_MIN || address >= POINTER_MAX || address % 8)
        return false;
    return memory->read(memory->context, address, words, n * sizeof *words) == (ssize_t)(n * sizeof *words);
}

/* Whether it is the connection at `db`, whose first words are known; keeps it then, and its pager. */
static bool is_connection(struct search *s, uint64_t db, const uint64_t *words)
{
    uint64_t first[2], btree[2], pager = 0;

    if (words[DB_MUTEX] != s->mutex || !read_words(&s->memory, words[DB_ADB], first, 2))
        return false;
    if (first[1]) {
        if (!read_words(&s->memory, first[1], btree, 2) || btree[0] != db)
            return false;
        (void)read_words(&s->memory, btree[1], &pager, 1);
    }
    s->db = db;
    s->pager = pager;
    return true;
}

/* Reads the first `n` words behind each pointer of the level; those that were not there are marked. True: one of them is the connection. */
static enum rp_status look(struct search *s, const struct pointers *level, size_t n, bool *found, struct rp_err *err)
{
    *found = false;
    rp_vec_clear(&s->words);
    rp_vec_clear(&s->got);
    if (!rp_vec_reserve(&s->words, level->at.n * n) || !rp_vec_reserve(&s->got, level->at.n))
        return rp_fail_nomem(err);
    rp_process_read_each(s->pid, level->at.at, level->at.n, n * sizeof *s->words.at, s->words.at, s->got.at);
    for (size_t i = 0; i < level->at.n && !*found; i++)
        *found = s->got.at[i] && is_connection(s, level->at.at[i], &s->words.at[i * n]);
    return RP_OK;
}

/* The first `n` of the words read behind each pointer are the next level. */
static enum rp_status descend(struct search *s, const struct pointers *level, size_t stride, size_t n, struct pointers *to, struct rp_err *err)
{
    enum rp_status status = RP_OK;

    for (size_t i = 0; i < level->at.n; i++)
        for (size_t k = 0; k < n && !status && s->got.at[i]; k++)
            status = add(s, to, s->words.at[i * stride + k], err);
    return status;
}

/* What is read behind the pointers of each level, and how much of that is followed. */
static const struct {
    size_t words, follow;
} depths[LEVELS] = {
    {OBJECT_WORDS, OBJECT_WORDS}, /* the connection, a statement, a binding's object, or a job that points to it */
    {OBJECT_WORDS, OBJECT_WORDS}, /* one of these but the last */
    {DB_WORDS, 1},                /* the connection, or a statement, which begins with it */
    {DB_WORDS, 0},
};

static enum rp_status find(struct search *s, bool *found, struct rp_err *err)
{
    enum rp_status status = RP_OK;

    *found = false;
    for (size_t i = 0; i < LEVELS && !status && !*found; i++) {
        status = look(s, &s->levels[i], depths[i].words, found, err);
        if (!status && !*found && i + 1 < LEVELS)
            status = descend(s, &s->levels[i], depths[i].words, depths[i].follow, &s->levels[i + 1], err);
    }
    return status;
}

/* A text of printable bytes that begins with a slash, or nothing at all. */
static bool read_path(const struct rp_memory *memory, uint64_t address, char path[PATH_BYTES])
{
    ssize_t got;

    if (address < POINTER_MIN || address >= POINTER_MAX)
        return false;
    got = memory->read(memory->context, address, path, PATH_BYTES - 1);
    if (got <= 0)
        return false;
    path[got] = '\0';
    for (const char *c = path; *c; c++)
        if ((unsigned char)*c < ' ')
            return false;
    return path[0] == '/' && strlen(path) < (size_t)got;
}

/* Pager.zFilename moves from version to version, but zJournal, the same with "-journal", is its neighbour. */
static bool find_file(const struct rp_memory *memory, uint64_t pager, char path[PATH_BYTES])
{
    uint64_t words[PAGER_WORDS];
    char journal[PATH_BYTES];

    if (!read_words(memory, pager, words, PAGER_WORDS))
        return false;
    for (size_t i = 0; i + 1 < PAGER_WORDS; i++) {
        size_t length;

        if (!read_path(memory, words[i], path) || !read_path(memory, words[i + 1], journal))
            continue;
        length = strlen(path);
        if (strncmp(path, journal, length) == 0 && strcmp(journal + length, "-journal") == 0)
            return true;
    }
    return false;
}

static void release(struct search *s)
{
    for (size_t i = 0; i < LEVELS; i++) {
        rp_vec_release(&s->levels[i].at);
        rp_index_release(&s->levels[i].index);
    }
    rp_vec_release(&s->words);
    rp_vec_release(&s->got);
}

enum rp_status rp_connection_find(uint32_t pid, const struct rp_walk *walk, const struct rp_snapshot *snapshot, uint64_t mutex, struct rp_buf *name,
                                  struct rp_err *err)
{
    struct search s = {.pid = pid, .mutex = mutex, .stack = snapshot->regs[RP_RSP], .memory = rp_memory_of_process(pid)};
    char path[PATH_BYTES];
    bool found = false;
    enum rp_status status;

    s.stack_end = s.stack + snapshot->stack_bytes;
    status = add_first(&s, walk, snapshot, err);
    if (!status)
        status = find(&s, &found, err);
    if (found && find_file(&s.memory, s.pager, path))
        rp_buf_puts(name, path);
    else if (found)
        rp_buf_printf(name, "connection at 0x%llx", (unsigned long long)s.db);
    release(&s);
    return status ? status : name->failed ? rp_fail_nomem(err) : RP_OK;
}
