/* SPDX-License-Identifier: MIT */
/* The lines of a fake profile that start with a dot; see fake_profile.h. */
#include <string.h>

#include "base/parse.h"
#include "support/fake_builder.h"

static bool seconds(struct fake_text t, uint64_t *ns)
{
    char text[64];
    double value;

    if (t.n >= sizeof text)
        return false;
    memcpy(text, t.at, t.n);
    text[t.n] = '\0';
    if (!rp_parse_double(text, 0, 1e9, &value))
        return false;
    *ns = (uint64_t)(value * 1e9 + 0.5);
    return true;
}

bool fake_duration(struct fake_text t, uint64_t *ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char text[32];
    double value;

    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t n = strlen(units[i].name);

        if (t.n <= n || t.n - n >= sizeof text || memcmp(t.at + t.n - n, units[i].name, n) != 0)
            continue;
        memcpy(text, t.at, t.n - n);
        text[t.n - n] = '\0';
        if (!rp_parse_double(text, 0, 1e9, &value))
            continue;
        *ns = (uint64_t)(value * units[i].ns + 0.5);
        return true;
    }
    return false;
}

static enum rp_status take_symbol(struct fake_builder *b, struct fake_text name, const struct fake_key *keys, size_t n)
{
    struct fake_frame f = {.module = {"app", 3}, .name = name};
    struct rp_function *function;
    uint32_t image = 0, id = 0;
    enum rp_status status = RP_OK;

    for (size_t i = 0; i < n; i++)
        if (fake_is(keys[i].name, "module"))
            f.module = keys[i].value;
    status = fake_image_of(b, f.module, &image);
    if (status == RP_OK)
        status = fake_function_of(b, &f, image, &id);
    if (status)
        return status;
    function = &b->p->functions.at[id];
    function->first_alias = (uint32_t)b->p->aliases.n;
    for (size_t i = n; i-- > 0 && status == RP_OK;) { /* keys come last first */
        if (fake_is(keys[i].name, "raw")) {
            status = fake_intern(b, keys[i].value, &function->raw);
        } else if (fake_is(keys[i].name, "file")) {
            status = fake_intern(b, keys[i].value, &function->file);
        } else if (fake_is(keys[i].name, "alias")) {
            uint32_t *alias = rp_vec_add(&b->p->aliases);

            if (!alias)
                return rp_fail_nomem(b->err);
            *alias = 0;
            function->naliases++;
            status = fake_intern(b, keys[i].value, alias);
        } else if (!fake_is(keys[i].name, "module")) {
            return fake_bad(b, "unknown key", keys[i].name);
        }
    }
    return status;
}

static enum rp_status take_module(struct fake_builder *b, struct fake_text name, const struct fake_key *keys, size_t n)
{
    static const char *const kinds[] = {"mark", "kernel", "elf", "vdso", "jit", "other"};
    uint32_t id = 0;
    struct rp_profile_image *image;
    enum rp_status status = fake_image_of(b, name, &id);

    if (status)
        return status;
    image = &b->p->images.at[id];
    for (size_t i = 0; i < n && status == RP_OK; i++) {
        struct fake_text v = keys[i].value;
        uint32_t *to = fake_is(keys[i].name, "path")       ? &image->path
                       : fake_is(keys[i].name, "build-id") ? &image->build_id
                       : fake_is(keys[i].name, "note")     ? &image->note
                       : fake_is(keys[i].name, "remedy")   ? &image->remedy
                                                      : NULL;

        if (fake_is(keys[i].name, "kind")) {
            for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
                if (fake_is(v, kinds[k]))
                    image->kind = k;
        } else {
            status = to ? fake_intern(b, v, to) : fake_bad(b, "unknown key", keys[i].name);
        }
    }
    return status;
}

static enum rp_status take_thread(struct fake_builder *b, struct fake_text name, const struct fake_key *keys, size_t n)
{
    struct rp_profile_thread t = {0};
    uint64_t pid = 1234;
    uint32_t id;
    enum rp_status status;

    for (size_t i = 0; i < n; i++) {
        struct fake_text v = keys[i].value;
        uint64_t *to = fake_is(keys[i].name, "wall")        ? &t.wall_ns
                       : fake_is(keys[i].name, "cpu")       ? &t.cpu_ns
                       : fake_is(keys[i].name, "preempted") ? &t.preempted_ns
                       : fake_is(keys[i].name, "waiting")   ? &t.waiting_ns
                       : fake_is(keys[i].name, "delay")     ? &t.run_delay_ns
                                                            : NULL;

        if (to ? !seconds(v, to) : !fake_is(keys[i].name, "pid") || !fake_number(v, &pid))
            return fake_bad(b, "unknown key or value", keys[i].name);
    }
    status = fake_thread_of(b, name, pid, &id);
    if (status == RP_OK) {
        b->p->threads.at[id].wall_ns = t.wall_ns;
        b->p->threads.at[id].cpu_ns = t.cpu_ns;
        b->p->threads.at[id].preempted_ns = t.preempted_ns;
        b->p->threads.at[id].waiting_ns = t.waiting_ns;
        b->p->threads.at[id].run_delay_ns = t.run_delay_ns;
    }
    return status;
}

/* Waits of a thread whose stack nobody saw. */
static enum rp_status take_waits(struct fake_builder *b, struct fake_text name, const struct fake_key *keys, size_t n)
{
    uint64_t pid = 1234, count = 1, each = 0;
    uint32_t id;
    enum rp_status status;

    for (size_t i = 0; i < n; i++) {
        struct fake_text v = keys[i].value;

        if (!(fake_is(keys[i].name, "pid")    ? fake_number(v, &pid)
              : fake_is(keys[i].name, "n")    ? fake_number(v, &count)
              : fake_is(keys[i].name, "each") ? fake_duration(v, &each)
                                              : false))
            return fake_bad(b, "unknown key or value", keys[i].name);
    }
    status = fake_thread_of(b, name, pid, &id);
    for (uint64_t i = 0; i < count && status == RP_OK; i++)
        status = rp_profile_wait(b->p, id, each, 0, 0, -1, b->err);
    return status;
}

static enum rp_status take_lock(struct fake_builder *b, struct fake_text address, const struct fake_key *keys, size_t n)
{
    struct rp_cursor c = rp_cursor_of(address.at, address.n);
    struct rp_lock lock = {0};
    uint64_t pid = 1234;
    uint32_t position;
    enum rp_status status = RP_OK;

    if (!rp_cursor_take(&c, "0x") || !rp_cursor_hex(&c, &lock.address) || !rp_cursor_done(&c))
        return fake_bad(b, "expected an address", address);
    for (size_t i = 0; i < n && status == RP_OK; i++) {
        struct fake_text v = keys[i].value;

        status = fake_is(keys[i].name, "symbol")     ? fake_intern(b, v, &lock.symbol)
                 : fake_is(keys[i].name, "database") ? fake_intern(b, v, &lock.database)
                 : fake_is(keys[i].name, "module")   ? fake_image_of(b, v, &lock.image)
                 : fake_is(keys[i].name, "pid") && fake_number(v, &pid) ? RP_OK
                                                                        : fake_bad(b, "unknown key or value", keys[i].name);
    }
    if (!status)
        status = fake_process_of(b, pid, &lock.process);
    lock.addr = lock.image ? lock.address & 0xffff : 0;
    return status ? status : rp_profile_lock(b->p, &lock, &position, b->err);
}

static enum rp_status take_process(struct fake_builder *b, struct fake_text name, const struct fake_key *keys, size_t n)
{
    uint64_t pid, generation = 0;
    uint32_t id = 0;
    enum rp_status status;

    if (!fake_number(name, &pid))
        return fake_bad(b, "expected a pid", name);
    status = n && fake_is(keys[0].name, "generation") && fake_number(keys[0].value, &generation) ? fake_process_add(b, pid, generation, &id)
                                                                                               : fake_process_of(b, pid, &id);
    for (size_t i = generation > 0; i < n && status == RP_OK; i++)
        status = fake_is(keys[i].name, "comm")      ? fake_intern(b, keys[i].value, &b->p->processes.at[id].comm)
                 : fake_is(keys[i].name, "command") ? fake_intern(b, keys[i].value, &b->p->processes.at[id].command)
                                               : fake_bad(b, "unknown key", keys[i].name);
    return status;
}

static enum rp_status take_run(struct fake_builder *b, const struct fake_key *keys, size_t n)
{
    struct rp_run *run = &b->p->run;

    for (size_t i = 0; i < n; i++) {
        struct fake_text v = keys[i].value;
        uint32_t *text = fake_is(keys[i].name, "source") ? &run->source
                         : fake_is(keys[i].name, "sampler") ? &run->sampler
                         : fake_is(keys[i].name, "host") ? &run->host
                         : fake_is(keys[i].name, "note") ? &run->note
                                                    : NULL;
        uint64_t *wide = fake_is(keys[i].name, "lost")        ? &run->lost
                         : fake_is(keys[i].name, "throttled") ? &run->throttled
                         : fake_is(keys[i].name, "vanished")  ? &run->vanished
                         : fake_is(keys[i].name, "switches")  ? &run->switches
                                                         : NULL;
        uint32_t *narrow = fake_is(keys[i].name, "hz")      ? &run->hz
                           : fake_is(keys[i].name, "waits") ? &run->waits
                           : fake_is(keys[i].name, "cpus")  ? &run->cpus
                           : fake_is(keys[i].name, "kernel") ? &run->kernel_visible
                           : fake_is(keys[i].name, "stack") ? &run->stack_bytes
                                                       : NULL;
        uint64_t value = 0;
        enum rp_status status = text ? fake_intern(b, v, text) : RP_OK;

        if (status)
            return status;
        if (text)
            continue;
        if (fake_is(keys[i].name, "seconds") ? !seconds(v, &run->seconds_ns) : !fake_number(v, &value) || !(wide || narrow))
            return fake_bad(b, "unknown key or value", keys[i].name);
        if (wide)
            *wide = value;
        if (narrow)
            *narrow = (uint32_t)value;
    }
    return RP_OK;
}

static enum rp_status take_facts(struct fake_builder *b, const struct fake_key *keys, size_t n)
{
    enum rp_status status = RP_OK;

    for (size_t i = n; i-- > 0 && status == RP_OK;) { /* keys come last first */
        struct rp_fact fact = {0}, *added;

        status = fake_intern(b, keys[i].name, &fact.name);
        if (status == RP_OK)
            status = fake_intern(b, keys[i].value, &fact.value);
        added = status ? NULL : rp_vec_add(&b->p->facts);
        if (added)
            *added = fact;
        else
            status = status ? status : rp_fail_nomem(b->err);
    }
    return status;
}

static enum rp_status take_rate(struct fake_builder *b, const struct fake_key *keys, size_t n)
{
    struct rp_profile_rate rate = {0}, *added;

    for (size_t i = 0; i < n; i++) {
        struct fake_text v = keys[i].value;

        if (!(fake_is(keys[i].name, "end")     ? seconds(v, &rate.end_ns)
              : fake_is(keys[i].name, "wall")  ? seconds(v, &rate.wall_ns)
              : fake_is(keys[i].name, "cpu")   ? seconds(v, &rate.cpu_ns)
              : fake_is(keys[i].name, "calls") ? fake_number(v, &rate.calls)
              : fake_is(keys[i].name, "rows")  ? fake_number(v, &rate.rows)
                                               : false))
            return fake_bad(b, "unknown key or value", keys[i].name);
    }
    added = rp_vec_add(&b->p->rates);
    if (!added)
        return rp_fail_nomem(b->err);
    *added = rate;
    return RP_OK;
}

enum rp_status fake_directive(struct fake_builder *b, struct fake_text line)
{
    struct fake_key keys[FAKE_KEYS_MAX];
    size_t n = fake_keys_of(&line, keys), word = fake_find(line, ' ');
    struct fake_text verb = {line.at, word}, rest = {line.at + word, line.n - word};
    uint64_t value;

    while (rest.n && *rest.at == ' ')
        rest = (struct fake_text){rest.at + 1, rest.n - 1};
    if (fake_is(verb, ".symbol"))
        return take_symbol(b, rest, keys, n);
    if (fake_is(verb, ".module"))
        return take_module(b, rest, keys, n);
    if (fake_is(verb, ".thread"))
        return take_thread(b, rest, keys, n);
    if (fake_is(verb, ".waits"))
        return take_waits(b, rest, keys, n);
    if (fake_is(verb, ".lock"))
        return take_lock(b, rest, keys, n);
    if (fake_is(verb, ".process"))
        return take_process(b, rest, keys, n);
    if (fake_is(verb, ".run"))
        return take_run(b, keys, n);
    if (fake_is(verb, ".fact"))
        return take_facts(b, keys, n);
    if (fake_is(verb, ".rate"))
        return take_rate(b, keys, n);
    if (fake_is(verb, ".blocks") && fake_number(rest, &value) && value <= RP_BLOCKS_MAX) {
        b->p->nblocks = (uint32_t)value;
        return RP_OK;
    }
    return fake_bad(b, "unknown directive", line);
}
