/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking names up without keeping a reactor waiting: getaddrinfo(3) waits for the name service for
 * as long as resolv.conf(5) says, and cannot be told to stop.
 *
 * Happy path: a lookup waits in one queue of the process; threads named "lookup", as many as there
 * is to do but at most LOOKUP_THREADS, take them in order and end when there are none; an eventfd
 * tells the reactor, whose on_done() tells the owner. Failure: what cannot be started is told at
 * once. Cancelled: one that waits goes at once, one under way by its thread, whenever that is. An
 * eventfd and not the mailbox, from which nothing can be taken back: nothing of a lookup that was
 * cancelled is left on the reactor, which may be destroyed then.
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/net/net_int.h"
#include "common/rt/thread.h"

#define LOOKUP_THREADS 4u /* names of a zone whose servers are dead wait for each other */

struct net_lookup {
    struct list link; /* of the queue, while it waits there */
    struct reactor *reactor;
    struct reactor_watch watch; /* an eventfd; the owner's thread only */
    net_lookup_fn *done;
    void *arg;
    bool running, wanted; /* under the lock */
    uint16_t default_port;
    int status;
    struct net_addr addr;
    char text[NET_ADDR_BYTES], why[NET_ADDR_BYTES + 128];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list queue = {&queue, &queue};
static unsigned n_threads;

static struct net_lookup *take(void)
{
    struct list *e;
    struct net_lookup *l;

    AUTO_LOCK(&lock);
    e = list_pop_front(&queue);
    if (!e) {
        n_threads--;
        return NULL;
    }
    l = list_entry(e, struct net_lookup, link);
    l->running = true;
    return l;
}

/* Under the lock, so that the eventfd is open as long as somebody wants to know. */
static void give(struct net_lookup *l)
{
    bool wanted;

    pthread_mutex_lock(&lock);
    l->running = false;
    wanted = l->wanted;
    if (wanted && eventfd_write(l->watch.fd, 1) != 0)
        LOG_ERROR("net", "eventfd: %m");
    pthread_mutex_unlock(&lock);
    if (!wanted)
        mem_free(l);
}

static void *lookup_main(void *arg)
{
    struct net_lookup *l;

    pthread_detach(pthread_self());
    while ((l = take()) != NULL) {
        l->status = net_addr_resolve(l->text, l->default_port, &l->addr, l->why, sizeof l->why);
        give(l);
    }
    return arg;
}

static void drop_watch(struct net_lookup *l)
{
    reactor_watch_remove(l->reactor, &l->watch);
    close(l->watch.fd);
}

static void on_done(struct reactor_watch *w, uint32_t events UNUSED)
{
    struct net_lookup *l = container_of(w, struct net_lookup, watch);

    pthread_mutex_lock(&lock); /* its thread is done with it */
    pthread_mutex_unlock(&lock);
    drop_watch(l);
    l->done(l->arg, l->status, l->status ? NULL : &l->addr, l->why);
    mem_free(l);
}

/* One more thread for it, unless there are enough. With others at work it has its turn anyway. */
static int enqueue(struct net_lookup *l)
{
    pthread_t thread;
    int rc = 0;

    AUTO_LOCK(&lock);
    if (n_threads < LOOKUP_THREADS) {
        rc = thread_start(&thread, "lookup", lookup_main, NULL);
        n_threads += rc == 0;
    }
    if (rc && n_threads == 0)
        return rc;
    list_push_back(&queue, &l->link);
    return 0;
}

int net_lookup_start(struct reactor *r, const char *text, uint16_t default_port,
                     net_lookup_fn *done, void *arg, struct net_lookup **ret_lookup)
{
    struct net_lookup *l = mem_zalloc(sizeof *l);
    int rc;

    if (!l)
        return -ENOMEM;
    *l = (struct net_lookup){.reactor = r,
                             .done = done,
                             .arg = arg,
                             .wanted = true,
                             .default_port = default_port,
                             .watch = {.events = EPOLLIN, .fn = on_done}};
    list_init(&l->link);
    snprintf(l->text, sizeof l->text, "%s", text);
    l->watch.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->watch.fd < 0) {
        rc = -errno;
        goto err_lookup;
    }
    rc = reactor_watch_add(r, &l->watch);
    if (rc)
        goto err_fd;
    rc = enqueue(l);
    if (rc)
        goto err_watch;
    *ret_lookup = l;
    return 0;

err_watch:
    reactor_watch_remove(r, &l->watch);
err_fd:
    close(l->watch.fd);
err_lookup:
    mem_free(l);
    return rc;
}

void net_lookup_cancel(struct net_lookup *l)
{
    bool running;

    if (!l)
        return;
    pthread_mutex_lock(&lock);
    running = l->running;
    l->wanted = false;
    list_remove(&l->link);
    drop_watch(l);
    pthread_mutex_unlock(&lock);
    if (!running)
        mem_free(l);
}

void lookup_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    list_init(&queue);
    n_threads = 0;
}
