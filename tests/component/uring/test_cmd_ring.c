/* SPDX-License-Identifier: Apache-2.0 */
/* Commands to a driver, with two that need no hardware: /dev/null takes every command and does
 * nothing (Linux 6.0), a file takes none. */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/uring/cmd_ring.h"
#include "tests/support/suite.h"
#include "tests/support/tmp.h"

enum { DEPTH = 8 };

static struct reactor *reactor;
static struct cmd_ring *ring;
static int fd;

struct counted {
    struct cmd cmd;
    unsigned times, again;
    int result;
};

static void submit(struct counted *c)
{
    uint8_t bytes[CMD_BYTES_MAX] = {0};

    cmd_ring_submit(ring, &c->cmd, 1, NULL, 0, bytes, sizeof bytes);
}

static void counted_done(struct cmd *cmd, int result)
{
    struct counted *c = container_of(cmd, struct counted, cmd);

    c->times++;
    c->result = result;
    if (c->again) {
        c->again--;
        submit(c);
    }
}

static void begin(const char *path)
{
    struct reactor_options o = {.name = "test"};

    ck_assert_int_eq(reactor_create(&o, &reactor), 0);
    fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(cmd_ring_create(reactor, fd, DEPTH, &ring), 0);
}

static void end(void)
{
    cmd_ring_destroy(ring);
    close(fd);
    reactor_destroy(reactor);
}

START_TEST(every_command_comes_back_once)
{
    struct counted c[DEPTH] = {0};
    unsigned done = 0;

    begin("/dev/null");
    for (unsigned i = 0; i < DEPTH; i++) {
        c[i].cmd.done = counted_done;
        c[i].again = 100;
        submit(&c[i]);
        ck_assert_uint_eq(c[i].times, 0);
    }
    while (done < DEPTH) {
        reactor_run_once(reactor, NS_PER_S);
        done = 0;
        for (unsigned i = 0; i < DEPTH; i++)
            done += c[i].times == 101;
    }
    reactor_run_once(reactor, 0);
    for (unsigned i = 0; i < DEPTH; i++) {
        ck_assert_uint_eq(c[i].times, 101);
        ck_assert_int_eq(c[i].result, 0);
    }
    end();
}
END_TEST

START_TEST(flush_and_digest_need_no_turn_of_the_reactor)
{
    struct counted c = {.cmd.done = counted_done};

    begin("/dev/null");
    submit(&c);
    cmd_ring_flush(ring);
    ck_assert_uint_eq(c.times, 0);
    ck_assert_int_eq(cmd_ring_digest(ring), 1);
    ck_assert_uint_eq(c.times, 1);
    ck_assert_int_eq(cmd_ring_digest(ring), 0);
    end();
}
END_TEST

START_TEST(what_takes_no_commands_refuses_them)
{
    struct counted c = {.cmd.done = counted_done};
    struct tmp t;

    tmp_make(&t);
    begin(tmp_write(&t, "file", "x"));
    submit(&c);
    while (!c.times)
        reactor_run_once(reactor, NS_PER_S);
    ck_assert_int_lt(c.result, 0);
    end();
    tmp_remove(&t);
}
END_TEST

START_TEST(a_ring_is_destroyed_with_commands_in_it)
{
    struct counted c = {.cmd.done = counted_done};

    begin("/dev/null");
    submit(&c);
    end();
    ck_assert_uint_eq(c.times, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_command_comes_back_once, flush_and_digest_need_no_turn_of_the_reactor,
        what_takes_no_commands_refuses_them, a_ring_is_destroyed_with_commands_in_it};
    struct io_uring_params p = {.flags = IORING_SETUP_SQE128};
    long probe = syscall(__NR_io_uring_setup, 1, &p);

    if (probe < 0) {
        printf("skipped: io_uring_setup: %s\n", strerror(errno));
        return 77;
    }
    close((int)probe);
    return suite_run("cmd-ring", NULL, NULL, tests, ARRAY_LEN(tests));
}
