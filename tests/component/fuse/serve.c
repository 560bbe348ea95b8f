/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "tests/component/fuse/serve.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

struct tmp served;
pid_t server;

static void tell_ready(void *arg)
{
    int fd = *(int *)arg;

    ck_assert_int_eq(write(fd, "r", 1), 1);
    close(fd);
}

void serve(enum channel_kind kind, const struct null_fs_options *options)
{
    struct null_fs_options o = *options;
    int fds[2];
    char byte, err[256];

    tmp_make(&served);
    ck_assert_int_eq(pipe(fds), 0);
    server = fork();
    ck_assert_int_ge(server, 0);
    if (server == 0) {
        int rc;

        close(fds[0]);
        o.channel = kind;
        rc = null_fs_serve(served.dir, &o, tell_ready, &fds[1], err, sizeof err);
        if (rc != 0)
            fprintf(stderr, "%s\n", err);
        _exit(rc != 0);
    }
    close(fds[1]);
    ck_assert_msg(read(fds[0], &byte, 1) == 1, "the file system in memory does not start");
    close(fds[0]);
}

void unserve(void)
{
    int status;

    ck_assert_int_eq(umount2(served.dir, 0), 0);
    ck_assert_int_eq(waitpid(server, &status, 0), server);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(rmdir(served.dir), 0);
}

uint8_t *noise(size_t len)
{
    uint8_t *p = malloc(len);
    uint32_t x = 1;

    ck_assert_ptr_nonnull(p);
    for (size_t i = 0; i < len; i++) {
        x = x * 1664525u + 1013904223u;
        p[i] = (uint8_t)(x >> 24);
    }
    return p;
}

int open_at(const char *name, int flags)
{
    int fd = open(tmp_path(&served, name), flags, 0640);

    ck_assert_msg(fd >= 0, "%s: %s", name, strerror(errno));
    return fd;
}

bool ring_is_offered(void)
{
    FILE *f = fopen("/sys/module/fuse/parameters/enable_uring", "re");
    int c = f ? fgetc(f) : EOF;

    if (f)
        fclose(f);
    if (c != 'Y')
        printf("without io_uring: enable_uring of the kernel's module fuse is %s\n",
               f ? "N" : "not there");
    return c == 'Y';
}
