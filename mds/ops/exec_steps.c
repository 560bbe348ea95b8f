/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps that operations share: names in directories, links of inodes, sizes, replies.
 *
 * Failure modes: as txn.h; the entry's operation is undone as a whole.
 */
#include <string.h>
#include <sys/stat.h>

#include "common/base/bytes.h"
#include "common/base/err.h"
#include "mds/ns/ns.h"
#include "mds/ops/exec.h"
#include "mds/session/exec.h"
#include "proto/number.h"

#define AHEAD_MAX_NS (60 * NS_PER_S)

int exec_expect(const struct shard_entry *e, unsigned i, uint64_t ino)
{
    return e->check_resolved && e->resolved[i] != ino ? -AIFS_ERETRY : 0;
}

int exec_dir(struct txn *t, uint64_t ino, const struct mds_inode **ret_dir)
{
    const struct mds_inode *dir;
    int rc = txn_inode_get(t, ino, &dir);

    if (rc < 0)
        return rc;
    if (!S_ISDIR(dir->mode))
        return -ENOTDIR;
    if (dir->nlink == 0)
        return -ENOENT;
    *ret_dir = dir;
    return exec_acl(t, ret_dir);
}

int64_t exec_when(const struct shard_entry *e, uint64_t when_ns)
{
    int64_t now = e->now_ns, when = (int64_t)when_ns;

    return when <= 0 || when > now || now - when > (int64_t)AHEAD_MAX_NS ? now : when;
}

void exec_take_time(struct shard_entry *e, const struct mds_inode *dir, uint64_t when_ns)
{
    int64_t now = e->now_ns, when = exec_when(e, when_ns), changed = when;
    struct msg_time latest = {now / (int64_t)NS_PER_S, (uint32_t)(now % (int64_t)NS_PER_S)};
    struct msg_time first = {when / (int64_t)NS_PER_S, 0};

    if (when == now)
        return;
    /* it may be any time that somebody has set: no number of nanoseconds then */
    if (ns_time_compare(first, dir->mtime) <= 0 && ns_time_compare(dir->mtime, latest) <= 0)
        changed = dir->mtime.sec * (int64_t)NS_PER_S + dir->mtime.nsec;
    e->now_ns = MAX(when, changed);
}

int exec_new_ino(struct txn *t, uint64_t dir_ino, uint64_t *ret_ino)
{
    struct mds_inode *dir;
    uint64_t first;
    int rc = txn_inode_modify(t, dir_ino, &dir);

    if (rc < 0)
        return rc;
    if (dir->run_left == 0) {
        uint32_t size = dir->run_size ? MIN(dir->run_size * 2, NS_RUN_MAX) : NS_RUN_FIRST;

        rc = txn_counter_add(t, COUNTER_INODE, size, &first);
        if (rc < 0)
            return rc;
        if ((first + size) >= NUMBER_GIVEN)
            return -ENOSPC;
        first |= (uint64_t)txn_shard(t) << KEY_INODE_BITS;
        rc = txn_inodes_unused(t, first, size);
        if (rc < 0)
            return rc;
        dir->run_size = dir->run_left = size;
        dir->run_next = first;
    }
    rc = txn_counter_add(t, COUNTER_INODES, 1, NULL);
    if (rc < 0)
        return rc;
    *ret_ino = dir->run_next++;
    dir->run_left--;
    return 0;
}

int exec_given_ino(struct txn *t, const struct shard_entry *e, uint64_t dir, uint64_t ino)
{
    int rc = exec_given_number(t, e, dir, ino);

    return rc < 0 ? rc : txn_counter_add(t, COUNTER_INODES, 1, NULL);
}

int exec_name_add(struct txn *t, uint64_t dir_ino, const struct msg_bytes *name, uint64_t ino,
                  uint32_t mode)
{
    struct mds_inode *dir;
    int rc = txn_inode_modify(t, dir_ino, &dir);

    if (rc == 0 && S_ISDIR(mode) && dir->nlink >= NS_LINK_MAX)
        rc = -EMLINK;
    if (rc == 0)
        rc = txn_dirent_put(t, dir_ino, name->data, name->len, ino, ns_type_of(mode));
    if (rc < 0)
        return rc;
    dir->nlink += S_ISDIR(mode) ? 1 : 0;
    dir->entries++; /* behind the name: by their number the overlay knows whether it has them all */
    ns_modified(dir, txn_now(t));
    return 0;
}

int exec_name_remove(struct txn *t, uint64_t dir_ino, const struct msg_bytes *name, uint32_t mode)
{
    struct mds_inode *dir;
    int rc = txn_inode_modify(t, dir_ino, &dir);

    if (rc < 0)
        return rc;
    if (dir->entries == 0 || (S_ISDIR(mode) && dir->nlink <= 2))
        return -AIFS_ECORRUPT;
    rc = txn_dirent_delete(t, dir_ino, name->data, name->len);
    if (rc < 0)
        return rc;
    dir->nlink -= S_ISDIR(mode) ? 1 : 0;
    dir->entries--; /* behind the name */
    ns_modified(dir, txn_now(t));
    return 0;
}

int exec_parent_set(struct txn *t, uint64_t ino, uint64_t parent, const struct msg_bytes *name,
                    bool fresh)
{
    uint8_t value[sizeof(struct parent_rec) + MSG_NAME_MAX];
    struct key k;

    le64_store(value, parent);
    memcpy(value + sizeof(struct parent_rec), name->data, name->len);
    key_number(&k, KEY_PARENT, ino);
    return (fresh ? txn_record_add
                  : txn_record_put)(t, &k, value, (uint32_t)sizeof(struct parent_rec) + name->len);
}

int exec_orphan(struct txn *t, struct shard_entry *e, struct mds_inode *in)
{
    uint8_t value[8];
    struct key k;

    in->flags |= INODE_ORPHAN;
    e->result |= SHARD_R_ORPHANED;
    e->result_ino = in->ino;
    le64_store(value, (uint64_t)txn_now_ns(t));
    key_number(&k, KEY_ORPHAN, in->ino);
    return txn_record_add(t, &k, value, sizeof(value));
}

int exec_link_drop(struct txn *t, struct shard_entry *e, uint64_t ino, bool is_open, uint64_t tree)
{
    struct mds_inode *in;
    bool queued = false;
    int rc = txn_inode_modify(t, ino, &in);

    if (rc < 0)
        return rc;
    if (in->nlink == 0)
        return -AIFS_ECORRUPT;
    if (S_ISDIR(in->mode))
        in->nlink = 0;
    else
        in->nlink--;
    ns_changed(in, txn_now(t));
    if (in->nlink > 0)
        return 0;
    if (is_open && S_ISREG(in->mode))
        return exec_orphan(t, e, in);
    rc = txn_inode_destroy(t, ino, tree, &queued);
    if (queued) {
        e->result |= SHARD_R_DESTROY;
        e->result_ino = ino;
    }
    return rc;
}

/* The record of inline data never reaches behind the size. */
static int inline_cut(struct txn *t, uint64_t ino, uint64_t size)
{
    const void *value;
    uint32_t len;
    struct key k;
    int rc;

    key_number(&k, KEY_INLINE, ino);
    if (size == 0)
        return txn_record_delete(t, &k);
    rc = txn_record_get(t, &k, &value, &len);
    if (rc == -ENOENT)
        return 0;
    if (rc < 0 || len <= size)
        return rc;
    void *copy = txn_alloc(t, size);

    if (!copy)
        return -ENOMEM;
    memcpy(copy, value, size);
    return txn_record_put(t, &k, copy, (uint32_t)size);
}

/* The dead session that holds the file until the item is done, if there is one. */
static int item_holder(struct txn *t, enum key_type queue, uint64_t ino, struct key *ret_key,
                       uint64_t *ret_session)
{
    struct mds_queue_item item;
    int rc = exec_queue_item(t, queue, ino, ret_key, &item);

    if (rc == 0 && item.session)
        *ret_session = item.session;
    return rc == -ENOENT ? 0 : rc;
}

/* The item takes the place of others, and of their hold on the file, also after a restart. */
static int chunks_cut(struct txn *t, struct shard_entry *e, struct mds_inode *in, uint64_t size)
{
    uint64_t holder = 0;
    struct key k;
    int rc = 0;

    in->size = size;
    in->truncate_gen++;
    if (in->flags & INODE_PUNCH_PENDING)
        rc = item_holder(t, KEY_PUNCH, in->ino, &k, &holder);
    if (rc == 0 && in->flags & INODE_SIZE_UNSURE) {
        /* what a dead writer may have written behind the cut does not matter any more */
        rc = item_holder(t, KEY_RECOVER, in->ino, &k, &holder);
        if (rc == 0)
            rc = txn_record_delete(t, &k);
        in->flags &= ~INODE_SIZE_UNSURE;
    }
    in->flags |= INODE_PUNCH_PENDING;
    e->result |= SHARD_R_PUNCH;
    e->result_ino = in->ino;
    return rc < 0 ? rc : txn_queue_put(t, KEY_PUNCH, in, holder);
}

int exec_resize(struct txn *t, struct shard_entry *e, struct mds_inode *in, uint64_t size)
{
    int rc = 0;

    if (in->flags & INODE_INLINE) {
        if (size < in->size) {
            in->truncate_gen++;
            rc = inline_cut(t, in->ino, size);
        }
        in->size = size;
        return rc;
    }
    /* a later cut would take the place of the one that is under way */
    if (size > in->size && (in->flags & INODE_PUNCH_PENDING))
        return -AIFS_ERETRY;
    if (size < in->size || (in->flags & INODE_SIZE_UNSURE))
        return chunks_cut(t, e, in, size);
    in->size = size;
    return 0;
}

int exec_reply_inode(struct txn *t, const struct shard_entry *e, uint64_t ino, bool opened,
                     const void **ret_rep)
{
    struct msg_inode_rep *rep = txn_alloc(t, sizeof(*rep));
    const struct mds_inode *in;
    int rc = txn_inode_get(t, ino, &in);

    if (rc < 0)
        return rc;
    if (!rep)
        return -ENOMEM;
    memset(rep, 0, sizeof(*rep));
    rec_inode_attr(in, &rep->inode.attr);
    if (!S_ISDIR(in->mode))
        rep->inode.layout = in->layout;
    rep->created = e->result & SHARD_R_CREATED;
    if (opened) {
        rep->open_id = e->open_id;
        rep->inode.lease = e->lease;
        rep->inode.lease_seq = e->lease_seq;
    }
    *ret_rep = rep;
    return 0;
}

int exec_reply_dir(struct txn *t, uint64_t dir, const void **ret_rep)
{
    struct msg_inode_rep *rep = (struct msg_inode_rep *)*ret_rep; /* of this very execution */
    const struct mds_inode *in;
    int rc = txn_inode_get(t, dir, &in);

    if (rc < 0)
        return rc;
    if (!rep) {
        rep = txn_alloc(t, sizeof(*rep));
        if (!rep)
            return -ENOMEM;
        memset(rep, 0, sizeof(*rep));
        *ret_rep = rep;
    }
    if (!rep->has_dir) {
        rep->has_dir = true;
        rec_inode_attr(in, &rep->dir);
    } else if (rep->dir.ino != dir) {
        rep->has_dir2 = true;
        rec_inode_attr(in, &rep->dir2);
    }
    return 0;
}

int exec_is_above(struct txn *t, uint64_t anc, uint64_t dir, bool *ret_above)
{
    const void *value;
    uint32_t len;
    struct key k;

    for (unsigned depth = 0; depth < NS_DEPTH_MAX; depth++) {
        int rc;

        if (dir == anc || dir == KEY_ROOT_INO) {
            *ret_above = dir == anc;
            return 0;
        }
        key_number(&k, KEY_PARENT, dir);
        rc = txn_record_get(t, &k, &value, &len);
        if (rc < 0)
            return rc == -ENOENT ? -AIFS_ECORRUPT : rc;
        if (len < sizeof(struct parent_rec))
            return -AIFS_ECORRUPT;
        dir = le64_load(value);
    }
    return -ELOOP;
}
