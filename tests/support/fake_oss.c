/* SPDX-License-Identifier: Apache-2.0 */
/* Object storage in memory; see fake_cluster.h. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "common/base/crc.h"
#include "common/base/err.h"
#include "tests/support/fake_cluster.h"

static struct fake_chunk *chunk_get(struct fake_oss *o, uint64_t ino, uint64_t chunk, bool make)
{
    uint64_t hash = hash_u64(ino * 1000003 + chunk);
    struct fake_chunk *c;
    struct hmap_node *n;

    for (n = hmap_first(&o->chunks, hash); n; n = hmap_next(n)) {
        c = container_of(n, struct fake_chunk, node);
        if (c->ino == ino && c->chunk == chunk)
            return c;
    }
    if (!make)
        return NULL;
    c = mem_zalloc(sizeof *c);
    c->ino = ino;
    c->chunk = chunk;
    c->now = mem_zalloc(FAKE_CHUNK);
    c->durable = mem_zalloc(FAKE_CHUNK);
    hmap_insert(&o->chunks, &c->node, hash);
    return c;
}

static void serve_read(struct fake_oss *o, struct rpc_req *req)
{
    const struct msg_read_req *m = req->msg;
    uint32_t *lens = arena_alloc(&req->arena, m->n_ranges * sizeof *lens), n_iov = 0;
    uint32_t *crcs = arena_alloc(&req->arena, 2048 * sizeof *crcs);
    struct msg_read_rep rep = {.n_lens = m->n_ranges, .lens = lens, .crcs = crcs};
    struct iovec *iov = arena_alloc(&req->arena, m->n_ranges * sizeof *iov);

    o->reads++;
    o->read_ranges += m->n_ranges;
    if (m->truncate_gen < o->truncate_gen[fake_place(m->ino)]) {
        rpc_reply(req, -AIFS_ESTALE_TRUNC, NULL);
        return;
    }
    if (o->fail_reads) {
        o->fail_reads--;
        rpc_reply(req, -EIO, NULL);
        return;
    }
    for (uint32_t k = 0; k < m->n_ranges; k++) {
        const struct msg_range *r = &m->ranges[k];
        struct fake_chunk *c = chunk_get(o, m->ino, r->chunk, false);

        ck_assert_uint_eq(r->offset % CRC_BLOCK_BYTES, 0);
        ck_assert_uint_eq(r->len % CRC_BLOCK_BYTES, 0);
        lens[k] = c && c->now_len > r->offset ? MIN(c->now_len - r->offset, r->len) : 0;
        if (!lens[k])
            continue;
        rep.n_crcs +=
            (uint32_t)crc32c_blocks(r->offset, c->now + r->offset, lens[k], crcs + rep.n_crcs);
        iov[n_iov++] = (struct iovec){c->now + r->offset, lens[k]};
    }
    if (rep.n_crcs && o->corrupt_reads) {
        o->corrupt_reads--;
        crcs[0] ^= 1;
    }
    rpc_reply_bulk(req, 0, &rep, iov, n_iov, NULL, NULL);
}

static void write_range(struct fake_oss *o, const struct msg_write_req *m,
                        const struct msg_range *r, const uint8_t *data, uint32_t *n_crcs)
{
    struct fake_chunk *c = chunk_get(o, m->ino, r->chunk, true);
    uint32_t crcs[260];
    size_t n = crc32c_blocks(r->offset, data, r->len, crcs);

    ck_assert_uint_le(r->offset + r->len, FAKE_CHUNK);
    ck_assert_uint_le(*n_crcs + n, m->n_crcs);
    ck_assert_int_eq(memcmp(crcs, m->crcs + *n_crcs, n * sizeof crcs[0]), 0);
    *n_crcs += (uint32_t)n;
    memcpy(c->now + r->offset, data, r->len);
    c->now_len = MAX(c->now_len, r->offset + r->len);
    o->bytes_written += r->len;
    if (m->stable || o->commits_at_once) {
        memcpy(c->durable + r->offset, data, r->len);
        c->durable_len = MAX(c->durable_len, r->offset + r->len);
    }
}

static void serve_write(struct fake_oss *o, struct rpc_req *req)
{
    const struct msg_write_req *m = req->msg;
    struct msg_write_rep rep = {
        .verifier = o->verifier, .grant = o->grant, .committed = m->stable || o->commits_at_once};
    uint32_t bytes = 0, n_crcs = 0;

    o->writes++;
    o->once[1] = o->once[0];
    o->once[0] = m->once;
    o->write_ranges += m->n_ranges;
    o->unstable += !m->stable;
    if (m->truncate_gen < o->truncate_gen[fake_place(m->ino)]) {
        rpc_reply(req, -AIFS_ESTALE_TRUNC, NULL);
        return;
    }
    if (o->fail_writes && o->fail_writes_n) {
        o->fail_writes_n -= o->fail_writes_n != UINT32_MAX;
        rpc_reply(req, o->fail_writes, NULL);
        return;
    }
    for (uint32_t k = 0; k < m->n_ranges; k++) {
        write_range(o, m, &m->ranges[k], req->bulk->data + bytes, &n_crcs);
        bytes += m->ranges[k].len;
    }
    ck_assert_uint_eq(bytes, req->header.bulk_len);
    ck_assert_uint_eq(n_crcs, m->n_crcs);
    rpc_reply(req, 0, &rep);
}

static void serve_commit(struct fake_oss *o, struct rpc_req *req)
{
    const struct msg_commit_req *m = req->msg;
    struct msg_commit_rep rep = {.verifier = o->verifier};
    struct hmap_node *h, *next;
    size_t pos;
    uint32_t k;

    o->commits++;
    if (o->fail_commits) {
        rpc_reply(req, o->fail_commits, NULL);
        return;
    }
    hmap_for_each (h, next, pos, &o->chunks) {
        struct fake_chunk *c = container_of(h, struct fake_chunk, node);

        for (k = 0; k < m->n_inos; k++) {
            if (m->inos[k] != c->ino)
                continue;
            memcpy(c->durable, c->now, FAKE_CHUNK);
            c->durable_len = c->now_len;
        }
    }
    rpc_reply(req, 0, &rep);
}

/* Durable at once, as it has to be. */
static void serve_punch(struct fake_oss *o, struct rpc_req *req)
{
    const struct msg_cut_req *m = req->msg;
    struct hmap_node *h, *next;
    size_t pos;

    o->punches++;
    if (o->fail_punches || m->truncate_gen < o->truncate_gen[fake_place(m->ino)]) {
        rpc_reply(req, o->fail_punches ? o->fail_punches : -AIFS_ESTALE_TRUNC, NULL);
        return;
    }
    hmap_for_each (h, next, pos, &o->chunks) {
        struct fake_chunk *c = container_of(h, struct fake_chunk, node);
        uint64_t base = c->chunk * FAKE_CHUNK, from = MAX(base, m->start);
        uint64_t to = MIN(base + FAKE_CHUNK, m->end);

        if (c->ino != m->ino || from >= to)
            continue;
        memset(c->now + (from - base), 0, to - from);
        memset(c->durable + (from - base), 0, to - from);
    }
    rpc_reply(req, 0, &(struct msg_empty){0});
}

/* What is zeros counts as a hole. One block at a time is looked at: clients have to go on asking.
 */
static void serve_seek(struct fake_oss *o, struct rpc_req *req)
{
    const struct msg_seek_req *m = req->msg;
    struct msg_seek_rep rep = {.offset = m->start};
    uint64_t index = m->start / FAKE_CHUNK, at = m->start % FAKE_CHUNK, end;
    struct fake_chunk *c = chunk_get(o, m->ino, index, false);
    bool data = false;

    o->seeks++;
    end = MIN((at / CRC_BLOCK_BYTES + 1) * CRC_BLOCK_BYTES, (uint64_t)FAKE_CHUNK);
    for (uint64_t k = at / CRC_BLOCK_BYTES * CRC_BLOCK_BYTES; c && k < end; k++)
        data |= k < c->now_len && c->now[k];
    rep.found = data != m->hole;
    if (!rep.found)
        rep.offset = end < FAKE_CHUNK ? index * FAKE_CHUNK + end : (index + m->stride) * FAKE_CHUNK;
    rep.offset = MIN(rep.offset, m->end);
    rep.found &= rep.offset < m->end;
    rpc_reply(req, 0, &rep);
}

static void serve(struct fake_oss *o, struct rpc_req *req)
{
    if (req->header.op == RPC_OP_OSS_READ)
        serve_read(o, req);
    else if (req->header.op == RPC_OP_OSS_WRITE)
        serve_write(o, req);
    else if (req->header.op == RPC_OP_OSS_PUNCH)
        serve_punch(o, req);
    else if (req->header.op == RPC_OP_OSS_SEEK)
        serve_seek(o, req);
    else
        serve_commit(o, req);
}

static void handle(struct rpc_req *req)
{
    struct fake_oss *o = req->handler_arg;
    int armed = fake_spare();

    if (o->hold || (o->hold_commits && req->header.op == RPC_OP_OSS_COMMIT)) {
        o->held_now++;
        list_push_back(&o->held, &req->link);
    } else if (o->missing) {
        o->refused++;
        rpc_reply(req, -AIFS_ENOTARGET, NULL);
    } else {
        serve(o, req);
    }
    fake_unspare(armed);
}

void fake_oss_release(struct fake_oss *o)
{
    struct list *l;

    o->hold = o->hold_commits = false;
    o->held_now = 0;
    while ((l = list_pop_front(&o->held)) != NULL)
        serve(o, list_entry(l, struct rpc_req, link));
}

static void link_up(struct rpc_link *l, void *arg)
{
    struct fake_oss *o = arg;
    unsigned k;

    for (k = 0; k < ARRAY_LEN(o->links); k++) {
        if (!o->links[k]) {
            o->links[k] = l;
            return;
        }
    }
}

static void link_down(struct rpc_link *l, void *arg)
{
    struct fake_oss *o = arg;
    unsigned k;

    for (k = 0; k < ARRAY_LEN(o->links); k++)
        if (o->links[k] == l)
            o->links[k] = NULL;
}

void fake_oss_restart(struct fake_oss *o)
{
    struct hmap_node *h, *next;
    size_t pos;
    unsigned k;

    o->verifier++;
    hmap_for_each (h, next, pos, &o->chunks) {
        struct fake_chunk *c = container_of(h, struct fake_chunk, node);

        memcpy(c->now, c->durable, FAKE_CHUNK);
        c->now_len = c->durable_len;
    }
    for (k = 0; k < ARRAY_LEN(o->links); k++)
        if (o->links[k])
            rpc_link_close(o->links[k], -AIFS_ECONN);
}

void fake_targets_hold(struct fake_cluster *f)
{
    for (unsigned k = 0; k < f->n_oss; k++)
        f->oss[k].hold = true;
}

void fake_targets_release(struct fake_cluster *f)
{
    for (unsigned k = 0; k < f->n_oss; k++)
        fake_oss_release(&f->oss[k]);
}

void fake_targets_restart(struct fake_cluster *f)
{
    for (unsigned k = 0; k < f->n_oss; k++)
        fake_oss_restart(&f->oss[k]);
}

void fake_targets_fail_writes(struct fake_cluster *f, int status)
{
    for (unsigned k = 0; k < f->n_oss; k++) {
        f->oss[k].fail_writes = status;
        f->oss[k].fail_writes_n = UINT32_MAX;
    }
}

static void chunk_keep(struct fake_chunk *c, uint64_t size)
{
    uint64_t base = c->chunk * FAKE_CHUNK;
    uint32_t keep = base >= size ? 0 : (uint32_t)MIN(size - base, FAKE_CHUNK);

    c->now_len = MIN(c->now_len, keep);
    c->durable_len = MIN(c->durable_len, keep);
    memset(c->now + keep, 0, FAKE_CHUNK - keep);
    memset(c->durable + keep, 0, FAKE_CHUNK - keep);
}

void fake_targets_cut(struct fake_cluster *f, struct fake_inode *i, uint64_t size)
{
    i->attr.truncate_gen++;
    for (unsigned k = 0; k < f->n_oss; k++) {
        struct hmap_node *h, *next;
        size_t pos;

        f->oss[k].truncate_gen[fake_place(i->attr.ino)] = i->attr.truncate_gen;
        hmap_for_each (h, next, pos, &f->oss[k].chunks) {
            struct fake_chunk *c = container_of(h, struct fake_chunk, node);

            if (c->ino == i->attr.ino)
                chunk_keep(c, size);
        }
    }
}

void fake_targets_corrupt_reads(struct fake_cluster *f, unsigned n)
{
    for (unsigned k = 0; k < f->n_oss; k++)
        f->oss[k].corrupt_reads = n;
}

void fake_oss_start(struct fake_cluster *f, unsigned index)
{
    struct fake_oss *o = &f->oss[index];
    struct rpc_node_options n = {.key = f->key};
    struct net_addr a;
    char text[80], err[128];

    o->cluster = f;
    o->index = index;
    o->verifier = 1000 + index;
    o->grant = 64 * MIB;
    list_init(&o->held);
    ck_assert_int_eq(hmap_init(&o->chunks, 64), 0);
    ck_assert_int_eq(buf_pool_create("fake-oss", MSG_BULK_MAX, 24, &o->pool), 0);
    net_options_default(&n.net);
    n.self.role = CRYPTO_ROLE_SERVER;
    n.bulk_pool = o->pool;
    snprintf(n.self.name, sizeof n.self.name, "oss%u", index + 1);
    ck_assert_int_eq(uuid_random(&n.self.node), 0);
    ck_assert_int_eq(uuid_random(&n.self.boot), 0);
    ck_assert_int_eq(rpc_node_create(f->reactor, &n, &o->node), 0);
    rpc_node_handle(o->node, RPC_OP_OSS_READ, handle, o);
    rpc_node_handle(o->node, RPC_OP_OSS_WRITE, handle, o);
    rpc_node_handle(o->node, RPC_OP_OSS_COMMIT, handle, o);
    rpc_node_handle(o->node, RPC_OP_OSS_PUNCH, handle, o);
    rpc_node_handle(o->node, RPC_OP_OSS_SEEK, handle, o);
    rpc_node_on_link(o->node, link_up, link_down, o);
    snprintf(text, sizeof text, "loop:%s-oss%u", f->name, index);
    ck_assert_int_eq(net_addr_resolve(text, 1, &a, err, sizeof err), 0);
    ck_assert_int_eq(rpc_node_listen(o->node, &a, NULL), 0);
}

static void chunk_copy(const struct fake_chunk *c, uint32_t at, uint8_t *out, uint32_t len,
                       bool durable)
{
    uint32_t have = durable ? c->durable_len : c->now_len,
             take = at < have ? MIN(len, have - at) : 0;

    memcpy(out, (durable ? c->durable : c->now) + at, take);
}

void fake_contents(struct fake_cluster *f, struct fake_inode *i, uint64_t offset, uint8_t *out,
                   uint32_t len, bool durable)
{
    memset(out, 0, len);
    if (i->attr.flags & MSG_ATTR_INLINE) {
        if (offset < i->data_len)
            memcpy(out, i->data + offset, MIN(len, i->data_len - offset));
        return;
    }
    while (len) {
        uint64_t chunk = offset / FAKE_CHUNK;
        uint32_t at = (uint32_t)(offset % FAKE_CHUNK), step = MIN(len, FAKE_CHUNK - at);
        struct fake_oss *o = &f->oss[(i->layout.start + chunk % i->layout.stripe_count) % f->n_oss];
        struct fake_chunk *c = chunk_get(o, i->attr.ino, chunk, false);

        if (c)
            chunk_copy(c, at, out, step, durable);
        offset += step;
        out += step;
        len -= step;
    }
}
