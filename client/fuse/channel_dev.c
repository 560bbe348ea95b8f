/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channel that speaks the kernel's protocol itself, over /dev/fuse. A message is read straight
 * into a receive buffer, decoded into a request (wire_decode.c) and handled; a reply is one
 * writev(2), gathered from where the data is.
 *
 * INIT settles what is used: whatever the kernel offers and aifs wants, never WRITEBACK_CACHE (the
 * kernel would no longer believe our sizes and times) nor splice (it halves throughput). FORGET and
 * INTERRUPT have no reply. An INTERRUPT follows its request, since the kernel sends it only once
 * that has been read, and all is read here, or is in the ring, which is asked first: a request that
 * is not found has been answered.
 *
 * Fails: a message that is not what it says is logged and answered with EIO; an operation that is
 * not known with ENOSYS. A kernel older than WIRE_MINOR_OLDEST is refused: the mount fails every
 * call, and the log says why.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/uio.h>
#include <unistd.h>

#include "client/fuse/channel_int.h"
#include "client/fuse/channel_mount.h"
#include "client/fuse/wire_decode.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/net/buf.h"

#define TAG        "fuse"
#define ROOM_TURNS 16u

/* What is asked for, as far as the kernel offers it. */
#define WANT                                                                                       \
    (WIRE_ASYNC_READ | WIRE_ATOMIC_O_TRUNC | WIRE_BIG_WRITES | WIRE_DONT_MASK |                    \
     WIRE_AUTO_INVAL_DATA | WIRE_DO_READDIRPLUS | WIRE_READDIRPLUS_AUTO | WIRE_ASYNC_DIO |         \
     WIRE_PARALLEL_DIROPS | WIRE_MAX_PAGES | WIRE_CACHE_SYMLINKS | WIRE_HANDLE_KILLPRIV_V2 |       \
     WIRE_INIT_EXT | WIRE_HAS_EXPIRE_ONLY | WIRE_DIRECT_IO_ALLOW_MMAP)

/* ---- sending ---- */

static int dev_send_to(const struct channel *c, uint64_t unique, int error, const struct iovec *iov,
                       int n)
{
    struct wire_out_header h = {.len = sizeof(h), .error = -error, .unique = unique};
    struct iovec all[CHANNEL_REPLY_PIECES + 1] = {{&h, sizeof(h)}};

    if (n > CHANNEL_REPLY_PIECES)
        return -EINVAL;
    for (int i = 0; i < n; i++) {
        h.len += (uint32_t)iov[i].iov_len;
        all[i + 1] = iov[i];
    }
    return writev(c->watch.fd, all, n + 1) < 0 ? -errno : 0;
}

int channel_dev_send(struct channel_req *q, int error, const struct iovec *iov, int n)
{
    return dev_send_to(q->channel, q->unique, error, iov, n);
}

/* Of a message that has not become a request. */
void channel_dev_refuse(struct channel *c, int error)
{
    int rc = 0;

    if (c->message_entry)
        channel_ring_commit(c->message_entry, error, 0);
    else
        rc = dev_send_to(c, c->message->unique, error, NULL, 0);
    if (rc != 0 && rc != -ENOENT && rc != -ENODEV)
        LOG_WARN(TAG, "reply to operation %u: %s", c->message->opcode, err_text(rc));
}

/* ---- messages that are no requests ---- */

static uint64_t settle(struct channel *c, const struct wire_init_in *in, size_t len)
{
    uint64_t want = WANT, offered = in->flags;

    if ((in->flags & WIRE_INIT_EXT) && len >= sizeof(*in))
        offered |= (uint64_t)in->flags2 << 32;
    if (c->o.posix_acl)
        want |= WIRE_POSIX_ACL;
    if (c->o.ops->op[CHANNEL_SETLK]) /* else the kernel keeps locks, for this mount only */
        want |= WIRE_POSIX_LOCKS | WIRE_FLOCK_LOCKS;
    want &= offered;
    if (channel_ring_wanted(c, offered))
        want |= WIRE_OVER_IO_URING;
    c->killpriv = (want & WIRE_HANDLE_KILLPRIV_V2) != 0;
    c->expire_only = (offered & WIRE_HAS_EXPIRE_ONLY) != 0;
    LOG_DEBUG(TAG, "kernel protocol %u.%u, offered %#llx, used %#llx", in->major, in->minor,
              (unsigned long long)offered, (unsigned long long)want);
    return want;
}

static void on_init(struct channel *c, const void *body, size_t len)
{
    const struct wire_init_in *in = body;
    struct wire_init_out out = {.major = WIRE_MAJOR,
                                .minor = WIRE_MINOR,
                                .max_readahead = CHANNEL_IO_MAX, /* a bound */
                                .max_background = CHANNEL_MAX_BACKGROUND,
                                .congestion_threshold = CHANNEL_CONGESTION,
                                .max_write = CHANNEL_IO_MAX,
                                .time_gran = 1,
                                .max_pages = CHANNEL_IO_MAX / CHANNEL_PAGE_BYTES};
    struct iovec iov = {&out, sizeof(out)};
    uint64_t used;
    int rc;

    if (len < offsetof(struct wire_init_in, flags2) || in->major < WIRE_MAJOR ||
        (in->major == WIRE_MAJOR && in->minor < WIRE_MINOR_OLDEST)) {
        LOG_ERROR(TAG, "the kernel's FUSE protocol is too old: 7.%u is the oldest that is spoken",
                  WIRE_MINOR_OLDEST);
        channel_dev_refuse(c, EPROTO);
        return;
    }
    if (in->major > WIRE_MAJOR) { /* it says hello again, with our version */
        iov.iov_len = 2 * sizeof(uint32_t);
        rc = dev_send_to(c, c->message->unique, 0, &iov, 1);
        if (rc != 0)
            LOG_ERROR(TAG, "reply to INIT: %s", err_text(rc));
        return;
    }
    used = settle(c, in, len);
    c->proto_minor = in->minor;
    out.flags = (uint32_t)used;
    out.flags2 = (uint32_t)(used >> 32);
    rc = dev_send_to(c, c->message->unique, 0, &iov, 1);
    if (rc != 0) {
        LOG_ERROR(TAG, "reply to INIT: %s", err_text(rc));
        return;
    }
    if (used & WIRE_OVER_IO_URING)
        channel_ring_begin(c);
    channel_tell_ready(c);
}

static void on_forgets(struct channel *c, const void *body, size_t len)
{
    size_t n;
    const struct wire_forget_one *f = wire_forgets(body, len, &n);

    for (size_t i = 0; c->o.ops->forget && i < n; i++)
        c->o.ops->forget(c->o.user, f[i].nodeid, f[i].nlookup);
}

static void on_forget(struct channel *c, const void *body, size_t len)
{
    const struct wire_forget_in *in = body;

    if (c->o.ops->forget && len >= sizeof(*in))
        c->o.ops->forget(c->o.user, c->message->nodeid, in->nlookup);
}

static bool interrupt_one(struct channel_req *q, uint64_t age_ns UNUSED, void *arg)
{
    const uint64_t *unique = arg;

    if (q->unique != *unique)
        return true;
    channel_req_interrupted(q);
    return false;
}

static void on_interrupt(struct channel *c, const void *body, size_t len)
{
    struct wire_interrupt_in in;

    if (len < sizeof(in))
        return;
    memcpy(&in, body, sizeof(in));
    channel_ring_digest(c);
    channel_walk(c, interrupt_one, &in.unique);
}

/* ---- requests ---- */

/* What is longer than a name outlives the message in a copy; the data of a WRITE keeps the message
 * itself, as every request does that came by the ring. */
static int keep(struct channel_req *q)
{
    struct channel *c = q->channel;

    if (q->raw) {
        return 0;
    } else if (c->message_room) { /* of a WRITE: nothing else has one */
        q->room = c->message_room;
        q->io.data = q->room->data;
        c->message_room = NULL;
        return 0;
    } else if (q->op == CHANNEL_WRITE) {
        q->buf = c->message_buf;
        c->message_buf = NULL;
    } else if (q->op == CHANNEL_SYMLINK) {
        q->copy = mem_strdup(q->make.target);
        q->make.target = q->copy;
    } else if (q->op == CHANNEL_SETXATTR) {
        q->copy = mem_dup(q->xattr.value, MAX(q->xattr.size, 1u));
        q->xattr.value = q->copy;
    } else {
        return 0;
    }
    return q->buf || q->copy ? 0 : -ENOMEM;
}

void channel_dev_request(struct channel *c, const void *body, size_t len)
{
    const struct wire_in_header *h = c->message;
    enum channel_op op = wire_op(h->opcode);
    struct channel_req *q;
    int rc;

    if (op == CHANNEL_N_OPS) {
        channel_dev_refuse(c, ENOSYS);
        return;
    }
    q = channel_req_begin(c, op, h->nodeid, h->uid, h->gid, h->pid);
    if (!q) {
        channel_dev_refuse(c, ENOMEM);
        return;
    }
    q->raw = c->message_entry;
    rc = wire_decode(h, body, len, c->killpriv, q);
    if (rc == -EIO)
        LOG_ERROR(TAG, "%s of inode %llu: the kernel's message of %zu bytes is malformed",
                  channel_op_name(op), (unsigned long long)h->nodeid, len);
    if (rc == 0)
        rc = keep(q);
    if (rc == 0 && q->raw && op == CHANNEL_SETLK && q->lock.wait && !channel_ring_may_wait(q->raw))
        rc = -ENOLCK;
    if (rc != 0)
        channel_reply_err(q, rc);
    else
        channel_req_run(q);
}

static void handle(struct channel *c, const void *body, size_t len)
{
    if (c->o.debug)
        LOG_DEBUG(TAG, "request %llu: operation %u of inode %llu, %zu bytes, process %u",
                  (unsigned long long)c->message->unique, c->message->opcode,
                  (unsigned long long)c->message->nodeid, len, c->message->pid);
    switch (c->message->opcode) {
    case WIRE_FORGET:
        on_forget(c, body, len);
        break;
    case WIRE_BATCH_FORGET:
        on_forgets(c, body, len);
        break;
    case WIRE_INTERRUPT:
        on_interrupt(c, body, len);
        break;
    case WIRE_INIT:
        on_init(c, body, len);
        break;
    case WIRE_DESTROY:
        channel_dev_refuse(c, 0);
        break;
    default:
        channel_dev_request(c, body, len);
    }
}

/* ---- reading ---- */

static void room_back(struct channel *c)
{
    if (c->message_room)
        c->o.ops->room_back(c->o.user, c->message_room);
    c->message_room = NULL;
}

/* What is no large WRITE is put together behind its header. */
static void room_settle(struct channel *c, struct wire_in_header *h, ssize_t n)
{
    bool large = n == CHANNEL_HEAD_BYTES + CHANNEL_IO_MAX && h->opcode == WIRE_WRITE;

    if (large)
        c->room_turns = ROOM_TURNS;
    else if (c->room_turns > 0 && n > 0)
        c->room_turns--;
    if (!c->message_room || large)
        return;
    if (n > (ssize_t)CHANNEL_HEAD_BYTES)
        memcpy((uint8_t *)h + CHANNEL_HEAD_BYTES, c->message_room->data,
               (size_t)n - CHANNEL_HEAD_BYTES);
    room_back(c);
}

/* Where large WRITEs come one after the other, their data lands in memory that the file system can
 * keep as it is, and the headers here. */
static ssize_t read_message(struct channel *c, struct wire_in_header *h)
{
    struct iovec iov[2] = {{h, CHANNEL_MESSAGE_MAX}};
    ssize_t n;

    if (c->room_turns > 0 && c->o.ops->room)
        c->message_room = c->o.ops->room(c->o.user);
    if (c->message_room) {
        iov[0].iov_len = CHANNEL_HEAD_BYTES;
        iov[1] = (struct iovec){c->message_room->data, CHANNEL_IO_MAX};
    }
    n = readv(c->watch.fd, iov, c->message_room ? 2 : 1);
    if (n < 0)
        n = -errno;
    room_settle(c, h, n);
    return n;
}

/* ENOENT: the request ended before it could be read. */
int channel_dev_receive(struct channel *c)
{
    struct wire_in_header *h = channel_buf_message(c->message_buf);
    ssize_t n = read_message(c, h);

    if (n < 0)
        return n == -ENOENT ? 0 : (int)n;
    if ((size_t)n < sizeof(*h)) {
        LOG_ERROR(TAG, "a message of %zd bytes from the kernel", n);
        return -EPROTO;
    }
    c->message = h;
    if (h->len != (size_t)n) {
        LOG_ERROR(TAG, "a message of %zd bytes from the kernel says it has %u", n, h->len);
        channel_dev_refuse(c, EIO);
    } else {
        handle(c, h + 1, (size_t)n - sizeof(*h));
    }
    room_back(c); /* of a request that could not be made */
    return (int)n;
}

/* ---- life ---- */

int channel_dev_open(struct channel *c, char *err, size_t err_len)
{
    return channel_mount(c->o.source, c->mountpoint, c->o.mount_flags, &c->watch.fd, err, err_len);
}

/* The kernel ends the connection itself when it has unmounted; else the descriptor is closed first,
 * so that unmounting cannot ask us anything. */
void channel_dev_close(struct channel *c)
{
    struct pollfd p = {.fd = c->watch.fd};
    bool ended;

    if (c->watch.fd < 0)
        return;
    ended = poll(&p, 1, 0) == 1 && (p.revents & POLLERR) != 0;
    close(c->watch.fd);
    if (c->mounted && !ended && umount2(c->mountpoint, MNT_DETACH) != 0 && errno != EINVAL)
        LOG_WARN(TAG, "unmount %s: %m", c->mountpoint);
}

const struct channel_transport channel_dev = {.name = "fuse",
                                              .open = channel_dev_open,
                                              .receive = channel_dev_receive,
                                              .send = channel_dev_send,
                                              .close = channel_dev_close};
