// SPDX-License-Identifier: Apache-2.0
/*
 * A page of the destroy queue.
 *
 * Happy path: the inodes of the page are gathered by target, each target gets one OSS_DESTROY with
 * all of its inodes, a few at a time; inodes that every target of their layout has confirmed leave
 * the queue, all in one commit. Failure modes: an inode with a target that is down or that answers
 * with an error stays in the queue; the others of the page do not wait for it.
 */
#include <stdlib.h>

#include "common/fault/fault.h"
#include "mds/gc/gc_int.h"

struct destroy_pair {
    uint32_t target, index; /* of the page */
};

struct destroy_call {
    struct gc_call call;
    struct gc_batch *batch;
    bool busy;
    uint32_t first, n; /* pairs */
    struct msg_destroy_req req;
    uint64_t inos[GC_PAGE];
};

struct destroy_done {
    struct mds_submit submit;
    struct gc_batch *batch;
    struct shard_queue_done msg;
};

struct gc_batch {
    struct gc_queue *q;
    uint32_t n;
    bool failed[GC_PAGE];
    struct destroy_pair *pairs;
    uint32_t n_pairs, cap, next, n_calls, n_commits;
    struct destroy_call calls[GC_CALLS_MAX];
    struct destroy_done done[GC_PAGE];
};

static void batch_over(struct gc_batch *b)
{
    struct gc_queue *q = b->q;
    struct gc *gc = q->gc;

    q->batch = NULL;
    mem_free(b->pairs);
    mem_free(b);
    gc_scan_resume(q);
    gc_end(gc);
}

static void batch_committed(struct mds_submit *s)
{
    struct destroy_done *d = container_of(s, struct destroy_done, submit);
    struct gc_batch *b = d->batch;

    if (s->entry.status == 0) {
        stat_inc(&b->q->done);
        b->q->progress = true;
    } else {
        b->q->skipped = true;
    }
    mds_submit_fini(s);
    if (--b->n_commits == 0)
        batch_over(b);
}

static void batch_confirmed(struct gc_batch *b)
{
    struct gc_queue *q = b->q;
    struct mds *m = q->gc->mds;

    FAULT_CRASH("mds.gc.destroy.before_done");
    b->n_commits = 1;
    for (uint32_t i = 0; i < b->n; i++) {
        struct destroy_done *d = &b->done[i];

        if (b->failed[i] || q->gc->stopping)
            continue;
        d->batch = b;
        d->msg = (struct shard_queue_done){
            .queue = KEY_DESTROY, .ino = q->seen[i].ino, .index = q->seen[i].item.index};
        b->n_commits++;
        mds_submit(m, &d->submit, mds_shard_of(m, q->seen[i].ino), SHARD_OP_QUEUE_DONE, &d->msg,
                   SHARD_E_FREES, batch_committed);
    }
    if (--b->n_commits == 0)
        batch_over(b);
}

static void batch_fail(struct gc_batch *b, uint32_t first, uint32_t n)
{
    for (uint32_t i = first; i < first + n; i++)
        b->failed[b->pairs[i].index] = true;
    b->q->skipped = true;
    stat_inc(&b->q->failed);
}

static void batch_step(struct gc_batch *b);

static void batch_called(struct rpc_call *rpc, int status)
{
    struct destroy_call *c = container_of(rpc, struct destroy_call, call.rpc);
    struct gc_batch *b = c->batch;

    if (status < 0)
        batch_fail(b, c->first, c->n);
    c->busy = false;
    b->n_calls--;
    gc_call_end(b->q->gc, &c->call);
    batch_step(b);
}

static void batch_send(struct gc_batch *b, struct destroy_call *c)
{
    uint32_t target = b->pairs[b->next].target;

    c->batch = b;
    c->first = b->next;
    c->n = 0;
    while (b->next < b->n_pairs && b->pairs[b->next].target == target)
        c->inos[c->n++] = b->q->seen[b->pairs[b->next++].index].ino;
    c->req = (struct msg_destroy_req){.target = target, .n_inos = c->n, .inos = c->inos};
    rpc_call_init(&c->call.rpc, RPC_OP_OSS_DESTROY, &c->req, batch_called, b);
    if (gc_call(b->q->gc, target, &c->call) < 0) {
        batch_fail(b, c->first, c->n);
        return;
    }
    c->busy = true;
    b->n_calls++;
}

static void batch_step(struct gc_batch *b)
{
    for (unsigned i = 0; i < GC_CALLS_MAX && b->next < b->n_pairs; i++) {
        if (!b->calls[i].busy && !b->q->gc->stopping)
            batch_send(b, &b->calls[i]);
    }
    if (b->n_calls)
        return;
    if (b->next < b->n_pairs && !b->q->gc->stopping)
        batch_step(b); /* a whole round could not be sent */
    else
        batch_confirmed(b);
}

static int batch_pairs(struct gc_batch *b, uint32_t index, const struct gc_targets *t)
{
    if (b->n_pairs + t->n > b->cap) {
        uint32_t cap = MAX(b->cap * 2, b->n_pairs + t->n);
        struct destroy_pair *pairs = mem_realloc(b->pairs, cap * sizeof *pairs);

        if (!pairs)
            return -ENOMEM;
        b->pairs = pairs;
        b->cap = cap;
    }
    for (uint32_t i = 0; i < t->n; i++)
        b->pairs[b->n_pairs++] = (struct destroy_pair){t->ids[i], index};
    return 0;
}

static void batch_add(struct gc_batch *b, uint32_t index)
{
    struct gc_targets t = {0};
    int rc = gc_targets(b->q->gc, &b->q->seen[index].item.layout, &t);

    if (rc == 0 && !gc_targets_up(b->q->gc, &t))
        rc = -AIFS_EDOWN;
    if (rc == 0)
        rc = batch_pairs(b, index, &t);
    else if (rc != -AIFS_EDOWN)
        LOG_WARN("gc", "inode %llu: its layout: %s", (unsigned long long)b->q->seen[index].ino,
                 err_name(rc));
    mem_free(t.ids);
    if (rc < 0) {
        b->failed[index] = true;
        b->q->skipped = true;
    }
}

static int compare_pairs(const void *a, const void *b)
{
    const struct destroy_pair *x = a, *y = b;

    if (x->target != y->target)
        return x->target < y->target ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

void gc_destroy_page(struct gc_queue *q)
{
    struct gc_batch *b = mem_zalloc(sizeof *b);

    if (!b) {
        q->skipped = true;
        q->next_ns = reactor_now_ns(q->gc->mds->reactor) + GC_IDLE_NS;
        return;
    }
    FAULT_CRASH("mds.gc.destroy.before_send");
    b->q = q;
    b->n = q->n_seen;
    q->batch = b;
    gc_begin(q->gc);
    for (uint32_t i = 0; i < b->n; i++)
        batch_add(b, i);
    if (b->n_pairs)
        qsort(b->pairs, b->n_pairs, sizeof *b->pairs, compare_pairs);
    batch_step(b);
}
