/* SPDX-License-Identifier: MIT */
/* What the program says besides its result: messages and progress on stderr, the result on stdout, and the signals that end a run. */
#ifndef RP_CLI_TERMINAL_H
#define RP_CLI_TERMINAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "cli/settings.h"

/* "rowprof: " and the text and a newline, on stderr. What would drive a terminal is made visible: texts quote names and files that others made. */
void rp_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The whole of `out` to stdout. RP_IO. */
enum rp_status rp_print(const struct rp_buf *out, struct rp_err *err);

/* From now on the first INT or TERM sets the flag; a second one ends the program at once, as does HUP. */
const volatile sig_atomic_t *rp_stop_install(void);

bool rp_wants_color(const struct rp_settings *settings);
/* Columns to fit the report in; 0: no limit, stdout is no terminal. */
size_t rp_wants_width(const struct rp_settings *settings);

/* One line on stderr that is written over and over; nothing when stderr is no terminal, or with -q. */
struct rp_progress {
    bool on, shown;
    double total_seconds; /* 0: not known */
};
void rp_progress_init(struct rp_progress *progress, const struct rp_settings *settings);
/* Matches rp_session_progress; `context` is the struct rp_progress. */
void rp_progress_update(void *context, double seconds, uint64_t samples);
void rp_progress_clear(struct rp_progress *progress);

#endif
