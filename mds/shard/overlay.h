/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's objects: decoded inodes, groups of directory entries (all names of one directory
 * with one hash) and records, each at most once. Dirty ones differ from the store and wait for the
 * batch's commit; clean ones are the hot cache, least recently used first out.
 *
 * Every change within an operation saves the former state once, so that overlay_undo() takes the
 * operation back. Threads: the writer only.
 */
#ifndef AIFS_MDS_SHARD_OVERLAY_H
#define AIFS_MDS_SHARD_OVERLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/hmap.h"
#include "common/base/list.h"
#include "common/base/mem.h"
#include "mds/store/rec.h"
#include "mds/store/store.h"

enum obj_kind { OBJ_INODE, OBJ_GROUP, OBJ_RECORD };

struct obj {
    struct hmap_node node;
    struct list link; /* on overlay.dirty or overlay.clean */
    enum obj_kind kind;
    bool dirty;
    uint32_t bytes;
};

struct obj_inode {
    struct obj o;
    bool exists;
    uint64_t saved_at; /* operation that has saved it for undo */
    struct mds_inode in;
};

struct obj_name { /* one directory entry */
    struct obj_name *next;
    struct mds_dirent d;
    bool exists, dirty;
    uint8_t name_len;
    char name[];
};

struct overlay_at {
    uint64_t hash;
    struct obj_group *group;
};

struct overlay_roll;

/*
 * What the overlay has of one directory (overlay_dir.c). When that are as many names as the
 * directory's inode says that it has, a group that is not here is empty, and is not looked for in
 * the store: so it is with directories that were made a while ago, and filled since. Such a one can
 * be listed from here.
 */
struct overlay_dir {
    struct hmap_node node;
    uint64_t ino;
    uint64_t names;        /* that exist */
    struct overlay_at *at; /* the groups that are here, in no order; with the last this goes */
    uint32_t n, cap;
    struct overlay_roll *roll; /* the same in their order, until one of them changes; or NULL */
};

struct obj_group {
    struct obj o;
    uint64_t parent, hash;
    struct overlay_dir *dir;
    struct obj_name *names;
    uint32_t at; /* its place in dir->at */
};

struct obj_record {
    struct obj o;
    bool exists;
    void *value; /* owned; NULL when empty or absent */
    uint32_t len;
    uint16_t key_len;
    uint8_t key[];
};

struct overlay_undo;
struct overlay {
    struct store *store;
    struct hmap map;
    struct hmap dirs;        /* struct overlay_dir */
    struct list rolls;       /* struct overlay_roll, most recently used last */
    uint64_t rolled;         /* groups in them */
    struct store_iter *scan; /* for the groups that one batch loads */
    struct list clean;       /* most recently used last */
    struct list dirty;
    uint64_t bytes, limit_bytes;
    uint64_t op; /* number of the current operation */
    struct arena undo_arena;
    struct overlay_undo *undo;
};

int overlay_init(struct overlay *v, struct store *s, uint64_t limit_bytes) MUST_USE;
void overlay_fini(struct overlay *v);

/* Loads from the store if need be. The object may say that nothing exists. 0 or why it could not be
 * read. */
int overlay_inode(struct overlay *v, uint64_t ino, struct obj_inode **ret_obj) MUST_USE;
int overlay_group(struct overlay *v, uint64_t parent, uint64_t hash,
                  struct obj_group **ret_obj) MUST_USE;
int overlay_record(struct overlay *v, const struct key *k, struct obj_record **ret_obj) MUST_USE;
/* The same of what the store cannot have, and where it is not looked for. */
int overlay_inode_fresh(struct overlay *v, uint64_t ino, struct obj_inode **ret_obj) MUST_USE;
int overlay_record_fresh(struct overlay *v, const struct key *k,
                         struct obj_record **ret_obj) MUST_USE;
/* What the overlay has of a record, without loading; NULL: nothing. */
struct obj_record *overlay_find_record(struct overlay *v, const void *key, size_t len);

/* Before a change: saves the former state for undo, marks dirty. -ENOMEM: nothing has changed. */
int overlay_touch_inode(struct overlay *v, struct obj_inode *i) MUST_USE;
int overlay_touch_name(struct overlay *v, struct obj_group *g, struct obj_name *n) MUST_USE;
struct obj_name *
overlay_add_name(struct overlay *v, struct obj_group *g, const void *name,
                 uint32_t name_len); /* not existing yet, touched; NULL: out of memory */
/* Of a touched name: whether there is one. */
void overlay_name_exists(struct obj_group *g, struct obj_name *n, bool exists);

/* The directory of a group that has just been made, or goes. -ENOMEM */
int overlay_dir_enter(struct overlay *v, struct obj_group *g) MUST_USE;
void overlay_dir_leave(struct overlay *v, struct obj_group *g);
bool overlay_dir_is_whole(const struct overlay *v, const struct overlay_dir *d);
/* A name in it is about to change, or a group: what rested on them is forgotten. */
void overlay_dir_changes(struct overlay *v, struct overlay_dir *d);
/* What the overlay has of an inode, without loading; NULL: nothing. */
struct obj_inode *overlay_find_inode(const struct overlay *v, uint64_t ino);
/* The names of a directory in the order of their hashes, those from from_hash on, until fn returns
 * nonzero (1: stop, else an error), which is returned; names with one hash come in any order. About
 * `wanted` names are asked for at once: how much it may cost to put all of them in order depends on
 * it. -ENOENT: not all of it is here, or something waits for its commit; ask the store. */
typedef int overlay_name_fn(void *arg, uint64_t hash, const struct mds_dirent *d, const void *name,
                            uint32_t name_len);
int overlay_list(struct overlay *v, uint64_t dir, uint64_t from_hash, uint32_t wanted,
                 overlay_name_fn *fn, void *arg) MUST_USE;
/* Replaces the value; value NULL and exists false: deletes. */
int overlay_set_record(struct overlay *v, struct obj_record *r, bool exists, const void *value,
                       uint32_t len) MUST_USE;

void overlay_op_begin(struct overlay *v);
void overlay_op_keep(struct overlay *v);
void overlay_op_undo(struct overlay *v);
/* A part of the operation that may be undone by itself: what was there before it. */
struct overlay_undo *overlay_op_next(struct overlay *v);
void overlay_op_undo_to(struct overlay *v, struct overlay_undo *before);

/* Execution pauses: the store may change, and need not keep what it had. */
void overlay_pause(struct overlay *v);
/* Puts every dirty object into the batch, neighbours side by side. */
void overlay_flush(struct overlay *v, struct store_batch *b);
/* After the commit: everything is clean; drops what is over the limit. */
void overlay_settle(struct overlay *v);

#endif
