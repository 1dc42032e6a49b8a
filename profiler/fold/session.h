/* SPDX-License-Identifier: MIT */
/* One recording from beginning to end: targets opened, sampler running, stacks folded into a profile, names given.
 *
 *     rp_session_new(&options, &session, err);      // everything that can be refused is refused here
 *     rp_session_start(session, err);
 *     rp_session_run(session, 10000000000u, &stop, NULL, NULL, err);
 *     rp_session_finish(session, &profile, err);    // stops, takes the rest, resolves what is left; the target runs on
 *     rp_session_free(session);
 *
 * Most names are resolved while sampling goes on, so finish is short. */
#ifndef RP_FOLD_SESSION_H
#define RP_FOLD_SESSION_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "model/profile.h"
#include "fold/choose.h"
#include "sample/sampler.h"
#include "symbolize/symbolize.h"
#include "unwind/unwind.h"

struct rp_session_options {
    enum rp_sampler_wish sampler_wish;
    enum rp_unwind_engine engine;
    struct rp_sampler_options sampler;       /* pids, rate (0: the default), kernel, enable_on_exec … */
    struct rp_symbolizer_options symbolizer; /* inlines, debuginfod */
    const char *save_snapshots; /* directory to make and fill, or NULL */
    bool force;                 /* … even when it holds a snapshot already */
    const char *from_snapshots; /* replay these instead of watching a process, or NULL; `sampler.pids` is not read then */
};

/* Where the time went; for `-v`, tests and the bench. */
struct rp_session_stats {
    struct rp_sampler_stats sampler;
    struct rp_unwind_stats unwind;
    struct rp_symbolizer_stats symbolizer;
    uint64_t first_sample_ns; /* from rp_session_start to the first sample's time; 0: none */
    uint64_t unwind_ns;       /* spent in walking and interning */
    uint64_t symbolize_ns;    /* in names while sampling went on */
    uint64_t finish_ns;       /* in rp_session_finish */
    uint64_t end_ns;          /* when sampling ended, by rp_now_ns */
};

/* Called about ten times a second: seconds since the start, samples so far. */
typedef void rp_session_progress(void *context, double seconds, uint64_t samples);

struct rp_session;

/* RP_NOPROC, RP_PERM, RP_USAGE with the sentence for the user. */
enum rp_status rp_session_new(const struct rp_session_options *options, struct rp_session **out, struct rp_err *err);

enum rp_status rp_session_start(struct rp_session *session, struct rp_err *err);

/* Samples for `duration_ns`, until *stop is not zero, or until every target has ended (RP_OK in all three cases). */
enum rp_status rp_session_run(struct rp_session *session, uint64_t duration_ns, const volatile sig_atomic_t *stop, rp_session_progress *progress,
                              void *context, struct rp_err *err);

/* Stops sampling and hands the profile over, symbolized. RP_NOTHING (with the reason) when there is no sample in it; `profile` is initialised and to be
 * released all the same in that case, and only in that case and on RP_OK. */
enum rp_status rp_session_finish(struct rp_session *session, struct rp_profile *profile, struct rp_err *err);

/* The sampler, for switching it off and on in mid-run (the bench). Owned by the session. */
struct rp_sampler *rp_session_sampler(struct rp_session *session);

void rp_session_stats(const struct rp_session *session, struct rp_session_stats *stats);
void rp_session_free(struct rp_session *session);

#endif
