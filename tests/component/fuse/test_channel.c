// SPDX-License-Identifier: Apache-2.0
/*
 * The channel on the real kernel, under the file system in memory: what goes in comes out, large
 * requests arrive whole, readers that nobody answers can be killed, unmounting ends the server; all
 * of it through every kind of channel that is to be had. The file system runs in a process of its
 * own, since a process that waits for itself would hang.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "client/fuse/mountinfo.h"
#include "client/fuse/null_fs.h"
#include "client/mount/mount.h"
#include "tests/component/fuse/serve.h"
#include "tests/support/suite.h"

static enum channel_kind kind;

static void setup(void)
{
    struct null_fs_options o = {.timeout_ns = NS_PER_S, .keep_bytes = 8 * MIB, .rooms = 2};

    serve(kind, &o);
}

static void own(void)
{
    kind = CHANNEL_KIND_FUSE;
}

static void through_libfuse(void)
{
    kind = CHANNEL_KIND_LIBFUSE;
}

static void through_ring(void)
{
    kind = CHANNEL_KIND_IO_URING;
}

static void own_setup(void)
{
    own();
    setup();
}

static void ring_setup(void)
{
    through_ring();
    setup();
}

static void libfuse_setup(void)
{
    through_libfuse();
    setup();
}

START_TEST(what_is_written_is_read_back)
{
    size_t len = 3 * MIB + 17;
    uint8_t *data = noise(len), *back = malloc(len);
    int fd = open_at("f", O_RDWR | O_CREAT);

    ck_assert_int_eq(pwrite(fd, data, len, 0), (ssize_t)len);
    ck_assert_int_eq(fsync(fd), 0);
    ck_assert_int_eq(pread(fd, back, len, 0), (ssize_t)len);
    ck_assert_mem_eq(data, back, len);
    close(fd);
    fd = open_at("f", O_RDONLY | O_DIRECT);
    free(back);
    ck_assert_int_eq(posix_memalign((void **)&back, 4096, 4 * MIB), 0);
    ck_assert_int_eq(pread(fd, back, 4 * MIB, 0), (ssize_t)len);
    ck_assert_mem_eq(data, back, len);
    close(fd);
    free(data);
    free(back);
}
END_TEST

START_TEST(a_mapped_file_shows_what_was_written)
{
    uint8_t *data = noise(MIB), *map;
    int fd = open_at("f", O_RDWR | O_CREAT);

    ck_assert_int_eq(pwrite(fd, data, MIB, 0), MIB);
    map = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(map, MAP_FAILED);
    ck_assert_mem_eq(map, data, MIB);
    memset(map + 5000, 7, 10000);
    memset(data + 5000, 7, 10000);
    ck_assert_int_eq(msync(map, MIB, MS_SYNC), 0);
    munmap(map, MIB);
    close(fd);
    fd = open_at("f", O_RDONLY);
    map = malloc(MIB);
    ck_assert_int_eq(pread(fd, map, MIB, 0), MIB);
    ck_assert_mem_eq(map, data, MIB);
    close(fd);
    free(map);
    free(data);
}
END_TEST

START_TEST(names_links_and_attributes_work)
{
    char from[PATH_MAX], to[PATH_MAX], text[64];
    struct stat st;

    ck_assert_int_eq(mkdir(tmp_path(&served, "d"), 0750), 0);
    close(open_at("d/f", O_WRONLY | O_CREAT | O_EXCL));
    ck_assert_int_eq(open(tmp_path(&served, "d/f"), O_WRONLY | O_CREAT | O_EXCL, 0600), -1);
    ck_assert_int_eq(errno, EEXIST);
    strcpy(from, tmp_path(&served, "d/f"));
    strcpy(to, tmp_path(&served, "g"));
    ck_assert_int_eq(link(from, to), 0);
    ck_assert_int_eq(stat(to, &st), 0);
    ck_assert_uint_eq(st.st_nlink, 2);
    ck_assert_int_eq(rename(to, tmp_path(&served, "h")), 0);
    ck_assert_int_eq(stat(to, &st), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(symlink("d/f", tmp_path(&served, "s")), 0);
    ck_assert_int_eq(readlink(tmp_path(&served, "s"), text, sizeof text), 3);
    ck_assert_int_eq(memcmp(text, "d/f", 3), 0);
    ck_assert_int_eq(chmod(from, 04711), 0);
    ck_assert_int_eq(chown(from, 12, 34), 0);
    ck_assert_int_eq(truncate(from, 12345), 0);
    ck_assert_int_eq(stat(from, &st), 0);
    ck_assert_uint_eq(st.st_size, 12345);
    ck_assert_uint_eq(st.st_uid, 12);
    ck_assert_int_eq(rmdir(tmp_path(&served, "d")), -1);
    ck_assert_int_eq(errno, ENOTEMPTY);
    ck_assert_int_eq(mkfifo(tmp_path(&served, "p"), 0600), 0);
    ck_assert_int_eq(stat(tmp_path(&served, "p"), &st), 0);
    ck_assert(S_ISFIFO(st.st_mode));
}
END_TEST

START_TEST(the_umask_applies_once)
{
    struct stat st;

    umask(027);
    close(open(tmp_path(&served, "f"), O_WRONLY | O_CREAT, 0666));
    ck_assert_int_eq(stat(tmp_path(&served, "f"), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777u, 0640);
    ck_assert_int_eq(mkdir(tmp_path(&served, "d"), 0777), 0);
    ck_assert_int_eq(stat(tmp_path(&served, "d"), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777u, 0750);
}
END_TEST

START_TEST(every_entry_of_a_large_directory_is_listed_once)
{
    enum { N = 3000 };
    static unsigned char seen[N];
    unsigned n = 0;
    struct dirent *e;
    DIR *d;

    ck_assert_int_eq(mkdir(tmp_path(&served, "d"), 0755), 0);
    for (unsigned i = 0; i < N; i++) {
        char name[32];

        snprintf(name, sizeof name, "d/name%u", i);
        close(open_at(name, O_WRONLY | O_CREAT));
    }
    d = opendir(tmp_path(&served, "d"));
    ck_assert_ptr_nonnull(d);
    while ((e = readdir(d))) {
        unsigned i;
        struct stat st;

        ck_assert_int_eq(fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW), 0);
        if (sscanf(e->d_name, "name%u", &i) != 1)
            continue;
        ck_assert_uint_lt(i, N);
        ck_assert(!seen[i]++);
        n++;
    }
    ck_assert_uint_eq(n, N);
    closedir(d);
}
END_TEST

START_TEST(a_write_by_somebody_unprivileged_clears_set_id_bits)
{
    struct stat st;
    int fd, status;
    pid_t pid;

    fd = open_at("f", O_WRONLY | O_CREAT);
    ck_assert_int_eq(fchmod(fd, 06777), 0);
    ck_assert_int_eq(write(fd, "x", 1), 1); /* root keeps them */
    close(fd);
    ck_assert_int_eq(stat(tmp_path(&served, "f"), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777u, 06777);
    ck_assert_int_eq(chmod(served.dir, 0777), 0);
    pid = fork();
    if (pid == 0) {
        if (setgid(1234) != 0 || setuid(1234) != 0)
            _exit(255);
        fd = open(tmp_path(&served, "f"), O_WRONLY);
        if (fd < 0)
            _exit(errno);
        _exit(write(fd, "y", 1) == 1 ? 0 : 128 | errno);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(status == 0,
                  "wait status %#x: exit status is the errno of open, 128 + that of write",
                  (unsigned)status);
    fd = open_at("f", O_WRONLY);
    ck_assert_int_eq(write(fd, "z", 1), 1); /* makes the kernel ask for attributes again */
    ck_assert_int_eq(fstat(fd, &st), 0);
    close(fd);
    ck_assert_uint_eq(st.st_mode & 07777u, 0777);
}
END_TEST

START_TEST(another_user_may_not_pass_a_closed_directory)
{
    int status;
    pid_t pid;

    ck_assert_int_eq(mkdir(tmp_path(&served, "d"), 0700), 0);
    close(open_at("d/f", O_WRONLY | O_CREAT));
    ck_assert_int_eq(chmod(tmp_path(&served, "d/f"), 0666), 0);
    pid = fork();
    if (pid == 0) {
        if (setgid(1234) != 0 || setuid(1234) != 0)
            _exit(2);
        _exit(open(tmp_path(&served, "d/f"), O_RDONLY) < 0 && errno == EACCES ? 0 : 3);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(statfs_unknown_attributes_and_unknown_operations_have_answers)
{
    struct statvfs s;
    char value[16] = "";

    ck_assert_int_eq(statvfs(served.dir, &s), 0);
    ck_assert_uint_eq(s.f_namemax, 255);
    ck_assert_int_eq(getxattr(served.dir, "user.x", value, sizeof value), -1);
    ck_assert_int_eq(errno, ENODATA);
    ck_assert_int_eq(setxattr(served.dir, "user.x", value, 1, 0), -1);
    ck_assert_int_eq(errno, EOPNOTSUPP);
}
END_TEST

START_TEST(the_mount_reads_ahead_a_megabyte)
{
    struct mountinfo info;
    char path[64], text[16] = "";
    FILE *f;

    ck_assert_int_eq(mountinfo_find(served.dir, &info), 1);
    ck_assert_str_eq(info.type, "fuse.aifs");
    snprintf(path, sizeof path, "/sys/class/bdi/%u:%u/read_ahead_kb", info.major, info.minor);
    f = fopen(path, "r");
    if (!f || access(path, W_OK) != 0)
        return; /* /sys is read-only here */
    ck_assert_ptr_nonnull(fgets(text, sizeof text, f));
    fclose(f);
    ck_assert_str_eq(text, "1024\n");
}
END_TEST

START_TEST(many_readers_are_served_at_once)
{
    enum { N = 8 };
    pid_t pids[N];
    int status;

    for (int i = 0; i < N; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            char name[16];
            uint8_t *buf;
            int fd;

            snprintf(name, sizeof name, "big%d", i);
            fd = open(tmp_path(&served, name), O_RDONLY | O_DIRECT);
            if (fd < 0 || posix_memalign((void **)&buf, 4096, MIB) != 0)
                _exit(1);
            for (unsigned k = 0; k < 200; k++) {
                uint64_t at = (uint64_t)k * MIB % (64 * MIB);

                if (pread(fd, buf, MIB, (off_t)((uint64_t)k * MIB)) != MIB ||
                    buf[17] != (uint8_t)((at + 17) % 251))
                    _exit(2);
            }
            _exit(0);
        }
    }
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
    }
}
END_TEST

/* In the kernel, for an answer, and the server has seen the request: what was asked after it has
 * been answered. */
static void until_it_waits(pid_t pid)
{
    for (int i = 0; i < 1000; i++) {
        char path[64], text[64] = "";
        FILE *f;

        snprintf(path, sizeof path, "/proc/%d/wchan", (int)pid);
        f = fopen(path, "r");
        if (f && fgets(text, sizeof text, f) && strstr(text, "request_wait_answer"))
            i = 1000;
        if (f)
            fclose(f);
        poll(NULL, 0, 5);
    }
    close(open_at("f", O_WRONLY | O_CREAT));
    ck_assert_int_eq(unlink(tmp_path(&served, "f")), 0);
}

START_TEST(a_reader_that_nobody_answers_can_be_killed)
{
    struct null_fs_options o = {.timeout_ns = NS_PER_S, .hold_reads = true, .direct = true};
    int status;
    pid_t pid;

    serve(kind, &o);
    pid = fork();
    if (pid == 0) {
        char byte;
        int fd = open(tmp_path(&served, "big0"), O_RDONLY);

        _exit(fd >= 0 && read(fd, &byte, 1) == 1 ? 0 : 1);
    }
    until_it_waits(pid);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
    unserve();
}
END_TEST

/* More of them than a queue of the ring has entries at first, all on one processor. */
START_TEST(readers_that_nobody_answers_keep_nobody_else_waiting)
{
    enum { N = 40 };
    struct null_fs_options o = {.timeout_ns = NS_PER_S, .hold_reads = true, .direct = true};
    pid_t pids[N];
    cpu_set_t all, first;
    char byte;
    int status;

    serve(kind, &o);
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&first);
    for (int i = 0; CPU_COUNT(&first) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &first);
    ck_assert_int_eq(sched_setaffinity(0, sizeof first, &first), 0);
    for (int i = 0; i < N; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            int fd = open(tmp_path(&served, "big0"), O_RDONLY);

            _exit(fd >= 0 && read(fd, &byte, 1) == 1 ? 0 : 1);
        }
        until_it_waits(pids[i]);
    }
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(kill(pids[i], SIGKILL), 0);
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert(WIFSIGNALED(status));
    }
    ck_assert_int_eq(sched_setaffinity(0, sizeof all, &all), 0);
    unserve();
}
END_TEST

START_TEST(a_forced_unmount_ends_waiting_readers_and_the_server)
{
    struct null_fs_options o = {.timeout_ns = NS_PER_S, .hold_reads = true, .direct = true};
    int status, fds[2];
    char byte;
    pid_t pid;

    serve(kind, &o);
    ck_assert_int_eq(pipe(fds), 0);
    pid = fork();
    if (pid == 0) {
        int fd = open(tmp_path(&served, "big0"), O_RDONLY);

        if (write(fds[1], "o", 1) != 1)
            _exit(3);
        _exit(fd >= 0 && read(fd, &byte, 1) < 0 ? 0 : 1);
    }
    ck_assert_int_eq(read(fds[0], &byte, 1), 1);
    ck_assert_int_eq(umount2(served.dir, MNT_FORCE | MNT_DETACH), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(waitpid(server, &status, 0), server);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(rmdir(served.dir), 0);
}
END_TEST

/* ---- what mount.aifs makes of a mount point ---- */

static int check_dir(const char *dir, bool recover, bool multi, char *err, size_t err_len)
{
    static struct mount_request m;

    memset(&m, 0, sizeof m);
    snprintf(m.dir, sizeof m.dir, "%s", dir);
    m.recover = recover;
    m.multi = multi;
    return mount_check_dir(&m, err, err_len);
}

START_TEST(a_mount_point_in_use_is_refused_unless_multi)
{
    char err[MOUNT_ERROR_BYTES];

    ck_assert_int_eq(check_dir(served.dir, false, false, err, sizeof err), MOUNT_FAILED);
    ck_assert_ptr_nonnull(strstr(err, "mounted there already"));
    ck_assert_int_eq(check_dir(served.dir, false, true, err, sizeof err), MOUNT_OK);
}
END_TEST

START_TEST(a_dead_mount_is_named_and_cleaned_up_when_asked)
{
    struct null_fs_options o = {.timeout_ns = NS_PER_S};
    char err[MOUNT_ERROR_BYTES];
    int status;
    struct stat st;

    serve(kind, &o);
    ck_assert_int_eq(kill(server, SIGKILL), 0);
    ck_assert_int_eq(waitpid(server, &status, 0), server);
    ck_assert_int_eq(stat(served.dir, &st), -1);
    ck_assert_msg(errno == ENOTCONN || errno == ECONNABORTED || errno == ECANCELED, "%s",
                  strerror(errno)); /* the last two: by a ring that is just being taken down */
    ck_assert_int_eq(check_dir(served.dir, false, false, err, sizeof err), MOUNT_FAILED);
    ck_assert_ptr_nonnull(strstr(err, "-o recover"));
    ck_assert_int_eq(check_dir(served.dir, true, false, err, sizeof err), MOUNT_OK);
    ck_assert_int_eq(rmdir(served.dir), 0);
}
END_TEST

START_TEST(a_mount_point_must_be_a_directory_that_is_there)
{
    char err[MOUNT_ERROR_BYTES];
    struct tmp own;

    tmp_make(&own);
    ck_assert_int_eq(check_dir(tmp_write(&own, "f", "x"), false, false, err, sizeof err),
                     MOUNT_FAILED);
    ck_assert_ptr_nonnull(strstr(err, "not a directory"));
    ck_assert_int_eq(check_dir(tmp_path(&own, "nowhere"), false, false, err, sizeof err),
                     MOUNT_FAILED);
    ck_assert_ptr_nonnull(strstr(err, "nowhere"));
    ck_assert_int_eq(check_dir(own.dir, false, false, err, sizeof err), MOUNT_OK);
    tmp_remove(&own);
}
END_TEST

START_TEST(the_birth_time_of_a_file_stays)
{
    struct statx first, second;

    close(open_at("f", O_WRONLY | O_CREAT));
    ck_assert_int_eq(statx(AT_FDCWD, tmp_path(&served, "f"), 0, STATX_BTIME, &first), 0);
    ck_assert_uint_ne(first.stx_mask & STATX_BTIME, 0);
    ck_assert_int_eq(chmod(tmp_path(&served, "f"), 0600), 0);
    ck_assert_int_eq(
        statx(AT_FDCWD, tmp_path(&served, "f"), 0, STATX_BASIC_STATS | STATX_BTIME, &second), 0);
    ck_assert_int_eq(second.stx_btime.tv_sec, first.stx_btime.tv_sec);
    ck_assert_uint_eq(second.stx_btime.tv_nsec, first.stx_btime.tv_nsec);
    ck_assert_uint_eq(second.stx_mode & 07777u, 0600);
    ck_assert(first.stx_btime.tv_sec > 0);
}
END_TEST

START_TEST(the_own_channel_is_for_root)
{
    char err[256] = "";
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        struct null_fs_options o = {.channel = CHANNEL_KIND_FUSE};
        int rc;

        if (setgid(1234) != 0 || setuid(1234) != 0)
            _exit(255);
        rc = null_fs_serve("/", &o, NULL, NULL, err, sizeof err);
        _exit(rc == -EPERM || rc == -EACCES ? 0 : 1); /* of mount(2), or of /dev/fuse */
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

static void add(Suite *s, const char *name, SFun before, SFun after, const TTest *const *tests,
                size_t n)
{
    TCase *c = tcase_create(name);

    tcase_add_checked_fixture(c, before, after);
    tcase_set_timeout(c, 60);
    for (size_t i = 0; i < n; i++)
        tcase_add_test(c, tests[i]);
    suite_add_tcase(s, c);
}

int main(void)
{
    const TTest *const serving[] = {what_is_written_is_read_back,
                                    a_mapped_file_shows_what_was_written,
                                    names_links_and_attributes_work,
                                    the_umask_applies_once,
                                    every_entry_of_a_large_directory_is_listed_once,
                                    a_write_by_somebody_unprivileged_clears_set_id_bits,
                                    another_user_may_not_pass_a_closed_directory,
                                    statfs_unknown_attributes_and_unknown_operations_have_answers,
                                    the_mount_reads_ahead_a_megabyte,
                                    many_readers_are_served_at_once,
                                    a_mount_point_in_use_is_refused_unless_multi};
    const TTest *const held[] = {a_dead_mount_is_named_and_cleaned_up_when_asked,
                                 a_mount_point_must_be_a_directory_that_is_there,
                                 a_reader_that_nobody_answers_can_be_killed,
                                 readers_that_nobody_answers_keep_nobody_else_waiting,
                                 a_forced_unmount_ends_waiting_readers_and_the_server};
    const TTest *const own_only[] = {the_birth_time_of_a_file_stays};
    const TTest *const refused[] = {the_own_channel_is_for_root};
    Suite *s = suite_create("fuse-channel");
    SRunner *runner;
    int failed;

    if (geteuid() != 0 || access("/dev/fuse", R_OK | W_OK) != 0) {
        printf("skipped: mounting needs root and /dev/fuse\n");
        return 77;
    }
    add(s, "serving", own_setup, unserve, serving, ARRAY_LEN(serving));
    add(s, "serving, own only", own_setup, unserve, own_only, ARRAY_LEN(own_only));
    add(s, "serving, libfuse", libfuse_setup, unserve, serving, ARRAY_LEN(serving));
    add(s, "held", own, NULL, held, ARRAY_LEN(held));
    add(s, "held, libfuse", through_libfuse, NULL, held, ARRAY_LEN(held));
    if (ring_is_offered()) {
        add(s, "serving, io_uring", ring_setup, unserve, serving, ARRAY_LEN(serving));
        add(s, "serving, io_uring as own", ring_setup, unserve, own_only, ARRAY_LEN(own_only));
        add(s, "held, io_uring", through_ring, NULL, held, ARRAY_LEN(held));
    }
    add(s, "refused", NULL, NULL, refused, ARRAY_LEN(refused));
    runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
