// SPDX-License-Identifier: Apache-2.0
/*
 * Execution of the session module's entries: deterministic, on the shard's writer.
 *
 * Who opens a file for writing is marked in the store, by the entry that opens it. So eviction
 * knows what a session may have been writing even if the server that granted it has died with it.
 * It is one entry so that a restart finds either a live session, or an evicted one with its fence
 * and with everything queued that its writing leaves to be done.
 */
#include "mds/session/exec.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "common/fault/fault.h"
#include "mds/locks/exec.h"
#include "mds/session/session_fmt.h"

static void put_text(char *to, size_t size, struct msg_bytes from)
{
    size_t n = MIN((size_t)from.len, size - 1);

    if (n)
        memcpy(to, from.data, n);
}

int exec_session_create(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct session_create *msg = e->msg;
    struct session_created *rep = txn_alloc(t, sizeof *rep);
    struct session_rec rec = {.state = SESSION_OPEN,
                              .version = SESSION_REC_VERSION,
                              .flags = htole16(msg->read_only ? SESSION_REC_READ_ONLY : 0),
                              .generation = htole32(msg->generation),
                              .created_ns = (int64_t)htole64((uint64_t)txn_now_ns(t)),
                              .pid = htole32(msg->pid)};
    struct key k;
    int rc;

    if (!rep)
        return -ENOMEM;
    memcpy(rec.client, msg->client.b, 16);
    memcpy(rec.node, msg->node.b, 16);
    put_text(rec.host, sizeof rec.host, msg->host);
    put_text(rec.job, sizeof rec.job, msg->job);
    put_text(rec.mount, sizeof rec.mount, msg->mount);
    rc = txn_counter_add(t, COUNTER_SESSION, 1, &rep->session);
    if (rc < 0)
        return rc;
    rep->session += 1; /* 0 is no session */
    key_number(&k, KEY_SESSION, rep->session);
    rc = txn_record_put(t, &k, &rec, sizeof rec);
    if (rc == 0)
        *ret_rep = rep;
    return rc;
}

/* The session's record, ready to be changed and put back. */
static int get_session(struct txn *t, uint64_t session, struct key *k, struct session_rec *ret_rec)
{
    const void *value;
    uint32_t len;
    int rc;

    key_number(k, KEY_SESSION, session);
    rc = txn_record_get(t, k, &value, &len);
    if (rc < 0)
        return rc;
    if (len != sizeof *ret_rec)
        return -AIFS_ECORRUPT;
    memcpy(ret_rec, value, sizeof *ret_rec);
    return ret_rec->version == SESSION_REC_VERSION ? 0 : -AIFS_EFORMAT;
}

int exec_session_alone(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct session_set_alone *msg = e->msg;
    struct session_rec rec;
    uint16_t flags;
    struct key k;
    int rc = get_session(t, msg->session, &k, &rec);

    (void)ret_rep;
    if (rc < 0 || rec.state != SESSION_OPEN)
        return rc;
    flags = (uint16_t)(le16toh(rec.flags) & ~SESSION_REC_ALONE);
    rec.flags = htole16((uint16_t)(flags | (msg->alone ? SESSION_REC_ALONE : 0)));
    return txn_record_put(t, &k, &rec, sizeof rec);
}

/* ---- marks ---- */

int exec_mark_writer(struct txn *t, const struct shard_entry *e, uint64_t ino)
{
    struct writer_rec rec = {.version = htole16(WRITER_REC_VERSION), .id = htole64(e->open_id)};
    struct key k;

    if (!e->marks_writer)
        return 0;
    key_writer(&k, e->session, ino);
    if (e->result & SHARD_R_CREATED) /* by this very operation */
        return txn_record_add(t, &k, &rec, sizeof rec);
    return txn_record_put(t, &k, &rec, sizeof rec);
}

static int unmark_one(struct txn *t, const struct session_mark *m)
{
    const struct mds_inode *in;
    struct writer_rec rec;
    const void *value;
    uint32_t len;
    struct key k;
    int rc;

    key_writer(&k, m->session, m->ino);
    rc = txn_record_get(t, &k, &value, &len);
    if (rc < 0)
        return rc;
    if (len != sizeof rec)
        return -AIFS_ECORRUPT;
    memcpy(&rec, value, sizeof rec);
    if (le64toh(rec.id) != m->id)
        return 0;
    if (m->if_inline) {
        rc = txn_inode_get(t, m->ino, &in);
        if (rc < 0 || !(in->flags & INODE_INLINE))
            return rc;
    }
    return txn_record_delete(t, &k);
}

static int unmark(struct txn *t, const struct session_unmark *msg)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < msg->n; i++) {
        rc = unmark_one(t, &msg->marks[i]);
        rc = rc == -ENOENT ? 0 : rc; /* gone already, or its file is */
    }
    return rc;
}

int exec_session_unmark(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    (void)ret_rep;
    return unmark(t, e->msg);
}

/* ---- eviction ---- */

struct evict {
    struct txn *t;
    uint64_t session;
    uint32_t n_marks, n_recover, n_punch;
    uint64_t *recover, *punch;
};

static int evict_count(void *arg, const struct key *k, const void *value, uint32_t len)
{
    struct evict *v = arg;

    (void)k;
    (void)value;
    (void)len;
    v->n_marks++;
    return 0;
}

static int evict_ino(struct evict *v, uint64_t ino)
{
    struct mds_inode *in;
    int rc = txn_inode_modify(v->t, ino, &in);

    if (rc == -ENOENT)
        return 0;
    if (rc < 0 || !S_ISREG(in->mode))
        return rc;
    if (in->flags & INODE_INLINE) {
        v->punch[v->n_punch++] = ino;
        return txn_inode_cut_strays(v->t, in, v->session);
    }
    in->flags |= INODE_SIZE_UNSURE;
    v->recover[v->n_recover++] = ino;
    return txn_queue_put(v->t, KEY_RECOVER, in, v->session);
}

static int evict_mark(void *arg, const struct key *k, const void *value, uint32_t len)
{
    struct evict *v = arg;
    int rc;

    (void)value;
    (void)len;
    if (k->len != 17)
        return -AIFS_ECORRUPT;
    rc = evict_ino(v, be64_load(k->b + 9));
    return rc < 0 ? rc : txn_record_delete(v->t, k);
}

static int evict_marks(struct evict *v)
{
    struct key k;
    int rc;

    key_number(&k, KEY_WRITER, v->session);
    rc = txn_record_scan(v->t, &k, evict_count, v);
    if (rc < 0)
        return rc;
    v->recover = txn_alloc(v->t, (v->n_marks + 1u) * sizeof *v->recover);
    v->punch = txn_alloc(v->t, (v->n_marks + 1u) * sizeof *v->punch);
    if (!v->recover || !v->punch)
        return -ENOMEM;
    return txn_record_scan(v->t, &k, evict_mark, v);
}

static int evict_fence(struct txn *t, uint64_t session, bool safe, struct session_rec *rec)
{
    struct fence_rec fence = {.session = htole64(session), .generation = rec->generation};
    uint64_t number;
    struct key k;
    int rc = txn_counter_add(t, COUNTER_FENCE, 1, &number);

    if (rc < 0)
        return rc;
    number += 1;
    rec->state = SESSION_EVICTED;
    if (safe)
        rec->flags |= htole16(SESSION_REC_SAFE);
    rec->fence = htole64(number);
    key_number(&k, KEY_FENCE, number);
    return txn_record_put(t, &k, &fence, sizeof fence);
}

int txn_session_safe(struct txn *t, uint64_t session)
{
    struct session_rec rec;
    struct key k;
    int rc = get_session(t, session, &k, &rec);

    if (rc < 0 || rec.state != SESSION_EVICTED || rec.flags & htole16(SESSION_REC_SAFE))
        return rc == -ENOENT ? 0 : rc;
    rec.flags |= htole16(SESSION_REC_SAFE);
    return txn_record_put(t, &k, &rec, sizeof rec);
}

int exec_session_evict(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct session_evict *msg = e->msg;
    struct session_evicted *rep = txn_alloc(t, sizeof *rep);
    struct evict v = {.t = t, .session = msg->session};
    struct session_rec rec;
    struct key k;
    int rc;

    if (!rep)
        return -ENOMEM;
    rc = FAULT("mds.evict.entry") ? -ENOMEM : get_session(t, msg->session, &k, &rec);
    if (rc < 0)
        return rc;
    if (rec.state != SESSION_EVICTED) {
        rc = evict_fence(t, msg->session, msg->safe, &rec);
        if (rc == 0)
            rc = txn_record_put(t, &k, &rec, sizeof rec);
        if (rc == 0)
            rc = unmark(t, &msg->spared);
        if (rc == 0)
            rc = evict_marks(&v);
    }
    *rep = (struct session_evicted){.fence = le64toh(rec.fence),
                                    .generation = le32toh(rec.generation),
                                    .n_recover = v.n_recover,
                                    .n_punch = v.n_punch,
                                    .recover = v.recover,
                                    .punch = v.punch};
    if (rc == 0)
        *ret_rep = rep;
    return rc;
}

static int remove_record(void *arg, const struct key *k, const void *value, uint32_t len)
{
    (void)value;
    (void)len;
    return txn_record_delete(arg, k);
}

int exec_session_remove(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct session_remove *msg = e->msg;
    struct locks_freed *rep = txn_alloc(t, sizeof *rep);
    struct key k;
    const struct locks_free locks = {.session = msg->session};
    int rc = rep ? txn_locks_free(t, &locks, rep) : -ENOMEM;

    if (FAULT("mds.session.remove"))
        return -ENOMEM;
    key_number(&k, KEY_SLOT, msg->session);
    if (rc == 0)
        rc = txn_record_scan(t, &k, remove_record, t);
    key_number(&k, KEY_WRITER, msg->session);
    if (rc == 0)
        rc = txn_record_scan(t, &k, remove_record, t);
    key_number(&k, KEY_GIVEN, msg->session);
    if (rc == 0)
        rc = txn_record_delete(t, &k);
    if (rc < 0)
        return rc;
    *ret_rep = rep;
    key_number(&k, KEY_SESSION, msg->session);
    return txn_record_delete(t, &k);
}

int exec_fence_forget(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct session_fence_forget *msg = e->msg;
    int rc = 0;

    (void)ret_rep;
    for (uint32_t i = 0; rc == 0 && i < msg->n; i++) {
        struct key k;

        key_number(&k, KEY_FENCE, msg->fences[i]);
        rc = txn_record_delete(t, &k);
    }
    return rc;
}

int exec_boot(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    struct session_booted *rep = txn_alloc(t, sizeof *rep);
    int rc;

    (void)e;
    if (!rep)
        return -ENOMEM;
    rc = txn_counter_add(t, COUNTER_BOOT, 1, &rep->boot);
    if (rc < 0)
        return rc;
    rep->boot += 1;
    *ret_rep = rep;
    return 0;
}
