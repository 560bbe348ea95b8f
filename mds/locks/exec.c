// SPDX-License-Identifier: Apache-2.0
/*
 * Locks, executed: deterministic, on the shard's writer.
 *
 * Happy path: the inode's record is read, the change applied to the list (list.h), the record put,
 * and the session's counts moved with it. Whether somebody waits, and who is next, is no part of
 * the state: that is the leader's (serve.c).
 *
 * As on a local file system, a flock that is converted gives up what it had before it asks for the
 * new one: two readers that both want to write do not lock each other out.
 */
#include "mds/locks/exec.h"

#include <errno.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/err.h"
#include "mds/locks/lock_fmt.h"
#include "mds/session/exec.h"

struct locks_of {
    struct key key;
    struct lock *list; /* room for two more */
    uint32_t n;
};

static int load(struct txn *t, uint64_t ino, struct locks_of *ret_locks)
{
    const void *rec = NULL;
    uint32_t len = 0, n = 0;
    int rc;

    key_number(&ret_locks->key, KEY_LOCK, ino);
    rc = txn_record_get(t, &ret_locks->key, &rec, &len);
    if (rc == 0)
        rc = lock_rec_count(rec, len, &n);
    else if (rc == -ENOENT)
        rc = 0;
    if (rc < 0)
        return rc;
    ret_locks->n = n;
    ret_locks->list = txn_alloc(t, (n + 2u) * sizeof *ret_locks->list);
    if (!ret_locks->list)
        return -ENOMEM;
    return n ? lock_rec_decode(rec, len, ret_locks->list) : 0;
}

static int store(struct txn *t, const struct key *k, const struct lock *list, uint32_t n)
{
    uint8_t *rec;

    if (n == 0)
        return txn_record_delete(t, k);
    rec = txn_alloc(t, lock_rec_bytes(n));
    if (!rec)
        return -ENOMEM;
    lock_rec_encode(list, n, rec);
    return txn_record_put(t, k, rec, lock_rec_bytes(n));
}

/* ---- how many a session has ---- */

static int count_get(struct txn *t, const struct key *k, uint32_t *ret_n)
{
    const void *value;
    uint32_t len;
    int rc = txn_record_get(t, k, &value, &len);

    if (rc == -ENOENT) {
        *ret_n = 0;
        return 0;
    }
    if (rc == 0 && len != 4)
        rc = -AIFS_ECORRUPT;
    if (rc == 0)
        *ret_n = le32_load(value);
    return rc;
}

static int count_move(struct txn *t, uint64_t session, uint64_t ino, int64_t by, uint32_t max)
{
    uint8_t value[4];
    uint32_t n = 0;
    struct key k;
    int rc;

    key_lock_session(&k, session, ino);
    rc = count_get(t, &k, &n);
    if (rc < 0)
        return rc;
    if (by < 0 && n < (uint64_t)-by)
        return -AIFS_ECORRUPT;
    n = (uint32_t)(n + by);
    if (n == 0)
        return txn_record_delete(t, &k);
    if (by > 0 && n > max)
        return -ENOLCK;
    le32_store(value, n);
    return txn_record_put(t, &k, value, sizeof value);
}

/* The list of an inode has become this one by what the session did. */
static int change(struct txn *t, uint64_t ino, uint64_t session, struct locks_of *locks,
                  const struct lock *list, uint32_t n)
{
    int64_t by = (int64_t)lock_list_count(list, n, session) -
                 (int64_t)lock_list_count(locks->list, locks->n, session);
    int rc = n > LOCKS_INODE_MAX && n > locks->n ? -ENOLCK : 0;

    if (rc == 0 && by != 0)
        rc = count_move(t, session, ino, by, UINT32_MAX);
    if (rc == 0 && by != 0)
        rc = count_move(t, session, 0, by, LOCKS_SESSION_MAX);
    return rc < 0 ? rc : store(t, &locks->key, list, n);
}

/* ---- LOCK ---- */

static int apply(struct txn *t, uint64_t ino, struct locks_of *locks, const struct lock *l)
{
    struct lock *list = txn_alloc(t, (locks->n + 2u) * sizeof *list);

    if (!list)
        return -ENOMEM;
    return change(t, ino, l->session, locks, list, lock_list_apply(locks->list, locks->n, l, list));
}

static int refuse(struct txn *t, uint64_t ino, struct locks_of *locks, const struct lock *want,
                  const struct lock *other, struct msg_lock_rep *rep)
{
    struct lock release = *want;

    rep->has_other = true;
    lock_to_msg(other, &rep->other);
    if (want->kind != MSG_LOCK_FLOCK || !lock_list_owns(locks->list, locks->n, want))
        return 0;
    release.type = MSG_LOCK_UNLOCK;
    return apply(t, ino, locks, &release);
}

int exec_lock(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct msg_lock_req *req = e->msg;
    struct lock want = lock_of_msg(&req->lock, e->session);
    struct msg_lock_rep *rep = txn_alloc(t, sizeof *rep);
    const struct mds_inode *in;
    const struct lock *other;
    struct locks_of locks;
    int rc = rep ? load(t, req->ino, &locks) : -ENOMEM;

    if (rc == 0 && want.type != MSG_LOCK_UNLOCK)
        rc = txn_inode_get(t, req->ino, &in);
    if (rc < 0)
        return rc;
    *rep = (struct msg_lock_rep){0};
    want.since_ns = txn_now_ns(t);
    other = lock_list_conflict(locks.list, locks.n, &want);
    rep->granted = !other;
    if (other)
        rc = refuse(t, req->ino, &locks, &want, other, rep);
    else if (want.type != MSG_LOCK_UNLOCK || lock_list_owns(locks.list, locks.n, &want))
        rc = apply(t, req->ino, &locks, &want);
    *ret_rep = rep;
    return rc;
}

/* ---- the end of a session ---- */

struct free_scan {
    uint64_t *inos;
    uint32_t n, max;
};

static int free_seen(void *arg, const struct key *k, const void *value, uint32_t len)
{
    struct free_scan *s = arg;
    uint64_t ino;

    (void)value;
    (void)len;
    if (k->len != KEY_LOCK_SESSION_BYTES)
        return -AIFS_ECORRUPT;
    ino = be64_load(k->b + 9);
    if (ino == 0)
        return 0;
    if (s->n == s->max)
        return -AIFS_ECORRUPT; /* more files than locks */
    s->inos[s->n++] = ino;
    return 0;
}

static int free_ino(struct txn *t, uint64_t session, uint64_t ino)
{
    struct locks_of locks;
    struct key k;
    int rc = load(t, ino, &locks);

    if (rc == 0)
        rc = store(t, &locks.key, locks.list, lock_list_drop_session(locks.list, locks.n, session));
    key_lock_session(&k, session, ino);
    return rc < 0 ? rc : txn_record_delete(t, &k);
}

/* The counts follow: others stay. */
static int free_counted(struct txn *t, uint64_t session, uint64_t ino)
{
    struct locks_of locks;
    struct lock *list;
    int rc = load(t, ino, &locks);

    if (rc < 0 || locks.n == 0)
        return rc;
    list = txn_alloc(t, locks.n * sizeof *list);
    if (!list)
        return -ENOMEM;
    memcpy(list, locks.list, locks.n * sizeof *list);
    return change(t, ino, session, &locks, list, lock_list_drop_session(list, locks.n, session));
}

static bool is_kept(const struct locks_free *msg, uint64_t ino)
{
    uint32_t from = 0, to = msg->n_kept;

    while (from < to) {
        uint32_t at = from + (to - from) / 2;

        if (msg->kept[at] == ino)
            return true;
        if (msg->kept[at] < ino)
            from = at + 1;
        else
            to = at;
    }
    return false;
}

/* Takes them out of the list. */
static bool keep_some(const struct locks_free *msg, struct free_scan *s)
{
    uint32_t n = 0, before = s->n;

    for (uint32_t i = 0; i < before; i++) {
        if (!is_kept(msg, s->inos[i]))
            s->inos[n++] = s->inos[i];
    }
    s->n = n;
    return n < before;
}

int txn_locks_free(struct txn *t, const struct locks_free *msg, struct locks_freed *ret_freed)
{
    struct free_scan s = {0};
    struct key k, all;
    bool left;
    int rc;

    *ret_freed = (struct locks_freed){0};
    key_lock_session(&all, msg->session, 0);
    rc = count_get(t, &all, &s.max);
    if (rc < 0 || s.max == 0)
        return rc;
    s.inos = txn_alloc(t, s.max * sizeof *s.inos);
    if (!s.inos)
        return -ENOMEM;
    key_number(&k, KEY_LOCK_SESSION, msg->session);
    rc = txn_record_scan(t, &k, free_seen, &s);
    left = rc == 0 && keep_some(msg, &s);
    if (rc == 0 && !left)
        rc = txn_record_delete(t, &all);
    for (uint32_t i = 0; rc == 0 && i < s.n; i++)
        rc = (left ? free_counted : free_ino)(t, msg->session, s.inos[i]);
    if (rc == 0)
        *ret_freed = (struct locks_freed){.n_inos = s.n, .inos = s.inos, .left = left};
    return rc;
}

int exec_locks_free(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    struct locks_freed *rep = txn_alloc(t, sizeof *rep);
    const struct locks_free *msg = e->msg;
    int rc = rep ? txn_locks_free(t, msg, rep) : -ENOMEM;

    if (rc == 0)
        rc = txn_session_safe(t, msg->session);
    if (rc == 0)
        *ret_rep = rep;
    return rc;
}
