/* SPDX-License-Identifier: MIT */
/* See jitcode.h. A level is built by a sweep over its entries in the order of their starts, with a heap of those that are open: the newest open
 * one owns the bytes. */
#include "symbolize/jitcode.h"

#include "base/limits.h"
#include "symbolize/radix.h"

/* Begins with the sort key. */
struct keyed {
    uint64_t start;
    uint32_t entry, unused;
};

struct sweep {
    const struct rp_jit_entry *entries;
    struct rp_jit_level *level;
    RP_VEC(uint32_t) open; /* heap, the newest entry on top */
    uint64_t at;           /* swept up to here */
};

bool rp_jit_code_add(struct rp_jit_code *code, const struct rp_jit_entry *entry)
{
    struct rp_jit_entry *added = code->entries.n < RP_JIT_ENTRIES_MAX ? rp_vec_add(&code->entries) : NULL;

    if (added)
        *added = *entry;
    return added;
}

static bool open_push(struct sweep *s, uint32_t entry)
{
    size_t i = s->open.n;

    if (!rp_vec_reserve(&s->open, 1))
        return false;
    s->open.n++;
    for (; i && s->open.at[(i - 1) / 2] < entry; i = (i - 1) / 2)
        s->open.at[i] = s->open.at[(i - 1) / 2];
    s->open.at[i] = entry;
    return true;
}

static void open_pop(struct sweep *s)
{
    uint32_t last = s->open.at[--s->open.n];
    size_t i = 0;

    while (2 * i + 1 < s->open.n) {
        size_t child = 2 * i + 1;

        if (child + 1 < s->open.n && s->open.at[child + 1] > s->open.at[child])
            child++;
        if (s->open.at[child] <= last)
            break;
        s->open.at[i] = s->open.at[child];
        i = child;
    }
    if (s->open.n)
        s->open.at[i] = last;
}

static bool emit(struct sweep *s, uint64_t end, uint32_t entry)
{
    struct rp_jit_segment *last = s->level->segments.n ? &s->level->segments.at[s->level->segments.n - 1] : NULL, *added;

    if (last && last->entry == entry && last->start + last->bytes == s->at) {
        last->bytes += (uint32_t)(end - s->at);
        return true;
    }
    added = rp_vec_add(&s->level->segments);
    if (added)
        *added = (struct rp_jit_segment){s->at, (uint32_t)(end - s->at), entry};
    return added;
}

/* Gives the bytes up to `to` to the open entries. */
static bool advance(struct sweep *s, uint64_t to)
{
    while (s->open.n && s->at < to) {
        uint32_t top = s->open.at[0];
        uint64_t end = s->entries[top].start + s->entries[top].bytes;

        if (end <= s->at) {
            open_pop(s);
            continue;
        }
        end = end < to ? end : to;
        if (!emit(s, end, top))
            return false;
        s->at = end;
    }
    s->at = to;
    return true;
}

static bool build(struct rp_jit_level *level, const struct rp_jit_entry *entries)
{
    size_t n = level->past - level->first;
    struct sweep s = {.entries = entries, .level = level};
    struct keyed *order = rp_reallocarray(NULL, n, sizeof *order);
    bool ok = order != NULL;

    for (uint32_t i = 0; ok && i < n; i++)
        order[i] = (struct keyed){entries[level->first + i].start, level->first + i, 0};
    ok = ok && rp_radix_sort(order, n, sizeof *order);
    for (size_t i = 0; ok && i < n; i++)
        ok = advance(&s, order[i].start) && open_push(&s, order[i].entry);
    ok = ok && advance(&s, UINT64_MAX);
    rp_free(order);
    rp_vec_release(&s.open);
    return ok;
}

enum rp_status rp_jit_code_settle(struct rp_jit_code *code, struct rp_err *err)
{
    uint32_t settled = code->nlevels ? code->levels[code->nlevels - 1].past : 0, past = (uint32_t)code->entries.n, keep = code->nlevels;
    struct rp_jit_level made = {.first = settled, .past = past};

    if (settled == past)
        return RP_OK;
    while (keep && ((past - made.first) > (code->levels[keep - 1].past - code->levels[keep - 1].first) / 2 || keep >= RP_JIT_LEVELS))
        made.first = code->levels[--keep].first;
    if (!build(&made, code->entries.at)) {
        rp_vec_release(&made.segments);
        return rp_fail_nomem(err);
    }
    for (; code->nlevels > keep; code->nlevels--)
        rp_vec_release(&code->levels[code->nlevels - 1].segments);
    code->levels[code->nlevels++] = made;
    return RP_OK;
}

static uint32_t find_in(const struct rp_jit_level *level, uint64_t addr)
{
    size_t low = 0, high = level->segments.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (level->segments.at[middle].start <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || addr - level->segments.at[low - 1].start >= level->segments.at[low - 1].bytes)
        return 0;
    return level->segments.at[low - 1].entry + 1;
}

uint32_t rp_jit_code_find(const struct rp_jit_code *code, uint64_t addr)
{
    for (uint32_t i = code->nlevels; i-- > 0;) {
        uint32_t found = find_in(&code->levels[i], addr);

        if (found)
            return found;
    }
    return 0;
}

void rp_jit_code_release(struct rp_jit_code *code)
{
    for (; code->nlevels; code->nlevels--)
        rp_vec_release(&code->levels[code->nlevels - 1].segments);
    rp_vec_release(&code->entries);
}
