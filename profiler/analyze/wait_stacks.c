/* SPDX-License-Identifier: MIT */
/* Classifies every distinct stack that waited, and scales the waits whose stack was seen up to the exact totals.
 *
 *     totals (thread, class): N waits, exact ns         ┐
 *     waits  (thread, class, stack …): m <= N, their ns ┘  per line: its ns / the class's stacked ns x exact ns
 *
 * The trap is scaling over all classes at once: when stacks are thinned, ten long fsyncs (all stacked) beside 50 000 short futex waits (one in a hundred)
 * would lose nearly all their time. Within a class of one thread all waits are about equally long, so there the stacked ones speak for the rest. */
#include <stdlib.h>
#include <string.h>

#include "analyze/wait_scaling.h"
#include "analyze/wait_sleepers.h"

enum { SYSCALLS = 1024 };

/* A wait as long as this part of the time its thread was watched is the whole run: looking takes a moment at both ends. */
static const double whole_run = 0.98;

struct cat_context rp_wait_context(const struct rp_view *view, uint32_t comm, bool never_ran, bool holds)
{
    /* Kernel frames that the view cuts are not there; one for the system call is asked all the same. */
    return (struct cat_context){
        .thread = rp_profile_text(view->profile, comm), .state = CAT_BLOCKED, .never_ran = never_ran, .holds_lock = holds};
}

static enum rp_status syscall_symbol(const struct rp_view *view, int number, struct rp_wait_walk *walk, uint32_t *symbol, struct rp_err *err)
{
    struct cat_symbol s = {.module = "[kernel]", .kernel = true};
    struct rp_buf name = {0};
    enum rp_status status;
    uint32_t id = 0;

    if (!walk->syscall_symbols)
        walk->syscall_symbols = rp_calloc(SYSCALLS, sizeof *walk->syscall_symbols);
    if (!walk->syscall_symbols)
        return rp_fail_nomem(err);
    *symbol = walk->syscall_symbols[number];
    if (*symbol)
        return RP_OK;
    if (*rp_syscall_name(number))
        rp_buf_printf(&name, "__x64_sys_%s", rp_syscall_name(number));
    else
        rp_buf_printf(&name, "__x64_sys_%d", number);
    s.name = s.short_name = s.raw = rp_buf_text(&name);
    status = name.failed ? rp_fail_nomem(err) : cat_matcher_symbol(view->matcher, &s, &id, err);
    rp_buf_release(&name);
    if (!status)
        *symbol = walk->syscall_symbols[number] = id;
    return status;
}

enum rp_status rp_wait_walk_take(const struct rp_view *view, uint32_t node, int syscall, struct rp_wait_walk *walk, struct rp_err *err)
{
    const struct rp_profile *p = view->profile;
    enum rp_status status = rp_frames_take(view, node, &walk->frames, err);
    size_t n = walk->frames.at.n;
    bool kernel = n && p->locations.at[walk->frames.at.at[0].location].flags & RP_LOCATION_KERNEL;

    if (status)
        return status;
    rp_vec_clear(&walk->symbols);
    walk->shift = !kernel && syscall >= 0 && syscall < SYSCALLS;
    if (!rp_vec_reserve(&walk->symbols, n + 1))
        return rp_fail_nomem(err);
    if (walk->shift)
        status = syscall_symbol(view, syscall, walk, &walk->symbols.at[0], err);
    if (n)
        memcpy(walk->symbols.at + walk->shift, walk->frames.symbols.at, n * sizeof *walk->symbols.at);
    walk->symbols.n = n + walk->shift;
    return status;
}

void rp_wait_walk_release(struct rp_wait_walk *walk)
{
    rp_frames_release(&walk->frames);
    rp_vec_release(&walk->symbols);
    rp_free(walk->syscall_symbols);
    *walk = (struct rp_wait_walk){0};
}

bool rp_wait_is_below(const struct rp_view *view, uint32_t function)
{
    static const char *const c_library[] = {"libc.so", "libc-2.", "libpthread", "ld-musl-"};
    const struct rp_profile *p = view->profile;
    const struct rp_function *f = &p->functions.at[function];
    const char *module = rp_profile_text(p, f->module), *name = rp_profile_text(p, f->name);

    for (size_t i = 0; i < sizeof c_library / sizeof *c_library; i++)
        if (!strncmp(module, c_library[i], strlen(c_library[i])))
            return true;
    return !strncmp(name, "sqlite3", 7) || !strncmp(module, "libsqlite3", 10);
}

/* ---- distinct stacks ---- */

struct key {
    const struct rp_wait_stacks *stacks;
    uint32_t node, comm;
    int16_t syscall;
    bool never_ran;
};

static bool same(const void *context, uint32_t position)
{
    const struct key *key = context;
    const struct rp_view_stack *s = &key->stacks->at.at[position];
    const struct rp_wait_stack *more = &key->stacks->more.at[position];

    return s->node == key->node && s->comm == key->comm && more->syscall == key->syscall && more->never_ran == key->never_ran;
}

static enum rp_status enter(struct rp_wait_stacks *stacks, struct key *key, uint32_t *id, struct rp_err *err)
{
    uint32_t hash = rp_hash_mix(rp_hash_u64((uint64_t)key->node << 32 | key->comm), (uint64_t)(uint16_t)key->syscall << 1 | key->never_ran);
    uint32_t *slot = rp_index_find(&stacks->index, hash, same, key);
    struct rp_view_stack *new;
    struct rp_wait_stack *more;

    if (slot && *slot != RP_INDEX_EMPTY) {
        *id = *slot;
        return RP_OK;
    }
    if (!slot || !rp_vec_reserve(&stacks->more, 1))
        return rp_fail_nomem(err);
    new = rp_vec_add(&stacks->at);
    if (!new)
        return rp_fail_nomem(err);
    more = rp_vec_add(&stacks->more);
    if (!more)
        return rp_fail_nomem(err);
    *new = (struct rp_view_stack){.node = key->node, .comm = key->comm};
    *more = (struct rp_wait_stack){.syscall = key->syscall, .never_ran = key->never_ran};
    *id = (uint32_t)stacks->at.n - 1;
    rp_index_set(&stacks->index, slot, hash, *id);
    return RP_OK;
}

static enum rp_status collect(const struct rp_view *view, struct rp_wait_stacks *stacks, struct rp_err *err)
{
    const struct rp_profile *p = view->profile;
    enum rp_status status = RP_OK;

    for (size_t i = 0; i < p->waits.n && status == RP_OK; i++) {
        const struct rp_wait *w = &p->waits.at[i];
        const struct rp_profile_thread *t = &p->threads.at[w->thread];
        struct key key = {stacks, w->node, t->comm, w->syscall, t->wall_ns && (double)w->max_ns >= whole_run * (double)t->wall_ns};

        stacks->stack_of[i] = RP_NO_STACK;
        if (!view->passes[w->thread])
            continue;
        stacks->order[stacks->norder++] = (uint32_t)i;
        status = enter(stacks, &key, &stacks->stack_of[i], err);
    }
    return status;
}

static enum rp_status classify(const struct rp_view *view, struct rp_wait_stacks *stacks, struct rp_err *err)
{
    struct rp_wait_walk walk = {0};
    struct rp_wait_sleepers sleepers = {0};
    enum rp_status status = rp_wait_sleepers_find(view->profile, &sleepers, err);

    for (size_t i = 0; i < stacks->at.n && status == RP_OK; i++) {
        struct rp_view_stack *s = &stacks->at.at[i];
        struct rp_wait_stack *more = &stacks->more.at[i];
        struct cat_context context;

        more->holds = rp_wait_sleepers_hold(view->profile, &sleepers, s->comm, s->node);
        context = rp_wait_context(view, s->comm, more->never_ran, more->holds);
        status = rp_wait_walk_take(view, s->node, more->syscall, &walk, err);
        if (status)
            break;
        cat_classify(view->matcher, walk.symbols.at, walk.symbols.n, &context, &s->verdict);
        s->shift = (uint32_t)walk.shift;
        more->idle = cat_rules_category(view->rules, s->verdict.category)->kind == CAT_IDLE;
    }
    rp_vec_release(&sleepers.at);
    rp_wait_walk_release(&walk);
    return status;
}

/* ---- scaling ---- */

static int by_thread_and_class(const void *a, const void *b, void *context)
{
    const struct rp_wait *waits = context, *x = &waits[*(const uint32_t *)a], *y = &waits[*(const uint32_t *)b];

    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->wait_class != y->wait_class)
        return x->wait_class < y->wait_class ? -1 : 1;
    return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

void rp_wait_scaling_add(struct rp_wait_scaling *s, size_t category, double n, double ns, uint64_t max_ns, uint32_t wait_class)
{
    double *sum = &s->stacks->sums[category * RP_WAIT_SUMS];

    sum[RP_WAIT_N] += n;
    sum[RP_WAIT_NS] += ns;
    if (sum[RP_WAIT_MAX] < (double)max_ns)
        sum[RP_WAIT_MAX] = (double)max_ns;
    s->stacks->histogram[category * RP_WAIT_CLASSES + wait_class] += n;
    s->stacks->histogram_ns[category * RP_WAIT_CLASSES + wait_class] += ns;
}

static int by_comm(const void *a, const void *b, void *context)
{
    const struct rp_profile_thread *threads = context;
    uint32_t x = threads[*(const uint32_t *)a].comm, y = threads[*(const uint32_t *)b].comm;

    return x < y ? -1 : x > y;
}

static enum rp_status find_kinds(struct rp_wait_scaling *s, struct rp_err *err)
{
    const struct rp_profile *p = s->view->profile;
    uint32_t *order = rp_calloc(p->threads.n + 1, sizeof *order), names = 0;

    s->name = rp_calloc(p->threads.n + 1, sizeof *s->name);
    if (!order || !s->name) {
        rp_free(order);
        return rp_fail_nomem(err);
    }
    for (uint32_t i = 0; i < p->threads.n; i++)
        order[i] = i;
    if (p->threads.n)
        qsort_r(order, p->threads.n, sizeof *order, by_comm, p->threads.at);
    for (size_t i = 0; i < p->threads.n; i++) {
        names += i && p->threads.at[order[i]].comm != p->threads.at[order[i - 1]].comm;
        s->name[order[i]] = names;
    }
    rp_free(order);
    s->kinds = rp_calloc((size_t)names + 1, s->ncategories * sizeof *s->kinds);
    if (!s->kinds)
        return rp_fail_nomem(err);
    for (size_t i = 0; i < s->stacks->norder; i++) {
        uint32_t line = s->stacks->order[i];

        s->kinds[s->name[p->waits.at[line].thread] * s->ncategories + s->stacks->at.at[s->stacks->stack_of[line]].verdict.category] = true;
    }
    return RP_OK;
}

void rp_wait_scaling_doubt(struct rp_wait_scaling *s, uint32_t thread, const double *seen, double n, double ns_squares)
{
    const bool *kinds = s->kinds + s->name[thread] * s->ncategories;

    for (size_t k = 0; k < s->ncategories; k++) {
        double share = (seen[k] + 0.5) / (n + 1);

        if (kinds[k])
            s->stacks->sums[k * RP_WAIT_SUMS + RP_WAIT_VARIANCE] += ns_squares * share * (1 - share);
    }
}

/* Gives the exact figures of `total`'s class to the lines `lines[0 .. count)`, which are all that was stacked of it, in proportion: the more of its waits
 * were, the surer. Gives how many that is. */
static double share_out(struct rp_wait_scaling *s, const struct rp_wait_total *total, const uint32_t *lines, size_t count)
{
    const struct rp_profile *p = s->view->profile;
    double n = 0, ns = 0, exact_n = (double)total->n, exact_ns = (double)total->ns, unseen;

    for (size_t i = 0; i < count; i++) {
        n += (double)p->waits.at[lines[i]].n;
        ns += (double)p->waits.at[lines[i]].ns;
    }
    memset(s->seen, 0, s->ncategories * sizeof *s->seen);
    for (size_t i = 0; i < count; i++) {
        const struct rp_wait *w = &p->waits.at[lines[i]];
        uint32_t stack = s->stacks->stack_of[lines[i]], category = s->stacks->at.at[stack].verdict.category;
        struct rp_wait_stack *more = &s->stacks->more.at[stack];
        double part_n = n > 0 ? exact_n * (double)w->n / n : 0, part_ns = ns > 0 ? exact_ns * (double)w->ns / ns : 0;

        s->stacks->n[lines[i]] += part_n;
        s->stacks->ns[lines[i]] += part_ns;
        more->n += part_n;
        more->ns += part_ns;
        s->seen[category] += (double)w->n;
        rp_wait_scaling_add(s, category, part_n, part_ns, w->max_ns, total->wait_class);
        if (more->idle)
            s->stacks->idle_ns[total->thread] += part_ns;
    }
    unseen = 1 - n / exact_n; /* they were drawn without putting back */
    if (!(unseen > 0))
        return n;
    s->waits->thinned = true;
    rp_wait_scaling_doubt(s, total->thread, s->seen, n, exact_ns * exact_ns * unseen / (n + 1));
    return n;
}

static int totals_order(const void *a, const void *b, void *context)
{
    const struct rp_wait_total *totals = context, *x = &totals[*(const uint32_t *)a], *y = &totals[*(const uint32_t *)b];

    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return x->wait_class < y->wait_class ? -1 : x->wait_class > y->wait_class;
}

/* Where the lines of a total begin and end in `order`, which goes by thread and class as the totals do. A line that no total holds cannot be in a profile of
 * ours; in another's it is passed over. */
static size_t lines_of(const struct rp_wait_scaling *s, const struct rp_wait_total *total, size_t *at)
{
    const struct rp_profile *p = s->view->profile;
    size_t from;

    for (; *at < s->stacks->norder; ++*at) {
        const struct rp_wait *w = &p->waits.at[s->stacks->order[*at]];

        if (w->thread > total->thread || (w->thread == total->thread && w->wait_class >= total->wait_class))
            break;
    }
    for (from = *at; *at < s->stacks->norder; ++*at) {
        const struct rp_wait *w = &p->waits.at[s->stacks->order[*at]];

        if (w->thread != total->thread || w->wait_class != total->wait_class)
            break;
    }
    return from;
}

static void scale_seen(struct rp_wait_scaling *s, const uint32_t *totals, size_t ntotals, double *seen)
{
    size_t at = 0;

    for (size_t i = 0; i < ntotals; i++) {
        const struct rp_wait_total *total = &s->view->profile->wait_totals.at[totals[i]];
        size_t from = lines_of(s, total, &at);

        s->stacks->waited_ns[total->thread] += (double)total->ns;
        if (at > from)
            seen[i] = share_out(s, total, s->stacks->order + from, at - from);
    }
}

static enum rp_status scale(struct rp_wait_scaling *s, struct rp_err *err)
{
    const struct rp_profile *p = s->view->profile;
    uint32_t *totals = rp_calloc(p->wait_totals.n + 1, sizeof *totals);
    double *seen = rp_calloc(p->wait_totals.n + 1, sizeof *seen);
    size_t ntotals = 0;
    enum rp_status status;

    s->seen = rp_calloc(s->ncategories + 1, sizeof *s->seen);
    status = totals && seen && s->seen ? find_kinds(s, err) : rp_fail_nomem(err);
    if (status)
        goto done;
    for (uint32_t i = 0; i < p->wait_totals.n; i++)
        if (s->view->passes[p->wait_totals.at[i].thread])
            totals[ntotals++] = i;
    if (ntotals)
        qsort_r(totals, ntotals, sizeof *totals, totals_order, p->wait_totals.at);
    if (s->stacks->norder)
        qsort_r(s->stacks->order, s->stacks->norder, sizeof *s->stacks->order, by_thread_and_class, p->waits.at);
    scale_seen(s, totals, ntotals, seen);
    status = rp_wait_scaling_unseen(s, totals, ntotals, seen, err);
    for (size_t i = 0; i < s->stacks->at.n; i++)
        s->stacks->at.at[i].samples = (uint64_t)(s->stacks->more.at[i].ns + 0.5);
done:
    rp_free(seen);
    rp_free(totals);
    return status;
}

enum rp_status rp_wait_stacks_make(struct rp_waits *waits, struct rp_err *err)
{
    const struct rp_view *view = waits->view;
    const struct rp_profile *p = view->profile;
    size_t ncategories = cat_rules_ncategories(view->rules);
    struct rp_wait_stacks *s = waits->stacks = rp_calloc(1, sizeof *s);
    struct rp_wait_scaling scaling = {.view = view, .waits = waits, .stacks = s, .ncategories = ncategories};
    enum rp_status status;

    if (!s)
        return rp_fail_nomem(err);
    s->stack_of = rp_calloc(p->waits.n + 1, sizeof *s->stack_of);
    s->n = rp_calloc(p->waits.n + 1, sizeof *s->n);
    s->ns = rp_calloc(p->waits.n + 1, sizeof *s->ns);
    s->order = rp_calloc(p->waits.n + 1, sizeof *s->order);
    s->idle_ns = rp_calloc(p->threads.n + 1, sizeof *s->idle_ns);
    s->waited_ns = rp_calloc(p->threads.n + 1, sizeof *s->waited_ns);
    s->sums = rp_calloc((ncategories + 1) * RP_WAIT_SUMS, sizeof *s->sums);
    s->histogram = rp_calloc((ncategories + 1) * RP_WAIT_CLASSES, sizeof *s->histogram);
    s->histogram_ns = rp_calloc((ncategories + 1) * RP_WAIT_CLASSES, sizeof *s->histogram_ns);
    if (!s->histogram_ns || !s->stack_of || !s->n || !s->ns || !s->order || !s->idle_ns || !s->waited_ns || !s->sums || !s->histogram)
        return rp_fail_nomem(err);
    status = collect(view, s, err);
    if (status == RP_OK)
        status = classify(view, s, err);
    if (status == RP_OK)
        status = scale(&scaling, err);
    rp_free(scaling.seen);
    rp_free(scaling.name);
    rp_free(scaling.kinds);
    return status;
}

void rp_wait_stacks_free(struct rp_wait_stacks *s)
{
    if (!s)
        return;
    rp_vec_release(&s->at);
    rp_vec_release(&s->more);
    rp_index_release(&s->index);
    rp_free(s->stack_of);
    rp_free(s->n);
    rp_free(s->ns);
    rp_free(s->order);
    rp_free(s->idle_ns);
    rp_free(s->waited_ns);
    rp_free(s->sums);
    rp_free(s->histogram);
    rp_free(s->histogram_ns);
    rp_free(s);
}
