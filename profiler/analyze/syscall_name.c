/* SPDX-License-Identifier: MIT */
/* System calls that a thread can wait in, by number. Those that are not here have no name, and a rule sees them as any other wait. */
#include <sys/syscall.h>

#include "analyze/view_waits.h"

static const struct {
    int number;
    const char *name;
} calls[] = {
    {SYS_read, "read"}, {SYS_write, "write"}, {SYS_open, "open"}, {SYS_close, "close"}, {SYS_stat, "stat"}, {SYS_fstat, "fstat"},
    {SYS_lstat, "lstat"}, {SYS_poll, "poll"}, {SYS_lseek, "lseek"}, {SYS_mmap, "mmap"}, {SYS_mprotect, "mprotect"}, {SYS_munmap, "munmap"},
    {SYS_brk, "brk"}, {SYS_ioctl, "ioctl"}, {SYS_pread64, "pread64"}, {SYS_pwrite64, "pwrite64"}, {SYS_readv, "readv"}, {SYS_writev, "writev"},
    {SYS_select, "select"}, {SYS_msync, "msync"}, {SYS_nanosleep, "nanosleep"}, {SYS_pause, "pause"}, {SYS_sendfile, "sendfile"},
    {SYS_connect, "connect"}, {SYS_accept, "accept"}, {SYS_sendto, "sendto"}, {SYS_recvfrom, "recvfrom"}, {SYS_sendmsg, "sendmsg"},
    {SYS_recvmsg, "recvmsg"}, {SYS_fork, "fork"}, {SYS_vfork, "vfork"}, {SYS_clone, "clone"}, {SYS_wait4, "wait4"}, {SYS_semop, "semop"},
    {SYS_msgsnd, "msgsnd"}, {SYS_msgrcv, "msgrcv"}, {SYS_fcntl, "fcntl"}, {SYS_flock, "flock"}, {SYS_fsync, "fsync"},
    {SYS_fdatasync, "fdatasync"}, {SYS_truncate, "truncate"}, {SYS_ftruncate, "ftruncate"}, {SYS_getdents, "getdents"}, {SYS_rename, "rename"},
    {SYS_mkdir, "mkdir"}, {SYS_rmdir, "rmdir"}, {SYS_creat, "creat"}, {SYS_link, "link"}, {SYS_unlink, "unlink"}, {SYS_symlink, "symlink"},
    {SYS_rt_sigsuspend, "rt_sigsuspend"}, {SYS_rt_sigtimedwait, "rt_sigtimedwait"}, {SYS_sync, "sync"}, {SYS_mount, "mount"},
    {SYS_readahead, "readahead"}, {SYS_futex, "futex"}, {SYS_io_getevents, "io_getevents"}, {SYS_getdents64, "getdents64"},
    {SYS_semtimedop, "semtimedop"}, {SYS_clock_nanosleep, "clock_nanosleep"}, {SYS_epoll_wait, "epoll_wait"}, {SYS_waitid, "waitid"},
    {SYS_mq_timedsend, "mq_timedsend"}, {SYS_mq_timedreceive, "mq_timedreceive"}, {SYS_openat, "openat"}, {SYS_mkdirat, "mkdirat"},
    {SYS_newfstatat, "newfstatat"}, {SYS_unlinkat, "unlinkat"}, {SYS_renameat, "renameat"}, {SYS_pselect6, "pselect6"}, {SYS_ppoll, "ppoll"},
    {SYS_splice, "splice"}, {SYS_tee, "tee"}, {SYS_sync_file_range, "sync_file_range"}, {SYS_vmsplice, "vmsplice"}, {SYS_fallocate, "fallocate"},
    {SYS_epoll_pwait, "epoll_pwait"}, {SYS_accept4, "accept4"}, {SYS_preadv, "preadv"}, {SYS_pwritev, "pwritev"}, {SYS_recvmmsg, "recvmmsg"},
    {SYS_fanotify_init, "fanotify_init"}, {SYS_syncfs, "syncfs"}, {SYS_sendmmsg, "sendmmsg"}, {SYS_renameat2, "renameat2"},
    {SYS_getrandom, "getrandom"}, {SYS_copy_file_range, "copy_file_range"}, {SYS_preadv2, "preadv2"}, {SYS_pwritev2, "pwritev2"},
    {SYS_statx, "statx"}, {SYS_io_pgetevents, "io_pgetevents"}, {SYS_io_uring_enter, "io_uring_enter"},
#ifdef SYS_openat2
    {SYS_openat2, "openat2"},
#endif
#ifdef SYS_epoll_pwait2
    {SYS_epoll_pwait2, "epoll_pwait2"},
#endif
#ifdef SYS_futex_waitv
    {SYS_futex_waitv, "futex_waitv"},
#endif
    {SYS_exit_group, "exit_group"}, {SYS_madvise, "madvise"}, {SYS_execve, "execve"}, {SYS_io_submit, "io_submit"},
    {SYS_userfaultfd, "userfaultfd"},
};

const char *rp_syscall_name(int number)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].number == number)
            return calls[i].name;
    return "";
}
