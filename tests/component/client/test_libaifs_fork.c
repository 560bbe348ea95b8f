/* SPDX-License-Identifier: Apache-2.0 */
/* libaifs in children of fork(2), as data loaders use it: mounted and opened by the parent, read by
 * many workers while the parent goes on. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/lib/aifs.h"
#include "common/base/compiler.h"
#include "tests/support/cluster.h"

#define ROOM     (6u * MIB)
#define CHILDREN 12u
#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "child: line %d: %s (%s)\n", __LINE__, #x, strerror(errno));           \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* What the parent's threads had on their stacks is a leak in the child to who looks for leaks. */
#ifdef __SANITIZE_ADDRESS__
#define LEAVE _exit
#else
#define LEAVE exit
#endif

static struct cluster cluster;
static struct aifs *fs;
static uint8_t *data, *back;

static void setup(void)
{
    memset(&cluster, 0, sizeof cluster);
    ck_assert(cluster_start(&cluster, 2));
    ck_assert_msg(aifs_mount(cluster.source, cluster.options, &fs) == 0, "%s", aifs_mount_error());
    data = malloc(ROOM);
    back = malloc(ROOM);
    for (size_t k = 0; k < ROOM; k++)
        data[k] = (uint8_t)(k * 2654435761u >> 9 ^ k);
}

static void teardown(void)
{
    ck_assert_int_eq(aifs_unmount(fs), 0);
    free(data);
    free(back);
    cluster_stop(&cluster);
}

static struct aifs_file *make(const char *path, size_t len)
{
    struct aifs_file *f = aifs_open(fs, path, O_RDWR | O_CREAT, 0644);

    ck_assert_msg(f != NULL, "%s: %s", path, strerror(errno));
    ck_assert_int_eq(aifs_pwrite(f, data, len, 0), (ssize_t)len);
    return f;
}

static void join(pid_t pid)
{
    int status;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

static void same(struct aifs_file *f, size_t len, off_t at)
{
    CHECK(aifs_pread(f, back, len, at) == (ssize_t)len);
    CHECK(memcmp(back, data + at, len) == 0);
}

static void *read_on(void *arg)
{
    struct aifs_file *f = arg;
    static uint8_t mine[100000];
    unsigned k;

    for (k = 0; k < 400; k++)
        if (aifs_pread(f, mine, sizeof mine, k * 1000) != (ssize_t)sizeof mine ||
            memcmp(mine, data + k * 1000, sizeof mine) != 0)
            return (void *)"wrong";
    return NULL;
}

/* A program's thread may be inside malloc() when another forks. The C library sees to that; the
 * sanitizer's allocator (GCC 12) does not, and leaves its lock to the child for ever. */
#ifdef __SANITIZE_ADDRESS__
#define MAY_FORK_BESIDE_MALLOC false
#else
#define MAY_FORK_BESIDE_MALLOC true
#endif

START_TEST(many_children_go_on_reading_while_the_parent_does)
{
    struct aifs_file *f = make("/shard", ROOM);
    pid_t pids[CHILDREN];
    pthread_t reader;
    void *wrong = NULL;
    unsigned k;

    if (MAY_FORK_BESIDE_MALLOC)
        ck_assert_int_eq(pthread_create(&reader, NULL, read_on, f), 0);
    for (k = 0; k < CHILDREN; k++) {
        pids[k] = fork();
        if (pids[k] == 0) {
            struct stat st;

            same(f, MIB, k * 300000);
            same(f, ROOM, 0);
            CHECK(aifs_stat(fs, "/shard", &st) == 0 && st.st_size == (off_t)ROOM);
            if (k % 2) { /* the others just end, as workers do */
                CHECK(aifs_close(f) == 0);
                CHECK(aifs_unmount(fs) == 0);
            }
            _exit(0);
        }
    }
    for (k = 0; k < CHILDREN; k++)
        join(pids[k]);
    if (MAY_FORK_BESIDE_MALLOC)
        ck_assert_int_eq(pthread_join(reader, &wrong), 0);
    ck_assert_ptr_null(wrong);
    ck_assert_int_eq(aifs_pread(f, back, ROOM, 0), (ssize_t)ROOM);
    ck_assert_int_eq(memcmp(back, data, ROOM), 0);
    ck_assert_int_eq(aifs_close(f), 0);
}
END_TEST

START_TEST(a_child_that_uses_nothing_leaves_everything_alone)
{
    struct aifs_file *f = make("/f", MIB);
    struct aifs_queue *q = aifs_queue_create(fs);
    pid_t pid = fork();

    if (pid == 0) {
        CHECK(aifs_queue_destroy(q) == 0);
        CHECK(aifs_close(f) == 0);
        CHECK(aifs_unmount(fs) == 0);
        LEAVE(0);
    }
    join(pid);
    ck_assert_int_eq(aifs_pread(f, back, MIB, 0), (ssize_t)MIB);
    ck_assert_int_eq(aifs_queue_destroy(q), 0);
    ck_assert_int_eq(aifs_close(f), 0);
}
END_TEST

START_TEST(what_a_child_writes_the_parent_reads_and_the_other_way_round)
{
    struct aifs_file *f = make("/both", MIB); /* dirty in the parent */
    int go[2];
    pid_t pid;
    char c;

    ck_assert_int_eq(pipe(go), 0);
    pid = fork();
    if (pid == 0) {
        same(f, MIB, 0);
        CHECK(aifs_pwrite(f, data + MIB, MIB, MIB) == (ssize_t)MIB);
        CHECK(aifs_fsync(f) == 0 && aifs_close(f) == 0);
        CHECK(write(go[1], "x", 1) == 1);
        _exit(aifs_unmount(fs) != 0);
    }
    ck_assert_int_eq(read(go[0], &c, 1), 1);
    ck_assert_int_eq(aifs_pread(f, back, 2 * MIB, 0), (ssize_t)(2 * MIB));
    ck_assert_int_eq(memcmp(back, data, 2 * MIB), 0);
    join(pid);
    ck_assert_int_eq(aifs_close(f), 0);
}
END_TEST

START_TEST(a_child_of_a_child_and_a_queue_of_the_parent_work_too)
{
    struct aifs_file *f = make("/deep", MIB);
    struct aifs_queue *q = aifs_queue_create(fs);
    int fd = aifs_queue_fd(q), status;
    pid_t pid;

    ck_assert_int_ge(fd, 0);
    pid = fork();
    if (pid == 0) {
        same(f, 5000, 0);
        pid = fork();
        if (pid == 0) {
            struct aifs_io io = {.file = f, .op = AIFS_READ, .buf = back, .len = MIB, .user = data};
            struct aifs_io *list = &io, *done;
            struct pollfd p = {.fd = fd, .events = POLLIN};

            CHECK(aifs_submit(q, &list, 1) == 0);
            CHECK(poll(&p, 1, -1) == 1);
            CHECK(aifs_wait(q, &done, 1, 1, 0) == 1 && done == &io);
            CHECK(io.result == (ssize_t)MIB && memcmp(back, data, MIB) == 0);
            CHECK(poll(&p, 1, 0) == 0);
            _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        same(f, 5000, 100);
        _exit(0);
    }
    join(pid);
    ck_assert_int_eq(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0), 0);
    ck_assert_int_eq(aifs_queue_destroy(q), 0);
    ck_assert_int_eq(aifs_close(f), 0);
}
END_TEST

START_TEST(a_child_without_a_descriptor_to_spare_never_uses_the_parents)
{
    struct aifs_file *f = make("/f", MIB);
    struct aifs_queue *q = aifs_queue_create(fs);
    int fd = aifs_queue_fd(q);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    pid_t pid;

    ck_assert_int_ge(fd, 0);
    pid = fork();
    if (pid == 0) {
        struct aifs_io io = {.file = f, .op = AIFS_READ, .buf = back, .len = MIB};
        struct aifs_io *list = &io, *done;
        struct rlimit limit, none;

        same(f, MIB, 0); /* the mount is ours already: only the queue is not */
        CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
        none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
        CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
        for (unsigned k = 0; k < 2; k++) { /* the second time as the first */
            CHECK(aifs_submit(q, &list, 1) == -1 && errno == EMFILE);
            CHECK(aifs_queue_fd(q) == -1 && errno == EMFILE);
        }
        CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
        CHECK(aifs_submit(q, &list, 1) == 0);
        CHECK(aifs_wait(q, &done, 1, 1, -1) == 1 && io.result == (ssize_t)MIB);
        CHECK(aifs_submit(q, &list, 1) == 0); /* and leaves it readable */
        CHECK(poll(&p, 1, -1) == 1);
        _exit(0);
    }
    join(pid);
    ck_assert_int_eq(poll(&p, 1, 0), 0);
    ck_assert_int_eq(aifs_queue_destroy(q), 0);
    ck_assert_int_eq(aifs_close(f), 0);
}
END_TEST

/* Which of the process' descriptors are sockets. */
static unsigned sockets(void)
{
    char path[32], what[64];
    unsigned n = 0;
    int fd;

    for (fd = 3; fd < 256; fd++) {
        ssize_t len;

        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        len = readlink(path, what, sizeof what - 1);
        n += len > 7 && memcmp(what, "socket:", 7) == 0;
    }
    return n;
}

START_TEST(a_child_has_none_of_the_parents_sockets)
{
    struct aifs_file *f = make("/f", ROOM);
    unsigned before = sockets();
    pid_t pid;

    ck_assert_uint_gt(before, 2); /* the MDS and two OSS */
    pid = fork();
    if (pid == 0)
        _exit(sockets() != 0);
    join(pid);
    ck_assert_uint_eq(sockets(), before);
    ck_assert_int_eq(aifs_close(f), 0);
}
END_TEST

/* Of reactors: what they wait with, and their sockets. */
static unsigned of_reactors(void)
{
    char path[32], what[64];
    unsigned n = sockets();

    for (int fd = 3; fd < 256; fd++) {
        ssize_t len;

        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        len = readlink(path, what, sizeof what - 1);
        what[len > 0 ? len : 0] = 0;
        n += strcmp(what, "anon_inode:[eventpoll]") == 0 ||
             strcmp(what, "anon_inode:[eventfd]") == 0;
    }
    return n;
}

static atomic_bool enough;

static void *mount_again_and_again(void *arg)
{
    char options[sizeof cluster.options + 16];
    struct aifs *other;

    snprintf(options, sizeof options, "%s,net=tcp", cluster.options);
    while (!atomic_load(&enough)) {
        if (aifs_mount(cluster.source, options, &other) || aifs_unmount(other))
            return (void *)"a mount failed";
    }
    return arg;
}

START_TEST(a_fork_beside_a_mount_that_begins_or_ends_leaves_nothing_of_it_in_the_child)
{
    pthread_t thread;
    void *wrong = NULL;
    unsigned had;
    int status;
    pid_t pid;

    if (!MAY_FORK_BESIDE_MALLOC)
        return;
    pid = fork();
    if (pid == 0)
        _exit((int)of_reactors());
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    had = (unsigned)WEXITSTATUS(status);
    atomic_store(&enough, false);
    ck_assert_int_eq(pthread_create(&thread, NULL, mount_again_and_again, NULL), 0);
    for (unsigned k = 0; k < 60; k++) {
        pid = fork();
        if (pid == 0)
            _exit(of_reactors() != had);
        join(pid);
    }
    atomic_store(&enough, true);
    ck_assert_int_eq(pthread_join(thread, &wrong), 0);
    ck_assert_ptr_null(wrong);
}
END_TEST

static void *use_it(void *arg)
{
    struct stat st;

    return aifs_stat(fs, "/f", &st) == 0 && st.st_size == 1000 ? NULL : arg;
}

START_TEST(a_child_whose_threads_all_begin_at_once_has_one_mount_for_them)
{
    ck_assert_int_eq(aifs_close(make("/f", 1000)), 0);
    for (unsigned k = 0; k < 5; k++) {
        pid_t pid = fork();

        if (pid == 0) {
            pthread_t threads[4];
            void *wrong;

            for (unsigned t = 0; t < ARRAY_LEN(threads); t++)
                CHECK(pthread_create(&threads[t], NULL, use_it, "wrong") == 0);
            for (unsigned t = 0; t < ARRAY_LEN(threads); t++)
                CHECK(pthread_join(threads[t], &wrong) == 0 && !wrong);
            _exit(0);
        }
        join(pid);
    }
}
END_TEST

/* A lock that the thread had would be nobody's in the grandchild, who would wait for ever. */
static void *look_and_end(void *arg)
{
    struct stat st;

    pthread_cancel(pthread_self());
    (void)aifs_stat(fs, "/looked", &st);
    (void)aifs_queue_fd(arg);
    pthread_testcancel();
    return NULL;
}

START_TEST(a_thread_that_is_cancelled_while_it_mounts_again_keeps_nobody_waiting)
{
    struct aifs_file *f = make("/looked", 1000);
    struct aifs_queue *q = aifs_queue_create(fs);
    int fd = aifs_queue_fd(q);
    pid_t pid = fork();

    if (pid == 0) {
        pthread_t thread;

        alarm(20);
        CHECK(pthread_create(&thread, NULL, look_and_end, q) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(aifs_queue_fd(q) == fd);
        same(f, 1000, 0);
        _exit(0);
    }
    join(pid);
    ck_assert_int_eq(aifs_close(f), 0);
    ck_assert_int_eq(aifs_queue_destroy(q), 0);
}
END_TEST

START_TEST(a_child_that_forks_while_its_thread_begins_has_children_that_can)
{
    if (!MAY_FORK_BESIDE_MALLOC)
        return;
    ck_assert_int_eq(aifs_close(make("/f", 1000)), 0);
    for (unsigned k = 0; k < 5; k++) {
        pid_t pid = fork();

        if (pid == 0) {
            pid_t pids[3];
            pthread_t thread;
            int status;

            CHECK(pthread_create(&thread, NULL, use_it, "wrong") == 0);
            for (unsigned n = 0; n < ARRAY_LEN(pids); n++) {
                pids[n] = fork();
                if (pids[n] == 0) {
                    alarm(50);
                    _exit(use_it("wrong") != NULL);
                }
            }
            for (unsigned n = 0; n < ARRAY_LEN(pids); n++)
                CHECK(waitpid(pids[n], &status, 0) == pids[n] && status == 0);
            _exit(0);
        }
        join(pid);
    }
}
END_TEST

START_TEST(a_child_whose_mount_does_not_work_tries_again)
{
    char options[sizeof cluster.options + 32];
    struct aifs *was = fs;
    pid_t pid;

    ck_assert_int_eq(aifs_close(make("/f", 1000)), 0);
    snprintf(options, sizeof options, "%s,mount_timeout=500ms", cluster.options);
    while (aifs_mount(cluster.source, options, &fs)) /* on a machine that is busy */
        ck_assert_int_eq(errno, ETIMEDOUT);
    ck_assert_int_eq(kill(cluster.mds, SIGSTOP), 0);
    pid = fork();
    if (pid == 0) {
        struct stat st;

        for (unsigned k = 0; k < 3; k++)
            CHECK(aifs_stat(fs, "/f", &st) == -1 && errno == ENOTCONN);
        CHECK(kill(cluster.mds, SIGCONT) == 0);
        while (aifs_stat(fs, "/f", &st))
            CHECK(errno == ENOTCONN);
        CHECK(st.st_size == 1000);
        _exit(aifs_unmount(fs) != 0);
    }
    join(pid);
    ck_assert_int_eq(aifs_unmount(fs), 0);
    fs = was;
}
END_TEST

START_TEST(a_file_that_is_gone_is_an_error_in_the_child)
{
    struct aifs_file *f = make("/gone", 1000);
    int go[2];
    pid_t pid;
    char c;

    ck_assert_int_eq(pipe(go), 0);
    pid = fork();
    if (pid == 0) {
        CHECK(read(go[0], &c, 1) == 1);
        CHECK(aifs_pread(f, back, 10, 0) == -1);
        _exit(0);
    }
    ck_assert_int_eq(aifs_close(f), 0);
    ck_assert_int_eq(aifs_unlink(fs, "/gone"), 0);
    ck_assert_int_eq(write(go[1], "x", 1), 1);
    join(pid);
}
END_TEST

/* The child's writes are stored, and it dies before it has told anybody how long the file is. */
START_TEST(the_size_of_a_file_whose_writer_was_killed_is_told_as_it_stays)
{
    struct aifs_file *f;
    struct stat st, later;
    int written[2];
    pid_t pid;
    char c;

    ck_assert_int_eq(pipe(written), 0);
    pid = fork();
    if (pid == 0) {
        struct aifs *other;

        CHECK(aifs_mount(cluster.source, cluster.options, &other) == 0);
        f = aifs_open(other, "/killed", O_RDWR | O_CREAT, 0644);
        CHECK(f && aifs_pwrite(f, data, ROOM, 0) == (ssize_t)ROOM);
        CHECK(write(written[1], "x", 1) == 1);
        pause();
        _exit(1);
    }
    close(written[1]);
    ck_assert_int_eq(read(written[0], &c, 1), 1);
    close(written[0]);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_int_eq(aifs_stat(fs, "/killed", &st), 0);
    f = aifs_open(fs, "/killed", O_RDONLY, 0); /* when what it held is free */
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(aifs_fstat(f, &later), 0);
    ck_assert_int_eq(st.st_size, later.st_size);
    ck_assert_int_eq(aifs_close(f), 0);
}
END_TEST

START_TEST(buffers_are_used_again_and_bounded_and_on_the_host)
{
    struct aifs_buffer *b = aifs_buffer_get(fs, MIB + 1, AIFS_MEMORY_HOST), *again;
    struct aifs_io io = {.op = AIFS_READ, .len = 1, .memory = AIFS_MEMORY_CUDA};
    struct aifs_io *list = &io;
    struct aifs_queue *q = aifs_queue_create(fs);
    void *at;

    ck_assert_ptr_nonnull(b);
    at = aifs_buffer_data(b);
    ck_assert_uint_eq((uintptr_t)at % 4096, 0);
    memset(at, 1, MIB + 1);
    aifs_buffer_put(b);
    again = aifs_buffer_get(fs, 2 * MIB, AIFS_MEMORY_HOST);
    ck_assert_ptr_eq(aifs_buffer_data(again), at);
    aifs_buffer_put(again);
    ck_assert_ptr_null(aifs_buffer_get(fs, (size_t)2 << 30, AIFS_MEMORY_HOST));
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_ptr_null(aifs_buffer_get(fs, 4096, AIFS_MEMORY_CUDA));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    io.file = make("/f", 1);
    ck_assert_int_eq(aifs_submit(q, &list, 1), -1);
    ck_assert_int_eq(errno, EOPNOTSUPP);
    ck_assert_int_eq(aifs_close(io.file), 0);
    ck_assert_int_eq(aifs_queue_destroy(q), 0);
}
END_TEST

/* What the parent kept for later is nobody's there. */
START_TEST(a_child_may_have_as_much_memory_for_buffers_as_its_parent)
{
    size_t bytes = 4096;
    struct aifs_buffer *b;
    pid_t pid;

    while ((b = aifs_buffer_get(fs, 2 * bytes, AIFS_MEMORY_HOST)) != NULL) {
        aifs_buffer_put(b);
        bytes *= 2;
    }
    b = aifs_buffer_get(fs, bytes, AIFS_MEMORY_HOST); /* the largest there can be */
    ck_assert_ptr_nonnull(b);
    aifs_buffer_put(b);
    pid = fork();
    if (pid == 0) {
        b = aifs_buffer_get(fs, bytes, AIFS_MEMORY_HOST);
        CHECK(b);
        aifs_buffer_put(b);
        LEAVE(0);
    }
    join(pid);
}
END_TEST

CLUSTER_SUITE_MAIN("libaifs-fork", setup, teardown,
                   many_children_go_on_reading_while_the_parent_does,
                   a_child_that_uses_nothing_leaves_everything_alone,
                   what_a_child_writes_the_parent_reads_and_the_other_way_round,
                   a_child_of_a_child_and_a_queue_of_the_parent_work_too,
                   a_child_without_a_descriptor_to_spare_never_uses_the_parents,
                   a_child_has_none_of_the_parents_sockets,
                   a_fork_beside_a_mount_that_begins_or_ends_leaves_nothing_of_it_in_the_child,
                   a_child_whose_threads_all_begin_at_once_has_one_mount_for_them,
                   a_thread_that_is_cancelled_while_it_mounts_again_keeps_nobody_waiting,
                   a_child_that_forks_while_its_thread_begins_has_children_that_can,
                   a_child_whose_mount_does_not_work_tries_again,
                   a_file_that_is_gone_is_an_error_in_the_child,
                   the_size_of_a_file_whose_writer_was_killed_is_told_as_it_stays,
                   buffers_are_used_again_and_bounded_and_on_the_host,
                   a_child_may_have_as_much_memory_for_buffers_as_its_parent)
