/* SPDX-License-Identifier: MIT */
/* Gathers what a report shows, see report.h.
 *
 * The trap is length: at 5 samples a tree of a busy process has hundreds of lines, and the table it belongs to scrolls away. So unless asked for the
 * whole tree, each is cut at the count of its AUTO_LINES-th largest node. A parent never has fewer samples than its child, so what remains is a tree,
 * and the threshold printed above it is true. */
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

#include "report/emit.h"
#include "report/notes.h"

enum { AUTO_TREES = 3, AUTO_LINES = 20, AUTO_WAIT_TREES = 2, AUTO_LOCKS = 3, LOCK_LINES = 16, LOCKS_MAX = 32 };

/* Nodes of trees of waits below this part of the whole are folded away. */
static const uint64_t wait_parts = 200, wait_parts_full = 1000;

/* A category below this share gets no tree of its own accord. */
static const double auto_share = 0.05;

static const struct rp_emit_ops *const formats[] = {&rp_emit_text, &rp_emit_json, &rp_emit_csv, NULL};

const struct rp_emit_ops *rp_emit_find(const char *name)
{
    for (size_t i = 0; formats[i]; i++) {
        if (!strcmp(formats[i]->name, name))
            return formats[i];
    }
    return NULL;
}

const struct rp_category_row *rp_report_row(const struct rp_report *report, uint32_t category)
{
    for (size_t i = 0; i < report->categories.rows.n; i++) {
        if (report->categories.rows.at[i].category == category)
            return &report->categories.rows.at[i];
    }
    return NULL;
}

bool rp_report_lists(const struct rp_report *report, uint32_t process)
{
    const struct rp_profile *p = report->profile;
    uint32_t last = process;

    if (report->sampled[process])
        return true;
    for (uint32_t i = 0; i < p->processes.n; i++) {
        if (p->processes.at[i].pid != p->processes.at[process].pid)
            continue;
        if (report->sampled[i])
            return false;
        last = i > last ? i : last;
    }
    return last == process;
}

uint32_t rp_report_programs(const struct rp_report *report, uint32_t process)
{
    const struct rp_profile *p = report->profile;
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->processes.n; i++) {
        if (p->processes.at[i].pid != p->processes.at[process].pid || !rp_report_lists(report, i))
            continue;
        if (i > process)
            return 0;
        n++;
    }
    return n;
}

static enum rp_status find_sampled(struct rp_report *report, struct rp_err *err)
{
    const struct rp_profile *p = report->profile;

    report->sampled = rp_calloc(p->processes.n + 1, sizeof *report->sampled);
    if (!report->sampled)
        return rp_fail_nomem(err);
    for (size_t i = 0; i < p->counts.n; i++)
        report->sampled[p->threads.at[p->counts.at[i].thread].process] = true;
    for (size_t i = 0; i < p->wait_totals.n; i++)
        report->sampled[p->threads.at[p->wait_totals.at[i].thread].process] = true;
    return RP_OK;
}

void rp_report_command(const struct rp_report *report, const struct rp_profile_process *process, struct rp_buf *out)
{
    const char *command = rp_profile_text(report->profile, process->command);
    const char *blank = strchr(command, ' '), *slash = NULL;

    if (!*command)
        command = rp_profile_text(report->profile, process->comm);
    for (const char *at = command; *at && at != blank; at++) {
        if (*at == '/' && at[1] && at + 1 != blank)
            slash = at;
    }
    rp_buf_puts(out, report->options.verbose || !slash ? command : slash + 1);
}

static int by_samples_down(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

/* The count of the `lines`-th largest node, so that at most about that many are at or above it. */
static enum rp_status cut_at(const struct rp_calltree *tree, size_t lines, uint64_t *min_samples, struct rp_err *err)
{
    uint64_t *counts;

    if (tree->nodes.n <= lines)
        return RP_OK;
    counts = rp_calloc(tree->nodes.n, sizeof *counts);
    if (!counts)
        return rp_fail_nomem(err);
    for (size_t i = 0; i < tree->nodes.n; i++)
        counts[i] = tree->nodes.at[i].samples;
    qsort(counts, tree->nodes.n, sizeof *counts, by_samples_down);
    /* One more when the next is as large: equal counts stand or fall together. */
    if (counts[lines - 1] >= *min_samples)
        *min_samples = counts[lines - 1] + (counts[lines] == counts[lines - 1] && counts[0] > counts[lines]);
    rp_free(counts);
    return RP_OK;
}

/* What a tree of this kind is made of. */
static struct rp_calltree_options tree_options(const struct rp_report *report, const struct rp_report_tree *tree, bool cut)
{
    const struct rp_report_options *o = &report->options;
    struct rp_calltree_options options = {
        .category = tree->category, .callers = o->callers, .full_stacks = o->full_stacks, .order_by_self = o->by_self};
    bool waits = tree->kind == RP_TREE_OF_WAITS || tree->kind == RP_TREE_OF_LOCK;

    options.waits = waits ? report->waits : NULL;
    options.user_only = waits && cut;
    if (tree->kind == RP_TREE_OF_LOCK || tree->kind == RP_TREE_OF_HOLDERS)
        options.lock = report->locks.rows.at[tree->lock].lock + 1;
    options.holders = tree->kind == RP_TREE_OF_HOLDERS;
    if (tree->kind == RP_TREE_OF_CALLERS || tree->kind == RP_TREE_OF_CALLEES) {
        options.functions = report->function.functions;
        options.callers = tree->kind == RP_TREE_OF_CALLERS;
    }
    return options;
}

static bool is_timed(enum rp_tree_kind kind)
{
    return kind == RP_TREE_OF_WAITS || kind == RP_TREE_OF_LOCK || kind == RP_TREE_OF_HOLDERS;
}

/* The smallest node of a tree weighed in ns. */
static enum rp_status least_ns(const struct rp_report *report, struct rp_report_tree *tree, bool cut, struct rp_err *err)
{
    struct rp_calltree_options options = tree_options(report, tree, cut);
    struct rp_calltree all;

    options.min_samples = UINT64_MAX; /* only the sum is wanted */
    if (rp_calltree_make(report->view, &options, &all, err))
        return err->status;
    tree->min_samples = all.samples / (cut ? wait_parts : wait_parts_full);
    tree->min_samples += !tree->min_samples;
    rp_calltree_release(&all);
    return RP_OK;
}

/* `lines` 0: not cut. */
static enum rp_status add_tree(struct rp_report *report, struct rp_report_tree what, size_t lines, struct rp_err *err)
{
    struct rp_report_tree *tree = rp_vec_add(&report->trees);
    struct rp_calltree_options options;

    if (!tree)
        return rp_fail_nomem(err);
    *tree = what;
    tree->min_samples = report->options.min_samples;
    tree->tree = (struct rp_calltree){.first_top = UINT32_MAX};
    if (is_timed(tree->kind) && least_ns(report, tree, lines > 0, err))
        return err->status;
    options = tree_options(report, tree, lines > 0);
    options.min_samples = tree->min_samples;
    if (rp_calltree_make(report->view, &options, &tree->tree, err))
        return err->status;
    tree->cut = lines > 0;
    return lines ? cut_at(&tree->tree, lines, &tree->min_samples, err) : RP_OK;
}

static enum rp_status add_category_tree(struct rp_report *report, uint32_t category, bool cut, struct rp_err *err)
{
    bool waits = category != RP_ALL_CATEGORIES && cat_rules_category(report->rules, category)->kind != CAT_COST;
    struct rp_report_tree tree = {.kind = waits ? RP_TREE_OF_WAITS : RP_TREE_OF_SAMPLES, .category = category};

    return waits && !report->waits ? RP_OK : add_tree(report, tree, cut ? AUTO_LINES : 0, err);
}

static enum rp_status gather_wait_trees(struct rp_report *report, bool every, struct rp_err *err)
{
    enum rp_status status = RP_OK;
    size_t n = 0;

    for (size_t i = 0; report->waits && !status && i < report->waits->rows.n && (every || n < AUTO_WAIT_TREES); i++) {
        const struct rp_wait_row *row = &report->waits->rows.at[i];

        if (row->category == RP_WAIT_UNSEEN || (!every && row->share < auto_share) ||
            cat_rules_category(report->rules, row->category)->kind == CAT_COST)
            continue;
        status = add_category_tree(report, row->category, !every, err);
        n++;
    }
    return status;
}

static enum rp_status gather_lock_trees(struct rp_report *report, bool every, struct rp_err *err)
{
    enum rp_status status = RP_OK;

    for (uint32_t i = 0; !status && i < report->locks.rows.n && i < (every ? LOCKS_MAX : AUTO_LOCKS); i++) {
        struct rp_report_tree tree = {.kind = RP_TREE_OF_LOCK, .category = RP_ALL_CATEGORIES, .lock = i};

        tree.category = cat_rules_find_category(report->rules, "wait.lock");
        status = add_tree(report, tree, every ? 0 : LOCK_LINES, err);
        tree.kind = RP_TREE_OF_HOLDERS;
        tree.category = RP_ALL_CATEGORIES;
        if (!status)
            status = add_tree(report, tree, every ? 0 : LOCK_LINES, err);
    }
    return status;
}

static enum rp_status gather_cost_trees(struct rp_report *report, bool every, struct rp_err *err)
{
    const struct rp_report_options *o = &report->options;
    enum rp_status status = RP_OK;

    for (size_t i = 0; !status && i < report->categories.rows.n && (every || report->trees.n < AUTO_TREES); i++) {
        const struct rp_category_row *row = &report->categories.rows.at[i];

        if (row->samples && (every || (row->share >= auto_share && row->samples >= o->min_samples)))
            status = add_category_tree(report, row->category, !every, err);
    }
    return status;
}

static enum rp_status gather_trees(struct rp_report *report, struct rp_err *err)
{
    const struct rp_report_options *o = &report->options;
    bool every = o->tree == RP_TREE_FULL || report->format->wants_every_tree;
    enum rp_status status = RP_OK;

    if (o->tree == RP_TREE_NONE || !report->format->has_trees)
        return RP_OK;
    if (o->function) {
        status = add_tree(report, (struct rp_report_tree){.kind = RP_TREE_OF_CALLERS, .category = RP_ALL_CATEGORIES}, every ? 0 : AUTO_LINES, err);
        return status ? status
                      : add_tree(report, (struct rp_report_tree){.kind = RP_TREE_OF_CALLEES, .category = RP_ALL_CATEGORIES}, every ? 0 : AUTO_LINES, err);
    }
    if (o->category != RP_ALL_CATEGORIES)
        return rp_report_has_any(report) ? add_category_tree(report, o->category, false, err) : RP_OK;
    if (o->by == RP_BY_CATEGORY && report->quality.samples)
        status = gather_cost_trees(report, every, err);
    else if (report->quality.samples && o->by < RP_BY_WAIT && (every || o->callers))
        status = add_category_tree(report, RP_ALL_CATEGORIES, !every, err);
    if (!status && (o->by == RP_BY_CATEGORY || o->by == RP_BY_WAIT))
        status = gather_wait_trees(report, every, err);
    if (!status)
        status = gather_lock_trees(report, every, err);
    return status;
}

bool rp_report_has_any(const struct rp_report *report)
{
    return report->quality.samples || (report->waits && report->waits->rows.n);
}

static int by_total_down(const void *a, const void *b)
{
    const struct rp_group_row *x = a, *y = b;

    if (x->total != y->total)
        return x->total < y->total ? 1 : -1;
    if (x->self != y->self)
        return x->self < y->self ? 1 : -1;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* No rule can claim the mark that stands for the cut part of a stack; those samples are told in the head of the list. */
static enum rp_status gather_unclaimed(struct rp_report *report, struct rp_err *err)
{
    enum rp_status status = rp_view_unclaimed(report->view, &report->unclaimed, err);
    size_t kept = 0;

    for (size_t i = 0; !status && i < report->unclaimed.rows.n; i++) {
        struct rp_unclaimed row = report->unclaimed.rows.at[i];

        if (report->profile->functions.at[row.function].how != RP_NAME_MARK)
            report->unclaimed.rows.at[kept++] = row;
    }
    if (!status)
        report->unclaimed.rows.n = kept;
    return status;
}

static enum rp_status gather_waits(struct rp_report *report, struct rp_err *err)
{
    const struct rp_report_options *o = &report->options;
    enum rp_status status = RP_OK;

    if (!o->no_waiting && rp_waits_measured(report->profile))
        status = rp_waits_new(report->view, o->keep_idle, &report->waits, err);
    if (!status && report->waits)
        status = rp_waits_threads(report->waits, &report->threads, err);
    if (!status && report->waits && (o->locks || o->by == RP_BY_LOCK || report->format->wants_locks))
        status = rp_waits_locks(report->waits, &report->locks, err);
    if (!status && o->function)
        status = rp_view_function(report->view, report->waits, o->function, &report->function, err);
    return status;
}

static enum rp_status gather_groups(struct rp_report *report, struct rp_err *err)
{
    const struct rp_report_options *o = &report->options;
    enum rp_status status = RP_OK;

    if (o->by != RP_BY_CATEGORY && o->by < RP_BY_WAIT)
        status = rp_view_groups(report->view, o->by, &report->groups, err);
    if (!status && o->total && report->groups.rows.n)
        qsort(report->groups.rows.at, report->groups.rows.n, sizeof *report->groups.rows.at, by_total_down);
    if (!status && report->format->wants_functions)
        status = rp_view_groups(report->view, RP_BY_FUNCTION, &report->functions, err);
    return status;
}

static enum rp_status gather(struct rp_report *report, struct rp_err *err)
{
    const struct rp_view *view = report->view;
    enum rp_status status = find_sampled(report, err);

    if (!status)
        status = rp_view_quality(view, &report->quality, err);
    if (!status)
        status = rp_view_categories(view, &report->categories, err);
    if (!status && report->options.unclaimed)
        return gather_unclaimed(report, err);
    if (!status)
        status = gather_waits(report, err);
    if (!status)
        status = gather_groups(report, err);
    if (!status)
        status = gather_trees(report, err);
    if (!status && report->format->has_notes)
        status = rp_view_drift(view, &report->drift, err);
    if (!status && report->format->has_notes)
        status = rp_view_nameless(view, &report->nameless, err);
    if (!status && report->format->has_notes)
        status = gather_unclaimed(report, err);
    if (!status && report->format->has_notes)
        status = rp_notes_gather(report, err);
    return status;
}

enum rp_status rp_report_make(const struct rp_view *view, const struct rp_report_options *options, const struct rp_emit_ops *format,
                              struct rp_report *report, struct rp_err *err)
{
    *report = (struct rp_report){.view = view, .profile = rp_view_profile(view), .rules = rp_view_rules(view), .format = format, .options = *options};
    return gather(report, err);
}

enum rp_status rp_report_write(const struct rp_report *report, struct rp_buf *out, struct rp_err *err)
{
    if (report->options.unclaimed)
        report->format->unclaimed(report, out);
    else
        report->format->report(report, out);
    return out->failed ? rp_fail_nomem(err) : RP_OK;
}

void rp_report_release(struct rp_report *report)
{
    rp_category_table_release(&report->categories);
    rp_group_table_release(&report->groups);
    rp_group_table_release(&report->functions);
    rp_waits_free(report->waits);
    rp_thread_table_release(&report->threads);
    rp_lock_table_release(&report->locks);
    rp_function_view_release(&report->function);
    rp_vec_release(&report->drift.rows);
    rp_vec_release(&report->nameless.rows);
    rp_vec_release(&report->unclaimed.rows);
    for (size_t i = 0; i < report->trees.n; i++)
        rp_calltree_release(&report->trees.at[i].tree);
    rp_vec_release(&report->trees);
    for (size_t i = 0; i < report->notes.n; i++)
        rp_free(report->notes.at[i].text);
    rp_vec_release(&report->notes);
    rp_free(report->sampled);
    report->sampled = NULL;
}
