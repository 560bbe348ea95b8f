/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the libfuse channel: receive loop (channel_libfuse.c), requests (channel_decode.c),
 * replies (channel_reply.c) and the notification thread (channel_notify.c). */
#ifndef AIFS_CLIENT_FUSE_CHANNEL_INT_H
#define AIFS_CLIENT_FUSE_CHANNEL_INT_H

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <pthread.h>

#include "client/fuse/channel.h"
#include "common/base/list.h"

/* Not in every <linux/fuse.h>. */
#define WIRE_FOPEN_PARALLEL_DIRECT_WRITES (1u << 6)
#define WIRE_DIRECT_IO_ALLOW_MMAP         (1u << 4) /* in the second word of INIT's flags */
#define WIRE_NOTIFY_INC_EPOCH             8
#define PROTO_MINOR_INC_EPOCH             44u

/* A receive buffer: message header and WRITE header end where a page begins, so that the data of a
 * WRITE is page aligned. */
#define CHANNEL_HEAD_BYTES (sizeof(struct fuse_in_header) + sizeof(struct fuse_write_in))
#define CHANNEL_PAGE_BYTES 4096u
#define CHANNEL_BUF_BYTES  (CHANNEL_IO_MAX + 2u * CHANNEL_PAGE_BYTES)
#define CHANNEL_BUFS       256u /* receive buffers at most: address space, touched when used */
#define CHANNEL_BUFS_WARM  8u   /* of them touched at start and never given back */

struct channel_buf {
    uint8_t *mem;
    struct channel_buf *next;
    unsigned index;
};

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

struct channel {
    struct channel_options o;
    struct fuse_session *session;
    char *mountpoint;
    struct reactor_watch watch;
    bool paused, gone, mounted, ready_told;
    bool init_reply;      /* the next message sent answers INIT */
    bool killpriv;        /* the kernel leaves clearing set-id bits to us */
    uint32_t proto_minor; /* of the kernel */
    bool direct_mmap;     /* the kernel can map files opened for direct I/O */

    const struct fuse_in_header *message; /* being decoded */
    struct channel_buf *message_buf;      /* where it is; NULL once a request has taken it */

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

extern const struct fuse_lowlevel_ops channel_libfuse_ops;

/* A new request; NULL: out of memory, answered. Run: its handler is called. */
struct channel_req *channel_req_begin(fuse_req_t raw, enum channel_op op, fuse_ino_t node);
void channel_req_run(struct channel_req *q);
void channel_on_getlk(fuse_req_t raw, fuse_ino_t node, struct fuse_file_info *fi, struct flock *f);
void channel_on_setlk(fuse_req_t raw, fuse_ino_t node, struct fuse_file_info *fi, struct flock *f,
                      int sleep);
void channel_on_flock(fuse_req_t raw, fuse_ino_t node, struct fuse_file_info *fi, int op);
struct channel_buf *channel_buf_get(struct channel *c);
void channel_buf_put(struct channel *c, struct channel_buf *b);
void channel_resume(struct channel *c); /* a request has ended: read again if paused */
void channel_req_free(struct channel_req *q);

int channel_notifier_start(struct channel *c) MUST_USE;
void channel_notifier_stop(struct channel *c);

#endif
