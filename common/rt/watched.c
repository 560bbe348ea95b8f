/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an epoll descriptor watches: lines "tfd: NUMBER ..." of its /proc/self/fdinfo/NUMBER
 * (proc(5)).
 *
 * A descriptor that was closed but not taken out of the set stands there as long as somebody else
 * has its file open; its number may be another's by now. Reactors take theirs out before they
 * close.
 */
#include "common/rt/watched.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base/mem.h"

#define DEPTH_MAX 2u

static int keep(struct watched *w, int fd)
{
    unsigned room = w->room ? 2 * w->room : 64;
    int *fds = w->fds;

    if (w->n == w->room) {
        fds = mem_realloc(w->fds, room * sizeof *fds);
        if (!fds)
            return -ENOMEM;
        w->fds = fds;
        w->room = room;
    }
    w->fds[w->n++] = fd;
    return 0;
}

static int add(struct watched *w, int fd, unsigned depth)
{
    char path[40], line[160];
    int err = keep(w, fd), watched;
    FILE *f;

    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    f = err || !depth ? NULL : fopen(path, "re");
    if (!f)
        return err || !depth ? err : -errno;
    while (!err && fgets(line, sizeof line, f))
        if (sscanf(line, "tfd: %d", &watched) == 1)
            err = add(w, watched, depth - 1);
    fclose(f);
    return err;
}

int watched_add(struct watched *w, int epoll_fd)
{
    return add(w, epoll_fd, DEPTH_MAX);
}

void watched_close(const struct watched *w)
{
    for (unsigned k = 0; k < w->n; k++)
        close(w->fds[k]);
}
