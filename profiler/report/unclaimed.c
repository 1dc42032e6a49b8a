/* SPDX-License-Identifier: MIT */
/* `rowprof report --uncategorized`. The text is itself a rule file: written to a file, `rules check` has nothing to say on it, and what one does not want is
 * deleted. The traps are names that mean something in a pattern or in YAML (`operator*`, a leading slash, quotes), and functions that one rule claims
 * together, `malloc` and `malloc@plt` say: a second rule for them could never win. */
#include "report/unclaimed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/limits.h"
#include "report/utf8.h"
#include "symbolize/symbolize.h"

enum { ROWS_MAX = 200, PATTERN_KEPT = RP_RULE_PATTERN_MAX - 16 };

/* One line of the file. */
struct rule {
    size_t pattern; /* in `text` of the list: key, value and space as they are written */
    uint32_t function; /* the heaviest of those that it would claim */
    size_t functions;
    uint64_t samples;
    uint32_t category; /* of the caller that has it now, when `inherited` */
    bool inherited, wild;
};

/* What the rules give. */
struct category {
    char id[32], name[48];
};

struct rule_list {
    RP_VEC(struct rule) at;
    struct rp_buf text;
    size_t shown, live; /* the first `shown` are printed, `live` of them as rules and not as comments */
};

static void put_star(struct rp_buf *out)
{
    const char *text = rp_buf_text(out);

    if (!out->length || text[out->length - 1] != '*' || (out->length > 1 && text[out->length - 2] == '\\'))
        rp_buf_putc(out, '*');
}

/* What may not be written becomes `*`, and so does the end of what is too long for a pattern. */
static void put_pattern(struct rp_buf *out, const char *name)
{
    struct rp_cursor c = rp_cursor_str(name);
    uint32_t code_point;

    if (*name == '/') { /* would begin a regular expression */
        rp_buf_putc(out, '?');
        c.at++;
    }
    while (!rp_cursor_done(&c)) {
        const char *start = c.at;

        if (out->length > PATTERN_KEPT) {
            put_star(out);
            return;
        }
        if (!rp_utf8_next(&c, &code_point) || rp_utf8_is_control(code_point)) {
            put_star(out);
            continue;
        }
        if (code_point == '*' || code_point == '?' || code_point == '\\')
            rp_buf_putc(out, '\\');
        rp_buf_append(out, start, (size_t)(c.at - start));
    }
}

const char *rp_unclaimed_pattern(const struct rp_report *report, uint32_t function, struct rp_buf *value)
{
    const struct rp_profile *p = report->profile;
    const struct rp_function *f = &p->functions.at[function];
    const char *raw = rp_profile_text(p, f->raw);
    struct rp_buf name = {0};

    if (f->how == RP_NAME_OFFSET) {
        put_pattern(value, rp_profile_text(p, f->module));
        return "module";
    }
    rp_demangle(*raw ? raw : rp_profile_text(p, f->name), true, &name);
    put_pattern(value, rp_buf_text(&name));
    value->failed |= name.failed;
    rp_buf_release(&name);
    return "symbol";
}

bool rp_unclaimed_in_kernel(const struct rp_report *report, uint32_t function)
{
    const struct rp_function *f = &report->profile->functions.at[function];

    return f->how == RP_NAME_KERNEL || !strcmp(rp_profile_text(report->profile, f->module), "[kernel]");
}

/* In single quotes YAML changes nothing but the quote itself. */
static void put_quoted(struct rp_buf *out, const char *text)
{
    if (!text[strcspn(text, "\\\"")]) {
        rp_buf_printf(out, "\"%s\"", text);
        return;
    }
    rp_buf_putc(out, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            rp_buf_putc(out, '\'');
        rp_buf_putc(out, *text);
    }
    rp_buf_putc(out, '\'');
}

void rp_unclaimed_rule(const struct rp_report *report, const uint32_t *functions, size_t n, struct rp_buf *out)
{
    struct rp_buf list = {0}, value = {0};
    const char *key = "symbol";
    size_t written = 0;

    for (size_t i = 0; i < n && !strcmp(key, "symbol"); i++) {
        rp_buf_clear(&value);
        key = rp_unclaimed_pattern(report, functions[i], &value);
        if (strcmp(key, "symbol") != 0) {
            rp_buf_clear(&list);
            written = 0;
        }
        rp_buf_puts(&list, written++ ? ", " : "");
        put_quoted(&list, rp_buf_text(&value));
    }
    rp_buf_printf(out, written > 1 ? "%s: [%s]" : "%s: %s", key, rp_buf_text(&list));
    out->failed |= list.failed | value.failed;
    rp_buf_release(&list);
    rp_buf_release(&value);
}

/* As it stands in the file, with its final NUL. */
static void put_rule_pattern(const struct rp_report *r, struct rule *rule, struct rp_buf *out)
{
    struct rp_buf value = {0};
    const char *key = rp_unclaimed_pattern(r, rule->function, &value);

    rule->pattern = out->length;
    rule->wild = strpbrk(rp_buf_text(&value), "*?") != NULL;
    rp_buf_printf(out, "%s: ", key);
    put_quoted(out, rp_buf_text(&value));
    rp_buf_puts(out, rp_unclaimed_in_kernel(r, rule->function) ? ", space: kernel" : "");
    rp_buf_putc(out, '\0');
    out->failed |= value.failed;
    rp_buf_release(&value);
}

static void put_rule(const struct rp_report *r, const struct rule_list *list, size_t number, const char *id, struct rp_buf *out)
{
    const struct rule *rule = &list->at.at[number - 1];
    const struct rp_profile *p = r->profile;
    bool unnamed = p->functions.at[rule->function].how == RP_NAME_OFFSET;

    rp_buf_printf(out, "  # %6" PRIu64 "  %5.1f %%  ", rule->samples, r->quality.samples ? 100 * (double)rule->samples / (double)r->quality.samples : 0);
    if (unnamed)
        rp_buf_puts(out, "code without names");
    else
        rp_text_symbol(out, rp_profile_text(p, p->functions.at[rule->function].name), 0, r->options.verbose);
    rp_buf_puts(out, " (in ");
    rp_text_fit(out, rp_profile_text(p, p->functions.at[rule->function].module), 0);
    rp_buf_puts(out, ")");
    if (!unnamed && rule->functions > 1)
        rp_buf_printf(out, " and %zu more of this name", rule->functions - 1);
    if (rule->inherited) {
        rp_buf_puts(out, ", now in ");
        rp_text_fit(out, cat_rules_category(r->rules, rule->category)->name, 0);
        rp_buf_puts(out, " through its caller");
    }
    rp_buf_printf(out, "\n  %s- {id: %s-%zu, category: %s, %s}\n", rule->inherited ? "# " : "", id, number, id, rp_buf_text(&list->text) + rule->pattern);
}

struct key {
    const struct rule_list *list;
    const struct rule *rule;
};

static bool same_rule(const void *context, uint32_t position)
{
    const struct key *key = context;
    const struct rule *a = &key->list->at.at[position], *b = key->rule;
    const char *text = rp_buf_text(&key->list->text);

    return a->inherited == b->inherited && (!a->inherited || a->category == b->category) && !strcmp(text + a->pattern, text + b->pattern);
}

/* Those that stand uncommented first. Among them wide patterns last: before a narrow one that they cover they would leave it nothing. */
static int in_order(const void *a, const void *b)
{
    const struct rule *x = a, *y = b;

    if (x->inherited != y->inherited)
        return x->inherited ? 1 : -1;
    if (!x->inherited && x->wild != y->wild)
        return x->wild ? 1 : -1;
    if (x->samples != y->samples)
        return x->samples < y->samples ? 1 : -1;
    return x->function < y->function ? -1 : x->function > y->function;
}

/* Functions that one rule claims become one line with the samples of all. False: no memory. */
static bool gather(const struct rp_report *r, struct rule_list *list)
{
    struct rp_index index = {0};
    bool ok = true;

    for (size_t i = 0; ok && i < r->unclaimed.rows.n; i++) {
        const struct rp_unclaimed *row = &r->unclaimed.rows.at[i];
        struct rule rule = {.function = row->function, .functions = 1, .samples = row->samples, .category = row->category, .inherited = row->inherited};
        struct key key = {list, &rule};
        uint32_t hash, *slot;
        struct rule *added;

        put_rule_pattern(r, &rule, &list->text);
        ok = !list->text.failed;
        hash = rp_hash_bytes(rp_buf_text(&list->text) + rule.pattern, list->text.length - rule.pattern);
        slot = ok ? rp_index_find(&index, hash, same_rule, &key) : NULL;
        if (slot && *slot != RP_INDEX_EMPTY) {
            list->at.at[*slot].samples += row->samples;
            list->at.at[*slot].functions++;
            continue;
        }
        added = slot ? rp_vec_add(&list->at) : NULL;
        ok = added != NULL;
        if (added) {
            *added = rule;
            rp_index_set(&index, slot, hash, (uint32_t)list->at.n - 1);
        }
    }
    rp_index_release(&index);
    return ok;
}

static void choose(const struct rp_report *r, struct rule_list *list)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->at.n; i++)
        if (list->at.at[i].samples >= r->options.min_samples)
            list->at.at[kept++] = list->at.at[i];
    list->at.n = kept;
    if (kept)
        qsort(list->at.at, kept, sizeof *list->at.at, in_order);
    list->shown = kept < ROWS_MAX ? kept : ROWS_MAX;
    for (size_t i = 0; i < list->shown; i++)
        list->live += !list->at.at[i].inherited;
}

static void put_how_much(const struct rp_report *r, struct rp_buf *out)
{
    const struct rp_category_row *row = rp_report_row(r, cat_rules_uncategorized(r->rules));

    if (!row || !row->samples) {
        rp_buf_puts(out, "# Nothing is uncategorized: ");
        rp_buf_puts(out, r->categories.samples ? "a rule claims each of " : "there are ");
        rp_text_count(out, r->categories.samples);
        rp_buf_puts(out, r->categories.samples == 1 ? " sample" : " samples");
        return;
    }
    rp_buf_puts(out, "# No rule claims ");
    rp_text_count(out, row->samples);
    rp_buf_puts(out, " of ");
    rp_text_count(out, r->categories.samples);
    rp_buf_printf(out, " samples (%.1f %%)", 100 * row->share);
    if (r->categories.uncategorized_truncated) {
        rp_buf_puts(out, ", ");
        rp_text_count(out, r->categories.uncategorized_truncated);
        rp_buf_puts(out, " of them because their stack was cut");
    }
}

/* A category that no rule gives is a finding of `rules check`: where every rule is a comment, so is the category. */
static void put_head(const struct rp_report *r, const struct rule_list *list, const struct category *mine, struct rp_buf *out)
{
    const char *comment = list->live ? "" : "# ";

    put_how_much(r, out);
    if (!list->shown) {
        rp_buf_puts(out, ".\n");
        if (r->unclaimed.rows.n)
            rp_buf_printf(out, "# No function of them has %" PRIu64 " samples (--min-samples).\n", r->options.min_samples);
        return;
    }
    rp_buf_puts(out, ". This is a rule file: keep the rules you want, name the category,\n"
                     "# and read the profile with it: rowprof report --rules mine.yaml ");
    rp_text_fit(out, r->options.file ? r->options.file : "FILE", 0);
    rp_buf_printf(out, "\n%scategories:\n%s  - {id: %s, name: \"%s\", kind: cost, color: orange}\n%srules:\n", comment, comment, mine->id, mine->name,
                  comment);
}

/* "mine" and "my own work", as long as no other file of rules has them: else mine2, mine3, … */
static void choose_id(const struct cat_rules *rules, struct category *mine)
{
    snprintf(mine->id, sizeof mine->id, "mine");
    snprintf(mine->name, sizeof mine->name, "my own work");
    for (size_t n = 2; cat_rules_find_category(rules, mine->id) != UINT32_MAX || cat_rules_find_category(rules, mine->name) != UINT32_MAX; n++) {
        snprintf(mine->id, sizeof mine->id, "mine%zu", n);
        snprintf(mine->name, sizeof mine->name, "my own work, %zu", n);
    }
}

void rp_unclaimed_text(const struct rp_report *r, struct rp_buf *out)
{
    struct rule_list list = {0};
    struct category mine;

    choose_id(r->rules, &mine);
    if (gather(r, &list))
        choose(r, &list);
    else
        out->failed = true;
    put_head(r, &list, &mine, out);
    for (size_t i = 0; i < list.shown; i++)
        put_rule(r, &list, i + 1, mine.id, out);
    if (list.shown < list.at.n)
        rp_buf_printf(out, "  # and %zu more\n", list.at.n - list.shown);
    if (!list.live)
        rp_buf_puts(out, "rules: []\n");
    rp_vec_release(&list.at);
    rp_buf_release(&list.text);
}
