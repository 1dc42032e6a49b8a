/* SPDX-License-Identifier: MIT */
/* See suite.h. The trap is the colon: statements hold colons too (`:name`), so a name ends at the first one with a blank or nothing behind it. */
#include "bench/suite.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/limits.h"
#include "base/parse.h"

static const char here_mark[] = "{here}";

static struct rp_cursor trimmed(const char *text, size_t length)
{
    struct rp_cursor c = rp_cursor_of(text, length);

    rp_cursor_skip_blanks(&c);
    while (c.end > c.at && (c.end[-1] == ' ' || c.end[-1] == '\t' || c.end[-1] == '\r' || c.end[-1] == '\n'))
        c.end--;
    return c;
}

static const char *name_end(const struct rp_cursor *c)
{
    for (const char *at = c->at; at < c->end; at++) {
        if (*at == ':' && (at + 1 == c->end || at[1] == ' ' || at[1] == '\t'))
            return at;
    }
    return c->end;
}

static bool has_control(const char *text, const char *end)
{
    for (; text < end; text++) {
        if ((unsigned char)*text < ' ' || *text == 127)
            return true;
    }
    return false;
}

enum rp_status rp_suite_add(struct rp_suite *suite, const char *text, size_t length, const char *what, struct rp_err *err)
{
    struct rp_cursor c = trimmed(text, length);
    const char *end = name_end(&c), *rest = end < c.end ? end + 1 : c.end;
    struct rp_suite_config *added;
    struct rp_cursor name = trimmed(c.at, (size_t)(end - c.at));
    const char *copy;

    if (rp_cursor_done(&name) || has_control(name.at, name.end))
        return rp_fail(err, RP_USAGE, "%s takes `NAME: ARGUMENTS`, and the name may not be empty or hold control characters", what);
    if (suite->configs.n == RP_BENCH_CONFIGS_MAX)
        return rp_fail(err, RP_LIMIT, "there are more than %u configurations; measure them in several parts", RP_BENCH_CONFIGS_MAX);
    copy = rp_arena_strndup(&suite->arena, name.at, (size_t)(name.end - name.at));
    added = copy ? rp_vec_add(&suite->configs) : NULL;
    if (!added)
        return rp_fail_nomem(err);
    *added = (struct rp_suite_config){.name = copy};
    for (size_t i = 0; i + 1 < suite->configs.n; i++) {
        if (!strcmp(suite->configs.at[i].name, copy))
            return rp_fail(err, RP_USAGE, "%s: there are two configurations named '%.100s'", what, copy);
    }
    return rp_words_split(&added->words, &suite->arena, rest, (size_t)(c.end - rest), what, err);
}

/* {here} stands for a folder that may hold blanks, so it is replaced when words are words already. */
static enum rp_status put_here(struct rp_suite *suite, struct rp_words *words, size_t from, const char *here, struct rp_err *err)
{
    for (size_t i = from; i < words->at.n; i++) {
        const char *word = words->at.at[i], *mark = strstr(word, here_mark), *copy;
        struct rp_buf whole = {0};

        if (!mark)
            continue;
        for (; mark; mark = strstr(word, here_mark)) {
            rp_buf_append(&whole, word, (size_t)(mark - word));
            rp_buf_puts(&whole, here);
            word = mark + strlen(here_mark);
        }
        rp_buf_puts(&whole, word);
        copy = whole.failed ? NULL : rp_arena_strndup(&suite->arena, rp_buf_text(&whole), whole.length);
        rp_buf_release(&whole);
        if (!copy)
            return rp_fail_nomem(err);
        words->at.at[i] = copy;
    }
    return RP_OK;
}

static enum rp_status take_line(struct rp_suite *suite, struct rp_cursor c, const char *what, const char *here, struct rp_err *err)
{
    size_t had = suite->args.at.n;
    enum rp_status status;

    if (rp_cursor_take(&c, "args ")) {
        status = rp_words_split(&suite->args, &suite->arena, c.at, (size_t)(c.end - c.at), what, err);
        return status ? status : put_here(suite, &suite->args, had, here, err);
    }
    if (rp_cursor_take(&c, "config ")) {
        status = rp_suite_add(suite, c.at, (size_t)(c.end - c.at), what, err);
        return status ? status : put_here(suite, &suite->configs.at[suite->configs.n - 1].words, 0, here, err);
    }
    return rp_fail(err, RP_FORMAT, "%s: a line begins with `args`, `config` or #", what);
}

enum rp_status rp_suite_parse(struct rp_suite *suite, const char *path, const char *here, const char *text, size_t length, struct rp_err *err)
{
    struct rp_cursor c = rp_cursor_of(text, length);
    struct rp_buf what = {0};
    enum rp_status status = RP_OK;
    const char *line;
    size_t bytes;

    for (size_t number = 1; !status && rp_cursor_line(&c, &line, &bytes); number++) {
        struct rp_cursor rest = trimmed(line, bytes);

        if (rp_cursor_done(&rest) || *rest.at == '#')
            continue;
        rp_buf_clear(&what);
        rp_buf_printf(&what, "%s:%zu", path, number);
        status = take_line(suite, rest, rp_buf_text(&what), here, err);
    }
    if (status == RP_USAGE) /* what is wrong use on a command line is a wrong file here */
        status = err->status = RP_FORMAT;
    rp_buf_release(&what);
    return status;
}

enum rp_status rp_suite_read(struct rp_suite *suite, const char *path, struct rp_err *err)
{
    char *real = realpath(path, NULL), *slash = real ? strrchr(real, '/') : NULL;
    struct rp_buf text = {0};
    enum rp_status status = rp_read_named_file(path, RP_RULE_FILE_MAX, &text, err);

    if (slash)
        *slash = '\0';
    if (!status)
        status = rp_suite_parse(suite, path, slash ? real : ".", rp_buf_text(&text), text.length, err);
    if (!status && !suite->configs.n)
        status = rp_fail(err, RP_FORMAT, "%s holds no line `config NAME: ARGUMENTS`", path);
    rp_buf_release(&text);
    free(real);
    return status;
}

void rp_suite_release(struct rp_suite *suite)
{
    for (size_t i = 0; i < suite->configs.n; i++)
        rp_words_release(&suite->configs.at[i].words);
    rp_vec_release(&suite->configs);
    rp_words_release(&suite->args);
    rp_arena_release(&suite->arena);
}
