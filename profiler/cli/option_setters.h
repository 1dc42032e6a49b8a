/* SPDX-License-Identifier: MIT */
/* Handlers that the tables of options.c, options_bench.c and compare_options.c have in common, and the makers of the plain ones: `static RP_OPTION_WORD(set_output,
 * output, …)` defines the handler set_output. `place` is where the value goes, below struct rp_settings. */
#ifndef RP_CLI_OPTION_SETTERS_H
#define RP_CLI_OPTION_SETTERS_H

#include <stddef.h>

#include "base/status.h"
#include "base/vec.h"
#include "cli/settings.h"

typedef enum rp_status rp_option_setter(struct rp_settings *settings, const char *value, struct rp_err *err);

rp_option_setter rp_set_thread, rp_set_min_samples, rp_set_no_kernel, rp_set_total, rp_set_force, rp_set_color;

/* The position of `value` among `n` words, some of which may be NULL; -1: it is none of them. */
int rp_option_word(const char *const *words, size_t n, const char *value);

/* A word that is kept as it is, but must not be empty. */
#define RP_OPTION_WORD(name, place, option, what)                                                                                                    \
    enum rp_status name(struct rp_settings *s, const char *value, struct rp_err *err)                                                                \
    {                                                                                                                                                \
        if (!*value)                                                                                                                                 \
            return rp_fail(err, RP_USAGE, option " takes " what ", not an empty word");                                                              \
        s->place = value;                                                                                                                            \
        return RP_OK;                                                                                                                                \
    }

/* The same of an option that may be given several times. */
#define RP_OPTION_LIST(name, place, option, what)                                                                                                    \
    enum rp_status name(struct rp_settings *s, const char *value, struct rp_err *err)                                                                \
    {                                                                                                                                                \
        const char **added;                                                                                                                          \
                                                                                                                                                     \
        if (!*value)                                                                                                                                 \
            return rp_fail(err, RP_USAGE, option " takes " what ", not an empty word");                                                              \
        added = rp_vec_add(&s->place);                                                                                                               \
        if (!added)                                                                                                                                  \
            return rp_fail_nomem(err);                                                                                                               \
        *added = value;                                                                                                                              \
        return RP_OK;                                                                                                                                \
    }

#define RP_OPTION_SWITCH(name, place, to)                                                                                                            \
    enum rp_status name(struct rp_settings *s, const char *value, struct rp_err *err)                                                                \
    {                                                                                                                                                \
        (void)value;                                                                                                                                 \
        (void)err;                                                                                                                                   \
        s->place = (to);                                                                                                                             \
        return RP_OK;                                                                                                                                \
    }

/* One of some words: `takes` is "--name takes a, b or c", then come the words, each at the position of the value it stands for. */
#define RP_OPTION_CHOICE(name, place, type, takes, ...)                                                                                              \
    enum rp_status name(struct rp_settings *s, const char *value, struct rp_err *err)                                                                \
    {                                                                                                                                                \
        static const char *const words[] = {__VA_ARGS__};                                                                                            \
        int i = rp_option_word(words, sizeof words / sizeof *words, value);                                                                          \
                                                                                                                                                     \
        if (i < 0)                                                                                                                                   \
            return rp_fail(err, RP_USAGE, takes ", not '%s'", value);                                                                                \
        s->place = (type)i;                                                                                                                          \
        return RP_OK;                                                                                                                                \
    }

#endif
