/* SPDX-License-Identifier: MIT */
/* See stack_growth.h. The trap is a program whose stacks deepen after an hour: only the recent past is judged. */
#include "sample/stack_growth.h"

#include "base/limits.h"

enum {
    BYTES_MIN = 512,
    GROW_MAX = 2,      /* doublings: the next one takes all there is */
    GROW_CUTS = 4,     /* cut stacks before the copy grows: more than chance, and soon */
    GROW_MEMORY = 2000, /* walks that the judgement looks back on */
};

uint32_t rp_stack_growth_begin(struct rp_stack_growth *growth, uint32_t wish, uint32_t usual)
{
    uint32_t bytes = wish ? wish : usual;

    bytes = bytes < BYTES_MIN ? (uint32_t)BYTES_MIN : bytes > RP_STACK_COPY_MAX ? RP_STACK_COPY_MAX : bytes;
    *growth = (struct rp_stack_growth){.may = bytes < RP_STACK_COPY_MAX};
    return (bytes + 7) & ~7u;
}

void rp_stack_growth_count(struct rp_stack_growth *growth, uint64_t walked, uint64_t cut)
{
    growth->walked += walked;
    growth->cut += cut;
}

uint32_t rp_stack_growth_next(struct rp_stack_growth *growth, uint32_t now)
{
    uint32_t larger;

    if (!growth->may)
        return 0;
    if (growth->cut < GROW_CUTS || growth->cut * 100 <= growth->walked) {
        if (growth->walked >= GROW_MEMORY)
            growth->walked = growth->cut = 0;
        return 0;
    }
    /* Where one stack in ten is cut, doubling would only cut fewer: take all at once. */
    larger = growth->cut * 10 > growth->walked || growth->grown + 1 >= GROW_MAX || now > RP_STACK_COPY_MAX / 2 ? RP_STACK_COPY_MAX : now * 2;
    growth->walked = growth->cut = 0;
    growth->may = larger < RP_STACK_COPY_MAX;
    return larger;
}
