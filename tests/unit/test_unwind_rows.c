/* SPDX-License-Identifier: MIT */
/* Rows of every kind over made-up stacks whose answer is known by hand, the expression machine, the instruction bytes, and each reason for
 * which a walk ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <dwarf.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/unwind_elf.h"
#include "unwind/expr.h"
#include "unwind/insn.h"
#include "unwind/unwind.h"

enum { STACK_AT = 0x7ff00000, WORDS = 16384, CODE_AT = 0x600000, PC = CODE_AT + 0x100, NO_ROW_PC = CODE_AT + 0xa00, JIT_AT = 0x900000 };

struct world {
    struct rp_images images;
    struct rp_space space;
    struct rp_unwinder *unwinder;
    struct rp_walk walk;
    struct rp_snapshot snapshot;
    uint64_t stack[WORDS];
    uint32_t id, jit;
};

/* A file whose one row is `ops` on top of "CFA = rsp + 8, RA at CFA - 8"; `code` stands at its start. */
static struct world *world_of(const uint8_t *ops, size_t nops, bool signal, const uint8_t *code, size_t ncode)
{
    struct world *w = calloc(1, sizeof *w);
    struct rp_image_key key = {.pid = 7, .start = JIT_AT, .end = JIT_AT + 4096, .path = ""};
    struct rp_mapping jit = {JIT_AT, JIT_AT + 4096, JIT_AT, 0};
    struct rp_err err = {0};
    uint8_t frame[1024];

    assert_non_null(w);
    w->space.pid = 7;
    assert_int_equal(rp_images_init(&w->images, &err), RP_OK);
    assert_true(unwind_elf_open(&w->images, frame, unwind_elf_frame(frame, ops, nops, signal), code, ncode, &w->id));
    assert_true(unwind_elf_map(&w->space, w->id, CODE_AT));
    assert_int_equal(rp_images_get(&w->images, &key, &jit.image, &err), RP_OK);
    assert_int_equal(rp_space_add(&w->space, &jit, &err), RP_OK);
    assert_int_equal(rp_unwinder_new(&w->images, &w->unwinder, &err), RP_OK);
    assert_int_equal(rp_walk_init(&w->walk, &err), RP_OK);
    w->snapshot = (struct rp_snapshot){.has_user = true, .stack = (const uint8_t *)w->stack, .stack_bytes = 256, .stack_cut = true};
    w->snapshot.regs[RP_RIP] = PC;
    w->snapshot.regs[RP_RSP] = STACK_AT;
    return w;
}

static void world_free(struct world *w)
{
    rp_walk_release(&w->walk);
    rp_unwinder_free(w->unwinder);
    rp_space_release(&w->space);
    rp_images_release(&w->images);
    free(w);
}

static enum rp_walk_end walk(struct world *w)
{
    struct rp_err err = {0};

    assert_int_equal(rp_unwind(w->unwinder, &w->space, &w->snapshot, &w->walk, &err), RP_OK);
    return w->walk.end;
}

/* One row each: what the caller's registers are, told by hand. Stack word i holds 0x1000 + i, CFA_WORD a CFA, ra_word the return address. */
enum { NONE = 0xffff, CFA_WORD = 7 };

struct row {
    const char *name;
    uint8_t ops[24];
    size_t nops;
    bool signal;
    unsigned ra_word;     /* the stack word that holds the return address */
    uint64_t cfa;         /* above STACK_AT */
    unsigned saved;       /* enum rp_saved_reg looked at */
    uint64_t value;       /* its value in the caller; NONE: not known */
    bool exact;
};

static const struct row rows[] = {
    {"plain", {0}, 0, false, 0, 8, RP_SAVED_RBX, 0xb0, false},
    {"offset 24, rbx at -16", {0x0e, 24, 0x83, 2}, 4, false, 2, 24, RP_SAVED_RBX, 0x1001, false},
    {"r15 at -24", {0x0e, 24, 0x8f, 3}, 4, false, 2, 24, RP_SAVED_R15, 0x1000, false},
    {"CFA by r12", {0x0c, 12, 16}, 3, false, 5, 48, RP_SAVED_R12, STACK_AT + 32, false},
    {"CFA by a scratch register (r10)", {0x0c, 10, 0}, 3, false, 1, 16, RP_SAVED_RBX, 0xb0, false},
    {"rbp undefined", {0x07, 6}, 2, false, 0, 8, RP_SAVED_RBP, NONE, false},
    {"rbx is silence", {0x07, 3}, 2, false, 0, 8, RP_SAVED_RBX, 0xb0, false},
    {"rbp in r13", {0x09, 6, 13}, 3, false, 0, 8, RP_SAVED_RBP, 0xd0, false},
    {"rbp is CFA+16", {0x15, 6, 0x7e}, 3, false, 0, 8, RP_SAVED_RBP, STACK_AT + 24, false},
    {"rbp where breg7+32 says", {0x10, 6, 2, DW_OP_breg7, 32}, 5, false, 0, 8, RP_SAVED_RBP, 0x1004, false},
    {"rbp is breg7+32", {0x16, 6, 2, DW_OP_breg7, 32}, 5, false, 0, 8, RP_SAVED_RBP, STACK_AT + 32, false},
    {"CFA by expression: r12 + 8", {0x0f, 3, DW_OP_breg12, 8, DW_OP_nop}, 5, false, 4, 40, RP_SAVED_RBX, 0xb0, false},
    {"CFA in memory: [rsp + 56]", {0x0f, 3, DW_OP_breg7, 56, DW_OP_deref}, 5, false, 9, 80, RP_SAVED_RBX, 0xb0, false},
    {"PLT before the push", {0x0f, 11, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit11, DW_OP_ge, DW_OP_lit3,
                             DW_OP_shl, DW_OP_plus}, 13, false, 0, 8, RP_SAVED_RBX, 0xb0, false},
    {"PLT behind the push", {0x0f, 11, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit0, DW_OP_ge, DW_OP_lit3,
                             DW_OP_shl, DW_OP_plus}, 13, false, 1, 16, RP_SAVED_RBX, 0xb0, false},
    {"signal frame", {0}, 0, true, 0, 8, RP_SAVED_RBX, 0xb0, true},
    {"saved below the copy: popped already", {0x86, 2}, 2, false, 0, 8, RP_SAVED_RBP, 0xa0, false},
    {"RA in rax", {0x0e, 0, 0x09, 16, 0}, 5, false, NONE, 0, RP_SAVED_RBX, 0xb0, false},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world *w = world_of(rows[i].ops, rows[i].nops, rows[i].signal, NULL, 0);
        const struct rp_walk_frame *f = w->walk.frames;
        uint64_t *r = w->snapshot.regs, saved;
        bool known;

        for (unsigned k = 0; k < WORDS; k++)
            w->stack[k] = 0x1000 + k;
        w->stack[CFA_WORD] = STACK_AT + 80;
        if (rows[i].ra_word != NONE)
            w->stack[rows[i].ra_word] = JIT_AT + 0x44;
        r[RP_RAX] = JIT_AT + 0x44, r[RP_RBX] = 0xb0, r[RP_RBP] = 0xa0, r[RP_R10] = STACK_AT + 16, r[RP_R12] = STACK_AT + 32, r[RP_R13] = 0xd0;
        (void)walk(w);
        if (w->walk.n != 2 || f[1].pc != JIT_AT + 0x44 || f[1].exact != rows[i].exact)
            fail_msg("%s: %u frames, caller %lx", rows[i].name, w->walk.n, f[1].pc);
        if (f[0].cfa != STACK_AT + rows[i].cfa)
            fail_msg("%s: CFA %lx", rows[i].name, f[0].cfa);
        saved = f[1].saved[rows[i].saved];
        known = f[1].valid >> rows[i].saved & 1;
        if (known != (rows[i].value != NONE) || (known && saved != rows[i].value))
            fail_msg("%s: register %u is %lx", rows[i].name, rows[i].saved, saved);
        assert_int_equal(f[0].where.image, w->id);
        assert_int_equal(f[0].where.addr, UNWIND_ELF_CODE + 0x100);
        world_free(w);
    }
}

/* A program that unloads a plugin and loads another gets the same address again; to libdw, which keeps a picture of the process, that must not be the old one. */
static void test_a_file_in_anothers_place(void **state)
{
    static const uint8_t deeper[] = {0x0e, 24};
    struct world *w = world_of(NULL, 0, false, NULL, 0);
    struct rp_err err = {0};
    uint8_t frame[1024];
    uint32_t other;
    size_t n = w->space.maps.n;

    (void)state;
    w->stack[0] = JIT_AT + 0x44;
    w->stack[2] = JIT_AT + 0x88;
    assert_int_equal(rp_unwind_libdw(w->unwinder, &w->space, &w->snapshot, &w->walk, &err), RP_OK);
    assert_int_equal(w->walk.n, 2);
    assert_int_equal(w->walk.frames[1].pc, JIT_AT + 0x44);
    assert_true(unwind_elf_open(&w->images, frame, unwind_elf_frame(frame, deeper, sizeof deeper, false), NULL, 0, &other));
    assert_true(unwind_elf_map(&w->space, other, CODE_AT));
    assert_int_equal(w->space.maps.n, n);
    assert_int_equal(rp_unwind_libdw(w->unwinder, &w->space, &w->snapshot, &w->walk, &err), RP_OK);
    assert_int_equal(w->walk.frames[0].where.image, other);
    assert_int_equal(w->walk.frames[1].pc, JIT_AT + 0x88);
    world_free(w);
}

/* Each end by a stack made for it. */
static void test_ends(void **state)
{
    static const uint8_t by_rbp[] = {0x0c, 6, 16}, no_ra[] = {0x07, 16}, by_odd[] = {0x0f, 1, DW_OP_piece, 0x0c, 30, 8};
    static const struct {
        const char *name;
        const uint8_t *ops;
        size_t nops;
        uint64_t pc, bp, word0, word1;
        uint32_t stack_bytes;
        enum rp_walk_end end;
        uint32_t n;
    } ends[] = {
        {"RA undefined", no_ra, 2, PC, 0, 0, 0, 256, RP_WALK_ROOT, 1},
        {"RA zero", NULL, 0, PC, 0, 0, 0, 256, RP_WALK_ROOT, 1},
        {"no stack", NULL, 0, PC, 0, 0, 0, 0, RP_WALK_STACK_SHORT, 1},
        {"half a word", NULL, 0, PC, 0, 5, 0, 7, RP_WALK_STACK_SHORT, 1},
        {"pc nowhere", NULL, 0, 0x10, 0, 0, 0, 256, RP_WALK_NO_MAPPING, 0},
        {"caller nowhere", NULL, 0, PC, 0, 0x1234567, 0, 256, RP_WALK_NO_MAPPING, 1},
        {"CFA below rsp", by_rbp, 3, PC, STACK_AT - 64, 0, 0, 256, RP_WALK_BAD_CFA, 1},
        {"CFA at rsp", by_rbp, 3, PC, STACK_AT - 16, 0, 0, 256, RP_WALK_BAD_CFA, 1},
        {"CFA far above", by_rbp, 3, PC, STACK_AT + 4096, 0, 0, 256, RP_WALK_STACK_SHORT, 1},
        {"operation unknown", by_odd, 3, PC, 0, 0, 0, 256, RP_WALK_BAD_ROW, 1},
        {"register unknown", by_odd + 3, 3, PC, 0, 0, 0, 256, RP_WALK_BAD_ROW, 1},
        {"no row, rbp junk", NULL, 0, NO_ROW_PC, 0x77, 1, 1, 256, RP_WALK_NO_ROW, 1},
        {"no row, chain leads to junk", NULL, 0, NO_ROW_PC, STACK_AT + 16, 1, 1, 256, RP_WALK_NO_ROW, 1},
        {"JIT, rbp junk", NULL, 0, JIT_AT + 8, 0x77, 1, 1, 256, RP_WALK_BAD_FP, 1},
        {"JIT, rbp odd", NULL, 0, JIT_AT + 8, STACK_AT + 12, 1, 1, 256, RP_WALK_BAD_FP, 1},
        {"JIT, rbp below", NULL, 0, JIT_AT + 8, STACK_AT - 8, 1, 1, 256, RP_WALK_BAD_FP, 1},
        {"JIT, rbp above the copy", NULL, 0, JIT_AT + 8, STACK_AT + 4096, 1, 1, 256, RP_WALK_STACK_SHORT, 1},
        {"JIT, rbp in another world", NULL, 0, JIT_AT + 8, (uint64_t)1 << 46, 1, 1, 256, RP_WALK_BAD_FP, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct world *w = world_of(ends[i].ops, ends[i].nops, false, NULL, 0);

        for (unsigned k = 2; k < WORDS; k++)
            w->stack[k] = 0x55;
        w->stack[0] = ends[i].word0, w->stack[1] = ends[i].word1;
        w->snapshot.regs[RP_RIP] = ends[i].pc, w->snapshot.regs[RP_RBP] = ends[i].bp;
        w->snapshot.stack_bytes = ends[i].stack_bytes;
        if (walk(w) != ends[i].end || w->walk.n != ends[i].n)
            fail_msg("%s: end %d with %u frames", ends[i].name, (int)w->walk.end, w->walk.n);
        assert_true((rp_walk_end_text(w->walk.end) == NULL) == (w->walk.end == RP_WALK_ROOT));
        world_free(w);
    }
}

/* A frame that leads to itself: its return address and CFA are inside the copy, only the growth tells. */
static void test_cfa_must_grow(void **state)
{
    static const uint8_t by_rbp[] = {0x0c, 6, 16};
    struct world *w = world_of(by_rbp, sizeof by_rbp, false, NULL, 0);

    (void)state;
    w->snapshot.regs[RP_RBP] = STACK_AT + 16;
    w->stack[3] = PC + 4;
    assert_int_equal(walk(w), RP_WALK_BAD_CFA);
    assert_int_equal(w->walk.n, 2);
    assert_int_equal(w->walk.frames[0].cfa, STACK_AT + 32);
    assert_int_equal(w->walk.frames[1].cfa, 0);
    world_free(w);
}

static void test_no_user_and_depth(void **state)
{
    struct world *w = world_of(NULL, 0, false, NULL, 0);

    (void)state;
    for (unsigned k = 0; k < WORDS; k++)
        w->stack[k] = PC;
    w->snapshot.stack_bytes = WORDS * 8;
    assert_int_equal(walk(w), RP_WALK_DEPTH);
    assert_int_equal(w->walk.n, RP_WALK_FRAMES_MAX);
    w->snapshot.stack_bytes = 100 * 8;
    assert_int_equal(walk(w), RP_WALK_STACK_SHORT);
    assert_int_equal(w->walk.n, 101);
    w->snapshot.has_user = false;
    assert_int_equal(walk(w), RP_WALK_NO_USER);
    assert_int_equal(w->walk.n, 0);
    assert_string_equal(rp_walk_end_text(RP_WALK_STACK_SHORT), "[truncated: stack copy too short]");
    assert_null(rp_walk_end_text(RP_WALK_ENDS));
    world_free(w);
}

/* JIT -> file with a row -> JIT -> root by zeros, rbp carried over by the row's "unchanged". */
static void test_hybrid(void **state)
{
    static const uint8_t ops[] = {0x0e, 32};
    struct world *w = world_of(ops, sizeof ops, false, (const uint8_t[]){0xe8, 1, 2, 3, 4}, 5);
    const struct rp_walk_frame *f = w->walk.frames;

    (void)state;
    w->snapshot.regs[RP_RIP] = JIT_AT + 0x10;
    w->snapshot.regs[RP_RBP] = STACK_AT + 16;
    w->stack[2] = STACK_AT + 96;      /* saved rbp */
    w->stack[3] = CODE_AT + 5;        /* after the call at the file's start */
    w->stack[4 + 3] = JIT_AT + 0x30;  /* the file's frame is 32 bytes */
    w->stack[12] = 0, w->stack[13] = 0;
    assert_int_equal(walk(w), RP_WALK_ROOT);
    assert_int_equal(w->walk.n, 3);
    assert_int_equal(f[0].cfa, STACK_AT + 32);
    assert_true(f[1].by_frame_pointer && !f[2].by_frame_pointer);
    assert_int_equal(f[1].where.addr, UNWIND_ELF_CODE + 5);
    assert_int_equal(f[1].valid, 1 << RP_SAVED_RBP); /* code without rows preserves nothing */
    assert_int_equal(f[2].pc, JIT_AT + 0x30);
    assert_int_equal(f[2].saved[RP_SAVED_RBP], STACK_AT + 96);
    world_free(w);
}

/* The innermost frame of code without rows, told by its next instruction or by what stands at rsp. */
static void test_leaf_without_row(void **state)
{
    enum { AT = 0x0b00, CALL = 0x40 };
    static const struct {
        const char *name;
        uint8_t code[8];
        uint64_t word0, word1, bp;
        uint64_t cfa, ra;
    } leaves[] = {
        {"before push", {0x55, 0x48, 0x89, 0xe5}, CODE_AT + CALL, 1, 0x77, 8, CODE_AT + CALL},
        {"before push, endbr64", {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5}, CODE_AT + CALL, 1, 0x77, 8, CODE_AT + CALL},
        {"between", {0x48, 0x89, 0xe5}, STACK_AT + 48, CODE_AT + CALL, STACK_AT + 48, 16, CODE_AT + CALL},
        {"between, other coding", {0x48, 0x8b, 0xec}, STACK_AT + 48, CODE_AT + CALL, STACK_AT + 48, 16, CODE_AT + CALL},
        {"at pop", {0x5d, 0xc3}, STACK_AT + 48, CODE_AT + CALL, 0x77, 16, CODE_AT + CALL},
        {"at ret", {0xc3}, CODE_AT + CALL, 1, 0x77, 8, CODE_AT + CALL},
        {"frameless, after a call", {0x90}, CODE_AT + CALL, 1, 0x77, 8, CODE_AT + CALL},
        {"set up", {0x90}, CODE_AT + CALL + 1, 1, STACK_AT + 32, 48, CODE_AT + CALL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof leaves / sizeof leaves[0]; i++) {
        uint8_t code[AT + 8] = {0};
        struct world *w;

        code[CALL - 2] = 0xff, code[CALL - 1] = 0xd0; /* call *%rax */
        memcpy(code + AT, leaves[i].code, 8);
        w = world_of(NULL, 0, false, code, sizeof code);
        w->snapshot.regs[RP_RIP] = CODE_AT + AT, w->snapshot.regs[RP_RBP] = leaves[i].bp;
        w->stack[0] = leaves[i].word0, w->stack[1] = leaves[i].word1;
        w->stack[4] = STACK_AT + 128, w->stack[5] = CODE_AT + CALL;
        (void)walk(w);
        if (w->walk.n < 2 || w->walk.frames[1].pc != leaves[i].ra || w->walk.frames[0].cfa != STACK_AT + leaves[i].cfa)
            fail_msg("%s: caller %lx, CFA %lx", leaves[i].name, w->walk.frames[1].pc, w->walk.frames[0].cfa);
        world_free(w);
    }
}

/* musl: a signal trampoline and a thread's end without rows; and a program's entry. */
static void test_bytes_that_are_known(void **state)
{
    enum { TRAMPOLINE = 0xa10, LAST = 0xb20, ENTRY = 0xf10 };
    uint8_t code[0x1000] = {0};
    struct world *w;
    uint64_t *g;

    (void)state;
    memcpy(code + TRAMPOLINE, (const uint8_t[]){0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05}, 9);
    memcpy(code + LAST - 2, (const uint8_t[]){0xff, 0xd1, 0x89, 0xc7, 0x31, 0xc0, 0xb0, 60, 0x0f, 0x05}, 10); /* call *%rcx; exit */
    w = world_of(NULL, 0, false, code, sizeof code);
    w->stack[0] = CODE_AT + TRAMPOLINE;
    g = w->stack + 1 + 5; /* gregs of the ucontext that rsp points to behind the return */
    g[16] = JIT_AT + 0x20, g[15] = STACK_AT + 320, g[10] = STACK_AT + 328, g[11] = 0xbb;
    w->stack[40] = 3;
    w->stack[41] = 0, w->stack[42] = CODE_AT + LAST;
    w->snapshot.stack_bytes = 400;
    assert_int_equal(walk(w), RP_WALK_ROOT);
    assert_int_equal(w->walk.n, 4);
    assert_true(w->walk.frames[2].exact);
    assert_int_equal(w->walk.frames[2].pc, JIT_AT + 0x20);
    assert_int_equal(w->walk.frames[2].saved[RP_SAVED_RBX], 0xbb);
    assert_int_equal(w->walk.frames[3].pc, CODE_AT + LAST);
    w->snapshot.regs[RP_RIP] = CODE_AT + ENTRY, w->snapshot.regs[RP_RBP] = 0;
    assert_int_equal(walk(w), RP_WALK_ROOT);
    assert_int_equal(w->walk.n, 1);
    w->snapshot.regs[RP_RIP] = CODE_AT + ENTRY + 64; /* behind the entry: no known root */
    assert_int_equal(walk(w), RP_WALK_NO_ROW);
    world_free(w);
}

static void test_expressions(void **state)
{
    static const uint64_t stack[] = {0x1122334455667788, 7};
    static uint64_t regs[RP_NREGS] = {[RP_RAX] = 5, [RP_RSP] = STACK_AT};
    const struct rp_expr_env env = {regs, 1u << RP_RAX | 1u << RP_RSP, true, 0x9000, STACK_AT, STACK_AT + sizeof stack, (const uint8_t *)stack};
    static const struct {
        Dwarf_Op ops[8];
        size_t nops;
        enum rp_expr_end end;
        uint64_t value;
    } cases[] = {
        {{{DW_OP_lit3, 0, 0, 0}, {DW_OP_lit4, 0, 0, 1}, {DW_OP_minus, 0, 0, 2}}, 3, RP_EXPR_ADDRESS, UINT64_MAX},
        {{{DW_OP_const1s, UINT64_MAX, 0, 0}, {DW_OP_lit2, 0, 0, 2}, {DW_OP_div, 0, 0, 3}, {DW_OP_stack_value, 0, 0, 4}}, 4, RP_EXPR_VALUE, 0},
        {{{DW_OP_lit1, 0, 0, 0}, {DW_OP_lit0, 0, 0, 1}, {DW_OP_div, 0, 0, 2}}, 3, RP_EXPR_BAD, 0},
        {{{DW_OP_lit1, 0, 0, 0}, {DW_OP_lit0, 0, 0, 1}, {DW_OP_mod, 0, 0, 2}}, 3, RP_EXPR_BAD, 0},
        {{{DW_OP_lit1, 0, 0, 0}, {DW_OP_const1u, 64, 0, 1}, {DW_OP_shl, 0, 0, 3}}, 3, RP_EXPR_ADDRESS, 0},
        {{{DW_OP_const1s, UINT64_MAX, 0, 0}, {DW_OP_const1u, 200, 0, 2}, {DW_OP_shra, 0, 0, 4}}, 3, RP_EXPR_ADDRESS, UINT64_MAX},
        {{{DW_OP_breg7, 0, 0, 0}, {DW_OP_deref, 0, 0, 2}}, 2, RP_EXPR_ADDRESS, 0x1122334455667788},
        {{{DW_OP_breg7, 4, 0, 0}, {DW_OP_deref_size, 2, 0, 2}}, 2, RP_EXPR_ADDRESS, 0x3344},
        {{{DW_OP_breg7, 12, 0, 0}, {DW_OP_deref, 0, 0, 2}}, 2, RP_EXPR_SHORT, 0},
        {{{DW_OP_breg7, (Dwarf_Word)-8, 0, 0}, {DW_OP_deref, 0, 0, 2}}, 2, RP_EXPR_BAD, 0},
        {{{DW_OP_breg3, 0, 0, 0}}, 1, RP_EXPR_BAD, 0}, /* rbx is not known */
        {{{DW_OP_reg0, 0, 0, 0}}, 1, RP_EXPR_VALUE, 5},
        {{{DW_OP_regx, 40, 0, 0}}, 1, RP_EXPR_BAD, 0},
        {{{DW_OP_call_frame_cfa, 0, 0, 0}, {DW_OP_plus_uconst, 16, 0, 1}}, 2, RP_EXPR_ADDRESS, 0x9010},
        {{{DW_OP_lit1, 0, 0, 0}, {DW_OP_lit2, 0, 0, 1}, {DW_OP_lit3, 0, 0, 2}, {DW_OP_rot, 0, 0, 3}, {DW_OP_drop, 0, 0, 4}}, 5, RP_EXPR_ADDRESS, 1},
        {{{DW_OP_lit9, 0, 0, 0}, {DW_OP_lit2, 0, 0, 1}, {DW_OP_pick, 1, 0, 2}}, 3, RP_EXPR_ADDRESS, 9},
        {{{DW_OP_lit9, 0, 0, 0}, {DW_OP_pick, 1, 0, 1}}, 2, RP_EXPR_BAD, 0},
        {{{DW_OP_drop, 0, 0, 0}}, 1, RP_EXPR_BAD, 0},
        {{{DW_OP_lit1, 0, 0, 0}, {DW_OP_bra, 1, 0, 1}, {DW_OP_lit5, 0, 0, 4}, {DW_OP_lit6, 0, 0, 5}}, 4, RP_EXPR_ADDRESS, 6},
        {{{DW_OP_lit7, 0, 0, 0}, {DW_OP_skip, 0, 0, 1}}, 2, RP_EXPR_ADDRESS, 7},       /* to the very end */
        {{{DW_OP_lit7, 0, 0, 0}, {DW_OP_skip, 0xfffc, 0, 1}}, 2, RP_EXPR_BAD, 0},      /* for ever: depth or steps end it */
        {{{DW_OP_skip, 0xfffd, 0, 0}}, 1, RP_EXPR_BAD, 0},                             /* for ever on an empty stack */
        {{{DW_OP_lit7, 0, 0, 0}, {DW_OP_skip, 0x7000, 0, 1}}, 2, RP_EXPR_BAD, 0},      /* nowhere */
        {{{DW_OP_addr, 5, 0, 0}}, 1, RP_EXPR_BAD, 0},
        {{{0, 0, 0, 0}}, 0, RP_EXPR_BAD, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t value = 0;
        enum rp_expr_end end = rp_expr_eval(&env, cases[i].ops, cases[i].nops, &value);

        if (end != cases[i].end || ((end == RP_EXPR_ADDRESS || end == RP_EXPR_VALUE) && value != cases[i].value))
            fail_msg("expression %zu: end %d, value %lx", i, (int)end, value);
    }
}

static void test_calls_by_bytes(void **state)
{
    static const struct {
        uint8_t bytes[8];
        size_t n;
        bool call;
    } cases[] = {
        {{0xe8, 1, 2, 3, 4}, 5, true},
        {{0xff, 0xd0}, 2, true},                            /* call *%rax */
        {{0x41, 0xff, 0xd2}, 3, true},                      /* call *%r10 */
        {{0xff, 0x10}, 2, true},                            /* call *(%rax) */
        {{0xff, 0x50, 0x18}, 3, true},                      /* call *0x18(%rax) */
        {{0xff, 0x90, 0x18, 1, 0, 0}, 6, true},             /* call *0x118(%rax) */
        {{0xff, 0x15, 1, 2, 3, 4}, 6, true},                /* call *x(%rip) */
        {{0xff, 0x14, 0xc8}, 3, true},                      /* call *(%rax,%rcx,8) */
        {{0xff, 0x14, 0xc5, 1, 2, 3, 4}, 7, true},          /* call *x(,%rax,8) */
        {{0xff, 0x54, 0x24, 0x08}, 4, true},                /* call *8(%rsp) */
        {{0xff, 0xe0}, 2, false},                           /* jmp *%rax */
        {{0xff, 0x30}, 2, false},                           /* push (%rax) */
        {{0xe9, 1, 2, 3, 4}, 5, false},
        {{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90}, 8, false},
        {{0}, 0, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (rp_insn_ends_with_call(cases[i].bytes, cases[i].n) != cases[i].call)
            fail_msg("bytes %zu", i);
}

/* Bounds of functions by their FDE equal what the dynamic symbol table says of the same functions, in the distribution's own libc. */
static void test_fde_ranges(void **state)
{
    static const char *const names[] = {"qsort", "strtoul", "fopen", "getenv", "regexec", "malloc", "free", "snprintf"};
    struct rp_images images;
    struct rp_unwinder *unwinder;
    struct rp_err err = {0};
    uint64_t start, end;
    uint32_t id;
    unsigned equal = 0;
    Dl_info info;
    void *libc = dlopen("libc.so.6", RTLD_NOW); /* by handle: a sanitizer puts its own functions before libc's */

    (void)state;
    assert_non_null(libc);
    assert_true(dladdr(dlsym(libc, "qsort"), &info));
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    assert_int_equal(rp_images_open_path(&images, info.dli_fname, &id, &err), RP_OK);
    assert_int_equal(rp_unwinder_new(&images, &unwinder, &err), RP_OK);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const ElfW(Sym) *symbol;
        void *extra;

        if (!dladdr1(dlsym(libc, names[i]), &info, &extra, RTLD_DL_SYMENT))
            continue;
        symbol = extra;
        assert_true(rp_unwinder_fde_range(unwinder, id, symbol->st_value, &start, &end));
        assert_int_equal(start, symbol->st_value);
        if (end == symbol->st_value + symbol->st_size)
            equal++;
        assert_true(rp_unwinder_fde_range(unwinder, id, end - 1, &start, &end));
        assert_int_equal(start, symbol->st_value);
    }
    assert_true(equal >= 6);
    assert_false(rp_unwinder_fde_range(unwinder, id, 0, &start, &end));
    assert_false(rp_unwinder_fde_range(unwinder, id, UINT64_MAX, &start, &end));
    assert_false(rp_unwinder_fde_range(unwinder, 1000, 0, &start, &end));
    assert_false(rp_unwinder_fde_range(unwinder, RP_IMAGE_ID_KERNEL, 0, &start, &end));
    rp_unwinder_free(unwinder);
    rp_images_release(&images);
    dlclose(libc);
}

/* Each allocation fails once; what is there afterwards still works. */
static void test_no_memory(void **state)
{
    static const uint8_t ops[] = {0x0f, 3, DW_OP_breg7, 8, DW_OP_nop};
    struct world *w = world_of(ops, sizeof ops, false, NULL, 0);
    struct rp_err err = {0};
    unsigned failures = 0;
    uint64_t start, end;

    (void)state;
    w->stack[0] = PC + 0x20, w->stack[1] = NO_ROW_PC, w->stack[2] = 1;
    for (uint64_t n = 1; n < 60; n++) {
        struct rp_unwinder *u = NULL;
        enum rp_status status;

        rp_alloc_fail_at(n);
        status = rp_unwinder_new(&w->images, &u, &err);
        if (!status)
            status = rp_unwind(u, &w->space, &w->snapshot, &w->walk, &err);
        if (!status && !rp_unwinder_fde_range(u, w->id, UNWIND_ELF_CODE, &start, &end))
            status = RP_NOMEM;
        rp_alloc_fail_at(0);
        failures += status == RP_NOMEM;
        if (u) {
            assert_int_equal(rp_unwind(u, &w->space, &w->snapshot, &w->walk, &err), RP_OK);
            assert_int_equal(w->walk.n, 3);
        }
        rp_unwinder_free(u);
    }
    assert_in_range(failures, 6, 40);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),          cmocka_unit_test(test_a_file_in_anothers_place),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_cfa_must_grow), cmocka_unit_test(test_no_user_and_depth), cmocka_unit_test(test_hybrid),
        cmocka_unit_test(test_leaf_without_row), cmocka_unit_test(test_bytes_that_are_known),
        cmocka_unit_test(test_expressions),   cmocka_unit_test(test_calls_by_bytes),
        cmocka_unit_test(test_fde_ranges),    cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
