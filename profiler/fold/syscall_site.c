/* SPDX-License-Identifier: MIT */
/* See syscall_site.h. */
#include "fold/syscall_site.h"

#include <stdbool.h>
#include <string.h>

#include "unwind/insn.h"

enum { CODE_BYTES = 48, NUMBER_MAX = 1023 };

int rp_syscall_number(const uint8_t *code, size_t length)
{
    if (length < 4 || code[length - 2] != 0x0f || code[length - 1] != 0x05)
        return -1;
    if (code[length - 4] == 0x31 && code[length - 3] == 0xc0) /* xor eax,eax: read */
        return 0;
    for (size_t at = length - 2; at-- > 0;) {
        bool mov_eax = code[at] == 0xb8, mov_rax = at > 1 && code[at] == 0xc0 && code[at - 1] == 0xc7 && code[at - 2] == 0x48;
        uint32_t number;

        if ((!mov_eax && !mov_rax) || at + 5 > length - 2)
            continue;
        memcpy(&number, code + at + 1, sizeof number);
        if (number <= NUMBER_MAX)
            return (int)number;
    }
    return -1;
}

static int read_site(struct rp_unwinder *unwinder, const struct rp_image *image, uint64_t addr)
{
    uint8_t code[CODE_BYTES];
    size_t want = addr < CODE_BYTES ? (size_t)addr : (size_t)CODE_BYTES;
    uint64_t start, end;

    if (image->kind != RP_IMAGE_ELF && image->kind != RP_IMAGE_VDSO)
        return -1;
    /* What stands before the function loads constants for others. */
    if (rp_unwinder_fde_range(unwinder, image->id, addr, &start, &end) && addr - start < want)
        want = (size_t)(addr - start);
    if (rp_image_bytes_at(image, addr - want, code, want) != want)
        return -1;
    return rp_syscall_number(code, want);
}

struct key {
    const struct rp_syscall_sites *sites;
    uint64_t addr;
    uint32_t image;
};

static bool same_site(const void *context, uint32_t position)
{
    const struct key *key = context;
    const struct rp_syscall_site *site = &key->sites->at.at[position];

    return site->addr == key->addr && site->image == key->image;
}

static struct rp_syscall_site *find(struct rp_syscall_sites *sites, struct rp_unwinder *unwinder, const struct rp_image *image, uint64_t addr)
{
    struct key key = {sites, addr, image->id};
    uint32_t hash = rp_hash_mix(rp_hash_u64(addr), image->id);
    uint32_t *slot = rp_index_find(&sites->index, hash, same_site, &key);
    struct rp_syscall_site *site;

    if (slot && *slot != RP_INDEX_EMPTY)
        return &sites->at.at[*slot];
    site = slot ? rp_vec_add(&sites->at) : NULL;
    if (!site)
        return NULL;
    *site = (struct rp_syscall_site){addr, image->id, read_site(unwinder, image, addr)};
    rp_index_set(&sites->index, slot, hash, (uint32_t)sites->at.n - 1);
    return site;
}

int rp_syscall_sites_find(struct rp_syscall_sites *sites, struct rp_unwinder *unwinder, const struct rp_image *image, uint64_t addr)
{
    const struct rp_syscall_site *site = find(sites, unwinder, image, addr);

    return site ? site->number : -1;
}

void rp_syscall_sites_release(struct rp_syscall_sites *sites)
{
    rp_vec_release(&sites->at);
    rp_index_release(&sites->index);
}
