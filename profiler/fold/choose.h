/* SPDX-License-Identifier: MIT */
/* Which sampler a session uses. */
#ifndef RP_FOLD_CHOOSE_H
#define RP_FOLD_CHOOSE_H

#include "sample/sampler.h"

/* AUTO: perf_event, and ptrace where that is refused. */
enum rp_sampler_wish { RP_SAMPLER_AUTO, RP_SAMPLER_PERF, RP_SAMPLER_PTRACE };

enum { RP_HZ_PERF = 997, RP_HZ_PTRACE = 250 };

/* Makes the sampler of first choice. `options->hz` 0: the default of whichever it becomes. */
enum rp_status rp_choose_new(enum rp_sampler_wish wish, const struct rp_sampler_options *options, struct rp_sampler **sampler, struct rp_err *err);

/* Starts it; with AUTO, where perf_event is refused, puts a ptrace sampler in its place whose note says why. When that is refused too, the sentence tells
 * of both; of one where another user's process is the reason for both. */
enum rp_status rp_choose_start(enum rp_sampler_wish wish, const struct rp_sampler_options *options, struct rp_sampler **sampler, struct rp_err *err);

#endif
