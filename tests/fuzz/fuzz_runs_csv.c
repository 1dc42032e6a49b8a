/* SPDX-License-Identifier: MIT */
/* Any bytes as a file of runs: taken or refused with a sentence. What was taken is judged, and reads the same when it was written out again. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/runs_csv.h"
#include "report/bench_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void show(const struct rp_bench *bench)
{
    struct rp_bench_options options = {.rate = rp_bench_pick_rate(bench), .alpha = 0.05};
    struct rp_bench_verdicts verdicts;
    struct rp_bench_report report = {.bench = bench, .verdicts = &verdicts, .verbose = true};
    struct rp_err err;

    if (rp_bench_judge(bench, &options, &verdicts, &err))
        abort();
    for (const struct rp_bench_format *f = rp_bench_formats; f->name; f++) {
        struct rp_buf out = {0};

        f->emit(&report, &out);
        if (out.failed)
            abort();
        rp_buf_release(&out);
    }
    rp_bench_verdicts_release(&verdicts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_bench bench = {0}, again = {0};
    struct rp_buf text = {0};
    struct rp_err err = {0};

    if (rp_runs_parse(&bench, "f", size ? (const char *)data : "", size, &err)) {
        if (!err.text[0])
            abort();
    } else if (size < 4096) {
        show(&bench);
        rp_runs_put_header(&text);
        for (size_t i = 0; i < bench.runs.n; i++)
            rp_runs_put(&bench, &bench.runs.at[i], &text);
        if (rp_runs_parse(&again, "g", rp_buf_text(&text), text.length, &err) || again.runs.n != bench.runs.n || again.configs.n != bench.configs.n)
            abort();
    }
    rp_buf_release(&text);
    rp_bench_release(&bench);
    rp_bench_release(&again);
    return 0;
}
