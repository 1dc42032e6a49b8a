/* SPDX-License-Identifier: MIT */
/* Any name comes out as some name, of bounded length. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/limits.h"
#include "symbolize/symbolize.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *raw = rp_strndup((const char *)data, size);
    struct rp_buf full = {0}, brief = {0};

    if (!raw)
        return 0;
    rp_demangle(raw, false, &full);
    rp_demangle(raw, true, &brief);
    if (full.failed || brief.failed || (raw[0] && !full.length) || brief.length > RP_SYMBOL_MAX + 8 || full.length > 2 * RP_SYMBOL_MAX)
        abort();
    rp_buf_release(&full);
    rp_buf_release(&brief);
    rp_free(raw);
    return 0;
}
