/* SPDX-License-Identifier: Apache-2.0 */
/* Which inodes a request to the metadata server names; nothing here can fail. */
#include "client/core/named.h"

static void name_ino(struct named *d, uint64_t ino)
{
    if (ino)
        d->ino[d->n++] = ino;
}

static void name_child(struct core *c, struct named *d, uint64_t parent, const struct msg_bytes *b)
{
    const struct name_entry *e = names_get(c, parent, b->data, b->len);

    if (e)
        name_ino(d, e->ino);
    else
        d->all = true;
}

/* The directory's other names have nothing to wait for. What was answered ahead is in front. */
static bool is_being_removed(const struct mds_op *op)
{
    const struct msg_name_req *m = &op->msg.name;
    struct list *l;

    list_for_each (l, &op->core->ops) {
        const struct mds_op *o = list_entry(l, const struct mds_op, link);
        const struct msg_name_req *n = &o->msg.name;

        if (!o->ahead)
            return false;
        if (creating_is(o, m->parent, &m->name))
            return true;
        if ((o->call.op == RPC_OP_UNLINK || o->call.op == RPC_OP_RMDIR) && n->parent == m->parent &&
            n->name.len == m->name.len && memcmp(n->name.data, m->name.data, m->name.len) == 0)
            return true;
    }
    return false;
}

static bool is_being_moved(const struct mds_op *op)
{
    return moving_concerns(op->core, op->msg.name.parent, &op->msg.name.name, 0);
}

/* A page may tell names from before that are not told of again. */
static bool has_moves(struct core *c, uint64_t dir)
{
    const struct core_inode *i = inode_find(c, dir);

    return i && i->behind.moved;
}

/* The server has never heard of it. */
static bool is_coming(struct core *c, uint64_t dir)
{
    const struct core_inode *i = c->behind.coming ? inode_find(c, dir) : NULL;

    return i && i->behind.coming;
}

/* Who may look into it is being changed. */
static bool is_being_set(struct core *c, uint64_t dir)
{
    const struct core_inode *i = inode_find(c, dir);

    return i && i->behind.setting;
}

struct named named_by(const struct mds_op *op)
{
    struct core *c = op->core;
    struct named d = {.n = 0};

    switch (op->call.op) {
    case RPC_OP_LOOKUP: /* who is found without having been known is looked at then */
        if (is_being_removed(op) || is_being_moved(op) || is_coming(c, op->msg.name.parent) ||
            is_being_set(c, op->msg.name.parent))
            name_ino(&d, op->msg.name.parent);
        name_child(c, &d, op->msg.name.parent, &op->msg.name.name);
        d.all = false;
        break;
    case RPC_OP_UNLINK: /* a file's one name: in a directory where it is being removed */
        name_ino(&d, op->msg.name.parent);
        break;
    case RPC_OP_RMDIR:
        name_ino(&d, op->msg.name.parent);
        name_child(c, &d, op->msg.name.parent, &op->msg.name.name);
        break;
    case RPC_OP_CREATE:
    case RPC_OP_MKDIR:
    case RPC_OP_MKNOD:
    case RPC_OP_SYMLINK:
        name_ino(&d, op->msg.create.parent);
        break;
    case RPC_OP_RENAME:
        name_ino(&d, op->msg.rename.parent);
        name_ino(&d, op->msg.rename.new_parent);
        name_child(c, &d, op->msg.rename.parent, &op->msg.rename.name);
        name_child(c, &d, op->msg.rename.new_parent, &op->msg.rename.new_name);
        break;
    case RPC_OP_LINK:
        name_ino(&d, op->msg.link.ino);
        name_ino(&d, op->msg.link.new_parent);
        break;
    case RPC_OP_GETATTR:
    case RPC_OP_READLINK:
    case RPC_OP_XATTR_LIST:
    case RPC_OP_FSYNC:
        name_ino(&d, op->msg.ino.ino);
        break;
    case RPC_OP_SETATTR:
        name_ino(&d, op->msg.setattr.ino);
        break;
    case RPC_OP_XATTR_GET:
    case RPC_OP_XATTR_SET:
    case RPC_OP_XATTR_REMOVE:
        name_ino(&d, op->msg.xattr.ino);
        break;
    case RPC_OP_OPEN:
        name_ino(&d, op->msg.open.ino);
        break;
    case RPC_OP_LEASE_GET:
        name_ino(&d, op->msg.lease.ino);
        break;
    case RPC_OP_READDIR:
        /* else for the caches, which know what is being removed */
        if (op->q || is_coming(c, op->msg.readdir.ino) || has_moves(c, op->msg.readdir.ino))
            name_ino(&d, op->msg.readdir.ino);
        break;
    default: /* of open files, which are not removed ahead; and what tells no attributes */
        break;
    }
    return d;
}
