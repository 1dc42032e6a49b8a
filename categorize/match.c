/* SPDX-License-Identifier: MIT */
/* Matches all patterns against a symbol once. Exact names, which are most, cost one hash lookup however many there are; globs are sorted by first
 * byte; only regexes and the few module and file patterns are tried one by one.
 *
 *     name ──> patterns that match ──post──> entries (rules, contexts) that hang on them ──> check their other fields ──> list
 *
 * An entry hangs on the patterns of its first field that has some, so one with only a module pattern is found by its module. */
#include "matcher.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { WILD_BUCKET = 256, SLOW_SYMBOL = 0, SLOW_MODULE = 1, SLOW_FILE = 2 };

struct pattern_key {
    const struct cat_rules *rules;
    enum cat_field field;
    enum cat_pattern_kind kind;
    const char *body;
    size_t length;
};

static bool same_pattern(const void *context, uint32_t position)
{
    const struct pattern_key *key = context;
    const struct cat_pattern *p = &key->rules->patterns.at[position];

    return p->field == key->field && p->kind == key->kind && p->body_length == key->length && memcmp(p->body, key->body, key->length) == 0;
}

static uint32_t pattern_hash(const struct pattern_key *key)
{
    return rp_hash_mix(rp_hash_bytes(key->body, key->length), (uint64_t)key->field << 8 | (uint64_t)key->kind);
}

static const struct cat_frame_test *entry_test(const struct cat_matcher *m, uint32_t entry)
{
    return entry < m->nrules ? &m->rules->rules.at[entry].test : &m->rules->contexts.at[entry - m->nrules];
}

static enum cat_field key_field(const struct cat_frame_test *test)
{
    return test->field[CAT_SYMBOL].n ? CAT_SYMBOL : test->field[CAT_MODULE].n ? CAT_MODULE : CAT_FILE;
}

static bool build_canon(struct cat_matcher *m)
{
    m->canon = rp_calloc(m->npatterns + 1, sizeof *m->canon);
    if (!m->canon)
        return false;
    for (uint32_t i = 0; i < m->npatterns; i++) {
        const struct cat_pattern *p = &m->rules->patterns.at[i];
        struct pattern_key key = {m->rules, p->field, p->kind, p->body, p->body_length};
        uint32_t hash = pattern_hash(&key);
        uint32_t *slot = rp_index_find(&m->index, hash, same_pattern, &key);

        if (!slot)
            return false;
        if (*slot == RP_INDEX_EMPTY)
            rp_index_set(&m->index, slot, hash, i);
        m->canon[i] = *slot;
    }
    return true;
}

/* The bucket of a symbol glob, -1 for patterns that are none (or stand for another). */
static int glob_bucket(const struct cat_matcher *m, uint32_t pattern)
{
    const struct cat_pattern *p = &m->rules->patterns.at[pattern];

    if (m->canon[pattern] != pattern || p->field != CAT_SYMBOL || p->kind != CAT_PATTERN_GLOB)
        return -1;
    return p->body[0] == CAT_GLOB_ANY || p->body[0] == CAT_GLOB_ONE ? WILD_BUCKET : (unsigned char)p->body[0];
}

static bool build_globs(struct cat_matcher *m)
{
    uint32_t at[257];

    m->globs = rp_calloc(m->npatterns + 1, sizeof *m->globs);
    if (!m->globs)
        return false;
    for (uint32_t i = 0; i < m->npatterns; i++)
        if (glob_bucket(m, i) >= 0)
            m->glob_first[glob_bucket(m, i) + 1]++;
    for (size_t b = 0; b < 257; b++) {
        m->glob_first[b + 1] += m->glob_first[b];
        at[b] = m->glob_first[b];
    }
    for (uint32_t i = 0; i < m->npatterns; i++)
        if (glob_bucket(m, i) >= 0)
            m->globs[at[glob_bucket(m, i)]++] = i;
    return true;
}

static bool build_slow(struct cat_matcher *m)
{
    uint32_t n = 0;

    m->slow = rp_calloc(m->npatterns + 1, sizeof *m->slow);
    if (!m->slow)
        return false;
    for (size_t which = SLOW_SYMBOL; which <= SLOW_FILE; which++) {
        for (uint32_t i = 0; i < m->npatterns; i++) {
            const struct cat_pattern *p = &m->rules->patterns.at[i];

            if (m->canon[i] == i && (size_t)p->field == which &&
                (which == SLOW_FILE || p->kind == CAT_PATTERN_REGEX || (which == SLOW_MODULE && p->kind == CAT_PATTERN_GLOB)))
                m->slow[n++] = i;
        }
        m->nslow[which] = n;
    }
    return true;
}

static bool build_posts(struct cat_matcher *m)
{
    uint32_t total = 0, *at;

    m->post_first = rp_calloc((size_t)m->npatterns + 2, sizeof *m->post_first);
    at = rp_calloc((size_t)m->npatterns + 1, sizeof *at);
    if (!m->post_first || !at) {
        rp_free(at);
        return false;
    }
    for (uint32_t e = 0; e < m->nentries; e++) {
        struct cat_span span = entry_test(m, e)->field[key_field(entry_test(m, e))];

        for (uint32_t i = 0; i < span.n; i++, total++)
            m->post_first[m->canon[span.first + i] + 1]++;
    }
    for (uint32_t i = 0; i < m->npatterns; i++) {
        m->post_first[i + 1] += m->post_first[i];
        at[i] = m->post_first[i];
    }
    m->post = rp_calloc((size_t)total + 1, sizeof *m->post);
    m->gathered = rp_calloc((size_t)total + 1, sizeof *m->gathered);
    for (uint32_t e = 0; m->post && e < m->nentries; e++) {
        struct cat_span span = entry_test(m, e)->field[key_field(entry_test(m, e))];

        for (uint32_t i = 0; i < span.n; i++)
            m->post[at[m->canon[span.first + i]]++] = e;
    }
    rp_free(at);
    return m->post && m->gathered;
}

static enum rp_status build_scratch(struct cat_matcher *m, struct rp_err *err)
{
    struct cat_scratch *s = m->scratch = rp_calloc(1, sizeof *s);
    size_t ncontexts = m->rules->contexts.n;

    if (!s)
        return rp_fail_nomem(err);
    s->context_epoch = rp_calloc(ncontexts + 1, sizeof *s->context_epoch);
    s->context_last = rp_calloc(ncontexts + 1, sizeof *s->context_last);
    s->context_first = rp_calloc(ncontexts + 1, sizeof *s->context_first);
    s->thread_match = rp_calloc((size_t)m->nrules + 1, 1);
    m->hit = rp_calloc((size_t)m->npatterns / 64 + 1, sizeof *m->hit);
    m->matched = rp_calloc((size_t)m->npatterns + 1, sizeof *m->matched);
    if (!s->context_epoch || !s->context_last || !s->context_first || !s->thread_match || !m->hit || !m->matched)
        return rp_fail_nomem(err);
    return cat_regex_run_init(&s->run, &m->rules->tools, err);
}

enum rp_status cat_matcher_new(const struct cat_rules *rules, struct cat_matcher **out, struct rp_err *err)
{
    struct cat_matcher *m;
    enum rp_status status = RP_OK;

    *out = NULL;
    if (!rules->finished)
        return rp_fail(err, RP_FAILED, "the rules are not finished; call cat_rules_finish first");
    m = rp_calloc(1, sizeof *m);
    if (!m)
        return rp_fail_nomem(err);
    m->rules = rules;
    m->nrules = (uint32_t)rules->rules.n;
    m->nentries = m->nrules + (uint32_t)rules->contexts.n;
    m->npatterns = (uint32_t)rules->patterns.n;
    if (!build_canon(m) || !build_globs(m) || !build_slow(m) || !build_posts(m))
        status = rp_fail_nomem(err);
    if (!status)
        status = build_scratch(m, err);
    if (status)
        cat_matcher_free(m);
    else
        *out = m;
    return status;
}

void cat_matcher_free(struct cat_matcher *m)
{
    if (!m)
        return;
    if (m->scratch) {
        rp_free(m->scratch->context_epoch);
        rp_free(m->scratch->context_last);
        rp_free(m->scratch->context_first);
        rp_free(m->scratch->thread_match);
        cat_regex_run_release(&m->scratch->run);
        rp_free(m->scratch);
    }
    rp_free(m->canon);
    rp_index_release(&m->index);
    rp_free(m->globs);
    rp_free(m->slow);
    rp_free(m->post_first);
    rp_free(m->post);
    rp_free(m->hit);
    rp_free(m->matched);
    rp_free(m->gathered);
    rp_vec_release(&m->symbols);
    rp_vec_release(&m->pool);
    rp_free(m);
}

uint64_t cat_matcher_gave_up(const struct cat_matcher *matcher)
{
    return matcher->scratch->run.gave_up;
}

/* ---- one symbol ---- */

size_t cat_plain_length(const char *name)
{
    static const char *const tails[] = {"@plt", " [local]"};
    size_t length = strlen(name);

    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        size_t tail = strlen(tails[i]);

        if (length > tail && strcmp(name + length - tail, tails[i]) == 0)
            return length - tail;
    }
    return length;
}

static void mark_hit(struct cat_matcher *m, uint32_t pattern)
{
    uint64_t bit = (uint64_t)1 << (pattern & 63);

    if (m->hit[pattern >> 6] & bit)
        return;
    m->hit[pattern >> 6] |= bit;
    m->matched[m->nmatched++] = pattern;
}

static bool is_hit(const struct cat_matcher *m, uint32_t pattern)
{
    uint32_t canon = m->canon[pattern];

    return m->hit[canon >> 6] >> (canon & 63) & 1;
}

static void try_exact(struct cat_matcher *m, enum cat_field field, const char *text, size_t length)
{
    struct pattern_key key = {m->rules, field, CAT_PATTERN_EXACT, text, length};
    uint32_t at = rp_index_lookup(&m->index, pattern_hash(&key), same_pattern, &key);

    if (at != RP_INDEX_EMPTY)
        mark_hit(m, at);
}

static void try_globs(struct cat_matcher *m, uint32_t bucket, const char *text, size_t length)
{
    for (uint32_t i = m->glob_first[bucket]; i < m->glob_first[bucket + 1]; i++) {
        const struct cat_pattern *p = &m->rules->patterns.at[m->globs[i]];

        if (cat_glob_match(p->body, p->body_length, text, length))
            mark_hit(m, m->globs[i]);
    }
}

static void try_slow(struct cat_matcher *m, size_t which, const char *text, size_t length)
{
    for (uint32_t i = which ? m->nslow[which - 1] : 0; i < m->nslow[which]; i++) {
        uint32_t pattern = m->slow[i];

        if (!is_hit(m, pattern) && cat_pattern_match(&m->rules->patterns.at[pattern], &m->scratch->run, text, length))
            mark_hit(m, pattern);
    }
}

static void try_name(struct cat_matcher *m, const char *text, size_t length)
{
    if (!length)
        return;
    try_exact(m, CAT_SYMBOL, text, length);
    try_globs(m, (unsigned char)text[0], text, length);
    try_globs(m, WILD_BUCKET, text, length);
    try_slow(m, SLOW_SYMBOL, text, length);
}

static void match_patterns(struct cat_matcher *m, const struct cat_symbol *symbol)
{
    const char *name = symbol->short_name ? symbol->short_name : symbol->name ? symbol->name : "";

    try_name(m, name, cat_plain_length(name));
    for (size_t i = 0; i < symbol->naliases; i++)
        try_name(m, symbol->aliases[i], cat_plain_length(symbol->aliases[i]));
    if (symbol->name && strcmp(symbol->name, name) != 0)
        try_slow(m, SLOW_SYMBOL, symbol->name, strlen(symbol->name));
    if (symbol->raw && strcmp(symbol->raw, name) != 0 && !(symbol->name && strcmp(symbol->raw, symbol->name) == 0))
        try_slow(m, SLOW_SYMBOL, symbol->raw, strlen(symbol->raw));
    if (symbol->module) {
        try_exact(m, CAT_MODULE, symbol->module, strlen(symbol->module));
        try_slow(m, SLOW_MODULE, symbol->module, strlen(symbol->module));
    }
    if (symbol->file)
        try_slow(m, SLOW_FILE, symbol->file, strlen(symbol->file));
}

static bool field_holds(const struct cat_matcher *m, struct cat_span span)
{
    for (uint32_t i = 0; i < span.n; i++)
        if (is_hit(m, span.first + i))
            return true;
    return span.n == 0;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Entries whose every field holds, in order, each once; returns how many. */
static uint32_t gather(struct cat_matcher *m, bool kernel)
{
    uint32_t n = 0, kept = 0;

    for (uint32_t i = 0; i < m->nmatched; i++)
        for (uint32_t p = m->post_first[m->matched[i]]; p < m->post_first[m->matched[i] + 1]; p++) {
            const struct cat_frame_test *test = entry_test(m, m->post[p]);

            if (m->post[p] < m->nrules && m->rules->rules.at[m->post[p]].kernel != kernel)
                continue;
            if (field_holds(m, test->field[CAT_SYMBOL]) && field_holds(m, test->field[CAT_MODULE]) && field_holds(m, test->field[CAT_FILE]))
                m->gathered[n++] = m->post[p];
        }
    qsort(m->gathered, n, sizeof *m->gathered, by_number);
    for (uint32_t i = 0; i < n; i++)
        if (!kept || m->gathered[kept - 1] != m->gathered[i])
            m->gathered[kept++] = m->gathered[i];
    return kept;
}

enum rp_status cat_matcher_symbol(struct cat_matcher *m, const struct cat_symbol *symbol, uint32_t *id, struct rp_err *err)
{
    struct cat_known_symbol known = {.first = (uint32_t)m->pool.n, .kernel = symbol->kernel, .mark = symbol->mark};
    uint32_t n = 0;

    if (m->symbols.n >= UINT32_MAX || m->pool.n >= UINT32_MAX - m->nentries)
        return rp_fail(err, RP_LIMIT, "there are more functions than rules can be matched against; record for a shorter time");
    if (!symbol->mark) {
        match_patterns(m, symbol);
        n = gather(m, symbol->kernel);
        for (uint32_t i = 0; i < m->nmatched; i++)
            m->hit[m->matched[i] >> 6] = 0;
        m->nmatched = 0;
    }
    if (!rp_vec_reserve(&m->pool, (size_t)n + 1) || !rp_vec_reserve(&m->symbols, 1)) /* never NULL: places in it are counted from there */
        return rp_fail_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        const struct cat_rule *rule = m->gathered[i] < m->nrules ? &m->rules->rules.at[m->gathered[i]] : NULL;

        m->pool.at[m->pool.n++] = rule ? m->gathered[i] : m->gathered[i] - m->nrules;
        known.nrules += rule != NULL;
        known.ncontexts += rule == NULL;
        if (rule && rule->info.through)
            known.through = true;
        else if (rule)
            known.categories |= (uint64_t)1 << (rule->info.category & 63);
    }
    m->symbols.at[m->symbols.n++] = known;
    *id = (uint32_t)m->symbols.n - 1;
    return RP_OK;
}
