/* SPDX-License-Identifier: MIT */
/* See said.h. The trap is a line that covers time before the first sample (the line that is printed right after READY, the last one over the whole
 * run): its calls would be set against samples of another time. */
#include "cli/said.h"

#include <string.h>

#include "base/limits.h"
#include "base/parse.h"
#include "base/rate_line.h"

/* The next word of a line as name=value; false at its end. A word without `=` has an empty name. */
static bool next_word(struct rp_cursor *c, struct rp_cursor *name, struct rp_cursor *value)
{
    const char *word, *equals;
    size_t length;

    rp_cursor_skip_blanks(c);
    rp_cursor_until(c, ' ', &word, &length);
    equals = length ? memchr(word, '=', length) : NULL;
    *name = rp_cursor_of(word, equals ? (size_t)(equals - word) : 0);
    *value = equals ? rp_cursor_of(equals + 1, length - (size_t)(equals + 1 - word)) : rp_cursor_of(word, length);
    return length > 0;
}

bool rp_rate_parse(const char *line, struct rp_profile_rate *rate)
{
    struct rp_rate_line said;

    if (!rp_rate_line_parse(line, strlen(line), &said) || !(said.secs > 0) || !(said.cpu_secs > 0) || said.secs > 1e6 || said.cpu_secs > 1e6)
        return false;
    *rate = (struct rp_profile_rate){.wall_ns = (uint64_t)(said.secs * 1e9 + 0.5),
                                     .calls = (uint64_t)(said.calls + 0.5),
                                     .rows = (uint64_t)(said.rows + 0.5),
                                     .cpu_ns = (uint64_t)(said.cpu_secs * 1e9 + 0.5)};
    return true;
}

static enum rp_status keep_facts(const char *line, struct rp_profile *p, struct rp_err *err)
{
    struct rp_cursor c = rp_cursor_str(line), name, value;
    enum rp_status status = RP_OK;

    while (status == RP_OK && p->facts.n < RP_FACTS_MAX && next_word(&c, &name, &value)) {
        struct rp_fact fact = {0}, *added;

        if (name.end == name.at)
            continue;
        status = rp_profile_string(p, name.at, (size_t)(name.end - name.at), &fact.name, err);
        if (status == RP_OK)
            status = rp_profile_string(p, value.at, (size_t)(value.end - value.at), &fact.value, err);
        added = status ? NULL : rp_vec_add(&p->facts);
        if (added)
            *added = fact;
        else
            status = status ? status : rp_fail_nomem(err);
    }
    return status;
}

enum rp_status rp_said_keep(const struct rp_said *said, size_t n, uint64_t start_ns, uint64_t end_ns, struct rp_profile *profile, struct rp_err *err)
{
    enum rp_status status = n ? keep_facts(said[0].text, profile, err) : RP_OK;

    for (size_t i = 1; i < n && status == RP_OK && profile->rates.n < RP_RATES_MAX; i++) {
        struct rp_profile_rate rate, *added;

        if (!rp_rate_parse(said[i].text, &rate) || said[i].at_ns > end_ns || said[i].at_ns < start_ns + rate.wall_ns)
            continue;
        rate.end_ns = said[i].at_ns - start_ns;
        added = rp_vec_add(&profile->rates);
        if (added)
            *added = rate;
        else
            status = rp_fail_nomem(err);
    }
    return status;
}
