/* SPDX-License-Identifier: MIT */
/* A call taken apart, from profiles to the printed table: figures worked out by hand, orders, what is left out, and want of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "analyze/shapes.h"
#include "report/compare_report.h"
#include "support/fake_view.h"

static const char rules[] = "categories:\n"
                            "  - {id: call, name: \"per call\", kind: cost}\n"
                            "  - {id: row, name: \"per row\", kind: cost}\n"
                            "rules:\n"
                            "  - {id: call, category: call, symbol: \"once\"}\n"
                            "  - {id: row, category: row, symbol: \"each\"}\n";

/* A call costs 800 ns and each row 200: 1 000 and 20 800 ns. */
static const char one[] = ".run seconds=10 hz=1000\n.rate end=2 wall=1 cpu=1 calls=1000000 rows=1000000\nonce;main 8000\neach;main 2000\nrare;main 3\n";
static const char hundred[] = ".run seconds=10 hz=1000\n.rate end=2 wall=1 cpu=2.08 calls=100000 rows=10000000\nonce;main 385\neach;main 9615\nrare;main 4\n";

static struct fake_view v[2];
static struct rp_shapes shapes;

static void take_apart(enum rp_tally_by by)
{
    struct rp_shape given[2];
    struct rp_err err;

    fake_view(&v[0], one, rules, NULL);
    fake_view(&v[1], hundred, rules, NULL);
    given[0] = (struct rp_shape){v[0].view, 1, 0};
    given[1] = (struct rp_shape){v[1].view, 100, 0};
    assert_int_equal(rp_shapes_make(given, 2, by, 5, &shapes, &err), RP_OK);
}

static void done(void)
{
    rp_shapes_release(&shapes);
    fake_view_release(&v[0]);
    fake_view_release(&v[1]);
}

static const char *name(size_t row)
{
    return rp_intern_text(&shapes.keys.text, shapes.keys.keys.at[shapes.rows.at[row].key].name);
}

static void about(double got, double want, double slack)
{
    if (!(fabs(got - want) <= slack))
        fail_msg("%g is not about %g", got, want);
}

static void test_known_costs(void **state)
{
    const struct rp_shapes_row *once = NULL, *each = NULL;

    (void)state;
    take_apart(RP_TALLY_CATEGORY);
    about(shapes.whole.c, 800, 1e-6);
    about(shapes.whole.r, 200, 1e-6);
    assert_true(shapes.whole.c_error == 0); /* one RATE line: exact */
    assert_string_equal(name(0), "per call");
    once = &shapes.rows.at[0];
    for (size_t i = 0; i < shapes.rows.n; i++)
        if (!strcmp(name(i), "per row"))
            each = &shapes.rows.at[i];
    assert_non_null(each);
    about(once->fit.c, 800, 1);
    about(once->fit.r, 0, 0.1);
    assert_int_equal(once->fit.label, RP_SHAPE_PER_CALL);
    about(each->fit.c, 0, 2);
    about(each->fit.r, 200, 0.2);
    assert_int_equal(each->fit.label, RP_SHAPE_PER_ROW);
    /* Gone: 1 000 / 200 and 20 800 / 20 000 of the speed; 1 000 / 800 and 20 800 / 800. */
    about(once->saves[0], 4, 0.02);
    about(once->saves[1], 0.04, 0.001);
    about(each->saves[0], 0.25, 0.01);
    about(each->saves[1], 25, 0.7);
    rp_shapes_sort_by_row(&shapes);
    assert_string_equal(name(0), "per row");
    done();
}

/* Seen three and four times: left out. */
static void test_the_cut_off(void **state)
{
    (void)state;
    take_apart(RP_TALLY_FUNCTION);
    assert_int_equal(shapes.rows.n, 2);
    done();
}

static void write_all(struct rp_shapes_report *report, enum rp_compare_form form, struct rp_buf *out)
{
    struct rp_compare_style style = {form, 100, true, false};

    rp_buf_clear(out);
    rp_shapes_write(report, &style, out);
}

static void test_every_allocation_may_fail(void **state)
{
    struct rp_shape given[2];
    struct rp_shapes_report report = {.tables = 1, .by = {RP_TALLY_CATEGORY}, .names = {"a", "b"}, .unit = "row"};
    struct rp_buf out = {0};
    struct rp_err err;
    enum rp_status status = RP_NOMEM;

    (void)state;
    take_apart(RP_TALLY_CATEGORY);
    rp_shapes_release(&shapes);
    given[0] = (struct rp_shape){v[0].view, 1, 0};
    given[1] = (struct rp_shape){v[1].view, 100, 0};
    for (uint64_t n = 1; status == RP_NOMEM && n < 10000; n++) {
        rp_shapes_release(&shapes);
        rp_alloc_fail_at(n);
        status = rp_shapes_make(given, 2, RP_TALLY_CATEGORY, 5, &shapes, &err);
        rp_alloc_fail_at(0);
    }
    assert_int_equal(status, RP_OK);
    report.shapes[0] = &shapes;
    report.rules = v[0].rules;
    report.profiles[0] = &v[0].profile;
    report.profiles[1] = &v[1].profile;
    assert_int_equal(rp_shapes_notes(&report, &err), RP_OK);
    for (enum rp_compare_form form = RP_FORM_TEXT; form <= RP_FORM_MARKDOWN; form++) {
        bool whole = false;

        for (uint64_t n = 1; !whole && n < 10000; n++) {
            rp_buf_release(&out);
            memset(&out, 0, sizeof out);
            rp_alloc_fail_at(n);
            write_all(&report, form, &out);
            rp_alloc_fail_at(0);
            whole = !out.failed;
        }
        assert_true(whole && out.length > 100);
    }
    rp_buf_release(&out);
    rp_compare_notes_release(&report.notes);
    done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_costs),
        cmocka_unit_test(test_the_cut_off),
        cmocka_unit_test(test_every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
