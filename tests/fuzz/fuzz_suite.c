/* SPDX-License-Identifier: MIT */
/* Any bytes as a suite, as a command, and as what a benchmark printed: taken or refused with a sentence, and no configuration without a name. */
#include <stdint.h>
#include <stdlib.h>

#include "bench/run.h"
#include "bench/suite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = size ? (const char *)data : "";
    struct rp_suite suite = {0}, one = {0};
    struct rp_rate_line rate;
    struct rp_err err = {0};

    if (rp_suite_parse(&suite, "f", "/a b", text, size, &err) && !err.text[0])
        abort();
    if (!rp_suite_add(&one, text, size, "--config", &err) && one.configs.n != 1)
        abort();
    for (size_t i = 0; i < suite.configs.n; i++) {
        if (!suite.configs.at[i].name[0])
            abort();
    }
    if (rp_rate_line_parse(text, size, &rate) && !(rate.calls > 0))
        abort();
    rp_suite_release(&suite);
    rp_suite_release(&one);
    return 0;
}
