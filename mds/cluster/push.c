// SPDX-License-Identifier: Apache-2.0
/*
 * Fences reach every OSS.
 *
 * Happy path: OSS_FENCE to each server that does not know them yet; when all have answered, whoever
 * waits goes on. A server that is offline is not waited for: it gets the list when it registers,
 * before it serves. Failure modes: no answer: sent again by the tick, until it answers or is
 * declared offline. Old fences that every server has are forgotten, so that the list stays short.
 */
#include <string.h>

#include "mds/cluster/cluster_int.h"
#include "mds/session/session_fmt.h"

#define FENCE_TIMEOUT_NS   (1 * NS_PER_S)
#define FENCE_FORGET_BATCH 256u

struct cluster_fence_call {
    struct rpc_call call;
    struct cluster *c;
    uint32_t node;
    struct msg_fence_req req;
    struct msg_fence fences[]; /* a copy: the list may move meanwhile */
};

/* ---- start ---- */

static int load_fence(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
    struct cluster *c = arg;
    struct fence_rec rec;

    if (key_len != 9 || len != sizeof rec)
        return -AIFS_ECORRUPT;
    memcpy(&rec, value, sizeof rec);
    return fence_list_add(&c->fences, key_number_of(key),
                          &(struct msg_fence){.session = le64toh(rec.session),
                                              .generation = le32toh(rec.generation)});
}

int cluster_fences_load(struct cluster *c)
{
    struct view v;
    struct key k;
    int rc;

    key_single(&k, KEY_FENCE);
    view_pin(c->mds->shards[0], &v);
    rc = view_scan(&v, &k, NULL, load_fence, c);
    view_unpin(&v);
    return rc;
}

void cluster_fences_fini(struct cluster *c)
{
    fence_list_fini(&c->fences);
    mem_free((void *)c->forget.fences);
}

/* ---- who has what ---- */

/* Every server that may be serving knows all fences up to this number. */
static uint64_t fences_known(struct cluster *c)
{
    uint64_t known = UINT64_MAX;
    struct list *l;

    list_for_each (l, &c->node_list) {
        const struct cluster_node *n = list_entry(l, struct cluster_node, all);

        if (n->up || n->waited_for)
            known = MIN(known, n->acked);
    }
    return known;
}

static void fence_run(struct reactor_work *work)
{
    struct cluster *c = container_of(work, struct cluster, fence_work);
    uint64_t known = fences_known(c);
    struct list *l, *next, reached;

    c->fence_queued = false;
    list_init(&reached);
    list_for_each_safe (l, next, &c->fence_waits) {
        struct cluster_fence_wait *w = list_entry(l, struct cluster_fence_wait, link);

        if (w->fence <= known) {
            list_remove(&w->link);
            list_push_back(&reached, &w->link);
        }
    }
    while ((l = list_pop_front(&reached))) {
        struct cluster_fence_wait *w = list_entry(l, struct cluster_fence_wait, link);

        w->done(w);
    }
    cluster_fence_forget(c);
    cluster_end(c);
}

void cluster_fence_check(struct cluster *c)
{
    if (c->fence_queued || c->stopping)
        return;
    c->fence_queued = true;
    c->fence_work.fn = fence_run;
    cluster_begin(c);
    reactor_defer(c->mds->reactor, &c->fence_work);
}

void cluster_fence_acked(struct cluster_node *n, uint64_t fence)
{
    struct mds *m = n->c->mds;

    if (fence <= n->acked)
        return;
    n->acked = fence;
    cluster_fence_check(n->c);
    if (m->gc_ops && !n->c->stopping) /* recoveries wait for it */
        m->gc_ops->kick(m, KEY_RECOVER, 0);
}

/* ---- telling ---- */

static void fence_sent(struct rpc_call *call, int status)
{
    struct cluster_fence_call *f = container_of(call, struct cluster_fence_call, call);
    struct cluster *c = f->c;
    struct cluster_node *n = cluster_node(c, f->node);

    if (n)
        n->pushing = NULL;
    if (n && status == 0) {
        cluster_fence_acked(n, f->req.fence_seq);
        cluster_fence_send(n);
    } else if (status < 0) {
        stat_inc(&c->stats.fence_retries);
    }
    rpc_call_fini(call);
    mem_free(f);
    cluster_end(c);
}

void cluster_fence_send(struct cluster_node *n)
{
    struct cluster *c = n->c;
    const struct msg_fence *fences;
    struct cluster_fence_call *f;
    struct rpc_peer *peer;
    uint64_t upto;
    uint32_t count;

    if (n->pushing || !n->up || c->stopping)
        return;
    count = fence_list_after(&c->fences, n->acked, MSG_ITEMS_MAX, &fences, &upto);
    peer = count ? cluster_peer(n) : NULL;
    f = peer ? mem_zalloc(sizeof *f + count * sizeof f->fences[0]) : NULL;
    if (!f)
        return; /* nothing to say; else the tick comes again */
    memcpy(f->fences, fences, count * sizeof *fences);
    f->c = c;
    f->node = n->id;
    f->req = (struct msg_fence_req){.fence_seq = upto, .n_fences = count, .fences = f->fences};
    rpc_call_init(&f->call, RPC_OP_OSS_FENCE, &f->req, fence_sent, f);
    f->call.timeout_ns = FENCE_TIMEOUT_NS;
    f->call.flags |= RPC_CALL_WAIT;
    n->pushing = f;
    stat_inc(&c->stats.fences);
    cluster_begin(c);
    rpc_peer_call(peer, &f->call);
}

int cluster_fence_push(struct mds *m, uint64_t session, uint32_t generation,
                       struct cluster_fence_wait *w)
{
    struct cluster *c = cluster_of(m);
    struct msg_fence fence = {.session = session, .generation = generation};
    struct list *l;

    if (fence_list_add(&c->fences, w->fence, &fence) < 0) {
        list_init(&w->link);
        return -ENOMEM;
    }
    list_push_back(&c->fence_waits, &w->link);
    list_for_each (l, &c->node_list)
        cluster_fence_send(list_entry(l, struct cluster_node, all));
    cluster_fence_check(c);
    return 0;
}

void cluster_fence_cancel(struct mds *m, struct cluster_fence_wait *w)
{
    (void)m;
    if (w->link.next)
        list_remove(&w->link);
}

/* ---- forgetting ---- */

static void forgotten(struct mds_submit *s)
{
    struct cluster *c = container_of(s, struct cluster, forget_submit);

    mds_submit_fini(s);
    mem_free((void *)c->forget.fences);
    c->forget.fences = NULL;
    c->forgetting = false;
    cluster_end(c);
}

void cluster_fence_forget(struct cluster *c)
{
    uint64_t acked = UINT64_MAX, *numbers;
    struct list *l;
    uint32_t n;

    list_for_each (l, &c->node_list) /* those that are offline too */
        acked = MIN(acked, list_entry(l, struct cluster_node, all)->acked);
    if (!list_empty(&c->fence_waits))
        acked =
            MIN(acked, list_entry(c->fence_waits.next, struct cluster_fence_wait, link)->fence - 1);
    n = MIN(fence_list_excess(&c->fences, acked, CLUSTER_FENCES_KEPT), FENCE_FORGET_BATCH);
    if (n < FENCE_FORGET_BATCH || c->forgetting || c->stopping)
        return;
    numbers = mem_dup(c->fences.numbers, n * sizeof *numbers);
    if (!numbers)
        return;
    fence_list_drop(&c->fences, n);
    c->forgetting = true;
    c->forget = (struct session_fence_forget){.n = n, .fences = numbers};
    cluster_begin(c);
    mds_submit(c->mds, &c->forget_submit, c->mds->shards[0], SHARD_OP_FENCE_FORGET, &c->forget,
               SHARD_E_FREES, forgotten);
}
