/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all kinds of channel share: receive buffers, the loop that reads up to READS_PER_TURN
 * messages each time the kernel has something, requests from their message to their reply, opening
 * and closing.
 *
 * Fails: mounting (reported as text; the own channel first, where libfuse may still do); the
 * descriptor ends (unmounted, or the connection aborted): ops->gone is called once. When all
 * receive buffers are taken by unanswered writes, or max_requests are unanswered, reading pauses
 * until one is answered.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/mount.h>

#include "client/fuse/channel_int.h"
#include "client/fuse/mountinfo.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"

#define READS_PER_TURN 32
#define TURN_BYTES     (256u * KIB) /* then what is to be sent for them goes */
#define MAX_REQUESTS   8192u
#define IDLE_REQUESTS  256u
#define TAG            "fuse"

/* ---- receive buffers ---- */

static struct channel_buf *buf_get(struct channel *c)
{
    struct channel_buf **list = c->buf_free ? &c->buf_free : &c->buf_cold;
    struct channel_buf *b = *list;

    if (b)
        *list = b->next;
    return b;
}

/* Buffers beyond the warm ones give their memory back. */
static void buf_put(struct channel *c, struct channel_buf *b)
{
    struct channel_buf **list = b->index < CHANNEL_BUFS_WARM ? &c->buf_free : &c->buf_cold;

    if (list == &c->buf_cold && c->watch.added)
        (void)madvise(b->mem, CHANNEL_BUF_BYTES, MADV_DONTNEED);
    b->next = *list;
    *list = b;
}

static int bufs_create(struct channel *c)
{
    size_t bytes = (size_t)CHANNEL_BUFS * CHANNEL_BUF_BYTES;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED)
        return -errno;
    c->buf_memory = memory;
    memset(memory, 0, (size_t)CHANNEL_BUFS_WARM * CHANNEL_BUF_BYTES);
    for (unsigned i = CHANNEL_BUFS; i-- > 0;) {
        c->bufs[i].index = i;
        c->bufs[i].mem = c->buf_memory + (size_t)i * CHANNEL_BUF_BYTES;
        buf_put(c, &c->bufs[i]);
    }
    return 0;
}

/* ---- receive loop ---- */

static void tell_gone(struct channel *c)
{
    if (!c->gone_told && c->o.ops->gone)
        c->o.ops->gone(c->o.user);
    c->gone_told = true;
}

/* Nothing more comes from the kernel. */
static void channel_end(struct channel *c)
{
    if (c->gone)
        return;
    c->gone = true;
    reactor_timer_cancel(c->o.reactor, &c->more);
    if (c->watch.added)
        reactor_watch_remove(c->o.reactor, &c->watch);
    tell_gone(c);
}

void channel_refuse(struct channel *c)
{
    c->refusing = true;
    tell_gone(c);
}

static void channel_pause(struct channel *c)
{
    int rc = reactor_watch_modify(c->o.reactor, &c->watch, 0);

    c->paused = rc == 0;
    if (c->paused)
        LOG_WARN(TAG, "%u requests unanswered: reading pauses", c->n_requests);
}

static void channel_resume(struct channel *c)
{
    if (!c->paused || c->gone || !c->watch.added)
        return;
    if (reactor_watch_modify(c->o.reactor, &c->watch, EPOLLIN) == 0)
        c->paused = false;
}

/* One message: its length; 0 when there is none, or no more will come. */
static size_t receive_one(struct channel *c)
{
    struct channel_buf *b = c->n_requests < c->o.max_requests ? buf_get(c) : NULL;
    int n;

    if (!b) {
        channel_pause(c);
        return 0;
    }
    c->message_buf = b;
    n = c->transport->receive(c);
    c->message = NULL;
    if (c->message_buf)
        buf_put(c, c->message_buf);
    c->message_buf = NULL;
    if (n < 0 && n != -EAGAIN && n != -EINTR)
        channel_end(c);
    if (n < 0 || c->gone || c->paused)
        return 0;
    return MAX((size_t)n, 1u); /* a request that had ended has no length */
}

void channel_drain(struct channel *c)
{
    if (!c->transport || c->watch.fd < 0)
        return;
    channel_ring_digest(c);
    while (!c->gone && receive_one(c)) {
    }
}

/* A large WRITE ends the turn: what it sends leaves with the next one, which reads on behind that,
 * without a look at anything that would let others have the core. Were all that writers bring taken
 * first, servers would wait for it, and then have it all at once. */
static void receive(struct channel *c)
{
    size_t bytes = 0, n = 1;

    for (int i = 0; i < READS_PER_TURN && n && bytes < TURN_BYTES; i++) {
        n = receive_one(c);
        bytes += n;
    }
    if (n && bytes >= TURN_BYTES)
        reactor_timer_start(c->o.reactor, &c->more, reactor_now_ns(c->o.reactor));
}

static void receive_more(struct reactor_timer *t)
{
    struct channel *c = container_of(t, struct channel, more);

    if (!c->paused)
        receive(c);
}

static void channel_readable(struct reactor_watch *w, uint32_t events)
{
    struct channel *c = container_of(w, struct channel, watch);

    if (c->paused && (events & (EPOLLERR | EPOLLHUP)))
        channel_end(c);
    else
        receive(c);
}

void channel_tell_ready(struct channel *c)
{
    if (!c->ready_told && c->o.ops->ready)
        c->o.ops->ready(c->o.user);
    c->ready_told = true;
}

/* ---- requests ---- */

struct channel_req *channel_req_begin(struct channel *c, enum channel_op op, uint64_t node,
                                      uint32_t uid, uint32_t gid, uint32_t pid)
{
    struct list *l = list_pop_front(&c->idle);
    struct channel_req *q = l ? list_entry(l, struct channel_req, link) : mem_alloc(sizeof(*q));

    if (!q)
        return NULL;
    if (l)
        c->n_idle--;
    q->channel = c;
    q->user = c->o.user;
    q->op = op;
    q->node = node;
    q->uid = uid;
    q->gid = gid;
    q->pid = pid;
    q->interrupted = false;
    q->interrupt = NULL;
    q->raw = NULL;
    q->unique = c->message->unique;
    q->copy = NULL;
    q->buf = NULL;
    q->room = NULL;
    q->start_ns = reactor_now_ns(c->o.reactor);
    list_push_back(&c->requests, &q->link);
    c->n_requests++;
    return q;
}

void channel_req_run(struct channel_req *q)
{
    void (*fn)(struct channel_req *) = q->channel->o.ops->op[q->op];

    if (q->channel->refusing)
        channel_reply_err(q, -ENOTCONN);
    else if (fn)
        fn(q);
    else
        channel_reply_err(q, -ENOSYS);
}

void channel_req_interrupted(struct channel_req *q)
{
    void (*fn)(struct channel_req *) = q->interrupt;

    q->interrupted = true;
    q->interrupt = NULL;
    if (fn)
        fn(q);
}

/* When the kernel's INTERRUPT has come before, fn is called at once (libfuse sees to that itself).
 */
void channel_on_interrupt(struct channel_req *q, void (*fn)(struct channel_req *q))
{
    q->interrupt = fn;
    if (q->channel->transport->on_interrupt)
        q->channel->transport->on_interrupt(q);
    else if (q->interrupted)
        channel_req_interrupted(q);
}

void channel_req_free(struct channel_req *q)
{
    struct channel *c = q->channel;

    if (q->buf)
        buf_put(c, q->buf);
    if (q->room)
        c->o.ops->room_back(c->o.user, q->room);
    mem_free(q->copy);
    list_remove(&q->link);
    c->n_requests--;
    if (c->n_idle < IDLE_REQUESTS) {
        list_push_front(&c->idle, &q->link);
        c->n_idle++;
    } else {
        mem_free(q);
    }
    channel_resume(c);
}

unsigned channel_in_flight(const struct channel *c)
{
    return c->n_requests;
}

void channel_walk(struct channel *c, bool (*fn)(struct channel_req *q, uint64_t age_ns, void *arg),
                  void *arg)
{
    uint64_t now = reactor_now_ns(c->o.reactor);
    struct list *l, *tmp;

    list_for_each_safe (l, tmp, &c->requests) {
        struct channel_req *q = list_entry(l, struct channel_req, link);

        if (!fn(q, now > q->start_ns ? now - q->start_ns : 0, arg))
            return;
    }
}

const char *channel_op_name(enum channel_op op)
{
#define OP_NAME(upper, lower) #lower,
    static const char *const names[] = {CHANNEL_OPS(OP_NAME)};
#undef OP_NAME

    return (unsigned)op < ARRAY_LEN(names) ? names[op] : "?";
}

/* ---- life ---- */

static void note_mount(struct channel *c)
{
    struct mountinfo info;

    if (mountinfo_find(c->mountpoint, &info) != 1)
        return;
    c->major = info.major;
    c->minor = info.minor;
}

bool channel_is_mounted(const struct channel *c)
{
    struct mountinfo info;

    return !c->minor || /* it could not be seen when it was mounted */
           (mountinfo_find(c->mountpoint, &info) == 1 && info.major == c->major &&
            info.minor == c->minor);
}

/* The kernel caps read-ahead at 128 KiB in INIT; a mount's own setting may be larger. */
static void set_read_ahead(const struct channel *c)
{
    char path[96];
    FILE *f;

    if (!c->o.read_ahead_bytes || !c->minor)
        return;
    snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb", c->major, c->minor);
    f = fopen(path, "we");
    if (!f) {
        LOG_INFO(TAG, "read-ahead of the kernel stays at its default: %s: %m", path);
        return;
    }
    fprintf(f, "%u\n", c->o.read_ahead_bytes / KIB);
    if (fclose(f) != 0)
        LOG_INFO(TAG, "read-ahead of the kernel stays at its default: %s: %m", path);
}

static int transport_open(struct channel *c, const struct channel_transport *t, char *err,
                          size_t err_len)
{
    int rc;

    c->transport = t;
    c->watch.events = EPOLLIN;
    c->watch.fn = channel_readable;
    c->watch.fd = -1;
    rc = t->open(c, err, err_len);
    if (rc != 0)
        return rc;
    c->mounted = true;
    rc = reactor_watch_add(c->o.reactor, &c->watch);
    if (rc != 0)
        snprintf(err, err_len, "/dev/fuse: %s", err_text(rc));
    return rc;
}

/* The own channel, and libfuse where it cannot be had and nobody has insisted. */
static int open_either(struct channel *c, char *err, size_t err_len)
{
    int rc;

    if (c->o.kind == CHANNEL_KIND_LIBFUSE)
        return transport_open(c, &channel_libfuse, err, err_len);
    if (c->o.kind == CHANNEL_KIND_IO_URING)
        return transport_open(c, &channel_ring_transport, err, err_len);
    rc = transport_open(c, &channel_dev, err, err_len);
    if (rc == 0 || c->mounted || c->o.kind == CHANNEL_KIND_FUSE)
        return rc;
    LOG_INFO(TAG, "channel=libfuse for %s: %s", c->mountpoint, err);
    return transport_open(c, &channel_libfuse, err, err_len);
}

int channel_open(const struct channel_options *options, struct channel **ret_channel, char *err,
                 size_t err_len)
{
    struct channel *c = mem_zalloc(sizeof(*c));
    int rc = -ENOMEM;

    snprintf(err, err_len, "out of memory");
    if (!c)
        return rc;
    c->o = *options;
    c->o.max_requests = c->o.max_requests ? c->o.max_requests : MAX_REQUESTS;
    list_init(&c->requests);
    list_init(&c->idle);
    reactor_timer_init(&c->more, receive_more);
    c->mountpoint = mem_strdup(options->mountpoint);
    rc = c->mountpoint ? bufs_create(c) : -ENOMEM;
    if (rc == 0)
        rc = channel_notifier_start(c);
    if (rc == 0)
        rc = open_either(c, err, err_len);
    if (rc != 0) {
        channel_close(c);
        return rc;
    }
    note_mount(c);
    set_read_ahead(c);
    if (c->transport != &channel_ring_transport) /* which tells when the kernel has agreed */
        LOG_INFO(TAG, "channel=%s for %s", c->transport->name, c->mountpoint);
    *ret_channel = c;
    return 0;
}

static bool req_abort(struct channel_req *q, uint64_t age_ns UNUSED, void *arg UNUSED)
{
    channel_reply_err(q, -EIO);
    return true;
}

void channel_close(struct channel *c)
{
    struct list *l;

    if (!c)
        return;
    reactor_timer_cancel(c->o.reactor, &c->more);
    if (c->watch.added)
        reactor_watch_remove(c->o.reactor, &c->watch);
    c->refusing = c->gone_told = true;
    c->paused = false;
    if (c->mounted && !c->gone) /* it may have been detached, and another be there by now */
        c->mounted = channel_is_mounted(c);
    if (c->mounted && !c->gone) {
        /* Aborts the connection, so that the notification thread cannot hang in the kernel. */
        if (umount2(c->mountpoint, MNT_FORCE | MNT_DETACH) != 0 && errno != EPERM)
            LOG_WARN(TAG, "unmount %s: %m", c->mountpoint);
    }
    channel_walk(c, req_abort, NULL);
    channel_notifier_stop(c);
    c->gone = true;
    if (c->transport)
        c->transport->close(c);
    while ((l = list_pop_front(&c->idle)))
        mem_free(list_entry(l, struct channel_req, link));
    if (c->buf_memory)
        munmap(c->buf_memory, (size_t)CHANNEL_BUFS * CHANNEL_BUF_BYTES);
    mem_free(c->dir);
    mem_free(c->mountpoint);
    mem_free(c);
}
