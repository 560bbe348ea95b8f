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
    struct arena arena; /* of the list that locks_held() has returned last */
    struct reactor_timer offers;
    struct stat_counter granted, waited, deadlocks, lapsed;
    struct stat_callback waiting;
};

static inline struct locks_module *locks_module(struct mds *m)
{
    return m->locks;
}

/* Who holds locks of an inode, as committed; valid until the next call, or that of holders(). None,
 * also of an inode that is none of ours: 0. */
int locks_held(struct locks_module *mod, uint64_t ino, const struct lock **ret_list,
               uint32_t *ret_n) MUST_USE;
/* Offers what can be had now to those whose turn it is. */
void locks_kick(struct locks_module *mod, struct lock_file *f);

#endif
