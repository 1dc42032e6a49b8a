/* SPDX-License-Identifier: MIT */
/* A benchmark for programs: JSON with all figures, CSV with one row per configuration. See bench_report.h. */
#include <inttypes.h>
#include <math.h>

#include "report/bench_report.h"
#include "report/json_writer.h"
#include "report/utf8.h"

static const char *const arm_keys[RP_ARMS] = {[RP_ARM_OLD] = "old", [RP_ARM_AGAIN] = "old2", [RP_ARM_NEW] = "new"};
static const char *const verdict_keys[] = {[RP_BENCH_FASTER] = "faster",
                                           [RP_BENCH_SLOWER] = "slower",
                                           [RP_BENCH_SUSPECTED] = "suspected",
                                           [RP_BENCH_NOISE] = "noise",
                                           [RP_BENCH_TOO_FEW] = "too-few-runs"};
static const char *const rate_keys[] = {[RP_RATE_THREAD] = "thread", [RP_RATE_PROCESS] = "process", [RP_RATE_WALL] = "wall"};

static void key_exact(struct rp_json *w, const char *key, double value)
{
    rp_json_key(w, key);
    rp_json_general(w, value, 12);
}

static void key_interval(struct rp_json *w, const char *key, const struct rp_ratio *ratio)
{
    rp_json_key(w, key);
    rp_json_begin_inline(w, '{');
    key_exact(w, "change", ratio->ratio - 1);
    key_exact(w, "low", ratio->low - 1);
    key_exact(w, "high", ratio->high - 1);
    rp_json_end(w);
}

static void put_arms(struct rp_json *w, const struct rp_bench_row *row)
{
    for (size_t arm = 0; arm < RP_ARMS; arm++) {
        rp_json_key(w, arm_keys[arm]);
        rp_json_begin_inline(w, '{');
        rp_json_key_u64(w, "runs", row->arm[arm].n);
        rp_json_key_double(w, "rate", row->arm[arm].mean, 4);
        rp_json_key_double(w, "sd", sqrt(row->arm[arm].variance), 4);
        rp_json_end(w);
    }
}

static void put_tests(struct rp_json *w, const struct rp_bench_row *row)
{
    rp_json_key(w, "welch");
    rp_json_begin_inline(w, '{');
    key_exact(w, "t", row->welch.t);
    key_exact(w, "df", row->welch.df);
    key_exact(w, "p", row->welch.p);
    rp_json_end(w);
    rp_json_key(w, "paired");
    rp_json_begin_inline(w, '{');
    key_exact(w, "t", row->paired.t);
    key_exact(w, "p", row->paired.p);
    key_exact(w, "sign_flip_p", row->flips.p);
    rp_json_end(w);
    key_exact(w, "mann_whitney_p", row->ranks.p);
    rp_json_key(w, "accuracy");
    rp_json_begin_inline(w, '[');
    for (size_t i = 0; i < RP_BENCH_RISKS; i++)
        rp_json_double(w, row->accuracy[i], 9);
    rp_json_end(w);
}

static void put_config(struct rp_json *w, const struct rp_bench_report *r, const struct rp_bench_row *row)
{
    rp_json_begin(w, '{');
    rp_json_key_string(w, "name", r->bench->configs.at[row->config].name);
    key_exact(w, "improvement", row->improvement);
    key_exact(w, "p", row->welch.p);
    key_exact(w, r->verdicts->options.fdr ? "fdr" : "holm", row->corrected);
    key_exact(w, "floor", row->floor);
    rp_json_key_string(w, "verdict", verdict_keys[row->verdict]);
    rp_json_key_u64(w, "stars", row->stars);
    key_interval(w, "log_ratio", &row->log_ratio);
    key_interval(w, "fieller", &row->fieller);
    put_tests(w, row);
    key_exact(w, "again_improvement", row->again_improvement);
    key_exact(w, "again_p", row->again_p);
    key_exact(w, "detectable", row->detectable);
    key_exact(w, "convictable", row->convictable);
    put_arms(w, row);
    rp_json_end(w);
}

static void put_program(struct rp_json *w, const char *key, const struct rp_bench_program *p)
{
    rp_json_key(w, key);
    rp_json_begin_inline(w, '{');
    rp_json_key_string(w, "path", p->path);
    rp_json_key_string(w, "sha256", p->sha256);
    rp_json_key_string(w, "build_id", *p->build_id ? p->build_id : NULL);
    rp_json_end(w);
}

static void put_shape(struct rp_json *w, const struct rp_bench_shape_note *s)
{
    rp_json_key(w, "shape");
    rp_json_begin(w, '{');
    rp_json_key_u64(w, "configs", s->configs);
    key_exact(w, "per_call_ns", s->c);
    key_exact(w, "per_call_error", s->c_error);
    key_exact(w, "per_row_ns", s->r);
    key_exact(w, "per_row_error", s->r_error);
    key_exact(w, "chi2", s->x2);
    key_exact(w, "df", s->df);
    key_exact(w, "p", s->p);
    key_exact(w, "contrast", s->contrast);
    key_exact(w, "contrast_p", s->contrast_p);
    key_exact(w, "nothing_p", s->nothing_p);
    key_exact(w, "direction", s->direction);
    rp_json_key(w, "suspects");
    rp_json_begin(w, '[');
    for (size_t i = 0; i < s->nsuspects; i++) {
        rp_json_begin_inline(w, '{');
        rp_json_key_string(w, "name", s->suspects[i].name);
        key_exact(w, "per_call_ns", s->suspects[i].c);
        key_exact(w, "per_row_ns", s->suspects[i].r);
        key_exact(w, "chi2", s->suspects[i].x2);
        key_exact(w, "df", s->suspects[i].df);
        key_exact(w, "p", s->suspects[i].p);
        rp_json_end(w);
    }
    rp_json_end(w);
    rp_json_end(w);
}

static void put_totals(struct rp_json *w, const struct rp_bench_verdicts *v)
{
    rp_json_key_u64(w, "significant", v->significant);
    rp_json_key_u64(w, "faster", v->faster);
    rp_json_key_u64(w, "slower", v->slower);
    rp_json_key_u64(w, "suspected", v->suspected);
    key_interval(w, "geomean", &v->geomean);
    rp_json_key_u64(w, "rounds", v->complete_rounds);
    rp_json_key(w, "again");
    rp_json_begin(w, '{');
    key_interval(w, "geomean", &v->again_geomean);
    rp_json_key_u64(w, "significant", v->again_significant);
    rp_json_key_u64(w, "convicted", v->again_convicted);
    rp_json_end(w);
    key_exact(w, "floor", v->floor_max);
    key_exact(w, "floor_90", v->floor_90);
    key_exact(w, "detectable", v->detectable);
    key_exact(w, "convictable", v->convictable);
    rp_json_key_u64(w, "runs", v->runs);
    rp_json_key_u64(w, "contended", v->contended);
    rp_json_key_u64(w, "repeated", v->repeated);
}

void rp_bench_emit_json(const struct rp_bench_report *r, struct rp_buf *out)
{
    const struct rp_bench_verdicts *v = r->verdicts;
    struct rp_json w = {.out = out};

    rp_json_begin(&w, '{');
    rp_json_key_u64(&w, "schema", 1);
    if (r->programs_known) {
        put_program(&w, "old", &r->old);
        put_program(&w, "new", r->noise ? &r->old : &r->new);
    }
    rp_json_key_string(&w, "rate", rate_keys[v->options.rate]);
    rp_json_key_double(&w, "alpha", v->options.alpha, 6);
    rp_json_key_string(&w, "cpus", r->cpus);
    rp_json_key_string(&w, "cut_short", r->cut_short);
    put_totals(&w, v);
    rp_json_key(&w, "configs");
    rp_json_begin(&w, '[');
    for (size_t i = 0; i < v->rows.n; i++)
        put_config(&w, r, &v->rows.at[i]);
    rp_json_end(&w);
    if (r->shape)
        put_shape(&w, r->shape);
    rp_json_end(&w);
    rp_buf_putc(out, '\n');
}

static void put_value(struct rp_buf *out, double value)
{
    rp_buf_putc(out, ',');
    if (isfinite(value))
        rp_buf_printf(out, "%.10g", value);
}

void rp_bench_emit_csv(const struct rp_bench_report *r, struct rp_buf *out)
{
    rp_buf_puts(out, "config,improvement,low,high,p,corrected,floor,old_rate,new_rate,verdict,accuracy_05,accuracy_01,accuracy_001,t,df,detectable\r\n");
    for (size_t i = 0; i < r->verdicts->rows.n; i++) {
        const struct rp_bench_row *row = &r->verdicts->rows.at[i];
        const double first[] = {row->improvement, row->log_ratio.low - 1,        row->log_ratio.high - 1,    row->welch.p, row->corrected,
                                row->floor,       row->arm[RP_ARM_OLD].mean, row->arm[RP_ARM_NEW].mean};
        const double second[] = {row->accuracy[0], row->accuracy[1], row->accuracy[2], row->welch.t, row->welch.df, row->detectable};

        rp_text_csv(out, r->bench->configs.at[row->config].name);
        for (size_t k = 0; k < sizeof first / sizeof *first; k++)
            put_value(out, first[k]);
        rp_buf_printf(out, ",%s", verdict_keys[row->verdict]);
        for (size_t k = 0; k < sizeof second / sizeof *second; k++)
            put_value(out, second[k]);
        rp_buf_puts(out, "\r\n");
    }
}
