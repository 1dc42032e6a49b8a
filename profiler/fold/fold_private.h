/* SPDX-License-Identifier: MIT */
/* Shared by fold.c (events, stacks), fold_rows.c (whose a number is), fold_waits.c (what becomes of switches and looks) and locks.c only. */
#ifndef RP_FOLD_FOLD_PRIVATE_H
#define RP_FOLD_FOLD_PRIVATE_H

#include "fold/fold.h"

/* The process that has this number now, NULL when that one is not watched. Good until the next one is added. */
struct rp_fold_process *rp_fold_process_of(struct rp_fold *fold, uint32_t pid);

/* True when it had threads and all that were met have ended. */
bool rp_fold_has_ended(const struct rp_fold_process *process);

/* Adds a process, the last of fold->processes then: the generation after the one that had its number before. */
enum rp_status rp_fold_new_process(struct rp_fold *fold, uint32_t pid, uint32_t ns_pid, const char *comm, const char *command, struct rp_err *err);

/* The thread of a process by number, made if it is new; one that has ended answers for a moment more. */
enum rp_status rp_fold_thread(struct rp_fold *fold, uint32_t process, uint32_t tid, uint64_t now_ns, uint32_t *position, struct rp_err *err);

/* The same at a birth: one that has ended is not meant. */
enum rp_status rp_fold_born_thread(struct rp_fold *fold, uint32_t process, uint32_t tid, uint64_t now_ns, uint32_t *position, struct rp_err *err);

/* Takes a thread that ends, once, out of fold->live. */
void rp_fold_not_live(struct rp_fold *fold, uint32_t thread);

/* Its thread position, the youngest of its number; RP_NO_THREAD when it is not known. */
uint32_t rp_fold_find_thread(const struct rp_fold *fold, uint32_t process, uint32_t tid);

/* Walks and interns; fold->walk holds the frames afterwards. */
enum rp_status rp_fold_stack(struct rp_fold *fold, struct rp_fold_process *process, const struct rp_snapshot *snapshot, uint64_t time_ns,
                             uint32_t *node, struct rp_err *err);

enum rp_status rp_fold_switch(struct rp_fold *fold, uint32_t thread, const struct rp_event *event, struct rp_err *err);
enum rp_status rp_fold_peek(struct rp_fold *fold, struct rp_fold_process *process, uint32_t thread, const struct rp_event *event, struct rp_err *err);
/* The thread is gone: closes its times, once. */
enum rp_status rp_fold_end_thread(struct rp_fold *fold, uint32_t thread, uint64_t time_ns, struct rp_err *err);

/* Where the kernel is invisible: counts what threads ran by `now_ns` beyond their samples. */
enum rp_status rp_fold_count_hidden(struct rp_fold *fold, uint64_t now_ns, struct rp_err *err);

/* The lock of a futex wait whose stack is in fold->walk, interned: `tag` is its position + 1, 0 when there is none. */
enum rp_status rp_fold_lock(struct rp_fold *fold, struct rp_fold_process *process, const struct rp_snapshot *snapshot, int syscall,
                            const uint64_t args[6], uint32_t *tag, struct rp_err *err);
/* Who holds that lock now, by glibc's mutex; RP_NOBODY: it is free; RP_NO_THREAD: not known. */
uint32_t rp_fold_lock_owner(struct rp_fold *fold, uint32_t tag);

#endif
