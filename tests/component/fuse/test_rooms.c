/* SPDX-License-Identifier: Apache-2.0 */
/* The own channel on the real kernel, where the file system has room for the data of large
 * writes: these are read in two parts, and what comes between them too. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/component/fuse/serve.h"
#include "tests/support/suite.h"

#define WAIT_TRIES 20000 /* of a millisecond and more */

/* Messages behind a large write are read with room for another one. */
START_TEST(what_comes_between_large_writes_arrives_whole)
{
    struct null_fs_options o = {.timeout_ns = NS_PER_S, .keep_bytes = 8 * MIB, .rooms = 2};
    uint8_t *data = noise(7 * MIB), *back = malloc(7 * MIB);
    char target[4096], name[256], told[4096];
    int fd;

    serve(CHANNEL_KIND_FUSE, &o);
    fd = open_at("f", O_WRONLY | O_CREAT);
    memset(target, 't', sizeof target - 1);
    memset(name, 'n', sizeof name - 1);
    target[sizeof target - 1] = name[sizeof name - 1] = '\0';
    for (unsigned k = 0; k < 6; k++) { /* each but a page of the next, which comes by itself */
        off_t at = (off_t)(k * MIB);
        int other;

        ck_assert_int_eq(pwrite(fd, data + at, MIB, at), MIB);
        name[0] = (char)('a' + k);
        other = open_at(name, O_WRONLY | O_CREAT);
        close(other);
        ck_assert_int_eq(unlink(tmp_path(&served, name)), 0);
        ck_assert_int_eq(symlink(target, tmp_path(&served, "link")), 0);
        ck_assert_int_eq(readlink(tmp_path(&served, "link"), told, sizeof told), 4095);
        ck_assert_mem_eq(told, target, 4095);
        ck_assert_int_eq(unlink(tmp_path(&served, "link")), 0);
        ck_assert_int_eq(pwrite(fd, data + at + MIB, MIB - 4096, at + MIB), MIB - 4096);
        ck_assert_int_eq(pwrite(fd, data + at + 2 * MIB - 4096, 4095, at + 2 * MIB - 4096), 4095);
    }
    ck_assert_int_eq(pwrite(fd, data + 7 * MIB - 1, 1, 7 * MIB - 1), 1);
    close(fd);
    fd = open_at("f", O_RDONLY);
    ck_assert_int_eq(pread(fd, back, 7 * MIB, 0), 7 * MIB);
    ck_assert_mem_eq(data, back, 7 * MIB);
    close(fd);
    unserve();
    free(data);
    free(back);
}
END_TEST

/* ---- turns ---- */

/* The server's: it answers what it has taken when the turn is over, as one does that sends. */
static struct {
    struct reactor *reactor;
    struct reactor_work work;
    struct channel_req *taken[64];
    unsigned n;
} turn;
static unsigned *most; /* taken in one turn; of both processes */

static void answer(struct reactor_work *w)
{
    (void)w;
    *most = MAX(*most, turn.n);
    while (turn.n > 0) {
        turn.n--;
        channel_reply_write(turn.taken[turn.n], turn.taken[turn.n]->io.len);
    }
}

static int turn_start(struct reactor *r, void *arg)
{
    (void)arg;
    turn.reactor = r;
    turn.work.fn = answer;
    return 0;
}

static void turn_stop(void *arg)
{
    (void)arg;
}

static void turn_read(struct channel_req *q, uint32_t len, void *arg)
{
    (void)len;
    (void)arg;
    channel_reply_err(q, -EIO);
}

static void turn_write(struct channel_req *q, void *arg)
{
    (void)arg;
    if (turn.n == 0)
        reactor_defer(turn.reactor, &turn.work);
    turn.taken[turn.n++] = q;
}

/* In the kernel, for the server, which is stopped: it goes on before the test fails, and ends. */
static void until_it_waits(pid_t pid)
{
    char path[64], text[64] = "";

    snprintf(path, sizeof path, "/proc/%d/wchan", (int)pid);
    for (unsigned tries = 0; !strstr(text, "request_wait_answer"); tries++) {
        FILE *f = fopen(path, "r");

        ck_assert_ptr_nonnull(f);
        if (!fgets(text, sizeof text, f))
            text[0] = '\0';
        fclose(f);
        if (tries >= WAIT_TRIES || waitpid(pid, NULL, WNOHANG) != 0) {
            kill(server, SIGCONT);
            ck_abort_msg("process %d has ended, or waits in \"%s\"", (int)pid, text);
        }
        poll(NULL, 0, 1);
    }
}

/* What the kernel holds ready in writes of this size is taken how many at a time? */
static unsigned taken_together(size_t bytes)
{
    enum { N = 6 };
    static const struct null_fs_remote remote = {turn_start, turn_stop, turn_read, turn_write, 0};
    struct null_fs_options o = {
        .timeout_ns = NS_PER_S, .rooms = 2, .direct = true, .remote = &remote};
    uint8_t *data = aligned_alloc(4096, bytes); /* so that each is one request */
    int fds[N], status;
    pid_t pids[N];
    unsigned n;

    ck_assert_ptr_nonnull(data);
    memset(data, 1, bytes);
    most = mmap(NULL, sizeof *most, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(most, MAP_FAILED);
    serve(CHANNEL_KIND_FUSE, &o);
    for (int i = 0; i < N; i++) {
        char name[8];

        snprintf(name, sizeof name, "big%d", i);
        fds[i] = open_at(name, O_WRONLY);
    }
    ck_assert_int_eq(kill(server, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(server, &status, WUNTRACED), server);
    ck_assert(WIFSTOPPED(status));
    for (int i = 0; i < N; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(pwrite(fds[i], data, bytes, 0) == (ssize_t)bytes ? 0 : 1);
        until_it_waits(pids[i]);
    }
    ck_assert_int_eq(kill(server, SIGCONT), 0);
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
        close(fds[i]);
    }
    unserve();
    free(data);
    n = *most;
    munmap(most, sizeof *most);
    return n;
}

/* A server that waits for the first could have begun with it. */
START_TEST(what_a_large_write_sends_leaves_before_the_next_is_taken)
{
    ck_assert_uint_eq(taken_together(MIB), 1);
    ck_assert_uint_eq(taken_together(4096), 6);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("fuse-rooms");

    if (geteuid() != 0 || access("/dev/fuse", R_OK | W_OK) != 0) {
        printf("skipped: mounting needs root and /dev/fuse\n");
        return 77;
    }
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, what_comes_between_large_writes_arrives_whole);
    tcase_add_test(tc, what_a_large_write_sends_leaves_before_the_next_is_taken);
    return suite_run_case("fuse-rooms", tc);
}
