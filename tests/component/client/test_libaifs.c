/* SPDX-License-Identifier: Apache-2.0 */
/* libaifs against real daemons: the calls, many threads, batches, and daemons that are
 * killed. */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "client/lib/aifs.h"
#include "common/base/compiler.h"
#include "tests/support/cluster.h"

static struct cluster cluster;
static struct aifs *fs;
static uint8_t *data, *back;

#define ROOM (24u * MIB)

static void setup(void)
{
    memset(&cluster, 0, sizeof cluster);
    ck_assert(cluster_start(&cluster, 3));
    ck_assert_msg(aifs_mount(cluster.source, cluster.options, &fs) == 0, "%s", aifs_mount_error());
    data = malloc(ROOM);
    back = malloc(ROOM);
    for (size_t k = 0; k < ROOM; k++)
        data[k] = (uint8_t)(k * 2654435761u >> 9 ^ k);
}

static void teardown(void)
{
    if (fs)
        ck_assert_int_eq(aifs_unmount(fs), 0);
    free(data);
    free(back);
    cluster_stop(&cluster);
}

static void write_file(const char *path, size_t len)
{
    struct aifs_file *f = aifs_open(fs, path, O_RDWR | O_CREAT | O_TRUNC, 0644);

    ck_assert_msg(f != NULL, "%s: %s", path, strerror(errno));
    ck_assert_int_eq(aifs_pwrite(f, data, len, 0), (ssize_t)len);
    ck_assert_int_eq(aifs_fsync(f), 0);
    ck_assert_int_eq(aifs_close(f), 0);
}

static void check_file(const char *path, size_t len)
{
    struct aifs_file *f = aifs_open(fs, path, O_RDONLY, 0);
    struct stat st;

    ck_assert_msg(f != NULL, "%s: %s", path, strerror(errno));
    memset(back, 0xee, len);
    ck_assert_int_eq(aifs_fstat(f, &st), 0);
    ck_assert_int_eq(st.st_size, (off_t)len);
    ck_assert_int_eq(aifs_pread(f, back, len + 100, 0), (ssize_t)len);
    ck_assert_int_eq(memcmp(back, data, len), 0);
    ck_assert_int_eq(aifs_close(f), 0);
}

START_TEST(advice_changes_no_bytes_and_nonsense_is_refused)
{
    static const int advice[] = {POSIX_FADV_NORMAL,   POSIX_FADV_SEQUENTIAL, POSIX_FADV_RANDOM,
                                 POSIX_FADV_WILLNEED, POSIX_FADV_DONTNEED,   POSIX_FADV_NOREUSE};
    struct aifs_file *f;

    write_file("/advised", 3000000);
    f = aifs_open(fs, "/advised", O_RDONLY, 0);
    ck_assert_ptr_nonnull(f);
    for (size_t k = 0; k < sizeof advice / sizeof advice[0]; k++) {
        ck_assert_int_eq(aifs_advise(f, 0, 0, advice[k]), 0);
        ck_assert_int_eq(aifs_advise(f, 1000000, 500000, advice[k]), 0);
        memset(back, 0, 3000000);
        ck_assert_int_eq(aifs_pread(f, back, 3000000, 0), 3000000);
        ck_assert_int_eq(memcmp(back, data, 3000000), 0);
    }
    ck_assert_int_eq(aifs_advise(f, -1, 0, POSIX_FADV_NORMAL), -1);
    ck_assert_int_eq(aifs_advise(f, 0, 0, 77), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(aifs_close(f), 0);
}
END_TEST

START_TEST(files_of_all_sizes_come_back_as_they_were)
{
    static const size_t sizes[] = {0,      1,   4096,    16384,        16385,
                                   100000, MIB, MIB + 1, 5 * MIB + 77, 20 * MIB};
    char path[32];
    unsigned k;

    for (k = 0; k < ARRAY_LEN(sizes); k++) {
        snprintf(path, sizeof path, "/f%u", k);
        write_file(path, sizes[k]);
    }
    ck_assert_int_eq(aifs_unmount(fs), 0);
    ck_assert_int_eq(aifs_mount(cluster.source, cluster.options, &fs), 0);
    for (k = 0; k < ARRAY_LEN(sizes); k++) {
        snprintf(path, sizeof path, "f%u", k);
        check_file(path, sizes[k]);
    }
}
END_TEST

START_TEST(ranges_behave_like_posix)
{
    struct aifs_file *f = aifs_open(fs, "/ranges", O_CREAT | O_RDWR, 0600);
    struct aifs_file *g = aifs_open(fs, "/copy", O_CREAT | O_RDWR, 0600);

    ck_assert(f && g);
    ck_assert_int_eq(aifs_pwrite(f, data, 5 * MIB, 0), 5 * MIB);
    ck_assert_int_eq(aifs_fallocate(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, MIB, 3 * MIB),
                     0);
    ck_assert_int_eq(aifs_seek(f, 10, SEEK_HOLE), MIB);
    ck_assert_int_eq(aifs_seek(f, MIB, SEEK_DATA), 4 * MIB);
    ck_assert_int_eq(aifs_seek(f, 5 * MIB, SEEK_DATA), -1);
    ck_assert_int_eq(errno, ENXIO);
    ck_assert_int_eq(aifs_seek(f, 0, SEEK_SET), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(aifs_fallocate(f, FALLOC_FL_COLLAPSE_RANGE, 0, 4096), -1);
    ck_assert_int_eq(errno, EOPNOTSUPP);
    ck_assert_int_eq(aifs_fallocate(f, 0, 5 * MIB, 77), 0);
    ck_assert_int_eq(aifs_copy_file_range(f, 100, g, 0, 100 * MIB), 5 * MIB - 23);
    ck_assert_int_eq(aifs_close(f), 0);
    ck_assert_int_eq(aifs_close(g), 0);
    memset(data + MIB, 0, 3 * MIB);
    memset(data + 5 * MIB, 0, 77);
    check_file("/ranges", 5 * MIB + 77);
    memmove(data, data + 100, 5 * MIB - 23);
    check_file("/copy", 5 * MIB - 23);
}
END_TEST

START_TEST(names_behave_like_posix)
{
    struct stat st;
    char link[64];

    ck_assert_int_eq(aifs_mkdir(fs, "/d", 0755), 0);
    ck_assert_int_eq(aifs_mkdir(fs, "/d", 0755), -1);
    ck_assert_int_eq(errno, EEXIST);
    ck_assert_int_eq(aifs_mkdir(fs, "/d/e", 0700), 0);
    write_file("/d/e/file", 5000);
    ck_assert_int_eq(aifs_symlink(fs, "d/e/../e/file", "/link"), 0);
    ck_assert_int_eq(aifs_symlink(fs, "/d", "/abs"), 0);
    check_file("/link", 5000);
    check_file("/abs/e/file", 5000);
    ck_assert_int_eq(aifs_readlink(fs, "/link", link, sizeof link), 13);
    ck_assert_int_eq(aifs_lstat(fs, "/link", &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    ck_assert_int_eq(aifs_stat(fs, "/link", &st), 0);
    ck_assert(S_ISREG(st.st_mode) && st.st_size == 5000);
    ck_assert_int_eq(aifs_link(fs, "/d/e/file", "/hard"), 0);
    ck_assert_int_eq(aifs_stat(fs, "/hard", &st), 0);
    ck_assert_int_eq(st.st_nlink, 2);
    ck_assert_int_eq(aifs_rename(fs, "/hard", "/d/moved"), 0);
    ck_assert_int_eq(aifs_stat(fs, "/hard", &st), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(aifs_rmdir(fs, "/d"), -1);
    ck_assert_int_eq(errno, ENOTEMPTY);
    ck_assert_int_eq(aifs_unlink(fs, "/d/e/file"), 0);
    check_file("/d/moved", 5000);
    ck_assert_int_eq(aifs_symlink(fs, "loop", "/loop"), 0);
    ck_assert_int_eq(aifs_stat(fs, "/loop", &st), -1);
    ck_assert_int_eq(errno, ELOOP);
    ck_assert_ptr_null(aifs_open(fs, "/d/moved", O_CREAT | O_EXCL | O_WRONLY, 0600));
    ck_assert_int_eq(errno, EEXIST);
    ck_assert_ptr_null(aifs_open(fs, "/d", O_RDONLY, 0));
    ck_assert_int_eq(errno, EISDIR);
    ck_assert_int_eq(aifs_stat(fs, "/d/moved/x", &st), -1);
    ck_assert_int_eq(errno, ENOTDIR);
}
END_TEST

START_TEST(attributes_and_extended_attributes)
{
    struct timespec times[2] = {{.tv_sec = 1000000000, .tv_nsec = 5},
                                {.tv_sec = 1100000000, .tv_nsec = 7}};
    struct statvfs vfs;
    char value[32];
    struct stat st;

    write_file("/a", 3000);
    ck_assert_int_eq(aifs_chmod(fs, "/a", 0604), 0);
    ck_assert_int_eq(aifs_utimens(fs, "/a", times), 0);
    ck_assert_int_eq(aifs_truncate(fs, "/a", 100), 0);
    ck_assert_int_eq(aifs_utimens(fs, "/a", times), 0);
    ck_assert_int_eq(aifs_stat(fs, "/a", &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0604);
    ck_assert_int_eq(st.st_mtim.tv_sec, 1100000000);
    ck_assert_int_eq(st.st_mtim.tv_nsec, 7);
    ck_assert_int_eq(st.st_size, 100);
    ck_assert_int_eq(aifs_setxattr(fs, "/a", "user.colour", "blue", 4, 0), 0);
    ck_assert_int_eq(aifs_getxattr(fs, "/a", "user.colour", NULL, 0), 4);
    ck_assert_int_eq(aifs_getxattr(fs, "/a", "user.colour", value, sizeof value), 4);
    ck_assert_int_eq(memcmp(value, "blue", 4), 0);
    ck_assert_int_eq(aifs_listxattr(fs, "/a", value, sizeof value), 12);
    ck_assert_int_eq(aifs_removexattr(fs, "/a", "user.colour"), 0);
    ck_assert_int_eq(aifs_getxattr(fs, "/a", "user.colour", value, sizeof value), -1);
    ck_assert_int_eq(errno, ENODATA);
    ck_assert_int_eq(aifs_statvfs(fs, &vfs), 0);
    ck_assert_uint_gt(vfs.f_blocks, 0);
}
END_TEST

START_TEST(a_time_set_on_an_open_file_survives_its_close)
{
    struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1100000000}};
    struct aifs_file *f = aifs_open(fs, "/t", O_RDWR | O_CREAT, 0644);
    struct stat st;

    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(aifs_pwrite(f, data, 3000, 0), 3000);
    ck_assert_int_eq(aifs_utimens(fs, "/t", times), 0);
    ck_assert_int_eq(aifs_close(f), 0);
    ck_assert_int_eq(aifs_stat(fs, "/t", &st), 0);
    ck_assert_int_eq(st.st_mtim.tv_sec, 1100000000);
    ck_assert_int_eq(st.st_size, 3000);
}
END_TEST

START_TEST(a_directory_of_three_thousand_is_listed_once_each)
{
    static unsigned char seen[3000];
    const struct aifs_dirent *e;
    struct aifs_dir *d;
    unsigned k, dots = 0, n = 0;
    char path[64];

    ck_assert_int_eq(aifs_mkdir(fs, "/many", 0755), 0);
    for (k = 0; k < 3000; k++) {
        snprintf(path, sizeof path, "/many/name-%u", k);
        struct aifs_file *f = aifs_open(fs, path, O_WRONLY | O_CREAT | O_EXCL, 0600);
        ck_assert_msg(f != NULL, "%s", strerror(errno));
        ck_assert_int_eq(aifs_close(f), 0);
    }
    d = aifs_opendir(fs, "/many");
    ck_assert_ptr_nonnull(d);
    while ((e = aifs_readdir(d)) != NULL) {
        if (e->name[0] == '.') {
            dots++;
            continue;
        }
        ck_assert_int_eq(sscanf(e->name, "name-%u", &k), 1);
        ck_assert(e->type == DT_REG && e->has_stat && S_ISREG(e->st.st_mode));
        ck_assert_uint_eq(seen[k]++, 0);
        n++;
    }
    ck_assert_int_eq(aifs_closedir(d), 0);
    ck_assert_uint_eq(n, 3000);
    ck_assert_uint_eq(dots, 2);
}
END_TEST

#define THREADS 6

static void *worker(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg, k;
    uint8_t *mine = malloc(300000);
    char path[64];

    for (k = 0; k < 30; k++) {
        size_t len = 1000 + (size_t)k * 9000;
        struct aifs_file *f;

        snprintf(path, sizeof path, "/w%u-%u", me, k);
        f = aifs_open(fs, path, O_RDWR | O_CREAT | O_EXCL, 0644);
        ck_assert_ptr_nonnull(f);
        ck_assert_int_eq(aifs_pwrite(f, data + me, len, 0), (ssize_t)len);
        ck_assert_int_eq(aifs_close(f), 0);
        f = aifs_open(fs, path, O_RDONLY, 0);
        ck_assert_ptr_nonnull(f);
        ck_assert_int_eq(aifs_pread(f, mine, 300000, 0), (ssize_t)len);
        ck_assert_int_eq(memcmp(mine, data + me, len), 0);
        ck_assert_int_eq(aifs_close(f), 0);
        if (k % 3 == 0)
            ck_assert_int_eq(aifs_unlink(fs, path), 0);
    }
    free(mine);
    return NULL;
}

START_TEST(many_threads_share_a_mount)
{
    pthread_t t[THREADS];
    unsigned k;

    for (k = 0; k < THREADS; k++)
        ck_assert_int_eq(pthread_create(&t[k], NULL, worker, (void *)(uintptr_t)k), 0);
    for (k = 0; k < THREADS; k++)
        ck_assert_int_eq(pthread_join(t[k], NULL), 0);
}
END_TEST

START_TEST(a_batch_of_reads_and_writes_runs_at_once)
{
    struct aifs_queue *q = aifs_queue_create(fs);
    struct aifs_file *f = aifs_open(fs, "/batch", O_RDWR | O_CREAT, 0644);
    struct aifs_io io[64], *list[64], *done[64];
    unsigned k, round, n;

    ck_assert(q && f);
    for (round = 0; round < 2; round++) {
        for (k = 0; k < 64; k++) {
            io[k] = (struct aifs_io){.file = f,
                                     .op = round ? AIFS_READ : AIFS_WRITE,
                                     .buf = (round ? back : data) + k * 200000,
                                     .len = k % 2 ? 200000 : 100000,
                                     .offset = k * 200000,
                                     .user = &io[k]};
            list[k] = &io[k];
        }
        ck_assert_int_eq(aifs_submit(q, list, 64), 0);
        ck_assert_int_eq(aifs_queue_destroy(q), -1);
        for (n = 0; n < 64;) {
            int got = aifs_wait(q, done, 1, 64, 10000);

            ck_assert_int_gt(got, 0);
            for (k = 0; k < (unsigned)got; k++) {
                ck_assert_ptr_eq(done[k]->user, done[k]);
                ck_assert_int_eq(done[k]->result, (ssize_t)done[k]->len);
            }
            n += (unsigned)got;
        }
    }
    for (k = 0; k < 64; k++)
        ck_assert_int_eq(memcmp(back + k * 200000, data + k * 200000, io[k].len), 0);
    ck_assert_int_eq(aifs_wait(q, done, 1, 1, 0), 0);
    ck_assert_int_eq(aifs_queue_destroy(q), 0);
    ck_assert_int_eq(aifs_close(f), 0);
}
END_TEST

static void *locker(void *arg)
{
    struct aifs_file *f = aifs_open(fs, "/locked", O_RDWR, 0);
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 8};

    (void)arg;
    ck_assert_ptr_nonnull(f);
    for (unsigned i = 0; i < 30; i++) {
        uint64_t n;

        ck_assert_int_eq(i % 2 ? aifs_lock(f, F_SETLKW, &l) : aifs_flock(f, LOCK_EX), 0);
        if (i % 2 == 0)
            ck_assert_int_eq(aifs_lock(f, F_SETLKW, &l), 0);
        ck_assert_int_eq(aifs_pread(f, &n, sizeof n, 0), sizeof n);
        n++;
        ck_assert_int_eq(aifs_pwrite(f, &n, sizeof n, 0), sizeof n);
        l.l_type = F_UNLCK;
        ck_assert_int_eq(aifs_lock(f, F_SETLK, &l), 0);
        l.l_type = F_WRLCK;
        ck_assert_int_eq(aifs_flock(f, LOCK_UN), 0);
    }
    ck_assert_int_eq(aifs_close(f), 0);
    return NULL;
}

START_TEST(open_files_lock_each_other_out)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 4, .l_len = -4};
    struct aifs_file *f, *g;
    pthread_t threads[4];
    uint64_t n = 0;

    f = aifs_open(fs, "/locked", O_RDWR | O_CREAT, 0644);
    g = aifs_open(fs, "/locked", O_RDWR, 0);
    ck_assert_int_eq(aifs_pwrite(f, &n, sizeof n, 0), sizeof n);
    ck_assert_int_eq(aifs_flock(f, LOCK_SH), 0);
    ck_assert_int_eq(aifs_flock(g, LOCK_SH | LOCK_NB), 0);
    ck_assert_int_eq(aifs_flock(g, LOCK_EX | LOCK_NB), -1);
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_int_eq(aifs_lock(f, F_SETLK, &l), 0);
    l = (struct flock){.l_type = F_RDLCK, .l_whence = SEEK_SET};
    ck_assert_int_eq(aifs_lock(g, F_GETLK, &l), 0);
    ck_assert_int_eq(l.l_type, F_WRLCK);
    ck_assert_int_eq(l.l_start, 0);
    ck_assert_int_eq(l.l_len, 4);
    ck_assert_int_eq(l.l_pid, getpid());
    ck_assert_int_eq(aifs_flock(g, 77), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(aifs_close(f), 0);
    l.l_type = F_WRLCK;
    ck_assert_int_eq(aifs_lock(g, F_SETLKW, &l), 0);
    ck_assert_int_eq(aifs_close(g), 0);
    for (unsigned k = 0; k < ARRAY_LEN(threads); k++)
        ck_assert_int_eq(pthread_create(&threads[k], NULL, locker, NULL), 0);
    for (unsigned k = 0; k < ARRAY_LEN(threads); k++)
        pthread_join(threads[k], NULL);
    f = aifs_open(fs, "/locked", O_RDONLY, 0);
    ck_assert_int_eq(aifs_pread(f, &n, sizeof n, 0), sizeof n);
    ck_assert_uint_eq(n, 30 * ARRAY_LEN(threads));
    l.l_type = F_WRLCK;
    ck_assert_int_eq(aifs_lock(f, F_SETLK, &l), -1);
    ck_assert_int_eq(errno, EBADF);
    ck_assert_int_eq(aifs_close(f), 0);
}
END_TEST

START_TEST(data_that_was_synced_survives_the_kill_of_every_daemon)
{
    struct aifs_file *f;
    unsigned k;

    write_file("/big", ROOM);
    write_file("/small", 9000);
    for (k = 0; k < 3; k++) {
        cluster_kill_oss(&cluster, k, SIGKILL);
        cluster_start_oss(&cluster, k);
    }
    check_file("/big", ROOM);
    f = aifs_open(fs, "/open", O_RDWR | O_CREAT, 0644);
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(aifs_pwrite(f, data, 3 * MIB, 0), 3 * MIB);
    cluster_kill_mds(&cluster, SIGKILL);
    cluster_start_mds(&cluster);
    ck_assert_int_eq(aifs_pwrite(f, data + 3 * MIB, 3 * MIB, 3 * MIB), 3 * MIB);
    ck_assert_int_eq(aifs_fsync(f), 0);
    ck_assert_int_eq(aifs_close(f), 0);
    check_file("/open", 6 * MIB);
    check_file("/small", 9000);
}
END_TEST

START_TEST(writes_go_on_over_the_kill_of_a_data_server)
{
    struct aifs_file *f = aifs_open(fs, "/over", O_RDWR | O_CREAT, 0644);
    unsigned k;

    ck_assert_ptr_nonnull(f);
    for (k = 0; k < 6; k++) {
        ck_assert_int_eq(aifs_pwrite(f, data + k * 4 * MIB, 4 * MIB, (off_t)k * 4 * MIB), 4 * MIB);
        if (k % 2 == 0) {
            cluster_kill_oss(&cluster, k / 2, SIGKILL);
            cluster_start_oss(&cluster, k / 2);
        }
    }
    ck_assert_int_eq(aifs_fsync(f), 0);
    ck_assert_int_eq(aifs_close(f), 0);
    check_file("/over", ROOM);
}
END_TEST

START_TEST(two_mounts_see_each_others_writes)
{
    struct aifs_file *f = aifs_open(fs, "/s", O_RDWR | O_CREAT, 0644), *g;
    struct aifs *other;

    ck_assert_int_eq(aifs_mount(cluster.source, cluster.options, &other), 0);
    ck_assert_int_eq(aifs_pwrite(f, data, 3 * MIB, 0), 3 * MIB);
    g = aifs_open(other, "/s", O_RDWR, 0);
    ck_assert_ptr_nonnull(g);
    ck_assert_int_eq(aifs_pread(g, back, 3 * MIB, 0), 3 * MIB);
    ck_assert_int_eq(memcmp(back, data, 3 * MIB), 0);
    ck_assert_int_eq(aifs_pwrite(g, data + MIB, 5000, 100), 5000);
    ck_assert_int_eq(aifs_pread(f, back, 5000, 100), 5000);
    ck_assert_int_eq(memcmp(back, data + MIB, 5000), 0);
    ck_assert_int_eq(aifs_close(f), 0);
    ck_assert_int_eq(aifs_close(g), 0);
    ck_assert_int_eq(aifs_unmount(other), 0);
}
END_TEST

static struct aifs *mount_with(const char *more)
{
    char options[PATH_MAX + 128];
    struct aifs *other;

    snprintf(options, sizeof options, "%s,%s", cluster.options, more);
    ck_assert_msg(aifs_mount(cluster.source, options, &other) == 0, "%s", aifs_mount_error());
    return other;
}

#define LEFT 100000

static struct aifs *mount_with_a_file(const char *options)
{
    struct aifs *other = mount_with(options);
    struct aifs_file *f = aifs_open(other, "/left", O_RDWR | O_CREAT, 0644);

    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(aifs_pwrite(f, data, LEFT, 0), LEFT);
    ck_assert_int_eq(aifs_close(f), 0);
    return other;
}

START_TEST(unmounting_does_not_wait_for_ever_for_a_server_that_is_away)
{
    struct aifs *other = mount_with_a_file("umount_timeout=300ms");

    cluster_kill_mds(&cluster, SIGKILL);
    ck_assert_int_eq(aifs_unmount(other), 0); /* all that was written is with the others */
    cluster_start_mds(&cluster);
}
END_TEST

static void *unmount(void *arg)
{
    ck_assert_int_eq(aifs_unmount(arg), 0);
    return NULL;
}

START_TEST(unmounting_waits_for_servers_that_come_back)
{
    struct aifs *other = mount_with_a_file("umount_timeout=60s");
    pthread_t thread;

    cluster_kill_mds(&cluster, SIGKILL);
    for (unsigned k = 0; k < 3; k++)
        cluster_kill_oss(&cluster, k, SIGKILL);
    ck_assert_int_eq(pthread_create(&thread, NULL, unmount, other), 0);
    for (unsigned k = 0; k < 3; k++)
        cluster_start_oss(&cluster, k);
    cluster_start_mds(&cluster);
    pthread_join(thread, NULL);
    check_file("/left", LEFT);
}
END_TEST

START_TEST(wrong_input_says_what_is_wrong)
{
    struct aifs *none;
    char options[PATH_MAX + 64];

    ck_assert_int_eq(aifs_mount("nowhere", NULL, &none), -1);
    ck_assert_ptr_nonnull(strstr(aifs_mount_error(), "expected host"));
    ck_assert_int_eq(aifs_mount("h:/", "colour=blue", &none), -1);
    ck_assert_ptr_nonnull(strstr(aifs_mount_error(), "colour"));
    ck_assert_int_eq(aifs_mount("h:/", "key_file=/proc/none", &none), -1);
    ck_assert_ptr_nonnull(strstr(aifs_mount_error(), "/proc/none"));
    ck_assert_int_eq(aifs_mount("no..host:/", cluster.options, &none), -1);
    ck_assert_int_eq(errno, EHOSTUNREACH); /* and not when it has waited for long */
    snprintf(options, sizeof options, "key_file=%s,mount_timeout=300ms", cluster.key);
    ck_assert_int_eq(aifs_mount("127.0.0.1:1:/", options, &none), -1);
    ck_assert_int_eq(errno, ETIMEDOUT);
    snprintf(options, sizeof options, "127.0.0.1:%u:/no/such", cluster.mds_port);
    ck_assert_int_eq(aifs_mount(options, cluster.options, &none), -1);
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

CLUSTER_SUITE_MAIN("libaifs", setup, teardown, advice_changes_no_bytes_and_nonsense_is_refused,
                   files_of_all_sizes_come_back_as_they_were, ranges_behave_like_posix,
                   names_behave_like_posix, attributes_and_extended_attributes,
                   a_time_set_on_an_open_file_survives_its_close,
                   a_directory_of_three_thousand_is_listed_once_each, many_threads_share_a_mount,
                   a_batch_of_reads_and_writes_runs_at_once, open_files_lock_each_other_out,
                   data_that_was_synced_survives_the_kill_of_every_daemon,
                   writes_go_on_over_the_kill_of_a_data_server, two_mounts_see_each_others_writes,
                   unmounting_does_not_wait_for_ever_for_a_server_that_is_away,
                   unmounting_waits_for_servers_that_come_back, wrong_input_says_what_is_wrong)
