/* SPDX-License-Identifier: MIT */
/* Verdicts over benchmark runs. Pure: runs go in, rows come out; who measured them, and in which order, is the runner's business (bench/).
 *
 *     struct rp_bench bench = {0};
 *     rp_bench_config(&bench, "get LIMIT 1", &config, err);
 *     rp_bench_add(&bench, &(struct rp_bench_run){.config = config, .round = 0, .arm = RP_ARM_OLD, .rate = {…}}, err);
 *     rp_bench_judge(&bench, &options, &verdicts, err);
 *
 * Three arms: old, old again (a byte-identical copy) and new. The second tells how far a program is from itself on this machine today: the noise floor.
 * Nothing is convicted by a small p alone; it must also be further from the old than the old is from itself. Formulas: profiler/README.md, "Numbers". */
#ifndef RP_ANALYZE_BENCH_H
#define RP_ANALYZE_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/compare_stats.h"
#include "base/arena.h"
#include "base/index.h"
#include "base/status.h"
#include "base/vec.h"

enum rp_arm { RP_ARM_OLD, RP_ARM_AGAIN, RP_ARM_NEW, RP_ARMS };

/* Calls per second of: CPU time of the thread that calls, CPU time of the process, wall time. */
enum rp_rate_kind { RP_RATE_THREAD, RP_RATE_PROCESS, RP_RATE_WALL, RP_RATE_KINDS, RP_RATE_AUTO = RP_RATE_KINDS };

/* "thread CPU time", "process CPU time", "wall time". */
const char *rp_rate_name(enum rp_rate_kind kind);

/* One fresh process. Zero where not known, but for `rate`: NaN. */
struct rp_bench_run {
    uint32_t config, round;
    enum rp_arm arm;
    double rate[RP_RATE_KINDS];
    double calls, rows;                             /* rows: of all calls */
    double wall_secs, process_secs, thread_secs;    /* of the calls counted */
    double whole_wall_secs, whole_cpu_secs;         /* of the process, start to end */
    uint64_t voluntary, involuntary;                /* context switches */
    uint32_t attempts;                              /* how often it was run until it was not contended, or given up on */
    bool contended;                                 /* CPU time was less than RP_CONTENDED of wall time, all attempts long */
};

#define RP_CONTENDED 0.90

struct rp_bench_config {
    const char *name;
    double rows; /* per call; 0: not known */
};

/* Zero-initialised is empty and ready. */
struct rp_bench {
    struct rp_arena arena;
    RP_VEC(struct rp_bench_config) configs;
    struct rp_index names;
    RP_VEC(struct rp_bench_run) runs; /* in the order they were run */
};
void rp_bench_release(struct rp_bench *bench);

/* The configuration of that name, added when new. RP_NOMEM, RP_LIMIT (RP_BENCH_CONFIGS_MAX). */
enum rp_status rp_bench_config(struct rp_bench *bench, const char *name, size_t length, uint32_t *config, struct rp_err *err);
/* RP_NOMEM, RP_LIMIT (RP_BENCH_RUNS_MAX). */
enum rp_status rp_bench_add(struct rp_bench *bench, const struct rp_bench_run *run, struct rp_err *err);

/* Whether CPU time says more than wall time: it does where one thread does the work. Thread CPU when all runs know it and it is at least 7 tenths of the
 * process's, process CPU when no configuration's exceeds 1.05 of wall time (median), else wall; always one that all runs know, if there is one. */
enum rp_rate_kind rp_bench_pick_rate(const struct rp_bench *bench);

enum rp_bench_verdict {
    RP_BENCH_FASTER,    /* convicted */
    RP_BENCH_SLOWER,    /* convicted */
    RP_BENCH_SUSPECTED, /* p below alpha and beyond the floor, but not among so many */
    RP_BENCH_NOISE,
    RP_BENCH_TOO_FEW, /* fewer than two runs on a side */
};
/* "convicted faster", … */
const char *rp_bench_verdict_name(enum rp_bench_verdict verdict);

struct rp_bench_options {
    enum rp_rate_kind rate; /* not RP_RATE_AUTO */
    double alpha;           /* 0 < alpha < 1 */
    bool fdr;               /* Benjamini-Hochberg instead of Holm */
};

enum { RP_BENCH_RISKS = 3 }; /* .05, .01, .001 */

/* One configuration. What cannot be said is NaN. Improvements, floors and half-widths are fractions of the old rate. */
struct rp_bench_row {
    uint32_t config;
    struct rp_moments arm[RP_ARMS];
    double improvement;           /* mean new / mean old - 1 */
    struct rp_t_test welch;
    double corrected;             /* Holm's p, or the false discovery rate */
    unsigned stars;               /* of p, uncorrected: .05, .01, .001 */
    double accuracy[RP_BENCH_RISKS];
    struct rp_ratio log_ratio;    /* of geometric means, with its 95 % interval */
    struct rp_ratio fieller;      /* of means, with its 95 % interval */
    struct rp_t_test paired;      /* log ratios of rounds */
    struct rp_permutation flips;  /* the same without a distribution; total 0: no pairs */
    struct rp_mann_whitney ranks;
    double again_improvement;     /* old again against old */
    double again_p, again_corrected;
    double floor;                 /* max(|again_improvement|, half-width of its 95 % interval) */
    double detectable;            /* alone, at alpha, with a power of 80 % */
    double convictable;           /* the same among so many configurations, before the second gate */
    enum rp_bench_verdict verdict;
};

struct rp_bench_verdicts {
    struct rp_bench_options options;
    RP_VEC(struct rp_bench_row) rows; /* largest improvement first, those without one last */
    size_t judged, significant, faster, slower, suspected; /* judged: with a p; significant: p < alpha, uncorrected */
    struct rp_ratio geomean;          /* interval over complete rounds; NaN below two of them */
    size_t complete_rounds;
    struct rp_ratio again_geomean;
    size_t again_judged, again_significant, again_convicted; /* the last: corrected p < alpha */
    double floor_max, floor_90;       /* the largest, and the 90th percentile */
    double detectable, convictable;   /* medians over configurations */
    size_t runs, contended, repeated; /* repeated: runs that took more than one attempt */
};

/* RP_NOMEM only. Release is safe after a failure. */
enum rp_status rp_bench_judge(const struct rp_bench *bench, const struct rp_bench_options *options, struct rp_bench_verdicts *verdicts,
                              struct rp_err *err);
void rp_bench_verdicts_release(struct rp_bench_verdicts *verdicts);

#endif
