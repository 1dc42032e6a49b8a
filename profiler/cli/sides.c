/* SPDX-License-Identifier: MIT */
/* See sides.h. */
#include "cli/sides.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/parse.h"
#include "cli/terminal.h"
#include "cli/thread_check.h"
#include "fold/session.h"
#include "store/store.h"

static enum rp_status new_load(struct rp_loads *loads, const char *path, size_t length, struct rp_loaded **out, struct rp_err *err)
{
    struct rp_loaded *l;

    if (loads->n == RP_PROFILES_MAX)
        return rp_fail(err, RP_LIMIT, "more than %d profiles were given", RP_PROFILES_MAX);
    l = rp_calloc(1, sizeof *l);
    if (!l)
        return rp_fail_nomem(err);
    loads->at[loads->n++] = l;
    l->path = rp_strndup(path, length);
    *out = l;
    return l->path ? RP_OK : rp_fail_nomem(err);
}

static enum rp_status make_view(struct rp_loaded *l, const struct rp_settings *settings, const struct cat_rules *rules, struct rp_err *err)
{
    struct rp_filter filter = {settings->thread, settings->no_kernel};
    struct rp_quality quality;
    enum rp_status status = rp_view_new(&l->profile, rules, &filter, &l->view, err);

    if (status == RP_NOTFOUND) {
        struct rp_err why = *err;

        return rp_fail(err, RP_NOTFOUND, "%s: %.900s", l->path, why.text);
    }
    if (!status)
        status = rp_view_quality(l->view, &quality, err);
    if (!status && !quality.samples)
        return rp_fail(err, RP_NOTHING, "%s holds no samples, so there is nothing to compare", l->path);
    return status;
}

static enum rp_status load(struct rp_loads *loads, const char *path, size_t length, const struct rp_settings *settings, const struct cat_rules *rules,
                           struct rp_err *err)
{
    struct rp_loaded *l = NULL;
    enum rp_status status = new_load(loads, path, length, &l, err);

    for (size_t i = 0; i + 1 < loads->n && !status; i++)
        if (rp_same_file(loads->at[i]->path, l->path))
            status = rp_fail(err, RP_USAGE, "%.300s was given twice: the same run is no second observation", l->path);
    if (!status)
        status = rp_store_load(&l->profile, l->path, err);
    if (status)
        return status;
    l->has_profile = true;
    return make_view(l, settings, rules, err);
}

enum rp_status rp_loads_add(struct rp_loads *loads, const char *word, const struct rp_settings *settings, const struct cat_rules *rules,
                            struct rp_err *err)
{
    struct rp_cursor c = rp_cursor_str(word);
    enum rp_status status = RP_OK;

    if (access(word, F_OK) == 0 || !strchr(word, ','))
        return load(loads, word, strlen(word), settings, rules, err);
    do {
        const char *piece;
        size_t length;

        rp_cursor_until(&c, ',', &piece, &length);
        if (!length)
            return rp_fail(err, RP_USAGE, "a list of profiles is parted by single commas: '%s'", word);
        status = load(loads, piece, length, settings, rules, err);
    } while (!status && rp_cursor_take(&c, ","));
    return status;
}

enum rp_status rp_loads_record(struct rp_loads *loads, const struct rp_settings *s, const struct cat_rules *rules, struct rp_err *err)
{
    struct rp_session_options options = {
        .sampler = {.pids = s->pids.at, .npids = s->pids.n, .hz = s->hz, .kernel = true, .children = s->children},
        .sampler_wish = s->sampler,
        .engine = s->unwinder,
        .symbolizer = {.no_inlines = s->no_inlines, .debuginfod = s->debuginfod},
    };
    struct rp_session *session = NULL;
    struct rp_progress progress;
    struct rp_loaded *l = NULL;
    char name[64];
    enum rp_status status;

    snprintf(name, sizeof name, "pid %u", s->pids.at[0]);
    status = new_load(loads, name, strlen(name), &l, err);
    if (!status)
        status = rp_thread_check(s, s->pids.at, s->pids.n, err);
    if (!status)
        status = rp_session_new(&options, &session, err);
    if (!status)
        status = rp_session_start(session, err);
    if (!status) {
        rp_progress_init(&progress, s);
        status = rp_session_run(session, (uint64_t)(s->seconds * 1e9), rp_stop_install(), rp_progress_update, &progress, err);
        rp_progress_clear(&progress);
    }
    if (!status) {
        status = rp_session_finish(session, &l->profile, err);
        l->has_profile = !status || status == RP_NOTHING;
    }
    rp_session_free(session);
    return status ? status : make_view(l, s, rules, err);
}

void rp_loads_release(struct rp_loads *loads)
{
    for (size_t i = 0; i < loads->n; i++) {
        struct rp_loaded *l = loads->at[i];

        rp_view_free(l->view);
        if (l->has_profile)
            rp_profile_release(&l->profile);
        rp_free(l->path);
        rp_free(l);
    }
    loads->n = 0;
}

bool rp_same_file(const char *a, const char *b)
{
    struct stat x, y;

    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
