/* SPDX-License-Identifier: MIT */
/* Compares two profiles field by field; see fake_profile.h. memcmp of whole structs would compare padding. */
#include <string.h>

#include "support/fake_profile.h"

/* Every field of the element type of `list`, so that a forgotten one is a matter of one line here. */
#define SAME(list, field)                                                                                              \
    for (size_t i = 0; i < a->list.n; i++)                                                                             \
        if (a->list.at[i].field != b->list.at[i].field) {                                                              \
            rp_buf_printf(why, #list "[%zu]." #field " differs", i);                                                   \
            return false;                                                                                              \
        }

#define SAME_LENGTH(list)                                                                                              \
    if (a->list.n != b->list.n) {                                                                                      \
        rp_buf_printf(why, "%zu " #list " against %zu", a->list.n, b->list.n);                                         \
        return false;                                                                                                  \
    }

#define SAME_VALUE(field)                                                                                              \
    if (a->field != b->field) {                                                                                        \
        rp_buf_puts(why, #field " differs");                                                                           \
        return false;                                                                                                  \
    }

static bool same_lengths(const struct rp_profile *a, const struct rp_profile *b, struct rp_buf *why)
{
    SAME_LENGTH(strings.strings)
    SAME_LENGTH(images)
    SAME_LENGTH(locations)
    SAME_LENGTH(lines)
    SAME_LENGTH(functions)
    SAME_LENGTH(aliases)
    SAME_LENGTH(nodes)
    SAME_LENGTH(processes)
    SAME_LENGTH(threads)
    SAME_LENGTH(counts)
    SAME_LENGTH(wait_totals)
    SAME_LENGTH(waits)
    SAME_LENGTH(locks)
    SAME_LENGTH(holders)
    SAME_LENGTH(holder_waiters)
    SAME_LENGTH(facts)
    SAME_LENGTH(rates)
    return true;
}

static bool same_strings(const struct rp_profile *a, const struct rp_profile *b, struct rp_buf *why)
{
    for (size_t i = 0; i < a->strings.strings.n; i++) {
        const struct rp_interned *x = &a->strings.strings.at[i], *y = &b->strings.strings.at[i];

        if (x->length != y->length || memcmp(x->text, y->text, x->length) != 0) {
            rp_buf_printf(why, "string %zu: %s against %s", i, x->text, y->text);
            return false;
        }
    }
    return true;
}

static bool same_code(const struct rp_profile *a, const struct rp_profile *b, struct rp_buf *why)
{
    SAME(images, kind)
    SAME(images, path)
    SAME(images, name)
    SAME(images, build_id)
    SAME(images, dev)
    SAME(images, ino)
    SAME(images, note)
    SAME(images, remedy)
    SAME(locations, image)
    SAME(locations, flags)
    SAME(locations, addr)
    SAME(locations, epoch)
    SAME(locations, first_line)
    SAME(locations, nlines)
    SAME(lines, function)
    SAME(lines, file)
    SAME(lines, line)
    SAME(facts, name)
    SAME(facts, value)
    SAME(rates, end_ns)
    SAME(rates, wall_ns)
    SAME(rates, calls)
    SAME(rates, rows)
    SAME(rates, cpu_ns)
    SAME(functions, name)
    SAME(functions, raw)
    SAME(functions, image)
    SAME(functions, module)
    SAME(functions, start)
    SAME(functions, file)
    SAME(functions, first_alias)
    SAME(functions, naliases)
    SAME(functions, how)
    for (size_t i = 0; i < a->aliases.n; i++)
        if (a->aliases.at[i] != b->aliases.at[i]) {
            rp_buf_printf(why, "alias %zu differs", i);
            return false;
        }
    return true;
}

static bool same_counts(const struct rp_profile *a, const struct rp_profile *b, struct rp_buf *why)
{
    SAME(nodes, parent)
    SAME(nodes, location)
    SAME(processes, pid)
    SAME(processes, generation)
    SAME(processes, command)
    SAME(processes, comm)
    SAME(threads, process)
    SAME(threads, tid)
    SAME(threads, comm)
    SAME(threads, wall_ns)
    SAME(threads, cpu_ns)
    SAME(threads, preempted_ns)
    SAME(threads, preemptions)
    SAME(threads, waiting_ns)
    SAME(threads, waits)
    SAME(threads, run_delay_ns)
    SAME(counts, thread)
    SAME(counts, node)
    SAME(counts, tag)
    SAME(counts, block)
    SAME(counts, state)
    SAME(counts, n)
    SAME(counts, weight_ns)
    return true;
}

static bool same_waits(const struct rp_profile *a, const struct rp_profile *b, struct rp_buf *why)
{
    SAME(wait_totals, thread)
    SAME(wait_totals, wait_class)
    SAME(wait_totals, n)
    SAME(wait_totals, ns)
    SAME(wait_totals, max_ns)
    SAME(waits, thread)
    SAME(waits, node)
    SAME(waits, tag)
    SAME(waits, wait_class)
    SAME(waits, syscall)
    SAME(waits, n)
    SAME(waits, ns)
    SAME(waits, max_ns)
    SAME(locks, process)
    SAME(locks, address)
    SAME(locks, image)
    SAME(locks, addr)
    SAME(locks, symbol)
    SAME(locks, database)
    SAME(holders, lock)
    SAME(holders, thread)
    SAME(holders, node)
    SAME(holders, state)
    SAME(holders, n)
    SAME(holders, ns)
    SAME(holder_waiters, thread)
    return true;
}

static bool same_run(const struct rp_profile *a, const struct rp_profile *b, struct rp_buf *why)
{
    SAME_VALUE(nblocks)
    SAME_VALUE(block_ns)
    SAME_VALUE(run.started_unix_ns)
    SAME_VALUE(run.seconds_ns)
    SAME_VALUE(run.hz)
    SAME_VALUE(run.source)
    SAME_VALUE(run.host)
    SAME_VALUE(run.kernel_visible)
    SAME_VALUE(run.stack_bytes)
    SAME_VALUE(run.stack_grown)
    SAME_VALUE(run.lost)
    SAME_VALUE(run.throttled)
    SAME_VALUE(run.vanished)
    SAME_VALUE(run.threads_unsampled)
    SAME_VALUE(run.note)
    SAME_VALUE(run.map_lines)
    SAME_VALUE(run.map_rejected)
    SAME_VALUE(run.waits)
    SAME_VALUE(run.sampler)
    SAME_VALUE(run.switches)
    SAME_VALUE(run.wait_stacks)
    SAME_VALUE(run.cpus)
    return true;
}

bool fake_profile_same(const struct rp_profile *a, const struct rp_profile *b, struct rp_buf *why)
{
    return same_lengths(a, b, why) && same_strings(a, b, why) && same_code(a, b, why) && same_counts(a, b, why) && same_waits(a, b, why) && same_run(a, b, why);
}
