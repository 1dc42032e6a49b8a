/* SPDX-License-Identifier: MIT */
/*
 * The option parser of the workloads: see rl_options.h.
 *
 * The workloads stand on libsqlite3 alone, so that one of them can be built and carried to another machine without the
 * profiler. That is why the two number parsers live here rather than in the profiler's base library.
 */
#include "rl_options.h"

#include <stdio.h>
#include <string.h>

bool rl_parse_count(const char *text, uint64_t *value)
{
    uint64_t sum = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        if (__builtin_mul_overflow(sum, 10U, &sum) || __builtin_add_overflow(sum, (uint64_t)(*text - '0'), &sum))
            return false;
    }
    *value = sum;
    return true;
}

bool rl_parse_billionths(const char *text, uint64_t *value)
{
    uint64_t sum = 0;
    int digits = 0;
    int decimals = -1;
    for (; *text; text++) {
        if (*text == '.' && decimals < 0) {
            decimals = 0;
            continue;
        }
        if (*text < '0' || *text > '9' || decimals == 9)
            return false;
        if (__builtin_mul_overflow(sum, 10U, &sum) || __builtin_add_overflow(sum, (uint64_t)(*text - '0'), &sum))
            return false;
        digits++;
        if (decimals >= 0)
            decimals++;
    }
    if (!digits)
        return false;
    for (int i = decimals < 0 ? 0 : decimals; i < 9; i++) {
        if (__builtin_mul_overflow(sum, 10U, &sum))
            return false;
    }
    *value = sum;
    return true;
}

/* Says which values `option` takes, for the error sentence and for `rowload help`. */
static void choices_join(const struct rl_option *option, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; option->choices[i] && used < size; i++) {
        int n = snprintf(out + used, size - used, "%s%s", i ? ", " : "", option->choices[i]);
        if (n < 0)
            return;
        used += (size_t)n;
    }
}

static bool choice_store(const struct rl_option *option, const char *text, char *field, char error[RL_ERROR_BYTES])
{
    char all[120];
    for (uint32_t i = 0; option->choices[i]; i++) {
        if (strcmp(option->choices[i], text) == 0) {
            memcpy(field, &i, sizeof i);
            return true;
        }
    }
    choices_join(option, all, sizeof all);
    (void)snprintf(error, RL_ERROR_BYTES, "--%s takes one of %s, not '%.40s'.", option->name, all, text);
    return false;
}

static bool number_store(const struct rl_option *option, const char *text, char *field, char error[RL_ERROR_BYTES])
{
    uint64_t value = 0;
    bool seconds = option->kind == RL_OPT_SECONDS;
    uint64_t unit = seconds ? 1000000000U : 1U;
    bool good = seconds ? rl_parse_billionths(text, &value) : rl_parse_count(text, &value);
    if (!good || value < option->min || value > option->max) {
        (void)snprintf(error, RL_ERROR_BYTES, "--%s takes a number%s from %llu to %llu, not '%.40s'.", option->name,
                       seconds ? " of seconds" : "", (unsigned long long)(option->min / unit),
                       (unsigned long long)(option->max / unit), text);
        return false;
    }
    memcpy(field, &value, sizeof value);
    return true;
}

static bool value_store(const struct rl_option *option, const char *text, void *state, char error[RL_ERROR_BYTES])
{
    char *field = (char *)state + option->offset;
    if (option->kind == RL_OPT_CHOICE)
        return choice_store(option, text, field, error);
    if (option->kind != RL_OPT_TEXT)
        return number_store(option, text, field, error);
    memcpy(field, &text, sizeof text);
    return true;
}

int rl_option_take(const struct rl_option *table, void *state, int count, char **args, int *at,
                   char error[RL_ERROR_BYTES])
{
    const char *word = args[*at];
    if (strncmp(word, "--", 2) != 0)
        return 0;
    word += 2;
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    for (; table->name; table++) {
        if (strlen(table->name) != length || memcmp(table->name, word, length) != 0)
            continue;
        if (table->kind == RL_OPT_FLAG) {
            bool on = true;
            if (equals) {
                (void)snprintf(error, RL_ERROR_BYTES, "--%s takes no value.", table->name);
                return -1;
            }
            memcpy((char *)state + table->offset, &on, sizeof on);
            *at += 1;
            return 1;
        }
        if (!equals && *at + 1 >= count) {
            (void)snprintf(error, RL_ERROR_BYTES, "--%s needs a value after it.", table->name);
            return -1;
        }
        const char *text = equals ? equals + 1 : args[*at + 1];
        *at += equals ? 1 : 2;
        return value_store(table, text, state, error) ? 1 : -1;
    }
    return 0;
}
