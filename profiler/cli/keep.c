/* SPDX-License-Identifier: MIT */
/* See keep.h. A recording cannot be had twice, so it is not lost to a path that turned bad meanwhile. */
#include "cli/keep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "store/store.h"

static enum rp_status check_folder(const char *path, struct rp_err *err)
{
    const char *slash = strrchr(path, '/');
    struct rp_buf folder = {0};
    enum rp_status status = RP_OK;

    rp_buf_append(&folder, path, slash ? (size_t)(slash - path) + 1 : 0);
    if (!slash)
        rp_buf_puts(&folder, ".");
    if (folder.failed)
        status = rp_fail_nomem(err);
    else if (access(rp_buf_text(&folder), W_OK | X_OK))
        status = rp_fail(err, errno == EACCES || errno == EROFS ? RP_PERM : RP_IO, "cannot write %s: the folder %s: %s", path, rp_buf_text(&folder),
                         strerror(errno));
    if (status == RP_PERM) /* exit status 3 speaks of processes */
        status = err->status = RP_IO;
    rp_buf_release(&folder);
    return status;
}

enum rp_status rp_keep_check(const char *path, bool force, struct rp_err *err)
{
    struct stat s;

    if (!lstat(path, &s)) {
        if (S_ISDIR(s.st_mode))
            return rp_fail(err, RP_IO, "%s is a folder; -o takes the path of a file", path);
        if (!S_ISREG(s.st_mode))
            return rp_fail(err, RP_IO, "%s is not an ordinary file and is not replaced; -o takes another path", path);
        if (!force)
            return rp_fail(err, RP_EXISTS, "%s is there already; --force overwrites it", path);
    } else if (errno != ENOENT) {
        return rp_fail(err, RP_IO, "cannot write %s: %s", path, strerror(errno));
    }
    return check_folder(path, err);
}

enum rp_status rp_keep_save(const struct rp_profile *profile, const char *path, bool force, struct rp_err *err)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *tmp = getenv("TMPDIR");
    enum rp_status status = rp_store_save(profile, path, force, err);
    struct rp_buf places[2] = {{0}, {0}};
    char first[RP_ERR_TEXT];
    struct rp_err other;

    if (!status)
        return RP_OK;
    memcpy(first, err->text, sizeof first);
    rp_buf_printf(&places[0], "%s.%ld", path, (long)getpid());
    rp_buf_printf(&places[1], "%s/%s.%ld", tmp && *tmp ? tmp : "/tmp", base, (long)getpid());
    for (size_t i = 0; i < 2; i++) {
        if (!places[i].failed && !rp_store_save(profile, rp_buf_text(&places[i]), false, &other)) {
            rp_fail(err, status, "%.*s; the profile was kept in %s instead", RP_ERR_TEXT / 2, first, rp_buf_text(&places[i]));
            break;
        }
    }
    rp_buf_release(&places[0]);
    rp_buf_release(&places[1]);
    return status;
}
