/* SPDX-License-Identifier: MIT */
/* See perf_record.h. Layout of a sample with our sample type:
 *
 *     header | id | pid tid | time | [n, n addresses] | abi, [17 registers] | size, [size bytes, bytes really copied]
 *
 * The traps: registers are missing when abi is 0 (kernel threads); the last field is missing when size is 0; the copied
 * stack is always `size` bytes long in the record but only the first `dyn_size` of them are data; the kernel makes `size` smaller than asked when the
 * record would pass 64 KiB; call chains hold context marks (values near 2^64) between the addresses. */
#include "sample/perf_record.h"

#include <string.h>
#include <sys/sysmacros.h>

/* The unread part of a record. A take that goes beyond the end leaves `bad` set and gives zeroes. */
struct reader {
    const uint8_t *at, *end;
    bool bad;
};

static const uint8_t *take(struct reader *r, size_t length)
{
    const uint8_t *at = r->at;

    if ((size_t)(r->end - r->at) < length) {
        r->bad = true;
        return NULL;
    }
    r->at += length;
    return at;
}

static uint64_t take_u64(struct reader *r)
{
    const uint8_t *at = take(r, 8);
    uint64_t value = 0;

    if (at)
        memcpy(&value, at, 8);
    return value;
}

static uint32_t take_u32(struct reader *r)
{
    const uint8_t *at = take(r, 4);
    uint32_t value = 0;

    if (at)
        memcpy(&value, at, 4);
    return value;
}

/* A string with its NUL before the end of the record. */
static const char *take_text(struct reader *r)
{
    const char *at = (const char *)r->at;
    const uint8_t *nul = r->bad ? NULL : memchr(r->at, 0, (size_t)(r->end - r->at));

    if (!nul) {
        r->bad = true;
        return "";
    }
    r->at = nul + 1;
    return at;
}

/* The kernel's order of registers to DWARF numbers. */
static const uint8_t reg_order[] = {RP_RAX, RP_RBX, RP_RCX, RP_RDX, RP_RSI, RP_RDI, RP_RBP, RP_RSP, RP_RIP,
                                    RP_R8,  RP_R9,  RP_R10, RP_R11, RP_R12, RP_R13, RP_R14, RP_R15};

static void read_callchain(struct reader *r, struct rp_perf_record *record)
{
    struct rp_snapshot *sample = &record->event.u.sample;
    uint64_t n = take_u64(r);
    const uint8_t *at;

    if (r->bad || n > (uint64_t)(r->end - r->at) / 8) {
        r->bad = true;
        return;
    }
    at = take(r, (size_t)n * 8);
    for (uint64_t i = 0; at && i < n && sample->nkernel < RP_KERNEL_FRAMES_MAX; i++) {
        uint64_t pc;

        memcpy(&pc, at + i * 8, 8);
        if (pc == PERF_CONTEXT_USER)
            break;
        if (pc < (uint64_t)PERF_CONTEXT_MAX)
            record->kernel[sample->nkernel++] = pc;
    }
    sample->kernel = sample->nkernel ? record->kernel : NULL;
}

static void read_user(struct reader *r, struct rp_snapshot *sample)
{
    uint64_t abi = take_u64(r), size, copied;

    if (abi != PERF_SAMPLE_REGS_ABI_NONE) {
        for (size_t i = 0; i < sizeof reg_order; i++)
            sample->regs[reg_order[i]] = take_u64(r);
    }
    size = take_u64(r);
    if (size) {
        sample->stack = size <= (uint64_t)(r->end - r->at) ? take(r, (size_t)size) : take(r, SIZE_MAX);
        copied = take_u64(r);
        if (copied > size)
            r->bad = true;
        sample->stack_bytes = r->bad ? 0 : (uint32_t)copied;
        sample->stack_cut = copied == size;
    }
    sample->has_user = abi == PERF_SAMPLE_REGS_ABI_64 && !r->bad;
}

static void read_sample(struct reader *r, bool callchain, struct rp_perf_record *record)
{
    struct rp_event *event = &record->event;

    event->kind = RP_EVENT_SAMPLE;
    record->id = take_u64(r);
    event->pid = take_u32(r);
    event->tid = record->by_tid = take_u32(r);
    event->time_ns = take_u64(r);
    if (callchain)
        read_callchain(r, record);
    read_user(r, &event->u.sample);
}

/* pid, tid, time, id at the end of every other record. Cuts them off. */
static void read_trailer(struct reader *r, struct rp_perf_record *record)
{
    struct reader tail = *r;

    if (r->end - r->at < 24) {
        r->bad = true;
        return;
    }
    r->end -= 24;
    tail.at = r->end;
    record->event.pid = take_u32(&tail);
    record->event.tid = record->by_tid = take_u32(&tail);
    record->event.time_ns = take_u64(&tail);
    record->id = take_u64(&tail);
}

static enum rp_perf_kind read_mmap2(struct reader *r, uint16_t misc, struct rp_perf_record *record)
{
    struct rp_event *event = &record->event;
    uint64_t length;
    uint32_t major, minor;

    event->kind = RP_EVENT_MMAP;
    event->pid = take_u32(r);
    event->tid = take_u32(r);
    event->u.mmap.start = take_u64(r);
    length = take_u64(r);
    event->u.mmap.offset = take_u64(r);
    major = take_u32(r);
    minor = take_u32(r);
    event->u.mmap.dev = makedev(major, minor);
    event->u.mmap.ino = take_u64(r);
    take(r, 16); /* inode generation, protection, flags */
    event->u.mmap.path = take_text(r);
    if (__builtin_add_overflow(event->u.mmap.start, length, &event->u.mmap.end))
        r->bad = true;
    return misc & PERF_RECORD_MISC_MMAP_DATA || !length ? RP_PERF_IGNORED : RP_PERF_EVENT;
}

static enum rp_perf_kind read_comm(struct reader *r, uint16_t misc, struct rp_perf_record *record)
{
    struct rp_event *event = &record->event;

    event->kind = RP_EVENT_COMM;
    event->pid = take_u32(r);
    event->tid = take_u32(r);
    event->u.comm.comm = take_text(r);
    event->u.comm.exec = (misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
    return RP_PERF_EVENT;
}

static enum rp_perf_kind read_task(struct reader *r, enum rp_event_kind kind, struct rp_perf_record *record)
{
    struct rp_event *event = &record->event;
    uint32_t parent_pid, parent_tid;

    event->kind = kind;
    event->pid = take_u32(r);
    parent_pid = take_u32(r);
    event->tid = take_u32(r);
    parent_tid = take_u32(r);
    if (kind == RP_EVENT_FORK) {
        event->u.fork.parent_pid = parent_pid;
        event->u.fork.parent_tid = parent_tid;
    }
    return RP_PERF_EVENT;
}

static enum rp_perf_kind read_switch(uint16_t misc, struct rp_perf_record *record)
{
    record->event.kind = RP_EVENT_SWITCH;
    record->event.u.sw.out = (misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
    record->event.u.sw.preempted = record->event.u.sw.out && (misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0;
    return RP_PERF_EVENT;
}

static enum rp_perf_kind read_other(struct reader *r, const struct perf_event_header *header, struct rp_perf_record *record)
{
    read_trailer(r, record);
    switch (header->type) {
    case PERF_RECORD_MMAP2:
        return read_mmap2(r, header->misc, record);
    case PERF_RECORD_COMM:
        return read_comm(r, header->misc, record);
    case PERF_RECORD_FORK:
        return read_task(r, RP_EVENT_FORK, record);
    case PERF_RECORD_EXIT:
        return read_task(r, RP_EVENT_EXIT, record);
    case PERF_RECORD_SWITCH_CPU_WIDE:
        take(r, 8); /* who comes next, or who came before */
        return read_switch(header->misc, record);
    case PERF_RECORD_SWITCH:
        return read_switch(header->misc, record);
    case PERF_RECORD_LOST:
        take_u64(r);
        record->lost = take_u64(r);
        return RP_PERF_LOST;
    case PERF_RECORD_LOST_SAMPLES:
        record->lost = take_u64(r);
        return RP_PERF_LOST;
    case PERF_RECORD_THROTTLE:
        return RP_PERF_THROTTLE;
    default:
        return RP_PERF_IGNORED;
    }
}

enum rp_perf_kind rp_perf_record_parse(const void *bytes, size_t size, bool callchain, struct rp_perf_record *record)
{
    struct perf_event_header header;
    struct reader r = {bytes, (const uint8_t *)bytes + size, false};

    record->id = record->lost = record->by_tid = 0;
    record->event = (struct rp_event){0};
    record->kind = RP_PERF_DAMAGED;
    if (size < sizeof header)
        return record->kind;
    memcpy(&header, take(&r, sizeof header), sizeof header);
    if (header.size != size)
        return record->kind;
    if (header.type == PERF_RECORD_SAMPLE) {
        record->kind = RP_PERF_EVENT;
        read_sample(&r, callchain, record);
    } else {
        record->kind = read_other(&r, &header, record);
    }
    if (r.bad)
        record->kind = RP_PERF_DAMAGED;
    return record->kind;
}
