/* SPDX-License-Identifier: MIT */
/* Files that are no larger than others but made to cost much more: what one byte of them may cost has a bound. Without it these tests run for minutes,
 * or the machine out of memory. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/io.h"
#include "base/limits.h"
#include "support/temp_dir.h"
#include "symbolize/jitmap.h"
#include "symbolize/plt.h"

enum { STUB_BYTES = 16, STUBS = 1 << 16, STUB_SECTIONS = 64, SECTIONS = STUB_SECTIONS + 3 };

static int made_file(void)
{
    int fd = open(temp_dir_path("map"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    return fd;
}

static void test_a_map_of_empty_lines(void **state)
{
    enum { LINES = 16 << 20 };
    struct rp_jit jit = {0};
    struct rp_err err = {0};
    char *lines = rp_reallocarray(NULL, LINES, 1);
    int fd = made_file();

    (void)state;
    assert_non_null(lines);
    memset(lines, '\n', LINES);
    assert_true(rp_write_full(fd, lines, LINES));
    assert_int_equal(rp_jit_add_file(&jit, fd, RP_JIT_PERF_MAP, &err), RP_OK);
    assert_int_equal(rp_jit_read_file(&jit, 0, &err), RP_OK);
    assert_int_equal(jit.files.at[0].read_to, LINES);
    assert_int_equal(jit.lines + jit.rejected, 0);
    rp_jit_release(&jit);
    rp_free(lines);
}

static unsigned open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void test_a_map_written_anew_again_and_again(void **state)
{
    static const char *const texts[] = {"1000 10 first_of_all\n", "2000 10 second\n"};
    struct rp_jit jit = {0};
    struct rp_err err = {0};
    struct rp_buf name = {0};
    int fd = made_file(), other = dup(fd);
    unsigned before = open_descriptors();
    uint64_t start;

    (void)state;
    assert_int_equal(rp_jit_add_file(&jit, other, RP_JIT_PERF_MAP, &err), RP_OK);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        assert_true(rp_write_full(fd, texts[i % 2], strlen(texts[i % 2])));
        assert_int_equal(rp_jit_read_file(&jit, (uint32_t)jit.files.n - 1, &err), RP_OK);
    }
    assert_int_equal(jit.lines, 50);
    assert_int_equal(open_descriptors(), before);
    assert_true(rp_jit_name(&jit, 0x2004, 0, &start, &name));
    assert_string_equal(rp_buf_text(&name), "second");
    rp_buf_release(&name);
    rp_jit_release(&jit);
    close(fd);
}

/* A file whose sections .plt are all the same stubs, each for the one slot that is relocated. */
static void make_stubs(struct rp_buf *file)
{
    static const char names[] = "\0.plt\0.rela.plt";
    Elf64_Ehdr h = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT}, .e_type = ET_DYN, .e_machine = EM_X86_64,
                    .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = SECTIONS, .e_shstrndx = SECTIONS - 1, .e_shoff = sizeof h};
    Elf64_Shdr s[SECTIONS] = {0};
    Elf64_Rela rela = {.r_offset = 0x10000000, .r_info = ELF64_R_INFO(0, R_X86_64_IRELATIVE), .r_addend = 0x1000};
    uint64_t code = sizeof h + sizeof s, at = code + STUBS * STUB_BYTES;

    for (size_t i = 1; i <= STUB_SECTIONS; i++)
        s[i] = (Elf64_Shdr){.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_flags = SHF_EXECINSTR, .sh_addr = 0x1000, .sh_offset = code,
                            .sh_size = STUBS * STUB_BYTES, .sh_entsize = STUB_BYTES};
    s[SECTIONS - 2] = (Elf64_Shdr){.sh_name = 6, .sh_type = SHT_RELA, .sh_offset = at, .sh_size = sizeof rela, .sh_entsize = sizeof rela};
    s[SECTIONS - 1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = at + sizeof rela, .sh_size = sizeof names};
    rp_buf_append(file, &h, sizeof h);
    rp_buf_append(file, s, sizeof s);
    for (uint32_t i = 0; i < STUBS; i++) {
        uint8_t stub[STUB_BYTES] = {0xff, 0x25};
        uint32_t distance = 0x10000000 - (0x1000 + i * STUB_BYTES + 6);

        memcpy(stub + 2, &distance, sizeof distance);
        rp_buf_append(file, stub, sizeof stub);
    }
    rp_buf_append(file, &rela, sizeof rela);
    rp_buf_append(file, names, sizeof names);
    assert_false(file->failed);
}

static void test_stub_sections_of_the_same_bytes(void **state)
{
    struct rp_buf file = {0}, name = {0};
    struct rp_symtab none = {0};
    struct rp_elfview view;
    struct rp_err err = {0};
    struct rp_plt plt;
    uint64_t start = 0;

    (void)state;
    make_stubs(&file);
    assert_int_equal(rp_elfview_init(&view, -1, file.data, file.length, &err), RP_OK);
    assert_int_equal(view.nsections, SECTIONS);
    assert_int_equal(rp_plt_init(&plt, &view, &err), RP_OK);
    assert_int_equal(plt.relocations.n, 1);
    assert_true(plt.stubs.n >= STUBS);
    assert_true(plt.stubs.n <= RP_PLT_BYTES_MAX / STUB_BYTES);
    assert_true(rp_plt_find(&plt, &none, 0x1000 + 7 * STUB_BYTES + 3, &start, &name));
    assert_int_equal(start, 0x1000 + 7 * STUB_BYTES);
    assert_string_equal(rp_buf_text(&name), "*ABS*+0x1000@plt");
    rp_plt_release(&plt);
    rp_elfview_release(&view);
    rp_buf_release(&name);
    rp_buf_release(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_map_of_empty_lines),
        cmocka_unit_test(test_a_map_written_anew_again_and_again),
        cmocka_unit_test(test_stub_sections_of_the_same_bytes),
    };

    return cmocka_run_group_tests_name("symbolize_hostile", tests, temp_dir_make, temp_dir_remove);
}
