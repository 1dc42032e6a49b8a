/* SPDX-License-Identifier: MIT */
/* Case A13: the words for each refusal name call, errno, setting with value and remedy, and fit who is asking. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/permission.h"

struct permission_case {
    const char *about;
    struct rp_permission_facts facts;
    int error;
    enum rp_status status;
    const char *words[5];
    const char *never;
};

static const struct permission_case cases[] = {
    {"ordinary user, another's process",
     {.pid = 77, .our_uid = 1000, .target_uid = 0, .target_dumpable = true, .paranoid = 2, .cap_bound = true},
     EACCES, RP_PERM, {"process 77 belongs to root (uid 0) and rowprof runs as uid 1000: perf_event_open was refused (EACCES); give rowprof CAP_PERFMON"}, "sudo"},
    {"the same where sampling is closed to ordinary users anyway",
     {.pid = 77, .our_uid = 1000, .target_uid = 33, .target_dumpable = true, .paranoid = 3, .cap_bound = true},
     EACCES, RP_PERM, {"belongs to uid 33", "run rowprof as uid 33, or give", "CAP_PERFMON"}, "perf_event_paranoid"},
    {"paranoid 3, as Debian ships",
     {.pid = 77, .our_uid = 1000, .target_uid = 1000, .target_same = true, .target_dumpable = true, .paranoid = 3, .cap_bound = true},
     EACCES, RP_PERM, {"perf_event_paranoid is 3", "sysctl kernel.perf_event_paranoid=2"}, "sudo"},
    {"own process, not dumpable",
     {.pid = 77, .our_uid = 1000, .target_uid = 1000, .target_same = true, .paranoid = 2, .cap_bound = true},
     EACCES, RP_PERM, {"protected", "set-uid"}, "sudo"},
    {"root in a container",
     {.pid = 77, .our_uid = 0, .target_uid = 1000, .target_dumpable = true, .paranoid = 2},
     EPERM, RP_PERM, {"bounding set", "--cap-add PERFMON"}, "as root"},
    {"root that dropped its capabilities",
     {.pid = 77, .our_uid = 0, .target_uid = 1000, .target_dumpable = true, .paranoid = 2, .cap_bound = true},
     EACCES, RP_PERM, {"this root lacks the capability"}, "as root"},
    {"seccomp",
     {.pid = 77, .our_uid = 0, .target_uid = 0, .target_same = true, .target_dumpable = true, .paranoid = 2, .cap_perfmon = true, .cap_sys_ptrace = true, .cap_bound = true, .seccomp = true},
     EPERM, RP_PERM, {"seccomp", "EPERM"}, "sudo"},
    {"lockdown",
     {.pid = 77, .our_uid = 0, .target_same = true, .target_dumpable = true, .paranoid = 2, .cap_perfmon = true, .cap_sys_ptrace = true, .cap_bound = true, .lockdown = true},
     EPERM, RP_PERM, {"lockdown"}, "sudo"},
    {"a security module",
     {.pid = 77, .our_uid = 0, .target_same = true, .target_dumpable = true, .paranoid = -1, .cap_perfmon = true, .cap_sys_ptrace = true, .cap_bound = true},
     EACCES, RP_PERM, {"SELinux", "paranoid -1"}, "sudo"},
    {"no such call", {.pid = 77, .seccomp = true}, ENOSYS, RP_PERM, {"ENOSYS", "seccomp"}, NULL},
    {"gone meanwhile", {.pid = 77, .target_gone = true}, EPERM, RP_NOPROC, {"77", "ended"}, "CAP_"},
    {"no such process", {.pid = 77}, ESRCH, RP_NOPROC, {"77"}, "CAP_"},
    {"no descriptors", {.pid = 77}, EMFILE, RP_FAILED, {"ulimit -n"}, NULL},
    {"a bug of ours", {.pid = 77}, EINVAL, RP_FAILED, {"Invalid argument"}, NULL},
};

static void test_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rp_err err = {0};

        print_message("%s\n", cases[i].about);
        assert_int_equal(rp_permission_explain(&cases[i].facts, "perf_event_open", cases[i].error, &err), cases[i].status);
        for (size_t k = 0; k < 5 && cases[i].words[k]; k++)
            assert_non_null(strstr(err.text, cases[i].words[k]));
        if (cases[i].never)
            assert_null(strstr(err.text, cases[i].never));
    }
}

static const struct permission_case ptrace_cases[] = {
    {"another's process", {.pid = 77, .our_uid = 1000, .target_uid = 0, .target_dumpable = true, .yama = RP_YAMA_ABSENT, .cap_bound = true},
     EPERM, RP_PERM, {"process 77 belongs to root (uid 0) and rowprof runs as uid 1000: process_vm_readv was refused (EPERM); give rowprof CAP_SYS_PTRACE"}, "sudo"},
    {"Yama, as Ubuntu ships", {.pid = 77, .our_uid = 1000, .target_uid = 1000, .target_same = true, .target_dumpable = true, .yama = 1, .cap_bound = true},
     EPERM, RP_PERM, {"ptrace_scope is 1", "sysctl kernel.yama.ptrace_scope=0", "rowprof -- COMMAND"}, "sudo"},
    {"Yama closed for good", {.pid = 77, .our_uid = 0, .target_same = true, .target_dumpable = true, .yama = 3, .cap_sys_ptrace = true, .cap_bound = true},
     EPERM, RP_PERM, {"ptrace_scope is 3", "next boot"}, "sudo"},
    {"traced already", {.pid = 77, .target_same = true, .target_dumpable = true, .tracer = 42, .yama = RP_YAMA_ABSENT}, EPERM, RP_PERM, {"process 42 traces it"}, "CAP_"},
    {"protected", {.pid = 77, .our_uid = 1000, .target_uid = 1000, .target_same = true, .yama = RP_YAMA_ABSENT, .cap_bound = true},
     EPERM, RP_PERM, {"protected", "set-uid"}, "sudo"},
    {"root in a container", {.pid = 77, .our_uid = 0, .target_uid = 1000, .target_dumpable = true, .yama = RP_YAMA_ABSENT}, EPERM, RP_PERM, {"--cap-add SYS_PTRACE"}, "as root"},
    {"seccomp", {.pid = 77, .target_same = true, .target_dumpable = true, .cap_sys_ptrace = true, .cap_bound = true, .seccomp = true, .yama = RP_YAMA_ABSENT},
     EPERM, RP_PERM, {"seccomp", "Seccomp: 2"}, "sudo"},
    {"gone meanwhile", {.pid = 77, .target_gone = true}, EPERM, RP_NOPROC, {"77", "ended"}, "CAP_"},
};

static void test_words_of_ptrace(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ptrace_cases / sizeof *ptrace_cases; i++) {
        const struct permission_case *c = &ptrace_cases[i];
        struct rp_err err = {0};

        print_message("%s\n", c->about);
        assert_int_equal(rp_permission_explain_ptrace(&c->facts, "process_vm_readv", c->error, &err), c->status);
        for (size_t k = 0; k < 5 && c->words[k]; k++)
            assert_non_null(strstr(err.text, c->words[k]));
        if (c->never)
            assert_null(strstr(err.text, c->never));
    }
}

/* One reason closes both ways of sampling, so one sentence is enough. */
static void test_what_is_foreign(void **state)
{
    struct rp_permission_facts f = {.pid = 77, .our_uid = 1000, .target_uid = 0};

    (void)state;
    assert_true(rp_permission_foreign(&f));
    f.cap_sys_ptrace = true;
    assert_false(rp_permission_foreign(&f));
    f = (struct rp_permission_facts){.pid = 77, .our_uid = 1000, .target_uid = 1000, .target_same = true};
    assert_false(rp_permission_foreign(&f));
}

static void test_facts_of_this_process(void **state)
{
    struct rp_permission_facts facts;

    (void)state;
    rp_permission_facts_read((uint32_t)getpid(), &facts);
    assert_false(facts.target_gone);
    assert_true(facts.target_same);
    assert_int_equal(facts.our_uid, getuid());
    assert_int_equal(facts.target_uid, getuid());
    assert_true(facts.paranoid == RP_PARANOID_UNKNOWN || (facts.paranoid >= -1 && facts.paranoid < 10));
    rp_permission_facts_read(0x7ffffff0, &facts);
    assert_true(facts.target_gone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_words_of_ptrace),
        cmocka_unit_test(test_what_is_foreign),
        cmocka_unit_test(test_facts_of_this_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
