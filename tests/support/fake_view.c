/* SPDX-License-Identifier: MIT */
/* See fake_view.h. */
#include "support/fake_view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct cat_rules *fake_rules(const char *yaml)
{
    struct cat_rules *rules = NULL;
    struct rp_buf problems = {0};
    struct rp_err err = {0};

    if (cat_rules_new(&rules, &err) || (yaml ? cat_rules_add(rules, "test.yaml", yaml, strlen(yaml), &problems, &err)
                                             : cat_rules_add_shipped(rules, &problems, &err)) ||
        cat_rules_finish(rules, &problems, &err))
        fail_msg("%s\n%s", err.text, rp_buf_text(&problems));
    rp_buf_release(&problems);
    return rules;
}

void fake_view_again(struct fake_view *v, const struct rp_filter *filter)
{
    struct rp_filter none = {0};
    struct rp_err err = {0};

    rp_view_free(v->view);
    v->view = NULL;
    if (rp_view_new(&v->profile, v->rules, filter ? filter : &none, &v->view, &err))
        fail_msg("%s", err.text);
}

void fake_view(struct fake_view *v, const char *profile, const char *rules, const struct rp_filter *filter)
{
    fake_profile(&v->profile, profile);
    v->rules = fake_rules(rules);
    v->view = NULL;
    fake_view_again(v, filter);
}

void fake_view_release(struct fake_view *v)
{
    rp_view_free(v->view);
    cat_rules_free(v->rules);
    rp_profile_release(&v->profile);
}

const struct rp_category_row *fake_category_row(const struct fake_view *v, const struct rp_category_table *table, const char *id)
{
    for (size_t i = 0; i < table->rows.n; i++)
        if (strcmp(cat_rules_category(v->rules, table->rows.at[i].category)->id, id) == 0)
            return &table->rows.at[i];
    fail_msg("no row of category %s", id);
    return NULL;
}
