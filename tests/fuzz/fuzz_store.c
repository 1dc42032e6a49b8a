/* SPDX-License-Identifier: MIT */
/* Profile files of any content: loading fails, or gives a profile of which a view and a tree can be made. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analyze/calltree.h"
#include "analyze/view.h"
#include "analyze/view_waits.h"
#include "base/io.h"
#include "store/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at_waits(const struct rp_view *view)
{
    struct rp_calltree_options options = {.category = UINT32_MAX};
    struct rp_thread_table threads = {0};
    struct rp_lock_table locks = {0};
    struct rp_calltree tree = {0};
    struct rp_waits *waits = NULL;
    struct rp_err err = {0};

    if (rp_waits_new(view, true, &waits, &err) || rp_waits_threads(waits, &threads, &err) || rp_waits_locks(waits, &locks, &err))
        abort();
    options.waits = waits;
    if (rp_calltree_make(view, &options, &tree, &err))
        abort();
    rp_calltree_release(&tree);
    rp_lock_table_release(&locks);
    rp_thread_table_release(&threads);
    rp_waits_free(waits);
}

static void look_at(const struct rp_profile *profile)
{
    struct rp_calltree_options options = {.category = UINT32_MAX};
    struct rp_category_table categories = {0};
    struct rp_group_table functions = {0};
    struct rp_calltree tree = {0};
    struct rp_filter filter = {0};
    struct cat_rules *rules = NULL;
    struct rp_view *view = NULL;
    struct rp_err err = {0};

    if (cat_rules_new(&rules, &err) || cat_rules_finish(rules, &(struct rp_buf){0}, &err) || rp_view_new(profile, rules, &filter, &view, &err) ||
        rp_view_categories(view, &categories, &err) || rp_view_groups(view, RP_BY_FUNCTION, &functions, &err) ||
        rp_calltree_make(view, &options, &tree, &err))
        abort();
    look_at_waits(view);
    rp_category_table_release(&categories);
    rp_group_table_release(&functions);
    rp_calltree_release(&tree);
    rp_view_free(view);
    cat_rules_free(rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_profile profile;
    struct rp_err err = {0};
    char path[64];
    int fd = memfd_create("profile", MFD_CLOEXEC);

    if (fd < 0 || !rp_write_full(fd, data, size))
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (rp_store_load(&profile, path, &err) == RP_OK) {
        look_at(&profile);
        rp_profile_release(&profile);
    }
    close(fd);
    return 0;
}
