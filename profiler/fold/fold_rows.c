/* SPDX-License-Identifier: MIT */
/* Which row of the profile a number of a process or a thread stands for.
 *
 * The trap: the kernel gives numbers out again. A thread that is born under the number of one that has ended is another thread with times of its own, and
 * a process that is forked under the number of one whose threads have all ended is another process. Only the birth tells: what else is told of an
 * ended thread soon after its end is still its own. */
#include <string.h>

#include "fold/fold_private.h"

/* Records of the moment of a thread's end come with its end; later ones are those of a thread whose birth was not told (the record was lost). */
#define AFTER_END_NS UINT64_C(10000000)

struct thread_key {
    const struct rp_fold *fold;
    uint32_t process, tid;
};

struct process_key {
    const struct rp_fold *fold;
    uint32_t pid;
};

static bool same_thread(const void *context, uint32_t position)
{
    const struct thread_key *key = context;
    const struct rp_fold_thread *t = &key->fold->threads.at[position];

    return t->process == key->process && t->tid == key->tid;
}

static uint32_t thread_hash(uint32_t process, uint32_t tid)
{
    return rp_hash_u64((uint64_t)process << 32 | tid);
}

static bool same_process(const void *context, uint32_t position)
{
    const struct process_key *key = context;

    return key->fold->processes.at[position].pid == key->pid;
}

struct rp_fold_process *rp_fold_process_of(struct rp_fold *fold, uint32_t pid)
{
    struct process_key key = {fold, pid};
    uint32_t position = rp_index_lookup(&fold->process_index, rp_hash_u64(pid), same_process, &key);

    return position == RP_INDEX_EMPTY || fold->processes.at[position].replaced ? NULL : &fold->processes.at[position];
}

bool rp_fold_watches(struct rp_fold *fold, uint32_t pid)
{
    return rp_fold_process_of(fold, pid) != NULL;
}

bool rp_fold_has_ended(const struct rp_fold_process *process)
{
    return process->nthreads && !process->nlive;
}

enum rp_status rp_fold_new_process(struct rp_fold *fold, uint32_t pid, uint32_t ns_pid, const char *comm, const char *command, struct rp_err *err)
{
    struct process_key key = {fold, pid};
    struct rp_profile_process *row;
    struct rp_fold_process *process;
    uint32_t comm_id, command_id, generation = 0, hash = rp_hash_u64(pid), *slot;
    enum rp_status status;

    status = rp_profile_string(fold->profile, comm, strlen(comm), &comm_id, err);
    if (!status)
        status = rp_profile_string(fold->profile, command, strlen(command), &command_id, err);
    if (status)
        return status;
    /* All or nothing: positions go together. */
    slot = rp_index_find(&fold->process_index, hash, same_process, &key);
    if (!slot || !rp_vec_reserve(&fold->profile->processes, 1) || !rp_vec_reserve(&fold->processes, 1))
        return rp_fail_nomem(err);
    if (*slot != RP_INDEX_EMPTY)
        generation = fold->processes.at[*slot].space.generation + 1;
    row = &fold->profile->processes.at[fold->profile->processes.n++];
    process = &fold->processes.at[fold->processes.n++];
    *row = (struct rp_profile_process){.pid = pid, .generation = generation, .command = command_id, .comm = comm_id};
    *process = (struct rp_fold_process){.space = {.pid = pid, .generation = generation},
                                        .pid = pid,
                                        .ns_pid = ns_pid,
                                        .profile_process = (uint32_t)fold->profile->processes.n - 1};
    if (*slot == RP_INDEX_EMPTY)
        rp_index_set(&fold->process_index, slot, hash, (uint32_t)fold->processes.n - 1);
    else
        *slot = (uint32_t)fold->processes.n - 1;
    return RP_OK;
}

static enum rp_status new_thread(struct rp_fold *fold, uint32_t *slot, uint32_t hash, const struct thread_key *key, uint64_t now_ns, struct rp_err *err)
{
    struct rp_fold_process *process = &fold->processes.at[key->process];
    struct rp_profile_thread *row;
    uint32_t position = (uint32_t)fold->threads.n;

    if (!rp_vec_reserve(&fold->profile->threads, 1) || !rp_vec_reserve(&fold->threads, 1) || !rp_vec_reserve(&fold->clocks, 1) ||
        !rp_vec_reserve(&fold->live, 1))
        return rp_fail_nomem(err);
    row = &fold->profile->threads.at[fold->profile->threads.n++];
    *row = (struct rp_profile_thread){
        .process = process->profile_process, .tid = key->tid, .comm = fold->profile->processes.at[process->profile_process].comm};
    fold->threads.at[fold->threads.n++] =
        (struct rp_fold_thread){.process = key->process, .tid = key->tid, .begin_ns = now_ns, .live_at = (uint32_t)fold->live.n};
    fold->live.at[fold->live.n++] = position;
    rp_clock_begin(&fold->clocks.at[fold->clocks.n++], now_ns, RP_CLOCK_UNKNOWN);
    process->nthreads++;
    process->nlive++;
    if (*slot == RP_INDEX_EMPTY)
        rp_index_set(&fold->thread_index, slot, hash, position);
    else
        *slot = position;
    return RP_OK;
}

static enum rp_status find_or_make(struct rp_fold *fold, uint32_t process, uint32_t tid, uint64_t now_ns, bool born, uint32_t *position,
                                   struct rp_err *err)
{
    struct thread_key key = {fold, process, tid};
    uint32_t hash = thread_hash(process, tid);
    uint32_t *slot = rp_index_find(&fold->thread_index, hash, same_thread, &key);
    enum rp_status status = RP_OK;

    if (!slot)
        return rp_fail_nomem(err);
    if (*slot == RP_INDEX_EMPTY) {
        status = new_thread(fold, slot, hash, &key, now_ns, err);
    } else {
        uint64_t end_ns = fold->threads.at[*slot].end_ns;

        if (end_ns && now_ns >= end_ns + (born ? 0 : AFTER_END_NS))
            status = new_thread(fold, slot, hash, &key, now_ns, err);
    }
    if (!status)
        *position = *slot;
    return status;
}

enum rp_status rp_fold_thread(struct rp_fold *fold, uint32_t process, uint32_t tid, uint64_t now_ns, uint32_t *position, struct rp_err *err)
{
    return find_or_make(fold, process, tid, now_ns, false, position, err);
}

enum rp_status rp_fold_born_thread(struct rp_fold *fold, uint32_t process, uint32_t tid, uint64_t now_ns, uint32_t *position, struct rp_err *err)
{
    return find_or_make(fold, process, tid, now_ns, true, position, err);
}

uint32_t rp_fold_find_thread(const struct rp_fold *fold, uint32_t process, uint32_t tid)
{
    struct thread_key key = {fold, process, tid};
    uint32_t thread = rp_index_lookup(&fold->thread_index, thread_hash(process, tid), same_thread, &key);

    return thread == RP_INDEX_EMPTY ? RP_NO_THREAD : thread;
}

void rp_fold_not_live(struct rp_fold *fold, uint32_t thread)
{
    uint32_t at = fold->threads.at[thread].live_at, last = fold->live.at[--fold->live.n];

    fold->live.at[at] = last;
    fold->threads.at[last].live_at = at;
    fold->processes.at[fold->threads.at[thread].process].nlive--;
}
