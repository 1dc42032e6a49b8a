/* SPDX-License-Identifier: MIT */
/* See option_setters.h. */
#include "cli/option_setters.h"

#include <string.h>

#include "base/parse.h"

int rp_option_word(const char *const *words, size_t n, const char *value)
{
    for (size_t i = 0; i < n; i++)
        if (words[i] && !strcmp(value, words[i]))
            return (int)i;
    return -1;
}

RP_OPTION_WORD(rp_set_thread, thread, "--thread", "the name or id of a thread")
RP_OPTION_SWITCH(rp_set_no_kernel, no_kernel, true)
RP_OPTION_SWITCH(rp_set_force, force, true)
RP_OPTION_CHOICE(rp_set_color, color, enum rp_color_wish, "--color takes auto, always or never", [RP_COLOR_AUTO] = "auto", [RP_COLOR_ALWAYS] = "always",
                 [RP_COLOR_NEVER] = "never")

enum rp_status rp_set_min_samples(struct rp_settings *s, const char *value, struct rp_err *err)
{
    if (!rp_parse_u64(value, 1, UINT32_MAX, &s->min_samples))
        return rp_fail(err, RP_USAGE, "--min-samples takes a whole number from 1 on, not '%s'", value);
    return RP_OK;
}

enum rp_status rp_set_total(struct rp_settings *s, const char *value, struct rp_err *err)
{
    (void)value;
    (void)err;
    s->by_self = false;
    s->total = true;
    return RP_OK;
}
