/* SPDX-License-Identifier: MIT */
/* Least significant byte first; bytes that are the same in all keys cost nothing, and addresses of one file differ in three or four. */
#include "symbolize/radix.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"

static uint64_t key_of(const unsigned char *record)
{
    uint64_t key;

    memcpy(&key, record, sizeof key);
    return key;
}

static void pass(const unsigned char *from, unsigned char *to, size_t n, size_t size, unsigned shift)
{
    size_t at[256] = {0}, sum = 0;

    for (size_t i = 0; i < n; i++)
        at[key_of(from + i * size) >> shift & 255]++;
    for (size_t d = 0; d < 256; d++) {
        size_t here = at[d];

        at[d] = sum;
        sum += here;
    }
    for (size_t i = 0; i < n; i++) {
        const unsigned char *record = from + i * size;

        memcpy(to + at[key_of(record) >> shift & 255]++ * size, record, size);
    }
}

bool rp_radix_sort(void *records, size_t n, size_t size)
{
    unsigned char *from = records, *to, *spare;
    uint64_t differ = 0, first;
    bool sorted = true;

    if (n < 2)
        return true;
    first = key_of(from);
    for (size_t i = 1; i < n; i++) {
        differ |= first ^ key_of(from + i * size);
        sorted = sorted && key_of(from + (i - 1) * size) <= key_of(from + i * size);
    }
    if (sorted)
        return true;
    spare = to = rp_reallocarray(NULL, n, size);
    if (!to)
        return false;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        if (differ >> shift & 255) {
            unsigned char *other = from;

            pass(from, to, n, size, shift);
            from = to;
            to = other;
        }
    }
    if (from != records)
        memcpy(records, from, n * size);
    rp_free(spare);
    return true;
}
