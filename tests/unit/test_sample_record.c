/* SPDX-License-Identifier: MIT */
/* The pure parts of the perf backend: records built by hand from the layout in perf_event_open(2), which event speaks for a thread, CPU lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "sample/perf_cpus.h"
#include "sample/perf_owner.h"
#include "sample/perf_record.h"
#include "sample/perf_ring.h"

/* A record under construction. */
struct builder {
    uint8_t bytes[4096];
    size_t n;
};

static void put64(struct builder *b, uint64_t x)
{
    memcpy(b->bytes + b->n, &x, 8);
    b->n += 8;
}

static void put32(struct builder *b, uint32_t x)
{
    memcpy(b->bytes + b->n, &x, 4);
    b->n += 4;
}

static void put_text(struct builder *b, const char *text)
{
    size_t length = strlen(text) + 1;

    memcpy(b->bytes + b->n, text, length);
    b->n = (b->n + length + 7) & ~(size_t)7;
}

static struct builder begin(uint32_t type, uint16_t misc)
{
    struct builder b = {{0}, 8};

    memcpy(b.bytes, &type, 4);
    memcpy(b.bytes + 4, &misc, 2);
    return b;
}

static enum rp_perf_kind parse(struct builder *b, bool callchain, struct rp_perf_record *record)
{
    uint16_t size = (uint16_t)b->n;

    memcpy(b->bytes + 6, &size, 2);
    return rp_perf_record_parse(b->bytes, b->n, callchain, record);
}

static void put_trailer(struct builder *b)
{
    put32(b, 100);
    put32(b, 101);
    put64(b, 5555);
    put64(b, 42);
}

static struct builder sample(uint64_t abi, uint64_t size, uint64_t copied, bool chain)
{
    struct builder b = begin(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);

    put64(&b, 42);
    put32(&b, 100);
    put32(&b, 101);
    put64(&b, 5555);
    if (chain) {
        put64(&b, 4);
        put64(&b, (uint64_t)PERF_CONTEXT_KERNEL);
        put64(&b, 0xffffffff81000000);
        put64(&b, 0xffffffff81000100);
        put64(&b, (uint64_t)PERF_CONTEXT_USER);
    }
    put64(&b, abi);
    for (uint64_t i = 0; abi && i < 17; i++)
        put64(&b, 0x100 + i);
    put64(&b, size);
    for (uint64_t i = 0; i < size; i++)
        b.bytes[b.n++] = (uint8_t)i;
    if (size)
        put64(&b, copied);
    return b;
}

static void test_sample(void **state)
{
    struct builder b = sample(PERF_SAMPLE_REGS_ABI_64, 64, 40, true);
    struct rp_perf_record r;
    const struct rp_snapshot *s = &r.event.u.sample;

    (void)state;
    assert_int_equal(parse(&b, true, &r), RP_PERF_EVENT);
    assert_int_equal(r.event.kind, RP_EVENT_SAMPLE);
    assert_int_equal(r.id, 42);
    assert_int_equal(r.event.pid, 100);
    assert_int_equal(r.event.tid, 101);
    assert_int_equal(r.event.time_ns, 5555);
    assert_true(s->has_user);
    /* The kernel writes ax bx cx dx si di bp sp ip, then r8 … r15 (asm/perf_regs.h). */
    assert_int_equal(s->regs[RP_RAX], 0x100);
    assert_int_equal(s->regs[RP_RBX], 0x101);
    assert_int_equal(s->regs[RP_RCX], 0x102);
    assert_int_equal(s->regs[RP_RDX], 0x103);
    assert_int_equal(s->regs[RP_RSI], 0x104);
    assert_int_equal(s->regs[RP_RDI], 0x105);
    assert_int_equal(s->regs[RP_RBP], 0x106);
    assert_int_equal(s->regs[RP_RSP], 0x107);
    assert_int_equal(s->regs[RP_RIP], 0x108);
    assert_int_equal(s->regs[RP_R8], 0x109);
    assert_int_equal(s->regs[RP_R15], 0x110);
    assert_int_equal(s->stack_bytes, 40);
    assert_false(s->stack_cut);
    assert_int_equal(s->stack[39], 39);
    assert_int_equal(s->nkernel, 2);
    assert_int_equal(s->kernel[0], 0xffffffff81000000);
    assert_int_equal(s->kernel[1], 0xffffffff81000100);
}

static void test_full_copy_is_cut(void **state)
{
    struct builder b = sample(PERF_SAMPLE_REGS_ABI_64, 64, 64, false);
    struct rp_perf_record r;

    (void)state;
    assert_int_equal(parse(&b, false, &r), RP_PERF_EVENT);
    assert_true(r.event.u.sample.stack_cut);
    assert_null(r.event.u.sample.kernel);
}

static void test_no_user_state(void **state)
{
    struct builder none = sample(PERF_SAMPLE_REGS_ABI_NONE, 0, 0, true), old = sample(PERF_SAMPLE_REGS_ABI_32, 64, 40, false);
    struct rp_perf_record r;

    (void)state;
    assert_int_equal(parse(&none, true, &r), RP_PERF_EVENT);
    assert_false(r.event.u.sample.has_user);
    assert_int_equal(r.event.u.sample.nkernel, 2);
    assert_int_equal(parse(&old, false, &r), RP_PERF_EVENT);
    assert_false(r.event.u.sample.has_user);
}

/* Cut at any length, with the header saying so: never an event. */
static void test_every_cut_is_damage(void **state)
{
    struct builder b = sample(PERF_SAMPLE_REGS_ABI_64, 64, 40, true);
    struct rp_perf_record r;
    size_t whole = b.n;

    (void)state;
    for (size_t n = 0; n < whole; n++) {
        b.n = n;
        assert_int_equal(parse(&b, true, &r), RP_PERF_DAMAGED);
    }
    b = sample(PERF_SAMPLE_REGS_ABI_64, 64, 65, false);
    assert_int_equal(parse(&b, false, &r), RP_PERF_DAMAGED);
}

static struct builder mmap2(uint64_t start, uint64_t length, uint16_t misc)
{
    struct builder b = begin(PERF_RECORD_MMAP2, misc);

    put32(&b, 100);
    put32(&b, 101);
    put64(&b, start);
    put64(&b, length);
    put64(&b, 0x3000);
    put32(&b, 0xfe);
    put32(&b, 1);
    put64(&b, 777);
    put64(&b, 1);
    put32(&b, 5);
    put32(&b, 2);
    put_text(&b, "/usr/lib/libx.so");
    put_trailer(&b);
    return b;
}

static void test_mmap(void **state)
{
    struct builder b = mmap2(0x7000, 0x2000, PERF_RECORD_MISC_USER), wraps = mmap2(UINT64_MAX - 0xfff, 0x2000, 0), data = mmap2(0x7000, 0x2000, PERF_RECORD_MISC_MMAP_DATA);
    struct rp_perf_record r;

    (void)state;
    assert_int_equal(parse(&b, false, &r), RP_PERF_EVENT);
    assert_int_equal(r.event.kind, RP_EVENT_MMAP);
    assert_int_equal(r.event.u.mmap.start, 0x7000);
    assert_int_equal(r.event.u.mmap.end, 0x9000);
    assert_int_equal(r.event.u.mmap.offset, 0x3000);
    assert_int_equal(r.event.u.mmap.dev, makedev(0xfe, 1));
    assert_int_equal(r.event.u.mmap.ino, 777);
    assert_string_equal(r.event.u.mmap.path, "/usr/lib/libx.so");
    assert_int_equal(r.event.time_ns, 5555);
    assert_int_equal(parse(&wraps, false, &r), RP_PERF_DAMAGED);
    assert_int_equal(parse(&data, false, &r), RP_PERF_IGNORED);
}

static void test_tasks(void **state)
{
    struct builder fork = begin(PERF_RECORD_FORK, 0), comm = begin(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC), lost = begin(PERF_RECORD_LOST, 0);
    struct rp_perf_record r;

    (void)state;
    put32(&fork, 100);
    put32(&fork, 90);
    put32(&fork, 103);
    put32(&fork, 91);
    put64(&fork, 1);
    put_trailer(&fork);
    assert_int_equal(parse(&fork, false, &r), RP_PERF_EVENT);
    assert_int_equal(r.event.kind, RP_EVENT_FORK);
    assert_int_equal(r.event.tid, 103);
    assert_int_equal(r.event.u.fork.parent_pid, 90);
    assert_int_equal(r.event.u.fork.parent_tid, 91);
    assert_int_equal(r.by_tid, 101);
    put32(&comm, 100);
    put32(&comm, 100);
    put_text(&comm, "sleep");
    put_trailer(&comm);
    assert_int_equal(parse(&comm, false, &r), RP_PERF_EVENT);
    assert_true(r.event.u.comm.exec);
    assert_string_equal(r.event.u.comm.comm, "sleep");
    put64(&lost, 42);
    put64(&lost, 17);
    put_trailer(&lost);
    assert_int_equal(parse(&lost, false, &r), RP_PERF_LOST);
    assert_int_equal(r.lost, 17);
}

/* A buffer of one page, written here as the kernel would: records that end at the border, wrap round it, and damage. */
static void test_switches(void **state)
{
    static const struct {
        uint32_t type;
        uint16_t misc;
        bool out, preempted;
    } cases[] = {{PERF_RECORD_SWITCH, 0, false, false},
                 {PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT, true, false},
                 {PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, true, true},
                 {PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, true, false},
                 {PERF_RECORD_SWITCH_CPU_WIDE, 0, false, false}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct builder b = begin(cases[i].type, cases[i].misc);
        struct rp_perf_record record;

        if (cases[i].type == PERF_RECORD_SWITCH_CPU_WIDE)
            put64(&b, 0x700000007u); /* the other thread */
        put_trailer(&b);
        assert_int_equal(parse(&b, true, &record), RP_PERF_EVENT);
        assert_int_equal(record.event.kind, RP_EVENT_SWITCH);
        assert_int_equal(record.event.pid, 100);
        assert_int_equal(record.event.tid, 101);
        assert_int_equal(record.event.time_ns, 5555);
        assert_int_equal(record.event.u.sw.out, cases[i].out);
        assert_int_equal(record.event.u.sw.preempted, cases[i].preempted);
        b.n -= 8;
        assert_int_equal(parse(&b, true, &record), RP_PERF_DAMAGED);
    }
}

static void test_ring(void **state)
{
    uint8_t *memory = aligned_alloc(4096, 2 * 4096);
    struct perf_event_mmap_page *control = (struct perf_event_mmap_page *)(void *)memory;
    struct rp_perf_ring ring = {.fd = -1, .base = memory, .data_bytes = 4096, .scratch = malloc(65536)};
    uint64_t damaged = 0;
    uint8_t next = 0;

    (void)state;
    memset(memory, 0, 8192);
    for (int i = 0; i < 50; i++) {
        struct perf_event_header header = {PERF_RECORD_COMM, 0, 1000};
        const uint8_t *bytes;
        size_t size = 0;

        for (size_t k = 0; k < header.size; k++) {
            uint8_t byte = k < sizeof header ? ((const uint8_t *)&header)[k] : next++;

            memory[4096 + (control->data_head + k) % 4096] = byte;
        }
        control->data_head += header.size;
        assert_null(rp_perf_ring_next(&ring, &size, &damaged)); /* not looked yet */
        rp_perf_ring_refresh(&ring);
        bytes = rp_perf_ring_next(&ring, &size, &damaged);
        assert_non_null(bytes);
        assert_int_equal(size, 1000);
        for (size_t k = sizeof header; k < size; k++)
            assert_int_equal(bytes[k], (uint8_t)(next - (size - k)));
        rp_perf_ring_advance(&ring, size);
        assert_int_equal(control->data_tail, control->data_head);
    }
    memset(memory + 4096, 0, 4096); /* a header of size 0 would be read for ever */
    control->data_head += 64;
    rp_perf_ring_refresh(&ring);
    assert_null(rp_perf_ring_next(&ring, &(size_t){0}, &damaged));
    assert_int_equal(damaged, 1);
    assert_int_equal(control->data_tail, control->data_head);
    free(ring.scratch);
    free(memory);
}

static void test_one_event_speaks_for_a_thread(void **state)
{
    struct rp_perf_owners o = {0};
    uint64_t other;

    (void)state;
    assert_int_equal(rp_perf_owners_ask(&o, 0, 7, 50, &other), RP_PERF_TAKE);
    assert_int_equal(rp_perf_owners_ask(&o, 0, 7, 51, &other), RP_PERF_TWICE);
    assert_int_equal(other, 50);
    assert_int_equal(rp_perf_owners_ask(&o, 1, 7, 51, &other), RP_PERF_TAKE); /* another CPU */
    assert_int_equal(rp_perf_owners_ask(&o, 0, 7, 50, &other), RP_PERF_TAKE);
    rp_perf_owners_set(&o, 0, 7, 51);
    assert_int_equal(rp_perf_owners_ask(&o, 0, 7, 51, &other), RP_PERF_TAKE);
    rp_perf_owners_forget(&o, 2, 7); /* the number belongs to another thread now */
    assert_int_equal(rp_perf_owners_ask(&o, 0, 7, 60, &other), RP_PERF_TAKE);
    o.newest = 100; /* events were replaced */
    assert_int_equal(rp_perf_owners_ask(&o, 0, 7, 101, &other), RP_PERF_TAKE);
    assert_int_equal(rp_perf_owners_ask(&o, 0, 7, 60, &other), RP_PERF_TWICE);
    rp_perf_owners_release(&o);
}

static void test_who_is_known_is_covered(void **state)
{
    struct rp_perf_owners o = {0};
    uint64_t other;

    (void)state;
    assert_false(rp_perf_owners_cover(&o, 0, 7));
    assert_int_equal(rp_perf_owners_ask(&o, 0, 7, 50, &other), RP_PERF_TAKE);
    assert_true(rp_perf_owners_cover(&o, 0, 7));
    assert_false(rp_perf_owners_cover(&o, 1, 7)); /* it was never told to be on that CPU */
    assert_false(rp_perf_owners_cover(&o, 0, UINT32_MAX));
    rp_perf_owners_end(&o, 2, 7);
    assert_false(rp_perf_owners_cover(&o, 0, 7));
    assert_int_equal(rp_perf_owners_ask(&o, 0, 7, 60, &other), RP_PERF_TAKE); /* the next of that number */
    assert_true(rp_perf_owners_cover(&o, 0, 7));
    rp_perf_owners_end(&o, 2, 7);
    rp_perf_owners_forget(&o, 2, 7); /* its birth was told */
    assert_true(rp_perf_owners_cover(&o, 0, 7));
    rp_perf_owners_release(&o);
}

static void test_many_threads(void **state)
{
    struct rp_perf_owners o = {0};
    uint64_t other;

    (void)state;
    for (uint32_t tid = 1; tid < 5000; tid++)
        assert_int_equal(rp_perf_owners_ask(&o, tid % 3, tid, tid + 1000, &other), RP_PERF_TAKE);
    for (uint32_t tid = 1; tid < 5000; tid++)
        assert_int_equal(rp_perf_owners_ask(&o, tid % 3, tid, tid + 1001, &other), RP_PERF_TWICE);
    rp_perf_owners_forget_all(&o);
    assert_int_equal(rp_perf_owners_ask(&o, 1, 1, 5, &other), RP_PERF_TAKE);
    rp_perf_owners_release(&o);
    rp_alloc_fail_at(1);
    assert_int_equal(rp_perf_owners_ask(&o, 0, 1, 5, &other), RP_PERF_NOMEM);
    rp_alloc_fail_at(0);
}

static void test_cpu_lists(void **state)
{
    static const char *const bad[] = {"", "a", "3-1", "1,", "0-99999999", "-1", "1 2"};
    struct rp_cpu_list cpus = {0};
    struct rp_err err;

    (void)state;
    assert_true(rp_cpu_list_parse("0-2,7,9-10\n", 11, &cpus));
    assert_int_equal(cpus.at.n, 6);
    assert_int_equal(cpus.at.at[2], 2);
    assert_int_equal(cpus.at.at[3], 7);
    assert_int_equal(cpus.at.at[5], 10);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rp_vec_clear(&cpus.at);
        assert_false(rp_cpu_list_parse(bad[i], strlen(bad[i]), &cpus));
    }
    rp_vec_clear(&cpus.at);
    assert_int_equal(rp_cpu_list_read(&cpus, &err), RP_OK);
    assert_true(cpus.at.n >= 1);
    rp_vec_release(&cpus.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_full_copy_is_cut),
        cmocka_unit_test(test_no_user_state),
        cmocka_unit_test(test_every_cut_is_damage),
        cmocka_unit_test(test_mmap),
        cmocka_unit_test(test_tasks),
        cmocka_unit_test(test_switches),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_one_event_speaks_for_a_thread),
        cmocka_unit_test(test_who_is_known_is_covered),
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_cpu_lists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
