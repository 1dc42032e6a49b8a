/* SPDX-License-Identifier: MIT */
/* Intervals of comparisons against truth, by simulation with fixed seeds: differences of shares, cost per call and cost per row, for samples that are
 * independent and for samples that come in phases of 1/200 of the run. A 95 % interval has to hold the truth in 93 to 99 of 100 cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

#include "analyze/compare_stats.h"
#include "analyze/shapes.h"
#include "support/chance.h"

enum { PROFILES = 2000, BLOCKS = 500, PER_BLOCK = 20, SAMPLES = BLOCKS * PER_BLOCK, PHASE = SAMPLES / 200 };

static uint64_t chance;
static struct rp_design design;

/* One profile of 10 s at 1 kHz: a row whose share is `p`, in phases of `phase` samples `swing` lower or higher. */
static struct rp_tally_row draw(double p, double swing, unsigned phase)
{
    static uint64_t n[BLOCKS], k[BLOCKS];
    struct rp_tally_row row = {0, 1, false};
    uint64_t left = 1 + rp_random_next(&chance) % phase;
    double share = p + (rp_random_next(&chance) & 1 ? swing : -swing);

    for (size_t b = 0; b < BLOCKS; b++) {
        n[b] = PER_BLOCK;
        k[b] = 0;
        for (unsigned s = 0; s < PER_BLOCK; s++, left--) {
            if (!left) {
                share = p + (rp_random_next(&chance) & 1 ? swing : -swing);
                left = phase;
            }
            k[b] += chance_uniform(&chance) < share;
        }
        row.samples += k[b];
    }
    row.deff = rp_design_effect(&design, n, k, NULL);
    return row;
}

/* Twelve uniform numbers: near enough to a normal one. */
static double normal(void)
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += chance_uniform(&chance);
    return sum;
}

static void differences(double p, double q, double swing, unsigned phase, double convicted_low, double convicted_high)
{
    unsigned held = 0, convicted = 0;

    for (unsigned i = 0; i < PROFILES; i++) {
        struct rp_tally_row a = draw(p, swing, phase), b = draw(q, swing, phase);
        struct rp_proportion x = {(double)a.samples, SAMPLES, a.deff}, y = {(double)b.samples, SAMPLES, b.deff};
        struct rp_proportion_test t = rp_proportions(&x, &y);

        held += t.low <= q - p && q - p <= t.high;
        convicted += t.p < 0.05;
    }
    print_message("share %g against %g, phases of %u: held %.1f %%, p < .05 in %.1f %%\n", p, q, phase, 100.0 * held / PROFILES,
                  100.0 * convicted / PROFILES);
    assert_true(held >= PROFILES * 93 / 100 && held <= PROFILES * 99 / 100);
    assert_true(convicted >= PROFILES * convicted_low && convicted <= PROFILES * convicted_high);
}

static void test_differences_of_shares(void **state)
{
    (void)state;
    chance = 1;
    differences(0.1, 0.1, 0, 1, 0.01, 0.07);
    differences(0.1, 0.1, 0.08, PHASE, 0.01, 0.07);
    differences(0.02, 0.02, 0, 1, 0.01, 0.07);
    differences(0.3, 0.33, 0, 1, 0.9, 1); /* 3 points of 30: seen */
    differences(0.3, 0.33, 0.2, PHASE, 0.15, 0.5); /* a design effect near 10: seldom */
}

/* cost(N) = c + N r, of which the row at hand has c_k + N r_k. Rates are known within 1 %. */
static void costs(double c_k, double r_k, double swing, unsigned phase)
{
    static const double n[] = {1, 100};
    double whole[] = {400 + 765, 400 + 76500.0};
    unsigned held_c = 0, held_r = 0, broken = 0;
    double z = rp_normal_quantile(0.975);

    for (unsigned i = 0; i < PROFILES; i++) {
        struct rp_part parts[2];
        struct rp_shape_fit fit;

        for (size_t s = 0; s < 2; s++) {
            double p = (c_k + n[s] * r_k) / whole[s];
            struct rp_tally_row row = draw(p, swing * p, phase);
            struct rp_cost cost = {.known = true, .ns = whole[s] * (1 + 0.01 * normal()), .variance = 1e-4 * whole[s] * whole[s]};

            parts[s] = rp_part_of(&row, SAMPLES, &cost);
        }
        fit = rp_shape_fit(n, parts, 2);
        held_c += fabs(fit.c - c_k) <= z * fit.c_error;
        held_r += fabs(fit.r - r_k) <= z * fit.r_error;
        broken += fit.label == RP_SHAPE_BROKEN;
    }
    print_message("c %g, r %g, phases of %u: c held %.1f %%, r held %.1f %%, %u broken\n", c_k, r_k, phase, 100.0 * held_c / PROFILES,
                  100.0 * held_r / PROFILES, broken);
    assert_true(held_c >= PROFILES * 93 / 100 && held_c <= PROFILES * 99 / 100);
    assert_true(held_r >= PROFILES * 93 / 100 && held_r <= PROFILES * 99 / 100);
    assert_true(broken < PROFILES / 50);
}

static void test_costs_per_call_and_per_row(void **state)
{
    (void)state;
    chance = 2;
    costs(100, 20, 0, 1);
    costs(100, 20, 0.7, PHASE);
    costs(92, 145, 0, 1);
    costs(1, 128, 0, 1);
}

/* The labels of the model, on costs as measured of a database binding: names 107 and 0.1, buffers 1 and 128, mutex 92 and 145. */
static void test_labels(void **state)
{
    static const struct {
        double c, r;
        enum rp_shape_label label;
    } cases[] = {{107, 0.1, RP_SHAPE_PER_CALL}, {1, 128, RP_SHAPE_PER_ROW}, {92, 145, RP_SHAPE_MIXED}, {0.01, 0.001, RP_SHAPE_SMALL}};
    static const double n[] = {1, 100};
    double whole[] = {1165, 76900};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rp_part parts[2];
        struct rp_shape_fit fit;

        for (size_t s = 0; s < 2; s++) {
            struct rp_tally_row row = {(uint64_t)((cases[i].c + n[s] * cases[i].r) / whole[s] * SAMPLES + 0.5), 1, false};
            struct rp_cost cost = {.known = true, .ns = whole[s], .variance = 0};

            parts[s] = rp_part_of(&row, SAMPLES, &cost);
        }
        fit = rp_shape_fit(n, parts, 2);
        assert_string_equal(rp_shape_label_id(fit.label), rp_shape_label_id(cases[i].label));
        assert_true(isnan(fit.misfit));
    }
}

/* Not seen in 9 996 samples: two are added on each side, so the share may still be 2/10 000. Seen in half, with a rate known to 1 %: p (1-p)/n and p^2 var(T). */
static void test_parts_by_hand(void **state)
{
    struct rp_tally_row none = {0, 1, false}, half = {4998, 1, false}, phases = {4000, 4, false};
    struct rp_cost exact = {.known = true, .ns = 1000}, rate = {.known = true, .ns = 1000, .variance = 100};
    struct rp_part part = rp_part_of(&none, 9996, &exact);

    (void)state;
    assert_true(part.ns == 0 && fabs(part.variance - 1e6 * 2e-4 * (1 - 2e-4) / 1e4) < 1e-12);
    part = rp_part_of(&half, 9996, &rate);
    assert_true(part.ns == 500 && fabs(part.variance - (1e6 * 0.25 / 1e4 + 0.25 * 100)) < 1e-9);
    /* A design effect of 4 leaves a quarter of the samples. */
    part = rp_part_of(&phases, 8000, &exact);
    assert_true(fabs(part.variance - 1e6 * 0.25 / 2004) < 1e-9);
}

/* By hand: T(1) = 1164, T(100) = 76899, V = 4 and 900. r = 75735/99 = 765, c = 399; Var r = 904/9801; Var c = (10000 x 4 + 1 x 900)/9801. */
static void test_two_shapes_by_hand(void **state)
{
    static const double n[] = {1, 100};
    struct rp_part parts[] = {{1, 1164, 4}, {1, 76899, 900}};
    struct rp_shape_fit fit = rp_shape_fit(n, parts, 2);

    (void)state;
    assert_true(fabs(fit.r - 765) < 1e-9 && fabs(fit.c - 399) < 1e-9);
    assert_true(fabs(fit.r_error - sqrt(904 / 9801.0)) < 1e-9);
    assert_true(fabs(fit.c_error - sqrt(40900 / 9801.0)) < 1e-9);
    assert_int_equal(fit.label, RP_SHAPE_MIXED);
    /* Falling with N: no cost per row is negative. */
    parts[1].ns = 800;
    assert_int_equal(rp_shape_fit(n, parts, 2).label, RP_SHAPE_BROKEN);
    /* Steeper than proportional: no cost per call is. */
    parts[0].ns = 100;
    parts[1].ns = 76899;
    assert_int_equal(rp_shape_fit(n, parts, 2).label, RP_SHAPE_BROKEN);
}

/* Three shapes: least squares weighted by 1/V. y = 1, 3, 4 at 0, 1, 2 with V = 1, 1, 1: c = 7/6, r = 3/2, residuals -1/6, 1/3, -1/6, chi-square 1/6. */
static void test_three_shapes_by_hand(void **state)
{
    static const double n[] = {0, 1, 2};
    struct rp_part parts[] = {{1, 1, 1}, {1, 3, 1}, {1, 4, 1}};
    struct rp_shape_fit fit = rp_shape_fit(n, parts, 3);

    (void)state;
    assert_true(fabs(fit.c - 7 / 6.0) < 1e-12 && fabs(fit.r - 1.5) < 1e-12);
    assert_true(fabs(fit.misfit - erfc(sqrt(1 / 6.0 / 2))) < 1e-12);
    assert_true(fabs(fit.r_error - sqrt(0.5)) < 1e-12);
    for (size_t i = 0; i < 3; i++)
        parts[i].variance = 0.01; /* the same residuals are now far out: chi-square 16.7 */
    fit = rp_shape_fit(n, parts, 3);
    assert_int_equal(fit.label, RP_SHAPE_BROKEN);
    assert_true(fabs(fit.misfit - erfc(sqrt(100 / 6.0 / 2))) < 1e-9);
}

/* The lack of fit rejects a true line in about one case of a hundred, at 99 %. */
static void test_three_shapes_of_a_true_line(void **state)
{
    static const double n[] = {1, 10, 100};
    unsigned broken = 0, held = 0;

    (void)state;
    chance = 3;
    for (unsigned i = 0; i < PROFILES; i++) {
        struct rp_part parts[3];
        struct rp_shape_fit fit;

        for (size_t s = 0; s < 3; s++) {
            double whole = 400 + 765 * n[s];
            struct rp_tally_row row = draw((100 + 20 * n[s]) / whole, 0, 1);
            struct rp_cost cost = {.known = true, .ns = whole, .variance = 0};

            parts[s] = rp_part_of(&row, SAMPLES, &cost);
        }
        fit = rp_shape_fit(n, parts, 3);
        broken += fit.label == RP_SHAPE_BROKEN;
        held += fabs(fit.r - 20) <= 1.96 * fit.r_error;
    }
    print_message("three shapes: %u of %u broken, r held %.1f %%\n", broken, PROFILES, 100.0 * held / PROFILES);
    assert_true(broken < PROFILES * 3 / 100);
    assert_true(held >= PROFILES * 93 / 100 && held <= PROFILES * 99 / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_differences_of_shares),
        cmocka_unit_test(test_costs_per_call_and_per_row),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_parts_by_hand),
        cmocka_unit_test(test_two_shapes_by_hand),
        cmocka_unit_test(test_three_shapes_by_hand),
        cmocka_unit_test(test_three_shapes_of_a_true_line),
    };

    rp_design_init(&design, BLOCKS);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
