/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removing a whole tree: see trash.h.
 *
 * Failure modes: of the detaching, -ENOENT when the name is not there or is another directory's by
 * now, -ENOTDIR; of the rest, as txn.h. All are safe to repeat.
 */
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "mds/ns/ns.h"
#include "mds/ops/exec.h"
#include "mds/ops/trash.h"

static int tree_get(struct txn *t, uint64_t tree, struct mds_trash_tree *ret_tree)
{
    const void *value;
    uint32_t len;
    struct key k;
    int rc;

    key_number(&k, KEY_TRASH_TREE, tree);
    rc = txn_record_get(t, &k, &value, &len);
    return rc < 0 ? rc : rec_trash_tree_decode(value, len, ret_tree);
}

static int tree_put(struct txn *t, uint64_t tree, const struct mds_trash_tree *rec)
{
    uint8_t value[REC_TRASH_TREE_MAX];
    struct key k;

    key_number(&k, KEY_TRASH_TREE, tree);
    if (rec->directories == 0 && rec->objects == 0)
        return txn_record_delete(t, &k);
    return txn_record_put(t, &k, value, rec_trash_tree_encode(rec, value));
}

int exec_trash_object_gone(struct txn *t, uint64_t tree)
{
    struct mds_trash_tree rec;
    int rc = tree_get(t, tree, &rec);

    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    rec.objects -= rec.objects > 0;
    return tree_put(t, tree, &rec);
}

/* It has no name any more. Its parent is the root, so that a walk upwards ends. */
static int directory_detach(struct txn *t, uint64_t ino, uint64_t tree)
{
    const struct msg_bytes none = {"", 0};
    struct trash_rec value;
    struct mds_inode *in;
    struct key k;
    int rc = txn_inode_modify(t, ino, &in);

    if (rc < 0)
        return rc;
    in->nlink = 0;
    ns_changed(in, txn_now(t));
    rc = exec_parent_set(t, ino, KEY_ROOT_INO, &none, false);
    if (rc < 0)
        return rc;
    key_number(&k, KEY_TRASH, ino);
    rec_trash_encode(tree, &value);
    return txn_record_put(t, &k, &value, sizeof(value));
}

int exec_trash_tree(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct trash_detach *req = e->msg;
    struct mds_trash_tree tree = {.directories = 1, .started_ns = txn_now_ns(t)};
    const struct mds_inode *dir, *victim;
    struct mds_dirent d;
    int rc = tree_get(t, req->ino, &tree);

    (void)ret_rep;
    if (rc != -ENOENT)
        return rc; /* 0: detached by an earlier sending */
    rc = exec_dir(t, req->parent, &dir);
    if (rc == 0)
        rc = ns_name_check(&req->name);
    if (rc == 0)
        rc = txn_dirent_get(t, req->parent, req->name.data, req->name.len, &d);
    if (rc == 0 && d.ino != req->ino)
        rc = -ENOENT;
    if (rc == 0)
        rc = txn_inode_get(t, req->ino, &victim);
    if (rc < 0)
        return rc;
    if (!S_ISDIR(victim->mode))
        return -ENOTDIR;
    rc = exec_name_remove(t, req->parent, &req->name, S_IFDIR);
    if (rc == 0)
        rc = directory_detach(t, req->ino, req->ino);
    if (rc < 0)
        return rc;
    tree.name_len = req->name.len;
    memcpy(tree.name, req->name.data, req->name.len);
    e->result |= SHARD_R_TRASH;
    e->result_ino = req->ino;
    return tree_put(t, req->ino, &tree);
}

/* ---- content ---- */

struct removal {
    struct txn *t;
    struct shard_entry *e;
    uint64_t dir, tree_ino;
    struct mds_trash_tree tree;
    uint64_t gone;    /* names */
    uint64_t destroy; /* the smallest inode with chunks to destroy; 0: none */
};

static int remove_directory(struct removal *r, uint64_t ino)
{
    r->tree.directories++;
    r->e->result |= SHARD_R_TRASH;
    return directory_detach(r->t, ino, r->tree_ino);
}

static int remove_file(struct removal *r, const struct trash_name *n, uint8_t *ret_outcome)
{
    struct shard_entry *e = r->e;
    uint32_t before = e->result;
    int rc;

    e->result = 0;
    rc = exec_link_drop(r->t, e, n->ino, n->is_open, r->tree_ino);
    *ret_outcome = e->result & SHARD_R_ORPHANED ? TRASH_ORPHANED : TRASH_REMOVED;
    if (e->result & SHARD_R_DESTROY) {
        *ret_outcome = TRASH_DESTROYED;
        r->tree.objects++;
        r->destroy = r->destroy ? MIN(r->destroy, n->ino) : n->ino;
    }
    e->result = before;
    return rc;
}

static int remove_name(struct removal *r, const struct trash_name *n, uint8_t *ret_outcome)
{
    const struct mds_inode *in;
    struct mds_dirent d;
    int rc = txn_dirent_get(r->t, r->dir, n->name.data, n->name.len, &d);

    *ret_outcome = TRASH_ABSENT;
    if (rc < 0 || d.ino != n->ino)
        return rc == -ENOENT ? 0 : rc;
    rc = txn_inode_get(r->t, n->ino, &in);
    if (rc < 0)
        return rc == -ENOENT ? -AIFS_ECORRUPT : rc;
    if (!S_ISDIR(in->mode) && in->nlink > 1 && !n->told) {
        *ret_outcome = TRASH_SHARED;
        return 0;
    }
    *ret_outcome = TRASH_DIRECTORY;
    rc = S_ISDIR(in->mode) ? remove_directory(r, n->ino) : remove_file(r, n, ret_outcome);
    if (rc == 0)
        rc = txn_dirent_delete(r->t, r->dir, n->name.data, n->name.len);
    r->gone++;
    return rc;
}

/* The directory has fewer names, or goes with the last. */
static int remove_settle(struct removal *r, bool last, bool *ret_gone)
{
    struct mds_inode *dir;
    bool queued;
    struct key k;
    int rc = txn_inode_modify(r->t, r->dir, &dir);

    if (rc < 0)
        return rc;
    if (dir->entries < r->gone)
        return -AIFS_ECORRUPT;
    dir->entries -= r->gone;
    ns_modified(dir, txn_now(r->t));
    r->tree.removed += r->gone;
    if (!last || dir->entries > 0)
        return tree_put(r->t, r->tree_ino, &r->tree);
    key_number(&k, KEY_TRASH, r->dir);
    rc = txn_record_delete(r->t, &k);
    if (rc == 0)
        rc = txn_inode_destroy(r->t, r->dir, 0, &queued);
    r->tree.directories -= r->tree.directories > 0;
    *ret_gone = true;
    return rc < 0 ? rc : tree_put(r->t, r->tree_ino, &r->tree);
}

int exec_trash_names(struct txn *t, struct shard_entry *e, const void **ret_rep)
{
    const struct trash_names *req = e->msg;
    struct trash_names_rep *rep = txn_alloc(t, sizeof(*rep) + req->n);
    struct removal r = {.t = t, .e = e, .dir = req->dir};
    const void *value;
    uint32_t len;
    struct key k;
    int rc;

    if (!rep)
        return -ENOMEM;
    rep->dir_gone = false;
    memset(rep->outcome, TRASH_ABSENT, req->n);
    *ret_rep = rep;
    key_number(&k, KEY_TRASH, req->dir);
    rc = txn_record_get(t, &k, &value, &len);
    if (rc == -ENOENT) {
        rep->dir_gone = true;
        return 0;
    }
    if (rc == 0)
        rc = rec_trash_decode(value, len, &r.tree_ino);
    if (rc == 0)
        rc = tree_get(t, r.tree_ino, &r.tree);
    if (rc == -ENOENT)
        rc = -AIFS_ECORRUPT;
    for (uint32_t i = 0; rc == 0 && i < req->n; i++)
        rc = remove_name(&r, &req->names[i], &rep->outcome[i]);
    if (rc == 0)
        rc = remove_settle(&r, req->last, &rep->dir_gone);
    if (r.destroy) {
        e->result |= SHARD_R_DESTROY;
        e->result_ino = r.destroy;
    }
    return rc;
}
