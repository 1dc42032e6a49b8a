/* SPDX-License-Identifier: MIT */
/* cat_classify against a classifier that follows rules/README.md word for word, with no index, no lists and no care for speed: random rules, random
 * stacks. Names are short words of two letters, so that globs, contexts and `through` meet often; the trap would be sets in which most stacks
 * are uncategorized, so the test counts how often each way of deciding was taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "categorize/categorize.h"

enum { RULES_MAX = 12, FRAMES_MAX = 12, CATEGORIES = 6, SETS = 3000, STACKS = 40, TEXT = 8, LIST = 3 };

static uint64_t seed = 20240607;

static unsigned random_below(unsigned n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 33) % n;
}

static bool chance(unsigned percent)
{
    return random_below(100) < percent;
}

/* ---- a rule as plainly as can be ---- */

struct words {
    char at[LIST][TEXT];
    unsigned n;
};

struct place { /* a context, or the frame test of a rule */
    struct words symbol, module;
};

struct places {
    struct place at[LIST];
    unsigned n;
};

struct plain_rule {
    bool through, kernel;
    unsigned category;
    struct place test;
    struct places caller, under, not_under;
    struct words thread;
    unsigned claims; /* 0 subtree, 1 self, 2 rest */
};

struct plain_frame {
    char name[TEXT], module[TEXT];
    bool kernel, mark;
};

struct plain_set {
    struct plain_rule rules[RULES_MAX];
    unsigned n;
};

struct plain_stack {
    struct plain_frame frames[FRAMES_MAX];
    unsigned n;
    char thread[TEXT];
    bool blocked, no_kernel, holds_lock;
};

static const enum cat_kind kinds[CATEGORIES] = {CAT_COST, CAT_COST, CAT_COST, CAT_WAIT, CAT_IDLE, CAT_IDLE};

static bool glob(const char *p, const char *s)
{
    if (*p == '*')
        return glob(p + 1, s) || (*s && glob(p, s + 1));
    return *p == '\0' ? *s == '\0' : *s && (*p == '?' || *p == *s) && glob(p + 1, s + 1);
}

/* A pattern in slashes is a regex of letters and anchors here: prefix, suffix or part. */
static bool word_matches(const char *p, const char *s)
{
    size_t n = strlen(p), letters;
    const char *found;

    if (p[0] != '/')
        return glob(p, s);
    letters = n - 2 - (p[1] == '^') - (p[n - 2] == '$');
    for (found = s; *found || letters == 0; found++) {
        if (strncmp(found, p + 1 + (p[1] == '^'), letters) == 0 && (p[1] != '^' || found == s) && (p[n - 2] != '$' || strlen(found) == letters))
            return true;
        if (!*found)
            break;
    }
    return false;
}

static bool words_match(const struct words *w, const char *s)
{
    for (unsigned i = 0; i < w->n; i++)
        if (word_matches(w->at[i], s))
            return true;
    return w->n == 0;
}

static bool place_matches(const struct place *p, const struct plain_frame *f)
{
    return !f->mark && words_match(&p->symbol, f->name) && words_match(&p->module, f->module);
}

static bool places_match(const struct places *p, const struct plain_frame *f)
{
    for (unsigned i = 0; i < p->n; i++)
        if (place_matches(&p->at[i], f))
            return true;
    return false;
}

static bool some_place(const struct places *p, const struct plain_stack *s, unsigned from)
{
    for (unsigned i = from; i < s->n; i++)
        if (places_match(p, &s->frames[i]))
            return true;
    return false;
}

static bool matches(const struct plain_rule *r, const struct plain_frame *f)
{
    return r->kernel == f->kernel && place_matches(&r->test, f);
}

static bool is_through(const struct plain_set *set, const struct plain_frame *f)
{
    for (unsigned i = 0; i < set->n; i++)
        if (set->rules[i].through && matches(&set->rules[i], f))
            return true;
    return false;
}

static bool holds(const struct plain_set *set, const struct plain_rule *r, const struct plain_stack *s, unsigned frame)
{
    unsigned caller = frame + 1;

    while (caller < s->n && is_through(set, &s->frames[caller]))
        caller++;
    if (s->holds_lock && kinds[r->category] == CAT_IDLE)
        return false;
    return words_match(&r->thread, s->thread) && (!r->caller.n || (caller < s->n && places_match(&r->caller, &s->frames[caller]))) &&
           (!r->under.n || some_place(&r->under, s, frame + 1)) && !some_place(&r->not_under, s, frame + 1);
}

/* One pass; -1 when nothing was claimed. */
static int pass(const struct plain_set *set, const struct plain_stack *s, enum cat_kind kind, bool rest, unsigned *payer, bool *inherited)
{
    bool kernel_leaf = s->n && s->frames[0].kernel && !s->blocked && !s->no_kernel, unclaimed = false;

    for (unsigned f = 0; f < s->n; f++) {
        const struct plain_frame *frame = &s->frames[f];
        bool through = false;

        if (kernel_leaf && !frame->kernel)
            return -1;
        if (frame->mark || (frame->kernel && s->no_kernel))
            continue;
        for (unsigned i = 0; i < set->n && !through; i++) {
            const struct plain_rule *r = &set->rules[i];

            if (!matches(r, frame))
                continue;
            if (r->through) {
                through = !rest;
            } else if (kinds[r->category] == kind && (r->claims == 2) == rest && !(r->claims == 1 && unclaimed) && holds(set, r, s, f)) {
                *payer = f;
                *inherited = unclaimed && !rest;
                return (int)i;
            }
        }
        unclaimed |= !through && !(frame->kernel && s->blocked);
    }
    return -1;
}

static int classify(const struct plain_set *set, const struct plain_stack *s, unsigned *payer, bool *inherited)
{
    int rule = -1;

    for (int rest = 0; rest < 2 && rule < 0; rest++) {
        if (!s->blocked)
            rule = pass(set, s, CAT_COST, rest, payer, inherited);
        if (s->blocked)
            rule = pass(set, s, CAT_IDLE, rest, payer, inherited);
        if (s->blocked && rule < 0)
            rule = pass(set, s, CAT_WAIT, rest, payer, inherited);
    }
    return rule;
}

/* The frame counts for the category: some rule of it holds, and no subtree rule of another of the kind, nor a `through` entry, stands before. */
static bool counts(const struct plain_set *set, const struct plain_stack *s, unsigned frame, unsigned category, bool rest)
{
    bool taken = false;

    if (s->frames[frame].mark || (s->frames[frame].kernel && s->no_kernel) || s->blocked == (kinds[category] == CAT_COST))
        return false;
    for (unsigned i = 0; i < set->n; i++) {
        const struct plain_rule *r = &set->rules[i];

        if (!matches(r, &s->frames[frame]))
            continue;
        if (r->through)
            taken = true;
        else if (r->category == category && r->claims == 2 && rest && holds(set, r, s, frame))
            return true;
        else if (r->category == category && r->claims != 2 && !taken && holds(set, r, s, frame))
            return true;
        else if (r->claims == 0 && kinds[r->category] == kinds[category] && holds(set, r, s, frame))
            taken = true;
    }
    return false;
}

/* Who the frames of the deciding category are paid for: the walk goes on behind the payer, those frames and kernel frames left out. */
static int payer_of(const struct plain_set *set, const struct plain_stack *s, const struct plain_rule *by, unsigned payer, unsigned *frame)
{
    for (int rest = 0; rest < 2; rest++) {
        bool unclaimed = false;

        for (unsigned f = payer + 1; f < s->n; f++) {
            bool passed = false;

            if (s->frames[f].mark || s->frames[f].kernel || counts(set, s, f, by->category, by->claims == 2))
                continue;
            for (unsigned i = 0; i < set->n && !passed; i++) {
                const struct plain_rule *r = &set->rules[i];

                if (!matches(r, &s->frames[f]))
                    continue;
                if (r->through) {
                    passed = !rest;
                } else if (kinds[r->category] == CAT_COST && (r->claims == 2) == rest && !(r->claims == 1 && unclaimed) && holds(set, r, s, f)) {
                    if (r->category != by->category) {
                        *frame = f;
                        return (int)r->category;
                    }
                    passed = true;
                }
            }
            unclaimed |= !passed;
        }
    }
    *frame = s->n;
    return CATEGORIES;
}

/* ---- random things ---- */

static void random_name(char *to)
{
    unsigned n = 1 + random_below(3);

    for (unsigned i = 0; i < n; i++)
        to[i] = (char)('a' + random_below(2));
    to[n] = '\0';
}

static void random_words(struct words *w, unsigned max)
{
    static const char *const wild[] = {"*", "a*", "*b", "?", "??", "*a*", "/a/", "/^b/", "/b$/", "/^ab$/", "b?", "a*b"};

    w->n = 1 + random_below(max);
    for (unsigned i = 0; i < w->n; i++) {
        if (chance(40))
            snprintf(w->at[i], TEXT, "%s", wild[random_below(12)]);
        else
            random_name(w->at[i]);
    }
}

static void random_place(struct place *p, bool map)
{
    if (!map || chance(60))
        random_words(&p->symbol, map ? 2 : 1);
    if (map && (!p->symbol.n || chance(40)))
        random_words(&p->module, 2);
}

static void random_places(struct places *p)
{
    p->n = 1 + random_below(LIST);
    for (unsigned i = 0; i < p->n; i++)
        random_place(&p->at[i], chance(50));
}

static void random_set(struct plain_set *set)
{
    bool throughs_first = chance(50);

    *set = (struct plain_set){.n = 1 + random_below(RULES_MAX)};
    for (unsigned i = 0; i < set->n; i++) {
        struct plain_rule *r = &set->rules[i];

        r->through = throughs_first ? i < set->n / 4 : i >= set->n - set->n / 4;
        r->kernel = chance(25);
        random_place(&r->test, true);
        if (r->through)
            continue;
        r->category = random_below(CATEGORIES);
        r->claims = chance(60) ? 0 : 1 + random_below(2);
        if (chance(25))
            random_places(&r->caller);
        if (chance(25))
            random_places(&r->under);
        if (chance(25))
            random_places(&r->not_under);
        if (chance(15))
            random_words(&r->thread, 2);
    }
}

static void random_stack(struct plain_stack *s)
{
    unsigned kernel = chance(30) ? random_below(4) : 0;

    *s = (struct plain_stack){.n = random_below(FRAMES_MAX), .blocked = chance(40), .no_kernel = chance(15), .holds_lock = chance(15)};
    random_name(s->thread);
    for (unsigned i = 0; i < s->n; i++) {
        random_name(s->frames[i].name);
        random_name(s->frames[i].module);
        s->frames[i].kernel = i < kernel;
        s->frames[i].mark = i + 1 == s->n && chance(15);
    }
}

/* ---- as YAML ---- */

static void print_words(struct rp_buf *out, const char *key, const struct words *w)
{
    if (!w->n)
        return;
    rp_buf_printf(out, "%s: [", key);
    for (unsigned i = 0; i < w->n; i++)
        rp_buf_printf(out, "%s'%s'", i ? ", " : "", w->at[i]);
    rp_buf_puts(out, "]");
}

static void print_place(struct rp_buf *out, const struct place *p)
{
    print_words(out, "symbol", &p->symbol);
    rp_buf_puts(out, p->symbol.n && p->module.n ? ", " : "");
    print_words(out, "module", &p->module);
}

static void print_places(struct rp_buf *out, const char *key, const struct places *p)
{
    if (!p->n)
        return;
    rp_buf_printf(out, ", %s: [", key);
    for (unsigned i = 0; i < p->n; i++) {
        rp_buf_puts(out, i ? ", {" : "{");
        print_place(out, &p->at[i]);
        rp_buf_puts(out, "}");
    }
    rp_buf_puts(out, "]");
}

static void print_set(struct rp_buf *out, const struct plain_set *set)
{
    static const char *const claims[] = {"subtree", "self", "rest"};
    static const char *const names[] = {"cost", "wait", "idle"};
    bool rules = false, throughs = false;

    rp_buf_puts(out, "categories:\n");
    for (unsigned i = 0; i < CATEGORIES; i++)
        rp_buf_printf(out, "  - {id: c%u, name: C%u, kind: %s}\n", i, i, names[kinds[i]]);
    for (unsigned i = 0; i < set->n; i++) {
        const struct plain_rule *r = &set->rules[i];

        if (!(r->through ? throughs : rules))
            rp_buf_puts(out, r->through ? "through:\n" : "rules:\n");
        throughs |= r->through;
        rules |= !r->through;
        rp_buf_puts(out, "  - {");
        print_place(out, &r->test);
        rp_buf_printf(out, ", space: %s", r->kernel ? "kernel" : "user");
        if (!r->through) {
            rp_buf_printf(out, ", id: r%u, category: c%u, claims: %s", i, r->category, claims[r->claims]);
            print_places(out, "caller", &r->caller);
            print_places(out, "under", &r->under);
            print_places(out, "not_under", &r->not_under);
            rp_buf_puts(out, r->thread.n ? ", " : "");
            print_words(out, "thread", &r->thread);
        }
        rp_buf_puts(out, "}\n");
    }
}

/* ---- the comparison ---- */

struct tally {
    unsigned claimed, inherited, rest, none, totals, payers;
};

static void tell(const struct plain_set *set, const struct plain_stack *s)
{
    struct rp_buf text = {0};

    print_set(&text, set);
    for (unsigned i = 0; i < s->n; i++)
        rp_buf_printf(&text, "%s%s%s!%s%s", i ? " < " : "", s->frames[i].kernel ? "[k]" : "", s->frames[i].module, s->frames[i].name,
                      s->frames[i].mark ? "(mark)" : "");
    print_error("%s | thread=%s%s%s%s\n", rp_buf_text(&text), s->thread, s->blocked ? " state=blocked" : "", s->no_kernel ? " no-kernel" : "",
                s->holds_lock ? " holds-lock" : "");
    rp_buf_release(&text);
}

static bool totals_agree(const struct plain_set *set, const struct plain_stack *s, struct cat_matcher *matcher, const uint32_t *ids,
                         const struct cat_context *context, const struct cat_verdict *v, struct tally *tally)
{
    bool has[CATEGORIES + 1] = {false};

    cat_totals(matcher, ids, s->n, context, v, has);
    for (unsigned c = 0; c < CATEGORIES; c++) {
        bool mine = v->category == c;

        for (unsigned f = 0; f < s->n; f++) {
            bool one = counts(set, s, f, c, false);

            mine |= one;
            if (cat_claims(matcher, ids, s->n, f, context, c) !=
                (one || (v->category == c && v->rule != CAT_NO_RULE && set->rules[v->rule].claims == 2 && counts(set, s, f, c, true))))
                return false;
        }
        if (mine != has[c])
            return false;
        tally->totals += mine;
    }
    return true;
}

static bool agrees(const struct plain_set *set, const struct plain_stack *s, struct cat_matcher *matcher, struct tally *tally)
{
    struct cat_context context = {s->thread, s->blocked ? CAT_BLOCKED : CAT_RUNNING, s->no_kernel, false, s->holds_lock};
    uint32_t ids[FRAMES_MAX];
    struct cat_verdict v;
    struct rp_err err = {0};
    unsigned payer = s->n, outer;
    bool inherited = false;
    int rule = classify(set, s, &payer, &inherited);

    for (unsigned i = 0; i < s->n; i++) {
        const struct plain_frame *f = &s->frames[i];
        struct cat_symbol symbol = {
            .name = f->name, .short_name = f->name, .raw = f->name, .module = f->module, .kernel = f->kernel, .mark = f->mark};

        assert_int_equal(cat_matcher_symbol(matcher, &symbol, &ids[i], &err), RP_OK);
    }
    cat_classify(matcher, ids, s->n, &context, &v);
    if ((rule < 0 ? CAT_NO_RULE : (uint32_t)rule) != v.rule || v.payer != payer || v.inherited != inherited)
        return false;
    outer = s->n;
    for (unsigned f = payer; rule >= 0 && f < s->n; f++)
        if (f == payer || counts(set, s, f, set->rules[rule].category, set->rules[rule].claims == 2))
            outer = f;
    if (v.outer != outer || v.category != (rule < 0 ? CATEGORIES : set->rules[rule].category))
        return false;
    if (rule >= 0) {
        uint32_t by, at;
        unsigned plain_at;

        cat_classify_payer_of(matcher, ids, s->n, &context, &v, &by, &at);
        if (payer_of(set, s, &set->rules[rule], payer, &plain_at) != (int)by || plain_at != at)
            return false;
        tally->payers += at < s->n;
    }
    tally->claimed += rule >= 0;
    tally->inherited += inherited;
    tally->rest += rule >= 0 && set->rules[rule].claims == 2;
    tally->none += rule < 0;
    return totals_agree(set, s, matcher, ids, &context, &v, tally);
}

static void a_plain_classifier_agrees(void **state)
{
    struct tally tally = {0};
    unsigned all = SETS * STACKS;

    (void)state;
    for (unsigned i = 0; i < SETS; i++) {
        struct plain_set set;
        struct rp_buf yaml = {0}, problems = {0};
        struct rp_err err = {0};
        struct cat_rules *rules = NULL;
        struct cat_matcher *matcher = NULL;

        random_set(&set);
        print_set(&yaml, &set);
        assert_int_equal(cat_rules_new(&rules, &err), RP_OK);
        if (cat_rules_add(rules, "random.yaml", rp_buf_text(&yaml), yaml.length, &problems, &err) || cat_rules_finish(rules, &problems, &err))
            fail_msg("%s%s", rp_buf_text(&problems), rp_buf_text(&yaml));
        assert_int_equal(cat_matcher_new(rules, &matcher, &err), RP_OK);
        for (unsigned k = 0; k < STACKS; k++) {
            struct plain_stack stack;

            random_stack(&stack);
            if (!agrees(&set, &stack, matcher, &tally)) {
                tell(&set, &stack);
                fail();
            }
        }
        cat_matcher_free(matcher);
        cat_rules_free(rules);
        rp_buf_release(&yaml);
        rp_buf_release(&problems);
    }
    print_message("%u stacks: %u claimed, %u inherited, %u by rest, %u by none; %u totals, %u payers\n", all, tally.claimed, tally.inherited,
                  tally.rest, tally.none, tally.totals, tally.payers);
    assert_true(tally.claimed > all / 3 && tally.inherited > all / 50 && tally.rest > all / 50 && tally.none > all / 20 &&
                tally.payers > all / 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_plain_classifier_agrees)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
