/* SPDX-License-Identifier: MIT */
/* Runs of one program against each other, simulated with fixed seeds: the cost of a call and what its functions have of it differ from run to run by more
 * than the samples and RATE lines of any run show. Convictions are counted. The trap would be a simulation without that scatter: then every test of
 * samples looks honest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "analyze/bench.h"
#include "analyze/compare_stats.h"
#include "analyze/diff.h"
#include "base/buf.h"
#include "bench/runs_csv.h"
#include "support/chance.h"
#include "support/fake_view.h"

enum { PAIRS = 300, FUNCTIONS = 6, SAMPLES = 5000, SECONDS = 5 };

static const char rules[] = "categories:\n"
                            "  - {id: c0, name: \"a\", kind: cost}\n"
                            "  - {id: c1, name: \"b\", kind: cost}\n"
                            "rules:\n"
                            "  - {id: r0, category: c0, symbol: \"f0\"}\n"
                            "  - {id: r1, category: c0, symbol: \"f1\"}\n"
                            "  - {id: r2, category: c1, symbol: \"f2\"}\n";
static const double part[FUNCTIONS] = {0.4, 0.25, 0.15, 0.1, 0.06, 0.04};
/* A share p scatters with its own function and with all others: by p (1 - p) times the scatter of each, and that times the root of 1 + (sum of the others'
 * squares) / (1 - p)², which is 1.13 to 1.16 for these parts. */
static const double with_others = 1.14;

static uint64_t chance;

/* Twelve uniform numbers: near enough to a normal one. */
static double normal(void)
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += chance_uniform(&chance);
    return sum;
}

/* What differs between two runs: of the cost of a call, as a part of it, and of the share p of a function, as a part of p (1 - p). */
struct scatter {
    double call, function;
};

/* A run of a program whose call costs about 1 000 ns, times `dearer`, and f0 times `f0`. Its RATE lines differ by half a per cent. */
static void run(struct fake_view *v, const struct scatter *scatter, double dearer, double f0)
{
    double t = 1000 * dearer * (1 + scatter->call * normal()), weight[FUNCTIONS], sum = 0;
    struct rp_buf text = {0};

    rp_buf_printf(&text, ".run seconds=%d hz=1000\n", SECONDS);
    for (int i = 0; i < SECONDS; i++)
        rp_buf_printf(&text, ".rate end=%d wall=1 cpu=%.9f calls=1000000 rows=1000000\n", i + 1, t * (1 + 0.005 * normal()) * 1e-3);
    for (int i = 0; i < FUNCTIONS; i++) {
        weight[i] = part[i] * (i ? 1 : f0) * (1 + scatter->function / with_others * normal());
        sum += weight[i];
    }
    for (int i = 0; i < FUNCTIONS; i++) {
        double p = weight[i] / sum;

        rp_buf_printf(&text, "f%d;main %ld\n", i, lround(SAMPLES * p + sqrt(SAMPLES * p * (1 - p)) * normal()));
    }
    fake_view(v, rp_buf_text(&text), rules, NULL);
    rp_buf_release(&text);
}

/* In how many of the pairs. */
struct convictions {
    unsigned whole, share, cost;
    unsigned whole_by_itself; /* the whole, were what one sees within a run all there is */
};

static bool is_convicted(const struct rp_change *c)
{
    return c->verdict == RP_VERDICT_GREW || c->verdict == RP_VERDICT_FELL;
}

static void count(const struct rp_diff *d, struct convictions *n)
{
    bool share = false, cost = false;

    for (size_t i = 0; i < d->rows.n; i++) {
        share |= is_convicted(&d->rows.at[i].share);
        cost |= is_convicted(&d->rows.at[i].ns);
    }
    n->share += share;
    n->cost += cost;
    n->whole += is_convicted(&d->whole);
    n->whole_by_itself += fabs(d->whole.difference) > 1.96 * sqrt(d->cost[0].variance + d->cost[1].variance);
}

static struct convictions pairs(enum rp_tally_by by, size_t files, const struct scatter *scatter, double dearer, double f0)
{
    struct convictions n = {0, 0, 0, 0};
    struct rp_diff_options options = {.by = by, .min_samples = 5, .alpha = 0.05};

    for (unsigned i = 0; i < PAIRS; i++) {
        struct fake_view runs[8];
        const struct rp_view *views[8];
        struct rp_diff_side sides[2] = {{views, files, 0, 0}, {views + files, files, 0, 0}};
        struct rp_diff diff;
        struct rp_err err;

        for (size_t k = 0; k < 2 * files; k++) {
            run(&runs[k], scatter, k < files ? 1 : dearer, k < files ? 1 : f0);
            views[k] = runs[k].view;
        }
        assert_int_equal(rp_diff_make(sides, &options, &diff, &err), RP_OK);
        count(&diff, &n);
        rp_diff_release(&diff);
        for (size_t k = 0; k < 2 * files; k++)
            fake_view_release(&runs[k]);
    }
    print_message("%zu a side: whole %u, some share %u, some cost %u of %d; by what one run shows: whole %u\n", files, n.whole, n.share, n.cost, PAIRS,
                  n.whole_by_itself);
    return n;
}

/* 5 % of 300 are 15; 26 and more come in one of 250 such counts. */
enum { NOMINAL = 26 };

static void test_one_program_is_not_convicted_against_itself(void **state)
{
    struct scatter scatter = {RP_DIFF_RUN_SCATTER, RP_DIFF_FINE_ROW_SCATTER};

    (void)state;
    chance = 1;
    for (size_t files = 1; files <= 4; files++) {
        struct convictions n = pairs(RP_TALLY_FUNCTION, files, &scatter, 1, 1);

        assert_true(n.whole <= NOMINAL && n.share <= NOMINAL && n.cost <= NOMINAL);
        /* It is the scatter between runs that makes the test: with what each run shows of itself most pairs would be convicted. */
        assert_true(n.whole_by_itself > PAIRS / 2);
    }
    scatter.function = RP_DIFF_ROW_SCATTER;
    for (size_t files = 1; files <= 4; files += 3) {
        struct convictions n = pairs(RP_TALLY_CATEGORY, files, &scatter, 1, 1);

        assert_true(n.whole <= NOMINAL && n.share <= NOMINAL && n.cost <= NOMINAL);
    }
}

/* A call that costs half as much again, all of it in one function, is seen in one pair; four runs a side see a twentieth when runs differ by a hundredth. */
static void test_what_is_large_is_convicted(void **state)
{
    struct scatter busy = {RP_DIFF_RUN_SCATTER, RP_DIFF_FINE_ROW_SCATTER}, quiet = {0.01, 0.01};
    struct convictions n;

    (void)state;
    chance = 2;
    n = pairs(RP_TALLY_FUNCTION, 1, &busy, 1.5, 2.25);
    assert_true(n.whole > PAIRS * 95 / 100 && n.cost > PAIRS * 80 / 100);
    n = pairs(RP_TALLY_FUNCTION, 1, &quiet, 1.05, 1.125);
    assert_true(n.whole < PAIRS / 20);
    n = pairs(RP_TALLY_FUNCTION, 4, &quiet, 1.05, 1.125);
    assert_true(n.whole > PAIRS * 95 / 100);
}

/* What is assumed of a call's cost is what the recorded benchmarks did on a busy machine: 3.98 %, and a tenth of their programs 5.6 % and more. */
static void test_what_is_assumed_was_measured(void **state)
{
    struct rp_bench_options options = {.rate = RP_RATE_THREAD, .alpha = 0.05};
    struct rp_bench bench = {0};
    struct rp_bench_verdicts verdicts = {0};
    struct rp_err err;
    double squares = 0;
    size_t n = 0;

    (void)state;
    if (rp_runs_read(&bench, ROWPROF_SOURCE_DIR "/tests/fixtures/bench/ab_node267_268_contended.csv", &err))
        fail_msg("%s", err.text);
    assert_int_equal(rp_bench_judge(&bench, &options, &verdicts, &err), RP_OK);
    for (size_t i = 0; i < verdicts.rows.n; i++) {
        for (size_t arm = 0; arm < RP_ARMS; arm++, n++) {
            const struct rp_moments *m = &verdicts.rows.at[i].arm[arm];

            squares += m->variance / (m->mean * m->mean);
        }
    }
    assert_int_equal(n, 60);
    assert_true(fabs(sqrt(squares / (double)n) - 0.0398) < 0.0001);
    assert_true(fabs(RP_DIFF_RUN_SCATTER - 0.0398) < 0.0005);
    rp_bench_verdicts_release(&verdicts);
    rp_bench_release(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_program_is_not_convicted_against_itself),
        cmocka_unit_test(test_what_is_large_is_convicted),
        cmocka_unit_test(test_what_is_assumed_was_measured),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
