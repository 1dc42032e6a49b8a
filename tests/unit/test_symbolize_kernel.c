/* SPDX-License-Identifier: MIT */
/* Kernel names from a kallsyms text of our own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/names_fixture.h"

static const char kallsyms[] = "ffffffff81002000 t do_syscall_64\n"
                               "ffffffff81000000 T _stext\n"
                               "ffffffff81000000 T startup_64\n"
                               "ffffffff81000000 t secondary\n"
                               "0000000000000000 A fixed_percpu_data\n"
                               "ffffffff81003000 W weak_one\n"
                               "ffffffff81004000 D some_data\n"
                               "ffffffff81005000 T after_data\n"
                               "ffffffff81005100 T _etext\n"
                               "ffffffffc0421000 t ext4_sync_file\t[ext4]\n"
                               "ffffffffc0421100 t ext4_other\t[ext4]\n"
                               "ffffffffc0430000 t kvm_run\t[kvm]\n"
                               "ffffffffc0431000 t ext4_last\t[ext4]\n"
                               "ffffffffc0432000 b end_of_all\t[ext4]";

static void assert_kernel(struct names_fixture *f, uint64_t addr, const char *name, const char *module)
{
    uint32_t location = names_at(f, RP_IMAGE_ID_KERNEL, addr, RP_LOCATION_KERNEL, 0);
    const struct rp_function *function = names_function(f, location, 0);

    assert_string_equal(rp_profile_text(&f->profile, function->name), name);
    if (module)
        assert_string_equal(rp_profile_text(&f->profile, function->module), module);
    assert_int_equal(function->how, module ? RP_NAME_KERNEL : RP_NAME_OFFSET);
}

static void names_and_modules(void **state)
{
    const char *dir = names_dir();
    struct rp_symbolizer_options options = {.kallsyms = names_path(dir, "kallsyms")};
    struct rp_symbolizer_stats stats;
    struct names_fixture f;
    uint32_t location;

    (void)state;
    names_write(dir, "kallsyms", kallsyms);
    names_open(&f, &options);
    names_other_image(&f, RP_IMAGE_OTHER, "unused", 0); /* makes the rows of the fixed images */
    assert_kernel(&f, 0xffffffff81000010, "startup_64", "[kernel]");
    assert_kernel(&f, 0xffffffff81002fff, "do_syscall_64", "[kernel]");
    assert_kernel(&f, 0xffffffff81003000, "weak_one", "[kernel]");
    assert_kernel(&f, 0xffffffff81004010, "[kernel]+0xffffffff81004010", NULL);
    assert_kernel(&f, 0xffffffff81005010, "after_data", "[kernel]");
    assert_kernel(&f, 0xffffffffc0421010, "ext4_sync_file", "[ext4]");
    assert_kernel(&f, 0xffffffffc0430010, "kvm_run", "[kvm]");
    assert_kernel(&f, 0xffffffffc0431010, "ext4_last", "[ext4]");
    assert_kernel(&f, 0xffffffffc0433000, "[kernel]+0xffffffffc0433000", NULL);
    assert_kernel(&f, 0x1000, "[kernel]+0x1000", NULL);
    location = names_at(&f, RP_IMAGE_ID_KERNEL, 0xffffffff81002000, RP_LOCATION_KERNEL | RP_LOCATION_CALLER, 0);
    assert_string_equal(rp_profile_text(&f.profile, names_function(&f, location, 0)->name), "startup_64");
    rp_symbolizer_stats(f.symbolizer, &stats);
    assert_int_equal(stats.files_parsed, 1);
    names_close(&f);
}

/* At kptr_restrict every address reads zero: no name at all is better than the first one. */
static void hidden_addresses(void **state)
{
    const char *dir = names_dir();
    struct rp_symbolizer_options options = {.kallsyms = names_path(dir, "kallsyms")};
    struct names_fixture f;

    (void)state;
    names_write(dir, "kallsyms", "0000000000000000 T _stext\n0000000000000000 t do_syscall_64\n");
    names_open(&f, &options);
    names_other_image(&f, RP_IMAGE_OTHER, "unused", 0);
    assert_kernel(&f, 0xffffffff81000010, "[kernel]", NULL);
    assert_kernel(&f, 0xffffffff81000020, "[kernel]", NULL);
    assert_non_null(strstr(rp_profile_text(&f.profile, f.profile.images.at[RP_IMAGE_ID_KERNEL].remedy), "kptr_restrict"));
    names_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_modules),
        cmocka_unit_test(hidden_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
