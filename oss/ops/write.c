// SPDX-License-Identifier: Apache-2.0
/*
 * OSS_WRITE: ranges of chunks of one inode, straight from the buffer, or in the slot, in which the
 * payload landed.
 * The reply names the target's verifier, what is left of the session's promise of space, and
 * whether the bytes are durable already. What is sent again although it was done is answered so.
 */
#include "common/base/err.h"
#include "oss/oss.h"

struct write_state {
    struct oss_fan *fan;
    struct msg_write_rep rep;
    uint8_t *data;             /* the payload */
    struct chunk_place *place; /* of the one range; NULL: the payload is in a buffer */
    uint32_t *at;              /* offset of each range in the payload */
    uint32_t *crcs_at;         /* of its sums */
    bool stable;               /* asked for, or as well */
};

static int write_check(const struct oss_request *r)
{
    const struct msg_write_req *m = r->msg;
    uint64_t bytes = 0, crcs = 0;

    if (!m->n_ranges || m->n_ranges > MSG_RANGES_MAX || (!r->rpc->bulk && !r->rpc->placed.data))
        return -AIFS_EPROTO;
    for (uint32_t i = 0; i < m->n_ranges; i++) {
        const struct msg_range *g = &m->ranges[i];

        if (!g->len || g->len > MSG_BULK_MAX)
            return -AIFS_EPROTO;
        bytes += g->len;
        crcs += crc_pieces(g->offset, g->len);
    }
    return bytes == r->rpc->header.bulk_len && crcs == m->n_crcs ? 0 : -AIFS_EPROTO;
}

/* What the chunk remembers of it over a restart; 0: nothing. */
static uint64_t write_once_id(const struct oss_request *r, uint32_t range)
{
    const struct msg_write_req *m = r->msg;
    uint64_t place = hash_u64(r->rpc->header.session ^ hash_u64(m->ranges[range].offset));
    uint64_t id = hash_u64((m->once + range) ^ place);

    return m->once && m->stable && r->session ? id | 1 : 0;
}

static void write_fill(struct oss_fan *f, uint32_t i, struct chunk_op *op)
{
    struct oss_request *r = f->request;
    const struct msg_write_req *m = r->msg;
    struct write_state *s = r->state;

    op->kind = CHUNK_WRITE;
    op->ino = m->ino;
    op->truncate_gen = m->truncate_gen;
    op->op_id = write_once_id(r, i);
    op->stable = s->stable;
    op->chunk = m->ranges[i].chunk;
    op->offset = m->ranges[i].offset;
    op->len = m->ranges[i].len;
    op->data = s->data + s->at[i];
    op->place = s->place;
    op->promise = oss_session_promise(r, r->target);
    op->keep = m->keep_grant;
    op->crcs = (uint32_t *)m->crcs + s->crcs_at[i]; /* only read */
}

static void write_done(struct oss_request *r, int status)
{
    const struct msg_write_req *m = r->msg;
    struct write_state *s = r->state;

    s->rep.verifier = chunk_store_verifier(r->target->store);
    s->rep.grant = oss_session_grant(r, r->target, m->want_grant);
    s->rep.committed = s->stable;
    if (!status && s->stable)
        oss_session_done(r, m->once, m->n_ranges);
    oss_reply(r, status, status ? NULL : &s->rep);
}

static void write_repeated(struct oss_request *r)
{
    struct write_state *s = r->state;

    s->rep.verifier = chunk_store_verifier(r->target->store);
    s->rep.grant = oss_session_grant(r, r->target, 0);
    s->rep.committed = true;
    oss_reply(r, 0, &s->rep);
}

static void place_part(void *arg, const void *data, uint32_t len)
{
    chunk_store_land(arg, data, len);
}

static void place_release(void *arg)
{
    chunk_store_unplace(arg);
}

bool oss_place_write(struct oss *o, struct rpc_req *req)
{
    const struct msg_write_req *m = req->msg;
    const struct msg_range *g = m->ranges;
    struct oss_target *t = oss_target_find(o, m->target);
    struct chunk_place *p;

    if (!t || m->n_ranges != 1 || g->len != req->header.bulk_len)
        return false;
    p = arena_zalloc(&req->arena, sizeof *p);
    if (!p || !chunk_store_place(t->store, m->ino, g->chunk, g->offset, g->len, p))
        return false;
    if (m->n_crcs == crc_pieces(g->offset, g->len))
        p->crcs = m->crcs;
    req->placed = (struct rpc_placed){
        .data = p->data, .part = place_part, .release = place_release, .arg = p};
    return true;
}

void oss_op_write(struct oss_request *r)
{
    const struct msg_write_req *m = r->msg;
    uint32_t at = 0, crcs = 0;
    struct write_state *s;
    int rc = write_check(r);

    if (rc) {
        oss_reply(r, rc, NULL);
        return;
    }
    if (!oss_request_target(r, m->target) || !(s = oss_alloc(r, sizeof *s)) ||
        !(s->at = oss_alloc(r, 2ul * m->n_ranges * 4)) ||
        !(s->fan = oss_fan_create(r, m->n_ranges)))
        return;
    r->state = s;
    s->crcs_at = s->at + m->n_ranges;
    s->data = r->rpc->bulk ? r->rpc->bulk->data : r->rpc->placed.data;
    s->place = r->rpc->bulk ? NULL : r->rpc->placed.arg;
    s->stable = m->stable || (m->n_ranges == 1 &&
                              chunk_store_commits_at_once(r->target->store, m->ranges[0].len));
    if (oss_session_did(r, m->once, m->n_ranges)) {
        write_repeated(r);
        return;
    }
    for (uint32_t i = 0; i < m->n_ranges; i++) {
        s->at[i] = at;
        s->crcs_at[i] = crcs;
        at += m->ranges[i].len;
        crcs += (uint32_t)crc_pieces(m->ranges[i].offset, m->ranges[i].len);
    }
    s->fan->fill = write_fill;
    s->fan->done = write_done;
    oss_fan_run(s->fan);
}
