// SPDX-License-Identifier: Apache-2.0
/*
 * LOCK, LOCK_TEST, LOCK_CANCEL, LOCK_LIST.
 *
 * Happy path of LOCK: nothing is in the way, the entry is executed and committed, its reply sent.
 * Something is in the way: the answer says so at once; who wants to wait is put in line, and told
 * by LOCK_WAKE when it is worth asking again. So no request stays here longer than a commit takes.
 * An answer that grants nothing needs no entry unless changes of the file's locks are under way.
 *
 * Failure modes: the file is not open (-EBADF), waiting would be for ever (-EDEADLK), bounds
 * (-ENOLCK). Asking again is harmless: exactly-once by slot for what changes anything, by its name
 * for a wait.
 */
#include <string.h>

#include "common/base/err.h"
#include "mds/locks/locks_int.h"
#include "mds/ops/op.h"
#include "proto/codec.h"

static struct lock wanted(const struct mds_op *o)
{
    const struct msg_lock_req *msg = o->req->msg;

    return lock_of_msg(&msg->lock, o->req->header.session);
}

/* The wait that this request has begun earlier. */
static struct lock_wait *wait_of(struct locks_module *mod, const struct mds_op *o)
{
    const struct msg_lock_req *msg = o->req->msg;
    struct lock_wait *w =
        msg->wait ? lock_wait_find(&mod->queue, o->req->header.session, msg->wait) : NULL;

    return w && w->file->ino == msg->ino ? w : NULL;
}

static void kick_ino(struct locks_module *mod, uint64_t ino)
{
    struct lock_file *f = lock_file_find(&mod->queue, ino);

    if (f)
        locks_kick(mod, f);
}

static int get_in_line(struct locks_module *mod, const struct mds_op *o)
{
    const struct msg_lock_req *msg = o->req->msg;
    struct lock_wait *w = wait_of(mod, o);
    struct lock want = wanted(o);
    int rc = 0;

    if (lock_deadlocks(&mod->queue, msg->ino, &want)) {
        stat_inc(&mod->deadlocks);
        if (w)
            lock_wait_remove(&mod->queue, w);
        return -EDEADLK;
    }
    want.since_ns = clock_wall_ns(reactor_clock(mod->mds->reactor));
    if (!w && lock_wait_find(&mod->queue, want.session, msg->wait))
        return -AIFS_EPROTO; /* that name is in use for another file */
    if (!w) {
        rc = lock_wait_add(&mod->queue, msg->ino, &want, msg->wait, &w);
        stat_inc(&mod->waited);
    }
    if (rc == 0)
        w->state = LOCK_BLOCKED;
    return rc;
}

/* Not granted. other: what is in the way, copied before anything changes. The session may have
 * ended while this was executed: then its waits are over. */
static void refuse(struct locks_module *mod, struct mds_op *o, struct msg_lock_rep *rep)
{
    const struct msg_lock_req *msg = o->req->msg;
    uint64_t ino = msg->ino;
    int rc = msg->wait ? o->mds->session_ops->check(o->mds, o->req) : 0;

    if (rc == 0 && msg->wait)
        rc = get_in_line(mod, o);

    rep->granted = false;
    rep->queued = msg->wait != 0;
    op_reply(o, rc, rc == 0 ? rep : NULL);
    kick_ino(mod, ino);
}

static void lock_done(struct shard_entry *e)
{
    struct mds_op *o = container_of(e, struct mds_op, entry);
    struct locks_module *mod = locks_module(o->mds);
    const struct msg_lock_req *msg = o->req->msg;
    struct lock_file *f = lock_file_find(&mod->queue, msg->ino);
    uint64_t ino = msg->ino;
    void *rep = NULL;
    int rc = e->status;

    f->busy--;
    if (e->result & SHARD_R_UNKNOWN) {
        rpc_link_close(o->req->from, -AIFS_EDOWN);
        rc = -AIFS_EDOWN;
    } else if (rc == 0) {
        rc = codec_decode(RPC_OP_LOCK, true, e->reply, e->reply_len, &o->req->arena, &rep);
    }
    if (rc == 0 && !((struct msg_lock_rep *)rep)->granted) {
        refuse(mod, o, rep);
    } else {
        struct lock_wait *w = wait_of(mod, o);

        if (w)
            lock_wait_remove(&mod->queue, w);
        if (rc == 0 && msg->lock.type != MSG_LOCK_UNLOCK)
            stat_inc(&mod->granted);
        op_reply(o, rc, rep);
        kick_ino(mod, ino);
    }
    f = lock_file_find(&mod->queue, ino);
    if (f)
        lock_file_put(&mod->queue, f);
}

static void lock_submit(struct locks_module *mod, struct mds_op *o)
{
    const struct rpc_req *req = o->req;
    const struct msg_lock_req *msg = req->msg;
    struct shard_entry *e = &o->entry;
    struct lock_file *f = lock_file_get(&mod->queue, msg->ino);
    int rc;

    if (!f) {
        op_reply(o, -ENOMEM, NULL);
        return;
    }
    shard_entry_init(e, RPC_OP_LOCK, msg, o->mds->reactor, lock_done);
    o->entry_used = true;
    e->flags = msg->lock.type == MSG_LOCK_UNLOCK ? SHARD_E_FREES : 0;
    e->session = req->header.session;
    e->generation = req->header.generation;
    e->slot = req->header.slot;
    e->sequence = req->header.slot_sequence;
    e->body = req->body;
    e->body_len = req->header.body_len;
    f->busy++;
    rc = shard_submit(o->shard, e);
    if (rc < 0) {
        f->busy--;
        lock_file_put(&mod->queue, f);
        op_reply(o, rc, NULL);
    }
}

/* Is it plain without an entry that this cannot be granted now? */
static bool is_refused(struct locks_module *mod, const struct mds_op *o,
                       struct msg_lock_rep *ret_rep)
{
    const struct msg_lock_req *msg = o->req->msg;
    struct lock_file *f = lock_file_find(&mod->queue, msg->ino);
    struct lock want = wanted(o);
    const struct lock_wait *ahead = NULL;
    const struct lock *list, *other = NULL;
    uint32_t n;

    if (want.type == MSG_LOCK_UNLOCK)
        return false;
    if (f)
        ahead = lock_wait_ahead(&mod->queue, f, &want, wait_of(mod, o), msg->wait != 0);
    if (ahead) {
        other = &ahead->want;
    } else if (!f || !f->busy) {
        n = mod->queue.holders(mod->queue.arg, msg->ino, &list);
        if (want.kind != MSG_LOCK_FLOCK || !lock_list_owns(list, n, &want))
            other = lock_list_conflict(list, n, &want);
    }
    if (!other)
        return false;
    ret_rep->has_other = true;
    lock_to_msg(other, &ret_rep->other);
    return true;
}

static int lock_check(struct mds *m, struct mds_op *o)
{
    const struct msg_lock_req *msg = o->req->msg;

    o->shard = mds_shard_of(m, msg->ino);
    if (!o->shard)
        return -ENOENT;
    if (msg->lock.type == MSG_LOCK_UNLOCK)
        return 0;
    return session_has_open(m, o->req->header.session, msg->ino, msg->open_id) ? 0 : -EBADF;
}

void op_lock(struct mds *m, struct rpc_req *req)
{
    struct locks_module *mod = locks_module(m);
    struct msg_lock_rep rep = {0};
    struct mds_op *o;
    int rc;

    if (req->header.slot == 0 || req->header.slot > m->conf.slots) {
        rpc_reply(req, -AIFS_EPROTO, NULL);
        return;
    }
    o = op_begin(m, req);
    if (!o)
        return;
    rc = lock_check(m, o);
    if (rc < 0)
        op_reply(o, rc, NULL);
    else if (is_refused(mod, o, &rep))
        refuse(mod, o, &rep);
    else
        lock_submit(mod, o);
}

void op_lock_test(struct mds *m, struct rpc_req *req)
{
    struct locks_module *mod = locks_module(m);
    const struct msg_lock_req *msg = req->msg;
    struct mds_op *o = op_begin(m, req);
    struct msg_lock_rep rep = {0};
    const struct lock *list, *other;
    struct lock want;
    uint32_t n;
    int rc;

    if (!o)
        return;
    rc = locks_held(mod, msg->ino, &list, &n);
    if (rc < 0) {
        op_reply(o, rc, NULL);
        return;
    }
    want = wanted(o);
    other = lock_list_conflict(list, n, &want);
    rep.granted = !other;
    rep.has_other = other != NULL;
    if (other)
        lock_to_msg(other, &rep.other);
    op_reply(o, 0, &rep);
}

void op_lock_cancel(struct mds *m, struct rpc_req *req)
{
    struct locks_module *mod = locks_module(m);
    const struct msg_lock_wait *msg = req->msg;
    uint64_t ino = msg->ino;
    struct mds_op *o = op_begin(m, req);
    struct lock_wait *w;

    if (!o)
        return;
    w = lock_wait_find(&mod->queue, req->header.session, msg->wait);
    if (w && w->file->ino == ino)
        lock_wait_remove(&mod->queue, w);
    op_reply(o, 0, NULL);
    kick_ino(mod, ino);
}

/* ---- for people ---- */

static uint64_t age_ns(const struct lock *l, int64_t now_ns)
{
    return now_ns > l->since_ns ? (uint64_t)(now_ns - l->since_ns) : 0;
}

static void list_one(struct mds *m, struct msg_lock_list_rep *rep, struct msg_lock_info *infos,
                     const struct lock *l, bool waits, int64_t now_ns)
{
    struct msg_lock_info *i = &infos[rep->n_locks];

    if (rep->n_locks == MSG_ITEMS_MAX) {
        rep->more = true;
        return;
    }
    rep->n_locks++;
    *i = (struct msg_lock_info){.waits = waits, .age_ns = age_ns(l, now_ns)};
    lock_to_msg(l, &i->lock);
    (void)session_who(m, l->session, &i->host, &i->mount);
}

void op_lock_list(struct mds *m, struct rpc_req *req)
{
    struct locks_module *mod = locks_module(m);
    const struct msg_ino_req *msg = req->msg;
    struct lock_file *f = lock_file_find(&mod->queue, msg->ino);
    int64_t now_ns = clock_wall_ns(reactor_clock(m->reactor));
    struct msg_lock_list_rep rep = {0};
    struct msg_lock_info *infos;
    const struct lock *list;
    const struct list *l;
    uint32_t n;
    int rc = locks_held(mod, msg->ino, &list, &n);

    infos = rc == 0 ? arena_alloc(&req->arena, MSG_ITEMS_MAX * sizeof *infos) : NULL;
    if (!infos) {
        rpc_reply(req, rc < 0 ? rc : -ENOMEM, NULL);
        return;
    }
    rep.locks = infos;
    for (uint32_t i = 0; i < n; i++)
        list_one(m, &rep, infos, &list[i], false, now_ns);
    if (f) {
        list_for_each (l, &f->waits)
            list_one(m, &rep, infos, &list_entry((struct list *)l, struct lock_wait, of_file)->want,
                     true, now_ns);
    }
    rpc_reply(req, 0, &rep);
}

static void wait_end(struct mds *m, const struct lock *l, int64_t now_ns, struct msg_wait_end *ret)
{
    session_describe(m, l->session, ret);
    ret->pid = l->pid;
    ret->age_ns = age_ns(l, now_ns);
}

static void add_wait(struct mds *m, const struct lock_wait *w, int64_t now_ns, struct msg_wait *out)
{
    struct lock_queue *q = &locks_module(m)->queue;
    const struct lock *list, *other;
    uint32_t n = q->holders(q->arg, w->file->ino, &list);

    *out =
        (struct msg_wait){.kind = w->want.kind == MSG_LOCK_FLOCK ? MSG_WAIT_FLOCK : MSG_WAIT_RECORD,
                          .write = w->want.type == MSG_LOCK_WRITE,
                          .ino = w->file->ino,
                          .start = w->want.start,
                          .end = w->want.end};
    wait_end(m, &w->want, now_ns, &out->who);
    other = lock_list_conflict(list, n, &w->want);
    if (!other) {
        const struct lock_wait *ahead = lock_wait_ahead(q, w->file, &w->want, w, true);

        other = ahead ? &ahead->want : NULL;
        out->other_waits = ahead != NULL;
    }
    out->has_other = other != NULL;
    if (other)
        wait_end(m, other, now_ns, &out->other);
}

void locks_waits(struct mds *m, struct mds_waits *out)
{
    int64_t now_ns = clock_wall_ns(reactor_clock(m->reactor));
    const struct list *l;

    list_for_each (l, &locks_module(m)->queue.all) {
        struct msg_wait *w = mds_waits_add(out);

        if (!w)
            return;
        add_wait(m, list_entry((struct list *)l, struct lock_wait, all), now_ns, w);
    }
}
