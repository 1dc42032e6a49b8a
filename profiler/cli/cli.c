/* SPDX-License-Identifier: MIT */
/* From argv to exit status: parse, run, tell the one sentence of a failure. */
#include "cli/cli.h"

#include <signal.h>

#include "cli/command.h"
#include "cli/terminal.h"

#ifndef ROWPROF_VERSION
#error "ROWPROF_VERSION is set by CMake from the project's version"
#endif

static enum rp_status print_text(const char *text, struct rp_err *err)
{
    struct rp_buf out = {0};
    enum rp_status status;

    rp_buf_puts(&out, text);
    status = rp_print(&out, err);
    rp_buf_release(&out);
    return status;
}

static enum rp_status run(struct rp_args *args, struct rp_err *err)
{
    struct rp_buf out = {0};
    enum rp_status status;

    if (args->settings.version)
        return print_text("rowprof " ROWPROF_VERSION "\n", err);
    if (!args->settings.help || args->command->run == rp_cmd_help)
        return args->command->run(args, err);
    if (*args->command->name)
        rp_help_command(args->command, &out);
    else
        rp_help_overview(&out);
    status = rp_print(&out, err);
    rp_buf_release(&out);
    return status;
}

int rp_cli_main(int argc, char **argv)
{
    struct rp_args args;
    struct rp_err err = {0};
    enum rp_status status;

    /* A limit on file sizes is an error of writing, not the end of the run. */
    signal(SIGXFSZ, SIG_IGN);
    status = rp_args_parse(argc, argv, &args, &err);

    /* A question is answered even when the rest of the line is wrong. */
    if (!status || ((args.settings.help || args.settings.version) && args.command))
        status = run(&args, &err);
    if (status)
        rp_message("%s", err.text);
    if (status == RP_USAGE && argc < 2)
        rp_message("`rowprof help` shows how");
    rp_args_release(&args);
    return rp_status_exit(status);
}
