/* SPDX-License-Identifier: MIT */
/*
 * rowload twoshape: a call costs C nanoseconds, and R more for each of its rows.
 *
 * The truth of the cost model: what two limits say about C and R must be what was asked for, and predict a third limit.
 */
#include <inttypes.h>
#include <stddef.h>

#include "rl_burn.h"
#include "rl_run.h"

enum { LIMIT_MAX = 1000000, COST_NS_MAX = 1000000000 };

struct twoshape_state {
    uint64_t per_call_ns;
    uint64_t per_row_ns;
    uint64_t limit;
    uint64_t call_rounds;
    uint64_t row_rounds;
    uint64_t number;
};

static const struct rl_option twoshape_options[] = {
    {"per-call-ns", RL_OPT_COUNT, offsetof(struct twoshape_state, per_call_ns), 0, COST_NS_MAX, NULL,
     "cost of a call (default 2000)"},
    {"per-row-ns", RL_OPT_COUNT, offsetof(struct twoshape_state, per_row_ns), 0, COST_NS_MAX, NULL,
     "cost of each row (default 500)"},
    {"limit", RL_OPT_COUNT, offsetof(struct twoshape_state, limit), 0, LIMIT_MAX, NULL, "rows per call (default 1)"},
    {NULL, RL_OPT_FLAG, 0, 0, 0, NULL, NULL},
};

static void twoshape_defaults(struct rl_run *run)
{
    struct twoshape_state *state = run->state;
    state->per_call_ns = 2000;
    state->per_row_ns = 500;
    state->limit = 1;
}

static bool twoshape_open(struct rl_run *run)
{
    struct twoshape_state *state = run->state;
    state->call_rounds = rl_burn_rounds(state->per_call_ns);
    state->row_rounds = rl_burn_rounds(state->per_row_ns);
    if (!state->call_rounds && !(state->row_rounds && state->limit)) {
        (void)snprintf(run->error, sizeof run->error,
                       "A call must cost something: --per-call-ns, or --per-row-ns with a --limit.");
        run->misused = true;
        return false;
    }
    run->warm_calls = state->limit <= 10 ? 20000 : 3000;
    return true;
}

RW_CATEGORY uint64_t rw_per_call(uint64_t rounds);
RW_CATEGORY uint64_t rw_per_row(uint64_t rounds);

uint64_t rw_per_call(uint64_t rounds)
{
    return rl_burn(rounds, 11);
}

uint64_t rw_per_row(uint64_t rounds)
{
    return rl_burn(rounds, 23);
}

static bool twoshape_batch(struct rl_run *run, uint64_t calls)
{
    struct twoshape_state *state = run->state;
    for (uint64_t i = 0; i < calls; i++) {
        (void)rw_per_call(state->call_rounds);
        for (uint64_t row = 0; row < state->limit; row++)
            (void)rw_per_row(state->row_rounds);
        run->sum += rl_random_at(run->seed, state->number++);
    }
    run->rows += calls * state->limit;
    return true;
}

static void twoshape_ready(struct rl_run *run)
{
    struct twoshape_state *state = run->state;
    state->number = 0;
}

static void twoshape_describe(const struct rl_run *run, FILE *out)
{
    const struct twoshape_state *state = run->state;
    (void)fprintf(out, " op=twoshape limit=%" PRIu64 " per_call_ns=%" PRIu64 " per_row_ns=%" PRIu64, state->limit,
                  state->per_call_ns, state->per_row_ns);
}

static void twoshape_close(struct rl_run *run)
{
    (void)run;
}

extern const struct rl_workload wl_twoshape;
const struct rl_workload wl_twoshape = {
    .name = "twoshape",
    .summary = "spends C nanoseconds per call and R per row: the truth of the cost model",
    .options = twoshape_options,
    .state_bytes = sizeof(struct twoshape_state),
    .defaults = twoshape_defaults,
    .open = twoshape_open,
    .batch = twoshape_batch,
    .ready = twoshape_ready,
    .describe = twoshape_describe,
    .close = twoshape_close,
};
