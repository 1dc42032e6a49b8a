/* SPDX-License-Identifier: MIT */
/* The bytes of samples.bin. Private to the snapshot files. */
#ifndef RP_SAMPLE_SNAPSHOT_RECORD_H
#define RP_SAMPLE_SNAPSHOT_RECORD_H

#include <stdint.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is little endian and written as it lies in memory");

#define RP_SNAPSHOT_MAGIC "rpsnap\r\n"
enum { RP_SNAPSHOT_VERSION = 1 };

struct rp_snapshot_header {
    char magic[8];
    uint32_t version, registers;
};

enum { RP_RECORD_SAMPLE = 1, RP_RECORD_COMM, RP_RECORD_FORK, RP_RECORD_EXIT, RP_RECORD_SWITCH, RP_RECORD_PEEK };

/* Starts every record. */
struct rp_record_head {
    uint32_t bytes; /* with this head, a multiple of 8 */
    uint32_t kind;
    uint64_t time_ns;
    uint32_t pid, tid;
};

enum { RP_SAMPLE_HAS_USER = 1, RP_SAMPLE_CUT = 2, RP_SAMPLE_SP_ONLY = 4, RP_SAMPLE_AT_SWITCH = 8 };

/* Then: registers (when there are any), kernel addresses, stack bytes, zeroes up to a multiple of 8. */
struct rp_record_sample {
    struct rp_record_head head;
    uint32_t flags, stack_bytes, nkernel, zero;
    uint64_t weight_ns;
};

/* Then as behind a sample. */
struct rp_record_peek {
    struct rp_record_sample sample;
    int64_t syscall;
    uint64_t args[6];
};

/* Then: the name with its NUL, zeroes. */
struct rp_record_comm {
    struct rp_record_head head;
    uint32_t exec, length; /* without the NUL */
};

struct rp_record_fork {
    struct rp_record_head head;
    uint32_t parent_pid, parent_tid;
};

struct rp_record_switch {
    struct rp_record_head head;
    uint32_t out, preempted;
};

#endif
