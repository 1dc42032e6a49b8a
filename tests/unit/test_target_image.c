/* SPDX-License-Identifier: MIT */
/* Files that were replaced, deleted, damaged, or never were files: each image must be the one that is mapped, or say what is missing. */
#include <dlfcn.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "target/image.h"
#include "target/image_private.h"
#include "target/process.h"
#include "target/space.h"

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/rp-image-XXXXXX");
    return mkdtemp(dir) && chmod(dir, 0755) == 0 ? 0 : -1;
}

static int remove_dir(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

static void copy_file(const char *from, const char *to)
{
    struct rp_buf text = {0};
    struct rp_err err;
    int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

    assert_true(fd >= 0);
    assert_int_equal(rp_read_file(from, SIZE_MAX / 2, &text, &err), RP_OK);
    assert_true(rp_write_full(fd, rp_buf_text(&text), text.length));
    close(fd);
    rp_buf_release(&text);
}

/* Runs `path` as a program that sleeps; returns when it has become that program. */
static pid_t run_sleeper(const char *path)
{
    struct rp_process_info info;
    struct rp_err err;
    char exe[64], link[256];
    pid_t pid = fork();

    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(path, "sleep", "1000", (char *)NULL);
        _exit(1);
    }
    snprintf(exe, sizeof exe, "/proc/%d/exe", pid);
    for (int i = 0; i < 10000; i++) {
        ssize_t n = readlink(exe, link, sizeof link - 1);

        if (n > 0) {
            link[n] = '\0';
            if (strcmp(link, path) == 0 && rp_process_read((uint32_t)pid, &info, &err) == RP_OK && info.state == 'S')
                break; /* asleep in its nanosleep, so everything is loaded */
        }
        usleep(1000);
    }
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* The image of a process whose path is `path`; NULL: none. */
static struct rp_image *image_at(struct rp_images *images, struct rp_space *space, const char *path)
{
    struct rp_err err = {0};

    if (rp_space_read(space, images, &err) != RP_OK)
        return NULL;
    for (size_t i = 0; i < images->at.n; i++) {
        if (strcmp(images->at.at[i]->path, path) == 0)
            return images->at.at[i];
    }
    return NULL;
}

static void assert_build_id_of(const struct rp_image *image, const char *path)
{
    struct rp_images other;
    struct rp_err err = {0};
    uint32_t id;

    assert_int_equal(rp_images_init(&other, &err), RP_OK);
    assert_int_equal(rp_images_open_path(&other, path, &id, &err), RP_OK);
    assert_true(image->build_id_bytes > 0);
    assert_int_equal(image->build_id_bytes, other.at.at[id]->build_id_bytes);
    assert_memory_equal(image->build_id, other.at.at[id]->build_id, image->build_id_bytes);
    rp_images_release(&other);
}

/* Case A12: another build lies at the path now. */
static void test_replaced_while_running(void **state)
{
    struct rp_images images;
    struct rp_space space = {0};
    struct rp_err err = {0};
    struct rp_image *image;
    char path[96], newer[96];
    pid_t pid;

    (void)state;
    snprintf(path, sizeof path, "%s/program", dir);
    snprintf(newer, sizeof newer, "%s/newer", dir);
    copy_file("/usr/bin/sleep", path);
    pid = run_sleeper(path);
    copy_file("/usr/bin/cat", newer);
    assert_int_equal(rename(newer, path), 0);
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    space.pid = (uint32_t)pid;
    image = image_at(&images, &space, path);
    assert_non_null(image);
    assert_true(image->deleted);
    assert_true(image->fd >= 0);
    assert_int_equal(image->kind, RP_IMAGE_ELF);
    assert_build_id_of(image, "/usr/bin/sleep");
    rp_space_release(&space);
    rp_images_release(&images);
    end(pid);
}

/* Not replaced: not called so; a path that really ends in " (deleted)" included. */
static void test_not_replaced(void **state)
{
    static const char *const names[] = {"plain", "odd (deleted)"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rp_images images;
        struct rp_space space = {0};
        struct rp_err err = {0};
        struct rp_image *image = NULL;
        char path[96];
        pid_t pid;

        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        copy_file("/usr/bin/sleep", path);
        pid = run_sleeper(path);
        assert_int_equal(rp_images_init(&images, &err), RP_OK);
        space.pid = (uint32_t)pid;
        assert_int_equal(rp_space_read(&space, &images, &err), RP_OK);
        for (size_t k = 0; k < images.at.n && !image; k++) {
            if (strncmp(images.at.at[k]->path, dir, strlen(dir)) == 0)
                image = images.at.at[k];
        }
        assert_non_null(image);
        assert_string_equal(image->path, path);
        assert_true(image->fd >= 0);
        assert_false(image->deleted);
        rp_space_release(&space);
        rp_images_release(&images);
        end(pid);
    }
}

/* Case A22: in its own mount namespace the process has another file at that path. */
static void test_mount_namespace(void **state)
{
    struct rp_images images;
    struct rp_space space = {0};
    struct rp_err err = {0};
    struct rp_image *image;
    char path[96], inside[96];
    int ready[2];
    char byte = 0;
    pid_t pid;

    (void)state;
    snprintf(path, sizeof path, "%s/program", dir);
    snprintf(inside, sizeof inside, "%s/inside", dir);
    copy_file("/usr/bin/cat", path);
    copy_file("/usr/bin/sleep", inside);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount(inside, path, NULL, MS_BIND, NULL)) {
            byte = 1;
            (void)!write(ready[1], &byte, 1);
            _exit(0);
        }
        execl(path, "sleep", "1000", (char *)NULL);
        _exit(1);
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) == 1) {
        close(ready[0]);
        end(pid);
        skip(); /* no right to make a namespace */
    }
    close(ready[0]); /* closed by exec: the program runs */
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    space.pid = (uint32_t)pid;
    image = image_at(&images, &space, path);
    if (!image)
        image = image_at(&images, &space, inside);
    assert_non_null(image);
    assert_true(image->fd >= 0);
    assert_build_id_of(image, "/usr/bin/sleep");
    rp_space_release(&space);
    rp_images_release(&images);
    end(pid);
}

/* Layered file systems: the mapping speaks of a device and inode that stat does not give. The build-id in memory is the proof, and another
 * file at that path is still refused. */
static void test_other_numbers_for_the_same_file(void **state)
{
    struct rp_images images;
    struct rp_space space = {0};
    struct rp_err err = {0};
    struct rp_image_key key = {.dev = 0x1234, .ino = 5678};
    char path[96], newer[96];
    uint32_t id, other;
    pid_t pid;

    (void)state;
    snprintf(path, sizeof path, "%s/program", dir);
    snprintf(newer, sizeof newer, "%s/newer", dir);
    copy_file("/usr/bin/sleep", path);
    pid = run_sleeper(path);
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    space.pid = (uint32_t)pid;
    assert_non_null(image_at(&images, &space, path));
    key.pid = (uint32_t)pid;
    for (size_t i = 0; i < space.maps.n; i++) {
        if (strcmp(images.at.at[space.maps.at[i].image]->path, path) == 0) {
            key.start = space.maps.at[i].start;
            key.end = space.maps.at[i].end - 4096; /* no such range in map_files */
            key.offset = space.maps.at[i].offset;
        }
    }
    key.path = path;
    assert_int_equal(rp_images_get(&images, &key, &id, &err), RP_OK);
    assert_true(images.at.at[id]->fd >= 0);
    assert_build_id_of(images.at.at[id], "/usr/bin/sleep");
    copy_file("/usr/bin/cat", newer);
    assert_int_equal(rename(newer, path), 0);
    key.ino++;
    assert_int_equal(rp_images_get(&images, &key, &other, &err), RP_OK);
    assert_build_id_of(images.at.at[other], "/usr/bin/sleep");
    end(pid);
    key.ino++; /* and when nothing can be proved any more, nothing is taken */
    assert_int_equal(rp_images_get(&images, &key, &other, &err), RP_OK);
    assert_true(images.at.at[other]->fd < 0);
    assert_non_null(images.at.at[other]->problem);
    rp_space_release(&space);
    rp_images_release(&images);
}

static void *load_copy(const char *from, const char *to, const char *symbol, void **at)
{
    void *library;

    copy_file(from, to);
    library = dlopen(to, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    *at = dlsym(library, symbol);
    assert_non_null(*at);
    return library;
}

/* A library was unloaded and another one got its address: what is there now is no proof of what was. */
static void test_another_library_at_the_same_address(void **state)
{
    static const char gone[] = "/usr/lib/x86_64-linux-gnu/libz.so.1", now[] = "/usr/lib/x86_64-linux-gnu/libm.so.6";
    struct rp_images images;
    struct rp_space space = {.pid = (uint32_t)getpid()};
    struct rp_address where;
    struct rp_err err = {0};
    struct rp_image_key key = {.pid = (uint32_t)getpid()};
    char before[96], after[96];
    struct stat st;
    void *library, *at;
    uint32_t id;

    (void)state;
    snprintf(before, sizeof before, "%s/libbefore.so", dir);
    snprintf(after, sizeof after, "%s/libafter.so", dir);
    copy_file(gone, before);
    assert_int_equal(stat(before, &st), 0);
    library = load_copy(now, after, "cosf", &at);
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    assert_int_equal(rp_space_read(&space, &images, &err), RP_OK);
    assert_true(rp_space_resolve(&space, &images, (uint64_t)(uintptr_t)at, &where));
    for (size_t i = 0; i < space.maps.n; i++) {
        if (space.maps.at[i].image == where.image)
            key = (struct rp_image_key){.pid = space.pid, .start = space.maps.at[i].start, .end = space.maps.at[i].end, .offset = space.maps.at[i].offset};
    }
    key.path = before;
    key.dev = st.st_dev;
    key.ino = st.st_ino;
    assert_int_equal(rp_images_get(&images, &key, &id, &err), RP_OK);
    assert_build_id_of(images.at.at[id], gone);
    assert_false(images.at.at[id]->deleted);
    assert_int_equal(unlink(before), 0);
    key.ino = st.st_ino + 1000000;
    assert_int_equal(rp_images_get(&images, &key, &id, &err), RP_OK);
    assert_true(images.at.at[id]->fd < 0);
    assert_null(images.at.at[id]->memory);
    assert_int_equal(images.at.at[id]->build_id_bytes, 0);
    assert_non_null(images.at.at[id]->problem);
    rp_space_release(&space);
    rp_images_release(&images);
    dlclose(library);
}

static uint64_t count_dynsym(Elf *elf, const char *wanted, bool *found)
{
    Elf_Scn *section = NULL;

    while ((section = elf_nextscn(elf, section))) {
        GElf_Shdr header;
        Elf_Data *data;

        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNSYM || !(data = elf_getdata(section, NULL)))
            continue;
        for (size_t i = 0; i < header.sh_size / sizeof(Elf64_Sym); i++) {
            GElf_Sym symbol;
            const char *name = gelf_getsym(data, (int)i, &symbol) ? elf_strptr(elf, header.sh_link, symbol.st_name) : NULL;

            *found = *found || (name && strcmp(name, wanted) == 0);
        }
        return header.sh_size / sizeof(Elf64_Sym);
    }
    return 0;
}

/* The range of the function that covers `addr` by the unwind table. */
static bool fde_of(Elf *elf, uint64_t addr, uint64_t *start, uint64_t *stop)
{
    Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
    Dwarf_Frame *frame = NULL;
    Dwarf_Addr low, high;
    bool signal, good = cfi && dwarf_cfi_addrframe(cfi, addr, &frame) == 0 && dwarf_frame_info(frame, &low, &high, &signal) >= 0;

    if (good) {
        *start = low;
        *stop = high;
    }
    free(frame);
    if (cfi)
        dwarf_cfi_end(cfi);
    return good;
}

/* Runs as nobody, who may not look into map_files: a deleted library of a process of the same user. 0 or the line that failed. */
static int check_memory_image(pid_t pid, const char *original, uint64_t probe_addr)
{
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return __LINE__ % 256;                                                                                     \
    } while (0)
    struct rp_images images, plain;
    struct rp_space space = {.pid = (uint32_t)pid};
    struct rp_err err = {0};
    struct rp_image *image, *real;
    struct rp_address where;
    uint64_t a = 0, b = 0, c = 1, d = 1;
    bool found = false, real_found = false;
    uint32_t id;

    CHECK(rp_images_init(&images, &err) == RP_OK && rp_images_init(&plain, &err) == RP_OK);
    CHECK(rp_space_read(&space, &images, &err) == RP_OK);
    CHECK(rp_space_resolve(&space, &images, probe_addr, &where));
    image = images.at.at[where.image];
    CHECK(image->fd < 0 && image->memory && image->elf && image->kind == RP_IMAGE_ELF);
    CHECK(image->deleted && image->problem && strstr(image->problem, "map_files"));
    CHECK(rp_images_open_path(&plain, original, &id, &err) == RP_OK);
    real = plain.at.at[id];
    CHECK(image->build_id_bytes == real->build_id_bytes && memcmp(image->build_id, real->build_id, real->build_id_bytes) == 0);
    CHECK(image->nsegments == real->nsegments);
    CHECK(count_dynsym(image->elf, "cosf", &found) == count_dynsym(real->elf, "cosf", &real_found));
    CHECK(found && real_found);
    CHECK(fde_of(real->elf, where.addr, &c, &d) && fde_of(image->elf, where.addr, &a, &b));
    CHECK(a == c && b == d);
    return 0;
#undef CHECK
}

static void test_deleted_library_from_memory(void **state)
{
    static const char original[] = "/usr/lib/x86_64-linux-gnu/libm.so.6";
    char path[96];
    uint64_t address = 0;
    int up[2], status = -1;
    pid_t pid, checker;

    (void)state;
    if (geteuid() != 0)
        skip();
    snprintf(path, sizeof path, "%s/libcopy.so", dir);
    copy_file(original, path);
    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    pid = fork();
    if (!pid) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

        address = library ? (uint64_t)(uintptr_t)dlsym(library, "cosf") : 0;
        if (setgid(65534) || setuid(65534))
            _exit(1);
        prctl(PR_SET_DUMPABLE, 1);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)!write(up[1], &address, sizeof address);
        pause();
        _exit(0);
    }
    assert_int_equal(read(up[0], &address, sizeof address), (ssize_t)sizeof address);
    assert_true(address != 0);
    assert_int_equal(unlink(path), 0);
    checker = fork();
    if (!checker) {
        if (setgid(65534) || setuid(65534))
            _exit(1);
        _exit(check_memory_image(pid, original, address));
    }
    waitpid(checker, &status, 0);
    end(pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_vdso(void **state)
{
    struct rp_images images;
    struct rp_space space = {.pid = (uint32_t)getpid()};
    struct rp_err err = {0};
    struct rp_image *image;
    bool found = false;

    (void)state;
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    image = image_at(&images, &space, "[vdso]");
    assert_non_null(image);
    assert_int_equal(image->kind, RP_IMAGE_VDSO);
    assert_non_null(image->elf);
    assert_true(image->build_id_bytes > 0);
    assert_true(count_dynsym(image->elf, "__vdso_clock_gettime", &found) > 1);
    assert_true(found);
    rp_space_release(&space);
    rp_images_release(&images);
}

/* Case A01: two segments, one page of the file; and the sibling bug, a data segment whose memory (not file) would cover the offset. */
static void test_offsets_go_through_segments(void **state)
{
    struct rp_segment segments[] = {{0, 0x5c0, 0, 0x5c0, false}, {0x5c0, 0x100, 0x15c0, 0x100, true}, {0x6c0, 0x40, 0x26c0, 0x5000, false}, {0x700, 0x50, 0x9700, 0x50, true}};
    struct rp_image image = {.kind = RP_IMAGE_ELF, .segments = segments, .nsegments = 4};
    uint64_t addr = 0;

    (void)state;
    assert_true(rp_image_offset_to_addr(&image, 0x5c0, &addr));
    assert_int_equal(addr, 0x15c0);
    assert_true(rp_image_offset_to_addr(&image, 0x5bf, &addr));
    assert_int_equal(addr, 0x5bf);
    assert_true(rp_image_offset_to_addr(&image, 0x710, &addr));
    assert_int_equal(addr, 0x9710);
    assert_false(rp_image_offset_to_addr(&image, 0x750, &addr));
    image = (struct rp_image){.kind = RP_IMAGE_OTHER};
    assert_true(rp_image_offset_to_addr(&image, 0x1234, &addr));
    assert_int_equal(addr, 0x1234);
}

/* Case A01 in memory: both segments lie in the first page of the file, so both mappings show the ELF header, and only the lower one is its place. */
static void test_header_seen_twice(void **state)
{
    Elf64_Ehdr header = {.e_machine = EM_X86_64, .e_phoff = sizeof header, .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2};
    Elf64_Phdr phdrs[2] = {{.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = 0x5c0, .p_memsz = 0x5c0},
                           {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = 0x5c0, .p_vaddr = 0x15c0, .p_filesz = 0x100, .p_memsz = 0x100}};
    struct rp_image_key key = {.pid = (uint32_t)getpid()};
    struct rp_memory_elf found;
    uint8_t page[4096] = {0};
    char path[96];
    uint8_t *base;
    int fd;

    (void)state;
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    memcpy(page, &header, sizeof header);
    memcpy(page + sizeof header, phdrs, sizeof phdrs);
    snprintf(path, sizeof path, "%s/shared-page", dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
    assert_true(rp_write_full(fd, page, sizeof page));
    base = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_equal(mmap(base, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0), base);
    assert_ptr_equal(mmap(base + 4096, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0), base + 4096);
    close(fd);
    key.start = (uint64_t)(uintptr_t)base + 4096;
    key.end = key.start + 4096;
    key.path = path;
    assert_true(rp_memory_elf_find(&found, &key));
    assert_int_equal(found.bias, (uint64_t)(uintptr_t)base);
    rp_memory_elf_release(&found);
    munmap(base, 8192);
}

/* Case A20: mapped code in a file that is not ELF; and a memfd, which holds JIT code unless it holds ELF. */
static void test_not_elf(void **state)
{
    struct rp_images images;
    struct rp_space space = {.pid = (uint32_t)getpid()};
    struct rp_err err = {0};
    struct rp_address where;
    struct rp_buf program = {0};
    uint8_t page[4096] = {'M', 'Z'};
    char path[96];
    void *dll, *jit, *elf;
    int fd;

    (void)state;
    snprintf(path, sizeof path, "%s/managed.dll", dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
    assert_true(rp_write_full(fd, page, sizeof page));
    dll = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    close(fd);
    fd = memfd_create("doublemapper", MFD_CLOEXEC);
    assert_true(rp_write_full(fd, page, sizeof page));
    jit = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    close(fd);
    fd = memfd_create("library", MFD_CLOEXEC);
    assert_int_equal(rp_read_file("/usr/bin/sleep", SIZE_MAX / 2, &program, &err), RP_OK);
    assert_true(rp_write_full(fd, rp_buf_text(&program), program.length));
    rp_buf_release(&program);
    elf = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    close(fd);
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    assert_int_equal(rp_space_read(&space, &images, &err), RP_OK);
    assert_true(rp_space_resolve(&space, &images, (uint64_t)(uintptr_t)dll + 0x123, &where));
    assert_int_equal(images.at.at[where.image]->kind, RP_IMAGE_OTHER);
    assert_string_equal(images.at.at[where.image]->path, path);
    assert_int_equal(where.addr, 0x123);
    assert_true(rp_space_resolve(&space, &images, (uint64_t)(uintptr_t)jit + 0x123, &where));
    assert_int_equal(images.at.at[where.image]->kind, RP_IMAGE_JIT);
    assert_int_equal(where.addr, (uint64_t)(uintptr_t)jit + 0x123);
    assert_true(rp_space_resolve(&space, &images, (uint64_t)(uintptr_t)elf + 0x123, &where));
    if (geteuid() == 0) /* only map_files leads to a memfd */
        assert_int_equal(images.at.at[where.image]->kind, RP_IMAGE_ELF);
    rp_space_release(&space);
    rp_images_release(&images);
    munmap(dll, 4096);
    munmap(jit, 4096);
    munmap(elf, 4096);
}

/* Case A24: damage at known places, then at every byte of the headers. Whatever comes of it lies within the file. */
static void test_damaged_elf(void **state)
{
    struct rp_buf good = {0};
    struct rp_err err = {0};
    char path[96];

    (void)state;
    snprintf(path, sizeof path, "%s/damaged", dir);
    assert_int_equal(rp_read_file("/usr/bin/sleep", SIZE_MAX / 2, &good, &err), RP_OK);
    for (size_t at = 4; at < 64 + 13 * 56; at++) {
        struct rp_images images;
        uint64_t addr;
        uint32_t id;
        int fd;

        good.data[at] = (char)~good.data[at];
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
        assert_true(rp_write_full(fd, good.data, good.length));
        close(fd);
        good.data[at] = (char)~good.data[at];
        assert_int_equal(rp_images_init(&images, &err), RP_OK);
        assert_int_equal(rp_images_open_path(&images, path, &id, &err), RP_OK);
        for (uint32_t i = 0; i < images.at.at[id]->nsegments; i++) {
            const struct rp_segment *s = &images.at.at[id]->segments[i];

            assert_true(s->offset < good.length && s->filesz <= good.length - s->offset);
            assert_true(s->vaddr + s->filesz >= s->vaddr);
        }
        assert_true(images.at.at[id]->nsegments || images.at.at[id]->problem);
        assert_true(images.at.at[id]->build_id_bytes <= sizeof images.at.at[id]->build_id);
        (void)rp_image_offset_to_addr(images.at.at[id], 0x3000, &addr);
        rp_images_release(&images);
    }
    rp_buf_release(&good);
}

static void test_paths_that_are_no_files(void **state)
{
    struct rp_images images;
    struct rp_err err = {0};
    char path[96];
    uint32_t id;

    (void)state;
    snprintf(path, sizeof path, "%s/fifo", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    assert_int_equal(rp_images_open_path(&images, path, &id, &err), RP_IO); /* and does not wait for a writer */
    assert_int_equal(rp_images_open_path(&images, "/dev/null", &id, &err), RP_IO);
    assert_int_equal(rp_images_open_path(&images, dir, &id, &err), RP_IO);
    assert_int_equal(rp_images_open_path(&images, "/nowhere/at/all", &id, &err), RP_IO);
    assert_non_null(strstr(err.text, "/nowhere/at/all"));
    rp_images_release(&images);
}

static void test_one_file_is_one_image(void **state)
{
    struct rp_images images;
    struct rp_space one = {.pid = (uint32_t)getpid()}, two = {.pid = (uint32_t)getpid()};
    struct rp_err err = {0};
    size_t n;

    (void)state;
    assert_int_equal(rp_images_init(&images, &err), RP_OK);
    assert_int_equal(images.at.at[RP_IMAGE_ID_KERNEL]->kind, RP_IMAGE_KERNEL);
    assert_int_equal(images.at.at[RP_IMAGE_ID_MARK]->kind, RP_IMAGE_MARK);
    assert_int_equal(rp_space_read(&one, &images, &err), RP_OK);
    n = images.at.n;
    assert_int_equal(rp_space_read(&two, &images, &err), RP_OK);
    assert_int_equal(images.at.n, n);
    rp_space_release(&one);
    rp_space_release(&two);
    rp_images_release(&images);
}

static void test_build_id_in_notes(void **state)
{
    static const uint8_t two[] = {4, 0, 0, 0, 2, 0, 0, 0, 9, 0, 0, 0, 'G', 'N', 'U', 0, 1, 1, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 7, 8, 9, 0};
    uint8_t id[RP_BUILD_ID_MAX], huge[16] = {4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 3, 0, 0, 0, 'G', 'N', 'U', 0};

    (void)state;
    assert_int_equal(rp_notes_build_id(two, sizeof two, 4, id), 3);
    assert_int_equal(id[0] * 10000 + id[1] * 100 + id[2], 70809);
    for (size_t size = 0; size + 4 < sizeof two; size++)
        assert_int_equal(rp_notes_build_id(two, size, 4, id), 0);
    assert_int_equal(rp_notes_build_id(huge, sizeof huge, 4, id), 0);
    huge[0] = huge[1] = huge[2] = huge[3] = 0xff;
    assert_int_equal(rp_notes_build_id(huge, sizeof huge, 4, id), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_replaced_while_running, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_not_replaced, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_mount_namespace, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_other_numbers_for_the_same_file, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_another_library_at_the_same_address, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_deleted_library_from_memory, make_dir, remove_dir),
        cmocka_unit_test(test_vdso),
        cmocka_unit_test(test_offsets_go_through_segments),
        cmocka_unit_test_setup_teardown(test_header_seen_twice, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_not_elf, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_damaged_elf, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_paths_that_are_no_files, make_dir, remove_dir),
        cmocka_unit_test(test_one_file_is_one_image),
        cmocka_unit_test(test_build_id_in_notes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
