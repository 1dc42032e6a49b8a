/* SPDX-License-Identifier: MIT */
/* What becomes of switches and of looks at threads off the CPU: waits with their stacks, locks and holders, and the end of each thread's times.
 *
 * The trap: a look through procfs is of now, while the records read so far end a few milliseconds ago: the wait that a look belongs to may not be
 * known yet (thread_clock.h keeps it until it is). */
#include <string.h>

#include "base/io.h"
#include "fold/fold_private.h"
#include "sample/peek_procfs.h"

/* A wait is worth a look when it has lasted this long. Where the stack of the switch told the lock, only its owner is asked for, and that at once: of short
 * waits few are open when a look comes, but those few are drawn by chance. */
#define LOOK_AFTER_NS UINT64_C(1000000)
/* One round of looks: 2 000 threads asleep are seen within a second, and the rings are emptied in between. */
#define LOOKS_MAX 256u
#define LOOK_ROUND_NS UINT64_C(5000000)

static const char hidden_name[] = "[kernel: not visible at this permission]";

static enum rp_status count_holder(struct rp_fold *fold, uint32_t thread, const struct rp_done_wait *done, struct rp_err *err)
{
    uint32_t owner = done->look.owner, node = done->look.owner_node;
    enum rp_state state = node ? RP_STATE_BLOCKED : RP_STATE_RUNNING;

    if (owner == RP_NOBODY)
        owner = UINT32_MAX;
    else if (!node)
        node = rp_clock_owner_ran(&fold->clocks.at[owner], done);
    return rp_profile_holder(fold->profile, done->look.tag - 1, thread, owner, node, state, done->in_ns - done->out_ns, err);
}

static enum rp_status count_wait(struct rp_fold *fold, uint32_t thread, const struct rp_done_wait *done, struct rp_err *err)
{
    const struct rp_look *look = &done->look;
    enum rp_status status;

    if (!done->out_ns)
        return RP_OK;
    status = rp_profile_wait(fold->profile, thread, done->in_ns - done->out_ns, look->node, look->node ? look->tag : 0, look->syscall, err);
    fold->wait_stacks += look->node != 0;
    if (!status && look->tag && look->owner != RP_NO_THREAD)
        status = count_holder(fold, thread, done, err);
    return status;
}

enum rp_status rp_fold_switch(struct rp_fold *fold, uint32_t thread, const struct rp_event *event, struct rp_err *err)
{
    struct rp_done_wait done;

    fold->waits = fold->waits || fold->replay;
    fold->edges++;
    rp_clock_edge(&fold->clocks.at[thread], &fold->profile->threads.at[thread], event->time_ns, event->u.sw.out, event->u.sw.preempted, &done);
    return count_wait(fold, thread, &done, err);
}

/* The system call of a stack taken at a switch: what the code before its pc loads. */
static int number_by_code(struct rp_fold *fold)
{
    const struct rp_walk_frame *leaf = &fold->walk.frames[0];

    if (!fold->walk.n || !leaf->exact)
        return -1;
    return rp_syscall_sites_find(&fold->sites, fold->unwinder, fold->images->at.at[leaf->where.image], leaf->where.addr);
}

enum rp_status rp_fold_peek(struct rp_fold *fold, struct rp_fold_process *process, uint32_t thread, const struct rp_event *event, struct rp_err *err)
{
    const struct rp_snapshot *snapshot = &event->u.peek.sample;
    struct rp_look look = {.time_ns = event->time_ns, .owner = RP_NO_THREAD, .syscall = event->u.peek.syscall};
    bool at_switch = event->u.peek.at_switch;
    enum rp_status status = rp_fold_stack(fold, process, snapshot, event->time_ns, &look.node, err);

    if (!status && look.syscall < 0 && at_switch)
        look.syscall = number_by_code(fold);
    if (!status)
        status = rp_fold_lock(fold, process, snapshot, look.syscall, event->u.peek.args, &look.tag, err);
    if (status)
        return status;
    if (at_switch) {
        fold->clocks.at[thread].at_switch = look;
        return RP_OK;
    }
    fold->clocks.at[thread].seen = look;
    return RP_OK;
}

/* One look through procfs; what is seen ends up in the clock's `seen`. */
static enum rp_status look_through_procfs(struct rp_fold *fold, uint32_t thread, rp_event_sink *sink, void *context, struct rp_err *err)
{
    struct rp_clock *clock = &fold->clocks.at[thread];
    const struct rp_fold_thread *t = &fold->threads.at[thread];
    struct rp_event event;

    clock->asked_ns = clock->since_ns;
    if (rp_peek_procfs(fold->processes.at[t->process].pid, t->tid, fold->peek_stack, &event) != RP_PEEK_SEEN)
        return RP_OK;
    return sink(context, &event, err);
}

/* The owner is blocked perhaps: with what stack, and whether it has the lock still when that was seen. It may have let go of it in between and be blocked
 * in something else; only if it took it again within those microseconds would that not show. */
static enum rp_status look_at_stack_of(struct rp_fold *fold, struct rp_look *look, rp_event_sink *sink, void *context, struct rp_err *err)
{
    uint32_t owner = look->owner;
    struct rp_clock kept = fold->clocks.at[owner];
    enum rp_status status = look_through_procfs(fold, owner, sink, context, err);

    if (fold->clocks.at[owner].seen.time_ns >= look->owner_ns && rp_fold_lock_owner(fold, look->tag) == owner) {
        look->owner_node = fold->clocks.at[owner].seen.node;
        look->owner_node_ns = rp_now_ns();
    }
    /* Looked at because it holds a lock: as a look at its own wait that would show holders more often than others. */
    fold->clocks.at[owner].seen = kept.seen;
    fold->clocks.at[owner].asked_ns = kept.asked_ns;
    return status;
}

/* Who holds the lock that `thread` waits for, and the stack with which the holder is blocked itself, if it is. */
static enum rp_status look_at_owner(struct rp_fold *fold, uint32_t thread, rp_event_sink *sink, void *context, struct rp_err *err)
{
    struct rp_look look = rp_clock_open_wait(&fold->clocks.at[thread]);
    uint32_t owner = look.time_ns ? rp_fold_lock_owner(fold, look.tag) : RP_NO_THREAD;
    uint64_t now_ns = rp_now_ns();
    enum rp_status status = RP_OK;

    if (owner == RP_NO_THREAD || owner == thread)
        return RP_OK;
    /* Which lock it is was told by the switch: when that wait has ended since, which no record says yet, the owner is none of the next one. */
    if (fold->clocks.at[thread].at_switch.time_ns) {
        look.out_ns = fold->clocks.at[thread].since_ns;
        look.time_ns = now_ns;
    }
    look.owner = owner;
    look.owner_ns = now_ns;
    look.owner_node = look.ran_node = 0;
    look.owner_node_ns = 0;
    if (owner != RP_NOBODY && !fold->threads.at[owner].end_ns) { /* what records tell of it is a few milliseconds old: it may have got the lock since */
        rp_clock_mark_owner(&fold->clocks.at[owner], &look);
        status = look_at_stack_of(fold, &look, sink, context, err);
    }
    fold->clocks.at[thread].seen = look;
    return status;
}

/* `asked`: there was something to look at; `procfs`: its stack was, and not its lock alone. */
static enum rp_status look_at(struct rp_fold *fold, uint32_t thread, uint64_t now_ns, rp_event_sink *sink, void *context, bool *asked, bool *procfs,
                              struct rp_err *err)
{
    struct rp_clock *clock = &fold->clocks.at[thread];
    const struct rp_fold_thread *t = &fold->threads.at[thread];
    bool told = clock->at_switch.time_ns && clock->at_switch.node && clock->at_switch.tag;
    enum rp_status status = RP_OK;

    *asked = *procfs = false;
    if (t->end_ns || !fold->processes.at[t->process].live || !rp_clock_wants_look(clock, now_ns, told ? 0 : LOOK_AFTER_NS))
        return RP_OK;
    *asked = true;
    clock->asked_ns = clock->since_ns;
    if (!clock->at_switch.time_ns || !clock->at_switch.node) {
        *procfs = true;
        status = look_through_procfs(fold, thread, sink, context, err);
    }
    return status ? status : look_at_owner(fold, thread, sink, context, err);
}

enum rp_status rp_fold_look(struct rp_fold *fold, uint64_t now_ns, rp_event_sink *sink, void *context, struct rp_err *err)
{
    uint32_t n = (uint32_t)fold->live.n, looks = 0;
    enum rp_status status = RP_OK;

    if (!fold->peek_stack)
        fold->peek_stack = rp_reallocarray(NULL, RP_PEEK_STACK_BYTES, 1);
    if (!fold->peek_stack)
        return rp_fail_nomem(err);
    for (uint32_t i = 0; i < n && !status; i++) {
        uint32_t place = fold->next_look < n ? fold->next_look : 0;
        bool asked, procfs;

        fold->next_look = place + 1;
        status = look_at(fold, fold->live.at[place], now_ns, sink, context, &asked, &procfs, err);
        looks += procfs;
        if (asked && (looks == LOOKS_MAX || rp_now_ns() - now_ns > LOOK_ROUND_NS))
            break;
    }
    return status;
}

/* Time that no sample could show. */

static enum rp_status hidden_node(struct rp_fold *fold, struct rp_err *err)
{
    uint32_t mark;
    enum rp_status status = RP_OK;

    if (!fold->hidden_node)
        status = rp_profile_mark(fold->profile, hidden_name, &mark, err);
    if (!status && !fold->hidden_node)
        status = rp_profile_node(fold->profile, 0, mark, &fold->hidden_node, err);
    return status;
}

static enum rp_status count_hidden(struct rp_fold *fold, uint32_t thread, uint64_t cpu_ns, uint64_t at_ns, struct rp_err *err)
{
    struct rp_clock *clock = &fold->clocks.at[thread];
    uint64_t period = fold->hidden_period_ns, n = cpu_ns > clock->sampled_ns ? (cpu_ns - clock->sampled_ns) / period : 0;
    enum rp_status status;

    if (!n)
        return RP_OK;
    status = hidden_node(fold, err);
    if (!status)
        status = rp_profile_count(fold->profile, thread, fold->hidden_node, 0, RP_STATE_RUNNING, at_ns > fold->start_ns ? at_ns - fold->start_ns : 0, n,
                                  n * period, err);
    clock->sampled_ns += n * period;
    fold->samples += n;
    return status;
}

enum rp_status rp_fold_count_hidden(struct rp_fold *fold, uint64_t now_ns, struct rp_err *err)
{
    enum rp_status status = RP_OK;

    if (!fold->hidden_period_ns || !fold->waits)
        return RP_OK;
    for (size_t i = 0; i < fold->live.n && !status; i++) {
        uint32_t thread = fold->live.at[i];

        status = count_hidden(fold, thread, rp_clock_cpu(&fold->clocks.at[thread], &fold->profile->threads.at[thread], now_ns), now_ns, err);
    }
    return status;
}

/* Ends. */

enum rp_status rp_fold_end_thread(struct rp_fold *fold, uint32_t thread, uint64_t time_ns, struct rp_err *err)
{
    struct rp_fold_thread *t = &fold->threads.at[thread];
    struct rp_clock *clock = &fold->clocks.at[thread];
    struct rp_done_wait done;
    enum rp_status status;

    if (t->end_ns)
        return RP_OK;
    t->end_ns = time_ns;
    rp_fold_not_live(fold, thread);
    rp_clock_end(clock, &fold->profile->threads.at[thread], time_ns, clock->sample_ns != 0, &done);
    if (!fold->waits)
        return RP_OK;
    status = count_wait(fold, thread, &done, err);
    if (!status && fold->hidden_period_ns)
        status = count_hidden(fold, thread, fold->profile->threads.at[thread].cpu_ns, time_ns, err);
    return status;
}

/* What schedstat gained; an end that was not told of and a number used again make it fall. */
static uint64_t gained(uint64_t now_ns, uint64_t begin_ns)
{
    return now_ns > begin_ns ? now_ns - begin_ns : 0;
}

/* Without switch records: one figure for the whole watch. A thread that is gone has no schedstat any more: what it was sampled for is the best figure left. */
static enum rp_status finish_by_schedstat(struct rp_fold *fold, uint32_t thread, bool there, const struct rp_thread_info *info, struct rp_err *err)
{
    struct rp_profile_thread *row = &fold->profile->threads.at[thread];
    uint32_t pid = fold->processes.at[fold->threads.at[thread].process].pid;
    uint64_t at_ns = fold->start_ns;

    *row = (struct rp_profile_thread){.process = row->process, .tid = row->tid, .comm = row->comm, .wall_ns = row->wall_ns, .run_delay_ns = row->run_delay_ns};
    row->cpu_ns = there ? gained(info->cpu_ns, fold->threads.at[thread].cpu_begin_ns) : fold->clocks.at[thread].sampled_ns;
    /* schedstat counts a delay when it is over; one that has not slept was ready whenever it did not run. */
    if (there && info->state == 'R' && row->wall_ns > row->cpu_ns && rp_thread_sleeps(pid, row->tid) == fold->threads.at[thread].sleeps_begin)
        row->run_delay_ns = row->wall_ns - row->cpu_ns;
    return fold->hidden_period_ns ? count_hidden(fold, thread, row->cpu_ns, at_ns, err) : RP_OK;
}

static enum rp_status finish_thread(struct rp_fold *fold, uint32_t thread, uint64_t end_ns, struct rp_err *err)
{
    struct rp_fold_thread *t = &fold->threads.at[thread];
    const struct rp_fold_process *process = &fold->processes.at[t->process];
    struct rp_profile_thread *row = &fold->profile->threads.at[thread];
    struct rp_clock *clock = &fold->clocks.at[thread];
    struct rp_thread_info info = {0};
    bool there = !t->end_ns && process->live && rp_thread_read(process->pid, t->tid, &info), ran;
    bool untold = fold->lossy && fold->waits && !fold->replay && !t->end_ns && !there;
    uint64_t end = t->end_ns ? t->end_ns : untold ? rp_clock_end_untold(clock, row) : end_ns;
    struct rp_done_wait done = {0};
    enum rp_status status = RP_OK;

    end = end > t->begin_ns ? end : t->begin_ns;
    row->wall_ns = end - t->begin_ns;
    ran = there ? gained(info.cpu_ns, t->cpu_begin_ns) > row->wall_ns / 2 : clock->sample_ns != 0;
    if (there)
        row->run_delay_ns = gained(info.run_delay_ns, t->delay_begin_ns);
    if (!t->end_ns && !untold)
        rp_clock_end(clock, row, end, ran, &done);
    if (!fold->waits)
        return finish_by_schedstat(fold, thread, there, &info, err);
    if (fold->lossy && there)
        rp_clock_settle_cpu(row, row->wall_ns, gained(info.cpu_ns, t->cpu_begin_ns));
    status = count_wait(fold, thread, &done, err);
    if (!status && fold->hidden_period_ns)
        status = count_hidden(fold, thread, row->cpu_ns, end, err);
    return status;
}

enum rp_status rp_fold_finish(struct rp_fold *fold, uint64_t end_ns, struct rp_err *err)
{
    enum rp_status status = RP_OK;

    for (uint32_t i = 0; i < fold->threads.n && !status; i++)
        status = finish_thread(fold, i, end_ns, err);
    return status;
}
