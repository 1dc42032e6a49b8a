/* SPDX-License-Identifier: MIT */
/* See temp_dir.h. */
#include "support/temp_dir.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

char temp_dir[64];

int temp_dir_make(void **state)
{
    (void)state;
    snprintf(temp_dir, sizeof temp_dir, "/tmp/rp-test-XXXXXX");
    return mkdtemp(temp_dir) && chmod(temp_dir, 0755) == 0 ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

int temp_dir_remove(void **state)
{
    (void)state;
    return nftw(temp_dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *temp_dir_path(const char *name)
{
    static char path[16][256];
    static unsigned next;
    char *to = path[next++ % 16];

    snprintf(to, sizeof path[0], "%s/%s", temp_dir, name);
    return to;
}
