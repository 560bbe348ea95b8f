/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are made before the server has heard of them; see behind.h and ADR 0018.
 *
 * Happy path: the inode gets a number of our session's, the caches here change as after the
 * creation, the request is over, and its op is gathered with others as a MKNOD. What is written to
 * the file until that leaves goes along. When it is answered and nobody has the file open any more,
 * all is done; else an OPEN follows, which brings open id and lease, and what the file's requests
 * need of the server goes on after that. Until then it is read and written here only, as far as it
 * is a small one.
 *
 * What is allowed is decided here, as in behind.c. Failure: as there; and the file's own fsync and
 * close fail. A creation is never carried from one session into the next.
 */
#include "client/core/core_int.h"
#include "proto/number.h"

#define NOT_AHEAD (O_DIRECT | O_SYNC | O_DSYNC)

static void answered(struct mds_op *op, int status);
static void open_made(struct core_inode *dir, struct core_inode *i);

bool creating_makes(const struct mds_op *op)
{
    return op->ahead && (op->call.op == RPC_OP_MKNOD || op->call.op == RPC_OP_MKDIR);
}

bool creating_is(const struct mds_op *op, uint64_t parent, const struct msg_bytes *name)
{
    const struct msg_create_req *m = &op->msg.create;

    return creating_makes(op) && m->parent == parent && m->name.len == name->len &&
           memcmp(m->name.data, name->data, name->len) == 0;
}

void creating_executed(const struct mds_op *op)
{
    struct core_inode *dir = inode_find(op->core, op->msg.create.parent);

    if (!op->may_ahead)
        return;
    behind_executed(op);
    if (dir && op->unsure)
        prelist_removed(dir, &op->msg.create.cred, false);
}

bool creating_serves(const struct core_file *f)
{
    const struct core *c = f->inode->core;

    return f->creating && f->session_epoch == c->session.epoch && session_believed(c) &&
           f->inode->lease == MSG_LEASE_WRITE;
}

bool creating_is_file(const struct core_file *f)
{
    return f->inode->layout_known || S_ISREG(f->inode->attr.mode);
}

void creating_wait(struct core_req *q, void (*resume)(struct core_req *q))
{
    q->p.resume = resume;
    req_wait(q, "waits until the file is made at the metadata server", req_finish);
    list_push_back(&q->p.file->inode->behind.reqs, &q->p.wait);
    behind_urge(q->p.core);
}

/* ---- what is written meanwhile ---- */

/* What the server does not get now need not be committed elsewhere before it is told to forget it.
 * What has been set since goes with what was written before that. */
void creating_outgrown(struct core_inode *i)
{
    const struct mds_op *op = i->behind.gathered;

    i->behind.outgrows = op && !op->msg.create.has_since;
}

static const struct block *written(const struct mds_op *op, struct core_inode **ret_inode)
{
    struct core_inode *i;

    if (!op->ahead || op->call.op != RPC_OP_MKNOD || op->loaded)
        return NULL;
    i = inode_find(op->core, op->n1);
    if (!i || i->behind.outgrows || i->meta_seq == i->meta_done || !i->attr.size || !i->in_line ||
        i->lease != MSG_LEASE_WRITE || !inline_cached(i))
        return NULL;
    *ret_inode = i;
    return block_find(op->core, i, 0);
}

uint32_t creating_bytes(const struct mds_op *op)
{
    struct core_inode *i;

    return written(op, &i) ? (uint32_t)i->attr.size : 0;
}

bool creating_gathers(struct mds_op *op)
{
    struct core_inode *i = op->call.op == RPC_OP_MKNOD ? inode_find(op->core, op->n1) : NULL;
    const struct core_file *f = i ? creating_file(i) : NULL;

    if (!i || op->attempt || op->loaded)
        return false;
    i->behind.gathered = op;
    return f && !f->released;
}

/* It is about to leave: what comes now waits. */
static void leaves(struct mds_op *op)
{
    struct core_inode *i =
        op->ahead && op->call.op == RPC_OP_MKNOD ? inode_find(op->core, op->n1) : NULL;

    if (!i || i->behind.gathered != op)
        return;
    i->behind.gathered = NULL;
    if (op->msg.create.has_since)
        creating_since(op, i);
}

/* Maybe not for the first time: what was set before has been looked at without this. */
void creating_load(struct mds_op *op)
{
    struct core_inode *i;
    const struct block *b = written(op, &i);
    const void *copy = b ? arena_dup(&op->arena, b->buf->data, (uint32_t)i->attr.size) : NULL;

    leaves(op);
    if (!copy)
        return; /* it goes after the OPEN */
    if (op->msg.create.has_since)
        creating_since(op, i);
    op->loaded = true;
    op->n2 = i->meta_seq;
    op->msg.create.data = (struct msg_bytes){copy, (uint32_t)i->attr.size};
    op->msg.create.wrote_ns = (uint64_t)i->wrote_at.sec * NS_PER_S + i->wrote_at.nsec;
}

/* ---- the end ---- */

void creating_over(struct core_inode *dir, struct core_inode *i)
{
    i->behind.creating = i->behind.opening = i->behind.outgrows = false;
    dir->behind.made--;
    i->core->stats.creations_under_way--;
    inode_ref(i);
    behind_over(i->core, dir, i);
    inline_saved(i);
    flush_step(i);
    inode_put(i);
}

struct core_file *creating_file(const struct core_inode *i)
{
    struct list *l;

    list_for_each (l, &i->files) {
        struct core_file *f = list_entry(l, struct core_file, link);

        if (f->creating)
            return f;
    }
    return NULL;
}

/* It is not there, or nobody knows. */
static void failed(struct core_inode *i, int status)
{
    struct core_file *f = creating_file(i);

    inode_ref(i);
    if (f) {
        f->creating = false;
        i->core->reopen_due |= f->session_epoch != i->core->session.epoch;
    }
    inode_set_error(i, session_is_over(status) ? -EIO : status, "creation");
    i->lease = MSG_LEASE_NONE;
    i->data_change = 0;
    i->ctime_due = i->mtime_due = false;
    flush_meta_over(i, i->meta_seq);
    blocks_drop_all(i, true);
    inode_expire(i->core, i->ino);
    inode_put(i);
}

/* ---- the open that follows ---- */

static void opened(struct mds_op *op, int status)
{
    struct core *c = op->core;
    struct core_inode *i = op->inode, *dir = inode_find(c, op->n1);
    const struct msg_inode_rep *rep = op->call.rep;
    struct core_file *f = creating_file(i);
    bool closed = f && f->released;

    i->behind.opens--;
    dir->behind.opens--;
    if (status) {
        failed(i, status);
    } else if (f) {
        f->creating = false;
        f->open_id = rep->open_id;
        f->session_epoch = op->generation;
        c->reopen_due |= !mds_op_is_current(op);
        inode_merge(i, &rep->inode, true);
        lease_reply(i, op, &rep->inode);
        if (mds_op_is_current(op) && i->lease == MSG_LEASE_WRITE &&
            rep->inode.lease != MSG_LEASE_WRITE) {
            i->lease_seq = rep->inode.lease_seq; /* something is to be written without it */
            lease_give_up(i, MSG_LEASE_NONE);
        }
        creating_over(dir, i);
        if (closed)
            flush_ahead(i); /* who has closed it counts on it */
        return;
    } else {
        file_close_later(c, i->ino, rep->open_id);
    }
    creating_over(dir, i);
}

static void open_made(struct core_inode *dir, struct core_inode *i)
{
    struct core *c = i->core;
    struct core_file *f = creating_file(i);
    struct mds_op *op = f ? mds_op_new(c, RPC_OP_OPEN, NULL, opened) : NULL;

    if (!f) { /* closed while there was no memory */
        i->behind.opens--;
        dir->behind.opens--;
        creating_over(dir, i);
        return;
    }
    if (!op) {
        c->behind.opens_due = true;
        return;
    }
    op->msg.open.ino = i->ino;
    op->msg.open.flags = (uint32_t)f->flags & O_ACCMODE;
    mds_op_cred(op, &op->msg.open.cred, &f->cred);
    op->inode = inode_ref(i);
    op->n1 = dir->ino;
    op->ahead = op->writes_back = true;
    op->only_epoch = f->session_epoch;
    i->behind.opening = true;
    mds_op_start(op);
}

void creating_tick(struct core *c)
{
    struct list *l, *next;

    if (!c->behind.opens_due)
        return;
    c->behind.opens_due = false;
    list_for_each_safe (l, next, &c->files) {
        struct core_inode *i = list_entry(l, struct core_file, all)->inode;

        if (i->behind.opens && !i->behind.opening && creating_file(i))
            open_made(inode_find(c, i->parent), i);
    }
}

/* ---- the answer ---- */

static bool has_more(const struct core_inode *i)
{
    const struct core_file *f = creating_file(i);

    return f && (!f->released || i->meta_seq != i->meta_done || i->ctime_due ||
                 !list_empty(&i->flushers) || f->busy);
}

static void name_made(struct mds_op *op, struct core_inode *dir, const struct core_inode *i)
{
    const struct msg_bytes *name = &op->msg.create.name;
    struct answer a = answer_of(op);

    if (dir->behind.term)
        names_set(dir, name->data, name->len, i->ino);
    else
        (void)names_changed(op->core, &a, RPC_FLAG_KEPT_DIR, dir->ino, name->data, name->len,
                            i->ino);
}

static void took_place(struct mds_op *op, struct core_inode *dir, struct core_inode *i)
{
    const struct msg_create_req *m = &op->msg.create;
    const struct msg_inode_rep *rep = op->call.rep;
    struct answer a = answer_of(op);

    behind_executed(op);
    if (!dir->behind.n) /* else it is known what becomes of it */
        behind_take_dir(op, dir);
    if (op->loaded) {
        i->meta_done = MAX(i->meta_done, op->n2);
        i->server_has_inline = true;
        i->known_size = MAX(i->known_size, m->data.len);
    }
    inode_merge(i, &rep->inode, true);
    inode_keep(i, &a, RPC_FLAG_KEPT_INODE, &rep->inode.attr);
    if (op->call.op == RPC_OP_MKNOD && (a.kept & RPC_FLAG_ALONE))
        behind_told_entry(i, dir->ino, &a);
    if (!(a.kept & RPC_FLAG_KEPT_INODE)) /* an answer told again: nobody tells us of changes */
        inode_expire(op->core, i->ino);
    if (!i->behind.moved) /* else it has another one by now, and that is known */
        name_made(op, dir, i);
    inode_settle(i); /* what is closed and told is done with */
}

static void answered(struct mds_op *op, int status)
{
    struct core *c = op->core;
    struct core_inode *dir = inode_find(c, op->msg.create.parent), *i = inode_find(c, op->n1);
    const struct msg_inode_rep *rep = op->call.rep;

    if (!status && rep->inode.attr.ino != i->ino) /* another server in its place, an older one */
        status = -AIFS_EPROTO;
    i->behind.gathered = NULL;
    behind_answered(dir, i);
    if (status) {
        behind_refused(op, dir, status);
        names_drop(c, dir->ino, op->msg.create.name.data, op->msg.create.name.len, false);
    } else {
        took_place(op, dir, i);
    }
    if (op->call.op == RPC_OP_MKDIR) {
        newdir_answered(op, dir, i, status);
        return;
    }
    if (status) {
        failed(i, status);
        moving_fail(i, status);
        creating_over(dir, i);
        return;
    }
    if (!has_more(i)) {
        creating_over(dir, i);
        return;
    }
    dir->behind.opens++;
    i->behind.opens++;
    open_made(dir, i);
}

/* ---- one creation ---- */

bool creating_opens(uint32_t mode, unsigned flags)
{
    unsigned access = flags & O_ACCMODE;
    uint32_t want = access == O_RDONLY ? 4 : access == O_WRONLY ? 2 : 6;

    return ((mode >> 6) & want) == want;
}

static bool mode_fits(const struct msg_create_req *m, const struct msg_cred *cred)
{
    if (m->mode & S_ISGID)
        return false;
    return cred->uid == 0 || !(m->flags & MSG_CREATE_OPEN) ||
           creating_opens(m->mode, m->open_flags);
}

static bool is_free(struct core *c, const struct core_inode *dir, const struct msg_bytes *n)
{
    const struct name_entry *e = names_get(c, dir->ino, n->data, n->len);

    return e ? !e->ino : dir->complete;
}

uint32_t creating_in(const struct core_inode *dir)
{
    return dir->behind.made - MIN(dir->behind.opens, dir->behind.made) + dir->behind.coming;
}

bool creating_known(const struct core *c)
{
    const uint64_t needed = RPC_FEATURE_NUMBERS | RPC_FEATURE_AHEAD;
    const struct rpc_link *link = rpc_peer_link(c->session.peer);

    return link && (rpc_link_features(link) & needed) == needed;
}

/* As for removals; and none of these is under way in it, since the name may be what goes, and no
 * rename that gives or takes it. */
static bool fits(const struct mds_op *op, const struct core_inode *dir)
{
    struct core *c = op->core;
    const struct msg_create_req *m = &op->msg.create;

    return !c->forced && c->state == CORE_MOUNTED && session_believed(c) && creating_known(c) &&
           c->behind.n < c->behind.max && dir->behind.rules_known && inode_attr_fresh(dir) &&
           S_ISDIR(dir->attr.mode) && dir->attr.nlink &&
           !(dir->attr.flags & (MSG_ATTR_ACL | MSG_ATTR_DEFAULT_ACL)) &&
           dir->behind.n == creating_in(dir) + dir->behind.moved && !dir->behind.error &&
           list_empty(&dir->behind.waiters) && list_empty(&c->behind.all) &&
           behind_removes(c, &m->cred) && behind_may_change(&dir->attr, &m->cred) &&
           mode_fits(m, &m->cred) && behind_name_fits(&m->name) && is_free(c, dir, &m->name) &&
           !moving_concerns(c, dir->ino, &m->name, 0) &&
           !behind_changes_now(op, dir->ino, dir->ino);
}

/* Of those that this session has given and that are under way. What was answered ahead is in front.
 */
static uint32_t oldest_number(const struct core *c)
{
    uint32_t oldest = c->behind.numbers;
    struct list *l;

    list_for_each (l, &c->ops) {
        const struct mds_op *op = list_entry(l, const struct mds_op, link);

        if (!op->ahead)
            break;
        if (creating_makes(op) && op->only_epoch == c->session.epoch)
            oldest = MIN(oldest, number_count(op->n1));
    }
    return oldest;
}

/* The server takes none that is NUMBER_WINDOW behind another. */
static uint64_t next_number(struct core *c, uint64_t dir)
{
    struct behind *b = &c->behind;

    if (b->numbers_epoch != c->session.epoch) {
        b->numbers_epoch = c->session.epoch;
        b->numbers = b->numbers_from = 0;
    }
    if (b->numbers - b->numbers_from >= NUMBER_WINDOW)
        b->numbers_from = oldest_number(c);
    if (b->numbers - b->numbers_from >= NUMBER_WINDOW || b->numbers > NUMBER_COUNT_MAX)
        return 0;
    return number_given(dir, c->session.id, b->numbers++);
}

static void fill(struct core_inode *i, const struct core_inode *dir, const struct msg_create_req *m,
                 struct msg_time now)
{
    i->attr = (struct msg_attr){
        .ino = i->ino,
        .mode = S_IFREG | (m->mode & 07777),
        .nlink = 1,
        .uid = m->cred.uid,
        .gid = dir->attr.mode & S_ISGID ? dir->attr.gid : m->cred.gid,
        .flags = MSG_ATTR_INLINE | MSG_ATTR_NO_XATTRS,
        .atime = now,
        .mtime = now,
        .ctime = now,
        .btime = now,
        .change = 1,
    };
    i->attr_known = i->attr_kept = i->in_line = true;
    i->attr_kept_ns = reactor_now_ns(i->core->reactor);
    i->wrote_at = now;
    i->layout.chunk_bytes = CORE_LARGE_BYTES; /* until the answer tells */
    i->parent = dir->ino;
}

/* It is written here under a lease that nobody has given, and nobody else can ask for. */
static void fill_open(struct core_inode *i, struct core_file *f, struct core_opened *ret_opened)
{
    f->creating = f->made = true;
    i->lease = MSG_LEASE_WRITE;
    i->lease_seq = 0;
    i->data_change = i->attr.change;
    *ret_opened = (struct core_opened){.file = f, .lease = MSG_LEASE_WRITE};
}

static void go_ahead(struct mds_op *op, struct core_inode *dir, struct core_inode *i,
                     struct core_file *f)
{
    struct core *c = op->core;
    struct core_req *q = op->q;
    struct msg_create_req *m = &op->msg.create;
    struct msg_time now = behind_dir_changed(dir);

    fill(i, dir, m, now);
    if (f)
        fill_open(i, f, &q->out.opened);
    behind_begin(op, dir, i);
    dir->behind.made++;
    i->behind.creating = true;
    c->stats.created_ahead++;
    c->stats.creations_under_way++;
    names_set(dir, m->name.data, m->name.len, i->ino);
    if (op->call.op == RPC_OP_MKDIR) {
        newdir_fill(i, dir);
        dir->attr.nlink++;
        m->alone = true;
    } else {
        op->call.op = RPC_OP_MKNOD;
    }
    i->behind.around = dir->ino;
    m->mode = i->attr.mode;
    m->flags = m->open_flags = 0;
    m->ino = i->ino;
    m->when_ns = (uint64_t)now.sec * NS_PER_S + now.nsec;
    op->done = answered;
    inode_entry(i, &q->entry);
    q->entry.entry_valid_ns = core_name_valid_ns(c, true);
    if (!newdir_holds(op, dir))
        mds_op_go(op);
    req_finish(q, 0);
}

bool creating_try(struct mds_op *op)
{
    struct core *c = op->core;
    struct core_req *q = op->q;
    const struct msg_create_req *m = &op->msg.create;
    struct core_inode *dir = inode_find(c, m->parent), *i;
    bool opens = m->flags & MSG_CREATE_OPEN;
    struct core_file *f = NULL;
    uint64_t ino;

    op->unsure = !dir || !dir->behind.own || !dir->complete;
    if (op->failed || !q || !dir || !dir->behind.own || (opens && q->p.n1 & NOT_AHEAD) ||
        !fits(op, dir))
        return false;
    if (opens && sizes_large(dir)) {
        c->stats.created_large += !op->large; /* it may come here again */
        op->large = true;
        return false;
    }
    ino = next_number(c, dir->ino);
    i = ino ? inode_get(c, ino) : NULL;
    if (!i)
        return false;
    if (opens)
        f = file_new(c, q, i, 0, (int)q->p.n1);
    if (f || !opens)
        go_ahead(op, dir, i, f);
    inode_put(i);
    return f || !opens;
}
