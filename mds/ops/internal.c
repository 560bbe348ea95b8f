/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that do not come from clients: making a file system, and what the workers behind the
 * queues report.
 *
 * All are safe to repeat: an inode or item that is gone is no error, and a report about an older
 * state (truncate generation, index of the item) changes nothing.
 */
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "mds/ns/ns.h"
#include "mds/ops/exec.h"

int exec_format(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct shard_format *f = e->msg;
    struct format_rec rec = {.magic = FORMAT_MAGIC,
                             .version = htole32(FORMAT_VERSION),
                             .shard = htole32(txn_shard(t)),
                             .created_ns = (int64_t)htole64((uint64_t)txn_now_ns(t))};
    struct mds_inode *root;
    struct msg_cred cred = {.uid = f->root_uid, .gid = f->root_gid};
    struct mds_inode none = {0};
    const void *value;
    uint32_t len;
    struct key k;
    int rc;

    (void)ret_rep;
    key_single(&k, KEY_FORMAT);
    rc = txn_record_get(t, &k, &value, &len);
    if (rc != -ENOENT)
        return rc == 0 ? -EEXIST : rc;
    memcpy(rec.fs, f->fs.b, sizeof(rec.fs));
    memcpy(rec.fs_name, f->fs_name, sizeof(rec.fs_name) - 1);
    rc = txn_record_put(t, &k, &rec, sizeof(rec));
    if (rc == 0)
        rc = txn_counter_add(t, COUNTER_INODE, KEY_ROOT_INO + 1, NULL);
    if (rc < 0 || txn_shard(t) != 0)
        return rc;
    rc = txn_inode_create(t, KEY_ROOT_INO, &root);
    if (rc < 0)
        return rc;
    ns_new_inode(root, &none, &cred, S_IFDIR | (f->root_mode & 07777), txn_now(t));
    return txn_counter_add(t, COUNTER_INODES, 1, NULL);
}

int exec_orphan_release(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct shard_ino *req = e->msg;
    const struct mds_inode *in;
    bool queued = false;
    int rc = txn_inode_get(t, req->ino, &in);

    (void)ret_rep;
    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    if (in->nlink > 0 || !(in->flags & INODE_ORPHAN))
        return 0;
    rc = txn_inode_destroy(t, req->ino, 0, &queued);
    if (queued)
        e->result |= SHARD_R_DESTROY;
    e->result_ino = req->ino;
    return rc;
}

static int punch_done(struct txn *t, uint64_t ino)
{
    struct mds_inode *in;
    int rc = txn_inode_modify(t, ino, &in);

    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    in->flags &= ~INODE_PUNCH_PENDING;
    in->change++;
    return 0;
}

int exec_queue_item(struct txn *t, enum key_type queue, uint64_t ino, struct key *ret_key,
                    struct mds_queue_item *ret_item)
{
    const void *value;
    uint32_t len;
    int rc;

    key_number(ret_key, queue, ino);
    rc = txn_record_get(t, ret_key, &value, &len);
    return rc < 0 ? rc : rec_queue_decode(value, len, ret_item);
}

int exec_queue_done(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct shard_queue_done *req = e->msg;
    struct mds_queue_item item;
    struct key k;
    int rc;

    (void)ret_rep;
    if (req->queue != KEY_DESTROY && req->queue != KEY_PUNCH)
        return -EINVAL;
    rc = exec_queue_item(t, req->queue, req->ino, &k, &item);
    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    if (item.index != req->index) {
        e->result |= SHARD_R_NEWER;
        return 0;
    }
    rc = txn_record_delete(t, &k);
    if (rc < 0)
        return rc;
    return req->queue == KEY_PUNCH ? punch_done(t, req->ino)
           : item.session          ? exec_trash_object_gone(t, item.session)
                                   : 0;
}

int exec_size_unsure(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct shard_size *req = e->msg;
    struct mds_inode *in;
    int rc = txn_inode_modify(t, req->ino, &in);

    (void)ret_rep;
    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    if (!S_ISREG(in->mode))
        return 0;
    in->change++;
    if (in->flags & INODE_INLINE) {
        in->flags |= INODE_STRAY_CHUNKS;
        return 0;
    }
    in->flags |= INODE_SIZE_UNSURE;
    e->result |= SHARD_R_RECOVER;
    e->result_ino = req->ino;
    return txn_queue_put(t, KEY_RECOVER, in, req->session);
}

/* What a writer, or the targets for it, say about the end of a file. */
static void size_apply(struct txn *t, struct mds_inode *in, const struct shard_size *req)
{
    struct msg_time now = txn_now(t);

    if (req->truncate_gen == in->truncate_gen && req->size <= NS_SIZE_MAX &&
        !(in->flags & INODE_INLINE))
        in->size = MAX(in->size, req->size);
    if (req->has_mtime)
        ns_written(in, req->mtime, now);
    else
        ns_changed(in, now);
}

/* Another writer of the file has died since: what the targets said is from before it was fenced. */
int exec_size_recovered(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct shard_size *req = e->msg;
    struct mds_queue_item item;
    struct mds_inode *in;
    struct key k;
    int rc = exec_queue_item(t, KEY_RECOVER, req->ino, &k, &item);

    (void)ret_rep;
    if (rc == 0 && item.index != req->index) {
        e->result |= SHARD_R_NEWER;
        return 0;
    }
    if (rc == 0)
        rc = txn_inode_modify(t, req->ino, &in);
    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    size_apply(t, in, req);
    in->flags &= ~INODE_SIZE_UNSURE;
    return txn_record_delete(t, &k);
}

/* Who gives a lease back has reported what was written; of a file that nobody has written to
 * nothing changes. */
static bool tells_nothing(const struct txn *t, const struct mds_inode *in,
                          const struct shard_size *req)
{
    return (req->size <= in->size || req->truncate_gen != in->truncate_gen ||
            in->flags & INODE_INLINE) &&
           req->has_mtime && ns_time_compare(ns_clamp(req->mtime, txn_now(t)), in->mtime) == 0;
}

int exec_times(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct shard_size *req = e->msg;
    const struct mds_inode *seen;
    struct mds_inode *in;
    int rc = txn_inode_get(t, req->ino, &seen);

    (void)ret_rep;
    (void)e;
    if (rc == 0 && tells_nothing(t, seen, req))
        return 0;
    if (rc == 0)
        rc = txn_inode_modify(t, req->ino, &in);
    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    size_apply(t, in, req);
    return exec_caps_drop(t, in);
}

/* ctime stays, and the number of the change: nobody who keeps these attributes has to be told. */
int exec_reads(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct shard_reads *req = e->msg;

    (void)ret_rep;
    for (uint32_t i = 0; i < req->n; i++) {
        const struct msg_read_item *item = &req->items[i];
        const struct mds_inode *in;
        struct mds_inode *changed;
        int rc = txn_inode_get(t, item->ino, &in);

        if (rc == 0 && ns_read_counts(in, item, txn_now(t))) {
            rc = txn_inode_modify(t, item->ino, &changed);
            if (rc == 0)
                changed->atime = ns_clamp(item->atime, txn_now(t));
        }
        if (rc < 0 && rc != -ENOENT)
            return rc;
    }
    return 0;
}
