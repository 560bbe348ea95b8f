/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is set on a file whose creation is still gathered here: it goes along with that; see
 * creating.c and ADR 0018.
 *
 * Happy path: tar, cp -a and touch set times, owner and mode right behind the last write. The
 * attributes change here, the request is over, and the creation carries what the file is to have in
 * the end. The server applies it behind the contents, as a SETATTR of the file's maker. So only
 * what it would allow him, and have the same outcome in one piece, is taken; all else waits until
 * the file is made. Nothing here can fail.
 */
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>

#include "client/core/core_int.h"
#include "common/base/bytes.h"

#define TIMES_NOW (MSG_SET_ATIME_NOW | MSG_SET_MTIME_NOW)
#define TIMES     (MSG_SET_ATIME | MSG_SET_MTIME)
#define WHAT      (MSG_SET_MODE | MSG_SET_UID | MSG_SET_GID | TIMES | TIMES_NOW)
#define SET_ID    ((uint32_t)(S_ISUID | S_ISGID))

/* As the server decides it for who owns the file. */
static bool may_set(const struct msg_attr *a, const struct msg_cred *cred,
                    const struct msg_setattr_req *m)
{
    if (cred->uid == 0)
        return true;
    return cred->uid == a->uid && (!(m->set & MSG_SET_UID) || m->uid == a->uid) &&
           (!(m->set & MSG_SET_GID) || m->gid == a->gid || m->gid == cred->gid);
}

/* The open that follows on the creation is judged by the mode that the file has by then. */
static bool stays_open(const struct core_inode *i, const struct msg_cred *cred, uint32_t mode)
{
    const struct core_file *f = creating_file(i);

    return cred->uid == 0 || !f || creating_opens(mode, (unsigned)f->flags);
}

/* A set-id bit may go with what else is set, or with a write, and depends on groups. */
static bool is_plain(const struct core_inode *i, const struct msg_cred *cred,
                     const struct msg_setattr_req *m)
{
    const uint32_t bits = i->attr.mode | (m->set & MSG_SET_MODE ? m->mode : 0);

    return !(m->set & ~(WHAT | MSG_SET_KILL_PRIV)) && !(bits & SET_ID) &&
           m->atime.nsec < NS_PER_S && m->mtime.nsec < NS_PER_S &&
           (!(m->set & MSG_SET_MODE) || stays_open(i, cred, m->mode));
}

bool since_allows(const struct core_inode *i, const struct core_req *q,
                  const struct msg_setattr_req *m)
{
    return may_set(&i->attr, &q->cred, m) && is_plain(i, &q->cred, m);
}

/* What has been written will be in the same message: nothing is reported behind it. */
static bool is_whole(const struct core_inode *i, const struct mds_op *op)
{
    return i->meta_seq == i->meta_done || creating_bytes(op);
}

static bool fits(const struct core_inode *i, const struct core_req *q,
                 const struct msg_setattr_req *m)
{
    const struct mds_op *op = i->behind.gathered;
    const struct core *c = i->core;
    const struct msg_cred *maker = &op->msg.create.cred;

    return !c->forced && c->state == CORE_MOUNTED && session_believed(c) &&
           op->only_epoch == c->session.epoch && maker->uid == q->cred.uid &&
           maker->gid == q->cred.gid && (m->set & WHAT) && since_allows(i, q, m) &&
           is_whole(i, op) && inode_attr_fresh(i) && !i->ctime_due &&
           list_empty(&i->behind.waiters) && list_empty(&i->truncations);
}

/* In the order in which the server does it. */
void since_set_here(struct core_inode *i, const struct msg_setattr_req *m, struct msg_time now)
{
    struct msg_attr *a = &i->attr;

    if (m->set & MSG_SET_UID)
        a->uid = m->uid;
    if (m->set & MSG_SET_GID)
        a->gid = m->gid;
    if (m->set & MSG_SET_MODE)
        a->mode = (a->mode & S_IFMT) | (m->mode & 07777);
    if (m->set & (MSG_SET_ATIME | MSG_SET_ATIME_NOW)) {
        a->atime = m->set & MSG_SET_ATIME_NOW ? now : m->atime;
        atime_set(i, reactor_now_ns(i->core->reactor));
    }
    if (m->set & (MSG_SET_MTIME | MSG_SET_MTIME_NOW))
        a->mtime = i->wrote_at = m->set & MSG_SET_MTIME_NOW ? now : m->mtime;
    a->ctime = now;
}

void since_add(struct msg_set_since *s, const struct msg_attr *a, uint32_t set)
{
    s->set |= set & (WHAT & ~TIMES_NOW);
    s->set |= set & MSG_SET_ATIME_NOW ? MSG_SET_ATIME : 0;
    s->set |= set & MSG_SET_MTIME_NOW ? MSG_SET_MTIME : 0;
    s->mode = a->mode & 07777;
    s->uid = a->uid;
    s->gid = a->gid;
    s->atime = a->atime;
    s->mtime = a->mtime;
    s->when_ns = (uint64_t)a->ctime.sec * NS_PER_S + a->ctime.nsec;
}

/* What was written behind it has a time of its own. */
void creating_since(struct mds_op *op, const struct core_inode *i)
{
    struct msg_set_since *s = &op->msg.create.since;

    if (s->mtime.sec != i->wrote_at.sec || s->mtime.nsec != i->wrote_at.nsec)
        s->set &= ~MSG_SET_MTIME;
}

bool creating_set(struct core_inode *i, struct core_req *q, const struct msg_setattr_req *m)
{
    struct mds_op *op = i->behind.gathered;

    if (!op || !fits(i, q, m))
        return false;
    creating_since(op, i);
    since_set_here(i, m, time_later(core_now(i->core), i->attr.ctime));
    op->msg.create.has_since = true;
    since_add(&op->msg.create.since, &i->attr, m->set);
    i->core->stats.set_ahead++;
    inode_entry(i, &q->entry);
    req_end(q, 0);
    return true;
}

/* ---- access lists ---- */

bool since_acl_mode(const void *value, uint32_t len, uint32_t *ret_mode)
{
    static const uint16_t tags[] = {ACL_USER_OBJ, ACL_GROUP_OBJ, ACL_OTHER};
    const uint8_t *p = value;
    uint32_t mode = 0;

    if (len != 4 + 8 * ARRAY_LEN(tags) || le32_load(p) != POSIX_ACL_XATTR_VERSION)
        return false;
    for (unsigned k = 0; k < ARRAY_LEN(tags); k++) {
        const uint8_t *e = p + 4 + 8 * (size_t)k;

        if (le16_load(e) != tags[k] || le16_load(e + 2) > 7)
            return false;
        mode = mode << 3 | le16_load(e + 2);
    }
    *ret_mode = mode;
    return true;
}
