/* SPDX-License-Identifier: MIT */
/* fold/ with everything around it, fed with events made by hand, so that every expected figure is known.
 *
 *     cmocka_unit_test_setup_teardown(test, fold_bench_set_up, fold_bench_tear_down)     *state is a struct fold_bench *
 */
#ifndef TESTS_SUPPORT_FOLD_BENCH_H
#define TESTS_SUPPORT_FOLD_BENCH_H

#include "fold/fold.h"

struct fold_bench {
    struct rp_images images;
    struct rp_unwinder *unwinder;
    struct rp_symbolizer *symbolizer;
    struct rp_profile profile;
    struct rp_fold fold;
    struct rp_err err;
};

/* No process is looked at: fold.replay is set. */
int fold_bench_set_up(void **state);
int fold_bench_tear_down(void **state);

/* Folds one event; fails the test when that fails. */
void fold_bench_send(struct fold_bench *b, struct rp_event event);

/* A sample with a stack of kernel frames only, leaf first; `kernel` must live until it is sent. */
struct rp_event fold_bench_sample(uint64_t time_ns, uint32_t pid, uint32_t tid, const uint64_t *kernel, uint32_t n);
/* A process becomes another program. */
struct rp_event fold_bench_exec(uint64_t time_ns, uint32_t pid, const char *comm);

#endif
