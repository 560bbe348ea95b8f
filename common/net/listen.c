/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening and connecting over TCP; "loop:" addresses are passed on to loop.c.
 *
 * Failures: running out of descriptors while accepting costs the newest caller its connection (a
 * spare descriptor is given up to accept and close it), never the listener. Where even that cannot
 * be done (somebody else was quicker to take the descriptor, no memory) callers wait in the kernel
 * and the listener looks again a little later; the socket stays readable all the time, and would
 * keep the reactor busy for nothing. A connect tries each
 * place of the address in turn and ends in connected() exactly once: success, the kernel's error
 * for the first place, or -AIFS_ETIMEOUT; also what fails at once is told later, by the timer.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/net/net_int.h"

#define BACKLOG           128
#define ACCEPTS_PER_EVENT 16
#define ACCEPT_PAUSE_NS   (100 * NS_PER_MS)

static void set_nodelay(int fd)
{
    int one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one,
               sizeof one); /* fails on other families: no matter */
}

static int open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void take_accepted(struct net_listener *l, int fd, const struct sockaddr_storage *from)
{
    struct net_conn *c;
    char peer[NET_ADDR_BYTES];
    int rc;

    set_nodelay(fd);
    addr_format(from, peer, sizeof peer);
    rc = sock_conn_create(l->reactor, &l->options, fd, peer, &c);
    if (rc < 0) {
        LOG_ERROR("net", "%s: connection from %s refused: %s", l->name, peer, err_text(rc));
        close(fd);
        return;
    }
    l->accepted(l->arg, c);
}

/* Not now: from the timer again. */
static void pause_accepting(struct net_listener *l)
{
    if (reactor_watch_modify(l->reactor, &l->watch, 0) == 0)
        reactor_timer_start(l->reactor, &l->again, reactor_now_ns(l->reactor) + ACCEPT_PAUSE_NS);
}

static void on_again(struct reactor_timer *t)
{
    struct net_listener *l = container_of(t, struct net_listener, again);

    if (l->spare_fd < 0)
        l->spare_fd = open_spare();
    if (reactor_watch_modify(l->reactor, &l->watch, EPOLLIN) != 0)
        reactor_timer_start(l->reactor, t, reactor_now_ns(l->reactor) + ACCEPT_PAUSE_NS);
}

static void refuse_one(struct net_listener *l)
{
    int fd;

    LOG_WARN("net", "%s: out of file descriptors: a connection is refused", l->name);
    if (l->spare_fd >= 0)
        close(l->spare_fd);
    fd = accept4(l->watch.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        close(fd);
    else
        pause_accepting(l);
    l->spare_fd = open_spare();
}

static void on_acceptable(struct reactor_watch *w, uint32_t events UNUSED)
{
    struct net_listener *l = container_of(w, struct net_listener, watch);

    for (int i = 0; i < ACCEPTS_PER_EVENT; i++) {
        struct sockaddr_storage from;
        socklen_t len = sizeof from;
        int fd = accept4(w->fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            bool gone = false;

            l->gone = &gone;
            take_accepted(l, fd, &from);
            if (gone)
                return; /* accepted() closed the listener */
            l->gone = NULL;
            continue;
        }
        if (errno == EMFILE || errno == ENFILE) {
            refuse_one(l);
        } else if (errno == ENOMEM || errno == ENOBUFS) {
            LOG_WARN("net", "%s: accept: %m", l->name);
            pause_accepting(l);
        } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
            LOG_WARN("net", "%s: accept: %m", l->name);
        }
        return;
    }
}

static int open_listening_at(const struct net_place *p)
{
    const struct sockaddr *sa = (const struct sockaddr *)p->sockaddr;
    int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int one = 1;
    int rc;

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, sa, p->len) < 0 || listen(fd, BACKLOG) < 0) {
        rc = -errno;
        close(fd);
        return rc;
    }
    return fd;
}

/* A name may stand for what this machine has not: ::1 where there is no IPv6. */
static int open_listening(const struct net_addr *addr)
{
    int fd = -EADDRNOTAVAIL;

    for (unsigned k = 0; k < addr->n_places && (fd == -EADDRNOTAVAIL || fd == -EAFNOSUPPORT); k++)
        fd = open_listening_at(&addr->places[k]);
    return fd;
}

static int tcp_listen(struct net_listener *l, const struct net_addr *addr)
{
    struct sockaddr_storage sa;
    socklen_t len = sizeof sa;
    int fd = open_listening(addr);
    int rc;

    if (fd < 0) {
        LOG_ERROR("net", "cannot listen on %s: %s", addr->text, err_text(fd));
        return fd;
    }
    if (getsockname(fd, (struct sockaddr *)&sa, &len) == 0)
        l->port = ntohs(sa.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&sa)->sin6_port
                                                 : ((struct sockaddr_in *)&sa)->sin_port);
    l->watch = (struct reactor_watch){.fd = fd, .events = EPOLLIN, .fn = on_acceptable};
    rc = reactor_watch_add(l->reactor, &l->watch);
    if (rc < 0) {
        close(fd);
        return rc;
    }
    l->spare_fd = open_spare();
    return 0;
}

int net_listen(struct reactor *r, const struct net_addr *addr, const struct net_options *o,
               void (*accepted)(void *arg, struct net_conn *c), void *arg,
               struct net_listener **ret_listener)
{
    struct net_listener *l = mem_zalloc(sizeof *l);
    int rc;

    if (!l)
        return -ENOMEM;
    l->reactor = r;
    l->options = *o;
    l->accepted = accepted;
    l->arg = arg;
    l->watch.fd = -1;
    l->spare_fd = -1;
    reactor_timer_init(&l->again, on_again);
    snprintf(l->name, sizeof l->name, "%s", addr->text);
    rc = addr->loop ? loop_listen(r, addr, o, l) : tcp_listen(l, addr);
    if (rc < 0) {
        mem_free(l);
        return rc;
    }
    *ret_listener = l;
    return 0;
}

uint16_t net_listener_port(const struct net_listener *l)
{
    return l->port;
}

void net_listener_close(struct net_listener *l)
{
    if (!l)
        return;
    if (l->gone)
        *l->gone = true;
    if (l->loop)
        loop_listener_close(l);
    reactor_timer_cancel(l->reactor, &l->again);
    if (l->watch.added)
        reactor_watch_remove(l->reactor, &l->watch);
    if (l->watch.fd >= 0)
        close(l->watch.fd);
    if (l->spare_fd >= 0)
        close(l->spare_fd);
    mem_free(l);
}

/* ---- connecting ---- */

void connecting_finish(struct net_connecting *n, struct net_conn *c, int status)
{
    void (*connected)(void *, struct net_conn *, int) = n->connected;
    void *arg = n->arg;

    reactor_timer_cancel(n->reactor, &n->timer);
    mem_free(n);
    connected(arg, c, status);
}

static void drop_socket(struct net_connecting *n)
{
    if (n->watch.added)
        reactor_watch_remove(n->reactor, &n->watch);
    if (n->watch.fd >= 0)
        close(n->watch.fd);
    n->watch.fd = -1;
}

/* A loopback connect to a free port of the ephemeral range can meet itself (simultaneous open, RFC
 * 793 3.4). */
static bool is_self(int fd)
{
    struct sockaddr_storage a = {0};
    struct sockaddr_storage b = {0};
    socklen_t a_len = sizeof a;
    socklen_t b_len = sizeof b;

    return getsockname(fd, (struct sockaddr *)&a, &a_len) == 0 &&
           getpeername(fd, (struct sockaddr *)&b, &b_len) == 0 && a_len == b_len &&
           memcmp(&a, &b, a_len) == 0;
}

static void try_next(struct net_connecting *n);

static void attempt_failed(struct net_connecting *n, int status)
{
    if (!n->result)
        n->result = status;
    drop_socket(n);
    try_next(n);
}

static void on_connected(struct reactor_watch *w, uint32_t events UNUSED)
{
    struct net_connecting *n = container_of(w, struct net_connecting, watch);
    struct net_conn *c = NULL;
    socklen_t len = sizeof(int);
    int err = 0;
    int rc;

    if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
        err = errno;
    if (err == 0 && is_self(w->fd))
        err = ECONNREFUSED;
    if (err != 0) {
        attempt_failed(n, -err);
        return;
    }
    reactor_watch_remove(n->reactor, w);
    set_nodelay(w->fd);
    rc = sock_conn_create(n->reactor, &n->options, w->fd, n->addr.text, &c);
    if (rc < 0)
        drop_socket(n);
    connecting_finish(n, c, rc);
}

static void on_timer(struct reactor_timer *t)
{
    struct net_connecting *n = container_of(t, struct net_connecting, timer);

    if (n->loop)
        loop_connect_cancel(n);
    if (n->watch.added && n->next < n->addr.n_places) {
        attempt_failed(n, -AIFS_ETIMEOUT);
        return;
    }
    drop_socket(n);
    connecting_finish(n, NULL, n->result ? n->result : -AIFS_ETIMEOUT);
}

static int tcp_connect(struct net_connecting *n, const struct net_place *p)
{
    const struct sockaddr *sa = (const struct sockaddr *)p->sockaddr;
    int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int rc;

    if (fd < 0)
        return -errno;
    n->watch = (struct reactor_watch){.fd = fd, .events = EPOLLOUT, .fn = on_connected};
    if (connect(fd, sa, p->len) < 0 && errno != EINPROGRESS)
        return -errno;
    rc = reactor_watch_add(n->reactor, &n->watch);
    return rc;
}

/* The next place that does not fail at once, or the result, from the timer. */
static void try_next(struct net_connecting *n)
{
    uint64_t now = reactor_now_ns(n->reactor),
             left = n->deadline_ns > now ? n->deadline_ns - now : 0;
    int rc;

    while (n->next < n->addr.n_places) {
        unsigned places = n->addr.n_places - n->next;

        rc = tcp_connect(n, &n->addr.places[n->next++]);
        if (rc == 0) {
            reactor_timer_start(n->reactor, &n->timer, now + left / places);
            return;
        }
        if (!n->result)
            n->result = rc;
        drop_socket(n);
    }
    reactor_timer_start(n->reactor, &n->timer, now);
}

int net_connect(struct reactor *r, const struct net_addr *addr, const struct net_options *o,
                void (*connected)(void *arg, struct net_conn *c, int status), void *arg,
                struct net_connecting **ret_connecting)
{
    struct net_connecting *n = mem_zalloc(sizeof *n);

    if (!n)
        return -ENOMEM;
    n->reactor = r;
    n->options = *o;
    n->addr = *addr;
    n->connected = connected;
    n->arg = arg;
    n->watch.fd = -1;
    n->deadline_ns = reactor_now_ns(r) + o->connect_timeout_ns;
    reactor_timer_init(&n->timer, on_timer);
    reactor_timer_start(r, &n->timer, n->deadline_ns);
    if (addr->loop)
        loop_connect(n);
    else
        try_next(n);
    *ret_connecting = n;
    return 0;
}

void net_connect_cancel(struct net_connecting *n)
{
    if (n->loop)
        loop_connect_cancel(n);
    drop_socket(n);
    reactor_timer_cancel(n->reactor, &n->timer);
    mem_free(n);
}
