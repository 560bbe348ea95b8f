// SPDX-License-Identifier: Apache-2.0
/*
 * The index is read once when a store is opened: every slot that it names is marked, everything
 * else is free; logged blocks come into memory with their chunks; tombstones that are old enough
 * go. A record that is damaged costs its chunk, its block or its inode. Two records with one slot,
 * a logged block without its chunk, or an index that cannot be read: the store does not open.
 */
#include "common/base/err.h"
#include "common/base/log.h"
#include "oss/chunk/store_int.h"

static int scan_chunk(struct chunk_store *s, const struct chunk_key *k, const struct index_scan *x)
{
    struct chunk_record r;
    int rc = chunk_record_decode(x->key, x->key_len, x->value, x->value_len, &r);

    s->n_records++;
    if (rc == -AIFS_ECORRUPT) { /* this chunk is lost; the others are not */
        chunk_report_corrupt(s, k->ino, k->chunk, 0, "its index record is damaged");
        return 0;
    }
    if (rc || !r.slot.class)
        return rc;
    rc = slots_mark(&s->slots, r.slot);
    if (rc == -EEXIST) {
        chunk_report_corrupt(s, k->ino, k->chunk, 0, "its slot belongs to another chunk too");
        return -AIFS_ECORRUPT;
    }
    return rc;
}

/* r: NULL when it is damaged. */
static int scan_logged(struct chunk_store *s, const struct chunk_key *k, const struct log_record *r)
{
    struct chunk_inode *i;
    struct chunk *c;
    int rc = chunk_inode_get(s, k->ino, &i);

    if (rc)
        return rc;
    rc = chunk_get(s, i, k->chunk, &c);
    if (rc == -AIFS_ECORRUPT) { /* told by scan_chunk(): lost with its chunk, and goes with it */
        chunk_inode_put(s, i);
        return 0;
    }
    if (!rc) {
        rc = r ? chunk_log_attach(s, c, k->block, r) : chunk_log_lose(s, c, k->block);
        chunk_put(s, c);
    }
    chunk_inode_put(s, i);
    if (rc == -AIFS_ECORRUPT)
        chunk_report_corrupt(s, k->ino, k->chunk, k->block, "a logged block without its chunk");
    return rc;
}

static int scan_log(struct chunk_store *s, const struct chunk_key *k, const struct index_scan *x)
{
    struct log_record r;
    int rc = log_record_decode(x->key, x->key_len, x->value, x->value_len, &r);

    if (rc == -AIFS_ECORRUPT) { /* this block is lost; the others are not */
        chunk_report_corrupt(s, k->ino, k->chunk, k->block, "its log record is damaged");
        return scan_logged(s, k, NULL);
    }
    return rc ? rc : scan_logged(s, k, &r);
}

static void scan_inode(struct chunk_store *s, const struct index_scan *x, rocksdb_writebatch_t *wb)
{
    uint64_t now = (uint64_t)clock_wall_ns(reactor_clock(s->reactor));
    struct inode_record r;

    if (!inode_record_decode(x->key, x->key_len, x->value, x->value_len, &r) && r.tombstone &&
        r.destroyed_ns + s->options.tombstone_ns < now)
        rocksdb_writebatch_delete(wb, (const char *)x->key, x->key_len);
}

static int scan_all(struct chunk_store *s, rocksdb_writebatch_t *wb)
{
    struct index_scan x;
    struct chunk_key k;
    int rc = 0, end;

    index_scan_start(&s->index, &x, (const uint8_t *)"", 0);
    for (; !rc && index_scan_valid(&x); index_scan_next(&x)) {
        rc = chunk_key_parse(x.key, x.key_len, &k);
        if (rc)
            LOG_ERROR(s->tag, "the index holds a key of unknown kind");
        else if (k.type == CHUNK_KEY_CHUNK)
            rc = scan_chunk(s, &k, &x);
        else if (k.type == CHUNK_KEY_LOG)
            rc = scan_log(s, &k, &x); /* after all chunk records: 'l' sorts behind 'c' */
        else if (k.type == CHUNK_KEY_INODE)
            scan_inode(s, &x, wb);
    }
    end = index_scan_end(&s->index, &x);
    return end ? end : rc;
}

int chunk_scan(struct chunk_store *s)
{
    rocksdb_writebatch_t *wb = rocksdb_writebatch_create();
    int rc = scan_all(s, wb);

    if (!rc && rocksdb_writebatch_count(wb))
        rc = index_write(&s->index, wb);
    rocksdb_writebatch_destroy(wb);
    return rc;
}
