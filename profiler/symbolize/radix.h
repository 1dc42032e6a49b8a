/* SPDX-License-Identifier: MIT */
/* Stable sort of records by the 64-bit number they begin with: a symbol table of 190 000 entries is sorted in a few milliseconds, in an order
 * that does not depend on the sorter. */
#ifndef RP_SYMBOLIZE_RADIX_H
#define RP_SYMBOLIZE_RADIX_H

#include <stdbool.h>
#include <stddef.h>

/* Sorts `n` records of `size` bytes (at least 8), ascending. False when there is no memory for the second array; then nothing moved. */
bool rp_radix_sort(void *records, size_t n, size_t size);

#endif
