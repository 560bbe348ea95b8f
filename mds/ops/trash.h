/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What removes a whole tree: one entry takes its name away, and entries that follow take away its
 * content, a page of names each (mds/gc/trash.c submits them).
 *
 * A directory whose content is going has no name, link count 0 and an item in KEY_TRASH; nothing
 * can be made in it any more. A directory found in it becomes such a directory in turn, so that
 * nothing but the queue has to be remembered, and any depth is the same. The record of the tree
 * counts what is left: it goes with the last directory and the last file whose chunks had to be
 * destroyed.
 */
#ifndef AIFS_MDS_OPS_TRASH_H
#define AIFS_MDS_OPS_TRASH_H

#include "mds/shard/shard.h"

struct trash_detach { /* SHARD_OP_TRASH_TREE; again for the same tree: nothing happens */
    uint64_t parent, ino;
    struct msg_bytes name;
};

enum trash_outcome {
    TRASH_ABSENT = 0, /* the name is not there any more */
    TRASH_REMOVED,
    TRASH_DESTROYED, /* so was the file, and what waits for its chunks need not wait */
    TRASH_ORPHANED,  /* somebody has it open */
    TRASH_DIRECTORY, /* queued */
    TRASH_SHARED,    /* it has other names, and those who know it were not told: still there */
};

struct trash_name {
    uint64_t ino;
    struct msg_bytes name;
    bool is_open; /* somebody has it open: decided while it is frozen */
    bool told;    /* who keeps its attributes has been told that they change */
};

struct trash_names { /* SHARD_OP_TRASH_NAMES */
    uint64_t dir;
    bool last; /* there are no other names: the directory goes too */
    uint32_t n;
    const struct trash_name *names;
};

struct trash_names_rep {
    bool dir_gone;
    uint8_t outcome[]; /* enum trash_outcome, of each name */
};

#endif
