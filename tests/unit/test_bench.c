/* SPDX-License-Identifier: MIT */
/* Verdicts: against what R says of two recorded data sets (Node 26.7.0 twice and 26.8.2, on a quiet and on a busy machine), and against truth by
 * simulation with fixed seeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "analyze/bench.h"
#include "analyze/bench_shape.h"
#include "bench/runs_csv.h"
#include "support/chance.h"

enum { CONFIGS = 20, ROUNDS = 10, SUITES = 100 };

static void near(double got, double want, double within)
{
    if (!(fabs(got - want) <= within))
        fail_msg("%.12g is not %.12g", got, want);
}

/* As printed: half a unit of the last digit. */
#define PERCENT(got, want, digits) near(100 * (got), (want), 0.5000001 * pow(10, -(digits)))

struct data {
    struct rp_bench bench;
    struct rp_bench_verdicts v;
};

static void judge(struct data *d, enum rp_rate_kind rate, bool fdr)
{
    struct rp_bench_options options = {.rate = rate, .alpha = 0.05, .fdr = fdr};
    struct rp_err err;

    rp_bench_verdicts_release(&d->v);
    assert_int_equal(rp_bench_judge(&d->bench, &options, &d->v, &err), RP_OK);
}

static void read_data(struct data *d, const char *name, enum rp_rate_kind rate)
{
    char path[4096];
    struct rp_err err;

    memset(d, 0, sizeof *d);
    snprintf(path, sizeof path, "%s/tests/fixtures/bench/%s", ROWPROF_SOURCE_DIR, name);
    if (rp_runs_read(&d->bench, path, &err))
        fail_msg("%s", err.text);
    judge(d, rate, false);
}

static void release(struct data *d)
{
    rp_bench_verdicts_release(&d->v);
    rp_bench_release(&d->bench);
}

static const struct rp_bench_row *row_of(const struct data *d, const char *name)
{
    for (size_t i = 0; i < d->v.rows.n; i++) {
        if (!strcmp(d->bench.configs.at[d->v.rows.at[i].config].name, name))
            return &d->v.rows.at[i];
    }
    fail_msg("no configuration %s", name);
    return NULL;
}

/* The whole table: geomean %, p < .05, Holm < .05, least and largest improvement %. */
struct whole {
    double geomean, least, largest;
    size_t significant, holm;
};

static void check_whole(const struct data *d, const struct whole *again, const struct whole *new, size_t bh)
{
    struct data other = {.bench = d->bench};
    double least = INFINITY, largest = -INFINITY, again_least = INFINITY, again_largest = -INFINITY;
    size_t holm = 0, found = 0;

    for (size_t i = 0; i < d->v.rows.n; i++) {
        const struct rp_bench_row *row = &d->v.rows.at[i];

        least = fmin(least, row->improvement);
        largest = fmax(largest, row->improvement);
        again_least = fmin(again_least, row->again_improvement);
        again_largest = fmax(again_largest, row->again_improvement);
        holm += row->corrected < 0.05;
        if (i)
            assert_true(row->improvement <= d->v.rows.at[i - 1].improvement);
    }
    assert_int_equal(d->v.rows.n, CONFIGS);
    PERCENT(d->v.again_geomean.ratio - 1, again->geomean, 2);
    PERCENT(again_least, again->least, 2);
    PERCENT(again_largest, again->largest, 2);
    assert_int_equal(d->v.again_significant, again->significant);
    assert_int_equal(d->v.again_convicted, again->holm);
    PERCENT(d->v.geomean.ratio - 1, new->geomean, 2);
    PERCENT(least, new->least, 2);
    PERCENT(largest, new->largest, 2);
    assert_int_equal(d->v.significant, new->significant);
    assert_int_equal(holm, new->holm);
    judge(&other, d->v.options.rate, true);
    for (size_t i = 0; i < other.v.rows.n; i++)
        found += other.v.rows.at[i].corrected < 0.05;
    assert_int_equal(found, bh);
    rp_bench_verdicts_release(&other.v);
}

static void test_whole_tables(void **state)
{
    struct data d;

    (void)state;
    read_data(&d, "ab_node267_268_contended.csv", RP_RATE_WALL);
    check_whole(&d, &(struct whole){1.51, -4.74, 12.06, 0, 0}, &(struct whole){5.36, -8.76, 24.58, 0, 0}, 0);
    assert_int_equal(d.v.runs, 720);
    assert_int_equal(d.v.contended, 624);
    assert_int_equal(d.v.complete_rounds, 12);
    assert_int_equal(d.v.faster + d.v.slower, 0);
    judge(&d, RP_RATE_THREAD, false);
    check_whole(&d, &(struct whole){0.20, -1.01, 2.15, 0, 0}, &(struct whole){5.15, -1.87, 13.96, 13, 12}, 13);
    assert_int_equal(d.v.faster, 12);
    release(&d);
    read_data(&d, "ab_node267_268_quiet.csv", RP_RATE_WALL);
    check_whole(&d, &(struct whole){-0.65, -5.85, 3.01, 1, 0}, &(struct whole){4.19, -5.44, 12.75, 13, 11}, 12);
    assert_int_equal(d.v.runs, 600);
    assert_int_equal(d.v.contended, 1);
    judge(&d, RP_RATE_THREAD, false);
    check_whole(&d, &(struct whole){-0.45, -5.84, 2.37, 1, 0}, &(struct whole){4.65, -5.34, 13.63, 13, 11}, 12);
    assert_int_equal(rp_bench_pick_rate(&d.bench), RP_RATE_THREAD);
    release(&d);
}

static void test_rows_of_the_busy_machine(void **state)
{
    const struct rp_bench_row *row;
    struct data d;

    (void)state;
    read_data(&d, "ab_node267_268_contended.csv", RP_RATE_THREAD);
    row = row_of(&d, "get SELECT * FROM foo LIMIT 1");
    PERCENT(row->improvement, 9.1224, 4);
    near(row->welch.t, 7.992329, 5e-7);
    near(row->welch.df, 19.22890, 5e-6);
    near(row->welch.p, 1.56237e-07, 5e-13);
    near(row->corrected, 2.49979e-06, 5e-12);
    near(row->arm[RP_ARM_OLD].mean, 975221.73, 5e-3);
    near(row->arm[RP_ARM_NEW].mean, 1064185.25, 5e-3);
    PERCENT(row->accuracy[0], 2.3870, 4);
    assert_int_equal(row->stars, 3);
    assert_int_equal(row->verdict, RP_BENCH_FASTER);
    row = row_of(&d, "all SELECT * FROM foo LIMIT 100");
    PERCENT(row->improvement, 0.4000, 4);
    near(row->welch.t, .209237, 5e-7);
    near(row->welch.df, 19.85858, 5e-6);
    near(row->welch.p, .836394, 5e-7);
    assert_int_equal(row->verdict, RP_BENCH_NOISE);
    row = row_of(&d, "get SELECT 1");
    PERCENT(row->improvement, 3.4662, 4);
    near(row->welch.p, .0212193, 5e-8);
    near(row->corrected, .169755, 5e-7);
    assert_int_equal(row->stars, 1);
    assert_int_not_equal(row->verdict, RP_BENCH_FASTER);
    release(&d);
}

/* A real difference of 5 %, significant after Holm, of a configuration that is as far from itself: the second gate exists for it. */
static void test_what_differs_from_itself_is_not_convicted(void **state)
{
    const struct rp_bench_row *row;
    struct data d;

    (void)state;
    read_data(&d, "ab_node267_268_quiet.csv", RP_RATE_THREAD);
    row = row_of(&d, "get SELECT * FROM foo LIMIT 1");
    PERCENT(row->improvement, 10.4707, 4);
    near(row->welch.t, 6.114336, 5e-7);
    near(row->welch.df, 10.46739, 5e-6);
    near(row->welch.p, 9.36163e-05, 5e-10);
    near(row->corrected, .00121701, 5e-9);
    assert_int_equal(row->verdict, RP_BENCH_FASTER);
    row = row_of(&d, "all SELECT text_8kb_column FROM foo_large LIMIT 100");
    PERCENT(row->improvement, -5.3389, 4);
    near(row->welch.t, -3.898690, 5e-7);
    near(row->welch.df, 17.97081, 5e-6);
    near(row->welch.p, .00105524, 5e-9);
    near(row->corrected, .0116076, 5e-8);
    assert_true(row->corrected < 0.05);
    PERCENT(row->floor, 5.84, 2);
    assert_int_equal(row->verdict, RP_BENCH_NOISE);
    assert_true(d.v.floor_max >= row->floor);
    assert_true(d.v.floor_90 <= d.v.floor_max);
    release(&d);
}

/* saved = c + r x columns over the configurations with one row of small columns, against a fit of the same runs made elsewhere with other weights: within
 * 1.5 of the fit's own standard errors. */
static void fit_columns(const struct data *d, double c, double r, double per_df)
{
    struct rp_saving savings[CONFIGS];
    struct rp_saving_fit fit;
    size_t n = 0;

    for (size_t i = 0; i < d->v.rows.n; i++) {
        const char *name = d->bench.configs.at[d->v.rows.at[i].config].name;
        double columns = 1;

        if (strstr(name, "8kb") || strstr(name, "LIMIT 100"))
            continue;
        for (const char *at = name; *at; at++)
            columns += *at == ',';
        columns = strchr(name, '*') ? 4 : columns;
        assert_true(rp_saving_of(&d->v.rows.at[i], columns, &savings[n++]));
    }
    assert_int_equal(n, 12);
    fit = rp_saving_fit(savings, n);
    near(fit.c, c, 1.5 * fit.c_error);
    near(fit.r, r, 1.5 * fit.r_error);
    near(fit.x2 / fit.df, per_df, 0.21);
}

static void test_shape_of_the_saving(void **state)
{
    struct data d;

    (void)state;
    read_data(&d, "ab_node267_268_quiet.csv", RP_RATE_THREAD);
    fit_columns(&d, 15.3, 20.0, 1.09);
    release(&d);
    read_data(&d, "ab_node267_268_contended.csv", RP_RATE_THREAD);
    fit_columns(&d, 6.0, 22.5, 2.57);
    release(&d);
}

/* Worked out by hand: y = 1 2 4 at x = 0 1 2 with errors 1 1 2, so weights 1 1 1/4. */
static void test_weighted_line(void **state)
{
    static const struct rp_saving s[] = {{0, 1, 1}, {1, 2, 1}, {2, 4, 2}}, same[] = {{1, 5, 1}, {1, 6, 1}};
    const struct rp_saving_prediction guess = {0, 0, 2, 0};
    struct rp_saving_fit fit = rp_saving_fit(s, 3);

    (void)state;
    /* W 9/4, X 3/2, XX 2, Y 4, XY 4; determinant 9/4; c = (2 x 4 - 3/2 x 4)/(9/4) = 8/9, r = (9/4 x 4 - 3/2 x 4)/(9/4) = 4/3 */
    near(fit.c, 8.0 / 9, 1e-12);
    near(fit.r, 4.0 / 3, 1e-12);
    near(fit.c_error, sqrt(8.0 / 9), 1e-12);
    near(fit.r_error, 1, 1e-12);
    near(fit.x2, 1.0 / 81 + 4.0 / 81 + 4.0 / 81, 1e-12);
    assert_true(isnan(rp_saving_fit(same, 2).c));
    assert_true(isnan(rp_saving_fit(s, 1).c));
    near(rp_saving_check(s, 3, &guess).x2, 1, 1e-12);
    near(rp_saving_check(s, 3, &guess).p, 0.801252, 1e-6); /* pchisq(1, 3, lower = FALSE) */
}

/* ---- simulation ---- */

static double normal(uint64_t *random)
{
    double u = chance_uniform(random);

    return rp_normal_quantile(u > 0 ? u : 1e-17);
}

/* A suite in which the first `changed` configurations are faster by `change`; all scatter with `cv`. */
static void simulate(struct data *d, uint64_t seed, double cv, double change, uint32_t changed)
{
        struct rp_err err;

    memset(d, 0, sizeof *d);
    for (uint32_t c = 0; c < CONFIGS; c++) {
        char name[16];
        uint32_t config;

        snprintf(name, sizeof name, "c%u", c);
        assert_int_equal(rp_bench_config(&d->bench, name, strlen(name), &config, &err), RP_OK);
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t c = 0; c < CONFIGS; c++) {
            for (uint32_t arm = 0; arm < RP_ARMS; arm++) {
                double mean = 1e6 * (1 + c) * (arm == RP_ARM_NEW && c < changed ? 1 + change : 1);
                struct rp_bench_run run = {.config = c, .round = round, .arm = (enum rp_arm)arm, .attempts = 1,
                                           .rate = {NAN, NAN, mean * (1 + cv * normal(&seed))}};

                assert_int_equal(rp_bench_add(&d->bench, &run, &err), RP_OK);
            }
        }
    }
    judge(d, RP_RATE_WALL, false);
}

/* Suites with at least one conviction. */
static size_t suites_convicting(double cv, double change, uint32_t changed, uint64_t seed, double *rows, double *detectable, double *convictable)
{
    size_t suites = 0;

    *rows = *detectable = *convictable = 0;
    for (size_t i = 0; i < SUITES; i++) {
        struct data d;

        simulate(&d, seed + i * 7919, cv, change, changed);
        suites += d.v.faster + d.v.slower > 0;
        *rows += (double)(d.v.faster + d.v.slower) / SUITES;
        *detectable += d.v.detectable / SUITES;
        *convictable += d.v.convictable / SUITES;
        release(&d);
    }
    return suites;
}

static void test_a_program_against_itself(void **state)
{
    double rows, detectable, convictable;

    (void)state;
    assert_true(suites_convicting(0.03, 0, 0, 1, &rows, &detectable, &convictable) <= 5);
}

static void test_true_differences(void **state)
{
    double rows, detectable, convictable;

    (void)state;
    assert_true(suites_convicting(0.03, 0.07, 1, 2, &rows, &detectable, &convictable) >= 80);
    assert_true(suites_convicting(0.01, 0.03, 1, 3, &rows, &detectable, &convictable) >= 95);
    /* and one that is too small for its scatter is not: 15 % of suites by R */
    assert_true(suites_convicting(0.03, 0.03, 1, 4, &rows, &detectable, &convictable) <= 30);
}

/* The change at which simulated runs reach a power of 80 %: between two changes, on the line through their powers. */
static double change_at_80(double low, double high, double power_low, double power_high)
{
    assert_true(power_low < 0.8 && power_high > 0.8);
    return low + (0.8 - power_low) / (power_high - power_low) * (high - low);
}

/* The share of changed configurations with p < alpha (uncorrected), or convicted. */
static double power_of(double change, uint32_t changed, bool convicted, double *printed)
{
    double hits = 0;

    *printed = 0;
    for (size_t i = 0; i < SUITES; i++) {
        struct data d;

        simulate(&d, 1000 + i * 104729, 0.03, change, changed);
        for (size_t k = 0; k < d.v.rows.n; k++) {
            const struct rp_bench_row *row = &d.v.rows.at[k];

            if (row->config < changed)
                hits += (convicted ? row->verdict == RP_BENCH_FASTER : row->welch.p < 0.05) / (double)(SUITES * changed);
        }
        *printed += (convicted ? d.v.convictable : d.v.detectable) / SUITES;
        release(&d);
    }
    return hits;
}

static void test_smallest_detectable_change(void **state)
{
    double printed, other, alone, among;

    (void)state;
    alone = change_at_80(0.034, 0.045, power_of(0.034, CONFIGS, false, &printed), power_of(0.045, CONFIGS, false, &other));
    near(printed, alone, 0.1 * alone);
    among = change_at_80(0.054, 0.068, power_of(0.054, 1, true, &printed), power_of(0.068, 1, true, &other));
    near(printed, among, 0.1 * among);
}

/* ---- edges ---- */

static void add(struct data *d, uint32_t round, enum rp_arm arm, double rate)
{
    struct rp_bench_run run = {.round = round, .arm = arm, .rate = {NAN, NAN, rate}};
    struct rp_err err;

    assert_int_equal(rp_bench_config(&d->bench, "one", 3, &run.config, &err), RP_OK);
    assert_int_equal(rp_bench_add(&d->bench, &run, &err), RP_OK);
}

static void test_too_few_runs(void **state)
{
    struct data d = {0};

    (void)state;
    judge(&d, RP_RATE_WALL, false);
    assert_int_equal(d.v.rows.n, 0);
    assert_true(isnan(d.v.geomean.ratio));
    add(&d, 0, RP_ARM_OLD, 100);
    judge(&d, RP_RATE_WALL, false);
    assert_int_equal(d.v.rows.at[0].verdict, RP_BENCH_TOO_FEW);
    assert_true(isnan(d.v.rows.at[0].improvement));
    add(&d, 0, RP_ARM_NEW, 110);
    add(&d, 1, RP_ARM_NEW, 111);
    judge(&d, RP_RATE_WALL, false);
    assert_int_equal(d.v.rows.at[0].verdict, RP_BENCH_TOO_FEW);
    near(d.v.rows.at[0].improvement, 0.105, 1e-12);
    assert_true(isnan(d.v.rows.at[0].floor));
    assert_int_equal(d.v.judged, 0);
    release(&d);
}

/* Without a second old arm nothing is convicted, however large the difference: files of Node's harness have none. */
static void test_no_floor_no_conviction(void **state)
{
    struct data d = {0};

    (void)state;
    for (uint32_t i = 0; i < 10; i++) {
        add(&d, i, RP_ARM_OLD, 100 + i % 3);
        add(&d, i, RP_ARM_NEW, 200 + i % 4);
    }
    judge(&d, RP_RATE_WALL, false);
    assert_true(d.v.rows.at[0].corrected < 1e-10);
    assert_int_equal(d.v.rows.at[0].verdict, RP_BENCH_SUSPECTED);
    for (uint32_t i = 0; i < 10; i++)
        add(&d, i, RP_ARM_AGAIN, 100 + (i + 1) % 3);
    judge(&d, RP_RATE_WALL, false);
    assert_int_equal(d.v.rows.at[0].verdict, RP_BENCH_FASTER);
    release(&d);
}

/* Pairs are made by round: the same runs in any order, and with some missing, pair alike. */
static void test_pairs_go_by_round(void **state)
{
    static const double old[] = {26.7, 26.9, 26.4, 27.1, 26.5, 26.8, 26.6, 27.0, 26.3, 26.75};
    static const double new[] = {26.4, 26.65, 26.2, 26.95, 26.45, 26.55, 26.8, 26.5, 26.25, 26.7};
    struct data d = {0};

    (void)state;
    for (uint32_t i = 0; i < 10; i++)
        add(&d, i, RP_ARM_OLD, old[i]);
    for (uint32_t i = 10; i-- > 0;)
        add(&d, i, RP_ARM_NEW, new[i]);
    judge(&d, RP_RATE_WALL, false);
    near(d.v.rows.at[0].welch.t, -1.44430321264, 1e-9);
    near(d.v.rows.at[0].paired.t, -2.69292177613, 1e-9);
    near(d.v.rows.at[0].paired.p, .0246781310718, 1e-10);
    near(d.v.rows.at[0].flips.p, 26.0 / 1024, 1e-12);
    assert_int_equal(d.v.complete_rounds, 10);
    add(&d, 77, RP_ARM_OLD, 26.7);
    judge(&d, RP_RATE_WALL, false);
    near(d.v.rows.at[0].paired.t, -2.69292177613, 1e-9);
    assert_int_equal(d.v.complete_rounds, 10);
    release(&d);
}

static void add_times(struct data *d, double thread, double process, double wall)
{
    struct rp_bench_run run = {.rate = {1 / thread, 1 / process, 1 / wall}};
    struct rp_err err;

    assert_int_equal(rp_bench_config(&d->bench, "one", 3, &run.config, &err), RP_OK);
    assert_int_equal(rp_bench_add(&d->bench, &run, &err), RP_OK);
}

static void test_which_rate(void **state)
{
    static const struct {
        double thread, process, wall;
        enum rp_rate_kind want;
    } cases[] = {
        {1, 1, 1.2, RP_RATE_THREAD},    {1, 1.3, 1.1, RP_RATE_THREAD}, {1, 2, 1.1, RP_RATE_WALL},
        {NAN, 1, 1.2, RP_RATE_PROCESS}, {NAN, 3, 1, RP_RATE_WALL},     {NAN, NAN, 1, RP_RATE_WALL},
        {NAN, 1, NAN, RP_RATE_PROCESS}, {1, NAN, NAN, RP_RATE_THREAD},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct data d = {0};

        add_times(&d, cases[i].thread, cases[i].process, cases[i].wall);
        if (rp_bench_pick_rate(&d.bench) != cases[i].want)
            fail_msg("case %zu", i);
        release(&d);
    }
}

static void test_no_memory(void **state)
{
    struct data d;
    enum rp_status status = RP_NOMEM;
    struct rp_bench_options options = {.rate = RP_RATE_WALL, .alpha = 0.05};

    (void)state;
    simulate(&d, 1, 0.03, 0, 0);
    for (uint64_t n = 1; status; n++) {
        struct rp_bench_verdicts v;
        struct rp_err err;

        rp_alloc_fail_at(n);
        status = rp_bench_judge(&d.bench, &options, &v, &err);
        rp_alloc_fail_at(0);
        assert_true(!status || status == RP_NOMEM);
        rp_bench_verdicts_release(&v);
    }
    release(&d);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_tables),
        cmocka_unit_test(test_rows_of_the_busy_machine),
        cmocka_unit_test(test_what_differs_from_itself_is_not_convicted),
        cmocka_unit_test(test_shape_of_the_saving),
        cmocka_unit_test(test_weighted_line),
        cmocka_unit_test(test_a_program_against_itself),
        cmocka_unit_test(test_true_differences),
        cmocka_unit_test(test_smallest_detectable_change),
        cmocka_unit_test(test_too_few_runs),
        cmocka_unit_test(test_no_floor_no_conviction),
        cmocka_unit_test(test_pairs_go_by_round),
        cmocka_unit_test(test_which_rate),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
