/* SPDX-License-Identifier: MIT */
/* Files that were replaced, deleted, hidden by a mount or followed by another at the same address: each image must be the one that is mapped, or say
 * what is missing. The trap is to take what lies at the path now. */
#include <dlfcn.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "support/image_look.h"
#include "support/temp_dir.h"
#include "target/image.h"
#include "target/process.h"
#include "target/space.h"

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

/* A process of ours and the images of it. */
struct watched {
    struct rp_images images;
    struct rp_space space;
    pid_t pid;
};

static void watch(struct watched *w, pid_t pid)
{
    struct rp_err err = {0};

    *w = (struct watched){.space.pid = (uint32_t)pid, .pid = pid};
    assert_int_equal(rp_images_init(&w->images, &err), RP_OK);
}

static void let_go(struct watched *w)
{
    rp_space_release(&w->space);
    rp_images_release(&w->images);
    end(w->pid);
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
    const char *path = temp_dir_path("program"), *newer = temp_dir_path("newer");
    struct rp_image *image;
    struct watched w;

    (void)state;
    copy_file("/usr/bin/sleep", path);
    watch(&w, run_sleeper(path));
    copy_file("/usr/bin/cat", newer);
    assert_int_equal(rename(newer, path), 0);
    image = image_at(&w.images, &w.space, path);
    assert_non_null(image);
    assert_true(image->deleted);
    assert_true(image->fd >= 0);
    assert_int_equal(image->kind, RP_IMAGE_ELF);
    assert_build_id_of(image, "/usr/bin/sleep");
    let_go(&w);
}

/* Not replaced: not called so; a path that really ends in " (deleted)" included. */
static void test_not_replaced(void **state)
{
    static const char *const names[] = {"plain", "odd (deleted)"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const char *path = temp_dir_path(names[i]);
        struct rp_image *image = NULL;
        struct rp_err err = {0};
        struct watched w;

        copy_file("/usr/bin/sleep", path);
        watch(&w, run_sleeper(path));
        assert_int_equal(rp_space_read(&w.space, &w.images, &err), RP_OK);
        for (size_t k = 0; k < w.images.at.n && !image; k++) {
            if (strncmp(w.images.at.at[k]->path, temp_dir, strlen(temp_dir)) == 0)
                image = w.images.at.at[k];
        }
        assert_non_null(image);
        assert_string_equal(image->path, path);
        assert_true(image->fd >= 0);
        assert_false(image->deleted);
        let_go(&w);
    }
}

/* Case A22: in its own mount namespace the process has another file at that path. */
static void test_mount_namespace(void **state)
{
    const char *path = temp_dir_path("program"), *inside = temp_dir_path("inside");
    struct rp_image *image;
    struct watched w;
    int ready[2];
    char byte = 0;
    pid_t pid;

    (void)state;
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
    watch(&w, pid);
    image = image_at(&w.images, &w.space, path);
    if (!image)
        image = image_at(&w.images, &w.space, inside);
    assert_non_null(image);
    assert_true(image->fd >= 0);
    assert_build_id_of(image, "/usr/bin/sleep");
    let_go(&w);
}

/* Layered file systems: the mapping speaks of a device and inode that stat does not give. The build-id in memory is the proof, and another
 * file at that path is still refused. */
static void test_other_numbers_for_the_same_file(void **state)
{
    const char *path = temp_dir_path("program"), *newer = temp_dir_path("newer");
    struct rp_err err = {0};
    struct rp_image_key key = {.dev = 0x1234, .ino = 5678};
    struct watched w;
    uint32_t id, other;

    (void)state;
    copy_file("/usr/bin/sleep", path);
    watch(&w, run_sleeper(path));
    assert_non_null(image_at(&w.images, &w.space, path));
    key.pid = w.space.pid;
    for (size_t i = 0; i < w.space.maps.n; i++) {
        if (strcmp(w.images.at.at[w.space.maps.at[i].image]->path, path) == 0) {
            key.start = w.space.maps.at[i].start;
            key.end = w.space.maps.at[i].end - 4096; /* no such range in map_files */
            key.offset = w.space.maps.at[i].offset;
        }
    }
    key.path = path;
    assert_int_equal(rp_images_get(&w.images, &key, &id, &err), RP_OK);
    assert_true(w.images.at.at[id]->fd >= 0);
    assert_build_id_of(w.images.at.at[id], "/usr/bin/sleep");
    copy_file("/usr/bin/cat", newer);
    assert_int_equal(rename(newer, path), 0);
    key.ino++;
    assert_int_equal(rp_images_get(&w.images, &key, &other, &err), RP_OK);
    assert_build_id_of(w.images.at.at[other], "/usr/bin/sleep");
    end(w.pid);
    key.ino++; /* and when nothing can be proved any more, nothing is taken */
    assert_int_equal(rp_images_get(&w.images, &key, &other, &err), RP_OK);
    assert_true(w.images.at.at[other]->fd < 0);
    assert_non_null(w.images.at.at[other]->problem);
    rp_space_release(&w.space);
    rp_images_release(&w.images);
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
    const char *before = temp_dir_path("libbefore.so"), *after = temp_dir_path("libafter.so");
    struct stat st;
    void *library, *at;
    uint32_t id;

    (void)state;
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
    const char *path = temp_dir_path("libcopy.so");
    uint64_t address = 0;
    int up[2], status = -1;
    pid_t pid, checker;

    (void)state;
    if (geteuid() != 0)
        skip();
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_replaced_while_running, temp_dir_make, temp_dir_remove),
        cmocka_unit_test_setup_teardown(test_not_replaced, temp_dir_make, temp_dir_remove),
        cmocka_unit_test_setup_teardown(test_mount_namespace, temp_dir_make, temp_dir_remove),
        cmocka_unit_test_setup_teardown(test_other_numbers_for_the_same_file, temp_dir_make, temp_dir_remove),
        cmocka_unit_test_setup_teardown(test_another_library_at_the_same_address, temp_dir_make, temp_dir_remove),
        cmocka_unit_test_setup_teardown(test_deleted_library_from_memory, temp_dir_make, temp_dir_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
