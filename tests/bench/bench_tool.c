/* SPDX-License-Identifier: MIT */
/* What scripts/bench measures with rowprof's own libraries, since no option of the program should exist for the bench alone.
 *
 *     bench_tool toggle PID SECONDS [waits|ptrace]   profiles PID; reads `on` and `off` lines from stdin and answers `ok`: the sampler is switched,
 *                                      all else goes on, as with perf's --control. With waits, or by ptrace
 *     bench_tool walk DIR              snapshots saved by `record --save-snapshots`: ns per frame cold, warm and through libdw, as JSON
 *     bench_tool rows FILE             an ELF file: ns per CFI row, looked up once for each function, as JSON
 */
#include <gelf.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/parse.h"
#include "fold/session.h"
#include "sample/sampler.h"
#include "target/space.h"
#include "unwind/unwind.h"

static volatile sig_atomic_t stop;

static int fail(const struct rp_err *err)
{
    fprintf(stderr, "bench_tool: %s\n", err->text);
    return 1;
}

/* toggle */

static void *switcher(void *context)
{
    struct rp_sampler *sampler = context;
    char line[16];

    while (fgets(line, sizeof line, stdin)) {
        struct rp_err err = {0};

        if (sampler->ops->toggle(sampler, strcmp(line, "on\n") == 0, &err))
            fail(&err);
        printf("ok\n");
        fflush(stdout);
    }
    stop = 1;
    return NULL;
}

static int run_toggle(uint32_t pid, double seconds, const char *how)
{
    bool ptrace = !strcmp(how, "ptrace");
    struct rp_session_options options = {.sampler_wish = ptrace ? RP_SAMPLER_PTRACE : RP_SAMPLER_PERF,
                                         .sampler = {.pids = &pid, .npids = 1, .kernel = true, .waits = !strcmp(how, "waits")}};
    struct rp_session *session = NULL;
    struct rp_profile profile;
    struct rp_err err = {0};
    pthread_t thread;
    enum rp_status status = rp_session_new(&options, &session, &err);

    if (!status)
        status = rp_session_start(session, &err);
    if (!status && pthread_create(&thread, NULL, switcher, rp_session_sampler(session)))
        status = rp_fail(&err, RP_FAILED, "no thread could be made");
    if (!status)
        status = rp_session_run(session, (uint64_t)(seconds * 1e9), &stop, NULL, NULL, &err);
    if (!status) {
        status = rp_session_finish(session, &profile, &err);
        if (!status || status == RP_NOTHING)
            rp_profile_release(&profile);
    }
    rp_session_free(session);
    return status ? fail(&err) : 0;
}

/* walk */

struct kept {
    struct rp_snapshot snapshot;
    uint32_t pid;
};

struct replay {
    struct rp_images images;
    struct rp_space space;
    RP_VEC(struct kept) kept;
    struct rp_arena arena;
};

static enum rp_status keep(void *context, const struct rp_event *event, struct rp_err *err)
{
    struct replay *replay = context;
    struct kept *kept;
    uint8_t *copy;

    if (event->kind == RP_EVENT_MMAP) {
        struct rp_image_key key = {.pid = event->pid,
                                   .start = event->u.mmap.start,
                                   .end = event->u.mmap.end,
                                   .offset = event->u.mmap.offset,
                                   .dev = event->u.mmap.dev,
                                   .ino = event->u.mmap.ino,
                                   .path = event->u.mmap.path};
        struct rp_mapping mapping = {.start = key.start, .end = key.end, .offset = key.offset};
        enum rp_status status = rp_images_get(&replay->images, &key, &mapping.image, err);

        return status ? status : rp_space_add(&replay->space, &mapping, err);
    }
    if (event->kind != RP_EVENT_SAMPLE || !event->u.sample.has_user)
        return RP_OK;
    copy = rp_arena_alloc(&replay->arena, event->u.sample.stack_bytes);
    kept = copy ? rp_vec_add(&replay->kept) : NULL;
    if (!kept)
        return rp_fail_nomem(err);
    memcpy(copy, event->u.sample.stack, event->u.sample.stack_bytes);
    *kept = (struct kept){.snapshot = event->u.sample, .pid = event->pid};
    kept->snapshot.stack = copy;
    kept->snapshot.kernel = NULL;
    kept->snapshot.nkernel = 0;
    return RP_OK;
}

typedef enum rp_status engine(struct rp_unwinder *, struct rp_space *, const struct rp_snapshot *, struct rp_walk *, struct rp_err *);

/* One pass over all snapshots: ns per frame; the number of frames and of complete stacks come along. */
static enum rp_status pass(struct replay *replay, struct rp_unwinder *unwinder, engine *walk_one, struct rp_walk *walk, double *ns_per_frame,
                           uint64_t *frames, uint64_t *complete, struct rp_err *err)
{
    uint64_t begin = rp_now_ns();

    *frames = *complete = 0;
    for (size_t i = 0; i < replay->kept.n; i++) {
        enum rp_status status = walk_one(unwinder, &replay->space, &replay->kept.at[i].snapshot, walk, err);

        if (status)
            return status;
        *frames += walk->n;
        *complete += walk->end == RP_WALK_ROOT;
    }
    *ns_per_frame = *frames ? (double)(rp_now_ns() - begin) / (double)*frames : 0;
    return RP_OK;
}

static enum rp_status measure_walks(struct replay *replay, struct rp_err *err)
{
    struct rp_unwinder *unwinder = NULL;
    struct rp_unwind_stats stats;
    struct rp_walk walk = {0};
    double cold = 0, warm = 1e18, libdw = 0, once;
    uint64_t frames = 0, complete = 0, ignored;
    enum rp_status status = rp_unwinder_new(&replay->images, &unwinder, err);

    if (!status)
        status = rp_walk_init(&walk, err);
    if (!status)
        status = pass(replay, unwinder, rp_unwind, &walk, &cold, &frames, &complete, err);
    for (int i = 0; !status && i < 7; i++) {
        status = pass(replay, unwinder, rp_unwind, &walk, &once, &frames, &complete, err);
        warm = once < warm ? once : warm;
    }
    if (!status) {
        rp_unwinder_stats(unwinder, &stats);
        status = pass(replay, unwinder, rp_unwind_libdw, &walk, &libdw, &ignored, &ignored, err);
    }
    if (!status)
        printf("{\"snapshots\":%zu,\"frames\":%" PRIu64 ",\"complete\":%" PRIu64 ",\"rows\":%" PRIu64
               ",\"cold_ns_per_frame\":%.1f,\"warm_ns_per_frame\":%.1f,\"libdw_ns_per_frame\":%.1f}\n",
               replay->kept.n, frames, complete, stats.rows_looked_up, cold, warm, libdw);
    rp_walk_release(&walk);
    rp_unwinder_free(unwinder);
    return status;
}

static int run_walk(const char *dir)
{
    struct replay replay = {0};
    struct rp_sampler *sampler = NULL;
    struct rp_err err = {0};
    enum rp_status status = rp_images_init(&replay.images, &err);

    if (!status)
        status = rp_sampler_replay_new(dir, &sampler, &err);
    if (!status)
        status = sampler->ops->start(sampler, &err);
    if (!status)
        status = sampler->ops->drain(sampler, true, keep, &replay, &err);
    if (!status)
        status = measure_walks(&replay, &err);
    if (sampler)
        sampler->ops->free(sampler);
    rp_vec_release(&replay.kept);
    rp_arena_release(&replay.arena);
    rp_space_release(&replay.space);
    rp_images_release(&replay.images);
    return status ? fail(&err) : 0;
}

/* rows */

static enum rp_status measure_rows(const struct rp_images *images, uint32_t id, struct rp_err *err)
{
    const struct rp_image *image = images->at.at[id];
    struct rp_unwinder *unwinder = NULL;
    uint64_t begin, start, end, rows = 0;
    enum rp_status status = rp_unwinder_new(images, &unwinder, err);

    begin = rp_now_ns();
    for (uint32_t s = 0; !status && s < image->nsegments; s++) {
        const struct rp_segment *segment = &image->segments[s];

        for (uint64_t at = segment->vaddr; segment->exec && at < segment->vaddr + segment->filesz;) {
            bool found = rp_unwinder_fde_range(unwinder, id, at, &start, &end);

            rows += found;
            at = found && end > at ? end : at + 16;
        }
    }
    if (!status)
        printf("{\"functions\":%" PRIu64 ",\"ns_per_function\":%.1f,\"ms\":%.1f}\n", rows, rows ? (double)(rp_now_ns() - begin) / (double)rows : 0,
               (double)(rp_now_ns() - begin) / 1e6);
    rp_unwinder_free(unwinder);
    return status;
}

static int run_rows(const char *path)
{
    struct rp_images images = {0};
    struct rp_err err = {0};
    uint32_t id = 0;
    enum rp_status status = rp_images_init(&images, &err);

    if (!status)
        status = rp_images_open_path(&images, path, &id, &err);
    if (!status)
        status = measure_rows(&images, id, &err);
    rp_images_release(&images);
    return status ? fail(&err) : 0;
}

int main(int argc, char **argv)
{
    uint64_t pid;
    double seconds;

    const char *how = argc == 5 ? argv[4] : "";

    if ((argc == 4 || argc == 5) && !strcmp(argv[1], "toggle") && rp_parse_u64(argv[2], 1, UINT32_MAX, &pid) &&
        rp_parse_double(argv[3], 0.1, 3600, &seconds) && (argc == 4 || !strcmp(how, "waits") || !strcmp(how, "ptrace")))
        return run_toggle((uint32_t)pid, seconds, how);
    if (argc == 3 && !strcmp(argv[1], "walk"))
        return run_walk(argv[2]);
    if (argc == 3 && !strcmp(argv[1], "rows"))
        return run_rows(argv[2]);
    fprintf(stderr, "usage: bench_tool toggle PID SECONDS [waits|ptrace] | walk DIR | rows FILE\n");
    return 2;
}
