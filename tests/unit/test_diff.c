/* SPDX-License-Identifier: MIT */
/* Differences of profiles, and the traps of the field: other rates and lengths, shares that fall because others rose, addresses that move, functions of
 * one side only, a profile against itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "analyze/compare_stats.h"
#include "analyze/diff.h"
#include "report/compare_report.h"
#include "support/fake_view.h"

static const char rules[] = "categories:\n"
                            "  - {id: f, name: \"work of f\", kind: cost}\n"
                            "  - {id: g, name: \"work of g\", kind: cost}\n"
                            "rules:\n"
                            "  - {id: f, category: f, symbol: \"f\"}\n"
                            "  - {id: g, category: g, symbol: \"g\"}\n";

static struct fake_view v[2];
static struct rp_diff diff;

/* Compares two fake profiles; to be followed by done(). */
static void compare_with(const char *a, const char *b, struct rp_diff_options options, double rate_a, double rate_b)
{
    const struct rp_view *views[2];
    struct rp_diff_side sides[2];
    struct rp_err err;

    fake_view(&v[0], a, rules, NULL);
    fake_view(&v[1], b, rules, NULL);
    for (size_t s = 0; s < 2; s++) {
        views[s] = v[s].view;
        sides[s] = (struct rp_diff_side){&views[s], 1, s ? rate_b : rate_a, 0};
    }
    options.min_samples = options.min_samples ? options.min_samples : 5;
    options.alpha = 0.05;
    assert_int_equal(rp_diff_make(sides, &options, &diff, &err), RP_OK);
}

static void compare(const char *a, const char *b, enum rp_tally_by by, double rate_a, double rate_b)
{
    compare_with(a, b, (struct rp_diff_options){.by = by}, rate_a, rate_b);
}

static void done(void)
{
    rp_diff_release(&diff);
    fake_view_release(&v[0]);
    fake_view_release(&v[1]);
}

static const struct rp_diff_row *row_or_null(const char *name)
{
    for (size_t i = 0; i < diff.rows.n; i++)
        if (!strcmp(rp_intern_text(&diff.keys.text, diff.keys.keys.at[diff.rows.at[i].key].name), name))
            return &diff.rows.at[i];
    return NULL;
}

static const struct rp_diff_row *row(const char *name)
{
    const struct rp_diff_row *r = row_or_null(name);

    if (!r)
        fail_msg("no row %s", name);
    return r;
}

static void close_to(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fmax(1, fabs(want))))
        fail_msg("%.15g is not %.15g", got, want);
}

/* 100 Hz for 10 s against 1 000 Hz for 3 s, of one thing. */
static void test_other_rate_and_length(void **state)
{
    (void)state;
    compare(".run seconds=10 hz=100\nf;main 300\ng;main 700\n", ".run seconds=3 hz=1000\nf;main 900\ng;main 2100\n", RP_TALLY_FUNCTION, 0, 0);
    assert_int_equal(diff.samples[0], 1000);
    assert_int_equal(diff.samples[1], 3000);
    close_to(row("f")->share.difference, 0);
    assert_int_equal(row("f")->share.verdict, RP_VERDICT_NOISE);
    assert_true(row("f")->share.low < 0 && row("f")->share.high > 0);
    assert_false(diff.has_cost);
    done();
}

/* f takes three times as long as before, g takes what it took: its share falls by half and its cost does not move. */
static void test_a_share_falls_because_another_rose(void **state)
{
    double percent;
    uint32_t worst;

    (void)state;
    compare(".run seconds=1 hz=1000\nf;main 500\ng;main 500\n", ".run seconds=1 hz=1000\nf;main 750\ng;main 250\n", RP_TALLY_CATEGORY, 1e6, 5e5);
    assert_true(diff.has_cost);
    close_to(diff.cost[0].ns, 1000);
    close_to(diff.cost[1].ns, 2000);
    close_to(row("work of f")->side[0].ns, 500);
    close_to(row("work of f")->side[1].ns, 1500);
    close_to(row("work of g")->side[1].ns, 500);
    assert_int_equal(row("work of f")->ns.verdict, RP_VERDICT_GREW);
    assert_int_equal(row("work of g")->share.verdict, RP_VERDICT_FELL);
    assert_int_equal(row("work of g")->ns.verdict, RP_VERDICT_NOISE);
    assert_true(row("work of g")->cost_stands);
    assert_false(row("work of f")->cost_stands);
    /* The rates are exact, so the whole is not tested; f grew by 1 000 ns, which is all that a call cost. */
    assert_int_equal(diff.whole.verdict, RP_VERDICT_NONE);
    assert_true(rp_diff_worst(&diff, &percent, &worst));
    close_to(percent, 100);
    assert_ptr_equal(&diff.rows.at[worst], row("work of f"));
    done();
}

/* A share that fell stands for nothing where the cost rose, where its interval holds what the share's fall alone would have made of it, and where a call
 * costs what it did. Of 4 000 samples a side, exact rates. */
static void test_costs_that_stand(void **state)
{
    static const char a[] = ".run seconds=4 hz=1000\nf;main 2800\ng;main 1000\nrare;main 80\nmore;main 120\n";
    static const char b[] = ".run seconds=4 hz=1000\nf;main 3380\ng;main 500\nrare;main 8\nmore;main 112\n";

    (void)state;
    compare(a, b, RP_TALLY_FUNCTION, 1e6, 5e5);
    close_to(row("g")->side[0].ns, 250);
    close_to(row("g")->side[1].ns, 250);
    assert_int_equal(row("g")->share.verdict, RP_VERDICT_FELL);
    assert_true(row("g")->cost_stands);
    /* 20 ns became 4. */
    assert_int_equal(row("rare")->ns.verdict, RP_VERDICT_FELL);
    assert_false(row("rare")->cost_stands);
    assert_false(row("f")->cost_stands);
    assert_false(row("more")->cost_stands);
    done();
    /* Half the share of a call that costs eight times as much. */
    compare(a, b, RP_TALLY_FUNCTION, 1e6, 1.25e5);
    assert_int_equal(row("g")->share.verdict, RP_VERDICT_FELL);
    assert_int_equal(row("g")->ns.verdict, RP_VERDICT_GREW);
    assert_false(row("g")->cost_stands);
    done();
    /* One sample of B is 16.5 ns of its call: 20 ns may be there still, or be gone with the share. */
    compare(a, ".run seconds=4 hz=1000\nf;main 3999\nrare;main 1\n", RP_TALLY_FUNCTION, 1e6, 1e6 / 66);
    assert_int_equal(row("rare")->share.verdict, RP_VERDICT_FELL);
    assert_true(row("rare")->ns.low < 0 && row("rare")->ns.high > 0);
    assert_false(row("rare")->cost_stands);
    done();
    /* A call costs what it did: what the share lost, the cost lost. */
    compare(a, b, RP_TALLY_FUNCTION, 1e6, 1e6);
    assert_int_equal(row("g")->share.verdict, RP_VERDICT_FELL);
    assert_false(row("g")->cost_stands);
    done();
}

/* By hand: a call of 1 000 ns whose three RATE lines are alike, f half of 1 000 samples. Assumed for each run: 4 % of the call, and .05 p (1 - p) of f's
 * share, which multiplies the variance of its samples by 1 + .05² x 1/4 x 1000 = 1.625. */
static void test_runs_are_assumed_to_differ(void **state)
{
    static const char a[] = ".run seconds=4 hz=1000\n.rate end=2 wall=1 cpu=1 calls=1000000 rows=1\n.rate end=3 wall=1 cpu=1.0001 calls=1000000 rows=1\n"
                            ".rate end=4 wall=1 cpu=0.9999 calls=1000000 rows=1\nf;main 500\ng;main 500\n";
    double n = 1000 / 1.625, within, variance;

    (void)state;
    compare(a, a, RP_TALLY_CATEGORY, 0, 0);
    close_to(diff.run_scatter, 0.04);
    close_to(diff.row_scatter, 0.05);
    within = diff.cost[0].variance;
    close_to(diff.whole.high, 1.959963984540054 * sqrt(2 * (1600 + within)));
    variance = 1e6 * 0.25 / (n + 4) + 0.25 * within + 400;
    close_to(row("work of f")->ns.high, 1.959963984540054 * sqrt(2 * variance));
    done();
    compare(a, a, RP_TALLY_FUNCTION, 0, 0);
    close_to(diff.row_scatter, 0.15);
    done();
    compare_with(a, a, (struct rp_diff_options){.by = RP_TALLY_CATEGORY, .same = true}, 0, 0);
    assert_true(diff.run_scatter == 0 && diff.row_scatter == 0);
    done();
}

/* RATE lines: T is their CPU time over their calls, and their scatter its variance. 2 000 ns at 3 lines of 1 900, 2 000 and 2 100. */
static void test_costs_out_of_rate_lines(void **state)
{
    static const char a[] = ".run seconds=4 hz=1000\n.rate end=2 wall=1 cpu=0.5 calls=500000 rows=500000\nf;main 500\ng;main 500\n";
    static const char b[] = ".run seconds=4 hz=1000\n.rate end=2 wall=1 cpu=0.0019 calls=1000 rows=100000\n"
                            ".rate end=3 wall=1 cpu=0.002 calls=1000 rows=100000\n.rate end=4 wall=1 cpu=0.0021 calls=1000 rows=100000\nf;main 500\ng;main 500\n";
    double t = 4.30265272975 / 1.95996398454;

    (void)state;
    compare(a, b, RP_TALLY_FUNCTION, 0, 0);
    close_to(diff.cost[0].ns, 1000);
    assert_true(diff.cost[0].variance == 0 && diff.cost[0].lines == 1);
    close_to(diff.cost[1].ns, 2000);
    close_to(diff.cost[1].rows, 100);
    close_to(diff.cost[1].variance, 1e4 / 3 * t * t); /* s^2 / n, s = 100 */
    assert_int_equal(diff.whole.verdict, RP_VERDICT_NONE); /* A's variance is not known */
    done();
}

/* A call is 1 000 ns of the process, of which the main thread is four fifths. */
static void test_costs_of_one_thread(void **state)
{
    static const char a[] = ".run seconds=4 hz=1000\n.thread main/1234 pid=1234 wall=4 cpu=3.2\n.thread pool/1235 pid=1234 wall=4 cpu=0.8\n"
                            ".rate end=2 wall=1 cpu=1 calls=1000000 rows=1000000\nf;main 800 thread=main/1234\ng;main 200 thread=pool/1235\n";
    struct rp_filter filter = {.thread = "main"};
    struct fake_view one;

    (void)state;
    fake_view(&one, a, rules, &filter);
    close_to(rp_cost_of(one.view, 0, 0).ns, 800);
    fake_view_again(&one, NULL);
    close_to(rp_cost_of(one.view, 0, 0).ns, 1000);
    /* 0.5 million calls in a second of the clock, in each of which the threads ran for 0.8 and 0.2 s. */
    close_to(rp_cost_of(one.view, 5e5, 0).ns, 2000);
    fake_view_again(&one, &filter);
    close_to(rp_cost_of(one.view, 5e5, 0).ns, 1600);
    fake_view_release(&one);
}

/* Addresses move with every start: names are what is matched, and offsets in a module where there is no name. */
static void test_addresses_do_not_matter(void **state)
{
    static const char a[] = ".module libc.so.6 kind=elf\nf+0x10;main+0x40 100\nlibc.so.6!?+0x9a1c0;main+0x44 50\n[jit]!?+0x7f1200;main 60\n"
                            "[kernel]!?+0xffffffff81001000;main 40\n";
    static const char b[] = ".module libc.so.6 kind=elf\n.symbol g\nother;main 1\nf+0x90;main+0x80 100\nlibc.so.6!?+0x9a1c0;main+0x84 50\n"
                            "[jit]!?+0x550000;main 60\n[kernel]!?+0xffffffffa3001000;main 40\n";

    (void)state;
    compare(a, b, RP_TALLY_FUNCTION, 0, 0);
    assert_int_equal(diff.rows.n, 4);
    assert_int_equal(diff.left_out, 1);
    for (size_t i = 0; i < diff.rows.n; i++)
        assert_int_equal(diff.rows.at[i].side[0].samples, diff.rows.at[i].side[1].samples);
    assert_int_equal(row("libc.so.6+0x9a1c0")->side[0].samples, 50);
    done();
}

/* The same name in two modules is two functions. */
static void test_modules_keep_names_apart(void **state)
{
    (void)state;
    compare("libx.so!f;main 100\nf;main 100\n", "libx.so!f;main 10\nf;main 190\n", RP_TALLY_FUNCTION, 0, 0);
    assert_int_equal(diff.rows.n, 2);
    done();
    compare("libx.so!f;main 100\nf;main 100\n", "libx.so!f;main 10\nf;main 190\n", RP_TALLY_MODULE, 0, 0);
    assert_int_equal(row("libx.so")->side[1].samples, 10);
    assert_int_equal(row("libx.so")->share.verdict, RP_VERDICT_FELL);
    done();
}

static void test_a_function_of_one_side(void **state)
{
    (void)state;
    compare("f;main 1000\ng;main 60\nh;main 3\n", "f;main 1000\nh;main 4\n", RP_TALLY_FUNCTION, 0, 0);
    assert_true(row("g")->side[1].below);
    assert_false(row("g")->side[0].below);
    assert_int_equal(row("g")->share.verdict, RP_VERDICT_FELL);
    /* Below the cut-off on both sides: not a row, but counted. */
    assert_null(row_or_null("h"));
    assert_int_equal(diff.left_out, 1);
    assert_int_equal(diff.left_out_samples[0], 3);
    assert_int_equal(diff.left_out_samples[1], 4);
    done();
}

static void test_itself(void **state)
{
    static const char a[] = ".run seconds=1 hz=1000\nf;main 500 block=1\ng;main 300 block=2\nf;g;main 100 block=3\n";

    (void)state;
    for (enum rp_tally_by by = RP_TALLY_CATEGORY; by <= RP_TALLY_PATH; by++) {
        compare_with(a, a, (struct rp_diff_options){.by = by, .same = true}, 1e6, 1e6);
        assert_true(diff.rows.n > 0);
        for (size_t i = 0; i < diff.rows.n; i++) {
            const struct rp_diff_row *r = &diff.rows.at[i];

            assert_true(r->share.difference == 0 && r->share.low == 0 && r->share.high == 0 && r->share.p == 1);
            assert_true(r->ns.difference == 0 && r->ns.low == 0 && r->ns.high == 0);
            assert_int_equal(r->share.verdict, RP_VERDICT_NOISE);
            assert_false(r->cost_stands);
        }
        assert_true(diff.whole.difference == 0 && diff.whole.low == 0);
        assert_int_equal(diff.whole.verdict, RP_VERDICT_NOISE);
        done();
    }
}

/* Rows with fewer than 25 samples together are shown and not tested; the others share the risk. */
static void test_the_family(void **state)
{
    (void)state;
    compare("f;main 1000\ng;main 20\nh;main 12\n", "f;main 1000\ng;main 5\nh;main 12\n", RP_TALLY_FUNCTION, 0, 0);
    assert_int_equal(diff.family, 2); /* f, and g with just 25 */
    assert_int_equal(row("h")->share.verdict, RP_VERDICT_NONE);
    /* 20 against 5 of 1032 and 1017: alone it would be convicted (p .003), and with one other it still is; Holm doubles it. */
    close_to(row("g")->share.holm, 2 * row("g")->share.p);
    done();
}

static void test_paths_and_threads(void **state)
{
    (void)state;
    compare("f;a;main 100\nf;b;main 100\n", "f;a;main 190\nf;b;main 10\n", RP_TALLY_PATH, 0, 0);
    assert_int_equal(row("f < a < main")->share.verdict, RP_VERDICT_GREW);
    assert_int_equal(row("f < b < main")->share.verdict, RP_VERDICT_FELL);
    done();
    compare("f;main 100 thread=w/11\nf;main 50 thread=w/12\nf;main 50 thread=x/13\n", "f;main 150 thread=w/77\nf;main 50 thread=x/78\n",
            RP_TALLY_THREAD, 0, 0);
    assert_int_equal(diff.rows.n, 2);
    assert_int_equal(row("w")->side[0].samples, 150);
    close_to(row("w")->share.difference, 0);
    done();
}

/* A leaf table says that g is gone, the totals say that it is halved. */
static void test_totals(void **state)
{
    static const char a[] = "g;main 100\nmalloc;g;main 100\nf;main 200\n", b[] = "malloc;g;main 100\nf;main 300\n";

    (void)state;
    compare(a, b, RP_TALLY_FUNCTION, 0, 0);
    assert_true(row("g")->side[1].below);
    done();
    compare_with(a, b, (struct rp_diff_options){.by = RP_TALLY_FUNCTION, .total = true}, 0, 0);
    assert_int_equal(row("g")->side[0].samples, 200);
    assert_int_equal(row("g")->side[1].samples, 100);
    assert_int_equal(row("main")->side[1].samples, 400);
    close_to(row("main")->share.difference, 0);
    done();
}

/* From four runs a side on their scatter decides: shares of 40 to 43 % against 50 to 53 % are apart, Welch's t = 10 / sqrt(2 x 5/3 / 4) points. */
static void test_runs_are_the_unit(void **state)
{
    struct fake_view runs[8];
    const struct rp_view *views[8];
    struct rp_diff_options options = {.by = RP_TALLY_FUNCTION, .min_samples = 5, .alpha = 0.05};
    struct rp_diff_side sides[2] = {{views, 4, 0, 0}, {views + 4, 4, 0, 0}};
    struct rp_err err;

    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        char text[64];
        unsigned f = (i < 4 ? 400 : 500) + i % 4 * 10;

        snprintf(text, sizeof text, "f;main %u\ng;main %u\n", f, 1000 - f);
        fake_view(&runs[i], text, rules, NULL);
        views[i] = runs[i].view;
    }
    assert_int_equal(rp_diff_make(sides, &options, &diff, &err), RP_OK);
    assert_true(diff.by_runs);
    close_to(row("f")->share.difference, 0.1);
    close_to(row("f")->share.p, rp_t_two_sided(0.1 / sqrt(2 * (5e-4 / 3) / 4), 6));
    assert_int_equal(row("f")->share.verdict, RP_VERDICT_GREW);
    rp_diff_release(&diff);
    /* Three a side are added up, and their scatter widens the interval as far as it exceeds that of samples. */
    sides[0].n = sides[1].n = 3;
    assert_int_equal(rp_diff_make(sides, &options, &diff, &err), RP_OK);
    assert_false(diff.by_runs);
    assert_int_equal(row("f")->side[0].samples, 1230);
    rp_diff_release(&diff);
    for (size_t i = 0; i < 8; i++)
        fake_view_release(&runs[i]);
}

/* Runs of a side that differ more than their samples can: 400, 500 and 600 of 1 000 are no measurement of 500. p = 1/2, scatter (10000 + 0 + 10000) / 750 x 3/2
 * = 40 times that of samples, and more than the 1 + .15² x 1/4 x 1000 that is assumed. B's runs are alike: 1 + .15² x .24 x 1000 = 6.4 remain. */
static void test_scatter_of_runs_counts(void **state)
{
    struct fake_view runs[6];
    const struct rp_view *views[6];
    struct rp_diff_options options = {.by = RP_TALLY_FUNCTION, .min_samples = 5, .alpha = 0.05};
    struct rp_diff_side sides[2] = {{views, 3, 0, 0}, {views + 3, 3, 0, 0}};
    static const unsigned f[] = {400, 500, 600, 600, 600, 600};
    struct rp_err err;

    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        char text[64];

        snprintf(text, sizeof text, "f;main %u\ng;main %u\n", f[i], 1000 - f[i]);
        fake_view(&runs[i], text, rules, NULL);
        views[i] = runs[i].view;
    }
    assert_int_equal(rp_diff_make(sides, &options, &diff, &err), RP_OK);
    close_to(row("f")->share.difference, 0.1);
    close_to(row("f")->share.p, rp_normal_two_sided(0.1 / sqrt(0.55 * 0.45 * (40 / 3000.0 + 6.4 / 3000.0))));
    assert_int_equal(row("f")->share.verdict, RP_VERDICT_NOISE);
    rp_diff_release(&diff);
    for (size_t i = 0; i < 6; i++)
        fake_view_release(&runs[i]);
}

static bool has_note(const struct rp_diff_report *r, const char *id)
{
    for (size_t i = 0; i < r->notes.notes.n; i++)
        if (!strcmp(r->notes.notes.at[i].id, id))
            return true;
    return false;
}

static void notes_of(struct rp_diff_report *r)
{
    struct rp_err err;

    *r = (struct rp_diff_report){&diff, v[0].rules, {"a", "b"}, {&v[0].profile, &v[1].profile}, false, {{0}}};
    assert_int_equal(rp_diff_notes(r, &err), RP_OK);
}

static void test_warnings(void **state)
{
    struct rp_diff_report r;

    (void)state;
    compare(".run source=cpu-clock\n.module node kind=elf build-id=aa\n.module libc kind=elf build-id=cc\nnode!f;main 90 thread=m/1234\nlibc!g;main 10 thread=w/7\n",
            ".run source=cycles\n.module node kind=elf build-id=bb\n.module libc kind=elf build-id=cc\nnode!f;main 70 thread=m/1234\nlibc!g;main 30 thread=w/7\n",
            RP_TALLY_FUNCTION, 0, 0);
    notes_of(&r);
    assert_true(has_note(&r, "clock") && has_note(&r, "build") && has_note(&r, "main-thread") && has_note(&r, "no-rate"));
    rp_compare_notes_release(&r.notes);
    done();
    /* Another rate, another length, another host are nothing to warn of. */
    compare(".run source=cpu-clock seconds=10 hz=100 host=x\nf;main 90\n", ".run source=cpu-clock seconds=3 hz=1000 host=y\nf;main 90\n",
            RP_TALLY_FUNCTION, 1e6, 1e6);
    notes_of(&r);
    assert_true(has_note(&r, "rate-exact") && has_note(&r, "run-scatter"));
    assert_int_equal(r.notes.notes.n, 2);
    rp_compare_notes_release(&r.notes);
    done();
}

static void test_every_allocation_may_fail(void **state)
{
    struct fake_view one;
    const struct rp_view *view;
    struct rp_diff_side sides[2];
    struct rp_err err;
    enum rp_status status = RP_NOMEM;

    (void)state;
    fake_view(&one, "f;a;main 100\ng;b;main 50 block=3\n", rules, NULL);
    view = one.view;
    sides[0] = sides[1] = (struct rp_diff_side){&view, 1, 1e6, 0};
    for (enum rp_tally_by by = RP_TALLY_CATEGORY; by <= RP_TALLY_PATH; by++) {
        struct rp_diff_options options = {.by = by, .total = by == RP_TALLY_FUNCTION, .min_samples = 5, .alpha = 0.05};

        status = RP_NOMEM;
        for (uint64_t n = 1; status == RP_NOMEM && n < 10000; n++) {
            rp_alloc_fail_at(n);
            status = rp_diff_make(sides, &options, &diff, &err);
            rp_alloc_fail_at(0);
            rp_diff_release(&diff);
        }
        assert_int_equal(status, RP_OK);
    }
    fake_view_release(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_rate_and_length),
        cmocka_unit_test(test_a_share_falls_because_another_rose),
        cmocka_unit_test(test_costs_that_stand),
        cmocka_unit_test(test_runs_are_assumed_to_differ),
        cmocka_unit_test(test_costs_out_of_rate_lines),
        cmocka_unit_test(test_costs_of_one_thread),
        cmocka_unit_test(test_addresses_do_not_matter),
        cmocka_unit_test(test_modules_keep_names_apart),
        cmocka_unit_test(test_a_function_of_one_side),
        cmocka_unit_test(test_itself),
        cmocka_unit_test(test_the_family),
        cmocka_unit_test(test_paths_and_threads),
        cmocka_unit_test(test_totals),
        cmocka_unit_test(test_runs_are_the_unit),
        cmocka_unit_test(test_scatter_of_runs_counts),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
