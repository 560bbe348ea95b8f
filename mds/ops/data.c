/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WRITE_INLINE, GROW, SIZE, APPEND_RANGE: what writers tell the metadata server. That the open is
 * one for writing was checked by the leader.
 *
 * Failure modes: ESTALE_LAYOUT (the file has grown into chunks meanwhile, or has not yet, or a
 * piece of a small one, or an append, comes from who holds a write lease by now and has to make it
 * under that),
 * ESTALE_TRUNC (it was cut meanwhile), EINLINE_FULL (grow it first), EFBIG, RETRY while a cut is
 * under way.
 */
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "mds/ns/ns.h"
#include "mds/ops/exec.h"

/* The inode for change, if it is what the writer thinks it is. */
static int data_inode(struct txn *t, uint64_t ino, bool is_inline, const uint32_t *generation,
                      uint64_t truncate_gen, struct mds_inode **ret_inode)
{
    struct mds_inode *in;
    int rc = txn_inode_modify(t, ino, &in);

    if (rc < 0)
        return rc;
    if (!S_ISREG(in->mode))
        return -EINVAL;
    if (!!(in->flags & INODE_INLINE) != is_inline)
        return -AIFS_ESTALE_LAYOUT;
    if (generation && *generation != in->layout.generation)
        return -AIFS_ESTALE_LAYOUT;
    if (truncate_gen != in->truncate_gen)
        return -AIFS_ESTALE_TRUNC;
    *ret_inode = in;
    return 0;
}

static int data_written(struct txn *t, const struct shard_entry *e, struct mds_inode *in,
                        struct msg_time mtime)
{
    if (e->holds_write)
        ns_written(in, mtime, txn_now(t));
    else
        ns_written_beside(in, mtime, txn_now(t));
    return exec_caps_drop(t, in);
}

/* The content after the write, in the entry's memory. */
static int inline_merge(struct txn *t, const struct shard_entry *e, const struct mds_inode *in,
                        uint64_t offset, bool replace, const void **ret_data, uint32_t *ret_len)
{
    const void *old = NULL;
    uint32_t old_len = 0;
    uint64_t end = offset + e->bulk_len, len;
    uint8_t *data;
    struct key k;
    int rc;

    if (!replace && in->size > 0) {
        key_number(&k, KEY_INLINE, in->ino);
        rc = txn_record_get(t, &k, &old, &old_len);
        if (rc < 0 && rc != -ENOENT)
            return rc;
        if (rc == -ENOENT)
            old_len = 0;
    }
    len = MAX(end, (uint64_t)old_len);
    data = txn_alloc(t, len + 1);
    if (!data)
        return -ENOMEM;
    if (old_len)
        memcpy(data, old, old_len);
    if (offset > old_len)
        memset(data + old_len, 0, offset - old_len);
    if (e->bulk_len)
        memcpy(data + offset, e->bulk, e->bulk_len);
    *ret_data = data;
    *ret_len = (uint32_t)len;
    return 0;
}

/* in has its former size: a file without bytes has no record, and the store is not asked for it. */
static int inline_put(struct txn *t, const struct mds_inode *in, const void *data, uint32_t len)
{
    struct key k;

    key_number(&k, KEY_INLINE, in->ino);
    if (in->size == 0)
        return len ? txn_record_add(t, &k, data, len) : 0;
    return len ? txn_record_put(t, &k, data, len) : txn_record_delete(t, &k);
}

int exec_write_inline(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct msg_write_inline_req *req = e->msg;
    uint64_t max = e->inline_max && e->inline_max < MSG_INLINE_MAX ? e->inline_max : MSG_INLINE_MAX;
    struct mds_inode *in;
    const void *data;
    uint64_t offset;
    uint32_t len;
    int rc = data_inode(t, req->ino, true, &req->layout_generation, req->truncate_gen, &in);

    if (rc < 0)
        return rc;
    /* The holder's copy, which it will send whole, has been made without this. */
    if (e->holds_write && !req->replace)
        return -AIFS_ESTALE_LAYOUT;
    offset = req->replace ? 0 : req->append ? in->size : req->offset;
    if (offset > max || e->bulk_len > max - offset)
        return -AIFS_EINLINE_FULL;
    rc = inline_merge(t, e, in, offset, req->replace, &data, &len);
    if (rc < 0)
        return rc;
    rc = inline_put(t, in, data, len);
    if (rc < 0)
        return rc;
    in->size = req->replace ? len : MAX(in->size, (uint64_t)len);
    if (!ns_is_root(&req->cred))
        ns_kill_priv(in);
    rc = data_written(t, e, in, req->mtime);
    return rc < 0 ? rc : exec_reply_inode(t, e, req->ino, false, ret_rep);
}

int exec_grow(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct msg_size_req *req = e->msg;
    struct mds_inode *in;
    int rc = data_inode(t, req->ino, true, &req->layout_generation, req->truncate_gen, &in);

    if (rc < 0)
        return rc;
    if (in->layout.table_len == 0)
        return -ENOSPC;
    if (in->flags & INODE_PUNCH_PENDING)
        return -EIO; /* its chunks were written ahead of the cut, and would go with it */
    if (req->size > NS_SIZE_MAX)
        return -EFBIG;
    rc = inline_put(t, in, NULL, 0);
    if (rc < 0)
        return rc;
    in->flags &= ~(INODE_INLINE | INODE_STRAY_CHUNKS);
    in->layout.generation++;
    in->size = MAX(in->size, req->size);
    rc = data_written(t, e, in, req->mtime);
    return rc < 0 ? rc : exec_reply_inode(t, e, req->ino, false, ret_rep);
}

/* Only who holds the write lease can have been growing it: a word that comes too late must not cut
 * what the next one writes. */
static int growth_given_up(struct txn *t, struct shard_entry *e, const struct msg_size_req *req,
                           const void **ret_rep)
{
    struct mds_inode *in;
    int rc = data_inode(t, req->ino, true, &req->layout_generation, req->truncate_gen, &in);

    if (rc == 0)
        rc = e->holds_write ? txn_inode_cut_strays(t, in, 0) : -AIFS_ELEASE;
    if (rc < 0)
        return rc;
    e->result |= SHARD_R_PUNCH;
    e->result_ino = in->ino;
    return exec_reply_inode(t, e, req->ino, false, ret_rep);
}

int exec_size(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct msg_size_req *req = e->msg;
    struct mds_inode *in;
    int rc;

    if (req->give_up)
        return growth_given_up(t, e, req, ret_rep);
    rc = data_inode(t, req->ino, false, &req->layout_generation, req->truncate_gen, &in);
    if (rc < 0)
        return rc;
    if (req->size > NS_SIZE_MAX)
        return -EFBIG;
    if (req->size > in->size) {
        if (in->flags & INODE_PUNCH_PENDING)
            return -AIFS_ERETRY;
        in->size = req->size;
    }
    rc = data_written(t, e, in, req->mtime);
    return rc < 0 ? rc : exec_reply_inode(t, e, req->ino, false, ret_rep);
}

int exec_append_range(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct msg_append_req *req = e->msg;
    struct msg_append_rep *rep = txn_alloc(t, sizeof(*rep));
    struct mds_inode *in;
    int rc = data_inode(t, req->ino, false, NULL, req->truncate_gen, &in);

    if (rc < 0)
        return rc;
    if (!rep)
        return -ENOMEM;
    /* The holder takes places by itself: another of its appends may be in this one by now. */
    if (e->holds_write)
        return -AIFS_ESTALE_LAYOUT;
    if (in->flags & INODE_PUNCH_PENDING)
        return -AIFS_ERETRY;
    if (req->len > NS_SIZE_MAX || in->size > NS_SIZE_MAX - req->len)
        return -EFBIG;
    rep->offset = in->size;
    in->size += req->len;
    ns_modified(in, txn_now(t));
    rc = exec_caps_drop(t, in);
    if (rc < 0)
        return rc;
    rec_inode_attr(in, &rep->attr);
    *ret_rep = rep;
    return 0;
}
