/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the clients did: every operation with the moments of its call and of its answer, numbered in
 * one sequence, its arguments and what was answered. Operations name inodes by their real numbers
 * and files' contents by cells: places of 16 bytes, each written whole with the number of its
 * write.
 */
#ifndef AIFS_TESTS_SIM_HISTORY_H
#define AIFS_TESTS_SIM_HISTORY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SIM_NAMES      5u
#define SIM_CELLS      6u
#define SIM_CELL_BYTES 16u
#define LINK_BYTES     8u /* of a symlink: the number of its making */
#define SIM_OPS_MAX    640u

enum op_kind {
    OP_LOOKUP,
    OP_CREATE,
    OP_MKDIR,
    OP_SYMLINK,
    OP_TMPFILE, /* a file without a name, open */
    OP_UNLINK,
    OP_RMDIR,
    OP_RENAME,
    OP_LINK,
    OP_GETATTR,
    OP_CHMOD,
    OP_TRUNCATE,
    OP_READDIR,
    OP_SETXATTR,
    OP_GETXATTR,
    OP_READLINK,
    OP_OPEN,
    OP_READ,
    OP_WRITE,
    OP_APPEND,
    OP_ALLOCATE,
    OP_FLUSH,
    OP_FSYNC,
    OP_LOCK, /* this one and the next two: locks.c has a check of its own */
    OP_UNLOCK,
    OP_LOCK_TEST,
    OP_CLOSE,   /* not in the history */
    OP_LOSE,    /* a client's session ends: what it had not made durable may be gone */
    OP_RESTORE, /* a removal that it has answered ahead did not take place: ino2 has its name,
                   and is a directory or not (ret_dir) */
    OP_UNMAKE,  /* nor a creation: ino2, under this name, is not there */
    OP_UNSET,   /* nor what was set on a directory: it has its mode of before, value */
    OP_UNMOVE,  /* nor a rename in one directory: ino2 has its name again, and what it had replaced,
                   ret_ino, its own; name and name2 as there */
    OP_SPOIL,   /* what a client has written into a file, and not made durable, may be gone for
                   others; flags: and for itself, for it has told so */
};

struct op {
    enum op_kind kind;
    uint8_t client;
    uint32_t call, answer; /* in the one sequence; answer 0: none */
    uint32_t end;          /* LOSE: nothing that was called behind it is of the session */
    bool sealing; /* what a dead writer has left is not known yet: the file may be told shorter than
                     it will be (docs/protocols.md 7) */
    bool ends;    /* with its answer, though unknown: it happens before, or never */
    bool own_change; /* another process of its client was changing it: what the client has cached
                        may be from before, although others see the change already */
    bool unknown;    /* its outcome is: it has happened, or will, or not */
    bool held;       /* LINK: its process has the file open, from before to behind it */
    uint64_t call_ns, answer_ns;
    /* arguments */
    uint64_t ino;  /* of the directory, or the object */
    uint64_t ino2; /* RENAME: the other directory; LINK: the object */
    uint8_t name, name2, cell;
    uint32_t flags; /* CHMOD: the mode that its client knows before it; RENAME: RENAME_*; CREATE,
                       TMPFILE: O_EXCL; OPEN: O_TRUNC; ALLOCATE: FALLOC_FL_*; LOCK: LOCK_OP_* */
    uint32_t
        value; /* CHMOD mode, SETXATTR, SYMLINK and WRITE value, TRUNCATE size, LOCK last cell */
    /* the answer */
    int status;
    uint64_t ret_ino;
    uint32_t ret_size, ret_value, ret_nlink, ret_mode; /* APPEND: size is where it went */
    bool ret_dir;
    uint64_t ret_names[SIM_NAMES]; /* READDIR: inode of each name, 0: not there */
};

struct history {
    struct op ops[SIM_OPS_MAX];
    unsigned n;
    uint32_t next; /* of the sequence, from 1 */
    uint64_t root;
};

static inline bool op_is_lock(enum op_kind k)
{
    return k == OP_LOCK || k == OP_UNLOCK || k == OP_LOCK_TEST;
}

uint32_t history_cell_offset(unsigned cell);
void history_print(const struct history *h, FILE *to);
void op_print(const struct op *o, FILE *to);

/* Is there an order of the operations that explains every answer? Else *ret_op is the first one
 * whose answer nothing explains; -1: it is too much work to tell. */
int history_check(const struct history *h, const struct op **ret_op);

#endif
