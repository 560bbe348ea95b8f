/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libaifs_preload.so's functions in front of a libaifs that is made here: files on a local disk say
 * by an attribute that they are on a mount of aifs. What is served has another letter in it than
 * what the kernel reads, and what happens meanwhile is the test's.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/compiler.h"
#include "tests/support/suite.h"
#include "tests/support/tmp.h"

#define PIECES    8u
#define ATTRIBUTE "user.aifs.mount"

struct fake { /* a mount, and a file on it */
    char letter;
    int poller, event;
};

static struct tmp tmp;
static char path[PATH_MAX];
static unsigned mounted, unmounted;
static int poller, event; /* descriptors of the latest mount */
static sem_t go, gone;
static bool server_is_away;
static uint8_t *buf, *buf2;
static void (*in_mount)(void);
static void (*in_pread)(void);    /* once */
static _Atomic unsigned failures; /* so many reads are not served */

/* ---- libaifs ---- */

static void *be_a_thread(void *arg)
{
    (void)arg;
    event = eventfd(0, EFD_CLOEXEC);
    return NULL;
}

/* As libaifs, it has descriptors, some of them made by a thread of its own. */
static void fake_begin(void)
{
    struct epoll_event e = {.events = EPOLLIN};
    pthread_t t;

    poller = epoll_create1(EPOLL_CLOEXEC);
    ck_assert_int_eq(pthread_create(&t, NULL, be_a_thread, NULL), 0);
    pthread_join(t, NULL);
    ck_assert_int_eq(epoll_ctl(poller, EPOLL_CTL_ADD, event, &e), 0);
}

static int fake_mount(const char *source, const char *options, struct fake **ret_fs)
{
    (void)options;
    if (in_mount)
        in_mount();
    fake_begin();
    *ret_fs = malloc(sizeof **ret_fs);
    ck_assert_ptr_nonnull(*ret_fs);
    **ret_fs = (struct fake){.letter = source[0], .poller = poller, .event = event};
    mounted++;
    return 0;
}

static int fake_unmount(struct fake *fs)
{
    while (server_is_away)
        pause();
    ck_assert(close(fs->poller) == 0 && close(fs->event) == 0);
    free(fs);
    unmounted++;
    return 0;
}

static struct fake *fake_open_inode(struct fake *fs, uint64_t ino, int flags)
{
    struct fake *f = malloc(sizeof *f);

    (void)ino;
    (void)flags;
    ck_assert_ptr_nonnull(f);
    *f = *fs;
    return f;
}

/* The number of the piece in the first byte, then the letter. */
static ssize_t fake_pread(struct fake *f, uint8_t *dst, size_t len, off_t offset)
{
    void (*meanwhile)(void) = in_pread;

    in_pread = NULL;
    if (meanwhile)
        meanwhile();
    if (failures) {
        failures--;
        errno = ETIMEDOUT;
        return -1;
    }
    len = offset < (off_t)(PIECES * MIB) ? MIN(len, (size_t)(PIECES * MIB - offset)) : 0;
    if (len) {
        memset(dst, f->letter, len);
        dst[0] = (uint8_t)(offset / (off_t)MIB);
    }
    return (ssize_t)len;
}

static int fake_close(struct fake *f)
{
    free(f);
    return 0;
}

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name);

static int library;

void *__wrap_dlopen(const char *name, int flags)
{
    return name && strcmp(name, "libaifs.so.0") == 0 ? &library : __real_dlopen(name, flags);
}

void *__wrap_dlsym(void *handle, const char *name)
{
    static const struct {
        const char *name;
        void *function;
    } functions[] = {
        {"aifs_mount", (void *)fake_mount},           {"aifs_unmount", (void *)fake_unmount},
        {"aifs_open_inode", (void *)fake_open_inode}, {"aifs_pread", (void *)fake_pread},
        {"aifs_close", (void *)fake_close},
    };

    for (size_t k = 0; handle == &library && k < ARRAY_LEN(functions); k++)
        if (strcmp(name, functions[k].name) == 0)
            return functions[k].function;
    return __real_dlsym(handle, name);
}

/* ---- files ---- */

static void is_on(const char *mount)
{
    ck_assert_int_eq(setxattr(path, ATTRIBUTE, mount, strlen(mount), 0), 0);
}

static void setup(void)
{
    int fd;

    tmp_make(&tmp);
    snprintf(path, sizeof path, "%s", tmp_path(&tmp, "file"));
    buf = malloc(PIECES * MIB);
    buf2 = malloc(PIECES * MIB);
    ck_assert(buf && buf2);
    memset(buf, 'k', PIECES * MIB);
    for (unsigned k = 0; k < PIECES; k++)
        buf[k * MIB] = (uint8_t)k;
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, buf, PIECES * MIB), PIECES * MIB);
    ck_assert_int_eq(close(fd), 0);
    is_on("served:/\nnet=tcp");
}

static void teardown(void)
{
    free(buf);
    free(buf2);
    tmp_remove(&tmp);
}

static int file_open(void)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    return fd;
}

static off_t position(int fd)
{
    return lseek(fd, 0, SEEK_CUR);
}

/* The next piece is this one, and comes from there. */
static void read_piece(int fd, uint8_t *dst, unsigned piece, char from)
{
    ck_assert_int_eq(read(fd, dst, MIB), MIB);
    ck_assert_uint_eq(dst[0], piece);
    ck_assert_int_eq(dst[1], from);
}

/* ---- tests ---- */

START_TEST(reads_are_served_and_the_position_is_the_kernels)
{
    int fd = file_open();

    read_piece(fd, buf, 0, 's');
    read_piece(fd, buf, 1, 's');
    ck_assert_int_eq(position(fd), 2 * MIB);
    ck_assert_int_eq(read(fd, buf, 100), 100); /* too small */
    ck_assert(buf[0] == 2 && buf[1] == 'k');
    ck_assert_int_eq(lseek(fd, 5 * MIB, SEEK_SET), 5 * MIB);
    ck_assert_int_eq(read(fd, buf, PIECES * MIB), 3 * MIB); /* less, at the end */
    ck_assert_int_eq(position(fd), PIECES * MIB);
    ck_assert_int_eq(read(fd, buf, MIB), 0);
    ck_assert_int_eq(position(fd), PIECES * MIB);
    ck_assert_int_eq(pread(fd, buf, MIB, 4 * MIB), MIB);
    ck_assert(buf[0] == 4 && buf[1] == 's');
    ck_assert_uint_eq(mounted, 1);
    close(fd);
}
END_TEST

START_TEST(a_mount_under_the_device_number_of_another_is_not_taken_for_it)
{
    int fd = file_open();

    read_piece(fd, buf, 0, 's');
    close(fd);
    is_on("other:/\nnet=tcp");
    fd = file_open();
    read_piece(fd, buf, 0, 'o');
    close(fd);
    ck_assert_int_eq(removexattr(path, ATTRIBUTE), 0);
    fd = file_open();
    read_piece(fd, buf, 0, 'k');
    close(fd);
    is_on("served:/\nnet=tcp");
    fd = file_open();
    read_piece(fd, buf, 0, 's');
    close(fd);
    ck_assert_uint_eq(mounted, 2);
}
END_TEST

static int shared_fd;

static void *read_second(void *arg)
{
    int fd = dup(shared_fd);

    (void)arg;
    while (sem_wait(&go)) {
    }
    read_piece(fd, buf2, 1, 's');
    ck_assert_int_eq(read(fd, buf2, 4096), 4096); /* the kernel's */
    ck_assert_uint_eq(buf2[0], 2);
    close(fd);
    sem_post(&gone);
    return NULL;
}

static void read_meanwhile(void)
{
    sem_post(&go);
    while (sem_wait(&gone)) {
    }
}

START_TEST(who_reads_at_one_position_at_once_gets_a_piece_each)
{
    pthread_t t;

    sem_init(&go, 0, 0);
    sem_init(&gone, 0, 0);
    shared_fd = file_open();
    in_pread = read_meanwhile;
    ck_assert_int_eq(pthread_create(&t, NULL, read_second, NULL), 0);
    read_piece(shared_fd, buf, 0, 's');
    pthread_join(t, NULL);
    ck_assert_int_eq(position(shared_fd), 2 * MIB + 4096);
    close(shared_fd);
}
END_TEST

START_TEST(what_is_not_served_is_read_by_the_kernel_from_where_it_was)
{
    void *volatile nowhere = (void *)8;
    struct iovec iov[3];
    int fd = file_open();

    failures = 1;
    read_piece(fd, buf, 0, 'k');
    read_piece(fd, buf, 1, 's');
    for (unsigned k = 0; k < 3; k++)
        iov[k] = (struct iovec){buf + k * 2 * MIB, MIB};
    in_pread = NULL;
    ck_assert_int_eq(readv(fd, iov, 3), 3 * MIB);
    ck_assert(buf[0] == 2 && buf[1] == 's' && buf[4 * MIB] == 4);
    failures = 1;
    ck_assert_int_eq(readv(fd, iov, 3), 3 * MIB);
    ck_assert(buf[0] == 5 && buf[1] == 'k' && buf[4 * MIB] == 7);
    ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
    failures = 1;
    ck_assert_int_eq(read(fd, nowhere, MIB), -1);
    ck_assert_int_eq(errno, EFAULT);
    ck_assert_int_eq(position(fd), 0);
    close(fd);
}
END_TEST

static volatile sig_atomic_t handled;

static void on_signal(int signal)
{
    (void)signal;
    handled = read(shared_fd, buf2, MIB) == (ssize_t)MIB ? 1 : 2;
}

static void signal_self(void)
{
    ck_assert_int_eq(raise(SIGUSR1), 0);
}

START_TEST(a_handler_that_reads_what_is_being_read_gets_the_next_piece)
{
    struct sigaction action = {.sa_handler = on_signal};

    ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
    shared_fd = file_open();
    in_pread = signal_self;
    read_piece(shared_fd, buf, 0, 's');
    ck_assert_int_eq(handled, 1);
    ck_assert_uint_eq(buf2[0], 1);
    ck_assert_int_eq(position(shared_fd), 2 * MIB);
    close(shared_fd);
}
END_TEST

static void be_cancelled(void)
{
    in_mount = NULL;
    pthread_cancel(pthread_self());
    pthread_testcancel();
}

static void *read_and_go_on(void *arg)
{
    int fd = file_open();

    (void)arg;
    read_piece(fd, buf2, 0, 's');
    pthread_testcancel();
    ck_abort_msg("it was not cancelled at all");
    return NULL;
}

START_TEST(a_thread_that_is_cancelled_inside_holds_nobody_up)
{
    void *result;
    pthread_t t;
    int fd;

    in_mount = be_cancelled;
    ck_assert_int_eq(pthread_create(&t, NULL, read_and_go_on, NULL), 0);
    pthread_join(t, &result);
    ck_assert_ptr_eq(result, PTHREAD_CANCELED);
    fd = file_open();
    read_piece(fd, buf, 0, 's');
    close(fd);
}
END_TEST

/* Was begun before libaifs was, and so comes after it. */
static void look(void)
{
    syscall(SYS_exit_group, mounted == 1 && unmounted == 1 ? 0 : 1);
}

START_TEST(at_exit_mounts_end_before_what_was_there_before_them)
{
    int status;
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (!pid) {
        int fd;

        atexit(look);
        fd = file_open();
        read_piece(fd, buf, 0, 's');
        exit(2);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

START_TEST(what_libaifs_has_open_is_not_the_programs_to_close)
{
    int fd = file_open();

    read_piece(fd, buf, 0, 's');
    ck_assert_int_eq(close(event), -1);
    ck_assert_int_eq(errno, EBADF);
    ck_assert_int_eq(close(poller), -1);
    ck_assert_int_eq(close_range((unsigned)fd, ~0u, 0), 0);
    ck_assert(!is_open(fd) && is_open(event) && is_open(poller));
    fd = file_open();
    closefrom(fd);
    ck_assert(!is_open(fd) && is_open(event) && is_open(poller));
    fd = file_open();
    read_piece(fd, buf, 0, 's');
    ck_assert_uint_eq(mounted, 1);
    close(fd);
}
END_TEST

START_TEST(a_number_of_libaifs_that_the_program_wants_is_its_own)
{
    int fd = file_open(), wanted;

    read_piece(fd, buf, 0, 's');
    wanted = event;
    ck_assert_int_eq(dup2(fd, wanted), wanted);
    ck_assert_uint_eq(unmounted, 1);
    read_piece(wanted, buf, 1, 's'); /* by another mount, which has other numbers */
    ck_assert(mounted == 2 && event != wanted && poller != wanted);
    ck_assert_int_eq(close(wanted), 0);
    wanted = poller;
    ck_assert_int_eq(dup3(fd, wanted, O_CLOEXEC), wanted);
    ck_assert_uint_eq(unmounted, 2);
    read_piece(fd, buf, 2, 's');
    close(wanted);
    close(fd);
}
END_TEST

START_TEST(a_process_ends_while_a_server_is_away)
{
    int status;
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (!pid) {
        int fd = file_open();

        read_piece(fd, buf, 0, 's');
        server_is_away = true;
        exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* Where nothing may be stored libaifs would crash: the kernel tells it. */
START_TEST(reads_into_memory_that_is_not_there_are_the_kernels)
{
    uint8_t *room = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fd = file_open();

    ck_assert_ptr_ne(room, MAP_FAILED);
    ck_assert_int_eq(munmap(room + 2 * MIB, MIB), 0);
    ck_assert_int_eq(mprotect(room + 3 * MIB, MIB, PROT_READ), 0);
    for (unsigned k = 2; k < 4; k++) {
        errno = 0;
        ck_assert_int_eq(read(fd, room + k * MIB, MIB), -1);
        ck_assert_int_eq(errno, EFAULT);
        ck_assert_int_eq(position(fd), 0);
        ck_assert_int_eq(pread(fd, room + k * MIB, MIB, MIB), -1);
        ck_assert_int_eq(errno, EFAULT);
    }
    read_piece(fd, room, 0, 's');
    ck_assert_int_lt(read(fd, room + MIB + 100, MIB), MIB); /* what there is room for, if any */
    ck_assert_int_eq(lseek(fd, MIB, SEEK_SET), MIB);
    read_piece(fd, room + MIB, 1, 's'); /* to its last byte */
    close(fd);
    munmap(room, 2 * MIB);
    munmap(room + 3 * MIB, MIB);
}
END_TEST

static bool has_attributes(void)
{
    const char *base = getenv("TMPDIR");
    char name[PATH_MAX];
    bool has;
    int fd;

    snprintf(name, sizeof name, "%s/aifs-test-XXXXXX", base && *base ? base : "/tmp");
    fd = mkostemp(name, O_CLOEXEC);
    has = fd >= 0 && fsetxattr(fd, ATTRIBUTE, "x", 1, 0) == 0;
    if (fd >= 0) {
        unlink(name);
        close(fd);
    }
    return has;
}

int main(void)
{
    const TTest *const tests[] = {reads_are_served_and_the_position_is_the_kernels,
                                  a_mount_under_the_device_number_of_another_is_not_taken_for_it,
                                  who_reads_at_one_position_at_once_gets_a_piece_each,
                                  what_is_not_served_is_read_by_the_kernel_from_where_it_was,
                                  a_handler_that_reads_what_is_being_read_gets_the_next_piece,
                                  a_thread_that_is_cancelled_inside_holds_nobody_up,
                                  what_libaifs_has_open_is_not_the_programs_to_close,
                                  a_number_of_libaifs_that_the_program_wants_is_its_own,
                                  at_exit_mounts_end_before_what_was_there_before_them,
                                  reads_into_memory_that_is_not_there_are_the_kernels,
                                  a_process_ends_while_a_server_is_away};

    if (!has_attributes()) {
        printf("no user attributes in the directory for temporary files\n");
        return 77;
    }
    return suite_run("client-preload", setup, teardown, tests, ARRAY_LEN(tests));
}
