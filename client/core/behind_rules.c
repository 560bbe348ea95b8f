/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which removals may be answered before the server has executed them; see behind.h and ADR 0017.
 *
 * What is allowed is decided here as the server would (mode, owner, the sticky bit; where there is
 * an access list only for its owner and for root), because nobody is left to hear a refusal. Of a
 * directory it must be known here that it is empty: as soon as the removals in it, which are sent
 * before its own, have been executed.
 */
#include "client/core/core_int.h"
#include "client/core/named.h"

/* As the server decides it. Who is not allowed by this is asked for there. */
bool behind_may_change(const struct msg_attr *dir, const struct msg_cred *cred)
{
    uint32_t mode = dir->mode;
    bool group = cred->gid == dir->gid;

    if (cred->uid == 0)
        return true;
    for (uint32_t k = 0; k < cred->n_groups; k++)
        group |= cred->groups[k] == dir->gid;
    if (cred->uid == dir->uid)
        mode >>= 6;
    else if (dir->flags & MSG_ATTR_ACL)
        return false;
    else if (group)
        mode >>= 3;
    return (mode & 3) == 3;
}

bool behind_may_delete(const struct msg_attr *dir, const struct msg_attr *victim,
                       const struct msg_cred *cred)
{
    return behind_may_change(dir, cred) && (cred->uid == 0 || !(dir->mode & S_ISVTX) ||
                                            cred->uid == victim->uid || cred->uid == dir->uid);
}

bool behind_name_fits(const struct msg_bytes *n)
{
    const char *s = n->data;

    return n->len >= 1 && n->len <= MSG_NAME_MAX && !memchr(s, '/', n->len) &&
           !memchr(s, 0, n->len) && !(s[0] == '.' && (n->len == 1 || (n->len == 2 && s[1] == '.')));
}

/* Is a change under way of which the outcome matters here? What was answered ahead is in front. */
bool behind_changes_now(const struct mds_op *op, uint64_t dir, uint64_t victim)
{
    struct list *l;

    for (l = op->core->ops.prev; l != &op->core->ops; l = l->prev) {
        const struct mds_op *o = list_entry(l, const struct mds_op, link);
        struct named d;

        if (o->ahead)
            return false;
        if (o == op || !(rpc_op_flags(o->call.op) & OP_SLOT))
            continue;
        d = named_by(o);
        if (d.all) /* of a name that is not known here: it may be one of them */
            return true;
        for (unsigned k = 0; k < d.n; k++)
            if (d.ino[k] == dir || d.ino[k] == victim)
                return true;
    }
    return false;
}

/* The directory by its own page: else another one is asked to be given back for its sake, and
 * nothing is under way in that. */
bool behind_alone(const struct core_inode *dir, const struct core_inode *i)
{
    return dir->behind.own && (i->behind.own || i->behind.term == dir->behind.term);
}

static bool is_file(const struct mds_op *op, const struct core_inode *i)
{
    return op->call.op == RPC_OP_UNLINK && !S_ISDIR(i->attr.mode) && i->attr.nlink == 1 && !i->refs;
}

/* The removals in it refer to it, and nothing else does. */
static bool is_empty_dir(const struct mds_op *op, const struct core_inode *i)
{
    return op->call.op == RPC_OP_RMDIR && S_ISDIR(i->attr.mode) && i->refs == (i->behind.n > 0) &&
           !i->behind.creating && !i->behind.setting && !i->behind.made &&
           list_empty(&i->behind.waiters) && names_is_empty(i);
}

bool behind_allows(const struct mds_op *op, const struct core_inode *dir,
                   const struct core_inode *victim)
{
    const struct core *c = op->core;
    const struct msg_cred *cred = &op->msg.name.cred;

    return c->o.ahead && !c->forced && c->state == CORE_MOUNTED && session_believed(c) &&
           dir->behind.rules_known && inode_attr_fresh(dir) && inode_attr_fresh(victim) &&
           (is_file(op, victim) || is_empty_dir(op, victim)) && list_empty(&victim->files) &&
           list_empty(&dir->behind.waiters) && list_empty(&c->behind.all) && !dir->behind.setting &&
           behind_removes(c, cred) && behind_may_delete(&dir->attr, &victim->attr, cred) &&
           !behind_changes_now(op, dir->ino, victim->ino);
}
