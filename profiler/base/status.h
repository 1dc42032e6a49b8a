/* SPDX-License-Identifier: MIT */
/* One list of everything that can go wrong, and the sentence that tells it.
 *
 * Every function that can fail returns an `enum rp_status` (RP_OK is 0, failures are negative) and takes a
 * `struct rp_err *` as its last parameter. On failure it fills the latter with one complete sentence that names the
 * object and the remedy; on success it leaves it alone. `err` is never NULL.
 *
 * The exit status of the program follows from the status; `rowprof help exit-status`, the README and main() all
 * read this one table. */
#ifndef RP_BASE_STATUS_H
#define RP_BASE_STATUS_H

#include <stdarg.h>
#include <stddef.h>

/* X(name, value, exit status, what it means) */
#define RP_STATUS_TABLE(X)                                                                                             \
    X(OK, 0, 0, "good")                                                                                                \
    X(FAILED, -1, 1, "failed")                                                                                         \
    X(USAGE, -2, 2, "wrong use: an option, argument or rule file is not right")                                        \
    X(PERM, -3, 3, "no permission to observe the process")                                                             \
    X(NOPROC, -4, 4, "no such process, or one of a kind rowprof cannot read (32-bit)")                                 \
    X(NOTHING, -5, 5, "nothing was seen: no CPU samples in the whole run, and no waiting but idling")                                             \
    X(NOMEM, -6, 1, "out of memory")                                                                                   \
    X(IO, -7, 1, "a file could not be read or written")                                                                \
    X(FORMAT, -8, 1, "a file is not what it should be")                                                                \
    X(LIMIT, -9, 1, "a named maximum was reached")                                                                     \
    X(NOTFOUND, -10, 1, "a thing that was asked for is not there")                                                     \
    X(EXISTS, -11, 1, "a file is there already and --force was not given")                                             \
    X(INTR, -12, 1, "interrupted")                                                                                     \
    X(ABOVE, -13, 6, "a comparison found more growth than --fail-above allows")

enum rp_status {
#define RP_STATUS_ENUM(name, value, exit, text) RP_##name = (value),
    RP_STATUS_TABLE(RP_STATUS_ENUM)
#undef RP_STATUS_ENUM
};

enum { RP_ERR_TEXT = 1024 };

/* What went wrong, as one sentence without a final newline. Plain value, no release. */
struct rp_err {
    enum rp_status status;
    char text[RP_ERR_TEXT];
};

/* Fills `err` and returns `status`, so that `return rp_fail(err, RP_IO, "…")` is one line. Text that does not fit is cut. */
enum rp_status rp_fail(struct rp_err *err, enum rp_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for an allocation that failed. */
enum rp_status rp_fail_nomem(struct rp_err *err);

/* The exit status of `status` (0..6). */
int rp_status_exit(enum rp_status status);

#endif
