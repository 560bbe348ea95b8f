/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small transfers of one inode and one target that share a call.
 *
 * Happy path: what has gathered in the target's queue goes out together: one range each in one
 * request, one piece of memory each. The answer is given to each as if it had come for it alone.
 * Nothing waits for company: the queue is emptied as soon as the turn of the reactor in which it
 * was filled is over.
 *
 * Failure: whatever goes wrong with a shared call may be the fault of one transfer only, so each
 * goes once more, alone, and what that brings is its own. Cancelling one ends the call.
 */
#include "client/core/core_int.h"
#include "client/core/room.h"

#define FREE_SHARES_MAX 16u

static_assert(OSS_SHARE_MAX <= NET_IOV_MAX && OSS_SHARE_MAX <= MSG_RANGES_MAX, "one call");

/* One call. Lives from share_new() until it was answered. */
struct oss_share {
    struct list link; /* core.free_shares */
    struct core *core;
    struct oss_target *target;
    struct rpc_call call;
    union {
        struct msg_read_req read;
        struct msg_write_req write;
    } msg;
    bool writes, stable;
    uint32_t n, bytes, n_crcs;
    struct oss_io *ios[OSS_SHARE_MAX];
    struct msg_range ranges[OSS_SHARE_MAX];
    struct iovec iov[OSS_SHARE_MAX];
    uint32_t crcs[OSS_SHARE_BYTES / CRC_BLOCK_BYTES + 2 * OSS_SHARE_MAX];
};

bool oss_io_shares(const struct oss_io *io)
{
    return !io->alone && !io->once_id && io->n_iov == 1 && io->range.len <= OSS_SHARE_IO_BYTES;
}

struct rpc_call *oss_io_call(struct oss_io *io)
{
    return io->share ? &io->share->call : &io->call;
}

static struct oss_share *share_new(struct core *c)
{
    struct oss_share *s;

    if (core_no_memory())
        return NULL;
    if (list_empty(&c->free_shares)) {
        s = mem_alloc(sizeof *s);
    } else {
        s = list_entry(list_pop_front(&c->free_shares), struct oss_share, link);
        c->n_free_shares--;
    }
    if (!s)
        return NULL;
    list_init(&s->link);
    s->core = c;
    s->n = s->bytes = s->n_crcs = 0;
    return s;
}

static void share_free(struct oss_share *s)
{
    struct core *c = s->core;

    rpc_call_fini(&s->call);
    if (c->n_free_shares == FREE_SHARES_MAX) {
        mem_free(s);
        return;
    }
    c->n_free_shares++;
    list_push_front(&c->free_shares, &s->link);
}

void share_fini(struct core *c)
{
    struct list *l;

    while ((l = list_pop_front(&c->free_shares)) != NULL)
        mem_free(list_entry(l, struct oss_share, link));
    c->n_free_shares = 0;
}

/* ---- answers ---- */

void oss_write_noted(struct oss_target *t, const struct msg_write_rep *rep)
{
    room_noted(t, rep);
    commit_verifier(t, rep->verifier);
}

/* Bytes [from, from + len) of the payload, which landed in the transfers' memory one behind the
 * other, to dst: further on, or where they are. From their end, since the two may overlap. */
static void move_on(const struct oss_share *s, uint8_t *dst, uint32_t from, uint32_t len)
{
    uint32_t begin = s->bytes;

    for (uint32_t k = s->n; k-- > 0 && len;) {
        uint32_t first;

        begin -= s->ranges[k].len;
        if (begin >= from + len)
            continue;
        first = MAX(begin, from);
        memmove(dst + (first - from), (uint8_t *)s->iov[k].iov_base + (first - begin),
                from + len - first);
        len = first - from;
    }
}

/* Less came of a range than was asked for: what came behind it has landed too early. */
static void spread(const struct oss_share *s, const uint32_t *lens, uint32_t sum)
{
    uint32_t begin = s->bytes;

    for (uint32_t k = s->n; k-- > 0;) {
        sum -= lens[k];
        begin -= s->ranges[k].len;
        if (sum == begin)
            return; /* it and all before it are where they belong */
        move_on(s, s->iov[k].iov_base, sum, lens[k]);
    }
}

static int read_answer(struct oss_share *s, const struct msg_read_rep *rep)
{
    uint32_t sum = 0, n_crcs = 0;

    if (rep->n_lens != s->n)
        return -AIFS_EPROTO;
    for (uint32_t k = 0; k < s->n; k++) {
        if (rep->lens[k] > s->ranges[k].len)
            return -AIFS_EPROTO;
        sum += rep->lens[k];
        n_crcs += (uint32_t)crc_pieces(s->ranges[k].offset, rep->lens[k]);
    }
    if (sum != s->call.bulk_in_len || n_crcs != rep->n_crcs)
        return -AIFS_EPROTO;
    if (sum < s->bytes)
        spread(s, rep->lens, sum);
    return 0;
}

static void share_over(struct oss_io *io, int status)
{
    if (!status || io->cancelled || io->core->forced) {
        oss_io_over(io, status);
        return;
    }
    io->alone = true;
    oss_io_go(io);
}

static void share_called(struct rpc_call *call, int status)
{
    struct oss_share *s = call->arg;
    struct oss_target *t = s->target;
    const struct msg_read_rep *rep = call->rep;
    const uint32_t *crcs = !status && !s->writes ? rep->crcs : NULL;

    t->in_flight--;
    if (s->writes && !s->stable)
        t->flying -= MIN(t->flying, s->bytes);
    if (!status && s->writes)
        oss_write_noted(t, call->rep);
    else if (!status)
        status = read_answer(s, rep);
    for (uint32_t k = 0; k < s->n; k++) {
        s->ios[k]->sent = false;
        s->ios[k]->share = NULL;
    }
    for (uint32_t k = 0; k < s->n; k++) {
        int each = status;

        if (!status && !s->writes) {
            each = oss_read_check(s->ios[k], rep->lens[k], crcs);
            crcs += crc_pieces(s->ranges[k].offset, rep->lens[k]);
        }
        share_over(s->ios[k], each);
    }
    share_free(s);
    oss_target_pump(t);
}

/* ---- sending ---- */

static void share_add(struct oss_share *s, struct oss_io *io)
{
    s->ios[s->n] = io;
    s->ranges[s->n] = io->range;
    s->iov[s->n++] = io->iov[0];
    s->bytes += io->range.len;
}

/* More for the same call, out of the target's queue. */
static void share_gather(struct oss_share *s, const struct oss_io *first)
{
    struct list *l, *tmp;

    list_for_each_safe (l, tmp, &s->target->queue) {
        struct oss_io *io = list_entry(l, struct oss_io, link);

        if (s->n == OSS_SHARE_MAX)
            return;
        if (io->inode != first->inode || io->kind != first->kind || io->stable != first->stable ||
            io->once != first->once || !oss_io_shares(io) ||
            s->bytes + io->range.len > OSS_SHARE_BYTES ||
            oss_target_of(s->core, &io->inode->layout, io->range.chunk) != s->target)
            continue;
        list_remove(&io->link);
        io->queued = false;
        io->target = s->target;
        share_add(s, io);
    }
}

static void write_message(struct oss_share *s, struct core_inode *i)
{
    s->stable = oss_write_stable(s->target, i, s->bytes, s->ios[0]->stable);
    for (uint32_t k = 0; k < s->n; k++) {
        s->ios[k]->stable = s->stable;
        (void)once_id(s->ios[k]); /* one behind the other: see struct msg_write_req */
        s->n_crcs += (uint32_t)crc32c_blocks(s->ranges[k].offset, s->iov[k].iov_base,
                                             s->ranges[k].len, s->crcs + s->n_crcs);
    }
    s->msg.write = (struct msg_write_req){
        .target = s->target->id,
        .ino = i->ino,
        .truncate_gen = i->attr.truncate_gen,
        .stable = s->stable,
        .n_ranges = s->n,
        .ranges = s->ranges,
        .n_crcs = s->n_crcs,
        .crcs = s->crcs,
        .op_id = ++s->core->op_ids,
        .want_grant = oss_want_grant(s->core),
        .keep_grant = s->ios[0]->block ? 0 : room_owed(s->target),
        .once = s->ios[0]->once_id,
    };
    s->call.bulk_out = s->iov;
    s->call.n_bulk_out = s->n;
}

static void read_message(struct oss_share *s, const struct core_inode *i)
{
    s->msg.read = (struct msg_read_req){
        .target = s->target->id,
        .ino = i->ino,
        .truncate_gen = i->attr.truncate_gen,
        .n_ranges = s->n,
        .ranges = s->ranges,
    };
    s->call.bulk_in = s->iov;
    s->call.n_bulk_in = s->n;
}

bool share_send(struct oss_io *first, struct oss_node *o)
{
    struct core *c = first->core;
    struct oss_share *s;

    if (!oss_io_shares(first) || list_empty(&first->target->queue) || !(s = share_new(c)))
        return false;
    s->target = first->target;
    share_add(s, first);
    share_gather(s, first);
    s->writes = first->kind == OSS_IO_WRITE;
    rpc_call_init(&s->call, s->writes ? RPC_OP_OSS_WRITE : RPC_OP_OSS_READ, &s->msg, share_called,
                  s);
    if (s->n == 1) {
        share_free(s);
        return false;
    }
    oss_call_header(c, &s->call, o);
    if (s->writes)
        write_message(s, first->inode);
    else
        read_message(s, first->inode);
    for (uint32_t k = 0; k < s->n; k++) {
        struct oss_io *io = s->ios[k];

        io->share = s;
        io->node = o;
        io->sent = true;
        io->session_epoch = c->session.epoch;
    }
    c->stats.oss_shared += s->n;
    s->target->in_flight++;
    rpc_peer_call(o->peer, &s->call);
    return true;
}
