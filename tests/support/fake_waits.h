/* SPDX-License-Identifier: MIT */
/* Waits out of a fake profile, and what tests of them ask again and again; each step fails the running test when it does not work. */
#ifndef TESTS_FAKE_WAITS_H
#define TESTS_FAKE_WAITS_H

#include "analyze/calltree.h"
#include "analyze/view_waits.h"
#include "support/fake_view.h"

/* Stacks. */
#define FAKE_POOL "libc.so.6!pthread_cond_wait;node!worker;libc.so.6!start_thread"
#define FAKE_LOCKED "libc.so.6!__lll_lock_wait;libc.so.6!pthread_mutex_lock"
#define FAKE_SYNC "libc.so.6!fdatasync;libsqlite3.so.0!unixSync;libsqlite3.so.0!sqlite3_step;app!commit;app!main"

/* Four pool threads, two that fight for a lock, one that also writes. Everything is stacked, so everything is exact. */
extern const char fake_waits_app[];

struct fake_waits {
    struct fake_view v;
    struct rp_waits *w;
};

void fake_waits(struct fake_waits *t, const char *profile, bool keep_idle, const struct rp_filter *filter);
void fake_waits_release(struct fake_waits *t);

/* The row of the category with this id; NULL: of what was not seen. */
const struct rp_wait_row *fake_wait_row(const struct fake_waits *t, const char *id);

/* Equal but for rounding. */
void fake_close_to(double a, double b);

/* The tree of these waits by `options` is `want`: "ms function" lines, indented by depth. */
void fake_expect_tree(const struct fake_waits *t, struct rp_calltree_options options, const char *want);

#endif
