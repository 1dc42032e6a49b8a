/* SPDX-License-Identifier: MIT */
/* See fake_waits.h. */
#include "support/fake_waits.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

const char fake_waits_app[] = ".run seconds=10 hz=997 source=cpu-clock waits=1 cpus=4\n"
                          ".thread libuv-worker/11 wall=10 waiting=10\n"
                          ".thread libuv-worker/12 wall=10 waiting=10\n"
                          ".thread query-1/21 wall=10 cpu=6 preempted=1 waiting=3 delay=1.5\n"
                          ".thread query-2/22 wall=10 cpu=6 preempted=1 waiting=3 delay=0.5\n"
                          ".lock 0x4050 module=app symbol=cache_lock\n" FAKE_POOL " 1 wait=10s thread=libuv-worker/11\n" FAKE_POOL
                          " 10 wait=1s thread=libuv-worker/12\n" FAKE_LOCKED ";app!cache_get+0x20;app!main 1000 wait=2ms thread=query-1/21 tag=1\n" FAKE_LOCKED
                          ";app!cache_put+0x30;app!main 500 wait=2ms thread=query-2/22 tag=1\n" FAKE_SYNC " 10 wait=100ms thread=query-1/21\n" FAKE_SYNC
                          " 20 wait=100ms thread=query-2/22\n"
                          "app!work;app!main 6000 thread=query-1/21\napp!work;app!main 5970 thread=query-2/22\n"
                          "app!work;app!cache_get;app!main 300 wait=2ms thread=query-2/22 holds=1\n" FAKE_SYNC
                          " 100 wait=2ms thread=query-2/22 holds=1 state=blocked\n"
                          "app!work;app!cache_put;app!main 800 wait=2ms thread=query-1/21 holds=1\n";

void fake_waits(struct fake_waits *t, const char *profile, bool keep_idle, const struct rp_filter *filter)
{
    struct rp_err err = {0};

    memset(t, 0, sizeof *t);
    fake_view(&t->v, profile, NULL, filter);
    if (rp_waits_new(t->v.view, keep_idle, &t->w, &err))
        fail_msg("%s", err.text);
}

void fake_waits_release(struct fake_waits *t)
{
    rp_waits_free(t->w);
    fake_view_release(&t->v);
}

const struct rp_wait_row *fake_wait_row(const struct fake_waits *t, const char *id)
{
    for (size_t i = 0; i < t->w->rows.n; i++)
        if (t->w->rows.at[i].category == RP_WAIT_UNSEEN ? !id
                                                        : id && !strcmp(cat_rules_category(t->v.rules, t->w->rows.at[i].category)->id, id))
            return &t->w->rows.at[i];
    fail_msg("no row of %s", id ? id : "waits not seen");
    return NULL;
}

void fake_close_to(double a, double b)
{
    if (fabs(a - b) > 1e-6 * (fabs(b) + 1e-3))
        fail_msg("%.9g is not %.9g", a, b);
}

void fake_expect_tree(const struct fake_waits *t, struct rp_calltree_options options, const char *want)
{
    struct rp_calltree tree;
    struct rp_buf seen = {0};
    struct rp_err err;

    options.waits = t->w;
    assert_int_equal(rp_calltree_make(t->v.view, &options, &tree, &err), RP_OK);
    for (uint32_t at = tree.first_top; at != UINT32_MAX;) {
        const struct rp_calltree_node *n = &tree.nodes.at[at];

        rp_buf_fill(&seen, ' ', (int)n->depth);
        rp_buf_printf(&seen, "%.0f %s\n", (double)n->samples / 1e6, rp_profile_text(&t->v.profile, t->v.profile.functions.at[n->function].name));
        at = n->first_child;
        while (at == UINT32_MAX && n) {
            at = n->next_sibling;
            n = n->parent == UINT32_MAX ? NULL : &tree.nodes.at[n->parent];
        }
    }
    assert_string_equal(rp_buf_text(&seen), want);
    rp_buf_release(&seen);
    rp_calltree_release(&tree);
}
