/* SPDX-License-Identifier: MIT */
/* Finds the separate debug file of an image: by build-id, then by .gnu_debuglink; through the root of the process that maps the image, then
 * on the host. A file of another build is never taken: it would give names that look right and are wrong. */
#ifndef RP_SYMBOLIZE_DEBUGFILE_H
#define RP_SYMBOLIZE_DEBUGFILE_H

#include "symbolize/elfview.h"

struct rp_debug_query {
    const struct rp_elfview *view; /* the image's own file */
    uint32_t pid;                  /* its root is looked at first; 0: the host only */
    const char *path;              /* of the image, as the process sees it */
    const char *debug_dir;         /* NULL: /usr/lib/debug */
};

/* An open descriptor of the debug file (the caller closes it), or -1. */
int rp_debugfile_open(const struct rp_debug_query *query);

/* The file that dwz moved shared entries of several debug files into, named by .gnu_debugaltlink of `query->view`. *named: there is such a link; then -1 means
 * that its DWARF must not be used, for libdw would look for the file by itself, at a path that the target chose. */
int rp_debugfile_open_alternate(const struct rp_debug_query *query, bool *named);

/* Opens a regular file for reading as process `pid` sees it; its symbolic links stay inside its root. pid 0: as this process sees it. -1 with errno. Never
 * waits for a pipe. */
int rp_open_in_root(uint32_t pid, const char *path);

/* Unpacks .gnu_debugdata (an xz-compressed ELF file that holds the .symtab a distribution left out) into new memory (rp_free). NULL when there is
 * none, it is damaged, or it unpacks to more than RP_DEBUGDATA_MAX. */
uint8_t *rp_debugdata_unpack(const struct rp_elfview *view, size_t *bytes);

#endif
