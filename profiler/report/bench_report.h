/* SPDX-License-Identifier: MIT */
/* The verdicts of a benchmark as text, Markdown, JSON and CSV. README.md describes the forms. */
#ifndef RP_REPORT_BENCH_REPORT_H
#define RP_REPORT_BENCH_REPORT_H

#include "analyze/bench.h"
#include "base/buf.h"

/* A program that was measured. */
struct rp_bench_program {
    const char *path, *sha256, *build_id; /* build_id: "" when it has none */
};

/* One profile's opinion on the saving: a category whose removal would save c + r x rows ns per call. */
struct rp_bench_suspect {
    const char *name;
    double c, r;
    double x2, df, p;
};

/* Does the saving have a shape? */
struct rp_bench_shape_note {
    size_t configs;        /* with a known number of rows */
    double c, c_error, r, r_error, x2, df, p;
    double contrast, contrast_p; /* mean log ratio at the fewest rows minus that at the most */
    double few, many;            /* these numbers of rows */
    double nothing_p;            /* that nothing was saved anywhere: suspects mean little unless this is small */
    double direction;            /* of all together, in standard errors (rp_saving_direction): below 0 new is slower */
    const struct rp_bench_suspect *suspects;
    size_t nsuspects;
};

struct rp_bench_report {
    const struct rp_bench *bench;
    const struct rp_bench_verdicts *verdicts;
    bool programs_known;
    struct rp_bench_program old, new;
    bool noise;     /* three copies of one program: nothing should be convicted */
    const char *cpus;      /* to which it was kept, as asked for; NULL: to none */
    const char *cut_short; /* why it ended early; NULL: it did not */
    const struct rp_bench_shape_note *shape; /* NULL: not asked for */
    bool color, verbose;
};

struct rp_bench_format {
    const char *name;
    void (*emit)(const struct rp_bench_report *report, struct rp_buf *out);
};
/* NULL: no such format. Ends with a row without a name. */
extern const struct rp_bench_format rp_bench_formats[];
const struct rp_bench_format *rp_bench_format_find(const char *name);

void rp_bench_emit_json(const struct rp_bench_report *report, struct rp_buf *out);
void rp_bench_emit_csv(const struct rp_bench_report *report, struct rp_buf *out);

#endif
