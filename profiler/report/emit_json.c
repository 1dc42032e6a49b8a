/* SPDX-License-Identifier: MIT */
/* The report for programs. Keys, types and units are in README.md and do not change within a schema number; keys may be added. Trees are flat, in
 * pre-order with a depth, because readers of JSON recurse: the stack of a deep recursion nested as JSON is refused by most of them. */

#include "report/emit.h"
#include "report/json_parts.h"
#include "report/json_waits.h"
#include "report/unclaimed.h"

enum { SCHEMA = 1, SHARE_DIGITS = RP_JSON_SHARE_DIGITS, SECONDS_DIGITS = RP_JSON_SECONDS_DIGITS, WAITS_DIGITS = RP_JSON_WAITS_DIGITS };

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
    if (r->profile->run.sampler)
        rp_json_key_string(w, "sampler", text(r, r->profile->run.sampler));
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
    if (r->waits) {
        rp_json_key(w, "times_exact");
        rp_json_bool(w, rp_waits_exact(r->profile));
    }
    rp_json_end(w);
}

/* Without measured waits: the threads that were never sampled and their time off the CPU, and apart from it that of the others. */
static void idle(const struct rp_report *r, struct rp_json *w)
{
    rp_json_key(w, "idle");
    rp_json_begin_inline(w, '{');
    rp_json_key_u64(w, "threads", r->waits ? r->waits->idle_threads : r->quality.idle_threads);
    rp_json_key_double(w, "seconds", r->waits ? r->waits->idle_seconds : r->quality.idle_seconds, SECONDS_DIGITS);
    if (r->waits) {
        rp_json_key(w, "groups");
        rp_json_begin(w, '[');
        for (size_t i = 0; i < r->waits->idle.n; i++) {
            const struct rp_idle_group *g = &r->waits->idle.at[i];

            rp_json_begin(w, '{');
            rp_json_key_string(w, "name", g->name);
            rp_json_key_u64(w, "threads", g->threads);
            rp_json_key_double(w, "waits", g->waits, WAITS_DIGITS);
            rp_json_key_double(w, "seconds", g->seconds, SECONDS_DIGITS);
            rp_json_key_string(w, "rule", cat_rules_rule(r->rules, g->rule)->id);
            rp_json_end(w);
        }
        rp_json_end(w);
    } else {
        rp_json_key_double(w, "others_off_cpu_s", r->quality.off_seconds, SECONDS_DIGITS);
    }
    rp_json_end(w);
}

static void function_name(const struct rp_report *r, struct rp_json *w, uint32_t function)
{
    rp_json_key_string(w, "symbol", text(r, r->profile->functions.at[function].name));
    rp_json_key_string(w, "module", text(r, r->profile->functions.at[function].module));
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
        rp_json_key_string(w, "kind", cat_kind_word(category->kind));
        rp_json_key_u64(w, "samples", row->samples);
        rp_json_interval(w, row->share, row->low, row->high);
        rp_json_key_u64(w, "total", row->total);
        rp_json_key_u64(w, "inherited", row->inherited);
        rp_json_key(w, "paid_by");
        rp_json_begin(w, '[');
        for (size_t k = 0; k < row->payers.n; k++) {
            rp_json_begin(w, '{');
            rp_json_key_category(w, "id", r, row->payers.at[k].category);
            rp_json_key_u64(w, "samples", row->payers.at[k].samples);
            if (row->payers.at[k].function != UINT32_MAX)
                function_name(r, w, row->payers.at[k].function);
            rp_json_end(w);
        }
        rp_json_end(w);
        rp_json_end(w);
    }
    rp_json_end(w);
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

static void process_rows(const struct rp_report *r, struct rp_json *w)
{
    const struct rp_profile *p = r->profile;

    if (r->options.by != RP_BY_PROCESS)
        return;
    rp_json_key(w, "processes");
    rp_json_begin(w, '[');
    for (size_t i = 0; i < r->groups.rows.n; i++) {
        const struct rp_group_row *row = &r->groups.rows.at[i];

        rp_json_begin_inline(w, '{');
        rp_json_key_u64(w, "pid", p->processes.at[row->key].pid);
        rp_json_key_u64(w, "generation", p->processes.at[row->key].generation);
        rp_json_key_string(w, "command", text(r, p->processes.at[row->key].command));
        rp_json_key_u64(w, "self", row->self);
        rp_json_interval(w, row->share, row->low, row->high);
        rp_json_end(w);
    }
    rp_json_end(w);
}

static void module_rows(const struct rp_report *r, struct rp_json *w)
{
    if (r->options.by != RP_BY_MODULE)
        return;
    rp_json_key(w, "modules");
    rp_json_begin(w, '[');
    for (size_t i = 0; i < r->groups.rows.n; i++) {
        const struct rp_group_row *row = &r->groups.rows.at[i];

        rp_json_begin_inline(w, '{');
        rp_json_key_string(w, "module", text(r, row->key));
        rp_json_key_u64(w, "self", row->self);
        rp_json_key_u64(w, "total", row->total);
        rp_json_interval(w, row->share, row->low, row->high);
        rp_json_end(w);
    }
    rp_json_end(w);
}

static void thread_times(const struct rp_report *r, struct rp_json *w, uint32_t thread)
{
    for (size_t i = 0; i < r->threads.rows.n; i++) {
        const struct rp_thread_row *row = &r->threads.rows.at[i];

        if (row->thread != thread)
            continue;
        rp_json_key_double(w, "wall_s", row->wall, SECONDS_DIGITS);
        rp_json_key_double(w, "cpu_s", row->cpu, SECONDS_DIGITS);
        rp_json_key_double(w, "preempted_s", row->preempted, SECONDS_DIGITS);
        rp_json_key_double(w, "waiting_s", row->waiting, SECONDS_DIGITS);
        rp_json_key_double(w, "waiting_for_cpu_s", row->woken, SECONDS_DIGITS);
        rp_json_key_double(w, "idle_s", row->idle, SECONDS_DIGITS);
        rp_json_key_double(w, "unknown_s", row->unknown, SECONDS_DIGITS);
    }
}

/* Samples are there with `--by thread`, times where they were measured. */
static void thread_row(const struct rp_report *r, struct rp_json *w, uint32_t thread)
{
    const struct rp_profile *p = r->profile;

    rp_json_begin_inline(w, '{');
    rp_json_key_u64(w, "pid", p->processes.at[p->threads.at[thread].process].pid);
    rp_json_key_u64(w, "tid", p->threads.at[thread].tid);
    rp_json_key_string(w, "name", text(r, p->threads.at[thread].comm));
    for (size_t i = 0; r->options.by == RP_BY_THREAD && i < r->groups.rows.n; i++) {
        const struct rp_group_row *row = &r->groups.rows.at[i];

        if (row->key != thread)
            continue;
        rp_json_key_u64(w, "self", row->self);
        rp_json_key_u64(w, "total", row->total);
        rp_json_interval(w, row->share, row->low, row->high);
    }
    thread_times(r, w, thread);
    rp_json_end(w);
}

static void thread_rows(const struct rp_report *r, struct rp_json *w)
{
    bool by_thread = r->options.by == RP_BY_THREAD;

    if (!by_thread && !r->waits)
        return;
    rp_json_key(w, "threads");
    rp_json_begin(w, '[');
    for (size_t i = 0; i < (r->waits ? r->threads.rows.n : r->groups.rows.n); i++)
        thread_row(r, w, r->waits ? r->threads.rows.at[i].thread : r->groups.rows.at[i].key);
    rp_json_end(w);
}

static void function_share(struct rp_json *w, const char *key, uint64_t samples, uint64_t of, double low, double high)
{
    rp_json_key(w, key);
    rp_json_begin(w, '{');
    rp_json_key_u64(w, "samples", samples);
    rp_json_interval(w, of ? (double)samples / (double)of : 0, low, high);
    rp_json_end(w);
}

static void one_function(const struct rp_report *r, struct rp_json *w)
{
    const struct rp_function_view *f = &r->function;

    if (!r->options.function)
        return;
    rp_json_key(w, "function");
    rp_json_begin(w, '{');
    rp_json_key_string(w, "name", r->options.function);
    rp_json_key(w, "matched");
    rp_json_begin(w, '[');
    for (size_t i = 0; i < f->matched.n; i++) {
        rp_json_begin_inline(w, '{');
        function_name(r, w, f->matched.at[i]);
        rp_json_end(w);
    }
    rp_json_end(w);
    function_share(w, "self", f->self, f->samples, f->self_low, f->self_high);
    function_share(w, "total", f->total, f->samples, f->total_low, f->total_high);
    if (r->waits) {
        rp_json_key_double(w, "waits", f->waits, WAITS_DIGITS);
        rp_json_key_double(w, "waiting_s", f->seconds, SECONDS_DIGITS);
        rp_json_key_double(w, "share_of_wall", f->share, SHARE_DIGITS);
    }
    rp_json_end(w);
}

static void node(const struct rp_report *r, struct rp_json *w, const struct rp_calltree_node *n, bool timed)
{
    rp_json_begin_inline(w, '{');
    rp_json_key_u64(w, "depth", n->depth);
    function_name(r, w, n->function);
    rp_json_key_u64(w, timed ? "ns" : "samples", n->samples);
    rp_json_key_u64(w, timed ? "self_ns" : "self", n->self);
    if (n->has_offset)
        rp_json_key_u64(w, "offset", n->offset);
    if (n->line) {
        rp_json_key_string(w, "file", text(r, n->file));
        rp_json_key_u64(w, "line", n->line);
    }
    rp_json_end(w);
}

static bool is_timed(const struct rp_report_tree *t)
{
    return t->kind == RP_TREE_OF_WAITS || t->kind == RP_TREE_OF_LOCK || t->kind == RP_TREE_OF_HOLDERS;
}

static void tree(const struct rp_report *r, struct rp_json *w, const struct rp_report_tree *t)
{
    static const char *const of[] = {[RP_TREE_OF_SAMPLES] = "category", [RP_TREE_OF_WAITS] = "waits",     [RP_TREE_OF_LOCK] = "lock",
                                     [RP_TREE_OF_HOLDERS] = "holders",  [RP_TREE_OF_CALLERS] = "callers", [RP_TREE_OF_CALLEES] = "callees"};
    bool timed = is_timed(t);
    uint32_t at = t->tree.first_top;

    rp_json_begin(w, '{');
    if (t->kind != RP_TREE_OF_SAMPLES)
        rp_json_key_string(w, "of", of[t->kind]);
    if (t->kind == RP_TREE_OF_LOCK || t->kind == RP_TREE_OF_HOLDERS)
        rp_json_key_u64(w, "lock", t->lock);
    if (t->category == RP_ALL_CATEGORIES) {
        rp_json_key(w, "category");
        rp_json_null(w);
    } else {
        rp_json_key_category(w, "category", r, t->category);
    }
    rp_json_key_u64(w, timed ? "ns" : "samples", t->tree.samples);
    rp_json_key_u64(w, timed ? "min_ns" : "min_samples", t->min_samples);
    rp_json_key(w, "nodes");
    rp_json_begin(w, '[');
    while (at != UINT32_MAX) {
        const struct rp_calltree_node *n = &t->tree.nodes.at[at];

        node(r, w, n, timed);
        at = n->first_child;
        while (at == UINT32_MAX && n) {
            at = n->next_sibling;
            n = n->parent == UINT32_MAX ? NULL : &t->tree.nodes.at[n->parent];
        }
    }
    rp_json_end(w);
    rp_json_end(w);
}

/* Trees weighed in ns have a list of their own: a reader of samples must not meet them. */
static void trees(const struct rp_report *r, struct rp_json *w, bool timed)
{
    rp_json_key(w, timed ? "waiting_tree" : "tree");
    rp_json_begin(w, '[');
    for (size_t i = 0; i < r->trees.n; i++)
        if (is_timed(&r->trees.at[i]) == timed)
            tree(r, w, &r->trees.at[i]);
    rp_json_end(w);
}

static void emit(const struct rp_report *r, struct rp_buf *out)
{
    struct rp_json w = {.out = out};

    rp_json_begin(&w, '{');
    rp_json_key_u64(&w, "schema", SCHEMA);
    targets(r, &w);
    run_and_quality(r, &w);
    idle(r, &w);
    categories(r, &w);
    functions(r, &w);
    module_rows(r, &w);
    process_rows(r, &w);
    thread_rows(r, &w);
    rp_json_waits(r, &w);
    rp_json_wall(r, &w);
    one_function(r, &w);
    trees(r, &w, false);
    if (r->waits)
        trees(r, &w, true);
    rp_json_notes(&w, r->notes.at, r->notes.n);
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
        if (rp_unclaimed_in_kernel(r, row->function))
            rp_json_key_string(&w, "space", "kernel");
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
    .wants_locks = true,
    .has_trees = true,
    .has_notes = true,
    .report = emit,
    .unclaimed = unclaimed,
};
