/* SPDX-License-Identifier: MIT */
/* Reads code bytes of images and knows the few instructions of insn.h. Files are read by pread: one cut while it is mapped gives short reads,
 * not SIGBUS. */
#include "unwind/insn.h"

#include <string.h>
#include <unistd.h>

size_t rp_image_bytes(const struct rp_image *image, uint64_t offset, void *to, size_t length)
{
    size_t done = 0;

    if (image->memory) {
        if (offset >= image->memory_bytes)
            return 0;
        if (length > image->memory_bytes - offset)
            length = (size_t)(image->memory_bytes - offset);
        memcpy(to, (const char *)image->memory + offset, length);
        return length;
    }
    if (image->fd < 0 || offset > INT64_MAX - length)
        return 0;
    while (done < length) {
        ssize_t got = pread(image->fd, (char *)to + done, length - done, (off_t)(offset + done));

        if (got <= 0)
            break;
        done += (size_t)got;
    }
    return done;
}

size_t rp_image_bytes_at(const struct rp_image *image, uint64_t addr, void *to, size_t length)
{
    for (uint32_t i = 0; i < image->nsegments; i++) {
        const struct rp_segment *s = &image->segments[i];
        uint64_t into = addr - s->vaddr;

        if (addr < s->vaddr || into >= s->filesz)
            continue;
        if (length > s->filesz - into)
            length = (size_t)(s->filesz - into);
        return s->offset > UINT64_MAX - into ? 0 : rp_image_bytes(image, s->offset + into, to, length);
    }
    return 0;
}

/* Length of `ff /2` with its operand, without prefixes; 0 when the bytes are not that. */
static size_t call_indirect_length(const uint8_t *p, size_t n)
{
    uint8_t mod, rm;
    size_t length = 2;

    if (n < 2 || p[0] != 0xff || (p[1] >> 3 & 7) != 2)
        return 0;
    mod = p[1] >> 6;
    rm = p[1] & 7;
    if (mod == 3)
        return length;
    if (rm == 4) { /* a SIB byte follows; base 5 without displacement size means disp32 */
        if (n < 3)
            return 0;
        length++;
        if (mod == 0 && (p[2] & 7) == 5)
            length += 4;
    } else if (mod == 0 && rm == 5) {
        length += 4;
    }
    return length + (mod == 1 ? 1u : mod == 2 ? 4u : 0u);
}

bool rp_insn_ends_with_call(const uint8_t *bytes, size_t n)
{
    if (n >= 5 && bytes[n - 5] == 0xe8)
        return true;
    for (size_t length = 2; length <= 7 && length <= n; length++)
        if (call_indirect_length(bytes + n - length, length) == length)
            return true;
    return false;
}

bool rp_insn_is_sigreturn(const uint8_t *bytes, size_t n)
{
    static const uint8_t mov_rax[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
    static const uint8_t mov_eax[] = {0xb8, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};

    return (n >= sizeof mov_rax && !memcmp(bytes, mov_rax, sizeof mov_rax)) ||
           (n >= sizeof mov_eax && !memcmp(bytes, mov_eax, sizeof mov_eax));
}

bool rp_insn_is_last_return(const uint8_t *bytes, size_t n)
{
    if (n && bytes[0] == 0xf4)
        return true;
    for (size_t i = 0; i + 1 < n && i < 16; i++)
        if (bytes[i] == 0x0f && bytes[i + 1] == 0x05)
            return true;
    return false;
}

static bool is_mov_rsp_rbp(const uint8_t *p, size_t n)
{
    return n >= 3 && p[0] == 0x48 && ((p[1] == 0x89 && p[2] == 0xe5) || (p[1] == 0x8b && p[2] == 0xec));
}

enum rp_insn_frame rp_insn_frame_at(const uint8_t *bytes, size_t n)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    size_t skip = n >= sizeof endbr64 && !memcmp(bytes, endbr64, sizeof endbr64) ? sizeof endbr64 : 0;

    if (n > skip + 3 && bytes[skip] == 0x55 && is_mov_rsp_rbp(bytes + skip + 1, n - skip - 1))
        return RP_INSN_RA_AT_SP;
    if (n && (bytes[0] == 0xc3 || bytes[0] == 0xc2))
        return RP_INSN_RA_AT_SP;
    if (n && (bytes[0] == 0x5d || is_mov_rsp_rbp(bytes, n)))
        return RP_INSN_RA_ABOVE_BP;
    return RP_INSN_UNKNOWN;
}
