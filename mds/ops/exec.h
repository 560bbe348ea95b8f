/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of what a shard can execute (exec_table.c): one function per operation, by number, and
 * the steps they share (exec_steps.c). A module adds its internal operations to the table, with one
 * line each and a declaration in its own header.
 *
 * Everything here runs on the shard's writer, inside a transaction (mds/shard/txn.h):
 * deterministic, undone as a whole on failure.
 */
#ifndef AIFS_MDS_OPS_EXEC_H
#define AIFS_MDS_OPS_EXEC_H

#include "mds/shard/shard.h"

extern shard_exec_fn *const mds_exec_table[SHARD_OP_LIMIT];

shard_exec_fn exec_format, exec_create, exec_mkdir, exec_mknod, exec_symlink, exec_unlink,
    exec_rmdir, exec_rename, exec_link, exec_setattr, exec_open, exec_xattr_set, exec_xattr_remove,
    exec_write_inline, exec_grow, exec_size, exec_append_range, exec_orphan_release,
    exec_queue_done, exec_size_recovered, exec_size_unsure, exec_times, exec_reads, exec_trash_tree,
    exec_trash_names;

/* ---- steps ---- */

/* -AIFS_ERETRY if the leader resolved place i to another inode (0: to none). */
int exec_expect(const struct shard_entry *e, unsigned i, uint64_t ino) MUST_USE;
/* A directory in which names may come and go, with its access list. -ENOTDIR; -ENOENT: it has lost
 * its own name (rmtree). */
int exec_dir(struct txn *t, uint64_t ino, const struct mds_inode **ret_dir) MUST_USE;
/* The next number of the directory's run; a new run when it is used up. */
int exec_new_ino(struct txn *t, uint64_t dir, uint64_t *ret_ino) MUST_USE;
/* A number that the caller's session has given itself, and not before (mds/session/exec.h). */
int exec_given_ino(struct txn *t, const struct shard_entry *e, uint64_t dir, uint64_t ino) MUST_USE;
/* What was answered ahead happened when its client has told its own kernel: for as long as that can
 * be believed, so that nobody makes a file or directory look older than it is; else now. */
int64_t exec_when(const struct shard_entry *e, uint64_t when_ns);
/* The entry happened then; but not before what has happened in that directory already. */
void exec_take_time(struct shard_entry *e, const struct mds_inode *dir, uint64_t when_ns);
/* Adds or removes a name, with what that does to the directory: entry count, link count, times. */
int exec_name_add(struct txn *t, uint64_t dir, const struct msg_bytes *name, uint64_t ino,
                  uint32_t mode) MUST_USE;
int exec_name_remove(struct txn *t, uint64_t dir, const struct msg_bytes *name,
                     uint32_t mode) MUST_USE;
/* fresh: the directory is being made, the store has no such record. */
int exec_parent_set(struct txn *t, uint64_t ino, uint64_t parent, const struct msg_bytes *name,
                    bool fresh) MUST_USE;
/* A file without a name that somebody has open: destroyed with its last close. */
int exec_orphan(struct txn *t, struct shard_entry *e, struct mds_inode *in) MUST_USE;
/* A file loses a name, a directory its only one. The last one: an orphan if somebody has it open,
 * else gone. tree: as txn_inode_destroy(). */
int exec_link_drop(struct txn *t, struct shard_entry *e, uint64_t ino, bool is_open,
                   uint64_t tree) MUST_USE;
/* Sets the size of a regular file, with what that does to its data. -AIFS_ERETRY: larger, while a
 * cut is still on its way to the targets. */
int exec_resize(struct txn *t, struct shard_entry *e, struct mds_inode *in, uint64_t size) MUST_USE;
/* O_TRUNC of a file that the caller may open so. */
int exec_open_trunc(struct txn *t, struct shard_entry *e, uint64_t ino,
                    const struct msg_cred *cred) MUST_USE;
/* struct msg_inode_rep of an inode, with the open that the leader prepared if opened. */
int exec_reply_inode(struct txn *t, const struct shard_entry *e, uint64_t ino, bool opened,
                     const void **ret_rep) MUST_USE;
/* Adds what has become of a directory to a reply, which is made if there is none. A second one goes
 * to the second place; the same again is nothing. */
int exec_reply_dir(struct txn *t, uint64_t dir, const void **ret_rep) MUST_USE;
/* An inode's item in one of the queues (internal.c). -ENOENT: it is done. */
int exec_queue_item(struct txn *t, enum key_type queue, uint64_t ino, struct key *ret_key,
                    struct mds_queue_item *ret_item) MUST_USE;
/* ---- access lists (acl.c) ---- */
/* If the inode has one: *in becomes a copy of it, with the list. */
int exec_acl(struct txn *t, const struct mds_inode **in) MUST_USE;
/* One of an inode is set, or removed if it is empty or says no more than a mode. */
int exec_acl_set(struct txn *t, struct mds_inode *in, const struct msg_bytes *acl, bool is_default,
                 const struct msg_cred *c) MUST_USE;
/* What dir has for something new of this mode; nothing: len 0, and the umask counts. */
int exec_acl_default(struct txn *t, const struct mds_inode *dir, uint32_t mode,
                     struct msg_bytes *ret) MUST_USE;
int exec_acl_inherit(struct txn *t, struct mds_inode *in, const struct msg_bytes *acl) MUST_USE;
/* A file whose data or owner changes loses the capabilities it runs with. */
int exec_caps_drop(struct txn *t, struct mds_inode *in) MUST_USE;

/* The chunks of a file of this removed tree are destroyed. */
int exec_trash_object_gone(struct txn *t, uint64_t tree) MUST_USE;
/* Is anc dir itself or above it? Walks up the parents. */
int exec_is_above(struct txn *t, uint64_t anc, uint64_t dir, bool *ret_above) MUST_USE;

#endif
