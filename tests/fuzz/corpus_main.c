/* SPDX-License-Identifier: MIT */
/* Runs a fuzz target over every file of its corpus: what fuzzing found once stays found. An empty or missing corpus is a failure, since
 * a test over nothing cannot fail. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
    DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
    struct dirent *entry;
    unsigned files = 0;

    while (dir && (entry = readdir(dir))) {
        struct rp_buf path = {0}, text = {0};
        struct rp_err err = {0};

        if (entry->d_name[0] == '.')
            continue;
        rp_buf_printf(&path, "%s/%s", argv[1], entry->d_name);
        if (rp_read_file(rp_buf_text(&path), 1u << 28, &text, &err)) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        LLVMFuzzerTestOneInput((const uint8_t *)rp_buf_text(&text), text.length);
        rp_buf_release(&path);
        rp_buf_release(&text);
        files++;
    }
    if (dir)
        closedir(dir);
    printf("%u inputs\n", files);
    return files ? 0 : 1;
}
