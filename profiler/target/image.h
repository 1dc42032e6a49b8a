/* SPDX-License-Identifier: MIT */
/* Files that are mapped into targets, each opened once and kept open, so that names and unwind rows survive an upgrade,
 * a deletion and the end of the target.
 *
 * Identity is device + inode (+ build-id when the file has one), never the path: a path in a container means another file here. An
 * image is opened through /proc/PID/map_files/RANGE (privileged), /proc/PID/exe, /proc/PID/root/PATH, then PATH, each checked by device and inode
 * against the mapping; when none can be had, the image in target memory (program headers, .eh_frame, .dynsym) serves, else it stays
 * nameless: module+offset, never a name from another build.
 *
 * The trap: the file belongs to the target's owner, who may be hostile. Every offset is checked against the file size; files are
 * read with pread (libelf ELF_C_READ), never by mmap, since truncation of a mapped file is SIGBUS. */
#ifndef RP_TARGET_IMAGE_H
#define RP_TARGET_IMAGE_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/vec.h"

enum rp_image_kind {
    RP_IMAGE_MARK,   /* id 0: no code; holds the typed root frames such as [truncated: stack copy too short] */
    RP_IMAGE_KERNEL, /* id 1: kernel text and modules, addresses as they are */
    RP_IMAGE_ELF,
    RP_IMAGE_VDSO,   /* read from target memory */
    RP_IMAGE_JIT,    /* anonymous executable memory of one process: addresses as they are */
    RP_IMAGE_OTHER,  /* a mapped file that is not ELF (a .dll of precompiled .NET code): address = file offset */
};

enum { RP_IMAGE_ID_MARK = 0, RP_IMAGE_ID_KERNEL = 1 };

/* One PT_LOAD. Address to offset goes through the segment whose *file* range holds the offset, never through one bias per file. */
struct rp_segment {
    uint64_t offset, filesz; /* bytes in the file */
    uint64_t vaddr, memsz;   /* ELF addresses */
    bool exec;
};

struct rp_image {
    uint32_t id;
    enum rp_image_kind kind;
    char *path;            /* as the target sees it, " (deleted)" stripped; "[vdso]", "[jit]", "[kernel]" for the others */
    uint64_t dev, ino;     /* dev as in st_dev; 0/0 when there is no file */
    uint8_t build_id[32];
    uint8_t build_id_bytes; /* 0: has none, or cannot be read */
    uint32_t pid;          /* owner of a JIT image, and the process through which the file was first seen */
    int fd;                /* -1: none */
    Elf *elf;              /* NULL: not ELF, damaged or unreadable. Shared: do not elf_end */
    void *memory;          /* vDSO or image read from the target: what `elf` reads, owned */
    size_t memory_bytes;
    struct rp_segment *segments;
    uint32_t nsegments;
    bool deleted;          /* the path names another file now, or none: "replaced on disk" */
    char *problem;         /* one sentence on why names will be missing, or NULL */
};

/* The table of all images of a run. Ids are positions; images never move once made (an array of pointers). */
struct rp_images {
    RP_VEC(struct rp_image *) at;
};

/* What a mapping says about its file. */
struct rp_image_key {
    uint32_t pid;
    uint64_t start, end, offset; /* the mapping, for map_files and memory */
    uint64_t dev, ino;           /* dev as made by makedev(major, minor) */
    const char *path;            /* as in /proc/PID/maps or MMAP2, "//anon", "[vdso]", "" … */
    bool offline;                /* replay: `pid` is a mere number; the file is opened by path and must have the build-id given */
    const uint8_t *build_id;     /* offline only */
    uint8_t build_id_bytes;
};

/* Makes the table with the two fixed images. */
enum rp_status rp_images_init(struct rp_images *images, struct rp_err *err);

/* The image of a mapping: found by identity, or opened now. Fails only for want of memory: a file that cannot be read is an
 * image with a `problem`. Anonymous executable memory gives the process's JIT image. */
enum rp_status rp_images_get(struct rp_images *images, const struct rp_image_key *key, uint32_t *id, struct rp_err *err);

/* A file by path, outside any process (replay, rules explain, tests). RP_IO when it cannot be opened. */
enum rp_status rp_images_open_path(struct rp_images *images, const char *path, uint32_t *id, struct rp_err *err);

/* File offset -> ELF address through the segment that holds the offset. False: no segment holds it. For kinds without segments the
 * offset itself (OTHER). */
bool rp_image_offset_to_addr(const struct rp_image *image, uint64_t offset, uint64_t *addr);

void rp_images_release(struct rp_images *images);

#endif
