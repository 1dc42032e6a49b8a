/* SPDX-License-Identifier: MIT */
/* Snapshots on disk: what `record --save-snapshots DIR` writes and replay reads. A directory with `maps` (text: images with path, build-id,
 * device and inode; mappings with range, offset and image) and `samples.bin` (versioned little-endian records). */
#ifndef RP_SAMPLE_SNAPSHOT_FILE_H
#define RP_SAMPLE_SNAPSHOT_FILE_H

#include "base/status.h"
#include "sample/sampler.h"
#include "target/image.h"
#include "target/space.h"

struct rp_snapshot_writer;

/* Makes `dir` (RP_EXISTS when it is there and not empty). `images` must outlive the writer. */
enum rp_status rp_snapshot_writer_new(const char *dir, const struct rp_images *images, struct rp_snapshot_writer **out, struct rp_err *err);
/* The mappings of a process as they are at the beginning. */
enum rp_status rp_snapshot_writer_space(struct rp_snapshot_writer *writer, const struct rp_space *space, struct rp_err *err);
/* Any event of a sampler, in order. */
enum rp_status rp_snapshot_writer_event(struct rp_snapshot_writer *writer, const struct rp_event *event, struct rp_err *err);
/* Flushes and closes; what follows is only the free. */
enum rp_status rp_snapshot_writer_finish(struct rp_snapshot_writer *writer, struct rp_err *err);
void rp_snapshot_writer_free(struct rp_snapshot_writer *writer); /* NULL is fine */

#endif
