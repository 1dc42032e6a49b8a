/* SPDX-License-Identifier: MIT */
/* See rate_line.h. */
#include "base/rate_line.h"

#include <stdio.h>
#include <string.h>

#include "base/parse.h"

struct key {
    const char *name;
    size_t at;
};

static const struct key keys[] = {
    {"calls", offsetof(struct rp_rate_line, calls)},
    {"rows", offsetof(struct rp_rate_line, rows)},
    {"secs", offsetof(struct rp_rate_line, secs)},
    {"cpu_secs", offsetof(struct rp_rate_line, cpu_secs)},
    {"thread_cpu_secs", offsetof(struct rp_rate_line, thread_cpu_secs)},
};

static bool is(const char *word, size_t length, const char *name)
{
    return length == strlen(name) && memcmp(word, name, length) == 0;
}

/* False: a word that is asked for and no number. */
static bool take_word(const char *name, size_t name_length, const char *value, size_t value_length, struct rp_rate_line *rate)
{
    char text[64];
    double number = 0;
    bool good = value_length < sizeof text;

    if (good) {
        snprintf(text, sizeof text, "%.*s", (int)value_length, value);
        good = rp_parse_double(text, 0, 1e15, &number);
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (is(name, name_length, keys[i].name)) {
            memcpy((char *)rate + keys[i].at, &number, sizeof number);
            return good;
        }
    }
    if (is(name, name_length, "nvcsw") || is(name, name_length, "nivcsw")) {
        *(name[1] == 'v' ? &rate->nvcsw : &rate->nivcsw) = (uint64_t)number;
        rate->has_switches |= name[1] == 'v';
        return good;
    }
    return true;
}

bool rp_rate_line_parse(const char *line, size_t length, struct rp_rate_line *rate)
{
    struct rp_cursor c = rp_cursor_of(line, length);

    *rate = (struct rp_rate_line){0};
    if (!rp_cursor_take(&c, "RATE "))
        return false;
    while (!rp_cursor_done(&c)) {
        const char *word, *equals;
        size_t bytes;

        rp_cursor_skip_blanks(&c);
        rp_cursor_until(&c, ' ', &word, &bytes);
        equals = bytes ? memchr(word, '=', bytes) : NULL;
        if (equals && !take_word(word, (size_t)(equals - word), equals + 1, bytes - (size_t)(equals + 1 - word), rate))
            return false;
    }
    return rate->calls > 0 && (rate->secs > 0 || rate->cpu_secs > 0 || rate->thread_cpu_secs > 0);
}
