/* SPDX-License-Identifier: MIT */
/* Columns of figures: what fills its column must not run into the one before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/figures.h"

static struct rp_buf out;

static void expect(const char *text)
{
    assert_false(out.failed);
    assert_string_equal(rp_buf_text(&out), text);
    rp_buf_clear(&out);
}

static void test_columns_do_not_collide(void **state)
{
    char percent[32];

    (void)state;
    rp_figure_percent(percent, sizeof percent, 4e-6);
    assert_string_equal(percent, "0.0004 %");
    rp_figure_right_duration(&out, 34.1e-6, 9);
    rp_figure_right(&out, percent, 8);
    expect("  34.1 \xc2\xb5s 0.0004 %");
    rp_figure_right_duration(&out, 34.1e-6, 9);
    rp_figure_right(&out, percent, 10);
    expect("  34.1 \xc2\xb5s  0.0004 %");
    rp_figure_right_count(&out, 12345678, 8);
    rp_figure_right_count(&out, 1, 3);
    rp_buf_puts(&out, "\n");
    rp_figure_right_count(&out, 1234567, 9);
    expect("12 345 678  1\n1 234 567");
    rp_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_columns_do_not_collide)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
