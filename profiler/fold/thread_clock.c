/* SPDX-License-Identifier: MIT */
/* See thread_clock.h. The trap: an edge like the one before it may be the same one twice (events were replaced), which says nothing, or the one between them
 * was lost (the ring was full), and then nobody knows since when the thread did what it does now. */
#include "fold/thread_clock.h"

/* From the stack of a switch to its record: both are written by the scheduler, but a hypervisor may come between. */
#define AT_SWITCH_NS UINT64_C(10000000)
/* Two events tell of one switch within a microsecond or two; to run and to go again takes longer, or is of no account. */
#define TWICE_NS UINT64_C(20000)

void rp_clock_begin(struct rp_clock *clock, uint64_t now_ns, enum rp_clock_state state)
{
    *clock = (struct rp_clock){.state = (uint8_t)state, .since_ns = now_ns, .born = state == RP_CLOCK_READY};
}

static uint64_t span(const struct rp_clock *clock, uint64_t time_ns)
{
    return time_ns > clock->since_ns ? time_ns - clock->since_ns : 0;
}

static bool fell_into(const struct rp_look *look, uint64_t out_ns, uint64_t in_ns)
{
    return look->time_ns && look->time_ns >= out_ns && look->time_ns <= in_ns && (!look->out_ns || look->out_ns == out_ns);
}

/* Of an owner counts what was seen of it while the wait lasted: later another may have had the lock. */
static struct rp_look within(struct rp_look look, uint64_t in_ns)
{
    if (look.owner_ns > in_ns)
        look.owner = RP_NO_THREAD;
    if (look.owner_node_ns > in_ns)
        look.owner_node = 0;
    return look;
}

/* The stack of the moment of going is the better one; from outside come the system call, the lock and who holds it. */
static struct rp_look look_of(const struct rp_clock *clock, uint64_t out_ns, uint64_t in_ns)
{
    struct rp_look look = clock->at_switch;
    bool seen = fell_into(&clock->seen, out_ns, in_ns);

    if (!look.time_ns)
        return seen ? within(clock->seen, in_ns) : (struct rp_look){.syscall = -1, .owner = RP_NO_THREAD};
    if (seen) {
        struct rp_look first = look;

        look = within(clock->seen, in_ns);
        look.time_ns = first.time_ns;
        look.out_ns = first.out_ns;
        look.syscall = look.syscall >= 0 ? look.syscall : first.syscall;
        look.tag = look.tag ? look.tag : first.tag;
        look.node = first.node ? first.node : look.node;
    }
    return look;
}

static void end_wait(struct rp_clock *clock, struct rp_profile_thread *row, uint64_t time_ns, struct rp_done_wait *done)
{
    uint64_t ns = span(clock, time_ns);

    done->out_ns = clock->since_ns;
    done->in_ns = clock->since_ns + ns;
    done->look = look_of(clock, done->out_ns, done->in_ns);
    if (done->look.tag) {
        clock->lock_tag = done->look.tag;
        clock->lock_in_ns = done->in_ns;
    }
    row->waiting_ns += ns;
    row->waits++;
    clock->at_switch.time_ns = 0;
    if (clock->seen.time_ns <= done->in_ns)
        clock->seen.time_ns = 0;
}

/* Charges the time up to `time_ns` to the present state. */
static void close_state(struct rp_clock *clock, struct rp_profile_thread *row, uint64_t time_ns, struct rp_done_wait *done)
{
    uint64_t ns = span(clock, time_ns);

    switch ((enum rp_clock_state)clock->state) {
    case RP_CLOCK_RUNNING:
        row->cpu_ns += ns;
        break;
    case RP_CLOCK_READY:
        row->preempted_ns += ns;
        row->preemptions += !clock->born;
        clock->born = 0;
        break;
    case RP_CLOCK_WAITING:
        end_wait(clock, row, time_ns, done);
        break;
    case RP_CLOCK_UNKNOWN:
    case RP_CLOCK_ENDED:
        break;
    }
    clock->since_ns += ns;
}

/* The first record tells what the thread did until then. */
static void settle_beginning(struct rp_clock *clock, bool out)
{
    if (clock->state != RP_CLOCK_UNKNOWN)
        return;
    clock->state = out ? RP_CLOCK_RUNNING : clock->ready_at_begin ? RP_CLOCK_READY : RP_CLOCK_WAITING;
    clock->born = clock->state == RP_CLOCK_READY; /* what made it ready was before the watch */
}

/* Leaves the time up to `time_ns` to no state: a record is missing in it. A wait that began with it is none of known length, and its stack is nobody's. */
static void skip_unknown(struct rp_clock *clock, uint64_t time_ns)
{
    if (clock->at_switch.time_ns <= clock->since_ns)
        clock->at_switch.time_ns = 0;
    clock->since_ns = time_ns;
    clock->born = 0;
}

void rp_clock_edge(struct rp_clock *clock, struct rp_profile_thread *row, uint64_t time_ns, bool out, bool preempted, struct rp_done_wait *done)
{
    bool fits;

    done->out_ns = 0;
    settle_beginning(clock, out);
    fits = out == (clock->state == RP_CLOCK_RUNNING);
    if (clock->state == RP_CLOCK_ENDED || (!fits && time_ns < clock->since_ns + TWICE_NS))
        return;
    if (out && clock->at_switch.time_ns + AT_SWITCH_NS < time_ns) /* its own record was lost */
        clock->at_switch.time_ns = 0;
    if (fits)
        close_state(clock, row, time_ns, done);
    else
        skip_unknown(clock, time_ns);
    clock->state = !out ? RP_CLOCK_RUNNING : preempted ? RP_CLOCK_READY : RP_CLOCK_WAITING;
    if (clock->state != RP_CLOCK_WAITING) /* a stack taken at a preemption is that of no wait */
        clock->at_switch.time_ns = 0;
}

void rp_clock_sample(struct rp_clock *clock, uint64_t time_ns, uint32_t node, uint64_t weight_ns)
{
    bool off = clock->state == RP_CLOCK_WAITING || clock->state == RP_CLOCK_READY;
    bool lost = off && time_ns >= clock->since_ns + TWICE_NS;

    if (lost) {
        skip_unknown(clock, time_ns);
        clock->at_switch.time_ns = 0;
    }
    if (lost || clock->state == RP_CLOCK_UNKNOWN)
        clock->state = RP_CLOCK_RUNNING;
    if (clock->after_ns && time_ns >= clock->after_ns) {
        clock->after_ns = 0;
        clock->after_sample_ns = time_ns;
        clock->after_node = node;
    }
    clock->sample_ns = time_ns;
    clock->sample_node = node;
    clock->sampled_ns += weight_ns;
}

void rp_clock_end(struct rp_clock *clock, struct rp_profile_thread *row, uint64_t time_ns, bool ran, struct rp_done_wait *done)
{
    done->out_ns = 0;
    settle_beginning(clock, ran);
    close_state(clock, row, time_ns, done);
    clock->state = RP_CLOCK_ENDED;
}

uint64_t rp_clock_end_untold(struct rp_clock *clock, struct rp_profile_thread *row)
{
    struct rp_done_wait none;

    if (clock->state == RP_CLOCK_RUNNING)
        close_state(clock, row, clock->sample_ns, &none);
    clock->state = RP_CLOCK_ENDED;
    return clock->since_ns;
}

void rp_clock_settle_cpu(struct rp_profile_thread *row, uint64_t wall_ns, uint64_t cpu_ns)
{
    uint64_t off = row->preempted_ns + row->waiting_ns, most = wall_ns > off ? wall_ns - off : 0;

    row->cpu_ns = cpu_ns < most ? cpu_ns : most;
}

bool rp_clock_wants_look(const struct rp_clock *clock, uint64_t now_ns, uint64_t least_ns)
{
    if (clock->state != RP_CLOCK_WAITING && !(clock->state == RP_CLOCK_UNKNOWN && clock->blocked_at_begin))
        return false;
    return clock->asked_ns != clock->since_ns && now_ns >= clock->since_ns + least_ns;
}

void rp_clock_mark_owner(struct rp_clock *owner, struct rp_look *look)
{
    look->ran_ns = owner->sample_ns;
    look->ran_node = owner->sample_node;
    owner->after_ns = look->owner_ns;
    owner->after_node = 0;
}

uint32_t rp_clock_owner_ran(const struct rp_clock *owner, const struct rp_done_wait *done)
{
    const struct rp_look *look = &done->look;
    bool waited = owner->lock_tag == look->tag && owner->lock_in_ns > done->out_ns;
    uint64_t from = waited ? owner->lock_in_ns : done->out_ns;
    bool before = look->ran_node && look->ran_ns >= from && look->ran_ns <= look->owner_ns;
    bool after = owner->after_node && owner->after_sample_ns >= from && owner->after_sample_ns <= done->in_ns;

    if (before && after)
        before = look->owner_ns - look->ran_ns <= owner->after_sample_ns - look->owner_ns;
    return before ? look->ran_node : after ? owner->after_node : 0;
}

struct rp_look rp_clock_open_wait(const struct rp_clock *clock)
{
    if (clock->state != RP_CLOCK_WAITING && clock->state != RP_CLOCK_UNKNOWN)
        return (struct rp_look){.syscall = -1, .owner = RP_NO_THREAD};
    return look_of(clock, clock->since_ns, UINT64_MAX);
}

uint64_t rp_clock_cpu(const struct rp_clock *clock, const struct rp_profile_thread *row, uint64_t now_ns)
{
    return row->cpu_ns + (clock->state == RP_CLOCK_RUNNING ? span(clock, now_ns) : 0);
}
