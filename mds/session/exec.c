// SPDX-License-Identifier: Apache-2.0
/*
 * Execution of the session module's entries: deterministic, on the shard's writer.
 *
 * Eviction is one entry so that a restart finds either a live session, or an evicted one with its
 * fence and with everything queued that its write leases leave to be done.
 */
#include "mds/session/exec.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
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

/* A growth may have left chunks that no size speaks of: a raised truncate generation makes the
 * targets drop them and refuse what is still under way. */
static int evict_inline(struct txn *t, struct mds_inode *in, uint64_t session)
{
    in->truncate_gen++;
    in->change++;
    in->flags |= INODE_STRAY_CHUNKS | INODE_PUNCH_PENDING;
    return txn_queue_put(t, KEY_PUNCH, in, session);
}

static int evict_ino(struct txn *t, uint64_t session, uint64_t ino, struct session_evicted *rep,
                     uint64_t *recover, uint64_t *punch)
{
    struct mds_inode *in;
    int rc = txn_inode_modify(t, ino, &in);

    if (rc == -ENOENT)
        return 0;
    if (rc < 0 || !S_ISREG(in->mode))
        return rc;
    if (in->flags & INODE_INLINE) {
        punch[rep->n_punch++] = ino;
        return evict_inline(t, in, session);
    }
    in->flags |= INODE_SIZE_UNSURE;
    recover[rep->n_recover++] = ino;
    return txn_queue_put(t, KEY_RECOVER, in, session);
}

static int evict_fence(struct txn *t, uint64_t session, struct session_rec *rec)
{
    struct fence_rec fence = {.session = htole64(session), .generation = rec->generation};
    uint64_t number;
    struct key k;
    int rc = txn_counter_add(t, COUNTER_FENCE, 1, &number);

    if (rc < 0)
        return rc;
    number += 1;
    rec->state = SESSION_EVICTED;
    rec->fence = htole64(number);
    key_number(&k, KEY_FENCE, number);
    return txn_record_put(t, &k, &fence, sizeof fence);
}

int exec_session_evict(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct session_evict *msg = e->msg;
    struct session_evicted *rep = txn_alloc(t, sizeof *rep);
    uint64_t *recover = txn_alloc(t, (msg->n_inos + 1u) * sizeof *recover);
    uint64_t *punch = txn_alloc(t, (msg->n_inos + 1u) * sizeof *punch);
    struct session_rec rec;
    struct key k;
    int rc;

    if (!rep || !recover || !punch)
        return -ENOMEM;
    rc = get_session(t, msg->session, &k, &rec);
    if (rc < 0)
        return rc;
    *rep = (struct session_evicted){
        .generation = le32toh(rec.generation), .recover = recover, .punch = punch};
    if (rec.state != SESSION_EVICTED) {
        rc = evict_fence(t, msg->session, &rec);
        if (rc == 0)
            rc = txn_record_put(t, &k, &rec, sizeof rec);
        for (uint32_t i = 0; rc == 0 && i < msg->n_inos; i++)
            rc = evict_ino(t, msg->session, msg->inos[i], rep, recover, punch);
    }
    rep->fence = le64toh(rec.fence);
    if (rc == 0)
        *ret_rep = rep;
    return rc;
}

static int remove_slot(void *arg, const struct key *k, const void *value, uint32_t len)
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
    int rc = rep ? txn_locks_free(t, msg->session, rep) : -ENOMEM;

    key_number(&k, KEY_SLOT, msg->session);
    if (rc == 0)
        rc = txn_record_scan(t, &k, remove_slot, t);
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
