/* SPDX-License-Identifier: MIT */
/* See json_parts.h. */
#include "report/json_parts.h"

void rp_json_key_category(struct rp_json *w, const char *key, const struct rp_report *report, uint32_t category)
{
    rp_json_key_string(w, key, cat_rules_category(report->rules, category)->id);
}

void rp_json_interval(struct rp_json *w, double share, double low, double high)
{
    rp_json_key_double(w, "share", share, RP_JSON_SHARE_DIGITS);
    rp_json_key_double(w, "low", low, RP_JSON_SHARE_DIGITS);
    rp_json_key_double(w, "high", high, RP_JSON_SHARE_DIGITS);
}

void rp_json_notes(struct rp_json *w, const struct rp_note *notes, size_t n)
{
    rp_json_key(w, "notes");
    rp_json_begin(w, '[');
    for (size_t i = 0; i < n; i++) {
        rp_json_begin_inline(w, '{');
        rp_json_key_string(w, "id", notes[i].id);
        rp_json_key_string(w, "text", notes[i].text);
        rp_json_end(w);
    }
    rp_json_end(w);
}
