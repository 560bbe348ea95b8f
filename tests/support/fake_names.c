/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of the metadata server in memory: pages that say what a session is alone with, and
 * changes that come together; see fake_cluster.h. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "proto/dirent_fmt.h"
#include "proto/header_fmt.h"
#include "proto/number.h"
#include "tests/support/fake_cluster.h"

/* ---- pages ---- */

static uint32_t record(const struct fake_cluster *f, const struct fake_inode *i,
                       const struct msg_readdir_req *m, uint8_t *out, uint32_t room)
{
    uint32_t name_len = (uint32_t)strlen(i->name), head = sizeof(struct dirent_wire), len;
    bool alone = m->alone && f->alone && !i->not_alone;
    struct dirent_attr_wire attr = {.change = htole64(i->attr.change),
                                    .size = htole64(i->attr.size),
                                    .mode = htole32(i->attr.mode),
                                    .nlink = htole32(i->attr.nlink),
                                    .uid = htole32(i->attr.uid),
                                    .gid = htole32(i->attr.gid)};
    struct dirent_wire w = {.ino = htole64(i->attr.ino),
                            .cookie = htole64(i->attr.ino << 16),
                            .type = (uint8_t)(i->attr.mode >> 12),
                            .name_len = (uint8_t)name_len,
                            .has_attr = m->plus};

    attr.flags = htole32(i->attr.flags | MSG_ATTR_KEPT | (alone ? MSG_ATTR_ALONE : 0));
    len = head + (m->plus ? (uint32_t)sizeof attr : 0) + name_len;
    w.record_len = htole16((uint16_t)((len + 7) / 8 * 8));
    if ((len + 7) / 8 * 8 > room)
        return 0;
    memset(out, 0, (len + 7) / 8 * 8);
    memcpy(out, &w, sizeof w);
    if (m->plus)
        memcpy(out + head, &attr, sizeof attr);
    memcpy(out + len - name_len, i->name, name_len);
    return (len + 7) / 8 * 8;
}

void fake_readdir(struct fake_cluster *f, struct rpc_req *req)
{
    static uint8_t page[MSG_BULK_MAX];
    const struct msg_readdir_req *m = req->msg;
    struct msg_readdir_rep rep = {.eof = true, .parent = 1, .alone = m->alone && f->alone};
    uint32_t at = 0, n;

    f->wishes += m->alone;
    for (uint64_t k = (m->cookie >> 16) + 1; k < FAKE_INODES; k++) {
        const struct fake_inode *i = &f->inodes[k];

        if (!i->used || !i->attr.nlink || i->parent != m->ino)
            continue;
        n = record(f, i, m, page + at, MIN(m->max_bytes, MSG_BULK_MAX) - at);
        if (!n) {
            rep.eof = false;
            break;
        }
        at += n;
        rep.count++;
    }
    req->reply_flags = RPC_FLAG_KEPT_DIR;
    rpc_reply_bulk(req, 0, &rep, &(struct iovec){page, at}, at ? 1 : 0, NULL, NULL);
}

/* ---- changes ---- */

void fake_set(struct fake_cluster *f, struct fake_inode *i, const struct msg_setattr_req *m)
{
    if (m->set & MSG_SET_MODE)
        i->attr.mode = (i->attr.mode & S_IFMT) | (m->mode & 07777);
    if (m->set & MSG_SET_UID)
        i->attr.uid = m->uid;
    if (m->set & MSG_SET_GID)
        i->attr.gid = m->gid;
    if (m->set & MSG_SET_MTIME)
        i->attr.mtime = m->mtime;
    if (m->when_ns)
        i->attr.ctime =
            (struct msg_time){(int64_t)(m->when_ns / NS_PER_S), (uint32_t)(m->when_ns % NS_PER_S)};
    i->attr.change = ++f->change;
}

bool fake_holds_removal(struct fake_cluster *f, struct rpc_req *req)
{
    switch (req->header.op) {
    case RPC_OP_UNLINK:
    case RPC_OP_RMDIR:
    case RPC_OP_RENAME:
    case RPC_OP_MKNOD:
    case RPC_OP_MKDIR:
    case RPC_OP_BATCH:
        if (!f->hold_removals && !(f->hold_alone && req->header.op == RPC_OP_MKNOD))
            return false;
        break;
    case RPC_OP_OPEN:
        if (!f->hold_opens)
            return false;
        break;
    case RPC_OP_SETATTR:
        if (!f->hold_sets)
            return false;
        break;
    default:
        return false;
    }
    list_push_back(&f->removals_held, &req->link);
    return true;
}

void fake_release_removals(struct fake_cluster *f)
{
    struct list now, *l;

    f->hold_removals = f->hold_opens = f->hold_alone = f->hold_sets = false;
    list_init(&now);
    list_splice(&now, &f->removals_held);
    while ((l = list_pop_front(&now)) != NULL)
        fake_mds_handle(list_entry(l, struct rpc_req, link));
}

static bool is_empty(const struct fake_cluster *f, uint64_t dir)
{
    for (unsigned k = 1; k < FAKE_INODES; k++)
        if (f->inodes[k].used && f->inodes[k].attr.nlink && f->inodes[k].parent == dir)
            return false;
    return true;
}

int fake_refuses_removal(struct fake_cluster *f, unsigned op, const struct fake_inode *i)
{
    int status = f->fail_removals;

    if (!i || (op != RPC_OP_UNLINK && op != RPC_OP_RMDIR))
        return 0;
    if (op == RPC_OP_RMDIR)
        return is_empty(f, i->attr.ino) ? 0 : -ENOTEMPTY;
    if (f->fail_removals_n && --f->fail_removals_n == 0)
        f->fail_removals = 0;
    return status;
}

static void tell_dir(struct fake_cluster *f, uint64_t ino, struct msg_inode_rep *rep)
{
    struct fake_inode *dir = fake_by_ino(f, ino);

    dir->attr.change = ++f->change;
    rep->has_dir = true;
    rep->dir = dir->attr;
}

static int rename_one(struct fake_cluster *f, const struct msg_rename_req *m,
                      struct msg_inode_rep *rep)
{
    struct fake_inode *i = fake_find(f, m->parent, &m->name),
                      *over = fake_find(f, m->new_parent, &m->new_name);

    f->executed[RPC_OP_RENAME]++;
    if (f->fail_removals)
        return f->fail_removals;
    if (!i)
        return -ENOENT;
    if (over && m->flags & RENAME_NOREPLACE)
        return -EEXIST;
    if (over) {
        over->attr.nlink = 0;
        over->attr.change = ++f->change;
        rep->has_victim = true;
        rep->victim = over->attr;
    }
    memset(i->name, 0, sizeof i->name);
    memcpy(i->name, m->new_name.data, m->new_name.len);
    i->parent = m->new_parent;
    i->attr.change = ++f->change;
    if (m->when_ns)
        i->attr.ctime =
            (struct msg_time){(int64_t)(m->when_ns / NS_PER_S), (uint32_t)(m->when_ns % NS_PER_S)};
    rep->inode.attr = i->attr;
    tell_dir(f, m->parent, rep);
    return 0;
}

void fake_rename(struct fake_cluster *f, struct rpc_req *req)
{
    struct msg_inode_rep rep = {0};
    int status = rename_one(f, req->msg, &rep);

    req->reply_flags |= RPC_FLAG_KEPT_DIR;
    rpc_reply(req, status, status ? NULL : &rep);
}

static int rename_item(struct fake_cluster *f, const struct msg_batch_item *item,
                       struct msg_inode_rep *rep)
{
    struct msg_rename_req m = {.parent = item->parent,
                               .new_parent = item->parent,
                               .name = item->name,
                               .new_name = item->new_name,
                               .flags = item->flags,
                               .when_ns = item->when_ns};

    ck_assert(item->when_ns != 0);
    if (f->retry_members) {
        f->retry_members--;
        return -AIFS_ERETRY;
    }
    return rename_one(f, &m, rep);
}

static int remove_one(struct fake_cluster *f, const struct msg_batch_item *item,
                      struct msg_inode_rep *rep)
{
    struct fake_inode *i = fake_find(f, item->parent, &item->name);
    int status = fake_refuses_removal(f, item->op, i);

    ck_assert(item->op == RPC_OP_UNLINK || item->op == RPC_OP_RMDIR);
    f->executed[item->op]++;
    if (status)
        return status;
    if (!i)
        return -ENOENT;
    if (f->retry_members) {
        f->retry_members--;
        f->executed[item->op]--;
        return -AIFS_ERETRY;
    }
    i->attr.nlink--;
    i->attr.change = ++f->change;
    if (item->op == RPC_OP_UNLINK)
        rep->inode.attr = i->attr;
    tell_dir(f, item->parent, rep);
    return 0;
}

static void set_since(struct fake_inode *i, const struct msg_set_since *s)
{
    struct msg_attr *a = &i->attr;

    if (s->set & MSG_SET_MODE)
        a->mode = (a->mode & S_IFMT) | s->mode;
    if (s->set & MSG_SET_UID)
        a->uid = s->uid;
    if (s->set & MSG_SET_GID)
        a->gid = s->gid;
    if (s->set & MSG_SET_ATIME)
        a->atime = s->atime;
    if (s->set & MSG_SET_MTIME)
        a->mtime = s->mtime;
    i->since = s->set;
}

struct fake_inode *fake_make_given(struct fake_cluster *f, const struct msg_create_req *m)
{
    struct fake_inode *i = fake_make(f, m->parent, &m->name, m->mode);

    if (m->ino) {
        i->attr.ino = m->ino;
        ck_assert_uint_lt(f->highest, number_count(m->ino) + NUMBER_WINDOW);
        f->highest = MAX(f->highest, number_count(m->ino));
    }
    if (m->data.len) {
        ck_assert_uint_le(m->data.len, FAKE_INLINE_MAX);
        memcpy(i->data, m->data.data, m->data.len);
        i->attr.size = i->data_len = m->data.len;
        i->attr.mtime = (struct msg_time){(int64_t)(m->wrote_ns / NS_PER_S),
                                          (uint32_t)(m->wrote_ns % NS_PER_S)};
    }
    i->attr.uid = m->cred.uid;
    i->attr.gid = m->cred.gid;
    if (m->has_since)
        set_since(i, &m->since);
    return i;
}

static int make_one(struct fake_cluster *f, const struct msg_cred *cred,
                    const struct msg_batch_item *item, struct msg_inode_rep *rep)
{
    struct msg_create_req m = {.cred = *cred,
                               .parent = item->parent,
                               .name = item->name,
                               .mode = item->mode,
                               .ino = item->ino,
                               .wrote_ns = item->wrote_ns,
                               .data = item->data,
                               .has_since = item->has_since,
                               .since = item->since};
    struct fake_inode *i;

    if (f->fail_creations)
        return f->fail_creations;
    if (f->retry_members) {
        f->retry_members--;
        return -AIFS_ERETRY;
    }
    f->executed[item->op]++;
    if (!fake_by_ino(f, item->parent))
        return -ENOENT;
    if (fake_find(f, item->parent, &item->name))
        return -EEXIST;
    i = fake_make_given(f, &m);
    rep->inode.attr = i->attr;
    rep->inode.layout = i->layout;
    tell_dir(f, item->parent, rep);
    return 0;
}

/* The whole answer is kept with the session: its last one is enough for a test. */
void fake_batch(struct fake_cluster *f, struct rpc_req *req, struct fake_session *s)
{
    static struct msg_batch_item_rep items[MSG_BATCH_MAX];
    static uint8_t kept[MSG_BATCH_MAX];
    const struct msg_batch_req *m = req->msg;
    struct msg_batch_rep rep = {m->n_items, items, {kept, m->n_items}};

    if (!f->batches) {
        rpc_reply(req, -EOPNOTSUPP, NULL);
        return;
    }
    for (uint32_t k = 0; k < m->n_items; k++) {
        int status;

        items[k] = (struct msg_batch_item_rep){0};
        kept[k] = RPC_FLAG_KEPT_INODE | RPC_FLAG_KEPT_DIR;
        if (m->items[k].op == RPC_OP_MKNOD || m->items[k].op == RPC_OP_MKDIR)
            status = make_one(f, &m->cred, &m->items[k], &items[k].rep);
        else if (m->items[k].op == RPC_OP_RENAME)
            status = rename_item(f, &m->items[k], &items[k].rep);
        else
            status = remove_one(f, &m->items[k], &items[k].rep);
        items[k].status = err_to_wire(status);
        items[k].has_rep = !status;
        if (m->items[k].op == RPC_OP_MKDIR && m->items[k].alone && !f->dirs_not_alone)
            kept[k] |= RPC_FLAG_ALONE;
    }
    f->executed[RPC_OP_BATCH]++;
    s->slots[req->header.slot - 1].sequence = req->header.slot_sequence;
    rpc_reply(req, 0, &rep);
}

/* ---- what others are about to change ---- */

struct telling {
    struct rpc_call call;
    struct msg_invalidate_req req;
    char name[16];
    bool *answered;
};

static void told(struct rpc_call *call, int status)
{
    struct telling *t = call->arg;

    *t->answered = status == 0;
    rpc_call_fini(call);
    mem_free(t);
}

static void invalidate(struct fake_cluster *f, uint64_t ino, const char *name, bool owner,
                       bool *answered)
{
    struct telling *t = mem_zalloc(sizeof *t);

    ck_assert_ptr_nonnull(f->sessions[0].link);
    *answered = false;
    t->answered = answered;
    strncpy(t->name, name, sizeof t->name - 1);
    t->req = (struct msg_invalidate_req){
        .ino = ino, .name = {t->name, (uint32_t)strlen(name)}, .owner = owner};
    rpc_call_init(&t->call, RPC_OP_INVALIDATE, &t->req, told, t);
    t->call.timeout_ns = 100 * NS_PER_S;
    rpc_link_call(f->sessions[0].link, &t->call);
}

void fake_invalidate(struct fake_cluster *f, uint64_t ino, const char *name, bool *answered)
{
    invalidate(f, ino, name, false, answered);
}

void fake_invalidate_owner(struct fake_cluster *f, uint64_t ino, bool *answered)
{
    invalidate(f, ino, "", true, answered);
}
