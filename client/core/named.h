/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inodes that a request to the metadata server is about: those of its message, and those that
 * the name cache knows its names by. So removals that were answered ahead stay in front of whatever
 * could tell that they are not executed yet (behind.c).
 */
#ifndef AIFS_CLIENT_CORE_NAMED_H
#define AIFS_CLIENT_CORE_NAMED_H

#include "client/core/core_int.h"

struct named {
    uint64_t ino[4];
    unsigned n;
    bool all; /* and one that is not known */
};

struct named named_by(const struct mds_op *op);

#endif
