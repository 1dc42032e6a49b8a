/* SPDX-License-Identifier: MIT */
/* A perf map that grows in portions: any bytes are taken or refused, and whatever is found has a name. The first byte says where the file was cut. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolize/jitmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t half = size > 1 ? 1 + data[0] % (size - 1) : 0;
    int fd = memfd_create("map", MFD_CLOEXEC), writer = fd < 0 ? -1 : dup(fd);
    struct rp_jit jit = {0};
    struct rp_err err;

    if (size < 2) {
        close(fd);
        close(writer);
        return 0;
    }
    if (writer < 0 || rp_jit_add_file(&jit, fd, RP_JIT_PERF_MAP, &err))
        abort();
    if (pwrite(writer, data + 1, half, 0) != (ssize_t)half || rp_jit_read_file(&jit, 0, &err) ||
        pwrite(writer, data + 1 + half, size - 1 - half, (off_t)half) != (ssize_t)(size - 1 - half) || rp_jit_read_file(&jit, 0, &err))
        abort();
    for (size_t i = 0; i < jit.code.entries.n; i++) {
        uint64_t start, addr = jit.code.entries.at[i].start;
        uint32_t found = rp_jit_code_find(&jit.code, addr);
        struct rp_buf name = {0};

        /* the newest that covers the start of an entry is that entry or a later one */
        if (found <= i || !rp_jit_name(&jit, addr, 0, &start, &name) || start > addr)
            abort();
        rp_buf_release(&name);
    }
    close(writer);
    rp_jit_release(&jit);
    return 0;
}
