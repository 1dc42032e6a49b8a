/* SPDX-License-Identifier: MIT */
/* See symbolize.h: the driver. Each location is looked up once; each function is described once, whatever the number of its addresses.
 *
 * The trap: a return address belongs to the byte before it. A call that never returns is the last instruction of its function, and the address
 * after it is the next function's. */
#include "symbolize/symbolize.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "symbolize/debuginfod.h"
#include "symbolize/imagenames.h"
#include "symbolize/jitmap.h"
#include "symbolize/kallsyms.h"
#include "symbolize/remedy.h"

/* A function of an image that was described before. */
struct known {
    uint64_t start;
    uint32_t image;
    uint32_t function;
};

/* JIT code that no map covered when it was met; writers buffer, so the line may come later. */
struct pending {
    uint32_t location;
    uint32_t entries; /* of the map, when it was last looked up */
};

struct rp_symbolizer {
    const struct rp_images *images;
    struct rp_unwinder *unwinder;
    struct rp_symbolizer_options options;
    char *debug_dir, *kallsyms_path;
    struct rp_debuginfod *debuginfod;
    char *debuginfod_problem;
    const struct rp_profile *profile; /* that `known` is about */
    RP_VEC(struct rp_image_names *) names; /* by image; NULL not needed yet */
    RP_VEC(bool) unnamed;                  /* by image: something of it stayed without name */
    RP_VEC(struct known) known;
    struct rp_index known_index;
    RP_VEC(struct rp_jit *) jits;
    RP_VEC(struct pending) pending;
    struct rp_kallsyms kernel;
    bool kernel_read;
    struct rp_dwarf_frames frames; /* scratch */
    struct rp_buf text;            /* scratch */
    struct rp_symbolizer_stats stats;
};

static enum rp_status copy_options(struct rp_symbolizer *s, const struct rp_symbolizer_options *options, struct rp_err *err)
{
    struct rp_err why = {0};

    if (!options)
        return RP_OK;
    s->options = *options;
    if (options->debug_dir)
        s->options.debug_dir = s->debug_dir = rp_strndup(options->debug_dir, strlen(options->debug_dir));
    if (options->kallsyms)
        s->options.kallsyms = s->kallsyms_path = rp_strndup(options->kallsyms, strlen(options->kallsyms));
    if ((options->debug_dir && !s->debug_dir) || (options->kallsyms && !s->kallsyms_path))
        return rp_fail_nomem(err);
    if (options->debuginfod && rp_debuginfod_new(&s->debuginfod, &why)) {
        s->debuginfod_problem = rp_strndup(why.text, strlen(why.text));
        if (!s->debuginfod_problem)
            return rp_fail_nomem(err);
    }
    return RP_OK;
}

enum rp_status rp_symbolizer_new(const struct rp_images *images, struct rp_unwinder *unwinder, const struct rp_symbolizer_options *options,
                                 struct rp_symbolizer **out, struct rp_err *err)
{
    struct rp_symbolizer *s = rp_calloc(1, sizeof *s);
    enum rp_status status;

    if (!s)
        return rp_fail_nomem(err);
    s->images = images;
    s->unwinder = unwinder;
    status = copy_options(s, options, err);
    if (status) {
        rp_symbolizer_free(s);
        return status;
    }
    *out = s;
    return RP_OK;
}

void rp_symbolizer_free(struct rp_symbolizer *symbolizer)
{
    if (!symbolizer)
        return;
    for (size_t i = 0; i < symbolizer->names.n; i++)
        rp_image_names_free(symbolizer->names.at[i]);
    for (size_t i = 0; i < symbolizer->jits.n; i++) {
        rp_jit_release(symbolizer->jits.at[i]);
        rp_free(symbolizer->jits.at[i]);
    }
    rp_vec_release(&symbolizer->names);
    rp_vec_release(&symbolizer->unnamed);
    rp_vec_release(&symbolizer->known);
    rp_index_release(&symbolizer->known_index);
    rp_vec_release(&symbolizer->jits);
    rp_vec_release(&symbolizer->pending);
    rp_kallsyms_release(&symbolizer->kernel);
    rp_vec_release(&symbolizer->frames.at);
    rp_buf_release(&symbolizer->text);
    rp_debuginfod_free(symbolizer->debuginfod);
    rp_free(symbolizer->debuginfod_problem);
    rp_free(symbolizer->debug_dir);
    rp_free(symbolizer->kallsyms_path);
    rp_free(symbolizer);
}

/* What is being worked on. */
struct work {
    struct rp_symbolizer *s;
    struct rp_profile *profile;
    const struct rp_image *image;
    uint32_t image_id;
    uint32_t module; /* string */
};

static enum rp_status intern(struct work *w, const char *text, uint32_t *id, struct rp_err *err)
{
    return rp_profile_string(w->profile, text, strlen(text), id, err);
}

static enum rp_status intern_scratch(struct work *w, uint32_t *id, struct rp_err *err)
{
    if (w->s->text.failed) {
        rp_buf_release(&w->s->text);
        w->s->text.failed = false;
        return rp_fail_nomem(err);
    }
    return rp_profile_string(w->profile, rp_buf_text(&w->s->text), w->s->text.length, id, err);
}

static enum rp_status intern_demangled(struct work *w, const char *raw, const char *suffix, uint32_t *id, struct rp_err *err)
{
    rp_buf_clear(&w->s->text);
    rp_demangle(raw, false, &w->s->text);
    rp_buf_puts(&w->s->text, suffix);
    return intern_scratch(w, id, err);
}

static void mark_unnamed(struct work *w)
{
    if (w->image_id < w->s->unnamed.n)
        w->s->unnamed.at[w->image_id] = true;
}

/* A function of which nothing is known but where it is: `module+0xstart`, or the module alone. */
static enum rp_status describe_offset(struct work *w, uint64_t start, bool with_offset, uint32_t *function, struct rp_err *err)
{
    struct rp_function f = {.image = w->image_id, .module = w->module, .start = with_offset ? start : 0, .how = RP_NAME_OFFSET};
    const char *module = rp_profile_text(w->profile, w->module);
    enum rp_status status;

    mark_unnamed(w);
    rp_buf_clear(&w->s->text);
    rp_buf_puts(&w->s->text, *module ? module : "[unknown]");
    if (with_offset)
        rp_buf_printf(&w->s->text, "+0x%" PRIx64, start);
    status = intern_scratch(w, &f.name, err);
    f.raw = f.name;
    f.first_alias = (uint32_t)w->profile->aliases.n;
    return status ? status : rp_profile_function(w->profile, &f, function, err);
}

/* Adds the names after the first as aliases. For a local function behind a stub the stub's own name is one too. */
static enum rp_status add_aliases(struct work *w, const struct rp_symbol_names *names, size_t from, struct rp_function *f, struct rp_err *err)
{
    f->first_alias = (uint32_t)w->profile->aliases.n;
    for (size_t i = from; i < names->at.n; i++) {
        uint32_t id, *alias;
        enum rp_status status = intern(w, names->at.at[i].text, &id, err);

        if (status)
            return status;
        alias = rp_vec_add(&w->profile->aliases);
        if (!alias)
            return rp_fail_nomem(err);
        *alias = id;
        f->naliases++;
    }
    return RP_OK;
}

static enum rp_status describe_code(struct work *w, const struct rp_image_names *in, const struct rp_code_name *code, const char *file,
                                    uint32_t *function, struct rp_err *err)
{
    struct rp_function f = {.image = w->image_id, .module = w->module, .start = code->start, .how = code->how};
    bool local = code->how == RP_NAME_STUB_LOCAL;
    struct rp_symbol_names names = {0};
    enum rp_status status;

    if (!rp_image_names_read(in, code, &names)) {
        rp_symbol_names_release(&names);
        return describe_offset(w, code->start, true, function, err);
    }
    status = intern_demangled(w, names.at.at[0].text, local ? " [local]" : "", &f.name, err);
    if (!status)
        status = intern(w, names.at.at[0].text, &f.raw, err);
    if (!status)
        status = intern(w, file ? file : "", &f.file, err);
    if (!status)
        status = add_aliases(w, &names, local ? 0 : 1, &f, err);
    if (!status)
        status = rp_profile_function(w->profile, &f, function, err);
    if (local)
        mark_unnamed(w);
    rp_symbol_names_release(&names);
    return status;
}

struct known_key {
    const struct rp_symbolizer *s;
    uint64_t start;
    uint32_t image;
};

static bool same_known(const void *context, uint32_t position)
{
    const struct known_key *key = context;
    const struct known *k = &key->s->known.at[position];

    return k->start == key->start && k->image == key->image;
}

/* The function that begins at code->start, described at the first meeting. */
static enum rp_status code_function(struct work *w, const struct rp_image_names *in, const struct rp_code_name *code, const char *file,
                                    uint32_t *function, struct rp_err *err)
{
    struct known_key key = {w->s, code->start, w->image_id};
    uint32_t hash = rp_hash_mix(w->image_id, code->start);
    uint32_t *slot = rp_index_find(&w->s->known_index, hash, same_known, &key);
    enum rp_status status;
    struct known *added;

    if (!slot)
        return rp_fail_nomem(err);
    if (*slot != RP_INDEX_EMPTY) {
        *function = w->s->known.at[*slot].function;
        return RP_OK;
    }
    status = describe_code(w, in, code, file, function, err);
    if (status)
        return status;
    added = rp_vec_add(&w->s->known);
    if (!added)
        return rp_fail_nomem(err);
    *added = (struct known){code->start, w->image_id, *function};
    rp_index_set(&w->s->known_index, slot, hash, (uint32_t)w->s->known.n - 1);
    return RP_OK;
}

static enum rp_status add_line(struct work *w, uint32_t function, const char *file, uint32_t number, struct rp_err *err)
{
    struct rp_line line = {.function = function, .line = number}, *added;
    enum rp_status status = intern(w, file ? file : "", &line.file, err);

    if (status)
        return status;
    added = rp_vec_add(&w->profile->lines);
    if (!added)
        return rp_fail_nomem(err);
    *added = line;
    return RP_OK;
}

/* A function known by DWARF only: inlined, or without symbol. */
static enum rp_status dwarf_function(struct work *w, const struct rp_dwarf_frame *frame, uint32_t *function, struct rp_err *err)
{
    struct rp_function f = {.image = w->image_id, .module = w->module, .how = frame->inlined ? RP_NAME_INLINE : RP_NAME_SYMBOL,
                            .start = frame->inlined ? 0 : frame->start};
    const char *name = frame->name ? frame->name : "[inlined, nameless]";
    enum rp_status status = intern_demangled(w, name, "", &f.name, err);

    if (!status)
        status = intern(w, name, &f.raw, err);
    if (!status)
        status = intern(w, frame->decl_file ? frame->decl_file : "", &f.file, err);
    f.first_alias = (uint32_t)w->profile->aliases.n;
    return status ? status : rp_profile_function(w->profile, &f, function, err);
}

static enum rp_status names_of(struct work *w, struct rp_image_names **out, struct rp_err *err)
{
    struct rp_symbolizer *s = w->s;
    enum rp_status status = RP_OK;

    if (!s->names.at[w->image_id])
        status = rp_image_names_new(w->image, &s->options, s->debuginfod, &s->stats, &s->names.at[w->image_id], err);
    *out = s->names.at[w->image_id];
    return status;
}

static enum rp_status resolve_elf(struct work *w, uint64_t shown, uint64_t addr, struct rp_err *err)
{
    struct rp_dwarf_frames *frames = &w->s->frames;
    const struct rp_dwarf_frame *outer;
    struct rp_image_names *in = NULL;
    struct rp_dwarf *dwarf = NULL;
    struct rp_code_name code;
    enum rp_status status = names_of(w, &in, err);
    uint32_t function;

    rp_vec_clear(&frames->at);
    if (!status && !w->s->options.no_inlines)
        status = rp_image_names_dwarf(in, w->image, &w->s->options, &dwarf, err);
    if (!status && dwarf)
        status = rp_dwarf_find(dwarf, addr, frames, err);
    if (!status)
        status = rp_image_names_find(in, w->image, w->s->unwinder, addr, &code, err);
    for (size_t i = 0; !status && i < frames->at.n && frames->at.at[i].inlined; i++) {
        status = dwarf_function(w, &frames->at.at[i], &function, err);
        if (!status)
            status = add_line(w, function, frames->at.at[i].file, frames->at.at[i].line, err);
    }
    if (status)
        return status;
    outer = frames->at.n && !frames->at.at[frames->at.n - 1].inlined ? &frames->at.at[frames->at.n - 1] : NULL;
    if (code.how == RP_NAME_OFFSET && outer && outer->name)
        status = dwarf_function(w, outer, &function, err);
    else if (code.how == RP_NAME_OFFSET && code.start == addr)
        status = describe_offset(w, shown, true, &function, err);
    else
        status = code_function(w, in, &code, outer ? outer->decl_file : NULL, &function, err);
    return status ? status : add_line(w, function, outer ? outer->file : NULL, outer ? outer->line : 0, err);
}

static struct rp_jit *jit_of(const struct rp_symbolizer *s, uint32_t pid)
{
    for (size_t i = 0; i < s->jits.n; i++) {
        if (s->jits.at[i]->pid == pid)
            return s->jits.at[i];
    }
    return NULL;
}

/* The function that a map gives for the address; *function is UINT32_MAX when none does. */
static enum rp_status jit_function(struct work *w, const struct rp_jit *jit, uint64_t addr, uint32_t epoch, uint32_t *function, struct rp_err *err)
{
    struct rp_function f = {.image = w->image_id, .module = w->module, .how = RP_NAME_JIT};
    enum rp_status status;

    *function = UINT32_MAX;
    rp_buf_clear(&w->s->text);
    if (!jit || !rp_jit_name(jit, addr, epoch, &f.start, &w->s->text))
        return RP_OK;
    status = intern_scratch(w, &f.raw, err);
    if (!status)
        status = intern_demangled(w, rp_profile_text(w->profile, f.raw), "", &f.name, err);
    f.first_alias = (uint32_t)w->profile->aliases.n;
    return status ? status : rp_profile_function(w->profile, &f, function, err);
}

static enum rp_status resolve_jit(struct work *w, uint32_t location, uint64_t addr, uint32_t epoch, struct rp_err *err)
{
    const struct rp_jit *jit = jit_of(w->s, w->image->pid);
    uint32_t function;
    enum rp_status status = jit_function(w, jit, addr, epoch, &function, err);
    struct pending *late;

    if (!status && function == UINT32_MAX) {
        late = epoch ? NULL : rp_vec_add(&w->s->pending);
        if (late)
            *late = (struct pending){location, jit ? (uint32_t)jit->code.entries.n : 0};
        else if (!epoch)
            return rp_fail_nomem(err);
        status = describe_offset(w, 0, false, &function, err);
    }
    return status ? status : add_line(w, function, NULL, 0, err);
}

static enum rp_status resolve_kernel(struct work *w, uint64_t shown, uint64_t addr, struct rp_err *err)
{
    struct rp_function f = {.image = w->image_id, .how = RP_NAME_KERNEL};
    struct rp_symbolizer *s = w->s;
    const char *name, *module;
    enum rp_status status;
    uint32_t function;

    if (!s->kernel_read) {
        status = rp_kallsyms_read(&s->kernel, s->options.kallsyms, err);
        if (status)
            return status;
        s->kernel_read = true;
        s->stats.files_parsed++;
        s->stats.symbols += s->kernel.symbols.n;
    }
    if (rp_kallsyms_find(&s->kernel, addr, &f.start, &name, &module)) {
        status = intern(w, name, &f.raw, err);
        f.name = f.raw;
        if (!status)
            status = intern(w, module, &f.module, err);
        f.first_alias = (uint32_t)w->profile->aliases.n;
        if (!status)
            status = rp_profile_function(w->profile, &f, &function, err);
    } else {
        status = describe_offset(w, shown, !s->kernel.hidden, &function, err);
    }
    return status ? status : add_line(w, function, NULL, 0, err);
}

static enum rp_status resolve_mark(struct work *w, uint32_t text, struct rp_err *err)
{
    struct rp_function f = {.name = text, .raw = text, .image = RP_IMAGE_ID_MARK, .how = RP_NAME_MARK,
                            .first_alias = (uint32_t)w->profile->aliases.n};
    uint32_t function;
    enum rp_status status = rp_profile_function(w->profile, &f, &function, err);

    return status ? status : add_line(w, function, NULL, 0, err);
}

/* The string that stands in `(in …)`. */
static enum rp_status find_module(struct work *w, struct rp_err *err)
{
    const char *path = w->image && w->image->path ? w->image->path : "", *slash = strrchr(path, '/');

    if (w->image_id < w->profile->images.n && w->profile->images.at[w->image_id].name) {
        w->module = w->profile->images.at[w->image_id].name;
        return RP_OK;
    }
    return intern(w, slash ? slash + 1 : path, &w->module, err);
}

static uint64_t looked_up(const struct rp_location *at)
{
    return (at->flags & RP_LOCATION_CALLER) && at->addr ? at->addr - 1 : at->addr;
}

/* Gives names to JIT code that had none, where the map has grown since. */
static enum rp_status resolve_pending(struct rp_symbolizer *s, struct rp_profile *profile, struct rp_err *err)
{
    enum rp_status status = RP_OK;
    size_t kept = 0, i;

    for (i = 0; !status && i < s->pending.n; i++) {
        struct pending late = s->pending.at[i];
        const struct rp_location at = profile->locations.at[late.location];
        struct work w = {s, profile, s->images->at.at[at.image], at.image, 0};
        const struct rp_jit *jit = jit_of(s, w.image->pid);
        uint32_t function = UINT32_MAX;

        if (!at.nlines)
            continue; /* its naming failed half way and will be tried again */
        if (jit && jit->code.entries.n > late.entries) {
            late.entries = (uint32_t)jit->code.entries.n;
            status = find_module(&w, err);
            if (!status)
                status = jit_function(&w, jit, looked_up(&at), 0, &function, err);
        }
        if (!status && function != UINT32_MAX) /* its line is its own: each location has lines of its own */
            profile->lines.at[at.first_line].function = function;
        else
            s->pending.at[kept++] = late;
    }
    for (; i < s->pending.n; i++)
        s->pending.at[kept++] = s->pending.at[i];
    s->pending.n = kept;
    return status;
}

static enum rp_status resolve(struct rp_symbolizer *s, struct rp_profile *profile, uint32_t location, const struct rp_location *at, struct rp_err *err)
{
    struct work w = {s, profile, at->image < s->images->at.n ? s->images->at.at[at->image] : NULL, at->image, 0};
    uint64_t addr = looked_up(at);
    enum rp_status status;
    uint32_t function;

    if (at->flags & RP_LOCATION_MARK)
        return resolve_mark(&w, (uint32_t)at->addr, err);
    status = find_module(&w, err);
    if (status)
        return status;
    if ((at->flags & RP_LOCATION_KERNEL) || (w.image && w.image->kind == RP_IMAGE_KERNEL))
        return resolve_kernel(&w, at->addr, addr, err);
    if (w.image && (w.image->kind == RP_IMAGE_ELF || w.image->kind == RP_IMAGE_VDSO))
        return resolve_elf(&w, at->addr, addr, err);
    if (w.image && w.image->kind == RP_IMAGE_JIT)
        return resolve_jit(&w, location, addr, at->epoch, err);
    status = describe_offset(&w, at->addr, true, &function, err);
    return status ? status : add_line(&w, function, NULL, 0, err);
}

/* Tables beside the images grow with them; function numbers are good for one profile only. */
static enum rp_status prepare(struct rp_symbolizer *s, const struct rp_profile *profile, struct rp_err *err)
{
    if (s->profile != profile) {
        rp_vec_clear(&s->known);
        rp_index_release(&s->known_index);
        rp_vec_clear(&s->pending);
        s->profile = profile;
    }
    while (s->names.n < s->images->at.n) {
        if (!rp_vec_reserve(&s->names, 1) || !rp_vec_reserve(&s->unnamed, 1))
            return rp_fail_nomem(err);
        s->names.at[s->names.n++] = NULL;
        s->unnamed.at[s->unnamed.n++] = false;
    }
    return RP_OK;
}

static enum rp_status set_string(struct rp_profile *profile, const char *text, uint32_t *to, struct rp_err *err)
{
    return *to || !text ? RP_OK : rp_profile_string(profile, text, strlen(text), to, err);
}

/* Says for an image with unnamed code why, and what would name it. */
static enum rp_status explain_image(struct rp_symbolizer *s, struct rp_profile *profile, uint32_t id, struct rp_err *err)
{
    const struct rp_image *image = s->images->at.at[id];
    struct rp_profile_image *row = &profile->images.at[id];
    struct rp_image_names *names = s->names.at[id];
    struct rp_buf remedy = {0};
    enum rp_status status = RP_OK;

    if (image->kind == RP_IMAGE_KERNEL && s->kernel.hidden) {
        status = set_string(profile, "the kernel shows no symbol addresses at this permission", &row->note, err);
        return status ? status : set_string(profile, "root, or sysctl kernel.kptr_restrict=0", &row->remedy, err);
    }
    if (image->kind == RP_IMAGE_JIT)
        return rp_jit_explain(jit_of(s, image->pid), profile, row, err);
    if (image->kind != RP_IMAGE_ELF || !names || names->full_table || names->remedy_tried)
        return RP_OK;
    names->remedy_tried = true;
    status = set_string(profile, s->debuginfod_problem, &row->note, err);
    if (!status && !image->deleted && image->path &&
        (rp_remedy_find(image->pid, image->path, &remedy) || (image->pid && rp_remedy_find(0, image->path, &remedy))))
        status = set_string(profile, rp_buf_text(&remedy), &row->remedy, err);
    rp_buf_release(&remedy);
    return status;
}

enum rp_status rp_symbolize(struct rp_symbolizer *symbolizer, struct rp_profile *profile, struct rp_err *err)
{
    enum rp_status status = prepare(symbolizer, profile, err);

    if (!status)
        status = resolve_pending(symbolizer, profile, err);
    for (size_t i = 0; !status && i < profile->locations.n; i++) {
        const struct rp_location at = profile->locations.at[i];
        size_t first = profile->lines.n;

        if (at.nlines)
            continue;
        status = resolve(symbolizer, profile, (uint32_t)i, &at, err);
        if (status) {
            profile->lines.n = first; /* nothing half done stays */
            break;
        }
        symbolizer->stats.addresses_resolved += !(at.flags & RP_LOCATION_MARK);
        profile->locations.at[i].first_line = (uint32_t)first;
        profile->locations.at[i].nlines = (uint32_t)(profile->lines.n - first);
    }
    for (uint32_t i = 0; !status && i < symbolizer->unnamed.n && i < profile->images.n; i++) {
        if (symbolizer->unnamed.at[i])
            status = explain_image(symbolizer, profile, i, err);
    }
    return status;
}

enum rp_status rp_symbolizer_read_jit(struct rp_symbolizer *symbolizer, uint32_t pid, uint32_t ns_pid, struct rp_err *err)
{
    struct rp_jit *jit = jit_of(symbolizer, pid);

    if (!jit) {
        if (!rp_vec_reserve(&symbolizer->jits, 1) || !(jit = rp_calloc(1, sizeof *jit)))
            return rp_fail_nomem(err);
        jit->pid = pid;
        jit->ns_pid = ns_pid;
        symbolizer->jits.at[symbolizer->jits.n++] = jit;
    }
    return rp_jit_read(jit, err);
}

uint32_t rp_symbolizer_epoch(struct rp_symbolizer *symbolizer, uint32_t pid, uint64_t addr)
{
    const struct rp_jit *jit = jit_of(symbolizer, pid);

    return jit ? rp_jit_code_find(&jit->code, addr) : 0;
}

void rp_symbolizer_stats(const struct rp_symbolizer *symbolizer, struct rp_symbolizer_stats *stats)
{
    *stats = symbolizer->stats;
    for (size_t i = 0; i < symbolizer->jits.n; i++) {
        stats->map_lines += symbolizer->jits.at[i]->lines;
        stats->map_rejected += symbolizer->jits.at[i]->rejected;
    }
}
