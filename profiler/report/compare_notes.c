/* SPDX-License-Identifier: MIT */
/* What stands below a comparison, and how its numbers are written. See compare_report.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "report/compare_report.h"
#include "report/style.h"
#include "report/utf8.h"

static const double main_thread_worth = 0.05;
enum { BUILDS_MAX = 4, ROWS_TOLD = 4, NAME_COLUMNS = 50 };

void rp_compare_notes_release(struct rp_compare_notes *notes)
{
    for (size_t i = 0; i < notes->notes.n; i++)
        rp_free(notes->notes.at[i].text);
    rp_vec_release(&notes->notes);
}

enum rp_status rp_compare_note(struct rp_compare_notes *notes, struct rp_err *err, const char *id, const char *format, ...)
{
    struct rp_buf text = {0};
    struct rp_note *note;
    char *copy;
    va_list args;

    va_start(args, format);
    rp_buf_vprintf(&text, format, args);
    va_end(args);
    copy = text.failed ? NULL : rp_strndup(rp_buf_text(&text), text.length);
    rp_buf_release(&text);
    note = copy ? rp_vec_add(&notes->notes) : NULL;
    if (!note) {
        rp_free(copy);
        return rp_fail_nomem(err);
    }
    *note = (struct rp_note){id, copy};
    return RP_OK;
}

void rp_compare_notes_text(const struct rp_compare_notes *notes, const struct rp_compare_style *style, struct rp_buf *out)
{
    bool markdown = style->form == RP_FORM_MARKDOWN;

    if (notes->notes.n)
        rp_buf_putc(out, '\n');
    for (size_t i = 0; i < notes->notes.n; i++) {
        rp_buf_puts(out, markdown ? "- " : "");
        if (markdown) {
            rp_text_clean(out, notes->notes.at[i].text, strlen(notes->notes.at[i].text));
            rp_buf_putc(out, '\n');
            continue;
        }
        rp_style_on(out, style->color, RP_STYLE_WARN);
        rp_buf_puts(out, "Note: ");
        rp_style_off(out, style->color);
        rp_text_wrap(out, notes->notes.at[i].text, 6, 6, style->width);
    }
}

void rp_compare_number(struct rp_buf *out, double value, bool sign)
{
    double size = fabs(value);

    if (!isfinite(value)) {
        rp_buf_puts(out, isnan(value) ? "-" : "inf");
        return;
    }
    if (size < 100 || size >= 1e15) {
        int digits = size >= 9.995 ? 1 : size >= 0.0995 || size <= 0 ? 2 : 3;

        rp_buf_printf(out, sign ? "%+.*f" : "%.*f", digits, size < 0.0005 ? 0 : value);
        return;
    }
    rp_buf_puts(out, value < 0 ? "-" : sign ? "+" : "");
    rp_text_count(out, (uint64_t)llround(size));
}

/* ---- diff ---- */

struct builds {
    struct rp_buf names;
    size_t n;
};

static void add_build(void *context, const char *name)
{
    struct builds *b = context;

    if (b->n++ < BUILDS_MAX) {
        rp_buf_puts(&b->names, b->n > 1 ? ", " : "");
        rp_text_fit(&b->names, name, 60);
    }
}

static enum rp_status note_builds(struct rp_diff_report *r, struct rp_err *err)
{
    struct builds b = {0};
    enum rp_status status = RP_OK;

    rp_diff_builds(r->first[0], r->first[1], add_build, &b);
    if (b.n)
        status = rp_compare_note(&r->notes, err, "build", "%s%s not the same build on both sides: rows are matched by name, and the same name may be other code.",
                                 rp_buf_text(&b.names), b.n > BUILDS_MAX ? " and others are" : b.n > 1 ? " are" : " is");
    rp_buf_release(&b.names);
    return status;
}

static enum rp_status note_run(struct rp_diff_report *r, struct rp_err *err)
{
    const char *clock[2] = {rp_profile_text(r->first[0], r->first[0]->run.source), rp_profile_text(r->first[1], r->first[1]->run.source)};
    const double *main_thread = r->diff->main_thread;
    enum rp_status status = RP_OK;

    if (strcmp(clock[0], clock[1]) != 0)
        status = rp_compare_note(&r->notes, err, "clock", "A was sampled by %s, B by %s: their shares are not of the same thing.", clock[0], clock[1]);
    if (status == RP_OK && r->first[0]->run.kernel_visible != r->first[1]->run.kernel_visible)
        status = rp_compare_note(&r->notes, err, "kernel", "Kernel time was sampled on side %s only; record both with the same permission.",
                                 r->first[0]->run.kernel_visible ? "A" : "B");
    if (status == RP_OK && !r->one_thread && fabs(main_thread[0] - main_thread[1]) > main_thread_worth)
        status = rp_compare_note(&r->notes, err, "main-thread",
                                 "The main thread has %.1f %% of the samples of A and %.1f %% of those of B: the other threads did more or less beside it. "
                                 "Compare it alone with --thread.",
                                 100 * main_thread[0], 100 * main_thread[1]);
    return status;
}

static enum rp_status note_cost(struct rp_diff_report *r, struct rp_err *err)
{
    const struct rp_diff *d = r->diff;
    enum rp_status status = RP_OK;

    if (!d->has_cost)
        return rp_compare_note(&r->notes, err, "no-rate",
                               "A share can fall only because another rose. What a call costs is not known here: record with --ready and a workload that "
                               "prints RATE lines, or give --calls-per-second A,B.");
    if (!d->by_runs && (!(d->cost[0].variance > 0) || !(d->cost[1].variance > 0)))
        status = rp_compare_note(&r->notes, err, "rate-exact", "Rate taken as exact within the run: its variance is not known%s%s.",
                                 d->cost[0].variance > 0 ? " on side B" : d->cost[1].variance > 0 ? " on side A" : "",
                                 d->cost[0].lines || d->cost[1].lines ? " (three RATE lines within the recording would tell)" : "");
    return status;
}

static void put_name(const struct rp_tally_keys *keys, uint32_t key, enum rp_tally_by by, struct rp_buf *out)
{
    const char *name = rp_intern_text(&keys->text, keys->keys.at[key].name);

    if (by == RP_TALLY_FUNCTION)
        rp_text_symbol(out, name, NAME_COLUMNS, false);
    else
        rp_text_fit(out, name, NAME_COLUMNS);
}

static enum rp_status note_standing(struct rp_diff_report *r, struct rp_err *err)
{
    const struct rp_diff *d = r->diff;
    struct rp_buf names = {0};
    size_t n = 0;
    enum rp_status status = RP_OK;

    for (size_t i = 0; i < d->rows.n; i++) {
        const struct rp_diff_row *row = &d->rows.at[i];

        if (!row->cost_stands || n++ >= ROWS_TOLD)
            continue;
        rp_buf_puts(&names, n > 1 ? ", " : "");
        put_name(&d->keys, row->key, d->options.by, &names);
    }
    if (n)
        status = rp_compare_note(&r->notes, err, "share-only",
                                 "The share moved and the cost per %s did not move with it, because the rest became cheaper or dearer: %s%s. (The interval "
                                 "of the cost's change holds 0, and not what the share's move alone would be.)",
                                 d->per_row ? "row" : "call", rp_buf_text(&names), n > ROWS_TOLD ? ", …" : "");
    rp_buf_release(&names);
    return status;
}

static enum rp_status note_run_scatter(struct rp_diff_report *r, struct rp_err *err)
{
    const struct rp_diff *d = r->diff;
    char of_call[64] = "";

    if (d->run_scatter > 0)
        snprintf(of_call, sizeof of_call, "%g %% of the cost of a %s and ", 100 * d->run_scatter, d->per_row ? "row" : "call");
    return rp_compare_note(&r->notes, err, "run-scatter",
                           "Two runs of one program differ by more than one sees within a run; fewer than %d profiles a side do not tell by how much. Taken for it, "
                           "and within the intervals, are %s%g %% of each row's share (standard deviations, as of programs on a busy machine).",
                           RP_DIFF_RUNS_MIN, of_call, 100 * d->row_scatter);
}

static enum rp_status note_unit(struct rp_diff_report *r, struct rp_err *err)
{
    const struct rp_diff *d = r->diff;
    enum rp_status status = RP_OK;

    if (d->options.same)
        return rp_compare_note(&r->notes, err, "same-file", "Both sides are the same file.");
    if (d->by_runs)
        return rp_compare_note(&r->notes, err, "by-runs", "The unit is the run: Welch's test over %zu and %zu profiles.", d->files[0], d->files[1]);
    if (d->files[0] > 1 || d->files[1] > 1)
        status = rp_compare_note(&r->notes, err, "pooled", "The profiles of a side were added up; from %d a side on each run counts as one observation.",
                                 RP_DIFF_RUNS_MIN);
    return status ? status : note_run_scatter(r, err);
}

enum rp_status rp_diff_notes(struct rp_diff_report *r, struct rp_err *err)
{
    enum rp_status status = note_unit(r, err);

    if (status == RP_OK)
        status = note_run(r, err);
    if (status == RP_OK)
        status = note_builds(r, err);
    if (status == RP_OK)
        status = note_cost(r, err);
    if (status == RP_OK)
        status = note_standing(r, err);
    return status;
}

/* ---- shapes ---- */

/* Where the model is broken, in words: rows that the tables show by name, and how many there are besides. */
struct broken {
    struct rp_buf names;
    size_t named, more, hidden;
};

static void add_broken(struct broken *b, const struct rp_shapes *s, enum rp_tally_by by)
{
    for (size_t i = 0; i < s->rows.n; i++) {
        const struct rp_shapes_row *row = &s->rows.at[i];

        if (row->fit.label != RP_SHAPE_BROKEN)
            continue;
        if (row->rank >= RP_SHAPES_ROWS_SHOWN) {
            b->hidden++;
        } else if (b->named == ROWS_TOLD) {
            b->more++;
        } else {
            rp_buf_puts(&b->names, b->named++ ? ", " : "");
            put_name(&s->keys, row->key, by, &b->names);
        }
    }
}

static enum rp_status note_broken(struct rp_shapes_report *r, struct rp_err *err)
{
    const struct rp_shapes *s = r->shapes[0];
    struct broken b = {.named = 0};
    enum rp_status status = RP_OK;

    if (s->whole.label == RP_SHAPE_BROKEN) {
        rp_buf_puts(&b.names, "the whole");
        b.named++;
    }
    for (size_t t = 0; t < r->tables; t++)
        add_broken(&b, r->shapes[t], r->by[t]);
    if (b.more)
        rp_buf_printf(&b.names, " and %zu more shown", b.more);
    if (b.hidden)
        rp_buf_printf(&b.names, "%s%zu row%s that only -v shows", b.named ? ", and " : "", b.hidden, b.hidden == 1 ? "" : "s");
    if (b.named || b.hidden)
        status = rp_compare_note(&r->notes, err, "model-broken", "Model broken: cost is not c + N r in %s, because c or r would be negative%s. %s",
                                 rp_buf_text(&b.names), s->n > 2 ? ", or the shapes lie on no line" : "",
                                 s->n > 2 ? "Look at the call trees of the shapes one by one." : "Measure a third shape between the two.");
    if (b.names.failed)
        status = rp_fail_nomem(err);
    rp_buf_release(&b.names);
    return status;
}

/* Work that goes to other threads with one shape and not with the other looks like cost per row. */
static enum rp_status note_threads(struct rp_shapes_report *r, struct rp_err *err)
{
    double low = 1, high = 0;

    for (size_t i = 0; i < r->shapes[0]->n && !r->one_thread; i++) {
        uint64_t of_main = 0, all = 0;
        double part;

        rp_main_thread_samples(r->profiles[i], &of_main, &all);
        part = all ? (double)of_main / (double)all : 0;
        low = fmin(low, part);
        high = fmax(high, part);
    }
    if (!(high - low > main_thread_worth))
        return RP_OK;
    return rp_compare_note(&r->notes, err, "main-thread",
                           "The main thread has from %.1f %% to %.1f %% of the samples: other threads take a part that changes with the shape. Look at it "
                           "alone with --thread.",
                           100 * low, 100 * high);
}

enum rp_status rp_shapes_notes(struct rp_shapes_report *r, struct rp_err *err)
{
    const struct rp_shapes *s = r->shapes[0];
    size_t exact = 0;
    enum rp_status status = RP_OK;

    for (size_t i = 0; i < s->n; i++)
        exact += !(s->cost[i].variance > 0);
    if (exact)
        status = rp_compare_note(&r->notes, err, "rate-exact", "Rate taken as exact: its variance is not known for %zu of %zu shapes.", exact, s->n);
    if (status == RP_OK)
        status = note_threads(r, err);
    if (status == RP_OK)
        status = note_broken(r, err);
    return status;
}
