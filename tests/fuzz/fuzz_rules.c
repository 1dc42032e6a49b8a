/* SPDX-License-Identifier: MIT */
/* A rule file, and after a line `%%` stacks to classify with it, one a line. Whatever comes in: no crash, no leak, no endless regex, and what is found
 * agrees with itself. The corpus holds what once went wrong and one file of each kind. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "categorize/categorize.h"

enum { INPUT_MAX = 1 << 16, FRAMES_MAX = 256, CATEGORIES_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A broken promise must stop the fuzzer, in every build. */
static void promise(bool kept)
{
    if (!kept)
        abort();
}

static void ask(const struct cat_rules *rules, struct cat_matcher *matcher, const char *line, size_t length)
{
    struct cat_stack stack = {0};
    struct cat_verdict verdict;
    struct rp_buf out = {0};
    struct rp_err err = {0};
    uint32_t ids[FRAMES_MAX], payer, frame;
    bool *has = calloc(cat_rules_ncategories(rules), sizeof *has);
    size_t n = 0;

    promise(has != NULL);
    if (cat_stack_parse(line, length, &stack, &err) == RP_OK) {
        for (; n < stack.n && n < FRAMES_MAX; n++)
            promise(cat_matcher_symbol(matcher, &stack.frames[n], &ids[n], &err) == RP_OK);
        cat_classify(matcher, ids, n, &stack.context, &verdict);
        cat_classify_payer_of(matcher, ids, n, &stack.context, &verdict, &payer, &frame);
        cat_totals(matcher, ids, n, &stack.context, &verdict, has);
        promise(verdict.category < cat_rules_ncategories(rules) && payer < cat_rules_ncategories(rules) && frame <= n);
        promise((verdict.rule == CAT_NO_RULE) == (verdict.payer == n) && verdict.outer >= verdict.payer && verdict.outer <= n);
        promise((verdict.rule == CAT_NO_RULE) == (verdict.why != CAT_WHY_RULE) && has[verdict.category]);
        if (n < 32)
            promise(cat_explain(matcher, stack.frames, n, &stack.context, true, &out, &err) == RP_OK);
    }
    free(has);
    cat_stack_release(&stack);
    rp_buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *cut = size ? memmem(data, size, "\n%%\n", 4) : NULL, *line;
    size_t length = cut ? (size_t)(cut - text) : size, line_length, passed, failed;
    struct rp_cursor rest = rp_cursor_of(cut ? cut + 4 : "", cut ? size - length - 4 : 0);
    struct cat_rules *rules = NULL;
    struct cat_matcher *matcher = NULL;
    struct rp_buf problems = {0}, out = {0};
    struct rp_err err = {0};
    enum rp_status status;

    if (size > INPUT_MAX || cat_rules_new(&rules, &err))
        return 0;
    status = cat_rules_add(rules, "fuzz.yaml", text, length, &problems, &err);
    if (!status)
        status = cat_rules_finish(rules, &problems, &err);
    promise((status == RP_USAGE) == (problems.length > 0));
    if (!status && cat_rules_ncategories(rules) < CATEGORIES_MAX) {
        promise(cat_matcher_new(rules, &matcher, &err) == RP_OK);
        promise(cat_cases_run(rules, "fuzz.cases", rest.at, (size_t)(rest.end - rest.at), &out, &passed, &failed, NULL, &err) == RP_OK);
        if (cat_rules_nrules(rules) < 200)
            promise(cat_lint(rules, &out, &passed, &err) == RP_OK);
        while (rp_cursor_line(&rest, &line, &line_length))
            ask(rules, matcher, line, line_length);
    }
    cat_matcher_free(matcher);
    cat_rules_free(rules);
    rp_buf_release(&problems);
    rp_buf_release(&out);
    return 0;
}
