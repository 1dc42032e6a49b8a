/* SPDX-License-Identifier: MIT */
/*
 * The scratch folder: see rl_scratch.h. Only files are removed, and only those in the folder that was made here.
 */
#include "rl_scratch.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool rl_scratch_make(struct rl_run *run, struct rl_scratch *scratch)
{
    const char *place = getenv("TMPDIR");
    if (!place || !*place)
        place = "/tmp";
    int n = snprintf(scratch->folder, sizeof scratch->folder, "%s/rowload-XXXXXX", place);
    if (n < 0 || (size_t)n >= sizeof scratch->folder || !mkdtemp(scratch->folder)) {
        (void)snprintf(run->error, sizeof run->error, "No scratch folder could be made in %.120s: %s; TMPDIR may name another"
                       " place.", place, strerror(errno));
        scratch->folder[0] = '\0';
        return false;
    }
    (void)snprintf(scratch->file, sizeof scratch->file, "%s/rowload.db", scratch->folder);
    return true;
}

void rl_scratch_remove(struct rl_scratch *scratch)
{
    DIR *folder = scratch->folder[0] ? opendir(scratch->folder) : NULL;
    if (!folder)
        return;
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
    }
    (void)closedir(folder);
    (void)rmdir(scratch->folder);
    scratch->folder[0] = '\0';
}
