// SPDX-License-Identifier: Apache-2.0
/*
 * One item of the punch queue (OSS_TRUNCATE to every target) or of the recovery queue (OSS_SEAL).
 *
 * Happy path: a few calls at a time until every target has confirmed; then one entry takes the item
 * out of the queue, and whoever waits for it is told. Failure modes: an error ends the round; the
 * item rests a while and is tried again from the start, because confirmations are not kept. A
 * recovery does not begin before its session is fenced at all targets: what they hold could still
 * grow; nor before a cut that is pending has reached them all: what is to be cut would count.
 */
#include "common/fault/fault.h"
#include "mds/gc/gc_int.h"

struct item_call {
    struct gc_call call;
    struct gc_item *item;
    bool busy;
    union {
        struct msg_cut_req cut;
        struct msg_seal_req seal;
    } req;
};

struct gc_item {
    struct hmap_node by_ino;
    struct gc_queue *q;
    uint64_t ino;
    struct mds_queue_item item;
    struct gc_targets targets;
    uint32_t next, n_calls;
    uint64_t size; /* high-water so far */
    int status;
    bool again;          /* seen again meanwhile: there may be a newer item */
    uint64_t rest_until; /* not 0: it has failed */
    struct mds_submit submit;
    union {
        struct shard_queue_done done;
        struct shard_size size;
    } msg;
    struct item_call calls[GC_CALLS_MAX];
};

static struct gc_item *item_find(struct gc_queue *q, uint64_t ino)
{
    for (struct hmap_node *n = hmap_first(&q->items, hash_near(ino, 0)); n; n = hmap_next(n)) {
        struct gc_item *it = container_of(n, struct gc_item, by_ino);

        if (it->ino == ino)
            return it;
    }
    return NULL;
}

static void item_free(struct gc_item *it)
{
    hmap_remove(&it->q->items, &it->by_ino);
    mem_free(it->targets.ids);
    mem_free(it);
}

static void item_over(struct gc_item *it, int status)
{
    struct gc_queue *q = it->q;
    struct gc *gc = q->gc;
    bool again = it->again;
    uint64_t ino = it->ino;

    q->n_active--;
    if (status < 0) {
        stat_inc(&q->failed);
        q->skipped = true;
        q->next_ns = reactor_now_ns(gc->mds->reactor) + MAX(q->idle_ns, GC_IDLE_NS);
        LOG_DEBUG("gc", "inode %llu: %s", (unsigned long long)it->ino, err_name(status));
    } else {
        stat_inc(&q->done);
        q->progress = true;
        if (q->scanning && q->n_over < GC_ACTIVE_MAX)
            q->over[q->n_over++] = (struct gc_seen){.ino = ino, .item = it->item};
    }
    if (status < 0 && q->items.count < GC_RESTING_MAX && !gc->stopping)
        it->rest_until = reactor_now_ns(gc->mds->reactor) + GC_REST_NS;
    else
        item_free(it);
    if (again && status == 0)
        gc_scan(q, ino);
    else
        gc_scan_resume(q);
    gc_end(gc);
}

/* In that queue: flag is what its items are known by. 1, 0, or it could not be read. */
static int is_queued(struct mds *m, uint64_t ino, uint32_t flag)
{
    struct mds_inode in;
    struct view v;
    int rc;

    view_begin(mds_shard_of(m, ino), &v);
    rc = view_inode(&v, ino, &in);
    view_end(&v);
    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    return (in.flags & flag) != 0;
}

/* Or nobody knows. */
static bool may_be_being_cut(struct mds *m, uint64_t ino)
{
    return is_queued(m, ino, INODE_PUNCH_PENDING) != 0;
}

/* One that has been queued since frees those whom this one would have. What was queued before this
 * one was done is known from its end; of what has come behind that a read may fail, but that is
 * about to be told, and holds them again. */
static bool has_newer_item(const struct gc_item *it, uint32_t result)
{
    return result & SHARD_R_NEWER ||
           is_queued(it->q->gc->mds, it->ino,
                     it->q->type == KEY_PUNCH ? INODE_PUNCH_PENDING : INODE_SIZE_UNSURE) > 0;
}

static void item_committed(struct mds_submit *s)
{
    struct gc_item *it = container_of(s, struct gc_item, submit);
    struct gc *gc = it->q->gc;
    uint32_t result = s->entry.result;
    int rc = s->entry.status;

    mds_submit_fini(s);
    if (rc == 0) {
        if (!has_newer_item(it, result))
            session_item_done(gc->mds, it->q->type, it->ino);
        gc_wait_check(gc);
        if (it->q->type == KEY_PUNCH && gc->recover.skipped)
            gc_scan(&gc->recover, it->ino);
    }
    item_over(it, rc);
}

static void item_confirmed(struct gc_item *it)
{
    struct gc *gc = it->q->gc;
    struct shard *shard = mds_shard_of(gc->mds, it->ino);

    if (it->q->type == KEY_PUNCH) {
        FAULT_CRASH("mds.gc.punch.before_done");
        it->msg.done =
            (struct shard_queue_done){.queue = KEY_PUNCH, .ino = it->ino, .index = it->item.index};
        mds_submit(gc->mds, &it->submit, shard, SHARD_OP_QUEUE_DONE, &it->msg.done, SHARD_E_FREES,
                   item_committed);
        return;
    }
    FAULT_CRASH("mds.evict.after_seal");
    it->msg.size = (struct shard_size){.ino = it->ino,
                                       .size = it->size,
                                       .truncate_gen = it->item.truncate_gen,
                                       .session = it->item.session,
                                       .index = it->item.index};
    mds_submit(gc->mds, &it->submit, shard, SHARD_OP_SIZE_RECOVERED, &it->msg.size, SHARD_E_FREES,
               item_committed);
}

static void item_step(struct gc_item *it);

static void item_called(struct rpc_call *rpc, int status)
{
    struct item_call *c = container_of(rpc, struct item_call, call.rpc);
    struct gc_item *it = c->item;
    const struct msg_seal_rep *seal = rpc->rep;

    if (status == 0 && it->q->type == KEY_RECOVER)
        it->size = MAX(it->size, seal->high_water);
    if (status < 0)
        it->status = status;
    c->busy = false;
    it->n_calls--;
    gc_call_end(it->q->gc, &c->call);
    item_step(it);
}

static int item_send(struct gc_item *it, struct item_call *c, uint32_t target)
{
    bool punch = it->q->type == KEY_PUNCH;
    const struct mds_queue_item *q = &it->item;
    int rc;

    c->item = it;
    if (punch)
        c->req.cut = (struct msg_cut_req){.target = target,
                                          .ino = it->ino,
                                          .truncate_gen = q->truncate_gen,
                                          .chunk_bytes = q->layout.chunk_bytes,
                                          .start = q->size,
                                          .end = UINT64_MAX};
    else
        c->req.seal = (struct msg_seal_req){.target = target,
                                            .ino = it->ino,
                                            .truncate_gen = q->truncate_gen,
                                            .chunk_bytes = q->layout.chunk_bytes};
    rpc_call_init(&c->call.rpc, punch ? RPC_OP_OSS_TRUNCATE : RPC_OP_OSS_SEAL, &c->req, item_called,
                  it);
    rc = gc_call(it->q->gc, target, &c->call);
    if (rc == 0) {
        c->busy = true;
        it->n_calls++;
    }
    return rc;
}

/* Sends what may be sent; goes on when everything has answered. */
static void item_step(struct gc_item *it)
{
    for (unsigned i = 0; i < GC_CALLS_MAX && it->next < it->targets.n && !it->status; i++) {
        if (it->calls[i].busy)
            continue;
        it->status = item_send(it, &it->calls[i], it->targets.ids[it->next]);
        it->next += it->status == 0;
    }
    if (it->n_calls)
        return;
    if (it->status == 0 && it->q->gc->stopping)
        it->status = -AIFS_ECANCELLED;
    if (it->status < 0)
        item_over(it, it->status);
    else
        item_confirmed(it);
}

static bool item_ready(struct gc_item *it)
{
    struct mds *m = it->q->gc->mds;
    uint64_t fence = it->q->type == KEY_RECOVER ? session_fence(m, it->item.session) : 0;

    if (fence == UINT64_MAX || (it->q->type == KEY_RECOVER && may_be_being_cut(m, it->ino)))
        return false;
    for (uint32_t i = 0; i < it->targets.n; i++) {
        if (!cluster_target_fenced(m, it->targets.ids[i], fence))
            return false;
    }
    return true;
}

/* The page was read from a state in which it was not done yet. One that was queued since has
 * another index. */
static bool item_is_over(const struct gc_queue *q, const struct gc_seen *seen)
{
    for (uint32_t i = 0; i < q->n_over; i++) {
        if (q->over[i].ino == seen->ino && q->over[i].item.index == seen->item.index)
            return true;
    }
    return false;
}

void gc_item_start(struct gc_queue *q, const struct gc_seen *seen)
{
    struct gc_item *it = item_find(q, seen->ino);
    int rc;

    if (item_is_over(q, seen))
        return;
    if (it) {
        it->again = it->rest_until == 0;
        q->skipped |= it->rest_until != 0;
        return;
    }
    it = mem_zalloc(sizeof *it);
    if (!it) {
        q->skipped = true;
        return;
    }
    if (q->type == KEY_PUNCH)
        FAULT_CRASH("mds.gc.punch.before_send");
    it->q = q;
    it->ino = seen->ino;
    it->item = seen->item;
    it->size = seen->item.size;
    rc = gc_targets(q->gc, &seen->item.layout, &it->targets);
    if (rc < 0 || !item_ready(it)) {
        if (rc < 0)
            LOG_WARN("gc", "inode %llu: its layout: %s", (unsigned long long)it->ino, err_name(rc));
        mem_free(it->targets.ids);
        mem_free(it);
        q->skipped = true;
        return;
    }
    hmap_insert(&q->items, &it->by_ino, hash_near(it->ino, 0));
    q->n_active++;
    gc_begin(q->gc);
    item_step(it);
}

void gc_items_rested(struct gc_queue *q, uint64_t now_ns)
{
    struct hmap_node *n, *next;
    size_t pos;

    hmap_for_each (n, next, pos, &q->items) {
        struct gc_item *it = container_of(n, struct gc_item, by_ino);

        if (it->rest_until && now_ns >= it->rest_until)
            item_free(it);
    }
}

void gc_items_fini(struct gc_queue *q)
{
    gc_items_rested(q, UINT64_MAX);
    hmap_fini(&q->items);
}
