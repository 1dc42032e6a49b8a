/* SPDX-License-Identifier: MIT */
/* See perf_open.h. The trap: one errno stands for many causes. EINVAL is what an old kernel says to a bit it does not know as well as to a wrong
 * value; EACCES is "no kernel samples for you" as well as "not your process". So things are left out one at a time, the least missed
 * first, and the caller explains what is left with facts from procfs. */
#include "sample/perf_open.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sample/perf_record.h"

static int perf_event_open(struct perf_event_attr *attr, int tid, int cpu)
{
    long fd = syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

    return fd < 0 ? -errno : (int)fd;
}

uint64_t rp_perf_period_ns(uint32_t hz)
{
    return hz ? 1000000000u / hz : 1000000000u;
}

static void set_source(struct perf_event_attr *attr, const struct rp_perf_want *want)
{
    if (want->clockless) {
        attr->type = PERF_TYPE_SOFTWARE;
        attr->config = PERF_COUNT_SW_DUMMY;
    } else if (want->source == RP_SOURCE_CYCLES) {
        attr->type = PERF_TYPE_HARDWARE;
        attr->config = PERF_COUNT_HW_CPU_CYCLES;
        attr->freq = 1;
        attr->sample_freq = want->hz;
    } else {
        attr->type = PERF_TYPE_SOFTWARE;
        attr->config = PERF_COUNT_SW_CPU_CLOCK;
        attr->sample_period = rp_perf_period_ns(want->hz);
    }
}

/* What all events that copy stacks have in common. */
static struct perf_event_attr stack_attr(const struct rp_perf_want *want, int tid)
{
    struct perf_event_attr attr = {.size = sizeof attr};

    attr.sample_type = RP_PERF_SAMPLE_TYPE | (want->kernel ? PERF_SAMPLE_CALLCHAIN : 0);
    attr.exclude_callchain_user = 1;
    attr.exclude_hv = 1;
    attr.sample_regs_user = RP_PERF_REGS_MASK;
    attr.sample_stack_user = want->stack_bytes;
    attr.sample_id_all = 1;
    attr.read_format = want->count_lost ? PERF_FORMAT_LOST : 0;
    attr.disabled = 1;
    attr.enable_on_exec = want->enable_on_exec;
    attr.inherit = want->inherit && tid >= 0;
    attr.inherit_thread = want->inherit_thread && attr.inherit;
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC;
    attr.watermark = 1; /* no wake-up per sample; how full is full is the ring owner's to say */
    return attr;
}

int rp_perf_open_peek(const struct rp_perf_want *want, uint64_t period, int tid, int cpu)
{
    struct perf_event_attr attr = stack_attr(want, tid);

    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
    attr.sample_period = period;
    return perf_event_open(&attr, tid, cpu);
}

bool rp_perf_set_peek_period(int fd, uint64_t period)
{
    return ioctl(fd, PERF_EVENT_IOC_PERIOD, &period) == 0;
}

int rp_perf_open_event(const struct rp_perf_want *want, int tid, int cpu)
{
    struct perf_event_attr attr = stack_attr(want, tid);

    set_source(&attr, want);
    attr.exclude_kernel = !want->kernel;
    attr.context_switch = want->switches;
    attr.mmap = attr.mmap2 = 1;
    attr.comm = attr.comm_exec = 1;
    attr.task = 1;
    return perf_event_open(&attr, tid, cpu);
}

int rp_perf_open_clock(const struct rp_perf_want *want, int cpu)
{
    struct rp_perf_want clock = *want;
    struct perf_event_attr attr;

    clock.clockless = clock.enable_on_exec = false;
    attr = stack_attr(&clock, -1);
    set_source(&attr, &clock);
    attr.exclude_kernel = !want->kernel;
    attr.exclude_idle = 1;
    return perf_event_open(&attr, -1, cpu);
}

int rp_perf_open_owner(int cpu)
{
    struct perf_event_attr attr = {.size = sizeof attr, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY};

    attr.disabled = 1;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    attr.use_clockid = 1; /* one ring, one clock: SET_OUTPUT insists */
    attr.clockid = CLOCK_MONOTONIC;
    attr.watermark = 1; /* with wakeup_watermark 0 the kernel takes half the ring */
    return perf_event_open(&attr, 0, cpu);
}

static bool is_refusal(int error)
{
    return error == -EACCES || error == -EPERM;
}

/* What may be left out on which answer, the least missed first. False: nothing more. */
static bool leave_out(struct rp_perf_want *want, int error)
{
    if (want->source == RP_SOURCE_CYCLES && (error == -ENOENT || error == -EOPNOTSUPP || error == -ENODEV)) {
        want->source = RP_SOURCE_CPU_CLOCK;
        return true;
    }
    if (error == -EINVAL && want->count_lost) {
        want->count_lost = false;
        return true;
    }
    if ((error == -EINVAL || error == -E2BIG) && want->inherit_thread) {
        want->inherit_thread = false;
        return true;
    }
    if (is_refusal(error) && want->kernel) {
        want->kernel = false;
        return true;
    }
    return false;
}

int rp_perf_open_probe(struct rp_perf_want *want, int tid, int cpu)
{
    int fd;

    do
        fd = rp_perf_open_event(want, tid, cpu);
    while (fd < 0 && leave_out(want, fd));
    return fd;
}

uint64_t rp_perf_event_id(int fd)
{
    uint64_t id = 0;

    return ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0 ? id : 0;
}

uint64_t rp_perf_event_count(int fd)
{
    uint64_t values[2] = {0}; /* value, lost where that is counted */

    return read(fd, values, sizeof values) >= (ssize_t)sizeof *values ? values[0] : 0;
}

uint64_t rp_perf_event_lost(int fd, bool count_lost)
{
    uint64_t values[2] = {0}; /* value, lost */

    return count_lost && read(fd, values, sizeof values) == (ssize_t)sizeof values ? values[1] : 0;
}
