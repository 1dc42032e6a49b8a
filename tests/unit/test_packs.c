/* SPDX-License-Identifier: MIT */
/* The shipped packs against their cases and against published profiles.
 *
 * tests/fixtures/node_symbols.tsv lists the symbols that hold 95-97 % of the samples of Node's get() and all(), with the category each was
 * published under; it was made without this program. The trap in it is the context: rows marked `ctx` name the usual category and the most
 * frequent direct caller, and these two need not belong together (the other callers outweigh it). Such a row may also land in one of the
 * categories its last column lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/io.h"
#include "base/parse.h"
#include "categorize/categorize.h"
#include "categorize/packs.h"
#include "symbolize/symbolize.h"

enum { FILE_MAX = 1 << 20, FRAMES_MAX = 3, FIELD_MAX = 512, PROFILES = 4 };

/* The table's short names of categories. */
static const struct {
    const char *listed, *id;
} categories[] = {
    {"mutex", "pthread.mutex"}, {"malloc", "libc.malloc"},   {"vdbe_btree", "sqlite.vdbe"}, {"sqlite_capi", "sqlite.capi"},
    {"colname", "v8.names"},    {"v8_object", "v8.objects"}, {"v8_buffer", "v8.buffers"},   {"v8_string", "v8.strings"},
    {"v8_number", "v8.numbers"}, {"v8_array", "v8.arrays"},  {"node_sqlite", "node.sqlite"}, {"gc", "v8.gc"},
    {"js", "js"},               {"v8_handles", "node.sqlite"},
};

/* The next frame of rows whose listed caller only passes the question on; taken from stacks of Node 24 and 26. */
static const struct {
    const char *leaf, *next;
} deeper[] = {
    {"v8::internal::Factory::InitializeJSObjectBody", "v8::internal::Factory::NewJSArrayBufferView"},
    {"v8::internal::PerThreadAssertScope<true, 2>::IsAllowed", "v8::internal::Factory::NewMap"},
    {"v8::internal::JSObject::InitializeBody", "v8::internal::Factory::NewJSArrayBufferView"},
};

/* Listed by the API call around them; they run only while garbage is collected, whoever's allocation set it off. */
static const char *const collecting[] = {"v8::internal::(anonymous namespace)::IterateObjectCache"};

struct packs {
    struct cat_rules *rules;
    struct cat_matcher *matcher;
};

struct row {
    char symbol[FIELD_MAX], module[64], category[32], rule[16], caller[FIELD_MAX], others[128];
    double share[PROFILES]; /* of the published profiles, percent */
};

static void packs_open(struct packs *packs)
{
    struct rp_buf problems = {0};
    struct rp_err err = {0};

    if (cat_rules_new(&packs->rules, &err) != RP_OK || cat_rules_add_shipped(packs->rules, &problems, &err) != RP_OK ||
        cat_rules_finish(packs->rules, &problems, &err) != RP_OK || cat_matcher_new(packs->rules, &packs->matcher, &err) != RP_OK)
        fail_msg("%s\n%s", err.text, rp_buf_text(&problems));
    rp_buf_release(&problems);
}

static void packs_close(struct packs *packs)
{
    cat_matcher_free(packs->matcher);
    cat_rules_free(packs->rules);
}

static void file_read(const char *name, struct rp_buf *text)
{
    char path[FIELD_MAX];
    struct rp_err err = {0};

    (void)snprintf(path, sizeof path, "%s/%s", ROWPROF_SOURCE_DIR, name);
    if (rp_read_file(path, FILE_MAX, text, &err) != RP_OK)
        fail_msg("%s", err.text);
}

/* ---- cases ---- */

/* Runs NAME.cases of a pack and asks that each rule of NAME.yaml wins one of them. */
static unsigned pack_check(const struct packs *packs, const char *name)
{
    size_t nrules = cat_rules_nrules(packs->rules), passed = 0, failed = 0, stem = strlen(name) - strlen(".yaml");
    bool *hit = calloc(nrules + 1, sizeof *hit);
    struct rp_buf text = {0}, out = {0};
    struct rp_err err = {0};
    char path[128];
    unsigned bad = 0;

    assert_non_null(hit);
    (void)snprintf(path, sizeof path, "rules/%.*s.cases", (int)stem, name);
    file_read(path, &text);
    if (cat_cases_run(packs->rules, path, rp_buf_text(&text), text.length, &out, &passed, &failed, hit, &err) != RP_OK)
        fail_msg("%s", err.text);
    if (failed || !passed)
        print_error("%s: %zu passed, %zu failed\n%s", path, passed, failed, rp_buf_text(&out));
    bad += failed || !passed;
    (void)snprintf(path, sizeof path, "shipped/%s", name);
    for (size_t i = 0; i < nrules; i++) {
        const struct cat_rule_info *info = cat_rules_rule(packs->rules, (uint32_t)i);

        if (info->through || hit[i] || strcmp(info->file, path) != 0)
            continue;
        print_error("%s:%u: no case is won by rule %s\n", info->file, info->line, info->id);
        bad++;
    }
    rp_buf_release(&out);
    rp_buf_release(&text);
    free(hit);
    return bad;
}

static void test_every_rule_of_every_pack_wins_a_case(void **state)
{
    struct packs packs = {0};
    unsigned bad = 0, n = 0;

    (void)state;
    packs_open(&packs);
    for (const struct cat_pack *pack = cat_packs; pack->name; pack++, n++)
        bad += pack_check(&packs, pack->name);
    assert_int_equal(bad, 0);
    assert_true(n >= 8);
    packs_close(&packs);
}

/* The names a reader of published profiles looks for. */
static void test_published_names(void **state)
{
    static const char *const names[] = {
        "pthread mutex", "sqlite VDBE + btree (real query work)", "sqlite C API entry points", "V8 object construction (dictionary-mode rows)",
        "malloc/free", "column-name interning (V8 strings)", "V8 buffers (BLOB -> Uint8Array)", "node:sqlite binding", "uncategorized"};
    struct packs packs = {0};

    (void)state;
    packs_open(&packs);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint32_t category = cat_rules_find_category(packs.rules, names[i]);

        if (category == UINT32_MAX)
            fail_msg("no category is named %s", names[i]);
    }
    assert_true(cat_rules_category(packs.rules, cat_rules_find_category(packs.rules, "pthread.mutex"))->shows_payers);
    assert_true(cat_rules_category(packs.rules, cat_rules_find_category(packs.rules, "libc.malloc"))->shows_payers);
    packs_close(&packs);
}

static void test_no_rule_is_dead(void **state)
{
    struct packs packs = {0};
    struct rp_buf out = {0};
    struct rp_err err = {0};
    size_t findings = 0;

    (void)state;
    packs_open(&packs);
    assert_int_equal(cat_lint(packs.rules, &out, &findings, &err), RP_OK);
    if (findings)
        fail_msg("%s", rp_buf_text(&out));
    rp_buf_release(&out);
    packs_close(&packs);
}

/* ---- published profiles ---- */

static void field_take(struct rp_cursor *line, char *to, size_t size)
{
    const char *piece = NULL;
    size_t length = 0;

    rp_cursor_until(line, '\t', &piece, &length);
    (void)rp_cursor_take(line, "\t");
    assert_true(length < size);
    memcpy(to, piece, length);
    to[length] = '\0';
}

/* False for comments and the head line. */
static bool row_parse(const char *text, size_t length, struct row *row)
{
    struct rp_cursor line = rp_cursor_of(text, length);
    char number[32];

    if (!length || *text == '#' || strncmp(text, "rank", 4) == 0)
        return false;
    field_take(&line, number, sizeof number);
    field_take(&line, row->symbol, sizeof row->symbol);
    field_take(&line, row->module, sizeof row->module);
    field_take(&line, row->category, sizeof row->category);
    field_take(&line, row->rule, sizeof row->rule);
    for (size_t i = 0; i < PROFILES; i++) {
        field_take(&line, number, sizeof number);
        assert_true(rp_parse_double(number, 0, 100, &row->share[i]));
    }
    field_take(&line, row->caller, sizeof row->caller);
    field_take(&line, row->others, sizeof row->others);
    return true;
}

/* The listed symbols, one by one. */
struct rows {
    struct rp_buf text;
    struct rp_cursor rest;
};

static void rows_open(struct rows *rows)
{
    *rows = (struct rows){0};
    file_read("tests/fixtures/node_symbols.tsv", &rows->text);
    rows->rest = rp_cursor_of(rows->text.data, rows->text.length);
}

static bool rows_next(struct rows *rows, struct row *row)
{
    const char *line = NULL;
    size_t length = 0;

    while (rp_cursor_line(&rows->rest, &line, &length)) {
        if (row_parse(line, length, row))
            return true;
    }
    return false;
}

static const char *category_id(const char *listed, size_t length)
{
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        if (strlen(categories[i].listed) == length && memcmp(categories[i].listed, listed, length) == 0)
            return categories[i].id;
    return NULL;
}

/* True when `id` is among "v8_object:4,gc:2". */
static bool others_hold(const char *others, const char *id)
{
    struct rp_cursor rest = rp_cursor_str(others);
    const char *piece = NULL;
    size_t length = 0;

    while (!rp_cursor_done(&rest)) {
        const char *found;

        rp_cursor_until(&rest, ':', &piece, &length);
        found = category_id(piece, length);
        if (found && strcmp(found, id) == 0)
            return true;
        rp_cursor_until(&rest, ',', &piece, &length);
        (void)rp_cursor_take(&rest, ",");
    }
    return false;
}

/* perf's name and library, as the symbolizer would give them. */
static uint32_t frame_id(const struct packs *packs, const char *name, const char *module)
{
    static const char *const in_libc[] = {"malloc", "_int_malloc", "malloc_consolidate", "cfree@GLIBC_2.2.5"};
    struct rp_buf brief = {0};
    struct rp_err err = {0};
    struct cat_symbol symbol = {.name = name, .raw = name, .module = module};
    uint32_t id = 0;

    rp_demangle(name, true, &brief);
    symbol.short_name = rp_buf_text(&brief);
    for (size_t i = 0; !module && i < sizeof in_libc / sizeof *in_libc; i++)
        if (strcmp(name, in_libc[i]) == 0)
            symbol.module = "libc.so.6";
    if (!symbol.module)
        symbol.module = "node";
    if (strcmp(symbol.module, "jit") == 0)
        symbol.module = "[jit]";
    if (cat_matcher_symbol(packs->matcher, &symbol, &id, &err) != RP_OK)
        fail_msg("%s", err.text);
    rp_buf_release(&brief);
    return id;
}

/* The row's stack, as far as the table tells it. `with_caller`: also for rows that the name alone decides. */
static void row_classify(const struct packs *packs, const struct row *row, bool with_caller, struct cat_verdict *verdict)
{
    uint32_t frames[FRAMES_MAX];
    struct cat_context context = {.thread = "MainThread", .state = CAT_RUNNING};
    size_t n = 0;

    frames[n++] = frame_id(packs, row->symbol, row->module);
    if (row->caller[0] && (with_caller || strcmp(row->rule, "ctx") == 0))
        frames[n++] = frame_id(packs, row->caller, NULL);
    for (size_t i = 0; n == 2 && i < sizeof deeper / sizeof *deeper; i++)
        if (strcmp(deeper[i].leaf, row->symbol) == 0)
            frames[n++] = frame_id(packs, deeper[i].next, NULL);
    cat_classify(packs->matcher, frames, n, &context, verdict);
}

static bool row_expects(const struct row *row, const char *id)
{
    const char *listed = category_id(row->category, strlen(row->category));

    assert_non_null(listed);
    if (strcmp(listed, id) == 0)
        return true;
    for (size_t i = 0; i < sizeof collecting / sizeof *collecting; i++)
        if (strcmp(collecting[i], row->symbol) == 0)
            return strcmp(id, "v8.gc") == 0;
    return strcmp(row->rule, "ctx") == 0 && others_hold(row->others, id);
}

static void test_listed_symbols_land_where_listed(void **state)
{
    struct packs packs = {0};
    struct rows rows;
    struct row row;
    unsigned listed = 0, bad = 0;

    (void)state;
    packs_open(&packs);
    rows_open(&rows);
    while (rows_next(&rows, &row)) {
        struct cat_verdict verdict;
        const char *id;

        listed++;
        row_classify(&packs, &row, false, &verdict);
        id = cat_rules_category(packs.rules, verdict.category)->id;
        if (row_expects(&row, id))
            continue;
        print_error("%s: listed as %s (%s), lands in %s\n", row.symbol, row.category, row.rule, id);
        bad++;
    }
    assert_int_equal(bad, 0);
    assert_true(listed > 150);
    rp_buf_release(&rows.text);
    packs_close(&packs);
}

/* Less than 5 % of a published profile may get its category by inheritance alone, and at most 3 % none. */
static void test_profiles_are_named_not_inherited(void **state)
{
    struct packs packs = {0};
    struct rows rows;
    struct row row;
    double all[PROFILES] = {0}, inherited[PROFILES] = {0}, none[PROFILES] = {0};

    (void)state;
    packs_open(&packs);
    rows_open(&rows);
    while (rows_next(&rows, &row)) {
        struct cat_verdict verdict;

        row_classify(&packs, &row, true, &verdict);
        for (size_t i = 0; i < PROFILES; i++) {
            all[i] += row.share[i];
            inherited[i] += verdict.inherited ? row.share[i] : 0;
            none[i] += verdict.category == cat_rules_uncategorized(packs.rules) ? row.share[i] : 0;
        }
    }
    for (size_t i = 0; i < PROFILES; i++) {
        assert_true(all[i] > 80);
        if (inherited[i] >= 5 || none[i] > 3)
            fail_msg("profile %zu: %.2f %% inherited, %.2f %% uncategorized", i, inherited[i], none[i]);
    }
    rp_buf_release(&rows.text);
    packs_close(&packs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rule_of_every_pack_wins_a_case),
        cmocka_unit_test(test_published_names),
        cmocka_unit_test(test_no_rule_is_dead),
        cmocka_unit_test(test_listed_symbols_land_where_listed),
        cmocka_unit_test(test_profiles_are_named_not_inherited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
