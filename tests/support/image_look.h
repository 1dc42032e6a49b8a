/* SPDX-License-Identifier: MIT */
/* Looking into the images of a process. */
#ifndef TESTS_IMAGE_LOOK_H
#define TESTS_IMAGE_LOOK_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "target/image.h"
#include "target/space.h"

/* Reads the space anew. The image of the process whose path is `path`; NULL: none. */
struct rp_image *image_at(struct rp_images *images, struct rp_space *space, const char *path);

/* The symbols in .dynsym, 0 without one. `*found` becomes true when one of them is `wanted`, and is left alone otherwise. */
uint64_t count_dynsym(Elf *elf, const char *wanted, bool *found);

#endif
