/* SPDX-License-Identifier: MIT */
/* From the tree of a rule file to rules: one table of keys per map. The trap: a mistake must not hide the next one, so takers report and go on, and the
 * status is made of the count of problems at the end. */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "rule_keys.h"

enum { ORDER_DEFAULT = 500, ORDER_MAX = 999 };

/* ---- patterns and contexts ---- */

struct pattern_list {
    struct cat_span *span;
    enum cat_field field;
};

static void take_pattern(struct cat_load *l, const struct cat_node *value, void *object)
{
    struct pattern_list *list = object;
    struct cat_pattern_fault fault;
    struct cat_pattern pattern;
    struct cat_pattern *kept;
    struct rp_err err;
    enum rp_status status;

    if (!cat_load_is_text(l, value, "a pattern (text)"))
        return;
    status = cat_pattern_compile(&l->rules->tools, &l->rules->arena, list->field, value->text, value->length, &pattern, &fault, &err);
    if (status == RP_USAGE) {
        cat_load_told(l, value, fault.offset, "%s", fault.text);
        return;
    }
    kept = status ? NULL : rp_vec_add(&l->rules->patterns);
    if (!kept) {
        cat_pattern_release(&pattern);
        l->nomem = true;
        return;
    }
    *kept = pattern;
    list->span->n++;
}

static void take_patterns(struct cat_load *l, const struct cat_node *value, struct cat_span *span, enum cat_field field)
{
    static const char *const bracketed[] = {"kernel", "jit", "vdso", "vsyscall", "anon", "heap", "stack"};
    struct pattern_list list = {span, field};

    span->first = (uint32_t)l->rules->patterns.n;
    /* [kernel] without quotes is a YAML list that holds `kernel`, which no module is called. */
    if (field == CAT_MODULE && value->kind == CAT_NODE_LIST && value->flow && value->n == 1 && value->first->kind == CAT_NODE_SCALAR &&
        value->first->style == CAT_STYLE_PLAIN)
        for (size_t i = 0; i < sizeof bracketed / sizeof *bracketed; i++)
            if (strcmp(value->first->text, bracketed[i]) == 0)
                cat_load_told(l, value, 0, "an unquoted [%s] is a YAML list; quote it: \"[%s]\"", bracketed[i], bracketed[i]);
    cat_load_list(l, value, "patterns", take_pattern, &list);
}

static void take_test_symbol(struct cat_load *l, const struct cat_node *value, void *object)
{
    take_patterns(l, value, &((struct cat_frame_test *)object)->field[CAT_SYMBOL], CAT_SYMBOL);
}

static void take_test_module(struct cat_load *l, const struct cat_node *value, void *object)
{
    take_patterns(l, value, &((struct cat_frame_test *)object)->field[CAT_MODULE], CAT_MODULE);
}

static void take_test_file(struct cat_load *l, const struct cat_node *value, void *object)
{
    take_patterns(l, value, &((struct cat_frame_test *)object)->field[CAT_FILE], CAT_FILE);
}

static const struct cat_key context_keys[] = {{"symbol", take_test_symbol, false}, {"module", take_test_module, false}, {"file", take_test_file, false}};
static const struct cat_key_table context_table = {"a context", context_keys, sizeof context_keys / sizeof *context_keys};

static void take_context(struct cat_load *l, const struct cat_node *value, void *object)
{
    struct cat_span *span = object;
    struct cat_frame_test test = {0};
    struct cat_frame_test *kept;

    if (value->kind == CAT_NODE_MAP) {
        if (!value->n)
            cat_load_told(l, value, 0, "a context needs one of the keys symbol, module, file");
        cat_load_map(l, value, &context_table, &test);
    } else if (value->kind == CAT_NODE_SCALAR) {
        take_patterns(l, value, &test.field[CAT_SYMBOL], CAT_SYMBOL);
    } else if (value->kind != CAT_NODE_BAD) {
        cat_load_told(l, value, 0, "expected a pattern or a map of symbol, module, file, found %s", cat_load_kind(value));
    }
    kept = rp_vec_add(&l->rules->contexts);
    if (!kept) {
        l->nomem = true;
        return;
    }
    *kept = test;
    span->n++;
}

static void take_contexts(struct cat_load *l, const struct cat_node *value, struct cat_span *span)
{
    span->first = (uint32_t)l->rules->contexts.n;
    cat_load_list(l, value, "contexts", take_context, span);
}

/* ---- categories ---- */

static void take_category_id(struct cat_load *l, const struct cat_node *value, void *object)
{
    struct cat_category_def *def = object;

    def->category.id = cat_load_id(l, value);
    def->line = value->line;
    def->column = value->column;
    if (def->category.id && strcmp(def->category.id, "uncategorized") == 0)
        cat_load_told(l, value, 0, "the category `uncategorized` is built in; choose another id");
}

static void take_category_name(struct cat_load *l, const struct cat_node *value, void *object)
{
    if (!cat_load_is_text(l, value, "a name"))
        return;
    for (size_t i = 0; i < value->length; i++) {
        if ((unsigned char)value->text[i] < ' ' || value->text[i] == 0x7f) {
            cat_load_told(l, value, i, "a name holds no control characters");
            return;
        }
    }
    ((struct cat_category_def *)object)->category.name = cat_load_keep(l, value);
    if (strcmp(value->text, "uncategorized") == 0)
        cat_load_told(l, value, 0, "the category `uncategorized` is built in; choose another name");
}

static const char *const kind_words[] = {[CAT_COST] = "cost", [CAT_WAIT] = "wait", [CAT_IDLE] = "idle"};

const char *cat_kind_word(enum cat_kind kind)
{
    return kind_words[kind];
}

static void take_category_kind(struct cat_load *l, const struct cat_node *value, void *object)
{
    size_t at = cat_load_word(l, value, kind_words, 3);

    if (at < 3)
        ((struct cat_category_def *)object)->category.kind = (enum cat_kind)at;
}

static void take_category_color(struct cat_load *l, const struct cat_node *value, void *object)
{
    static const char *const words[] = {"red", "orange", "yellow", "green", "aqua", "blue", "purple", "pink", "brown", "gray"};
    struct cat_category_def *def = object;

    if (value->kind == CAT_NODE_SCALAR && value->text[0] == '#') {
        if (value->length != 7 || strspn(value->text + 1, "0123456789abcdefABCDEF") != 6) {
            cat_load_told(l, value, 0, "expected a color as \"#rrggbb\", found `%.100s`", value->text);
            return;
        }
    } else if (cat_load_word(l, value, words, 10) == 10) {
        return;
    }
    def->category.color = cat_load_keep(l, value);
}

static void take_category_payers(struct cat_load *l, const struct cat_node *value, void *object)
{
    static const char *const words[] = {"false", "true"};
    size_t at = cat_load_word(l, value, words, 2);

    ((struct cat_category_def *)object)->category.shows_payers = at == 1;
}

static const struct cat_key category_keys[] = {{"id", take_category_id, true},
                                           {"name", take_category_name, true},
                                           {"kind", take_category_kind, true},
                                           {"color", take_category_color, false},
                                           {"payers", take_category_payers, false}};
static const struct cat_key_table category_table = {"a category", category_keys, sizeof category_keys / sizeof *category_keys};

static void take_category(struct cat_load *l, const struct cat_node *value, void *unused)
{
    struct cat_category_def def = {.file = l->file->name, .line = value->line, .column = value->column};
    struct cat_category_def *kept;
    const struct cat_id *other;

    (void)unused;
    cat_load_map(l, value, &category_table, &def);
    if (!def.category.id)
        return;
    other = cat_ids_add(&l->file->category_ids, def.category.id, l->file->name, def.line, &l->nomem);
    if (other)
        cat_problem(l->problems, def.line, def.column, "the category id `%s` is used already in line %u", def.category.id, other->line);
    kept = rp_vec_add(&l->file->categories);
    if (kept)
        *kept = def;
    else
        l->nomem = true;
}

/* ---- rules ---- */

static void take_rule_id(struct cat_load *l, const struct cat_node *value, void *object)
{
    struct cat_rule *rule = object;

    rule->info.id = cat_load_id(l, value);
    rule->info.line = value->line;
    rule->info.column = value->column;
}

static void take_rule_category(struct cat_load *l, const struct cat_node *value, void *object)
{
    struct cat_rule *rule = object;

    rule->category_id = cat_load_id(l, value);
    rule->category_line = value->line;
    rule->category_column = value->column;
    if (rule->category_id && strcmp(rule->category_id, "uncategorized") == 0)
        cat_load_told(l, value, 0, "no rule makes a stack uncategorized; leave the rule out, or use `not_under` in the rule that takes it");
}

static void take_rule_symbol(struct cat_load *l, const struct cat_node *value, void *object)
{
    take_test_symbol(l, value, &((struct cat_rule *)object)->test);
}

static void take_rule_module(struct cat_load *l, const struct cat_node *value, void *object)
{
    take_test_module(l, value, &((struct cat_rule *)object)->test);
}

static void take_rule_file(struct cat_load *l, const struct cat_node *value, void *object)
{
    take_test_file(l, value, &((struct cat_rule *)object)->test);
}

static void take_rule_caller(struct cat_load *l, const struct cat_node *value, void *object)
{
    take_contexts(l, value, &((struct cat_rule *)object)->caller);
}

static void take_rule_under(struct cat_load *l, const struct cat_node *value, void *object)
{
    take_contexts(l, value, &((struct cat_rule *)object)->under);
}

static void take_rule_not_under(struct cat_load *l, const struct cat_node *value, void *object)
{
    take_contexts(l, value, &((struct cat_rule *)object)->not_under);
}

static void take_rule_not_over(struct cat_load *l, const struct cat_node *value, void *object)
{
    take_contexts(l, value, &((struct cat_rule *)object)->not_over);
}

static void take_rule_never_ran(struct cat_load *l, const struct cat_node *value, void *object)
{
    static const char *const words[] = {"false", "true"};
    struct cat_rule *rule = object;

    rule->never_ran = cat_load_word(l, value, words, 2) == 1;
    rule->state_line = value->line;
    rule->state_column = value->column;
}

static void take_rule_thread(struct cat_load *l, const struct cat_node *value, void *object)
{
    take_patterns(l, value, &((struct cat_rule *)object)->thread, CAT_THREAD);
}

static void take_rule_claims(struct cat_load *l, const struct cat_node *value, void *object)
{
    static const char *const words[] = {[CAT_CLAIMS_SUBTREE] = "subtree", [CAT_CLAIMS_SELF] = "self", [CAT_CLAIMS_REST] = "rest"};
    size_t at = cat_load_word(l, value, words, 3);

    if (at < 3)
        ((struct cat_rule *)object)->claims = (enum cat_claims_how)at;
}

static void take_rule_space(struct cat_load *l, const struct cat_node *value, void *object)
{
    static const char *const words[] = {"user", "kernel"};
    size_t at = cat_load_word(l, value, words, 2);

    ((struct cat_rule *)object)->kernel = at == 1;
}

static void take_rule_state(struct cat_load *l, const struct cat_node *value, void *object)
{
    static const char *const words[] = {[CAT_RUNNING] = "running", [CAT_BLOCKED] = "blocked"};
    struct cat_rule *rule = object;
    size_t at = cat_load_word(l, value, words, 2);

    rule->has_state = at < 2;
    rule->state = at == 1 ? CAT_BLOCKED : CAT_RUNNING;
    rule->state_line = value->line;
    rule->state_column = value->column;
}

static const struct cat_key rule_keys[] = {
    {"id", take_rule_id, true},           {"category", take_rule_category, true},    {"symbol", take_rule_symbol, false},
    {"module", take_rule_module, false},  {"file", take_rule_file, false},           {"caller", take_rule_caller, false},
    {"under", take_rule_under, false},    {"not_under", take_rule_not_under, false}, {"thread", take_rule_thread, false},
    {"claims", take_rule_claims, false},  {"space", take_rule_space, false},         {"state", take_rule_state, false},
    {"not_over", take_rule_not_over, false}, {"never_ran", take_rule_never_ran, false},
};
static const struct cat_key_table rule_table = {"a rule", rule_keys, sizeof rule_keys / sizeof *rule_keys};
enum { RULE_TEST_BITS = 7u << 2 }; /* symbol, module, file in the table above */

static void add_rule(struct cat_load *l, const struct cat_rule *rule)
{
    struct cat_rule *kept = l->file->rules.n < RP_RULE_ENTRIES_MAX ? rp_vec_add(&l->file->rules) : NULL;

    if (kept)
        *kept = *rule;
    else if (l->file->rules.n < RP_RULE_ENTRIES_MAX)
        l->nomem = true;
    else
        cat_problem(l->problems, rule->info.line, rule->info.column, "a file has at most %u rules; split it", RP_RULE_ENTRIES_MAX);
}

static void take_rule(struct cat_load *l, const struct cat_node *value, void *unused)
{
    struct cat_rule rule = {.info = {.file = l->file->name, .line = value->line, .column = value->column}};
    const struct cat_id *other;

    (void)unused;
    if (!(cat_load_map(l, value, &rule_table, &rule) & RULE_TEST_BITS))
        cat_load_told(l, value, 0, "a rule needs one of the keys symbol, module, file: which frames does it claim?");
    if (!rule.info.id)
        return;
    other = cat_ids_add(&l->file->rule_ids, rule.info.id, l->file->name, rule.info.line, &l->nomem);
    if (other)
        cat_problem(l->problems, rule.info.line, rule.info.column, "the rule id `%s` is used already in line %u", rule.info.id, other->line);
    add_rule(l, &rule);
}

static const struct cat_key through_keys[] = {
    {"symbol", take_rule_symbol, false}, {"module", take_rule_module, false}, {"file", take_rule_file, false}, {"space", take_rule_space, false}};
static const struct cat_key_table through_table = {"a `through` entry", through_keys, sizeof through_keys / sizeof *through_keys};

static const char *through_id(struct cat_load *l, const struct cat_rule *rule)
{
    struct rp_buf id = {0};
    const char *kept;

    for (size_t f = 0; f < CAT_FRAME_FIELDS; f++)
        for (uint32_t i = 0; i < rule->test.field[f].n; i++)
            rp_buf_printf(&id, "%s%s", id.length ? " " : "through ", l->rules->patterns.at[rule->test.field[f].first + i].text);
    kept = rp_arena_strndup(&l->rules->arena, rp_buf_text(&id), id.length < 80 ? id.length : 80);
    if (!kept || id.failed)
        l->nomem = true;
    rp_buf_release(&id);
    return kept ? kept : "through";
}

static void take_through(struct cat_load *l, const struct cat_node *value, void *unused)
{
    struct cat_rule rule = {.info = {.file = l->file->name, .line = value->line, .column = value->column, .through = true}};

    (void)unused;
    if (value->kind == CAT_NODE_MAP) {
        if (!(cat_load_map(l, value, &through_table, &rule) & 7u))
            cat_load_told(l, value, 0, "a `through` entry needs one of the keys symbol, module, file");
    } else if (value->kind == CAT_NODE_SCALAR) {
        take_test_symbol(l, value, &rule.test);
    } else if (value->kind != CAT_NODE_BAD) {
        cat_load_told(l, value, 0, "expected a pattern or a map of symbol, module, file, space, found %s", cat_load_kind(value));
    }
    rule.info.id = through_id(l, &rule);
    add_rule(l, &rule);
}

/* ---- the file ---- */

static void take_order(struct cat_load *l, const struct cat_node *value, void *unused)
{
    uint32_t order = 0;

    (void)unused;
    if (!cat_load_is_text(l, value, "a number from 0 to 999"))
        return;
    if (strspn(value->text, "0123456789") != value->length || value->length > 3) {
        cat_load_told(l, value, 0, "expected a number from 0 to %d, found `%.100s`", (int)ORDER_MAX, value->text);
        return;
    }
    for (const char *at = value->text; *at; at++)
        order = order * 10 + (uint32_t)(*at - '0');
    l->file->order = order;
}

static void take_categories(struct cat_load *l, const struct cat_node *value, void *unused)
{
    if (value->kind == CAT_NODE_LIST && value->n)
        cat_load_list(l, value, "categories", take_category, unused);
    else if (value->kind != CAT_NODE_BAD && value->kind != CAT_NODE_LIST)
        cat_load_told(l, value, 0, "expected a list of categories, each beginning with `-`");
}

static void take_rules(struct cat_load *l, const struct cat_node *value, void *unused)
{
    if (value->kind == CAT_NODE_LIST && value->n)
        cat_load_list(l, value, "rules", take_rule, unused);
    else if (value->kind != CAT_NODE_BAD && value->kind != CAT_NODE_LIST)
        cat_load_told(l, value, 0, "expected a list of rules, each beginning with `-`");
}

static void take_throughs(struct cat_load *l, const struct cat_node *value, void *unused)
{
    cat_load_list(l, value, "functions", take_through, unused);
}

static const struct cat_key file_keys[] = {{"order", take_order, false},
                                       {"categories", take_categories, false},
                                       {"rules", take_rules, false},
                                       {"through", take_throughs, false}};
static const struct cat_key_table file_table = {"a rule file", file_keys, sizeof file_keys / sizeof *file_keys};

enum rp_status cat_file_read(struct cat_rules *rules, const char *name, const char *text, size_t length, struct cat_file *file,
                             struct cat_problems *problems, struct rp_err *err)
{
    struct cat_load l = {.rules = rules, .file = file, .problems = problems, .text = text, .length = length};
    struct rp_arena tree = {0};
    struct cat_node *root = NULL;
    enum rp_status status;
    uint32_t before = problems->n;

    file->order = ORDER_DEFAULT;
    file->name = rp_arena_strndup(&rules->arena, name, strlen(name));
    if (!file->name)
        return rp_fail_nomem(err);
    if (length > RP_RULE_FILE_MAX)
        cat_problem(problems, 1, 1, "a rule file has at most %zu bytes, this one has %zu; split it", RP_RULE_FILE_MAX, length);
    status = length > RP_RULE_FILE_MAX ? RP_OK : cat_yaml_parse(text, length, &tree, problems, &root, err);
    if (status)
        goto done;
    if (root)
        cat_load_map(&l, root, &file_table, NULL);
    else if (problems->n == before)
        cat_problem(problems, 1, 1, "expected the keys order, categories, rules, through; the file is empty");
    if (l.nomem || problems->text.failed)
        status = rp_fail_nomem(err);
    else if (problems->n != before)
        status = rp_fail(err, RP_USAGE, "%s has %u mistake%s; correct %s, or leave the file out", name, problems->n - before,
                         problems->n - before == 1 ? "" : "s", problems->n - before == 1 ? "it" : "them");
done:
    rp_arena_release(&tree);
    return status;
}

void cat_file_release(struct cat_file *file)
{
    rp_vec_release(&file->categories);
    rp_vec_release(&file->rules);
    cat_ids_release(&file->category_ids);
    cat_ids_release(&file->rule_ids);
}
