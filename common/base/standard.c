/* SPDX-License-Identifier: Apache-2.0 */
/* What a program is started with, see standard.h. */
#include "common/base/standard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void standard_open(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/", O_PATH); /* gets the lowest number, which is this one */
}

int standard_flush(void)
{
    if (fflush(stdout) != 0)
        return errno ? -errno : -EIO;
    return ferror(stdout) ? -EIO : 0;
}

int standard_end(const char *program)
{
    int rc = standard_flush();

    if (rc < 0 && rc != -EPIPE) /* who has had enough of it knows */
        fprintf(stderr, "%s: cannot write to standard output: %s\n", program, strerror(-rc));
    return rc < 0;
}
