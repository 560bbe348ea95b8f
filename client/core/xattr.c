/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes, symlink targets and statfs: a call each; replies are lent to the caller
 * within done(). */
#include "client/core/core_int.h"

static void got_bytes(struct mds_op *op, int status)
{
    const struct msg_bytes_rep *rep = op->call.rep;

    if (!op->q)
        return;
    if (!status)
        op->q->out.bytes = rep->value;
    req_finish(op->q, status);
}

static void got_target(struct mds_op *op, int status)
{
    struct core_inode *i = op->q && !status ? inode_find(op->core, op->q->p.ino) : NULL;

    if (i)
        atime_read(i);
    got_bytes(op, status);
}

static void by_ino(struct core *c, struct core_req *q, unsigned opcode, const char *what,
                   const char *state, uint64_t ino, void (*done)(struct mds_op *op, int status))
{
    struct mds_op *op;

    req_begin(c, q, what, ino);
    if (!core_usable(c, q))
        return;
    op = mds_op_new(c, opcode, q, done);
    if (op) {
        op->msg.ino.ino = ino;
        mds_op_cred(op, &op->msg.ino.cred, &q->cred);
    }
    req_call(q, op, state);
}

void core_readlink(struct core *c, struct core_req *q, uint64_t ino)
{
    struct core_inode *i = inode_find(c, ino);

    /* of one that was removed the server decides, as of everything that has lost its last name */
    if (i && i->target.data && i->attr.nlink && inode_attr_fresh(i)) {
        req_begin(c, q, "readlink", ino);
        if (!core_usable(c, q))
            return;
        atime_read(i);
        q->out.bytes = i->target;
        req_end(q, 0);
        return;
    }
    by_ino(c, q, RPC_OP_READLINK, "readlink", "waits for the metadata server: READLINK", ino,
           got_target);
}

struct msg_bytes core_link_target(const struct core *c, uint64_t ino)
{
    const struct core_inode *i = inode_find(c, ino);

    return i ? i->target : (struct msg_bytes){0};
}

void core_listxattr(struct core *c, struct core_req *q, uint64_t ino)
{
    by_ino(c, q, RPC_OP_XATTR_LIST, "listxattr", "waits for the metadata server: XATTR_LIST", ino,
           got_bytes);
}

static void got_statfs(struct mds_op *op, int status)
{
    const struct msg_statfs_rep *rep = op->call.rep;

    if (!op->q)
        return;
    if (!status)
        op->q->out.statfs = *rep;
    req_finish(op->q, status);
}

void core_statfs(struct core *c, struct core_req *q, uint64_t ino)
{
    by_ino(c, q, RPC_OP_STATFS, "statfs", "waits for the metadata server: STATFS", ino, got_statfs);
}

static void layout_end(struct core_req *q, int status)
{
    struct core_inode *i = q->p.inode;

    req_end(q, status);
    inode_put(i);
}

static void layout_known(struct core_req *q)
{
    req_finish(q, 0);
}

static bool is_layout(const struct msg_bytes *name)
{
    static const char layout[] = "aifs.layout";

    return name->len == sizeof layout - 1 && memcmp(name->data, layout, name->len) == 0;
}

static void changed(struct mds_op *op, int status)
{
    struct core_req *q = op->q;
    struct core_inode *i = status ? NULL : inode_find(op->core, op->msg.xattr.ino);

    if (!status)
        inode_expire(op->core, op->msg.xattr.ino);
    if (!q)
        return;
    if (!i || !is_layout(&op->msg.xattr.name)) {
        req_finish(q, status);
        return;
    }
    q->p.op = NULL;
    q->p.cancel = NULL;
    q->p.inode = inode_ref(i);
    q->p.end = layout_end;
    req_refresh(q, layout_known); /* whoever writes it from now on writes there */
}

/* A name space and nothing behind it. */
static bool is_nameless(const struct msg_bytes *name)
{
    static const char *const spaces[] = {"user.", "trusted.", "security."};

    for (size_t i = 0; i < ARRAY_LEN(spaces); i++)
        if (name->len == strlen(spaces[i]) && memcmp(name->data, spaces[i], name->len) == 0)
            return true;
    return false;
}

static void send(struct core *c, struct core_req *q, unsigned opcode, const struct msg_xattr_req *m,
                 void (*done)(struct mds_op *op, int status))
{
    struct mds_op *op;

    if (!core_usable(c, q))
        return;
    if (opcode != RPC_OP_XATTR_GET && c->o.read_only) {
        req_end(q, -EROFS);
        return;
    }
    if (m->name.len > MSG_NAME_MAX || m->value.len > MSG_XATTR_MAX) {
        req_end(q, m->name.len > MSG_NAME_MAX ? -ERANGE : -E2BIG);
        return;
    }
    if (is_nameless(&m->name)) {
        req_end(q, -EINVAL);
        return;
    }
    op = mds_op_new(c, opcode, q, done);
    if (op) {
        op->msg.xattr = *m;
        op->msg.xattr.name = mds_op_bytes(op, m->name.data, m->name.len);
        if (m->value.len)
            op->msg.xattr.value = mds_op_bytes(op, m->value.data, m->value.len);
        mds_op_cred(op, &op->msg.xattr.cred, &q->cred);
    }
    req_call(q, op, "waits for the metadata server: XATTR");
}

static void by_name(struct core *c, struct core_req *q, unsigned opcode, const char *what,
                    const struct msg_xattr_req *m, void (*done)(struct mds_op *op, int status))
{
    req_begin(c, q, what, m->ino);
    send(c, q, opcode, m, done);
}

static const char access_list[] = "system.posix_acl_access";
static const char inherited_list[] = "system.posix_acl_default";
static const char capability[] = "security.capability";

static bool is_name(const char *name, uint32_t len, const char *s)
{
    return len == strlen(s) && memcmp(name, s, len) == 0;
}

/* security.* is asked for by every write(2) and by ls -l, access lists by ls -l and by the kernel
 * whenever it checks permissions; files that have such are rare, and everybody may read them. */
static bool known_absent(struct core *c, uint64_t ino, const char *name, uint32_t len)
{
    const struct core_inode *i = inode_find(c, ino);

    if (!i || !inode_attr_fresh(i))
        return false;
    if (is_name(name, len, access_list))
        return !(i->attr.flags & MSG_ATTR_ACL);
    if (is_name(name, len, inherited_list))
        return !(i->attr.flags & MSG_ATTR_DEFAULT_ACL);
    return (i->attr.flags & MSG_ATTR_NO_XATTRS) && len > 9 && memcmp(name, "security.", 9) == 0;
}

void core_getxattr(struct core *c, struct core_req *q, uint64_t ino, const char *name, uint32_t len)
{
    if (known_absent(c, ino, name, len)) {
        req_begin(c, q, "getxattr", ino);
        if (core_usable(c, q))
            req_end(q, -ENODATA);
        return;
    }
    by_name(c, q, RPC_OP_XATTR_GET, "getxattr",
            &(struct msg_xattr_req){.ino = ino, .name = {name, len}}, got_bytes);
}

/* cp -a gives what it makes the access list of what it copies, mostly one that says no more than a
 * mode: then it is a change of the mode, and goes along with a creation as that does. */
static bool set_ahead(struct core_req *q, uint64_t ino, const struct msg_setattr_req *m)
{
    struct core_inode *i = inode_find(q->p.core, ino);
    struct msg_setattr_req set = *m;

    if (!i)
        return false;
    set.mode |= i->attr.mode & 07000;
    return creating_set(i, q, &set) || setdir_try(i, q, &set);
}

/* ---- capabilities of a program ---- */

/* A write takes them away, when it is reported: what was written before they are set is reported
 * before. cp -a and others set them before they close the file. */
struct behind_writes {
    struct flush_wait flush;
    struct core_inode *inode;
    struct msg_xattr_req m; /* name and value are the caller's until the end */
};

static void behind_free(struct behind_writes *b)
{
    inode_put(b->inode);
    mem_free(b);
}

static void written(struct flush_wait *w)
{
    struct behind_writes *b = container_of(w, struct behind_writes, flush);
    struct core_req *q = w->q;
    const struct msg_xattr_req m = b->m;

    q->p.cancel = NULL;
    behind_free(b);
    send(q->p.core, q, RPC_OP_XATTR_SET, &m, changed);
}

static void cancel_behind(struct core_req *q, int status)
{
    struct behind_writes *b = (struct behind_writes *)(uintptr_t)q->p.n1;

    flush_cancel(&b->flush);
    behind_free(b);
    req_finish(q, status);
}

static bool set_behind_writes(struct core_req *q, const struct msg_xattr_req *m)
{
    struct core_inode *i = inode_find(q->p.core, m->ino);
    struct behind_writes *b;

    if (!i || list_empty(&i->dirty_link) || !is_name(m->name.data, m->name.len, capability))
        return false;
    if (!core_usable(q->p.core, q))
        return true;
    b = core_no_memory() ? NULL : mem_alloc(sizeof *b);
    if (!b) {
        req_end(q, -ENOMEM);
        return true;
    }
    *b = (struct behind_writes){.flush.q = q, .inode = inode_ref(i), .m = *m};
    q->p.n1 = (uint64_t)(uintptr_t)b;
    req_wait(q, "waits until what was written is reported", cancel_behind);
    flush_start(i, &b->flush, false, written);
    return true;
}

void core_setxattr(struct core *c, struct core_req *q, uint64_t ino, const char *name, uint32_t len,
                   const void *value, uint32_t value_len, uint32_t flags)
{
    const struct msg_xattr_req m = {
        .ino = ino, .name = {name, len}, .value = {value, value_len}, .flags = flags};
    struct msg_setattr_req set = {.set = MSG_SET_MODE};

    req_begin(c, q, "setxattr", ino);
    if (!flags && is_name(name, len, access_list) && since_acl_mode(value, value_len, &set.mode) &&
        set_ahead(q, ino, &set))
        return;
    if (set_behind_writes(q, &m))
        return;
    send(c, q, RPC_OP_XATTR_SET, &m, changed);
}

void core_removexattr(struct core *c, struct core_req *q, uint64_t ino, const char *name,
                      uint32_t len)
{
    const struct msg_xattr_req m = {.ino = ino, .name = {name, len}};

    req_begin(c, q, "removexattr", ino);
    /* it has none (setdir_try): of a list that is not there only ctime tells that it was removed */
    if (is_name(name, len, inherited_list) && set_ahead(q, ino, &(struct msg_setattr_req){0}))
        return;
    send(c, q, RPC_OP_XATTR_REMOVE, &m, changed);
}
