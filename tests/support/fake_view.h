/* SPDX-License-Identifier: MIT */
/* A fake profile, rules out of a text, and the view of both; each step fails the running test when it does not work. */
#ifndef TESTS_FAKE_VIEW_H
#define TESTS_FAKE_VIEW_H

#include "analyze/view.h"
#include "support/fake_profile.h"

struct fake_view {
    struct rp_profile profile;
    struct cat_rules *rules;
    struct rp_view *view;
};

/* `rules` is YAML; NULL: the shipped packs. `filter` may be NULL. */
void fake_view(struct fake_view *v, const char *profile, const char *rules, const struct rp_filter *filter);
void fake_view_release(struct fake_view *v);

/* Another view of the same profile and rules in place of the one there. */
void fake_view_again(struct fake_view *v, const struct rp_filter *filter);

struct cat_rules *fake_rules(const char *yaml);

/* The row of the category with this id; fails the test when there is none. */
const struct rp_category_row *fake_category_row(const struct fake_view *v, const struct rp_category_table *table, const char *id);

#endif
