/* SPDX-License-Identifier: MIT */
/* Which lock a thread waits for, whose it is, and who holds it.
 *
 *     pthread_mutex_t (glibc): +0 lock word: what the futex call waits on; +4 count; +8 owner (thread id); +12 users; +16 kind
 *
 * The trap: a futex word says nothing of what it belongs to. So an owner counts only when it is another thread of the process and there are a user and a kind
 * beside it: where the lock of a malloc arena has its owner would stand a flag, which is the id of the first thread in a container. Condition variables and
 * semaphores wait in futexes too and get a lock here; whether a wait is one for a lock is for the rules to say. */
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/buf.h"
#include "fold/connection.h"
#include "fold/fold_private.h"
#include "symbolize/data_symbol.h"

/* What glibc keeps of a mutex. */
struct mutex_words {
    uint32_t lock, count, owner, users, kind;
};

/* Type, robust, priority, shared and elision, and above them the priority ceiling. */
#define KIND_FLAGS UINT32_C(0xfff803ff)

#define ADDRESS_MIN UINT64_C(65536)

static unsigned command(const uint64_t args[6])
{
    return (unsigned)args[1] & ~(unsigned)(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
}

static bool is_futex_wait(int syscall, const uint64_t args[6])
{
    if (syscall != SYS_futex || args[0] < ADDRESS_MIN || args[0] % 4)
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

/* Whether SQLite is in the file, by a name that every build of it holds. Asked once per file: some have 50 MB of constants. */
static bool holds_sqlite(struct rp_fold *fold, uint32_t image)
{
    enum { NOT_ASKED, NO, YES };

    while (fold->sqlite_images.n <= image) {
        uint8_t *new = rp_vec_add(&fold->sqlite_images);

        if (!new)
            return true;
        *new = NOT_ASKED;
    }
    if (fold->sqlite_images.at[image] == NOT_ASKED)
        fold->sqlite_images.at[image] = rp_data_holds(fold->images->at.at[image], "sqlite_master") ? YES : NO;
    return fold->sqlite_images.at[image] == YES;
}

/* SQLite's own functions are on the stack of whoever waits for a mutex of its; only a stack that was cut may hide them. */
static bool may_be_sqlite(struct rp_fold *fold)
{
    if (fold->walk.end != RP_WALK_ROOT)
        return true;
    for (uint32_t i = 0; i < fold->walk.n; i++) {
        uint32_t image = fold->walk.frames[i].where.image;

        if ((!i || image != fold->walk.frames[i - 1].where.image) && holds_sqlite(fold, image))
            return true;
    }
    return false;
}

static enum rp_status find_connection(struct rp_fold *fold, const struct rp_fold_process *process, const struct rp_snapshot *snapshot,
                                      struct rp_lock *lock, struct rp_err *err)
{
    struct rp_buf name = {0};
    enum rp_status status = rp_connection_find(process->pid, &fold->walk, snapshot, lock->address, &name, err);

    if (!status && name.length)
        status = rp_profile_string(fold->profile, rp_buf_text(&name), name.length, &lock->database, err);
    rp_buf_release(&name);
    return status;
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
        tries->n < CONNECTION_TRIES && may_be_sqlite(fold)) {
        tries->n++;
        status = find_connection(fold, process, snapshot, &fold->profile->locks.at[position], err);
    }
    *tag = position + 1;
    return status;
}

/* Thread ids in a mutex are those of the process's own pid namespace. Each is asked for once: there may be thousands of threads. */
static uint32_t thread_of(struct rp_fold *fold, const struct rp_fold_process *process, uint32_t ns_tid)
{
    uint32_t position = (uint32_t)(process - fold->processes.at);

    if (process->ns_pid == process->pid)
        return rp_fold_find_thread(fold, position, ns_tid);
    for (size_t i = 0; i < fold->live.n; i++) {
        struct rp_fold_thread *t = &fold->threads.at[fold->live.at[i]];

        if (t->process != position)
            continue;
        t->ns_tid = t->ns_tid ? t->ns_tid : rp_thread_ns_tid(process->pid, t->tid);
        if (t->ns_tid == ns_tid)
            return fold->live.at[i];
    }
    return RP_NO_THREAD;
}

uint32_t rp_fold_lock_owner(struct rp_fold *fold, uint32_t tag)
{
    const struct rp_lock *lock;
    const struct rp_fold_process *process;
    struct rp_memory memory;
    struct mutex_words words;

    if (!tag || tag > fold->lock_tries.n || !fold->lock_tries.at[tag - 1].mutex)
        return RP_NO_THREAD;
    lock = &fold->profile->locks.at[tag - 1];
    process = &fold->processes.at[lock->process - fold->processes.at[0].profile_process]; /* they are added together */
    if (!process->live)
        return RP_NO_THREAD;
    memory = rp_memory_of_process(process->pid);
    if (memory.read(memory.context, lock->address, &words, sizeof words) != (ssize_t)sizeof words || words.kind & ~KIND_FLAGS)
        return RP_NO_THREAD;
    if (!words.owner || !words.users)
        return words.lock || words.owner ? RP_NO_THREAD : RP_NOBODY;
    return thread_of(fold, process, words.owner);
}
