/* SPDX-License-Identifier: MIT */
/* See sha256.h. Own, because a library for it would be the largest thing we link. The constants are the first 32 bits of the fractions of the square
 * roots of the first 8 primes and of the cube roots of the first 64. */
#include "base/sha256.h"

#include <string.h>

enum { BLOCK = 64, LENGTH_AT = 56 };

static const uint32_t roots2[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static const uint32_t roots3[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t right(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static void put_be(uint8_t *to, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
}

static void fill_schedule(const uint8_t block[BLOCK], uint32_t w[64])
{
    for (unsigned i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (unsigned i = 16; i < 64; i++) {
        uint32_t s0 = right(w[i - 15], 7) ^ right(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = right(w[i - 2], 17) ^ right(w[i - 2], 19) ^ w[i - 2] >> 10;

        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
}

/* s[0..7] are the standard's a to h. */
static void take_block(uint32_t state[8], const uint8_t block[BLOCK])
{
    uint32_t w[64], s[8];

    fill_schedule(block, w);
    memcpy(s, state, sizeof s);
    for (unsigned i = 0; i < 64; i++) {
        uint32_t sum1 = right(s[4], 6) ^ right(s[4], 11) ^ right(s[4], 25), choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        uint32_t sum0 = right(s[0], 2) ^ right(s[0], 13) ^ right(s[0], 22), most = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        uint32_t one = s[7] + sum1 + choice + roots3[i] + w[i];

        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + sum0 + most;
    }
    for (unsigned i = 0; i < 8; i++)
        state[i] += s[i];
}

void rp_sha256_init(struct rp_sha256 *hash)
{
    *hash = (struct rp_sha256){0};
    memcpy(hash->state, roots2, sizeof hash->state);
}

void rp_sha256_add(struct rp_sha256 *hash, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;

    while (length) {
        size_t used = hash->bytes % BLOCK, part = length < BLOCK - used ? length : BLOCK - used;

        memcpy(hash->block + used, at, part);
        hash->bytes += part;
        at += part;
        length -= part;
        if (used + part == BLOCK)
            take_block(hash->state, hash->block);
    }
}

void rp_sha256_end(struct rp_sha256 *hash, uint8_t digest[RP_SHA256_BYTES])
{
    static const uint8_t padding[BLOCK] = {0x80};
    uint64_t bits = hash->bytes * 8;
    size_t used = hash->bytes % BLOCK;
    uint8_t length[8];

    put_be(length, bits, sizeof length);
    rp_sha256_add(hash, padding, used < LENGTH_AT ? LENGTH_AT - used : LENGTH_AT + BLOCK - used);
    rp_sha256_add(hash, length, sizeof length);
    for (unsigned i = 0; i < 8; i++)
        put_be(digest + 4 * i, hash->state[i], 4);
}

void rp_hex(const uint8_t *bytes, size_t length, char *out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < length; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * length] = '\0';
}
