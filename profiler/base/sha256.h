/* SPDX-License-Identifier: MIT */
/* SHA-256 (FIPS 180-4): to say which file was measured, in the form that sha256sum prints. */
#ifndef RP_BASE_SHA256_H
#define RP_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { RP_SHA256_BYTES = 32, RP_SHA256_HEX = 65 };

struct rp_sha256 {
    uint32_t state[8];
    uint64_t bytes;
    uint8_t block[64];
};

void rp_sha256_init(struct rp_sha256 *hash);
void rp_sha256_add(struct rp_sha256 *hash, const void *bytes, size_t length);
/* Ends it; `hash` is to be initialised again before the next use. */
void rp_sha256_end(struct rp_sha256 *hash, uint8_t digest[RP_SHA256_BYTES]);

/* Lower-case hexadecimal of `length` bytes and a NUL. */
void rp_hex(const uint8_t *bytes, size_t length, char *out);

#endif
