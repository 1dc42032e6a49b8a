/* SPDX-License-Identifier: MIT */
/* Gathers the rules of several files: the order in which they are asked, and what only all files together can tell. The trap: a file with a
 * mistake must leave nothing behind, though its patterns were compiled into the common list as they were read. */
#include "ruleset.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/limits.h"
#include "packs.h"

enum { NAME_COMPARED_MAX = 32 };

/* ---- ids and near words ---- */

struct id_key {
    const struct cat_ids *ids;
    const char *id;
};

static bool same_id(const void *context, uint32_t position)
{
    const struct id_key *key = context;

    return strcmp(key->ids->all.at[position].id, key->id) == 0;
}

const struct cat_id *cat_ids_add(struct cat_ids *ids, const char *id, const char *file, uint32_t line, bool *nomem)
{
    struct id_key key = {ids, id};
    uint32_t hash = rp_hash_bytes(id, strlen(id));
    uint32_t *slot = rp_index_find(&ids->index, hash, same_id, &key);
    struct cat_id *added;

    if (slot && *slot != RP_INDEX_EMPTY)
        return &ids->all.at[*slot];
    added = slot ? rp_vec_add(&ids->all) : NULL;
    if (!added) {
        *nomem = true;
        return NULL;
    }
    *added = (struct cat_id){id, file, line};
    rp_index_set(&ids->index, slot, hash, (uint32_t)ids->all.n - 1);
    return NULL;
}

void cat_ids_release(struct cat_ids *ids)
{
    rp_index_release(&ids->index);
    rp_vec_release(&ids->all);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits (insert, delete, replace, swap of neighbours) that make one word of the other; both shorter than NAME_COMPARED_MAX. */
static size_t edit_distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t rows[3][NAME_COMPARED_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *now = rows[2];

    for (size_t j = 0; j <= nb; j++)
        before[j] = last[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *spare = before;

        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], before[j - 2] + 1);
        }
        before = last;
        last = now;
        now = spare;
    }
    return last[nb];
}

const char *cat_nearest(const char *text, const char *const *words, size_t n)
{
    size_t length = strlen(text), best = length < 4 ? 2 : 3;
    const char *found = NULL;

    if (!length || length >= NAME_COMPARED_MAX)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t other = strlen(words[i]), distance;

        if (other >= NAME_COMPARED_MAX)
            continue;
        distance = edit_distance(text, length, words[i], other);
        if (distance < best && distance < other) {
            best = distance;
            found = words[i];
        }
    }
    return found;
}

/* ---- life ---- */

enum rp_status cat_rules_new(struct cat_rules **out, struct rp_err *err)
{
    struct cat_rules *rules = rp_calloc(1, sizeof *rules);
    enum rp_status status;

    *out = NULL;
    if (!rules)
        return rp_fail_nomem(err);
    status = cat_regex_tools_init(&rules->tools, err);
    if (status)
        rp_free(rules);
    else
        *out = rules;
    return status;
}

static void cut_patterns(struct cat_rules *rules, size_t n)
{
    while (rules->patterns.n > n)
        cat_pattern_release(&rules->patterns.at[--rules->patterns.n]);
}

void cat_rules_free(struct cat_rules *rules)
{
    if (!rules)
        return;
    cut_patterns(rules, 0);
    rp_vec_release(&rules->patterns);
    rp_vec_release(&rules->contexts);
    rp_vec_release(&rules->stand_ins);
    rp_vec_release(&rules->refused_categories);
    rp_vec_release(&rules->refused_rules);
    rp_vec_release(&rules->rules);
    rp_vec_release(&rules->categories);
    cat_regex_tools_release(&rules->tools);
    rp_arena_release(&rules->arena);
    rp_free(rules);
}

/* ---- files ---- */

static int by_order(const void *a, const void *b)
{
    const struct cat_file *x = a, *y = b;

    return x->order != y->order ? x->order < y->order ? -1 : 1 : strcmp(x->name, y->name);
}

/* Room first, then copies that cannot fail: all files or none. */
static enum rp_status append_files(struct cat_rules *rules, const struct cat_file *files, size_t n, struct rp_err *err)
{
    size_t ncategories = 0, nrules = 0;

    for (size_t i = 0; i < n; i++) {
        ncategories += files[i].categories.n;
        nrules += files[i].rules.n;
    }
    if (rules->rules.n + nrules > RP_RULE_ENTRIES_MAX)
        return rp_fail(err, RP_LIMIT, "there are more than %u rules in all; give fewer rule files", RP_RULE_ENTRIES_MAX);
    if (!rp_vec_reserve(&rules->categories, ncategories) || !rp_vec_reserve(&rules->rules, nrules))
        return rp_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < files[i].categories.n; k++)
            rules->categories.at[rules->categories.n++] = files[i].categories.at[k];
        for (size_t k = 0; k < files[i].rules.n; k++)
            rules->rules.at[rules->rules.n++] = files[i].rules.at[k];
    }
    return RP_OK;
}

/* What can be said of files that are not added. */
static enum rp_status keep_refused(struct cat_rules *rules, const struct cat_file *files, size_t n, struct rp_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!rp_vec_reserve(&rules->refused_categories, files[i].categories.n) || !rp_vec_reserve(&rules->refused_rules, files[i].rules.n))
            return rp_fail_nomem(err);
        for (size_t k = 0; k < files[i].categories.n; k++)
            rules->refused_categories.at[rules->refused_categories.n++] = files[i].categories.at[k];
        for (size_t k = 0; k < files[i].rules.n; k++)
            rules->refused_rules.at[rules->refused_rules.n++] = files[i].rules.at[k];
    }
    return RP_OK;
}

/* Reads all files of a folder, tells all mistakes of all, and adds all or none in their `order`. */
static enum rp_status add_sources(struct cat_rules *rules, const struct cat_source *sources, size_t n, struct rp_buf *problems, struct rp_err *err)
{
    struct cat_file *files = rp_calloc(n ? n : 1, sizeof *files);
    size_t npatterns = rules->patterns.n, ncontexts = rules->contexts.n;
    enum rp_status status = files ? RP_OK : rp_fail_nomem(err);

    if (files && rules->finished)
        status = rp_fail(err, RP_FAILED, "rules were added after cat_rules_finish; add them before");
    for (size_t i = 0; i < n && (!status || status == RP_USAGE); i++) {
        struct cat_problems told = {.file = sources[i].name};
        struct rp_err one;
        enum rp_status read = cat_file_read(rules, sources[i].name, sources[i].text, sources[i].length, &files[i], &told, &one);

        if (!cat_problems_end(&told, problems))
            read = rp_fail_nomem(&one);
        if (read && (!status || read != RP_USAGE)) {
            *err = one;
            status = read;
        }
    }
    if (!status) {
        qsort(files, n, sizeof *files, by_order);
        status = append_files(rules, files, n, err);
    } else if (status == RP_USAGE) {
        struct rp_err nomem;

        if (keep_refused(rules, files, n, &nomem)) {
            *err = nomem;
            status = nomem.status;
        }
    }
    if (status) {
        cut_patterns(rules, npatterns);
        rules->contexts.n = ncontexts;
    }
    for (size_t i = 0; files && i < n; i++)
        cat_file_release(&files[i]);
    rp_free(files);
    return status;
}

enum rp_status cat_rules_add(struct cat_rules *rules, const char *file, const char *text, size_t length, struct rp_buf *problems,
                             struct rp_err *err)
{
    struct cat_source source = {file, text, length};

    return add_sources(rules, &source, 1, problems, err);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static const struct cat_source *stand_in_of(const struct cat_rules *rules, const char *pack)
{
    for (size_t i = 0; i < rules->stand_ins.n; i++)
        if (strcmp(base_name(rules->stand_ins.at[i].name), pack) == 0)
            return &rules->stand_ins.at[i];
    return NULL;
}

enum rp_status cat_rules_add_shipped(struct cat_rules *rules, struct rp_buf *problems, struct rp_err *err)
{
    struct rp_arena arena = {0};
    RP_VEC(struct cat_source) sources = {0};
    enum rp_status status = RP_OK;

    for (const struct cat_pack *pack = cat_packs; pack->name && !status; pack++) {
        const struct cat_source *stand_in = stand_in_of(rules, pack->name);
        struct cat_source *source = rp_vec_add(&sources);
        struct rp_buf name = {0};

        rp_buf_printf(&name, "shipped/%s", pack->name);
        if (source)
            *source = stand_in ? *stand_in : (struct cat_source){rp_arena_strndup(&arena, rp_buf_text(&name), name.length), pack->text, pack->length};
        if (!source || !source->name || name.failed)
            status = rp_fail_nomem(err);
        rp_buf_release(&name);
    }
    if (!status)
        status = add_sources(rules, sources.at, sources.n, problems, err);
    if (!status)
        rp_vec_clear(&rules->stand_ins);
    rp_vec_release(&sources);
    rp_arena_release(&arena);
    return status;
}

static bool is_pack_name(const char *name)
{
    size_t length = strlen(name);

    return name[0] != '.' && length > 5 && strcmp(name + length - 5, ".yaml") == 0;
}

static bool is_shipped(const char *name)
{
    for (const struct cat_pack *pack = cat_packs; pack->name; pack++)
        if (strcmp(pack->name, name) == 0)
            return true;
    return false;
}

/* A copy of a pack that somebody edits: asked where the pack would be, or its catch-all rules would come before the others'. */
static enum rp_status set_aside_stand_ins(struct cat_rules *rules, struct cat_source *sources, size_t *n, struct rp_buf *problems, struct rp_err *err)
{
    size_t kept = 0;

    for (size_t i = 0; i < *n; i++) {
        struct cat_source *copy;

        if (!is_shipped(base_name(sources[i].name))) {
            sources[kept++] = sources[i];
            continue;
        }
        if (stand_in_of(rules, base_name(sources[i].name))) {
            rp_buf_printf(problems, "%s:1:1: another file stands in for the shipped pack %s already; give one of them\n", sources[i].name,
                          base_name(sources[i].name));
            return rp_fail(err, RP_USAGE, "two rule files are called %s; give one of them", base_name(sources[i].name));
        }
        copy = rp_vec_add(&rules->stand_ins);
        if (!copy)
            return rp_fail_nomem(err);
        *copy = (struct cat_source){rp_arena_strndup(&rules->arena, sources[i].name, strlen(sources[i].name)),
                                    rp_arena_strndup(&rules->arena, sources[i].text, sources[i].length), sources[i].length};
        if (!copy->name || !copy->text) {
            rules->stand_ins.n--;
            return rp_fail_nomem(err);
        }
    }
    *n = kept;
    return RP_OK;
}

static enum rp_status read_source(const char *path, struct rp_arena *arena, struct cat_source *source, struct rp_err *err)
{
    struct rp_buf text = {0};
    enum rp_status status = rp_read_named_file(path, RP_RULE_FILE_MAX, &text, err);

    if (!status) {
        *source = (struct cat_source){rp_arena_strndup(arena, path, strlen(path)), rp_arena_strndup(arena, rp_buf_text(&text), text.length),
                                  text.length};
        if (!source->name || !source->text)
            status = rp_fail_nomem(err);
    }
    rp_buf_release(&text);
    return status;
}

enum rp_status cat_rules_add_path(struct cat_rules *rules, const char *path, struct rp_buf *problems, struct rp_err *err)
{
    struct rp_arena arena = {0};
    RP_VEC(struct cat_source) sources = {0};
    enum rp_status status = RP_OK;
    struct stat st;
    DIR *dir = NULL;

    if (stat(path, &st))
        return rp_fail(err, RP_IO, "cannot read the rules in %s: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode)) {
        dir = opendir(path);
        if (!dir)
            return rp_fail(err, RP_IO, "cannot list the folder %s: %s", path, strerror(errno));
    }
    for (struct dirent *entry = NULL; !status && (!dir || (entry = readdir(dir)));) {
        struct rp_buf name = {0};
        struct cat_source *source;

        if (entry && !is_pack_name(entry->d_name))
            continue;
        rp_buf_printf(&name, entry ? "%s/%s" : "%s", path, entry ? entry->d_name : "");
        source = name.failed ? NULL : rp_vec_add(&sources);
        status = source ? read_source(rp_buf_text(&name), &arena, source, err) : rp_fail_nomem(err);
        rp_buf_release(&name);
        if (!dir)
            break;
    }
    if (dir)
        closedir(dir);
    if (!status && !sources.n)
        status = rp_fail(err, RP_USAGE, "the folder %s holds no *.yaml file; name a folder of rule files", path);
    if (!status)
        status = set_aside_stand_ins(rules, sources.at, &sources.n, problems, err);
    if (!status)
        status = add_sources(rules, sources.at, sources.n, problems, err);
    rp_vec_release(&sources);
    rp_arena_release(&arena);
    return status;
}

/* ---- all files together ---- */

/* Each kind of finding names the file of its own line. */
static void problem_in(struct cat_problems *all, const char *file, uint32_t line, uint32_t column, const char *text)
{
    all->file = file;
    cat_problem(all, line, column, "%s", text);
}

static void check_unique(struct cat_rules *rules, struct cat_problems *problems, bool *nomem)
{
    struct cat_ids ids = {0}, names = {0}, rule_ids = {0};
    struct rp_buf text = {0};

    for (size_t i = 0; i < rules->categories.n; i++) {
        const struct cat_category_def *def = &rules->categories.at[i];
        const struct cat_id *other = cat_ids_add(&ids, def->category.id, def->file, def->line, nomem);
        const struct cat_id *namesake = cat_ids_add(&names, def->category.name, def->file, def->line, nomem);

        rp_buf_clear(&text);
        if (other)
            rp_buf_printf(&text, "the category id `%s` is used already at %s:%u", def->category.id, other->file, other->line);
        else if (namesake)
            rp_buf_printf(&text, "the category name \"%s\" is used already at %s:%u", def->category.name, namesake->file, namesake->line);
        if (text.length)
            problem_in(problems, def->file, def->line, def->column, rp_buf_text(&text));
    }
    for (size_t i = 0; i < rules->rules.n; i++) {
        const struct cat_rule_info *info = &rules->rules.at[i].info;
        const struct cat_id *other = info->through ? NULL : cat_ids_add(&rule_ids, info->id, info->file, info->line, nomem);

        rp_buf_clear(&text);
        if (other) {
            rp_buf_printf(&text, "the rule id `%s` is used already at %s:%u", info->id, other->file, other->line);
            problem_in(problems, info->file, info->line, info->column, rp_buf_text(&text));
        }
    }
    *nomem |= text.failed;
    rp_buf_release(&text);
    cat_ids_release(&ids);
    cat_ids_release(&names);
    cat_ids_release(&rule_ids);
}

static const struct cat_category_def *defined(const struct cat_rules *rules, size_t at)
{
    return at < rules->categories.n ? &rules->categories.at[at] : &rules->refused_categories.at[at - rules->categories.n];
}

static const char *nearest_category(const struct cat_rules *rules, const char *id)
{
    const char *best = NULL;

    /* Pairwise: the best so far against the next one, so that no array of ids is needed. */
    for (size_t i = 0; i < rules->categories.n + rules->refused_categories.n; i++) {
        const char *pair[2] = {best, defined(rules, i)->category.id};

        best = best ? cat_nearest(id, pair, 2) : cat_nearest(id, pair + 1, 1);
    }
    return best;
}

static void tell_unknown(const struct cat_rules *rules, struct cat_problems *problems, const struct cat_rule *rule)
{
    const char *near = nearest_category(rules, rule->category_id);

    problems->file = rule->info.file;
    cat_problem(problems, rule->category_line, rule->category_column, "no category has the id `%s`%s%s%s", rule->category_id,
                near ? "; did you mean `" : "; define it under `categories`", near ? near : "", near ? "`?" : "");
}

static bool is_defined(const struct cat_rules *rules, const char *id)
{
    for (size_t i = 0; i < rules->categories.n + rules->refused_categories.n; i++)
        if (strcmp(defined(rules, i)->category.id, id) == 0)
            return true;
    return false;
}

enum rp_status cat_rules_tell_unknown(struct cat_rules *rules, struct rp_buf *problems, struct rp_err *err)
{
    struct cat_problems told = {.file = ""};
    struct cat_ids ids = {0};
    bool nomem = false;

    for (size_t i = 0; i < rules->rules.n + rules->refused_rules.n; i++) {
        const struct cat_rule *rule = i < rules->rules.n ? &rules->rules.at[i] : &rules->refused_rules.at[i - rules->rules.n];

        if (rule->category_id && !is_defined(rules, rule->category_id) &&
            !cat_ids_add(&ids, rule->category_id, rule->info.file, rule->category_line, &nomem))
            tell_unknown(rules, &told, rule);
    }
    cat_ids_release(&ids);
    return cat_problems_end(&told, problems) && !nomem ? RP_OK : rp_fail_nomem(err);
}

static void resolve(struct cat_rules *rules, struct cat_problems *problems, struct cat_rule *rule)
{
    rule->info.category = cat_rules_find_category(rules, rule->category_id);
    if (rule->info.category != UINT32_MAX && strcmp(rules->categories.at[rule->info.category].category.id, rule->category_id) != 0)
        rule->info.category = UINT32_MAX; /* a name, not an id */
    problems->file = rule->info.file;
    if (rule->info.category == UINT32_MAX) {
        tell_unknown(rules, problems, rule);
        return;
    }
    rule->kind = rules->categories.at[rule->info.category].category.kind;
    if (rule->has_state && (rule->state == CAT_RUNNING) != (rule->kind == CAT_COST))
        cat_problem(problems, rule->state_line, rule->state_column,
                    "`state: %s` contradicts the category `%s`: its kind is %s, which sees %s threads only; leave `state` out",
                    rule->state == CAT_RUNNING ? "running" : "blocked", rule->category_id, cat_kind_word(rule->kind),
                    rule->kind == CAT_COST ? "running" : "blocked");
    if (rule->never_ran && rule->kind == CAT_COST)
        cat_problem(problems, rule->state_line, rule->state_column,
                    "`never_ran: true` contradicts the category `%s`: its kind is cost, which sees running threads only", rule->category_id);
}

enum rp_status cat_rules_finish(struct cat_rules *rules, struct rp_buf *problems, struct rp_err *err)
{
    struct cat_problems told = {.file = ""};
    uint32_t mistakes;
    struct cat_category_def *def;
    bool nomem = false;

    if (rules->finished)
        return RP_OK;
    if (rules->stand_ins.n) { /* the shipped packs were not wanted, these files were */
        enum rp_status status = add_sources(rules, rules->stand_ins.at, rules->stand_ins.n, problems, err);

        rp_vec_clear(&rules->stand_ins);
        if (status)
            return status;
    }
    check_unique(rules, &told, &nomem);
    for (size_t i = 0; i < rules->rules.n; i++)
        if (!rules->rules.at[i].info.through)
            resolve(rules, &told, &rules->rules.at[i]);
    told.file = "all rule files";
    mistakes = told.n;
    if (!cat_problems_end(&told, problems) || nomem)
        return rp_fail_nomem(err);
    if (mistakes)
        return rp_fail(err, RP_USAGE, "the rule files have %u mistake%s between them; correct %s, or leave a file out", mistakes,
                       mistakes == 1 ? "" : "s", mistakes == 1 ? "it" : "them");
    def = rp_vec_add(&rules->categories);
    if (!def)
        return rp_fail_nomem(err);
    *def = (struct cat_category_def){.category = {.id = "uncategorized", .name = "uncategorized", .color = "gray", .kind = CAT_COST}, .file = ""};
    for (size_t i = 0; i < rules->rules.n; i++)
        if (rules->rules.at[i].info.through)
            rules->rules.at[i].info.category = (uint32_t)rules->categories.n - 1;
    rules->finished = true;
    return RP_OK;
}

/* ---- questions ---- */

size_t cat_rules_ncategories(const struct cat_rules *rules)
{
    return rules->categories.n;
}

const struct cat_category *cat_rules_category(const struct cat_rules *rules, uint32_t category)
{
    return category < rules->categories.n ? &rules->categories.at[category].category : NULL;
}

uint32_t cat_rules_find_category(const struct cat_rules *rules, const char *id_or_name)
{
    for (size_t i = 0; i < rules->categories.n; i++)
        if (strcmp(rules->categories.at[i].category.id, id_or_name) == 0)
            return (uint32_t)i;
    for (size_t i = 0; i < rules->categories.n; i++)
        if (strcmp(rules->categories.at[i].category.name, id_or_name) == 0)
            return (uint32_t)i;
    return UINT32_MAX;
}

uint32_t cat_rules_uncategorized(const struct cat_rules *rules)
{
    return rules->finished ? (uint32_t)rules->categories.n - 1 : UINT32_MAX;
}

size_t cat_rules_nrules(const struct cat_rules *rules)
{
    return rules->rules.n;
}

const struct cat_rule_info *cat_rules_rule(const struct cat_rules *rules, uint32_t rule)
{
    return rule < rules->rules.n ? &rules->rules.at[rule].info : NULL;
}
