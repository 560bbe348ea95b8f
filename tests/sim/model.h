/* SPDX-License-Identifier: Apache-2.0 */
/* A file system as a value: small, without pointers, to be copied, compared and hashed. */
#ifndef AIFS_TESTS_SIM_MODEL_H
#define AIFS_TESTS_SIM_MODEL_H

#include "tests/sim/history.h"
#include "tests/sim/past.h"

#define MODEL_INODES 40u
#define MODEL_DIRS   8u

struct model_inode {
    uint64_t ino;                     /* 0: made by an operation whose answer is not known */
    uint8_t used, is_dir, dir, nlink; /* dir: its place in names; of a file 0 */
    uint8_t parent;                   /* of a directory: the inode's place */
    uint8_t is_link, linkable;        /* a symlink; made without a name, and it has none yet */
    uint8_t pad;
    uint32_t mode, xattr; /* of a symlink: what it tells */
    struct past size, cell[SIM_CELLS];
};

struct model {
    struct model_inode inode[MODEL_INODES];
    uint8_t names[MODEL_DIRS][SIM_NAMES]; /* inode's place + 1; 0: none */
};

void model_init(struct model *m, uint64_t root);
/*
 * Does it to m, if the answer is then what it was. place and dir: where a new inode goes (the same
 * for this operation in every order). What is unknown has no answer to compare. False: m is spoilt.
 */
bool model_do(struct model *m, const struct op *o, unsigned place, unsigned dir);

#endif
