/* SPDX-License-Identifier: MIT */
/* CPUs that are switched off and on while they are sampled.
 *
 * The trap: an event of a thread on a CPU outlives the CPU, that of a whole CPU ends with it, and nothing tells. It can be read, enabled and disabled as
 * before, and when the CPU is back it does nothing. Only that its count stands still shows it, however short the CPU was off. A CPU that was off at the
 * beginning has no ring and is not watched: there the reader is told. */
#include "sample/perf_private.h"

#define CHECK_NS UINT64_C(1000000000)

static bool lists(const struct rp_cpu_list *cpus, int cpu)
{
    for (size_t i = 0; i < cpus->at.n; i++) {
        if (cpus->at.at[i] == cpu)
            return true;
    }
    return false;
}

/* Whether one of them has not counted since the last look. Cycles of a CPU may stand still for want of work, its clock does not. */
static bool is_one_still(const struct rp_perf_sampler *s, struct rp_perf_events *events)
{
    bool still = false;

    for (size_t i = 0; i < events->at.n && s->want.source == RP_SOURCE_CPU_CLOCK; i++) {
        uint64_t count = rp_perf_event_count(events->at.at[i].fd);

        still = still || count == events->at.at[i].count;
        events->at.at[i].count = count;
    }
    return still;
}

static void note_new(struct rp_perf_sampler *s, const struct rp_cpu_list *online)
{
    for (size_t i = 0; i < online->at.n && !s->cpu_came; i++) {
        if (lists(&s->cpus, online->at.at[i]))
            continue;
        s->cpu_came = true;
        rp_sampler_note(&s->stats, "CPU %d was switched on in the meantime and is not watched: what ran there is missing.", online->at.at[i]);
    }
}

enum rp_status rp_perf_cpus_compare(struct rp_perf_sampler *s, const struct rp_cpu_list *online, struct rp_err *err)
{
    struct rp_perf_events *whole = s->stats.system_wide ? &s->events : &s->clocks.events;
    struct rp_perf_want want = s->want;
    size_t on = 0;
    bool done;
    enum rp_status status = RP_OK;

    note_new(s, online);
    for (size_t i = 0; i < s->rings.n; i++)
        on += lists(online, s->rings.at[i].cpu);
    if (!whole->at.n || (!is_one_still(s, whole) && whole->at.n >= on))
        return RP_OK;
    if (s->stats.system_wide)
        status = rp_perf_set_replace(s, &want, &done, err);
    else
        (void)rp_perf_clocks_reopen(s);
    if (!s->cpu_changed)
        rp_sampler_note(&s->stats, "A CPU was switched off or on in the meantime; what ran there until it was seen, a second at most, is missing.");
    s->cpu_changed = true;
    return status;
}

enum rp_status rp_perf_cpus_check(struct rp_perf_sampler *s, uint64_t now_ns, struct rp_err *err)
{
    struct rp_cpu_list online = {0};
    enum rp_status status;

    if (now_ns - s->cpus_ns < CHECK_NS)
        return RP_OK;
    s->cpus_ns = now_ns;
    status = rp_cpu_list_read(&online, err);
    if (!status)
        status = rp_perf_cpus_compare(s, &online, err);
    rp_vec_release(&online.at);
    return status;
}
