/* SPDX-License-Identifier: MIT */
/* Why a process may not be traced. The trap: ptrace cannot be tried without touching the target, since only a stopped thread can be let go of again. But reading
 * its memory needs the very same right and stops nobody, and whether the call is there at all shows on a process that does not exist. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "target/permission.h"

enum { NOBODY = 0x7ffffff0 };

static const char *errno_name(int error)
{
    return error == EPERM ? "EPERM" : error == EACCES ? "EACCES" : error == ENOSYS ? "ENOSYS" : strerror(error);
}

static const char *how_to_get_sys_ptrace(const struct rp_permission_facts *f)
{
    if (!f->cap_bound)
        return "start the container with --cap-add SYS_PTRACE, or run rowprof on the host";
    if (f->our_uid == 0)
        return "start this root with CAP_SYS_PTRACE kept";
    return "give rowprof CAP_SYS_PTRACE (setcap cap_sys_ptrace+ep), or run it as root";
}

enum rp_status rp_permission_explain_ptrace(const struct rp_permission_facts *f, const char *call, int error, struct rp_err *err)
{
    const char *name = errno_name(error);

    if (f->target_gone || error == ESRCH)
        return rp_fail(err, RP_NOPROC, "process %u ended before sampling began; start it again and give its new pid", f->pid);
    if (f->tracer)
        return rp_fail(err, RP_PERM, "%s on process %u was refused (%s): process %u traces it already (a debugger or strace), and only one can; end that one", call,
                       f->pid, name, f->tracer);
    if (!f->cap_sys_ptrace && !f->target_same) {
        char owners[128], as_user[64] = "";

        rp_permission_put_owners(f, owners, sizeof owners);
        if (f->target_uid)
            snprintf(as_user, sizeof as_user, "run rowprof as uid %u, or ", f->target_uid);
        return rp_fail(err, RP_PERM, "%s: %s was refused (%s); %s%s", owners, call, name, as_user, how_to_get_sys_ptrace(f));
    }
    if (!f->cap_sys_ptrace && !f->target_dumpable)
        return rp_fail(err, RP_PERM, "%s on process %u was refused (%s): the process is protected (set-uid, file capabilities, or prctl PR_SET_DUMPABLE 0); %s", call,
                       f->pid, name, how_to_get_sys_ptrace(f));
    if (f->yama == 3)
        return rp_fail(err, RP_PERM, "%s on process %u was refused (%s): kernel.yama.ptrace_scope is 3, which closes ptrace to everybody until the next boot", call,
                       f->pid, name);
    if (!f->cap_sys_ptrace && f->yama > 0)
        return rp_fail(err, RP_PERM,
                       "%s on process %u was refused (%s): kernel.yama.ptrace_scope is %d, which closes ptrace to all but parents; launch the command through "
                       "rowprof (rowprof -- COMMAND), %s%s",
                       call, f->pid, name, f->yama, f->our_uid == 0 ? "or " : "set it to 0 (sysctl kernel.yama.ptrace_scope=0), or ", how_to_get_sys_ptrace(f));
    if (f->seccomp || error == ENOSYS)
        return rp_fail(err, RP_PERM,
                       "%s on process %u was refused (%s): a seccomp filter is on rowprof (Seccomp: %d in /proc/self/status), as container runtimes set it; allow "
                       "ptrace and process_vm_readv in its profile, or run rowprof on the host",
                       call, f->pid, name, f->seccomp ? 2 : 0);
    return rp_fail(err, RP_PERM,
                   "%s on process %u was refused (%s) with uid %u against uid %u, CAP_SYS_PTRACE %s: it has rights that rowprof lacks, or a security module (SELinux, "
                   "AppArmor) has refused; see the kernel log",
                   call, f->pid, name, f->our_uid, f->target_uid, f->cap_sys_ptrace ? "held" : "not held");
}

enum rp_status rp_permission_check_ptrace(uint32_t pid, struct rp_err *err)
{
    struct rp_permission_facts facts;
    char byte;
    struct iovec local = {&byte, 1}, remote = {(void *)8, 1};
    const char *call = NULL;
    int error = 0;

    if (process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0) < 0 && errno != EFAULT) {
        call = "process_vm_readv";
        error = errno;
    } else if (ptrace(PTRACE_SEIZE, NOBODY, NULL, NULL) && errno != ESRCH) {
        call = "ptrace";
        error = errno;
    }
    rp_permission_facts_read(pid, &facts);
    if (!call && facts.tracer) {
        call = "ptrace";
        error = EPERM;
    }
    return call ? rp_permission_explain_ptrace(&facts, call, error, err) : RP_OK;
}
