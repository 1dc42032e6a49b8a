/* SPDX-License-Identifier: MIT */
/* What a launched command says of itself: RATE lines as rowload and the scripts print them, and which of them belong to a recording. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "cli/said.h"

static const char line[] = "RATE calls=387776 rows=38777600 secs=1.000045 rate=387758.6 cpu_secs=0.983915 cpu_rate=394115.3 ns_per_call=2537.3 nvcsw=0 "
                           "nivcsw=82 span=second thread_cpu_secs=0.9";

static void test_a_rate_line(void **state)
{
    struct rp_profile_rate rate;

    (void)state;
    assert_true(rp_rate_parse(line, &rate));
    assert_int_equal(rate.calls, 387776);
    assert_int_equal(rate.rows, 38777600);
    assert_int_equal(rate.wall_ns, 1000045000);
    assert_int_equal(rate.cpu_ns, 983915000);
    /* Rows may be missing: not every target counts them. */
    assert_true(rp_rate_parse("RATE calls=1 secs=0.5 cpu_secs=0.25", &rate));
    assert_int_equal(rate.rows, 0);
}

static void test_what_is_none(void **state)
{
    static const char *const bad[] = {"",
                                      "RATE",
                                      "RATE ",
                                      "RATES calls=1 secs=1 cpu_secs=1",
                                      "RATE calls=1 secs=1",
                                      "RATE calls=1 cpu_secs=1",
                                      "RATE secs=1 cpu_secs=1",
                                      "RATE calls=-1 secs=1 cpu_secs=1",
                                      "RATE calls=1 secs=0 cpu_secs=1",
                                      "RATE calls=nan secs=1 cpu_secs=1",
                                      "RATE calls=1e300 secs=1 cpu_secs=1",
                                      "RATE calls= secs=1 cpu_secs=1",
                                      "RATE calls=1 secs=1 cpu_secs=1 rows=many",
                                      "RATE calls 1 secs 1 cpu_secs 1"};
    struct rp_profile_rate rate;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (rp_rate_parse(bad[i], &rate))
            fail_msg("'%s' was taken", bad[i]);
}

static void say(struct rp_said *said, uint64_t at_ns, const char *text)
{
    memset(said, 0, sizeof *said);
    said->at_ns = at_ns;
    snprintf(said->text, sizeof said->text, "%s", text);
}

/* Sampling from 10 to 14 s. The line at 10.5 covers time before it, the one at 14.5 comes after it, the last covers all. */
static void said_by_a_workload(struct rp_said *said)
{
    static const uint64_t at[] = {10500, 11500, 12500, 13500, 14500};

    say(&said[0], 9400000000, "READY pid=7 tid=7 limit=100 cols=* word empty=");
    for (size_t i = 0; i < 5; i++)
        say(&said[i + 1], at[i] * 1000000, "RATE calls=1000 rows=5 secs=1 cpu_secs=0.9 span=second");
    say(&said[6], 13900000000, "RATE calls=5000 rows=5 secs=4.5 cpu_secs=4 span=run");
    say(&said[7], 13900000000, "RATE of interest: 5 %");
}

static void test_what_lies_within_the_recording(void **state)
{
    struct rp_said said[8];
    struct rp_profile p;
    struct rp_err err;

    (void)state;
    said_by_a_workload(said);
    assert_int_equal(rp_profile_init(&p, &err), RP_OK);
    assert_int_equal(rp_said_keep(said, 8, 10000000000, 14000000000, &p, &err), RP_OK);
    assert_int_equal(p.rates.n, 3);
    assert_int_equal(p.rates.at[0].end_ns, 1500000000);
    assert_int_equal(p.rates.at[2].end_ns, 3500000000);
    assert_int_equal(p.facts.n, 5);
    assert_string_equal(rp_profile_text(&p, p.facts.at[2].name), "limit");
    assert_string_equal(rp_profile_text(&p, p.facts.at[2].value), "100");
    assert_string_equal(rp_profile_text(&p, p.facts.at[4].value), "");
    rp_profile_release(&p);
    /* Nothing was said. */
    assert_int_equal(rp_profile_init(&p, &err), RP_OK);
    assert_int_equal(rp_said_keep(NULL, 0, 0, 1, &p, &err), RP_OK);
    assert_int_equal(p.facts.n + p.rates.n, 0);
    rp_profile_release(&p);
}

static void test_every_allocation_may_fail(void **state)
{
    struct rp_said said[8];
    struct rp_profile p;
    struct rp_err err;
    enum rp_status status = RP_NOMEM;

    (void)state;
    said_by_a_workload(said);
    for (uint64_t n = 1; status == RP_NOMEM && n < 1000; n++) {
        assert_int_equal(rp_profile_init(&p, &err), RP_OK);
        rp_alloc_fail_at(n);
        status = rp_said_keep(said, 8, 10000000000, 14000000000, &p, &err);
        rp_alloc_fail_at(0);
        rp_profile_release(&p);
    }
    assert_int_equal(status, RP_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_rate_line),
        cmocka_unit_test(test_what_is_none),
        cmocka_unit_test(test_what_lies_within_the_recording),
        cmocka_unit_test(test_every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
