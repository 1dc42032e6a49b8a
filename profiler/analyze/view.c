/* SPDX-License-Identifier: MIT */
/* Makes a view: each function is matched once, each distinct stack is classified once. All tables are sums over those stacks.
 *
 * One function may be several in the profile: an inlined copy has no address, a static one may be compiled twice. Readers know names, so all functions of
 * one name and module are one here, represented by the first. */
#include "analyze/view.h"

#include <string.h>

#include "analyze/view_stack.h"
#include "base/parse.h"
#include "symbolize/symbolize.h"

struct cat_context rp_view_context(const struct rp_view *view, const struct rp_view_stack *stack)
{
    return (struct cat_context){.thread = rp_profile_text(view->profile, stack->comm), .state = CAT_RUNNING, .no_kernel = view->no_kernel};
}

static enum rp_status take_frames(const struct rp_view *view, uint32_t node, bool cut_kernel, struct rp_frames *frames, struct rp_err *err)
{
    const struct rp_profile *p = view->profile;

    rp_vec_clear(&frames->at);
    rp_vec_clear(&frames->symbols);
    for (; node; node = p->nodes.at[node].parent) {
        uint32_t id = p->nodes.at[node].location;
        const struct rp_location *l = &p->locations.at[id];

        if (cut_kernel && l->flags & RP_LOCATION_KERNEL)
            continue;
        if (!rp_vec_reserve(&frames->at, l->nlines) || !rp_vec_reserve(&frames->symbols, l->nlines))
            return rp_fail_nomem(err);
        for (uint32_t line = l->first_line; line < l->first_line + l->nlines; line++) {
            frames->at.at[frames->at.n++] = (struct rp_frame){id, line, view->lines[line].function};
            frames->symbols.at[frames->symbols.n++] = view->lines[line].symbol;
        }
    }
    return RP_OK;
}

enum rp_status rp_frames_take(const struct rp_view *view, uint32_t node, struct rp_frames *frames, struct rp_err *err)
{
    enum rp_status status = take_frames(view, node, view->no_kernel, frames, err);

    /* A kernel thread's stack, or one whose user part could not be had: a sample without a frame would be in no table. */
    if (status == RP_OK && !frames->at.n && view->no_kernel)
        status = take_frames(view, node, false, frames, err);
    return status;
}

void rp_frames_release(struct rp_frames *frames)
{
    rp_vec_release(&frames->at);
    rp_vec_release(&frames->symbols);
}

bool rp_view_passes_waiter(const struct rp_view *view, uint32_t waiter)
{
    return waiter >= view->profile->threads.n || view->passes[waiter];
}

size_t rp_view_above_claims(const struct rp_view_stack *stack)
{
    return (size_t)stack->verdict.outer + 1 - stack->shift;
}

size_t rp_view_asked_frame(const struct rp_view *view, const struct rp_frames *frames)
{
    for (size_t i = 0; i < frames->at.n; i++)
        if (!view->through[frames->at.at[i].function])
            return i;
    return 0;
}

bool rp_view_is_cut(const struct rp_profile *profile, uint32_t location)
{
    const struct rp_location *l = &profile->locations.at[location];
    static const char cut[] = "[truncated";

    return l->flags & RP_LOCATION_MARK && strncmp(rp_profile_text(profile, (uint32_t)l->addr), cut, sizeof cut - 1) == 0;
}

/* ---- functions ---- */

struct same_name {
    const struct rp_profile *profile;
    const struct rp_function *function;
};

static bool same_name(const void *context, uint32_t position)
{
    const struct same_name *key = context;
    const struct rp_function *f = &key->profile->functions.at[position];

    return f->name == key->function->name && f->module == key->function->module;
}

static enum rp_status find_same(struct rp_view *view, struct rp_err *err)
{
    const struct rp_profile *p = view->profile;
    struct rp_index index = {0};
    enum rp_status status = RP_OK;

    for (uint32_t i = 0; i < p->functions.n; i++) {
        const struct rp_function *f = &p->functions.at[i];
        struct same_name key = {p, f};
        uint32_t hash = rp_hash_u64((uint64_t)f->name << 32 | f->module);
        uint32_t *slot = rp_index_find(&index, hash, same_name, &key);

        if (!slot) {
            status = rp_fail_nomem(err);
            break;
        }
        if (*slot == RP_INDEX_EMPTY)
            rp_index_set(&index, slot, hash, i);
        view->same[i] = *slot;
    }
    rp_index_release(&index);
    return status;
}

/* Appends the short form of a symbol's name and a NUL; gives where it begins. */
static size_t add_short(struct rp_buf *out, const char *raw, enum rp_name_how how)
{
    static const struct {
        enum rp_name_how how;
        const char *suffix;
    } suffixes[] = {{RP_NAME_PLT, "@plt"}, {RP_NAME_STUB_LOCAL, " [local]"}};
    size_t begin = out->length, length = strlen(raw);
    struct rp_buf bare = {0};

    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t n = strlen(suffixes[i].suffix);

        if (how == suffixes[i].how && length > n && strcmp(raw + length - n, suffixes[i].suffix) == 0)
            length -= n;
    }
    if (how == RP_NAME_JIT || how == RP_NAME_OFFSET || how == RP_NAME_MARK) {
        rp_buf_append(out, raw, length); /* a JavaScript name may look like anything */
    } else {
        rp_buf_append(&bare, raw, length);
        rp_demangle(rp_buf_text(&bare), true, out);
        out->failed |= bare.failed;
    }
    rp_buf_putc(out, '\0');
    rp_buf_release(&bare);
    return begin;
}

static const char hidden_mark[] = "[kernel: not visible";

struct matching {
    struct rp_buf text;         /* the short forms of one function */
    RP_VEC(const char *) names; /* into it: its aliases */
    RP_VEC(size_t) begins;
};

static enum rp_status match_function(struct rp_view *view, const struct rp_function *f, bool kernel, struct matching *m, uint32_t *symbol,
                                     struct rp_err *err)
{
    const struct rp_profile *p = view->profile;
    const char *raw = rp_profile_text(p, f->raw ? f->raw : f->name);
    struct cat_symbol s = {.name = rp_profile_text(p, f->name),
                           .raw = raw,
                           .module = rp_profile_text(p, f->module),
                           .file = f->file ? rp_profile_text(p, f->file) : NULL,
                           .kernel = kernel,
                           .mark = f->how == RP_NAME_MARK};

    /* Time in a kernel that permission hides stands under a mark, too, but is no unknown root: a rule names it. */
    if (s.mark && !strncmp(s.name, hidden_mark, sizeof hidden_mark - 1)) {
        s.mark = false;
        s.kernel = true;
        s.module = "[kernel]";
    }

    rp_buf_clear(&m->text);
    rp_vec_clear(&m->names);
    rp_vec_clear(&m->begins);
    (void)add_short(&m->text, raw, f->how);
    if (!rp_vec_reserve(&m->names, f->naliases) || !rp_vec_reserve(&m->begins, f->naliases))
        return rp_fail_nomem(err);
    for (uint32_t i = 0; i < f->naliases; i++)
        m->begins.at[m->begins.n++] = add_short(&m->text, rp_profile_text(p, p->aliases.at[f->first_alias + i]), f->how);
    if (m->text.failed)
        return rp_fail_nomem(err);
    for (size_t i = 0; i < m->begins.n; i++) /* only now does the text stay where it is */
        m->names.at[m->names.n++] = rp_buf_text(&m->text) + m->begins.at[i];
    s.short_name = rp_buf_text(&m->text);
    s.aliases = m->names.at;
    s.naliases = m->names.n;
    return cat_matcher_symbol(view->matcher, &s, symbol, err);
}

/* Whether a function passes the question to its caller: asked of a stack of nothing else. */
static bool passes_on(const struct rp_view *view, uint32_t symbol)
{
    struct cat_context context = {.thread = "", .state = CAT_RUNNING, .no_kernel = false};
    struct cat_verdict verdict;

    cat_classify(view->matcher, &symbol, 1, &context, &verdict);
    return verdict.rule == CAT_NO_RULE && verdict.why == CAT_WHY_THROUGH;
}

static enum rp_status match_functions(struct rp_view *view, struct rp_err *err)
{
    const struct rp_profile *p = view->profile;
    uint32_t *symbols = rp_calloc(p->functions.n + 1, sizeof *symbols);
    bool *kernel = rp_calloc(p->functions.n + 1, sizeof *kernel);
    struct matching matching = {0};
    enum rp_status status = symbols && kernel ? RP_OK : rp_fail_nomem(err);

    for (size_t i = 0; status == RP_OK && i < p->locations.n; i++) {
        const struct rp_location *l = &p->locations.at[i];

        for (uint32_t line = 0; l->flags & RP_LOCATION_KERNEL && line < l->nlines; line++)
            kernel[p->lines.at[l->first_line + line].function] = true;
    }
    for (uint32_t i = 0; status == RP_OK && i < p->functions.n; i++) {
        status = match_function(view, &p->functions.at[i], kernel[i], &matching, &symbols[i], err);
        if (status == RP_OK)
            view->through[view->same[i]] |= passes_on(view, symbols[i]);
    }
    for (size_t i = 0; status == RP_OK && i < p->lines.n; i++) {
        uint32_t function = p->lines.at[i].function;

        view->lines[i] = (struct rp_view_line){view->same[function], symbols[function]};
    }
    rp_buf_release(&matching.text);
    rp_vec_release(&matching.names);
    rp_vec_release(&matching.begins);
    rp_free(symbols);
    rp_free(kernel);
    return status;
}

/* ---- threads ---- */

/* Threads of the program that was there before an execve are those of what launched it, which nobody asks for. */
static bool is_of_last_program(const struct rp_profile *p, const struct rp_profile_thread *thread)
{
    const struct rp_profile_process *own = &p->processes.at[thread->process];

    for (size_t i = 0; i < p->processes.n; i++)
        if (p->processes.at[i].pid == own->pid && p->processes.at[i].generation > own->generation)
            return false;
    return true;
}

/* The names of all threads, each once, as far as the sentence has room. */
static enum rp_status no_such_thread(const struct rp_profile *p, const char *name, struct rp_err *err)
{
    struct rp_buf list = {0};
    enum rp_status status;

    for (size_t i = 0; i < p->threads.n && list.length < RP_ERR_TEXT / 2; i++) {
        size_t same = 0, first = i;

        if (!is_of_last_program(p, &p->threads.at[i]))
            continue;
        for (size_t j = 0; j < p->threads.n; j++)
            if (p->threads.at[j].comm == p->threads.at[i].comm && is_of_last_program(p, &p->threads.at[j])) {
                first = j < first ? j : first;
                same++;
            }
        if (first < i)
            continue;
        rp_buf_printf(&list, "%s%s", list.length ? ", " : "", rp_profile_text(p, p->threads.at[i].comm));
        if (same > 1)
            rp_buf_printf(&list, " (%zu of them)", same);
        else
            rp_buf_printf(&list, " (%u)", p->threads.at[i].tid);
    }
    status = rp_fail(err, RP_NOTFOUND, "no thread has the name or tid %s; there are %s", name, list.length ? rp_buf_text(&list) : "none");
    rp_buf_release(&list);
    return status;
}

static enum rp_status filter_threads(struct rp_view *view, const char *thread, struct rp_err *err)
{
    const struct rp_profile *p = view->profile;
    bool any = false;
    uint64_t tid = 0;
    bool is_tid = thread && rp_parse_u64(thread, 0, UINT32_MAX, &tid);

    for (size_t i = 0; i < p->threads.n; i++) {
        const struct rp_profile_thread *t = &p->threads.at[i];

        view->passes[i] = !thread || strcmp(rp_profile_text(p, t->comm), thread) == 0 || (is_tid && t->tid == tid);
        any |= view->passes[i];
        view->filtered |= !view->passes[i];
    }
    return thread && !any ? no_such_thread(p, thread, err) : RP_OK;
}

/* ---- stacks ---- */

struct stack_key {
    const struct rp_view *view;
    uint32_t node, comm;
};

static bool same_stack(const void *context, uint32_t position)
{
    const struct stack_key *key = context;
    const struct rp_view_stack *s = &key->view->stacks.at[position];

    return s->node == key->node && s->comm == key->comm;
}

static enum rp_status add_stack(struct rp_view *view, uint32_t node, uint32_t comm, uint32_t *id, struct rp_err *err)
{
    struct stack_key key = {view, node, comm};
    uint32_t hash = rp_hash_u64((uint64_t)node << 32 | comm);
    uint32_t *slot = rp_index_find(&view->stack_index, hash, same_stack, &key);
    struct rp_view_stack *new;

    if (slot && *slot != RP_INDEX_EMPTY) {
        *id = *slot;
        return RP_OK;
    }
    new = slot ? rp_vec_add(&view->stacks) : NULL;
    if (!new)
        return rp_fail_nomem(err);
    *new = (struct rp_view_stack){.node = node, .comm = comm};
    *id = (uint32_t)view->stacks.n - 1;
    rp_index_set(&view->stack_index, slot, hash, *id);
    return RP_OK;
}

/* Waiting is not on the CPU: blocked counts are left out of every figure here. */
static enum rp_status collect_stacks(struct rp_view *view, struct rp_err *err)
{
    const struct rp_profile *p = view->profile;

    for (size_t i = 0; i < p->counts.n; i++) {
        const struct rp_count *c = &p->counts.at[i];
        enum rp_status status;

        view->stack_of[i] = RP_NO_STACK;
        if (!view->passes[c->thread] || c->state != RP_STATE_RUNNING)
            continue;
        status = add_stack(view, c->node, p->threads.at[c->thread].comm, &view->stack_of[i], err);
        if (status)
            return status;
        view->stacks.at[view->stack_of[i]].samples += c->n;
        view->block_samples[c->block] += c->n;
        view->samples += c->n;
    }
    return RP_OK;
}

static enum rp_status classify_stacks(struct rp_view *view, struct rp_err *err)
{
    struct rp_frames frames = {0};
    enum rp_status status = RP_OK;

    for (size_t i = 0; i < view->stacks.n && status == RP_OK; i++) {
        struct rp_view_stack *s = &view->stacks.at[i];
        struct cat_context context = rp_view_context(view, s);

        status = rp_frames_take(view, s->node, &frames, err);
        if (status == RP_OK)
            cat_classify(view->matcher, frames.symbols.at, frames.symbols.n, &context, &s->verdict);
    }
    rp_frames_release(&frames);
    return status;
}

static uint32_t count_blocks(const struct rp_profile *p)
{
    uint64_t whole = p->run.seconds_ns / p->block_ns + (p->run.seconds_ns % p->block_ns != 0);
    uint32_t n = whole < RP_BLOCKS_MAX ? (uint32_t)whole : RP_BLOCKS_MAX;

    return n > p->nblocks ? n : p->nblocks;
}

enum rp_status rp_view_new(const struct rp_profile *profile, const struct cat_rules *rules, const struct rp_filter *filter, struct rp_view **out,
                           struct rp_err *err)
{
    struct rp_view *view = rp_calloc(1, sizeof *view);
    enum rp_status status;

    if (!view)
        return rp_fail_nomem(err);
    view->profile = profile;
    view->rules = rules;
    view->no_kernel = filter->no_kernel;
    view->nblocks = count_blocks(profile);
    view->passes = rp_calloc(profile->threads.n + 1, sizeof *view->passes);
    view->same = rp_calloc(profile->functions.n + 1, sizeof *view->same);
    view->through = rp_calloc(profile->functions.n + 1, sizeof *view->through);
    view->lines = rp_calloc(profile->lines.n + 1, sizeof *view->lines);
    view->stack_of = rp_calloc(profile->counts.n + 1, sizeof *view->stack_of);
    view->block_samples = rp_calloc(RP_BLOCKS_MAX, sizeof *view->block_samples);
    status = view->passes && view->same && view->through && view->lines && view->stack_of && view->block_samples ? RP_OK : rp_fail_nomem(err);
    if (status == RP_OK)
        status = filter_threads(view, filter->thread, err);
    if (status == RP_OK)
        status = cat_matcher_new(rules, &view->matcher, err);
    if (status == RP_OK)
        status = find_same(view, err);
    if (status == RP_OK)
        status = match_functions(view, err);
    if (status == RP_OK)
        status = collect_stacks(view, err);
    if (status == RP_OK)
        status = classify_stacks(view, err);
    if (status) {
        rp_view_free(view);
        return status;
    }
    *out = view;
    return RP_OK;
}

void rp_view_free(struct rp_view *view)
{
    if (!view)
        return;
    cat_matcher_free(view->matcher);
    rp_free(view->passes);
    rp_free(view->same);
    rp_free(view->through);
    rp_free(view->lines);
    rp_vec_release(&view->stacks);
    rp_index_release(&view->stack_index);
    rp_free(view->stack_of);
    rp_free(view->block_samples);
    rp_free(view);
}

const struct rp_profile *rp_view_profile(const struct rp_view *view)
{
    return view->profile;
}

const struct cat_rules *rp_view_rules(const struct rp_view *view)
{
    return view->rules;
}
