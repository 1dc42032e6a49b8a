/* SPDX-License-Identifier: MIT */
/* Call trees in the style of macOS `sample`:
 *
 *     141 node::sqlite::StatementExecutionHelper::Get(...) + 396  (in node)
 *       | 121 v8::String::NewFromUtf8(...)
 *       | : 88 v8::internal::Factory::InternalizeUtf8String(...)  [40 self]
 *
 * A guide stands below the last digit of the count it belongs to, so that the eye finds siblings. `(in module)` is told where the module changes (and
 * the name does not hold it), `[n self]` where a frame that has callees shown spends time of its own.
 *
 * The trap is depth: a recursion of 5 000 frames would be indented off every screen, and the sum of its indents is quadratic. Beyond MAX_DEPTH guides
 * (less on a narrow terminal) the leftmost are replaced by one mark. */
#include "report/text_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/figures.h"
#include "report/style.h"
#include "report/text_locks.h"
#include "report/utf8.h"

enum { MAX_DEPTH = 60, NARROWEST_NAME = 16, TITLE_LEAST = 24, LINES_MOST = 60 };

static const char guides[] = "|:+!";

/* Own time is told from this part of a node's samples on. */
static const double self_worth = 0.05;

struct painter {
    const struct rp_report *report;
    const struct rp_report_tree *shown;
    struct rp_buf *out;
    size_t pad; /* columns before the last digit of a top node's count */
    size_t max_depth;
    uint64_t unit; /* what one of the printed numbers is; 1: a sample */
    uint32_t base; /* depth that is printed as a top node */
};

static uint64_t in_units(const struct painter *p, uint64_t samples)
{
    return p->unit == 1 ? samples : (samples + p->unit / 2) / p->unit;
}

static bool is_timed(const struct rp_report_tree *tree)
{
    return tree->kind == RP_TREE_OF_WAITS || tree->kind == RP_TREE_OF_LOCK || tree->kind == RP_TREE_OF_HOLDERS;
}

static const struct {
    uint64_t ns;
    const char *name;
} units[] = {{1000000, "ms"}, {1000, "\xc2\xb5s"}, {1, "ns"}};

/* So that the largest has at least four digits. */
static size_t unit_of(const struct rp_report_tree *tree)
{
    size_t i = 0;

    while (i + 1 < sizeof units / sizeof *units && tree->tree.samples < 1000 * units[i].ns)
        i++;
    return i;
}

static bool is_shown(const struct painter *p, uint32_t node)
{
    return node != UINT32_MAX && p->shown->tree.nodes.at[node].samples >= p->shown->min_samples;
}

/* The first of `node` and its siblings that is large enough: ordered by self, a small one may stand before a large one. */
static uint32_t next_shown(const struct painter *p, uint32_t node)
{
    while (node != UINT32_MAX && !is_shown(p, node))
        node = p->shown->tree.nodes.at[node].next_sibling;
    return node;
}

static size_t put_guides(const struct painter *p, uint32_t depth)
{
    size_t skip = depth > p->max_depth ? depth - p->max_depth + 1 : 0;

    rp_buf_fill(p->out, ' ', (int)p->pad);
    rp_style_on(p->out, p->report->options.color, RP_STYLE_DIM);
    if (skip)
        rp_buf_puts(p->out, "\xe2\x80\xa6 ");
    for (size_t i = skip; i < depth; i++) {
        rp_buf_putc(p->out, guides[i % (sizeof guides - 1)]);
        rp_buf_putc(p->out, ' ');
    }
    rp_style_off(p->out, p->report->options.color);
    return p->pad + 2 * (depth - skip + (skip > 0));
}

/* What follows the name: place, module, own time; less of it where there is no room. */
enum suffix_parts { SUFFIX_ALL, SUFFIX_PLACE, SUFFIX_SELF };

static void suffix(const struct painter *p, const struct rp_calltree_node *node, enum suffix_parts how_much, struct rp_buf *out)
{
    const struct rp_profile *profile = p->report->profile;
    const struct rp_function *f = &profile->functions.at[node->function];
    const struct rp_calltree_node *parent = node->parent == UINT32_MAX ? NULL : &p->shown->tree.nodes.at[node->parent];

    if (how_much < SUFFIX_SELF && node->has_offset) {
        rp_buf_printf(out, " + %" PRIu64, node->offset);
    } else if (how_much < SUFFIX_SELF && node->line) {
        const char *file = rp_profile_text(profile, node->file), *slash = strrchr(file, '/');

        rp_buf_puts(out, " (");
        rp_text_fit(out, slash ? slash + 1 : file, 40);
        rp_buf_printf(out, ":%" PRIu32 ")", node->line);
    }
    if (how_much == SUFFIX_ALL && f->how != RP_NAME_MARK && f->how != RP_NAME_OFFSET && (!parent || node->depth == p->base || profile->functions.at[parent->function].module != f->module)) {
        rp_buf_puts(out, "  (in ");
        rp_text_fit(out, rp_profile_text(profile, f->module), 40);
        rp_buf_putc(out, ')');
    }
    if (!p->report->options.callers && next_shown(p, node->first_child) != UINT32_MAX && node->self &&
        (double)node->self >= self_worth * (double)node->samples)
        rp_buf_printf(out, "  [%" PRIu64 " self]", in_units(p, node->self));
}

static void put_node(const struct painter *p, const struct rp_calltree_node *node)
{
    const struct rp_report_options *o = &p->report->options;
    struct rp_buf count = {0}, tail = {0};
    size_t column, room = 0;

    rp_buf_printf(&count, "%" PRIu64 " ", in_units(p, node->samples));
    if (node->depth > p->base) {
        column = put_guides(p, node->depth - p->base);
    } else {
        column = p->pad + 2 > count.length ? p->pad + 2 - count.length : 0;
        rp_buf_fill(p->out, ' ', (int)column);
    }
    rp_buf_append(p->out, count.data, count.length);
    column += count.length;
    for (enum suffix_parts parts = SUFFIX_ALL; parts <= SUFFIX_SELF; parts++) {
        rp_buf_clear(&tail);
        suffix(p, node, parts, &tail);
        if (!o->width || column + rp_text_columns(rp_buf_text(&tail), tail.length) + NARROWEST_NAME <= o->width)
            break;
    }
    column += rp_text_columns(rp_buf_text(&tail), tail.length);
    room = rp_text_room(o->width, column);
    rp_text_symbol(p->out, rp_profile_text(p->report->profile, p->report->profile->functions.at[node->function].name), room, o->verbose);
    rp_style_on(p->out, o->color, RP_STYLE_DIM);
    rp_buf_append(p->out, tail.data, tail.length);
    rp_style_off(p->out, o->color);
    rp_buf_putc(p->out, '\n');
    p->out->failed |= count.failed || tail.failed;
    rp_buf_release(&count);
    rp_buf_release(&tail);
}

/* Pre-order from `at` on, its siblings too, without recursion: trees may be thousands of frames deep. A cut one may still be long, because no count tells the frames of a deep recursion
 * apart. */
static void put_nodes(const struct painter *p, uint32_t at)
{
    const struct rp_calltree *tree = &p->shown->tree;
    uint64_t lines = 0;

    while (at != UINT32_MAX) {
        uint32_t next;

        if (++lines <= LINES_MOST || !p->shown->cut)
            put_node(p, &tree->nodes.at[at]);
        next = next_shown(p, tree->nodes.at[at].first_child);
        while (next == UINT32_MAX && at != UINT32_MAX && tree->nodes.at[at].depth >= p->base) {
            next = next_shown(p, tree->nodes.at[at].next_sibling);
            at = tree->nodes.at[at].parent;
        }
        at = next;
    }
    if (lines > LINES_MOST && p->shown->cut) {
        rp_buf_puts(p->out, "  \xe2\x80\xa6 ");
        rp_text_count(p->out, lines - LINES_MOST);
        rp_buf_puts(p->out, lines - LINES_MOST == 1 ? " line more\n" : " lines more\n");
    }
}

/* What all paths have in common tells nothing of a holder: the tree begins KEPT frames before its first fork, or its end. */
static uint32_t behind_common(const struct painter *p, uint32_t top)
{
    enum { KEPT = 3 };
    const struct rp_calltree *tree = &p->shown->tree;
    uint32_t at = top;

    if (top == UINT32_MAX || tree->nodes.at[top].samples < tree->samples)
        return top;
    for (;;) {
        uint32_t child = next_shown(p, tree->nodes.at[at].first_child);

        if (child == UINT32_MAX || tree->nodes.at[child].samples < tree->samples)
            break;
        at = child;
    }
    for (unsigned i = 0; i < KEPT && at != top; i++)
        at = tree->nodes.at[at].parent;
    return at;
}

static void put_figure(const struct painter *p, struct rp_buf *out)
{
    const struct rp_report_tree *shown = p->shown;
    const struct rp_category_row *row = shown->category == RP_ALL_CATEGORIES ? NULL : rp_report_row(p->report, shown->category);
    double share = row ? row->share : 0;

    if (is_timed(shown)) {
        rp_buf_puts(out, " (");
        rp_figure_put_duration(out, (double)shown->tree.samples / 1e9);
        rp_buf_puts(out, ")");
    } else if (shown->kind == RP_TREE_OF_SAMPLES && shown->category != RP_ALL_CATEGORIES && shown->tree.samples) {
        rp_buf_printf(out, " (%.*f %%)", share < 0.00095 ? 2 : 1, 100 * share);
    }
}

static void put_subject(const struct painter *p, size_t room)
{
    const struct rp_report *r = p->report;
    const struct rp_report_tree *shown = p->shown;
    const struct cat_category *category;

    switch (shown->kind) {
    case RP_TREE_OF_SAMPLES:
    case RP_TREE_OF_WAITS:
        if (shown->category == RP_ALL_CATEGORIES) {
            rp_buf_puts(p->out, "all samples");
            break;
        }
        category = cat_rules_category(r->rules, shown->category);
        rp_style_color(p->out, r->options.color, category->color);
        rp_text_fit(p->out, category->name, room);
        rp_style_off(p->out, r->options.color);
        rp_style_on(p->out, r->options.color, RP_STYLE_BOLD);
        break;
    case RP_TREE_OF_LOCK:
        rp_text_lock_name(r, shown->lock, room, p->out);
        break;
    case RP_TREE_OF_HOLDERS:
        if (rp_text_holders_few(&r->locks.rows.at[shown->lock]))
            rp_buf_puts(p->out, ", where that is known");
        break;
    case RP_TREE_OF_CALLERS:
    case RP_TREE_OF_CALLEES:
        rp_text_fit(p->out, r->options.function, room);
        break;
    }
}

/* "Call tree of NAME (20.5 %), at least 60 samples": the name is cut to fit; where little would be left of it, the least is left out. */
static void put_title(const struct painter *p)
{
    const struct rp_report *r = p->report;
    const struct rp_report_tree *shown = p->shown;
    const char *of_what = r->options.callers ? "Callers of " : "Call tree of ";
    const char *const begins[] = {[RP_TREE_OF_SAMPLES] = of_what,
                                  [RP_TREE_OF_WAITS] = of_what,
                                  [RP_TREE_OF_LOCK] = "Waiting for ",
                                  [RP_TREE_OF_HOLDERS] = "Meanwhile, whoever held it",
                                  [RP_TREE_OF_CALLERS] = "Callers of ",
                                  [RP_TREE_OF_CALLEES] = "Callees of "};
    struct rp_buf figure = {0}, least = {0};
    const char *in = is_timed(shown) ? ", in " : "", *unit = is_timed(shown) ? units[unit_of(shown)].name : "";
    size_t taken;

    put_figure(p, &figure);
    rp_buf_printf(&least, ", at least %" PRIu64 "%s", in_units(p, shown->min_samples), is_timed(shown) ? "" : shown->min_samples == 1 ? " sample" : " samples");
    taken = strlen(begins[shown->kind]) + rp_text_columns(rp_buf_text(&figure), figure.length) + strlen(in) + strlen(unit);
    if (r->options.width && taken + least.length + TITLE_LEAST > r->options.width)
        rp_buf_clear(&least);
    rp_buf_putc(p->out, '\n');
    rp_style_on(p->out, r->options.color, RP_STYLE_BOLD);
    rp_buf_puts(p->out, begins[shown->kind]);
    put_subject(p, rp_text_room(r->options.width, taken + least.length));
    rp_buf_puts(p->out, rp_buf_text(&figure));
    rp_style_off(p->out, r->options.color);
    rp_buf_printf(p->out, "%s%s%s\n", in, unit, rp_buf_text(&least));
    p->out->failed |= figure.failed || least.failed;
    rp_buf_release(&figure);
    rp_buf_release(&least);
}

void rp_text_tree(const struct rp_report *report, const struct rp_report_tree *tree, struct rp_buf *out)
{
    struct painter p = {report, tree, out, 0, MAX_DEPTH, is_timed(tree) ? units[unit_of(tree)].ns : 1, 0};
    size_t widest = report->options.width / 4;
    uint32_t first = next_shown(&p, tree->tree.first_top);
    uint64_t largest = 0;
    char text[96];

    if (tree->kind == RP_TREE_OF_HOLDERS && first != UINT32_MAX) {
        first = behind_common(&p, first);
        p.base = tree->tree.nodes.at[first].depth;
    }
    if (tree->kind == RP_TREE_OF_HOLDERS && !tree->tree.samples)
        return; /* the table says that the holder is not known */
    if (widest && widest < p.max_depth)
        p.max_depth = widest < 4 ? 4 : widest;
    put_title(&p);
    for (uint32_t top = first; top != UINT32_MAX; top = tree->tree.nodes.at[top].next_sibling)
        largest = tree->tree.nodes.at[top].samples > largest ? tree->tree.nodes.at[top].samples : largest;
    for (largest = in_units(&p, largest); largest >= 10; largest /= 10)
        p.pad++;
    if (!tree->tree.samples)
        rp_buf_puts(out, is_timed(tree) ? "  it was not seen in any wait\n" : "  it was not seen in any sample\n");
    else if (first == UINT32_MAX && !is_timed(tree)) {
        snprintf(text, sizeof text, "no path has that many of its %" PRIu64 " samples; --min-samples 1 shows all", tree->tree.samples);
        rp_buf_puts(out, "  ");
        rp_text_wrap(out, text, 2, 2, report->options.width);
    }
    put_nodes(&p, first);
}
