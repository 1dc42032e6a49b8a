/* SPDX-License-Identifier: MIT */
/* The notes below a report, see notes.h: one function each, in the order they are printed. Each says what is wrong, how large it is, and what helps;
 * below the threshold that stands beside it, nothing. */
#include "report/notes.h"

#include <inttypes.h>
#include <string.h>

#include "report/unclaimed.h"
#include "report/utf8.h"

/* Shares from which a thing is worth a line. */
static const double lost_worth = 0.01, cut_worth = 0.01, nameless_worth = 0.01, jit_worth = 0.02, hidden_worth = 0.01, uncategorized_worth = 0.05,
                    unsteady_worth = 0.01, foreign_worth = 0.03;

enum { FEW_SAMPLES = 200, NAMED_MAX = 3 };

static double part(uint64_t a, uint64_t of)
{
    return of ? (double)a / (double)of : 0;
}

static double percent(uint64_t a, uint64_t of)
{
    return 100 * part(a, of);
}

/* Takes over what `text` holds as a note of the name `id`; an empty text is no note. */
static enum rp_status note(struct rp_report *r, const char *id, struct rp_buf *text, struct rp_err *err)
{
    struct rp_note *n = NULL;

    if (!text->failed && text->length)
        n = rp_vec_add(&r->notes);
    if (!n) {
        bool empty = !text->failed && !text->length;

        rp_buf_release(text);
        return empty ? RP_OK : rp_fail_nomem(err);
    }
    *n = (struct rp_note){id, text->data};
    return RP_OK;
}

static void count_of(struct rp_buf *b, uint64_t n, const char *one, const char *many)
{
    rp_text_count(b, n);
    rp_buf_printf(b, " %s", n == 1 ? one : many);
}

static enum rp_status note_few(struct rp_report *r, struct rp_err *err)
{
    struct rp_buf b = {0};

    if (r->quality.samples && r->quality.samples < FEW_SAMPLES) {
        rp_buf_puts(&b, "Only ");
        count_of(&b, r->quality.samples, "sample", "samples");
        rp_buf_puts(&b, ": the intervals are wide. Record longer (--seconds), or while the target is busier.");
    }
    return note(r, "few-samples", &b, err);
}

static enum rp_status note_lost(struct rp_report *r, struct rp_err *err)
{
    const struct rp_quality *q = &r->quality;
    double lost = rp_lost_part(q, &r->profile->run);
    bool mixed = r->profile->run.waits == 1 || r->profile->run.switches > 0;
    struct rp_buf b = {0};

    if (lost > lost_worth) {
        count_of(&b, q->lost, mixed ? "record was" : "sample was", mixed ? "records were" : "samples were");
        rp_buf_printf(&b, " lost (%.1f %%) because the buffers were full; shares are those of the samples kept%s. A lower --freq helps%s; so"
                          " does a machine less busy.",
                      100 * lost, mixed ? ", and times of running and waiting are not exact: switches are among what was lost" : "",
                      mixed ? ", and --no-waiting" : "");
    }
    return note(r, "lost", &b, err);
}

static enum rp_status note_throttled(struct rp_report *r, struct rp_err *err)
{
    struct rp_buf b = {0};

    if (r->quality.throttled) {
        rp_buf_puts(&b, "The kernel held sampling back ");
        count_of(&b, r->quality.throttled, "time", "times");
        rp_buf_puts(&b, " because it took too much of the CPU; a lower --freq helps.");
    }
    return note(r, "throttled", &b, err);
}

static enum rp_status note_unsampled(struct rp_report *r, struct rp_err *err)
{
    struct rp_buf b = {0};

    if (r->profile->run.threads_unsampled) {
        count_of(&b, r->profile->run.threads_unsampled, "thread was", "threads were");
        rp_buf_puts(
            &b,
            " not sampled for want of file descriptors: raise the limit (ulimit -n), or give rowprof the right to watch whole CPUs (CAP_PERFMON).");
    }
    return note(r, "threads-unsampled", &b, err);
}

static bool saw_kernel(const struct rp_profile *p)
{
    for (size_t i = 0; i < p->locations.n; i++) {
        if (p->locations.at[i].flags & RP_LOCATION_KERNEL)
            return true;
    }
    return p->run.kernel_visible || !strcmp(rp_profile_text(p, p->run.source), "replay") ||
           !strcmp(rp_profile_text(p, p->run.source), "ptrace"); /* kernel time is in the caller's samples, as the sampler's note says */
}

/* Without kernel samples the clock still knows the whole CPU time, so the hidden part has a size. */
static enum rp_status note_kernel(struct rp_report *r, struct rp_err *err)
{
    const struct rp_profile *p = r->profile;
    double cpu = 0, seen = p->run.hz ? (double)r->quality.samples / p->run.hz : 0;
    uint32_t hidden = cat_rules_find_category(r->rules, "kernel.hidden");
    bool has_row = hidden != UINT32_MAX && rp_report_row(r, hidden) != NULL;
    struct rp_buf b = {0};

    for (size_t i = 0; i < p->threads.n; i++)
        cpu += (double)p->threads.at[i].cpu_ns / 1e9;
    if (!saw_kernel(p) && (r->quality.samples || cpu > 0)) {
        rp_buf_puts(&b, has_row ? "Time in the kernel is not visible with the present rights; the clocks of the threads count it, and it has a row of its own"
                                : "Time in the kernel is not visible with the present rights and is missing from the shares");
        if (!has_row && !r->options.thread && cpu > 0 && 1 - seen / cpu >= hidden_worth)
            rp_buf_printf(&b, ": about %.0f %% of the %.1f s of CPU time", 100 * (1 - seen / cpu), cpu);
        /* The sampler's own note may hold setting and remedy. */
        rp_buf_puts(&b, strstr(rp_profile_text(p, p->run.note), "paranoid")
                            ? "."
                            : ". It shows with CAP_PERFMON, or with kernel.perf_event_paranoid at 1 or below.");
    }
    return note(r, "kernel-hidden", &b, err);
}

/* The mark that each cut stack has for a root, by count. */
static enum rp_status cut_reasons(const struct rp_report *r, struct rp_buf *b, struct rp_err *err)
{
    struct reason {
        uint32_t location;
        uint64_t n;
    } reasons[16] = {0};
    const struct rp_profile *p = r->profile;
    uint32_t *top = rp_calloc(p->nodes.n, sizeof *top);
    size_t n = 0;

    if (!top)
        return rp_fail_nomem(err);
    for (uint32_t i = 1; i < p->nodes.n; i++)
        top[i] = p->nodes.at[i].parent ? top[p->nodes.at[i].parent] : i;
    for (size_t i = 0; i < p->counts.n; i++) {
        const struct rp_count *c = &p->counts.at[i];
        uint32_t location = c->node ? p->nodes.at[top[c->node]].location : 0;
        size_t k = 0;

        if (!c->node || c->state != RP_STATE_RUNNING || !(p->locations.at[location].flags & RP_LOCATION_MARK))
            continue;
        while (k < n && reasons[k].location != location)
            k++;
        if (k == sizeof reasons / sizeof *reasons)
            continue;
        reasons[k].location = location;
        reasons[k].n += c->n;
        n += k == n;
    }
    for (size_t i = 0; i < n; i++) {
        rp_buf_puts(b, i ? ", " : ": ");
        rp_text_count(b, reasons[i].n);
        rp_buf_puts(b, " times ");
        rp_text_fit(b, rp_profile_text(p, (uint32_t)p->locations.at[reasons[i].location].addr), 60);
    }
    rp_free(top);
    return RP_OK;
}

static enum rp_status note_cut(struct rp_report *r, struct rp_err *err)
{
    struct rp_buf b = {0};
    enum rp_status status = RP_OK;

    if (part(r->quality.truncated, r->quality.samples) >= cut_worth) {
        rp_buf_printf(&b, "%.1f %% of the stacks do not reach their root", percent(r->quality.truncated, r->quality.samples));
        if (!r->options.thread)
            status = cut_reasons(r, &b, err);
        rp_buf_puts(&b, ".");
    }
    if (status) {
        rp_buf_release(&b);
        return status;
    }
    return note(r, "stacks-cut", &b, err);
}

static enum rp_status note_grown(struct rp_report *r, struct rp_err *err)
{
    struct rp_buf b = {0};

    if (r->profile->run.stack_grown) {
        rp_buf_puts(&b, "Stacks were cut at first, so the copy taken of each was grown to ");
        rp_text_count(&b, r->profile->run.stack_bytes);
        rp_buf_puts(&b, " bytes.");
    }
    return note(r, "stack-grown", &b, err);
}

struct runtime {
    const char *program; /* how the program's name begins */
    const char *remedy;
};

static const struct runtime runtimes[] = {
    {"node", "start node with --perf-basic-prof --interpreted-frames-native-stack"},
    {"MainThread", "start node with --perf-basic-prof --interpreted-frames-native-stack"},
    {"python", "start Python 3.12 or newer with -X perf"},
    {"dotnet", "set DOTNET_PerfMapEnabled=1 in the environment of dotnet"},
    {"java", "let a perf map agent run in the JVM, and start it with -XX:+PreserveFramePointer"},
    {"", "start the runtime with its perf map switched on"},
};

/* The program's base name: of the first word of its command line. */
static const char *program_name(const struct rp_profile *p, const struct rp_profile_process *process)
{
    const char *command = rp_profile_text(p, process->command ? process->command : process->comm), *name = command;

    for (const char *at = command; *at && *at != ' '; at++)
        name = *at == '/' ? at + 1 : name;
    return name;
}

static const char *jit_remedy(const struct rp_profile *p)
{
    const size_t last = sizeof runtimes / sizeof *runtimes - 1;

    for (size_t i = 0; i < p->processes.n; i++) {
        for (size_t k = 0; k < last; k++) {
            if (!strncmp(program_name(p, &p->processes.at[i]), runtimes[k].program, strlen(runtimes[k].program)))
                return runtimes[k].remedy;
        }
    }
    return runtimes[last].remedy;
}

static bool is_refused_map(const struct rp_profile *p, const struct rp_profile_image *image)
{
    return image->note && !strcmp(rp_profile_text(p, image->name), "[jit]");
}

/* Generated code whose map was refused; of several the one with most samples. NULL: none. */
static const struct rp_profile_image *refused_map(const struct rp_report *r)
{
    const struct rp_profile *p = r->profile;

    for (size_t i = 0; i < r->nameless.rows.n; i++) {
        if (is_refused_map(p, &p->images.at[r->nameless.rows.at[i].image]))
            return &p->images.at[r->nameless.rows.at[i].image];
    }
    for (size_t i = 0; i < p->images.n; i++) {
        if (is_refused_map(p, &p->images.at[i]))
            return &p->images.at[i];
    }
    return NULL;
}

static enum rp_status note_jit(struct rp_report *r, struct rp_err *err)
{
    const struct rp_profile *p = r->profile;
    const struct rp_profile_image *refused = refused_map(r);
    struct rp_buf b = {0};

    if (part(r->quality.jit_unnamed, r->quality.samples) < jit_worth)
        return RP_OK;
    rp_buf_printf(&b, "%.1f %% of the samples run through generated code without names", percent(r->quality.jit_unnamed, r->quality.samples));
    if (refused) {
        rp_buf_puts(&b, ": ");
        rp_text_fit(&b, rp_profile_text(p, refused->note), 250);
    }
    if (refused && refused->remedy) {
        rp_buf_puts(&b, "; ");
        rp_text_fit(&b, rp_profile_text(p, refused->remedy), 160);
        rp_buf_putc(&b, '.');
    } else {
        rp_buf_printf(&b, "; %s%s.", refused ? "remove it, and " : "to name it, ", jit_remedy(p));
    }
    return note(r, "jit-unnamed", &b, err);
}

static enum rp_status note_map(struct rp_report *r, struct rp_err *err)
{
    const struct rp_run *run = &r->profile->run;
    struct rp_buf b = {0};

    if (run->map_rejected) {
        rp_text_count(&b, run->map_rejected);
        rp_buf_puts(&b, " of ");
        count_of(&b, run->map_lines + run->map_rejected, "line", "lines");
        rp_buf_puts(&b, " of the JIT map could not be read and were left out.");
    }
    return note(r, "map-rejected", &b, err);
}

static void nameless_sentence(const struct rp_report *r, const struct rp_nameless *row, struct rp_buf *b)
{
    const struct rp_profile *p = r->profile;
    const struct rp_profile_image *image = &p->images.at[row->image];
    const char *remedy = rp_profile_text(p, image->remedy), *build_id = rp_profile_text(p, image->build_id), *why = rp_profile_text(p, image->note);

    rp_buf_printf(b, "%s%.1f %% of the samples are in code of ", b->length ? " " : "", percent(row->samples, r->quality.samples));
    rp_text_fit(b, rp_profile_text(p, image->name), 60);
    rp_buf_puts(b, " that has no names");
    if (*why) {
        rp_buf_puts(b, " (");
        rp_text_fit(b, why, 200);
        rp_buf_puts(b, ")");
    }
    if (*remedy) {
        rp_buf_puts(b, ": installing ");
        rp_text_fit(b, remedy, 80);
        rp_buf_puts(b, " would name it.");
    } else if (*build_id) {
        rp_buf_printf(b, ": it is stripped; debug symbols for its build-id %.40s would name it (--debuginfod asks for them).", build_id);
    } else {
        rp_buf_puts(b, ".");
    }
}

static enum rp_status note_nameless(struct rp_report *r, struct rp_err *err)
{
    struct rp_buf b = {0};

    for (size_t i = 0, said = 0; i < r->nameless.rows.n && said < NAMED_MAX; i++) {
        const struct rp_nameless *row = &r->nameless.rows.at[i];
        const char *name = rp_profile_text(r->profile, r->profile->images.at[row->image].name);

        if (part(row->samples, r->quality.samples) < nameless_worth || !strcmp(name, "[jit]"))
            continue;
        nameless_sentence(r, row, &b);
        said++;
    }
    return note(r, "nameless", &b, err);
}

/* After an upgrade the running program and the file at its path are two things: names come from the running one, and the reader is told. */
static enum rp_status note_replaced(struct rp_report *r, struct rp_err *err)
{
    const struct rp_profile *p = r->profile;
    struct rp_buf b = {0};
    size_t said = 0;

    for (size_t i = 0; i < p->images.n && said < NAMED_MAX; i++) {
        if (strcmp(rp_profile_text(p, p->images.at[i].note), "replaced on disk") != 0)
            continue;
        rp_buf_puts(&b, said++ ? ", " : "");
        rp_text_fit(&b, rp_profile_text(p, p->images.at[i].name), 60);
    }
    if (said)
        rp_buf_printf(&b, "%s replaced on disk since %s loaded; names are those of the running code.", said == 1 ? " was" : " were",
                      said == 1 ? "it was" : "they were");
    return note(r, "replaced", &b, err);
}

static enum rp_status note_drift(struct rp_report *r, struct rp_err *err)
{
    struct rp_buf b = {0};
    size_t n = 0;

    for (size_t i = 0; i < r->drift.rows.n && n < NAMED_MAX; i++) {
        const struct rp_drift *d = &r->drift.rows.at[i];

        if (d->first < unsteady_worth && d->second < unsteady_worth)
            continue;
        rp_buf_puts(&b, n++ ? ", " : "The run was not steady, more than chance allows; its shares are averages. From the first half to the second: ");
        rp_text_fit(&b, cat_rules_category(r->rules, d->category)->name, 60);
        rp_buf_printf(&b, " %.1f %% -> %.1f %%", 100 * d->first, 100 * d->second);
    }
    if (b.length)
        rp_buf_puts(&b, ".");
    return note(r, "drift", &b, err);
}

static enum rp_status note_rising(struct rp_report *r, struct rp_err *err)
{
    struct rp_buf b = {0};
    size_t n = 0;

    for (size_t i = 0; i < r->categories.rows.n && n < NAMED_MAX; i++) {
        const struct rp_category_row *row = &r->categories.rows.at[i];

        if (!row->rising || row->share < unsteady_worth || row->deff < 2)
            continue;
        rp_buf_puts(&b, n++ ? ", " : "There are phases longer than the run can average, so the intervals are too narrow for ");
        rp_text_fit(&b, cat_rules_category(r->rules, row->category)->name, 60);
    }
    if (b.length)
        rp_buf_puts(&b, "; record longer (--seconds).");
    return note(r, "phases", &b, err);
}

static enum rp_status note_uncategorized(struct rp_report *r, struct rp_err *err)
{
    const struct rp_category_row *row = rp_report_row(r, cat_rules_uncategorized(r->rules));
    struct rp_buf b = {0};

    if (row && row->share >= uncategorized_worth && r->options.by == RP_BY_CATEGORY) {
        rp_buf_printf(&b, "%.1f %% of the samples are claimed by no rule; ", 100 * row->share);
        if (r->options.file) {
            rp_buf_puts(&b, "`rowprof report --uncategorized ");
            rp_text_fit(&b, r->options.file, 200);
            rp_buf_puts(&b, "` lists them with the rule that would.");
        } else {
            rp_buf_puts(&b, "keep the profile (-o FILE), and `rowprof report --uncategorized FILE` lists them with the rule that would.");
        }
    }
    return note(r, "uncategorized", &b, err);
}

/* Functions of one module that a category has through its frames in another. */
struct foreign {
    uint32_t functions[NAMED_MAX]; /* the heaviest */
    size_t n;
    uint64_t samples;
};

static bool same_foreign(const struct rp_report *r, const struct rp_unclaimed *a, const struct rp_unclaimed *b)
{
    const struct rp_function *functions = r->profile->functions.at;

    return b->foreign && a->category == b->category && functions[a->function].module == functions[b->function].module;
}

/* False: the group of row `at` was gathered at an earlier row. */
static bool gather_foreign(const struct rp_report *r, size_t at, struct foreign *out)
{
    *out = (struct foreign){{0}, 0, 0};
    for (size_t i = 0; i < r->unclaimed.rows.n; i++) {
        const struct rp_unclaimed *row = &r->unclaimed.rows.at[i];

        if (!same_foreign(r, &r->unclaimed.rows.at[at], row))
            continue;
        if (i < at)
            return false;
        if (out->n < NAMED_MAX)
            out->functions[out->n] = row->function;
        out->n++;
        out->samples += row->samples;
    }
    return out->n > 0;
}

static void foreign_sentence(const struct rp_report *r, const struct rp_unclaimed *row, const struct foreign *f, struct rp_buf *b)
{
    const struct rp_function *functions = r->profile->functions.at;
    size_t named = f->n < NAMED_MAX ? f->n : NAMED_MAX;

    rp_buf_printf(b, "%s%.1f %% of the samples are in ", b->length ? " " : "", percent(f->samples, r->quality.samples));
    rp_text_fit(b, cat_rules_category(r->rules, row->category)->name, 60);
    rp_buf_puts(b, " only because it calls ");
    for (size_t i = 0; i < named; i++) {
        rp_buf_puts(b, !i ? "" : i + 1 == f->n ? " and " : ", ");
        if (functions[f->functions[i]].how == RP_NAME_OFFSET)
            rp_buf_puts(b, "code without names");
        else
            rp_text_symbol(b, rp_profile_text(r->profile, functions[f->functions[i]].name), 80, false);
    }
    if (f->n > named)
        rp_buf_printf(b, " and %zu more", f->n - named);
    rp_buf_puts(b, " (in ");
    rp_text_fit(b, rp_profile_text(r->profile, functions[row->function].module), 60);
    rp_buf_printf(b, "), which no rule claims; a rule keeps %s apart: {id: mine-1, category: mine, ", f->n > 1 ? "them" : "it");
    rp_unclaimed_rule(r, f->functions, named, b);
    rp_buf_puts(b, "}.");
}

/* What a category takes along from elsewhere is a cost of another name: an SQL function of the program is no work of the database. */
static enum rp_status note_foreign(struct rp_report *r, struct rp_err *err)
{
    struct rp_buf b = {0};
    struct foreign f;

    for (size_t i = 0, said = 0; r->options.by == RP_BY_CATEGORY && i < r->unclaimed.rows.n && said < NAMED_MAX; i++) {
        if (!r->unclaimed.rows.at[i].foreign || !gather_foreign(r, i, &f) || part(f.samples, r->quality.samples) < foreign_worth)
            continue;
        foreign_sentence(r, &r->unclaimed.rows.at[i], &f, &b);
        said++;
    }
    if (b.length)
        rp_buf_puts(&b, " `rowprof report --uncategorized` writes the file of rules.");
    return note(r, "inherited", &b, err);
}

static enum rp_status note_regex(struct rp_report *r, struct rp_err *err)
{
    struct rp_buf b = {0};

    if (r->quality.gave_up) {
        rp_buf_puts(&b, "A regex of the rules was ended by its limit of steps on ");
        count_of(&b, r->quality.gave_up, "name", "names");
        rp_buf_puts(&b, ", which counts as no match; `rowprof rules explain NAME` tells which regex it is.");
    }
    return note(r, "regex-limit", &b, err);
}

static enum rp_status note_waits(struct rp_report *r, struct rp_err *err)
{
    struct rp_buf b = {0};

    if (r->waits && r->profile->run.waits == 2)
        rp_buf_puts(&b, "Waits were found by looking at blocked threads from time to time, not by switch records: short ones are missed, and how long one"
                        " took is known to within two looks.");
    return note(r, "waits-sampled", &b, err);
}

static enum rp_status note_sampler(struct rp_report *r, struct rp_err *err)
{
    struct rp_buf b = {0};

    rp_text_fit(&b, rp_profile_text(r->profile, r->profile->run.note), 600);
    return note(r, "sampler", &b, err);
}

typedef enum rp_status note_maker(struct rp_report *r, struct rp_err *err);

static note_maker *const makers[] = {
    note_few,   note_lost,  note_throttled, note_unsampled, note_kernel, note_waits, note_sampler, note_cut,
    note_grown, note_drift, note_rising,    note_replaced,  note_nameless, note_jit,   note_map,     note_uncategorized, note_foreign, note_regex,
};

enum rp_status rp_notes_gather(struct rp_report *report, struct rp_err *err)
{
    enum rp_status status = RP_OK;

    for (size_t i = 0; !status && i < sizeof makers / sizeof *makers; i++)
        status = makers[i](report, err);
    return status;
}
