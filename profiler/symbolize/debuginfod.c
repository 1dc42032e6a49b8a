/* SPDX-License-Identifier: MIT */
/* See debuginfod.h. The trap: a function pointer must not come out of dlsym's object pointer by a cast in ISO C; it is copied. */
#include "symbolize/debuginfod.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct rp_debuginfod {
    void *library, *client;
    void *(*begin)(void);
    int (*find_debuginfo)(void *client, const unsigned char *build_id, int bytes, char **path);
    void (*end)(void *client);
};

static bool load(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);

    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

enum rp_status rp_debuginfod_new(struct rp_debuginfod **out, struct rp_err *err)
{
    const char *urls = getenv("DEBUGINFOD_URLS");
    struct rp_debuginfod *d;

    if (!urls || !*urls)
        return rp_fail(err, RP_NOTFOUND, "debuginfod was asked for, but DEBUGINFOD_URLS names no server.");
    d = rp_calloc(1, sizeof *d);
    if (!d)
        return rp_fail_nomem(err);
    d->library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!d->library || !load(d->library, "debuginfod_begin", &d->begin) || !load(d->library, "debuginfod_find_debuginfo", &d->find_debuginfo) ||
        !load(d->library, "debuginfod_end", &d->end) || !(d->client = d->begin())) {
        rp_debuginfod_free(d);
        return rp_fail(err, RP_NOTFOUND, "debuginfod was asked for, but libdebuginfod.so.1 cannot be loaded; install libdebuginfod1.");
    }
    *out = d;
    return RP_OK;
}

void rp_debuginfod_free(struct rp_debuginfod *d)
{
    if (!d)
        return;
    if (d->client)
        d->end(d->client);
    rp_free(d); /* the library stays loaded: what it uses (curl, TLS) keeps global state that is not made to be unloaded */
}

int rp_debuginfod_find(struct rp_debuginfod *d, const uint8_t *build_id, uint8_t bytes)
{
    char *path = NULL;
    int fd = d->find_debuginfo(d->client, build_id, bytes, &path);

    free(path);
    return fd < 0 ? -1 : fd;
}
