/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps that several operations share: queueing work on chunks, and the end of an inode.
 *
 * Failure modes: as txn.h; the operation is undone as a whole.
 */
#include <sys/stat.h>

#include "mds/shard/shard_int.h"

int txn_queue_put(struct txn *t, enum key_type queue, const struct mds_inode *in, uint64_t session)
{
    struct mds_queue_item item = {.layout = in->layout,
                                  .size = in->size,
                                  .truncate_gen = in->truncate_gen,
                                  .session = session,
                                  .index = txn_index(t)};
    struct queue_rec rec;
    struct key k;

    key_number(&k, queue, in->ino);
    rec_queue_encode(&item, &rec);
    /* an inode is destroyed once, but may be cut and recovered more often */
    return (queue == KEY_DESTROY ? txn_record_add : txn_record_put)(t, &k, &rec, sizeof(rec));
}

int txn_inode_cut_strays(struct txn *t, struct mds_inode *in, uint64_t session)
{
    struct mds_inode nothing;

    in->truncate_gen++;
    in->change++;
    in->flags |= INODE_STRAY_CHUNKS | INODE_PUNCH_PENDING;
    nothing = *in;
    nothing.size = 0;
    return txn_queue_put(t, KEY_PUNCH, &nothing, session);
}

static int remove_record(void *arg, const struct key *k, const void *value, uint32_t len)
{
    (void)value;
    (void)len;
    return txn_record_delete(arg, k);
}

static int remove_by_ino(struct txn *t, enum key_type type, uint64_t ino)
{
    struct key k;

    key_number(&k, type, ino);
    return txn_record_delete(t, &k);
}

/* Records that hang on the inode, each only looked for when the inode says that it can exist. */
static int destroy_attached(struct txn *t, const struct mds_inode *in)
{
    struct key k;
    int rc = 0;

    if (in->n_xattrs) {
        key_number(&k, KEY_XATTR, in->ino);
        rc = txn_record_scan(t, &k, remove_record, t);
    }
    if (rc == 0 && S_ISREG(in->mode) && (in->flags & INODE_INLINE) && in->size)
        rc = remove_by_ino(t, KEY_INLINE, in->ino);
    if (rc == 0 && S_ISLNK(in->mode))
        rc = remove_by_ino(t, KEY_SYMLINK, in->ino);
    if (rc == 0 && S_ISDIR(in->mode))
        rc = remove_by_ino(t, KEY_PARENT, in->ino);
    if (rc == 0 && (in->flags & INODE_ORPHAN))
        rc = remove_by_ino(t, KEY_ORPHAN, in->ino);
    if (rc == 0 && (in->flags & INODE_PUNCH_PENDING))
        rc = remove_by_ino(t, KEY_PUNCH, in->ino);
    if (rc == 0 && (in->flags & INODE_SIZE_UNSURE))
        rc = remove_by_ino(t, KEY_RECOVER, in->ino);
    return rc;
}

int txn_inode_destroy(struct txn *t, uint64_t ino, uint64_t tree, bool *ret_queued)
{
    const struct mds_inode *in;
    bool chunks;
    int rc = txn_inode_get(t, ino, &in);

    if (rc < 0)
        return rc;
    chunks = S_ISREG(in->mode) && (!(in->flags & INODE_INLINE) || (in->flags & INODE_STRAY_CHUNKS));
    rc = destroy_attached(t, in);
    if (rc == 0 && chunks)
        rc = txn_queue_put(t, KEY_DESTROY, in, tree);
    if (rc == 0)
        rc = txn_inode_delete(t, ino);
    if (rc == 0)
        rc = txn_counter_add(t, COUNTER_INODES, -1, NULL);
    if (rc == 0)
        *ret_queued = chunks;
    return rc;
}
