/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call per FUSE request, with the call in the request's own memory. Reads take a buffer, the
 * one that was used last; when all are in use the request waits for one. A failed call fails the
 * request.
 */
#include "tools/bench/rpc_null.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>

#include "common/base/mem.h"
#include "proto/rpc.h"
#include "tools/bench/rpc_load.h"

#define N_BUFFERS 64u

struct rpc_null {
    unsigned want;
    struct crypto_key key;
    uint16_t port;
    struct reactor *reactor;
    struct rpc_node *node;
    struct rpc_peer *peer;
    uint8_t *memory;
    uint8_t *free[N_BUFFERS];
    unsigned n_free;
    struct list waiting; /* reads without a buffer */
};

struct io {
    struct rpc_call call;
    struct list link;
    struct rpc_null *null;
    struct channel_req *q;
    struct msg_range range;
    union {
        struct msg_read_req read;
        struct msg_write_req write;
    };
    struct iovec iov;
};
static_assert(sizeof(struct io) <= CHANNEL_PRIV_BYTES, "an io lives in its request");

static void begin_read(struct io *io);

static struct io *io_of(struct channel_req *q, struct rpc_null *null, uint32_t len)
{
    struct io *io = (struct io *)(void *)q->priv;

    io->null = null;
    io->q = q;
    io->range = (struct msg_range){.len = len};
    return io;
}

static void call(struct io *io, unsigned op, const void *req,
                 void (*done)(struct rpc_call *c, int status))
{
    rpc_call_init(&io->call, (uint16_t)op, req, done, io);
    io->call.session = 1;
    io->call.flags = RPC_CALL_WAIT;
    io->call.timeout_ns = 30 * NS_PER_S;
    if (op == RPC_OP_OSS_READ) {
        io->call.bulk_in = &io->iov;
        io->call.n_bulk_in = 1;
    } else {
        io->call.bulk_out = &io->iov;
        io->call.n_bulk_out = 1;
    }
    rpc_peer_call(io->null->peer, &io->call);
}

static void read_done(struct rpc_call *c, int status)
{
    struct io *io = c->arg;
    struct rpc_null *null = io->null;
    uint8_t *buffer = io->iov.iov_base;

    rpc_call_fini(c);
    if (status < 0)
        channel_reply_err(io->q, -EIO);
    else
        channel_reply_data(io->q, &io->iov, 1, NULL);
    null->free[null->n_free++] = buffer;
    if (!list_empty(&null->waiting)) {
        struct list *first = null->waiting.next;

        list_remove(first);
        begin_read(list_entry(first, struct io, link));
    }
}

static void begin_read(struct io *io)
{
    struct rpc_null *null = io->null;

    io->iov = (struct iovec){null->free[--null->n_free], io->range.len};
    io->read = (struct msg_read_req){.target = 1, .n_ranges = 1, .ranges = &io->range};
    call(io, RPC_OP_OSS_READ, &io->read, read_done);
}

static void on_read(struct channel_req *q, uint32_t len, void *arg)
{
    struct rpc_null *null = arg;
    struct io *io = io_of(q, null, len);

    if (null->n_free > 0)
        begin_read(io);
    else
        list_push_back(&null->waiting, &io->link);
}

static void write_done(struct rpc_call *c, int status)
{
    struct io *io = c->arg;

    rpc_call_fini(c);
    if (status < 0)
        channel_reply_err(io->q, -EIO);
    else
        channel_reply_write(io->q, io->range.len);
}

static void on_write(struct channel_req *q, void *arg)
{
    struct io *io = io_of(q, arg, q->io.len);

    io->iov = (struct iovec){(void *)(uintptr_t)q->io.data, q->io.len};
    io->write = (struct msg_write_req){.target = 1, .n_ranges = 1, .ranges = &io->range};
    call(io, RPC_OP_OSS_WRITE, &io->write, write_done);
}

static int start(struct reactor *reactor, void *arg)
{
    struct rpc_null *null = arg;
    size_t bytes = (size_t)N_BUFFERS * CHANNEL_IO_MAX;

    null->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (null->memory == MAP_FAILED)
        return -errno;
    for (unsigned i = 0; i < N_BUFFERS; i++)
        null->free[null->n_free++] = null->memory + (size_t)i * CHANNEL_IO_MAX;
    null->reactor = reactor;
    return rpc_client_start(reactor, null->want, &null->key, null->port, &null->node, &null->peer);
}

static void is_down(void *arg)
{
    reactor_stop(((struct rpc_null *)arg)->reactor);
}

static void stop(void *arg)
{
    struct rpc_null *null = arg;

    rpc_peer_destroy(null->peer);
    rpc_node_shutdown(null->node, is_down, null);
    reactor_run(null->reactor);
    rpc_node_destroy(null->node);
    munmap(null->memory, (size_t)N_BUFFERS * CHANNEL_IO_MAX);
}

int rpc_null_create(unsigned want, const struct crypto_key *key, uint16_t port,
                    struct null_fs_remote *ret_remote, struct rpc_null **ret_null)
{
    struct rpc_null *null = mem_zalloc(sizeof(*null));

    if (!null)
        return -ENOMEM;
    null->want = want;
    null->key = *key;
    null->port = port;
    list_init(&null->waiting);
    *ret_remote = (struct null_fs_remote){start, stop, on_read, on_write, null};
    *ret_null = null;
    return 0;
}

void rpc_null_free(struct rpc_null *null)
{
    mem_free(null);
}
