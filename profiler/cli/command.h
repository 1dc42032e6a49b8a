/* SPDX-License-Identifier: MIT */
/* Subcommands: a table, one row and one cmd_*.c each. */
#ifndef RP_CLI_COMMAND_H
#define RP_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "cli/options.h"

enum { RP_COMMAND_GROUPS_MAX = 8 };

/* A parsed command line. */
struct rp_args {
    const struct rp_command *command;
    struct rp_settings settings;
    RP_VEC(const char *) operands;
    char **launch; /* what stood behind `--`, ends with NULL; NULL: no `--` */
};

struct rp_command {
    const char *name;                                            /* "" for the bare form; two words for "rules check" */
    const char *usage;                                           /* what follows the name */
    const char *summary;                                         /* one line */
    const char *details;                                         /* paragraphs for `help NAME`; NULL: none */
    const struct rp_option_group *groups[RP_COMMAND_GROUPS_MAX]; /* ends with NULL */
    enum rp_status (*run)(struct rp_args *args, struct rp_err *err);
};

/* [0] is the bare form; ends with a row without a name. */
extern const struct rp_command rp_commands[];

/* By name ("report", "rules check"); NULL: none. */
const struct rp_command *rp_command_find(const char *name);
/* The name of the command nearest to a mistyped word; NULL: none is near. */
const char *rp_command_near(const char *word);

/* RP_USAGE with one sentence, the nearest option or command in it. `args` is to be released whatever the outcome. */
enum rp_status rp_args_parse(int argc, char **argv, struct rp_args *args, struct rp_err *err);
void rp_args_release(struct rp_args *args);

/* Operands are not for this command: it records, and takes what stands behind `--` as the command to launch. */
bool rp_command_records(const struct rp_command *command);

/* Edits (a letter more, less, other, or two swapped) that turn `a` into `b`; large when one is longer than 63 letters. */
int rp_word_distance(const char *a, const char *b);
/* The same of a word that was typed for `name`: 0 where one begins with the other (sec, frequency), 1 where letters were left out (secs). */
int rp_word_typed_distance(const char *typed, const char *name);

enum rp_status rp_cmd_record(struct rp_args *args, struct rp_err *err);
enum rp_status rp_cmd_report(struct rp_args *args, struct rp_err *err);
enum rp_status rp_cmd_diff(struct rp_args *args, struct rp_err *err);
enum rp_status rp_cmd_shapes(struct rp_args *args, struct rp_err *err);
enum rp_status rp_cmd_locks(struct rp_args *args, struct rp_err *err);
enum rp_status rp_cmd_rules_check(struct rp_args *args, struct rp_err *err);
enum rp_status rp_cmd_rules_explain(struct rp_args *args, struct rp_err *err);
enum rp_status rp_cmd_bench(struct rp_args *args, struct rp_err *err);
enum rp_status rp_cmd_help(struct rp_args *args, struct rp_err *err);

/* The help of one command, for -h. */
void rp_help_command(const struct rp_command *command, struct rp_buf *out);

/* That of the bare form: all commands, examples, and its options. */
void rp_help_overview(struct rp_buf *out);

#endif
