/* SPDX-License-Identifier: MIT */
/* See fold.h. */
#include "fold/fold_private.h"

#include <stdio.h>
#include <string.h>

#include "base/io.h"

/* A pc in no mapping makes us read /proc/PID/maps again, but not more often than this: a target that runs wild would have us
 * read it for every sample. */
#define MAPS_REREAD_NS UINT64_C(100000000)

/* How old the mapping table may be when nobody tells of new mappings. */
#define MAPS_AGE_NS UINT64_C(1000000000)

/* perf puts markers among kernel addresses (PERF_CONTEXT_KERNEL and its like): the last page of the address space. */
#define CONTEXT_MARKERS UINT64_C(0xfffffffffffff000)

static uint32_t process_position(const struct rp_fold *fold, const struct rp_fold_process *process)
{
    return (uint32_t)(process - fold->processes.at);
}

enum rp_status rp_fold_init(struct rp_fold *fold, struct rp_images *images, struct rp_unwinder *unwinder, struct rp_symbolizer *symbolizer,
                            struct rp_profile *profile, struct rp_err *err)
{
    *fold = (struct rp_fold){.images = images, .unwinder = unwinder, .symbolizer = symbolizer, .profile = profile};
    memset(fold->marks, 0xff, sizeof fold->marks);
    return rp_walk_init(&fold->walk, err);
}

void rp_fold_release(struct rp_fold *fold)
{
    for (size_t i = 0; i < fold->processes.n; i++)
        rp_space_release(&fold->processes.at[i].space);
    rp_vec_release(&fold->processes);
    rp_vec_release(&fold->threads);
    rp_vec_release(&fold->clocks);
    rp_vec_release(&fold->live);
    rp_vec_release(&fold->lock_tries);
    rp_vec_release(&fold->sqlite_images);
    rp_syscall_sites_release(&fold->sites);
    rp_free(fold->peek_stack);
    rp_index_release(&fold->thread_index);
    rp_index_release(&fold->process_index);
    rp_walk_release(&fold->walk);
}

/* Processes and threads. */

static enum rp_status name_thread(struct rp_fold *fold, uint32_t thread, const char *comm, struct rp_err *err)
{
    return rp_profile_string(fold->profile, comm, strlen(comm), &fold->profile->threads.at[thread].comm, err);
}

enum rp_status rp_fold_add_process(struct rp_fold *fold, const struct rp_process_info *info, uint64_t start_ns, struct rp_err *err)
{
    struct rp_thread_infos threads = {0};
    struct rp_fold_process *process;
    enum rp_status status;

    if (!fold->start_ns)
        fold->start_ns = start_ns;
    status = rp_fold_new_process(fold, info->pid, info->ns_pid, info->comm, info->command, err);
    if (status)
        return status;
    process = &fold->processes.at[fold->processes.n - 1];
    process->live = true;
    process->stopped = info->state == 'T';
    status = rp_space_read(&process->space, fold->images, err);
    if (!status)
        status = rp_threads_read(info->pid, &threads, err);
    for (size_t i = 0; !status && i < threads.at.n; i++) {
        uint32_t thread = 0;

        status = rp_fold_thread(fold, (uint32_t)fold->processes.n - 1, threads.at.at[i].tid, start_ns, &thread, err);
        if (!status) {
            fold->threads.at[thread].cpu_begin_ns = threads.at.at[i].cpu_ns;
            fold->threads.at[thread].delay_begin_ns = threads.at.at[i].run_delay_ns;
            if (!fold->waits)
                fold->threads.at[thread].sleeps_begin = threads.at.at[i].state == 'R' ? rp_thread_sleeps(info->pid, threads.at.at[i].tid) : UINT64_MAX;
            fold->clocks.at[thread].blocked_at_begin = threads.at.at[i].state != 'R';
            fold->clocks.at[thread].ready_at_begin = threads.at.at[i].state == 'R' && !fold->unrecorded;
            status = name_thread(fold, thread, threads.at.at[i].comm, err);
        }
    }
    rp_threads_release(&threads);
    return status;
}

/* Events. */

static enum rp_status on_mmap(struct rp_fold *fold, struct rp_fold_process *process, const struct rp_event *event, struct rp_err *err)
{
    struct rp_image_key key = rp_event_image_key(event);

    return rp_space_map(&process->space, fold->images, &key, err);
}

/* execve: the same pid and tid, another program. */
static enum rp_status on_exec(struct rp_fold *fold, struct rp_fold_process *process, const struct rp_event *event, struct rp_err *err)
{
    struct rp_process_info info = {0};
    struct rp_err ignored = {0};
    uint32_t before = process_position(fold, process), ns_pid = process->ns_pid;
    bool live = process->live;
    const char *command = event->u.comm.comm;
    enum rp_status status = RP_OK;

    for (size_t i = fold->live.n; !status && i-- > 0;) /* the last of the list takes the place of one that ends */
        if (fold->threads.at[fold->live.at[i]].process == before)
            status = rp_fold_end_thread(fold, fold->live.at[i], event->time_ns, err);
    if (status)
        return status;
    if (live && !rp_process_read(event->pid, &info, &ignored))
        command = info.command;
    status = rp_fold_new_process(fold, event->pid, ns_pid, event->u.comm.comm, command, err);
    if (!status) {
        fold->processes.at[fold->processes.n - 1].live = live;
        fold->processes.at[before].live = false; /* procfs tells of the new program */
    }
    return status;
}

/* schedstat goes on over an execve: what the thread had used when it was another program's is not this one's. */
static void carry_times(struct rp_fold *fold, uint32_t old, uint32_t thread)
{
    const struct rp_fold_thread *from = &fold->threads.at[old];
    const struct rp_profile_thread *row = &fold->profile->threads.at[old];

    fold->threads.at[thread].cpu_begin_ns = from->cpu_begin_ns + (fold->waits ? row->cpu_ns : fold->clocks.at[old].sampled_ns);
    fold->threads.at[thread].delay_begin_ns = from->delay_begin_ns + row->preempted_ns;
}

static enum rp_status on_comm(struct rp_fold *fold, struct rp_fold_process *process, const struct rp_event *event, struct rp_err *err)
{
    uint32_t thread, old = rp_fold_find_thread(fold, process_position(fold, process), event->tid);
    enum rp_status status = RP_OK;

    if (event->u.comm.exec) {
        status = on_exec(fold, process, event, err);
        process = &fold->processes.at[fold->processes.n - 1];
    }
    if (!status)
        status = rp_fold_thread(fold, process_position(fold, process), event->tid, event->time_ns, &thread, err);
    if (!status && event->u.comm.exec && old != RP_NO_THREAD)
        carry_times(fold, old, thread);
    if (!status && event->u.comm.exec) /* it is the one that runs */
        rp_clock_begin(&fold->clocks.at[thread], event->time_ns, RP_CLOCK_RUNNING);
    return status ? status : name_thread(fold, thread, event->u.comm.comm, err);
}

/* A new thread carries its creator's name until it takes one. */
static enum rp_status on_fork(struct rp_fold *fold, struct rp_fold_process *process, const struct rp_event *event, struct rp_err *err)
{
    uint32_t thread, parent;
    uint32_t position = process_position(fold, process);
    size_t before = fold->threads.n;
    enum rp_status status = rp_fold_born_thread(fold, position, event->tid, event->time_ns, &thread, err);

    if (!status && fold->threads.n > before)
        rp_clock_begin(&fold->clocks.at[thread], event->time_ns, RP_CLOCK_READY);
    if (!status && event->u.fork.parent_pid == event->pid)
        status = rp_fold_thread(fold, position, event->u.fork.parent_tid, event->time_ns, &parent, err);
    else
        return status;
    if (!status)
        fold->profile->threads.at[thread].comm = fold->profile->threads.at[parent].comm;
    return status;
}

static enum rp_status on_exit(struct rp_fold *fold, const struct rp_fold_process *process, const struct rp_event *event, struct rp_err *err)
{
    uint32_t thread = rp_fold_find_thread(fold, process_position(fold, process), event->tid);

    return thread == RP_NO_THREAD ? RP_OK : rp_fold_end_thread(fold, thread, event->time_ns, err);
}

/* Stacks. */

/* A process that is gone is no failure: what is known of it stays. */
static enum rp_status read_maps(struct rp_fold *fold, struct rp_fold_process *process, struct rp_err *err)
{
    struct rp_err gone = {0};
    enum rp_status status = rp_space_read(&process->space, fold->images, &gone);

    if (status == RP_NOMEM)
        return rp_fail_nomem(err);
    if (status)
        process->live = false;
    return RP_OK;
}

enum rp_status rp_fold_refresh(struct rp_fold *fold, struct rp_err *err)
{
    enum rp_status status = RP_OK;

    for (size_t i = 0; !status && i < fold->processes.n; i++)
        if (fold->processes.at[i].live)
            status = read_maps(fold, &fold->processes.at[i], err);
    return status;
}

/* Where no event tells of mappings, what is mapped over something else would keep the other's names. */
static enum rp_status read_if_old(struct rp_fold *fold, struct rp_fold_process *process, uint64_t now_ns, struct rp_err *err)
{
    if (!fold->unrecorded || !process->live || now_ns - process->maps_read_ns < MAPS_AGE_NS)
        return RP_OK;
    process->maps_read_ns = now_ns;
    return read_maps(fold, process, err);
}

static enum rp_status walk_stack(struct rp_fold *fold, struct rp_fold_process *process, const struct rp_snapshot *snapshot, uint64_t now_ns,
                                 struct rp_err *err)
{
    enum rp_status status = read_if_old(fold, process, now_ns, err);

    if (!status)
        status = rp_unwind_by(fold->unwinder, &process->space, snapshot, &fold->walk, err);

    if (status || fold->walk.end != RP_WALK_NO_MAPPING || !process->live || now_ns - process->maps_read_ns < MAPS_REREAD_NS)
        return status;
    /* A mapping that no record told of (made executable later): look once, walk once more. */
    process->maps_read_ns = now_ns;
    status = read_maps(fold, process, err);
    return status ? status : rp_unwind_by(fold->unwinder, &process->space, snapshot, &fold->walk, err);
}

static enum rp_status push(struct rp_fold *fold, uint32_t *node, uint32_t image, uint64_t addr, uint32_t flags, uint32_t epoch, struct rp_err *err)
{
    uint32_t location;
    enum rp_status status = rp_profile_location(fold->profile, image, addr, flags, epoch, &location, err);

    return status ? status : rp_profile_node(fold->profile, *node, location, node, err);
}

static enum rp_status push_mark(struct rp_fold *fold, uint32_t *node, enum rp_walk_end end, struct rp_err *err)
{
    const char *text = rp_walk_end_text(end);
    enum rp_status status = RP_OK;

    if (!text)
        return RP_OK;
    if (fold->marks[end] == UINT32_MAX)
        status = rp_profile_mark(fold->profile, text, &fold->marks[end], err);
    return status ? status : rp_profile_node(fold->profile, *node, fold->marks[end], node, err);
}

static enum rp_status push_user(struct rp_fold *fold, struct rp_fold_process *process, uint32_t *node, struct rp_err *err)
{
    enum rp_status status = push_mark(fold, node, fold->walk.end, err);

    for (uint32_t i = fold->walk.n; !status && i-- > 0;) {
        const struct rp_walk_frame *frame = &fold->walk.frames[i];
        uint32_t flags = (frame->exact ? 0u : RP_LOCATION_CALLER) | (frame->by_frame_pointer ? RP_LOCATION_GUESS : 0u);
        uint32_t epoch = 0;

        if (fold->images->at.at[frame->where.image]->kind == RP_IMAGE_JIT) {
            process->has_jit = true;
            epoch = rp_symbolizer_epoch(fold->symbolizer, process->pid, frame->where.addr - (frame->exact ? 0 : 1));
        }
        status = push(fold, node, frame->where.image, frame->where.addr, flags, epoch, err);
    }
    return status;
}

static enum rp_status push_kernel(struct rp_fold *fold, const struct rp_snapshot *snapshot, uint32_t *node, struct rp_err *err)
{
    uint32_t first = 0;
    enum rp_status status = RP_OK;

    while (first < snapshot->nkernel && snapshot->kernel[first] >= CONTEXT_MARKERS)
        first++;
    for (uint32_t i = snapshot->nkernel; !status && i-- > first;) {
        uint32_t flags = RP_LOCATION_KERNEL | (i == first ? 0u : RP_LOCATION_CALLER);

        if (snapshot->kernel[i] < CONTEXT_MARKERS)
            status = push(fold, node, RP_IMAGE_ID_KERNEL, snapshot->kernel[i], flags, 0, err);
    }
    return status;
}

enum rp_status rp_fold_stack(struct rp_fold *fold, struct rp_fold_process *process, const struct rp_snapshot *snapshot, uint64_t time_ns,
                             uint32_t *node, struct rp_err *err)
{
    enum rp_status status = RP_OK;

    *node = 0;
    fold->walk.n = 0;
    if (snapshot->has_user) {
        status = walk_stack(fold, process, snapshot, time_ns, err);
        if (!status)
            status = push_user(fold, process, node, err);
        fold->walked++;
        fold->cut += fold->walk.end == RP_WALK_STACK_SHORT && !snapshot->sp_only;
    }
    return status ? status : push_kernel(fold, snapshot, node, err);
}

static enum rp_status on_sample(struct rp_fold *fold, struct rp_fold_process *process, const struct rp_event *event, struct rp_err *err)
{
    const struct rp_snapshot *snapshot = &event->u.sample;
    uint32_t thread, node = 0;
    enum rp_status status = rp_fold_thread(fold, process_position(fold, process), event->tid, event->time_ns, &thread, err);

    if (!status)
        status = rp_fold_stack(fold, process, snapshot, event->time_ns, &node, err);
    if (!status)
        rp_clock_sample(&fold->clocks.at[thread], event->time_ns, node, snapshot->weight_ns);
    if (!status)
        status = rp_profile_count(fold->profile, thread, node, 0, RP_STATE_RUNNING,
                                  event->time_ns > fold->start_ns ? event->time_ns - fold->start_ns : 0, 1, snapshot->weight_ns, err);
    if (!fold->samples++)
        fold->first_sample_ns = event->time_ns;
    return status;
}

/* A forked process is its parent's copy until it says otherwise. Where nothing would tell of its execve it is read as it is now. */
static enum rp_status add_child(struct rp_fold *fold, const struct rp_event *event, struct rp_fold_process **process, struct rp_err *err)
{
    struct rp_fold_process *parent = rp_fold_process_of(fold, event->u.fork.parent_pid), *child;
    struct rp_process_info info;
    struct rp_err ignored;
    const struct rp_profile_process *row;
    size_t before;
    bool there;
    enum rp_status status;

    if (!parent)
        return RP_OK;
    before = process_position(fold, parent);
    row = &fold->profile->processes.at[parent->profile_process];
    there = parent->live && rp_process_read(event->pid, &info, &ignored) == RP_OK;
    if (there && fold->unrecorded)
        status = rp_fold_new_process(fold, event->pid, info.ns_pid, info.comm, info.command, err);
    else
        status = rp_fold_new_process(fold, event->pid, there ? info.ns_pid : event->pid, rp_profile_text(fold->profile, row->comm),
                                     rp_profile_text(fold->profile, row->command), err);
    if (status)
        return status;
    parent = &fold->processes.at[before];
    child = &fold->processes.at[fold->processes.n - 1];
    child->live = parent->live;
    child->has_jit = parent->has_jit;
    *process = child;
    if (fold->unrecorded || !parent->space.maps.n)
        return RP_OK;
    if (!rp_vec_reserve(&child->space.maps, parent->space.maps.n))
        return rp_fail_nomem(err);
    memcpy(child->space.maps.at, parent->space.maps.at, parent->space.maps.n * sizeof *parent->space.maps.at);
    child->space.maps.n = parent->space.maps.n;
    return RP_OK;
}

/* A process is born under the number of one that has ended: whatever comes now is not the old one's, and procfs tells of another. */
static bool is_replaced(const struct rp_fold_process *known, const struct rp_event *event)
{
    return event->kind == RP_EVENT_FORK && event->u.fork.parent_pid != event->pid && rp_fold_has_ended(known);
}

/* Replay has no process to ask: whoever appears is watched, from its first event on. */
static enum rp_status process_of(struct rp_fold *fold, const struct rp_event *event, struct rp_fold_process **process, struct rp_err *err)
{
    enum rp_status status = RP_OK;

    *process = rp_fold_process_of(fold, event->pid);
    if (*process && is_replaced(*process, event)) {
        (*process)->replaced = true;
        (*process)->live = false;
        *process = NULL;
    }
    if (!*process && fold->children && event->kind == RP_EVENT_FORK)
        return add_child(fold, event, process, err);
    if (*process || !fold->replay)
        return RP_OK;
    status = rp_fold_new_process(fold, event->pid, event->pid, "replay", "replay", err);
    if (!status)
        *process = &fold->processes.at[fold->processes.n - 1];
    return status;
}

enum rp_status rp_fold_event(void *context, const struct rp_event *event, struct rp_err *err)
{
    struct rp_fold *fold = context;
    struct rp_fold_process *process;
    uint32_t thread;
    enum rp_status status = process_of(fold, event, &process, err);

    if (status || !process)
        return status;
    if (fold->replay && !fold->start_ns) /* not the process's birth: mappings that were there before all events are of time 0 */
        fold->start_ns = event->time_ns;
    /* A look through procfs is ahead of the records. */
    if (event->time_ns > fold->last_event_ns && (event->kind != RP_EVENT_PEEK || event->u.peek.at_switch))
        fold->last_event_ns = event->time_ns;
    switch (event->kind) {
    case RP_EVENT_SAMPLE:
        return on_sample(fold, process, event, err);
    case RP_EVENT_MMAP:
        return on_mmap(fold, process, event, err);
    case RP_EVENT_COMM:
        return on_comm(fold, process, event, err);
    case RP_EVENT_FORK:
        return on_fork(fold, process, event, err);
    case RP_EVENT_EXIT:
        return on_exit(fold, process, event, err);
    case RP_EVENT_SWITCH:
        status = rp_fold_thread(fold, process_position(fold, process), event->tid, event->time_ns, &thread, err);
        return status ? status : rp_fold_switch(fold, thread, event, err);
    case RP_EVENT_PEEK:
        status = rp_fold_thread(fold, process_position(fold, process), event->tid, event->time_ns, &thread, err);
        return status ? status : rp_fold_peek(fold, process, thread, event, err);
    }
    return RP_OK;
}

/* Block's end. */

static const char *shown_name(const struct rp_image *image)
{
    const char *slash = strrchr(image->path, '/');

    return slash && slash[1] ? slash + 1 : image->path;
}

static enum rp_status string_or_none(struct rp_profile *profile, const char *text, uint32_t *id, struct rp_err *err)
{
    *id = 0;
    return text && *text ? rp_profile_string(profile, text, strlen(text), id, err) : RP_OK;
}

static enum rp_status add_image(struct rp_profile *profile, const struct rp_image *image, struct rp_err *err)
{
    struct rp_profile_image row = {.kind = (uint32_t)image->kind, .dev = image->dev, .ino = image->ino};
    char build_id[2 * sizeof image->build_id + 1] = "";
    struct rp_profile_image *added;
    enum rp_status status;

    for (uint8_t i = 0; i < image->build_id_bytes; i++)
        snprintf(build_id + 2 * i, 3, "%02x", image->build_id[i]);
    status = string_or_none(profile, image->path, &row.path, err);
    if (!status)
        status = string_or_none(profile, shown_name(image), &row.name, err);
    if (!status)
        status = string_or_none(profile, build_id, &row.build_id, err);
    if (!status)
        status = string_or_none(profile, image->problem ? image->problem : image->deleted ? "replaced on disk" : NULL, &row.note, err);
    if (status)
        return status;
    added = rp_vec_add(&profile->images);
    if (!added)
        return rp_fail_nomem(err);
    *added = row;
    return RP_OK;
}

enum rp_status rp_fold_read_jit(struct rp_fold *fold, struct rp_err *err)
{
    enum rp_status status = RP_OK;

    for (size_t i = 0; !status && i < fold->processes.n; i++) {
        struct rp_fold_process *process = &fold->processes.at[i];

        if (!process->has_jit)
            continue;
        status = rp_symbolizer_read_jit(fold->symbolizer, process->pid, process->ns_pid, err);
        process->has_jit = !rp_fold_has_ended(process); /* after its end once: then its maps are whole */
    }
    return status;
}

enum rp_status rp_fold_tick(struct rp_fold *fold, struct rp_err *err)
{
    enum rp_status status = RP_OK;

    while (!status && fold->profile->images.n < fold->images->at.n)
        status = add_image(fold->profile, fold->images->at.at[fold->profile->images.n], err);
    if (!status)
        status = rp_fold_read_jit(fold, err);
    if (!status)
        status = rp_fold_count_hidden(fold, fold->last_event_ns, err);
    return status ? status : rp_symbolize(fold->symbolizer, fold->profile, err);
}
