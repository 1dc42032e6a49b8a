/* SPDX-License-Identifier: MIT */
/* See permission.h. The trap: the kernel answers EACCES to "no kernel samples at this level", "another user's process" and "a security
 * module says no" alike; and root in a container is told to use sudo by tools that look only at errno. What decides is read from procfs, and a file that is not
 * there (no Yama, no lockdown) is an answer, not an error. */
#include "target/permission.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/parse.h"
#include "target/process.h"

enum { CAP_BIT_SYS_PTRACE = 19, CAP_BIT_SYS_ADMIN = 21, CAP_BIT_PERFMON = 38, SMALL_FILE = 1 << 16 };

/* The text behind `key` in a status file. */
static bool find_line(const struct rp_buf *text, const char *key, struct rp_cursor *line)
{
    struct rp_cursor c = rp_cursor_of(rp_buf_text(text), text->length);
    size_t length;

    while (rp_cursor_line(&c, &line->at, &length)) {
        line->end = line->at + length;
        if (rp_cursor_take(line, key)) {
            rp_cursor_skip_blanks(line);
            return true;
        }
    }
    return false;
}

static uint64_t hex_line(const struct rp_buf *text, const char *key)
{
    struct rp_cursor line;
    uint64_t value = 0;

    if (find_line(text, key, &line) && !rp_cursor_hex(&line, &value))
        value = 0;
    return value;
}

static int read_setting(const char *path, int absent)
{
    struct rp_buf text = {0};
    struct rp_err err;
    int value = absent;
    struct rp_cursor c;
    uint64_t number;
    bool negative;

    if (rp_read_file(path, SMALL_FILE, &text, &err) == RP_OK) {
        c = rp_cursor_of(rp_buf_text(&text), text.length);
        negative = rp_cursor_take(&c, "-");
        if (rp_cursor_u64(&c, &number) && number < 100)
            value = negative ? -(int)number : (int)number;
    }
    rp_buf_release(&text);
    return value;
}

static void read_ourselves(struct rp_permission_facts *facts)
{
    const uint64_t perfmon = (uint64_t)1 << CAP_BIT_PERFMON, admin = (uint64_t)1 << CAP_BIT_SYS_ADMIN;
    struct rp_buf text = {0};
    struct rp_err err;
    struct rp_cursor line;
    uint64_t caps, mode;

    facts->our_uid = getuid();
    if (rp_read_file("/proc/self/status", SMALL_FILE, &text, &err) == RP_OK) {
        caps = hex_line(&text, "CapEff:");
        facts->cap_perfmon = (caps & perfmon) != 0;
        facts->cap_sys_admin = (caps & admin) != 0;
        facts->cap_sys_ptrace = (caps >> CAP_BIT_SYS_PTRACE & 1) != 0;
        facts->cap_bound = (hex_line(&text, "CapBnd:") & (perfmon | admin)) != 0;
        facts->seccomp = find_line(&text, "Seccomp:", &line) && rp_cursor_u64(&line, &mode) && mode == 2;
    }
    rp_buf_clear(&text);
    if (rp_read_file("/sys/kernel/security/lockdown", SMALL_FILE, &text, &err) == RP_OK)
        facts->lockdown = text.length && !strstr(rp_buf_text(&text), "[none]");
    rp_buf_release(&text);
}

/* By a call that needs no descriptor: without any left, everybody would seem gone. */
static bool is_gone(uint32_t pid)
{
    struct stat st;
    char path[64];

    snprintf(path, sizeof path, "/proc/%u", pid);
    return stat(path, &st) != 0;
}

void rp_permission_facts_read(uint32_t pid, struct rp_permission_facts *facts)
{
    struct rp_buf text = {0};
    struct rp_cursor line;
    struct rp_err err;
    struct stat st;
    char path[64];
    enum rp_status status;
    uint64_t uid[3], tracer;

    *facts = (struct rp_permission_facts){.pid = pid,
                                          .paranoid = read_setting("/proc/sys/kernel/perf_event_paranoid", RP_PARANOID_UNKNOWN),
                                          .yama = read_setting("/proc/sys/kernel/yama/ptrace_scope", RP_YAMA_ABSENT)};
    read_ourselves(facts);
    snprintf(path, sizeof path, "/proc/%u/status", pid);
    status = rp_read_file(path, SMALL_FILE, &text, &err);
    if ((status == RP_IO && is_gone(pid)) || (find_line(&text, "State:", &line) && line.at < line.end && strchr("ZX", *line.at))) {
        facts->target_gone = true;
    } else if (find_line(&text, "Uid:", &line)) {
        facts->target_same = true;
        for (int i = 0; i < 3; i++) {
            rp_cursor_skip_blanks(&line);
            if (!rp_cursor_u64(&line, &uid[i]))
                break;
            facts->target_same = facts->target_same && uid[i] == facts->our_uid;
            facts->target_uid = i == 0 ? (uint32_t)uid[0] : facts->target_uid;
        }
    }
    if (find_line(&text, "TracerPid:", &line) && rp_cursor_u64(&line, &tracer) && tracer <= INT32_MAX)
        facts->tracer = (uint32_t)tracer;
    snprintf(path, sizeof path, "/proc/%u", pid);
    facts->target_dumpable = stat(path, &st) == 0 && (st.st_uid == facts->target_uid || facts->target_uid == 0);
    rp_buf_release(&text);
}

/* How to come by a capability, for whoever we are. */
static const char *how_to_get_rights(const struct rp_permission_facts *f)
{
    if (!f->cap_bound)
        return "start the container with --cap-add PERFMON --cap-add SYS_PTRACE (CAP_PERFMON is outside the bounding set here), or run rowprof on the host";
    if (f->our_uid == 0)
        return "start rowprof with CAP_PERFMON and CAP_SYS_PTRACE kept (this root lacks the capability)";
    return "give rowprof CAP_PERFMON and CAP_SYS_PTRACE (setcap cap_perfmon,cap_sys_ptrace+ep), or run it as root";
}

bool rp_permission_foreign(const struct rp_permission_facts *f)
{
    return !f->cap_perfmon && !f->cap_sys_admin && !f->cap_sys_ptrace && !f->target_same && !f->target_gone;
}

void rp_permission_put_owners(const struct rp_permission_facts *f, char *text, size_t size)
{
    snprintf(text, size, "process %u belongs to %suid %u%s and rowprof runs as uid %u", f->pid, f->target_uid ? "" : "root (", f->target_uid,
             f->target_uid ? "" : ")", f->our_uid);
}

/* Another user's process: being that user helps too, unless that is root, which the other remedy names already. */
static enum rp_status explain_other_user(const struct rp_permission_facts *f, const char *call, const char *name, struct rp_err *err)
{
    char owners[128], as_user[64] = "";

    rp_permission_put_owners(f, owners, sizeof owners);
    if (f->target_uid)
        snprintf(as_user, sizeof as_user, "run rowprof as uid %u, or ", f->target_uid);
    return rp_fail(err, RP_PERM, "%s: %s was refused (%s); %s%s", owners, call, name, as_user, how_to_get_rights(f));
}

static enum rp_status explain_refusal(const struct rp_permission_facts *f, const char *call, int error, struct rp_err *err)
{
    bool privileged = f->cap_perfmon || f->cap_sys_admin;
    const char *name = error == EPERM ? "EPERM" : "EACCES";

    if (rp_permission_foreign(f))
        return explain_other_user(f, call, name, err);
    if (!privileged && f->paranoid > 2)
        return rp_fail(err, RP_PERM,
                       "%s on process %u was refused (%s): kernel.perf_event_paranoid is %d, which closes sampling to ordinary users; set it to 2 "
                       "(sysctl kernel.perf_event_paranoid=2), or %s",
                       call, f->pid, name, f->paranoid, how_to_get_rights(f));
    if (!privileged && !f->target_dumpable)
        return rp_fail(err, RP_PERM,
                       "%s on process %u was refused (%s): the process is protected (set-uid, file capabilities, or prctl PR_SET_DUMPABLE 0); %s", call,
                       f->pid, name, how_to_get_rights(f));
    if (f->seccomp)
        return rp_fail(err, RP_PERM,
                       "%s on process %u was refused (%s): a seccomp filter is on rowprof (Seccomp: 2 in /proc/self/status), as container runtimes set it; "
                       "allow perf_event_open in its profile, or run rowprof on the host",
                       call, f->pid, name);
    if (f->lockdown)
        return rp_fail(err, RP_PERM,
                       "%s on process %u was refused (%s): kernel lockdown is in force (/sys/kernel/security/lockdown); boot without it, or use "
                       "--no-kernel",
                       call, f->pid, name);
    return rp_fail(err, RP_PERM,
                   "%s on process %u was refused (%s) with kernel.perf_event_paranoid %d, uid %u against uid %u, CAP_PERFMON %s, CAP_SYS_PTRACE %s: a "
                   "security module (SELinux, AppArmor) has most likely refused; see the kernel log",
                   call, f->pid, name, f->paranoid, f->our_uid, f->target_uid, privileged ? "held" : "not held", f->cap_sys_ptrace ? "held" : "not held");
}

enum rp_status rp_permission_explain(const struct rp_permission_facts *f, const char *call, int error, struct rp_err *err)
{
    if (f->target_gone || error == ESRCH)
        return rp_fail(err, RP_NOPROC, "process %u ended before sampling began; start it again and give its new pid", f->pid);
    switch (error) {
    case EPERM:
    case EACCES:
        return explain_refusal(f, call, error, err);
    case ENOSYS:
        return rp_fail(err, RP_PERM, "%s is not there (ENOSYS): the kernel was built without CONFIG_PERF_EVENTS, or %s; %s", call,
                       f->seccomp ? "the seccomp filter that is on rowprof hides it" : "a sandbox hides it",
                       f->seccomp ? "allow perf_event_open in the seccomp profile" : "run rowprof on the host");
    case EMFILE:
        return rp_fail(err, RP_FAILED, "%s on process %u failed (EMFILE): the limit on open files is used up; raise it (ulimit -n), or name threads with --thread",
                       call, f->pid);
    case ENOMEM:
        return rp_fail(err, RP_NOMEM, "%s on process %u failed (ENOMEM): the kernel has no memory for the sampling buffers; free some", call, f->pid);
    default:
        return rp_fail(err, RP_FAILED, "%s on process %u failed: %s; this kernel does not sample as rowprof asks, please report it with the output of uname -a",
                       call, f->pid, strerror(error));
    }
}
