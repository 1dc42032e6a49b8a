/* SPDX-License-Identifier: MIT */
/* See remedy.h. dpkg keeps one list of files per package, INFO/package.list or package:arch.list. The traps: the process may see /usr/lib/x where the list
 * says /lib/x (merged /usr), and a file beside a packaged one need not be from a package at all, so whole lines are compared; and in a container the lists are the container's, so one may
 * be a pipe. */
#include "symbolize/remedy.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/limits.h"
#include "symbolize/debugfile.h"

#define LISTS "/var/lib/dpkg/info"

static bool has_line(const char *text, size_t bytes, const char *line)
{
    size_t length = strlen(line);
    const char *at = text, *end = text + bytes, *found;

    while (at < end && (found = memmem(at, (size_t)(end - at), line, length))) {
        if ((found == text || found[-1] == '\n') && (found + length == end || found[length] == '\n'))
            return true;
        at = found + 1;
    }
    return false;
}

static bool list_has(uint32_t pid, const char *list, const char *path)
{
    const char *other = strncmp(path, "/usr/", 5) == 0 ? path + 4 : NULL;
    struct rp_buf text = {0};
    struct rp_err err;
    char place[sizeof LISTS + NAME_MAX + 2];
    bool found = false;
    int fd;

    snprintf(place, sizeof place, LISTS "/%s", list);
    fd = rp_open_in_root(pid, place);
    if (fd >= 0 && !rp_read_open(fd, place, RP_RULE_FILE_MAX, &text, &err))
        found = has_line(rp_buf_text(&text), text.length, path) || (other && has_line(rp_buf_text(&text), text.length, other));
    rp_close(&fd);
    rp_buf_release(&text);
    return found;
}

static DIR *open_lists(uint32_t pid)
{
    char path[96];

    if (pid)
        snprintf(path, sizeof path, "/proc/%u/root" LISTS, pid);
    return opendir(pid ? path : LISTS);
}

/* The main archive carries debug symbols of the C library only; all others are in an archive that must be added first. */
static void name_package(const char *list, struct rp_buf *out)
{
    size_t length = strcspn(list, ":");

    length = list[length] ? length : length - 5;
    if (length == 5 && memcmp(list, "libc6", 5) == 0)
        rp_buf_puts(out, "libc6-dbg");
    else
        rp_buf_printf(out, "%.*s-dbgsym (from the debug archive)", (int)length, list);
}

/* Lists whose name begins like the file are read first: libsqlite3.so.0 is in libsqlite3-0.list, and reading all takes 40 ms. */
static bool search_lists(DIR *dir, uint32_t pid, const char *path, const char *base, bool alike, struct rp_buf *out)
{
    struct dirent *entry;

    rewinddir(dir);
    while ((entry = readdir(dir))) {
        size_t length = strlen(entry->d_name);

        if (length <= 5 || strcmp(entry->d_name + length - 5, ".list") != 0 || (strncmp(entry->d_name, base, 4) == 0) != alike ||
            !list_has(pid, entry->d_name, path))
            continue;
        name_package(entry->d_name, out);
        return true;
    }
    return false;
}

/* Packages install there and nowhere else. */
static bool may_be_packaged(const char *path)
{
    static const char *const places[] = {"/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/opt/"};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (strncmp(path, places[i], strlen(places[i])) == 0)
            return strncmp(path, "/usr/local/", 11) != 0;
    }
    return false;
}

bool rp_remedy_find(uint32_t pid, const char *path, struct rp_buf *out)
{
    const char *slash = strrchr(path, '/');
    DIR *dir = slash && may_be_packaged(path) ? open_lists(pid) : NULL;
    bool found;

    if (!dir)
        return false;
    found = search_lists(dir, pid, path, slash + 1, true, out) || search_lists(dir, pid, path, slash + 1, false, out);
    closedir(dir);
    return found && !out->failed;
}
