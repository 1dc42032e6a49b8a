/* SPDX-License-Identifier: MIT */
/* See perf_cpus.h. The trap: the number of CPUs is not their highest number plus one; on machines with some switched off there are gaps. */
#include "sample/perf_cpus.h"

#include <sys/resource.h>
#include <unistd.h>

#include "base/io.h"
#include "base/parse.h"

enum { CPU_NUMBER_MAX = 8191, LIST_FILE_MAX = 1 << 16 };

bool rp_cpu_list_parse(const char *text, size_t length, struct rp_cpu_list *cpus)
{
    struct rp_cursor c = rp_cursor_of(text, length);

    do {
        uint64_t first, last;

        if (!rp_cursor_u64(&c, &first))
            return false;
        last = first;
        if (rp_cursor_take(&c, "-") && !rp_cursor_u64(&c, &last))
            return false;
        if (last > CPU_NUMBER_MAX || first > last)
            return false;
        for (; first <= last; first++) {
            int *slot = rp_vec_add(&cpus->at);

            if (!slot)
                return false;
            *slot = (int)first;
        }
    } while (rp_cursor_take(&c, ","));
    (void)rp_cursor_take(&c, "\n");
    return rp_cursor_done(&c);
}

enum rp_status rp_cpu_list_read(struct rp_cpu_list *cpus, struct rp_err *err)
{
    struct rp_buf text = {0};
    struct rp_err ignored;
    long n;

    if (rp_read_file("/sys/devices/system/cpu/online", LIST_FILE_MAX, &text, &ignored) == RP_OK &&
        rp_cpu_list_parse(rp_buf_text(&text), text.length, cpus)) {
        rp_buf_release(&text);
        return RP_OK;
    }
    rp_buf_release(&text);
    rp_vec_clear(&cpus->at);
    n = sysconf(_SC_NPROCESSORS_CONF);
    for (int cpu = 0; cpu < (n < 1 ? 1 : (int)n); cpu++) {
        int *slot = rp_vec_add(&cpus->at);

        if (!slot)
            return rp_fail_nomem(err);
        *slot = cpu;
    }
    return RP_OK;
}

static uint64_t raise_limit(int resource)
{
    struct rlimit limit, wanted;

    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0)
        return 1024;
    wanted = (struct rlimit){limit.rlim_max, limit.rlim_max};
    if (limit.rlim_cur != limit.rlim_max && setrlimit((__rlimit_resource_t)resource, &wanted) == 0)
        return wanted.rlim_cur;
    return limit.rlim_cur;
}

uint64_t rp_raise_limits(void)
{
    (void)raise_limit(RLIMIT_MEMLOCK);
    return raise_limit(RLIMIT_NOFILE);
}

uint64_t rp_max_sample_rate(void)
{
    struct rp_buf text = {0};
    struct rp_err ignored;
    uint64_t rate = 0;

    if (rp_read_file("/proc/sys/kernel/perf_event_max_sample_rate", LIST_FILE_MAX, &text, &ignored) == RP_OK) {
        struct rp_cursor c = rp_cursor_of(rp_buf_text(&text), text.length);

        if (!rp_cursor_u64(&c, &rate))
            rate = 0;
    }
    rp_buf_release(&text);
    return rate ? rate : UINT32_MAX;
}
