/* SPDX-License-Identifier: MIT */
/* See store_table.h. Rows are added through the model's own functions, so that its indexes hold for a loaded profile too; what they refuse to make
 * twice was twice in the file. */
#include "store/store_table.h"

#include <string.h>

#include "store/schema.sql.h"

enum { IMAGE_KINDS = 6, LOCATION_FLAGS = 15 };

uint64_t rp_store_field_get(const struct rp_store_field *field, const void *row)
{
    const unsigned char *at = (const unsigned char *)row + field->offset;
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t eight;

    switch (field->size) {
    case 1:
        memcpy(&one, at, sizeof one);
        return one;
    case 2:
        memcpy(&two, at, sizeof two);
        return two;
    case 4:
        memcpy(&four, at, sizeof four);
        return four;
    default:
        memcpy(&eight, at, sizeof eight);
        return eight;
    }
}

void rp_store_field_set(const struct rp_store_field *field, void *row, uint64_t value)
{
    unsigned char *at = (unsigned char *)row + field->offset;
    uint8_t one = (uint8_t)value;
    uint16_t two = (uint16_t)value;
    uint32_t four = (uint32_t)value;

    switch (field->size) {
    case 1:
        memcpy(at, &one, sizeof one);
        break;
    case 2:
        memcpy(at, &two, sizeof two);
        break;
    case 4:
        memcpy(at, &four, sizeof four);
        break;
    default:
        memcpy(at, &value, sizeof value);
    }
}

const char *rp_store_field_wrong(const struct rp_store_field *field, const struct rp_profile *p, uint64_t value)
{
    switch ((enum rp_store_check)field->check) {
    case RP_STORE_ANY:
        return NULL;
    case RP_STORE_MAX:
        return value <= field->max ? NULL : "is larger than it can be";
    case RP_STORE_STRING:
        return value < p->strings.strings.n ? NULL : "names a string that is not there";
    case RP_STORE_IMAGE:
        return value < p->images.n ? NULL : "names an image that is not there";
    case RP_STORE_FUNCTION:
        return value < p->functions.n ? NULL : "names a function that is not there";
    case RP_STORE_LOCATION_OR_NULL:
        return value < p->locations.n || value == RP_LOCATION_NONE ? NULL : "names a location that is not there";
    case RP_STORE_NODE:
        return value < p->nodes.n ? NULL : "names a node that is not there yet";
    case RP_STORE_PROCESS:
        return value < p->processes.n ? NULL : "names a process that is not there";
    case RP_STORE_THREAD:
        return value < p->threads.n ? NULL : "names a thread that is not there";
    case RP_STORE_THREAD_OR_NULL:
        return value < p->threads.n || value == UINT32_MAX ? NULL : "names a thread that is not there";
    case RP_STORE_LOCK:
        return value < p->locks.n ? NULL : "names a lock that is not there";
    case RP_STORE_SYSCALL_OR_NULL:
        return value <= INT16_MAX || value == UINT16_MAX ? NULL : "is no number of a system call";
    }
    return "is of no known kind";
}

bool rp_store_field_null(const struct rp_store_field *field, uint64_t *value)
{
    switch ((enum rp_store_check)field->check) {
    case RP_STORE_LOCATION_OR_NULL:
        *value = RP_LOCATION_NONE;
        return true;
    case RP_STORE_THREAD_OR_NULL:
        *value = UINT32_MAX;
        return true;
    case RP_STORE_SYSCALL_OR_NULL:
        *value = UINT16_MAX;
        return true;
    default:
        return false;
    }
}

/* Counting and copying rows of an array of the profile. */
#define ARRAY(list)                                                                                                    \
    static size_t count_##list(const struct rp_profile *p)                                                             \
    {                                                                                                                  \
        return p->list.n;                                                                                              \
    }                                                                                                                  \
    static void get_##list(const struct rp_profile *p, size_t i, void *row)                                            \
    {                                                                                                                  \
        memcpy(row, &p->list.at[i], sizeof p->list.at[i]);                                                             \
    }

ARRAY(images)
ARRAY(aliases)
ARRAY(functions)
ARRAY(lines)
ARRAY(locations)
ARRAY(nodes)
ARRAY(processes)
ARRAY(threads)
ARRAY(counts)
ARRAY(wait_totals)
ARRAY(waits)
ARRAY(locks)
ARRAY(holders)
ARRAY(holder_waiters)
ARRAY(facts)
ARRAY(rates)

/* Adding a row to an array that has no index. */
#define ADD(list)                                                                                                      \
    static enum rp_status add_##list(struct rp_profile *p, const void *row, struct rp_err *err)                        \
    {                                                                                                                  \
        void *to = rp_vec_add(&p->list);                                                                               \
                                                                                                                       \
        if (!to)                                                                                                       \
            return rp_fail_nomem(err);                                                                                 \
        memcpy(to, row, sizeof *p->list.at);                                                                           \
        return RP_OK;                                                                                                  \
    }

ADD(images)
ADD(aliases)
ADD(lines)
ADD(processes)
ADD(threads)
ADD(wait_totals)
ADD(waits)
ADD(holders)

/* The same, of one that may have so many rows. */
#define ADD_SOME(list, most, why)                                                                                      \
    static enum rp_status add_##list(struct rp_profile *p, const void *row, struct rp_err *err)                        \
    {                                                                                                                  \
        void *to = p->list.n < (most) ? rp_vec_add(&p->list) : NULL;                                                   \
                                                                                                                       \
        if (!to)                                                                                                       \
            return p->list.n < (most) ? rp_fail_nomem(err) : rp_fail(err, RP_FORMAT, why);                             \
        memcpy(to, row, sizeof *p->list.at);                                                                           \
        return RP_OK;                                                                                                  \
    }

ADD_SOME(holder_waiters, p->holders.n, "there are more than holders")
ADD_SOME(facts, RP_FACTS_MAX, "there are more than can be recorded")
ADD_SOME(rates, RP_RATES_MAX, "there are more than can be recorded")

static enum rp_status added(uint32_t id, size_t before, struct rp_err *err)
{
    return id == before ? RP_OK : rp_fail(err, RP_FORMAT, "it is there already as row %u", id);
}

static enum rp_status add_functions(struct rp_profile *p, const void *row, struct rp_err *err)
{
    const struct rp_function *f = row;
    size_t before = p->functions.n;
    uint32_t id = 0;
    enum rp_status status;

    if ((uint64_t)f->first_alias + f->naliases > p->aliases.n)
        return rp_fail(err, RP_FORMAT, "its aliases are not all there");
    status = rp_profile_function(p, f, &id, err);
    return status ? status : added(id, before, err);
}

static enum rp_status add_locations(struct rp_profile *p, const void *row, struct rp_err *err)
{
    const struct rp_location *l = row;
    size_t before = p->locations.n;
    uint32_t id = 0;
    enum rp_status status;

    if ((uint64_t)l->first_line + l->nlines > p->lines.n)
        return rp_fail(err, RP_FORMAT, "its lines are not all there");
    if (l->flags & RP_LOCATION_MARK && (l->image || l->addr >= p->strings.strings.n))
        return rp_fail(err, RP_FORMAT, "it is a mark without a text");
    status = rp_profile_location(p, l->image, l->addr, l->flags, l->epoch, &id, err);
    if (status == RP_OK)
        status = added(id, before, err);
    if (status == RP_OK) {
        p->locations.at[id].first_line = l->first_line;
        p->locations.at[id].nlines = l->nlines;
    }
    return status;
}

/* The root is there from the beginning: the file's must be it. */
static enum rp_status add_nodes(struct rp_profile *p, const void *row, struct rp_err *err)
{
    const struct rp_node *n = row;
    size_t before = p->nodes.n;
    uint32_t id = 0;
    enum rp_status status;

    if (n->location == RP_LOCATION_NONE)
        return rp_fail(err, RP_FORMAT, "only the root has no location");
    status = rp_profile_node(p, n->parent, n->location, &id, err);
    return status ? status : added(id, before, err);
}

static enum rp_status add_counts(struct rp_profile *p, const void *row, struct rp_err *err)
{
    const struct rp_count *c = row;
    size_t before = p->counts.n;
    enum rp_status status;

    if (c->block >= p->nblocks)
        return rp_fail(err, RP_FORMAT, "block %u is not there", c->block);
    status = rp_profile_count(p, c->thread, c->node, c->tag, (enum rp_state)c->state, c->block * p->block_ns, c->n, c->weight_ns, err);
    if (status == RP_OK && p->counts.n == before)
        return rp_fail(err, RP_FORMAT, "its key is there already");
    return status;
}

static enum rp_status add_locks(struct rp_profile *p, const void *row, struct rp_err *err)
{
    size_t before = p->locks.n;
    uint32_t id = 0;
    enum rp_status status = rp_profile_lock(p, row, &id, err);

    return status ? status : added(id, before, err);
}

/* The one row of `run`, with the two numbers of blocks. */
struct run_row {
    struct rp_run run;
    uint32_t nblocks;
    uint64_t block_ns;
};

static size_t count_run(const struct rp_profile *p)
{
    (void)p;
    return 1;
}

static void get_run(const struct rp_profile *p, size_t i, void *row)
{
    struct run_row r;

    (void)i;
    memset(&r, 0, sizeof r);
    r.run = p->run;
    r.nblocks = p->nblocks;
    r.block_ns = p->block_ns;
    memcpy(row, &r, sizeof r);
}

static enum rp_status add_run(struct rp_profile *p, const void *row, struct rp_err *err)
{
    const struct run_row *r = row;

    if (!r->block_ns)
        return rp_fail(err, RP_FORMAT, "blocks have no length");
    p->run = r->run;
    p->nblocks = r->nblocks;
    p->block_ns = r->block_ns;
    return RP_OK;
}

#define FIELD(row, field, name, check, max) {name, offsetof(struct row, field), sizeof((struct row *)0)->field, check, max}
#define NUM(row, field, max) FIELD(row, field, #field, RP_STORE_MAX, max)
#define REF(row, field, check) FIELD(row, field, #field, check, 0)
#define RUN(field, check, max) FIELD(run_row, run.field, #field, check, max)

const struct rp_store_table rp_store_tables[] = {
    {"images", RP_SCHEMA_IMAGES, "id", sizeof(struct rp_profile_image),
     {NUM(rp_profile_image, kind, IMAGE_KINDS - 1), REF(rp_profile_image, path, RP_STORE_STRING),
      REF(rp_profile_image, name, RP_STORE_STRING), REF(rp_profile_image, build_id, RP_STORE_STRING),
      REF(rp_profile_image, dev, RP_STORE_ANY), REF(rp_profile_image, ino, RP_STORE_ANY),
      REF(rp_profile_image, note, RP_STORE_STRING), REF(rp_profile_image, remedy, RP_STORE_STRING)},
     count_images, get_images, add_images, .since = 1},
    {"aliases", RP_SCHEMA_ALIASES, "id", sizeof(uint32_t), {{"name", 0, 4, RP_STORE_STRING, 0}}, count_aliases, get_aliases, add_aliases, .since = 1},
    {"functions", RP_SCHEMA_FUNCTIONS, "id", sizeof(struct rp_function),
     {REF(rp_function, name, RP_STORE_STRING), REF(rp_function, raw, RP_STORE_STRING),
      REF(rp_function, image, RP_STORE_IMAGE), REF(rp_function, module, RP_STORE_STRING),
      REF(rp_function, start, RP_STORE_ANY), REF(rp_function, file, RP_STORE_STRING), NUM(rp_function, first_alias, UINT32_MAX),
      NUM(rp_function, naliases, UINT32_MAX), NUM(rp_function, how, RP_NAME_MARK)},
     count_functions, get_functions, add_functions, .since = 1},
    {"lines", RP_SCHEMA_LINES, "id", sizeof(struct rp_line),
     {REF(rp_line, function, RP_STORE_FUNCTION), REF(rp_line, file, RP_STORE_STRING), NUM(rp_line, line, UINT32_MAX)},
     count_lines, get_lines, add_lines, .since = 1},
    {"locations", RP_SCHEMA_LOCATIONS, "id", sizeof(struct rp_location),
     {REF(rp_location, image, RP_STORE_IMAGE), NUM(rp_location, flags, LOCATION_FLAGS),
      REF(rp_location, addr, RP_STORE_ANY), NUM(rp_location, epoch, UINT32_MAX), NUM(rp_location, first_line, UINT32_MAX),
      NUM(rp_location, nlines, RP_LOCATION_LINES_MAX)},
     count_locations, get_locations, add_locations, .since = 1},
    {"nodes", RP_SCHEMA_NODES, "id", sizeof(struct rp_node),
     {REF(rp_node, parent, RP_STORE_NODE), REF(rp_node, location, RP_STORE_LOCATION_OR_NULL)},
     count_nodes, get_nodes, add_nodes, .since = 1},
    {"processes", RP_SCHEMA_PROCESSES, "id", sizeof(struct rp_profile_process),
     {NUM(rp_profile_process, pid, UINT32_MAX), NUM(rp_profile_process, generation, UINT32_MAX),
      REF(rp_profile_process, command, RP_STORE_STRING), REF(rp_profile_process, comm, RP_STORE_STRING)},
     count_processes, get_processes, add_processes, .since = 1},
    {"threads", RP_SCHEMA_THREADS, "id", sizeof(struct rp_profile_thread),
     {REF(rp_profile_thread, process, RP_STORE_PROCESS), NUM(rp_profile_thread, tid, UINT32_MAX),
      REF(rp_profile_thread, comm, RP_STORE_STRING), NUM(rp_profile_thread, wall_ns, INT64_MAX), NUM(rp_profile_thread, cpu_ns, INT64_MAX),
      NUM(rp_profile_thread, preempted_ns, INT64_MAX), NUM(rp_profile_thread, preemptions, INT64_MAX), NUM(rp_profile_thread, waiting_ns, INT64_MAX),
      NUM(rp_profile_thread, waits, INT64_MAX), NUM(rp_profile_thread, run_delay_ns, INT64_MAX)},
     count_threads, get_threads, add_threads, .since = 1, .schema_1 = RP_SCHEMA_THREADS_1, .nfields_1 = 5},
    {"run", RP_SCHEMA_RUN, "id", sizeof(struct run_row),
     {RUN(started_unix_ns, RP_STORE_MAX, INT64_MAX), RUN(seconds_ns, RP_STORE_MAX, INT64_MAX), RUN(hz, RP_STORE_MAX, UINT32_MAX), RUN(source, RP_STORE_STRING, 0), RUN(host, RP_STORE_STRING, 0),
      RUN(kernel_visible, RP_STORE_MAX, UINT32_MAX), RUN(stack_bytes, RP_STORE_MAX, UINT32_MAX), RUN(stack_grown, RP_STORE_MAX, UINT32_MAX), RUN(lost, RP_STORE_MAX, INT64_MAX), RUN(throttled, RP_STORE_MAX, INT64_MAX), RUN(vanished, RP_STORE_MAX, INT64_MAX),
      RUN(threads_unsampled, RP_STORE_MAX, UINT32_MAX), RUN(note, RP_STORE_STRING, 0), RUN(map_lines, RP_STORE_MAX, INT64_MAX), RUN(map_rejected, RP_STORE_MAX, INT64_MAX),
      NUM(run_row, nblocks, RP_BLOCKS_MAX), NUM(run_row, block_ns, INT64_MAX / RP_BLOCKS_MAX),
      RUN(waits, RP_STORE_MAX, 2), RUN(sampler, RP_STORE_STRING, 0), RUN(switches, RP_STORE_MAX, INT64_MAX), RUN(wait_stacks, RP_STORE_MAX, INT64_MAX),
      RUN(cpus, RP_STORE_MAX, UINT32_MAX)},
     count_run, get_run, add_run, .since = 1, .schema_1 = RP_SCHEMA_RUN_1, .nfields_1 = 17},
    {"counts", RP_SCHEMA_COUNTS, "rowid", sizeof(struct rp_count),
     {REF(rp_count, thread, RP_STORE_THREAD), REF(rp_count, node, RP_STORE_NODE), NUM(rp_count, tag, UINT32_MAX),
      NUM(rp_count, block, RP_BLOCKS_MAX - 1), NUM(rp_count, state, RP_STATE_BLOCKED),
      NUM(rp_count, n, RP_COUNT_MAX), NUM(rp_count, weight_ns, INT64_MAX)},
     count_counts, get_counts, add_counts, .since = 1},
    {"wait_totals", RP_SCHEMA_WAIT_TOTALS, "rowid", sizeof(struct rp_wait_total),
     {REF(rp_wait_total, thread, RP_STORE_THREAD), NUM(rp_wait_total, wait_class, RP_WAIT_CLASSES - 1), NUM(rp_wait_total, n, RP_COUNT_MAX),
      NUM(rp_wait_total, ns, INT64_MAX), NUM(rp_wait_total, max_ns, INT64_MAX)},
     count_wait_totals, get_wait_totals, add_wait_totals, .since = 2},
    {"locks", RP_SCHEMA_LOCKS, "id", sizeof(struct rp_lock),
     {REF(rp_lock, process, RP_STORE_PROCESS), REF(rp_lock, address, RP_STORE_ANY), REF(rp_lock, image, RP_STORE_IMAGE),
      REF(rp_lock, addr, RP_STORE_ANY), REF(rp_lock, symbol, RP_STORE_STRING), REF(rp_lock, database, RP_STORE_STRING)},
     count_locks, get_locks, add_locks, .since = 2},
    {"waits", RP_SCHEMA_WAITS, "rowid", sizeof(struct rp_wait),
     {REF(rp_wait, thread, RP_STORE_THREAD), REF(rp_wait, node, RP_STORE_NODE), NUM(rp_wait, tag, UINT32_MAX),
      NUM(rp_wait, wait_class, RP_WAIT_CLASSES - 1), REF(rp_wait, syscall, RP_STORE_SYSCALL_OR_NULL), NUM(rp_wait, n, RP_COUNT_MAX),
      NUM(rp_wait, ns, INT64_MAX), NUM(rp_wait, max_ns, INT64_MAX)},
     count_waits, get_waits, add_waits, .since = 2},
    {"holders", RP_SCHEMA_HOLDERS, "rowid", sizeof(struct rp_holder),
     {REF(rp_holder, lock, RP_STORE_LOCK), REF(rp_holder, thread, RP_STORE_THREAD_OR_NULL), REF(rp_holder, node, RP_STORE_NODE),
      NUM(rp_holder, state, RP_STATE_BLOCKED), NUM(rp_holder, n, RP_COUNT_MAX), NUM(rp_holder, ns, INT64_MAX)},
     count_holders, get_holders, add_holders, .since = 2},
    {"holder_waiters", RP_SCHEMA_HOLDER_WAITERS, "id", sizeof(struct rp_holder_waiter), {REF(rp_holder_waiter, thread, RP_STORE_THREAD_OR_NULL)},
     count_holder_waiters, get_holder_waiters, add_holder_waiters, .since = 2, .optional = true},
    {"facts", RP_SCHEMA_FACTS, "id", sizeof(struct rp_fact), {REF(rp_fact, name, RP_STORE_STRING), REF(rp_fact, value, RP_STORE_STRING)},
     count_facts, get_facts, add_facts, .since = 1, .optional = true},
    {"rates", RP_SCHEMA_RATES, "id", sizeof(struct rp_profile_rate),
     {NUM(rp_profile_rate, end_ns, INT64_MAX / RP_RATES_MAX), NUM(rp_profile_rate, wall_ns, INT64_MAX / RP_RATES_MAX),
      NUM(rp_profile_rate, calls, INT64_MAX / RP_RATES_MAX), NUM(rp_profile_rate, rows, INT64_MAX / RP_RATES_MAX),
      NUM(rp_profile_rate, cpu_ns, INT64_MAX / RP_RATES_MAX)},
     count_rates, get_rates, add_rates, .since = 1, .optional = true},
    {.name = NULL},
};
