/* SPDX-License-Identifier: MIT */
/* The few instructions an unwinder must know by their bytes, where no row describes the code: calls (is this really a return address?), frame
 * set-up and take-down (is the frame pointer this function's already?), the signal trampoline and the ends of threads.
 *
 * The trap: x86 cannot be decoded backwards. A yes means "the bytes before look like a call", which chance gives to few addresses; a no for a
 * true return address does not happen in code made by compilers. */
#ifndef RP_UNWIND_INSN_H
#define RP_UNWIND_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/image.h"

/* Reads file bytes [offset, offset + length) of an image. Returns how many could be read, from the start. Never maps the file. */
size_t rp_image_bytes(const struct rp_image *image, uint64_t offset, void *to, size_t length);

/* The same by ELF address, through the segment whose file range holds it. Never crosses the segment's end. */
size_t rp_image_bytes_at(const struct rp_image *image, uint64_t addr, void *to, size_t length);

/* True when the `n` bytes that end where the return address points end with a call instruction. */
bool rp_insn_ends_with_call(const uint8_t *bytes, size_t n);

/* `mov $15, %rax; syscall`: what a signal handler returns to. */
bool rp_insn_is_sigreturn(const uint8_t *bytes, size_t n);

/* True when the code is the tail of a thread's or program's first function: within the bytes after the call stands hlt or syscall. */
bool rp_insn_is_last_return(const uint8_t *bytes, size_t n);

/* Where the return address stands, told by the next instruction of code that keeps frame pointers. */
enum rp_insn_frame {
    RP_INSN_UNKNOWN,
    RP_INSN_RA_AT_SP,   /* before push %rbp, or at ret: [rsp] */
    RP_INSN_RA_ABOVE_BP /* between push and mov %rsp,%rbp, or at pop %rbp: [rsp] is the caller's rbp, [rsp + 8] the address */
};
enum rp_insn_frame rp_insn_frame_at(const uint8_t *bytes, size_t n);

#endif
