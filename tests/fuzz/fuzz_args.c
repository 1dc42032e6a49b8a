/* SPDX-License-Identifier: MIT */
/* Any command line: words parted by NUL bytes. Nothing is run, only read; a refusal must carry a sentence. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/command.h"
#include "cli/launch.h"
#include "report/utf8.h"

enum { WORDS_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = rp_strndup(size ? (const char *)data : "", size), *argv[WORDS_MAX + 2] = {(char *)(uintptr_t) "rowprof"};
    struct rp_buf name = {0};
    struct rp_err err = {0};
    struct rp_args args;
    uint32_t pid;
    int argc = 1;

    if (!text)
        return 0;
    for (size_t at = 0; at < size && argc <= WORDS_MAX; at += strlen(text + at) + 1)
        argv[argc++] = text + at;
    if (rp_args_parse(argc, argv, &args, &err) && !err.text[0])
        abort();
    rp_args_release(&args);
    (void)rp_ready_line(text, size, &pid);
    rp_text_symbol(&name, text, 40, false);
    if (rp_text_columns(rp_buf_text(&name), name.length) > 40)
        abort();
    rp_buf_release(&name);
    rp_free(text);
    return 0;
}
