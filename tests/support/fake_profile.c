/* SPDX-License-Identifier: MIT */
/* See fake_profile.h. A builder for tests: linear searches are fine here. */
#include "support/fake_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/parse.h"
#include "support/fake_builder.h"
#include "target/image.h"

enum { FUNCTION_ROOM = 0x10000, DEFAULT_OFFSET = 0x10, SAMPLE_NS = 1003009 };

enum rp_status fake_bad(const struct fake_builder *b, const char *what, struct fake_text at)
{
    return rp_fail(b->err, RP_FORMAT, "fake profile, line %u: %s: %.*s", b->line, what, (int)at.n, at.at);
}

bool fake_is(struct fake_text t, const char *word)
{
    return strlen(word) == t.n && memcmp(t.at, word, t.n) == 0;
}

bool fake_number(struct fake_text t, uint64_t *value)
{
    struct rp_cursor c = rp_cursor_of(t.at, t.n);

    return rp_cursor_u64(&c, value) && rp_cursor_done(&c);
}

/* Interns a text, its escapes resolved. */
enum rp_status fake_intern(struct fake_builder *b, struct fake_text t, uint32_t *id)
{
    struct rp_buf out = {0};
    enum rp_status status;

    for (size_t i = 0; i < t.n; i++) {
        char c = t.at[i];

        if (c == '\\' && i + 1 < t.n) {
            c = t.at[++i];
            if (c == 'n')
                c = '\n';
            else if (c == 't')
                c = '\t';
            else if (c == 'x' && i + 2 < t.n) {
                struct rp_cursor hex = rp_cursor_of(t.at + i + 1, 2);
                uint64_t value = 0;

                if (rp_cursor_hex(&hex, &value))
                    i += 2;
                c = (char)value;
            }
        }
        rp_buf_putc(&out, c);
    }
    status = out.failed ? rp_fail_nomem(b->err) : rp_profile_string(b->p, rp_buf_text(&out), out.length, id, b->err);
    rp_buf_release(&out);
    return status;
}

enum rp_status fake_image_of(struct fake_builder *b, struct fake_text name, uint32_t *image)
{
    struct rp_profile_image *new;
    uint32_t id;
    enum rp_status status = fake_intern(b, name, &id);

    if (status)
        return status;
    for (*image = 0; *image < b->p->images.n; (*image)++)
        if (b->p->images.at[*image].name == id)
            return RP_OK;
    new = rp_vec_add(&b->p->images);
    if (!new)
        return rp_fail_nomem(b->err);
    *new = (struct rp_profile_image){.kind = fake_is(name, "[jit]")    ? RP_IMAGE_JIT
                                             : fake_is(name, "[vdso]") ? RP_IMAGE_VDSO
                                             : *image == 0        ? RP_IMAGE_MARK
                                             : *image == 1        ? RP_IMAGE_KERNEL
                                                                  : RP_IMAGE_ELF,
                                     .name = id,
                                     .path = id,
                                     .dev = *image < 2 ? 0 : 2049,
                                     .ino = *image < 2 ? 0 : 1000 + *image};
    return RP_OK;
}

/* The first `stop` that no backslash precedes; `t.n` when there is none. */
size_t fake_find(struct fake_text t, char stop)
{
    for (size_t i = 0; i < t.n; i++) {
        if (t.at[i] == '\\')
            i++;
        else if (t.at[i] == stop)
            return i;
    }
    return t.n;
}

static bool is_module(struct fake_text t)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-[]";

    for (size_t i = 0; i < t.n; i++)
        if (!strchr(allowed, t.at[i]))
            return false;
    return t.n && !fake_is(t, "operator");
}

static enum rp_status split_frame(struct fake_builder *b, struct fake_text t, struct fake_frame *f)
{
    size_t at;
    struct rp_cursor c;

    *f = (struct fake_frame){.module = {"app", 3}, .line = 0};
    if (t.n && *t.at == '^') {
        f->inlined = true;
        t = (struct fake_text){t.at + 1, t.n - 1};
    }
    at = fake_find(t, '!');
    if (at < t.n && is_module((struct fake_text){t.at, at})) {
        f->module = (struct fake_text){t.at, at};
        t = (struct fake_text){t.at + at + 1, t.n - at - 1};
    }
    at = fake_find(t, '{');
    if (at < t.n && t.at[t.n - 1] == '}') {
        struct fake_text where = {t.at + at + 1, t.n - at - 2};
        size_t colon = fake_find(where, ':');

        f->file = (struct fake_text){where.at, colon};
        if (colon < where.n && !fake_number((struct fake_text){where.at + colon + 1, where.n - colon - 1}, &f->line))
            return fake_bad(b, "expected FILE:LINE", where);
        t.n = at;
    }
    at = fake_find(t, '+');
    if (at + 2 < t.n && t.at[at + 1] == '0' && t.at[at + 2] == 'x') {
        c = rp_cursor_of(t.at + at + 3, t.n - at - 3);
        f->has_offset = rp_cursor_hex(&c, &f->offset) && rp_cursor_done(&c);
        if (f->has_offset)
            t.n = at;
    }
    f->unnamed = fake_is(t, "?");
    f->name = t;
    return t.n ? RP_OK : fake_bad(b, "expected a frame", t);
}

/* The function of a frame, made when new. `image` is that of the code it stands in. */
enum rp_status fake_function_of(struct fake_builder *b, const struct fake_frame *f, uint32_t image, uint32_t *id)
{
    struct rp_profile *p = b->p;
    struct rp_function new = {.image = image, .module = p->images.at[image].name};
    enum rp_status status = fake_intern(b, f->name, &new.name);

    if (status == RP_OK && f->unnamed) {
        struct rp_buf name = {0};

        rp_buf_printf(&name, "%.*s", (int)f->module.n, f->module.at);
        if (!fake_is(f->module, "[jit]"))
            rp_buf_printf(&name, "+0x%llx", (unsigned long long)f->offset);
        status = name.failed ? rp_fail_nomem(b->err) : rp_profile_string(p, rp_buf_text(&name), name.length, &new.name, b->err);
        rp_buf_release(&name);
    }
    if (status == RP_OK && f->file.n)
        status = fake_intern(b, f->file, &new.file);
    if (status)
        return status;
    for (*id = 0; *id < p->functions.n; (*id)++) {
        const struct rp_function *at = &p->functions.at[*id];

        if (at->name == new.name && at->image == image && (at->how == RP_NAME_INLINE) == f->inlined)
            return RP_OK;
    }
    new.raw = new.name;
    new.start = f->inlined ? 0 : f->unnamed ? f->offset : (p->functions.n + 1) * FUNCTION_ROOM;
    new.how = f->inlined                                                           ? RP_NAME_INLINE
              : f->unnamed                                                         ? RP_NAME_OFFSET
              : p->images.at[image].kind == RP_IMAGE_JIT                           ? RP_NAME_JIT
              : image == RP_IMAGE_ID_KERNEL                                        ? RP_NAME_KERNEL
              : f->name.n > 4 && !memcmp(f->name.at + f->name.n - 4, "@plt", 4)    ? RP_NAME_PLT
              : f->name.n > 8 && !memcmp(f->name.at + f->name.n - 8, " [local]", 8) ? RP_NAME_STUB_LOCAL
                                                                                    : RP_NAME_SYMBOL;
    return rp_profile_function(p, &new, id, b->err);
}

static enum rp_status add_lines(struct fake_builder *b, const struct fake_frame *frames, size_t n, uint32_t image, uint32_t location)
{
    struct rp_profile *p = b->p;
    bool known = p->locations.at[location].nlines != 0;
    uint32_t first = known ? p->locations.at[location].first_line : (uint32_t)p->lines.n;

    if (known && p->locations.at[location].nlines != n)
        return fake_bad(b, "this address has other inlined frames already; give another offset", frames[n - 1].name);
    for (size_t i = 0; i < n; i++) {
        struct rp_line line = {.line = (uint32_t)frames[i].line}, *to;
        enum rp_status status = fake_function_of(b, &frames[i], image, &line.function);

        if (status == RP_OK && frames[i].file.n)
            status = fake_intern(b, frames[i].file, &line.file);
        if (status)
            return status;
        if (known) {
            if (p->lines.at[first + i].function != line.function)
                return fake_bad(b, "this address has other inlined frames already; give another offset", frames[n - 1].name);
            continue;
        }
        to = rp_vec_add(&p->lines);
        if (!to)
            return rp_fail_nomem(b->err);
        *to = line;
    }
    p->locations.at[location].first_line = first;
    p->locations.at[location].nlines = (uint32_t)n;
    return RP_OK;
}

/* One location: frames inlined first, the one with the code last. `texts` is what was written for them. */
static enum rp_status location_of(struct fake_builder *b, const struct fake_text *texts, size_t n, uint32_t flags, uint32_t *location)
{
    struct fake_frame frames[64];
    uint32_t image, function, hash = 0;
    struct fake_frame *code;
    enum rp_status status = RP_OK;

    if (n > 64)
        return fake_bad(b, "too many inlined frames", texts[0]);
    for (size_t i = 0; i < n && status == RP_OK; i++) {
        status = split_frame(b, texts[i], &frames[i]);
        hash = rp_hash_mix(hash, rp_hash_bytes(texts[i].at, texts[i].n));
    }
    code = &frames[n - 1];
    if (status == RP_OK)
        status = fake_image_of(b, code->module, &image);
    if (status == RP_OK)
        status = fake_function_of(b, code, image, &function);
    if (status)
        return status;
    if (image == RP_IMAGE_ID_KERNEL)
        flags = RP_LOCATION_KERNEL | (flags & RP_LOCATION_CALLER);
    if (!code->has_offset)
        code->offset = n > 1 || code->file.n ? DEFAULT_OFFSET + 4 + hash % 4096 * 4 : DEFAULT_OFFSET;
    status = rp_profile_location(b->p, image, b->p->functions.at[function].start + (code->unnamed ? 0 : code->offset), flags, 0, location,
                                 b->err);
    return status ? status : add_lines(b, frames, n, image, *location);
}

static bool is_of_kernel(struct fake_text frame)
{
    return frame.n > 9 && !memcmp(frame.at, "[kernel]!", 9);
}

/* Whether the frame is the leaf of the user's part of a stack that goes on in the kernel. */
static bool enters_kernel(const struct fake_builder *b, size_t frame)
{
    return !is_of_kernel(b->frames[frame]) && is_of_kernel(b->frames[frame - 1]);
}

/* Interns the stack of `nframes` texts, leaf first; gives its leaf node. */
static enum rp_status node_of(struct fake_builder *b, size_t nframes, bool guess, uint32_t *node)
{
    size_t end = nframes;

    *node = 0;
    while (end) {
        size_t begin = end - 1;
        uint32_t location = 0, flags;
        enum rp_status status;

        while (begin && *b->frames[begin - 1].at == '^')
            begin--;
        /* Where the kernel was entered the address is that of the instruction itself. */
        flags = (begin && !enters_kernel(b, begin) ? RP_LOCATION_CALLER : 0u) | (begin && guess ? RP_LOCATION_GUESS : 0u);
        if (end == nframes && b->frames[begin].n > 10 &&
            (!memcmp(b->frames[begin].at, "[truncated", 10) || !memcmp(b->frames[begin].at, "[kernel: ", 9))) {
            char mark[128] = "";

            memcpy(mark, b->frames[begin].at, b->frames[begin].n < sizeof mark ? b->frames[begin].n : sizeof mark - 1);
            status = rp_profile_mark(b->p, mark, &location, b->err);
        } else {
            status = location_of(b, &b->frames[begin], end - begin, flags, &location);
        }
        if (status == RP_OK)
            status = rp_profile_node(b->p, *node, location, node, b->err);
        if (status)
            return status;
        end = begin;
    }
    return RP_OK;
}

enum rp_status fake_process_of(struct fake_builder *b, uint64_t pid, uint32_t *id)
{
    for (uint32_t i = (uint32_t)b->p->processes.n; i-- > 0;) {
        *id = i;
        if (b->p->processes.at[i].pid == pid)
            return RP_OK;
    }
    return fake_process_add(b, pid, 0, id);
}

enum rp_status fake_process_add(struct fake_builder *b, uint64_t pid, uint64_t generation, uint32_t *id)
{
    struct rp_profile_process *new = rp_vec_add(&b->p->processes);
    enum rp_status status;

    if (!new)
        return rp_fail_nomem(b->err);
    *id = (uint32_t)b->p->processes.n - 1;
    *new = (struct rp_profile_process){.pid = (uint32_t)pid, .generation = (uint32_t)generation};
    status = fake_intern(b, (struct fake_text){"app", 3}, &b->p->processes.at[*id].comm);
    return status ? status : fake_intern(b, (struct fake_text){"./app", 5}, &b->p->processes.at[*id].command);
}

/* "NAME" or "NAME/TID". */
enum rp_status fake_thread_of(struct fake_builder *b, struct fake_text name, uint64_t pid, uint32_t *id)
{
    size_t slash = fake_find(name, '/');
    uint64_t tid = 0;
    uint32_t process = 0, comm = 0;
    struct rp_profile_thread *new;
    enum rp_status status = fake_process_of(b, pid, &process);

    if (status == RP_OK && slash < name.n && !fake_number((struct fake_text){name.at + slash + 1, name.n - slash - 1}, &tid))
        return fake_bad(b, "expected NAME/TID", name);
    if (status == RP_OK)
        status = fake_intern(b, (struct fake_text){name.at, slash}, &comm);
    if (status)
        return status;
    for (*id = 0; *id < b->p->threads.n; (*id)++) {
        const struct rp_profile_thread *t = &b->p->threads.at[*id];

        if (t->process == process && t->comm == comm && (!tid || t->tid == tid))
            return RP_OK;
    }
    new = rp_vec_add(&b->p->threads);
    if (!new)
        return rp_fail_nomem(b->err);
    *new = (struct rp_profile_thread){.process = process, .tid = (uint32_t)(tid ? tid : pid + *id), .comm = comm};
    return RP_OK;
}

/* Takes `key=value` words from the end of `line`, which becomes what stands before them. Values may be quoted. */
size_t fake_keys_of(struct fake_text *line, struct fake_key *keys)
{
    size_t n = 0;

    while (n < FAKE_KEYS_MAX) {
        size_t end, start, equal;

        while (line->n && strchr(" \t", line->at[line->n - 1]))
            line->n--;
        end = start = line->n;
        if (start && line->at[start - 1] == '"')
            for (start--; start && line->at[start - 1] != '"';)
                start--;
        while (start && !strchr(" \t", line->at[start - 1]))
            start--;
        equal = fake_find((struct fake_text){line->at + start, end - start}, '=');
        if (equal >= end - start || equal == 0 || start == 0)
            break;
        for (size_t i = 0; i < equal; i++)
            if (!strchr("abcdefghijklmnopqrstuvwxyz-", line->at[start + i]))
                return n;
        keys[n].name = (struct fake_text){line->at + start, equal};
        keys[n].value = (struct fake_text){line->at + start + equal + 1, end - start - equal - 1};
        if (keys[n].value.n >= 2 && *keys[n].value.at == '"')
            keys[n].value = (struct fake_text){keys[n].value.at + 1, keys[n].value.n - 2};
        n++;
        line->n = start;
    }
    return n;
}

/* Leaf first, into b->frames. */
static enum rp_status split_frames(struct fake_builder *b, struct fake_text line, size_t *n)
{
    for (*n = 0; line.n;) {
        size_t end = fake_find(line, ';');

        if (!end || *n == FAKE_FRAMES_MAX)
            return fake_bad(b, "expected a frame", line);
        b->frames[(*n)++] = (struct fake_text){line.at, end};
        end = end < line.n ? end + 1 : end;
        line = (struct fake_text){line.at + end, line.n - end};
    }
    return RP_OK;
}

/* What the keys of a stack's line say. */
struct stack_keys {
    struct fake_text thread, waiter;
    uint64_t pid, at_ns, tag, weight, wait, holds;
    int syscall;
    bool waited, guess, nobody;
    enum rp_state state;
};

static enum rp_status take_key(struct fake_builder *b, const struct fake_key *key, struct stack_keys *k)
{
    struct fake_text v = key->value;
    uint64_t value = 0;
    bool is_number = fake_number(v, &value);

    if (fake_is(key->name, "thread"))
        k->thread = v;
    else if (fake_is(key->name, "waiter"))
        k->waiter = v;
    else if (fake_is(key->name, "state") && (fake_is(v, "blocked") || fake_is(v, "running")))
        k->state = fake_is(v, "blocked") ? RP_STATE_BLOCKED : RP_STATE_RUNNING;
    else if (fake_is(key->name, "wait") && fake_duration(v, &k->wait))
        k->waited = true;
    else if (!is_number)
        return fake_bad(b, "expected a number", v);
    else if (fake_is(key->name, "syscall"))
        k->syscall = (int)value;
    else if (fake_is(key->name, "holds"))
        k->holds = value;
    else if (fake_is(key->name, "free")) {
        k->holds = value;
        k->nobody = true;
    }
    else if (fake_is(key->name, "block"))
        k->at_ns = value * b->p->block_ns;
    else if (fake_is(key->name, "ms"))
        k->at_ns = value * 1000000;
    else if (fake_is(key->name, "pid"))
        k->pid = value;
    else if (fake_is(key->name, "tag"))
        k->tag = value;
    else if (fake_is(key->name, "weight"))
        k->weight = value;
    else if (fake_is(key->name, "guess"))
        k->guess = value != 0;
    else
        return fake_bad(b, "unknown key", key->name);
    return RP_OK;
}

static enum rp_status take_stack(struct fake_builder *b, struct fake_text line)
{
    struct fake_key keys[FAKE_KEYS_MAX];
    size_t nkeys = fake_keys_of(&line, keys), nframes = 0, space = line.n;
    struct stack_keys k = {.thread = {"main", 4}, .pid = 1234, .weight = SAMPLE_NS, .syscall = -1, .state = RP_STATE_RUNNING};
    uint64_t samples;
    uint32_t node, thread_id, waiter_id = UINT32_MAX;
    enum rp_status status = RP_OK;

    for (size_t i = 0; i < nkeys && !status; i++)
        status = take_key(b, &keys[i], &k);
    if (status)
        return status;
    while (space && line.at[space - 1] != ' ')
        space--;
    if (!space || !fake_number((struct fake_text){line.at + space, line.n - space}, &samples))
        return fake_bad(b, "expected a stack and a number of samples", line);
    line.n = space - 1;
    status = split_frames(b, line, &nframes);
    if (status == RP_OK)
        status = node_of(b, nframes, k.guess, &node);
    if (status == RP_OK)
        status = fake_thread_of(b, k.thread, k.pid, &thread_id);
    if (status == RP_OK && k.waiter.n)
        status = fake_thread_of(b, k.waiter, k.pid, &waiter_id);
    if (k.nobody) {
        thread_id = UINT32_MAX;
        node = 0;
    }
    if (status || !k.waited)
        return status ? status : rp_profile_count(b->p, thread_id, node, (uint32_t)k.tag, k.state, k.at_ns, samples, samples * k.weight, b->err);
    for (uint64_t i = 0; i < samples && status == RP_OK; i++)
        status = k.holds ? rp_profile_holder(b->p, (uint32_t)k.holds - 1, waiter_id, thread_id, node, k.state, k.wait, b->err)
                         : rp_profile_wait(b->p, thread_id, k.wait, node, (uint32_t)k.tag, k.syscall, b->err);
    return status;
}

enum rp_status fake_profile_parse(struct rp_profile *p, const char *text, struct rp_err *err)
{
    struct fake_builder *b = rp_calloc(1, sizeof *b);
    struct rp_cursor c = rp_cursor_str(text);
    struct fake_text line;
    uint32_t id;
    enum rp_status status = rp_profile_init(p, err);

    if (status || !b) {
        rp_free(b);
        if (status == RP_OK)
            rp_profile_release(p);
        return rp_fail_nomem(err);
    }
    b->p = p;
    b->err = err;
    status = fake_image_of(b, (struct fake_text){"[mark]", 6}, &id);
    if (status == RP_OK)
        status = fake_image_of(b, (struct fake_text){"[kernel]", 8}, &id);
    while (status == RP_OK && rp_cursor_line(&c, &line.at, &line.n)) {
        b->line++;
        if (line.n && *line.at == '.')
            status = fake_directive(b, line);
        else if (line.n && *line.at != '#')
            status = take_stack(b, line);
    }
    if (status)
        rp_profile_release(p);
    rp_free(b);
    return status;
}

void fake_profile(struct rp_profile *p, const char *text)
{
    struct rp_err err = {0};

    if (fake_profile_parse(p, text, &err))
        fail_msg("%s", err.text);
}
