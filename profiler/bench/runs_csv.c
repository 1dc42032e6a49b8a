/* SPDX-License-Identifier: MIT */
/* See runs_csv.h. One table of columns serves reading and writing.
 *
 * The trap is Node's own file: blanks behind commas, quotes doubled inside quotes, statements with commas in them. */
#include "bench/runs_csv.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/io.h"
#include "base/limits.h"
#include "base/parse.h"

enum type { DOUBLE, U64, U32, BOOL };
enum { COLUMNS_MAX = 64, ROUND_MAX = 100000000, EXACT = -1 };

struct number {
    const char *name, *other; /* as we write it; as others do, or NULL */
    enum type type;
    size_t at; /* in struct rp_bench_run */
    int digits; /* DOUBLE: behind the point; EXACT: so many that the verdicts are the same when they are read back */
};

#define FIELD(name, other, type, field, digits) {name, other, type, offsetof(struct rp_bench_run, field), digits}

static const struct number numbers[] = {
    FIELD("round", NULL, U32, round, 0),
    FIELD("attempts", NULL, U32, attempts, 0),
    FIELD("contended", NULL, BOOL, contended, 0),
    FIELD("calls", "n", DOUBLE, calls, 0),
    FIELD("rows", NULL, DOUBLE, rows, 0),
    FIELD("wall_secs", "time", DOUBLE, wall_secs, 6),
    FIELD("process_secs", NULL, DOUBLE, process_secs, 6),
    FIELD("thread_secs", NULL, DOUBLE, thread_secs, 6),
    FIELD("whole_wall_secs", NULL, DOUBLE, whole_wall_secs, 6),
    FIELD("whole_cpu_secs", NULL, DOUBLE, whole_cpu_secs, 6),
    FIELD("nvcsw", NULL, U64, voluntary, 0),
    FIELD("nivcsw", NULL, U64, involuntary, 0),
    FIELD("rate", NULL, DOUBLE, rate[RP_RATE_WALL], EXACT),
    FIELD("process_rate", NULL, DOUBLE, rate[RP_RATE_PROCESS], EXACT),
    FIELD("thread_rate", "cpurate", DOUBLE, rate[RP_RATE_THREAD], EXACT),
};

enum { NUMBERS = sizeof numbers / sizeof *numbers, ROUND = 0, CONTENDED = 2 };
/* What a column holds: a number of the table above, or one of these. */
enum { BINARY = NUMBERS, CONFIG, FILENAME, CONFIGURATION, KIND, STATEMENT, UNKNOWN };

static const char *const texts[] = {"binary", "config", "filename", "configuration", "kind", "statement"};

static const struct {
    const char *name;
    enum rp_arm arm;
} arms[] = {{"old", RP_ARM_OLD}, {"old2", RP_ARM_AGAIN}, {"new", RP_ARM_NEW}, {"again", RP_ARM_AGAIN}};

const char *rp_arm_name(enum rp_arm arm)
{
    return arms[arm].name;
}

struct reader {
    struct rp_bench *bench;
    const char *path;
    size_t line;
    struct rp_cursor c;
    unsigned holds[COLUMNS_MAX];
    size_t columns;
    bool has[UNKNOWN];
    struct rp_buf field, name;
    struct rp_buf parts[UNKNOWN]; /* the texts of a row; those of numbers stay empty */
    RP_VEC(struct { uint32_t n[RP_ARMS]; }) rounds; /* by configuration: the next one of each arm, for files that tell none */
};

static enum rp_status complain(const struct reader *r, const char *what, const char *text, struct rp_err *err)
{
    return rp_fail(err, RP_FORMAT, "%s:%zu: %s%s%.80s%s", r->path, r->line, what, text ? " '" : "", text ? text : "", text ? "'" : "");
}

/* The next field into r->field; *last when the line ends behind it. */
static enum rp_status next_field(struct reader *r, bool *last, struct rp_err *err)
{
    struct rp_cursor *c = &r->c;

    rp_buf_clear(&r->field);
    rp_cursor_skip_blanks(c);
    if (rp_cursor_take(c, "\"")) {
        for (;;) {
            if (rp_cursor_done(c))
                return complain(r, "a quote is never closed", NULL, err);
            if (*c->at == '"' && (c->at + 1 == c->end || c->at[1] != '"'))
                break;
            c->at += *c->at == '"';
            if (*c->at == '\n' || !*c->at)
                return complain(r, "a quoted text holds a line end or a NUL byte", NULL, err);
            rp_buf_putc(&r->field, *c->at++);
        }
        c->at++;
        rp_cursor_skip_blanks(c);
    } else {
        while (!rp_cursor_done(c) && *c->at != ',' && *c->at != '\n' && *c->at != '\r')
            rp_buf_putc(&r->field, *c->at++);
        while (r->field.length && (r->field.data[r->field.length - 1] == ' ' || r->field.data[r->field.length - 1] == '\t'))
            r->field.data[--r->field.length] = '\0';
    }
    if (r->field.failed)
        return rp_fail_nomem(err);
    if (strlen(rp_buf_text(&r->field)) != r->field.length)
        return complain(r, "there is a NUL byte: this is no text", NULL, err);
    *last = false;
    if (rp_cursor_take(c, ","))
        return RP_OK;
    *last = true;
    (void)rp_cursor_take(c, "\r");
    if (!rp_cursor_done(c) && !rp_cursor_take(c, "\n"))
        return complain(r, "there is no comma behind", rp_buf_text(&r->field), err);
    return RP_OK;
}

static unsigned find_column(const char *name)
{
    for (unsigned i = 0; i < NUMBERS; i++) {
        if (!strcmp(name, numbers[i].name) || (numbers[i].other && !strcmp(name, numbers[i].other)))
            return i;
    }
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!strcmp(name, texts[i]))
            return BINARY + i;
    }
    return UNKNOWN;
}

static enum rp_status read_header(struct reader *r, struct rp_err *err)
{
    enum rp_status status = RP_OK;

    for (bool last = false; !last;) {
        unsigned column;

        if (next_field(r, &last, err))
            return err->status;
        if (r->columns == COLUMNS_MAX)
            return rp_fail(err, RP_LIMIT, "%s:1: there are more than %d columns", r->path, COLUMNS_MAX);
        column = find_column(rp_buf_text(&r->field));
        if (column < UNKNOWN && r->has[column])
            return complain(r, "two columns are named", rp_buf_text(&r->field), err);
        r->holds[r->columns++] = column;
        if (column < UNKNOWN)
            r->has[column] = true;
    }
    if (!r->has[BINARY])
        status = complain(r, "there is no column `binary`; the first line names the columns, such as binary,config,round,rate", NULL, err);
    else if (!r->has[CONFIG] && !r->has[CONFIGURATION] && !r->has[STATEMENT])
        status = complain(r, "no column names the configuration (config, filename and configuration, or kind and statement)", NULL, err);
    else if (!r->has[find_column("rate")] && !r->has[find_column("process_rate")] && !r->has[find_column("thread_rate")])
        status = complain(r, "there is no column with a rate (rate, process_rate, thread_rate or cpurate)", NULL, err);
    return status;
}

/* An empty field is a figure that is not known. */
static bool take_number(const struct number *number, const char *text, struct rp_bench_run *run)
{
    char *at = (char *)run + number->at;
    double value = 0;
    uint64_t whole = 0;

    if (!*text)
        return true;
    if (number->type == DOUBLE) {
        bool rate = number->at >= offsetof(struct rp_bench_run, rate) && number->at < offsetof(struct rp_bench_run, calls);

        /* Rates are divided by and taken logarithms of. */
        if (!rp_parse_double(text, rate ? 1e-12 : 0, 1e15, &value))
            return false;
        memcpy(at, &value, sizeof value);
        return true;
    }
    if (!rp_parse_u64(text, 0, number->type == BOOL ? 1 : number->type == U32 ? ROUND_MAX : UINT64_MAX, &whole))
        return false;
    if (number->type == BOOL)
        memcpy(at, &(bool){whole != 0}, sizeof(bool));
    else if (number->type == U32)
        memcpy(at, &(uint32_t){(uint32_t)whole}, sizeof(uint32_t));
    else
        memcpy(at, &whole, sizeof whole);
    return true;
}

static enum rp_status take_field(struct reader *r, unsigned holds, struct rp_bench_run *run, struct rp_err *err)
{
    const char *text = rp_buf_text(&r->field);

    if (holds < NUMBERS && !take_number(&numbers[holds], text, run))
        return rp_fail(err, RP_FORMAT, "%s:%zu: %s takes a number, not '%.80s'", r->path, r->line, numbers[holds].name, text);
    if (holds >= BINARY && holds < UNKNOWN) {
        rp_buf_clear(&r->parts[holds]);
        rp_buf_puts(&r->parts[holds], text);
        if (r->parts[holds].failed)
            return rp_fail_nomem(err);
    }
    return RP_OK;
}

static void put_part(struct reader *r, unsigned part)
{
    if (r->has[part] && r->parts[part].length)
        rp_buf_printf(&r->name, "%s%s", r->name.length ? " " : "", rp_buf_text(&r->parts[part]));
}

static enum rp_status find_arm(const struct reader *r, enum rp_arm *arm, struct rp_err *err)
{
    for (size_t i = 0; i < sizeof arms / sizeof *arms; i++) {
        if (!strcmp(rp_buf_text(&r->parts[BINARY]), arms[i].name)) {
            *arm = arms[i].arm;
            return RP_OK;
        }
    }
    return complain(r, "binary is old, old2 or new, not", rp_buf_text(&r->parts[BINARY]), err);
}

/* What the file leaves open: the round, and whether the run was contended. */
static enum rp_status complete(struct reader *r, struct rp_bench_run *run, struct rp_err *err)
{
    double cpu = isnan(run->rate[RP_RATE_THREAD]) ? run->rate[RP_RATE_PROCESS] : run->rate[RP_RATE_THREAD];

    while (!r->has[ROUND] && r->rounds.n <= run->config) {
        if (!rp_vec_reserve(&r->rounds, 1))
            return rp_fail_nomem(err);
        memset(&r->rounds.at[r->rounds.n++], 0, sizeof *r->rounds.at);
    }
    if (!r->has[ROUND])
        run->round = r->rounds.at[run->config].n[run->arm]++;
    if (!r->has[CONTENDED])
        run->contended = run->rate[RP_RATE_WALL] / cpu < RP_CONTENDED;
    if (run->rows > 0 && run->calls > 0)
        r->bench->configs.at[run->config].rows = run->rows / run->calls;
    return RP_OK;
}

static enum rp_status read_row(struct reader *r, struct rp_err *err)
{
    struct rp_bench_run run = {.rate = {NAN, NAN, NAN}, .attempts = 1};
    enum rp_status status = RP_OK;
    bool last = false;
    size_t i = 0;

    for (; !last && !status; i++) {
        status = next_field(r, &last, err);
        if (!status && i == r->columns)
            status = complain(r, "the line has more fields than the first one names", NULL, err);
        if (!status)
            status = take_field(r, r->holds[i], &run, err);
    }
    if (!status && i < r->columns)
        status = complain(r, "the line has fewer fields than the first one names", NULL, err);
    if (!status)
        status = find_arm(r, &run.arm, err);
    if (status)
        return status;
    rp_buf_clear(&r->name);
    for (unsigned part = CONFIG; part < UNKNOWN; part++)
        put_part(r, part);
    if (r->name.failed)
        return rp_fail_nomem(err);
    status = rp_bench_config(r->bench, rp_buf_text(&r->name), r->name.length, &run.config, err);
    if (!status)
        status = complete(r, &run, err);
    return status ? status : rp_bench_add(r->bench, &run, err);
}

enum rp_status rp_runs_parse(struct rp_bench *bench, const char *path, const char *text, size_t length, struct rp_err *err)
{
    struct reader r = {.bench = bench, .path = path, .line = 1, .c = rp_cursor_of(text, length)};
    enum rp_status status;

    (void)rp_cursor_take(&r.c, "\xef\xbb\xbf");
    status = read_header(&r, err);
    while (!status && !rp_cursor_done(&r.c)) {
        r.line++;
        if (*r.c.at == '\n' || *r.c.at == '\r')
            r.c.at++;
        else
            status = read_row(&r, err);
    }
    if (!status && !bench->runs.n)
        status = rp_fail(err, RP_FORMAT, "%s holds no runs", path);
    rp_buf_release(&r.field);
    rp_buf_release(&r.name);
    for (size_t i = 0; i < UNKNOWN; i++)
        rp_buf_release(&r.parts[i]);
    rp_vec_release(&r.rounds);
    return status;
}

enum rp_status rp_runs_read(struct rp_bench *bench, const char *path, struct rp_err *err)
{
    struct rp_buf text = {0};
    enum rp_status status = rp_read_named_file(path, RP_BENCH_FILE_MAX, &text, err);

    if (!status)
        status = rp_runs_parse(bench, path, rp_buf_text(&text), text.length, err);
    rp_buf_release(&text);
    return status;
}

void rp_runs_put_header(struct rp_buf *out)
{
    rp_buf_puts(out, "binary,config");
    for (size_t i = 0; i < NUMBERS; i++)
        rp_buf_printf(out, ",%s", numbers[i].name);
    rp_buf_putc(out, '\n');
}

static void put_number(const struct number *number, const struct rp_bench_run *run, struct rp_buf *out)
{
    const char *at = (const char *)run + number->at;
    double value;
    uint64_t whole;
    uint32_t half;
    bool yes;

    if (number->type == DOUBLE) {
        memcpy(&value, at, sizeof value);
        if (!isnan(value) && value > 0)
            rp_buf_printf(out, number->digits == EXACT ? "%.*g" : "%.*f", number->digits == EXACT ? 15 : number->digits, value);
    } else if (number->type == U64) {
        memcpy(&whole, at, sizeof whole);
        rp_buf_printf(out, "%" PRIu64, whole);
    } else if (number->type == U32) {
        memcpy(&half, at, sizeof half);
        rp_buf_printf(out, "%" PRIu32, half);
    } else {
        memcpy(&yes, at, sizeof yes);
        rp_buf_putc(out, yes ? '1' : '0');
    }
}

void rp_runs_put(const struct rp_bench *bench, const struct rp_bench_run *run, struct rp_buf *out)
{
    rp_buf_printf(out, "%s,\"", rp_arm_name(run->arm));
    for (const char *c = bench->configs.at[run->config].name; *c; c++) {
        if (*c == '"')
            rp_buf_putc(out, '"');
        rp_buf_putc(out, *c);
    }
    rp_buf_putc(out, '"');
    for (size_t i = 0; i < NUMBERS; i++) {
        rp_buf_putc(out, ',');
        put_number(&numbers[i], run, out);
    }
    rp_buf_putc(out, '\n');
}
