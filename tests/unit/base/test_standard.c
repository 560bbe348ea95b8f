/* SPDX-License-Identifier: Apache-2.0 */
/* What a program was started without stays closed to it, and no file of its own gets its number;
 * what could not be printed is known in the end. */
#include "common/base/standard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/suite.h"

/* Exit status of what is done in a process of its own, whose descriptors nobody else needs. */
static int in_child(int (*fn)(void))
{
    pid_t child = fork();
    int status;

    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(fn());
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static bool refuses(int fd)
{
    char c = 'x';

    return write(fd, &c, 1) < 0 && errno == EBADF && read(fd, &c, 1) < 0 && errno == EBADF;
}

static int without_any(void)
{
    for (int fd = 0; fd <= 2; fd++)
        close(fd);
    standard_open();
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 || !refuses(fd))
            return 1;
    return open("/dev/null", O_RDONLY) <= 2;
}

START_TEST(no_file_gets_the_number_of_one_that_is_closed)
{
    ck_assert_int_eq(in_child(without_any), 0);
}
END_TEST

static int without_output(void)
{
    int error = fcntl(2, F_GETFD);

    close(1);
    standard_open();
    if (!refuses(1) || fcntl(2, F_GETFD) != error)
        return 1;
    printf("text\n");
    return standard_flush() != -EBADF;
}

START_TEST(one_that_is_open_stays_what_it_is)
{
    ck_assert_int_eq(in_child(without_output), 0);
}
END_TEST

static int full(void)
{
    if (!freopen("/dev/full", "w", stdout) || !freopen("/dev/null", "w", stderr))
        return 1;
    printf("text\n");
    return standard_flush() != -ENOSPC || standard_end("test") != 1;
}

static int full_before(void)
{
    if (!freopen("/dev/full", "w", stdout))
        return 1;
    printf("text\n");
    (void)fflush(stdout); /* what was lost then is lost, though nothing is left to write */
    return standard_flush() == 0;
}

static int good(void)
{
    if (!freopen("/dev/null", "w", stdout))
        return 1;
    printf("text\n");
    return standard_flush() != 0 || standard_end("test") != 0;
}

START_TEST(what_could_not_be_printed_is_known_in_the_end)
{
    ck_assert_int_eq(in_child(full), 0);
    ck_assert_int_eq(in_child(full_before), 0);
    ck_assert_int_eq(in_child(good), 0);
}
END_TEST

SUITE_MAIN("standard", NULL, NULL, no_file_gets_the_number_of_one_that_is_closed,
           one_that_is_open_stays_what_it_is, what_could_not_be_printed_is_known_in_the_end)
