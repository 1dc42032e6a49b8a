/* SPDX-License-Identifier: MIT */
/* Against values of R 4.2.2 (t.test, wilcox.test, prop.test, fisher.test, chisq.test, p.adjust, power.t.test), to the digits that it printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

#include "analyze/compare_stats.h"

static void near_to(double got, double want, double relative, const char *what)
{
    if (!(fabs(got - want) <= relative * fabs(want)))
        fail_msg("%s: %.15g is not %.15g", what, got, want);
}

static void near(double got, double want, const char *what)
{
    near_to(got, want, 1e-9, what);
}

/* R printed six decimals of these. */
static void near_six(double got, double want, const char *what)
{
    if (!(fabs(got - want) <= 0.5000001e-6))
        fail_msg("%s: %.15g is not %.15g", what, got, want);
}

static const double d1_old[] = {1480, 1495, 1471, 1502, 1488, 1476, 1491, 1483, 1499, 1485};
static const double d1_new[] = {1731, 1722, 1745, 1718, 1739, 1728, 1735, 1726, 1741, 1730};
static const double d2_old[] = {26.7, 26.9, 26.4, 27.1, 26.5, 26.8, 26.6, 27.0, 26.3, 26.75};
static const double d2_new[] = {26.4, 26.65, 26.2, 26.95, 26.45, 26.55, 26.8, 26.5, 26.25, 26.7};
static const double d3_old[] = {70.0, 70.4, 69.1, 71.2, 70.8, 69.5, 70.1, 70.9, 68.8, 70.3};
static const double d3_new[] = {71.8, 72.9, 70.2, 71.5, 73.1, 70.6, 72.2, 71.1, 72.4, 70.9};
static const double d4_old[] = {3.1, 2.9, 3.3, 3.0, 3.2};
static const double d4_new[] = {2.1, 4.4, 3.9, 1.2, 5.0, 2.7, 3.5, 6.1};
static const double sleep_1[] = {.7, -1.6, -.2, -1.2, -.1, 3.4, 3.7, .8, 0, 2};
static const double sleep_2[] = {1.9, .8, 1.1, .1, -.1, 4.4, 5.5, 1.6, 4.6, 3.4};

#define COUNT(x) (sizeof(x) / sizeof *(x))

static struct rp_t_test welch(const double *old, size_t n_old, const double *new, size_t n_new)
{
    struct rp_moments a = rp_moments_of(old, n_old), b = rp_moments_of(new, n_new);

    return rp_welch(&a, &b);
}

static void test_welch(void **state)
{
    static const struct {
        const double *old;
        size_t n_old;
        const double *new;
        size_t n_new;
        double t, df, p;
    } cases[] = {
        {d1_old, 10, d1_new, 10, 58.8308001202, 17.5894204583, 1.20247361617e-21},
        {d2_old, 10, d2_new, 10, -1.44430321264, 17.8536490476, .165974688922},
        {d3_old, 10, d3_new, 10, 3.93152397092, 17.1717634839, .00105762912875},
        {d4_old, 5, d4_new, 8, .902743392861, 7.21921311854, .395783249183},
        {sleep_2, 10, sleep_1, 10, -1.86081346749, 17.7764735162, .0793941401874},
    };
    struct rp_t_test t;
    struct rp_interval i;

    (void)state;
    for (size_t c = 0; c < COUNT(cases); c++) {
        t = welch(cases[c].old, cases[c].n_old, cases[c].new, cases[c].n_new);
        near(t.t, cases[c].t, "t");
        near(t.df, cases[c].df, "df");
        near(t.p, cases[c].p, "p");
    }
    t = welch(sleep_2, 10, sleep_1, 10);
    i = rp_t_interval(&t, 0.95);
    near(i.low, -3.36548323071, "low");
    near(i.high, .205483230712, "high");
}

static void accuracy(const double *old, const double *new, double one, double two, double three)
{
    struct rp_t_test t = welch(old, 10, new, 10);
    double mean = rp_moments_of(old, 10).mean;

    near_six(100 * rp_accuracy(&t, mean, .05), one, "accuracy *");
    near_six(100 * rp_accuracy(&t, mean, .01), two, "accuracy **");
    near_six(100 * rp_accuracy(&t, mean, .001), three, "accuracy ***");
}

static void test_accuracy(void **state)
{
    (void)state;
    accuracy(d1_old, d1_new, .588166, .806676, 1.100849);
    accuracy(d2_old, d2_new, .872036, 1.195198, 1.629306);
}

static void log_ratios(const double *old, const double *new, size_t n, double *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = log(new[i] / old[i]);
}

static void test_paired(void **state)
{
    double d[10];
    struct rp_t_test t;
    struct rp_interval i;

    (void)state;
    log_ratios(d1_old, d1_new, 10, d);
    t = rp_t_mean(d, 10);
    i = rp_t_interval(&t, 0.95);
    near(t.estimate, .152236700004, "mean");
    near(t.t, 49.4722501553, "t");
    near(t.p, 2.82549478996e-12, "p");
    near(i.low, .145275558349, "low");
    near(i.high, .15919784166, "high");
    log_ratios(d2_old, d2_new, 10, d);
    t = rp_t_mean(d, 10);
    near(t.t, -2.69292177613, "t");
    near(t.p, .0246781310718, "p");
    log_ratios(d3_old, d3_new, 10, d);
    t = rp_t_mean(d, 10);
    near(t.t, 4.52865605977, "t");
    near(t.p, .00142894680205, "p");
}

static void test_sign_flip(void **state)
{
    double d[40] = {0};
    struct rp_permutation p;

    (void)state;
    log_ratios(d2_old, d2_new, 10, d);
    p = rp_sign_flip(d, 10, 1);
    assert_true(p.exact);
    assert_int_equal(p.hits, 26);
    assert_int_equal(p.total, 1024);
    near(p.p, .025390625, "p");
    log_ratios(d3_old, d3_new, 10, d);
    p = rp_sign_flip(d, 10, 1);
    assert_int_equal(p.hits, 2);
    /* The least p of n pairs is 2 / 2^n. */
    for (size_t i = 0; i < 16; i++)
        d[i] = (double)i + 1;
    assert_int_equal(rp_sign_flip(d, 16, 1).hits, 2);
    assert_int_equal(rp_sign_flip(d, 6, 1).total, 64);
    /* Beyond 16 it is drawn: forty ones and minus ones whose sum is 12 have p = P(|2B - 40| >= 12) = .0807, B binomial(40, 1/2). */
    for (size_t i = 0; i < 40; i++)
        d[i] = i < 26 ? 1 : -1;
    p = rp_sign_flip(d, 40, 1);
    assert_false(p.exact);
    assert_true(fabs(p.p - .0807) < .004);
    assert_true(rp_sign_flip(d, 40, 1).hits == p.hits);
    assert_true(rp_sign_flip(d, 40, 2).hits != p.hits);
    /* All in one direction: never 0. */
    for (size_t i = 0; i < 40; i++)
        d[i] = 1;
    near(rp_sign_flip(d, 40, 1).p, 1 / 100001.0, "least p");
}

static void test_permutation_of_means(void **state)
{
    struct rp_permutation p;
    struct rp_err err;
    double shifted[30], same[30];

    (void)state;
    assert_int_equal(rp_permute_means(d4_old, 5, d4_new, 8, 1, &p, &err), RP_OK);
    assert_true(p.exact);
    assert_int_equal(p.hits, 652);
    assert_int_equal(p.total, 1287);
    near(p.p, .506604506605, "p");
    /* 2 / C(8, 4): apart. */
    assert_int_equal(rp_permute_means(d1_old, 4, d1_new, 4, 1, &p, &err), RP_OK);
    assert_int_equal(p.hits, 2);
    assert_int_equal(p.total, 70);
    for (size_t i = 0; i < 30; i++) {
        same[i] = (double)(i * 7 % 30);
        shifted[i] = same[i] + 100;
    }
    assert_int_equal(rp_permute_means(same, 30, same, 30, 3, &p, &err), RP_OK);
    assert_false(p.exact);
    near(p.p, 1, "itself");
    assert_int_equal(rp_permute_means(same, 30, shifted, 30, 3, &p, &err), RP_OK);
    near(p.p, 1 / 100001.0, "apart");
}

static void test_mann_whitney(void **state)
{
    struct rp_mann_whitney m;
    struct rp_err err;
    double value = 0, many[50], more[50];

    (void)state;
    assert_int_equal(rp_mann_whitney(d1_old, 10, d1_new, 10, &m, &err), RP_OK);
    assert_true(m.exact);
    near(m.w, 100, "W");
    near(m.p, 1.08250882245e-05, "p");
    assert_int_equal(rp_mann_whitney(d3_old, 10, d3_new, 10, &m, &err), RP_OK);
    assert_true(m.ties && !m.exact);
    near(m.w, 89.5, "W");
    near(m.p, .00318564907989, "p");
    assert_int_equal(rp_mann_whitney(d4_old, 5, d4_new, 8, &m, &err), RP_OK);
    near(m.w, 25, "W");
    near(m.p, .523698523699, "p");
    /* The least p is 2 / C(2n, n). */
    assert_int_equal(rp_mann_whitney(d1_old, 4, d1_new, 4, &m, &err), RP_OK);
    near(m.p, 2 / 70.0, "n 4");
    assert_int_equal(rp_mann_whitney(d1_old, 8, d1_new, 8, &m, &err), RP_OK);
    near(m.p, 2 / 12870.0, "n 8");
    for (size_t i = 0; i < 50; i++) {
        many[i] = (double)i;
        more[i] = (double)i + 0.5;
    }
    /* Normal beyond 20: W = 1275 of 2500, z = (25 - .5) / sqrt(2500 x 101 / 12). */
    assert_int_equal(rp_mann_whitney(many, 50, more, 50, &m, &err), RP_OK);
    assert_false(m.exact);
    near(m.w, 1275, "W");
    near(m.p, erfc(24.5 / sqrt(2500 * 101 / 12.0) / sqrt(2)), "p");
    assert_int_equal(rp_hodges_lehmann(d3_old, 10, d3_new, 10, &value, &err), RP_OK);
    near(value, 1.5, "Hodges-Lehmann");
}

static void test_ratios(void **state)
{
    static const double ratios[] = {.9903, 1.0092, 1.0257, 1.0862, 1.1288, 1.1551, 1.1703, 1.1771};
    struct rp_moments a = rp_moments_of(d1_old, 10), b = rp_moments_of(d1_new, 10);
    struct rp_ratio r = rp_fieller(&a, &b, 0.95);
    struct rp_err err;
    double zero[] = {-1, 1, 0}, logs[] = {.1, .2, .3, .3, .2, .1};

    (void)state;
    near(r.ratio, 1731.5 / 1487, "ratio");
    near(r.low, 1.15751102292, "Fieller low");
    near(r.high, 1.17139266947, "Fieller high");
    a = rp_moments_of(d3_old, 10);
    b = rp_moments_of(d3_new, 10);
    r = rp_fieller(&a, &b, 0.95);
    near(r.low, 1.00940080781, "Fieller low");
    near(r.high, 1.03523145887, "Fieller high");
    a = rp_moments_of(zero, 3);
    r = rp_fieller(&a, &b, 0.95);
    assert_true(r.low <= 0 && isinf(r.high)); /* the old mean may be 0 */
    assert_int_equal(rp_log_welch(d1_old, 10, d1_new, 10, 0.95, &r, &err), RP_OK);
    near(r.ratio, 1.16443582578, "log ratio");
    near(r.low, 1.15796658859, "log low");
    near(r.high, 1.1709412048, "log high");
    assert_int_equal(rp_log_welch(d3_old, 10, d3_new, 10, 0.95, &r, &err), RP_OK);
    near(r.p, .00103851753226, "log p");
    near(rp_geomean(ratios, 8), 1.09050501093, "geomean");
    /* Two configurations that move against each other round by round: their geomean does not move at all. */
    assert_int_equal(rp_geomean_rounds(logs, 2, 3, 0.95, &r, &err), RP_OK);
    near(r.ratio, exp(.2), "rounds");
    assert_true(r.high - r.low < 1e-12);
}

static void test_power(void **state)
{
    struct rp_moments m = {10, 100, 2.25};

    (void)state;
    assert_true(fabs(rp_t_power_n(2, 1.5, .05, .9) - 12.86) < .01);
    assert_true(fabs(rp_t_power_delta(10, 1.5, .05, .9) - 2.3006) < .0001);
    /* The planning formula is within 1 % of the noncentral t at ten runs. */
    near_to(100 * rp_detectable(&m, &m, .05, .9), 2.3006, .01, "detectable");
    near_to(rp_t_power(12.86, 2, 1.5, .05), .9, 1e-3, "power");
}

static void test_corrections(void **state)
{
    double p[] = {.0005, .00001, .0245, .3266, .1861, .00002, .04,  .012,  .00003, .7,
                  .5,    .03,    .0009, .2,    .06,   .91,    .33, .0041, .0007,  .15};
    static const double want[] = {.0025, .0002, .054444444444, .388235294118, .265857142857, .0002, .072727272727, .03, .0002, .736842105263,
                                  .555555555556, .06, .003, .266666666667, .1, .91, .388235294118, .011714285714, .0028, .230769230769};
    uint32_t order[20];

    (void)state;
    rp_benjamini_hochberg(p, 20, order);
    for (size_t i = 0; i < 20; i++)
        near_to(p[i], want[i], 1e-10, "BH");
}

static void proportions(double k1, double n1, double k2, double n2, double z, double p)
{
    struct rp_proportion a = {k1, n1, 1}, b = {k2, n2, 1};
    struct rp_proportion_test t = rp_proportions(&b, &a); /* z of the first minus the second */

    assert_false(t.fisher);
    if (z > 0)
        near(fabs(t.z), z, "z");
    near_to(t.p, p, p < 1e-100 ? 3e-6 : 1e-9, "p");
}

static void test_proportions(void **state)
{
    struct rp_proportion small = {2, 400, 1}, none = {0, 600, 1}, a = {50, 500, 1}, b = {200, 2000, 4}, c = {80, 500, 1}, d = {320, 2000, 4};
    struct rp_proportion_test t, u;

    (void)state;
    proportions(648, 6891, 6, 6001, 24.0115054431, 2.10867e-127);
    proportions(1323, 6891, 1140, 6001, .291186760877, .770908487376);
    proportions(12, 1000, 25, 1000, 2.15723440609, .030987404928);
    proportions(3, 500, 9, 500, 0, .0814144201176);
    near_to(rp_fisher(648, 6891 - 648, 6, 6001 - 6), 3.90100e-171, 2e-6, "Fisher");
    near(rp_fisher(12, 988, 25, 975), .0450180757727, "Fisher");
    near(rp_fisher(3, 497, 9, 491), .143573076542, "Fisher");
    /* Expected below five: exact. 2 of 400 and 0 of 600: C(400,2) / C(1000,2). */
    t = rp_proportions(&none, &small);
    assert_true(t.fisher);
    near(t.p, 400.0 * 399 / (1000.0 * 999), "Fisher by itself");
    /* A design effect of 4 is a quarter of the samples. */
    t = rp_proportions(&c, &a);
    u = rp_proportions(&d, &b);
    near(u.z, t.z, "deff");
    near(u.low, t.low, "deff");
    near(u.p, t.p, "deff");
    t = rp_proportions(&a, &a);
    assert_true(t.difference == 0 && t.p == 1 && t.low < 0 && t.high > 0);
}

/* Newcombe (1998), table II, method 10: 56/70 - 48/80 has 95 % limits .0524 and .3339. */
static void test_newcombe(void **state)
{
    struct rp_proportion a = {56, 70, 1}, b = {48, 80, 1};
    struct rp_interval i = rp_newcombe(&b, &a, rp_normal_quantile(.975));

    (void)state;
    assert_true(fabs(i.low - .0524) < .00005);
    assert_true(fabs(i.high - .3339) < .00005);
}

static void test_chi_square(void **state)
{
    static const double one[] = {1323, 1206, 1206, 972, 820, 648, 716}, two[] = {1140, 432, 1668, 1062, 1002, 6, 691};
    static const double want[] = {.291186760877, 17.5200917618, -14.0079675926, -5.58036011825, -7.79996336548, 24.0115054431, -2.04227830753};
    double residuals[7];
    struct rp_chi2 r = rp_chi2_two_rows(one, two, 7, residuals);

    (void)state;
    near(r.x2, 1049.98991375, "X2");
    near(r.df, 6, "df");
    near(r.p, 1.37569429762e-223, "p");
    for (size_t i = 0; i < 7; i++)
        near(residuals[i], want[i], "residual");
    near(rp_chi2_tail(2 * log(20), 2), .05, "df 2 is exponential");
    near(rp_chi2_tail(1.95996398454 * 1.95996398454, 1), .05, "df 1 is a square");
    near(rp_chi2_tail(0.5, 2), exp(-.25), "small");
}

static void test_nothing_to_go_by(void **state)
{
    static const double flat[] = {5, 5, 5}, other[] = {6, 6, 6};
    struct rp_t_test t = welch(flat, 3, flat, 3);

    (void)state;
    assert_true(t.p == 1);
    t = welch(flat, 3, other, 3);
    assert_true(t.p == 0 && isinf(t.t));
    t = welch(flat, 1, other, 3);
    assert_true(isnan(t.p) && t.estimate == 1);
    assert_true(isnan(rp_geomean(flat, 0)));
    assert_true(isnan(rp_moments_of(flat, 0).mean));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_welch),
        cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_paired),
        cmocka_unit_test(test_sign_flip),
        cmocka_unit_test(test_permutation_of_means),
        cmocka_unit_test(test_mann_whitney),
        cmocka_unit_test(test_ratios),
        cmocka_unit_test(test_power),
        cmocka_unit_test(test_corrections),
        cmocka_unit_test(test_proportions),
        cmocka_unit_test(test_newcombe),
        cmocka_unit_test(test_chi_square),
        cmocka_unit_test(test_nothing_to_go_by),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
