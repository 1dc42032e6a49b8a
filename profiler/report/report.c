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

enum { AUTO_TREES = 3, AUTO_LINES = 20 };

/* A category below this share gets no tree of its own accord. */
static const double auto_share = 0.05;

const struct rp_emit_ops *const rp_emit_formats[] = {&rp_emit_text, &rp_emit_json, &rp_emit_csv, NULL};

const struct rp_emit_ops *rp_emit_find(const char *name)
{
    for (size_t i = 0; rp_emit_formats[i]; i++) {
        if (!strcmp(rp_emit_formats[i]->name, name))
            return rp_emit_formats[i];
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

static enum rp_status find_sampled(struct rp_report *report, struct rp_err *err)
{
    const struct rp_profile *p = report->profile;

    report->sampled = rp_calloc(p->processes.n + 1, sizeof *report->sampled);
    if (!report->sampled)
        return rp_fail_nomem(err);
    for (size_t i = 0; i < p->counts.n; i++)
        report->sampled[p->threads.at[p->counts.at[i].thread].process] = true;
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

static enum rp_status add_tree(struct rp_report *report, uint32_t category, bool cut, struct rp_err *err)
{
    const struct rp_report_options *o = &report->options;
    struct rp_calltree_options options = {category, o->min_samples, o->callers, o->full_stacks, o->by_self};
    struct rp_report_tree *tree = rp_vec_add(&report->trees);

    if (!tree)
        return rp_fail_nomem(err);
    *tree = (struct rp_report_tree){.category = category, .min_samples = o->min_samples};
    if (rp_calltree_make(report->view, &options, &tree->tree, err))
        return err->status;
    tree->cut = cut;
    return cut ? cut_at(&tree->tree, AUTO_LINES, &tree->min_samples, err) : RP_OK;
}

static enum rp_status gather_trees(struct rp_report *report, struct rp_err *err)
{
    const struct rp_report_options *o = &report->options;
    bool every = o->tree == RP_TREE_FULL || report->format->wants_every_tree;
    enum rp_status status = RP_OK;

    if (o->tree == RP_TREE_NONE || !report->format->has_trees || !report->quality.samples)
        return RP_OK;
    if (o->category != RP_ALL_CATEGORIES)
        return add_tree(report, o->category, false, err);
    if (o->by != RP_BY_CATEGORY)
        return o->tree == RP_TREE_FULL || o->callers || report->format->wants_every_tree ? add_tree(report, RP_ALL_CATEGORIES, !every, err) : RP_OK;
    for (size_t i = 0; !status && i < report->categories.rows.n && (every || report->trees.n < AUTO_TREES); i++) {
        const struct rp_category_row *row = &report->categories.rows.at[i];

        if (row->samples && (every || (row->share >= auto_share && row->samples >= o->min_samples)))
            status = add_tree(report, row->category, !every, err);
    }
    return status;
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
    if (!status && report->options.by != RP_BY_CATEGORY)
        status = rp_view_groups(view, report->options.by, &report->groups, err);
    if (!status && report->options.total && report->groups.rows.n)
        qsort(report->groups.rows.at, report->groups.rows.n, sizeof *report->groups.rows.at, by_total_down);
    if (!status && report->format->wants_functions)
        status = rp_view_groups(view, RP_BY_FUNCTION, &report->functions, err);
    if (!status)
        status = gather_trees(report, err);
    if (!status && report->format->has_notes)
        status = rp_view_drift(view, &report->drift, err);
    if (!status && report->format->has_notes)
        status = rp_view_nameless(view, &report->nameless, err);
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
