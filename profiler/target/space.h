/* SPDX-License-Identifier: MIT */
/* The executable mappings of one process in one exec generation: where a pc leads.
 *
 * Filled from /proc/PID/maps at attach and kept true by MMAP2 records; a new mapping cuts what it covers. Unmapping is not reported by the
 * kernel, so an old mapping stays until covered: harmless, nothing executes there. */
#ifndef RP_TARGET_SPACE_H
#define RP_TARGET_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/vec.h"
#include "target/image.h"

/* [start, end) holds bytes [offset, …) of the image. */
struct rp_mapping {
    uint64_t start, end, offset;
    uint32_t image;
};

struct rp_space {
    uint32_t pid;
    uint32_t generation; /* 0 at attach, +1 per exec */
    RP_VEC(struct rp_mapping) maps; /* sorted by start, disjoint */
    uint32_t last;                  /* position of the last hit */
};

/* Where a pc is: an image and the ELF address in it (absolute for JIT and kernel images). */
struct rp_address {
    uint32_t image;
    uint64_t addr;
};

/* Adds [start, end); whatever it covers of older mappings is cut away. */
enum rp_status rp_space_add(struct rp_space *space, const struct rp_mapping *mapping, struct rp_err *err);

/* What fold/ does with an MMAP event: opens the image and adds the mapping in the form rp_space_resolve needs. */
enum rp_status rp_space_map(struct rp_space *space, struct rp_images *images, const struct rp_image_key *key, struct rp_err *err);

/* The mapping that holds pc, or NULL. Pointer good until the next add. */
const struct rp_mapping *rp_space_find(struct rp_space *space, uint64_t pc);

/* pc -> image and address. False when no executable mapping (or no segment of its file) holds it. */
bool rp_space_resolve(struct rp_space *space, const struct rp_images *images, uint64_t pc, struct rp_address *where);

/* Reads /proc/PID/maps (executable mappings only) into the space, opening images. RP_NOPROC when the process is gone, RP_PERM when it may not
 * be read. May be called again in mid-run: mappings are replaced by what is there. */
enum rp_status rp_space_read(struct rp_space *space, struct rp_images *images, struct rp_err *err);

void rp_space_release(struct rp_space *space);

#endif
