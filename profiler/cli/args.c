/* SPDX-License-Identifier: MIT */
/* Reads a command line into settings, by the tables. Not getopt: that knows neither subcommands nor what to suggest, and takes abbreviations that
 * change their meaning with the next release.
 *
 * What is read: --name VALUE, --name=VALUE, -n VALUE, -nVALUE, and clusters of switches such as -qv, in any order with operands; `--` ends options
 * and begins the command to launch. */
#include "cli/command.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parse.h"

enum { WORD_MAX = 63, ABBREVIATION_MIN = 3 };

int rp_word_distance(const char *a, const char *b)
{
    int rows[3][WORD_MAX + 1], *two = rows[0], *last = rows[1], *now = rows[2];
    size_t na = strlen(a), nb = strlen(b);

    if (na > WORD_MAX || nb > WORD_MAX)
        return WORD_MAX;
    for (size_t k = 0; k <= nb; k++)
        last[k] = (int)k;
    for (size_t i = 1; i <= na; i++) {
        int *spare = two;

        now[0] = (int)i;
        for (size_t k = 1; k <= nb; k++) {
            int best = last[k - 1] + (a[i - 1] != b[k - 1]);

            best = last[k] + 1 < best ? last[k] + 1 : best;
            best = now[k - 1] + 1 < best ? now[k - 1] + 1 : best;
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] && two[k - 2] + 1 < best)
                best = two[k - 2] + 1;
            now[k] = best;
        }
        two = last;
        last = now;
        now = spare;
    }
    return last[nb];
}

static const struct rp_option *find_option(const struct rp_command *command, const char *name, size_t length, char letter)
{
    for (size_t g = 0; command->groups[g]; g++) {
        for (const struct rp_option *o = command->groups[g]->options; o->name; o++) {
            if (letter ? o->letter == letter : strlen(o->name) == length && !memcmp(o->name, name, length))
                return o;
        }
    }
    return NULL;
}

/* All letters of `typed` stand in `name` in this order, the first one first: secs in seconds. */
static bool is_abbreviation(const char *typed, const char *name)
{
    if (*typed != *name)
        return false;
    for (; *typed && *name; name++)
        typed += *typed == *name;
    return !*typed;
}

int rp_word_typed_distance(const char *typed, const char *name)
{
    size_t length = strlen(typed), whole = strlen(name);

    if (length >= ABBREVIATION_MIN && whole >= ABBREVIATION_MIN && !strncmp(typed, name, length < whole ? length : whole))
        return 0;
    if (length > ABBREVIATION_MIN && is_abbreviation(typed, name))
        return 1;
    return rp_word_distance(typed, name);
}

static const char *near_option(const struct rp_command *command, const char *typed)
{
    const char *best = NULL;
    int nearest = strlen(typed) < 5 ? 2 : 4;

    for (size_t g = 0; command->groups[g]; g++) {
        for (const struct rp_option *o = command->groups[g]->options; o->name; o++) {
            int distance = rp_word_typed_distance(typed, o->name);

            if (distance < nearest) {
                nearest = distance;
                best = o->name;
            }
        }
    }
    return best;
}

static const char *shown_name(const struct rp_command *command)
{
    return *command->name ? command->name : "rowprof";
}

static enum rp_status unknown_option(const struct rp_command *command, const char *name, size_t length, struct rp_err *err)
{
    char typed[WORD_MAX + 1];
    const char *near;

    snprintf(typed, sizeof typed, "%.*s", (int)(length > WORD_MAX ? WORD_MAX : length), name);
    for (const struct rp_command *other = rp_commands; other->name; other++) {
        if (find_option(other, typed, strlen(typed), 0))
            return rp_fail(err, RP_USAGE, "--%s is no option of `%s%s`; it belongs to `rowprof%s%s`", typed, *command->name ? "rowprof " : "",
                           shown_name(command), *other->name ? " " : "", other->name);
    }
    near = near_option(command, typed);
    if (near)
        return rp_fail(err, RP_USAGE, "there is no option --%s; did you mean --%s?", typed, near);
    return rp_fail(err, RP_USAGE, "there is no option --%s; `rowprof help%s%s` lists them", typed, *command->name ? " " : "", command->name);
}

/* What an option needs from the rest of the line. */
struct reader {
    int argc, at;
    char **argv;
    struct rp_args *args;
};

/* The value that stands in the next word. `--pid --seconds 5` is a forgotten value, `--seconds -1` is a wrong one. */
static enum rp_status next_value(struct reader *r, const struct rp_option *option, const char **value, struct rp_err *err)
{
    const char *next = r->at + 1 < r->argc ? r->argv[r->at + 1] : NULL;

    if (!next || !strncmp(next, "--", 2))
        return rp_fail(err, RP_USAGE, "--%s needs a value: --%s %s", option->name, option->name, option->argument);
    r->at++;
    *value = next;
    return RP_OK;
}

static enum rp_status read_long(struct reader *r, const char *word, struct rp_err *err)
{
    const char *equals = strchr(word, '='), *value = equals ? equals + 1 : NULL;
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const struct rp_option *option = find_option(r->args->command, word, length, 0);

    if (!option)
        return unknown_option(r->args->command, word, length, err);
    if (!option->argument && value)
        return rp_fail(err, RP_USAGE, "--%s takes no value, but was given '%s'", option->name, value);
    if (option->argument && !value && next_value(r, option, &value, err))
        return err->status;
    return option->set(&r->args->settings, value, err);
}

static enum rp_status read_letters(struct reader *r, const char *letters, struct rp_err *err)
{
    enum rp_status status = RP_OK;

    /* Read as letters, -pid would be a process called id. */
    if (strlen(letters) >= ABBREVIATION_MIN && find_option(r->args->command, letters, strlen(letters), 0))
        return rp_fail(err, RP_USAGE, "a long option has two dashes: write --%s, not -%s", letters, letters);
    for (; !status && *letters; letters++) {
        const struct rp_option *option = find_option(r->args->command, NULL, 0, *letters);
        const char *value = NULL;

        if (!option && (*letters < ' ' || *letters > '~'))
            return rp_fail(err, RP_USAGE, "there is no option that begins with the byte %u; `rowprof help` lists them",
                           (unsigned)(unsigned char)*letters);
        if (!option)
            return rp_fail(err, RP_USAGE, "there is no option -%c; `rowprof help%s%s` lists them", *letters, *r->args->command->name ? " " : "",
                           r->args->command->name);
        if (!option->argument) {
            status = option->set(&r->args->settings, NULL, err);
            continue;
        }
        if (letters[1])
            value = letters + 1;
        else if (next_value(r, option, &value, err))
            return err->status;
        return option->set(&r->args->settings, value, err);
    }
    return status;
}

static bool is_data_file(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISREG(st.st_mode) && access(path, X_OK);
}

/* A word that is neither option nor command, where a recording needs neither operands nor guesses. */
static enum rp_status refuse_operand(const struct rp_command *command, const char *word, struct rp_err *err)
{
    const char *near = *command->name ? NULL : rp_command_near(word);
    uint64_t number;

    if (rp_parse_u64(word, 1, INT32_MAX, &number))
        return rp_fail(err, RP_USAGE, "to watch process %s write --pid %s", word, word);
    if (find_option(command, word, strlen(word), 0))
        return rp_fail(err, RP_USAGE, "'%s' is an option and needs two dashes: --%s", word, word);
    if (near)
        return rp_fail(err, RP_USAGE, "there is no command '%s'; did you mean '%s'?", word, near);
    if (*command->name)
        return rp_fail(err, RP_USAGE, "`rowprof %s` takes no '%s'; to keep the profile in it write -o %s, to launch a program put -- before it", command->name, word, word);
    if (is_data_file(word))
        return rp_fail(err, RP_USAGE, "'%s' is no command; to show it as a profile write rowprof report %s", word, word);
    return rp_fail(err, RP_USAGE,
                   "'%s' is neither an option nor a command; to launch a program put -- before it, to watch one that runs give its process id: "
                   "--pid \"$(pgrep -nf '%s')\"",
                   word, word);
}

static enum rp_status read_operand(struct rp_args *args, const char *word, struct rp_err *err)
{
    const char **added;

    if (args->command->run == rp_cmd_record && !args->settings.help)
        return refuse_operand(args->command, word, err);
    added = rp_vec_add(&args->operands);
    if (!added)
        return rp_fail_nomem(err);
    *added = word;
    return RP_OK;
}

/* The command is the first word, or the first two; without one it is the bare form. Returns how many words that took. */
static int find_command(int argc, char **argv, struct rp_args *args, struct rp_err *err)
{
    char name[WORD_MAX + 1];

    args->command = &rp_commands[0];
    if (argc < 2 || argv[1][0] == '-' || !*argv[1])
        return 0;
    if (!strcmp(argv[1], "rules")) {
        snprintf(name, sizeof name, "rules %s", argc > 2 ? argv[2] : "");
        args->command = rp_command_find(name);
        if (!args->command) {
            bool asks = argc > 2 && (!strcmp(argv[2], "--help") || !strcmp(argv[2], "-h"));

            args->command = rp_command_find("help");
            args->settings.help = asks;
            if (!asks)
                rp_fail(err, RP_USAGE, "`rowprof rules` takes `check FILE` or `explain STACK`%s%.40s%s", argc > 2 ? ", not '" : "",
                        argc > 2 ? argv[2] : "", argc > 2 ? "'" : "");
            return asks ? 2 : -1;
        }
        return 2;
    }
    args->command = rp_command_find(argv[1]);
    if (args->command)
        return 1;
    args->command = &rp_commands[0];
    return 0;
}

enum rp_status rp_args_parse(int argc, char **argv, struct rp_args *args, struct rp_err *err)
{
    struct reader r = {.argc = argc, .argv = argv, .args = args};
    enum rp_status status = RP_OK;
    bool only_operands = false;
    int taken;

    *args = (struct rp_args){0};
    rp_settings_init(&args->settings);
    taken = find_command(argc, argv, args, err);
    if (taken < 0)
        return err->status;
    for (r.at = 1 + taken; !status && r.at < argc; r.at++) {
        const char *word = argv[r.at];

        if (!only_operands && !strcmp(word, "--")) {
            only_operands = true;
            if (!rp_command_records(args->command))
                continue;
            args->launch = argv + r.at + 1;
            break;
        }
        if (only_operands)
            status = read_operand(args, word, err);
        else if (word[0] == '-' && word[1] == '-')
            status = read_long(&r, word + 2, err);
        else if (word[0] == '-' && word[1])
            status = read_letters(&r, word + 1, err);
        else
            status = read_operand(args, word, err);
    }
    return status;
}

void rp_args_release(struct rp_args *args)
{
    rp_settings_release(&args->settings);
    rp_vec_release(&args->operands);
}
