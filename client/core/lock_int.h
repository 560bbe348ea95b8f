/* SPDX-License-Identifier: Apache-2.0 */
/* Locks of files, inside client/core: see lock.c. */
#ifndef AIFS_CLIENT_CORE_LOCK_INT_H
#define AIFS_CLIENT_CORE_LOCK_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"

struct core;
struct core_file;
struct core_inode;
struct core_req;

#define CORE_LOCK_WAITS_MAX                                                                        \
    4096u /* half of the requests that the kernel may have open: unlocks must get through */

struct lock_holder { /* an owner that has asked for locks through a file */
    struct list link;
    uint64_t owner;
    uint32_t kind;
    uint32_t asks; /* requests under way */
    bool holds;    /* as far as we know; true from the first question on */
};

/* Somebody wants to know when the kernel has dropped an inode's pages. */
struct inval_wait {
    struct list link; /* core_inode.inval_waits */
    unsigned turns;   /* notifications until then */
    void (*fn)(struct inval_wait *w);
    struct core_req *q;
};

/* The kernel drops what it caches of the contents, whether anybody has it open or not (lease.c);
 * w->fn runs when it is done, maybe at once. */
void lease_kernel_drops_then(struct core_inode *i, struct inval_wait *w);
void locks_handlers(struct core *c);
void locks_release(struct core_file *f);
void locks_resume(struct core *c); /* the session is there: who waits asks again */
void locks_tick(struct core *c);
void locks_lost(struct core *c);

#endif
