/* SPDX-License-Identifier: MIT */
/* See stub.h. The trap: bytes that look like a jump may be the end of another instruction. That is harmless here, because a target counts
 * only when the caller finds an unwind range without symbol that begins exactly there. */
#include "symbolize/stub.h"

#include <string.h>

#include "symbolize/radix.h"

/* A stub sets a register or two and jumps. */
enum { STUB_BYTES_MAX = 32 };

/* Where the jump that ends `code` (n bytes at addr) leads: e9 rel32 or eb rel8. */
static bool tail_jump(const uint8_t *code, size_t n, uint64_t addr, uint64_t *target)
{
    int32_t wide;

    if (n >= 5 && code[n - 5] == 0xe9) {
        memcpy(&wide, code + n - 4, 4);
        *target = addr + n + (uint64_t)(int64_t)wide;
        return true;
    }
    if (n >= 2 && code[n - 2] == 0xeb) {
        *target = addr + n + (uint64_t)(int64_t)(int8_t)code[n - 1];
        return true;
    }
    return false;
}

enum rp_status rp_stubs_init(struct rp_stubs *stubs, const struct rp_symtab *symbols, const struct rp_elfview *view, struct rp_err *err)
{
    uint8_t code[STUB_BYTES_MAX];
    uint64_t offset, target;

    *stubs = (struct rp_stubs){0};
    for (uint32_t i = 0; i < symbols->symbols.n; i++) {
        const struct rp_symbol *s = &symbols->symbols.at[i];
        struct rp_stub *stub;

        if (s->size < 2 || s->size > sizeof code || !rp_elfview_offset(view, s->addr, &offset) ||
            !rp_elfview_read(view, offset, code, s->size) || !tail_jump(code, s->size, s->addr, &target) || target - s->addr < s->size)
            continue;
        stub = rp_vec_add(&stubs->at);
        if (!stub) {
            rp_stubs_release(stubs);
            return rp_fail_nomem(err);
        }
        *stub = (struct rp_stub){target, i, 0};
    }
    if (rp_radix_sort(stubs->at.at, stubs->at.n, sizeof *stubs->at.at))
        return RP_OK;
    rp_stubs_release(stubs);
    return rp_fail_nomem(err);
}

void rp_stubs_release(struct rp_stubs *stubs)
{
    rp_vec_release(&stubs->at);
}

bool rp_stubs_find(const struct rp_stubs *stubs, const struct rp_symtab *symbols, uint64_t target, struct rp_symbol_names *names)
{
    size_t low = 0, high = stubs->at.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (stubs->at.at[middle].target < target)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < stubs->at.n && stubs->at.at[low].target == target; low++) {
        struct rp_symbol_hit hit = {.first = stubs->at.at[low].symbol, .n = 1};

        if (!rp_symtab_names(symbols, &hit, names) && !names->at.n)
            return false;
    }
    return names->at.n > 0;
}
