/* SPDX-License-Identifier: MIT */
/* The shipped rule packs, compiled in from rules/ in the order of their file names; ends with a row of NULLs. */
#ifndef CAT_PACKS_H
#define CAT_PACKS_H

#include <stddef.h>

struct cat_pack {
    const char *name; /* "sqlite.yaml" */
    const char *text;
    size_t length;
};

extern const struct cat_pack cat_packs[];

#endif
