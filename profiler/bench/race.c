/* SPDX-License-Identifier: MIT */
/* See race.h. */
#include "bench/race.h"

#include <math.h>
#include <string.h>

#include "base/io.h"
#include "bench/run.h"
#include "bench/runs_csv.h"

enum rp_arm rp_race_turn(uint32_t round, uint32_t config, uint32_t place)
{
    uint32_t turn = round + config, first = turn % RP_ARMS;
    bool about = turn / RP_ARMS % 2;

    return (enum rp_arm)((about ? first + RP_ARMS - place : first + place) % RP_ARMS);
}

struct runner {
    const struct rp_race *race;
    struct rp_bench *bench;
    uint64_t begin_ns;
    const char **argv; /* room for the longest command */
    struct rp_race_at at;
};

static void fill_argv(struct runner *r, enum rp_arm arm, const struct rp_suite_config *config)
{
    const struct rp_words *parts[] = {&r->race->arms[arm].words, &r->race->suite->args, &config->words};
    size_t n = 0;

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        for (size_t k = 0; k < parts[i]->at.n; k++)
            r->argv[n++] = parts[i]->at.at[k];
    }
    r->argv[n] = NULL;
}

static size_t longest_command(const struct rp_race *race)
{
    size_t words = 0, args = 0;

    for (size_t arm = 0; arm < RP_ARMS; arm++)
        words = race->arms[arm].words.at.n > words ? race->arms[arm].words.at.n : words;
    for (size_t i = 0; i < race->suite->configs.n; i++)
        args = race->suite->configs.at[i].words.at.n > args ? race->suite->configs.at[i].words.at.n : args;
    return words + args + race->suite->args.at.n + 1;
}

/* The first attempt that was not contended, else the least contended one. */
static enum rp_status run_best(struct runner *r, struct rp_bench_run *best, struct rp_err *err)
{
    const struct rp_race *race = r->race;
    struct rp_run_spec spec = {.file = race->arms[best->arm].file,
                               .calls = race->calls,
                               .timeout_secs = race->timeout_secs,
                               .one_cpu = race->one_cpu,
                               .stop = race->stop};
    struct rp_bench_run run;

    memcpy(&spec.argv, &r->argv, sizeof spec.argv); /* execv takes strings it does not write to as if it did */
    for (uint32_t attempt = 1; attempt <= race->repeats + 1; attempt++) {
        struct rp_err why = {0};

        r->at.attempt = attempt;
        r->at.seconds = (double)(rp_now_ns() - r->begin_ns) / 1e9;
        race->progress(race->context, &r->at);
        run = *best;
        if (rp_run_once(&spec, &run, &why)) {
            if (why.status != RP_FAILED)
                return rp_fail(err, why.status, "%s", why.text);
            return rp_fail(err, RP_FAILED, "configuration '%.100s', round %u, %s: %.300s", r->at.config, r->at.round, rp_arm_name(best->arm), why.text);
        }
        if (attempt == 1 || rp_run_undisturbed(&run, race->one_cpu) > rp_run_undisturbed(best, race->one_cpu))
            *best = run;
        best->attempts = attempt;
        if (!best->contended)
            break;
    }
    return RP_OK;
}

static enum rp_status run_arm(struct runner *r, uint32_t config, uint32_t round, enum rp_arm arm, struct rp_err *err)
{
    const struct rp_suite_config *c = &r->race->suite->configs.at[config];
    struct rp_bench_run run = {.round = round, .arm = arm, .rate = {NAN, NAN, NAN}};
    enum rp_status status;

    r->at.round = round + 1;
    r->at.config = c->name;
    r->at.arm = arm;
    fill_argv(r, arm, c);
    status = run_best(r, &run, err);
    if (!status)
        status = rp_bench_config(r->bench, c->name, strlen(c->name), &run.config, err);
    if (!status)
        status = rp_bench_add(r->bench, &run, err);
    if (status)
        return status;
    if (run.rows > 0)
        r->bench->configs.at[run.config].rows = run.rows / run.calls;
    r->at.done++;
    return r->race->keep(r->race->context, r->bench, &run, err);
}

enum rp_status rp_race_run(const struct rp_race *race, struct rp_bench *bench, struct rp_err *err)
{
    struct runner r = {.race = race, .bench = bench, .begin_ns = rp_now_ns()};
    enum rp_status status = RP_OK;

    r.at.rounds = race->rounds;
    r.at.total = (size_t)race->rounds * race->suite->configs.n * RP_ARMS;
    r.argv = rp_calloc(longest_command(race), sizeof *r.argv);
    if (!r.argv)
        return rp_fail_nomem(err);
    for (uint32_t round = 0; !status && round < race->rounds; round++) {
        for (uint32_t config = 0; !status && config < race->suite->configs.n; config++) {
            for (uint32_t place = 0; !status && place < RP_ARMS; place++)
                status = run_arm(&r, config, round, rp_race_turn(round, config, place), err);
        }
    }
    rp_free((void *)r.argv);
    return status;
}
