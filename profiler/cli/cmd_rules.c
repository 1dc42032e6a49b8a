/* SPDX-License-Identifier: MIT */
/* `rowprof rules check` and `rowprof rules explain`: what one needs while writing rules. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/limits.h"
#include "base/parse.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/terminal.h"
#include "store/store.h"
#include "symbolize/symbolize.h"

/* Lines that begin with one of the given paths: what is found in the shipped packs is not the caller's concern. */
static size_t put_own_lines(const struct rp_settings *s, const struct rp_buf *findings, struct rp_buf *out)
{
    struct rp_cursor c = rp_cursor_str(rp_buf_text(findings));
    const char *line;
    size_t length, n = 0;

    while (rp_cursor_line(&c, &line, &length)) {
        bool own = false;

        for (size_t i = 0; i < s->rules.n && !own; i++)
            own = length > strlen(s->rules.at[i]) && !strncmp(line, s->rules.at[i], strlen(s->rules.at[i]));
        if (!own)
            continue;
        rp_buf_append(out, line, length);
        rp_buf_putc(out, '\n');
        n++;
    }
    return n;
}

/* Names as rules see them, see symbolize.h; what the view does, without the stacks. */
static enum rp_status lint_against(const struct cat_rules *rules, const struct rp_profile *p, struct rp_buf *out, struct rp_err *err)
{
    RP_VEC(size_t) begins = {0};
    struct cat_symbol *symbols = rp_calloc(p->functions.n + 1, sizeof *symbols);
    struct rp_buf names = {0};
    enum rp_status status = RP_OK;
    size_t findings;

    if (!symbols || !rp_vec_reserve(&begins, p->functions.n + 1))
        status = rp_fail_nomem(err);
    for (size_t i = 0; !status && i < p->functions.n; i++) {
        const struct rp_function *f = &p->functions.at[i];

        begins.at[begins.n++] = names.length;
        rp_demangle(rp_profile_text(p, f->raw ? f->raw : f->name), true, &names);
        rp_buf_putc(&names, '\0');
    }
    if (!status && names.failed)
        status = rp_fail_nomem(err);
    for (size_t i = 0; !status && i < p->functions.n; i++) {
        const struct rp_function *f = &p->functions.at[i];

        symbols[i] = (struct cat_symbol){
            .name = rp_profile_text(p, f->name),
            .short_name = names.data + begins.at[i],
            .raw = rp_profile_text(p, f->raw ? f->raw : f->name),
            .module = rp_profile_text(p, f->module),
            .file = f->file ? rp_profile_text(p, f->file) : NULL,
            .kernel = f->how == RP_NAME_KERNEL,
            .mark = f->how == RP_NAME_MARK,
        };
    }
    if (!status)
        status = cat_lint_symbols(rules, symbols, p->functions.n, out, &findings, err);
    rp_vec_release(&begins);
    rp_buf_release(&names);
    rp_free(symbols);
    return status;
}

/* One file of cases; when there is none, there is nothing to say. */
static enum rp_status run_cases_file(const struct cat_rules *rules, const char *path, struct rp_buf *out, size_t *findings, struct rp_err *err)
{
    struct rp_buf text = {0};
    size_t passed = 0, failed = 0;
    enum rp_status status = RP_OK;
    struct rp_err ignored;

    if (!rp_read_named_file(path, RP_RULE_FILE_MAX, &text, &ignored))
        status = cat_cases_run(rules, path, rp_buf_text(&text), text.length, out, &passed, &failed, NULL, err);
    *findings += failed;
    rp_buf_release(&text);
    return status;
}

static bool ends_with(const char *text, const char *end)
{
    return strlen(text) > strlen(end) && !strcmp(text + strlen(text) - strlen(end), end);
}

static int is_cases(const struct dirent *entry)
{
    return ends_with(entry->d_name, ".cases");
}

/* NAME.cases beside NAME.yaml, or all of a folder. */
static enum rp_status run_cases(const struct cat_rules *rules, const char *path, struct rp_buf *out, size_t *findings, struct rp_err *err)
{
    struct dirent **entries = NULL;
    int n = scandir(path, &entries, is_cases, alphasort);
    struct rp_buf cases = {0};
    enum rp_status status = RP_OK;

    if (n < 0 && ends_with(path, ".yaml")) {
        rp_buf_append(&cases, path, strlen(path) - strlen("yaml"));
        rp_buf_puts(&cases, "cases");
        status = run_cases_file(rules, rp_buf_text(&cases), out, findings, err);
    }
    for (int i = 0; i < n; i++) {
        rp_buf_clear(&cases);
        rp_buf_printf(&cases, "%s/%s", path, entries[i]->d_name);
        if (!status)
            status = run_cases_file(rules, rp_buf_text(&cases), out, findings, err);
        free(entries[i]);
    }
    free(entries);
    rp_buf_release(&cases);
    return status;
}

static enum rp_status check_profile(const struct rp_settings *s, const struct cat_rules *rules, struct rp_buf *found, struct rp_err *err)
{
    struct rp_profile profile;
    enum rp_status status;

    if (!s->profile)
        return RP_OK;
    status = rp_store_load(&profile, s->profile, err);
    if (status)
        return status;
    status = lint_against(rules, &profile, found, err);
    rp_profile_release(&profile);
    return status;
}

static enum rp_status check(const struct rp_settings *s, const struct cat_rules *rules, struct rp_err *err)
{
    struct rp_buf found = {0}, out = {0};
    size_t findings = 0, all;
    enum rp_status status = cat_lint(rules, &found, &all, err);

    if (!status)
        status = check_profile(s, rules, &found, err);
    findings = put_own_lines(s, &found, &out);
    for (size_t i = 0; !status && i < s->rules.n; i++)
        status = run_cases(rules, s->rules.at[i], &out, &findings, err);
    if (!status && findings)
        status = rp_fail(err, RP_FAILED, "%zu finding%s", findings, findings == 1 ? "" : "s");
    if (out.length || out.failed) {
        struct rp_err other;

        if (rp_print(&out, &other) && (!status || findings)) {
            *err = other;
            status = other.status;
        }
    }
    rp_buf_release(&found);
    rp_buf_release(&out);
    return status;
}

enum rp_status rp_cmd_rules_check(struct rp_args *args, struct rp_err *err)
{
    struct rp_settings *s = &args->settings;
    struct cat_rules *rules = NULL;
    enum rp_status status;

    if (!args->operands.n)
        return rp_fail(err, RP_USAGE, "`rowprof rules check` takes the paths of rule files: rowprof rules check mine.yaml");
    for (size_t i = 0; i < args->operands.n; i++) {
        const char **path = rp_vec_add(&s->rules);

        if (!path)
            return rp_fail_nomem(err);
        *path = args->operands.at[i];
    }
    status = rp_rules_open(s, &rules, err);
    if (!status)
        status = check(s, rules, err);
    if (!status && !s->quiet)
        rp_message("no errors");
    cat_rules_free(rules);
    return status;
}

/* Operands as one text; a stack parted by ; is one parted by < as well. */
static void join(const struct rp_args *args, struct rp_buf *out)
{
    struct rp_buf all = {0};
    const char *text;

    for (size_t i = 0; i < args->operands.n; i++)
        rp_buf_printf(&all, "%s%s", i ? " " : "", args->operands.at[i]);
    text = rp_buf_text(&all);
    if (strstr(text, " < ")) {
        rp_buf_puts(out, text);
    } else {
        for (; *text; text++) {
            if (*text != ';')
                rp_buf_putc(out, *text);
            else if (text[1])
                rp_buf_puts(out, " < ");
        }
    }
    out->failed |= all.failed;
    rp_buf_release(&all);
}

/* A name as it was copied from a report has parameters; rules see it without them, too. */
static void short_names(struct cat_stack *stack, struct rp_buf *names)
{
    for (size_t i = 0; i < stack->n; i++) {
        struct rp_buf one = {0};
        struct cat_symbol *f = &stack->frames[i];

        rp_demangle(f->name, true, &one);
        if (!f->mark && strcmp(rp_buf_text(&one), f->short_name) != 0) {
            char *copy = rp_arena_strndup(&stack->arena, rp_buf_text(&one), one.length);

            f->short_name = copy ? copy : f->short_name;
        }
        names->failed |= one.failed;
        rp_buf_release(&one);
    }
}

enum rp_status rp_cmd_rules_explain(struct rp_args *args, struct rp_err *err)
{
    const struct rp_settings *s = &args->settings;
    struct cat_rules *rules = NULL;
    struct cat_matcher *matcher = NULL;
    struct cat_stack stack = {0};
    struct rp_buf text = {0}, out = {0};
    enum rp_status status;

    if (!args->operands.n)
        return rp_fail(err, RP_USAGE,
                       "`rowprof rules explain` takes a function, or a stack from its leaf on: rowprof rules explain 'memcpy < json_escape < main'");
    join(args, &text);
    status = text.failed ? rp_fail_nomem(err) : cat_stack_parse(rp_buf_text(&text), text.length, &stack, err);
    if (status == RP_USAGE) {
        struct rp_err where = *err;

        rp_fail(err, status, "the stack '%.200s' cannot be read: %.200s; write it as 'memcpy < json_escape < main'", rp_buf_text(&text), where.text);
    }
    if (!status)
        status = rp_rules_open(s, &rules, err);
    if (!status)
        status = cat_matcher_new(rules, &matcher, err);
    if (!status) {
        short_names(&stack, &out);
        stack.context.thread = s->thread ? s->thread : stack.context.thread;
        stack.context.state = s->blocked ? CAT_BLOCKED : stack.context.state;
        stack.context.no_kernel |= s->no_kernel;
        status = cat_explain(matcher, stack.frames, stack.n, &stack.context, s->verbose, &out, err);
    }
    if (!status)
        status = rp_print(&out, err);
    cat_matcher_free(matcher);
    cat_rules_free(rules);
    cat_stack_release(&stack);
    rp_buf_release(&text);
    rp_buf_release(&out);
    return status;
}
