/* SPDX-License-Identifier: Apache-2.0 */
/* A metadata server in memory; see fake_cluster.h. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/err.h"
#include "proto/header_fmt.h"
#include "tests/support/fake_cluster.h"

struct fake_inode *fake_by_ino(struct fake_cluster *f, uint64_t ino)
{
    for (unsigned k = ino < FAKE_INODES ? (unsigned)ino : 1; k < FAKE_INODES; k++)
        if (f->inodes[k].used && f->inodes[k].attr.ino == ino) /* its place, or given */
            return &f->inodes[k];
    return NULL;
}

struct fake_inode *fake_find(struct fake_cluster *f, uint64_t parent, const struct msg_bytes *name)
{
    for (unsigned k = 2; k < FAKE_INODES; k++) {
        struct fake_inode *i = &f->inodes[k];

        if (i->used && i->attr.nlink && i->parent == parent && strlen(i->name) == name->len &&
            memcmp(i->name, name->data, name->len) == 0)
            return i;
    }
    return NULL;
}

struct fake_inode *fake_inode(struct fake_cluster *f, const char *name)
{
    return fake_find(f, 1, &(struct msg_bytes){name, (uint32_t)strlen(name)});
}

/* ---- replies ---- */

static void fill(const struct fake_inode *i, uint64_t session, struct msg_inode *m, bool with_data)
{
    memset(m, 0, sizeof *m);
    m->attr = i->attr;
    m->layout = i->layout;
    if (with_data && i->attr.flags & MSG_ATTR_INLINE) {
        m->has_data = true;
        m->data = (struct msg_bytes){i->data, i->data_len};
    }
    for (unsigned k = 0; k < FAKE_HOLDERS; k++) {
        if (i->leases[k].session == session && i->leases[k].lease) {
            m->lease = i->leases[k].lease;
            m->lease_seq = i->leases[k].seq;
        }
    }
}

/* With the leases that a session gets when there is no other. */
static uint8_t kept(const struct fake_cluster *f)
{
    unsigned n = 0;

    for (unsigned k = 0; k < FAKE_SESSIONS; k++)
        n += f->sessions[k].id != 0;
    return (n == 1 ? RPC_FLAG_KEPT_INODE | RPC_FLAG_KEPT_DIR | RPC_FLAG_KEPT_DIR2 : 0) |
           (f->cuts_told ? RPC_FLAG_CUTS_TOLD : 0);
}

static void answer(struct fake_cluster *f, struct rpc_req *req, int status, struct fake_inode *i,
                   uint64_t open_id, bool created)
{
    struct fake_session *s = fake_session_of(f, req);
    struct msg_inode_rep rep = {.open_id = open_id, .created = created};
    uint32_t slot = req->header.slot;

    if (i)
        fill(i, req->header.session, &rep.inode, true);
    if (i && (req->header.op == RPC_OP_UNLINK || (created && f->alone))) {
        rep.has_dir = true;
        rep.dir = fake_by_ino(f, i->parent)->attr;
    }
    if (slot && s) {
        f->executed[req->header.op]++;
        s->slots[slot - 1].sequence = req->header.slot_sequence;
        s->slots[slot - 1].status = status;
        s->slots[slot - 1].ino = i ? i->attr.ino : 0;
        s->slots[slot - 1].open_id = open_id;
        s->slots[slot - 1].created = created;
        if (f->drop_replies) {
            f->drop_replies = false;
            rpc_link_close(req->from, -AIFS_ECONN); /* the answer goes nowhere */
        }
    }
    req->reply_flags |= kept(f);
    rpc_reply(req, status, status ? NULL : &rep);
}

/* ---- leases ---- */

static void set_lease(struct fake_cluster *f, struct fake_inode *i, uint64_t session,
                      enum msg_lease lease)
{
    unsigned k, free_ = FAKE_HOLDERS;

    for (k = 0; k < FAKE_HOLDERS; k++) {
        if (i->leases[k].session == session)
            break;
        if (!i->leases[k].session && free_ == FAKE_HOLDERS)
            free_ = k;
    }
    if (k == FAKE_HOLDERS)
        k = free_;
    ck_assert_uint_lt(k, FAKE_HOLDERS);
    i->leases[k].session = lease ? session : 0;
    if (i->leases[k].lease != lease)
        i->leases[k].seq = ++f->next_lease;
    i->leases[k].lease = lease;
    i->leases[k].recalled = false;
}

struct server_call {
    struct rpc_call call;
    struct msg_recall_req req;
};

static void server_called(struct rpc_call *call, int status)
{
    (void)status;
    rpc_call_fini(call);
    mem_free(call->arg);
}

static void send_recall(struct fake_cluster *f, uint64_t session, uint64_t ino, uint64_t seq)
{
    unsigned k;

    for (k = 0; k < FAKE_SESSIONS; k++) {
        struct server_call *c;

        if (f->sessions[k].id != session || !f->sessions[k].link)
            continue;
        c = mem_zalloc(sizeof *c);
        c->req = (struct msg_recall_req){.ino = ino, .lease_seq = seq, .keep = MSG_LEASE_NONE};
        rpc_call_init(&c->call, RPC_OP_RECALL, &c->req, server_called, c);
        c->call.timeout_ns = NS_PER_S;
        rpc_link_call(f->sessions[k].link, &c->call);
    }
}

/* A session has a new connection: what was recalled over the old one is asked for again. */
void fake_session_seen(struct fake_cluster *f, struct fake_session *s, struct rpc_link *from)
{
    unsigned k, n;

    if (s->link == from)
        return;
    s->link = from;
    for (k = 0; k < FAKE_INODES; k++) {
        struct fake_inode *i = &f->inodes[k];

        for (n = 0; n < FAKE_HOLDERS; n++)
            if (i->used && i->leases[n].session == s->id && i->leases[n].recalled)
                send_recall(f, s->id, i->attr.ino, i->leases[n].seq);
    }
}

/* True when somebody else's lease stands in the way; it has been recalled then. */
static bool conflict(struct fake_cluster *f, struct fake_inode *i, uint64_t session, bool writes)
{
    bool found = false;
    unsigned k;

    for (k = 0; k < FAKE_HOLDERS; k++) {
        if (!i->leases[k].session || i->leases[k].session == session)
            continue;
        if (i->leases[k].lease != MSG_LEASE_WRITE && !writes)
            continue;
        found = true;
        if (!i->leases[k].recalled)
            send_recall(f, i->leases[k].session, i->attr.ino, i->leases[k].seq);
        i->leases[k].recalled = true;
    }
    return found;
}

static void open_as(struct fake_cluster *f, struct rpc_req *req, struct fake_inode *i, bool writes,
                    bool created)
{
    uint64_t me = req->header.session, id = ++f->next_open;
    bool others = false, others_write = false, i_write = writes;
    unsigned k, at = FAKE_HOLDERS;

    for (k = 0; k < FAKE_HOLDERS; k++) {
        struct fake_holder *h = &i->opens[k];

        if (!h->session) {
            at = k;
            continue;
        }
        others |= h->session != me;
        others_write |= h->session != me && h->writes;
        i_write |= h->session == me && h->writes;
    }
    ck_assert_uint_lt(at, FAKE_HOLDERS);
    i->opens[at] = (struct fake_holder){me, id, writes};
    set_lease(f, i, me,
              f->no_leases || (others && (i_write || others_write)) ? MSG_LEASE_NONE
              : i_write                                             ? MSG_LEASE_WRITE
                                                                    : MSG_LEASE_READ);
    answer(f, req, 0, i, id, created);
}

static void set_size(struct fake_cluster *f, struct fake_inode *i, uint64_t size)
{
    if (size < i->attr.size && i->attr.flags & MSG_ATTR_INLINE)
        i->attr.truncate_gen++;
    else if (size < i->attr.size)
        fake_targets_cut(f, i, size);
    i->data_len = (uint32_t)MIN(i->data_len, size);
    i->attr.size = size;
    i->attr.change = ++f->change;
}

static void try_open(struct fake_cluster *f, struct rpc_req *req)
{
    const struct msg_open_req *m = req->msg;
    struct fake_inode *i = fake_by_ino(f, m->ino);
    bool writes = (m->flags & O_ACCMODE) != O_RDONLY;

    if (!i) {
        answer(f, req, -ENOENT, NULL, 0, false);
        return;
    }
    if (conflict(f, i, req->header.session, writes)) {
        list_push_back(&f->waiting, &req->link);
        return;
    }
    if (m->flags & O_TRUNC)
        set_size(f, i, 0);
    open_as(f, req, i, writes, false);
}

static void execute(struct fake_cluster *f, struct rpc_req *req);

static void retry_waiting(struct fake_cluster *f)
{
    struct list now, *l;

    list_init(&now);
    list_splice(&now, &f->waiting);
    while ((l = list_pop_front(&now)) != NULL)
        execute(f, list_entry(l, struct rpc_req, link));
}

static void close_one(struct fake_cluster *f, struct fake_inode *i, uint64_t session,
                      uint64_t open_id)
{
    bool more = false;
    unsigned k;

    for (k = 0; k < FAKE_HOLDERS; k++) {
        if (i->opens[k].session == session && i->opens[k].open_id == open_id)
            i->opens[k] = (struct fake_holder){0};
        more |= i->opens[k].session == session;
    }
    if (!more)
        set_lease(f, i, session, MSG_LEASE_NONE);
}

/* ---- operations ---- */

static void do_create(struct fake_cluster *f, struct rpc_req *req)
{
    const struct msg_create_req *m = req->msg;
    struct fake_inode *i = fake_find(f, m->parent, &m->name);
    bool created = !i;

    if (i ? m->flags & MSG_CREATE_EXCL || req->header.op != RPC_OP_CREATE
          : m->flags & MSG_CREATE_FOUND || !fake_by_ino(f, m->parent)) {
        answer(f, req, i ? -EEXIST : -ENOENT, NULL, 0, false);
        return;
    }
    i = i ? i : fake_make_given(f, m);
    req->reply_flags |= m->ino ? RPC_FLAG_KEPT_INODE | RPC_FLAG_KEPT_DIR : 0;
    req->reply_flags |= m->alone && f->alone && !f->dirs_not_alone ? RPC_FLAG_ALONE : 0;
    if (m->flags & MSG_CREATE_OPEN)
        open_as(f, req, i, (m->open_flags & O_ACCMODE) != O_RDONLY, created);
    else
        answer(f, req, 0, i, 0, created);
}

static void do_setattr(struct fake_cluster *f, struct rpc_req *req)
{
    const struct msg_setattr_req *m = req->msg;
    struct fake_inode *i = fake_by_ino(f, m->ino);

    if (!i || f->fail_setattr) {
        answer(f, req, i ? f->fail_setattr : -ENOENT, NULL, 0, false);
        return;
    }
    if (m->set & MSG_SET_SIZE && m->open_id && !fake_may_write(i, req, m->open_id)) {
        answer(f, req, -EBADF, NULL, 0, false);
        return;
    }
    if (m->set & MSG_SET_SIZE && conflict(f, i, req->header.session, true)) {
        list_push_back(&f->waiting, &req->link);
        return;
    }
    fake_set(f, i, m);
    req->reply_flags |= m->when_ns ? RPC_FLAG_KEPT_INODE : 0;
    if (m->set & MSG_SET_SIZE)
        set_size(f, i, m->size);
    answer(f, req, 0, i, 0, false);
}

static bool stale(struct fake_cluster *f)
{
    if (!f->stale)
        return false;
    f->stale -= f->stale != UINT32_MAX;
    return true;
}

static void do_write_inline(struct fake_cluster *f, struct rpc_req *req)
{
    const struct msg_write_inline_req *m = req->msg;
    struct fake_inode *i = fake_by_ino(f, m->ino);
    uint64_t at = i ? (m->append ? i->attr.size : m->replace ? 0 : m->offset) : 0;
    uint32_t len = req->header.bulk_len;

    if (i && !fake_may_write(i, req, m->open_id)) {
        answer(f, req, -EBADF, NULL, 0, false);
        return;
    }
    if (!i || !(i->attr.flags & MSG_ATTR_INLINE) || m->layout_generation != i->layout.generation) {
        answer(f, req, i ? -AIFS_ESTALE_LAYOUT : -ENOENT, NULL, 0, false);
        return;
    }
    if (m->truncate_gen != i->attr.truncate_gen || stale(f)) {
        answer(f, req, -AIFS_ESTALE_TRUNC, NULL, 0, false);
        return;
    }
    if (at + len > FAKE_INLINE_MAX) {
        answer(f, req, -AIFS_EINLINE_FULL, NULL, 0, false);
        return;
    }
    if (at > i->data_len)
        memset(i->data + i->data_len, 0, at - i->data_len);
    if (len)
        memcpy(i->data + at, req->bulk->data, len);
    i->data_len = m->replace ? len : MAX(i->data_len, (uint32_t)at + len);
    i->attr.size = m->replace ? len : MAX(i->attr.size, at + len);
    i->attr.mtime = m->mtime;
    i->attr.change = ++f->change;
    answer(f, req, 0, i, 0, false);
}

static void do_size(struct fake_cluster *f, struct rpc_req *req)
{
    const struct msg_size_req *m = req->msg;
    struct fake_inode *i = fake_by_ino(f, m->ino);

    if (!i || !fake_may_write(i, req, m->open_id)) {
        answer(f, req, i ? -EBADF : -ENOENT, NULL, 0, false);
        return;
    }
    if (!!(i->attr.flags & MSG_ATTR_INLINE) != (req->header.op == RPC_OP_GROW || m->give_up) ||
        m->layout_generation != i->layout.generation) {
        answer(f, req, -AIFS_ESTALE_LAYOUT, NULL, 0, false);
        return;
    }
    if (m->truncate_gen != i->attr.truncate_gen || stale(f)) {
        answer(f, req, -AIFS_ESTALE_TRUNC, NULL, 0, false);
        return;
    }
    if (m->give_up) {
        fake_targets_cut(f, i, 0);
        i->attr.change = ++f->change;
        answer(f, req, 0, i, 0, false);
        return;
    }
    if (req->header.op == RPC_OP_GROW) {
        i->attr.flags &= ~MSG_ATTR_INLINE;
        i->layout.generation++;
        i->data_len = 0;
    }
    i->attr.size = MAX(i->attr.size, m->size);
    i->attr.mtime = m->mtime;
    i->attr.change = ++f->change;
    answer(f, req, 0, i, 0, false);
}

static void do_append(struct fake_cluster *f, struct rpc_req *req)
{
    const struct msg_append_req *m = req->msg;
    struct fake_inode *i = fake_by_ino(f, m->ino);
    struct msg_append_rep rep;

    f->executed[RPC_OP_APPEND_RANGE]++;
    if (!i || i->attr.flags & MSG_ATTR_INLINE || fake_holds_write(i, req->header.session)) {
        rpc_reply(req, i ? -AIFS_ESTALE_LAYOUT : -ENOENT, NULL);
        return;
    }
    if (m->truncate_gen != i->attr.truncate_gen || stale(f)) {
        rpc_reply(req, -AIFS_ESTALE_TRUNC, NULL);
        return;
    }
    rep.offset = i->attr.size;
    i->attr.size += m->len;
    i->attr.change = ++f->change;
    rep.attr = i->attr;
    rpc_reply(req, 0, &rep);
}

static void do_name(struct fake_cluster *f, struct rpc_req *req)
{
    const struct msg_name_req *m = req->msg;
    struct fake_inode *i = fake_find(f, m->parent, &m->name);
    int refused = fake_refuses_removal(f, req->header.op, i);

    if (refused) {
        answer(f, req, refused, NULL, 0, false);
        return;
    }
    if (i && req->header.op != RPC_OP_LOOKUP) {
        i->attr.nlink = 0;
        i->attr.change = ++f->change;
        f->inodes[m->parent].attr.change = ++f->change;
    }
    if (req->header.op == RPC_OP_RMDIR && i) {
        f->executed[RPC_OP_RMDIR]++;
        rpc_reply(req, 0, &(struct msg_inode_rep){0});
    } else {
        answer(f, req, i ? 0 : -ENOENT, i, 0, false);
    }
}

static void do_lease(struct fake_cluster *f, struct rpc_req *req)
{
    const struct msg_lease_req *m = req->msg;
    struct fake_inode *i = fake_by_ino(f, m->ino);

    if (!i) {
        rpc_reply(req, -ENOENT, NULL);
        return;
    }
    if (req->header.op == RPC_OP_LEASE_RELEASE &&
        (f->fail_release_n || !fake_holds_lease(i, req->header.session, m->lease_seq))) {
        rpc_reply(req, f->fail_release_n ? f->fail_release : 0, &(struct msg_empty){0});
        f->fail_release_n -= f->fail_release_n > 0;
        retry_waiting(f); /* it may have gone with an OPEN of its holder */
        return;
    }
    set_lease(f, i, req->header.session, m->lease);
    if (req->header.op == RPC_OP_LEASE_GET) {
        answer(f, req, 0, i, 0, false);
        return;
    }
    if (m->has_size) {
        i->attr.size = MAX(i->attr.size, m->size);
        i->attr.mtime = m->mtime;
        i->attr.change = ++f->change;
    }
    rpc_reply(req, 0, &(struct msg_empty){0});
    retry_waiting(f);
}

static void do_lock(struct fake_cluster *f, struct rpc_req *req)
{
    const struct msg_lock_req *m = req->msg;
    bool is_open = !m->open_id || fake_may_write(fake_by_ino(f, m->ino), req, m->open_id);

    rpc_reply(req, is_open ? 0 : -EBADF, &(struct msg_lock_rep){.granted = !f->locks_refused});
}

static void do_close(struct fake_cluster *f, struct rpc_req *req)
{
    const struct msg_close_req *m = req->msg;

    for (uint32_t k = 0; k < m->n_items; k++) {
        struct fake_inode *i = fake_by_ino(f, m->items[k].ino);

        if (i)
            close_one(f, i, req->header.session, m->items[k].open_id);
    }
    f->open_calls += m->n_items;
    f->reads_told += m->n_reads;
    for (uint32_t k = 0; k < m->n_reads; k++)
        fake_by_ino(f, m->reads[k].ino)->attr.atime = m->reads[k].atime;
    rpc_reply(req, 0, &(struct msg_empty){0});
    retry_waiting(f);
}

static void execute(struct fake_cluster *f, struct rpc_req *req)
{
    const struct msg_ino_req *ino = req->msg;

    switch (req->header.op) {
    case RPC_OP_LOOKUP:
    case RPC_OP_UNLINK:
    case RPC_OP_RMDIR:
        do_name(f, req);
        break;
    case RPC_OP_GETATTR:
        answer(f, req, fake_by_ino(f, ino->ino) ? 0 : -ENOENT, fake_by_ino(f, ino->ino), 0, false);
        break;
    case RPC_OP_CREATE:
    case RPC_OP_MKDIR:
    case RPC_OP_MKNOD:
        do_create(f, req);
        break;
    case RPC_OP_OPEN:
        try_open(f, req);
        break;
    case RPC_OP_CLOSE:
        do_close(f, req);
        break;
    case RPC_OP_SETATTR:
        do_setattr(f, req);
        break;
    case RPC_OP_WRITE_INLINE:
        do_write_inline(f, req);
        break;
    case RPC_OP_GROW:
    case RPC_OP_SIZE:
        do_size(f, req);
        break;
    case RPC_OP_APPEND_RANGE:
        do_append(f, req);
        break;
    case RPC_OP_RENAME:
        fake_rename(f, req);
        break;
    case RPC_OP_LEASE_GET:
    case RPC_OP_LEASE_RELEASE:
        do_lease(f, req);
        break;
    case RPC_OP_LOCK:
    case RPC_OP_LOCK_TEST:
        do_lock(f, req);
        break;
    case RPC_OP_READDIR:
        fake_readdir(f, req);
        break;
    case RPC_OP_LOCK_CANCEL:
    case RPC_OP_FSYNC:
        rpc_reply(req, 0, &(struct msg_empty){0});
        break;
    case RPC_OP_XATTR_SET:
        fake_set_layout(f, req);
        break;
    default:
        rpc_reply(req, -EOPNOTSUPP, NULL);
    }
}

void fake_mds_handle(struct rpc_req *req)
{
    struct fake_cluster *f = req->handler_arg;
    struct fake_session *s = fake_session_of(f, req);
    uint32_t slot = req->header.slot;

    f->calls[req->header.op]++;
    if (!s) {
        rpc_reply(req, -AIFS_ESESSION, NULL);
        return;
    }
    fake_session_seen(f, s, req->from);
    if (f->refuse) {
        rpc_reply(req, f->refuse, NULL);
        return;
    }
    if (fake_holds_removal(f, req))
        return;
    if (f->busy_writes && req->header.op == RPC_OP_WRITE_INLINE) {
        f->busy_writes--;
        rpc_reply(req, -AIFS_EBUSY_SERVER, NULL);
        return;
    }
    if (rpc_op_flags(req->header.op) & OP_SLOT) {
        const struct fake_slot *kept = &s->slots[slot - 1];

        ck_assert(slot >= 1 && slot <= ARRAY_LEN(s->slots));
        if (req->header.slot_sequence == kept->sequence) { /* a retry: the kept answer */
            struct msg_inode_rep rep = {.open_id = kept->open_id, .created = kept->created};
            struct fake_inode *i = fake_by_ino(f, kept->ino);

            if (i)
                fill(i, s->id, &rep.inode, true);
            rpc_reply(req, kept->status, kept->status ? NULL : &rep);
            return;
        }
        ck_assert_int_gt((int32_t)(req->header.slot_sequence - kept->sequence), 0);
    }
    if (req->header.op == RPC_OP_BATCH)
        fake_batch(f, req, s);
    else
        execute(f, req);
}
