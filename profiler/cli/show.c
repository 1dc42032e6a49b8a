/* SPDX-License-Identifier: MIT */
/* See show.h. Rules and names are checked before anything is recorded, so that a typing error costs no recording. */
#include "cli/show.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

#include "cli/command.h"
#include "base/parse.h"
#include "cli/terminal.h"
#include "report/emit.h"

enum { NEAR_MAX = 4, LISTED_MAX = 160 };

static enum rp_status tell_problems(const struct rp_buf *problems, enum rp_status status, struct rp_err *err)
{
    const char *line, *text = rp_buf_text(problems);
    struct rp_cursor c = rp_cursor_str(text);
    size_t length, n = 0;

    while (rp_cursor_line(&c, &line, &length)) {
        rp_message("%.*s", (int)length, line);
        n++;
    }
    return n ? rp_fail(err, status, "the rules have %zu error%s; nothing was done", n, n == 1 ? "" : "s") : status;
}

enum rp_status rp_rules_open(const struct rp_settings *settings, struct cat_rules **out, struct rp_err *err)
{
    struct cat_rules *rules = NULL;
    struct rp_buf problems = {0};
    enum rp_status status = cat_rules_new(&rules, err), first = RP_OK;
    struct rp_err more;

    /* A bad file does not keep the others from being read: all errors are told at once. */
    for (size_t i = 0; !status && i < settings->rules.n; i++) {
        enum rp_status one = cat_rules_add_path(rules, settings->rules.at[i], &problems, err);

        if (one && one != RP_USAGE)
            status = one;
        first = first ? first : one;
    }
    if (!status && !settings->no_default_rules)
        status = cat_rules_add_shipped(rules, &problems, err);
    if (!status && !first)
        status = cat_rules_finish(rules, &problems, err);
    else if ((status ? status : first) == RP_USAGE && cat_rules_tell_unknown(rules, &problems, &more))
        status = rp_fail(err, more.status, "%s", more.text);
    status = status ? status : first;
    if (status) {
        status = problems.length ? tell_problems(&problems, status, err) : status;
        cat_rules_free(rules);
        rules = NULL;
    }
    rp_buf_release(&problems);
    *out = rules;
    return status;
}

/* 4: all of it, 3: all of it but for case, 2: a beginning, 1: a part, 0: not. */
static int fits(const char *typed, const char *name)
{
    if (!strcmp(typed, name))
        return 4;
    if (!strcasecmp(typed, name))
        return 3;
    if (!strncasecmp(typed, name, strlen(typed)))
        return 2;
    return strcasestr(name, typed) != NULL;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* How far a mistyped word is from a category: from its id, the last part of that, or its name. */
static int category_distance(const char *typed, const struct cat_category *c)
{
    const char *dot = strrchr(c->id, '.');
    int distance = smaller(rp_word_distance(typed, c->id), rp_word_distance(typed, c->name));

    return dot ? smaller(distance, rp_word_distance(typed, dot + 1)) : distance;
}

/* The ids near what was typed, within a third of its letters, nearest first, equals as the rules have them; not what is much farther than the first. */
static void put_near(const struct cat_rules *rules, const char *typed, struct rp_buf *list)
{
    int last = -1, nearest = INT_MAX;
    uint32_t last_at = 0;

    for (int n = 0; n < NEAR_MAX; n++) {
        int best = INT_MAX;
        uint32_t best_at = 0;

        for (uint32_t i = 0; i < cat_rules_ncategories(rules); i++) {
            const struct cat_category *c = cat_rules_category(rules, i);
            int distance = c->kind == CAT_IDLE ? INT_MAX : category_distance(typed, c);

            if (distance < best && (distance > last || (distance == last && i > last_at))) {
                best = distance;
                best_at = i;
            }
        }
        nearest = n ? nearest : best;
        if (best == INT_MAX || best > nearest + 1 || best > smaller((int)strlen(typed) / 3 + 1, 4))
            return;
        rp_buf_printf(list, "%s%s", n ? ", " : "nearest are ", cat_rules_category(rules, best_at)->id);
        last = best;
        last_at = best_at;
    }
}

/* Where nothing is near, all ids, if that is a sentence one can read. */
static void put_all(const struct cat_rules *rules, struct rp_buf *list)
{
    for (uint32_t i = 0; i < cat_rules_ncategories(rules); i++) {
        const struct cat_category *c = cat_rules_category(rules, i);

        if (c->kind != CAT_IDLE)
            rp_buf_printf(list, "%s%s", list->length ? ", " : "there are ", c->id);
    }
    if (list->length > LISTED_MAX) {
        rp_buf_clear(list);
        rp_buf_puts(list, "none has a name like that");
    }
}

static enum rp_status fail_category(const struct cat_rules *rules, const char *name, int wanted, struct rp_err *err)
{
    struct rp_buf list = {0};
    enum rp_status status;

    for (uint32_t i = 0; wanted && i < cat_rules_ncategories(rules); i++) {
        const struct cat_category *c = cat_rules_category(rules, i);

        if (fits(name, c->id) >= wanted || fits(name, c->name) >= wanted)
            rp_buf_printf(&list, "%s%s", list.length ? ", " : "", c->id);
    }
    if (!wanted)
        put_near(rules, name, &list);
    if (!list.length)
        put_all(rules, &list);
    status = rp_fail(err, RP_USAGE,
                     wanted ? "--category %s fits several categories; give the id of one: %s" : "there is no category %s; %s; `rowprof help categories` lists the shipped ones",
                     name, rp_buf_text(&list));
    rp_buf_release(&list);
    return status;
}

enum rp_status rp_category_find(const struct cat_rules *rules, const char *name, uint32_t *category, struct rp_err *err)
{
    int best = 0;
    size_t equals = 0;

    for (uint32_t i = 0; i < cat_rules_ncategories(rules); i++) {
        const struct cat_category *c = cat_rules_category(rules, i);
        int fit = fits(name, c->id) > fits(name, c->name) ? fits(name, c->id) : fits(name, c->name);

        equals = fit > best ? 1 : equals + (fit && fit == best);
        if (fit > best) {
            best = fit;
            *category = i;
        }
    }
    if (equals == 1)
        return RP_OK;
    return fail_category(rules, name, best, err);
}

enum rp_status rp_show_check(const struct rp_settings *s, const struct cat_rules *rules, struct rp_err *err)
{
    uint32_t category;

    if (s->category && s->tree == RP_TREE_NONE)
        return rp_fail(err, RP_USAGE, "--category shows the tree of one category and --no-tree shows none; leave one of them out");
    if (s->category && s->by != RP_BY_CATEGORY)
        return rp_fail(err, RP_USAGE, "--category goes with rows by category; leave --by out");
    if (s->function && (s->category || s->by != RP_BY_CATEGORY))
        return rp_fail(err, RP_USAGE, "--function shows one function; leave %s out", s->category ? "--category" : "--by");
    if (s->clock == RP_REPORT_WALL && s->by != RP_BY_CATEGORY && s->by < RP_BY_WAIT)
        return rp_fail(err, RP_USAGE, "--clock wall goes with rows by category; leave --by out");
    if (s->clock == RP_REPORT_WALL && s->format == &rp_emit_csv)
        return rp_fail(err, RP_USAGE, "--clock wall goes with text and JSON; --by wait --format csv tells shares of wall time");
    if (s->no_waiting && (s->locks || s->idle || s->clock == RP_REPORT_WALL || s->by >= RP_BY_WAIT))
        return rp_fail(err, RP_USAGE, "--no-waiting leaves out what %s would show; leave one of them out",
                       s->locks                      ? "--locks"
                       : s->idle                     ? "--idle"
                       : s->clock == RP_REPORT_WALL ? "--clock wall"
                                                     : "--by");
    return s->category ? rp_category_find(rules, s->category, &category, err) : RP_OK;
}

static void fill_options(const struct rp_settings *s, const char *file, struct rp_report_options *o)
{
    *o = (struct rp_report_options){
        .by = s->by,
        .tree = s->tree,
        .category = RP_ALL_CATEGORIES,
        .min_samples = s->min_samples,
        .callers = s->callers,
        .full_stacks = s->full_stacks,
        .by_self = s->by_self,
        .total = s->total,
        .unclaimed = s->uncategorized,
        .clock = s->clock,
        .no_waiting = s->no_waiting,
        .keep_idle = s->idle,
        .locks = s->locks,
        .function = s->function,
        .verbose = s->verbose,
        .color = rp_wants_color(s),
        .width = rp_wants_width(s),
        .thread = s->thread,
        .file = file,
    };
}

/* Why the report is empty. */
static enum rp_status nothing_kept(const struct rp_report *report, struct rp_err *err)
{
    const char *file = report->options.file ? report->options.file : "the recording";

    if (report->waits && report->waits->idle.n)
        return rp_fail(err, RP_NOTHING,
                       "%s holds no samples: no thread of the target ran on a CPU while it was recorded, and all waiting was idling (--idle shows it)", file);
    return rp_fail(err, RP_NOTHING, "%s holds no samples: no thread of the target ran on a CPU while it was recorded", file);
}

/* View and report of a profile; the caller releases both. */
static enum rp_status make_report(const struct rp_settings *settings, const struct cat_rules *rules, const struct rp_profile *profile,
                                  const struct rp_report_options *options, struct rp_view **view, struct rp_report *report, struct rp_err *err)
{
    struct rp_filter filter = {settings->thread, settings->no_kernel};
    enum rp_status status = rp_view_new(profile, rules, &filter, view, err);

    return status ? status : rp_report_make(*view, options, settings->format, report, err);
}

enum rp_status rp_show(const struct rp_settings *settings, const struct cat_rules *rules, const struct rp_profile *profile, const char *file,
                       struct rp_err *err)
{
    struct rp_report_options options;
    struct rp_report report = {0};
    struct rp_view *view = NULL;
    struct rp_buf out = {0};
    enum rp_status status;

    fill_options(settings, file, &options);
    status = settings->category ? rp_category_find(rules, settings->category, &options.category, err) : RP_OK;
    if (!status)
        status = make_report(settings, rules, profile, &options, &view, &report, err);
    if (!status)
        status = rp_report_write(&report, &out, err);
    if (!status)
        status = rp_print(&out, err);
    if (!status && !rp_report_has_any(&report))
        status = nothing_kept(&report, err);
    rp_buf_release(&out);
    rp_report_release(&report);
    rp_view_free(view);
    return status;
}

enum rp_status rp_show_any(const struct cat_rules *rules, const struct rp_profile *profile, const char *file, struct rp_err *err)
{
    struct rp_settings plain;
    struct rp_report_options options;
    struct rp_report report = {0};
    struct rp_view *view = NULL;
    enum rp_status status;

    rp_settings_init(&plain);
    plain.format = &rp_emit_csv; /* neither trees nor notes */
    fill_options(&plain, file, &options);
    status = make_report(&plain, rules, profile, &options, &view, &report, err);
    if (!status && !rp_report_has_any(&report))
        status = nothing_kept(&report, err);
    rp_report_release(&report);
    rp_view_free(view);
    rp_settings_release(&plain);
    return status;
}
