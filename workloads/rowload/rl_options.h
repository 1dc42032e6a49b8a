/* SPDX-License-Identifier: MIT */
/*
 * Command line options of the workloads, as tables.
 *
 * A workload describes its options in an array of struct rl_option that points into its own state; the parser checks
 * kind and range and leaves one complete sentence in `error` when it refuses. Both `--name value` and `--name=value`
 * are understood. The trap is the unit of times: they are given in seconds with decimals and kept in nanoseconds.
 */
#ifndef RL_OPTIONS_H
#define RL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rl_option_kind {
    RL_OPT_COUNT,   /* uint64_t, decimal digits, within [min, max] */
    RL_OPT_SECONDS, /* uint64_t nanoseconds, given as 1.25 seconds, within [min, max] ns */
    RL_OPT_CHOICE,  /* uint32_t index into `choices` (NULL-terminated) */
    RL_OPT_TEXT,    /* const char *, borrowed from argv */
    RL_OPT_FLAG,    /* bool, takes no value */
};

struct rl_option {
    const char *name; /* without the dashes */
    enum rl_option_kind kind;
    size_t offset; /* of the value inside the state */
    uint64_t min;
    uint64_t max;
    const char *const *choices;
    const char *help; /* one line, for `rowload help` */
};

enum { RL_ERROR_BYTES = 256 };

/* Parses decimal digits only, all of `text`. False when empty, too large or followed by anything. */
bool rl_parse_count(const char *text, uint64_t *value);

/* Parses `12` or `0.25` (up to nine decimals) as billionths, all of `text`. False on anything else or overflow. */
bool rl_parse_billionths(const char *text, uint64_t *value);

/*
 * Takes the option at args[*at] if `table` (ended by a NULL name) has it, stores its value into `state` and moves *at
 * past it. Returns 1 when taken, 0 when the name is unknown, -1 when the value is bad (`error` says why).
 */
int rl_option_take(const struct rl_option *table, void *state, int count, char **args, int *at,
                   char error[RL_ERROR_BYTES]);

#endif
