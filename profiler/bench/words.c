/* SPDX-License-Identifier: MIT */
/* See words.h. The trap is the empty word: '' and "" are words, blanks are not. */
#include "bench/words.h"

#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/parse.h"

/* One word as it is read. */
struct word {
    struct rp_buf text;
    bool begun;
    char quote; /* ' or " while inside, else 0 */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_for_shells(char c, char quote)
{
    return quote == '"' ? c == '$' || c == '`' : strchr("$`|&;<>()", c) != NULL;
}

enum rp_status rp_words_add(struct rp_words *words, const char *word, struct rp_err *err)
{
    const char **added;

    if (words->at.n == RP_BENCH_WORDS_MAX)
        return rp_fail(err, RP_LIMIT, "a command has more than %u words", RP_BENCH_WORDS_MAX);
    added = rp_vec_add(&words->at);
    if (!added)
        return rp_fail_nomem(err);
    *added = word;
    return RP_OK;
}

static enum rp_status end_word(struct rp_words *words, struct rp_arena *arena, struct word *word, struct rp_err *err)
{
    char *copy;

    if (!word->begun)
        return RP_OK;
    copy = word->text.failed ? NULL : rp_arena_strndup(arena, rp_buf_text(&word->text), word->text.length);
    if (!copy)
        return rp_fail_nomem(err);
    word->begun = false;
    rp_buf_clear(&word->text);
    return rp_words_add(words, copy, err);
}

/* A backslash: within "..." it escapes only what has a meaning there. */
static void escape(struct word *word, struct rp_cursor *c)
{
    char next = *c->at;

    if (word->quote == '"' && !strchr("\"\\$`", next))
        rp_buf_putc(&word->text, '\\');
    rp_buf_putc(&word->text, next);
    c->at++;
}

/* One character; false: it is for a shell. */
static bool take(struct word *word, struct rp_cursor *c, char ch)
{
    bool opens = !word->quote && (ch == '\'' || ch == '"'), closes = word->quote && ch == word->quote;

    if (opens || closes) {
        word->quote = opens ? ch : 0;
    } else if (ch == '\\' && word->quote != '\'' && !rp_cursor_done(c) && *c->at) {
        escape(word, c);
    } else if (word->quote != '\'' && is_for_shells(ch, word->quote)) {
        return false;
    } else {
        rp_buf_putc(&word->text, ch);
    }
    word->begun = true;
    return true;
}

enum rp_status rp_words_split(struct rp_words *words, struct rp_arena *arena, const char *text, size_t length, const char *what,
                              struct rp_err *err)
{
    struct rp_cursor c = rp_cursor_of(text, length);
    struct word word = {0};
    enum rp_status status = RP_OK;

    while (!status && !rp_cursor_done(&c)) {
        char ch = *c.at++;

        if (!ch)
            status = rp_fail(err, RP_USAGE, "%s holds a NUL byte", what);
        else if (!word.quote && is_blank(ch))
            status = end_word(words, arena, &word, err);
        else if (!take(&word, &c, ch))
            status = rp_fail(err, RP_USAGE, "%s holds a '%c', which means something to a shell only, and no shell runs it; quote it if it is meant as it is", what,
                             ch);
    }
    if (!status && word.quote)
        status = rp_fail(err, RP_USAGE, "%s lacks a closing %c", what, word.quote);
    if (!status)
        status = end_word(words, arena, &word, err);
    rp_buf_release(&word.text);
    return status;
}

void rp_words_release(struct rp_words *words)
{
    rp_vec_release(&words->at);
}
