/* SPDX-License-Identifier: MIT */
/* See thread_check.h. The trap is a name made of digits: it is a thread's id only where no thread is called so. */
#include "cli/thread_check.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/parse.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "target/process.h"

/* The kernel keeps 15 bytes of a name (TASK_COMM_LEN). */
enum { COMM_MAX = 15, NAMES_MAX = 6 };

/* Threads of one name. */
struct named {
    char comm[64];
    uint32_t tid; /* of the first */
    size_t n;
    int distance; /* from what was typed */
};

struct names {
    RP_VEC(struct named) at;
    bool any; /* of the threads is the one that is wanted */
};

static enum rp_status add(struct names *names, const char *wanted, const struct rp_thread_info *thread, struct rp_err *err)
{
    struct named *added;

    for (size_t i = 0; i < names->at.n; i++) {
        if (!strcmp(names->at.at[i].comm, thread->comm)) {
            names->at.at[i].n++;
            return RP_OK;
        }
    }
    added = rp_vec_add(&names->at);
    if (!added)
        return rp_fail_nomem(err);
    *added = (struct named){.tid = thread->tid, .n = 1};
    memcpy(added->comm, thread->comm, sizeof added->comm);
    added->distance = strcasestr(thread->comm, wanted) ? 0 : rp_word_distance(wanted, thread->comm);
    return RP_OK;
}

static enum rp_status add_process(struct names *names, const char *wanted, uint32_t pid, struct rp_err *err)
{
    struct rp_thread_infos threads = {0};
    struct rp_err gone;
    enum rp_status status = RP_OK;
    uint64_t tid;
    bool is_tid = rp_parse_u64(wanted, 1, UINT32_MAX, &tid);

    if (!rp_threads_read(pid, &threads, &gone)) {
        for (size_t i = 0; !status && i < threads.at.n; i++) {
            names->any |= !strcmp(threads.at.at[i].comm, wanted) || (is_tid && threads.at.at[i].tid == tid);
            status = add(names, wanted, &threads.at.at[i], err);
        }
    }
    rp_threads_release(&threads);
    return status;
}

static enum rp_status add_children(struct names *names, const char *wanted, uint32_t pid, struct rp_err *err)
{
    struct rp_pids children = {0};
    struct rp_err gone;
    enum rp_status status = RP_OK;

    if (!rp_children_read(pid, &children, &gone)) {
        for (size_t i = 0; !status && i < children.at.n; i++)
            status = add_process(names, wanted, children.at.at[i], err);
    }
    rp_vec_release(&children.at);
    return status;
}

/* The nearest first, as many as one reads. */
static void put_names(struct names *names, bool by_distance, struct rp_buf *out)
{
    size_t left = names->at.n;

    for (; left && names->at.n - left < NAMES_MAX; left--) {
        struct named *all = names->at.at, next;
        size_t best = 0;

        for (size_t i = 1; by_distance && i < left; i++)
            best = all[i].distance < all[best].distance ? i : best;
        next = all[best];
        memmove(&all[best], &all[best + 1], (left - best - 1) * sizeof *all);
        rp_buf_printf(out, "%s%s", out->length ? ", " : "", next.comm);
        if (next.n > 1)
            rp_buf_printf(out, " (%zu of them)", next.n);
        else
            rp_buf_printf(out, " (%u)", next.tid);
    }
    if (left)
        rp_buf_printf(out, " and %zu more", left);
}

static enum rp_status tell(const struct rp_settings *s, const uint32_t *pids, size_t npids, struct names *names, struct rp_err *err)
{
    struct rp_buf list = {0}, who = {0};
    uint64_t tid;
    bool is_tid = rp_parse_u64(s->thread, 1, UINT32_MAX, &tid);
    const char *are = names->at.n == 1 ? "there is only" : is_tid ? "there are" : "nearest are";
    enum rp_status status = RP_OK;

    put_names(names, !is_tid, &list);
    if (npids == 1)
        rp_buf_printf(&who, "process %u%s", pids[0], s->children ? " and its children" : "");
    else
        rp_buf_printf(&who, "the %zu processes%s", npids, s->children ? " and their children" : "");
    if (list.failed || who.failed)
        status = rp_fail_nomem(err);
    else if (is_tid)
        status = rp_fail(err, RP_NOTFOUND, "no thread of %s has the id %s; %s %s", rp_buf_text(&who), s->thread, are, rp_buf_text(&list));
    else if (strlen(s->thread) > COMM_MAX)
        status = rp_fail(err, RP_NOTFOUND, "no thread can be called %s, since the kernel keeps %d bytes of a name; in %s %s %s", s->thread, COMM_MAX,
                         rp_buf_text(&who), are, rp_buf_text(&list));
    else if (!s->quiet)
        rp_message("no thread of %s is called %s now; %s %s; recording all the same, as one may come yet", rp_buf_text(&who), s->thread, are,
                   rp_buf_text(&list));
    rp_buf_release(&list);
    rp_buf_release(&who);
    return status;
}

enum rp_status rp_thread_check(const struct rp_settings *s, const uint32_t *pids, size_t npids, struct rp_err *err)
{
    struct names names = {0};
    enum rp_status status = RP_OK;

    for (size_t i = 0; s->thread && !status && i < npids; i++) {
        status = add_process(&names, s->thread, pids[i], err);
        if (!status && s->children)
            status = add_children(&names, s->thread, pids[i], err);
    }
    if (!status && names.at.n && !names.any)
        status = tell(s, pids, npids, &names, err);
    rp_vec_release(&names.at);
    return status;
}
