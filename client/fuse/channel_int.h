/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the channel. What all kinds share: buffers, requests and the receive loop (channel.c),
 * replies (channel_reply.c), the notification threads (channel_notify.c). A kind mounts, receives
 * and sends: the protocol itself over /dev/fuse (channel_dev.c), the same with a ring for requests
 * and their answers (channel_ring.c), or libfuse (channel_libfuse.c).
 */
#ifndef AIFS_CLIENT_FUSE_CHANNEL_INT_H
#define AIFS_CLIENT_FUSE_CHANNEL_INT_H

#include <pthread.h>

#include "client/fuse/channel.h"
#include "client/fuse/wire.h"
#include "common/base/list.h"

#define CHANNEL_REPLY_PIECES   32 /* of a reply with data */
#define CHANNEL_MAX_BACKGROUND 64 /* requests of read-ahead and asynchronous I/O at once */
#define CHANNEL_CONGESTION     48

/* A receive buffer: message header and WRITE header end where a page begins, so that the data of a
 * WRITE is page aligned. */
#define CHANNEL_HEAD_BYTES (sizeof(struct wire_in_header) + sizeof(struct wire_write_in))
#define CHANNEL_PAGE_BYTES 4096u
#define CHANNEL_BUF_BYTES  (CHANNEL_IO_MAX + 2u * CHANNEL_PAGE_BYTES)
#define CHANNEL_BUFS       256u /* receive buffers at most: address space, touched when used */
#define CHANNEL_BUFS_WARM  8u   /* of them touched at start and never given back */

struct channel_buf {
    uint8_t *mem;
    struct channel_buf *next;
    unsigned index;
};

static inline void *channel_buf_message(const struct channel_buf *b)
{
    return b->mem + CHANNEL_PAGE_BYTES - CHANNEL_HEAD_BYTES;
}

#define CHANNEL_MESSAGE_MAX (CHANNEL_BUF_BYTES - CHANNEL_PAGE_BYTES + CHANNEL_HEAD_BYTES)

struct channel_notice {
    struct list link;
    enum { NOTICE_INODE, NOTICE_ENTRY } kind;
    uint64_t node;
    int64_t offset, len;
    channel_notified_fn done;
    void *arg;
    int err;
    char name[MSG_NAME_MAX + 1];
};

#define CHANNEL_NOTICES 4096u

struct channel_notifier {
    struct channel *channel;
    pthread_mutex_t lock; /* all below; never held over a call into the kernel */
    pthread_cond_t wake;
    pthread_t thread;
    bool started, stop, posted;
    struct list queue, finished;
    unsigned count;
    struct reactor_work work; /* delivers what is finished */
};

struct channel_transport {
    const char *name;
    /* Mounts: watch.fd is where the kernel is heard, non-blocking. -errno, text in err. */
    int (*open)(struct channel *c, char *err, size_t err_len);
    /* Reads one message into message_buf and handles it: its length, or -errno. */
    int (*receive)(struct channel *c);
    /* Answers a request: error (positive) or data, one of them. -errno of the kernel. */
    int (*send)(struct channel_req *q, int error, const struct iovec *iov, int n);
    void (*on_interrupt)(struct channel_req *q); /* is wanted from now on. May be NULL */
    /* Memory that the answer of a READ is sent from without a copy; NULL: none. May be NULL */
    void *(*room)(struct channel_req *q);
    /* Unmounts unless the kernel has done so, frees. */
    void (*close)(struct channel *c);
};

extern const struct channel_transport channel_dev, channel_libfuse, channel_ring_transport;
struct channel_ring;
struct ring_entry;

struct channel {
    struct channel_options o;
    const struct channel_transport *transport;
    char *mountpoint;
    struct reactor_watch watch;
    struct reactor_timer more; /* large messages have ended a turn: on with the next */
    bool paused, gone, mounted, ready_told, gone_told;
    bool refusing;             /* whatever is asked for */
    unsigned major, minor;     /* of its mount */
    bool killpriv;             /* the kernel leaves clearing set-id bits to us */
    uint32_t proto_minor;      /* of the kernel */
    bool expire_only;          /* the kernel knows WIRE_EXPIRE_ONLY */
    struct channel_ring *ring; /* NULL: not wanted, or not to be had */

    struct fuse_session *session;         /* libfuse's */
    const struct wire_in_header *message; /* being decoded */
    struct channel_buf *message_buf;      /* where it is; NULL once a request has taken it */
    struct ring_entry *message_entry;     /* or here */
    struct buf *message_room;             /* where its data is; NULL: behind its header */
    unsigned room_turns; /* so many more messages are read with room for a large WRITE */
    bool init_reply;     /* libfuse: the next message sent answers INIT */
    bool direct_mmap;    /* the kernel can map files opened for direct I/O */

    uint8_t *buf_memory;
    struct channel_buf bufs[CHANNEL_BUFS], *buf_free, *buf_cold;

    struct list requests, idle; /* unanswered, oldest first; for reuse */
    unsigned n_requests, n_idle;

    uint8_t *dir; /* one reply of READDIR; grows to CHANNEL_IO_MAX */
    size_t dir_len, dir_cap, dir_room;

    /* Of names and of contents: a name may wait for the lock of a directory as long as a change of
     * our own in it, which may be waiting until another client has been given contents back. */
    struct channel_notifier names, contents;
};

/* A new request for the message in hand, from this caller; NULL: out of memory. */
struct channel_req *channel_req_begin(struct channel *c, enum channel_op op, uint64_t node,
                                      uint32_t uid, uint32_t gid, uint32_t pid);
void channel_req_run(struct channel_req *q); /* calls its handler */
void channel_req_interrupted(struct channel_req *q);
void channel_req_free(struct channel_req *q);
void channel_drain(struct channel *c); /* refuses what the kernel has asked for meanwhile */
/* INIT has been understood: the mount answers. */
void channel_tell_ready(struct channel *c);

/* /dev/fuse (channel_dev.c), for the ring too */
int channel_dev_open(struct channel *c, char *err, size_t err_len);
int channel_dev_receive(struct channel *c);
int channel_dev_send(struct channel_req *q, int error, const struct iovec *iov, int n);
void channel_dev_close(struct channel *c);
/* The message in hand: becomes a request, or is refused; error 0: an empty answer. */
void channel_dev_request(struct channel *c, const void *body, size_t len);
void channel_dev_refuse(struct channel *c, int error);

/* The ring (channel_ring.c): asked for in the answer to INIT if so, and begun behind it. */
bool channel_ring_wanted(struct channel *c, uint64_t offered);
void channel_ring_begin(struct channel *c);
void channel_ring_digest(struct channel *c); /* handles what has come by it */
/* Answers the request of e, with len bytes that are in its memory. */
void channel_ring_commit(struct ring_entry *e, int error, uint32_t len);
/* The entry holds a request that waits for a lock; false: too many do. */
bool channel_ring_may_wait(struct ring_entry *e);

int channel_notifier_start(struct channel *c) MUST_USE;
void channel_notifier_stop(struct channel *c);

#endif
