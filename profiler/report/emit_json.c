/* SPDX-License-Identifier: MIT */
/* The report for programs. Keys, types and units are in README.md and do not change within a schema number; keys may be added. Trees are flat, in
 * pre-order with a depth, because readers of JSON recurse: the stack of a deep recursion nested as JSON is refused by most of them. */
#include <string.h>

#include "report/emit.h"
#include "report/json_writer.h"
#include "report/unclaimed.h"

enum { SCHEMA = 1, SHARE_DIGITS = 6, SECONDS_DIGITS = 6 };

static const char *const kinds[] = {[CAT_COST] = "cost", [CAT_WAIT] = "wait", [CAT_IDLE] = "idle"};

static const char *text(const struct rp_report *r, uint32_t string)
{
    return rp_profile_text(r->profile, string);
}

static void targets(const struct rp_report *r, struct rp_json *w)
{
    const struct rp_profile *p = r->profile;

    rp_json_key(w, "targets");
    rp_json_begin(w, '[');
    for (uint32_t i = 0; i < p->processes.n; i++) {
        const struct rp_profile_process *process = &p->processes.at[i];
        uint64_t threads = 0;

        if (!rp_report_lists(r, i))
            continue;
        for (size_t k = 0; k < p->threads.n; k++)
            threads += p->threads.at[k].process == i;
        rp_json_begin_inline(w, '{');
        rp_json_key_u64(w, "pid", process->pid);
        rp_json_key_string(w, "command", text(r, process->command ? process->command : process->comm));
        rp_json_key_u64(w, "threads", threads);
        rp_json_end(w);
    }
    rp_json_end(w);
}

static void run_and_quality(const struct rp_report *r, struct rp_json *w)
{
    const struct rp_quality *q = &r->quality;

    rp_json_key(w, "run");
    rp_json_begin_inline(w, '{');
    rp_json_key_double(w, "seconds", (double)r->profile->run.seconds_ns / 1e9, SECONDS_DIGITS);
    rp_json_key_u64(w, "hz", r->profile->run.hz);
    rp_json_key_string(w, "clock", text(r, r->profile->run.source));
    rp_json_end(w);
    rp_json_key(w, "quality");
    rp_json_begin_inline(w, '{');
    rp_json_key_u64(w, "samples", q->samples);
    rp_json_key_u64(w, "lost", q->lost);
    rp_json_key_u64(w, "throttled", q->throttled);
    rp_json_key_u64(w, "complete", q->complete);
    rp_json_key_u64(w, "truncated", q->truncated);
    rp_json_key_u64(w, "guessed", q->guessed);
    rp_json_key_u64(w, "unnamed", q->unnamed);
    rp_json_end(w);
    rp_json_key(w, "idle");
    rp_json_begin_inline(w, '{');
    rp_json_key_u64(w, "threads", q->idle_threads);
    rp_json_key_double(w, "seconds", q->idle_seconds, SECONDS_DIGITS);
    rp_json_end(w);
}

static void category_id(const struct rp_report *r, struct rp_json *w, const char *key, uint32_t category)
{
    rp_json_key_string(w, key, cat_rules_category(r->rules, category)->id);
}

static void interval(struct rp_json *w, double share, double low, double high)
{
    rp_json_key_double(w, "share", share, SHARE_DIGITS);
    rp_json_key_double(w, "low", low, SHARE_DIGITS);
    rp_json_key_double(w, "high", high, SHARE_DIGITS);
}

static void categories(const struct rp_report *r, struct rp_json *w)
{
    rp_json_key(w, "categories");
    rp_json_begin(w, '[');
    for (size_t i = 0; i < r->categories.rows.n; i++) {
        const struct rp_category_row *row = &r->categories.rows.at[i];
        const struct cat_category *category = cat_rules_category(r->rules, row->category);

        rp_json_begin_inline(w, '{');
        rp_json_key_string(w, "id", category->id);
        rp_json_key_string(w, "name", category->name);
        rp_json_key_string(w, "kind", kinds[category->kind]);
        rp_json_key_u64(w, "samples", row->samples);
        interval(w, row->share, row->low, row->high);
        rp_json_key_u64(w, "total", row->total);
        rp_json_key_u64(w, "inherited", row->inherited);
        rp_json_key(w, "paid_by");
        rp_json_begin(w, '[');
        for (size_t k = 0; k < row->payers.n; k++) {
            rp_json_begin(w, '{');
            category_id(r, w, "id", row->payers.at[k].category);
            rp_json_key_u64(w, "samples", row->payers.at[k].samples);
            rp_json_end(w);
        }
        rp_json_end(w);
        rp_json_end(w);
    }
    rp_json_end(w);
}

static void function_name(const struct rp_report *r, struct rp_json *w, uint32_t function)
{
    rp_json_key_string(w, "symbol", text(r, r->profile->functions.at[function].name));
    rp_json_key_string(w, "module", text(r, r->profile->functions.at[function].module));
}

static void functions(const struct rp_report *r, struct rp_json *w)
{
    rp_json_key(w, "functions");
    rp_json_begin(w, '[');
    for (size_t i = 0; i < r->functions.rows.n; i++) {
        const struct rp_group_row *row = &r->functions.rows.at[i];

        rp_json_begin_inline(w, '{');
        function_name(r, w, row->key);
        rp_json_key_u64(w, "self", row->self);
        rp_json_key_u64(w, "total", row->total);
        rp_json_end(w);
    }
    rp_json_end(w);
}

static void process_groups(const struct rp_report *r, struct rp_json *w)
{
    const struct rp_profile *p = r->profile;

    rp_json_key(w, "processes");
    rp_json_begin(w, '[');
    for (size_t i = 0; i < r->groups.rows.n; i++) {
        const struct rp_group_row *row = &r->groups.rows.at[i];

        rp_json_begin_inline(w, '{');
        rp_json_key_u64(w, "pid", p->processes.at[row->key].pid);
        rp_json_key_u64(w, "generation", p->processes.at[row->key].generation);
        rp_json_key_string(w, "command", text(r, p->processes.at[row->key].command));
        rp_json_key_u64(w, "self", row->self);
        interval(w, row->share, row->low, row->high);
        rp_json_end(w);
    }
    rp_json_end(w);
}

/* `--by module|thread|process`: a list more. */
static void groups(const struct rp_report *r, struct rp_json *w)
{
    const struct rp_profile *p = r->profile;
    bool threads = r->options.by == RP_BY_THREAD;

    if (r->options.by == RP_BY_PROCESS)
        process_groups(r, w);
    if (!threads && r->options.by != RP_BY_MODULE)
        return;
    rp_json_key(w, threads ? "threads" : "modules");
    rp_json_begin(w, '[');
    for (size_t i = 0; i < r->groups.rows.n; i++) {
        const struct rp_group_row *row = &r->groups.rows.at[i];

        rp_json_begin_inline(w, '{');
        if (threads) {
            rp_json_key_u64(w, "pid", p->processes.at[p->threads.at[row->key].process].pid);
            rp_json_key_u64(w, "tid", p->threads.at[row->key].tid);
        }
        rp_json_key_string(w, threads ? "name" : "module", text(r, threads ? p->threads.at[row->key].comm : row->key));
        rp_json_key_u64(w, "self", row->self);
        rp_json_key_u64(w, "total", row->total);
        interval(w, row->share, row->low, row->high);
        rp_json_end(w);
    }
    rp_json_end(w);
}

static void node(const struct rp_report *r, struct rp_json *w, const struct rp_calltree_node *n)
{
    rp_json_begin_inline(w, '{');
    rp_json_key_u64(w, "depth", n->depth);
    function_name(r, w, n->function);
    rp_json_key_u64(w, "samples", n->samples);
    rp_json_key_u64(w, "self", n->self);
    if (n->has_offset)
        rp_json_key_u64(w, "offset", n->offset);
    if (n->line) {
        rp_json_key_string(w, "file", text(r, n->file));
        rp_json_key_u64(w, "line", n->line);
    }
    rp_json_end(w);
}

static void tree(const struct rp_report *r, struct rp_json *w, const struct rp_report_tree *t)
{
    uint32_t at = t->tree.first_top;

    rp_json_begin(w, '{');
    if (t->category == RP_ALL_CATEGORIES) {
        rp_json_key(w, "category");
        rp_json_null(w);
    } else {
        category_id(r, w, "category", t->category);
    }
    rp_json_key_u64(w, "samples", t->tree.samples);
    rp_json_key_u64(w, "min_samples", t->min_samples);
    rp_json_key(w, "nodes");
    rp_json_begin(w, '[');
    while (at != UINT32_MAX) {
        const struct rp_calltree_node *n = &t->tree.nodes.at[at];

        node(r, w, n);
        at = n->first_child;
        while (at == UINT32_MAX && n) {
            at = n->next_sibling;
            n = n->parent == UINT32_MAX ? NULL : &t->tree.nodes.at[n->parent];
        }
    }
    rp_json_end(w);
    rp_json_end(w);
}

static void trees_and_notes(const struct rp_report *r, struct rp_json *w)
{
    rp_json_key(w, "tree");
    rp_json_begin(w, '[');
    for (size_t i = 0; i < r->trees.n; i++)
        tree(r, w, &r->trees.at[i]);
    rp_json_end(w);
    rp_json_key(w, "notes");
    rp_json_begin(w, '[');
    for (size_t i = 0; i < r->notes.n; i++) {
        rp_json_begin_inline(w, '{');
        rp_json_key_string(w, "id", r->notes.at[i].id);
        rp_json_key_string(w, "text", r->notes.at[i].text);
        rp_json_end(w);
    }
    rp_json_end(w);
}

static void emit(const struct rp_report *r, struct rp_buf *out)
{
    struct rp_json w = {.out = out};

    rp_json_begin(&w, '{');
    rp_json_key_u64(&w, "schema", SCHEMA);
    targets(r, &w);
    run_and_quality(r, &w);
    categories(r, &w);
    functions(r, &w);
    groups(r, &w);
    trees_and_notes(r, &w);
    rp_json_end(&w);
}

static void unclaimed(const struct rp_report *r, struct rp_buf *out)
{
    struct rp_json w = {.out = out};

    rp_json_begin(&w, '{');
    rp_json_key_u64(&w, "schema", SCHEMA);
    rp_json_key_u64(&w, "samples", r->categories.samples);
    rp_json_key(&w, "unclaimed");
    rp_json_begin(&w, '[');
    for (size_t i = 0; i < r->unclaimed.rows.n; i++) {
        const struct rp_unclaimed *row = &r->unclaimed.rows.at[i];
        struct rp_buf value = {0};
        const char *key = rp_unclaimed_pattern(r, row->function, &value);

        rp_json_begin_inline(&w, '{');
        function_name(r, &w, row->function);
        rp_json_key_u64(&w, "samples", row->samples);
        rp_json_key(&w, "inherited_from");
        if (row->inherited)
            rp_json_string(&w, cat_rules_category(r->rules, row->category)->id);
        else
            rp_json_null(&w);
        rp_json_key(&w, "rule");
        rp_json_begin(&w, '{');
        rp_json_key_string(&w, key, rp_buf_text(&value));
        rp_json_end(&w);
        rp_json_end(&w);
        out->failed |= value.failed;
        rp_buf_release(&value);
    }
    rp_json_end(&w);
    rp_json_end(&w);
}

const struct rp_emit_ops rp_emit_json = {
    .name = "json",
    .help = "everything, for programs (profiler/report/README.md)",
    .wants_functions = true,
    .wants_every_tree = true,
    .has_trees = true,
    .has_notes = true,
    .report = emit,
    .unclaimed = unclaimed,
};
