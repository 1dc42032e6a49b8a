/* SPDX-License-Identifier: MIT */
/* Snapshots on disk: a directory that holds all that walks have read, so that a run can be walked again elsewhere.
 *
 *     DIR/maps          text: which files were mapped where and when (below)
 *     DIR/samples.bin   header, then one record per event, oldest first, little endian, each a multiple of 8 bytes
 *     DIR/[vdso] …      images that lived in memory only
 *
 * maps has one line per thing, numbers in the base shown:
 *
 *     rowprof-snapshot 1
 *     image ID KIND MAJOR:MINOR(hex) INODE BUILDID(hex, or -) SAVED(name in DIR, or -) PATH
 *     map TIME_NS PID START-END(hex) OFFSET(hex) ID
 *
 * Pages of target memory besides the stack are not saved yet by anything that walks. */
#ifndef RP_SAMPLE_SNAPSHOT_FILE_H
#define RP_SAMPLE_SNAPSHOT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/status.h"
#include "base/vec.h"
#include "sample/sampler.h"
#include "target/image.h"
#include "target/space.h"

struct rp_snapshot_writer;

/* Makes `dir` if needed. RP_EXISTS when it holds a snapshot already and not `force`. `images` must outlive the writer. */
enum rp_status rp_snapshot_writer_new(const char *dir, bool force, struct rp_images *images, struct rp_snapshot_writer **out, struct rp_err *err);

/* Saves the mappings of a space as they are: after each rp_space_read. */
enum rp_status rp_snapshot_writer_space(struct rp_snapshot_writer *writer, const struct rp_space *space, struct rp_err *err);

/* Saves one event of a sampler, to be called with every event in the order in which it came. */
enum rp_status rp_snapshot_writer_event(struct rp_snapshot_writer *writer, const struct rp_event *event, struct rp_err *err);

/* Writes what is left. */
enum rp_status rp_snapshot_writer_finish(struct rp_snapshot_writer *writer, struct rp_err *err);
void rp_snapshot_writer_free(struct rp_snapshot_writer *writer);

/* ---- reading: pure functions over bytes, used by the replay backend ---- */

enum { RP_SNAPSHOT_HEADER_BYTES = 16, RP_SNAPSHOT_RECORD_MAX = 128 * 1024 };

/* False: not such a file, or of a later version. */
bool rp_snapshot_header_check(const uint8_t header[RP_SNAPSHOT_HEADER_BYTES]);

/* Total bytes of the record whose first 8 bytes are `head`; 0: damaged. */
size_t rp_snapshot_record_bytes(const uint8_t head[8]);

/* The event in [bytes, + size); pointers in it go there or to `kernel`. False: damaged. */
bool rp_snapshot_record_parse(const uint8_t *bytes, size_t size, uint64_t kernel[RP_KERNEL_FRAMES_MAX], struct rp_event *event);

struct rp_snapshot_image {
    uint64_t id, dev, ino;
    uint8_t build_id[32];
    uint8_t build_id_bytes;
    bool anonymous;
    const char *saved, *path; /* into the text, not terminated */
    size_t saved_length, path_length;
};

struct rp_snapshot_map {
    uint64_t time_ns, start, end, offset;
    uint32_t pid;
    uint32_t image; /* position in images */
    uint32_t line;  /* in the file: keeps equal times in order */
};

struct rp_snapshot_maps {
    RP_VEC(struct rp_snapshot_image) images;
    RP_VEC(struct rp_snapshot_map) maps; /* as in the file, by time */
};

/* Parses the text of DIR/maps; results point into it. RP_FORMAT with the number of the line that is wrong. */
enum rp_status rp_snapshot_maps_parse(const char *text, size_t length, struct rp_snapshot_maps *maps, struct rp_err *err);
void rp_snapshot_maps_release(struct rp_snapshot_maps *maps);

#endif
