// SPDX-License-Identifier: Apache-2.0
/* Locks of files. What every reader may rely on: a known kind and type, and a range that is one. */
#include "proto/codec/codec_int.h"
#include "proto/schema/lock.pb-c.h"

static bool lock_is_one(const struct msg_lock *l)
{
    return l->kind <= MSG_LOCK_FLOCK && l->type <= MSG_LOCK_UNLOCK && l->start <= l->end &&
           l->end <= MSG_LOCK_END;
}

static bool lock_enc(struct enc *e UNUSED, const void *msg, void *pb)
{
    const struct msg_lock *m = msg;
    Aifs__Lock *p = pb;

    p->kind = m->kind;
    p->type = m->type;
    p->start = m->start;
    p->end = m->end;
    p->owner = m->owner;
    p->session = m->session;
    p->pid = m->pid;
    return true;
}

static bool lock_dec(struct dec *d UNUSED, const void *pb, void *msg)
{
    const Aifs__Lock *p = pb;
    struct msg_lock *m = msg;

    *m = (struct msg_lock){.kind = p->kind,
                           .type = p->type,
                           .start = p->start,
                           .end = p->end,
                           .owner = p->owner,
                           .session = p->session,
                           .pid = p->pid};
    return lock_is_one(m);
}
static const struct codec codec_lock = {&aifs__lock__descriptor, sizeof(struct msg_lock), lock_enc,
                                        lock_dec};

#define LOCK_REQ(F) F(num, ino) F(num, open_id) F(sub, lock, lock) F(num, wait)
CODEC_MSG(lock_req, LockReq, LOCK_REQ)

#define LOCK_REP(F) F(flag, granted) F(flag, queued) F(opt, lock, other)
CODEC_MSG(lock_rep, LockRep, LOCK_REP)

#define LOCK_WAIT(F) F(num, ino) F(num, wait)
CODEC_MSG(lock_wait, LockWait, LOCK_WAIT)

#define LOCK_INFO(F)                                                                               \
    F(sub, lock, lock)                                                                             \
    F(flag, waits) F(num, age_ns) F(text, host, CODEC_TEXT_MAX) F(bytes, mount, MSG_PATH_MAX)
CODEC_MSG(lock_info, LockInfo, LOCK_INFO)

#define LOCK_LIST_REP(F) F(subs, lock_info, locks, MSG_ITEMS_MAX) F(flag, more)
CODEC_MSG(lock_list_rep, LockListRep, LOCK_LIST_REP)
