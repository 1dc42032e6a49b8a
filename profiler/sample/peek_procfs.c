/* SPDX-License-Identifier: MIT */
/* See peek_procfs.h.
 *
 * The trap: between two reads the thread may have gone on and come back to the same place with another stack. Equal system call, arguments, stack
 * pointer and pc before and after make that a call of the same function from the same frame: the stack below is then the same but for its contents'
 * age, and unwinding only reads return addresses. */
#include "sample/peek_procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/parse.h"
#include "target/process.h"

enum { LINE_MAX_BYTES = 256 };

/* " 0x…" */
static bool take_hex(struct rp_cursor *c, uint64_t *value)
{
    return rp_cursor_take(c, " 0x") && rp_cursor_hex(c, value);
}

bool rp_peek_parse(const char *text, size_t length, int *syscall, uint64_t args[6], uint64_t *sp, uint64_t *pc)
{
    struct rp_cursor c = rp_cursor_of(text, length);
    uint64_t number;

    *syscall = -1;
    memset(args, 0, 6 * sizeof *args);
    if (!rp_cursor_take(&c, "-1")) {
        if (!rp_cursor_u64(&c, &number) || number > INT16_MAX)
            return false;
        *syscall = (int)number;
        for (int i = 0; i < 6; i++)
            if (!take_hex(&c, &args[i]))
                return false;
    }
    if (!take_hex(&c, sp) || !take_hex(&c, pc))
        return false;
    (void)rp_cursor_take(&c, "\n");
    return rp_cursor_done(&c);
}

/* Reads the line; the length, or -1 with errno. The file is opened anew by every look: keeping it open for 2 000 threads would cost as many descriptors. */
static ssize_t read_line(uint32_t pid, uint32_t tid, char line[LINE_MAX_BYTES])
{
    char path[64];
    ssize_t got;
    int fd, error;

    snprintf(path, sizeof path, "/proc/%u/task/%u/syscall", pid, tid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    got = read(fd, line, LINE_MAX_BYTES);
    error = errno;
    close(fd);
    errno = error;
    return got;
}

static enum rp_peek_end end_of(int error)
{
    return error == ENOENT || error == ESRCH ? RP_PEEK_GONE : RP_PEEK_REFUSED;
}

enum rp_peek_end rp_peek_procfs(uint32_t pid, uint32_t tid, uint8_t *stack, struct rp_event *event)
{
    char before[LINE_MAX_BYTES], after[LINE_MAX_BYTES];
    ssize_t length = read_line(pid, tid, before), again, got;
    struct rp_snapshot *sample = &event->u.peek.sample;
    struct rp_memory memory = rp_memory_of_process(pid);
    uint64_t sp, pc;

    *event = (struct rp_event){.kind = RP_EVENT_PEEK, .pid = pid, .tid = tid};
    if (length < 0)
        return end_of(errno);
    if (!rp_peek_parse(before, (size_t)length, &event->u.peek.syscall, event->u.peek.args, &sp, &pc) || sp > UINT64_MAX - RP_PEEK_STACK_BYTES)
        return RP_PEEK_RUNNING;
    event->time_ns = rp_now_ns();
    got = memory.read(memory.context, sp, stack, RP_PEEK_STACK_BYTES);
    if (got <= 0)
        return got < 0 && errno == ESRCH ? RP_PEEK_GONE : RP_PEEK_REFUSED;
    again = read_line(pid, tid, after);
    if (again != length || memcmp(before, after, (size_t)length) != 0)
        return again < 0 ? end_of(errno) : RP_PEEK_RUNNING;
    sample->has_user = sample->sp_only = true;
    sample->regs[RP_RSP] = sp;
    sample->regs[RP_RIP] = pc;
    sample->stack = stack;
    sample->stack_bytes = (uint32_t)got;
    sample->stack_cut = got == RP_PEEK_STACK_BYTES;
    return RP_PEEK_SEEN;
}
