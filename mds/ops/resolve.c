/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each changing request touches: read from the committed view before it is prepared.
 *
 * A name or inode that is not there is left out: execution finds out for itself, and says RETRY
 * when it has come into being meanwhile, or when a new name was only believed not to be there. It
 * says so, too, when an inode could not be read: nobody knows then who has to be asked for it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "mds/ns/ns.h"
#include "mds/ops/op.h"

/* The inode behind a name; 0: none. */
static uint64_t find_name(struct view *v, uint64_t parent, const struct msg_bytes *name)
{
    struct mds_dirent d;

    if (ns_name_check(name) < 0 || view_dirent(v, parent, name->data, name->len, &d) < 0)
        return 0;
    return d.ino;
}

/*
 * A name that is to be made is hardly ever there, and what has lately been used is in the cache: so
 * the store is asked only once execution, which looks it up anyway, has said RETRY.
 */
static uint64_t find_new_name(const struct mds_op *o, struct view *v, uint64_t parent,
                              const struct msg_bytes *name)
{
    struct mds_dirent d;

    if (o->tries > 0)
        return find_name(v, parent, name);
    return view_dirent_cached(v, parent, name->data, name->len, &d) ? d.ino : 0;
}

/* 1: a regular file. 0: none, or something else. Else it could not be read. */
static int find_file(struct view *v, uint64_t ino, struct mds_inode *ret_inode)
{
    int rc = ino ? view_inode(v, ino, ret_inode) : -ENOENT;

    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    return S_ISREG(ret_inode->mode);
}

/* With its access list, for the rules. */
static int see_file(struct mds_op *o, struct view *v, uint64_t ino, struct mds_inode *ret_inode)
{
    int file = find_file(v, ino, ret_inode);
    int rc = file > 0 ? op_acl(v, &o->req->arena, ret_inode) : 0;

    return rc < 0 ? rc : file;
}

/* A file that loses this name: whether somebody has it open decides what becomes of it. */
static void touch_removed(struct mds_op *o, struct view *v, uint64_t ino, unsigned place)
{
    struct mds_inode in;
    int file = find_file(v, ino, &in);

    if (file < 0)
        o->entry.resolved[place] = 0;
    else if (file > 0)
        op_touch(o, ino, MDS_ACCESS_UNLINK, (int)place);
}

/* This very request was executed before: an open in its kept answer must be known to the session
 * module, whatever the state would say to a new request. */
static bool find_repeat(const struct mds_op *o, struct view *v, struct slot_rec *ret_rec)
{
    const struct rpc_header *h = &o->req->header;
    const void *value;
    uint32_t len;
    struct key k;

    key_slot(&k, h->session, h->slot);
    if (view_record(v, &k, &o->req->arena, &value, &len) < 0 || len < sizeof(*ret_rec))
        return false;
    memcpy(ret_rec, value, sizeof(*ret_rec));
    return le32toh(ret_rec->sequence) == h->slot_sequence;
}

static bool is_repeat(const struct mds_op *o, struct view *v)
{
    struct slot_rec rec;

    return find_repeat(o, v, &rec);
}

/* What an earlier sending of this CREATE has made or found, by whatever name it goes now: others
 * may have opened it since a restart, and give back their leases first. 0: nothing. */
static uint64_t find_repeated(const struct mds_op *o, struct view *v)
{
    struct slot_rec rec;

    if (!(o->req->header.flags & RPC_FLAG_RESENT) || !find_repeat(o, v, &rec) || rec.status)
        return 0;
    return le64toh(rec.ino);
}

/* Whether there is one, or why not, is for execution to say. */
static void ask_layout(struct mds_op *o, const struct mds_inode *dir,
                       const struct msg_stripe *asked)
{
    struct shard_entry *e = &o->entry;

    e->layout_status = op_layout_new(o->mds, dir, asked, &e->layout);
    e->has_layout = e->layout_status == 0;
}

static void ask_stripe(struct mds_op *o, const struct msg_stripe *asked)
{
    struct shard_entry *e = &o->entry;

    e->layout_status = op_stripe_of(o->mds, asked, &e->stripe);
    e->has_stripe = e->layout_status == 0;
}

static void new_layout(struct mds_op *o, struct view *v, const struct msg_create_req *req)
{
    struct mds_inode dir;

    /* one that the same batch makes will have the wishes of the one above it */
    if (view_inode(v, req->parent, &dir) < 0 &&
        view_inode(v, op_batch_above(o, req->parent), &dir) < 0)
        return;
    ask_layout(o, &dir, req->has_stripe ? &req->stripe : NULL);
}

/* Who has it open for writing knows its size and times better than anybody who has been told. */
static bool writes(uint32_t open_flags)
{
    return (open_flags & O_ACCMODE) != O_RDONLY || (open_flags & O_TRUNC);
}

uint64_t resolve_create(struct mds_op *o, struct view *v)
{
    const struct msg_create_req *req = o->msg;
    uint32_t open_flags =
        (req->open_flags & O_ACCMODE) | (req->flags & MSG_CREATE_TRUNC ? O_TRUNC : 0);
    bool unnamed = req->flags & MSG_CREATE_UNNAMED;
    bool found = req->flags & MSG_CREATE_FOUND;
    uint64_t ino = find_repeated(o, v);
    struct mds_inode in;
    int file;

    if (!ino && !unnamed)
        ino = found ? find_name(v, req->parent, &req->name)
                    : find_new_name(o, v, req->parent, &req->name);

    o->entry.check_resolved = true;
    o->entry.resolved[0] = ino;
    if (!ino && found)
        return 0;
    if (!ino) {
        if (!unnamed)
            op_change(o, req->parent, &req->name);
        new_layout(o, v, req);
        if (req->flags & MSG_CREATE_OPEN)
            op_touch(o, 0, MDS_ACCESS_OPEN, -1)->open_flags = open_flags;
        return 0;
    }
    file = see_file(o, v, ino, &in);
    if (file < 0)
        o->entry.resolved[0] = 0;
    if (file <= 0)
        return 0;
    if (((req->flags & MSG_CREATE_EXCL) || ns_may_open(&in, &req->cred, open_flags) < 0) &&
        !is_repeat(o, v)) {
        o->entry.refused = true;
        return 0;
    }
    if (open_flags & O_TRUNC)
        op_cut(o, ino);
    else if (writes(open_flags))
        op_change(o, ino, NULL);
    if (req->flags & MSG_CREATE_OPEN)
        op_touch(o, ino, MDS_ACCESS_OPEN, 0)->open_flags = open_flags;
    else if (req->flags & MSG_CREATE_TRUNC)
        op_touch(o, ino, MDS_ACCESS_CUT, 0);
    return 0;
}

/* MKDIR, MKNOD, SYMLINK */
uint64_t resolve_make(struct mds_op *o, struct view *v)
{
    const struct msg_create_req *req = o->msg;

    op_change(o, req->parent, &req->name);
    if (o->op == RPC_OP_MKDIR && req->has_stripe)
        ask_stripe(o, &req->stripe);
    else if (o->op == RPC_OP_MKNOD)
        new_layout(o, v, req);
    return 0;
}

uint64_t resolve_unlink(struct mds_op *o, struct view *v)
{
    const struct msg_name_req *req = o->msg;
    uint64_t ino = find_name(v, req->parent, &req->name);

    o->entry.check_resolved = true;
    o->entry.resolved[0] = ino;
    op_change(o, req->parent, &req->name);
    op_change(o, ino, NULL);
    touch_removed(o, v, ino, 0);
    return 0;
}

uint64_t resolve_rmdir(struct mds_op *o, struct view *v)
{
    const struct msg_name_req *req = o->msg;
    uint64_t ino = find_name(v, req->parent, &req->name);

    o->entry.check_resolved = true;
    o->entry.resolved[0] = ino;
    op_change(o, req->parent, &req->name);
    op_change(o, ino, NULL);
    return 0;
}

uint64_t resolve_rename(struct mds_op *o, struct view *v)
{
    const struct msg_rename_req *req = o->msg;
    uint64_t src = find_name(v, req->parent, &req->name);
    uint64_t dst = find_new_name(o, v, req->new_parent, &req->new_name);

    o->entry.check_resolved = true;
    o->entry.resolved[0] = src;
    o->entry.resolved[1] = dst;
    op_change(o, req->parent, &req->name);
    op_change(o, req->new_parent, &req->new_name);
    op_change(o, src, NULL);
    op_change(o, dst, NULL);
    if (dst != src && !(req->flags & RENAME_EXCHANGE))
        touch_removed(o, v, dst, 1);
    return 0;
}

uint64_t resolve_link(struct mds_op *o, struct view *v)
{
    const struct msg_link_req *req = o->msg;

    (void)v;
    op_change(o, req->new_parent, &req->new_name);
    op_change(o, req->ino, NULL);
    return 0;
}

/* As it is now; a change that is under way may make it otherwise before this one has its turn. What
 * cannot be read may be anything. */
static void change_owner(struct mds_change *c, struct view *v, const struct msg_setattr_req *req)
{
    struct mds_inode in;
    int rc;

    if (!(req->set & (MSG_SET_UID | MSG_SET_GID | MSG_SET_MODE)))
        return;
    rc = view_inode(v, req->ino, &in);
    c->owner = rc < 0 && rc != -ENOENT;
    if (rc < 0)
        return;
    c->sets_owner = req->set & (MSG_SET_UID | MSG_SET_GID) || S_ISDIR(in.mode);
    c->owner = (req->set & MSG_SET_UID && req->uid != in.uid) ||
               (req->set & MSG_SET_GID && req->gid != in.gid) ||
               (req->set & MSG_SET_MODE && S_ISDIR(in.mode) && (req->mode ^ in.mode) & S_ISVTX);
}

uint64_t resolve_setattr(struct mds_op *o, struct view *v)
{
    const struct msg_setattr_req *req = o->msg;
    const uint32_t times = MSG_SET_ATIME | MSG_SET_MTIME | MSG_SET_ATIME_NOW | MSG_SET_MTIME_NOW;
    struct mds_inode in;
    int file;

    if (req->set & MSG_SET_SIZE)
        op_cut(o, req->ino);
    else
        op_change(o, req->ino, NULL);
    if (o->prepare.n_changes)
        change_owner(&o->prepare.changes[0], v, req);
    file = see_file(o, v, req->ino, &in);
    if (file < 0 || (file > 0 && ns_setattr_check(&in, req) < 0))
        o->entry.refused = true; /* nobody gives up a lease for somebody who may not */
    if (file <= 0 || o->entry.refused)
        return 0;
    if (req->set & MSG_SET_SIZE) {
        if (req->size > in.size && (in.flags & INODE_PUNCH_PENDING) && !(in.flags & INODE_INLINE))
            return req->ino;
        op_touch(o, req->ino, MDS_ACCESS_CUT, -1)->open_id = req->open_id;
    } else {
        op_touch(o, req->ino, req->set & times ? MDS_ACCESS_TIMES : MDS_ACCESS_NAME, -1);
    }
    return 0;
}

uint64_t resolve_open(struct mds_op *o, struct view *v)
{
    const struct msg_open_req *req = o->msg;
    struct mds_inode in;
    bool file = see_file(o, v, req->ino, &in) > 0;

    o->local = !(req->flags & O_TRUNC);
    if (file && (ns_may_open(&in, &req->cred, req->flags) == 0 || is_repeat(o, v))) {
        if (req->flags & O_TRUNC)
            op_cut(o, req->ino);
        else if (writes(req->flags))
            op_change(o, req->ino, NULL);
        op_touch(o, req->ino, MDS_ACCESS_OPEN, -1)->open_flags = req->flags & (O_ACCMODE | O_TRUNC);
    } else {
        o->entry.refused = true;
    }
    return 0;
}

uint64_t resolve_xattr(struct mds_op *o, struct view *v)
{
    const struct msg_xattr_req *req = o->msg;
    struct msg_stripe stripe;
    struct mds_inode in;
    enum ns_xattr kind;

    op_change(o, req->ino, NULL);
    if (view_inode(v, req->ino, &in) < 0 || op_acl(v, &o->req->arena, &in) < 0 ||
        ns_xattr_check(&in, &req->cred, &req->name, true, &kind) < 0 ||
        kind != NS_XATTR_IS_LAYOUT || op_layout_parse(&req->value, &stripe) < 0)
        return 0;
    if (S_ISDIR(in.mode))
        ask_stripe(o, &stripe);
    else
        ask_layout(o, NULL, &stripe);
    if (S_ISREG(in.mode)) /* who has it alone may be letting it grow into the layout that it has */
        op_touch(o, req->ino, MDS_ACCESS_CUT, -1);
    return 0;
}

uint64_t resolve_write_inline(struct mds_op *o, struct view *v)
{
    const struct msg_write_inline_req *req = o->msg;

    (void)v;
    op_touch(o, req->ino, MDS_ACCESS_WRITE, -1)->open_id = req->open_id;
    return 0;
}

uint64_t resolve_grow(struct mds_op *o, struct view *v)
{
    const struct msg_size_req *req = o->msg;

    (void)v;
    op_touch(o, req->ino, MDS_ACCESS_REPORT, -1)->open_id = req->open_id;
    return 0;
}

uint64_t resolve_size(struct mds_op *o, struct view *v)
{
    const struct msg_size_req *req = o->msg;
    struct mds_inode in;

    if (find_file(v, req->ino, &in) > 0 && (in.flags & INODE_PUNCH_PENDING) &&
        req->size > in.size && req->truncate_gen == in.truncate_gen)
        return req->ino;
    op_touch(o, req->ino, MDS_ACCESS_REPORT, -1)->open_id = req->open_id;
    return 0;
}

uint64_t resolve_append_range(struct mds_op *o, struct view *v)
{
    const struct msg_append_req *req = o->msg;
    struct mds_inode in;

    if (find_file(v, req->ino, &in) > 0 && (in.flags & INODE_PUNCH_PENDING) &&
        req->truncate_gen == in.truncate_gen)
        return req->ino;
    op_touch(o, req->ino, MDS_ACCESS_WRITE, -1)->open_id = req->open_id;
    return 0;
}
