/* SPDX-License-Identifier: MIT */
/* Help out of the tables, so that it cannot say what the parser does not do. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/show.h"
#include "cli/terminal.h"
#include "report/style.h"

enum { NAME_COLUMNS = 28, HELP_WIDTH = 80 };

/* One row of a table in two columns. */
static void put_row(struct rp_buf *out, const char *left, const char *right)
{
    size_t length = strlen(left);

    rp_buf_puts(out, left);
    if (length >= NAME_COLUMNS) {
        rp_buf_putc(out, '\n');
        length = 0;
    }
    rp_buf_fill(out, ' ', NAME_COLUMNS - (int)length);
    rp_text_wrap(out, right, NAME_COLUMNS, NAME_COLUMNS, HELP_WIDTH);
}

static void put_option(struct rp_buf *out, const struct rp_option *option)
{
    struct rp_buf left = {0};

    if (option->letter)
        rp_buf_printf(&left, "  -%c, --%s", option->letter, option->name);
    else
        rp_buf_printf(&left, "      --%s", option->name);
    if (option->argument)
        rp_buf_printf(&left, " %s", option->argument);
    put_row(out, rp_buf_text(&left), option->help);
    out->failed |= left.failed;
    rp_buf_release(&left);
}

static const char *shown(const struct rp_command *command, const char *blank)
{
    return *command->name ? blank : "";
}

void rp_help_command(const struct rp_command *command, struct rp_buf *out)
{
    rp_buf_printf(out, "usage: rowprof%s%s %s\n", shown(command, " "), command->name, command->usage);
    if (*command->name)
        rp_buf_printf(out, "\n%s\n", command->summary);
    if (command->details)
        rp_buf_printf(out, "%s", command->details);
    for (size_t g = 0; command->groups[g]; g++) {
        rp_buf_printf(out, "\n%s\n", command->groups[g]->title);
        for (const struct rp_option *o = command->groups[g]->options; o->name; o++)
            put_option(out, o);
    }
}

static const char examples[] = "\nExamples\n"
                               "  rowprof --pid 1234 --seconds 5                    where does its time go?\n"
                               "  rowprof -p 1234 -t MainThread --category malloc   who makes it allocate?\n"
                               "  rowprof record -o before.rowprof -p 1234          keep it\n"
                               "  rowprof report before.rowprof --by function       and look again\n";

void rp_help_overview(struct rp_buf *out)
{
    rp_buf_puts(out, "rowprof watches a process that runs SQLite and shows what a row costs, and\nwhose cost it is.\n\n");
    for (const struct rp_command *c = rp_commands; c->name; c++) {
        struct rp_buf left = {0};

        rp_buf_printf(&left, "  rowprof%s%s", shown(c, " "), *c->name ? c->name : " --pid PID");
        put_row(out, rp_buf_text(&left), c->summary);
        out->failed |= left.failed;
        rp_buf_release(&left);
    }
    rp_buf_puts(out, examples);
    rp_buf_putc(out, '\n');
    rp_help_command(&rp_commands[0], out);
}

static void put_exit_status(struct rp_buf *out)
{
    static const struct {
        enum rp_status status;
        int exit;
        const char *text;
    } table[] = {
#define ROW(name, value, exit, text) {RP_##name, exit, text},
        RP_STATUS_TABLE(ROW)
#undef ROW
    };

    rp_buf_puts(out, "The exit status of rowprof:\n\n");
    /* Several statuses share 1: they are told together. */
    for (int exit = 0; exit <= 6; exit++) {
        bool first = true;

        for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
            if (table[i].exit != exit)
                continue;
            if (first)
                rp_buf_printf(out, "  %d  %s\n", exit, table[i].text);
            else
                rp_buf_printf(out, "     or %s\n", table[i].text);
            first = false;
        }
    }
    rp_buf_puts(out, "\nA first Ctrl-C or TERM ends the recording and reports what was seen, with status 0; a second one ends rowprof.\n");
}

/* What --category takes, as far as no rule file adds to it. */
static enum rp_status put_categories(struct rp_buf *out, struct rp_err *err)
{
    static const struct {
        enum cat_kind kind;
        const char *title;
    } kinds[] = {{CAT_COST, "on a CPU"}, {CAT_WAIT, "waiting"}};
    struct rp_settings shipped;
    struct cat_rules *rules = NULL;
    enum rp_status status;

    rp_settings_init(&shipped);
    status = rp_rules_open(&shipped, &rules, err);
    for (size_t k = 0; !status && k < sizeof kinds / sizeof *kinds; k++) {
        rp_buf_printf(out, "%sThe shipped categories of time %s, by id or name (--category):\n\n", k ? "\n" : "", kinds[k].title);
        for (uint32_t i = 0; i < cat_rules_ncategories(rules); i++) {
            const struct cat_category *c = cat_rules_category(rules, i);

            if (c->kind == kinds[k].kind)
                rp_buf_printf(out, "  %-20s  %s\n", c->id, c->name);
        }
    }
    cat_rules_free(rules);
    rp_settings_release(&shipped);
    return status;
}

/* Of commands and the topics beside them. */
static const char *near_topic(const char *word)
{
    static const char *const topics[] = {"categories", "exit-status"};
    const char *best = rp_command_near(word);
    int nearest = best ? rp_word_typed_distance(word, best) : 3;

    for (size_t i = 0; i < sizeof topics / sizeof *topics; i++) {
        if (rp_word_typed_distance(word, topics[i]) < nearest) {
            nearest = rp_word_typed_distance(word, topics[i]);
            best = topics[i];
        }
    }
    return best;
}

enum rp_status rp_cmd_help(struct rp_args *args, struct rp_err *err)
{
    struct rp_buf out = {0};
    const struct rp_command *command = NULL;
    char topic[64] = "";
    enum rp_status status = RP_OK;

    if (args->operands.n > 2)
        return rp_fail(err, RP_USAGE, "`rowprof help` takes one command or topic");
    for (size_t i = 0; i < args->operands.n; i++) {
        size_t used = strlen(topic);

        snprintf(topic + used, sizeof topic - used, "%s%s", i ? " " : "", args->operands.at[i]);
    }
    command = *topic ? rp_command_find(topic) : NULL;
    if (!*topic) {
        rp_help_overview(&out);
    } else if (!strcmp(topic, "exit-status")) {
        put_exit_status(&out);
    } else if (!strcmp(topic, "categories")) {
        status = put_categories(&out, err);
    } else if (!strcmp(topic, "rules")) {
        rp_help_command(rp_command_find("rules check"), &out);
        rp_buf_putc(&out, '\n');
        rp_help_command(rp_command_find("rules explain"), &out);
    } else if (command) {
        rp_help_command(command, &out);
    } else {
        const char *near = near_topic(topic);

        status = near ? rp_fail(err, RP_USAGE, "there is no help on '%s'; did you mean '%s'?", topic, near)
                      : rp_fail(err, RP_USAGE, "there is no help on '%s'; `rowprof help` lists the commands", topic);
    }
    if (!status)
        status = rp_print(&out, err);
    rp_buf_release(&out);
    return status;
}
