/* SPDX-License-Identifier: MIT */
/* A jitdump file of any bytes: the reader ends, and what it found can be asked for. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolize/jitmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("dump", MFD_CLOEXEC);
    struct rp_jit jit = {0};
    struct rp_err err;

    if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size) || rp_jit_add_file(&jit, fd, RP_JIT_DUMP, &err) ||
        rp_jit_read_file(&jit, 0, &err) || rp_jit_read_file(&jit, 0, &err))
        abort();
    for (size_t i = 0; i < jit.code.entries.n; i++) {
        uint64_t start, addr = jit.code.entries.at[i].start;
        struct rp_buf name = {0};

        if (rp_jit_code_find(&jit.code, addr) <= i || !rp_jit_name(&jit, addr, 0, &start, &name))
            abort();
        rp_buf_release(&name);
    }
    rp_jit_release(&jit);
    return 0;
}
