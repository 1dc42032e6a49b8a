/* SPDX-License-Identifier: MIT */
/* make_profile TEXT.fake OUT.rowprof: a profile file out of the text of tests/support/fake_profile.h, so that command-line tests need no process. */
#include <stdio.h>

#include "base/io.h"
#include "base/limits.h"
#include "store/store.h"
#include "support/fake_profile.h"

int main(int argc, char **argv)
{
    struct rp_profile profile;
    struct rp_buf text = {0};
    struct rp_err err = {0};
    int failed = 1;

    if (argc != 3) {
        fprintf(stderr, "usage: make_profile TEXT.fake OUT.rowprof\n");
        return 2;
    }
    if (!rp_read_file(argv[1], RP_FILE_MAX, &text, &err) && !fake_profile_parse(&profile, rp_buf_text(&text), &err)) {
        failed = rp_store_save(&profile, argv[2], true, &err) != RP_OK;
        rp_profile_release(&profile);
    }
    if (failed)
        fprintf(stderr, "make_profile: %s\n", err.text);
    rp_buf_release(&text);
    return failed;
}
