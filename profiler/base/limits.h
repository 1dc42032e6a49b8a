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

/* What the ptrace sampler copied and the reader has not taken yet: seconds of two busy threads with 16 KiB each. */
#define RP_PTRACE_QUEUE_BYTES ((size_t)32 << 20)

/* Processes followed in one run: a build that forks for every file passes by. */
#define RP_PROCESSES_MAX 4096u

/* Unwind rules kept (one per distinct address met, 64 bytes each): a Node run meets 2 000, JIT churn more. When used up, all are forgotten and
 * looked up anew. */
#define RP_UNWIND_RULES_MAX ((size_t)1 << 18)

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

/* Section headers of one ELF file: 65 535 fit without the extension for more, which hardly anything but -ffunction-sections objects uses. */
#define RP_ELF_SECTIONS_MAX 131072u
#define RP_ELF_SECTION_NAMES_MAX ((size_t)16 << 20)

/* Symbols of one image: 148 735 in Node; browsers with full tables reach 2 M. 24 bytes each. */
#define RP_SYMBOLS_MAX 16000000u

/* Names kept for one address. */
#define RP_ALIASES_MAX 64u

/* A .gnu_debugdata table when unpacked, and what unpacking may take. */
#define RP_DEBUGDATA_MAX ((size_t)64 << 20)

/* The largest debug file whose checksum is computed (one without build-id, that is older than 2010). */
#define RP_DEBUGFILE_CRC_MAX ((uint64_t)4 << 30)

/* All stub sections of a file: 16 bytes for each function that is called in another file. */
#define RP_PLT_BYTES_MAX ((size_t)16 << 20)

/* Inlined frames at one address, nesting of debug entries, entries read per compilation unit. */
#define RP_INLINE_DEPTH_MAX 64u
#define RP_DIE_DEPTH_MAX 256u
#define RP_DIE_MAX 8000000u

/* Entries of all JIT maps of one process, and kernel symbols. */
#define RP_JIT_ENTRIES_MAX 8000000u
#define RP_KALLSYMS_MAX 4000000u

/* A rule file is written by people. */
#define RP_RULE_FILE_MAX ((size_t)4 << 20)
#define RP_RULE_NODES_MAX 200000u
#define RP_RULE_PATTERN_MAX 1024u
#define RP_RULE_ENTRIES_MAX 65536u
/* Mistakes told of one file; what comes after is counted. */
#define RP_RULE_PROBLEMS_MAX 1000u
/* Steps of one regular expression on one name, so that a hostile one cannot hang: 100 000 take about a millisecond. */
#define RP_RULE_MATCH_STEPS_MAX 100000u

/* Any text file read whole from procfs or disk. */
#define RP_FILE_MAX ((size_t)256 << 20)

/* A benchmark: a run takes a second, so a million take a week and a half. Configurations beyond a few dozen hide what they find from Holm. */
#define RP_BENCH_CONFIGS_MAX 4096u
#define RP_BENCH_RUNS_MAX 1000000u
#define RP_BENCH_MATRIX_MAX ((size_t)1 << 24) /* configurations x rounds */
#define RP_BENCH_FILE_MAX ((size_t)256 << 20)
/* Words of one command, and what is kept of the output of one run (its last lines). */
#define RP_BENCH_WORDS_MAX 1024u
#define RP_BENCH_OUTPUT_MAX ((size_t)64 << 10)
/* A program that is copied out and hashed: Node is 120 MB. */
#define RP_BENCH_PROGRAM_MAX ((uint64_t)4 << 30)

/* A profile file that is read: ten seconds of Node are under 1 MB. */
#define RP_PROFILE_FILE_MAX ((uint64_t)1 << 30)

/* What a profile file may claim: functions inlined at one address, and samples in one line of counts (as many such lines as the largest file
 * holds sum up to 64 bits). */
#define RP_LOCATION_LINES_MAX 4096u
/* The same of a whole stack: 120 functions at each frame of the deepest walk. */
#define RP_STACK_FUNCTIONS_MAX (1u << 20)
#define RP_COUNT_MAX ((uint64_t)1 << 36)

/* What a target may say of itself in a recording: words of its READY line, and RATE lines (one a second for two hours; later ones are not kept). */
#define RP_FACTS_MAX 64u
#define RP_RATES_MAX 7200u

#endif
