/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of libaifs in a program that does not know of them. Programs close all numbers but a
 * few, or put their own under a number of their choice: libaifs would go on and write what it has
 * to say to a server into the program's file.
 *
 * Happy path: whatever libaifs waits for with epoll(7), or makes of eventfd(2), is noted; so it is
 * of the threads that it has begun, which are inside for good. To the program such a number is not
 * open: closing it is EBADF, and a range is closed around it. Under one that it wants itself
 * (dup2) libaifs has to go: mounts end, and begin again elsewhere with the next read.
 *
 * Failure: who wants such a number while others read for longer than a second gets EBUSY.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/preload/preload_int.h"

#define EXPORT __attribute__((visibility("default")))

static struct {
    int (*epoll_ctl)(int epoll, int op, int fd, struct epoll_event *event);
    int (*eventfd)(unsigned value, int flags);
    int (*pthread_create)(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);
} next;

static _Atomic bool ours[PRELOAD_FDS];
static _Atomic unsigned n_ours; /* ever noted: 0 and nothing is looked at */

static void find(const char *name, void *ret_function)
{
    *(void **)ret_function = dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void find_all(void)
{
    find("epoll_ctl", &next.epoll_ctl);
    find("eventfd", &next.eventfd);
    find("pthread_create", &next.pthread_create);
}

static void ready(void)
{
    if (!next.pthread_create)
        find_all();
}

static void note(int fd, bool is)
{
    if (fd < 0 || fd >= PRELOAD_FDS || ours[fd] == is)
        return;
    ours[fd] = is;
    n_ours++;
}

bool preload_is_ours(int fd)
{
    return n_ours && fd >= 0 && fd < PRELOAD_FDS && ours[fd] && !preload_is_inside() &&
           preload_is_owner();
}

void preload_closing(int fd)
{
    if (n_ours && preload_is_inside())
        note(fd, false);
}

void preload_none_is_ours(void)
{
    for (int fd = 0; n_ours && fd < PRELOAD_FDS; fd++)
        ours[fd] = false;
    n_ours = 0;
}

int preload_close_range(unsigned first, unsigned last, int flags)
{
    unsigned from = first;
    long rc = 0;

    if (first > last)
        return (int)syscall(SYS_close_range, first, last, flags);
    for (unsigned fd = first; n_ours && fd <= last && fd < PRELOAD_FDS; fd++) {
        if (!preload_is_ours((int)fd))
            continue;
        if (fd > from)
            rc = syscall(SYS_close_range, from, fd - 1, flags);
        if (rc)
            return (int)rc;
        from = fd + 1;
    }
    return from > last ? 0 : (int)syscall(SYS_close_range, from, last, flags);
}

/* ---- what libaifs does ---- */

EXPORT int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    int rc;

    ready();
    rc = next.epoll_ctl(epoll, op, fd, event);
    if (rc == 0 && op == EPOLL_CTL_ADD && preload_is_inside()) {
        note(epoll, true);
        note(fd, true);
    }
    return rc;
}

EXPORT int eventfd(unsigned value, int flags)
{
    int fd;

    ready();
    fd = next.eventfd(value, flags);
    if (fd >= 0 && preload_is_inside())
        note(fd, true);
    return fd;
}

struct begin {
    void *(*fn)(void *);
    void *arg;
};

static void *begin_inside(void *arg)
{
    struct begin b = *(struct begin *)arg;

    free(arg);
    preload_stay_inside();
    return b.fn(b.arg);
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg)
{
    struct begin *b;
    int rc;

    ready();
    if (!preload_is_inside())
        return next.pthread_create(thread, attr, fn, arg);
    b = malloc(sizeof *b);
    if (!b)
        return EAGAIN;
    *b = (struct begin){fn, arg};
    rc = next.pthread_create(thread, attr, begin_inside, b);
    if (rc)
        free(b);
    return rc;
}
