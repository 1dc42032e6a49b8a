/* SPDX-License-Identifier: MIT */
/* See terminal.h. The trap is the second signal: the handler goes back to the default action, so that a program stuck anywhere still dies of it. */
#include "cli/terminal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/io.h"
#include "base/parse.h"
#include "report/utf8.h"

enum { NARROWEST = 60 };

static volatile sig_atomic_t stop_asked;

void rp_message(const char *format, ...)
{
    struct rp_buf text = {0}, clean = {0};
    const char *line;
    size_t length;
    struct rp_cursor c;
    va_list args;

    rp_buf_puts(&text, "rowprof: ");
    va_start(args, format);
    rp_buf_vprintf(&text, format, args);
    va_end(args);
    c = rp_cursor_of(rp_buf_text(&text), text.length);
    while (rp_cursor_line(&c, &line, &length)) {
        rp_text_clean(&clean, line, length);
        rp_buf_putc(&clean, '\n');
    }
    (void)rp_write_full(STDERR_FILENO, rp_buf_text(&clean), clean.length);
    rp_buf_release(&text);
    rp_buf_release(&clean);
}

enum rp_status rp_print(const struct rp_buf *out, struct rp_err *err)
{
    if (out->failed)
        return rp_fail_nomem(err);
    if (!rp_write_full(STDOUT_FILENO, rp_buf_text(out), out->length))
        return rp_fail(err, RP_IO, "the result could not be written to standard output: %s", strerror(errno));
    return RP_OK;
}

static void on_signal(int number)
{
    (void)number;
    stop_asked = 1;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}

const volatile sig_atomic_t *rp_stop_install(void)
{
    struct sigaction action = {.sa_handler = on_signal}, old;

    sigemptyset(&action.sa_mask);
    /* A background job of a shell has INT ignored; that stays so. */
    if (!sigaction(SIGINT, NULL, &old) && old.sa_handler != SIG_IGN)
        sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return &stop_asked;
}

bool rp_wants_color(const struct rp_settings *settings)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

    if (settings->color != RP_COLOR_AUTO)
        return settings->color == RP_COLOR_ALWAYS;
    return isatty(STDOUT_FILENO) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

size_t rp_wants_width(const struct rp_settings *settings)
{
    struct winsize size;

    if (settings->width_given)
        return (size_t)settings->width;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
        return 0;
    return size.ws_col < NARROWEST ? NARROWEST : size.ws_col;
}

void rp_progress_init(struct rp_progress *progress, const struct rp_settings *settings)
{
    *progress = (struct rp_progress){.on = !settings->quiet && isatty(STDERR_FILENO), .total_seconds = settings->seconds};
}

void rp_progress_update(void *context, double seconds, uint64_t samples)
{
    struct rp_progress *progress = context;
    struct rp_buf line = {0};

    if (!progress->on)
        return;
    rp_buf_printf(&line, "\r\x1b[K%.1f of %.6g s  ", seconds, progress->total_seconds);
    rp_text_count(&line, samples);
    rp_buf_puts(&line, samples == 1 ? " sample" : " samples");
    rp_buf_puts(&line, stop_asked ? "  ending" : "  Ctrl-C ends early and reports");
    progress->shown = rp_write_full(STDERR_FILENO, rp_buf_text(&line), line.length);
    rp_buf_release(&line);
}

void rp_progress_clear(struct rp_progress *progress)
{
    static const char clear[] = "\r\x1b[K";

    if (progress->shown)
        (void)rp_write_full(STDERR_FILENO, clear, sizeof clear - 1);
    progress->shown = false;
}
