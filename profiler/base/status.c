/* SPDX-License-Identifier: MIT */
/* Errors are values: see status.h. */
#include "base/status.h"

#include <stdio.h>

enum rp_status rp_fail(struct rp_err *err, enum rp_status status, const char *format, ...)
{
    va_list args;

    err->status = status;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return status;
}

enum rp_status rp_fail_nomem(struct rp_err *err)
{
    return rp_fail(err, RP_NOMEM, "out of memory; free some, or record for a shorter time");
}

int rp_status_exit(enum rp_status status)
{
    switch (status) {
#define RP_STATUS_EXIT(name, value, exit, text)                                                                        \
    case RP_##name:                                                                                                    \
        return exit;
        RP_STATUS_TABLE(RP_STATUS_EXIT)
#undef RP_STATUS_EXIT
    }
    return 1;
}
