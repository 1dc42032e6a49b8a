/* SPDX-License-Identifier: MIT */
/* Every maximum that rowprof has, in one place, with the reason for its size. What hits one is counted and reported,
 * never dropped in silence. */
#ifndef RP_BASE_LIMITS_H
#define RP_BASE_LIMITS_H

/* One growable array: far above any profile seen (tens of MB), below what would harm the machine. */
#define RP_VEC_MAX_BYTES ((size_t)1 << 32)

/* The kernel copies at most 65 528 bytes of user stack into a sample, so a walk has at most as many 8-byte frames. */
#define RP_STACK_COPY_MAX 65528u
#define RP_WALK_FRAMES_MAX 8192u

/* The kernel's own limit for call chains is sysctl perf_event_max_stack, 127 by default. */
#define RP_KERNEL_FRAMES_MAX 512u

/* Blocks of time kept per profile. When used up, neighbours merge and the block length doubles. 512 blocks of a 10 s run are
 * 20 ms each: short enough for the block variance of facts on 50 ms phases, few enough to stay small. */
#define RP_BLOCKS_MAX 512u

/* Longest symbol name kept, longer ones are cut with a mark: template instantiations reach 20 000. */
#define RP_SYMBOL_MAX 65536u

/* Deepest nesting and longest input given to the demangler (a name of 200 000 `P` recurses once per letter). */
#define RP_DEMANGLE_INPUT_MAX 16384u

/* A perf map or jitdump: 2 M lines of 60 bytes are 120 MB. */
#define RP_JITMAP_MAX_BYTES ((uint64_t)1 << 30)
#define RP_JITMAP_LINE_MAX ((size_t)1 << 20)

/* A rule file is written by people. */
#define RP_RULE_FILE_MAX ((size_t)4 << 20)

/* Any text file read whole from procfs or disk. */
#define RP_FILE_MAX ((size_t)256 << 20)

#endif
