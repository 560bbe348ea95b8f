/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of files (docs/protocols.md 10). All of them are kept by the metadata server; here is only
 * what is needed to wait for them and to release them.
 *
 * Happy path: LOCK, granted, and, when the file is open elsewhere too (no lease), the kernel drops
 * what it has cached of it before the caller goes on. A request that has to wait sits in
 * core.lock_waiters, without a call or a slot, until LOCK_WAKE says that it is worth asking again;
 * it also asks again by itself: after LOCK_ASK_NS, and whenever the session comes back.
 *
 * Who has asked for locks through an open file is noted there (struct lock_holder): the release of
 * the file, or the close by a process, sends the unlock that nobody else will send. Files through
 * which nobody locks cost nothing.
 *
 * Failure: a caller that was interrupted while its question was on the way gets the answer, if it
 * comes soon; a lock granted to a caller that has left is released again, and what its owner asks
 * for meanwhile goes to the server after that (core.locks_behind): else the release would take the
 * lock that the owner was granted next, and nobody would know. A close that was interrupted, as one
 * by a process that ends is, releases what its owner has all the same, later. With the session the
 * locks are lost: the files they were held through give EIO from then on (file.c).
 */
#include "client/core/core_int.h"

#define LOCK_ASK_NS (5 * NS_PER_S)

/* ---- who has locks through a file ---- */

static struct lock_holder *holder_find(struct core_file *f, uint32_t kind, uint64_t owner)
{
    struct list *l;

    list_for_each (l, &f->lock_holders) {
        struct lock_holder *h = list_entry(l, struct lock_holder, link);

        if (h->kind == kind && h->owner == owner)
            return h;
    }
    return NULL;
}

static struct lock_holder *holder_get(struct core_file *f, const struct msg_lock *l)
{
    struct lock_holder *h = holder_find(f, l->kind, l->owner);

    if (h)
        return h;
    h = mem_zalloc(sizeof *h);
    if (!h)
        return NULL;
    h->kind = l->kind;
    h->owner = l->owner;
    list_push_back(&f->lock_holders, &h->link);
    f->inode->locks_seen |= l->kind == MSG_LOCK_RECORD;
    return h;
}

static void holder_drop(struct lock_holder *h)
{
    list_remove(&h->link);
    mem_free(h);
}

/* Everything that the owner had of the inode is released: whichever file it asked through. */
static void holders_free(struct core_inode *i, const struct msg_lock *l, bool closed)
{
    struct list *at;

    list_for_each (at, &i->files) {
        struct lock_holder *h =
            holder_find(list_entry(at, struct core_file, link), l->kind, l->owner);

        if (!h || h->asks)
            continue;
        h->holds = false;
        if (closed)
            holder_drop(h);
    }
}

bool core_owns_locks(const struct core_file *f, uint64_t owner)
{
    const struct list *l;

    if (!f->inode->locks_seen)
        return false;
    list_for_each (l, &f->inode->files) {
        struct core_file *x = list_entry((struct list *)l, struct core_file, link);
        const struct lock_holder *h = holder_find(x, MSG_LOCK_RECORD, owner);

        if (h && h->holds)
            return true;
    }
    return false;
}

/* ---- messages that nobody waits for ---- */

static void unlock_sent(struct mds_op *op, int status)
{
    if (status && status != -AIFS_ESESSION && !op->core->forced)
        LOG_WARN("client", "inode %llu: a lock could not be released: %s",
                 (unsigned long long)op->msg.lock.ino, err_text(status));
}

static void unlock_send(struct core *c, uint64_t ino, const struct msg_lock *l)
{
    struct mds_op *op = mds_op_new(c, RPC_OP_LOCK, NULL, unlock_sent);

    if (!op) {
        LOG_ERROR("client",
                  "inode %llu: no memory to release a lock: it stays until this client "
                  "ends its session",
                  (unsigned long long)ino);
        return;
    }
    op->msg.lock = (struct msg_lock_req){.ino = ino, .lock = *l};
    op->msg.lock.lock.type = MSG_LOCK_UNLOCK;
    op->writes_back = true;
    mds_op_start(op);
}

static void cancel_sent(struct mds_op *op, int status)
{
    (void)op;
    (void)status; /* the server finds out by itself: what it offers is not taken */
}

static void cancel_send(struct core *c, uint64_t ino, uint64_t wait)
{
    struct mds_op *op = mds_op_new(c, RPC_OP_LOCK_CANCEL, NULL, cancel_sent);

    if (!op)
        return;
    op->msg.lock_wait = (struct msg_lock_wait){.ino = ino, .wait = wait};
    mds_op_start(op);
}

void locks_release(struct core_file *f)
{
    struct core *c = f->inode->core;
    struct list *l;

    while ((l = list_pop_front(&f->lock_holders)) != NULL) {
        struct lock_holder *h = list_entry(l, struct lock_holder, link);
        struct msg_lock all = {.kind = h->kind, .owner = h->owner, .end = MSG_LOCK_END};

        if (h->holds && f->session_epoch == c->session.epoch && c->session.id && !c->forced)
            unlock_send(c, f->inode->ino, &all);
        mem_free(h);
    }
}

/* ---- a request ---- */

static void lock_ask(struct core_req *q);

/* Who closes waits no more, and nobody closes once more: it is released all the same. */
static void closed_early(const struct core_req *q)
{
    const struct core *c = q->p.core;
    const struct mds_op *op = q->p.op;
    bool goes_on = op && !op->failed && (op->slot >= 0 || op->carried);

    holders_free(q->p.inode, &q->p.lock, true);
    if (!goes_on && q->p.file->session_epoch == c->session.epoch && c->session.id && !c->forced)
        unlock_send(q->p.core, q->p.inode->ino, &q->p.lock);
}

static void lock_end(struct core_req *q, int status)
{
    struct core_inode *i = q->p.inode;
    struct core *c = q->p.core;

    if (q->p.lock_wait)
        c->n_lock_waits--;
    if (q->p.op_holder)
        q->p.op_holder->asks--;
    if (q->p.n2 && (status == -EINTR || status == -AIFS_ETIMEOUT))
        closed_early(q);
    file_idle(q->p.file);
    req_end(q, status);
    inode_put(i);
}

/* The lock is there. What the kernel has cached without a lease may be older than what its
 * predecessor wrote. */
static void lock_visible(struct inval_wait *w)
{
    req_finish(w->q, 0);
}

/* It is granted whatever comes: only an end of everything is told. */
static void cancel_visible(struct core_req *q, int status)
{
    list_remove(&((struct inval_wait *)q->p.flush)->link);
    req_finish(q, status == -EIO ? status : 0);
}

static void lock_granted(struct core_req *q)
{
    struct core_inode *i = q->p.inode;
    struct inval_wait *w = (struct inval_wait *)q->p.flush;

    static_assert(sizeof *w <= sizeof q->p.flush, "a wait fits");
    if (i->lease != MSG_LEASE_NONE && !i->lease_temporary) {
        req_finish(q, 0);
        return;
    }
    if (!i->attr_kept)
        inode_expire(i->core, i->ino);
    *w = (struct inval_wait){.q = q, .fn = lock_visible};
    list_init(&w->link);
    req_wait(q, "waits for the kernel to drop what it has cached", cancel_visible);
    lease_kernel_drops_then(i, w);
}

/* It is not granted: does its owner hold as little as before? */
static void not_granted(struct core_req *q)
{
    struct lock_holder *h = q->p.op_holder;

    if (h && h->asks == 1)
        h->holds = q->p.lock_held;
}

static void cancel_wait(struct core_req *q, int status)
{
    cancel_send(q->p.core, q->p.inode->ino, q->p.lock_wait);
    req_finish(q, status);
}

static void lock_wait(struct core_req *q)
{
    struct core *c = q->p.core;

    if (q->p.cancelled) {
        cancel_wait(q, -EINTR);
        return;
    }
    if (q->p.lock_woken) {
        lock_ask(q);
        return;
    }
    q->p.patient = true;
    q->p.timed_ns = reactor_now_ns(c->reactor);
    req_wait(q, "waits for somebody else's lock", cancel_wait);
    list_push_back(&c->lock_waiters, &q->p.wait);
}

/* Nobody waits for this answer any more. */
static void answered_late(struct mds_op *op, int status)
{
    const struct msg_lock_req *msg = &op->msg.lock;
    const struct msg_lock_rep *rep = op->call.rep;

    if (status || msg->lock.type == MSG_LOCK_UNLOCK)
        return;
    if (rep->granted)
        unlock_send(op->core, msg->ino, &msg->lock);
    else if (msg->wait)
        cancel_send(op->core, msg->ino, msg->wait);
}

static void lock_answered(struct mds_op *op, int status)
{
    const struct msg_lock_rep *rep = op->call.rep;
    const struct msg_lock *l = &op->msg.lock.lock;
    struct core_req *q = op->q;

    if (!q) {
        answered_late(op, status);
    } else if (status) {
        not_granted(q);
        req_finish(q, status);
    } else if (l->type == MSG_LOCK_UNLOCK) {
        if (l->kind == MSG_LOCK_FLOCK || (l->start == 0 && l->end == MSG_LOCK_END))
            holders_free(q->p.inode, l, q->p.n2 != 0);
        req_finish(q, 0);
    } else if (rep->granted) {
        lock_granted(q);
    } else {
        not_granted(q);
        if (q->p.lock_wait)
            lock_wait(q);
        else
            req_finish(q, -EAGAIN);
    }
}

/* It may have waited before: the server would offer it the lock, and keep that for a while. */
static void cancel_behind(struct core_req *q, int status)
{
    if (q->p.lock_wait)
        cancel_wait(q, status);
    else
        req_finish(q, status);
}

/* Is a request of the same owner under way that nobody waits for any more, or its release? */
static bool owner_is_late(const struct core_req *q)
{
    const struct list *l;

    list_for_each (l, &q->p.core->ops) {
        const struct mds_op *op = list_entry((struct list *)l, struct mds_op, link);
        const struct msg_lock_req *m = &op->msg.lock;

        if (op->call.op == RPC_OP_LOCK && !op->q && m->ino == q->p.inode->ino &&
            m->lock.kind == q->p.lock.kind && m->lock.owner == q->p.lock.owner)
            return true;
    }
    return false;
}

static void lock_ask(struct core_req *q)
{
    struct core *c = q->p.core;
    struct mds_op *op;

    if (q->p.lock.type != MSG_LOCK_UNLOCK && owner_is_late(q)) {
        q->p.patient = true;
        req_wait(q, "waits for an interrupted lock of its owner", cancel_behind);
        list_push_back(&c->locks_behind, &q->p.wait);
        return;
    }
    q->p.patient = q->p.lock_woken = false;
    q->p.timed_ns = reactor_now_ns(c->reactor);
    if (!file_ready(q, lock_ask))
        return;
    op = mds_op_new(c, RPC_OP_LOCK, q, lock_answered);
    if (op) {
        op->msg.lock = (struct msg_lock_req){.ino = q->p.inode->ino,
                                             .open_id = q->p.file->open_id,
                                             .lock = q->p.lock,
                                             .wait = q->p.lock_wait};
        op->writes_back = q->p.lock.type == MSG_LOCK_UNLOCK;
        if (q->p.op_holder) {
            q->p.lock_held = q->p.op_holder->holds;
            q->p.op_holder->holds = true; /* from now on the server may have it so */
        }
    }
    req_call(q, op, "waits for the metadata server: LOCK");
}

static void unlock_flushed(struct flush_wait *w)
{
    lock_ask(w->q);
}

static void cancel_flush(struct core_req *q, int status)
{
    flush_cancel((struct flush_wait *)q->p.flush);
    req_finish(q, status);
}

/* Without a lease every byte is at the servers already; what is not reported goes first. */
static void unlock_start(struct core_req *q)
{
    struct flush_wait *w = (struct flush_wait *)q->p.flush;
    struct core_inode *i = q->p.inode;

    if (i->lease != MSG_LEASE_NONE || (!i->dirty_bytes && i->meta_seq == i->meta_done)) {
        lock_ask(q);
        return;
    }
    req_wait(q, "writes back", cancel_flush);
    w->q = q;
    flush_start(i, w, false, unlock_flushed);
}

static bool lock_begin(struct core *c, struct core_req *q, struct core_file *f, const char *what,
                       const struct msg_lock *l)
{
    req_begin(c, q, what, f->inode->ino);
    if (!core_usable(c, q))
        return false;
    q->p.file = f;
    q->p.inode = inode_ref(f->inode);
    q->p.end = lock_end;
    q->p.lock = *l;
    f->busy++;
    return true;
}

void core_lock(struct core *c, struct core_req *q, struct core_file *f, const struct msg_lock *l,
               bool wait)
{
    if (!lock_begin(c, q, f, "lock", l))
        return;
    if (l->type == MSG_LOCK_UNLOCK) {
        unlock_start(q);
        return;
    }
    if (wait && c->n_lock_waits >= CORE_LOCK_WAITS_MAX) {
        req_finish(q, -ENOLCK);
        return;
    }
    q->p.op_holder = holder_get(f, l);
    if (!q->p.op_holder) {
        req_finish(q, -ENOLCK);
        return;
    }
    q->p.op_holder->asks++;
    if (wait) {
        q->p.lock_wait = ++c->lock_waits;
        c->n_lock_waits++;
    }
    lock_ask(q);
}

void core_unlock_owner(struct core *c, struct core_req *q, struct core_file *f, uint64_t owner)
{
    struct msg_lock all = {
        .type = MSG_LOCK_UNLOCK, .kind = MSG_LOCK_RECORD, .owner = owner, .end = MSG_LOCK_END};

    if (!lock_begin(c, q, f, "unlock", &all))
        return;
    q->p.n2 = 1; /* its holder closes */
    unlock_start(q);
}

static void tested(struct mds_op *op, int status)
{
    const struct msg_lock_rep *rep = op->call.rep;
    struct core_req *q = op->q;

    if (!q)
        return;
    if (!status) {
        q->out.lock = rep->has_other ? rep->other : (struct msg_lock){.type = MSG_LOCK_UNLOCK};
        if (rep->has_other && rep->other.session != op->core->session.id)
            q->out.lock.pid = 0; /* of another machine: its number says nothing here */
    }
    req_finish(q, status);
}

static void test_ask(struct core_req *q)
{
    struct mds_op *op;

    if (!file_ready(q, test_ask))
        return;
    op = mds_op_new(q->p.core, RPC_OP_LOCK_TEST, q, tested);
    if (op)
        op->msg.lock = (struct msg_lock_req){
            .ino = q->p.inode->ino, .open_id = q->p.file->open_id, .lock = q->p.lock};
    req_call(q, op, "waits for the metadata server: LOCK_TEST");
}

void core_lock_test(struct core *c, struct core_req *q, struct core_file *f,
                    const struct msg_lock *l)
{
    if (lock_begin(c, q, f, "lock test", l))
        test_ask(q);
}

/* ---- waiting ---- */

static void wait_over(struct core_req *q)
{
    list_remove(&q->p.wait);
    q->p.cancel = NULL;
    lock_ask(q);
}

/* age_ns: only those that wait for so long already. */
static void ask_again(struct core *c, uint64_t age_ns)
{
    uint64_t now = reactor_now_ns(c->reactor);
    struct list due, *l, *tmp;

    list_init(&due);
    list_for_each_safe (l, tmp, &c->lock_waiters) {
        const struct core_req *q = list_entry(l, struct core_req, p.wait);

        if (now - q->p.timed_ns >= age_ns) {
            list_remove(l);
            list_push_back(&due, l);
        }
    }
    while (!list_empty(&due))
        wait_over(list_entry(due.next, struct core_req, p.wait));
}

void locks_resume(struct core *c)
{
    ask_again(c, 0);
}

/* They are not so many, nor often there: the tick looks whether they may go on. */
static void behind_again(struct core *c)
{
    struct list due;

    list_init(&due);
    list_splice(&due, &c->locks_behind);
    while (!list_empty(&due))
        wait_over(list_entry(due.next, struct core_req, p.wait));
}

void locks_tick(struct core *c)
{
    behind_again(c);
    ask_again(c, LOCK_ASK_NS);
}

static void handle_wake(struct rpc_req *req)
{
    struct core *c = req->handler_arg;
    uint64_t wait = ((const struct msg_lock_wait *)req->msg)->wait;
    struct list *l;

    rpc_reply(req, 0, &(struct msg_empty){0});
    list_for_each (l, &c->in_flight) {
        struct core_req *q = list_entry(l, struct core_req, p.link);

        if (!q->p.lock_wait || q->p.lock_wait != wait)
            continue;
        if (q->p.patient)
            wait_over(q);
        else
            q->p.lock_woken = true; /* it has overtaken the answer that we wait */
        return;
    }
}

void locks_handlers(struct core *c)
{
    rpc_node_handle(c->node, RPC_OP_LOCK_WAKE, handle_wake, c);
}

/* The session is gone, and all locks with it. */
void locks_lost(struct core *c)
{
    struct list *l, *h;
    unsigned n = 0;

    list_for_each (l, &c->files) {
        struct core_file *f = list_entry(l, struct core_file, all);

        list_for_each (h, &f->lock_holders) {
            struct lock_holder *holder = list_entry(h, struct lock_holder, link);

            n += holder->holds && !f->locks_lost;
            f->locks_lost |= holder->holds;
            holder->holds = false;
        }
    }
    if (n)
        LOG_ERROR("client",
                  "locks held through %u open files are lost: these give EIO until they "
                  "are closed",
                  n);
}
