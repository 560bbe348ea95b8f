/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files.
 *
 * Happy path: open.c makes one. The last reference goes with core_release(): the CLOSE is put off
 * until what the file has written is committed (the lease that protects it ends with the last
 * close) and goes out in a batch.
 *
 * Failure: a session that is lost, reopen.c.
 */
#include "client/core/core_int.h"

#define CLOSE_DELAY_NS (20 * NS_PER_MS)
#define CLOSE_RETRY_NS (200 * NS_PER_MS)

uint64_t core_file_ino(const struct core_file *f)
{
    return f->inode->ino;
}

int core_file_flags(const struct core_file *f)
{
    return f->flags;
}

bool file_is_current(const struct core_file *f)
{
    return f->session_epoch == f->inode->core->session.epoch && f->open_id;
}

/* It has lost its locks, or could not be opened again. */
bool file_is_dead(const struct core_file *f)
{
    return f->locks_lost ||
           (f->session_epoch == f->inode->core->session.epoch && !f->open_id && !f->creating);
}

bool file_ready(struct core_req *q, void (*resume)(struct core_req *q))
{
    const struct core_file *f = q->p.file;
    const struct core *c = q->p.core;

    if (f->creating) {
        creating_wait(q, resume);
        return false;
    }
    if (f->session_epoch == c->session.epoch && !f->open_id) { /* could not be opened again */
        q->p.end(q, -EIO);
        return false;
    }
    if (f->session_epoch == c->session.epoch && session_believed(c) && !f->inode->n_closed) {
        f->inode->lease_unused = false;
        return true;
    }
    session_wait(q, resume);
    return false;
}

struct core_file *file_new(struct core *c, struct core_req *q, struct core_inode *i,
                           uint64_t open_id, int flags)
{
    struct core_file *f = core_no_memory() ? NULL : mem_zalloc(sizeof *f + cred_space(&q->cred));

    if (!f)
        return NULL;
    f->inode = inode_ref(i);
    f->open_id = open_id;
    f->session_epoch = c->session.epoch;
    f->flags = flags;
    f->error_seen = i->error_seq;
    cred_copy(&f->cred, &q->cred, f + 1);
    list_init(&f->lock_holders);
    list_init(&f->streaming);
    list_push_back(&i->files, &f->link);
    list_push_back(&c->files, &f->all);
    c->stats.open_files++;
    return f;
}

/* ---- closing ---- */

static void closes_sent(struct mds_op *op, int status)
{
    atime_answered(op, status);
    if (status)
        LOG_DEBUG("client", "close: %s", err_text(status));
}

static bool send_some(struct core *c)
{
    struct msg_close_item *items;
    struct mds_op *op = mds_op_new(c, RPC_OP_CLOSE, NULL, closes_sent);

    if (!op)
        return false;
    items = core_no_memory() ? NULL
                             : arena_dup(&op->arena, c->closes, c->n_closes * sizeof c->closes[0]);
    if ((c->n_closes && !items) || atime_take(c, op) != 0) {
        mds_op_drop(op);
        return false;
    }
    op->msg.close.n_items = c->n_closes;
    op->msg.close.items = items;
    c->n_closes = 0;
    mds_op_start(op);
    return true;
}

void file_send_closes(struct core *c)
{
    while (c->n_closes || !list_empty(&c->reads_due)) {
        if (!send_some(c)) {
            reactor_timer_start(c->reactor, &c->close_timer,
                                reactor_now_ns(c->reactor) + CLOSE_RETRY_NS);
            return;
        }
    }
    reactor_timer_cancel(c->reactor, &c->close_timer);
}

void file_close_soon(struct core *c)
{
    if (!reactor_timer_running(&c->close_timer))
        reactor_timer_start(c->reactor, &c->close_timer,
                            reactor_now_ns(c->reactor) + CLOSE_DELAY_NS);
}

void file_close_later(struct core *c, uint64_t ino, uint64_t open_id)
{
    if (c->n_closes == CORE_CLOSE_BATCH)
        file_send_closes(c);
    if (c->n_closes == CORE_CLOSE_BATCH)
        return; /* no memory for a call: the server closes with the session */
    c->closes[c->n_closes++] = (struct msg_close_item){ino, open_id};
    if (c->n_closes == CORE_CLOSE_BATCH)
        file_send_closes(c);
    else
        file_close_soon(c);
}

static void file_free(struct core_file *f)
{
    struct core_inode *i = f->inode;
    struct core *c = i->core;

    if (f->open_id && f->session_epoch == c->session.epoch && c->session.id && !c->forced)
        file_close_later(c, i->ino, f->open_id);
    read_stream_end(f);
    file_counts_closed(f, false);
    list_remove(&f->link);
    list_remove(&f->all);
    c->stats.open_files--;
    mem_free(f);
    if (list_empty(&i->files))
        atime_report(i);
    if (list_empty(&i->files) && !i->recalling) {
        i->data_change = i->lease == MSG_LEASE_NONE ? 0 : i->attr.change;
        i->lease = MSG_LEASE_NONE;
        inode_doubt_size(i);
        if (i->in_line)
            blocks_drop_all(i, true); /* the next open brings it again */
    }
    inode_put(i);
}

/* Everything of the inode is committed: released files may close. */
void files_reap(struct core_inode *i)
{
    const bool closed = i->n_closed;
    struct list *l, *tmp;

    inode_ref(i);
    list_for_each_safe (l, tmp, &i->files) {
        struct core_file *f = list_entry(l, struct core_file, link);

        if (f->released && !f->busy)
            file_free(f);
    }
    if (closed && !i->n_closed)
        session_resume(i->core);
    inode_put(i);
}

void file_idle(struct core_file *f)
{
    if (--f->busy == 0 && f->released)
        inode_settle(f->inode);
}

bool inode_has_user(const struct core_inode *i)
{
    const struct list *l;

    list_for_each (l, &i->files) {
        if (!list_entry(l, const struct core_file, link)->released)
            return true;
    }
    return false;
}

/* What was fetched in advance waits for nobody any more: others may fetch instead. */
static void unread(struct core_inode *i)
{
    struct list *l;

    list_for_each (l, &i->blocks) {
        block_wanted(list_entry(l, struct block, by_inode));
    }
}

void core_release(struct core *c, struct core_file *f)
{
    struct core_inode *i = inode_ref(f->inode);

    f->released = true;
    sizes_closed(f);
    if (f->creating)
        creating_closed(i);
    preread_released(f);
    locks_release(f);
    if (c->ahead_bytes && !inode_has_user(i))
        unread(i);
    if (i->attr_known && i->attr.nlink == 0 && !inode_has_user(i) && i->lease == MSG_LEASE_WRITE &&
        !i->need_grow && !i->giving_up && list_empty(&i->flushers)) {
        blocks_drop_all(i, true); /* nobody can ever read it again */
        i->meta_done = i->meta_seq;
        i->ctime_due = i->mtime_due = false;
    }
    inode_settle(i);
    inode_put(i);
}
