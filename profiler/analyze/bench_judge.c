/* SPDX-License-Identifier: MIT */
/* From runs to verdicts. See bench.h.
 *
 * The trap is the pairing: round r of one arm belongs to round r of another, also when runs are missing at the end (interrupted) or in the middle (failed), so
 * paired figures look rounds up and never rely on positions. */
#include <math.h>
#include <stdlib.h>

#include "analyze/bench.h"
#include "base/limits.h"

static const double stars_at[] = {.05, .01, .001};
static const double power = 0.8;

/* The runs of one configuration, by arm: rates, and the round of each. Room for all runs of the bench. */
struct slice {
    double *rate[RP_ARMS];
    uint32_t *round[RP_ARMS];
    size_t n[RP_ARMS];
};

struct judge {
    const struct rp_bench *bench;
    const struct rp_bench_options *options;
    size_t *order; /* run positions by configuration, otherwise as they were run */
    size_t *begin; /* first place in `order` of each configuration, and one more */
    struct slice slice;
    double *scratch; /* room for all runs */
    uint32_t rounds; /* the largest round and one */
};

static void release(struct judge *j)
{
    rp_free(j->order);
    rp_free(j->begin);
    rp_free(j->scratch);
    for (size_t arm = 0; arm < RP_ARMS; arm++) {
        rp_free(j->slice.rate[arm]);
        rp_free(j->slice.round[arm]);
    }
}

static bool init(struct judge *j)
{
    size_t n = j->bench->runs.n, configs = j->bench->configs.n;
    bool ok;

    j->order = rp_calloc(n + 1, sizeof *j->order);
    j->begin = rp_calloc(configs + 2, sizeof *j->begin);
    j->scratch = rp_calloc(n + 1, sizeof *j->scratch);
    ok = j->order && j->begin && j->scratch;
    for (size_t arm = 0; arm < RP_ARMS; arm++) {
        j->slice.rate[arm] = rp_calloc(n + 1, sizeof *j->slice.rate[arm]);
        j->slice.round[arm] = rp_calloc(n + 1, sizeof *j->slice.round[arm]);
        ok = ok && j->slice.rate[arm] && j->slice.round[arm];
    }
    if (!ok)
        return false;
    /* A counting sort: begin[c + 1] counts, then sums up, and has moved to the end of c when all are placed. */
    for (size_t i = 0; i < n; i++) {
        const struct rp_bench_run *run = &j->bench->runs.at[i];

        j->begin[run->config + 2]++;
        j->rounds = run->round >= j->rounds ? run->round + 1 : j->rounds;
    }
    for (size_t c = 2; c < configs + 2; c++)
        j->begin[c] += j->begin[c - 1];
    for (size_t i = 0; i < n; i++)
        j->order[j->begin[j->bench->runs.at[i].config + 1]++] = i;
    return true;
}

/* Runs without this rate, or with none at all, are left out. */
static void take_slice(struct judge *j, uint32_t config)
{
    for (size_t arm = 0; arm < RP_ARMS; arm++)
        j->slice.n[arm] = 0;
    for (size_t i = j->begin[config]; i < j->begin[config + 1]; i++) {
        const struct rp_bench_run *run = &j->bench->runs.at[j->order[i]];
        size_t *n = &j->slice.n[run->arm];

        if (!(run->rate[j->options->rate] > 0))
            continue;
        j->slice.rate[run->arm][*n] = run->rate[j->options->rate];
        j->slice.round[run->arm][(*n)++] = run->round;
    }
}

static size_t find_round(const struct slice *s, enum rp_arm arm, uint32_t round, size_t near)
{
    if (near < s->n[arm] && s->round[arm][near] == round)
        return near;
    for (size_t i = 0; i < s->n[arm]; i++) {
        if (s->round[arm][i] == round)
            return i;
    }
    return SIZE_MAX;
}

/* Log ratios of the rounds in which both arms were run, in the order of the old; returns how many. */
static size_t pair_up(const struct slice *s, double *out)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n[RP_ARM_OLD]; i++) {
        size_t other = find_round(s, RP_ARM_NEW, s->round[RP_ARM_OLD][i], i);

        if (other != SIZE_MAX)
            out[n++] = log(s->rate[RP_ARM_NEW][other] / s->rate[RP_ARM_OLD][i]);
    }
    return n;
}

static unsigned count_stars(double p)
{
    unsigned n = 0;

    for (size_t i = 0; i < sizeof stars_at / sizeof *stars_at; i++)
        n += p < stars_at[i];
    return n;
}

static double improvement_of(const struct rp_moments *old, const struct rp_moments *new)
{
    return old->n && new->n ? new->mean / old->mean - 1 : NAN;
}

static void judge_again(struct rp_bench_row *row)
{
    const struct rp_moments *old = &row->arm[RP_ARM_OLD], *again = &row->arm[RP_ARM_AGAIN];
    struct rp_t_test test = rp_welch(old, again);
    double half = rp_accuracy(&test, old->mean, .05);

    row->again_improvement = improvement_of(old, again);
    row->again_p = test.p;
    row->floor = old->n > 1 && again->n > 1 ? fmax(fabs(row->again_improvement), half) : NAN;
}

static enum rp_status judge_row(struct judge *j, uint32_t config, struct rp_bench_row *row, struct rp_err *err)
{
    const struct slice *s = &j->slice;
    const struct rp_moments *old = &row->arm[RP_ARM_OLD], *new = &row->arm[RP_ARM_NEW];
    enum rp_status status;
    size_t pairs;

    *row = (struct rp_bench_row){.config = config, .corrected = NAN, .again_corrected = NAN, .convictable = NAN};
    take_slice(j, config);
    for (size_t arm = 0; arm < RP_ARMS; arm++)
        row->arm[arm] = rp_moments_of(s->rate[arm], s->n[arm]);
    judge_again(row);
    row->improvement = improvement_of(old, new);
    row->welch = rp_welch(old, new);
    for (size_t i = 0; i < RP_BENCH_RISKS; i++)
        row->accuracy[i] = rp_accuracy(&row->welch, old->mean, stars_at[i]);
    row->stars = count_stars(row->welch.p);
    row->fieller = rp_fieller(old, new, 0.95);
    row->detectable = rp_detectable(old, new, j->options->alpha, power);
    pairs = pair_up(s, j->scratch);
    row->paired = rp_t_mean(j->scratch, pairs);
    if (pairs)
        row->flips = rp_sign_flip(j->scratch, pairs, config + 1u);
    else
        row->flips.p = NAN;
    status = rp_log_welch(s->rate[RP_ARM_OLD], old->n, s->rate[RP_ARM_NEW], new->n, 0.95, &row->log_ratio, err);
    if (!status)
        status = rp_mann_whitney(s->rate[RP_ARM_OLD], old->n, s->rate[RP_ARM_NEW], new->n, &row->ranks, err);
    return status;
}

/* Corrects the p-values that there are; `at` finds them in a row, and where the corrected one goes. */
static enum rp_status correct(struct rp_bench_verdicts *v, const double *(*from)(const struct rp_bench_row *row),
                              double *(*to)(struct rp_bench_row *row), struct rp_err *err)
{
    size_t n = 0, k = 0;
    double *p = rp_calloc(v->rows.n + 1, sizeof *p);
    uint32_t *order = rp_calloc(v->rows.n + 1, sizeof *order);

    if (!p || !order) {
        rp_free(p);
        rp_free(order);
        return rp_fail_nomem(err);
    }
    for (size_t i = 0; i < v->rows.n; i++) {
        if (!isnan(*from(&v->rows.at[i])))
            p[n++] = *from(&v->rows.at[i]);
    }
    if (v->options.fdr)
        rp_benjamini_hochberg(p, n, order);
    else
        rp_holm(p, n, order);
    for (size_t i = 0; i < v->rows.n; i++)
        *to(&v->rows.at[i]) = isnan(*from(&v->rows.at[i])) ? NAN : p[k++];
    rp_free(p);
    rp_free(order);
    return RP_OK;
}

static const double *p_of(const struct rp_bench_row *row)
{
    return &row->welch.p;
}

static double *corrected_of(struct rp_bench_row *row)
{
    return &row->corrected;
}

static const double *again_p_of(const struct rp_bench_row *row)
{
    return &row->again_p;
}

static double *again_corrected_of(struct rp_bench_row *row)
{
    return &row->again_corrected;
}

/* Without a floor nothing is convicted: how far the old is from itself was not measured. */
static enum rp_bench_verdict verdict_of(const struct rp_bench_row *row, double alpha)
{
    bool beyond = isnan(row->floor) || fabs(row->improvement) > row->floor;

    if (isnan(row->welch.p))
        return RP_BENCH_TOO_FEW;
    if (!(row->welch.p < alpha) || !beyond)
        return RP_BENCH_NOISE;
    if (isnan(row->floor) || !(row->corrected < alpha))
        return RP_BENCH_SUSPECTED;
    return row->improvement > 0 ? RP_BENCH_FASTER : RP_BENCH_SLOWER;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The quantile of what is known of one field over the rows, interpolated between neighbours; NaN when nothing is. */
static double quantile(const struct rp_bench_verdicts *v, double *scratch, double (*of)(const struct rp_bench_row *row), double q)
{
    size_t n = 0, low;
    double at;

    for (size_t i = 0; i < v->rows.n; i++) {
        double value = of(&v->rows.at[i]);

        if (!isnan(value))
            scratch[n++] = value;
    }
    if (!n)
        return NAN;
    qsort(scratch, n, sizeof *scratch, by_value);
    at = q * (double)(n - 1);
    low = (size_t)at;
    return low + 1 < n ? scratch[low] + (at - (double)low) * (scratch[low + 1] - scratch[low]) : scratch[n - 1];
}

static double floor_of(const struct rp_bench_row *row)
{
    return row->floor;
}

static double detectable_of(const struct rp_bench_row *row)
{
    return row->detectable;
}

static double convictable_of(const struct rp_bench_row *row)
{
    return row->convictable;
}

static double improved_of(const struct rp_bench_row *row)
{
    return row->improvement;
}

static double again_of(const struct rp_bench_row *row)
{
    return row->again_improvement;
}

/* exp of the mean log of ratios of means. */
static double geomean_of(const struct rp_bench_verdicts *v, double *scratch, double (*of)(const struct rp_bench_row *row))
{
    size_t n = 0;

    for (size_t i = 0; i < v->rows.n; i++) {
        double improvement = of(&v->rows.at[i]);

        if (!isnan(improvement))
            scratch[n++] = 1 + improvement;
    }
    return n ? rp_geomean(scratch, n) : NAN;
}

/* The log ratios of rounds in which every configuration of the two arms was run, as rp_geomean_rounds takes them. The matrix is filled by configuration
 * and round, then squeezed to the complete rounds. */
static enum rp_status geomean_interval(struct judge *j, enum rp_arm arm, struct rp_ratio *ratio, size_t *complete, struct rp_err *err)
{
    size_t configs = j->bench->configs.n, rounds = j->rounds, kept = 0, sum = 0;
    double *logs;
    enum rp_status status = RP_OK;

    /* Rounds are numbered by whoever wrote the file. A complete round has two runs of each configuration, so there are no more of them than this. */
    if (rounds > j->bench->runs.n)
        rounds = j->bench->runs.n;
    if (!configs || !rounds || __builtin_mul_overflow(configs, rounds, &sum) || sum > (size_t)RP_BENCH_MATRIX_MAX)
        return RP_OK;
    logs = rp_calloc(sum, sizeof *logs);
    if (!logs)
        return rp_fail_nomem(err);
    for (size_t i = 0; i < sum; i++)
        logs[i] = NAN;
    for (uint32_t c = 0; c < configs; c++) {
        take_slice(j, c);
        for (size_t i = 0; i < j->slice.n[RP_ARM_OLD]; i++) {
            uint32_t round = j->slice.round[RP_ARM_OLD][i];
            size_t other = find_round(&j->slice, arm, round, i);

            if (other != SIZE_MAX && round < rounds)
                logs[c * rounds + round] = log(j->slice.rate[arm][other] / j->slice.rate[RP_ARM_OLD][i]);
        }
    }
    for (size_t r = 0; r < rounds; r++) {
        bool whole = true;

        for (size_t c = 0; whole && c < configs; c++)
            whole = !isnan(logs[c * rounds + r]);
        for (size_t c = 0; whole && c < configs; c++)
            logs[c * rounds + kept] = logs[c * rounds + r];
        kept += whole;
    }
    for (size_t c = 1; c < configs; c++) {
        for (size_t r = 0; r < kept; r++)
            logs[c * kept + r] = logs[c * rounds + r];
    }
    *complete = kept;
    if (kept > 1)
        status = rp_geomean_rounds(logs, configs, kept, 0.95, ratio, err);
    rp_free(logs);
    return status;
}

/* Largest improvement first, those without one last; configurations in their order where equal. */
static int by_improvement(const void *a, const void *b)
{
    const struct rp_bench_row *x = a, *y = b;

    if (isnan(x->improvement) || isnan(y->improvement) || (!(x->improvement < y->improvement) && !(x->improvement > y->improvement))) {
        int nans = isnan(x->improvement) - isnan(y->improvement);

        return nans ? nans : x->config < y->config ? -1 : x->config > y->config;
    }
    return x->improvement > y->improvement ? -1 : 1;
}

static void count_verdicts(struct rp_bench_verdicts *v)
{
    double alpha = v->options.alpha;

    for (size_t i = 0; i < v->rows.n; i++) {
        struct rp_bench_row *row = &v->rows.at[i];

        row->verdict = verdict_of(row, alpha);
        row->convictable = rp_detectable(&row->arm[RP_ARM_OLD], &row->arm[RP_ARM_NEW], alpha / (double)(v->rows.n), power);
        v->judged += isnan(row->welch.p) ? 0 : 1;
        v->significant += row->welch.p < alpha;
        v->faster += row->verdict == RP_BENCH_FASTER;
        v->slower += row->verdict == RP_BENCH_SLOWER;
        v->suspected += row->verdict == RP_BENCH_SUSPECTED;
        v->again_judged += isnan(row->again_p) ? 0 : 1;
        v->again_significant += row->again_p < alpha;
        v->again_convicted += row->again_corrected < alpha;
    }
}

static void count_runs(const struct rp_bench *bench, struct rp_bench_verdicts *v)
{
    v->runs = bench->runs.n;
    for (size_t i = 0; i < bench->runs.n; i++) {
        v->contended += bench->runs.at[i].contended;
        v->repeated += bench->runs.at[i].attempts > 1;
    }
}

/* Everything that is said of all configurations together. */
static enum rp_status sum_up(struct judge *j, struct rp_bench_verdicts *v, struct rp_err *err)
{
    size_t ignored;
    enum rp_status status;

    count_verdicts(v);
    count_runs(j->bench, v);
    v->floor_max = quantile(v, j->scratch, floor_of, 1);
    v->floor_90 = quantile(v, j->scratch, floor_of, 0.9);
    v->detectable = quantile(v, j->scratch, detectable_of, 0.5);
    v->convictable = quantile(v, j->scratch, convictable_of, 0.5);
    v->geomean = v->again_geomean = (struct rp_ratio){NAN, NAN, NAN, NAN};
    status = geomean_interval(j, RP_ARM_NEW, &v->geomean, &v->complete_rounds, err);
    if (!status)
        status = geomean_interval(j, RP_ARM_AGAIN, &v->again_geomean, &ignored, err);
    v->geomean.ratio = geomean_of(v, j->scratch, improved_of);
    v->again_geomean.ratio = geomean_of(v, j->scratch, again_of);
    return status;
}

enum rp_status rp_bench_judge(const struct rp_bench *bench, const struct rp_bench_options *options, struct rp_bench_verdicts *verdicts,
                              struct rp_err *err)
{
    struct judge j = {.bench = bench, .options = options};
    enum rp_status status = RP_OK;

    *verdicts = (struct rp_bench_verdicts){.options = *options};
    if (!init(&j) || !rp_vec_reserve(&verdicts->rows, bench->configs.n + 1)) {
        status = rp_fail_nomem(err);
        goto done;
    }
    for (uint32_t c = 0; !status && c < bench->configs.n; c++)
        status = judge_row(&j, c, &verdicts->rows.at[verdicts->rows.n++], err);
    if (!status)
        status = correct(verdicts, p_of, corrected_of, err);
    if (!status)
        status = correct(verdicts, again_p_of, again_corrected_of, err);
    if (!status)
        status = sum_up(&j, verdicts, err);
    if (!status)
        qsort(verdicts->rows.at, verdicts->rows.n, sizeof *verdicts->rows.at, by_improvement);
done:
    release(&j);
    return status;
}

void rp_bench_verdicts_release(struct rp_bench_verdicts *verdicts)
{
    rp_vec_release(&verdicts->rows);
}
