/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removals that are answered before the server has executed them; see behind.h and ADR 0017.
 *
 * Happy path: the caches here change as after the removal, its request is over, and its op is
 * gathered with others for a moment, and as long as two messages of them are under way. The answer
 * comes, those who wait behind it go on: operations that name the directory or the file (the
 * barrier), the answer to an INVALIDATE, removals for which there was no room.
 *
 * What is allowed is decided in behind_rules.c. The removal of a directory is sent when those in it
 * have been answered: their messages may overtake each other.
 *
 * Failure: the server refuses all the same, or the session is lost: it is logged, the directory is
 * looked at afresh by everybody, and its next fsync fails. A removal is never carried from one
 * session into the next: by then the name may be somebody else's file.
 */
#include "client/core/core_int.h"
#include "client/core/named.h"

#define REMOVING_NS (2 * NS_PER_S)

static void resume(struct mds_op *op);

void behind_init(struct core *c)
{
    c->behind.max = BEHIND_MAX;
    c->behind.max_errors = BEHIND_ERRORS_MAX;
    list_init(&c->behind.errors);
    behind_gather_init(c);
    list_init(&c->behind.room);
    list_init(&c->behind.all);
    list_init(&c->behind.invalidates);
}

/* ---- who changes names ---- */

static bool removes(const struct mds_op *op)
{
    return op->call.op == RPC_OP_UNLINK || op->call.op == RPC_OP_RMDIR;
}

static const struct msg_cred *cred_of(const struct mds_op *op)
{
    return removes(op)                     ? &op->msg.name.cred
           : op->call.op == RPC_OP_SETATTR ? &op->msg.setattr.cred
           : op->call.op == RPC_OP_RENAME  ? &op->msg.rename.cred
                                           : &op->msg.create.cred;
}

static bool is_caller(const struct behind_caller *k, const struct core *c,
                      const struct msg_cred *cred, uint64_t rest)
{
    return k->epoch == c->session.epoch && k->removed && k->uid == cred->uid &&
           k->gid == cred->gid && k->rest == rest;
}

static struct behind_caller *caller_find(const struct core *c, const struct msg_cred *cred)
{
    uint64_t rest = cred_hash(cred);

    for (unsigned k = 0; k < BEHIND_CALLERS; k++)
        if (is_caller(&c->behind.callers[k], c, cred, rest))
            return (struct behind_caller *)&c->behind.callers[k];
    return NULL;
}

static struct behind_caller *caller_oldest(struct core *c)
{
    struct behind_caller *oldest = &c->behind.callers[0];

    for (unsigned k = 1; k < BEHIND_CALLERS; k++)
        if (c->behind.callers[k].last_ns < oldest->last_ns)
            oldest = &c->behind.callers[k];
    return oldest;
}

bool behind_removes(const struct core *c, const struct msg_cred *cred)
{
    return caller_find(c, cred) != NULL;
}

void behind_executed(const struct mds_op *op)
{
    struct core *c = op->core;
    const struct msg_cred *cred = cred_of(op);
    struct behind_caller *k = caller_find(c, cred);

    if (op->generation != c->session.epoch)
        return;
    if (!k) {
        k = caller_oldest(c);
        *k = (struct behind_caller){
            .uid = cred->uid, .gid = cred->gid, .epoch = c->session.epoch, .rest = cred_hash(cred)};
    }
    k->removed = MIN(k->removed + 1, 2u);
    k->last_ns = reactor_now_ns(c->reactor);
}

bool behind_wishes(const struct core *c, const struct msg_cred *cred)
{
    bool ahead = (c->o.ahead || c->o.create_ahead) && !c->o.read_only;
    const struct behind_caller *k = ahead ? caller_find(c, cred) : NULL;

    return k && k->removed >= 2 && reactor_now_ns(c->reactor) - k->last_ns < REMOVING_NS;
}

/* ---- what we are alone with ---- */

static bool believes(const struct core_inode *i, const struct answer *a)
{
    return (i->core->o.ahead || i->core->o.create_ahead) && session_believed(i->core) &&
           answer_current(i->core, a) && a->event >= i->inval_event;
}

void behind_told_dir(struct core_inode *dir, const struct answer *a)
{
    if (!believes(dir, a))
        return;
    if (!dir->behind.own) { /* what was told as of an entry ends with another directory */
        dir->behind.own = true;
        dir->behind.term = ++dir->core->behind.terms;
    }
    dir->behind.rules_known |= inode_attr_fresh(dir);
}

void behind_told_entry(struct core_inode *i, uint64_t ino, const struct answer *a)
{
    const struct core_inode *dir = inode_find(i->core, ino);

    if (dir && dir->behind.own && !i->behind.own && believes(dir, a) && believes(i, a))
        i->behind.term = dir->behind.term;
}

void behind_end(struct core_inode *i)
{
    i->behind.term = 0;
    i->behind.own = i->behind.rules_known = false;
}

bool behind_leaving(struct core *c, uint64_t ino)
{
    const struct core_inode *i = c->behind.n ? inode_find(c, ino) : NULL;

    return i && i->behind.leaving;
}

/* ---- the barrier ---- */

static void wait_on(struct mds_op *op, struct list *waiters)
{
    op->core->stats.removal_waits++;
    if (op->q)
        op->q->p.state = "waits for removals that were answered ahead";
    list_push_back(waiters, &op->wait);
    behind_urge(op->core);
}

bool behind_holds(struct mds_op *op)
{
    struct core *c = op->core;
    struct named d;

    if (!c->behind.n)
        return false;
    if (op->for_room) {
        wait_on(op, &c->behind.room);
        return true;
    }
    d = named_by(op);
    for (unsigned k = 0; k < d.n; k++) {
        struct core_inode *i = inode_find(c, d.ino[k]);

        if (i && behind_busy(i)) {
            wait_on(op, &i->behind.waiters);
            return true;
        }
    }
    if (d.all)
        wait_on(op, &c->behind.all);
    return d.all;
}

bool behind_overtaken(struct mds_op *op)
{
    const struct msg_inode_rep *rep = op->call.rep;
    struct core_inode *i;

    if (!op->q || (op->call.op != RPC_OP_LOOKUP && op->call.op != RPC_OP_GETATTR))
        return false;
    i = inode_find(op->core, rep->inode.attr.ino);
    if (!i || !behind_busy(i))
        return false;
    wait_on(op, &i->behind.waiters);
    return true;
}

static void resume(struct mds_op *op)
{
    bool ends = op->failed || op->core->forced;

    op->for_room = false;
    if (op->q)
        op->q->p.state = "waits for the metadata server, behind removals";
    if (!ends && op->may_ahead && behind_try(op))
        return;
    if (ends || !behind_holds(op))
        mds_op_go(op);
}

static void resume_list(struct list *waiters)
{
    struct list now, *l;

    list_init(&now);
    list_splice(&now, waiters);
    while ((l = list_pop_front(&now)) != NULL)
        resume(list_entry(l, struct mds_op, wait));
}

/* ---- one removal ---- */

static void count(struct core_inode *i)
{
    if (i->behind.n++ == 0)
        inode_ref(i);
}

/* As inode_expire(), but mode and owner have not changed. */
static void outdate(struct core_inode *i)
{
    i->attr_kept = false;
    i->attr_event = ++i->core->events_seen;
}

void behind_mistaken(struct core_inode *dir)
{
    const struct core_events *e = &dir->core->o.events;

    outdate(dir);
    dir->attr_known = false;
    if (e->inval_attr)
        e->inval_attr(e->arg, dir->ino);
}

static bool as_foreseen(const struct msg_attr *a, const struct msg_attr *b)
{
    return a->nlink == b->nlink && a->mode == b->mode && a->uid == b->uid && a->gid == b->gid &&
           a->mtime.sec == b->mtime.sec && a->mtime.nsec == b->mtime.nsec &&
           a->ctime.sec == b->ctime.sec && a->ctime.nsec == b->ctime.nsec;
}

void behind_compare(struct core_inode *dir, const struct msg_attr *was)
{
    const struct core_events *e = &dir->core->o.events;

    if (!as_foreseen(was, &dir->attr) && e->inval_attr)
        e->inval_attr(e->arg, dir->ino);
}

/* The last of those under way has been executed. The kernel has what was foreseen. */
void behind_take_dir(const struct mds_op *op, struct core_inode *dir)
{
    struct msg_attr foreseen = dir->attr;

    inode_take_dir(op, op->call.rep, dir->ino);
    behind_compare(dir, &foreseen);
}

bool behind_busy(const struct core_inode *i)
{
    return i->behind.n || i->behind.opens;
}

/* The caller holds a reference too. */
static void settle(struct core_inode *i)
{
    if (behind_busy(i))
        return;
    invalidate_drained(i->core, i->ino);
    resume_list(&i->behind.waiters);
    req_resume_list(&i->behind.reqs);
}

/* Its own removal may follow those in it. */
static void emptied(struct core_inode *dir)
{
    struct mds_op *last = dir->behind.last;

    if (!last || dir->behind.n > 1)
        return;
    dir->behind.last = NULL;
    mds_op_go(last);
    behind_hurry(dir->core);
}

static void uncount(struct core_inode *i)
{
    ASSERT(i->behind.n > 0);
    inode_ref(i);
    if (--i->behind.n == 0)
        inode_put(i);
}

void behind_also(struct core_inode *i)
{
    count(i);
}

void behind_also_over(struct core_inode *i)
{
    uncount(i);
    settle(i);
    inode_put(i);
}

void behind_answered(struct core_inode *dir, struct core_inode *i)
{
    uncount(dir);
    uncount(i);
}

void behind_over(struct core *c, struct core_inode *dir, struct core_inode *i)
{
    c->behind.n--;
    c->behind.hurried -= MIN(c->behind.hurried, 1u);
    settle(i);
    settle(dir);
    emptied(dir);
    moving_step(i);
    setdir_step(i);
    setdir_step(dir);
    newdir_step(dir);
    inode_put(i);
    inode_put(dir);
    if (!c->behind.n) {
        resume_list(&c->behind.room);
        resume_list(&c->behind.all);
        session_settle(c);
    }
    if (c->behind.n < c->behind.max && !list_empty(&c->behind.room))
        resume(list_entry(list_pop_front(&c->behind.room), struct mds_op, wait));
}

static int error_let_go(struct core_inode *dir)
{
    int error = dir->behind.error;

    if (error) {
        dir->behind.error = 0;
        dir->behind.error_stays = false;
        list_remove(&dir->behind.error_link);
        dir->core->behind.n_errors--;
        inode_put(dir);
    }
    return error;
}

/* The first one of a directory; of too many directories the oldest is left to unmounting. */
void behind_keep_error(struct core_inode *dir, int status)
{
    struct behind *b = &dir->core->behind;
    int error = session_is_over(status) ? -EIO : status;

    if (dir->behind.error)
        return;
    if (b->n_errors >= b->max_errors) {
        b->untold = true;
        (void)error_let_go(list_entry(b->errors.next, struct core_inode, behind.error_link));
    }
    inode_ref(dir);
    dir->behind.error = error;
    list_push_back(&b->errors, &dir->behind.error_link);
    b->n_errors++;
}

void behind_dir_removed(struct core_inode *dir)
{
    if (!dir->behind.error_stays)
        (void)error_let_go(dir);
}

void behind_refused(struct mds_op *op, struct core_inode *dir, int status)
{
    struct core *c = op->core;
    bool removal = removes(op), move = op->call.op == RPC_OP_RENAME;
    const struct msg_bytes *name = removal ? &op->msg.name.name
                                   : move  ? &op->msg.rename.name
                                           : &op->msg.create.name;

    LOG_ERROR("client", "\"%.*s\" of directory %llu is not %s after all: %s", (int)name->len,
              (const char *)name->data, (unsigned long long)dir->ino,
              removal ? "removed"
              : move  ? "renamed"
                      : "made",
              err_text(status));
    if (removal)
        c->stats.removals_refused++;
    else if (move)
        c->stats.renames_refused++;
    else
        c->stats.creations_refused++;
    behind_end(dir);
    behind_mistaken(dir);
    invalidate_doubt_dir(c, dir);
    behind_keep_error(dir, status);
    dir->behind.error_stays |= !removal && !move;
}

static void took_place(struct mds_op *op, struct core_inode *dir, struct core_inode *victim,
                       int status)
{
    struct core *c = op->core;
    const struct msg_bytes *name = &op->msg.name.name;
    const struct msg_inode_rep *rep = op->call.rep;
    struct answer a = answer_of(op);

    outdate(victim);
    if (status) { /* -ENOENT */
        behind_mistaken(dir);
        names_drop(c, dir->ino, name->data, name->len, false);
        return;
    }
    behind_executed(op);
    if (!dir->behind.n) /* else it is known what becomes of it */
        behind_take_dir(op, dir);
    if (rep->inode.attr.ino == victim->ino)
        inode_merge_attr(victim, &rep->inode.attr); /* its link count */
    if (op->call.op == RPC_OP_RMDIR)
        behind_dir_removed(victim);
    if (dir->behind.term)
        names_set(dir, name->data, name->len, 0);
    else
        (void)names_changed(c, &a, RPC_FLAG_KEPT_DIR, dir->ino, name->data, name->len, 0);
}

static void answered(struct mds_op *op, int status)
{
    struct core *c = op->core;
    struct core_inode *dir = inode_find(c, op->msg.name.parent), *victim = inode_find(c, op->n1);

    behind_answered(dir, victim);
    victim->behind.leaving = false;
    if (victim->behind.last == op) /* never sent */
        victim->behind.last = NULL;
    c->stats.removals_under_way--;
    if (!status || status == -ENOENT) {
        took_place(op, dir, victim, status);
    } else {
        outdate(victim);
        behind_end(victim);
        names_drop_dir(victim);
        behind_refused(op, dir, status);
    }
    behind_over(c, dir, victim);
}

/* The directory as the server will have it: the kernel asks for its attributes before the next
 * removal, to see whether it is allowed. Answers that are older are told by their change number. */
struct msg_time behind_dir_changed(struct core_inode *dir)
{
    struct core *c = dir->core;
    struct msg_time now = time_later(core_now(c), c->behind.last), changed = dir->attr.mtime;

    if (changed.sec <= now.sec + 1) /* our clock is behind; later than that, somebody has set it */
        now = time_later(now, changed);
    c->behind.last = now;
    dir->attr.mtime = now;
    dir->attr.ctime = time_later(dir->attr.ctime, now);
    dir->attr.change++;
    return now;
}

void behind_begin(struct mds_op *op, struct core_inode *dir, struct core_inode *i)
{
    struct core *c = op->core;

    caller_find(c, cred_of(op))->last_ns = reactor_now_ns(c->reactor);
    count(dir);
    count(i);
    c->behind.n++;
    op->q = NULL;
    op->n1 = i->ino;
    op->ahead = op->writes_back = true; /* nobody may stand before it who waits for others */
    op->only_epoch = c->session.epoch;
    list_remove(&op->link);
    list_push_front(&c->ops, &op->link);
}

static void go_ahead(struct mds_op *op, struct core_inode *dir, struct core_inode *victim)
{
    struct core *c = op->core;
    struct core_req *q = op->q;
    struct msg_time now = behind_dir_changed(dir);

    behind_begin(op, dir, victim);
    c->stats.removals_under_way++;
    c->stats.removed_ahead++;
    op->msg.name.when_ns = (uint64_t)now.sec * NS_PER_S + now.nsec;
    if (op->call.op == RPC_OP_RMDIR && dir->attr.nlink > 2)
        dir->attr.nlink--;
    outdate(victim);
    victim->behind.leaving = true;
    names_set(dir, op->msg.name.name.data, op->msg.name.name.len, 0);
    prelist_removed(dir, &op->msg.name.cred, true);
    op->done = answered;
    if (victim->behind.n > 1)
        victim->behind.last = op;
    else
        mds_op_go(op);
    if (q)
        req_finish(q, 0);
}

static bool removing_try(struct mds_op *op)
{
    struct core *c = op->core;
    const struct msg_name_req *m = &op->msg.name;
    const struct name_entry *e =
        op->failed ? NULL : names_get(c, m->parent, m->name.data, m->name.len);
    struct core_inode *dir = e && e->ino ? inode_find(c, m->parent) : NULL;
    struct core_inode *victim = dir ? inode_find(c, e->ino) : NULL;

    op->unsure = !victim || !behind_alone(dir, victim);
    if (op->unsure || !behind_allows(op, dir, victim))
        return false;
    op->for_room = c->behind.n >= c->behind.max;
    if (op->for_room)
        return false;
    go_ahead(op, dir, victim);
    return true;
}

bool behind_try(struct mds_op *op)
{
    return removes(op)                    ? removing_try(op)
           : op->call.op == RPC_OP_RENAME ? moving_try(op)
                                          : creating_try(op);
}

/* ---- errors ---- */

int behind_take_error(struct core *c, uint64_t dir)
{
    struct core_inode *i = inode_find(c, dir);

    return i ? error_let_go(i) : 0;
}

bool behind_left_error(const struct core *c)
{
    return c->behind.untold || c->behind.n_errors;
}
