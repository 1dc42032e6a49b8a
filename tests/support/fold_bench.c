/* SPDX-License-Identifier: MIT */
/* See fold_bench.h. */
#include "support/fold_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

int fold_bench_set_up(void **state)
{
    static struct fold_bench b;
    struct rp_symbolizer_options options = {.kallsyms = "/dev/null"};

    memset(&b, 0, sizeof b);
    assert_int_equal(rp_images_init(&b.images, &b.err), RP_OK);
    assert_int_equal(rp_unwinder_new(&b.images, &b.unwinder, &b.err), RP_OK);
    assert_int_equal(rp_symbolizer_new(&b.images, b.unwinder, &options, &b.symbolizer, &b.err), RP_OK);
    assert_int_equal(rp_profile_init(&b.profile, &b.err), RP_OK);
    assert_int_equal(rp_fold_init(&b.fold, &b.images, b.unwinder, b.symbolizer, &b.profile, &b.err), RP_OK);
    b.fold.replay = true;
    *state = &b;
    return 0;
}

int fold_bench_tear_down(void **state)
{
    struct fold_bench *b = *state;

    rp_fold_release(&b->fold);
    rp_profile_release(&b->profile);
    rp_symbolizer_free(b->symbolizer);
    rp_unwinder_free(b->unwinder);
    rp_images_release(&b->images);
    return 0;
}

void fold_bench_send(struct fold_bench *b, struct rp_event event)
{
    assert_int_equal(rp_fold_event(&b->fold, &event, &b->err), RP_OK);
}

struct rp_event fold_bench_sample(uint64_t time_ns, uint32_t pid, uint32_t tid, const uint64_t *kernel, uint32_t n)
{
    struct rp_event event = {.kind = RP_EVENT_SAMPLE, .time_ns = time_ns, .pid = pid, .tid = tid};

    event.u.sample.kernel = kernel;
    event.u.sample.nkernel = n;
    event.u.sample.weight_ns = 1000;
    return event;
}

struct rp_event fold_bench_exec(uint64_t time_ns, uint32_t pid, const char *comm)
{
    struct rp_event event = {.kind = RP_EVENT_COMM, .time_ns = time_ns, .pid = pid, .tid = pid};

    event.u.comm.comm = comm;
    event.u.comm.exec = true;
    return event;
}
