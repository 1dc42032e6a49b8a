/* SPDX-License-Identifier: MIT */
/* What was measured, and which rate of it to judge. See bench.h; the judging is in bench_judge.c. */
#include "analyze/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

static const double one_thread_share = 0.7, one_thread_load = 1.05;

const char *rp_rate_name(enum rp_rate_kind kind)
{
    static const char *const names[] = {
        [RP_RATE_THREAD] = "thread CPU time", [RP_RATE_PROCESS] = "process CPU time", [RP_RATE_WALL] = "wall time", [RP_RATE_AUTO] = "auto"};

    return names[kind];
}

const char *rp_bench_verdict_name(enum rp_bench_verdict verdict)
{
    static const char *const names[] = {[RP_BENCH_FASTER] = "convicted faster",
                                        [RP_BENCH_SLOWER] = "convicted slower",
                                        [RP_BENCH_SUSPECTED] = "suspected",
                                        [RP_BENCH_NOISE] = "inside noise",
                                        [RP_BENCH_TOO_FEW] = "too few runs"};

    return names[verdict];
}

void rp_bench_release(struct rp_bench *bench)
{
    rp_arena_release(&bench->arena);
    rp_index_release(&bench->names);
    rp_vec_release(&bench->configs);
    rp_vec_release(&bench->runs);
}

struct name_key {
    const struct rp_bench *bench;
    const char *name;
    size_t length;
};

static bool same_name(const void *context, uint32_t position)
{
    const struct name_key *key = context;
    const char *name = key->bench->configs.at[position].name;

    return strlen(name) == key->length && !memcmp(name, key->name, key->length);
}

enum rp_status rp_bench_config(struct rp_bench *bench, const char *name, size_t length, uint32_t *config, struct rp_err *err)
{
    struct name_key key = {bench, name, strnlen(name, length)};
    uint32_t hash = rp_hash_bytes(name, key.length), *slot = rp_index_find(&bench->names, hash, same_name, &key);
    const char *copy;

    if (!slot)
        return rp_fail_nomem(err);
    if (*slot != RP_INDEX_EMPTY) {
        *config = *slot;
        return RP_OK;
    }
    if (bench->configs.n == RP_BENCH_CONFIGS_MAX)
        return rp_fail(err, RP_LIMIT, "there are more than %u configurations; measure them in several parts", RP_BENCH_CONFIGS_MAX);
    copy = rp_arena_strndup(&bench->arena, name, key.length);
    if (!copy || !rp_vec_reserve(&bench->configs, 1))
        return rp_fail_nomem(err);
    *config = (uint32_t)bench->configs.n;
    bench->configs.at[bench->configs.n++] = (struct rp_bench_config){.name = copy};
    rp_index_set(&bench->names, slot, hash, *config);
    return RP_OK;
}

enum rp_status rp_bench_add(struct rp_bench *bench, const struct rp_bench_run *run, struct rp_err *err)
{
    struct rp_bench_run *added;

    if (bench->runs.n == RP_BENCH_RUNS_MAX)
        return rp_fail(err, RP_LIMIT, "there are more than %u runs", RP_BENCH_RUNS_MAX);
    added = rp_vec_add(&bench->runs);
    if (!added)
        return rp_fail_nomem(err);
    *added = *run;
    return RP_OK;
}

static bool all_know(const struct rp_bench *bench, enum rp_rate_kind kind)
{
    for (size_t i = 0; i < bench->runs.n; i++) {
        if (!(bench->runs.at[i].rate[kind] > 0))
            return false;
    }
    return bench->runs.n > 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The median of what `of` says of the runs of one configuration is at most `most` in all of them; false when there is no memory for finding out. */
static bool median_at_most(const struct rp_bench *bench, double (*of)(const struct rp_bench_run *run), double most)
{
    double *values = rp_calloc(bench->runs.n + 1, sizeof *values);
    bool ok = values != NULL;

    for (uint32_t config = 0; ok && config < bench->configs.n; config++) {
        size_t n = 0;

        for (size_t i = 0; i < bench->runs.n; i++) {
            if (bench->runs.at[i].config == config)
                values[n++] = of(&bench->runs.at[i]);
        }
        qsort(values, n, sizeof *values, by_value);
        ok = !n || values[n / 2] <= most;
    }
    rp_free(values);
    return ok;
}

/* From rates, not from seconds, because a file of runs may hold nothing else. */
static double process_per_thread(const struct rp_bench_run *run)
{
    double process = run->rate[RP_RATE_PROCESS];

    return process > 0 ? run->rate[RP_RATE_THREAD] / process : 1;
}

static double process_per_wall(const struct rp_bench_run *run)
{
    return run->rate[RP_RATE_WALL] / run->rate[RP_RATE_PROCESS];
}

enum rp_rate_kind rp_bench_pick_rate(const struct rp_bench *bench)
{
    bool thread = all_know(bench, RP_RATE_THREAD), process = all_know(bench, RP_RATE_PROCESS), wall = all_know(bench, RP_RATE_WALL);

    if (thread && (!process || median_at_most(bench, process_per_thread, 1 / one_thread_share)))
        return RP_RATE_THREAD;
    if (process && (!wall || median_at_most(bench, process_per_wall, one_thread_load)))
        return RP_RATE_PROCESS;
    return wall || (!process && !thread) ? RP_RATE_WALL : process ? RP_RATE_PROCESS : RP_RATE_THREAD;
}
