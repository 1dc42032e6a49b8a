/* SPDX-License-Identifier: MIT */
/* What is saved comes back bit for bit, also mappings that appear in mid-run; what is damaged is refused. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/io.h"
#include "sample/sampler.h"
#include "sample/snapshot_file.h"
#include "support/temp_dir.h"

static const uint8_t stack[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static const uint64_t kernel[] = {0xffffffff81000010, 0xffffffff81000020, 0xffffffff81000030};

static struct rp_event sample_event(uint64_t time)
{
    struct rp_event e = {.kind = RP_EVENT_SAMPLE, .time_ns = time, .pid = 77, .tid = 78};

    e.u.sample = (struct rp_snapshot){.has_user = true, .stack = stack, .stack_bytes = sizeof stack, .stack_cut = true, .kernel = kernel, .nkernel = 3, .weight_ns = 1003009};
    for (int i = 0; i < RP_NREGS; i++)
        e.u.sample.regs[i] = 0x1000u + (uint64_t)i;
    return e;
}

/* Everything that came out, in words. */
static enum rp_status tell(void *context, const struct rp_event *e, struct rp_err *err)
{
    struct rp_buf *out = context;

    (void)err;
    rp_buf_printf(out, "%llu %u/%u ", (unsigned long long)e->time_ns, e->pid, e->tid);
    switch (e->kind) {
    case RP_EVENT_SAMPLE:
        rp_buf_printf(out, "sample user %d cut %d weight %llu regs", e->u.sample.has_user, e->u.sample.stack_cut, (unsigned long long)e->u.sample.weight_ns);
        for (int i = 0; i < RP_NREGS; i++)
            rp_buf_printf(out, " %llx", (unsigned long long)e->u.sample.regs[i]);
        rp_buf_puts(out, " stack");
        for (uint32_t i = 0; i < e->u.sample.stack_bytes; i++)
            rp_buf_printf(out, " %u", e->u.sample.stack[i]);
        rp_buf_puts(out, " kernel");
        for (uint32_t i = 0; i < e->u.sample.nkernel; i++)
            rp_buf_printf(out, " %llx", (unsigned long long)e->u.sample.kernel[i]);
        break;
    case RP_EVENT_MMAP:
        rp_buf_printf(out, "mmap %llx-%llx %llx ino %llu %s", (unsigned long long)e->u.mmap.start, (unsigned long long)e->u.mmap.end,
                      (unsigned long long)e->u.mmap.offset, (unsigned long long)e->u.mmap.ino, e->u.mmap.path);
        break;
    case RP_EVENT_COMM:
        rp_buf_printf(out, "comm %s exec %d", e->u.comm.comm, e->u.comm.exec);
        break;
    case RP_EVENT_FORK:
        rp_buf_printf(out, "fork of %u/%u", e->u.fork.parent_pid, e->u.fork.parent_tid);
        break;
    case RP_EVENT_EXIT:
        rp_buf_puts(out, "exit");
        break;
    case RP_EVENT_PEEK:
        rp_buf_printf(out, "peek syscall %d at_switch %d sp_only %d args", e->u.peek.syscall, e->u.peek.at_switch, e->u.peek.sample.sp_only);
        for (int i = 0; i < 6; i++)
            rp_buf_printf(out, " %llx", (unsigned long long)e->u.peek.args[i]);
        rp_buf_printf(out, " rsp %llx stack %u kernel %u", (unsigned long long)e->u.peek.sample.regs[RP_RSP], e->u.peek.sample.stack_bytes, e->u.peek.sample.nkernel);
        break;
    case RP_EVENT_SWITCH:
        rp_buf_printf(out, "switch out %d preempted %d", e->u.sw.out, e->u.sw.preempted);
        break;
    }
    rp_buf_putc(out, '\n');
    return RP_OK;
}

static enum rp_status replay(struct rp_buf *out, struct rp_sampler_stats *stats, struct rp_err *err)
{
    struct rp_sampler *s = NULL;
    enum rp_status status;
    bool ended = false;

    assert_int_equal(rp_sampler_replay_new(temp_dir, &s, err), RP_OK);
    status = s->ops->start(s, err);
    while (!status && !ended) {
        status = s->ops->drain(s, false, tell, out, err);
        if (!status)
            status = s->ops->wait(s, 0, &ended, err);
    }
    s->ops->stop(s);
    s->ops->stats(s, stats);
    s->ops->free(s);
    return status;
}

static void write_all_kinds(struct rp_images *images)
{
    struct rp_snapshot_writer *w = NULL;
    struct rp_space space = {.pid = 77};
    struct rp_err err = {0};
    struct rp_event e;
    struct stat st;
    uint32_t id;

    assert_int_equal(stat("/bin/sh", &st), 0);
    assert_int_equal(rp_images_open_path(images, "/bin/sh", &id, &err), RP_OK);
    assert_int_equal(rp_space_add(&space, &(struct rp_mapping){0x1000, 0x3000, 0x2000, id}, &err), RP_OK);
    assert_int_equal(rp_snapshot_writer_new(temp_dir, false, images, &w, &err), RP_OK);
    assert_int_equal(rp_snapshot_writer_space(w, &space, &err), RP_OK);
    e = sample_event(10);
    assert_int_equal(rp_snapshot_writer_event(w, &e, &err), RP_OK);
    e = (struct rp_event){.kind = RP_EVENT_COMM, .time_ns = 20, .pid = 77, .tid = 77};
    e.u.comm.comm = "new name";
    e.u.comm.exec = true;
    assert_int_equal(rp_snapshot_writer_event(w, &e, &err), RP_OK);
    e = (struct rp_event){.kind = RP_EVENT_MMAP, .time_ns = 25, .pid = 77, .tid = 77};
    e.u.mmap.start = 0x7000;
    e.u.mmap.end = 0x8000;
    e.u.mmap.path = "//anon";
    assert_int_equal(rp_snapshot_writer_event(w, &e, &err), RP_OK);
    e = sample_event(30);
    e.u.sample = (struct rp_snapshot){.kernel = kernel, .nkernel = 1, .weight_ns = 5};
    assert_int_equal(rp_snapshot_writer_event(w, &e, &err), RP_OK);
    e = (struct rp_event){.kind = RP_EVENT_FORK, .time_ns = 40, .pid = 77, .tid = 79};
    e.u.fork.parent_pid = 77;
    e.u.fork.parent_tid = 78;
    assert_int_equal(rp_snapshot_writer_event(w, &e, &err), RP_OK);
    e = (struct rp_event){.kind = RP_EVENT_SWITCH, .time_ns = 45, .pid = 77, .tid = 79};
    e.u.sw.out = true;
    assert_int_equal(rp_snapshot_writer_event(w, &e, &err), RP_OK);
    e = (struct rp_event){.kind = RP_EVENT_PEEK, .time_ns = 47, .pid = 77, .tid = 79};
    e.u.peek.sample = (struct rp_snapshot){.has_user = true, .sp_only = true, .stack = stack, .stack_bytes = sizeof stack, .kernel = kernel, .nkernel = 2};
    e.u.peek.sample.regs[RP_RSP] = 0x7000;
    e.u.peek.syscall = 202;
    e.u.peek.args[1] = 0x80;
    assert_int_equal(rp_snapshot_writer_event(w, &e, &err), RP_OK);
    e = (struct rp_event){.kind = RP_EVENT_EXIT, .time_ns = 50, .pid = 77, .tid = 79};
    assert_int_equal(rp_snapshot_writer_event(w, &e, &err), RP_OK);
    assert_int_equal(rp_snapshot_writer_finish(w, &err), RP_OK);
    rp_snapshot_writer_free(w);
    rp_space_release(&space);
}

static void test_what_is_saved_comes_back(void **state)
{
    struct rp_images images;
    struct rp_sampler_stats stats;
    struct rp_buf out = {0}, expected = {0};
    struct rp_err err = {0};
    struct stat st;

    (void)state;
    assert_int_equal(stat("/bin/sh", &st), 0);
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    write_all_kinds(&images);
    rp_images_release(&images);
    assert_int_equal(replay(&out, &stats, &err), RP_OK);
    rp_buf_printf(&expected, "0 77/77 mmap 1000-3000 2000 ino %llu /bin/sh\n", (unsigned long long)st.st_ino);
    rp_buf_puts(&expected, "10 77/78 sample user 1 cut 1 weight 1003009 regs 1000 1001 1002 1003 1004 1005 1006 1007 1008 1009 100a 100b 100c 100d 100e 100f 1010 "
                           "stack 1 2 3 4 5 6 7 8 9 10 11 kernel ffffffff81000010 ffffffff81000020 ffffffff81000030\n"
                           "20 77/77 comm new name exec 1\n"
                           "25 77/77 mmap 7000-8000 0 ino 0 //anon\n"
                           "30 77/78 sample user 0 cut 0 weight 5 regs 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 stack kernel ffffffff81000010\n"
                           "40 77/79 fork of 77/78\n"
                           "45 77/79 switch out 1 preempted 0\n"
                           "47 77/79 peek syscall 202 at_switch 0 sp_only 1 args 0 80 0 0 0 0 rsp 7000 stack 11 kernel 2\n"
                           "50 77/79 exit\n");
    assert_string_equal(rp_buf_text(&out), rp_buf_text(&expected));
    assert_int_equal(stats.samples, 2);
    assert_int_equal(stats.source, RP_SOURCE_REPLAY);
    assert_true(stats.kernel_visible);
    rp_buf_release(&out);
    rp_buf_release(&expected);
}

static void test_nothing_is_overwritten(void **state)
{
    struct rp_images images;
    struct rp_snapshot_writer *w = NULL;
    struct rp_err err = {0};

    (void)state;
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    write_all_kinds(&images);
    assert_int_equal(rp_snapshot_writer_new(temp_dir, false, &images, &w, &err), RP_EXISTS);
    assert_non_null(strstr(err.text, "--force"));
    assert_int_equal(rp_snapshot_writer_new(temp_dir, true, &images, &w, &err), RP_OK);
    rp_snapshot_writer_free(w);
    rp_images_release(&images);
}

/* Cut anywhere, the file is refused or ends early; it never gives an event that was not written. */
static void test_every_cut_is_survived(void **state)
{
    struct rp_images images;
    struct rp_sampler_stats stats;
    struct rp_buf whole = {0}, out = {0};
    struct rp_err err = {0};
    char path[128];
    struct stat st;

    (void)state;
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    write_all_kinds(&images);
    rp_images_release(&images);
    assert_int_equal(replay(&whole, &stats, &err), RP_OK);
    snprintf(path, sizeof path, "%s/samples.bin", temp_dir);
    assert_int_equal(stat(path, &st), 0);
    for (off_t size = st.st_size - 1; size >= 0; size -= 3) {
        enum rp_status status;

        assert_int_equal(truncate(path, size), 0);
        rp_buf_clear(&out);
        status = replay(&out, &stats, &err);
        assert_true(status == RP_OK || status == RP_FORMAT);
        assert_true(out.length < whole.length);
    }
    rp_buf_release(&whole);
    rp_buf_release(&out);
}

static void test_build_id_decides(void **state)
{
    struct rp_images images;
    struct rp_err err = {0};
    uint8_t right[32], wrong[32];
    struct rp_image_key key = {.pid = 1, .start = 0x1000, .end = 0x2000, .path = "/bin/sh", .offline = true};
    uint32_t plain, good, bad;
    uint8_t n;

    (void)state;
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    assert_int_equal(rp_images_open_path(&images, "/bin/sh", &plain, &err), RP_OK);
    n = images.at.at[plain]->build_id_bytes;
    assert_int_equal(n, 20);
    memcpy(right, images.at.at[plain]->build_id, sizeof right);
    memcpy(wrong, right, sizeof wrong);
    wrong[19] ^= 1;
    key.build_id_bytes = n;
    key.ino = 12345; /* another machine */
    key.build_id = right;
    assert_int_equal(rp_images_get(&images, &key, &good, &err), RP_OK);
    key.ino = 12346;
    key.build_id = wrong;
    assert_int_equal(rp_images_get(&images, &key, &bad, &err), RP_OK);
    assert_int_equal(images.at.at[good]->kind, RP_IMAGE_ELF);
    assert_non_null(images.at.at[good]->elf);
    assert_null(images.at.at[good]->problem);
    assert_null(images.at.at[bad]->elf);
    assert_non_null(strstr(images.at.at[bad]->problem, "another build"));
    rp_images_release(&images);
}

/* Each allocation fails once: always an orderly error. */
static void test_no_memory(void **state)
{
    struct rp_images images;
    struct rp_err err = {0};
    uint64_t n = 1;

    (void)state;
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    write_all_kinds(&images);
    rp_images_release(&images);
    for (;; n++) {
        struct rp_sampler *s = NULL;
        struct rp_buf out = {0};
        enum rp_status status;

        rp_alloc_fail_at(n);
        status = rp_sampler_replay_new(temp_dir, &s, &err);
        if (!status)
            status = s->ops->start(s, &err);
        if (!status)
            status = s->ops->drain(s, true, tell, &out, &err);
        rp_alloc_fail_at(0);
        if (s)
            s->ops->free(s);
        if (!status && !out.failed) {
            rp_buf_release(&out);
            break;
        }
        assert_true(status == RP_NOMEM || out.failed);
        rp_buf_release(&out);
        assert_true(n < 1000);
    }
    assert_true(n > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_saved_comes_back, temp_dir_make, temp_dir_remove),
        cmocka_unit_test_setup_teardown(test_nothing_is_overwritten, temp_dir_make, temp_dir_remove),
        cmocka_unit_test_setup_teardown(test_every_cut_is_survived, temp_dir_make, temp_dir_remove),
        cmocka_unit_test(test_build_id_decides),
        cmocka_unit_test_setup_teardown(test_no_memory, temp_dir_make, temp_dir_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
