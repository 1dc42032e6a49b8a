/* SPDX-License-Identifier: MIT */
/* From a snapshot to a list of frames, and why the list ended.
 *
 * The engine is chosen per frame: call frame information where the pc's file has a row (looked up through libdw once per address,
 * kept as a small rule; expressions by a stack machine of our own), the frame pointer with sanity checks where there is none (JIT). libdwfl
 * unwinds the same snapshot as a second engine: slow, the oracle in tests.
 *
 * The trap: all frames but the innermost (and those interrupted by a signal) hold return addresses. Rows and names are looked up at pc - 1 there, or a
 * call that ends its function is charged to the next one. */
#ifndef RP_UNWIND_UNWIND_H
#define RP_UNWIND_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/status.h"
#include "sample/snapshot.h"
#include "target/image.h"
#include "target/space.h"

/* Why a walk ended. X(name, text of the root frame, or NULL for a complete stack) */
#define RP_WALK_END_TABLE(X)                                                                                           \
    X(ROOT, NULL) /* a known root: return address undefined by the row, _start, clone, main of a coroutine */          \
    X(NO_USER, NULL) /* a kernel thread: the kernel frames are the whole stack */                                      \
    X(STACK_SHORT, "[truncated: stack copy too short]")                                                                \
    X(NO_ROW, "[truncated: no unwind row]")                                                                            \
    X(NO_MAPPING, "[truncated: pc in no mapping]")                                                                     \
    X(BAD_CFA, "[truncated: stack does not grow]")                                                                     \
    X(BAD_ROW, "[truncated: unwind row cannot be evaluated]")                                                          \
    X(BAD_FP, "[truncated: frame pointer not plausible]")                                                              \
    X(DEPTH, "[truncated: too many frames]")

enum rp_walk_end {
#define RP_WALK_END_ENUM(name, text) RP_WALK_##name,
    RP_WALK_END_TABLE(RP_WALK_END_ENUM)
#undef RP_WALK_END_ENUM
    RP_WALK_ENDS
};

/* The text of the root frame, NULL when the stack is complete. */
const char *rp_walk_end_text(enum rp_walk_end end);

/* The callee-saved registers, in the order of `saved` and `valid`. */
enum rp_saved_reg { RP_SAVED_RBX, RP_SAVED_RBP, RP_SAVED_R12, RP_SAVED_R13, RP_SAVED_R14, RP_SAVED_R15, RP_SAVED_REGS };

struct rp_walk_frame {
    uint64_t pc;                     /* as found: a return address unless `exact` */
    uint64_t cfa;                    /* 0 when unknown (the last frame) */
    uint64_t saved[RP_SAVED_REGS];   /* values on entry to this frame's continuation */
    struct rp_address where;         /* image and ELF address of pc (not pc - 1) */
    uint8_t valid;                   /* bit i: saved[i] is known */
    bool exact;                      /* innermost or interrupted by a signal: pc is the instruction itself */
    bool by_frame_pointer;           /* this frame was reached by following a frame pointer: marked as a guess */
};

/* Scratch for one walk, reused. `frames` has room for RP_WALK_FRAMES_MAX. Leaf first, user frames only. */
struct rp_walk {
    struct rp_walk_frame *frames;
    uint32_t n;
    enum rp_walk_end end;
};

enum rp_status rp_walk_init(struct rp_walk *walk, struct rp_err *err);
void rp_walk_release(struct rp_walk *walk);

/* Counters for tests and the bench. */
struct rp_unwind_stats {
    uint64_t frames, walks;
    uint64_t rows_looked_up; /* libdw was asked: once per (image, address) */
    uint64_t rows_slow;      /* frames evaluated operation by operation because the row is no "register plus offset" */
    uint64_t by_frame_pointer;
};

struct rp_unwinder;

/* `images` must outlive the unwinder. */
enum rp_status rp_unwinder_new(const struct rp_images *images, struct rp_unwinder **out, struct rp_err *err);
void rp_unwinder_free(struct rp_unwinder *unwinder);

/* Fills `walk`. Never fails on bad data (the end says why); fails only for want of memory. */
enum rp_status rp_unwind(struct rp_unwinder *unwinder, struct rp_space *space, const struct rp_snapshot *snapshot,
                         struct rp_walk *walk, struct rp_err *err);

/* The same by libdwfl, which shares nothing with the above but the mapping table: the oracle. Fills pc, where and exact of the frames, no CFA and no
 * registers. ROOT only where libdw's own row has no return address. RP_FAILED when libdw cannot take the process's modules. */
enum rp_status rp_unwind_libdw(struct rp_unwinder *unwinder, struct rp_space *space, const struct rp_snapshot *snapshot,
                               struct rp_walk *walk, struct rp_err *err);

/* The same by libunwind, through accessors for the same snapshot: the second oracle. */
enum rp_status rp_unwind_libunwind(struct rp_unwinder *unwinder, struct rp_space *space, const struct rp_snapshot *snapshot,
                                   struct rp_walk *walk, struct rp_err *err);

/* Which engine rp_unwind_by uses; AUTO is CFI. The others know no rows but those of tables, and nothing of waiting threads seen from outside
 * (snapshot.sp_only), which are always walked by CFI. */
enum rp_unwind_engine { RP_UNWIND_AUTO, RP_UNWIND_CFI, RP_UNWIND_LIBDW, RP_UNWIND_LIBUNWIND };
void rp_unwinder_use(struct rp_unwinder *unwinder, enum rp_unwind_engine engine);
enum rp_status rp_unwind_by(struct rp_unwinder *unwinder, struct rp_space *space, const struct rp_snapshot *snapshot, struct rp_walk *walk,
                            struct rp_err *err);

void rp_unwinder_stats(const struct rp_unwinder *unwinder, struct rp_unwind_stats *stats);

/* Bounds of the FDE that covers ELF address `addr` of an image: the function range of stripped code. False when none does. */
bool rp_unwinder_fde_range(struct rp_unwinder *unwinder, uint32_t image, uint64_t addr, uint64_t *start, uint64_t *end);

#endif
