/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executing one entry: exactly once, or not at all.
 *
 * Happy path: the session is open and its slot has not seen this sequence; the operation runs; its
 * encoded reply is kept in the slot's record, which is committed in the same batch as what it
 * changed. The same sequence again gets the kept reply. A client uses a slot for its next call only
 * after the answer to the last, so a higher sequence is new (calls that change nothing durable
 * leave gaps), and a lower one is a delayed duplicate of something answered long ago. Failure
 * modes: an operation that fails is undone, and its failure is kept as its outcome. RETRY is not
 * kept: the same entry comes again, resolved anew.
 */
#include <string.h>

#include "common/base/log.h"
#include "mds/shard/shard_int.h"
#include "proto/codec.h"

static int slot_check_session(struct txn *t, const struct shard_entry *e)
{
    const void *value;
    uint32_t len;
    struct key k;
    int rc;

    key_number(&k, KEY_SESSION, e->session);
    rc = txn_record_get(t, &k, &value, &len);
    if (rc == -ENOENT)
        return -AIFS_ESESSION;
    if (rc < 0)
        return rc;
    return len >= 1 && *(const uint8_t *)value == SESSION_OPEN ? 0 : -AIFS_ESESSION;
}

/* 0: new, go on. 1: answered from the slot. */
static int slot_lookup(struct txn *t, struct shard_entry *e)
{
    const void *value;
    struct slot_rec rec;
    uint32_t len, sequence;
    struct key k;
    int rc;

    key_slot(&k, e->session, e->slot);
    rc = txn_record_get(t, &k, &value, &len);
    if (rc == -ENOENT)
        return 0;
    if (rc < 0)
        return rc;
    if (len < sizeof(rec))
        return -AIFS_ECORRUPT;
    memcpy(&rec, value, sizeof(rec));
    if (le16toh(rec.version) != REC_VERSION)
        return -AIFS_EFORMAT;
    sequence = le32toh(rec.sequence);
    if (sequence != e->sequence)
        /* in the arithmetic of a counter that wraps */
        return (int32_t)(e->sequence - sequence) > 0 ? 0 : -AIFS_EPROTO;
    if (le16toh(rec.op) != e->op)
        return -AIFS_EPROTO;
    len -= (uint32_t)sizeof(rec);
    e->reply = len ? arena_dup(&e->arena, (const uint8_t *)value + sizeof(rec), len) : "";
    if (!e->reply)
        return -ENOMEM;
    e->reply_len = len;
    e->status = err_from_wire(le32toh(rec.status));
    e->result = le32toh(rec.result) | SHARD_R_DUPLICATE;
    e->result_ino = le64toh(rec.ino);
    return 1;
}

static int slot_keep(struct txn *t, struct shard_entry *e)
{
    struct slot_rec rec = {.version = htole16(REC_VERSION),
                           .op = htole16(e->op),
                           .sequence = htole32(e->sequence),
                           .status = htole32(err_to_wire(e->status)),
                           .result = htole32(e->result),
                           .ino = htole64(e->result_ino)};
    uint8_t *value = arena_alloc(&e->arena, sizeof(rec) + e->reply_len);
    struct key k;

    if (!value)
        return -ENOMEM;
    memcpy(value, &rec, sizeof(rec));
    if (e->reply_len)
        memcpy(value + sizeof(rec), e->reply, e->reply_len);
    key_slot(&k, e->session, e->slot);
    return txn_record_put(t, &k, value, (uint32_t)sizeof(rec) + e->reply_len);
}

static int run_operation(struct txn *t, struct shard_entry *e)
{
    shard_exec_fn *fn = e->op < SHARD_OP_LIMIT ? t->shard->o.exec[e->op] : NULL;
    const void *rep = NULL;
    int rc;

    if (!fn)
        return -ENOSYS;
    rc = fn(t, e, &rep);
    if (rc < 0 || !rep)
        return rc;
    if (e->op >= SHARD_OP_FIRST) {
        e->reply = rep;
        return rc;
    }
    return codec_encode(e->op, true, rep, &e->arena, &e->reply, &e->reply_len);
}

static void outcome_fail(struct shard_entry *e, int status)
{
    e->status = status;
    e->result = 0;
    e->result_ino = 0;
    e->reply = NULL;
    e->reply_len = 0;
}

/* The operation and, in the same undo step, its slot: both or none. */
static void execute_and_keep(struct txn *t, struct shard_entry *e)
{
    struct overlay *v = t->overlay;

    overlay_op_begin(v);
    e->status = run_operation(t, e);
    if (e->status != 0) {
        overlay_op_undo(v);
        outcome_fail(e, e->status);
        overlay_op_begin(v);
    }
    if (e->slot && e->status != -AIFS_ERETRY) {
        int rc = slot_keep(t, e);

        if (rc < 0) {
            overlay_op_undo(v);
            outcome_fail(e, rc);
            return;
        }
    }
    overlay_op_keep(v);
}

void shard_execute(struct shard *s, struct shard_entry *e)
{
    struct txn t = {.shard = s, .overlay = &s->overlay, .arena = &e->arena, .entry = e};
    int rc = 0;

    e->index = s->index + 1;
    if (e->slot) {
        rc = slot_check_session(&t, e);
        if (rc == 0)
            rc = slot_lookup(&t, e);
    }
    if (rc == 0) {
        s->index = e->index;
        execute_and_keep(&t, e);
        if (e->status == -AIFS_ERETRY)
            atomic_fetch_add_explicit(&s->n_retries, 1, memory_order_relaxed);
    } else {
        e->index = 0;
        if (rc < 0)
            outcome_fail(e, rc);
        else
            atomic_fetch_add_explicit(&s->n_duplicates, 1, memory_order_relaxed);
    }
}
