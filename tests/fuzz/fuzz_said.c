/* SPDX-License-Identifier: MIT */
/* What a launched command prints is anything. Each line of the input is one that the relay passed on. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "cli/said.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_cursor c = rp_cursor_of((const char *)data, size);
    struct rp_said said[16];
    struct rp_profile profile;
    struct rp_err err;
    const char *line;
    size_t length, n = 0;

    memset(said, 0, sizeof said);
    while (n < 16 && rp_cursor_line(&c, &line, &length)) {
        said[n].at_ns = (uint64_t)n * 1000000000u;
        memcpy(said[n].text, line, length < RP_SAID_MAX ? length : RP_SAID_MAX - 1);
        n++;
    }
    if (rp_profile_init(&profile, &err))
        return 0;
    if (!rp_said_keep(said, n, 1, UINT64_MAX, &profile, &err))
        for (size_t i = 0; i < profile.rates.n; i++)
            if (profile.rates.at[i].end_ns < profile.rates.at[i].wall_ns)
                abort();
    rp_profile_release(&profile);
    return 0;
}
