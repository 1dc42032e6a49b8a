/* SPDX-License-Identifier: MIT */
/* Which lock a thread waits for, whose it is, and who holds it.
 *
 *     pthread_mutex_t (glibc)                       sqlite3 (a connection)
 *       +0  lock word: what the futex call waits on    +24  mutex ──> sqlite3_mutex, which begins with its pthread_mutex_t
 *       +4  count                                      +32  aDb ───> Db[0] { zDbSName, pBt ──> Btree { db, pBt ──> BtShared { pPager … } } }
 *       +8  owner (thread id)                          +40  nDb
 *
 * The trap: a futex word says nothing of what it belongs to. So an owner counts only when it is another thread of the process, and a connection only
 * when its `mutex` is this very address and its first Btree points back at it: both were never met by chance. Condition variables and semaphores wait
 * in futexes too and get a lock here; whether a wait is one for a lock is for the rules to say. */
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/buf.h"
#include "base/parse.h"
#include "fold/fold_private.h"
#include "symbolize/data_symbol.h"

enum {
    OWNER_OFFSET = 8,
    DB_MUTEX = 3, /* words of sqlite3 */
    DB_ADB = 4,
    DB_WORDS = 6,
    PAGER_WORDS = 48, /* of Pager, among which is its file name */
    STACK_WORDS = 512,
    PATH_BYTES = 512,
};

#define POINTER_MIN UINT64_C(65536)
#define POINTER_MAX (UINT64_C(1) << 47)

static unsigned command(const uint64_t args[6])
{
    return (unsigned)args[1] & ~(unsigned)(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
}

static bool is_futex_wait(int syscall, const uint64_t args[6])
{
    if (syscall != SYS_futex || args[0] < POINTER_MIN || args[0] % 4)
        return false;
    switch (command(args)) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
        return true;
    default:
        return false;
    }
}

/* The file whose data hold `address`, by the place of its code; false: on a heap or a stack. */
static bool find_static(const struct rp_fold *fold, const struct rp_fold_process *process, uint64_t address, uint32_t *image, uint64_t *addr)
{
    for (size_t i = 0; i < process->space.maps.n; i++) {
        const struct rp_mapping *m = &process->space.maps.at[i];
        const struct rp_image *candidate = fold->images->at.at[m->image];
        uint64_t base, at;

        if (candidate->kind != RP_IMAGE_ELF || !rp_image_offset_to_addr(candidate, m->offset, &base))
            continue;
        at = address - (m->start - base);
        for (uint32_t s = 0; s < candidate->nsegments; s++) {
            const struct rp_segment *segment = &candidate->segments[s];

            if (!segment->exec && at >= segment->vaddr && at - segment->vaddr < segment->memsz) {
                *image = m->image;
                *addr = at;
                return true;
            }
        }
    }
    return false;
}

static bool read_words(const struct rp_memory *memory, uint64_t address, uint64_t *words, size_t n)
{
    if (address < POINTER_MIN || address >= POINTER_MAX || address % 8)
        return false;
    return memory->read(memory->context, address, words, n * sizeof *words) == (ssize_t)(n * sizeof *words);
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

/* Whether `db` is the connection whose mutex is `address`; its pager, 0 when it has no open file. */
static bool is_connection(const struct rp_memory *memory, uint64_t db, uint64_t address, uint64_t *pager)
{
    uint64_t words[DB_WORDS], first[2], btree[2];

    *pager = 0;
    if (!read_words(memory, db, words, DB_WORDS) || words[DB_MUTEX] != address || !read_words(memory, words[DB_ADB], first, 2))
        return false;
    if (!first[1])
        return true;
    if (!read_words(memory, first[1], btree, 2) || btree[0] != db)
        return false;
    (void)read_words(memory, btree[1], pager, 1);
    return true;
}

static enum rp_status name_connection(struct rp_fold *fold, const struct rp_memory *memory, uint64_t db, uint64_t pager, struct rp_lock *lock,
                                      struct rp_err *err)
{
    char path[PATH_BYTES];
    struct rp_buf name = {0};
    enum rp_status status;

    if (find_file(memory, pager, path))
        rp_buf_puts(&name, path);
    else
        rp_buf_printf(&name, "connection at 0x%llx", (unsigned long long)db);
    status = name.failed ? rp_fail_nomem(err) : rp_profile_string(fold->profile, rp_buf_text(&name), name.length, &lock->database, err);
    rp_buf_release(&name);
    return status;
}

/* The callee-saved registers of all frames, then the stack: the function that enters the mutex still needs its connection. */
static enum rp_status find_connection(struct rp_fold *fold, const struct rp_fold_process *process, const struct rp_snapshot *snapshot,
                                      struct rp_lock *lock, struct rp_err *err)
{
    struct rp_memory memory = rp_memory_of_process(process->pid);
    uint64_t last = 0, pager, word;

    for (uint32_t f = 0; f < fold->walk.n; f++)
        for (unsigned r = 0; r < RP_SAVED_REGS; r++) {
            uint64_t candidate = fold->walk.frames[f].saved[r];

            if (!(fold->walk.frames[f].valid >> r & 1) || candidate == last)
                continue;
            last = candidate;
            if (is_connection(&memory, candidate, lock->address, &pager))
                return name_connection(fold, &memory, candidate, pager, lock, err);
        }
    for (size_t i = 0; i < STACK_WORDS && (i + 1) * sizeof word <= snapshot->stack_bytes; i++) {
        memcpy(&word, snapshot->stack + i * sizeof word, sizeof word);
        if (word != last && is_connection(&memory, word, lock->address, &pager))
            return name_connection(fold, &memory, word, pager, lock, err);
        last = word;
    }
    return RP_OK;
}

static enum rp_status describe(struct rp_fold *fold, const struct rp_fold_process *process, struct rp_lock *lock, struct rp_err *err)
{
    struct rp_buf name = {0};
    enum rp_status status = RP_OK;

    lock->image = RP_IMAGE_ID_MARK;
    if (!find_static(fold, process, lock->address, &lock->image, &lock->addr))
        return RP_OK;
    if (rp_data_symbol(fold->images->at.at[lock->image], lock->addr, &name))
        status = rp_profile_string(fold->profile, rp_buf_text(&name), name.length, &lock->symbol, err);
    rp_buf_release(&name);
    return status;
}

/* How often a lock's connection is looked for: the first stacks may be those of other callers (the shared cache, the page cache). */
enum { CONNECTION_TRIES = 8 };

static struct rp_lock_tries *tries_of(struct rp_fold *fold, uint32_t position)
{
    while (fold->lock_tries.n <= position) {
        struct rp_lock_tries *t = rp_vec_add(&fold->lock_tries);

        if (!t)
            return NULL;
        *t = (struct rp_lock_tries){0};
    }
    return &fold->lock_tries.at[position];
}

enum rp_status rp_fold_lock(struct rp_fold *fold, struct rp_fold_process *process, const struct rp_snapshot *snapshot, int syscall,
                            const uint64_t args[6], uint32_t *tag, struct rp_err *err)
{
    struct rp_lock lock = {.process = process->profile_process};
    struct rp_lock_tries *tries;
    uint32_t position = 0;
    size_t before = fold->profile->locks.n;
    enum rp_status status;

    *tag = 0;
    if (!is_futex_wait(syscall, args))
        return RP_OK;
    lock.address = args[0];
    status = rp_profile_lock(fold->profile, &lock, &position, err);
    if (!status && fold->profile->locks.n > before) {
        status = describe(fold, process, &lock, err);
        fold->profile->locks.at[position] = lock;
    }
    tries = status ? NULL : tries_of(fold, position);
    if (!tries)
        return status ? status : rp_fail_nomem(err);
    tries->mutex = tries->mutex || command(args) != FUTEX_WAIT_BITSET;
    if (process->live && tries->mutex && !fold->profile->locks.at[position].database && fold->profile->locks.at[position].image == RP_IMAGE_ID_MARK &&
        tries->n++ < CONNECTION_TRIES)
        status = find_connection(fold, process, snapshot, &fold->profile->locks.at[position], err);
    *tag = position + 1;
    return status;
}

/* Thread ids in a mutex are those of the process's own pid namespace. Each is asked for once: there may be thousands of threads. */
static uint32_t thread_of(struct rp_fold *fold, const struct rp_fold_process *process, uint32_t ns_tid)
{
    uint32_t position = (uint32_t)(process - fold->processes.at);

    if (process->ns_pid == process->pid)
        return rp_fold_find_thread(fold, position, ns_tid);
    for (uint32_t i = 0; i < fold->threads.n; i++) {
        struct rp_fold_thread *t = &fold->threads.at[i];

        if (t->process != position || t->end_ns)
            continue;
        t->ns_tid = t->ns_tid ? t->ns_tid : rp_thread_ns_tid(process->pid, t->tid);
        if (t->ns_tid == ns_tid)
            return i;
    }
    return RP_NO_THREAD;
}

uint32_t rp_fold_lock_owner(struct rp_fold *fold, uint32_t tag)
{
    const struct rp_lock *lock;
    const struct rp_fold_process *process = NULL;
    struct rp_memory memory;
    uint32_t owner = 0;

    if (!tag || tag > fold->lock_tries.n || !fold->lock_tries.at[tag - 1].mutex)
        return RP_NO_THREAD;
    lock = &fold->profile->locks.at[tag - 1];
    for (size_t i = fold->processes.n; i-- > 0 && !process;)
        if (fold->processes.at[i].profile_process == lock->process)
            process = &fold->processes.at[i];
    if (!process || !process->live)
        return RP_NO_THREAD;
    memory = rp_memory_of_process(process->pid);
    if (memory.read(memory.context, lock->address + OWNER_OFFSET, &owner, sizeof owner) != (ssize_t)sizeof owner || !owner)
        return RP_NO_THREAD;
    return thread_of(fold, process, owner);
}
