// SPDX-License-Identifier: Apache-2.0
/*
 * OSS_READ: ranges of chunks of one inode, from the slots into one buffer and from there to the
 * wire; the stored sums travel along. Waits for a buffer when all are on their way to clients.
 */
#include <string.h>

#include "common/base/err.h"
#include "oss/oss.h"

struct read_state {
    struct oss_request *request;
    struct buf_waiter waiter;
    struct buf *buf;
    struct oss_fan *fan;
    struct msg_read_rep rep;
    uint32_t *lens, *crcs, *n_crcs, *at; /* at: offset of each range in the buffer */
};

static int read_check(const struct msg_read_req *m, uint32_t *ret_total)
{
    uint64_t total = 0;

    if (!m->n_ranges || m->n_ranges > MSG_RANGES_MAX)
        return -AIFS_EPROTO;
    for (uint32_t i = 0; i < m->n_ranges; i++) {
        const struct msg_range *g = &m->ranges[i];

        if (!g->len || g->len % CHUNK_BLOCK || g->offset % CHUNK_BLOCK || g->len > MSG_BULK_MAX)
            return -AIFS_EPROTO;
        total += g->len;
    }
    if (total > MSG_BULK_MAX)
        return -AIFS_EPROTO;
    *ret_total = (uint32_t)total;
    return 0;
}

static void read_fill(struct oss_fan *f, uint32_t i, struct chunk_op *op)
{
    struct read_state *s = f->request->state;
    const struct msg_read_req *m = f->request->msg;

    op->kind = CHUNK_READ;
    op->ino = m->ino;
    op->truncate_gen = m->truncate_gen;
    op->chunk = m->ranges[i].chunk;
    op->offset = m->ranges[i].offset;
    op->len = m->ranges[i].len;
    op->data = s->buf->data + s->at[i];
    op->crcs = s->crcs + s->at[i] / CHUNK_BLOCK;
}

static void read_each(struct oss_fan *f, uint32_t i, struct chunk_op *op)
{
    struct read_state *s = f->request->state;

    s->lens[i] = op->ret_len;
    s->n_crcs[i] = op->ret_crcs;
}

static void read_released(void *arg)
{
    buf_put(arg);
}

/* What exists of the ranges, one behind the other: only behind a short one is anything moved. */
static uint32_t read_gather(struct read_state *s, uint32_t n)
{
    uint32_t len = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (len != s->at[i])
            memmove(s->buf->data + len, s->buf->data + s->at[i], s->lens[i]);
        len += s->lens[i];
    }
    return len;
}

static void read_done(struct oss_request *r, int status)
{
    struct read_state *s = r->state;
    const struct msg_read_req *m = r->msg;
    uint32_t n = 0, len;

    if (status) {
        buf_put(s->buf);
        oss_reply(r, status, NULL);
        return;
    }
    for (uint32_t i = 0; i < m->n_ranges; i++) {
        const uint32_t *crcs = s->crcs + s->at[i] / CHUNK_BLOCK;

        for (uint32_t k = 0; k < s->n_crcs[i];
             k++) /* close the gaps; never ahead of what is read */
            s->crcs[n++] = crcs[k];
    }
    len = read_gather(s, m->n_ranges);
    s->rep =
        (struct msg_read_rep){.n_lens = m->n_ranges, .lens = s->lens, .n_crcs = n, .crcs = s->crcs};
    if (!len) {
        buf_put(s->buf);
        oss_reply(r, 0, &s->rep);
        return;
    }
    oss_reply_bulk(r, &s->rep, &(struct iovec){s->buf->data, len}, 1, read_released, s->buf);
}

static void read_buffer(struct buf_waiter *w, struct buf *b)
{
    struct read_state *s = container_of(w, struct read_state, waiter);

    s->buf = b;
    oss_fan_run(s->fan);
}

void oss_op_read(struct oss_request *r)
{
    const struct msg_read_req *m = r->msg;
    uint32_t total, at = 0, n = m->n_ranges;
    int rc = read_check(m, &total);
    struct read_state *s;
    uint32_t *numbers;

    if (rc) {
        oss_reply(r, rc, NULL);
        return;
    }
    if (!oss_request_target(r, m->target) || !(s = oss_alloc(r, sizeof *s)) ||
        !(numbers = oss_alloc(r, (3ul * n + total / CHUNK_BLOCK) * 4)) ||
        !(s->fan = oss_fan_create(r, n)))
        return;
    r->state = s;
    s->request = r;
    s->lens = numbers;
    s->n_crcs = numbers + n;
    s->at = numbers + 2 * n;
    s->crcs = numbers + 3 * n;
    for (uint32_t i = 0; i < n; at += m->ranges[i++].len)
        s->at[i] = at;
    s->fan->fill = read_fill;
    s->fan->each = read_each;
    s->fan->done = read_done;
    s->waiter.fn = read_buffer;
    buf_wait(r->oss->out, &s->waiter);
}
