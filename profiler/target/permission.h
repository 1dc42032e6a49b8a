/* SPDX-License-Identifier: MIT */
/* Why a call was refused, and the least that would help. Facts and words are apart, so that each combination is tested without having it. */
#ifndef RP_TARGET_PERMISSION_H
#define RP_TARGET_PERMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { RP_PARANOID_UNKNOWN = -100, RP_YAMA_ABSENT = -1 };

struct rp_permission_facts {
    uint32_t pid;
    uint32_t our_uid, target_uid;
    bool target_gone;    /* no such process or thread, or it is exiting */
    bool target_same;    /* all its user ids are ours */
    bool target_dumpable; /* /proc/PID is owned by its user: not set-uid, not protected by prctl */
    int paranoid;        /* kernel.perf_event_paranoid, RP_PARANOID_UNKNOWN when there is no such file */
    bool cap_perfmon, cap_sys_admin, cap_sys_ptrace; /* effective */
    bool cap_bound;      /* CAP_PERFMON or CAP_SYS_ADMIN could be had (bounding set): else a container took them away */
    bool seccomp;        /* a seccomp filter is on us */
    bool lockdown;       /* kernel lockdown is in force */
    int yama;            /* kernel.yama.ptrace_scope, RP_YAMA_ABSENT when there is no such file */
    uint32_t tracer;     /* who traces the target already; 0 nobody */
};

void rp_permission_facts_read(uint32_t pid, struct rp_permission_facts *facts);

/* It is another user's, and we have no right that would make up for it: both ways of sampling are closed for this one reason. */
bool rp_permission_foreign(const struct rp_permission_facts *facts);
/* "process N belongs to … and rowprof runs as …", for that case. */
void rp_permission_put_owners(const struct rp_permission_facts *facts, char *text, size_t size);

/* The sentence for a refused perf_event_open: call, errno, the setting with its value, the remedy. Gives RP_NOPROC when the
 * target is gone, RP_PERM on a matter of rights, RP_FAILED else. Never advises root to become root. */
enum rp_status rp_permission_explain(const struct rp_permission_facts *facts, const char *call, int error, struct rp_err *err);

/* The same for a refused ptrace or process_vm_readv. */
enum rp_status rp_permission_explain_ptrace(const struct rp_permission_facts *facts, const char *call, int error, struct rp_err *err);

/* Whether `pid` may be traced and its memory read, found out without touching it. The sentence when not. */
enum rp_status rp_permission_check_ptrace(uint32_t pid, struct rp_err *err);

#endif
