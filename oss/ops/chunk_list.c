// SPDX-License-Identifier: Apache-2.0
/*
 * OSS_CHUNK_LIST: a page of the target's committed chunks, in order; with verify each is read and
 * its sums are checked, and a damaged one is marked bad instead of failing the page.
 */
#include "common/base/err.h"
#include "oss/oss.h"

struct list_state {
    struct chunk_list_item *items;
    struct msg_chunk_info *infos;
    struct msg_chunk_list_rep rep;
    uint32_t n, next;
    bool more;
    struct chunk_op op;
};

static void list_reply(struct oss_request *r)
{
    struct list_state *s = r->state;

    s->rep = (struct msg_chunk_list_rep){.n_chunks = s->n, .chunks = s->infos, .eof = !s->more};
    oss_reply(r, 0, &s->rep);
}

static void list_verify(struct oss_request *r);

static void list_verified(struct chunk_op *op, int status)
{
    struct oss_request *r = op->arg;
    struct list_state *s = r->state;

    s->infos[s->next++].bad = status && status != -ENOENT;
    list_verify(r);
}

/* One chunk after the other: it is a check, not a race. Each waits for the disk or a buffer, or is
 * small. */
static void list_verify(struct oss_request *r)
{
    struct list_state *s = r->state;

    if (s->next == s->n) {
        list_reply(r);
        return;
    }
    s->op = (struct chunk_op){.kind = CHUNK_VERIFY,
                              .ino = s->infos[s->next].ino,
                              .chunk = s->infos[s->next].chunk,
                              .done = list_verified,
                              .arg = r};
    chunk_store_submit(r->target->store, &s->op);
}

void oss_op_chunk_list(struct oss_request *r)
{
    const struct msg_chunk_list_req *m = r->msg;
    uint32_t max = m->verify ? 32u : MSG_ITEMS_MAX;
    struct list_state *s;
    int n;

    max = m->max ? MIN(m->max, max) : max;
    if (!oss_request_target(r, m->target) || !(s = oss_alloc(r, sizeof *s)) ||
        !(s->items = oss_alloc(r, max * sizeof *s->items)) ||
        !(s->infos = oss_alloc(r, max * sizeof *s->infos)))
        return;
    r->state = s;
    n = chunk_store_list(r->target->store, m->first, m->after_ino, m->after_chunk, m->only_ino,
                         s->items, max);
    if (n < 0) {
        oss_reply(r, n, NULL);
        return;
    }
    s->n = (uint32_t)n;
    s->more = s->n == max;
    for (uint32_t i = 0; i < s->n; i++)
        s->infos[i] = (struct msg_chunk_info){.ino = s->items[i].ino,
                                              .chunk = s->items[i].chunk,
                                              .len = s->items[i].len,
                                              .truncate_gen = s->items[i].truncate_gen};
    if (m->verify)
        list_verify(r);
    else
        list_reply(r);
}
