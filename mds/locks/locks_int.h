/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the lock module: module.c (life, offers), serve.c (requests). */
#ifndef AIFS_MDS_LOCKS_LOCKS_INT_H
#define AIFS_MDS_LOCKS_LOCKS_INT_H

#include "common/stat/stat.h"
#include "mds/locks/lock_fmt.h"
#include "mds/locks/locks.h"
#include "mds/locks/queue.h"
#include "mds/session/session.h"

struct locks_module {
    struct mds *mds;
    struct lock_queue queue;
    struct arena arena; /* of the list that holders() has returned last */
    struct reactor_timer offers;
    struct stat_counter granted, waited, deadlocks, lapsed;
    struct stat_callback waiting;
};

static inline struct locks_module *locks_module(struct mds *m)
{
    return m->locks;
}

/* Offers what can be had now to those whose turn it is. */
void locks_kick(struct locks_module *mod, struct lock_file *f);

#endif
