/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channel on libfuse's low-level API: session, mount and receive loop.
 *
 * libfuse's own loops are not used: its descriptor is watched by the reactor, which reads and
 * handles up to READS_PER_TURN messages each time. Reads and writes of the descriptor go through
 * functions of ours, for two reasons: messages are received into buffers laid out for us, and the
 * answer to INIT gets the flags that libfuse 3.14 does not know (HANDLE_KILLPRIV_V2, without which
 * the kernel asks for an extended attribute before every write).
 *
 * Fails: mounting (reported as text); the descriptor ends (unmounted, or the connection aborted):
 * ops->gone is called once. When all receive buffers are taken by unanswered writes, or
 * max_requests are unanswered, reading pauses until one is answered.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include "client/fuse/channel_int.h"
#include "client/fuse/mountinfo.h"
#include "common/base/cleanup.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"

#define READS_PER_TURN 32
#define MAX_REQUESTS   8192u
#define IDLE_REQUESTS  256u
#define TAG            "fuse"

static ssize_t io_read(int fd, void *buf, size_t len, void *user UNUSED)
{
    return read(fd, buf, len);
}

/* Answers to INIT pass here with flags added; everything else as it is. */
static ssize_t io_writev(int fd, struct iovec *iov, int count, void *user)
{
    struct channel *c = user;
    struct fuse_init_out out;
    struct iovec patched[2];

    if (LIKELY(!c->init_reply) || count != 2 || iov[1].iov_len > sizeof(out))
        return writev(fd, iov, count);
    c->init_reply = false;
    memset(&out, 0, sizeof(out));
    memcpy(&out, iov[1].iov_base, iov[1].iov_len);
    if (c->killpriv) {
        out.flags |= FUSE_HANDLE_KILLPRIV_V2;
        out.flags &= ~(uint32_t)FUSE_HANDLE_KILLPRIV;
    }
    if (c->direct_mmap) {
        out.flags |= FUSE_INIT_EXT;
        out.flags2 |= WIRE_DIRECT_IO_ALLOW_MMAP;
    }
    patched[0] = iov[0];
    patched[1].iov_base = &out;
    patched[1].iov_len = iov[1].iov_len;
    return writev(fd, patched, 2);
}

/* ---- receive buffers ---- */

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
        channel_buf_put(c, &c->bufs[i]);
    }
    return 0;
}

struct channel_buf *channel_buf_get(struct channel *c)
{
    struct channel_buf **list = c->buf_free ? &c->buf_free : &c->buf_cold;
    struct channel_buf *b = *list;

    if (b)
        *list = b->next;
    return b;
}

/* Buffers beyond the warm ones give their memory back. */
void channel_buf_put(struct channel *c, struct channel_buf *b)
{
    struct channel_buf **list = b->index < CHANNEL_BUFS_WARM ? &c->buf_free : &c->buf_cold;

    if (list == &c->buf_cold && c->watch.added)
        (void)madvise(b->mem, CHANNEL_BUF_BYTES, MADV_DONTNEED);
    b->next = *list;
    *list = b;
}

/* ---- receive loop ---- */

void channel_abandon(struct channel *c)
{
    if (c->gone)
        return;
    c->gone = true;
    if (c->watch.added)
        reactor_watch_remove(c->o.reactor, &c->watch);
    if (c->o.ops->gone)
        c->o.ops->gone(c->o.user);
}

static void channel_pause(struct channel *c)
{
    int rc = reactor_watch_modify(c->o.reactor, &c->watch, 0);

    c->paused = rc == 0;
    if (c->paused)
        LOG_WARN(TAG, "%u requests unanswered: reading pauses", c->n_requests);
}

void channel_resume(struct channel *c)
{
    if (!c->paused || c->gone)
        return;
    if (reactor_watch_modify(c->o.reactor, &c->watch, EPOLLIN) == 0)
        c->paused = false;
}

/* One message; false when there is none, or no more will come. */
static bool receive_one(struct channel *c)
{
    struct channel_buf *b = channel_buf_get(c);
    struct fuse_buf message = {0};
    int n;

    if (!b || c->n_requests >= c->o.max_requests) {
        if (b)
            channel_buf_put(c, b);
        channel_pause(c);
        return false;
    }
    message.mem = b->mem + CHANNEL_PAGE_BYTES - CHANNEL_HEAD_BYTES;
    n = fuse_session_receive_buf(c->session, &message);
    if (n <= 0) {
        channel_buf_put(c, b);
        if (n != -EAGAIN && n != -EINTR)
            channel_abandon(c);
        return false;
    }
    message.size = (size_t)n;
    c->message = message.mem;
    c->message_buf = b;
    fuse_session_process_buf(c->session, &message);
    c->message = NULL;
    if (c->message_buf)
        channel_buf_put(c, c->message_buf);
    c->message_buf = NULL;
    return !c->gone && !c->paused;
}

static void channel_readable(struct reactor_watch *w, uint32_t events)
{
    struct channel *c = container_of(w, struct channel, watch);

    if (c->paused && (events & (EPOLLERR | EPOLLHUP))) {
        channel_abandon(c);
        return;
    }
    for (int i = 0; i < READS_PER_TURN; i++) {
        if (!receive_one(c))
            return;
    }
}

/* ---- requests ---- */

void channel_req_free(struct channel_req *q)
{
    struct channel *c = q->channel;

    if (q->buf)
        channel_buf_put(c, q->buf);
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

/* The kernel caps read-ahead at 128 KiB in INIT; a mount's own setting may be larger. */
static void set_read_ahead(const struct channel *c)
{
    char path[96];
    struct mountinfo info;
    FILE *f;

    if (!c->o.read_ahead_bytes || mountinfo_find(c->mountpoint, &info) != 1)
        return;
    snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb", info.major, info.minor);
    f = fopen(path, "we");
    if (!f) {
        LOG_INFO(TAG, "read-ahead of the kernel stays at its default: %s: %m", path);
        return;
    }
    fprintf(f, "%u\n", c->o.read_ahead_bytes / KIB);
    if (fclose(f) != 0)
        LOG_INFO(TAG, "read-ahead of the kernel stays at its default: %s: %m", path);
}

static int session_mount(struct channel *c, char *err, size_t err_len)
{
    const struct fuse_custom_io io = {.read = io_read, .writev = io_writev};
    int fd, rc;

    if (fuse_session_mount(c->session, c->mountpoint) != 0) {
        snprintf(err, err_len, "cannot mount %s: %s", c->mountpoint,
                 errno ? err_text(-errno) : "the kernel refused (see above)");
        return -EIO;
    }
    c->mounted = true;
    fd = fuse_session_fd(c->session);
    rc = fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0 ? -errno : 0;
    if (rc == 0)
        rc = fuse_session_custom_io(c->session, &io, fd);
    if (rc == 0) {
        c->watch.fd = fd;
        c->watch.events = EPOLLIN;
        c->watch.fn = channel_readable;
        rc = reactor_watch_add(c->o.reactor, &c->watch);
    }
    if (rc != 0)
        snprintf(err, err_len, "/dev/fuse: %s", err_text(rc));
    return rc;
}

/* A comma or backslash in a mount option's value is written with a backslash. */
static char *escaped(const char *value)
{
    char *out = mem_alloc(2 * strlen(value) + 1), *o = out;

    for (; out && *value; value++) {
        if (*value == ',' || *value == '\\')
            *o++ = '\\';
        *o++ = *value;
    }
    if (out)
        *o = '\0';
    return out;
}

static int session_create(struct channel *c, char *err, size_t err_len)
{
    AUTO_FREE char *source = escaped(c->o.source);
    char *text = source ? mem_printf("fsname=%s,subtype=aifs,default_permissions,max_read=%u%s%s%s",
                                     source, CHANNEL_IO_MAX, geteuid() == 0 ? ",allow_other" : "",
                                     c->o.mount_flags && *c->o.mount_flags ? "," : "",
                                     c->o.mount_flags ? c->o.mount_flags : "")
                        : NULL;
    char *argv[] = {(char *)"aifs-mount", (char *)"-o", text, (char *)"-d", NULL};
    struct fuse_args args = FUSE_ARGS_INIT(c->o.debug ? 4 : 3, argv);

    if (text)
        c->session = fuse_session_new(&args, &channel_libfuse_ops, sizeof(channel_libfuse_ops), c);
    fuse_opt_free_args(&args);
    mem_free(text);
    if (c->session)
        return 0;
    snprintf(err, err_len, "libfuse does not accept the mount options");
    return text ? -EINVAL : -ENOMEM;
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
    c->mountpoint = mem_strdup(options->mountpoint);
    rc = c->mountpoint ? bufs_create(c) : -ENOMEM;
    if (rc == 0)
        rc = channel_notifier_start(c);
    if (rc == 0)
        rc = session_create(c, err, err_len);
    if (rc == 0)
        rc = session_mount(c, err, err_len);
    if (rc != 0) {
        channel_close(c);
        return rc;
    }
    set_read_ahead(c);
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
    if (c->mounted && !c->gone) {
        if (c->watch.added)
            reactor_watch_remove(c->o.reactor, &c->watch);
        c->gone = true;
        /* Aborts the connection, so that the notification thread cannot hang in the kernel. */
        if (umount2(c->mountpoint, MNT_FORCE | MNT_DETACH) != 0 && errno != EPERM)
            LOG_WARN(TAG, "unmount %s: %m", c->mountpoint);
    }
    channel_walk(c, req_abort, NULL);
    channel_notifier_stop(c);
    if (c->session) {
        if (c->mounted)
            fuse_session_unmount(c->session);
        fuse_session_destroy(c->session);
    }
    while ((l = list_pop_front(&c->idle)))
        mem_free(list_entry(l, struct channel_req, link));
    if (c->buf_memory)
        munmap(c->buf_memory, (size_t)CHANNEL_BUFS * CHANNEL_BUF_BYTES);
    mem_free(c->dir);
    mem_free(c->mountpoint);
    mem_free(c);
}
